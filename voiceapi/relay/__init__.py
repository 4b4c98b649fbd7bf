"""Text relays: websockets on which a carrier sends what the caller says, and speaks the text that it is sent."""
