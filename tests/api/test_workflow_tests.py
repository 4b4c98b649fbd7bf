"""A workflow is tested with stored and given cases: what passes, what is covered, and how much one request runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.engine import actions as act
from voiceapi.engine import events as ev
from voiceapi.llm.scripted import Scripted
from voiceapi.rehearsal import stored_cases, testing
from voiceapi.service import Service

API = "/api/v1/workflow"
YES = {"name": "Yes", "turns": [{"caller": "Yes, gladly.", "says": "goodbye", "edges": ["Yes"]}]}
NO = {"name": "No", "turns": [{"caller": "No.", "says": "Great"}]}


def run(client: FlaskClient, **body: Any) -> dict[str, Any]:
    answer = client.post(f"{API}/1/test", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.get_json())


def store(client: FlaskClient, case: Any, **more: Any) -> int:
    return int(client.post(f"{API}/1/cases", json={"case": case, **more}).get_json()["id"])


def names(tested: dict[str, Any]) -> list[tuple[int | None, str, bool]]:
    return [(each["case_id"], each["name"], each["passed"]) for each in tested["results"]]


def test_the_enabled_cases_are_run_with_the_draft(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any]
) -> None:
    workflow()
    client.put(f"{API}/1", json={"workflow_definition": talk(greeting="Good day, is it a good time?")})
    store(client, YES)
    store(client, {**NO, "name": "Off"}, enabled=False)
    store(client, NO)
    versions = client.get(f"{API}/1/versions").get_json()
    tested = run(client)
    assert {name: tested[name] for name in ("version_number", "content_hash", "passed", "failed")} == {
        **{"version_number": 2, "content_hash": versions[0]["content_hash"], "passed": 1, "failed": 1}
    }
    assert names(tested) == [(1, "Yes", True), (3, "No", False)]
    passed, failed = tested["results"]
    assert [(line["role"], line["text"]) for line in passed["dialogue"]] == [
        ("agent", "Good day, is it a good time?"),
        ("caller", "Yes, gladly."),
        ("edge", "Yes → Fine"),
        ("agent", "Great, goodbye."),
    ]
    assert (passed["nodes"], passed["edges"], passed["mismatches"]) == (["1", "2"], ["1-2"], [])
    assert failed["mismatches"] == [
        {
            "place": "turns.0.says",
            "expected": "the agent says “Great”",
            "found": "It said “Sorry, goodbye.”.",
            "line": 3,
        }
    ]
    whole = {"covered": 3, "total": 3, "percent": 100.0, "untouched": []}
    edges = {"covered": 2, "total": 2, "percent": 100.0, "untouched": []}
    assert tested["coverage"] == {
        **{"nodes": whole, "edges": edges},
        **{"variables": {"covered": 0, "total": 0, "percent": 100.0, "untouched": []}},
    }


def test_chosen_cases_only(client: FlaskClient, workflow: Callable[..., Any]) -> None:
    workflow()
    first, off = store(client, YES), store(client, {**NO, "name": "Off"}, enabled=False)
    assert names(run(client, case_ids=[off])) == [(off, "Off", False)]
    assert names(run(client, case_ids=[off, first], cases=[NO])) == [
        *[(off, "Off", False), (first, "Yes", True), (None, "No", False)]
    ]
    tested = run(client, cases=[YES])
    assert names(tested) == [(None, "Yes", True)]
    assert tested["coverage"]["edges"] == {
        **{"covered": 1, "total": 2, "percent": 50.0},
        **{"untouched": [{"id": "1-3", "name": "No (Hello → Sorry)"}]},
    }
    nothing = run(client, case_ids=[])
    assert (nothing["passed"], nothing["failed"], nothing["coverage"]["nodes"]["percent"]) == (0, 0, 0.0)


def test_a_version_is_chosen_by_its_number(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any]
) -> None:
    workflow()
    assert run(client, cases=[YES], version="draft")["version_number"] == 1, "the released one, without a draft"
    client.put(f"{API}/1", json={"workflow_definition": talk(greeting="Draft.")})
    said = {
        number: run(client, cases=[YES], version=number)["results"][0]["dialogue"][0]["text"]
        for number in (1, 2, "draft", None)
    }
    assert said == {1: "Hello, is now a good time?", 2: "Draft.", "draft": "Draft.", None: "Draft."}
    missing = client.post(f"{API}/1/test", json={"version": 3})
    assert (missing.status_code, missing.get_json()["detail"]) == (404, "Workflow 1 has no version 3")
    assert client.post(f"{API}/1/test", json={"case_ids": [7]}).get_json()["detail"] == "Case with id 7 not found"


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ({"version": "newest"}, [["version"]]),
        ({"version": 0}, [["version"]]),
        ({"model": "best"}, [["model"]]),
        ({"model": "played"}, [["model"]]),
        ({"case_ids": ["x"]}, [["case_ids", 0]]),
        ({"cases": [YES, {"turns": [{}]}, 5]}, [["cases", 2]]),
        ({"cases": [YES, {"turns": [{}]}]}, [["cases", 1, "name"], ["cases", 1, "turns", 0]]),
    ],
)
def test_a_faulty_body(shared: FlaskClient, body: Any, places: list[Any]) -> None:
    answer = shared.post(f"{API}/1/test", json=body)
    found = [each["loc"] for each in answer.get_json()["detail"]]
    assert (answer.status_code, found) == (422, [["body", *place] for place in places])


def test_a_draft_with_errors_is_not_tested(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any]
) -> None:
    workflow()
    client.put(f"{API}/1", json={"workflow_definition": {**talk(), "edges": []}})
    answer = client.post(f"{API}/1/test", json={"cases": [YES]})
    assert answer.status_code == 422
    assert answer.get_json()["detail"].startswith("The workflow can't be run: ")
    assert run(client, version=1, cases=[YES])["passed"] == 1


def test_a_case_begins_with_the_variables_of_the_version(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any]
) -> None:
    workflow(talk(greeting="Hello {{first_name}} of {{town}}."))
    client.put(f"{API}/1", json={"template_context_variables": {"first_name": "Ada", "town": "Paris"}})
    greeted = {"name": "x", "context": {"town": "Rome"}, "opening": {"says": "Hello Ada of Rome."}}
    assert run(client, cases=[greeted])["results"][0]["mismatches"] == []


class Slow(Scripted):
    """A language model that takes its time, by a clock of its own."""

    def __init__(self) -> None:
        self.at, self.asked = 0.0, 0

    def reply(self, ask: act.AskModel) -> ev.Answer:
        self.asked += 1
        self.at += 50.0
        return ev.ModelReplied(ask.at, ask.number, f"Answer {self.asked}.", ())


@pytest.fixture
def slow(service: Service, monkeypatch: pytest.MonkeyPatch) -> Slow:
    model = Slow()
    object.__setattr__(service, "model", model)
    monkeypatch.setattr(testing.time, "monotonic", lambda: model.at)
    monkeypatch.setattr(service.bulkhead, "slow", service.bulkhead.slow)
    monkeypatch.setattr(testing.selection, "is_scripted", lambda model: False)
    return model


def test_what_speaks_may_be_chosen_for_all(client: FlaskClient, workflow: Callable[..., Any], slow: Slow) -> None:
    workflow()
    case = {"name": "x", "turns": [{"caller": "Yes.", "says": "answer 1"}]}
    assert run(client, cases=[case], model="configured")["passed"] == 1
    assert run(client, cases=[{**case, "model": "configured"}], model="scripted")["failed"] == 1
    assert slow.asked == 1


@pytest.mark.parametrize("model", ["scripted", "configured"])
def test_a_played_case_keeps_its_decisions(
    client: FlaskClient, workflow: Callable[..., Any], slow: Slow, model: str
) -> None:
    workflow()
    turn = {"caller": "Yes.", "says": "It is noted.", "model": {"say": "It is noted."}}
    assert run(client, cases=[{"name": "x", "model": "played", "turns": [turn]}], model=model)["passed"] == 1
    assert slow.asked == 0


def test_a_request_ends_in_time(client: FlaskClient, workflow: Callable[..., Any], slow: Slow) -> None:
    """The model isn't asked any more, and what is left fails."""
    workflow()
    turns = [{"caller": "Well."}] * 4
    cases = [{"name": f"{n}", "model": "configured", "turns": turns} for n in range(3)]
    tested = run(client, cases=cases)
    assert slow.asked == 3, "after 150 of 120 s"
    assert [each["mismatches"] for each in tested["results"][1:]] == [
        [{"place": "opening", "expected": "the case is run", "found": testing.LATE, "line": None}]
    ] * 2
    errors = [line["text"] for line in tested["results"][0]["dialogue"] if line["role"] == "error"]
    assert len(errors) == 1
    assert testing.LATE in errors[0]


