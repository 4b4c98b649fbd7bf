"""Agents with what they refer to, moved between services: read from a file or a running service, stored, exported.

Others may use bundle.read, source.read, importing.store and exporting.export.
"""
