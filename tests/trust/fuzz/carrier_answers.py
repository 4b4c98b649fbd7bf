"""Whatever a carrier's REST API answers: asking it gives a result, or one of the two errors that there are for it."""

from __future__ import annotations

import json
from typing import Any

from lines import LINES

from voiceapi.http_client import Reply
from voiceapi.telephony.carriers.base import Account, InboundRoute, OutboundCall
from voiceapi.telephony.carriers.events import FINAL, PROGRESS
from voiceapi.telephony.carriers.rest import CarrierRefused, CarrierSilent
from voiceapi.telephony.carriers.vonage import Vonage
from voiceapi.telephony.carriers.webhook import CallbackURLs
from voiceapi.telephony.connect import CARRIERS

from .draws import Draws

NUMBER = "+12025550199"


class QuickVonage(Vonage):
    """Vonage without the signature of each request, which takes longer than all else."""

    def _token(self) -> str:
        return "token"


CLASSES = {**CARRIERS, "vonage": QuickVonage}
REAL = [line for line in LINES if line.name in CLASSES]
STATUSES = (200, 201, 204, 302, 400, 401, 404, 429, 500, 503)
CALL = OutboundCall(CallbackURLs("https://voice.example.org/calls", "token"), "+12025550123", NUMBER, 60, 1200, {})
SEEDS = tuple(bytes([index, kind]) for index in range(len(REAL)) for kind in range(4))


def check(data: bytes) -> None:
    draws = Draws(data)
    line = draws.pick(REAL)
    pages = list(line.directory("https://voice.example.org/in", "https://voice.example.org/s", "POST").values())
    pages += [line.placed[1], line.looked_up, line.numbers, line.refused[1]]

    def send(*_: Any, **__: Any) -> Reply:
        status = draws.pick(STATUSES)
        page = draws.changed(draws.pick(pages))
        body = draws.bytes() if draws.number(7) == 7 else json.dumps(page).encode()
        return Reply(status, {}, body, 0.0)

    carrier = CLASSES[line.name](Account(line.credentials, send, clock=lambda: 1_790_000_000.0))
    for _ in range(4):
        try:
            match draws.number(4):
                case 0:
                    name = carrier.place_call(CALL)
                    assert name is None or isinstance(name, str)
                case 1:
                    status = carrier.look_up("call-1")
                    assert status.status is None or status.status in (*PROGRESS, *FINAL)
                case 2:
                    assert all(isinstance(sentence, str) for sentence in carrier.check([NUMBER]))
                case 3:
                    route = carrier.inbound_route(NUMBER)
                    assert route is None or isinstance(route, InboundRoute)
                case _:
                    carrier.hang_up("call-1")
        except (CarrierRefused, CarrierSilent) as error:
            assert str(error)
