"""Trying agents out without a call: conversation cases, their coverage, replay of past runs, practice callers.

Others use `case_file`, `subject`, `conduct`, `coverage` and `callers`.
"""
