"""Whole conversations with servers that are as strict as their providers say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.llm.strict_providers import MESSAGE, PROVIDERS, Providers
from tests.rehearsal.strict_model import serving
from voiceapi import create_app
from voiceapi.masking import HIDDEN
from voiceapi.rehearsal.recording import of_chat
from voiceapi.rehearsal.replay import itself
from voiceapi.store.base import find
from voiceapi.store.organizations import Organization
from voiceapi.store.runs import Run

API = "/api/v1"
KEY = "test-key-0123456789"
PARAMETERS: dict[str, Any] = {
    "temperature": 0.3,
    "top_p": 0.9,
    "top_k": 20,
    "seed": 7,
    "stop": ["##"],
    "reasoning_effort": "low",
    "extra_body": {"service_level": "fast"},
}


@pytest.fixture
def server() -> Iterator[Providers]:
    with serving(Providers()) as providers:
        yield providers


@pytest.fixture
def client(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[FlaskClient]:
    settings = {"DATABASE": database_at(tmp_path / "v.db"), "API_KEY": KEY, "ALLOW_PRIVATE_URLS": True}
    app = create_app({"TESTING": True, **{f"VOICEAPI_{name}": value for name, value in settings.items()}})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    yield client
    app.extensions["voiceapi"].close()


def use(client: FlaskClient, server: Providers, **llm: Any) -> Any:
    service = {"provider": "mine", "model": "anthropic", "base_url": server.url, **llm}
    byok = {"mode": "pipeline", "pipeline": {"llm": service, "tts": service, "stt": service}}
    answer = client.put(f"{API}/organizations/model-configurations/v2", json={"mode": "byok", "byok": byok})
    assert answer.status_code == 200, answer.text
    return answer


def chat(client: FlaskClient, definition: Any, *texts: str) -> dict[str, Any]:
    """The run of a chat in which these are said."""
    made = client.post(f"{API}/workflow/create/definition", json={"name": "A", "workflow_definition": definition})
    sessions = f"{API}/workflow/{made.get_json()['id']}/text-chat/sessions"
    run = client.post(sessions, json={}).get_json()["workflow_run_id"]
    for text in texts:
        answer = client.post(f"{sessions}/{run}/messages", json={"text": text})
        assert answer.status_code == 200, answer.text
    session: dict[str, Any] = client.get(f"{sessions}/{run}").get_json()
    return session


def errors(client: FlaskClient, session: dict[str, Any]) -> list[str]:
    """The failures in the log of a chat, which must be replayed as it was."""
    service = client.application.extensions["voiceapi"]
    with service.store.session():
        run = find(Run, id=session["workflow_run_id"])
        assert run is not None
        replayed = itself(of_chat(run))
    assert (replayed.divergence, replayed.differences) == (None, ())
    events = [event for turn in session["session_data"]["turns"] for event in turn["events"]]
    return [event["payload"] for event in events if "error" in event["type"]]


# What each of the servers refuses once, and isn't sent any more.
REFUSED: dict[str, set[str]] = {
    "deepseek": set(),
    "gemini": {"top_k", "service_level"},
    "anthropic": {"temperature"},
    "groq": {"top_k", "service_level", "messages.reasoning_content"},
    "mistral": {"seed", "top_k", "service_level", "stream_options"},
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_conversation(
    client: FlaskClient, server: Providers, talk: Any, provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It begins at a node without a greeting, and goes on after a function call."""
    refused = REFUSED[provider]
    use(client, server, model=provider, **PARAMETERS)
    for _ in range(2):
        session = chat(client, talk(greeting=""), "Hm?", "Yes.")
        assert errors(client, session) == []
        assert session["session_data"]["turns"][-1]["assistant_message"]["text"] == "Hello."
    assert len([each for each in server.asked if each["status"] != 200]) == len(refused)
    logged = [record.getMessage().rsplit(" ", 1)[1] for record in caplog.records if "refuses" in record.getMessage()]
    assert sorted(logged) == sorted(refused)
    *before, last = (each for each in server.asked[-4:])
    sent = {**PARAMETERS, **PARAMETERS["extra_body"]}
    assert {name: last[name] for name in last.keys() & sent.keys()} == {
        name: value for name, value in sent.items() if name not in {"extra_body", *refused}
    }
    # A turn only adds to what was sent before, so that the server has read the rest already.
    assert all(each["messages"][1:] == last["messages"][1 : len(each["messages"])] for each in before)


def test_another_model_gets_nothing_of_the_first(client: FlaskClient, server: Providers, talk: Any) -> None:
    """Its thoughts and signatures are sent to nobody else, and what it refused is sent to others."""
    use(client, server, model="groq", seed=7, top_k=5)
    made = client.post(f"{API}/workflow/create/definition", json={"name": "A", "workflow_definition": talk()})
    sessions = f"{API}/workflow/{made.get_json()['id']}/text-chat/sessions"
    url = f"{sessions}/{client.post(sessions, json={}).get_json()['workflow_run_id']}/messages"
    client.post(url, json={"text": "Hm?"})
    use(client, server, model="mistral", seed=7, top_k=5)
    client.post(url, json={"text": "Hm?"})
    use(client, server, model="groq-2", seed=7, top_k=5)
    client.post(url, json={"text": "Hm?"})
    assert [(each["status"], "seed" in each, "top_k" in each) for each in server.asked] == [
        *((400, True, True), (200, True, False)),
        # The last of them is `stream_options`.
        *((422, True, True), (422, True, False), (422, False, False), (200, False, False)),
        *((400, True, True), (200, True, False)),
    ]
    assert not any(each.keys() - MESSAGE for body in server.asked for each in body["messages"])


