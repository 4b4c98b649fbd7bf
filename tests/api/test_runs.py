from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.security import new_token
from voiceapi.store import run_lists
from voiceapi.store import runs as store
from voiceapi.store.database import write
from voiceapi.store.run_lists import ALL, View, completed
from voiceapi.store.runs import Run, RunEvent
from voiceapi.store.workflows import Workflow

API = "/api/v1"
USAGE = f"{API}/organizations/usage/runs"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NO_FILES: dict[str, None] = dict.fromkeys(
    (
        *("transcript_url", "recording_url", "user_recording_url", "bot_recording_url"),
        *("transcript_public_url", "recording_public_url", "user_recording_public_url", "bot_recording_public_url"),
        "public_access_token",
    )
)


@pytest.fixture
def store_run(app: Flask, workflow: Callable[..., dict[str, Any]]) -> Callable[..., int]:
    """Stores a run of one workflow (id 1), created so many hours after START; returns its id."""
    workflow()

    def make(hours: float = 0.0, workflow_id: int = 1, **columns: Any) -> int:
        with app.extensions["voiceapi"].store.session():
            values = {"name": "WR", "mode": "simulator", "token": new_token(), **columns}
            owner = Workflow.get_by_id(workflow_id)
            run = store.create(owner, created_at=START + timedelta(hours=hours), **values)
            return int(run.id)

    return make


def listed(client: FlaskClient, url: str = f"{API}/workflow/1/runs", **query: Any) -> dict[str, Any]:
    if "filters" in query:
        query["filters"] = json.dumps(query["filters"])
    answer = client.get(url, query_string=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.get_json())


def ids(page: dict[str, Any]) -> list[int]:
    return [run["id"] for run in page["runs"]]


# -- the listing of a workflow


def test_a_listing_without_runs(client: FlaskClient, workflow: Callable[..., Any]) -> None:
    found = workflow()["id"]
    assert listed(client, f"{API}/workflow/{found}/runs") == {
        "runs": [],
        "total_count": 0,
        "page": 1,
        "limit": 50,
        "total_pages": 0,
        "applied_filters": None,
    }


def test_a_run_in_the_listing(client: FlaskClient, store_run: Callable[..., int]) -> None:
    store_run(
        duration=61.5,
        state="completed",
        caller_number="+12025550199",
        called_number="+12025550123",
        disposition="user_qualified",
        has_transcript=True,
        initial_context={"a": 1},
        gathered_context={"b": [2]},
        llm_usage={"m": {"total_tokens": 3}},
    )
    store_run(hours=1, call_type="inbound", name="second")
    page = listed(client)
    assert {**page, "runs": None} == {
        "runs": None,
        "total_count": 2,
        "page": 1,
        "limit": 50,
        "total_pages": 1,
        "applied_filters": None,
    }
    assert page["runs"] == [
        {
            **NO_FILES,
            "id": 2,
            "workflow_id": 1,
            "name": "second",
            "mode": "simulator",
            "created_at": "2026-03-01T13:00:00Z",
            "is_completed": False,
            "is_test": False,
            "call_type": "inbound",
            "definition_id": None,
            "caller_number": None,
            "called_number": None,
            "call_duration_seconds": None,
            "disposition": None,
            "cost_info": None,
            "usage_info": None,
            "initial_context": {},
            "gathered_context": {},
            "logs": None,
            "annotations": None,
        },
        {
            **NO_FILES,
            "id": 1,
            "workflow_id": 1,
            "name": "WR",
            "mode": "simulator",
            "created_at": "2026-03-01T12:00:00Z",
            "is_completed": True,
            "is_test": False,
            "call_type": "outbound",
            "definition_id": None,
            "caller_number": "+12025550199",
            "called_number": "+12025550123",
            "call_duration_seconds": 62,
            "disposition": "user_qualified",
            "transcript_url": "transcripts/1.txt",
            "cost_info": {"dograh_token_usage": 0, "call_duration_seconds": 62},
            "usage_info": None,
            "initial_context": {"a": 1},
            "gathered_context": {"b": [2]},
            "logs": None,
            "annotations": None,
        },
    ]


@pytest.mark.parametrize(
    ("query", "numbers", "pages"),
    [
        ({}, [7, 6, 5, 4, 3, 2, 1], 1),
        ({"limit": 3}, [7, 6, 5], 3),
        ({"limit": 3, "page": 2}, [4, 3, 2], 3),
        ({"limit": 3, "page": 3}, [1], 3),
        ({"limit": 3, "page": 4}, [], 3),
        ({"limit": 100, "page": 2**62}, [], 1),
        ({"limit": "3.0", "page": " 1"}, [7, 6, 5], 3),
        ({"limit": 1, "page": 7}, [1], 7),
    ],
)
def test_pages(client: FlaskClient, store_run: Callable[..., int], query: Any, numbers: list[int], pages: int) -> None:
    for hour in range(7):
        store_run(hours=hour)
    page = listed(client, **query)
    assert (ids(page), page["total_count"], page["total_pages"]) == (numbers, 7, pages)


def test_of_a_repeated_parameter_the_last_counts(client: FlaskClient, store_run: Callable[..., int]) -> None:
    store_run()
    page = client.get(f"{API}/workflow/1/runs?limit=abc&limit=7&page=2&page=1").get_json()
    assert (page["limit"], page["page"], ids(page)) == (7, 1, [1])


