"""Campaigns: contact lists, and the calls to their contacts.

Other rooms use `campaigns`, `lifecycle`, `contacts`, `do_not_call`, the `dialer` and the `dry_run`.
"""
