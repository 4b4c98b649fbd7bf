from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.llm.configuration import load
from voiceapi.security import Vault
from voiceapi.store import runs
from voiceapi.store.organizations import Organization
from voiceapi.store.runs import Run
from voiceapi.store.workflows import Workflow

PREFERENCES = "/api/v1/organizations/preferences"
CODES = "/api/v1/organizations/disposition-codes"
MODELS = "/api/v1/organizations/model-configurations/v2"
END_REASONS = [
    "call_duration_exceeded",
    "call_transferred",
    "end_call_tool",
    "voicemail_detected",
    "user_idle_max_duration_exceeded",
    "user_hangup",
    "user_qualified",
    "user_disqualified",
    "system_cancelled",
    "system_connect_error",
    "unexpected_error",
    "unknown",
    "transfer_call",
    "pipeline_error",
]
NOT_CONNECTED = ["no-answer", "busy", "failed", "canceled", "error"]
UNSET = {
    "test_phone_number": None,
    "timezone": None,
    "external_pbx_integrations_enabled": False,
    "calling_hours": None,
    "max_attempts_per_day": None,
    "allowed_countries": None,
    "max_calls_a_day": None,
}


def test_preferences_are_replaced_whole(client: FlaskClient, stranger: FlaskClient) -> None:
    assert client.get(PREFERENCES).get_json() == UNSET
    answer = client.put(PREFERENCES, json={"test_phone_number": "+12025550123", "timezone": "Europe/Berlin"})
    wanted = {**UNSET, "test_phone_number": "+12025550123", "timezone": "Europe/Berlin"}
    assert (answer.status_code, answer.get_json()) == (200, wanted)
    assert client.get(PREFERENCES).get_json() == wanted
    assert stranger.get(PREFERENCES).get_json() == UNSET
    gate = {"calling_hours": {"start": "09:00", "end": "20:00"}, "max_attempts_per_day": 3}
    assert client.put(PREFERENCES, json=gate).get_json() == {**UNSET, **gate}
    answer = client.put(PREFERENCES, json={"external_pbx_integrations_enabled": "yes"})
    assert (
        answer.get_json()
        == client.get(PREFERENCES).get_json()
        == {
            **UNSET,
            "external_pbx_integrations_enabled": True,
        }
    )


@pytest.mark.parametrize(
    ("body", "item"),
    [
        (
            {"timezone": "Mars/Olympus"},
            {"loc": ["body", "timezone"], "msg": "Value error, Invalid timezone: Mars/Olympus", "type": "value_error"},
        ),
        (
            {"calling_hours": {"start": "09:00", "end": "09:00"}},
            {
                "loc": ["body", "calling_hours"],
                "msg": "Value error, start_time and end_time must differ, or nobody is ever called",
                "type": "value_error",
            },
        ),
        (
            {"max_attempts_per_day": 0},
            {
                "loc": ["body", "max_attempts_per_day"],
                "msg": "Input should be greater than or equal to 1",
                "type": "greater_than_equal",
            },
        ),
        (
            {"test_phone_number": 12025550123},
            {"loc": ["body", "test_phone_number"], "msg": "Input should be a valid string", "type": "string_type"},
        ),
        (
            {"external_pbx_integrations_enabled": None},
            {
                "loc": ["body", "external_pbx_integrations_enabled"],
                "msg": "Input should be a valid boolean",
                "type": "bool_type",
            },
        ),
    ],
)
def test_preferences_that_are_refused(client: FlaskClient, body: dict[str, Any], item: dict[str, Any]) -> None:
    answer = client.put(PREFERENCES, json=body)
    assert (answer.status_code, answer.get_json()) == (422, {"detail": [item]})
    assert client.get(PREFERENCES).get_json() == UNSET


def test_unknown_preferences_are_named(client: FlaskClient) -> None:
    answer = client.put(PREFERENCES, json={"language": "de"})
    assert (answer.status_code, answer.get_json()) == (200, UNSET)
    assert answer.headers["Warning"] == '199 voiceapi "fields not known here and passed over: language"'