def test_a_workflow_that_is_not_there_has_no_listing(
    client: FlaskClient, stranger: FlaskClient, store_run: Callable[..., int]
) -> None:
    store_run()
    for asked, path, text in (
        (client, "workflow/99/runs", "Workflow with id 99 not found"),
        (client, "workflow/99/report", "Workflow with id 99 not found"),
        (client, "workflow/99/runs/1", "Workflow run not found"),
        (client, "workflow/1/runs/99", "Workflow run not found"),
        (stranger, "workflow/1/runs", "Workflow with id 1 not found"),
        (stranger, "workflow/1/report", "Workflow with id 1 not found"),
        (stranger, "workflow/1/runs/1", "Workflow run not found"),
    ):
        answer = asked.get(f"{API}/{path}")
        assert (answer.status_code, answer.get_json()) == (404, {"detail": text}), path
    assert listed(stranger, USAGE)["runs"] == []


# -- order


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({"sort_by": "duration"}, [2, 5, 4, 3, 1]),
        ({"sort_by": "duration", "sort_order": "asc"}, [4, 5, 2, 1, 3]),
        ({"sort_by": "created_at"}, [1, 2, 3, 5, 4]),
        ({"sort_by": "created_at", "sort_order": "asc"}, [4, 5, 3, 2, 1]),
        ({"sort_by": "id"}, [5, 4, 3, 2, 1]),
        ({"sort_by": "id", "sort_order": "asc"}, [1, 2, 3, 4, 5]),
        ({"sort_by": "name"}, [3, 5, 2, 1, 4]),
        ({"sort_by": "name", "sort_order": "asc"}, [4, 1, 2, 5, 3]),
    ],
)
def test_orders(client: FlaskClient, store_run: Callable[..., int], query: Any, numbers: list[int]) -> None:
    """Runs without a duration come last both ways; of equals the newer one comes first when descending."""
    for hour, duration, name in ((9, None, "b"), (8, 30.0, "b"), (7, None, "d"), (1, 0.0, "a"), (1, 10.0, "c")):
        store_run(hours=hour, duration=duration, name=name)
    assert ids(listed(client, **query)) == numbers


