"""Conversations: loading, carrying on and storing one, whoever speaks.

Other rooms use `Conversation`, `EffectHandler`, `text_chats` and `local`.
"""
