"""Conversation cases that are stored with a workflow: created, listed, changed, deleted, checked, copied."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.rehearsal import case_import, stored_cases, strict_yaml
from voiceapi.store.base import insert_all
from voiceapi.store.fields import now
from voiceapi.store.workflows import ConversationCase

API = "/api/v1/workflow"
CASES = f"{API}/1/cases"
YES = {
    "name": "The callee agrees",
    "turns": [{"caller": "Yes, gladly.", "says": "goodbye", "edges": ["Yes"]}],
    "expect": {"nodes": ["Hello", "Fine"]},
}
NO = {"name": "The callee declines", "turns": [{"caller": "No.", "edges": ["No"]}]}


def post(client: FlaskClient, case: Any, url: str = CASES, **more: Any) -> dict[str, Any]:
    answer = client.post(url, json={"case": case, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.get_json())


def test_a_case_is_stored_listed_changed_and_deleted(client: FlaskClient, workflow: Callable[..., Any]) -> None:
    workflow()
    assert client.get(CASES).get_json() == []
    first, second = post(client, YES), post(client, NO, enabled=False)
    assert first == {
        **{"id": 1, "name": YES["name"], "enabled": True, "case": YES},
        **{"created_at": first["created_at"], "updated_at": first["updated_at"]},
    }
    assert (second["id"], second["enabled"]) == (2, False)
    assert client.get(CASES).get_json() == [first, second]
    assert client.get(f"{CASES}?limit=1&offset=1").get_json() == [second]
    assert client.get(f"{CASES}/2").get_json() == second

    enabled = client.put(f"{CASES}/2", json={"enabled": True}).get_json()
    assert enabled == {**second, "enabled": True, "updated_at": enabled["updated_at"]}
    assert enabled["updated_at"] > second["updated_at"]
    renamed = client.put(f"{CASES}/2", json={"name": " Declined "}).get_json()
    assert (renamed["name"], renamed["case"]) == ("Declined", {**NO, "name": "Declined"})
    changed = client.put(f"{CASES}/2", json={"case": {**YES, "name": "Agreed"}}).get_json()
    assert (changed["name"], changed["enabled"], changed["case"]) == ("Agreed", True, {**YES, "name": "Agreed"})
    both = client.put(f"{CASES}/2", json={"case": NO, "name": "Both"}).get_json()
    assert both["case"] == {**NO, "name": "Both"}
    assert client.get(f"{CASES}/2").get_json() == both

    assert client.delete(f"{CASES}/1").get_json() == {"message": "Case deleted"}
    assert client.get(CASES).get_json() == [both]
    assert client.get(f"{CASES}/1").status_code == client.delete(f"{CASES}/1").status_code == 404


def test_a_case_is_made_of_a_run_and_passes(client: FlaskClient, workflow: Callable[..., Any]) -> None:
    workflow()
    workflow()
    chat = client.post(f"{API}/1/text-chat/sessions", json={}).get_json()["workflow_run_id"]
    client.post(f"{API}/1/text-chat/sessions/{chat}/messages", json={"text": "Yes, gladly."})
    made = client.get(f"{API}/1/runs/{chat}/case").get_json()["case"]
    stored = client.post(CASES, json={"run_id": chat, "enabled": False}).get_json()
    assert (stored["name"], stored["case"], stored["enabled"]) == (made["name"], made, False)
    assert made["turns"][0]["caller"] == "Yes, gladly."
    again = client.post(CASES, json={"run_id": chat})
    assert (again.status_code, "has the name" in again.get_json()["detail"]) == (409, True)
    named = client.post(CASES, json={"run_id": chat, "name": "They agree"}).get_json()
    assert (named["name"], named["case"]) == ("They agree", {**made, "name": "They agree"})
    tested = client.post(f"{API}/1/test", json={}).get_json()
    assert [(each["case_id"], each["mismatches"]) for each in tested["results"]] == [(named["id"], [])]
    for workflow_id, run in ((2, chat), (1, 99)):
        missing = client.post(f"{API}/{workflow_id}/cases", json={"run_id": run})
        assert (missing.status_code, missing.get_json()["detail"]) == (404, "Workflow run not found")
    prepared = client.post(f"{API}/1/runs", json={"name": "x", "mode": "simulator"}).get_json()["id"]
    assert client.post(CASES, json={"run_id": prepared}).status_code == 400


def test_names_are_unique_in_a_workflow(client: FlaskClient, workflow: Callable[..., Any]) -> None:
    workflow()
    workflow()
    post(client, YES)
    post(client, YES, f"{API}/2/cases")
    taken = client.post(CASES, json={"case": NO, "name": YES["name"]})
    assert (taken.status_code, taken.get_json()) == (
        409,
        {"detail": "Another case of the workflow has the name “The callee agrees”."},
    )
    post(client, NO)
    assert client.put(f"{CASES}/3", json={"name": YES["name"]}).status_code == 409
    # Its own name isn't taken.
    assert client.put(f"{CASES}/3", json={"case": {**NO, "direction": "inbound"}}).status_code == 200
    assert client.get(f"{API}/2/cases/1").status_code == 404, "another workflow's"


@pytest.mark.parametrize(
    ("case", "errors"),
    [
        ({}, [(["name"], "missing")]),
        ({"name": "x" * 201}, [(["name"], "too_long")]),
        ({"name": "x", "turn": []}, [(["turn"], "extra_forbidden")]),
        (
            {"name": "x", "turns": [{"caller": "Hi"}, {"say": "Hi"}]},
            [(["turns", 1, "say"], "extra_forbidden"), (["turns", 1], "missing")],
        ),
        ({"name": "x", "turns": [{"caller": "Hi", "matches": "("}]}, [(["turns", 0, "matches"], "value_error")]),
        ({"name": "x", "turns": [{"caller": "Hi", "model": {"say": "Ho"}}]}, [(["turns", 0, "model"], "value_error")]),
        ({"name": "x", "expect": {"variables": []}}, [(["expect", "variables"], "dict_type")]),
    ],
)
def test_what_is_wrong_with_a_case_is_named_by_its_place(
    client: FlaskClient, workflow: Callable[..., Any], case: Any, errors: list[Any]
) -> None:
    workflow()
    post(client, YES)
    for method, url in (("POST", CASES), ("PUT", f"{CASES}/1")):
        answer = client.open(url, method=method, json={"case": case})
        found = [(each["loc"], each["type"]) for each in answer.get_json()["detail"]]
        assert (answer.status_code, found) == (422, [(["body", "case", *place], type) for place, type in errors])
    assert [each["case"] for each in client.get(CASES).get_json()] == [YES]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, ["case"]),
        ({"case": [YES]}, ["case"]),
        ({"case": YES, "run_id": 1}, ["run_id"]),
        ({"run_id": "x"}, ["run_id"]),
        ({"case": YES, "name": " "}, ["name"]),
        ({"case": YES, "name": ""}, ["name"]),
        ({"case": YES, "enabled": "perhaps"}, ["enabled"]),
    ],
)
def test_a_faulty_body(shared: FlaskClient, body: Any, place: list[Any]) -> None:
    answer = shared.post(CASES, json=body)
    assert (answer.status_code, [each["loc"] for each in answer.get_json()["detail"]]) == (422, [["body", *place]])


def test_a_case_has_at_most_64_kib(client: FlaskClient, workflow: Callable[..., Any]) -> None:
    workflow()
    room = stored_cases.LARGEST - len(json.dumps({"name": "x", "context": {"a": ""}}, separators=(",", ":")))
    post(client, {"name": "x", "context": {"a": "a" * room}})
    answer = client.post(CASES, json={"case": {"name": "y", "context": {"a": "a" * (room + 1)}}})
    assert answer.status_code == 422
    assert answer.get_json()["detail"] == [
        {
            "loc": ["body", "case"],
            "msg": "Value error, a case may have at most 65536 bytes as JSON, not 65537",
            "type": "value_error",
        }
    ]


def test_a_workflow_has_at_most_500_cases(client: FlaskClient, workflow: Callable[..., Any], db: None) -> None:
    workflow()
    at = ConversationCase.created_at.db_value(now())
    rows = (
        {
            "workflow": 1,
            "name": f"{n}",
            "enabled": True,
            "content": {"name": f"{n}"},
            "created_at": at,
            "updated_at": at,
        }
        for n in range(stored_cases.MOST_CASES - 1)
    )
    insert_all(ConversationCase, rows)
    post(client, YES)
    answer = client.post(CASES, json={"case": NO})
    assert (answer.status_code, answer.get_json()["detail"]) == (
        422,
        "A workflow may have at most 500 cases. Delete one first.",
    )
    client.delete(f"{CASES}/1")
    post(client, NO)


IN_YAML = """
model: scripted
context: {town: Paris}
workflow: agent.json
cases:
  - name: The callee agrees
    context: {first_name: Ada}
    turns:
      - {caller: "Yes, gladly.", says: goodbye, edges: ["Yes"]}
  - name: The callee declines
    turns: [{caller: No., edges: ["No"]}]