@pytest.mark.usefixtures("db")
def test_disposition_codes(client: FlaskClient, stranger: FlaskClient) -> None:
    workflow = Workflow.create(organization=1, workflow_uuid="w", name="w")
    for number, disposition in enumerate(("zebra", "busy", "booked", "booked", "", None)):
        Run.create(organization=1, workflow=workflow, name="r", mode="chat", token=str(number), disposition=disposition)
    known = {"codes": [*END_REASONS, *NOT_CONNECTED], "end_task_reason_codes": END_REASONS}
    answer = client.get(CODES)
    assert (answer.status_code, answer.get_json()) == (
        200,
        {**known, "codes": [*known["codes"], "booked", "zebra"]},
    )
    assert stranger.get(CODES).get_json() == known


@pytest.mark.usefixtures("db")
def test_at_most_two_hundred_other_codes_are_listed(client: FlaskClient) -> None:
    workflow = Workflow.create(organization=1, workflow_uuid="w", name="w")
    for number in range(201):
        runs.create(workflow, name="r", mode="chat", token=str(number), disposition=f"code-{number:03}")
    learned = client.get(CODES).get_json()["codes"][19:]
    assert learned == [f"code-{number:03}" for number in range(200)]


OPENAI = {"provider": "openai", "model": "gpt-4.1", "api_key": "sk-0123456789"}
VOICE = {"provider": "elevenlabs", "model": "flash", "api_key": ["el-first-1111", "el-second-2222"], "voice": "Ana"}
EARS = {"provider": "deepgram", "model": "nova-3", "api_key": "dg-987654", "keyterms": ["voice", "agent"]}
MASKED = {
    "llm": {**OPENAI, "api_key": "*********6789"},
    "tts": {**VOICE, "api_key": ["*********1111", "**********2222"]},
    "stt": {**EARS, "api_key": "*****7654"},
}
PIPELINE = {"mode": "byok", "byok": {"mode": "pipeline", "pipeline": {"llm": OPENAI, "tts": VOICE, "stt": EARS}}}
NO_SERVICES = {"llm": None, "tts": None, "stt": None, "embeddings": None, "realtime": None}
SPEECH = {"provider": "carrier", "model": "default"}
UNSET_MODELS = {"llm": {"provider": "scripted", "model": "scripted"}, "tts": SPEECH, "stt": SPEECH}
EFFECTIVE = {**NO_SERVICES, "is_realtime": False, "test_phone_number": None, "timezone": None}
EMPTY = {
    "configuration": {"version": 2, "mode": "byok", "byok": {"mode": "pipeline", "pipeline": UNSET_MODELS}},
    "effective_configuration": {**EFFECTIVE, **UNSET_MODELS},
    "source": "empty",
}


def in_clear(app: Flask) -> Any:
    service = app.extensions["voiceapi"]
    with service.store.session():
        return load(service.vault, 1)


def test_no_model_configuration(client: FlaskClient) -> None:
    answer = client.get(MODELS)
    assert (answer.status_code, answer.get_json()) == (200, EMPTY)


def test_a_pipeline_of_models(app: Flask, client: FlaskClient, stranger: FlaskClient) -> None:
    client.put(PREFERENCES, json={"test_phone_number": "+12025550123", "timezone": "Asia/Kolkata"})
    answer = client.put(MODELS, json=PIPELINE)
    assert (answer.status_code, answer.get_json()) == (
        200,
        {
            "configuration": {"version": 2, "mode": "byok", "byok": {"mode": "pipeline", "pipeline": MASKED}},
            "effective_configuration": {
                **NO_SERVICES,
                **MASKED,
                "is_realtime": False,
                "test_phone_number": "+12025550123",
                "timezone": "Asia/Kolkata",
            },
            "source": "organization_v2",
        },
    )
    assert client.get(MODELS).get_json() == answer.get_json()
    assert stranger.get(MODELS).get_json() == EMPTY
    assert in_clear(app) == {"version": 2, **PIPELINE}