def test_headers_of_a_model_are_sent_and_hidden(client: FlaskClient, server: Providers, talk: Any) -> None:
    secret = "t0p-s3cret-header"
    headers = {"X-Team": secret, "Accept-Language": "de", "Authorization": "Token abcdefgh"}
    hidden = {"X-Team": HIDDEN, "Accept-Language": "de", "Authorization": HIDDEN}
    shown = use(client, server, api_key="sk-not-this-one", extra_headers=headers).get_json()["configuration"]
    assert shown["byok"]["pipeline"]["llm"]["extra_headers"] == hidden
    # Sent back as it was shown, it keeps them.
    put = client.put(f"{API}/organizations/model-configurations/v2", json=shown)
    assert put.get_json()["configuration"] == shown
    chat(client, talk(), "Yes.")
    assert {name: server.asked[-1]["headers"][name] for name in headers} == headers
    service = client.application.extensions["voiceapi"]
    with service.store.session():
        found = find(Organization, id=1)
        assert found is not None
        assert secret not in found.model_configuration
    # In a workflow, too.
    id = client.post(f"{API}/workflow/create/definition", json={"name": "A", "workflow_definition": talk()}).get_json()[
        "id"
    ]
    own = {"model_configuration_v2_override": {"mode": "byok", "byok": shown["byok"]}}
    answer = client.put(f"{API}/workflow/{id}", json={"workflow_configurations": own})
    override = answer.get_json()["workflow_configurations"]["model_configuration_v2_override"]
    assert override["byok"]["pipeline"]["llm"]["extra_headers"] == hidden
    shown["byok"]["pipeline"]["llm"]["extra_headers"]["X-Other"] = HIDDEN
    for path, body in (
        ("/organizations/model-configurations/v2", shown),
        (f"/workflow/{id}", {"workflow_configurations": own}),
    ):
        refused = client.put(f"{API}{path}", json=body)
        assert refused.status_code == 422
        assert "The header 'X-Other' is masked and no stored one matches it." in refused.text


def test_stored_secrets_of_a_model_are_not_sent_to_another_server(client: FlaskClient, server: Providers) -> None:
    """A mask stands for the stored secret only as long as the service has the same provider and base_url."""
    path = f"{API}/organizations/model-configurations/v2"
    for secrets, text in (
        ({"extra_headers": {"X-Team": "t0p-s3cret-header"}}, "The header 'X-Team' is masked and no stored one matches"),
        ({"extra_headers": {}, "api_key": "sk-not-this-one"}, "The api_key '****-one' is masked and no stored one"),
    ):
        shown = use(client, server, **secrets).get_json()["configuration"]
        llm = shown["byok"]["pipeline"]["llm"]
        for changed in ({"base_url": "https://other.example/v1"}, {"base_url": None}, {"provider": "groq"}):
            body = {
                **shown,
                "byok": {"mode": "pipeline", "pipeline": {**shown["byok"]["pipeline"], "llm": llm | changed}},
            }
            refused = client.put(path, json=body)
            assert (refused.status_code, text in refused.text) == (422, True), (changed, refused.text)
        assert client.put(path, json=shown).get_json()["configuration"] == shown


def test_parameters_that_no_server_could_take(client: FlaskClient, server: Providers, talk: Any) -> None:
    """Each is refused by its name, for the organization and for a workflow; what isn't known is named."""
    wrong = {
        "temperature": 3,
        "top_p": "much",
        "seed": 1.5,
        "stop": [],
        "reasoning_effort": "",
        "max_completion_tokens": 0,
        "extra_body": {"messages": []},
        "extra_headers": {"Host": "elsewhere"},
    }
    service = {"provider": "mine", "model": "m", "base_url": server.url}
    bad = {"mode": "byok", "byok": {"mode": "pipeline", "pipeline": {"llm": {**service, **wrong}}}}
    bad["byok"]["pipeline"] |= {"tts": service, "stt": service}
    answer = client.put(f"{API}/organizations/model-configurations/v2", json=bad)
    assert {item["loc"][-1] for item in answer.get_json()["detail"]} == wrong.keys()
    assert "Value error, use a number from 0 to 2" in answer.text
    id = client.post(f"{API}/workflow/create/definition", json={"name": "A", "workflow_definition": talk()}).get_json()[
        "id"
    ]
    own = {"workflow_configurations": {"model_configuration_v2_override": bad}}
    answer = client.put(f"{API}/workflow/{id}", json=own)
    assert answer.status_code == 422
    assert all(f"byok.pipeline.llm.{name} must be " in answer.text for name in wrong)
    bad["byok"]["pipeline"]["llm"] = {**service, "temprature": 0.5}
    named = '199 voiceapi "fields not known here and passed over: temprature"'
    assert client.put(f"{API}/workflow/{id}", json=own).headers["Warning"] == named
    assert use(client, server, temprature=0.5).headers["Warning"] == named
