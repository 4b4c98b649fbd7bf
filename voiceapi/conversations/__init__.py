"""Conversations: loading, carrying on and storing one, for calls, text chats and the terminal.

Other rooms use `Conversation`, `RequestHandler`, `text_chats` and `local`.
"""
