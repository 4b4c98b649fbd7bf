"""Model configurations that name the operator's server, or the scripted model."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.http_client import Reply
from voiceapi.service import Service

API = "/api/v1"
MODELS = f"{API}/organizations/model-configurations/v2"
# Both are marked, so that no answer, log line or database may hold them (tests/scan_secrets.py).
KEY, PASSWORD = "s3cr3t-operators-key", "s3cr3t-password"
URL = "http://models.internal:8080/v1"
CHAT = f"{URL}/chat/completions"
Asked = list[tuple[str, str | None, str | None, bool]]


@pytest.fixture
def settings() -> dict[str, Any]:
    model = {"VOICEAPI_LLM_URL": URL, "VOICEAPI_LLM_KEY": KEY, "VOICEAPI_LLM_MODEL": "tiny"}
    # Its fake of the client answers whole.
    return {**model, "VOICEAPI_LLM_STREAM": False}


@pytest.fixture
def asked(service: Service) -> Asked:
    """The URL, bearer, model and trust of each request to a model."""
    found: Asked = []

    def send(method: str, url: str, *, headers: Any = None, json: Any = None, trusted: bool = False, **_: Any) -> Reply:
        found.append((url, (headers or {}).get("Authorization"), json.get("model"), trusted))
        return Reply(200, {}, b'{"choices": [{"message": {"content": "Hello."}}]}', 0.1)

    object.__setattr__(service.http, "send", send)
    return found


@pytest.fixture
def said(client: FlaskClient, workflow: Callable[..., Any], asked: Asked) -> Callable[[], Asked]:
    """Says yes to an agent; returns what was asked of models meanwhile."""
    sessions = f"{API}/workflow/{workflow()['id']}/text-chat/sessions"

    def talk() -> Asked:
        del asked[:]
        run = client.post(sessions, json={}).get_json()["workflow_run_id"]
        assert client.post(f"{sessions}/{run}/messages", json={"text": "Yes."}).status_code == 200
        return sorted(set(asked))

    return talk


def llm_of(answer: Any) -> Any:
    return answer["configuration"]["byok"]["pipeline"]["llm"]


def put(client: FlaskClient, shown: Any, **llm: Any) -> Any:
    """Put what was shown, with these members of its llm; None takes one away."""
    body = copy.deepcopy(shown["configuration"])
    changed = llm_of({"configuration": body})
    changed |= llm
    for name in [name for name in changed if changed[name] is None]:
        del changed[name]
    answer = client.put(MODELS, json=body)
    assert answer.status_code == 200, answer.text
    assert llm_of(answer.get_json()) == changed
    return answer.get_json()


def test_without_a_configuration_the_operators_is_shown_without_its_key(client: FlaskClient) -> None:
    shown = client.get(MODELS).get_json()
    assert shown["source"] == "empty"
    assert llm_of(shown) == {"provider": "openai-compatible", "model": "tiny", "base_url": URL}
    assert shown["effective_configuration"]["llm"] == llm_of(shown)


def test_setting_the_model_of_what_is_shown_works_at_once(client: FlaskClient, said: Any) -> None:
    assert said() == [(CHAT, f"Bearer {KEY}", "tiny", True)]
    shown = put(client, client.get(MODELS).get_json(), provider="openai", model="large")
    assert shown["source"] == "organization_v2"
    assert said() == [(CHAT, f"Bearer {KEY}", "large", True)]


def test_the_provider_stands_for_the_operators_url(client: FlaskClient, said: Any) -> None:
    put(client, client.get(MODELS).get_json(), provider="OpenAI-compatible", base_url=None, model=None)
    assert said() == [(CHAT, f"Bearer {KEY}", "tiny", True)]


def test_a_workflows_own_model_may_be_on_the_operators_server(client: FlaskClient, said: Any) -> None:
    override = client.get(MODELS).get_json()["configuration"]
    llm_of({"configuration": override})["model"] = "mine"
    body = {"workflow_configurations": {"model_configuration_v2_override": override}}
    assert client.put(f"{API}/workflow/1", json=body).status_code == 200
    assert said() == [(CHAT, f"Bearer {KEY}", "mine", True)]


def test_a_key_of_its_own_is_sent_instead_of_the_operators(client: FlaskClient, said: Any) -> None:
    body = client.get(MODELS).get_json()["configuration"]
    llm_of({"configuration": body})["api_key"] = "own-key-of-theirs"
    assert client.put(MODELS, json=body).status_code == 200
    assert said() == [(CHAT, "Bearer own-key-of-theirs", "tiny", True)]


def test_slashes_at_the_end_make_no_other_url(client: FlaskClient, said: Any) -> None:
    put(client, client.get(MODELS).get_json(), base_url=f"{URL}/")
    assert said() == [(CHAT, f"Bearer {KEY}", "tiny", True)]


@pytest.mark.parametrize(
    "url",
    [
        "http://models.internal:8081/v1",
        "http://models.internal/v1",
        "https://models.internal:8080/v1",
        "http://ann@models.internal:8080/v1",
        "http://models.internal:8080@attacker.example/v1",
        "http://models.internal:8080/V1",
        "http://MODELS.internal:8080/v1",
        "http://models.internal.:8080/v1",
        "http://models.internal:8080/v1/../v1",
        "http://models.internal:8080/v1?x=1",
        "http://models.internal:8080/v1#",
        "http://models.internal:8080//v1",
        " http://models.internal:8080/v1",
        "http://models.internal:8080/v1\n",
        "http://models.internal:8080/v",
        "//models.internal:8080/v1",
    ],
)
def test_another_url_never_gets_the_operators_key(client: FlaskClient, said: Any, url: str) -> None:
    body = client.get(MODELS).get_json()["configuration"]
    for provider in ("openai-compatible", "openai"):
        llm_of({"configuration": body}).update(provider=provider, base_url=url)
        assert client.put(MODELS, json=body).status_code == 200
        for sent_to, bearer, _, trusted in said():
            assert (bearer, trusted) == (None, False), sent_to


def test_a_known_provider_without_a_url_never_gets_it_either(client: FlaskClient, said: Any) -> None:
    put(client, client.get(MODELS).get_json(), provider="openai", base_url=None)
    assert said() == [("https://api.openai.com/v1/chat/completions", None, "tiny", False)]


def test_the_scripted_model_may_be_chosen_although_there_is_another(client: FlaskClient, said: Any) -> None:
    put(client, client.get(MODELS).get_json(), provider="scripted")
    assert said() == []


class TestWithAUserInTheURL:
    @pytest.fixture
    def settings(self) -> dict[str, Any]:
        return {"VOICEAPI_LLM_URL": f"http://ann:{PASSWORD}@models.internal:8080/v1", "VOICEAPI_LLM_STREAM": False}

    def test_it_is_neither_shown_nor_stored(self, client: FlaskClient, said: Any) -> None:
        shown = client.get(MODELS).get_json()
        assert llm_of(shown) == {"provider": "openai-compatible", "base_url": URL}
        put(client, shown, model="large")
        (asked,) = said()
        assert asked == (f"http://ann:{PASSWORD}@models.internal:8080/v1/chat/completions", None, "large", True)


class TestWithoutAModel:
    @pytest.fixture
    def settings(self) -> dict[str, Any]:
        return {}

    def test_the_scripted_one_is_shown_and_accepted(self, client: FlaskClient, said: Any) -> None:
        shown = client.get(MODELS).get_json()
        assert (llm_of(shown), shown["source"]) == ({"provider": "scripted", "model": "scripted"}, "empty")
        assert put(client, shown)["source"] == "organization_v2"
        assert said() == []

    def test_the_operators_has_no_url(self, client: FlaskClient, said: Any) -> None:
        put(client, client.get(MODELS).get_json(), provider="openai-compatible")
        assert said() == []
        run = client.get(f"{API}/workflow/1/runs/1").get_json()
        assert "needs a base_url or VOICEAPI_LLM_URL" in json.dumps(run["logs"])


def test_a_hosts_own_model_is_no_configuration(client: FlaskClient, service: Service) -> None:
    object.__setattr__(service, "model", object())
    shown = client.get(MODELS).get_json()
    assert (shown["configuration"], shown["source"]) == (None, "empty")
