from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.store import runs
from voiceapi.store.campaigns import Campaign
from voiceapi.store.workflows import Workflow
from voiceapi.workflows.templates import definition

API = "/api/v1"
CREATE = f"{API}/campaign/create"
CONTACTS = b"phone_number,name\n+12025550101,Ann\n+12025550102,Bob\n"
RETRY = {
    "enabled": True,
    "max_retries": 2,
    "retry_delay_seconds": 120,
    "retry_on_busy": True,
    "retry_on_no_answer": True,
    "retry_on_voicemail": True,
}
BREAKER = {"enabled": True, "failure_threshold": 0.5, "window_seconds": 120, "min_calls_in_window": 5}
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")


def upload(client: FlaskClient, content: bytes = CONTACTS) -> str:
    slot = client.post(f"{API}/s3/presigned-upload-url", json={"file_name": "list.csv", "file_size": 30}).get_json()
    url = urlsplit(slot["upload_url"]).path
    bare = client.application.test_client()
    assert bare.put(url, data=content, headers={"content-type": "text/csv"}).status_code == 200
    return str(slot["file_key"])


def workflow(client: FlaskClient, prompt: str = "Be kind.", greeting: str = "Hello.", speech: str = "") -> int:
    """A released workflow that says these things."""
    graph = definition("outbound", "a reminder", "remind them")
    graph["nodes"][0]["data"]["prompt"] = prompt
    graph["nodes"][1]["data"]["greeting"] = greeting
    graph["edges"][0]["data"]["transition_speech"] = speech
    answer = client.post(f"{API}/workflow/create/definition", json={"name": "Reminder", "workflow_definition": graph})
    return int(answer.get_json()["id"])


@pytest.fixture
def create(client: FlaskClient) -> Callable[..., Any]:
    """Ask for a campaign: a good one, but for what a test changes; a value of ... leaves the member out."""

    def ask(**change: Any) -> Any:
        body = {"name": "Spring", "source_type": "csv", **change}
        for name, make in (("workflow_id", workflow), ("source_id", upload)):
            if name not in body:
                body[name] = make(client)
        return client.post(CREATE, json={name: value for name, value in body.items() if value is not ...})

    return ask


def made(create: Callable[..., Any], **change: Any) -> dict[str, Any]:
    answer = create(**change)
    assert answer.status_code == 200, answer.get_json()
    return dict(answer.get_json())


def test_a_campaign_waits_for_its_start(client: FlaskClient, create: Callable[..., Any]) -> None:
    workflow_id, key = workflow(client), upload(client)
    campaign = made(create, workflow_id=workflow_id, source_id=key)
    assert INSTANT.fullmatch(campaign["created_at"])
    assert campaign == {
        "id": 1,
        "name": "Spring",
        "workflow_id": workflow_id,
        "workflow_name": "Reminder",
        "state": "created",
        "source_type": "csv",
        "source_id": key,
        "phone_number_column": None,
        "contacts_to_call": 2,
        "total_rows": None,
        "processed_rows": 0,
        "failed_rows": 0,
        "created_at": campaign["created_at"],
        "started_at": None,
        "completed_at": None,
        "retry_config": RETRY,
        "max_concurrency": None,
        "schedule_config": None,
        "circuit_breaker": BREAKER,
        "executed_count": 0,
        "total_queued_count": 0,
        "parent_campaign_id": None,
        "redialed_campaign_id": None,
        "telephony_configuration_id": 1,
        "telephony_configuration_name": "Simulator",
        "logs": [],
        "calling_hours": None,
        "max_attempts_per_day": None,
    }
    assert client.get(f"{API}/campaign/1").get_json() == campaign


def test_campaigns_are_listed_newest_first(client: FlaskClient, stranger: FlaskClient, create: Any) -> None:
    assert client.get(f"{API}/campaign/").get_json() == {"campaigns": []}
    first, second = made(create, name="first"), made(create, name="second")
    assert client.get(f"{API}/campaign/").get_json() == {"campaigns": [second, first]}
    assert stranger.get(f"{API}/campaign/").get_json() == {"campaigns": []}


