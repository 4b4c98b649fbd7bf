"""A voiceapi whose leases, intervals and deadlines are short, for the test that kills it again and again.

python impatient.py serve --port N
"""

from __future__ import annotations

from datetime import timedelta

from voiceapi import jobs
from voiceapi.__main__ import main
from voiceapi.calls import idempotency
from voiceapi.campaigns import attempts
from voiceapi.campaigns.dialer import list_import
from voiceapi.postcall import delivery, processing
from voiceapi.runs import lifecycle
from voiceapi.telephony import phones


def hurry() -> None:
    """Shorten them all."""
    phones.LEASE, phones.RENEW_SECONDS = timedelta(seconds=1.5), 0.4
    jobs.RESUME_SECONDS, jobs.SWEEP_SECONDS = 0.4, 0.5
    attempts.LEASE = list_import.LEASE = delivery.LEASE = processing.LEASE = timedelta(seconds=2)
    idempotency.PLACING = timedelta(seconds=2)
    delivery.FIRST_WAIT_SECONDS, delivery.RENEW_SECONDS = 0.5, 0.5
    lifecycle.CHECK_SECONDS, lifecycle.UNKNOWN_SECONDS = 2, 20
    # The deadline of a call without news.
    lifecycle.NO_NEWS_SECONDS = 20


if __name__ == "__main__":
    hurry()
    main()