@pytest.mark.parametrize("sort_by", ["created_at", "duration", "id", "name"])
@pytest.mark.parametrize("descending", [True, False])
def test_a_page_read_from_the_end_is_the_page_read_from_the_front(
    app: Flask, workflow: Callable[..., Any], sort_by: str, descending: bool
) -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")  # noqa: T201 - shown when the test fails
    chance = random.Random(seed)
    workflow()
    with app.extensions["voiceapi"].store.session():
        agent = Workflow.get_by_id(1)
        total = chance.randrange(20, 60)
        with write():
            for _ in range(total):
                store.create(
                    agent,
                    name=chance.choice("abc"),
                    mode="simulator",
                    token=new_token(),
                    created_at=START + timedelta(seconds=chance.randrange(5)),
                    duration=chance.choice([None, 0.0, 0.5, 1.0, 2.0]),
                )
        agent = Workflow.get_by_id(1)
        every = run_lists.of_workflow(agent, ALL, View(1, 1000, sort_by, descending))
        whole = [run.id for run in every.runs]
        assert sorted(whole) == list(range(1, total + 1))
        for limit in (1, 2, chance.randrange(3, 20)):
            for criteria in (ALL, completed(False)):
                read = [
                    run.id
                    for page in range(1, total // limit + 2)
                    for run in run_lists.of_workflow(agent, criteria, View(page, limit, sort_by, descending)).runs
                ]
                assert read == whole, limit


# -- filters

FILTERED: list[tuple[str, str, Any, list[int]]] = [
    ("dateRange", "dateRange", {"from": "2026-03-02"}, [4, 3]),
    ("dateRange", "dateRange", {"to": "2026-03-01"}, [2, 1]),
    ("dateRange", "dateRange", {"from": "2026-03-02", "to": "2026-03-02"}, [3]),
    ("dateRange", "dateRange", {"from": "2026-03-02", "to": " 2026-03-02 "}, [3]),
    ("dateRange", "dateRange", {"to": "2026-03-02T00:00:00"}, [2, 1]),
    ("dateRange", "dateRange", {"to": "2026-03-02T23:59:59.999999Z"}, [3, 2, 1]),
    ("dateRange", "dateRange", {"to": "2026-03-02T23:59:59.999998Z"}, [2, 1]),
    ("dateRange", "dateRange", {"from": "2026-03-02T01:59:59.996+02:00", "to": None}, [4, 3, 2]),
    ("dateRange", "dateRange", {"from": "", "to": ""}, [4, 3, 2, 1]),
    ("dateRange", "dateRange", {"from": "0001-01-01", "to": "9999-12-31"}, [4, 3, 2, 1]),
    ("dateRange", "dateRange", {}, [4, 3, 2, 1]),
    ("dispositionCode", "multiSelect", {"codes": ["busy", "user_hangup"]}, [3, 2]),
    ("dispositionCode", "multiSelect", {"codes": ["BUSY"]}, []),
    ("dispositionCode", "multiSelect", {"codes": []}, [4, 3, 2, 1]),
    ("duration", "numberRange", {"min": 10}, [3, 2]),
    ("duration", "numberRange", {"min": 10, "max": 10.0}, [2]),
    ("duration", "numberRange", {"max": "10"}, [2, 1]),
    ("duration", "numberRange", {}, [3, 2, 1]),
    ("status", "radio", {"status": "completed"}, [3, 2, 1]),
    ("status", "radio", {"status": "in_progress"}, [4]),
    ("tokenUsage", "numberRange", {"min": 0, "max": 5}, [4, 3, 2, 1]),
    ("tokenUsage", "numberRange", {"min": 1}, []),
]
FILTERED_USAGE: list[tuple[str, str, Any, list[int]]] = [
    *FILTERED,
    ("runId", "number", {"value": 3}, [3]),
    ("runId", "number", {"value": "3"}, [3]),
    ("workflowId", "number", {"value": 1}, [4, 3, 2, 1]),
    ("workflowId", "number", {"value": 2}, []),
    ("campaignId", "number", {"value": 1}, []),
    ("callerNumber", "text", {"value": " 0199 "}, [4, 3, 2, 1]),
    ("calledNumber", "text", {"value": "+12025550123"}, [1]),
    ("calledNumber", "text", {"value": "5550"}, [4, 3, 2, 1]),
    ("calledNumber", "text", {"value": "%"}, []),
    ("calledNumber", "text", {"value": "_"}, []),
    ("callDirection", "radio", {"status": "inbound"}, [4]),
    ("callDirection", "radio", {"status": "outbound"}, [3, 2, 1]),
    ("callChannel", "radio", {"status": "telephony"}, [2, 1]),
    ("callChannel", "radio", {"status": "web"}, [3]),
    ("callChannel", "radio", {"status": "chat"}, [4]),
    ("callTags", "tags", {"codes": ["vip"]}, [2, 1]),
    ("callTags", "multiSelect", {"codes": ["vip", 'a "b" \\ ü_%']}, [2]),
    ("callTags", "tags", {"codes": ["VIP"]}, []),
    ("callTags", "tags", {"codes": ["vi"]}, []),
    ("callTags", "tags", {"codes": []}, [4, 3, 2, 1]),
]


@pytest.fixture
def four_runs(store_run: Callable[..., int]) -> None:
    numbers = {"caller_number": "+12025550199"}
    tags: list[list[str]] = [["vip"], ["vip", 'a "b" \\ ü_%'], ["vip2"], []]
    for number, (hours, duration, disposition, mode) in enumerate(
        (
            (0, 0.0, None, "simulator"),
            (11.999999, 10.0, "busy", "twilio"),
            (35.99999999972, 99.0, "user_hangup", "smallwebrtc"),
            (36, None, None, "textchat"),
        ),
    ):
        store_run(
            hours=hours,
            duration=duration,
            disposition=disposition,
            mode=mode,
            state="completed" if number < 3 else "talking",
            call_type="outbound" if number < 3 else "inbound",
            called_number=f"+1202555012{3 + number}",
            gathered_context={"call_tags": tags[number]} if tags[number] else {},
            **numbers,
        )


@pytest.mark.usefixtures("four_runs")
def test_filters_of_a_workflows_runs(client: FlaskClient) -> None:
    for attribute, type, value, numbers in FILTERED:
        for criterion in (
            {"attribute": attribute, "value": value},
            {"attribute": attribute, "type": type, "value": value},
            {"attribute": attribute, "type": None, "value": value, "more": ["ü"]},
        ):
            page = listed(client, filters=[criterion])
            assert (ids(page), page["applied_filters"]) == (numbers, [criterion]), criterion
            assert (page["total_count"], page["total_pages"]) == (len(numbers), 1 if numbers else 0)


@pytest.mark.usefixtures("four_runs")
def test_filters_of_the_organizations_runs(client: FlaskClient) -> None:
    for attribute, type, value, numbers in FILTERED_USAGE:
        for criterion in (
            {"attribute": attribute, "value": value},
            {"attribute": attribute, "type": type, "value": value},
        ):
            assert ids(listed(client, USAGE, filters=[criterion])) == numbers, criterion


@pytest.mark.usefixtures("four_runs")
def test_all_filters_must_be_met(client: FlaskClient) -> None:
    both = [
        {"attribute": "duration", "value": {"min": 1}},
        {"attribute": "dateRange", "value": {"from": "2026-03-02", "to": "2026-03-03"}},
    ]
    page = listed(client, filters=both)
    assert (ids(page), page["applied_filters"]) == ([3], both)


@pytest.mark.parametrize("filters", ["", "  ", "[]", "[ ]"])
def test_no_filters(client: FlaskClient, store_run: Callable[..., int], filters: str) -> None:
    store_run()
    page = client.get(f"{API}/workflow/1/runs", query_string={"filters": filters}).get_json()
    assert (ids(page), page["applied_filters"]) == ([1], None)


OF_WORKFLOW = "'dateRange', 'dispositionCode', 'duration', 'status' or 'tokenUsage'"
Fault = tuple[list[Any], str, str]


def faulty(loc: list[Any], msg: str, type: str = "value_error") -> Fault:
    return loc, msg, type


@pytest.mark.parametrize(
    ("filters", "faults"),
    [
        ("zz", [faulty([0], "JSON decode error", "json_invalid")]),
        ('[{"a": NaN}]', [faulty([7], "JSON decode error", "json_invalid")]),
        ('[{"a": "NaN", "b": -Infinity}]', [faulty([19], "JSON decode error", "json_invalid")]),
        ("{}", [faulty([], "Input should be a valid list", "list_type")]),
        ('"text"', [faulty([], "Input should be a valid list", "list_type")]),
        ("null", [faulty([], "Input should be a valid list", "list_type")]),
        (
            "[1, null]",
            [
                faulty([0], "Input should be a valid dictionary", "dict_type"),
                faulty([1], "Input should be a valid dictionary", "dict_type"),
            ],
        ),
        ("[{}]", [faulty([0, "attribute"], "Field required", "missing")]),
        ('[{"attribute": "duration"}]', [faulty([0, "value"], "Field required", "missing")]),
        (
            '[{"attribute": "callerNumber", "value": {}}, {"attribute": null, "value": {}}]',
            [
                faulty([0, "attribute"], f"Input should be {OF_WORKFLOW}", "enum"),
                faulty([1, "attribute"], f"Input should be {OF_WORKFLOW}", "enum"),
            ],
        ),
        (
            '[{"attribute": "duration", "type": "text", "value": {}}]',
            [faulty([0, "type"], "Input should be 'numberRange'", "literal_error")],
        ),
        (
            '[{"attribute": "duration", "type": ["numberRange"], "value": {}}]',
            [faulty([0, "type"], "Input should be 'numberRange'", "literal_error")],
        ),
        (
            '[{"attribute": "duration", "value": []}]',
            [faulty([0, "value"], "Input should be a valid dictionary", "dict_type")],
        ),
        (
            '[{"attribute": "duration", "value": {"min": "x"}}]',
            [faulty([0, "value", "min"], "Input should be a valid number", "float_type")],
        ),
        (
            '[{"attribute": "tokenUsage", "value": {"max": true}}]',
            [faulty([0, "value", "max"], "Input should be a valid number", "float_type")],
        ),
        (
            '[{"attribute": "duration", "value": {"max": "nan"}}]',
            [faulty([0, "value", "max"], "Input should be a valid number", "float_type")],
        ),
        (
            '[{"attribute": "status", "value": {}}]',
            [faulty([0, "value", "status"], "Input should be 'completed' or 'in_progress'", "enum")],
        ),
        (
            '[{"attribute": "dispositionCode", "value": {"codes": "busy"}}]',
            [faulty([0, "value", "codes"], "Input should be a valid list of strings", "list_type")],
        ),
        (
            '[{"attribute": "dispositionCode", "value": {"codes": [1]}}]',
            [faulty([0, "value", "codes"], "Input should be a valid list of strings", "list_type")],
        ),
        (
            '[{"attribute": "dateRange", "value": {"from": "2026-02-30"}}]',
            [
                faulty(
                    [0, "value", "from"],
                    "Input should be a valid datetime or date, input is not a date that exists, as ISO 8601 text",
                    "datetime_from_date_parsing",
                )
            ],
        ),
        (
            '[{"attribute": "dateRange", "value": {"to": "2026"}}]',
            [
                faulty(
                    [0, "value", "to"],
                    "Input should be a valid datetime or date, input is too short",
                    "datetime_from_date_parsing",
                )
            ],
        ),
        (
            '[{"attribute": "dateRange", "value": {"to": 5}}]',
            [
                faulty(
                    [0, "value", "to"],
                    "Input should be a valid datetime or date, input is not text",
                    "datetime_from_date_parsing",
                )
            ],
        ),
        (
            '[{"attribute": "dateRange", "value": {"to": "9999-12-31T00:00"}}]',
            [
                faulty(
                    [0, "value", "to"],
                    "Input should be a valid datetime or date, the year is out of range",
                    "datetime_from_date_parsing",
                )
            ],
        ),
        # What could not be echoed, stored or asked.
        (
            '[{"attribute": "status", "value": {"status": "completed"}, "note": "\\ud800"}]',
            [
                faulty(
                    [0, "note"],
                    "Input should be a valid string, unable to parse raw data as a unicode string",
                    "string_unicode",
                )
            ],
        ),
        (
            '[{"attribute": "dispositionCode", "value": {"codes": ["\\u0000"]}}]',
            [faulty([0, "value", "codes", 0], "Value error, text may not hold the NUL character")],
        ),
        (
            '[{"attribute": "duration", "value": {"min": 1e999}}]',
            [faulty([0, "value", "min"], "Value error, the number is too large")],
        ),
        ("[" * 5000, [faulty([], "Value error, lists and objects may be nested at most 100 deep")]),
        (
            "[" * 101 + "]" * 101,
            [faulty([0, 0], "Value error, lists and objects may be nested at most 100 deep")],
        ),
        (
            json.dumps([{"attribute": "status", "value": {"status": "completed"}}] * 51),
            [faulty([], "List should have at most 50 items after validation, not 51", "too_long")],
        ),
        (
            json.dumps([{"attribute": "dispositionCode", "value": {"codes": ["a"] * 101}}]),
            [faulty([0, "value", "codes"], "List should have at most 100 items after validation, not 101", "too_long")],
        ),
    ],
)
def test_faulty_filters(shared: FlaskClient, filters: str, faults: list[Fault]) -> None:
    answer = shared.get(f"{API}/workflow/1/runs", query_string={"filters": filters})
    items = [{"loc": ["query", "filters", *loc], "msg": msg, "type": type} for loc, msg, type in faults]
    assert (answer.status_code, answer.get_json()) == (422, {"detail": items})


@pytest.mark.parametrize(
    ("criterion", "loc", "msg", "type"),
    [
        ({"attribute": "runId", "value": {}}, "value", "Input should be a valid integer", "int_type"),
        ({"attribute": "runId", "value": {"value": True}}, "value", "Input should be a valid integer", "int_type"),
        ({"attribute": "runId", "value": {"value": "1.5"}}, "value", "Input should be a valid integer", "int_type"),
        ({"attribute": "runId", "value": {"value": "9" * 19}}, "value", "Input should be a valid integer", "int_type"),
        (
            {"attribute": "calledNumber", "value": {"value": 5}},
            "value",
            "Input should be a valid string",
            "string_type",
        ),
        (
            {"attribute": "calledNumber", "value": {"value": "5" * 256}},
            "value",
            "String should have at most 255 characters",
            "string_too_long",
        ),
        (
            {"attribute": "callDirection", "value": {"status": "up"}},
            "status",
            "Input should be 'inbound' or 'outbound'",
            "enum",
        ),
        (
            {"attribute": "callChannel", "value": {"status": None}},
            "status",
            "Input should be 'telephony', 'web' or 'chat'",
            "enum",
        ),
    ],
)
def test_faulty_filters_of_the_organizations_runs(
    shared: FlaskClient, criterion: Any, loc: str, msg: str, type: str
) -> None:
    answer = shared.get(USAGE, query_string={"filters": json.dumps([criterion])})
    fault = {"loc": ["query", "filters", 0, "value", loc], "msg": msg, "type": type}
    assert (answer.status_code, answer.get_json()) == (422, {"detail": [fault]})


def test_as_many_filters_as_are_allowed(client: FlaskClient, store_run: Callable[..., int]) -> None:
    store_run(gathered_context={"call_tags": [f"t{number}" for number in range(100)]})
    tags = {"attribute": "callTags", "value": {"codes": [f"t{number}" for number in range(100)]}}
    assert ids(listed(client, USAGE, filters=[tags] * 50)) == [1]


INT = "Input should be a valid integer, unable to parse string as an integer"


@pytest.mark.parametrize(
    ("url", "items"),
    [
        (
            "workflow/abc/runs?page=0&limit=101&sort_by=age&sort_order=up",
            [
                (["path", "workflow_id"], INT, "int_parsing"),
                (["query", "page"], "Input should be greater than or equal to 1", "greater_than_equal"),
                (["query", "limit"], "Input should be less than or equal to 100", "less_than_equal"),
                (["query", "sort_by"], "Input should be 'created_at', 'duration', 'id' or 'name'", "enum"),
                (["query", "sort_order"], "Input should be 'asc' or 'desc'", "enum"),
            ],
        ),
        ("workflow/1/runs?page=", [(["query", "page"], INT, "int_parsing")]),
        (
            "workflow/1/runs?limit=0",
            [(["query", "limit"], "Input should be greater than or equal to 1", "greater_than_equal")],
        ),
        (
            "workflow/1/runs?page=1.5&limit=-1",
            [
                (["query", "page"], INT, "int_parsing"),
                (["query", "limit"], "Input should be greater than or equal to 1", "greater_than_equal"),
            ],
        ),
        (
            "workflow/99999999999999999999/runs",
            [
                (
                    ["path", "workflow_id"],
                    "Unable to parse input string as an integer, exceeded maximum size",
                    "int_parsing_size",
                )
            ],
        ),
        ("workflow/1/runs/x", [(["path", "run_id"], INT, "int_parsing")]),
        (
            "organizations/usage/runs?start_date=soon&end_date=2026-13-01&sort_order=",
            [
                (
                    ["query", "start_date"],
                    "Input should be a valid datetime or date, input is too short",
                    "datetime_from_date_parsing",
                ),
                (
                    ["query", "end_date"],
                    "Input should be a valid datetime or date, input is not a date that exists, as ISO 8601 text",
                    "datetime_from_date_parsing",
                ),
                (["query", "sort_order"], "Input should be 'asc' or 'desc'", "enum"),
            ],
        ),
    ],
)
def test_faulty_queries(shared: FlaskClient, url: str, items: list[Any]) -> None:
    answer = shared.get(f"{API}/{url}")
    detail = [{"loc": loc, "msg": msg, "type": type} for loc, msg, type in items]
    # The order of parameters is the documents'; only the path must come before the query.
    assert answer.status_code == 422
    assert sorted(answer.get_json()["detail"], key=str) == sorted(detail, key=str)
    assert [fault["loc"][0] for fault in answer.get_json()["detail"]] == [fault["loc"][0] for fault in detail]


# -- one run


def test_a_single_run(client: FlaskClient, bare: FlaskClient, app: Flask, store_run: Callable[..., int]) -> None:
    run_id = store_run(duration=2.5, state="completed", has_transcript=True, annotations={"tester": True})
    with app.extensions["voiceapi"].store.session():
        for offset, type, text in ((0, "rtf-bot-text", "Hello."), (1.5, "rtf-user-transcription", "Hé\nthere.")):
            RunEvent.create(
                run=run_id,
                turn=1,
                type=type,
                payload={"text": text},
                node_id="1",
                node_name="Hello",
                at=START + timedelta(seconds=offset),
            )
    url = f"{API}/workflow/1/runs/{run_id}"
    run = client.get(url).get_json()
    token = run["public_access_token"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", token)
    assert run == {
        **NO_FILES,
        "id": 1,
        "workflow_id": 1,
        "name": "WR",
        "mode": "simulator",
        "created_at": "2026-03-01T12:00:00Z",
        "is_completed": True,
        "is_test": False,
        "call_type": "outbound",
        "definition_id": None,
        "caller_number": None,
        "called_number": None,
        "call_duration_seconds": 2,
        "disposition": None,
        "transcript_url": "transcripts/1.txt",
        "transcript_public_url": f"http://localhost/api/v1/public/download/workflow/{token}/transcript",
        "public_access_token": token,
        "cost_info": {"dograh_token_usage": 0, "call_duration_seconds": 2},
        "usage_info": {"llm": {}, "tts": {}, "stt": {}, "call_duration_seconds": 2.5},
        "initial_context": {},
        "gathered_context": {},
        "content_hash": None,
        "logs": {
            "realtime_feedback_events": [
                {
                    "type": "rtf-bot-text",
                    "payload": {"text": "Hello."},
                    "timestamp": "2026-03-01T12:00:00.000Z",
                    "turn": 1,
                    "node_id": "1",
                    "node_name": "Hello",
                },
                {
                    "type": "rtf-user-transcription",
                    "payload": {"text": "Hé\nthere."},
                    "timestamp": "2026-03-01T12:00:01.500Z",
                    "turn": 1,
                    "node_id": "1",
                    "node_name": "Hello",
                },
            ],
            "telephony_status_callbacks": [],
        },
        "annotations": {"tester": True},
    }
    assert client.get(url).get_json() == run
    used = listed(client, USAGE)["runs"][0]
    assert (used["transcript_public_url"], used["public_access_token"]) == (run["transcript_public_url"], token)


def test_a_run_under_the_wrong_workflow(
    client: FlaskClient, store_run: Callable[..., int], workflow: Callable[..., Any]
) -> None:
    run_id, other = store_run(), workflow()["id"]
    answer = client.get(f"{API}/workflow/{other}/runs/{run_id}")
    assert (answer.status_code, answer.get_json()) == (404, {"detail": "Workflow run not found"})


def test_a_run_without_anything_to_fetch_gets_no_token(client: FlaskClient, store_run: Callable[..., int]) -> None:
    run = client.get(f"{API}/workflow/1/runs/{store_run()}").get_json()
    assert (run["public_access_token"], run["usage_info"]) == (None, None)
    assert run["logs"] == {"realtime_feedback_events": [], "telephony_status_callbacks": []}


def test_a_prepared_run(client: FlaskClient, workflow: Callable[..., Any]) -> None:
    made = workflow()
    client.put(f"{API}/workflow/1", json={"template_context_variables": {"name": "Ann", "direction": " Outbound "}})
    draft = client.get(f"{API}/workflow/fetch/1").get_json()["current_definition_id"]
    assert draft != made["current_definition_id"]
    for mode, context in (
        ("twilio", {"name": "Ann", "direction": " Outbound "}),
        ("smallwebrtc", {"name": "Ann", "direction": "outbound"}),
    ):
        run = client.post(f"{API}/workflow/1/runs", json={"mode": mode, "name": "Try"}).get_json()
        assert run == {
            "id": run["id"],
            "workflow_id": 1,
            "name": "Try",
            "mode": mode,
            "created_at": run["created_at"],
            "definition_id": draft,
            "initial_context": context,
        }
    client.put(f"{API}/workflow/1", json={"template_context_variables": {}})
    run = client.post(f"{API}/workflow/1/runs", json={"mode": "smallwebrtc", "name": "Try"}).get_json()
    assert run["initial_context"] == {"direction": "inbound"}
    assert [each["call_type"] for each in listed(client)["runs"]] == ["inbound", "outbound", "outbound"]
    assert client.get(f"{API}/workflow/fetch").get_json()[0]["total_runs"] == 3


@pytest.mark.parametrize(
    ("workflow_id", "body", "status", "detail"),
    [
        (99, {"mode": "twilio", "name": "x"}, 404, "Workflow not found"),
        (
            1,
            {"mode": "m" * 65},
            422,
            [
                {"loc": ["body", "mode"], "msg": "String should have at most 64 characters", "type": "string_too_long"},
                {"loc": ["body", "name"], "msg": "Field required", "type": "missing"},
            ],
        ),
    ],
)
def test_a_run_that_cannot_be_prepared(
    client: FlaskClient, workflow: Callable[..., Any], workflow_id: int, body: Any, status: int, detail: Any
) -> None:
    workflow()
    answer = client.post(f"{API}/workflow/{workflow_id}/runs", json=body)
    assert (answer.status_code, answer.get_json()) == (status, {"detail": detail})


# -- the organization's history of use


def test_use_of_the_organization(
    client: FlaskClient, store_run: Callable[..., int], workflow: Callable[..., Any]
) -> None:
    workflow(name="Other")
    context = {"phone_number": "+12025550123"}
    store_run(duration=1.6, disposition="busy", initial_context=context, gathered_context={"a": 1}, caller_number="+1")
    store_run(hours=1, duration=3.0, call_type="inbound", caller_number="+44", called_number="+45", workflow_id=2)
    store_run(hours=2, initial_context={"phone_number": 7})
    page = listed(client, USAGE)
    shown = [
        {
            "id": run["id"],
            **{name: run[name] for name in ("workflow_id", "workflow_name", "call_duration_seconds", "disposition")},
            **{name: run[name] for name in ("phone_number", "caller_number", "called_number", "call_type")},
        }
        for run in page["runs"]
    ]
    keys = ("id", *("workflow_id", "workflow_name", "call_duration_seconds", "disposition"))
    keys += ("phone_number", "caller_number", "called_number", "call_type")
    assert shown == [
        dict(zip(keys, row, strict=True))
        for row in (
            (3, 1, "Agent", 0, None, None, None, None, "outbound"),
            (2, 2, "Other", 3, None, "+44", "+44", "+45", "inbound"),
            (1, 1, "Agent", 2, "busy", "+12025550123", "+1", "+12025550123", "outbound"),
        )
    ]
    assert page["runs"][2] == {
        **NO_FILES,
        **shown[2],
        "name": "WR",
        "created_at": "2026-03-01T12:00:00Z",
        "dograh_token_usage": 0,
        "mode": "simulator",
        "initial_context": context,
        "gathered_context": {"a": 1},
        "campaign_id": None,
        "is_completed": False,
        "is_test": False,
        "charge_usd": None,
    }
    assert {**page, "runs": None} == {
        "runs": None,
        "total_count": 3,
        "page": 1,
        "limit": 50,
        "total_pages": 1,
        "total_dograh_tokens": 0,
        "total_duration_seconds": 5,
    }
    assert listed(client, f"{API}/organizations/usage/totals") == {"total_count": 3, "total_duration_seconds": 5}
    second = listed(client, USAGE, limit=2, page=2)
    assert (second["total_count"], second["total_pages"], second["total_duration_seconds"]) == (3, 2, 2)
    dates = {"start_date": "2026-03-01T12:30:00Z", "end_date": "2026-03-01T13:00:00Z"}
    between = listed(client, USAGE, **dates)
    assert (ids(between), between["total_count"]) == ([2], 1)
    assert ids(listed(client, USAGE, sort_by="duration", sort_order="asc")) == [1, 2, 3]


# -- the report


def report(client: FlaskClient, query: str = "") -> list[list[str]]:
    answer = client.get(f"{API}/workflow/1/report{query}")
    assert (answer.status_code, answer.content_type) == (200, "text/csv; charset=utf-8")
    assert answer.headers["Content-Disposition"] == "attachment; filename=workflow_1_report.csv"
    return list(csv.reader(io.StringIO(answer.text, newline="")))


HEAD = [
    *("Run ID", "Campaign ID", "Agent ID", "Agent Definition ID", "Created At", "Phone Number"),
    *("Call Disposition", "Call Duration (s)"),
]
TAIL = ["Call Tags", "Transcript URL", "Recording URL", "Failure Reason", "Test"]


def test_a_report(client: FlaskClient, store_run: Callable[..., int]) -> None:
    done = {"state": "completed", "duration": 2.5}
    extracted = {"seats": 2, "=cmd()": "x"}
    store_run(
        **done,
        disposition="user_qualified",
        has_transcript=True,
        public_access_token="abc",
        initial_context={"phone_number": "+12025550123"},
        gathered_context={"extracted_variables": extracted, "call_tags": ["a", "b"]},
    )
    store_run(
        hours=1,
        **done,
        gathered_context={
            "extracted_variables": {"note": "-1"},
            "call_tags": "odd",
            "carrier_cause": {"text": "It was busy."},
        },
    )
    store_run(hours=2, state="talking", duration=1.0)
    store_run(hours=3, state="completed")
    first = [
        *("1", "", "1", "", "2026-03-01T12:00:00Z", "+12025550123", "user_qualified", "2"),
        *("", "2", "x", "a, b", "http://localhost/api/v1/public/download/workflow/abc/transcript", ""),
        *("", ""),
    ]
    second = ["2", "", "1", "", "2026-03-01T13:00:00Z", "", "", "2", "-1", "", "", "", "", "", "It was busy.", ""]
    assert report(client) == [[*HEAD, "note", "seats", "'=cmd()", *TAIL], second, first]
    dates = "?start_date=2026-03-01T12:30:00Z&end_date=2026-03-02"
    assert report(client, dates) == [[*HEAD, "note", *TAIL], [*second[:9], *second[11:]]]
    assert report(client, "?end_date=2020-01-01") == [[*HEAD, *TAIL]]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1 (202) 555", "'+1 (202) 555"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n=1", "'\n=1"),
        ("＝1", "'＝1"),
        ("+12025550123", "+12025550123"),
        ("-1.5", "-1.5"),
        (-3, "-3"),
        ('a,"b"\nc', 'a,"b"\nc'),
        (True, "True"),
        (None, ""),
        (["=1"], "['=1']"),
    ],
)
def test_a_report_holds_no_formula(client: FlaskClient, store_run: Callable[..., int], value: Any, cell: str) -> None:
    store_run(state="completed", duration=1.0, gathered_context={"extracted_variables": {"v": value}})
    assert report(client)[1][8] == cell