MONDAY = {"day_of_week": 0, "start_time": "09:00", "end_time": "17:00"}
NIGHT = {"day_of_week": 4, "start_time": "22:00", "end_time": "06:00"}
BERLIN = {"enabled": True, "timezone": "Europe/Berlin", "slots": [MONDAY, NIGHT]}
GUIDES = {
    "timezone": "Europe/Berlin",
    "time_slots": [
        {"day": "monday", "start": "09:00", "end": "17:00"},
        {"day": "Friday", "start": "22:00", "end": "06:00"},
    ],
}
SETTINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"retry_config": None}, {"retry_config": RETRY}),
    ({"retry_config": {}}, {"retry_config": RETRY}),
    ({"retry_config": {"enabled": False}}, {"retry_config": {**RETRY, "enabled": False}}),
    ({"retry_config": {"max_retries": 0}}, {"retry_config": {**RETRY, "max_retries": 0}}),
    (
        {"retry_config": {"max_attempts": 3, "retry_interval_minutes": 60}},
        {"retry_config": {**RETRY, "max_retries": 2, "retry_delay_seconds": 3600}},
    ),
    ({"retry_config": {"max_attempts": 1}}, {"retry_config": {**RETRY, "max_retries": 0}}),
    (
        {"retry_config": {"retry_delay_seconds": 604800, "retry_on_busy": False}},
        {"retry_config": {**RETRY, "retry_delay_seconds": 604800, "retry_on_busy": False}},
    ),
    (
        {"retry_config": {"retry_interval_minutes": 10080}},
        {"retry_config": {**RETRY, "retry_delay_seconds": 604800}},
    ),
    ({"circuit_breaker": None}, {"circuit_breaker": BREAKER}),
    ({"circuit_breaker": {}}, {"circuit_breaker": BREAKER}),
    (
        {"circuit_breaker": {"enabled": False, "failure_threshold": 1}},
        {"circuit_breaker": {**BREAKER, "enabled": False, "failure_threshold": 1.0}},
    ),
    ({"schedule_config": BERLIN}, {"schedule_config": BERLIN}),
    (
        {"schedule_config": {"slots": [MONDAY], "enabled": False}},
        {"schedule_config": {"enabled": False, "timezone": "UTC", "slots": [MONDAY]}},
    ),
    (
        {"schedule_config": {"slots": [{**MONDAY, "end_time": "24:00"}]}},
        {"schedule_config": {"enabled": True, "timezone": "UTC", "slots": [{**MONDAY, "end_time": "24:00"}]}},
    ),
    (GUIDES, {"schedule_config": BERLIN}),
    (
        {"time_slots": GUIDES["time_slots"][:1]},
        {"schedule_config": {"enabled": True, "timezone": "UTC", "slots": [MONDAY]}},
    ),
    ({"max_concurrency": 10}, {"max_concurrency": 10}),
]


@pytest.mark.parametrize(("sent", "shown"), SETTINGS)
def test_settings_are_shown_as_they_will_run(create: Callable[..., Any], sent: Any, shown: Any) -> None:
    campaign = made(create, **sent)
    assert {name: campaign[name] for name in shown} == shown


def rule(loc: list[Any], text: str) -> dict[str, Any]:
    return {"loc": ["body", *loc], "msg": f"Value error, {text}", "type": "value_error"}


def item(loc: list[Any], msg: str, type: str) -> dict[str, Any]:
    return {"loc": ["body", *loc], "msg": msg, "type": type}


def slots(**change: Any) -> dict[str, Any]:
    return {"schedule_config": {"slots": [MONDAY, {**MONDAY, **change}]}}


