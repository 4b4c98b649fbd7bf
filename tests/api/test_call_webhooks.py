"""Requests of carriers: how they are signed, which are admitted, and what is answered."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from flask import Flask
from flask.testing import FlaskClient
from twilio.request_validator import RequestValidator

from voiceapi import VoiceAPI, create_app
from voiceapi.calls import doctor
from voiceapi.calls.inbound import MEANINGS
from voiceapi.http_client import HTTPClient, Reply
from voiceapi.service import Service
from voiceapi.store import forgetting, retention, telephony
from voiceapi.store.database import write
from voiceapi.store.fields import now
from voiceapi.store.forgetting import ForgottenNumber
from voiceapi.store.runs import Run
from voiceapi.store.telephony import TelephonyConfiguration
from voiceapi.telephony.carriers.base import Advice

API = "/api/v1"
PUBLIC = "https://voice.example.org"
TOKEN = "12345678901234567890123456789012"
ACCOUNT = "AC0123456789abcdef0123456789abcdef"
TWILIO = {"provider": "twilio", "account_sid": ACCOUNT, "auth_token": TOKEN}
OURS, THEIRS = "+12025550188", "+12025550123"
COMING = {"CallSid": "CA1", "AccountSid": ACCOUNT, "From": THEIRS, "To": OURS, "CallStatus": "ringing"}


class Deaf(HTTPClient):
    def send(self, method: str, url: str, **options: Any) -> Reply:
        return Reply(201, {}, b'{"sid": "CA1"}', 0.0)


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_PUBLIC_URL": PUBLIC}


@pytest.fixture(autouse=True)
def deaf(service: Service) -> None:
    object.__setattr__(service, "http", Deaf())


@pytest.fixture
def configuration(client: FlaskClient) -> int:
    made = client.post(f"{API}/organizations/telephony-configs", json={"name": "Main", "config": TWILIO}).get_json()
    return int(made["id"])


@pytest.fixture
def number(client: FlaskClient, configuration: int, workflow: Callable[..., Any]) -> dict[str, Any]:
    """Our number, whose calls a workflow answers."""
    body = {"address": OURS, "inbound_workflow_id": workflow(path="line")["id"]}
    made = client.post(f"{API}/organizations/telephony-configs/{configuration}/phone-numbers", json=body)
    return dict(made.get_json())


@pytest.fixture
def dial(client: FlaskClient, app: Flask, configuration: int, number: dict[str, Any]) -> Callable[[], tuple[int, str]]:
    """Places a call; returns its run and where it has its webhooks."""

    def place() -> tuple[int, str]:
        # No limit of calls a second: other tests check it.
        with app.extensions["voiceapi"].store.session(), write():
            TelephonyConfiguration.update(paced_until=None).execute()
        body = {"phone_number": THEIRS, "telephony_configuration_id": configuration}
        run = client.post(f"{API}/public/agent/line", json=body).get_json()["workflow_run_id"]
        with app.extensions["voiceapi"].store.session():
            return run, f"{API}/telephony/calls/{Run.get_by_id(run).token}"

    return place


@pytest.fixture
def base(dial: Callable[[], tuple[int, str]]) -> str:
    """Where a call that was placed has its webhooks."""
    return dial()[1]


def send(client: FlaskClient, path: str, fields: Any, signed: str | None = None, **options: Any) -> Any:
    """A form, signed over `signed`, which is our public address of `path` unless given."""
    body = urlencode(fields)
    signature = RequestValidator(TOKEN).compute_signature(signed or f"{PUBLIC}{path}", dict(fields))
    headers = {"X-Twilio-Signature": signature, "Content-Type": "application/x-www-form-urlencoded"}
    return client.post(path, data=body, headers={**headers, **options.pop("headers", {})}, **options)


# -- what is signed


def test_the_raw_target_is_what_was_signed(bare: FlaskClient, base: str) -> None:
    for target in ("turns/0", "turns/%30", "turns/0?a=b+c&d=e%20f", "turns/0?z=1&a=&a=2", "turns/0?x=%2F%C3%A9"):
        path = f"{base}/{target}"
        assert send(bare, path, {"CallSid": "CA1"}, signed=f"{PUBLIC}{path}").status_code == 200
        other = path.replace("%20", "+").replace("%30", "0")
        other = other if other != path else f"{path}x"
        assert send(bare, path, {"CallSid": "CA1"}, signed=f"{PUBLIC}{other}").status_code == 403


def test_host_and_forwarded_headers_say_nothing(bare: FlaskClient, base: str) -> None:
    path = f"{base}/turns/0"
    lies = {"X-Forwarded-Host": "evil.example.org", "X-Forwarded-Proto": "http", "Forwarded": "host=evil.example.org"}
    for host in ("evil.example.org", "localhost:8000"):
        assert send(bare, path, {"CallSid": "CA1"}, headers=lies, base_url=f"http://{host}").status_code == 200
        forged = f"http://{host}{path}"
        assert send(bare, path, {"CallSid": "CA1"}, forged, base_url=f"http://{host}").status_code == 403


def test_a_get_is_signed_by_its_address(bare: FlaskClient, base: str) -> None:
    path = f"{base}/turns/0?CallSid=CA1&SpeechResult="
    signature = RequestValidator(TOKEN).compute_signature(f"{PUBLIC}{path}", {})
    assert bare.get(path, headers={"X-Twilio-Signature": signature}).status_code == 200
    assert bare.get(f"{path}x", headers={"X-Twilio-Signature": signature}).status_code == 403


def test_a_blank_field_is_signed_and_silent(bare: FlaskClient, base: str) -> None:
    send(bare, f"{base}/turns/0", {"CallSid": "CA1"})
    answer = send(bare, f"{base}/turns/1", {"CallSid": "CA1", "SpeechResult": "", "Confidence": ""})
    assert answer.status_code == 200
    assert b"Are you still there?" in answer.data


def test_under_a_prefix(tmp_path: Path, database_at: Callable[..., str], talk: Callable[..., Any]) -> None:
    app = Flask("host")
    key = "test-key-0123456789"
    app.config |= {
        "VOICEAPI_DATABASE": database_at(tmp_path / "v.db"),
        "VOICEAPI_API_KEY": key,
        "VOICEAPI_PUBLIC_URL": PUBLIC,
    }
    VoiceAPI(app, url_prefix="/voice")
    service = app.extensions["voiceapi"]
    sent = []

    class Kept(Deaf):
        def send(self, method: str, url: str, **options: Any) -> Reply:
            sent.append(options["data"])
            return super().send(method, url, **options)

    object.__setattr__(service, "http", Kept())
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = key
    made = client.post(f"/voice{API}/organizations/telephony-configs", json={"name": "Main", "config": TWILIO})
    config = made.get_json()["id"]
    client.post(f"/voice{API}/organizations/telephony-configs/{config}/phone-numbers", json={"address": OURS})
    body = {"name": "Agent", "workflow_definition": talk("line")}
    client.post(f"/voice{API}/workflow/create/definition", json=body)
    body = {"phone_number": THEIRS, "telephony_configuration_id": config}
    run = client.post(f"/voice{API}/public/agent/line", json=body).get_json()["workflow_run_id"]
    with service.store.session():
        path = f"/voice{API}/telephony/calls/{Run.get_by_id(run).token}/turns/0"
    assert urlencode({"Url": f"{PUBLIC}{path}"}).encode() in sent[0]
    assert send(app.test_client(), path, {"CallSid": "CA1"}).status_code == 200
    service.close()


# -- requests that are none


def test_places_that_are_none(bare: FlaskClient, base: str) -> None:
    numbers = ("turns/10000", "turns/99999999999999999999", "turns/-1", "turns/x")
    for place in (*numbers, "turns/0/elsewhere", "turns/0//", "turns", "", "status/x"):
        answer = send(bare, f"{base}/{place}", {"CallSid": "CA1"})
        assert (answer.status_code, answer.get_json()) == (404, {"detail": "Not Found"})
    assert b"<Hangup" in send(bare, f"{base}/turns/9999", {"CallSid": "CA1"}).data


def test_other_methods_and_large_bodies(bare: FlaskClient, base: str) -> None:
    assert bare.put(f"{base}/turns/0").status_code == 405
    large = send(bare, f"{base}/turns/0", {"CallSid": "x" * 2_000_000})
    assert (large.status_code, large.get_json()) == (
        413,
        {"detail": "The request body may have at most 1048576 bytes."},
    )


BODIES = (b"", b"\xff\xfe", b"&&&", b"a=%ff&%=", b"SpeechResult=%00", b"[" * 5000, b'{"SpeechResult": {"a": 1}}', b"x")
KINDS = ("application/x-www-form-urlencoded", "application/json", "text/plain", "")
PLACES = ("turns/0", "turns/0/transfer", "status", "machine")


def test_no_body_breaks_it(bare: FlaskClient, base: str) -> None:
    """Twilio signs the fields of a form; a body that isn't one has no signature to check."""
    for place, kind, body in product(PLACES, KINDS, BODIES):
        form = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True) if "form" in kind else {}
        fields = {name: values[0] for name, values in form.items()}
        signature = RequestValidator(TOKEN).compute_signature(f"{PUBLIC}{base}/{place}", fields)
        headers = {"Content-Type": kind, "X-Twilio-Signature": signature}
        answer = bare.post(f"{base}/{place}", data=body, headers=headers)
        assert answer.status_code == (403 if body and not form else 200), (place, kind, body)


