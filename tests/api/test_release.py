"""What a workflow demands before it can be published: lint, cases and coverage, all that is missing at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from flask import Flask
from flask.cli import ScriptInfo
from flask.testing import FlaskClient

from voiceapi.cli.main import group
from voiceapi.rehearsal import release, testing
from voiceapi.store.workflows import WorkflowVersion

API = "/api/v1/workflow"
YES = {"name": "Yes", "turns": [{"caller": "Yes, gladly.", "edges": ["Yes"]}]}
NO = {"name": "No", "turns": [{"caller": "No.", "edges": ["No"], "says": "Good bye"}]}
ALL = {"lint": "warnings", "cases": True, "coverage": {"nodes": 100, "edges": 100, "variables": 100}}


@pytest.fixture
def demand(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any]
) -> Callable[..., dict[str, Any]]:
    """Gives the draft of workflow 1, which is made first, these requirements; returns the answer."""
    workflow(path="line")

    def save(requirements: Any, ignored: Any = None, **more: Any) -> dict[str, Any]:
        configurations = {"publish_requirements": requirements, "lint_ignore": ignored}
        answer = client.put(f"{API}/1", json={"workflow_configurations": configurations, **more})
        return {**answer.get_json(), "code": answer.status_code}

    return save


def store(client: FlaskClient, *cases: Any) -> None:
    for case in cases:
        assert client.post(f"{API}/1/cases", json={"case": case}).status_code == 200


def publish(client: FlaskClient) -> tuple[int, Any]:
    answer = client.post(f"{API}/1/publish")
    return answer.status_code, answer.get_json()


def missing(client: FlaskClient) -> list[tuple[Any, ...]]:
    """The fields and messages of what is missing."""
    status, body = publish(client)
    assert (status, body["detail"]["is_valid"]) == (422, False), body
    for error in body["detail"]["errors"]:
        assert set(error) == {"kind", "id", "field", "message"}
    return [(error["field"], error["message"]) for error in body["detail"]["errors"]]


def test_all_that_is_missing_is_said_at_once(client: FlaskClient, demand: Callable[..., Any]) -> None:
    assert demand(ALL, ["no-such-rule"])["code"] == 200
    store(client, NO, {"name": "Silent", "turns": [{"silence": True, "node": "Fine", "says": "Great"}]})
    found = missing(client)
    assert found[0][1].endswith(" (unknown-ignored-code)")
    assert found[1:] == [
        (
            "publish_requirements.cases",
            "The case “No” fails at turns.0.says: expected: the agent says “Good bye”. It said “Sorry, goodbye.”.",
        ),
        (
            "publish_requirements.cases",
            "The case “Silent” fails at turns.0.says: expected: the agent says “Great”. "
            "It said “Are you still there? Hello, is now a good time?”. Another thing isn't.",
        ),
        (
            "publish_requirements.coverage.nodes",
            "The cases cover 66.6 % of the nodes, and 100 % is demanded. Untouched: “Fine”.",
        ),
        (
            "publish_requirements.coverage.edges",
            "The cases cover 50 % of the edges, and 100 % is demanded. Untouched: “Yes (Hello → Fine)”.",
        ),
    ]
    versions = client.get(f"{API}/1/versions").get_json()
    assert [each["status"] for each in versions] == ["draft", "published"]


def test_a_draft_that_meets_everything_is_published(client: FlaskClient, demand: Callable[..., Any]) -> None:
    demand(ALL)
    assert missing(client)[0][0] == "publish_requirements.cases"
    store(client, YES, {**NO, "turns": [{"caller": "No."}]})
    status, body = publish(client)
    assert (status, body["status"], body["version_number"]) == (200, "published", 2)
    assert publish(client) == (400, {"detail": "No draft to publish"})


@pytest.mark.parametrize(
    ("requirements", "fields"),
    [
        ({"lint": "errors"}, []),
        ({"cases": False, "coverage": {"nodes": 0}}, []),
        ({}, []),
        ({"cases": True}, ["cases"]),
        ({"coverage": {"edges": 50}}, ["coverage.edges"]),
        ({"coverage": {"variables": 100}}, []),
    ],
)
def test_only_what_is_demanded_is_checked(
    client: FlaskClient, demand: Callable[..., Any], requirements: Any, fields: list[str]
) -> None:
    """There is no case, and something that lint warns of."""
    demand(requirements, ["no-such-rule"])
    if fields:
        assert [field for field, _ in missing(client)] == [f"publish_requirements.{name}" for name in fields]
    else:
        assert publish(client)[0] == 200


def test_an_error_of_lint_counts_where_errors_do(
    client: FlaskClient, demand: Callable[..., Any], talk: Callable[..., Any]
) -> None:
    """Else a tool that is missing prevents nothing."""
    definition = talk("line", tool_uuids=["0a4f4a4e-9f3b-4d2a-8a1e-0d4a8d1c9a11"])
    for severity in ("errors", "warnings"):
        demand({"lint": severity}, workflow_definition=definition)
        assert missing(client)[0][1].endswith(" (missing-tool)")
    demand({}, workflow_definition=definition)
    assert publish(client)[0] == 200


def test_a_disabled_case_need_not_pass(client: FlaskClient, demand: Callable[..., Any]) -> None:
    demand({"cases": True, "coverage": {"edges": 50}})
    store(client, YES, NO)
    assert len(missing(client)) == 1
    client.put(f"{API}/1/cases/2", json={"enabled": False})
    assert publish(client)[0] == 200


def test_an_invalid_draft_is_refused_before_its_cases_are_run(
    client: FlaskClient, demand: Callable[..., Any], talk: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    demand(ALL, workflow_definition={**talk("line"), "edges": []})
    monkeypatch.setattr(testing, "run", None)
    assert all("publish_requirements" not in str(field) for field, _ in missing(client))


@pytest.mark.parametrize(
    ("requirements", "place"),
    [
        ("all", []),
        ({"lint": "notes"}, ["lint"]),
        ({"cases": "some"}, ["cases"]),
        ({"coverage": 100}, ["coverage"]),
        ({"coverage": {"edges": 101}}, ["coverage", "edges"]),
        ({"coverage": {"nodes": -1}}, ["coverage", "nodes"]),
        ({"coverage": {"lines": 100}}, ["coverage", "lines"]),
        ({"review": True}, ["review"]),
    ],
)
def test_faulty_requirements_are_named(demand: Callable[..., Any], requirements: Any, place: list[str]) -> None:
    answer = demand(requirements)
    assert answer["code"] == 422
    whole = ["body", "workflow_configurations", "publish_requirements", *place]
    assert [each["loc"] for each in answer["detail"]] == [whole]


@pytest.mark.parametrize("stored", ["all", 5, [], {"coverage": 5}, {"coverage": {"nodes": "x"}}])
def test_what_an_earlier_release_stored_under_that_name_demands_nothing(
    client: FlaskClient, demand: Callable[..., Any], db: None, stored: Any
) -> None:
    demand({})
    WorkflowVersion.update(configurations={"publish_requirements": stored}).where(WorkflowVersion.id == 2).execute()
    assert publish(client)[0] == 200


class Meanwhile:
    """Changes something each time that the cases are run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *changes: Callable[[], Any]) -> None:
        self.left, self.runs, self.run = list(changes), 0, testing.run
        monkeypatch.setattr(release.testing, "run", self)

    def __call__(self, *arguments: Any) -> Any:
        found = self.run(*arguments)
        self.runs += 1
        if self.left:
            other = threading.Thread(target=self.left.pop(0))  # as another request
            other.start()
            other.join()
        return found


