"""Carriers: a class and a module for each. Those compatible with Twilio share a base class, those with Plivo another.

Other rooms use `base` (what a carrier is), `events` (what its webhooks report), `webhook` (a request and the callback
URLs), and the exceptions of `rest`.
"""