SLOT = ["schedule_config", "slots", 1]
FAULTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"retry_config": {"retry_delay_seconds": 29}},
        item(
            ["retry_config", "retry_delay_seconds"], "Input should be greater than or equal to 30", "greater_than_equal"
        ),
    ),
    (
        {"retry_config": {"retry_delay_seconds": 604801}},
        item(
            ["retry_config", "retry_delay_seconds"], "Input should be less than or equal to 604800", "less_than_equal"
        ),
    ),
    (
        {"retry_config": {"max_attempts": 0}},
        item(["retry_config", "max_attempts"], "Input should be greater than or equal to 1", "greater_than_equal"),
    ),
    (
        {"retry_config": {"max_attempts": 3, "max_retries": 2}},
        rule(["retry_config", "max_attempts"], "give either max_retries or max_attempts"),
    ),
    (
        {"circuit_breaker": {"failure_threshold": 1.1}},
        item(["circuit_breaker", "failure_threshold"], "Input should be less than or equal to 1", "less_than_equal"),
    ),
    ({"schedule_config": {}}, item(["schedule_config", "slots"], "Field required", "missing")),
    (
        {"schedule_config": {"slots": []}},
        item(["schedule_config", "slots"], "List should have at least 1 item after validation, not 0", "too_short"),
    ),
    (
        {"schedule_config": {"slots": [MONDAY], "timezone": "Mars/Base"}},
        rule(["schedule_config", "timezone"], "Invalid timezone: Mars/Base"),
    ),
    (
        {"schedule_config": {"slots": [MONDAY], "timezone": "../etc/passwd"}},
        rule(["schedule_config", "timezone"], "Invalid timezone: ../etc/passwd"),
    ),
    (
        {"schedule_config": {"slots": [MONDAY], "timezone": ""}},
        rule(["schedule_config", "timezone"], "Invalid timezone: "),
    ),
    (
        slots(end_time="09:00"),
        rule(SLOT, "start_time and end_time must differ, or nobody is ever called"),
    ),
    (slots(end_time="99:99"), rule(SLOT, "99:99 is not a time of day")),
    (slots(start_time="24:00"), rule(SLOT, "24:00 is not a time of day")),
    (
        slots(start_time="9:00"),
        item([*SLOT, "start_time"], r"String should match pattern '^\d{2}:\d{2}$'", "string_pattern_mismatch"),
    ),
    (
        slots(day_of_week=7),
        item([*SLOT, "day_of_week"], "Input should be less than or equal to 6", "less_than_equal"),
    ),
    (
        {**GUIDES, "timezone": "Mars/Base"},
        rule(["timezone"], "Invalid timezone: Mars/Base"),
    ),
    (
        {"time_slots": [{"day": "someday", "start": "09:00", "end": "17:00"}]},
        item(
            ["time_slots", 0, "day"],
            "Input should be 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday' or 'sunday'",
            "enum",
        ),
    ),
    (
        {"time_slots": [{"day": "monday", "start": "09:00", "end": "09:00"}]},
        rule(["time_slots", 0], "start_time and end_time must differ, or nobody is ever called"),
    ),
    ({"time_slots": []}, item(["time_slots"], "List should have at least 1 item after validation, not 0", "too_short")),
    ({**GUIDES, "schedule_config": BERLIN}, rule(["time_slots"], "give either schedule_config or time_slots")),
    (
        {"timezone": "Europe/Berlin"},
        rule(["timezone"], "timezone goes with time_slots; schedule_config has a timezone of its own"),
    ),
    (
        {"max_concurrency": 0},
        item(["max_concurrency"], "Input should be greater than or equal to 1", "greater_than_equal"),
    ),
    (
        {"max_concurrency": 101},
        item(["max_concurrency"], "Input should be less than or equal to 100", "less_than_equal"),
    ),
]