def test_a_report_with_a_faulty_date(client: FlaskClient, store_run: Callable[..., int]) -> None:
    answer = client.get(f"{API}/workflow/1/report?start_date=yesterday%20at%20noon")
    text = "Input should be a valid datetime or date, input is not a date that exists, as ISO 8601 text"
    item = {"loc": ["query", "start_date"], "msg": text, "type": "datetime_from_date_parsing"}
    assert (answer.status_code, answer.get_json()) == (422, {"detail": [item]})


# -- the public download


def test_a_transcript_is_public_to_whoever_has_its_token(
    client: FlaskClient, bare: FlaskClient, app: Flask, store_run: Callable[..., int]
) -> None:
    run_id = store_run(has_transcript=True)
    with app.extensions["voiceapi"].store.session():
        RunEvent.create(run=run_id, turn=0, type="rtf-bot-text", payload={"text": "Hello."}, at=START)
        RunEvent.create(run=run_id, turn=1, type="rtf-latency-measured", payload={"text": "no"}, at=START)
        RunEvent.create(run=run_id, turn=1, type="rtf-user-transcription", payload={"text": "Ja, grüß"}, at=START)
    url = urlsplit(client.get(f"{API}/workflow/1/runs/1").get_json()["transcript_public_url"]).path
    text = "[2026-03-01T12:00:00.000Z] assistant: Hello.\n[2026-03-01T12:00:00.000Z] user: Ja, grüß\n"
    for query, kind in (("", "attachment"), ("?inline=true", "inline"), ("?inline=no", "attachment")):
        answer = bare.get(url + query)
        assert (answer.status_code, answer.content_type) == (200, "text/plain; charset=utf-8")
        assert (answer.text, answer.headers["Content-Disposition"]) == (text, f"{kind}; filename=1.txt")
    folder = url.removesuffix("transcript")
    for path, status, detail in (
        (f"{folder}recording", 404, "No recording available for this workflow run"),
        (f"{folder}bot_recording", 404, "No bot_recording available for this workflow run"),
        (f"{folder}video", 400, "Unsupported artifact type"),
        (f"{API}/public/download/workflow/nope/video", 404, "Invalid or expired token"),
        (f"{API}/public/download/workflow/None/transcript", 404, "Invalid or expired token"),
    ):
        answer = bare.get(path)
        assert (answer.status_code, answer.get_json()) == (status, {"detail": detail}), path