"""


@pytest.mark.parametrize("is_json", [False, True])
def test_the_cases_of_a_file_are_stored(client: FlaskClient, workflow: Callable[..., Any], is_json: bool) -> None:
    workflow()
    tools = [{"tool_uuid": "x", "name": "x", "definition": {}}]
    text = json.dumps({**strict_yaml.load(IN_YAML), "tools": tools}) if is_json else IN_YAML
    answer = client.post(f"{CASES}/file", json={"file": text}).get_json()
    listed = client.get(CASES).get_json()
    assert answer == {"cases": listed, "replaced": 0, "tools_left_out": int(is_json)}
    assert [(each["name"], each["enabled"], each["case"]) for each in listed] == [
        (
            case["name"],
            True,
            {"model": "scripted", **case, "context": {"town": "Paris", **case.get("context", {})}},
        )
        for case in strict_yaml.load(IN_YAML)["cases"]
    ]
    tested = client.post(f"{API}/1/test", json={}).get_json()
    assert (tested["passed"], tested["failed"]) == (2, 0), tested["results"]


def test_a_file_replaces_cases_only_when_it_is_asked_to(client: FlaskClient, workflow: Callable[..., Any]) -> None:
    workflow()
    old = post(client, {"name": "The callee agrees"}, enabled=False)
    others = [post(client, {"name": f"Case {n}"}) for n in range(6)]
    taken = client.post(f"{CASES}/file", json={"file": IN_YAML})
    assert (taken.status_code, taken.get_json()["detail"]) == (
        409,
        "The workflow has cases with these names: “The callee agrees”. With replace they are replaced.",
    )
    assert client.get(CASES).get_json() == [old, *others], "nothing of it is stored"
    many = json.dumps({"cases": [{"name": each["name"]} for each in others]})
    detail = client.post(f"{CASES}/file", json={"file": many}).get_json()["detail"]
    assert detail.startswith("The workflow has cases with these names: “Case 0”, ")
    assert "“Case 4” and 1 more." in detail
    answer = client.post(f"{CASES}/file", json={"file": IN_YAML, "replace": True}).get_json()
    assert (answer["replaced"], [each["id"] for each in answer["cases"]]) == (1, [old["id"], 8])
    changed = client.get(f"{CASES}/{old['id']}").get_json()
    assert changed == answer["cases"][0]
    assert (changed["case"]["context"], changed["enabled"]) == ({"town": "Paris", "first_name": "Ada"}, False)
    assert (changed["created_at"], changed["updated_at"] > old["updated_at"]) == (old["created_at"], True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: it must be an object"),
        ("cases: [", "line 1, column 9: while parsing a flow node"),
        ("cases:\n- name: a\n- name: a\n", "line 3, column 3: cases.1.name: another case has the name “a”"),
        ("cases:\n- name: a\n  turns: [{keys: x}]\n", "line 3, column 12: cases.0.turns.0.keys: it must be 1 to 64"),
        (
            "cases:\n- name: a\n- name: b\n  context: {a: " + "a" * 66_000 + "}",
            "line 3, column 3: cases.1: a case may have at most 65536 bytes",
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_named_by_its_line(
    client: FlaskClient, workflow: Callable[..., Any], text: str, message: str
) -> None:
    workflow()
    answer = client.post(f"{CASES}/file", json={"file": text})
    (item, *_) = answer.get_json()["detail"]
    assert (answer.status_code, item["loc"], item["type"]) == (422, ["body", "file"], "value_error")
    assert item["msg"].startswith(f"Value error, {message}")
    assert client.get(CASES).get_json() == []


def test_a_file_has_at_most_256_kib_and_brings_at_most_500_cases(
    client: FlaskClient, workflow: Callable[..., Any]
) -> None:
    workflow()
    too_long = client.post(f"{CASES}/file", json={"file": "#" * (case_import.LARGEST + 1)})
    assert too_long.get_json()["detail"][0]["msg"] == "String should have at most 262144 characters"
    text = json.dumps({"cases": [{"name": str(n)} for n in range(stored_cases.MOST_CASES)]})
    assert client.post(f"{CASES}/file", json={"file": text}).status_code == 200
    assert client.post(f"{CASES}/file", json={"file": text, "replace": True}).get_json()["replaced"] == 500
    one_more = client.post(f"{CASES}/file", json={"file": "cases: [{name: a}]"})
    assert (one_more.status_code, one_more.get_json()["detail"]) == (
        422,
        "A workflow may have at most 500 cases. Delete some first.",
    )


def test_a_duplicate_has_the_cases(client: FlaskClient, workflow: Callable[..., Any]) -> None:
    workflow(path="line")
    post(client, YES)
    post(client, NO, enabled=False)
    client.post(f"{API}/1/duplicate")
    kept, copied = (client.get(f"{API}/{id}/cases").get_json() for id in (1, 2))
    assert [{**each, "id": each["id"] + 2} for each in kept] == copied
    client.delete(f"{API}/2/cases/3")
    assert client.get(CASES).get_json() == kept
