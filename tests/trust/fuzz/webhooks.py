"""Whatever a carrier's webhook holds is read without an error into what can be stored; nobody forges a signature."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any, cast, get_args
from urllib.parse import quote, urlencode

from lines import LINES
from lines.line import TYPES, samples

from voiceapi.telephony.carriers.base import Account, Carrier
from voiceapi.telephony.carriers.events import FINAL, KEYS, PROGRESS, After, Keys, Speech
from voiceapi.telephony.carriers.simulator import Simulator
from voiceapi.telephony.carriers.webhook import Webhook, clean
from voiceapi.telephony.connect import CARRIERS

from .draws import Draws

CLOCK = 1_790_000_000.0
URL = "https://voice.example.org/api/v1/telephony/calls/token/turns/1"
KINDS = ("turns", "statuses", "inbound", "legs")
SAMPLES = [
    (index, sample)
    for index, line in enumerate(LINES)
    for kind in KINDS
    for sample in samples(line.name, kind).values()
]
# What stands in the headers that prove who sent a webhook.
PROOFS = ("", "t=1790000000,v1=00", "Bearer a.b.c", "Bearer eyJhbGciOiJub25lIn0.e30.", "AAAA", "t=,v1=", "ü", "a,b,")
PROVING = sorted(
    {
        *("authorization", "x-twilio-signature", "x-signalwire-signature", "x-cx-apikey", "jambonz-signature"),
        *("telnyx-signature-ed25519", "telnyx-timestamp", "x-simulator-signature"),
        *(f"x-{name}-signature-{part}" for name in ("plivo", "vobiz") for part in ("v2", "v3", "ma-v3", "v3-nonce")),
    }
)
SEEDS = tuple(bytes([index % 256, index // 256]) for index in range(0, len(SAMPLES), 4))


def carriers() -> list[Carrier]:
    def send(*_: Any, **__: Any) -> Any:
        raise AssertionError("Reading a webhook sends a request.")

    return [
        CARRIERS[line.name](Account(line.credentials, send, clock=lambda: CLOCK))
        if line.name in CARRIERS
        else Simulator(cast(Any, None), b"k" * 32, cast(Any, None))
        for line in LINES
    ]


ALL = carriers()


def check(data: bytes) -> None:
    draws = Draws(data)
    index, sample = draws.pick(SAMPLES)
    carrier = ALL[index]
    webhook = drawn(draws, sample)
    # Cloudonix proves itself by its key alone, which nobody draws by chance.
    assert carrier.verify(webhook) is not True, "a signature that nobody made is right"
    assert isinstance(carrier.is_of_other_account(webhook), bool)
    leg = carrier.read_leg(webhook)
    storable(*leg.ids, *leg.parent_ids, leg.conversation)
    assert all(leg.ids + leg.parent_ids)
    for after in get_args(After):
        given = carrier.read_turn(webhook, after)
        if given is not None:
            storable(*(getattr(given, field.name) for field in fields(given)))
        assert not isinstance(given, Speech) or given.text.strip()
        assert not isinstance(given, Keys) or (given.digits and set(given.digits) <= set(KEYS))
    status = carrier.read_status(webhook)
    assert status.status is None or status.status in (*PROGRESS, *FINAL)
    storable(*(getattr(status, field.name) for field in fields(status) if field.name != "cause"))
    if status.cause is not None:
        record = status.cause.record(status.status)
        storable(*(float(value) if isinstance(value, int) else value for value in record.values()))
    call = carrier.read_inbound(webhook)
    if call is not None:
        storable(call.call_id, call.from_number, call.to)
        assert call.call_id
        assert call.to


def drawn(draws: Draws, sample: Any) -> Webhook:
    """A webhook with changed fields, or of any bytes."""
    encoding, values = sample["encoding"], draws.changed(sample["fields"])
    match draws.number(7):
        case 0:
            encoding = "json" if encoding == "form" else "form"
        case 1:
            encoding = "any"
    if encoding == "json":
        body = json.dumps(values, ensure_ascii=bool(draws.number(1))).encode("utf-8", "surrogatepass")
    elif encoding == "form" and isinstance(values, dict):
        body = urlencode(values, errors="surrogatepass").encode()
    else:
        body = draws.bytes(4096)
    url, method = URL, draws.pick(("POST", "GET", "PUT"))
    if draws.number(7) == 7:
        url += "?" + (quote(draws.bytes(), safe="=&%+;[]:/?") if draws.number(1) else body.decode("latin-1"))
        body = b"" if draws.number(1) else body
    kind = draws.pick((TYPES.get(encoding, ""), TYPES["form"], TYPES["json"], "application/json; charset=x", ""))
    headers = {name: draws.pick(PROOFS) for name in PROVING if draws.number(1)}
    return Webhook(method, url, {**headers, "content-type": kind}, body)


def storable(*values: Any) -> None:
    """Text without characters that a document or the database refuses, numbers that JSON has, or nothing."""
    for value in values:
        if isinstance(value, str):
            assert value == clean(value)
            value.encode()
        elif isinstance(value, float):
            assert math.isfinite(value)
            assert value >= 0
        else:
            assert value is None or isinstance(value, bool)
