"""The conversation, pure: definitions, their check, the template language and the engine. No I/O, no clock."""
