"""Language models, and the choice of the one that speaks in a conversation.

Other packages use `selection.choose`, which returns an `engine.ports.LanguageModel`, and `configuration`, the stored
settings that it reads.
"""