def test_a_token_of_a_run_without_a_transcript(bare: FlaskClient, store_run: Callable[..., int]) -> None:
    store_run(public_access_token="abc")
    answer = bare.get(f"{API}/public/download/workflow/abc/transcript")
    detail = "No transcript available for this workflow run"
    assert (answer.status_code, answer.get_json()) == (404, {"detail": detail})


def test_the_total_of_a_listing_is_that_of_the_runs(
    app: Flask, client: FlaskClient, store_run: Callable[..., int]
) -> None:
    for _ in range(3):
        store_run()
    with app.extensions["voiceapi"].store.session():
        assert Run.select().count() == Workflow.get_by_id(1).total_runs == 3
    everything = listed(client, filters=[{"attribute": "dateRange", "value": {}}])
    assert everything["total_count"] == listed(client)["total_count"] == 3


def test_a_bare_end_date_includes_that_day(client: FlaskClient, workflow: Any) -> None:
    made = workflow()
    client.post(f"/api/v1/workflow/{made['id']}/runs", json={"mode": "twilio", "name": "today"})
    today = datetime.now(UTC).date()
    for until, count in ((today, 1), (today - timedelta(days=1), 0)):
        answer = client.get("/api/v1/organizations/usage/runs", query_string={"end_date": until.isoformat()})
        assert (answer.status_code, answer.json["total_count"]) == (200, count)