@pytest.mark.parametrize(("sent", "fault"), FAULTS)
def test_a_wrong_setting_is_named(create: Callable[..., Any], sent: Any, fault: Any) -> None:
    answer = create(workflow_id=1, source_id="x", **sent)
    assert (answer.status_code, answer.get_json()) == (422, {"detail": [fault]})


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        ({"name": ""}, item(["name"], "String should have at least 1 character", "string_too_short")),
        ({"name": "x" * 256}, item(["name"], "String should have at most 255 characters", "string_too_long")),
        (
            {"source_type": "xls"},
            item(["source_type"], "String should match pattern '^csv$'", "string_pattern_mismatch"),
        ),
        ({"source_id": ...}, item(["source_id"], "Field required", "missing")),
    ],
)
def test_what_a_campaign_needs(create: Callable[..., Any], sent: Any, fault: Any) -> None:
    answer = create(**{"workflow_id": 1, "source_id": "x", **sent})
    assert (answer.status_code, answer.get_json()) == (422, {"detail": [fault]})


def test_all_errors_in_one_answer(client: FlaskClient) -> None:
    answer = client.post(CREATE, json={})
    names = ("name", "workflow_id", "source_type", "source_id")
    assert answer.get_json() == {"detail": [item([name], "Field required", "missing") for name in names]}


@pytest.mark.parametrize(("method", "path"), [("POST", "/create"), ("GET", "/"), ("GET", "/1"), ("PATCH", "/1")])
def test_a_key_is_needed(bare: FlaskClient, method: str, path: str) -> None:
    answer = bare.open(f"{API}/campaign{path}", method=method, json={})
    assert (answer.status_code, answer.get_json()) == (401, {"detail": "Authorization header required"})


def test_the_workflow_must_be_ones_own(stranger: FlaskClient, create: Callable[..., Any]) -> None:
    for workflow_id in (99, workflow(stranger)):
        answer = create(workflow_id=workflow_id, source_id="nowhere")
        assert (answer.status_code, answer.get_json()) == (404, {"detail": "Workflow not found"})


def test_the_contact_list_must_be_ones_own(stranger: FlaskClient, create: Callable[..., Any]) -> None:
    for key in ("campaigns/1/nowhere.csv", upload(stranger)):
        answer = create(source_id=key)
        assert (answer.status_code, answer.get_json()) == (400, {"detail": f"Failed to access CSV file: {key}"})


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"\0", "Invalid CSV format: the file is not text; save it as CSV in UTF-8"),
        (b"phone_number\n", "CSV file must have a header row and at least one data row"),
        (
            b"name\nAnn\n",
            "Source must contain a 'phone_number' column. It has 'name'. Rename the one with the numbers, or name it "
            "in phone_number_column.",
        ),
    ],
)
def test_what_is_no_contact_list_is_refused(
    client: FlaskClient, create: Callable[..., Any], content: bytes, detail: str
) -> None:
    answer = create(source_id=upload(client, content))
    assert (answer.status_code, answer.get_json()) == (400, {"detail": detail})


def test_rows_that_cannot_be_dialed_refuse_no_list(client: FlaskClient, create: Callable[..., Any]) -> None:
    content = b'phone_number,name\n2025550101,Ann\n,Bob\n+12025550101,Cy\n+12025550101,Cy\nnone,\n+1,"x"y\n'
    workflow_id = workflow(client, prompt="Talk to {{name}}.")
    assert made(create, workflow_id=workflow_id, source_id=upload(client, content))["state"] == "created"


NEEDED = "Add the missing columns or remove them from the workflow."
FILLED = "All template variables used in the workflow must have values in every row."


@pytest.mark.parametrize(
    ("said", "content", "detail"),
    [
        (
            {"prompt": "{{name}} {{town}}", "greeting": "{{age}}"},
            CONTACTS,
            "Workflow uses template variables that are missing from the source data: 'age', 'town'. " + NEEDED,
        ),
        (
            {"speech": "Bye, {{town}}"},
            CONTACTS,
            "Workflow uses template variables that are missing from the source data: 'town'. " + NEEDED,
        ),
        (
            {"prompt": "{{name}}"},
            b"phone_number,name\n+12025550101,Ann\n+12025550102, \n+12025550103\n",
            "Template variable 'name' is empty in rows: 2, 3. " + FILLED,
        ),
        (
            {"prompt": "{{name}}"},
            b"phone_number,name\n" + b"".join(b"+120255501%02d,\n" % number for number in range(7)),
            "Template variable 'name' is empty in rows: 1, 2, 3, 4, 5 and 2 more. " + FILLED,
        ),
    ],
)
def test_the_list_must_bring_what_the_workflow_says(
    client: FlaskClient, create: Callable[..., Any], said: dict[str, str], content: bytes, detail: str
) -> None:
    answer = create(workflow_id=workflow(client, **said), source_id=upload(client, content))
    assert (answer.status_code, answer.get_json()) == (400, {"detail": detail})


