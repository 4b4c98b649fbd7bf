"""`voiceapi doctor`: what calls depend on, a line each, and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask import Flask

from voiceapi import create_app
from voiceapi.calls import doctor, relays
from voiceapi.calls.doctor import CheckResult, examine
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group
from voiceapi.http_client import HTTPClient, Reply, RequestFailed
from voiceapi.llm import configuration
from voiceapi.organizations import preferences
from voiceapi.organizations.api_keys import get_or_create_organization
from voiceapi.service import Service
from voiceapi.store import probe
from voiceapi.store.organizations import Organization
from voiceapi.telephony import configurations
from voiceapi.telephony.carriers.telnyx import ADVICE
from voiceapi.telephony.phone_numbers import create
from voiceapi.telephony.providers import PROVIDERS
from voiceapi.workflows import versions

TWILIO = {"provider": "twilio", "account_sid": "AC1", "auth_token": "12345", "amd_enabled": False}
PUBLIC = "https://voice.example.org"
HEALTH = b'{"status": "ok", "backend_api_endpoint": "https://voice.example.org"}'
OWNED = b'{"incoming_phone_numbers": [{"phone_number": "+12025550188"}]}'
ADDRESS = f"public address {PUBLIC}"
MODEL = "language model of the service (the scripted model)"
SIMULATOR = "configuration 1 'Simulator' (simulator)"
MAIN = "configuration 2 'Main' (twilio), default for outbound calls"
ONLY = f"{SIMULATOR}, default for outbound calls"


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


def findings(app: Flask, health: Any, twilio: Any, *, number: bool = True) -> list[CheckResult]:
    service: Service = app.extensions["voiceapi"]
    wire = Wire({f"{PUBLIC}/api/v1/health": health, "https://api.twilio.com": twilio})
    object.__setattr__(service, "http", wire)
    with service.store.session():
        preferences.replace(1, {"max_calls_a_day": 100})
        made = configurations.create(service.vault, 1, "Main", TWILIO)
        if number:
            create(1, made.id, "+12025550188")
        return list(examine(service))


@pytest.fixture
def public(tmp_path: Path, database_at: Callable[..., str]) -> Any:
    app = create_app({"VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"), "VOICEAPI_PUBLIC_URL": PUBLIC})
    yield app
    app.extensions["voiceapi"].close()


def test_nothing_is_wrong(public: Flask) -> None:
    assert findings(public, (200, HEALTH), (200, OWNED)) == [
        CheckResult(ADDRESS),
        CheckResult(MODEL),
        CheckResult(SIMULATOR),
        CheckResult(MAIN),
    ]


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
    assert {each.subject for each in found} == {ADDRESS, MODEL, SIMULATOR, MAIN}


def test_an_address_that_carriers_do_not_know(app: Flask) -> None:
    found = findings(app, None, (200, OWNED))
    assert [each.wrong for each in found] == [
        "VOICEAPI_PUBLIC_URL isn't set, so that no carrier knows where to reach this service.",
        None,
        None,
        None,
    ]


def test_a_public_url_without_https(
    tmp_path: Path, database_at: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "PUBLIC", "http://voice.example.org")
    app = create_app(
        {"VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"), "VOICEAPI_PUBLIC_URL": "http://voice.example.org"}
    )
    health = (200, HEALTH.replace(b"https", b"http"))
    first, *_ = findings(app, health, (200, OWNED))
    assert first.wrong is not None
    assert first.wrong.startswith("VOICEAPI_PUBLIC_URL isn't https")
    app.extensions["voiceapi"].close()


VONAGE = {"provider": "vonage", "api_key": "a", "api_secret": "b", "application_id": "c", "private_key": "d"}
TEXML = {
    "voice_url": f"{PUBLIC}/api/v1/telephony/inbound/2",
    "status_callback": f"{PUBLIC}/api/v1/telephony/inbound/2/status",
}
UNCHECKED = "Without {} calls to its numbers are refused: nothing else proves who sends their webhooks."


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        (
            {"provider": "telnyx", "api_key": "KEY"},
            [
                UNCHECKED.format("webhook_public_key"),
                "Telnyx places calls through a TeXML application: enter its ID as the connection ID.",
                f"advice: {ADVICE}",
            ],
        ),
        (
            {"provider": "telnyx", "api_key": "KEY", "connection_id": "1", "webhook_public_key": "k"},
            [None, f"advice: {ADVICE}"],
        ),
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
        "https://api.telnyx.com/v2/texml_applications/1": (200, json.dumps({"data": TEXML}).encode()),
        "https://api.telnyx.com": (200, b'{"data": [{"phone_number": "+12025550188", "connection_id": "1"}]}'),
        "https://rest.nexmo.com": (401, b'{"title": "Unauthorized"}'),
    }
    object.__setattr__(service, "http", Wire(wire))
    with service.store.session():
        fields = {field.name: config.get(field.name) for field in PROVIDERS[config["provider"]].fields}
        made = configurations.create(service.vault, 1, "Main", {**fields, "provider": config["provider"]})
        workflow, _ = versions.create(service.vault, 1, "Agent", {"nodes": [], "edges": []})
        create(1, made.id, "+12025550188", inbound_workflow_id=workflow.id)
        assert [each.wrong or each.note for each in examine(service) if "'Main'" in each.subject] == wrong


def test_credentials_of_another_secret(public: Flask) -> None:
    service: Service = public.extensions["voiceapi"]
    findings(public, (200, HEALTH), (200, OWNED))
    with service.store.session():
        configurations.TelephonyConfiguration.update(credentials="gAAA").execute()
        *_, last = examine(service)
    assert last.wrong is not None
    assert "can't be" in last.wrong


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command(
    tmp_path: Path, database_at: Callable[..., str], monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    monkeypatch.setenv("VOICEAPI_DATABASE", database_at(tmp_path / "voice.db"))
    monkeypatch.setenv("VOICEAPI_API_KEY", "test-key-0123456789")
    monkeypatch.setattr(probe, "dangers", lambda _: ())  # those of the tests' own server
    flags = ["--json"] if as_json else []
    nothing = CliRunner().invoke(group, ["doctor", *flags], obj=script_info(create_app))
    assert nothing.exit_code == 0
    if as_json:
        assert json.loads(nothing.stdout) == [
            {"subject": MODEL, "wrong": None, "note": None},
            {"subject": ONLY, "wrong": None, "note": None},
        ]
    else:
        assert nothing.stdout == f"{MODEL}: good\n{ONLY}: good\n"
    reported = [CheckResult("this", "It is broken."), CheckResult("that"), CheckResult("that", note="advice: Mend it.")]
    monkeypatch.setattr(doctor, "examine", lambda _: reported)
    found = CliRunner().invoke(group, ["doctor", *flags], obj=script_info(create_app))
    assert found.exit_code == 1
    if as_json:
        assert json.loads(found.stdout) == [
            {"subject": "this", "wrong": "It is broken.", "note": None},
            {"subject": "that", "wrong": None, "note": None},
            {"subject": "that", "wrong": None, "note": "advice: Mend it."},
        ]
    else:
        assert found.stdout == "this: It is broken.\nthat: good\nthat: advice: Mend it.\n"


# -- configurations


def test_a_line_for_each_configuration_says_which_one_outbound_calls_use(public: Flask) -> None:
    service: Service = public.extensions["voiceapi"]
    found = findings(public, (200, HEALTH), (200, OWNED))
    with service.store.session():
        office = get_or_create_organization(service, "off\x1bice")
        preferences.replace(office.id, {"max_calls_a_day": 100})
        made = configurations.create(service.vault, office.id, "Ma\nin", TWILIO, is_default_outbound=True)
        found = list(examine(service))
    assert [each.subject for each in found[2:]] == [
        "configuration 1 'Simulator' (simulator) of 'default'",
        "configuration 2 'Main' (twilio) of 'default', default for outbound calls",
        "configuration 3 'Simulator' (simulator) of 'off\\x1bice'",
        f"configuration {made.id} 'Ma\\nin' (twilio) of 'off\\x1bice', default for outbound calls",
    ]


def test_the_configuration_that_takes_the_calls_of_a_default_without_a_number(public: Flask) -> None:
    service: Service = public.extensions["voiceapi"]
    findings(public, (200, HEALTH), (200, OWNED), number=False)
    with service.store.session():
        second = configurations.create(service.vault, 1, "Second", TWILIO)
        create(1, second.id, "+12025550188")
        found = list(examine(service))
    assert [each.subject for each in found[3:]] == [
        MAIN,
        "configuration 3 'Second' (twilio), takes outbound calls, since the default can't",
    ]


def test_a_simulator_that_cannot_be_used(app: Flask) -> None:
    service: Service = app.extensions["voiceapi"]
    with service.store.session():
        configurations.TelephonyConfiguration.update(credentials="gAAA").execute()
        *_, last = examine(service)
    assert last.subject == ONLY
    assert last.wrong is not None


@pytest.mark.parametrize(
    ("limits", "is_advised"),
    [({}, True), ({"allowed_countries": ["US"]}, False), ({"max_calls_a_day": 1}, False)],
)
def test_a_real_carrier_without_any_limit_of_calls_is_pointed_out(
    public: Flask, limits: dict[str, Any], is_advised: bool
) -> None:
    service: Service = public.extensions["voiceapi"]
    findings(public, (200, HEALTH), (200, OWNED))
    with service.store.session():
        preferences.replace(1, {"allowed_countries": None, "max_calls_a_day": None, **limits})
        found = [each for each in examine(service) if "limits" in each.subject]
    advice = (
        "advice: Whoever gets hold of an API key could call any number, all night. Set allowed_countries or "
        "max_calls_a_day with PUT /organizations/preferences."
    )
    assert found == ([CheckResult("limits of outbound calls", note=advice)] if is_advised else [])


def test_advice_is_no_error(public: Flask) -> None:
    """A number that only calls out may be answered elsewhere."""
    entry = {"phone_number": "+12025550188", "voice_url": "https://pbx.example.org/"}
    found = findings(
        public,
        (200, HEALTH),
        (200, json.dumps({"incoming_phone_numbers": [entry]}).encode()),
    )
    assert [each.sentence for each in found if each.subject == MAIN] == [
        "good",
        "advice: Calls to +12025550188 don't come here: Twilio requests https://pbx.example.org/.",
    ]
    assert not any(each.wrong for each in found)


# -- language models

LLM = "http://127.0.0.1:11434/v1"
OPERATOR = "language model of the service (openai-compatible, small at http://127.0.0.1:11434)"
CALL = {"id": "c1", "type": "function", "function": {"name": "note", "arguments": "{}"}}
YES = json.dumps({"choices": [{"message": {"role": "assistant", "tool_calls": [CALL]}}]}).encode()
OWN = {
    "mode": "byok",
    "byok": {
        "mode": "pipeline",
        "pipeline": {"llm": {"provider": "openai", "model": "gpt", "api_key": "sk-secret-0123"}},
    },
}


@pytest.fixture
def modelled(tmp_path: Path, database_at: Callable[..., str]) -> Any:
    app = create_app(
        {
            "VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"),
            "VOICEAPI_LLM_URL": LLM,
            "VOICEAPI_LLM_MODEL": "small",
            "VOICEAPI_LLM_KEY": "sk-operator-0123",
        }
    )
    yield app
    app.extensions["voiceapi"].close()


def models(app: Flask, answers: dict[str, Any]) -> list[CheckResult]:
    service: Service = app.extensions["voiceapi"]
    object.__setattr__(service, "http", Wire(answers))
    with service.store.session():
        return [each for each in examine(service) if each.subject.startswith("language model")]


def test_the_model_is_asked_one_question(modelled: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((10.0, 10.84))
    monkeypatch.setattr(doctor.selection, "ask", partial(doctor.selection.ask, clock=lambda: next(times)))
    assert models(modelled, {LLM: (200, YES)}) == [CheckResult(OPERATOR, note="good, answered in 0.8 s")]


def test_a_model_that_works_without_functions_is_good_with_advice(modelled: Flask) -> None:
    (found,) = models(modelled, {LLM: (200, b'{"choices": [{"message": {"content": "Yes."}}]}')})
    assert found.wrong is None
    assert found.sentence.startswith(f"advice: {doctor.selection.TALKED} It answered in ")


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ((401, b""), "The model server refused the key (401)."),
        (
            (401, b'{"error": {"message": "Incorrect API key provided: sk-operator-0123\\n."}}'),
            "The model server refused the key (401). It said: Incorrect API key provided: ******** .",
        ),
        (
            (404, b'{"error": {"message": "model \'small\' not found"}}'),
            "The model server knows no such address or model (404). It said: model 'small' not found",
        ),
        (
            (400, b'{"message": "Invalid model: small"}'),
            "The model server answered with status 400. It said: Invalid model: small",
        ),
        ((400, b'{"error": "%s"}' % (b"x" * 900)), f"The model server answered with status 400. It said: {'x' * 300}"),
        (
            RequestFailed("connection", "http://127.0.0.1:11434 could not be reached, or its answer broke off."),
            "The model server can't be asked: http://127.0.0.1:11434 could not be reached, or its answer broke off.",
        ),
        ((200, b"<html>"), "The model server's answer is not JSON."),
        ((200, YES.replace(b"tool_calls", b"x")), "The model answered without words."),
        ((503, b"[]"), "The model server answered with status 503."),
    ],
)
def test_a_model_that_cannot_be_used(modelled: Flask, answer: Any, wrong: str) -> None:
    assert models(modelled, {LLM: answer}) == [CheckResult(OPERATOR, wrong)]


def test_the_model_of_an_organization_is_asked_too(app: Flask) -> None:
    service: Service = app.extensions["voiceapi"]
    with service.store.session():
        configuration.replace(service.vault, 1, OWN)
        get_or_create_organization(service, "office")
    refused = (401, b'{"error": {"message": "sk-secret-0123 is wrong"}}')
    assert models(app, {"https://api.openai.com/v1/chat/completions": refused}) == [
        CheckResult(MODEL),
        CheckResult(
            "language model of organization 'default' (openai, gpt at https://api.openai.com)",
            "The model server refused the key (401). It said: ******** is wrong",
        ),
    ]


def test_a_model_configuration_that_cannot_be_used(app: Flask) -> None:
    service: Service = app.extensions["voiceapi"]
    with service.store.session():
        Organization.update(model_configuration="gAAA").execute()
    _, found = models(app, {})
    assert found.subject == "language model of organization 'default' (not usable)"
    assert found.wrong is not None
    assert "another secret" in found.wrong


def test_the_model_of_a_host_app_is_named(app: Flask) -> None:
    class Own:
        def reply(self, ask: Any) -> Any: ...

        def extract(self, request: Any) -> Any: ...

    service: Service = app.extensions["voiceapi"]
    object.__setattr__(service, "model", Own())
    assert models(app, {}) == [CheckResult("language model of the service (the host app's own model)")]


@pytest.mark.parametrize(
    ("relay", "wrong"),
    [
        ((403, b'{"detail": "There is no such call."}'), None),
        ((404, b""), f"No relay answers at {PUBLIC}/api/v1/telephony/relay/doctor, but status 404: "),
        (RequestFailed("connection", "It broke off."), "The relay isn't reached: It broke off."),
    ],
)
def test_a_relay_is_asked_for(public: Flask, relay: Any, wrong: str | None) -> None:
    service: Service = public.extensions["voiceapi"]
    answers = {"https://api.twilio.com": (200, OWNED), f"{PUBLIC}/api/v1/telephony/relay/": relay}
    object.__setattr__(service, "http", Wire(answers))
    with service.store.session():
        made = configurations.create(service.vault, 1, "Main", {**TWILIO, "transport": "relay"})
        create(1, made.id, "+12025550188")
        found = list(doctor.examine_configuration(service, made))
    expected = [] if wrong is None else [f"{doctor.BY_WEBHOOKS} {wrong}"]
    assert [each[: len(text)] for each, text in zip(found, expected, strict=True)] == expected


def test_a_relay_needs_tls(app: Flask) -> None:
    service: Service = app.extensions["voiceapi"]
    with service.store.session():
        assert list(doctor._relay(service)) == [f"{doctor.BY_WEBHOOKS} {relays.NO_TLS}"]