def test_a_realtime_model(client: FlaskClient) -> None:
    byok = {"mode": "realtime", "realtime": {"realtime": OPENAI, "llm": OPENAI, "embeddings": None}}
    answer = client.put(MODELS, json={"version": 2, "mode": "byok", "byok": byok, "dograh": None}).get_json()
    shown = {"realtime": MASKED["llm"], "llm": MASKED["llm"]}
    assert answer["configuration"] == {"version": 2, "mode": "byok", "byok": {"mode": "realtime", "realtime": shown}}
    effective = answer["effective_configuration"]
    assert effective == {**EFFECTIVE, **shown, "is_realtime": True}


def test_hosted_models(client: FlaskClient) -> None:
    answer = client.put(MODELS, json={"mode": "dograh", "dograh": {"api_key": "mps_12345678"}}).get_json()
    assert answer == {
        "configuration": {
            "version": 2,
            "mode": "dograh",
            "dograh": {"api_key": "********5678", "voice": "default", "speed": 1.0, "language": "multi"},
        },
        "effective_configuration": EFFECTIVE,
        "source": "organization_v2",
    }


def test_a_client_puts_back_what_it_was_shown(app: Flask, client: FlaskClient) -> None:
    client.put(MODELS, json=PIPELINE)
    shown = client.get(MODELS).get_json()["configuration"]
    services = shown["byok"]["pipeline"]
    services["llm"]["model"] = "gpt-5"
    services["tts"]["api_key"] = [services["tts"]["api_key"][1], "el-third-3333"]
    assert client.put(MODELS, json=shown).status_code == 200
    assert in_clear(app)["byok"]["pipeline"] == {
        "llm": {**OPENAI, "model": "gpt-5"},
        "tts": {**VOICE, "api_key": ["el-second-2222", "el-third-3333"]},
        "stt": EARS,
    }


def test_other_secrets_are_masked_and_kept_too(app: Flask, client: FlaskClient) -> None:
    cloud = {
        "provider": "bedrock",
        "aws_access_key": "AKIA12345678",
        "aws_secret_key": "shhhh-0001",
        "credentials": "{json}",
        "nested": [{"api_key": "deep-5678"}],
        "region": "eu-west-1",
    }
    body = {"mode": "byok", "byok": {"mode": "realtime", "realtime": {"realtime": cloud, "llm": OPENAI}}}
    shown = client.put(MODELS, json=body).get_json()["configuration"]
    assert shown["byok"]["realtime"]["realtime"] == {
        "provider": "bedrock",
        "aws_access_key": "********5678",
        "aws_secret_key": "******0001",
        "credentials": "**son}",
        "nested": [{"api_key": "*****5678"}],
        "region": "eu-west-1",
    }
    assert client.put(MODELS, json=shown).status_code == 200
    assert in_clear(app)["byok"]["realtime"]["realtime"] == cloud


@pytest.mark.parametrize("key", ["*********6789", ["sk-new", "*********6789"]])
def test_a_mask_without_a_stored_key_is_refused(app: Flask, client: FlaskClient, key: Any) -> None:
    byok = {"mode": "realtime", "realtime": {"realtime": OPENAI, "llm": {**OPENAI, "api_key": key}}}
    answer = client.put(MODELS, json={"mode": "byok", "byok": byok})
    assert (answer.status_code, answer.get_json()) == (
        422,
        {"detail": "The api_key '****6789' is masked and no stored one matches it. Send it in full."},
    )
    assert in_clear(app) is None


def value_error(loc: list[str], text: str) -> dict[str, Any]:
    return {"loc": ["body", *loc], "msg": f"Value error, {text}", "type": "value_error"}


SERVICE = ["byok", "pipeline", "llm"]


