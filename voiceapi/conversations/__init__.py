"""Conversations: loading, carrying on and storing one, for calls, text chats and the terminal.

Other rooms use `Conversation`, `EffectHandler`, `text_chats` and `local`.
"""
