"""The choice of the model that speaks, and what the run says about it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.http_client import Reply
from voiceapi.llm.chat_completions import MOST_REFUSED
from voiceapi.llm.selection import from_configuration
from voiceapi.service import MOST_REFUSING

KEY = "test-key-0123456789"
API = "/api/v1"
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


@pytest.fixture
def asked() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def url(asked: list[dict[str, Any]]) -> Iterator[str]:
    """A model that always takes the first function it is offered, and otherwise says which model it is."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append({**body, "key": self.headers["Authorization"]})
            message: dict[str, Any] = {"content": f"I am {body['model']}."}
            if "tools" in body:
                function = {"name": body["tools"][0]["function"]["name"], "arguments": "{}"}
                message = {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"choices": [{"message": message}], "usage": USAGE}).encode())

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def start(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[Callable[..., FlaskClient]]:
    apps = []

    def make(**settings: Any) -> FlaskClient:
        given = {"TESTING": True, "VOICEAPI_DATABASE": database_at(tmp_path / "v.db"), "VOICEAPI_API_KEY": KEY}
        app = create_app({**given, **{f"VOICEAPI_{name}": value for name, value in settings.items()}})
        apps.append(app)
        client = app.test_client()
        client.environ_base["HTTP_X_API_KEY"] = KEY
        return client

    yield make
    for app in apps:
        app.extensions["voiceapi"].close()


def chat(client: FlaskClient, talk: Callable[..., Any], override: Any = None) -> tuple[str, dict[str, Any]]:
    """The agent's answer to a yes, and the run."""
    body = {"name": "Agent", "workflow_definition": talk()}
    workflow = client.post(f"{API}/workflow/create/definition", json=body).get_json()["id"]
    if override is not None:
        configured = {"workflow_configurations": {"model_configuration_v2_override": override}}
        answer = client.put(f"{API}/workflow/{workflow}", json=configured)
        assert answer.status_code == 200, answer.text
    sessions = f"{API}/workflow/{workflow}/text-chat/sessions"
    run = client.post(sessions, json={}).get_json()["workflow_run_id"]
    answer = client.post(f"{sessions}/{run}/messages", json={"text": "Yes."})
    said = answer.get_json()["session_data"]["turns"][-1]["assistant_message"]["text"]
    return said, client.get(f"{API}/workflow/{workflow}/runs/{run}").get_json()


def byok(url: str, model: str) -> dict[str, Any]:
    service = {"provider": "mine", "model": model, "api_key": "sk-1", "base_url": url}
    pipeline = {"llm": service, "tts": service, "stt": service}
    return {"version": 2, "mode": "byok", "byok": {"mode": "pipeline", "pipeline": pipeline}}


def test_the_operators_model(start: Any, url: str, asked: list[Any], talk: Any) -> None:
    said, run = chat(start(LLM_URL=url, LLM_MODEL="tiny", LLM_KEY="word"), talk)
    assert said == "I am tiny."
    assert [each["key"] for each in asked] == ["Bearer word"] * 2
    assert run["initial_context"]["runtime_configuration"] == {"llm_provider": "openai-compatible", "llm_model": "tiny"}
    counts = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}
    counts |= {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    assert run["usage_info"]["llm"] == {"openai-compatible|||tiny": counts}


def test_a_text_chat_shows_what_a_call_would_say(start: Any, url: str, talk: Any) -> None:
    assert chat(start(LLM_URL=url, LLM_MODEL="**tiny** &amp; \U0001f600 <b>quick</b>"), talk)[0] == "I am tiny & quick."


def test_the_organizations_model_comes_before_it(start: Any, url: str, talk: Any) -> None:
    client = start(LLM_URL=url, LLM_MODEL="tiny", ALLOW_PRIVATE_URLS=True)
    client.put(f"{API}/organizations/model-configurations/v2", json=byok(url, "ours"))
    assert chat(client, talk)[0] == "I am ours."


def test_the_workflows_model_comes_first(start: Any, url: str, talk: Any) -> None:
    client = start(LLM_URL=url, ALLOW_PRIVATE_URLS=True)
    client.put(f"{API}/organizations/model-configurations/v2", json=byok(url, "ours"))
    assert chat(client, talk, byok(url, "mine"))[0] == "I am mine."


def test_a_private_address_is_not_asked_unless_allowed(start: Any, url: str, asked: list[Any], talk: Any) -> None:
    said, run = chat(start(), talk, byok(url, "mine"))
    assert said.startswith("I'm sorry")
    assert asked == []
    events = run["logs"]["realtime_feedback_events"]
    assert any("private network" in event["payload"].get("error", "") for event in events)


# -- the most tokens of a reply


def limited(models: dict[str, Any], tokens: Any) -> dict[str, Any]:
    models["byok"]["pipeline"]["llm"]["max_tokens"] = tokens
    return models


def test_the_operator_sets_the_most_tokens(start: Any, url: str, asked: list[Any], talk: Any) -> None:
    chat(start(LLM_URL=url, LLM_MAX_TOKENS="77"), talk)
    assert [each["max_tokens"] for each in asked] == [77, 77]


def test_a_model_configuration_sets_the_most_tokens(start: Any, url: str, asked: list[Any], talk: Any) -> None:
    client = start(LLM_MAX_TOKENS="77", ALLOW_PRIVATE_URLS=f"*.lan, {urlsplit(url).netloc}")
    configurations = f"{API}/organizations/model-configurations/v2"
    answer = client.put(configurations, json=limited(byok(url, "ours"), 40))
    assert answer.status_code == 200, answer.text
    chat(client, talk)
    chat(client, talk, limited(byok(url, "mine"), 50))
    client.put(configurations, json=byok(url, "ours"))
    chat(client, talk)
    assert [each["max_tokens"] for each in asked] == [40, 40, 50, 50, 77, 77]


@pytest.mark.parametrize("tokens", [0, -1, 100_001, 1.5, "many"])
def test_another_number_of_tokens_is_refused(start: Any, url: str, talk: Any, tokens: Any) -> None:
    client = start(ALLOW_PRIVATE_URLS=True)
    answer = client.put(f"{API}/organizations/model-configurations/v2", json=limited(byok(url, "ours"), tokens))
    assert answer.status_code == 422
    (item,) = answer.get_json()["detail"]
    assert item["loc"][-4:] == ["byok", "pipeline", "llm", "max_tokens"]
    workflow = client.post(f"{API}/workflow/create/definition", json={"name": "A", "workflow_definition": talk()})
    override = {"model_configuration_v2_override": limited(byok(url, "mine"), tokens)}
    body = {"workflow_configurations": override}
    answer = client.put(f"{API}/workflow/{workflow.get_json()['id']}", json=body)
    assert answer.status_code == 422
    assert "byok.pipeline.llm.max_tokens must be a whole number from 1 to 100000." in answer.text


def test_a_refused_parameter_is_remembered_for_all_conversations(start: Any, talk: Any) -> None:
    asked: list[dict[str, Any]] = []

    def send(method: str, url: str, *, json: Any = None, **_: Any) -> Reply:
        asked.append(json)
        if "max_tokens" in json:
            return Reply(400, {}, b"Unsupported parameter: 'max_tokens'.", 0.1)
        return Reply(200, {}, b'{"choices": [{"message": {"content": "Hello."}}]}', 0.1)

    client = start(LLM_URL="http://model/v1", LLM_STREAM=False)
    object.__setattr__(client.application.extensions["voiceapi"].http, "send", send)
    chat(client, talk)
    chat(client, talk)
    assert [each.get("max_tokens") for each in asked] == [300, None, None]
    assert [each.get("max_completion_tokens") for each in asked] == [None, 300, 300]


def test_what_is_refused_of_one_does_not_change_what_is_sent_for_others(start: Any) -> None:
    """It counts for the organization, the server, the model and the value, and little of it is remembered."""
    asked: list[dict[str, Any]] = []

    def send(method: str, url: str, *, json: Any = None, **_: Any) -> Reply:
        asked.append(json)
        if json.get("temperature", 0) > 1:
            return Reply(400, {}, b"temperature must be at most 1.", 0.1)
        return Reply(200, {}, b'{"choices": [{"message": {"content": "Hello."}}]}', 0.1)

    service = start().application.extensions["voiceapi"]
    object.__setattr__(service.http, "send", send)
    for organization, temperature, sent in (
        (1, 1.5, [1.5, None]),
        (1, 1.5, [None]),
        (1, 0.2, [0.2]),
        (2, 0.2, [0.2]),
        (2, 1.5, [1.5, None]),
    ):
        asked.clear()
        llm = {"provider": "openai", "model": "m", "temperature": temperature}
        from_configuration(service, llm, organization).complete("", "Hm?")
        assert [each.get("temperature") for each in asked] == sent, (organization, temperature)
    for number in range(2 * MOST_REFUSED):
        llm = {"provider": "openai", "model": "m", "temperature": 1.1 + number / 1000}
        from_configuration(service, llm, 1).complete("", "Hm?")
    known = service.refused_parameters(1, "https://api.openai.com/v1", "m")
    assert 0 < len(known) <= MOST_REFUSED
    for number in range(MOST_REFUSING):
        service.refused_parameters(3, "https://api.openai.com/v1", str(number))
    assert service.refused_parameters(1, "https://api.openai.com/v1", "m") == set()
