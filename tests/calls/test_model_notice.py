"""A workflow that needs a language model and is called without one is named in the log, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.service import Service

API = "/api/v1"


@pytest.fixture
def called(client: FlaskClient, finished: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> Callable[..., Any]:
    """Calls with a workflow; returns the warnings in the log since the last call."""

    def call(workflow_id: int, route: str) -> list[str]:
        caplog.clear()
        answer = client.post(f"{API}/public/agent/{route}", json={"phone_number": "+12025550123"})
        assert answer.status_code == 200, answer.text
        finished(workflow_id, answer.get_json()["workflow_run_id"])
        return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]

    return call


@pytest.mark.parametrize("route", ["line", "test/line"])
def test_the_answer_to_the_first_trigger_names_the_parts(
    client: FlaskClient, workflow: Callable[..., Any], route: str
) -> None:
    workflow(path="line", greeting="", tool_uuids=["a b"])

    def call() -> list[str]:
        answer = client.post(f"{API}/public/agent/{route}", json={"phone_number": "+12025550123"})
        assert answer.status_code == 200, answer.text
        return answer.headers.getlist("Warning")

    named = "node.1.data.prompt, node.1.data.tool_uuids.0"
    assert call() == [f'199 voiceapi "parts that need a language model, and none is configured: {named}"']
    assert call() == []


def line(id: int, version: int, *places: str, more: str = "") -> str:
    return (
        f"Workflow {id} 'Agent', version {version}, needs a language model, and none is configured: "
        f"{', '.join(map(repr, places))}{more}. POST /api/v1/workflow/{id}/validate says why."
    )


def test_once_for_each_version(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any], called: Callable[..., Any]
) -> None:
    made = workflow(path="line", greeting="")["id"]
    assert called(made, "line") == [line(made, 1, "node 1 data.prompt")]
    assert called(made, "line") == []
    edited = talk(path="line", greeting="", document_uuids=["d"])
    client.put(f"{API}/workflow/{made}", json={"workflow_definition": edited})
    places = ("node 1 data.prompt", "node 1 data.document_uuids")
    assert called(made, "test/line") == [line(made, 2, *places)]
    assert called(made, "test/line") == []
    client.put(f"{API}/workflow/{made}", json={"workflow_definition": talk(path="line", greeting="")})
    assert called(made, "test/line") == [line(made, 2, "node 1 data.prompt")]
    assert called(made, "line") == []


def test_a_workflow_that_needs_none(workflow: Callable[..., Any], called: Callable[..., Any]) -> None:
    assert called(workflow(path="line")["id"], "line") == []


def test_a_long_list_is_cut(workflow: Callable[..., Any], called: Callable[..., Any]) -> None:
    made = workflow(path="line", tool_uuids=[str(number) for number in range(7)])["id"]
    places = [f"node 1 data.tool_uuids.{number}" for number in range(5)]
    assert called(made, "line") == [line(made, 1, *places, more=" and 2 more")]


def test_nothing_with_a_model_of_the_host(
    service: Service, workflow: Callable[..., Any], called: Callable[..., Any]
) -> None:
    class Own:
        def reply(self, ask: Any) -> Any:
            raise RuntimeError

        def extract(self, request: Any) -> Any:
            raise RuntimeError

    made = workflow(path="line", greeting="")["id"]
    object.__setattr__(service, "model", Own())
    assert not any("language model" in each for each in called(made, "line"))
