"""Templates whose values multiply: what is too large is an error that is recorded, and memory stays small."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.conversations import text_chats
from voiceapi.postcall import processing
from voiceapi.service import Service

API = "/api/v1"
KEY = "test-key-0123456789"
KIB = 1024
MOST_MEGABYTES = 150
APOLOGY = "I'm sorry, something went wrong on my side. Could you say that again, please?"


@pytest.fixture
def settings() -> dict[str, Any]:
    """Its own threads make no follow-ups: the tests do it."""
    return {"VOICEAPI_WORKER": False}


@pytest.fixture
def chat(client: FlaskClient, workflow: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Opens a chat of an agent; returns its session. `context` is the initial context, `data` that of the start."""

    def open_chat(context: Any = None, definition: Any = None, **data: Any) -> dict[str, Any]:
        sessions = f"{API}/workflow/{workflow(definition, **data)['id']}/text-chat/sessions"
        answer = client.post(sessions, json={"initial_context": context or {"big": "x" * 10 * KIB}})
        assert answer.status_code == 200, answer.text
        return {**answer.get_json(), "sessions": sessions}

    return open_chat


def errors(session: dict[str, Any]) -> list[str]:
    events = [event for turn in session["session_data"]["turns"] for event in turn["events"]]
    return [event["payload"]["message"] for event in events if event["type"] == "execution_error"]


def said(session: dict[str, Any]) -> list[str]:
    answers = [turn["assistant_message"] for turn in session["session_data"]["turns"]]
    return [answer["text"] for answer in answers if answer]


def test_a_greeting_that_is_too_large_is_left_out(chat: Callable[..., Any]) -> None:
    session = chat(greeting="{{big}}" * 7)
    assert said(session) == ["Ask whether now is good."]
    assert errors(session) == ["The greeting is larger than 64 KiB with its variables filled in."]


def test_a_prompt_that_is_too_large_is_a_failure_of_the_turn(chat: Callable[..., Any], client: FlaskClient) -> None:
    session = chat(greeting="", prompt="{{big}}" * 110)
    assert said(session) == [APOLOGY]
    error = 'The prompt of the node "Hello" is larger than 1 MiB with its variables filled in.'
    assert errors(session) == [error]
    message = f"{session['sessions']}/{session['workflow_run_id']}/messages"
    assert errors(client.post(message, json={"text": "Yes."}).get_json()) == [error, error]


def test_the_global_prompt_counts_as_well(chat: Callable[..., Any], talk: Callable[..., Any]) -> None:
    definition = talk(greeting="", prompt="{{big}}" * 60, add_global_prompt=True)
    data = {"name": "Rules", "prompt": "{{big}}" * 60}
    definition["nodes"].append({"id": "g", "type": "globalNode", "position": {"x": 0, "y": 0}, "data": data})
    assert "is larger than 1 MiB" in errors(chat(definition=definition))[0]


def test_transition_speech_and_extraction_prompts_that_are_too_large_are_left_out(
    chat: Callable[..., Any], talk: Callable[..., Any], client: FlaskClient
) -> None:
    variables = [{"name": "when", "type": "string", "prompt": "{{big}}" * 60}]
    definition = talk(extraction_enabled=True, extraction_variables=variables, extraction_prompt="{{big}}" * 60)
    definition["edges"][0]["data"]["transition_speech"] = "{{big}}" * 7
    session = chat(definition=definition)
    url = f"{session['sessions']}/{session['workflow_run_id']}/messages"
    session = client.post(url, json={"text": "Yes."}).get_json()
    assert errors(session) == [
        'What the node "Hello" says about its extraction is larger than 1 MiB with its variables filled in.',
        'The transition speech of the edge "Yes" is larger than 64 KiB with its variables filled in.',
    ]
    assert said(session)[-1] == "Great, goodbye."
    assert session["is_completed"]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"payload_template": {"all": ["{{initial_context}}"] * 110}}, "The body is larger than 1 MiB"),
        ({"payload_template": {"all": "{{initial_context}}" * 110}}, "The body is larger than 1 MiB"),
        ({"custom_headers": [{"key": "X-A", "value": "{{initial_context.big}}" * 7}]}, "The block of headers is large"),
        ({"endpoint_url": "http://127.0.0.1:9/" + "{{initial_context.big}}" * 7}, "The URL is larger than 64 KiB"),
    ],
)
def test_a_webhook_that_is_too_large_is_a_failed_delivery(
    data: dict[str, Any],
    error: str,
    chat: Callable[..., Any],
    talk: Callable[..., Any],
    client: FlaskClient,
    service: Service,
) -> None:
    definition = talk()
    data = {"name": "CRM", "endpoint_url": "http://127.0.0.1:9/", **data}
    definition["nodes"].append({"id": "w", "type": "webhook", "position": {"x": 0, "y": 0}, "data": data})
    session = chat(definition=definition)
    run = f"{API}/workflow/{session['workflow_id']}/runs/{session['workflow_run_id']}"
    client.post(f"{session['sessions']}/{session['workflow_run_id']}/messages", json={"text": "Yes."})
    assert processing.process_next(service)
    [delivery] = client.get(f"{run}/deliveries").get_json()["deliveries"]
    assert (delivery["state"], delivery["method"], delivery["url"]) == ("dead_letter", None, None)
    [attempt] = delivery["attempts"]
    assert attempt["error"].startswith(error)
    again = client.post(f"{run}/deliveries/{delivery['delivery_uuid']}/redeliver")
    assert again.status_code == 409
    assert again.get_json()["detail"].startswith(f"There is nothing to send again: {error}")


