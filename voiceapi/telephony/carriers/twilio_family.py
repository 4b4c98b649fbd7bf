"""The carriers that speak as Twilio does, and what each of them does in its own way: one row a carrier."""

from __future__ import annotations

import re
from urllib.parse import quote

from .base import Account, OutboundCall
from .rest import CarrierRefused, basic, bearer
from .signatures import ed25519, over_body, over_form, same
from .twilio_like import Dialect, Fields
from .twiml import Style
from .webhook import Webhook

EVENTS = ("initiated", "ringing", "answered", "completed")
# The action is asked also when nobody spoke; `auto` ends listening as the carrier sees fit.
LISTENING = {"speechTimeout": "auto", "actionOnEmptyResult": "true"}
_LABEL = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


def _part(text: str) -> str:
    """A part of a path, whatever it holds."""
    return quote(text, safe="")


# -- Twilio


def _twilio_path(account: Account, rest: str) -> str:
    return f"/2010-04-01/Accounts/{_part(account.text('account_sid'))}/{rest}.json"


def _twilio_signed(account: Account, webhook: Webhook) -> bool:
    given = webhook.headers.get("x-twilio-signature", "")
    return over_form(webhook, account.text("auth_token"), given, unique=True)


def _detection(account: Account, call: OutboundCall, yes: str | bool) -> Fields:
    """Of machines: in the background, or the callee would hear nothing for the seconds that it takes."""
    if not account.detects_machines:
        return []
    return [
        ("MachineDetection", "Enable"),
        ("AsyncAmd", yes),
        ("AsyncAmdStatusCallback", call.links.machine),
        ("AsyncAmdStatusCallbackMethod", "POST"),
    ]


def _place(account: Account, call: OutboundCall) -> Fields:
    """A new call, as Twilio and SignalWire take it."""
    return [
        ("To", call.to),
        ("From", call.from_number or ""),
        ("Url", call.links.next),
        ("Method", "POST"),
        ("StatusCallback", call.links.status),
        ("StatusCallbackMethod", "POST"),
        *(("StatusCallbackEvent", event) for event in EVENTS),
        ("Timeout", call.ring_timeout),
        ("TimeLimit", call.time_limit),
        *_detection(account, call, "true"),
    ]


TWILIO = Dialect(
    name="Twilio",
    base=lambda account: "https://api.twilio.com",
    headers=lambda account: basic(account.text("account_sid"), account.text("auth_token")),
    verify=_twilio_signed,
    style=Style(LISTENING),
    calls=lambda account: _twilio_path(account, "Calls"),
    call=lambda account, call_id: _twilio_path(account, f"Calls/{_part(call_id)}"),
    place=_place,
    numbers=lambda account: _twilio_path(account, "IncomingPhoneNumbers"),
    listed=("PhoneNumber", "incoming_phone_numbers"),
    account="AccountSid",
)


# -- SignalWire


def _signalwire_base(account: Account) -> str:
    space = account.text("space").strip().lower().removeprefix("https://").rstrip("/")
    if not _LABEL.fullmatch(space):
        raise CarrierRefused("The space is the first part of your SignalWire address, such as example.")
    return f"https://{space if '.' in space else f'{space}.signalwire.com'}"


def _signalwire_path(account: Account, rest: str) -> str:
    return f"/api/laml/2010-04-01/Accounts/{_part(account.text('project_id'))}/{rest}"


def _signalwire_signed(account: Account, webhook: Webhook) -> bool:
    """A form is signed as Twilio does; JSON is, too, when its digest is in the query, and else with its body."""
    given = webhook.headers.get("x-signalwire-signature") or webhook.headers.get("x-twilio-signature", "")
    key = account.text("signing_key")
    if webhook.body and not webhook.form and "bodySHA256" not in dict(webhook.query):
        return over_body(webhook, key, given)
    return over_form(webhook, key, given, unique=False)


