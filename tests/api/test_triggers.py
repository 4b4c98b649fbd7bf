from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.engine.actions import AskModel
from voiceapi.engine.events import ModelReplied
from voiceapi.llm.scripted import Scripted
from voiceapi.store.organizations import ApiKey
from voiceapi.store.runs import Run
from voiceapi.store.telephony import PhoneNumber, TelephonyConfiguration
from voiceapi.telephony.carriers import simulator

API = "/api/v1"
AGENT = f"{API}/public/agent"
INITIATE = f"{API}/telephony/initiate-call"
NUMBER = "+12025550123"
CALLER = "+12025550199"
HELLO = "Hello, is now a good time?"
ROUTES = ("{path}", "test/{path}", "workflow/{uuid}", "test/workflow/{uuid}")


@pytest.fixture
def trigger(client: FlaskClient) -> Callable[..., Any]:
    """Asks a trigger route; returns status and body."""

    def ask(route: str, phone_number: str = NUMBER, asked: FlaskClient = client, **body: Any) -> tuple[int, Any]:
        answer = asked.post(f"{AGENT}/{route}", json={"phone_number": phone_number, **body})
        return answer.status_code, answer.get_json()

    return ask


@pytest.fixture
def call(trigger: Callable[..., Any], finished: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Triggers workflow 1 and waits for the end of the call; returns the run."""

    def place(route: str = "line", phone_number: str = NUMBER, **body: Any) -> dict[str, Any]:
        status, answer = trigger(route, phone_number, **body)
        assert status == 200, answer
        return dict(finished(1, answer["workflow_run_id"]))

    return place


def said(run: dict[str, Any]) -> list[str]:
    types = ("rtf-user-transcription", "rtf-bot-text")
    return [each["payload"]["text"] for each in run["logs"]["realtime_feedback_events"] if each["type"] in types]


def statuses(run: dict[str, Any]) -> list[str]:
    return [each["status"] for each in run["logs"]["telephony_status_callbacks"]]


# -- the four routes


def test_a_trigger_starts_a_call(workflow: Callable[..., Any], trigger: Callable[..., Any], finished: Any) -> None:
    made = workflow(path="line", greeting="Hello {{first_name}}, is now a good time?")
    status, answer = trigger("line", "+1 (202) 555-0123", initial_context={"first_name": "Ann", "provider": "mine"})
    assert status == 200
    name = answer["workflow_run_name"]
    assert answer == {"status": "initiated", "workflow_run_id": 1, "workflow_run_name": name}
    assert re.fullmatch(r"WR-API-[1-9]\d{3}", name)
    run = finished(1, 1)
    call_id = run["gathered_context"]["call_id"]
    assert {key: run[key] for key in ("id", "workflow_id", "name", "mode", "call_type", "definition_id")} == {
        "id": 1,
        "workflow_id": 1,
        "name": name,
        "mode": "simulator",
        "call_type": "outbound",
        "definition_id": made["current_definition_id"],
    }
    assert run["initial_context"] == {
        "provider": "simulator",
        "direction": "outbound",
        "phone_number": "+12025550123",
        "trigger_mode": "production",
        "telephony_configuration_id": 1,
        "agent_identifier": "line",
        "agent_identifier_type": "trigger_path",
        "workflow_uuid": made["workflow_uuid"],
        "agent_uuid": "line",
        "api_key_id": 1,
        "api_key_created_by": None,
        "first_name": "Ann",
        "called_number": "+12025550123",
        "caller_number": CALLER,
    }
    assert run["gathered_context"] == {
        "provider": "simulator",
        "telephony_configuration_id": 1,
        "telephony_configuration_name": "Simulator",
        "triggered_by": "api",
        "trigger_uuid": "line",
        "call_id": call_id,
        "nodes_visited": ["Hello", "Fine"],
        "call_disposition": "user_qualified",
        "mapped_call_disposition": "user_qualified",
        "call_tags": ["user_speech", "user_qualified"],
    }
    assert said(run) == ["Hello Ann, is now a good time?", "Yes, this is a good time.", "Great, goodbye."]
    assert statuses(run) == ["ringing", "in-progress", "completed"]
    duration = run["usage_info"]["call_duration_seconds"]
    assert duration == run["logs"]["telephony_status_callbacks"][2]["duration"] > 0


@pytest.mark.parametrize(
    ("route", "mode", "word", "kind", "draft"),
    [
        ("{path}", "production", "API", "trigger_path", False),
        ("test/{path}", "test", "TEST", "trigger_path", True),
        ("workflow/{uuid}", "production", "API", "workflow_uuid", False),
        ("test/workflow/{uuid}", "test", "TEST", "workflow_uuid", True),
    ],
)
def test_what_the_routes_call_with(
    client: FlaskClient,
    workflow: Callable[..., Any],
    talk: Callable[..., Any],
    call: Callable[..., Any],
    route: str,
    mode: str,
    word: str,
    kind: str,
    draft: bool,
) -> None:
    uuid = workflow(path="line")["workflow_uuid"]
    variables = {"color": "red", "direction": "up", "shade": "dark"}
    body = {"workflow_definition": talk("line", greeting="Draft."), "template_context_variables": variables}
    client.put(f"{API}/workflow/1", json=body)
    sent = {"shade": "light", "called_number": "mine", "trigger_mode": "mine", "mps_correlation_id": 1}
    run = call(route.format(path="line", uuid=uuid), initial_context=sent, from_phone_number_id=1)
    assert re.fullmatch(rf"WR-{word}-\d{{4}}", run["name"])
    assert said(run)[0] == ("Draft." if draft else HELLO)
    assert run["definition_id"] == (2 if draft else 1)
    identifier = "line" if kind == "trigger_path" else uuid
    assert run["initial_context"] == {
        **({"color": "red"} if draft else {}),
        "provider": "simulator",
        "direction": "outbound",
        "phone_number": NUMBER,
        "trigger_mode": "mine",
        "telephony_configuration_id": 1,
        "agent_identifier": identifier,
        "agent_identifier_type": kind,
        "workflow_uuid": uuid,
        "from_phone_number_id": 1,
        **({"agent_uuid": "line"} if kind == "trigger_path" else {}),
        "api_key_id": 1,
        "api_key_created_by": None,
        "shade": "light",
        "called_number": NUMBER,
        "caller_number": CALLER,
    }
    assert run["gathered_context"].get("trigger_uuid") == ("line" if kind == "trigger_path" else None)
    # Without a draft the test routes call with what is released.
    client.post(f"{API}/workflow/1/publish")
    assert said(call(route.format(path="line", uuid=uuid)))[0] == "Draft."


# -- refusals, in the order in which docs/api.md lists them


def test_a_key_that_is_not_good(
    bare: FlaskClient, client: FlaskClient, workflow: Callable[..., Any], trigger: Callable[..., Any]
) -> None:
    uuid = workflow(path="line")["workflow_uuid"]
    archived = client.post(f"{API}/user/api-keys", json={"name": "x"}).get_json()
    client.delete(f"{API}/user/api-keys/{archived['id']}")
    for key in ("wrong", archived["api_key"]):
        bare.environ_base["HTTP_X_API_KEY"] = key
        for route in (*ROUTES, "nothing"):
            asked = trigger(route.format(path="line", uuid=uuid), asked=bare)
            assert asked == (401, {"detail": "Invalid API key"})


def test_the_last_use_of_the_key_is_recorded(
    app: Flask, workflow: Callable[..., Any], trigger: Callable[..., Any], wait_for: Callable[..., Any]
) -> None:
    workflow(path="line")
    service = app.extensions["voiceapi"]
    with service.store.session():
        ApiKey.update(last_used_at=None).execute()
        service.keys_used.clear()
        trigger("line", "no number")
        wait_for(lambda: ApiKey.get_by_id(1).last_used_at)


def test_an_agent_that_is_not_there(trigger: Callable[..., Any], workflow: Callable[..., Any]) -> None:
    uuid = workflow(path="line")["workflow_uuid"]
    for route, text in (
        ("nothing", "Agent trigger not found"),
        (uuid, "Agent trigger not found"),
        ("test/nothing", "Agent trigger not found"),
        ("LINE", "Agent trigger not found"),
        ("x" * 500, "Agent trigger not found"),
        ("%E2%98%83", "Agent trigger not found"),
        ("workflow/line", "Workflow not found"),
        ("test/workflow/nothing", "Workflow not found"),
    ):
        assert trigger(route) == (404, {"detail": text}), route


def test_an_agent_of_another_organization(
    stranger: FlaskClient, trigger: Callable[..., Any], workflow: Callable[..., Any]
) -> None:
    uuid = workflow(path="line")["workflow_uuid"]
    for route in ("line", "test/line"):
        assert trigger(route, asked=stranger) == (404, {"detail": "Agent trigger not found"})
    for route in (f"workflow/{uuid}", f"test/workflow/{uuid}"):
        assert trigger(route, asked=stranger) == (404, {"detail": "Workflow not found"})


def test_an_archived_workflow(client: FlaskClient, trigger: Callable[..., Any], workflow: Callable[..., Any]) -> None:
    uuid = workflow(path="line")["workflow_uuid"]
    for status, expected in (("archived", (404, {"detail": "Workflow is not active"})), ("active", None)):
        client.put(f"{API}/workflow/1/status", json={"status": status})
        for route in ROUTES:
            asked = trigger(route.format(path="line", uuid=uuid))
            assert asked == expected if expected else asked[0] == 200


def test_only_publishing_changes_the_production_routes(
    client: FlaskClient, trigger: Callable[..., Any], workflow: Callable[..., Any], talk: Callable[..., Any]
) -> None:
    uuid = workflow(path="line")["workflow_uuid"]
    gone = (404, {"detail": "Trigger not found in the selected Agent"})

    def asked() -> list[Any]:
        found = [trigger(route) for route in ("line", "new", "test/line", "test/new", f"workflow/{uuid}")]
        return [200 if status == 200 else (status, body) for status, body in found]

    assert asked() == [
        200,
        (404, {"detail": "Agent trigger not found"}),
        200,
        (404, {"detail": "Agent trigger not found"}),
        200,
    ]
    client.put(f"{API}/workflow/1", json={"workflow_definition": talk("new")})
    assert asked() == [200, gone, gone, 200, 200]
    client.post(f"{API}/workflow/1/publish")
    assert asked() == [gone, 200, gone, 200, 200]


def test_a_trigger_that_is_switched_off(
    client: FlaskClient, trigger: Callable[..., Any], workflow: Callable[..., Any], talk: Callable[..., Any]
) -> None:
    uuid = workflow(path="line", enabled=False)["workflow_uuid"]
    assert trigger("line") == (404, {"detail": "Trigger not found in the selected Agent"})
    assert [trigger(route)[0] for route in ("test/line", f"workflow/{uuid}")] == [200, 200]
    client.put(f"{API}/workflow/1", json={"workflow_definition": talk("line", enabled=True)})
    assert trigger("line")[0] == 404
    client.post(f"{API}/workflow/1/publish")
    assert trigger("line")[0] == 200
    client.put(f"{API}/workflow/1", json={"workflow_definition": talk("line", enabled=False)})
    assert trigger("line")[0] == 200


def test_a_definition_that_is_not_valid_dials_nothing(
    client: FlaskClient, trigger: Callable[..., Any], workflow: Callable[..., Any], talk: Callable[..., Any]
) -> None:
    uuid = workflow(talk("line", prompt=""))["workflow_uuid"]
    first = client.post(f"{API}/workflow/1/validate").get_json()["errors"][0]["message"]
    refused = (422, {"detail": f"The workflow can't be run: {first} (node 1 data.prompt)"})
    for route in ROUTES:
        assert trigger(route.format(path="line", uuid=uuid)) == refused
    empty = workflow({})["workflow_uuid"]
    status, body = trigger(f"workflow/{empty}")
    assert (status, body) == (
        422,
        {"detail": 'The workflow can\'t be run: The workflow needs a list "nodes". (workflow nodes)'},
    )
    client.put(f"{API}/workflow/1", json={"workflow_definition": talk("line")})
    assert (trigger("line")[0], trigger("test/line")[0]) == (422, 200)
    assert client.get(f"{API}/workflow/1/runs").get_json()["total_count"] == 1


def test_how_the_call_goes_out(
    app: Flask, client: FlaskClient, trigger: Callable[..., Any], workflow: Callable[..., Any], call: Callable[..., Any]
) -> None:
    workflow(path="line")
    configs = f"{API}/organizations/telephony-configs"
    config = {"provider": "twilio", "account_sid": "AC1", "auth_token": "secret-token"}
    body = {"name": "Twilio", "config": config, "is_default_outbound": False}
    twilio = client.post(configs, json=body).get_json()["id"]
    other = client.post(configs, json={"name": "Other", "config": {"provider": "simulator"}}).get_json()["id"]
    numbers = f"{configs}/{other}/phone-numbers"
    first, second = (
        client.post(numbers, json={"address": address}).get_json()["id"] for address in ("+12025550150", "+12025550151")
    )
    client.put(f"{numbers}/{first}", json={"is_active": False})
    not_found = "from_phone_number_not_found"
    for body, status, detail in (
        ({"telephony_configuration_id": 99}, 404, "Telephony configuration not found"),
        ({"telephony_configuration_id": twilio}, 400, None),
        ({"from_phone_number_id": 99}, 400, not_found),
        ({"from_phone_number_id": second}, 400, not_found),
        ({"telephony_configuration_id": other, "from_phone_number_id": first}, 400, not_found),
    ):
        found = trigger("line", **body)
        assert found[0] == status, body
        assert found[1]["detail"] == detail if detail else found[1]["detail"].startswith("'Twilio' is not ready")
    run = call("line", telephony_configuration_id=other)
    assert (run["initial_context"]["caller_number"], run["initial_context"]["telephony_configuration_id"]) == (
        "+12025550151",
        other,
    )
    assert call("line")["initial_context"]["caller_number"] == CALLER
    assert client.get(f"{API}/workflow/1/runs").get_json()["total_count"] == 2
    with app.extensions["voiceapi"].store.session():
        PhoneNumber.delete().execute()
        TelephonyConfiguration.delete().execute()
    detail = "Telephony provider not configured for this organization"
    assert trigger("line") == (400, {"detail": detail})


def test_a_configuration_of_another_organization(
    stranger: FlaskClient, trigger: Callable[..., Any], workflow: Callable[..., Any]
) -> None:
    workflow(path="line")
    theirs = stranger.get(f"{API}/organizations/telephony-configs").get_json()["configurations"][0]["id"]
    found = trigger("line", telephony_configuration_id=theirs)
    assert found == (404, {"detail": "Telephony configuration not found"})


COUNTRY = "A number to call is written with + and its country code, such as +12025550123."
NO_COUNTRY = (
    "The number needs + and its country code, as in +12025550123, unless the telephony configuration names a country."
)


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        ("", COUNTRY),
        ("not a number", COUNTRY),
        ("911", NO_COUNTRY),
        ("+1202555012", "+1202555012 is too short or too long for a telephone number of its country."),
        ("+99912345678", "No country has telephone numbers that begin like +99912345678."),
        ("x" * 10_000, COUNTRY),
        ("+1\u0662\u0660\u0662\u0665\u0665\u0665\u0660\u0661\u0662\u0663", COUNTRY),
    ],
)
def test_a_number_that_can_not_be_dialed(shared: FlaskClient, number: str, reason: str) -> None:
    before = shared.get(f"{API}/workflow/1/runs").get_json()["total_count"]
    fault = {"loc": ["body", "phone_number"], "msg": f"Value error, {reason}", "type": "value_error"}
    for url, body in ((f"{AGENT}/shared", {}), (INITIATE, {"workflow_id": 1})):
        if number or url != INITIATE:
            answer = shared.post(url, json={"phone_number": number, **body})
            assert (answer.status_code, answer.get_json()) == (422, {"detail": [fault]})
    assert shared.get(f"{API}/workflow/1/runs").get_json()["total_count"] == before


def test_a_number_on_the_do_not_call_list_is_called_only_if_the_request_says_so(
    workflow: Callable[..., Any], client: FlaskClient, trigger: Callable[..., Any], call: Callable[..., Any]
) -> None:
    workflow(path="line")
    client.post(f"{API}/do-not-call", json={"phone_numbers": [NUMBER]})
    reason = (
        "Value error, The number is on the do-not-call list. "
        'If the person asked for this call, send "ignore_do_not_call": true with the request.'
    )
    refused = {"detail": [{"loc": ["body", "phone_number"], "msg": reason, "type": "value_error"}]}
    by_hand = {"workflow_id": 1, "phone_number": NUMBER}
    for spelling in (NUMBER, "001 202 555 0123", f"sips:{NUMBER}@example.org;user=phone"):
        assert trigger("line", spelling) == (422, refused)
        # Only the member of the request counts, not a variable of that name.
        assert trigger("line", spelling, initial_context={"ignore_do_not_call": True}) == (422, refused)
        answer = client.post(INITIATE, json={**by_hand, "phone_number": spelling})
        assert (answer.status_code, answer.get_json()) == (422, refused)
    client.put(f"{API}/organizations/preferences", json={"test_phone_number": NUMBER})
    assert client.post(INITIATE, json={"workflow_id": 1}).get_json() == refused
    assert client.get(f"{API}/workflow/1/runs").get_json()["total_count"] == 0
    assert call(ignore_do_not_call=True)["initial_context"]["ignore_do_not_call"] is True
    answer = client.post(INITIATE, json={**by_hand, "ignore_do_not_call": True}).get_json()
    made = client.get(f"{API}/workflow/1/runs/{answer['workflow_run_id']}").get_json()
    assert made["initial_context"]["ignore_do_not_call"] is True
    unlisted = call("line", "+12025550124", initial_context={"ignore_do_not_call": True})
    assert "ignore_do_not_call" not in unlisted["initial_context"]


def test_a_run_holds_the_number_that_was_dialed(
    workflow: Callable[..., Any], call: Callable[..., Any], client: FlaskClient
) -> None:
    workflow(path="line", greeting="Is {{phone_number}} yours?")
    for spelling in (f"{NUMBER}\n", " +1 (202) 555-0123 "):
        run = call("line", spelling, initial_context={"phone_number": "another"})
        assert [run["initial_context"][name] for name in ("phone_number", "called_number")] == [NUMBER, NUMBER]
        assert said(run)[0] == f"Is {NUMBER} yours?"


def test_a_sip_address_may_be_called(
    workflow: Callable[..., Any], call: Callable[..., Any], client: FlaskClient
) -> None:
    workflow(path="line")
    assert call("line", "sip:Ann@Example.org")["initial_context"]["called_number"] == "sip:Ann@example.org"
    used = client.get(f"{API}/organizations/usage/runs").get_json()["runs"][0]
    assert used["called_number"] == "sip:Ann@example.org"


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({}, [("phone_number", "Field required", "missing")]),
        ({"phone_number": None}, [("phone_number", "Input should be a valid string", "string_type")]),
        (
            {"phone_number": 12025550123, "initial_context": [], "telephony_configuration_id": "x"},
            [
                ("phone_number", "Input should be a valid string", "string_type"),
                ("initial_context", "Input should be a valid dictionary", "dict_type"),
                (
                    "telephony_configuration_id",
                    "Input should be a valid integer, unable to parse string as an integer",
                    "int_parsing",
                ),
            ],
        ),
        (
            {"phone_number": NUMBER, "from_phone_number_id": 1.5},
            [
                (
                    "from_phone_number_id",
                    "Input should be a valid integer, got a number with a fractional part",
                    "int_from_float",
                )
            ],
        ),
    ],
)
def test_faulty_bodies(shared: FlaskClient, body: Any, faults: Any) -> None:
    items = [{"loc": ["body", name], "msg": msg, "type": type} for name, msg, type in faults]
    for route in ROUTES:
        answer = shared.post(f"{AGENT}/{route.format(path='shared', uuid='x')}", json=body)
        assert (answer.status_code, answer.get_json()) == (422, {"detail": items})


def test_nulls_count_as_not_sent(workflow: Callable[..., Any], call: Callable[..., Any]) -> None:
    workflow(path="line")
    nulls = dict.fromkeys(("initial_context", "telephony_configuration_id", "from_phone_number_id"))
    assert "from_phone_number_id" not in call("line", **nulls)["initial_context"]


# -- as many calls at once as are allowed

BUSY = (429, {"detail": "Concurrent call limit reached"})


def in_progress(app: Flask) -> int:
    with app.extensions["voiceapi"].store.session():
        return int(Run.select().where(Run.deadline_at.is_null(False)).count())


def test_the_limit_of_calls_is_never_exceeded(
    tmp_path: Path, database_at: Callable[..., str], talk: Callable[..., Any], wait_for: Any
) -> None:
    settings = {
        "VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"),
        "VOICEAPI_API_KEY": "test-key-0123456789",
        "VOICEAPI_CONCURRENT_CALLS": 3,
    }
    app = create_app(settings)
    headers = {"X-API-Key": "test-key-0123456789"}
    client = app.test_client()
    body = {"name": "x", "workflow_definition": talk("line")}
    client.post(f"{API}/workflow/create/definition", json=body, headers=headers)
    configs = f"{API}/organizations/telephony-configs"
    config = {"name": "Real", "config": {"provider": "simulator", "realtime": True}, "is_default_outbound": True}
    config_id = client.post(configs, json=config, headers=headers).get_json()["id"]
    client.post(f"{configs}/{config_id}/phone-numbers", json={"address": "+12025550198"}, headers=headers)
    ready = threading.Barrier(12)

    def ask(number: int) -> tuple[int, Any]:
        mine = app.test_client()
        ready.wait(60)
        if number % 2:
            answer = mine.post(f"{AGENT}/line", json={"phone_number": NUMBER}, headers=headers)
        else:
            wish = {"phone_number": NUMBER, "workflow_id": 1}
            answer = mine.post(INITIATE, json=wish, headers=headers)
        return answer.status_code, answer.get_json()

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(ask, range(12)))
    assert sorted(status for status, _ in answers) == [200] * 3 + [429] * 9
    assert all(answer == BUSY for answer in answers if answer[0] == 429)
    assert in_progress(app) == 3
    assert client.get(f"{API}/workflow/1/runs", headers=headers).get_json()["total_count"] == 3
    app.extensions["voiceapi"].close()


def test_a_call_that_is_over_makes_room(
    tmp_path: Path, database_at: Callable[..., str], talk: Callable[..., Any], wait_for: Any
) -> None:
    settings = {
        "VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"),
        "VOICEAPI_API_KEY": "test-key-0123456789",
        "VOICEAPI_CONCURRENT_CALLS": 1,
    }
    app = create_app(settings)
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = "test-key-0123456789"
    body = {"name": "x", "workflow_definition": talk("line")}
    client.post(f"{API}/workflow/create/definition", json=body)
    for _ in range(5):
        assert client.post(f"{AGENT}/line", json={"phone_number": NUMBER}).status_code == 200
        wait_for(lambda: in_progress(app) == 0)
    app.extensions["voiceapi"].close()


# -- the simulator's numbers and callees


@pytest.mark.parametrize(
    ("number", "disposition", "heard", "tags", "lines"),
    [
        ("+12025550101", "busy", ["ringing", "busy"], ["not_connected", "telephony_busy"], 0),
        ("+12025550102", "no-answer", ["ringing", "no-answer"], ["not_connected", "telephony_no-answer"], 0),
        ("+12025550103", "failed", ["ringing", "failed"], ["not_connected", "telephony_failed"], 0),
        ("+12025550104", "voicemail_detected", ["ringing", "in-progress", "completed"], ["voicemail_detected"], 0),
        ("+1 202 555 0105", "user_hangup", ["ringing", "in-progress", "completed"], ["user_hangup"], 1),
    ],
)
def test_numbers_with_a_meaning(
    client: FlaskClient,
    workflow: Callable[..., Any],
    call: Callable[..., Any],
    number: str,
    disposition: str,
    heard: list[str],
    tags: list[str],
    lines: int,
) -> None:
    workflow(path="line")
    run = call("line", number)
    assert (statuses(run), said(run)) == (heard, [HELLO][:lines])
    gathered = run["gathered_context"]
    assert (gathered["call_disposition"], gathered["mapped_call_disposition"]) == (disposition, disposition)
    assert gathered["call_tags"] == tags
    seconds = run["usage_info"]["call_duration_seconds"]
    assert (seconds > 0) == bool(lines), seconds
    used = client.get(f"{API}/organizations/usage/runs").get_json()["runs"][0]
    assert (used["disposition"], used["call_duration_seconds"]) == (disposition, round(seconds))
    assert (run["public_access_token"] is not None) == bool(lines)


@pytest.mark.parametrize(
    ("lines", "disposition", "spoken"),
    [
        (["No, thanks"], "user_qualified", [HELLO, "No, thanks", "Sorry, goodbye."]),
        ([], "user_hangup", [HELLO]),
        (["hm"], "user_hangup", [HELLO, "hm", f"Sorry, I didn't get that. {HELLO} Please say yes or no."]),
        (
            ["", " "],
            "user_idle_max_duration_exceeded",
            [HELLO, f"Are you still there? {HELLO}", "I can't hear you, so I'll end the call here. Goodbye."],
        ),
        (
            ["", "yes", "never said"],
            "user_qualified",
            [HELLO, f"Are you still there? {HELLO}", "yes", "Great, goodbye."],
        ),
    ],
)
def test_the_lines_of_a_callee(
    workflow: Callable[..., Any], call: Callable[..., Any], lines: list[str], disposition: str, spoken: list[str]
) -> None:
    workflow(path="line")
    run = call("line", initial_context={"simulated_callee": lines})
    assert (said(run), run["gathered_context"]["call_disposition"]) == (spoken, disposition)


@pytest.mark.parametrize(
    ("line", "disposition"),
    [("You have reached the voicemail of Ann.", "voicemail_detected"), ("Yes, it is.", "user_qualified")],
)
def test_an_answering_machine_is_detected_by_its_greeting(
    client: FlaskClient, workflow: Callable[..., Any], call: Callable[..., Any], line: str, disposition: str
) -> None:
    made = workflow(path="line")
    configured = {"workflow_configurations": {"voicemail_detection": {"enabled": True}}}
    assert client.put(f"{API}/workflow/{made['id']}", json=configured).status_code == 200
    assert client.post(f"{API}/workflow/{made['id']}/publish").status_code == 200
    run = call("line", initial_context={"simulated_callee": [line]})
    assert run["gathered_context"]["call_disposition"] == disposition


@pytest.mark.parametrize("lines", ["yes", {}, 3, ["yes", 3], [None], [["yes"]]])
def test_lines_that_are_no_texts(
    client: FlaskClient, workflow: Callable[..., Any], trigger: Callable[..., Any], lines: Any
) -> None:
    workflow(path="line")
    error = 'initial_context.simulated_callee must be a list of texts, the callee\'s lines; keys are {"keys": "12"}.'
    found = trigger("line", initial_context={"simulated_callee": lines})
    assert found == (400, {"detail": f"Failed to initiate call: {error}"})
    run = client.get(f"{API}/workflow/1/runs/1").get_json()
    assert (run["is_completed"], run["gathered_context"]["error"], statuses(run)) == (True, error, [])
    assert trigger("line", initial_context={"simulated_callee": None})[0] == 200


class Patient(Scripted):
    """The scripted model, which never gives up here."""

    def reply(self, ask: AskModel) -> ModelReplied:
        return replace(super().reply(ask), end_reason="")


def test_a_call_without_end_is_ended(
    app: Flask, workflow: Callable[..., Any], call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the callee, who says no more than MOST_TURNS lines; fewer here, so that the test takes no seconds."""
    monkeypatch.setattr(simulator, "MOST_TURNS", 15)
    object.__setattr__(app.extensions["voiceapi"], "model", Patient())
    workflow(path="line")
    run = call("line", initial_context={"simulated_callee": ["hm"] * 1000})
    assert run["gathered_context"]["call_disposition"] == "user_hangup"
    assert said(run).count("hm") == 15


# -- a call initiated by hand


def test_initiate_a_call(client: FlaskClient, workflow: Callable[..., Any], talk: Any, finished: Any) -> None:
    workflow(path="line")
    body = {
        "workflow_definition": talk("line", greeting="Draft."),
        "template_context_variables": {"a": 1, "provider": 2},
    }
    client.put(f"{API}/workflow/1", json=body)
    client.put(f"{API}/workflow/1/status", json={"status": "archived"})
    answer = client.post(INITIATE, json={"workflow_id": 1, "phone_number": NUMBER})
    name = answer.get_json()["workflow_run_name"]
    assert (answer.status_code, answer.get_json()) == (
        200,
        {
            "message": f"Call initiated successfully with run name {name}",
            "status": "initiated",
            "workflow_run_id": 1,
            "workflow_run_name": name,
        },
    )
    assert re.fullmatch(r"WR-TEL-OUT-\d{8}", name)
    run = finished(1, 1)
    assert (run["name"], run["mode"], run["definition_id"], said(run)[0]) == (name, "simulator", 2, "Draft.")
    assert run["initial_context"] == {
        "a": 1,
        "phone_number": NUMBER,
        "called_number": NUMBER,
        "direction": "outbound",
        "provider": "simulator",
        "telephony_configuration_id": 1,
        "caller_number": CALLER,
    }
    assert set(run["gathered_context"]) >= {"provider", "call_id", "call_disposition"}
    assert "triggered_by" not in run["gathered_context"]


def test_the_test_number_of_the_organization(client: FlaskClient, workflow: Callable[..., Any], finished: Any) -> None:
    workflow(path="line")
    detail = "Phone number must be provided in request or set in organization preferences"
    for body in ({}, {"phone_number": None}, {"phone_number": ""}):
        answer = client.post(INITIATE, json={"workflow_id": 1, **body})
        assert (answer.status_code, answer.get_json()) == (400, {"detail": detail})
    client.put(f"{API}/organizations/preferences", json={"test_phone_number": "+12025550101"})
    assert client.post(INITIATE, json={"workflow_id": 1}).status_code == 200
    assert finished(1, 1)["gathered_context"]["call_disposition"] == "busy"


def test_a_prepared_run_is_called(client: FlaskClient, workflow: Callable[..., Any], finished: Any) -> None:
    workflow(path="line")
    client.put(f"{API}/workflow/1", json={"template_context_variables": {"a": 1}})
    prepared = client.post(f"{API}/workflow/1/runs", json={"mode": "twilio", "name": "Mine"}).get_json()
    client.put(f"{API}/workflow/1", json={"template_context_variables": {"a": 2}})
    body = {"workflow_id": 1, "workflow_run_id": prepared["id"], "phone_number": NUMBER}
    answer = client.post(INITIATE, json=body)
    assert answer.get_json() == {
        "message": "Call initiated successfully with run name Mine",
        "status": "initiated",
        "workflow_run_id": prepared["id"],
        "workflow_run_name": "Mine",
    }
    run = finished(1, prepared["id"])
    assert (run["name"], run["mode"], run["initial_context"]["a"]) == ("Mine", "simulator", 1)
    answer = client.post(INITIATE, json=body)
    assert (answer.status_code, answer.get_json()) == (409, {"detail": "Workflow run already has an active call"})
    assert client.get(f"{API}/workflow/1/runs").get_json()["total_count"] == 1


def test_a_prepared_run_is_called_once(client: FlaskClient, workflow: Callable[..., Any], finished: Any) -> None:
    workflow(path="line")
    client.post(f"{API}/workflow/1/runs", json={"mode": "twilio", "name": "Mine"})
    ready = threading.Barrier(8)

    def ask(_: int) -> int:
        mine = client.application.test_client()
        body = {"workflow_id": 1, "workflow_run_id": 1, "phone_number": NUMBER}
        ready.wait(60)
        return mine.post(INITIATE, json=body, headers={"X-API-Key": "test-key-0123456789"}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(ask, range(8))) == [200] + [409] * 7
    assert statuses(finished(1, 1)).count("ringing") == 1


def test_what_can_not_be_initiated(
    client: FlaskClient,
    stranger: FlaskClient,
    workflow: Callable[..., Any],
    talk: Callable[..., Any],
    finished: Callable[..., Any],
) -> None:
    workflow(path="line")
    workflow(prompt="")
    client.post(f"{API}/workflow/2/runs", json={"mode": "twilio", "name": "Other's"})
    client.post(f"{API}/workflow/1/runs", json={"mode": "textchat", "name": "Chat"})
    theirs = {"name": "x", "workflow_definition": talk()}
    stranger.post(f"{API}/workflow/create/definition", json=theirs)
    stranger.post(f"{API}/workflow/3/runs", json={"mode": "twilio", "name": "Theirs"})
    first = client.post(f"{API}/workflow/2/validate").get_json()["errors"][0]["message"]
    rows: list[tuple[Any, int, Any]] = [
        ({"telephony_configuration_id": 99, "phone_number": ""}, 400, "telephony_configuration_not_found"),
        ({"telephony_configuration_id": 2}, 400, "telephony_configuration_not_found"),
        (
            {"phone_number": "", "workflow_id": 99},
            400,
            "Phone number must be provided in request or set in organization preferences",
        ),
        ({"workflow_id": 99, "from_phone_number_id": 99}, 404, "Workflow not found"),
        ({"workflow_id": 3}, 404, "Workflow not found"),
        ({"from_phone_number_id": 99, "workflow_run_id": 99}, 400, "from_phone_number_not_found"),
        ({"from_phone_number_id": 2}, 400, "from_phone_number_not_found"),
        ({"workflow_run_id": 99}, 400, "Workflow run not found"),
        ({"workflow_run_id": 3}, 400, "Workflow run not found"),
        ({"workflow_run_id": 1}, 400, "workflow_run_workflow_mismatch"),
        ({"workflow_run_id": 2}, 409, "Workflow run already has an active call"),
        ({"workflow_id": 2}, 422, f"The workflow can't be run: {first} (node 1 data.prompt)"),
    ]
    for body, status, detail in rows:
        answer = client.post(INITIATE, json={"workflow_id": 1, "phone_number": NUMBER, **body})
        assert (answer.status_code, answer.get_json()) == (status, {"detail": detail}), body
    assert client.get(f"{API}/workflow/1/runs").get_json()["total_count"] == 1
    with client.application.extensions["voiceapi"].store.session():
        PhoneNumber.delete().execute()
        TelephonyConfiguration.delete().execute()
    answer = client.post(INITIATE, json={"workflow_id": 99})
    assert (answer.status_code, answer.get_json()) == (400, {"detail": "telephony_not_configured"})


def test_initiate_with_a_faulty_body(shared: FlaskClient, bare: FlaskClient) -> None:
    items = [
        {"loc": ["body", "workflow_id"], "msg": "Field required", "type": "missing"},
        {"loc": ["body", "phone_number"], "msg": "Input should be a valid string", "type": "string_type"},
    ]
    answer = shared.post(INITIATE, json={"phone_number": 5})
    assert (answer.status_code, answer.get_json()) == (422, {"detail": items})
    assert bare.post(INITIATE, json={"phone_number": 5}).status_code == 401


# -- what the greeting needs and the request lacks


def lacking(answer: Any) -> list[str]:
    """The names in the Warning header about missing variables."""
    assert answer.status_code == 200, answer.text
    begin = '199 voiceapi "variables that the greeting needs and initial_context lacks: '
    found = [each for each in answer.headers.getlist("Warning") if each.startswith(begin)]
    return found[0].removeprefix(begin).removesuffix('"').split(", ") if found else []


@pytest.mark.parametrize(
    ("start", "context", "missing"),
    [
        ({"greeting": "Hello {{first_name}}, of {{town}}!"}, {}, ["first_name", "town"]),
        ({"greeting": "Hello {{first_name}}, {{first_name}}!"}, {"first_name": None}, ["first_name"]),
        ({"greeting": "Hello {{first_name}}!"}, {"first_name": " "}, ["first_name"]),
        ({"greeting": "Hello {{first_name}}!"}, {"first_name": "Ann"}, []),
        ({"greeting": "Hello {{first_name | there}}!"}, {}, []),
        ({"greeting": "You owe {{debt}}."}, {"debt": 0}, []),
        ({"greeting": "Hello {{who.name}}, {{initial_context.town}}!"}, {"who": {"name": "Ann"}, "town": "York"}, []),
        ({"greeting": "Hello {{who.name}}!"}, {"who": {}}, ["who.name"]),
        ({"greeting": "It is {{current_time}}, {{caller_number}} calls {{called_number}}, {{campaign_id}}."}, {}, []),
        ({"greeting": "Hello! {{gathered_context.name}}"}, {}, []),
        # Without a greeting the prompt is what is said first; with one, a model may do without.
        ({"greeting": "", "prompt": "Greet {{first_name}}."}, {}, ["first_name"]),
        ({"greeting": "", "scripted_text": "Is it {{name}}?"}, {}, ["name"]),
        ({"greeting": "Hello!", "prompt": "Greet {{first_name}}.", "scripted_text": "Is it {{name}}?"}, {}, []),
        ({"greeting": "Hi {{a}}!"}, {"greeting_override": {"type": "text", "text": "Hi {{b}}!"}}, ["b"]),
        ({"greeting": "Hi {{" + "ü" * 120 + "}}!"}, {}, ["%C3%BC" * 100]),
        (
            {"greeting": "".join("{{v" + str(number) + "}}" for number in range(12))},
            {},
            [f"v{each}" for each in range(10)],
        ),
    ],
)
def test_the_variables_that_the_greeting_needs_are_named(
    client: FlaskClient, workflow: Callable[..., Any], start: Any, context: Any, missing: list[str]
) -> None:
    workflow(path="line", **start)
    body = {"phone_number": NUMBER, "initial_context": context}
    assert lacking(client.post(f"{AGENT}/line", json=body)) == missing


@pytest.mark.parametrize(
    ("fetch", "missing"),
    [
        ({"pre_call_fetch_mode": "always"}, []),
        ({"pre_call_fetch_mode": "outbound"}, []),
        ({"pre_call_fetch_enabled": True}, []),
        ({"pre_call_fetch_mode": "inbound"}, ["first_name"]),
        ({"pre_call_fetch_mode": "disabled"}, ["first_name"]),
    ],
)
def test_what_a_fetch_may_bring_is_not_missing(
    client: FlaskClient, workflow: Callable[..., Any], fetch: Any, missing: list[str]
) -> None:
    start = {"pre_call_fetch_url": "http://127.0.0.1:9/", "greeting": "Hello {{first_name}}!", **fetch}
    workflow(path="line", **start)
    assert lacking(client.post(f"{AGENT}/line", json={"phone_number": NUMBER})) == missing


def test_a_call_by_hand_and_a_test_call_use_the_workflows_own_variables(
    client: FlaskClient, workflow: Callable[..., Any]
) -> None:
    made = workflow(path="line", greeting="Hello {{first_name}}, of {{town}}!")
    url, body = f"{API}/workflow/{made['id']}", {"phone_number": NUMBER}
    assert client.put(url, json={"template_context_variables": {"first_name": "Ann"}}).status_code == 200
    assert lacking(client.post(INITIATE, json={"workflow_id": made["id"], **body})) == ["town"]
    assert lacking(client.post(f"{AGENT}/test/line", json=body)) == ["town"]
    answer = client.post(f"{AGENT}/line", json={**body, "colour": "red"})
    assert lacking(answer) == ["first_name", "town"]
    assert '199 voiceapi "fields not known here and passed over: colour"' in answer.headers.getlist("Warning")
