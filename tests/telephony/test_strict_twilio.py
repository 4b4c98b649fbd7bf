"""The strict Twilio is strict: what the real one refuses it refuses, with Twilio's codes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import pytest
from flask import Flask
from flask.testing import FlaskClient
from internet import Internet
from internet import Request as Asked
from loopback import Loopback
from strict_twilio import ApplicationError, Call, Person, StrictTwilio
from werkzeug.serving import make_server

from voiceapi import create_app
from voiceapi.http_client import Reply
from voiceapi.telephony.carriers.base import Account, OutboundCall
from voiceapi.telephony.carriers.rest import CarrierRefused
from voiceapi.telephony.carriers.twilio import Twilio
from voiceapi.telephony.carriers.webhook import CallbackURLs

OURS, MINE = "+12025550188", "+12025550123"
URLS = CallbackURLs("https://voice.trycloudflare.com/api/v1/telephony/calls", "tok")


@pytest.fixture(scope="module")
def internet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Internet]:
    internet = Internet(tmp_path_factory.mktemp("internet"))
    yield internet
    internet.close()


@pytest.fixture
def strict(internet: Internet) -> Iterator[StrictTwilio]:
    strict = StrictTwilio(internet, "https://voice.trycloudflare.com", OURS, trial=True)
    strict.verified.add(MINE)
    yield strict
    strict.close()


@pytest.fixture
def ours(strict: StrictTwilio) -> Callable[..., Twilio]:
    """Makes our side, with credentials of its own or others."""

    def send(method: str, url: str, **options: Any) -> Reply:
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        answer = strict._internet.hosts[parts.netloc](
            Asked(method, parts.netloc, path, options["headers"], options["data"] or b"")
        )
        return Reply(answer.status, answer.headers, answer.body, 0.0)

    def make(**others: Any) -> Twilio:
        given = {"account_sid": strict.account_sid, "auth_token": strict.auth_token, **others}
        return Twilio(Account(given, send))  # type: ignore[arg-type]

    return make


@pytest.mark.parametrize(
    ("to", "from_number", "reason"),
    [
        ("12025550123", OURS, r"answered 400: Invalid 'To' Phone Number: 12025550123 \(code 21211\)"),
        (MINE, "2025550188", r"answered 400: From is not a valid phone number: 2025550188 \(code 21212\)"),
        (MINE, "+12025550177", r"answered 400: The source phone number provided, .* \(code 21210\)"),
        ("+12025550166", OURS, r"answered 400: The number \+12025550166 is unverified\. .* \(code 21219\)"),
        (MINE, None, r"answered 400: No 'From' number is specified \(code 21213\)"),
    ],
)
def test_a_call_that_it_refuses(
    strict: StrictTwilio, ours: Callable[..., Twilio], to: str, from_number: str | None, reason: str
) -> None:
    with pytest.raises(CarrierRefused, match=reason):
        ours().place_call(OutboundCall(URLS, to, from_number, 60, 1200, {}))
    assert strict.calls == {}


@pytest.mark.parametrize(
    ("credentials", "reason"),
    [
        ({"auth_token": "0" * 32}, r"answered 401: Authenticate \(code 20003\)"),
        ({"account_sid": f"AC{'0' * 32}"}, r"answered 401: Authenticate \(code 20003\)"),
    ],
)
def test_credentials_that_it_refuses(ours: Callable[..., Twilio], credentials: dict[str, str], reason: str) -> None:
    assert ours(**credentials).check([OURS]) == [f"Twilio {reason.replace(chr(92), '')}."]


def test_a_call_that_it_does_not_know(ours: Callable[..., Twilio]) -> None:
    with pytest.raises(CarrierRefused, match=r"answered 404: The requested resource .* was not found \(code 20404\)"):
        ours().look_up(f"CA{'0' * 32}")


def test_a_call_that_nobody_answers(strict: StrictTwilio, ours: Callable[..., Twilio]) -> None:
    """Its callbacks lead nowhere, because no tunnel is open."""
    sid = ours().place_call(OutboundCall(URLS, MINE, OURS, 60, 1200, {}))
    assert (strict.last_call().sid, strict.last_call().status) == (sid, "no-answer")
    assert ours().look_up(str(sid)).status == "no-answer"
    assert {alert["error_code"] for alert in strict.alerts} == {"11200"}
    assert (strict.violations, ours().check([OURS])) == ([], [])


@pytest.mark.parametrize(
    ("document", "wrong"),
    [
        ("<Response><Say>Hello.</Say><Hangup/></Response>", False),
        ('<Response><Gather input="speech dtmf" action="https://x" hints="yes,no"/></Response>', False),
        ('<Response><Dial action="https://x"><Number>+12025550177</Number></Dial></Response>', False),
        ("<response><Say>Hello.</Say></response>", True),
        ("<Response><Speak>Hello.</Speak></Response>", True),
        ("<Response><Say></Say></Response>", True),
        ("<Response><Say><Gather/></Say></Response>", True),
        ('<Response><Gather action="/relative"/></Response>', True),
        ('<Response><Gather action="https://x" input="words"/></Response>', True),
        ('<Response><Gather action="https://x" listen="yes"/></Response>', True),
        ("<Response><Redirect>nowhere</Redirect></Response>", True),
    ],
)
def test_documents(strict: StrictTwilio, document: str, wrong: bool) -> None:
    assert bool(strict._wrong_with(ET.fromstring(document))) is wrong


@pytest.mark.parametrize(
    ("fragment", "code"),
    [("rc=6", 11240), ("rp=ct,reset", 11243), ("rt=16000", 11240), ("ct=99", 11240), ("xx=1", 11240), ("rc=x", 11240)],
)
def test_connection_overrides_that_it_refuses(strict: StrictTwilio, fragment: str, code: int) -> None:
    with pytest.raises(ApplicationError) as refused:
        strict._ask(strict_call(), "POST", f"https://voice.trycloudflare.com/x#{fragment}", {})
    assert refused.value.code == code


def strict_call() -> Call:
    return Call("CA1", MINE, OURS, "outbound-api", Person(), "")


@pytest.mark.parametrize(("fragment", "asked"), [("", 1), ("#rc=5", 1), ("#rc=5&rp=4xx", 1), ("#rc=2&rp=ct,5xx", 3)])
def test_what_it_asks_for_again(strict: StrictTwilio, fragment: str, asked: int) -> None:
    """No tunnel is open, which is an answer of 530."""
    retries: list[int] = []
    strict.retrying = retries.append
    assert strict._ask(strict_call(), "POST", f"https://voice.trycloudflare.com/x{fragment}", {}).status == 530
    assert len(retries) + 1 == asked


def test_a_restart_of_the_service_ends_no_call(tmp_path: Path, database_at: Callable[[Path], str], talk: Any) -> None:
    """The service is stopped in the middle of a call, and refuses connections until Twilio's third retry."""
    internet = Loopback()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    public = f"http://127.0.0.1:{port}"
    strict = StrictTwilio(internet, public, OURS)  # type: ignore[arg-type]
    settings = {"VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"), "VOICEAPI_API_KEY": "test-key-0123456789"}
    settings |= {"VOICEAPI_SECRET": "s" * 32, "VOICEAPI_PUBLIC_URL": public, "VOICEAPI_TWILIO_URL": internet.url}
    running: list[tuple[Flask, Any, threading.Thread]] = []

    def start() -> FlaskClient:
        app = create_app({"TESTING": True, **settings})
        server = make_server("127.0.0.1", port, app, threaded=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        running.append((app, server, thread))
        client = app.test_client()
        client.environ_base["HTTP_X_API_KEY"] = settings["VOICEAPI_API_KEY"]
        return client

    def stop() -> None:
        app, server, thread = running.pop()
        server.shutdown()
        server.server_close()
        thread.join()
        app.extensions["voiceapi"].close()

    def lines() -> Iterator[str]:
        stop()
        yield "yes"

    retries: list[int] = []

    def retry(number: int) -> None:
        retries.append(number)
        if number == 3 and not running:
            start()

    strict.retrying = retry
    strict.people[MINE] = Person(lines())  # type: ignore[arg-type]
    client = start()
    api = "/api/v1"
    try:
        config = {"provider": "twilio", "account_sid": strict.account_sid, "auth_token": strict.auth_token}
        configs = f"{api}/organizations/telephony-configs"
        made = client.post(configs, json={"name": "Main", "config": config}).get_json()["id"]
        client.post(f"{configs}/{made}/phone-numbers", json={"address": OURS})
        agent = {"name": "Line", "workflow_definition": talk("line")}
        created = client.post(f"{api}/workflow/create/definition", json=agent).get_json()["id"]
        client.post(f"{api}/workflow/{created}/publish")
        body = {"phone_number": MINE, "telephony_configuration_id": made}
        placed = client.post(f"{api}/public/agent/line", json=body)
        assert placed.get_json()["status"] == "initiated", placed.text
        call = strict.last_call()
        assert (call.heard, retries) == (["Hello, is now a good time?", "Great, goodbye."], [1, 2, 3])
        assert (strict.alerts, strict.violations) == ([], [])
    finally:
        if running:
            stop()
        strict.close()
        internet.close()
