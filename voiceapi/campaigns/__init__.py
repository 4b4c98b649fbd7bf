"""Campaigns: contact lists and their course.

Other rooms use `campaigns`, `lifecycle`, `contacts`, `do_not_call`, the `dialer` and the `dry_run`.
"""
