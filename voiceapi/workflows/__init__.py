"""Workflows: their versions, templates and node types.

Other rooms use `versions` (create, save, publish, load_graph), `templates` and `node_types`.
"""
