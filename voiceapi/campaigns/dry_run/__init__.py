"""Trying out what would happen, with nobody called and nothing stored."""
