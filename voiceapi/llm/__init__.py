"""Language models, and the choice of the one that speaks in a conversation.

Other packages use `selection.choose`, which returns an `engine.actions.LanguageModel`, and `configuration`, the stored
settings that it reads.
"""
