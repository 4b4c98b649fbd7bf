"""Conversations as pure functions: definitions, their validation, templates and `step`. No I/O, no clock."""
