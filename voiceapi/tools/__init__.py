"""Carrying out a tool: what the model is offered, what is asked of the world, and what the model is told."""
