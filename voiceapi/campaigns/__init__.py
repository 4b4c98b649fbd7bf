"""Campaigns: contact lists, and calling everybody on them.

Other rooms use `campaigns`, `lifecycle`, `contacts`, `do_not_call`, the `dialer` and the `dry_run`.
"""