ODD: tuple[dict[str, str], ...] = (
    *({"CallDuration": value} for value in ("", "nan", "inf", "-5", "1e999", "soon", "9" * 500)),
    {"CallSid": "CA\x00"},
    {"CallSid": "C" * 100_000},
    {"CallStatus": "on the moon \x00"},
    {"AnsweredBy": "nobody"},
)


def test_odd_values_of_a_status(bare: FlaskClient, client: FlaskClient, dial: Callable[[], tuple[int, str]]) -> None:
    for fields in ODD:
        run, base = dial()
        send(bare, f"{base}/turns/0", {"CallSid": "CA1"})
        status = {"CallSid": "CA1", "CallStatus": "completed", **fields}
        # The status of another call is refused.
        assert send(bare, f"{base}/status", status).status_code == (403 if "CallSid" in fields else 200)
        detail = client.get(f"{API}/workflow/1/runs/{run}")
        completes = "CallStatus" not in fields and "CallSid" not in fields
        assert (detail.status_code, detail.get_json()["is_completed"]) == (200, completes)


def test_a_key_is_neither_needed_nor_enough(client: FlaskClient, bare: FlaskClient, base: str) -> None:
    assert client.post(f"{base}/turns/0").status_code == 403
    assert send(bare, f"{base}/turns/0", {}).status_code == 200


