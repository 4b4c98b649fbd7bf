"""A voiceapi that believes in what stopped processes were doing for seconds, not for minutes.

python hurried.py dial
gunicorn 'hurried:create_app()'
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import voiceapi
from voiceapi import jobs
from voiceapi.__main__ import main
from voiceapi.campaigns import attempts
from voiceapi.campaigns.dialer import list_import
from voiceapi.postcall import delivery, processing
from voiceapi.runs import lifecycle


def hurry() -> None:
    jobs.SWEEP_SECONDS = 3
    attempts.LEASE = timedelta(seconds=10)
    list_import.LEASE = delivery.LEASE = processing.LEASE = timedelta(seconds=5)
    # A call without news is asked about soon, and has its deadline sooner than after the longest call. Still that is
    # later than a database comes back.
    lifecycle.CHECK_SECONDS, lifecycle.UNKNOWN_SECONDS = 8, 30
    lifecycle.NO_NEWS_SECONDS = 45


def create_app() -> Any:
    hurry()
    return voiceapi.create_app()


if __name__ == "__main__":
    hurry()
    main()
