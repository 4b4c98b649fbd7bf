"""Carriers: a class for each, over what they share."""