def test_they_are_not_in_the_document(client: FlaskClient) -> None:
    paths = client.get(f"{API}/openapi.json").get_json()["paths"]
    assert not [path for path in paths if "/telephony/calls" in path or "/telephony/inbound" in path]


def test_without_its_configuration_nothing_vouches_for_a_call(
    bare: FlaskClient, client: FlaskClient, base: str, configuration: int
) -> None:
    assert client.delete(f"{API}/organizations/telephony-configs/{configuration}").status_code == 200
    empty = RequestValidator("").compute_signature(f"{PUBLIC}{base}/turns/0", {"CallSid": "CA1"})
    answer = bare.post(f"{base}/turns/0", data={"CallSid": "CA1"}, headers={"X-Twilio-Signature": empty})
    gone = {"detail": "The telephony configuration of this call is gone."}
    assert (answer.status_code, answer.get_json()) == (403, gone)


# -- calls to our numbers


@pytest.fixture
def inbound(configuration: int) -> str:
    return f"{API}/telephony/inbound/{configuration}"


def refusal(answer: Any) -> Any:
    return answer.status_code, (answer.get_json() or {}).get("detail")


def test_why_a_call_is_not_verified(bare: FlaskClient, number: Any, inbound: str) -> None:
    assert refusal(send(bare, inbound, {"CallUUID": "1"})) == (403, "PROVIDER_MISMATCH")
    other = {**COMING, "AccountSid": "AC9"}
    assert refusal(send(bare, inbound, other)) == (403, "ACCOUNT_VALIDATION_FAILED")
    assert refusal(send(bare, inbound, COMING, "https://x/")) == (403, "SIGNATURE_VALIDATION_FAILED")
    assert refusal(send(bare, f"{inbound}99", COMING)) == (403, "GENERAL_AUTH_FAILED")
    assert refusal(send(bare, f"{inbound}/status", COMING, "https://x/")) == (403, "SIGNATURE_VALIDATION_FAILED")
    nowhere = f"{API}/telephony/inbound/workflow/none"
    assert refusal(send(bare, nowhere, COMING)) == (404, "WORKFLOW_NOT_FOUND")


