"""Telnyx: our requests against those of its own SDK, whose models read what our test server answers; its two endpoints.

The SDK takes three seconds to import, so its tests are among the long ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Required, get_args, get_origin, get_type_hints
from urllib.parse import unquote, urlsplit

import pytest
from lines.twilio_compatible import TELNYX

from voiceapi.http_client import Reply
from voiceapi.telephony.carriers.base import Account, OutboundCall
from voiceapi.telephony.carriers.rest import CarrierRefused
from voiceapi.telephony.carriers.telnyx import ADVICE, Telnyx
from voiceapi.telephony.carriers.webhook import CallbackURLs

BASE = "https://voice.example.org/api/v1/telephony/calls/tok"
CALL = OutboundCall(CallbackURLs(BASE[:-4], "tok"), "+12025550123", "+12025550199", 60, 1200, {})
ACCOUNT, APPLICATION = TELNYX.credentials["account_sid"], TELNYX.credentials["connection_id"]

# A request: its method, its path without escapes, and its parsed body.
Asked = tuple[str, str, Any]


def asked_by(method: str, url: str, body: Any) -> Asked:
    return method, unquote(urlsplit(url).path), body


def ours(ask: Callable[[Telnyx], Any], answer: Any = None, **credentials: Any) -> list[Asked]:
    """What our class requests, with the credentials of the contract test or others."""
    found = []

    def send(method: str, url: str, **options: Any) -> Reply:
        found.append(asked_by(method, url, options["json"]))
        return Reply(200, {}, json.dumps(answer or TELNYX.placed[1]).encode(), 0.0)

    ask(Telnyx(Account({**TELNYX.credentials, **credentials}, send)))
    return found


@pytest.fixture
def theirs() -> Callable[..., tuple[Asked, Any]]:
    """What the SDK requests, and what it reads in our test server's answer."""
    telnyx = pytest.importorskip("telnyx", reason="the carrier's SDK, of the extra `test`, is not installed")
    import httpx

    def request(ask: Callable[[Any], Any], answer: Any) -> tuple[Asked, Any]:
        found = []

        def handle(request: httpx.Request) -> httpx.Response:
            assert request.headers["Authorization"] == "Bearer KEY01"
            found.append(asked_by(request.method, str(request.url), json.loads(request.content or "null")))
            return httpx.Response(200, json=answer)

        client = telnyx.Telnyx(
            api_key="KEY01",
            http_client=httpx.Client(transport=httpx.MockTransport(handle)),
            _strict_response_validation=True,
        )
        reply = ask(client)
        (only,) = found
        return only, reply

    return request


def on_the_wire(values: dict[str, Any]) -> dict[str, Any]:
    """The body of a new call, by the names and types of the SDK's model; its client sends a body as it is given."""
    from pydantic import TypeAdapter
    from telnyx.types.texml.accounts.call_calls_params import BodyWithURL

    hints = get_type_hints(BodyWithURL, include_extras=True)
    body = {}
    for name, value in values.items():
        hint = hints[name]
        kind, info = get_args(get_args(hint)[0] if get_origin(hint) is Required else hint)
        body[info.alias] = TypeAdapter(kind).validate_python(value, strict=True)
    return body


@pytest.mark.long
@pytest.mark.parametrize("detects", [True, False])
def test_a_new_call(theirs: Callable[..., tuple[Asked, Any]], detects: bool) -> None:
    detection = {
        "machine_detection": "Enable",
        "async_amd": True,
        "async_amd_status_callback": f"{BASE}/machine",
        "async_amd_status_callback_method": "POST",
    }
    values = {
        "application_sid": APPLICATION,
        "to": "+12025550123",
        "from_": "+12025550199",
        "url": f"{BASE}/turns/0",
        "url_method": "POST",
        "status_callback": f"{BASE}/status",
        "status_callback_method": "POST",
        "status_callback_event": "initiated ringing answered completed",
        "timeout": 60,
        "time_limit": 1200,
        **(detection if detects else {}),
    }
    body = on_the_wire(values)
    request, reply = theirs(lambda client: client.texml.accounts.calls.calls(ACCOUNT, body=body), TELNYX.placed[1])
    assert ours(lambda carrier: carrier.place_call(CALL), amd_enabled=detects) == [request]
    assert (reply.from_, reply.to, reply.status) == ("+12025550199", "+12025550123", "queued")