PARAMETER = {"name": "big", "type": "string", "description": "", "required": True}


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"method": "POST", "body_template": {"all": ["{{big}}"] * 110}}, "The body is larger than 1 MiB"),
        ({"method": "POST", "body_template": {"all": "{{big}}" * 110}}, "The body is larger than 1 MiB"),
        ({"method": "POST", "url": "http://a.example/{{big}}" + "{{big}}" * 7}, "URL template rendering failed: it is"),
        ({"method": "GET", "parameters": [{**PARAMETER, "name": f"p{n}"} for n in range(7)]}, "URL template rendering"),
    ],
)
def test_a_request_of_a_tool_that_is_too_large_is_an_error_for_the_model(
    config: dict[str, Any], error: str, client: FlaskClient
) -> None:
    config = {"url": "http://a.example/", "parameters": [PARAMETER], **config}
    definition = {"schema_version": 1, "type": "http_api", "config": config}
    created = client.post(f"{API}/tools/", json={"name": "Look", "definition": definition})
    assert created.status_code == 200, created.text
    trial = {"llm_params": dict.fromkeys(("big", *(f"p{n}" for n in range(7))), "x" * 10 * KIB)}
    tried = client.post(f"{API}/tools/{created.get_json()['tool_uuid']}/test", json=trial).get_json()
    assert tried["status"] == "error"
    assert tried["error"].startswith(error), tried["error"][:200]


def test_a_text_chat_does_not_grow_without_end(
    chat: Callable[..., Any], client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_chats, "MOST_STORED", 20_000)
    session = chat({}, greeting="Tell me a number.")
    url = f"{session['sessions']}/{session['workflow_run_id']}"
    statuses = []
    for _ in range(4):
        client.post(f"{url}/rewind", json={"cursor_turn_id": session["session_data"]["turns"][0]["id"]})
        answer = client.post(f"{url}/messages", json={"text": "x" * 9_000})
        statuses.append(answer.status_code)
    # Discarded turns count, too: the chat is shown with them.
    assert statuses == [200, 200, 200, 400]
    assert answer.get_json() == {"detail": "This text chat is too long to go on. End it, and open another one."}
    assert client.post(f"{url}/end", json={}).get_json()["is_completed"]


def test_the_texts_of_a_tool_are_limited(client: FlaskClient) -> None:
    tool = {"name": "End", "definition": {"schema_version": 1, "type": "end_call", "config": {}}}
    refused = client.post(f"{API}/tools/", json={**tool, "description": "x" * (64 * KIB + 1)})
    assert refused.status_code == 422
    assert refused.get_json()["detail"][0]["loc"] == ["body", "description"]
    tool["definition"]["config"] = {"messageType": "custom", "customMessage": "x" * 64 * KIB}  # type: ignore[index]
    assert client.post(f"{API}/tools/", json=tool).get_json()["detail"][0]["loc"] == ["body", "definition"]


