"""Marshmallow schemas: they read requests and document answers, one module per resource."""