SIGNALWIRE = Dialect(
    name="SignalWire",
    base=_signalwire_base,
    headers=lambda account: basic(account.text("project_id"), account.text("api_token")),
    verify=_signalwire_signed,
    style=Style(LISTENING),
    calls=lambda account: _signalwire_path(account, "Calls"),
    call=lambda account, call_id: _signalwire_path(account, f"Calls/{_part(call_id)}"),
    place=_place,
    numbers=lambda account: _signalwire_path(account, "IncomingPhoneNumbers"),
    listed=("PhoneNumber", "incoming_phone_numbers"),
    account="AccountSid",
)


# -- Telnyx


def _telnyx_calls(account: Account) -> str:
    application = account.text("connection_id")
    if not application:
        raise CarrierRefused("Telnyx places calls through a TeXML application: enter its ID as the connection ID.")
    return f"/texml/calls/{_part(application)}"


def _telnyx_place(account: Account, call: OutboundCall) -> Fields:
    return [
        ("To", call.to),
        ("From", call.from_number),
        ("Url", call.links.next),
        ("UrlMethod", "POST"),
        ("StatusCallback", call.links.status),
        ("StatusCallbackMethod", "POST"),
        ("StatusCallbackEvent", " ".join(EVENTS)),
        ("Timeout", call.ring_timeout),
        ("TimeLimit", call.time_limit),
        *_detection(account, call, True),
    ]


def _telnyx_signed(account: Account, webhook: Webhook) -> bool | None:
    key = account.text("webhook_public_key")
    if not key:
        return None
    given, timestamp = (webhook.headers.get(f"telnyx-{name}", "") for name in ("signature-ed25519", "timestamp"))
    return ed25519(webhook, key, given, timestamp, account.clock())


TELNYX = Dialect(
    name="Telnyx",
    base=lambda account: "https://api.telnyx.com/v2",
    headers=lambda account: bearer(account.text("api_key")),
    verify=_telnyx_signed,
    # It knows neither `auto` nor an action without words; the redirect after listening takes the silence.
    style=Style({"speechTimeout": "2"}, voice="alice", names_language=False),
    calls=_telnyx_calls,
    call=lambda account, call_id: f"/texml/calls/{_part(call_id)}/update",
    place=_telnyx_place,
    look_up=False,
    encodes_json=True,
    numbers=lambda account: "/phone_numbers",
    listed=("filter[phone_number]", "data"),
    account="ConnectionId",
)


# -- Cloudonix


def _cloudonix_place(call: OutboundCall) -> Fields:
    return [
        ("destination", call.to.removeprefix("+")),
        ("caller-id", (call.from_number or "").removeprefix("+")),
        ("url", call.links.next),
        ("callback", call.links.status),
        ("timeout", call.ring_timeout),
        ("timeLimit", call.time_limit),
    ]


def _cloudonix_signed(account: Account, webhook: Webhook) -> bool | None:
    """Cloudonix signs nothing; at most it sends the domain's own key along."""
    given = webhook.headers.get("x-cx-apikey")
    return None if given is None else same(given, account.text("bearer_token"))


def _cloudonix_domain(account: Account) -> str:
    return _part(account.text("domain_id"))


CLOUDONIX = Dialect(
    name="Cloudonix",
    base=lambda account: "https://api.cloudonix.io",
    headers=lambda account: bearer(account.text("bearer_token")),
    verify=_cloudonix_signed,
    style=Style(LISTENING),
    calls=lambda account: f"/calls/{_cloudonix_domain(account)}/application",
    call=lambda account, call_id: f"/calls/{_cloudonix_domain(account)}/sessions/{_part(call_id)}",
    place=lambda account, call: _cloudonix_place(call),
    end=("DELETE", ()),
    lead=lambda url: ("PATCH", (("url", url),)),
    encodes_json=True,
    numbers=lambda account: f"/domains/{_cloudonix_domain(account)}",
    listed=None,
    names=("Session", "token", "CallSid"),
)
