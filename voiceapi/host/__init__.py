"""Python for the app that voiceapi is part of: calls, runs, chats and agents without HTTP."""