def test_a_missing_variable_is_recorded_on_the_run(
    client: FlaskClient, workflow: Any, talk: Any, finished: Any
) -> None:
    made = workflow(talk("noted", greeting="Hello {{first_name}} of {{company.name}}."))
    sent = {"phone_number": "+12025550123", "initial_context": {"first_name": "Ada"}}
    placed = client.post("/api/v1/public/agent/noted", json=sent).json
    run = finished(made["id"], placed["workflow_run_id"])
    assert run["annotations"] == {"missing_variables": ["company.name"]}


def test_a_report_of_filtered_runs(client: FlaskClient, store_run: Callable[..., int]) -> None:
    """Of a workflow and of the organization, by the filters of their lists."""
    ended = {"state": "completed", "duration": 5.0, "has_transcript": False}
    store_run(disposition="busy", **ended)
    store_run(hours=1, disposition="user_hangup", call_type="inbound", **ended)
    busy = '[{"attribute": "dispositionCode", "value": {"codes": ["busy"]}}]'
    assert [row[0] for row in report(client, f"?filters={quote(busy)}")] == ["Run ID", "1"]

    def of_organization(filters: str = "") -> list[str]:
        answer = client.get(f"{API}/organizations/usage/runs/report", query_string={"filters": filters})
        assert answer.headers["Content-Disposition"] == "attachment; filename=runs_report.csv"
        return [row[0] for row in csv.reader(io.StringIO(answer.text))]

    assert of_organization() == ["Run ID", "2", "1"]
    assert of_organization('[{"attribute": "callDirection", "value": {"status": "inbound"}}]') == ["Run ID", "2"]
    answer = client.get(f"{API}/workflow/1/report", query_string={"filters": "[7]"})
    assert (answer.status_code, answer.json["detail"][0]["loc"]) == (422, ["query", "filters", 0])