@pytest.mark.parametrize(
    ("body", "items"),
    [
        ({"mode": "byok"}, [value_error([], "byok configuration is required when mode is byok")]),
        ({"mode": "dograh"}, [value_error([], "dograh configuration is required when mode is dograh")]),
        (
            {"mode": "byok", "byok": {"mode": "pipeline"}},
            [value_error(["byok"], "byok.pipeline is required when byok.mode is pipeline")],
        ),
        (
            {"mode": "byok", "byok": {"mode": "realtime", "realtime": None}},
            [value_error(["byok"], "byok.realtime is required when byok.mode is realtime")],
        ),
        (
            {
                "mode": "byok",
                "byok": {"mode": "realtime", "realtime": {"realtime": OPENAI, "llm": {"provider": "dograh"}}},
            },
            [value_error(["byok"], "BYOK llm cannot use Dograh provider")],
        ),
        (
            {"mode": "other", "version": 3},
            [
                {"loc": ["body", "version"], "msg": "Input should be 2", "type": "literal_error"},
                {"loc": ["body", "mode"], "msg": "Input should be 'dograh' or 'byok'", "type": "literal_error"},
            ],
        ),
        (
            {"mode": "dograh", "dograh": {"api_key": "k", "speed": 3}},
            [
                {
                    "loc": ["body", "dograh", "speed"],
                    "msg": "Input should be less than or equal to 2",
                    "type": "less_than_equal",
                }
            ],
        ),
        (
            {
                "mode": "byok",
                "byok": {"mode": "pipeline", "pipeline": {"llm": {"api_key": ["a", 5]}, "tts": VOICE, "stt": EARS}},
            },
            [
                {"loc": ["body", *SERVICE, "provider"], "msg": "Field required", "type": "missing"},
                {
                    "loc": ["body", *SERVICE, "api_key", 1],
                    "msg": "Input should be a valid string",
                    "type": "string_type",
                },
            ],
        ),
        (
            {"mode": "byok", "byok": {"mode": "pipeline", "pipeline": {"llm": 5, "tts": VOICE}}},
            [
                {
                    "loc": ["body", *SERVICE],
                    "msg": "Input should be a valid dictionary or object to extract fields from",
                    "type": "model_attributes_type",
                },
                {"loc": ["body", "byok", "pipeline", "stt"], "msg": "Field required", "type": "missing"},
            ],
        ),
    ],
)
def test_model_configurations_that_are_refused(
    client: FlaskClient, body: dict[str, Any], items: list[dict[str, Any]]
) -> None:
    answer = client.put(MODELS, json=body)
    assert answer.status_code == 422
    assert sorted(answer.get_json()["detail"], key=str) == sorted(items, key=str)
    assert client.get(MODELS).get_json() == EMPTY


def test_vendor_fields_are_kept_without_a_warning(client: FlaskClient) -> None:
    assert "Warning" not in client.put(MODELS, json=PIPELINE).headers
    answer = client.put(MODELS, json={**PIPELINE, "colour": "red"})
    assert answer.headers["Warning"] == '199 voiceapi "fields not known here and passed over: colour"'


def test_models_of_a_lost_secret_can_be_entered_again(app: Flask, client: FlaskClient) -> None:
    with app.extensions["voiceapi"].store.session():
        lost = Vault(b"another secret of another machine").encrypt("{}")
        Organization.update(model_configuration=lost).execute()
    answer = client.get(MODELS)
    assert answer.status_code == 400
    assert answer.get_json()["detail"].startswith("A stored credential can't be decrypted")
    assert client.put(MODELS, json=PIPELINE).status_code == 200
    assert client.get(MODELS).get_json()["source"] == "organization_v2"


@pytest.mark.parametrize(
    ("method", "url"),
    [("get", PREFERENCES), ("put", PREFERENCES), ("get", CODES), ("get", MODELS), ("put", MODELS)],
)
def test_without_a_key(bare: FlaskClient, method: str, url: str) -> None:
    answer = bare.open(url, method=method)
    assert (answer.status_code, answer.get_json()) == (401, {"detail": "Authorization header required"})