@pytest.mark.parametrize(
    "prompt",
    [
        "{{name}} {{phone_number}}",
        "{{caller_number}} {{campaign_id}}",
        "{{current_time}} {{current_weekday_Europe/Berlin}}",
        "{{town | Berlin}} {{account.id}}",
    ],
)
def test_some_variables_need_no_column(client: FlaskClient, create: Callable[..., Any], prompt: str) -> None:
    assert made(create, workflow_id=workflow(client, prompt))["state"] == "created"


def test_the_released_version_counts(client: FlaskClient, create: Callable[..., Any]) -> None:
    workflow_id = workflow(client)
    draft = definition("outbound", "x", "y")
    draft["nodes"][0]["data"]["prompt"] = "{{town}}"
    url = f"{API}/workflow/{workflow_id}"
    assert client.put(url, json={"workflow_definition": draft}).status_code == 200
    assert create(workflow_id=workflow_id).status_code == 200
    assert client.post(f"{url}/publish").status_code == 200
    assert create(workflow_id=workflow_id).status_code == 400


def test_a_released_definition_that_is_not_valid_asks_for_nothing(
    client: FlaskClient, create: Callable[..., Any]
) -> None:
    graph = {"nodes": [{"id": "1", "type": "agentNode", "data": {"name": "A", "prompt": "{{town}}"}}], "edges": []}
    answer = client.post(f"{API}/workflow/create/definition", json={"name": "W", "workflow_definition": graph})
    assert create(workflow_id=answer.get_json()["id"]).status_code == 200


def test_the_telephony_configuration_must_be_ones_own(
    client: FlaskClient, stranger: FlaskClient, create: Callable[..., Any]
) -> None:
    configs = f"{API}/organizations/telephony-configs"
    theirs = stranger.get(configs).get_json()["configurations"][0]["id"]
    missing = {"detail": "telephony_configuration_not_found"}
    for config_id in (99, theirs):
        answer = create(telephony_configuration_id=config_id)
        assert (answer.status_code, answer.get_json()) == (400, missing)
    assert client.delete(f"{configs}/1").status_code == 200
    answer = create()
    assert (answer.status_code, answer.get_json()) == (400, missing)


def test_a_configuration_without_numbers_is_refused_when_asked_for(
    client: FlaskClient, create: Callable[..., Any]
) -> None:
    config = {"provider": "twilio", "account_sid": "AC1", "auth_token": "secret"}
    body = {"name": "Second", "config": config, "is_default_outbound": False}
    answer = client.post(f"{API}/organizations/telephony-configs", json=body)
    answer = create(telephony_configuration_id=answer.get_json()["id"])
    assert answer.status_code == 400
    assert answer.get_json()["detail"].startswith("'Second' is not ready for outbound calls. ")
    assert made(create)["telephony_configuration_name"] == "Simulator"


TOO_MANY = {"detail": "max_concurrency (11) cannot exceed organization limit (10)"}


def test_concurrency_is_limited_by_the_organization(create: Callable[..., Any]) -> None:
    answer = create(max_concurrency=11)
    assert (answer.status_code, answer.get_json()) == (400, TOO_MANY)