def test_only_what_was_checked_is_published(
    client: FlaskClient, demand: Callable[..., Any], talk: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draft that is saved while its cases are run is checked again; so it is with its cases."""
    demand({"cases": True})
    store(client, YES)
    better = {"workflow_definition": talk("line", greeting="Good day, is now a good time?")}
    meanwhile = Meanwhile(
        monkeypatch,
        lambda: client.put(f"{API}/1", json=better),
        lambda: client.put(f"{API}/1/cases/1", json={"name": "Yes, yes"}),
    )
    assert publish(client)[0] == 200
    assert meanwhile.runs == 3
    newest = client.get(f"{API}/1/versions").get_json()[0]
    assert (newest["status"], newest["workflow_json"]) == ("published", better["workflow_definition"])

    client.put(f"{API}/1", json=better)
    Meanwhile(monkeypatch, lambda: store(client, {**NO, "name": "New"}))
    assert "The case “New” fails" in missing(client)[0][1]


def test_a_draft_that_is_changed_again_and_again_is_refused(
    client: FlaskClient, demand: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    demand({"cases": True})
    store(client, YES)
    rename = lambda: client.put(f"{API}/1/cases/1", json={"enabled": True})  # noqa: E731
    meanwhile = Meanwhile(monkeypatch, *[rename] * 9)
    assert publish(client) == (
        409,
        {"detail": "The draft or its cases were changed while they were checked. Publish it again."},
    )
    assert meanwhile.runs == release.TRIES


def test_requirements_that_are_added_meanwhile_count(
    client: FlaskClient, demand: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    demand({"coverage": {"variables": 1}})
    Meanwhile(monkeypatch, lambda: demand({"cases": True}))
    assert [field for field, _ in missing(client)] == ["publish_requirements.cases"]


def test_the_editor_s_tag_counts_before_anything_is_checked(
    client: FlaskClient, demand: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    demand({"cases": True})
    meanwhile = Meanwhile(monkeypatch)
    answer = client.post(f"{API}/1/publish", headers={"If-Match": '"0123"'})
    assert (answer.status_code, meanwhile.runs) == (412, 0)


def test_others_write_while_cases_are_run(
    client: FlaskClient, demand: Callable[..., Any], app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    demand({"cases": True})
    store(client, YES)
    renamed: list[int] = []
    Meanwhile(monkeypatch, lambda: renamed.append(client.put(f"{API}/1/cases/1", json={"name": "x"}).status_code))
    assert publish(client)[0] == 200
    assert renamed == [200]


def test_the_command_demands_the_same(client: FlaskClient, demand: Callable[..., Any], app: Flask) -> None:
    demand({"cases": True, "coverage": {"edges": 100}})
    store(client, YES)
    arguments = ("workflow", "publish", "1")
    refused = CliRunner().invoke(group, arguments, obj=ScriptInfo(create_app=lambda: app))
    assert (refused.exit_code, refused.stderr) == (
        1,
        "Error: workflow publish_requirements.coverage.edges: The cases cover 50 % of the edges, and 100 % is "
        "demanded. Untouched: “No (Hello → Sorry)”.\n",
    )
    store(client, {**NO, "turns": [{"caller": "No."}]})
    done = CliRunner().invoke(group, arguments, obj=ScriptInfo(create_app=lambda: app))
    assert (done.exit_code, done.stdout) == (0, "Version 2 of workflow 1 is published.\n")
