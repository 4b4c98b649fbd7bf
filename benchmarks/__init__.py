"""Measures how fast the service answers, compared with a bare Flask route on the same machine at the same time."""
