"""`GET /organizations/doctor`: what prevents calls of one organization, found in limited time."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.calls import doctor
from voiceapi.calls.doctor import OUT_OF_TIME
from voiceapi.service import Service

API = "/api/v1"
DOCTOR = f"{API}/organizations/doctor"
CONFIGS = f"{API}/organizations/telephony-configs"
TWILIO = {"provider": "twilio", "account_sid": "AC1", "auth_token": "12345"}
LLM = {"provider": "openai", "model": "gpt", "api_key": "sk-secret-0123"}
OWN_MODEL = {"mode": "byok", "byok": {"mode": "pipeline", "pipeline": {"llm": LLM, "tts": LLM, "stt": LLM}}}


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that accepts connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def settings(silent: str) -> dict[str, Any]:
    return {
        "VOICEAPI_PUBLIC_URL": silent,
        "VOICEAPI_TWILIO_URL": silent,
        "VOICEAPI_LLM_URL": f"{silent}/v1",
        "VOICEAPI_LLM_MODEL": "small",
    }


def findings(client: FlaskClient, **query: int) -> list[dict[str, Any]]:
    answer = client.get(DOCTOR, query_string=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.get_json()["findings"]
    return found


def add_carrier(client: FlaskClient, name: str, number: str) -> int:
    made: int = client.post(CONFIGS, json={"name": name, "config": TWILIO}).get_json()["id"]
    assert client.post(f"{CONFIGS}/{made}/phone-numbers", json={"address": number}).status_code == 200
    return made


def test_servers_that_never_answer_do_not_hold_the_request(
    client: FlaskClient, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, second = (add_carrier(client, f"Main {n}", f"+1202555018{n}") for n in (1, 2))
    monkeypatch.setattr(doctor, "LIMIT_SECONDS", 0.9)
    monkeypatch.setattr(doctor, "SECONDS", 0.3)
    began = time.monotonic()
    insecure, unreached, simulator, *carriers, limits, model = findings(client)
    assert time.monotonic() - began < 15
    assert insecure["wrong"].startswith("VOICEAPI_PUBLIC_URL isn't https")
    assert unreached["wrong"] == f"The service isn't reached there: {silent} did not answer within 0.3 seconds."
    assert simulator["wrong"] is None
    assert [each["note"] for each in (*carriers, model)] == [OUT_OF_TIME] * 3
    assert [each["wrong"] for each in (*carriers, model)] == [None] * 3
    assert [each["telephony_configuration_id"] for each in carriers] == [main, second]
    assert limits["note"].startswith("advice: ")
    assert model["subject"] == f"language model of the service (openai-compatible, small at {silent})"


def test_a_server_is_asked_in_the_time_that_is_left(
    client: FlaskClient, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "LIMIT_SECONDS", 0.0)
    simulator, model = findings(client)
    assert (simulator["wrong"], simulator["note"]) == (None, None)
    assert (model["wrong"], model["note"]) == (None, OUT_OF_TIME)


def test_an_organization_is_told_of_its_own_only(
    client: FlaskClient, stranger: FlaskClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "LIMIT_SECONDS", 0.0)
    add_carrier(client, "Main", "+12025550181")
    answer = client.put(f"{API}/organizations/model-configurations/v2", json=OWN_MODEL)
    assert answer.status_code == 200
    mine, theirs = findings(client), findings(stranger)
    assert [each["subject"] for each in mine] == [
        f"public address {service.base_url}",
        "configuration 1 'Simulator' (simulator)",
        "configuration 3 'Main' (twilio), default for outbound calls",
        "limits of outbound calls",
        "language model of the organization (openai, gpt at https://api.openai.com)",
    ]
    assert [each["subject"] for each in theirs] == [
        "configuration 2 'Simulator' (simulator), default for outbound calls",
        f"language model of the service (openai-compatible, small at {service.settings.llm_url.removesuffix('/v1')})",
    ]


def test_one_configuration_is_checked_alone(
    client: FlaskClient, stranger: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "LIMIT_SECONDS", 0.0)
    add_carrier(client, "Main", "+12025550181")
    second = add_carrier(client, "Second", "+12025550182")
    assert [(each["subject"], each["note"]) for each in findings(client, telephony_configuration_id=second)] == [
        (f"configuration {second} 'Second' (twilio)", OUT_OF_TIME)
    ]
    answer = stranger.get(DOCTOR, query_string={"telephony_configuration_id": second})
    assert (answer.status_code, answer.get_json()) == (404, {"detail": "Telephony configuration not found"})