def test_the_most_specific_reason_of_several_configurations(
    bare: FlaskClient, client: FlaskClient, number: Any, workflow: Callable[..., Any]
) -> None:
    body = {"name": "Other", "config": {**TWILIO, "account_sid": "AC9"}}
    client.post(f"{API}/organizations/telephony-configs", json=body)
    path = f"{API}/telephony/inbound/workflow/{workflow()['workflow_uuid']}"
    assert send(bare, path, COMING).status_code == 200
    assert refusal(send(bare, path, COMING, "https://x/")) == (403, "SIGNATURE_VALIDATION_FAILED")
    assert refusal(send(bare, path, {**COMING, "AccountSid": "AC5"})) == (403, "ACCOUNT_VALIDATION_FAILED")
    assert refusal(send(bare, path, {"CallUUID": "1"})) == (403, "PROVIDER_MISMATCH")


def test_a_configuration_without_a_key_to_check_with(bare: FlaskClient, client: FlaskClient, number: Any) -> None:
    body = {"name": "Telnyx", "config": {"provider": "telnyx", "api_key": "KEY", "connection_id": "1"}}
    made = client.post(f"{API}/organizations/telephony-configs", json=body).get_json()["id"]
    path = f"{API}/telephony/inbound/{made}"
    assert refusal(send(bare, path, {**COMING, "ConnectionId": "1"})) == (403, "GENERAL_AUTH_FAILED")


def test_numbers_in_any_spelling(bare: FlaskClient, client: FlaskClient, number: Any, inbound: str) -> None:
    for call, to in enumerate((OURS, "12025550188", " +1 (202) 555-0188 ")):
        answer = send(bare, inbound, {**COMING, "To": to, "CallSid": f"CA{call}"})
        assert b"Hello, is now a good time?" in answer.data
        assert "X-Voiceapi-Detail" not in answer.headers
    for call, caller in enumerate(("anonymous", "", "+266696687", "sip:Ann@Example.org", "client:ann"), 10):
        assert send(bare, inbound, {**COMING, "From": caller, "CallSid": f"CA{call}"}).status_code == 200
        run = client.get(f"{API}/organizations/usage/runs").get_json()["runs"][0]
        assert run["initial_context"]["caller_number"] == run["caller_number"] == run["phone_number"]


def change(client: FlaskClient, number: dict[str, Any], **body: Any) -> None:
    config = number["telephony_configuration_id"]
    path = f"{API}/organizations/telephony-configs/{config}/phone-numbers/{number['id']}"
    assert client.put(path, json=body).status_code == 200


