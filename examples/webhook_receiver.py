"""Receives webhooks of voiceapi and verifies their signatures. Needs only Python's standard library.

    WEBHOOK_SECRET=whsec_... python3 examples/webhook_receiver.py

The secret comes from the answer of POST /organizations/webhook-secrets/rotate. While two secrets are in use, requests
are signed with both, and the receiver needs only one of them. PORT is 9000 unless set.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOLERANCE_SECONDS = 300
MAX_BYTES = 1024 * 1024


def is_genuine(secret: str, signature: str, body: bytes, now: float) -> bool:
    """True if a Voiceapi-Signature was made with this secret for this body, at most 5 minutes before or after `now`.

    Its format is `t=<Unix time>,v1=<hexadecimal HMAC-SHA256>`, with one v1 for each secret in use.
    """
    parts = [part.strip().partition("=") for part in signature.split(",")]
    times = [value for name, _, value in parts if name == "t"]
    if len(times) != 1 or not (times[0].isascii() and times[0].isdigit()) or len(times[0]) > 12:
        return False
    expected = hmac.new(secret.encode(), times[0].encode() + b"." + body, hashlib.sha256).hexdigest()
    # Compare all of them, each in constant time, so that the duration reveals nothing.
    matches = [hmac.compare_digest(value.encode(), expected.encode()) for name, _, value in parts if name == "v1"]
    return any(matches) and abs(now - int(times[0])) <= TOLERANCE_SECONDS


def make_server(secret: str, take: Callable[[str, Any], None], port: int = 0) -> ThreadingHTTPServer:
    """A server on 127.0.0.1 that calls `take` once for each delivery, with its id and its payload (None if empty).

    A delivery is sent again, with the same id, when its answer was lost. A real receiver stores the ids of the
    deliveries it has processed, so that they survive a restart.
    """
    seen: set[str] = set()
    lock = threading.Lock()

    class Receiver(BaseHTTPRequestHandler):
        timeout = 10  # seconds to wait for the sender

        def receive(self) -> None:
            length = self.headers.get("Content-Length") or "0"
            if not length.isdecimal() or len(length) > 9 or int(length) > MAX_BYTES:
                return self.answer(413)
            body = self.rfile.read(int(length))
            if not is_genuine(secret, self.headers.get("Voiceapi-Signature") or "", body, time.time()):
                return self.answer(401)
            delivery = self.headers.get("X-Dograh-Delivery-Id") or ""
            with lock:
                if delivery not in seen:
                    take(delivery, json.loads(body) if body else None)
                    seen.add(delivery)
            return self.answer(200)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = receive  # noqa: N815 - names that http.server looks for

        def answer(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    return ThreadingHTTPServer(("127.0.0.1", port), Receiver)


if __name__ == "__main__":
    shared = os.environ.get("WEBHOOK_SECRET") or sys.exit("Set WEBHOOK_SECRET: without one anybody could sign.")
    with make_server(
        shared,
        lambda delivery, payload: print(delivery, json.dumps(payload), flush=True),  # noqa: T201
        int(os.environ.get("PORT", "9000")),
    ) as server:
        server.serve_forever()