def test_the_first_error_is_answered(client: FlaskClient, create: Callable[..., Any]) -> None:
    wrong: dict[str, Any] = {"telephony_configuration_id": 99, "max_concurrency": 11}
    repaired: tuple[dict[str, Any], ...] = (
        {"workflow_id": 99, "source_id": "nowhere"},
        {"workflow_id": workflow(client, "{{town}}"), "source_id": "nowhere"},
        {"workflow_id": workflow(client, "{{town}}")},
        {},
        {"telephony_configuration_id": None},
    )
    answers = [create(**{**wrong, **right}).get_json() for right in repaired]
    details = [answer["detail"].partition(":")[0] for answer in answers]
    assert details == [
        "Workflow not found",
        "Failed to access CSV file",
        "Workflow uses template variables that are missing from the source data",
        "telephony_configuration_not_found",
        TOO_MANY["detail"],
    ]


def test_a_list_in_use_stays_as_it_is(client: FlaskClient, bare: FlaskClient, create: Callable[..., Any]) -> None:
    slot = client.post(f"{API}/s3/presigned-upload-url", json={"file_name": "a.csv", "file_size": 1}).get_json()
    url = urlsplit(slot["upload_url"]).path
    assert bare.put(url, data=CONTACTS).status_code == 200
    made(create, source_id=slot["file_key"])
    answer = bare.put(url, data=b"other")
    assert (answer.status_code, answer.get_json()) == (
        409,
        {"detail": "The file is the source of a campaign and can't be replaced any more"},
    )
    made(create, source_id=slot["file_key"])


@pytest.mark.parametrize(("sent", "shown"), [*SETTINGS[4:8], *SETTINGS[10:], ({"name": "Autumn"}, {"name": "Autumn"})])
def test_an_update_replaces_what_it_names(
    client: FlaskClient, create: Callable[..., Any], sent: Any, shown: Any
) -> None:
    campaign = made(
        create,
        max_concurrency=3,
        retry_config={"max_retries": 7},
        circuit_breaker={"window_seconds": 30},
        schedule_config={"slots": [NIGHT]},
    )
    answer = client.patch(f"{API}/campaign/1", json=sent)
    assert (answer.status_code, answer.get_json()) == (200, {**campaign, **shown})
    assert client.get(f"{API}/campaign/1").get_json() == {**campaign, **shown}


def test_an_update_ignores_nulls(client: FlaskClient, create: Callable[..., Any]) -> None:
    campaign = made(create, max_concurrency=3, schedule_config=BERLIN)
    nulls = ("name", "retry_config", "max_concurrency", "schedule_config", "circuit_breaker", "timezone", "time_slots")
    for body in ({}, dict.fromkeys(nulls)):
        assert client.patch(f"{API}/campaign/1", json=body).get_json() == campaign


@pytest.mark.parametrize(
    ("sent", "status", "detail"),
    [
        ({"max_concurrency": 11}, 400, TOO_MANY["detail"]),
        *[(sent, 422, [fault]) for sent, fault in FAULTS],
    ],
)
def test_an_update_is_checked_like_a_new_campaign(
    client: FlaskClient, create: Callable[..., Any], sent: Any, status: int, detail: Any
) -> None:
    campaign = made(create)
    answer = client.patch(f"{API}/campaign/1", json=sent)
    assert (answer.status_code, answer.get_json()) == (status, {"detail": detail})
    assert client.get(f"{API}/campaign/1").get_json() == campaign


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize("state", ["created", "syncing", "running", "paused", "completed", "failed"])
def test_a_campaign_that_has_ended_stays_as_it_is(client: FlaskClient, create: Callable[..., Any], state: str) -> None:
    made(create)
    Campaign.update(state=state).execute()
    answer = client.patch(f"{API}/campaign/1", json={"name": "Autumn"})
    if state in ("completed", "failed"):
        assert (answer.status_code, answer.get_json()) == (400, {"detail": f"Cannot update a {state} campaign"})
    else:
        assert (answer.status_code, answer.get_json()["name"]) == (200, "Autumn")


def test_campaigns_of_others_are_not_there(stranger: FlaskClient, client: FlaskClient, create: Any) -> None:
    made(create)
    for answer in (
        stranger.get(f"{API}/campaign/1"),
        stranger.patch(f"{API}/campaign/1", json={"name": "mine"}),
        client.get(f"{API}/campaign/2"),
    ):
        assert (answer.status_code, answer.get_json()) == (404, {"detail": "Campaign not found"})
    answer = stranger.get(f"{API}/campaign/1/runs")
    assert (answer.status_code, answer.get_json()) == (404, {"detail": "Campaign 1 not found"})