@pytest.mark.long
def test_a_call_is_ended(theirs: Callable[..., tuple[Asked, Any]]) -> None:
    request, _ = theirs(
        lambda client: client.texml.accounts.calls.update(TELNYX.call_id, account_sid=ACCOUNT, status="completed"), {}
    )
    assert ours(lambda carrier: carrier.hang_up(TELNYX.call_id)) == [request]


@pytest.mark.long
def test_a_call_is_looked_up(theirs: Callable[..., tuple[Asked, Any]]) -> None:
    request, reply = theirs(
        lambda client: client.texml.accounts.calls.retrieve(TELNYX.call_id, account_sid=ACCOUNT), TELNYX.looked_up
    )
    assert ours(lambda carrier: carrier.look_up(TELNYX.call_id)) == [request]
    # Every member of the answer is one that the model knows.
    assert reply.model_extra in (None, {})
    assert (reply.sid, reply.status, reply.duration) == (TELNYX.call_id, "completed", "42")


@pytest.mark.long
def test_the_account_is_checked(theirs: Callable[..., tuple[Asked, Any]]) -> None:
    request, _ = theirs(lambda client: client.texml.accounts.calls.retrieve_calls(ACCOUNT, page_size=1), {"calls": []})
    assert ours(lambda carrier: carrier.check([]))[1:] == [request]


@pytest.mark.long
def test_a_new_call_without_the_account(theirs: Callable[..., tuple[Asked, Any]]) -> None:
    """The SDK has fewer parameters there than Telnyx takes: ours has all of those, and the same path."""
    answer = {"call_sid": "v3:1", "from": "+12025550199", "to": "+12025550123", "status": "queued"}
    (method, path, body), _ = theirs(
        lambda client: client.texml.calls.create(
            APPLICATION, from_="+12025550199", to="+12025550123", url=f"{BASE}/turns/0"
        ),
        answer,
    )
    ((our_method, our_path, our_body),) = ours(lambda carrier: carrier.place_call(CALL), account_sid="")
    assert (our_method, our_path) == (method, path)
    assert {name: our_body[name] for name in body} == body


def test_without_the_account_calls_go_through_the_application() -> None:
    path = f"/v2/texml/calls/{APPLICATION}"
    for unset in (None, "", " "):
        ((method, asked, body),) = ours(lambda carrier: carrier.place_call(CALL), TELNYX.placed[1], account_sid=unset)
        assert (method, asked, "ApplicationSid" in body) == ("POST", path, False)
        hung_up = ours(lambda carrier: carrier.hang_up("v3:1"), account_sid=unset)
        assert hung_up == [("POST", "/v2/texml/calls/v3:1/update", {"Status": "completed"})]
        with pytest.raises(CarrierRefused, match="Without account_sid, Telnyx can't be asked"):
            ours(lambda carrier: carrier.look_up("v3:1"), account_sid=unset)


def test_an_answer_may_name_the_call() -> None:
    placed: list[str | None] = []
    for answer in (TELNYX.placed[1], {"call_sid": "v3:1"}, {"data": {"sid": "v3:1"}}):
        ours(lambda carrier: placed.append(carrier.place_call(CALL)), answer)
    assert placed == [None, "v3:1", "v3:1"]


def test_the_account_is_advised() -> None:
    found: list[list[str]] = []
    ours(lambda carrier: found.append(carrier.check([])), account_sid=None)
    ours(lambda carrier: found.append(carrier.check([])))
    assert found == [[ADVICE], []]


def test_an_account_without_an_application_places_no_call() -> None:
    with pytest.raises(CarrierRefused, match="enter its ID as the connection ID"):
        ours(lambda carrier: carrier.place_call(CALL), connection_id=None)