@pytest.mark.parametrize(
    ("cases", "detail"),
    [
        (
            [{"name": f"{n}", "turns": [{"caller": "x"}] * 200} for n in range(50)],
            "One request runs at most 10000 turns, openings included; these are 10050.",
        ),
        (
            [{"name": "x", "model": "configured", "turns": [{"caller": "x"}] * 100}],
            "One request runs at most 100 turns, openings included, by the configured language model; these are 101.",
        ),
    ],
)
def test_one_request_runs_so_many_turns(
    client: FlaskClient, workflow: Callable[..., Any], slow: Slow, cases: Any, detail: str
) -> None:
    workflow()
    answer = client.post(f"{API}/1/test", json={"cases": cases})
    assert (answer.status_code, answer.get_json()) == (422, {"detail": detail})
    assert slow.asked == 0


def test_one_request_runs_so_many_cases(client: FlaskClient, workflow: Callable[..., Any]) -> None:
    workflow()
    id = store(client, YES)
    for name, values in (("case_ids", [id] * 501), ("cases", [NO] * 501)):
        answer = client.post(f"{API}/1/test", json={name: values})
        assert answer.get_json()["detail"][0]["loc"] == ["body", name]
    answer = client.post(f"{API}/1/test", json={"case_ids": [id] * 300, "cases": [NO] * 201})
    assert answer.get_json() == {"detail": "One request runs at most 500 cases; these are 501."}


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            {"name": "x", "context": {"a": "a" * stored_cases.LARGEST}},
            "a case may have at most 65536 bytes as JSON, not 65567",
        ),
        (
            {"name": "x", "opening": {"matches": "a"}, "turns": [{"caller": "x", "matches": ["a"] * 50}] * 2},
            "a case may have at most 100 regular expressions, not 101",
        ),
    ],
)
def test_a_case_that_takes_long_to_read_is_refused_before(
    client: FlaskClient, workflow: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, case: Any, message: str
) -> None:
    workflow()
    monkeypatch.setattr(stored_cases.case_file, "read_case", None)
    for path, body, place in (("test", {"cases": [case]}, ["cases", 0]), ("cases", {"case": case}, ["case"])):
        answer = client.post(f"{API}/1/{path}", json=body)
        error = {"loc": ["body", *place], "msg": f"Value error, {message}", "type": "value_error"}
        assert (answer.status_code, answer.get_json()["detail"]) == (422, [error])


def test_nothing_is_stored(client: FlaskClient, workflow: Callable[..., Any], service: Service, db: None) -> None:
    workflow()
    store(client, YES)

    def rows() -> dict[str, Any]:
        tables = [name for name in service.store.database.get_tables() if name != "api_key"]
        return {name: service.store.database.execute_sql(f'SELECT * FROM "{name}"').fetchall() for name in tables}

    before = rows()
    assert run(client)["passed"] == 1
    assert rows() == before