def test_why_a_call_is_not_served(
    bare: FlaskClient, client: FlaskClient, app: Flask, number: dict[str, Any], inbound: str
) -> None:
    def told(**fields: str) -> Any:
        answer = send(bare, inbound, {**COMING, **fields})
        assert (answer.status_code, answer.content_type) == (200, "text/xml; charset=utf-8")
        assert b"Goodbye" in answer.data
        assert b"<Hangup" in answer.data
        return answer.headers.get("X-Voiceapi-Detail")

    assert told(To="+12025550111") == "PHONE_NUMBER_NOT_CONFIGURED"
    change(client, number, is_active=False)
    assert told() == "PHONE_NUMBER_NOT_CONFIGURED"
    change(client, number, is_active=True)
    change(client, number, clear_inbound_workflow=True)
    assert told() == "PHONE_NUMBER_NOT_CONFIGURED"
    change(client, number, inbound_workflow_id=number["inbound_workflow_id"])
    workflow = f"{API}/workflow/{number['inbound_workflow_id']}"
    client.put(f"{workflow}/status", json={"status": "archived"})
    assert told() == "WORKFLOW_NOT_FOUND"
    client.put(f"{workflow}/status", json={"status": "active"})
    service = app.extensions["voiceapi"]
    object.__setattr__(service, "settings", type(service.settings).read({"VOICEAPI_CONCURRENT_CALLS": 1}))
    object.__setattr__(service.settings, "public_url", PUBLIC)
    assert send(bare, inbound, COMING).status_code == 200
    assert told(CallSid="CA2") == "QUOTA_EXCEEDED"
    with service.store.session():
        assert Run.select().count() == 1
    # It was one call, however often its carrier asked.
    rows = rejected(client, number)
    shown = [(row["reason"], row["to_number"], row["workflow_id"], row["count"]) for row in rows]
    assert shown == [
        ("QUOTA_EXCEEDED", OURS, 1, 1),
        ("WORKFLOW_NOT_FOUND", OURS, 1, 1),
        ("PHONE_NUMBER_NOT_CONFIGURED", OURS, None, 1),
        ("PHONE_NUMBER_NOT_CONFIGURED", "+12025550111", None, 1),
    ]
    assert {row["from_number"] for row in rows} == {THEIRS}
    assert rows[1]["message"] == "the agent is archived or can't be run"


def rejected(client: FlaskClient, number: dict[str, Any]) -> Any:
    path = f"{API}/organizations/telephony-configs/{number['telephony_configuration_id']}/rejected-calls"
    return client.get(path).get_json()["rejected_calls"]


