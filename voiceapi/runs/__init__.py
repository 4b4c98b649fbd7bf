"""Runs: the life of one, lists, filters, reports and files.

Other rooms use `runs`, `lifecycle`, `filters`, `reports` and `files`.
"""
