"""Telephony: accounts at carriers, their phone numbers, and the carriers themselves.

Other rooms use `connect` (the carrier of a configuration or a run), `configurations`, `selection` (what an outbound
call goes through), `phone_numbers`, `numbers`, `providers`, and the types of `carriers`.
"""
