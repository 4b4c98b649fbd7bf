"""What an agent can do besides talking: the tools of its nodes, the lookup in documents, and the pre-call fetch.

Other rooms use `catalog` (functions_for, run), `stored`, `knowledge.documents` and `http_api` (the pre-call fetch).
"""