@dataclass
class Server:
    """The service in a process of its own, at its default settings."""

    url: str
    process: subprocess.Popen[str]

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = {"X-API-Key": KEY, "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return dict(json.load(answer))

    @property
    def megabytes(self) -> float:
        """The most memory that the process has had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / KIB


@pytest.fixture
def server(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {"DATABASE": database_at(tmp_path / "v.db"), "API_KEY": KEY, "PORT": str(port)}
    environment = {**os.environ, **{f"VOICEAPI_{name}": value for name, value in settings.items()}}
    command = [sys.executable, "-m", "voiceapi", "serve"]
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    started = Server(f"http://127.0.0.1:{port}{API}", process)
    for _ in range(600):
        try:
            started.ask("GET", "/health")
            break
        except OSError:
            time.sleep(0.1)
    yield started
    process.send_signal(signal.SIGTERM)
    log, _ = process.communicate(timeout=60)
    assert "Traceback" not in log, log[-2000:]


def large(character: str, megabytes: float) -> str:
    return character * int(megabytes * KIB * KIB / len(character.encode()))


ATTACKS: dict[str, dict[str, Any]] = {
    # Workflows of a few kB; what their variables hold comes with the trigger.
    "greeting": {"greeting": "{{a}}" * 900},
    "prompt": {"greeting": "", "prompt": "{{a}}" * 900},
    "prompt of objects": {"greeting": "", "prompt": "{{initial_context}}{{o}}" * 200},
    "prompt of all": {"greeting": "{{a | {{a}}}}" * 100, "prompt": "{{a}}{{o}}{{b}}" * 300},
    "extraction": {
        "greeting": "Now?",
        "extraction_enabled": True,
        "extraction_prompt": "{{a}}" * 500,
        "extraction_variables": [{"name": f"v{n}", "type": "string", "prompt": "{{a}}" * 9} for n in range(20)],
    },
}


@pytest.mark.long
@pytest.mark.parametrize("character", ["x", "\U0001f600", '"'])
def test_memory_stays_small_whatever_a_template_and_its_values_are(
    server: Server, talk: Callable[..., Any], character: str
) -> None:
    """All of a process, at its peak, while workflows of a few kB are called and chatted with, two of each at a time."""
    # As large as a request may be; as JSON each quotation mark has two bytes.
    text = large(character, 0.4 if character == '"' else 0.85)
    context = {"a": text, "o": {"k": [large(character, 0.001)] * 50}, "b": "{{b}}" * 1000}
    webhooks = [
        {"name": "W", "endpoint_url": "http://127.0.0.1:9/{{initial_context.a}}" * 50},
        {
            "name": "W",
            "endpoint_url": "http://127.0.0.1:9/",
            "payload_template": {"all": ["{{initial_context}}"] * 99},
        },
        {
            "name": "W",
            "endpoint_url": "http://127.0.0.1:9/",
            "payload_template": {"{{initial_context.o}}" * 40: "{{initial_context.o}}"},
        },
        {
            "name": "W",
            "endpoint_url": "http://127.0.0.1:9/",
            "custom_headers": [{"key": f"X-{n}", "value": "{{initial_context.a}}" * 5} for n in range(50)],
        },
    ]
    position = {"x": 0, "y": 0}
    for name, data in ATTACKS.items():
        definition = talk(name.replace(" ", "-"), **data)
        definition["nodes"] += [
            {"id": f"w{n}", "type": "webhook", "position": position, "data": hook} for n, hook in enumerate(webhooks)
        ]
        assert len(json.dumps(definition)) < 20 * KIB
        body = {"name": name, "workflow_definition": definition}
        workflow = server.ask("POST", "/workflow/create/definition", body)["id"]
        call = {"phone_number": "+12025550123", "initial_context": context}
        trigger = f"/public/agent/{name.replace(' ', '-')}"
        runs = [server.ask("POST", trigger, call)["workflow_run_id"] for _ in range(2)]
        for _ in range(2):
            sessions = f"/workflow/{workflow}/text-chat/sessions"
            chat = server.ask("POST", sessions, {"initial_context": context})
            runs.append(chat["workflow_run_id"])
            for text in ("Yes.", "Yes."):
                if not chat["is_completed"]:
                    chat = server.ask("POST", f"{sessions}/{runs[-1]}/messages", {"text": text})
            if not chat["is_completed"]:
                server.ask("POST", f"{sessions}/{runs[-1]}/end", {})
        for run in runs:
            deadline = time.monotonic() + 60
            while not settled(server, f"/workflow/{workflow}/runs/{run}"):
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert server.megabytes < MOST_MEGABYTES, name


def settled(server: Server, run: str) -> bool:
    """Whether a run has ended and all its webhooks have failed."""
    if not server.ask("GET", run)["is_completed"]:
        return False
    deliveries = server.ask("GET", f"{run}/deliveries")["deliveries"]
    return len(deliveries) == 4 and all(each["state"] == "dead_letter" for each in deliveries)
