"""Runs: their life cycle, filters of lists, reports and files.

Other rooms use `runs`, `lifecycle`, `filters`, `reports` and `files`.
"""