@pytest.mark.usefixtures("db")
def test_the_runs_of_a_campaign(client: FlaskClient, create: Callable[..., Any]) -> None:
    workflow_id = made(create)["workflow_id"]
    url = f"{API}/campaign/1/runs"
    assert client.get(url).get_json() == {"runs": [], "total_count": 0, "page": 1, "limit": 50, "total_pages": 0}
    record = Workflow.get_by_id(workflow_id)
    runs.create(record, name="elsewhere", mode="simulator", token="0")
    for number in (1, 2, 3):
        state = "completed" if number == 1 else "running"
        columns = {"mode": "simulator", "token": str(number), "campaign": 1, "state": state}
        runs.create(record, name=f"WR-CAMPAIGN-1-{number}", **columns)
    page = client.get(url, query_string={"limit": 2}).get_json()
    names = [run.pop("name") for run in page.pop("runs")]
    assert names == ["WR-CAMPAIGN-1-3", "WR-CAMPAIGN-1-2"]
    assert page == {"total_count": 3, "page": 1, "limit": 2, "total_pages": 2}
    filters = '[{"attribute": "status", "value": {"status": "completed"}}]'
    page = client.get(url, query_string={"filters": filters, "sort_by": "id"}).get_json()
    assert [run["name"] for run in page["runs"]] == ["WR-CAMPAIGN-1-1"]
    shown = client.get(f"{API}/workflow/{workflow_id}/runs", query_string={"filters": filters}).get_json()
    assert page["runs"] == shown["runs"]


def test_what_a_new_campaign_starts_from(client: FlaskClient, create: Callable[..., Any]) -> None:
    url = f"{API}/organizations/campaign-defaults"
    start = {
        "concurrent_call_limit": 10,
        "from_numbers_count": 1,
        "default_retry_config": RETRY,
        "last_campaign_settings": None,
    }
    assert client.get(url).get_json() == start
    made(create)
    campaign = made(create, max_concurrency=3, schedule_config=BERLIN, retry_config={"max_retries": 1})
    settings = ("retry_config", "max_concurrency", "schedule_config", "circuit_breaker")
    last = {name: campaign[name] for name in settings}
    assert client.get(url).get_json() == {**start, "last_campaign_settings": last}


def test_without_telephony_there_is_no_number_to_call_from(client: FlaskClient) -> None:
    assert client.delete(f"{API}/organizations/telephony-configs/1").status_code == 200
    answer = client.get(f"{API}/organizations/campaign-defaults")
    assert answer.get_json()["from_numbers_count"] == 0


def test_concurrency_up_to_a_hundred_whatever_the_count_of_numbers(
    tmp_path: Path, database_at: Callable[..., str]
) -> None:
    app = create_app(
        {
            "VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"),
            "VOICEAPI_API_KEY": "test-key-0123456789",
            "VOICEAPI_CONCURRENT_CALLS": 500,
        }
    )
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = "test-key-0123456789"
    body = {"name": "n", "workflow_id": workflow(client), "source_type": "csv", "source_id": upload(client)}
    answer = client.post(CREATE, json={**body, "max_concurrency": 100})
    assert (answer.status_code, answer.get_json()["max_concurrency"]) == (200, 100)
    assert client.get(f"{API}/organizations/campaign-defaults").get_json()["concurrent_call_limit"] == 500
    app.extensions["voiceapi"].close()


def test_unknown_members_are_named_and_ignored(create: Callable[..., Any]) -> None:
    answer = create(colour="red", retry_config={"max_tries": 3})
    assert answer.status_code == 200
    assert answer.get_json()["retry_config"] == RETRY
    assert answer.headers["Warning"].endswith('"fields not known here and passed over: colour, max_tries"')
