"""Language models, and the choice of the one that speaks in a conversation."""
