"""A voiceapi that places one call, and can be killed at a chosen point of it.

    python mortal.py DATABASE WORLD [POINT]

A point is the moment after a transaction, named after the function that it was part of, or after a request has left
and was answered: `calls.hear:2` is the second time. They are counted from the trigger on. Without POINT it lives until
the call and everything that follows it is done, and then prints how often it passed each point.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from voiceapi import create_app, jobs
from voiceapi.http_client import HTTPClient
from voiceapi.postcall import delivery, processing
from voiceapi.store.database import Store
from voiceapi.store.postcall import Delivery, FollowUp
from voiceapi.store.runs import Run
from voiceapi.telephony import phones

KEY = "test-key-0123456789"
LONGEST = 120.0
# How long a process is believed to be at work that it was killed in: short, for who waits for the test.
LEASE = timedelta(seconds=1)


class Points:
    """How often each point was passed; the process doesn't outlive the last one."""

    def __init__(self, last: str | None) -> None:
        self._last = last
        self._lock = threading.Lock()
        self.passed: Counter[str] = Counter()

    def pass_(self, name: str) -> None:
        with self._lock:
            self.passed[name] += 1
            if f"{name}:{self.passed[name]}" == self._last:
                os.kill(os.getpid(), signal.SIGKILL)


def watch(points: Points) -> None:
    """Make every transaction and every request that leaves a point."""
    writing, send, stream = Store.writing, HTTPClient.send, HTTPClient.stream

    @contextmanager
    def watched_writing(store: Store, *locks: Any) -> Iterator[None]:
        inner = store.database.in_transaction()
        with writing(store, *locks):
            yield
        if not inner:
            points.pass_(writer())

    def watched_send(self: HTTPClient, method: str, url: str, **options: Any) -> Any:
        reply = send(self, method, url, **options)
        points.pass_(f"{method} /{url.split('/', 3)[3]}")
        return reply

    @contextmanager
    def watched_stream(self: HTTPClient, method: str, url: str, **options: Any) -> Iterator[Any]:
        with stream(self, method, url, **options) as reply:
            yield reply
        points.pass_(f"{method} /{url.split('/', 3)[3]}")

    Store.writing, HTTPClient.send = watched_writing, watched_send  # type: ignore[assignment, method-assign]
    HTTPClient.stream = watched_stream  # type: ignore[assignment, method-assign]


def writer() -> str:
    """The function of voiceapi's that the transaction which ends now is part of."""
    frame = sys._getframe(1)
    while not frame.f_globals["__name__"].startswith("voiceapi.") or frame.f_globals["__name__"] == Store.__module__:
        assert frame.f_back is not None
        frame = frame.f_back
    return f"{frame.f_globals['__name__'].removeprefix('voiceapi.')}.{frame.f_code.co_name}"


def is_done() -> bool:
    run = Run.select().first()
    waiting = Delivery.select().where(Delivery.state == "pending").count() + FollowUp.select().count()
    return run is not None and run.is_completed and not waiting


def main(database: str, world: str, last: str | None) -> None:
    settings = {"DATABASE": database, "API_KEY": KEY, "ALLOW_PRIVATE_URLS": "true", "LLM_URL": f"{world}/v1"}
    phones.LEASE, phones.RENEW_SECONDS, jobs.RESUME_SECONDS = LEASE, 0.3, 0.3
    app = create_app({f"VOICEAPI_{name}": value for name, value in settings.items()})
    service = app.extensions["voiceapi"]
    points = Points(last)
    watch(points)
    delivery.LEASE = processing.LEASE = LEASE
    with service.store.session():
        is_new = Run.select().count() == 0
    if is_new:
        body = {"phone_number": "+12025550123", "initial_context": {"simulated_callee": ["Book me a table."]}}
        app.test_client().post("/api/v1/public/agent/mortal", json=body, headers={"X-API-Key": KEY})
    service.workers.start()
    deadline = time.monotonic() + LONGEST
    with service.store.session():
        while not is_done():
            if time.monotonic() > deadline:
                sys.exit(f"not done within {LONGEST:g} s; passed: {points.passed}")
            time.sleep(0.02)
    service.close()
    sys.stdout.write(json.dumps(points.passed))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
