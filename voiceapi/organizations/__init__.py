"""Organizations: their preferences, API keys, and credentials for other services.

Other rooms use `preferences`, `api_keys` and `credentials`.
"""
