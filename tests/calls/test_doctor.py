"""`voiceapi doctor`: what is wrong with the public address, credentials and numbers, in one line each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask import Flask

from voiceapi import create_app
from voiceapi.calls import doctor
from voiceapi.calls.doctor import Finding, examine
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group
from voiceapi.http_client import HTTPClient, Reply, RequestFailed
from voiceapi.service import Service
from voiceapi.telephony import configurations
from voiceapi.telephony.carriers.telnyx import ADVICE
from voiceapi.telephony.phone_numbers import create
from voiceapi.telephony.providers import PROVIDERS
from voiceapi.workflows import versions

TWILIO = {"provider": "twilio", "account_sid": "AC1", "auth_token": "12345", "amd_enabled": False}
PUBLIC = "https://voice.example.org"
HEALTH = b'{"status": "ok", "backend_api_endpoint": "https://voice.example.org"}'
OWNED = b'{"incoming_phone_numbers": [{}]}'
ADDRESS = f"public address {PUBLIC}"
MAIN = "configuration 2 'Main' (twilio)"


class Wire(HTTPClient):
    """Answers by the beginning of the URL."""

    def __init__(self, answers: dict[str, Any]) -> None:
        super().__init__()
        object.__setattr__(self, "answers", answers)

    def send(self, method: str, url: str, **options: Any) -> Reply:
        answer = next(answer for start, answer in self.answers.items() if url.startswith(start))
        if isinstance(answer, Exception):
            raise answer
        return Reply(*answer[:1], {}, answer[1], 0.0)


def findings(app: Flask, health: Any, twilio: Any, *, number: bool = True) -> list[Finding]:
    service: Service = app.extensions["voiceapi"]
    wire = Wire({f"{PUBLIC}/api/v1/health": health, "https://api.twilio.com": twilio})
    object.__setattr__(service, "http", wire)
    with service.store.session():
        made = configurations.create(service.vault, 1, "Main", TWILIO)
        if number:
            create(1, made.id, "+12025550188")
        return list(examine(service))


@pytest.fixture
def public(tmp_path: Path) -> Any:
    app = create_app({"VOICEAPI_DATABASE": tmp_path / "voice.db", "VOICEAPI_PUBLIC_URL": PUBLIC})
    yield app
    app.extensions["voiceapi"].close()


def test_nothing_is_wrong(public: Flask) -> None:
    assert findings(public, (200, HEALTH), (200, OWNED)) == [Finding(ADDRESS), Finding(MAIN)]


@pytest.mark.parametrize(
    ("health", "twilio", "number", "wrong"),
    [
        (
            RequestFailed("connection", "https://voice.example.org could not be reached, or its answer broke off."),
            (200, OWNED),
            True,
            {
                ADDRESS: "The service isn't reached there: "
                "https://voice.example.org could not be reached, or its answer broke off."
            },
        ),
        ((200, b"Welcome"), (200, OWNED), True, {ADDRESS: "Something else than this service answers there."}),
        ((200, b"[]"), (200, OWNED), True, {ADDRESS: "Something else than this service answers there."}),
        (
            (200, HEALTH),
            (200, b'{"incoming_phone_numbers": []}'),
            True,
            {MAIN: "+12025550188 is not a number of this Twilio account."},
        ),
        (
            (200, HEALTH),
            (401, b'{"message": "Authenticate", "code": 20003}'),
            True,
            {MAIN: "Twilio answered 401: Authenticate (code 20003)."},
        ),
        ((200, HEALTH), (500, b""), True, {MAIN: "Twilio answered 500."}),
        (
            (200, HEALTH),
            (200, OWNED),
            False,
            {
                MAIN: "Outbound calls need a number to dial from. "
                "Add at least one number from your Twilio account under Phone numbers below."
            },
        ),
    ],
)
def test_what_is_wrong(public: Flask, health: Any, twilio: Any, number: bool, wrong: dict[str, str]) -> None:
    found = findings(public, health, twilio, number=number)
    assert {each.subject: each.wrong for each in found if each.wrong} == wrong
    assert {each.subject for each in found} == {ADDRESS, MAIN}


def test_an_address_that_carriers_do_not_know(app: Flask) -> None:
    found = findings(app, None, (200, OWNED))
    assert [each.wrong for each in found] == [
        "VOICEAPI_PUBLIC_URL isn't set, so that no carrier knows where to reach this service.",
        None,
    ]


def test_a_public_url_without_https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PUBLIC", "http://voice.example.org")
    app = create_app({"VOICEAPI_DATABASE": tmp_path / "voice.db", "VOICEAPI_PUBLIC_URL": "http://voice.example.org"})
    health = (200, HEALTH.replace(b"https", b"http"))
    first, _ = findings(app, health, (200, OWNED))
    assert first.wrong is not None
    assert first.wrong.startswith("VOICEAPI_PUBLIC_URL isn't https")
    app.extensions["voiceapi"].close()


VONAGE = {"provider": "vonage", "api_key": "a", "api_secret": "b", "application_id": "c", "private_key": "d"}
UNCHECKED = "Without {} calls to its numbers are refused: nothing else proves who sends their webhooks."


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        (
            {"provider": "telnyx", "api_key": "KEY"},
            [
                UNCHECKED.format("webhook_public_key"),
                "Telnyx places calls through a TeXML application: enter its ID as the connection ID.",
                ADVICE,
            ],
        ),
        ({"provider": "telnyx", "api_key": "KEY", "connection_id": "1", "webhook_public_key": "k"}, [ADVICE]),
        (
            {
                "provider": "telnyx",
                "api_key": "KEY",
                "connection_id": "1",
                "account_sid": "2",
                "webhook_public_key": "k",
            },
            [None],
        ),
        (
            VONAGE,
            [
                UNCHECKED.format("signature_secret"),
                "Vonage answered 401: Unauthorized.",
                "The private key of this configuration is not an RSA key in PEM form.",
            ],
        ),
    ],
)
def test_all_that_is_missing_is_reported(public: Flask, config: dict[str, Any], wrong: list[str | None]) -> None:
    service: Service = public.extensions["voiceapi"]
    wire = {
        PUBLIC: (200, HEALTH),
        "https://api.telnyx.com": (200, b'{"data": [{}]}'),
        "https://rest.nexmo.com": (401, b'{"title": "Unauthorized"}'),
    }
    object.__setattr__(service, "http", Wire(wire))
    with service.store.session():
        fields = {field.name: config.get(field.name) for field in PROVIDERS[config["provider"]].fields}
        made = configurations.create(service.vault, 1, "Main", {**fields, "provider": config["provider"]})
        workflow, _ = versions.create(1, "Agent", {"nodes": [], "edges": []})
        create(1, made.id, "+12025550188", inbound_workflow_id=workflow.id)
        assert [each.wrong for each in examine(service)][1:] == wrong


def test_credentials_of_another_secret(public: Flask) -> None:
    service: Service = public.extensions["voiceapi"]
    findings(public, (200, HEALTH), (200, OWNED))
    with service.store.session():
        configurations.TelephonyConfiguration.update(credentials="gAAA").execute()
        *_, last = examine(service)
    assert last.wrong is not None
    assert "can't be" in last.wrong


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool) -> None:
    monkeypatch.setenv("VOICEAPI_DATABASE", str(tmp_path / "voice.db"))
    monkeypatch.setenv("VOICEAPI_API_KEY", "test-key-0123456789")
    flags = ["--json"] if as_json else []
    nothing = CliRunner().invoke(group, ["doctor", *flags], obj=script_info(create_app))
    assert nothing.exit_code == 0
    assert nothing.stdout == ("[]\n" if as_json else "Only the simulator is set up; there is nothing to check.\n")
    monkeypatch.setattr(doctor, "examine", lambda _: [Finding("this", "It is broken."), Finding("that")])
    found = CliRunner().invoke(group, ["doctor", *flags], obj=script_info(create_app))
    assert found.exit_code == 1
    if as_json:
        assert json.loads(found.stdout) == [
            {"subject": "this", "wrong": "It is broken."},
            {"subject": "that", "wrong": None},
        ]
    else:
        assert found.stdout == "this: It is broken.\nthat: good\n"