def test_a_stranger_who_calls_all_night_fills_no_disk(
    bare: FlaskClient,
    client: FlaskClient,
    service: Service,
    number: dict[str, Any],
    inbound: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Calls of one caller are one row, and a configuration keeps a number of rows only."""
    monkeypatch.setattr(telephony, "MOST_REJECTED", 3)
    change(client, number, is_active=False)
    for call in range(4):
        send(bare, inbound, {**COMING, "CallSid": f"CA{call}"})
    assert [(row["from_number"], row["count"]) for row in rejected(client, number)] == [(THEIRS, 4)]
    for call in range(4):
        send(bare, inbound, {**COMING, "CallSid": f"CB{call}", "From": f"+1202555017{call}" if call else "x" * 9999})
    assert [row["from_number"] for row in rejected(client, number)] == [f"+1202555017{call}" for call in (3, 2, 1)]
    with service.store.session():
        stored = TelephonyConfiguration.get_by_id(number["telephony_configuration_id"])
        advice = [each for each in doctor.examine_configuration(service, stored) if isinstance(each, Advice)]
        assert forgetting.delete_rejected_calls(ForgottenNumber("+12025550172"), 1) == 1
        assert forgetting.delete_rejected_calls(ForgottenNumber("+12025550171"), 2) == 0
        assert retention.delete_rejected_calls(now()) == 2
    last = rf"the last at \S+Z: {MEANINGS['PHONE_NUMBER_NOT_CONFIGURED']}\."
    assert re.fullmatch(rf"3 calls to {re.escape(OURS)} were not taken, {last}", advice[0])


def test_an_unfinished_workflow_is_not_served(
    bare: FlaskClient, client: FlaskClient, number: dict[str, Any], inbound: str, workflow: Callable[..., Any]
) -> None:
    change(client, number, inbound_workflow_id=workflow({"nodes": [], "edges": []})["id"])
    assert send(bare, inbound, COMING).headers["X-Voiceapi-Detail"] == "WORKFLOW_NOT_FOUND"


def test_a_status_of_a_call_that_is_not_known(bare: FlaskClient, number: Any, inbound: str) -> None:
    answer = send(bare, f"{inbound}/status", {**COMING, "CallStatus": "completed"})
    assert (answer.status_code, answer.content_type) == (200, "text/xml; charset=utf-8")


def test_language_and_voice_are_the_workflows(
    bare: FlaskClient, client: FlaskClient, number: dict[str, Any], inbound: str
) -> None:
    workflow = number["inbound_workflow_id"]
    body = {"workflow_configurations": {"language": "de-DE", "voice": "Polly.Vicki"}}
    client.put(f"{API}/workflow/{workflow}", json=body)
    client.post(f"{API}/workflow/{workflow}/publish")
    answer = send(bare, inbound, COMING).text
    assert answer.count('language="de-DE"') == 2
    assert answer.count('voice="Polly.Vicki"') == 1


# -- what the log says of a webhook that is refused


LOCAL = "127.0.0.1:8000"


def line_of(client: FlaskClient, caplog: pytest.LogCaptureFixture, path: str, **headers: str) -> str:
    """The one line of the log about a call to our number that is refused."""
    caplog.clear()
    assert client.post(path, data=COMING, headers=headers).status_code in (403, 404)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("voiceapi", "WARNING")
    return str(record.getMessage())


@pytest.mark.parametrize(
    ("headers", "came_to"),
    [
        ({"Host": "voice.example.org"}, None),
        ({"Host": "VOICE.example.org:443"}, None),
        ({"Host": LOCAL, "X-Forwarded-Host": "voice.example.org"}, None),
        ({"Host": "voice.example.org", "X-Forwarded-Host": "inner.example.org"}, None),
        ({"Host": "old.example.org"}, "https://old.example.org"),
        ({"Host": LOCAL, "X-Forwarded-Host": "new.example.org, proxy"}, "https://new.example.org"),
        ({"Host": "voice.example.org", "X-Forwarded-Proto": "http"}, "http://voice.example.org"),
        ({"Host": LOCAL, "X-Forwarded-Host": "a\x1b[2J\x85b"}, "https://a\\x1b[2J\\x85b"),
        ({"Host": LOCAL, "X-Forwarded-Host": "a" * 5000}, f"https://{'a' * 292}"),
    ],
)
def test_the_log_says_where_a_webhook_with_another_host_came_to(
    bare: FlaskClient,
    configuration: int,
    headers: dict[str, str],
    came_to: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = line_of(bare, caplog, f"{API}/telephony/inbound/{configuration}", **headers)
    hint = f", but the request came to {came_to}. If the carrier was given that address, set VOICEAPI_PUBLIC_URL to it"
    assert said == (
        "A webhook was refused: Its signature is wrong. It is for configuration 2 'Main' (twilio). The signature was "
        f"computed with its auth_token over {PUBLIC}{API}/telephony/inbound/2"
        f"{f'{hint} (now {PUBLIC}).' if came_to else ''}"
    )


def test_the_log_says_that_there_is_no_public_url(
    tmp_path: Path, database_at: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(
        {"VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"), "VOICEAPI_API_KEY": "test-key-0123456789"}
    )
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = "test-key-0123456789"
    client.post(f"{API}/organizations/telephony-configs", json={"name": "Ma\nin\x1b", "config": TWILIO})
    said = line_of(client, caplog, f"{API}/telephony/inbound/2", Host="tunnel.example.org")
    app.extensions["voiceapi"].close()
    assert "configuration 2 'Ma\\nin\\x1b' (twilio)" in said
    assert said.endswith("set VOICEAPI_PUBLIC_URL to it (not set now).")
    assert f"over http://{LOCAL}{API}/telephony/inbound/2, but the request came to http://tunnel.example.org." in said


@pytest.mark.parametrize(
    ("path", "fields", "reason"),
    [
        ("/telephony/inbound/77", {}, "There is no telephony configuration 77. The request was POST {}"),
        (
            "/telephony/inbound/77/status",
            {},
            "There is no telephony configuration 77. The request was POST {}",
        ),
        (
            "/telephony/inbound/2",
            {"CallSid": ""},
            "It isn't in Twilio's format: the id of the call or the called number is missing. "
            "It is for configuration 2 'Main' (twilio). The request was POST {}",
        ),
        (
            "/telephony/inbound/2",
            {"AccountSid": "AC9"},
            "It is for another account of the carrier. It is for configuration 2 'Main' (twilio). "
            "The request was POST {}",
        ),
        ("/telephony/inbound/workflow/x", {}, "WORKFLOW_NOT_FOUND. The request was POST {}"),
    ],
)
def test_the_log_says_why_a_call_was_refused(
    bare: FlaskClient,
    configuration: int,
    path: str,
    fields: dict[str, str],
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bare.post(f"{API}{path}", data={**COMING, **fields})
    shown = f"{PUBLIC}{API}{path}{'…' if path.endswith('/x') else ''}"
    assert caplog.messages == [f"A webhook was refused: {reason.format(shown)}"]


def test_the_log_says_which_key_is_missing(
    client: FlaskClient, bare: FlaskClient, caplog: pytest.LogCaptureFixture
) -> None:
    config = {"provider": "telnyx", "api_key": "KEY", "connection_id": "1"}
    made = client.post(f"{API}/organizations/telephony-configs", json={"name": "T", "config": config}).get_json()
    said = line_of(bare, caplog, f"{API}/telephony/inbound/{made['id']}")
    assert "The configuration has no webhook_public_key, and nothing else proves who sent it." in said
    config = {"provider": "cloudonix", "bearer_token": "KEY", "domain_id": "example"}
    made = client.post(f"{API}/organizations/telephony-configs", json={"name": "C", "config": config}).get_json()
    said = line_of(bare, caplog, f"{API}/telephony/inbound/{made['id']}")
    assert "It has no key of the carrier's account, and nothing else proves who sent it." in said


def test_the_log_shows_no_number(
    bare: FlaskClient, configuration: int, base: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even from a query, from a token or from the number of a call that no workflow takes."""
    caplog.clear()
    bare.get(f"{base}/turns/0?{urlencode({**COMING, THEIRS: THEIRS})}")
    bare.post(f"{API}/telephony/calls/{THEIRS}/status", data=COMING)
    bare.post(f"{API}/telephony/inbound/workflow/{THEIRS}", data=COMING)
    other = {**COMING, "To": "+12025550177"}
    path = f"{API}/telephony/inbound/{configuration}"
    signature = RequestValidator(TOKEN).compute_signature(f"{PUBLIC}{path}", other)
    bare.post(path, data=other, headers={"X-Twilio-Signature": signature})
    first, second, third, last = caplog.messages
    assert first.partition(", but")[0].endswith("/turns/0?CallSid=…&AccountSid=…&From=…&To=…&CallStatus=…&…=…")
    assert f"{API}/telephony/calls/+120…/status" in second
    assert f"{API}/telephony/inbound/workflow/+120…" in third
    assert last == "A call to ...0177 is not served: PHONE_NUMBER_NOT_CONFIGURED"
    assert not any(number[1:] in caplog.text for number in (OURS, THEIRS, "+12025550177"))


def test_a_secret_that_was_replaced_is_said_in_one_line(
    bare: FlaskClient, app: Flask, configuration: int, base: str, caplog: pytest.LogCaptureFixture
) -> None:
    with app.extensions["voiceapi"].store.session(), write():
        TelephonyConfiguration.update(credentials="gAAA").execute()
    for path in (f"{API}/telephony/inbound/{configuration}", f"{base}/status"):
        said = line_of(bare, caplog, path)
        assert "another secret" in said
        assert "configuration 2 'Main' (twilio)" in said
