"""What tools offer the model is computed once a conversation; a chat follows changes of its workflow and its tools."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.calls import sweeper
from voiceapi.engine.actions import AskModel
from voiceapi.engine.graph import Graph
from voiceapi.llm.scripted import Scripted
from voiceapi.service import Service
from voiceapi.store.chats import ChatSession
from voiceapi.store.runs import Run, Snapshot, StatusCallback
from voiceapi.tools import catalog as tool_functions

API = "/api/v1"
LINES = ["hm", "well", "yes"]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
    """For each time that the functions of tools were computed, the graph that they were computed for."""
    found: list[Graph] = []
    functions = tool_functions.functions_for

    def compute(organization: int | None, graph: Graph) -> Any:
        found.append(graph)
        return functions(organization, graph)

    monkeypatch.setattr(tool_functions, "functions_for", compute)
    return found


@pytest.fixture
def offered(service: Service) -> list[list[str]]:
    """The names of the functions that the model was offered, each time that it was asked."""
    found: list[list[str]] = []

    class Model(Scripted):
        def reply(self, ask: AskModel) -> Any:
            found.append([function.name for function in ask.functions])
            # A caller who is never understood would end the chat.
            return replace(super().reply(ask), end_reason="")

    object.__setattr__(service, "model", Model())
    return found


@pytest.fixture
def make(client: FlaskClient) -> Callable[[str], str]:
    """Makes a tool of that name; returns its uuid."""

    def tool(name: str) -> str:
        answer = client.post(f"{API}/tools/", json={"name": name, "definition": {"type": "end_call", "config": {}}})
        assert answer.status_code == 200, answer.text
        return str(answer.get_json()["tool_uuid"])

    return tool


@pytest.fixture
def draft(client: FlaskClient, talk: Callable[..., Any]) -> Callable[..., None]:
    """Edits workflow 1, so that its agent has these tools."""

    def save(*uuids: str) -> None:
        answer = client.put(f"{API}/workflow/1", json={"workflow_definition": talk(tool_uuids=list(uuids))})
        assert answer.status_code == 200, answer.text

    return save


@pytest.fixture
def chat(client: FlaskClient, workflow: Callable[..., Any], draft: Callable[..., None]) -> Callable[..., Any]:
    """Opens a chat with the draft of an agent that has these tools; returns a function that says a line in it."""

    def opened(*uuids: str) -> Callable[..., Any]:
        made = workflow(tool_uuids=list(uuids))
        draft(*uuids)
        sessions = f"{API}/workflow/{made['id']}/text-chat/sessions"
        run = client.post(sessions, json={}).get_json()["workflow_run_id"]

        def send(text: str | None) -> Any:
            body = {} if text is None else {"text": text}
            answer = client.post(f"{sessions}/{run}/{'end' if text is None else 'messages'}", json=body)
            assert answer.status_code == 200, answer.text
            return answer.get_json()

        return send

    return opened


def test_once_a_call(
    client: FlaskClient, workflow: Any, make: Any, finished: Any, computed: list[Graph], offered: list[list[str]]
) -> None:
    made = workflow(path="line", tool_uuids=[make("Stop")])
    body = {"phone_number": "+12025550123", "initial_context": {"simulated_callee": LINES}}
    run = client.post(f"{API}/public/agent/line", json=body).get_json()["workflow_run_id"]
    assert finished(made["id"], run)["gathered_context"]["call_disposition"] == "user_qualified"
    assert offered[:3] == [["stop", "yes", "no"]] * 3
    assert len(computed) == 1


def test_never_for_a_call_that_only_ends(
    client: FlaskClient, service: Service, workflow: Any, make: Any, computed: list[Graph], db: None
) -> None:
    """An answering machine took the call before its first turn."""
    workflow(path="line", tool_uuids=[make("Stop")])
    run = Run.get_by_id(client.post(f"{API}/workflow/1/runs", json={"mode": "simulator", "name": "R"}).get_json()["id"])
    run.state, run.deadline_at = "ringing", run.created_at
    run.save()
    StatusCallback.create(run=run, status="completed", outcome="completed", fields={"duration": 1, "machine": True})
    sweeper.sweep(service)
    assert (Run.get_by_id(run.id).disposition, Snapshot.get(run=run.id).number) == ("voicemail_detected", 1)
    assert computed == []


def test_once_a_chat(make: Any, chat: Any, computed: list[Graph], offered: list[list[str]]) -> None:
    send = chat(make("Stop"))
    for line in LINES:
        answer = send(line)
    assert answer["session_data"]["status"] == "completed"
    assert offered[:3] == [["stop", "yes", "no"]] * 3
    assert len(computed) == 1


def test_no_chat_shows_what_it_is_offered(make: Any, chat: Any) -> None:
    send = chat(make("Stop"))
    assert "stop" not in str(send("hm"))


def test_never_to_end_a_chat(make: Any, chat: Any, computed: list[Graph], db: None) -> None:
    send = chat(make("Stop"))
    ChatSession.update(functions=None).execute()
    assert send(None)["session_data"]["status"] == "completed"
    assert len(computed) == 1


def test_a_chat_of_an_earlier_release(
    make: Any, chat: Any, computed: list[Graph], offered: list[list[str]], db: None
) -> None:
    """Nothing was stored of what it is offered."""
    send = chat(make("Stop"))
    ChatSession.update(functions=None).execute()
    send("hm")
    send("hm")
    assert offered == [["stop", "yes", "no"]] * 2
    assert len(computed) == 2


def test_a_chat_without_tools_stores_nothing(chat: Any, computed: list[Graph], db: None) -> None:
    chat()("hm")
    assert (ChatSession.get().functions, computed) == (None, [])


def test_a_chat_goes_on_with_the_tools_as_they_are_now(
    client: FlaskClient, make: Any, draft: Any, chat: Any, computed: list[Graph], offered: list[list[str]]
) -> None:
    stop, halt = make("Stop"), make("Halt")
    send = chat(stop)
    send("hm")
    draft(stop, halt)
    send("hm")
    client.put(f"{API}/tools/{stop}", json={"name": "Wait"})
    send("hm")
    send("hm")
    client.delete(f"{API}/tools/{halt}")
    send("hm")
    names = [each[:-2] for each in offered]
    assert names == [["stop"], ["stop", "halt"], ["wait", "halt"], ["wait", "halt"], ["wait"]]
    assert len(computed) == 4


def test_a_chat_goes_on_with_the_documents_as_they_are_now(
    client: FlaskClient, make: Any, chat: Any, computed: list[Graph]
) -> None:
    send = chat(make("Stop"))
    send("hm")
    file = {"file": (io.BytesIO(b"Plain words."), "words.txt")}
    assert client.post(f"{API}/knowledge-base/documents", data=file).status_code == 200
    send("hm")
    send("hm")
    assert len(computed) == 2
