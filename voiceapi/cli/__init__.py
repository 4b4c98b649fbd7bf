"""The commands: `voiceapi`, and `flask voiceapi` in a host app."""
