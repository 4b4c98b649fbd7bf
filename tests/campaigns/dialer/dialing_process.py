"""A process that dials one campaign through a carrier elsewhere, and may kill itself at a failpoint.

Arguments: the database, the carrier's address, the campaign's id, and a failpoint as `name:n` for its n-th passing, or
`none`. Once the campaign is completed it ends with 0, and tells how many calls it
placed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable
from typing import Any

from voiceapi import create_app, opening
from voiceapi.calls import webhooks
from voiceapi.campaigns import attempts
from voiceapi.campaigns.dialer.worker import Dialer
from voiceapi.postcall import outbox
from voiceapi.service import Service
from voiceapi.store.campaigns import Campaign
from voiceapi.store.locks import UNREPEATABLE
from voiceapi.telephony import connect
from voiceapi.telephony.carriers.base import OutboundCall
from voiceapi.telephony.carriers.simulator import Simulator
from voiceapi.telephony.carriers.webhook import Webhook

passed: Counter[str] = Counter()
failpoint, _, nth = sys.argv[4].partition(":")


def reach(name: str) -> None:
    """Die without a word when this is the failpoint's turn."""
    passed[name] += 1
    if name == failpoint and passed[name] == int(nth):
        os.kill(os.getpid(), signal.SIGKILL)


def ask(path: str, body: Any = None) -> Any:
    request = urllib.request.Request(sys.argv[2] + path, None if body is None else json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


class Strict:
    """Speaks the simulator's dialect with a carrier that writes down every call it is asked for."""

    is_local = wants_relay = False

    def __init__(self, dialect: Simulator) -> None:
        self.read_turn, self.read_status, self.read_leg = dialect.read_turn, dialect.read_status, dialect.read_leg
        self.render, self.acknowledge = dialect.render, dialect.acknowledge
        self.is_of_other_account, self.names_new_calls = dialect.is_of_other_account, dialect.names_new_calls
        self.retries = dialect.retries

    def verify(self, webhook: Webhook) -> bool:
        return True

    def place_call(self, call: OutboundCall) -> str:
        reach("dial")
        call_id: str = ask("/call", {"token": call.urls.token, "to": call.to})["id"]
        reach("asked")
        return call_id


def around(owner: Any, name: str, before: str | None, after: str | None) -> None:
    inner: Callable[..., Any] = getattr(owner, name)

    def outer(*args: Any, **kwargs: Any) -> Any:
        if before:
            reach(before)
        result = inner(*args, **kwargs)
        if after:
            reach(after)
        return result

    setattr(owner, name, outer)


def deliver(service: Service, done: threading.Event) -> None:
    """Hand the carrier's webhooks in, again and again until each was taken."""
    while not done.is_set():
        for event in ask("/events"):
            body = json.dumps(event["fields"]).encode()
            webhook = Webhook("POST", "http://localhost/", {"content-type": "application/json"}, body)
            with service.store.session(UNREPEATABLE):
                if event["kind"] == "turn":
                    webhooks.take_turn(service, event["token"], event["turn"], "turn", webhook)
                    reach("answered")
                else:
                    webhooks.record_status(service, event["token"], webhook)
                    reach("reported")
            ask("/done", event["id"])
        done.wait(0.01)


def main() -> int:
    simulated = connect.connect
    connect.connect = lambda *args, **given: Strict(simulated(*args, **given))  # type: ignore[arg-type,assignment,return-value]
    around(attempts, "_claim", None, "claiming")
    around(webhooks, "match_leg", None, "identified")
    around(Dialer, "_place", "claimed", "dialed")
    around(attempts, "apply_run_outcome", "ending", "ended in the transaction")
    opening.LISTENERS = (outbox.on_run_completed, attempts.apply_run_outcome)
    app = create_app({"VOICEAPI_DATABASE": sys.argv[1], "VOICEAPI_CONCURRENT_CALLS": 12})
    service: Service = app.extensions["voiceapi"]
    done = threading.Event()
    service.workers.start()
    threading.Thread(target=deliver, args=(service, done), daemon=True).start()
    with service.store.session():
        while Campaign.get_by_id(int(sys.argv[3])).state != "completed":
            done.wait(0.05)
    done.set()
    service.close()
    sys.stdout.write(str(passed["claimed"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
