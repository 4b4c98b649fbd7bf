"""Judges the service by the request sequences of a published command line client, dograh-ctl.

Each method below sends what a command of that name sends, in that order, and reads only what the command reads.
The client itself isn't driven here: it would bring fifteen packages along, two web frameworks among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

# How the client finds the name of a run in the words that answer a call.
RUN_NAME = re.compile(r"(WR-[A-Z-]+-\d+)")
MODELS = "/organizations/model-configurations/v2"
CONFIGS = "/organizations/telephony-configs"
CSV = b"phone_number,first_name\n+12025550123,Ann\n+12025550124,Bob\n"


class Ctl:
    """The client: no redirect is followed, and no key is sent to an address that the service named."""

    def __init__(self, url: str, key: str) -> None:
        self._client = httpx.Client(base_url=url, headers={"X-API-Key": key})

    def close(self) -> None:
        self._client.close()

    def request(self, method: str, path: str, **kwargs: Any) -> Any:
        answer = self._client.request(method, f"/api/v1{path}", **kwargs)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def get(self, path: str, **params: Any) -> Any:
        return self.request("GET", path, params=params or None)

    # -- agents

    def agents_create(self, call_type: str, use_case: str, description: str) -> Any:
        body = {"call_type": call_type, "use_case": use_case, "activity_description": description}
        return self.request("POST", "/workflow/create/template", json=body)

    def ensure_draft(self, agent: int) -> Any:
        workflow = self.get(f"/workflow/fetch/{agent}")
        if workflow["version_status"] != "draft":
            self.request("POST", f"/workflow/{agent}/create-draft")
        return workflow

    def agents_rename(self, agent: int, name: str) -> Any:
        self.ensure_draft(agent)
        return self.request("PUT", f"/workflow/{agent}", json={"name": name})

    def agents_set_prompt(self, agent: int, prompt: str) -> Any:
        definition = self.ensure_draft(agent)["workflow_definition"]
        for node in definition["nodes"]:
            if node["type"] == "agentNode":
                node["data"]["prompt"] = prompt
        return self.request("PUT", f"/workflow/{agent}", json={"workflow_definition": definition})

    def agents_set_model(self, agent: int, service: str, provider: str, model: str) -> Any:
        configurations = dict(self.ensure_draft(agent)["workflow_configurations"] or {})
        override = configurations.get("model_configuration_v2_override") or self.get(MODELS)["configuration"]
        with_model(override, service, provider, model)
        configurations["model_configuration_v2_override"] = override
        return self.request("PUT", f"/workflow/{agent}", json={"workflow_configurations": configurations})

    # -- models

    def models_set(self, service: str, provider: str, model: str) -> Any:
        configuration = self.get(MODELS)["configuration"]
        with_model(configuration, service, provider, model)
        return self.request("PUT", MODELS, json=configuration)

    # -- runs

    def usage(self, limit: int) -> Any:
        return self.get("/organizations/usage/runs", page=1, limit=limit)

    def runs_trigger(self, agent: int, number: str) -> Any:
        answer = self.request("POST", "/telephony/initiate-call", json={"workflow_id": agent, "phone_number": number})
        found = RUN_NAME.search(answer["message"])
        assert found is not None
        return next(run for run in self.usage(50)["runs"] if run["name"] == found[1])

    def runs_transcript(self, run_id: int) -> str:
        agent = next(run["workflow_id"] for run in self.usage(100)["runs"] if run["id"] == run_id)
        url = self.get(f"/workflow/{agent}/runs/{run_id}")["transcript_public_url"]
        answer = httpx.get(url, follow_redirects=True)
        assert answer.status_code == 200
        return answer.text

    def runs_chat(self, agent: int, *lines: str) -> tuple[list[str], Any]:
        sessions = f"/workflow/{agent}/text-chat/sessions"
        session = self.request("POST", sessions, json={})
        path = f"{sessions}/{session['workflow_run_id']}"
        for line in lines:
            body = {"text": line, "expected_revision": session["revision"]}
            session = self.request("POST", f"{path}/messages", json=body)
        said = [turn["assistant_message"]["text"] for turn in session["session_data"]["turns"]]
        return said, self.request("POST", f"{path}/end", json={"expected_revision": session["revision"]})

    # -- numbers

    def numbers_list(self) -> list[Any]:
        configs = self.get(CONFIGS)["configurations"]
        return [number for c in configs for number in self.get(f"{CONFIGS}/{c['id']}/phone-numbers")["phone_numbers"]]

    def numbers_add(self, address: str, label: str, agent: int) -> Any:
        config = next(c["id"] for c in self.get(CONFIGS)["configurations"] if c["is_default_outbound"])
        body = {"address": address, "is_active": True, "label": label, "inbound_workflow_id": agent}
        return self.request("POST", f"{CONFIGS}/{config}/phone-numbers", json=body)

    def number(self, address: str) -> str:
        found = next(n for n in self.numbers_list() if address in (n["address"], n["address_normalized"]))
        return f"{CONFIGS}/{found['telephony_configuration_id']}/phone-numbers/{found['id']}"

    def numbers_assign(self, address: str, agent: int) -> Any:
        return self.request("PUT", self.number(address), json={"inbound_workflow_id": agent})

    def numbers_remove(self, address: str) -> Any:
        return self.request("DELETE", self.number(address))

    # -- campaigns

    def campaigns_create(self, name: str, agent: int, file_name: str, content: bytes) -> Any:
        body = {"file_name": file_name, "file_size": len(content), "content_type": "text/csv"}
        slot = self.request("POST", "/s3/presigned-upload-url", json=body)
        sent = httpx.put(slot["upload_url"], content=content, headers={"content-type": "text/csv"})
        assert not sent.is_error
        body = {"name": name, "workflow_id": agent, "source_type": "csv", "source_id": slot["file_key"]}
        return self.request("POST", "/campaign/create", json={**body, "max_concurrency": 3})


def with_model(configuration: Any, service: str, provider: str, model: str) -> None:
    byok = configuration["byok"]
    byok[byok["mode"]][service] |= {"provider": provider, "model": model}


@pytest.fixture
def ctl(server: Any) -> Iterator[Ctl]:
    client = Ctl(server.url, server.key)
    yield client
    client.close()


@pytest.fixture
def agent(ctl: Ctl) -> int:
    return int(ctl.agents_create("outbound", "lead qualification", "Ask for the budget.")["id"])


def test_agents_create_list_and_get(ctl: Ctl) -> None:
    made = ctl.agents_create("inbound", "front desk", "Say when we are open.")
    assert made["name"] == "front desk - inbound"
    listed = next(workflow for workflow in ctl.get("/workflow/fetch") if workflow["id"] == made["id"])
    assert {name: listed[name] for name in ("name", "status", "total_runs")} == {
        "name": "front desk - inbound",
        "status": "active",
        "total_runs": 0,
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", listed["created_at"][:10])
    shown = ctl.get(f"/workflow/fetch/{made['id']}")
    assert (shown["version_number"], shown["version_status"]) == (1, "published")
    assert shown["workflow_uuid"] == listed["workflow_uuid"]
    assert {"startCall", "agentNode", "endCall"} <= {node["type"] for node in shown["workflow_definition"]["nodes"]}


def test_agents_set_prompt_validate_and_publish(ctl: Ctl, agent: int) -> None:
    saved = ctl.agents_set_prompt(agent, "Ask for the budget, kindly.")
    prompts = [n["data"]["prompt"] for n in saved["workflow_definition"]["nodes"] if n["type"] == "agentNode"]
    assert prompts == ["Ask for the budget, kindly."]
    checked = ctl.request("POST", f"/workflow/{agent}/validate")
    assert (checked.get("valid"), checked["errors"]) == (None, [])
    assert ctl.request("POST", f"/workflow/{agent}/publish")["version_number"] == 2


def test_agents_rename(ctl: Ctl, agent: int) -> None:
    """With a draft made first, as the client does, and with a draft that is there."""
    assert ctl.agents_rename(agent, "Leads")["version_number"] == 2
    assert ctl.agents_rename(agent, "Good leads")["name"] == "Good leads"
    shown = ctl.get(f"/workflow/fetch/{agent}")
    assert (shown["name"], shown["version_number"], shown["version_status"]) == ("Good leads", 2, "draft")


def test_runs_trigger_list_and_transcript(ctl: Ctl, agent: int, wait_for: Any) -> None:
    run = ctl.runs_trigger(agent, "+12025550123")
    assert (run["workflow_id"], run["workflow_name"]) == (agent, "lead qualification - outbound")
    wait_for(lambda: ctl.get(f"/workflow/{agent}/runs/{run['id']}")["is_completed"])
    listed = ctl.usage(10)
    ended = next(found for found in listed["runs"] if found["id"] == run["id"])
    assert listed["total_count"] >= 1
    assert (ended["disposition"], ended["call_duration_seconds"] > 0) == ("user_qualified", True)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", ended["created_at"][:19])
    lines = ctl.runs_transcript(run["id"]).splitlines()
    assert len(lines) > 2
    assert [line for line in lines if not re.fullmatch(r"\[\S+\] (assistant|user): .+", line)] == []
    assert ctl.get(f"/workflow/{agent}/runs/{run['id']}")["recording_public_url"] is None


def test_runs_chat(ctl: Ctl, agent: int) -> None:
    said, ended = ctl.runs_chat(agent, "Hm?", "Yes, I have time.")
    assert len(said) == 3
    assert (
        said[1]
        == "Sorry, I didn't get that. Is it a good moment to talk about lead qualification? Please say yes or no."
    )
    assert (ended["state"], ended["session_data"]["status"]) == ("completed", "completed")
    assert "runtime_configuration" not in ended["initial_context"]
    assert ended["workflow_run_id"] in [run["id"] for run in ctl.usage(50)["runs"]]


def test_numbers_add_assign_list_and_remove(ctl: Ctl, agent: int) -> None:
    added = ctl.numbers_add("+1 202 555 0177", "Desk", agent)
    assert added["address_normalized"] == "+12025550177"
    second = int(ctl.agents_create("inbound", "desk", "Answer.")["id"])
    ctl.numbers_assign("+12025550177", second)
    listed = next(number for number in ctl.numbers_list() if number["id"] == added["id"])
    assert {name: listed[name] for name in ("label", "inbound_workflow_id", "inbound_workflow_name", "is_active")} == {
        "label": "Desk",
        "inbound_workflow_id": second,
        "inbound_workflow_name": "desk - inbound",
        "is_active": True,
    }
    ctl.numbers_remove("+1 202 555 0177")
    assert [number["address"] for number in ctl.numbers_list()] == ["+12025550199"]


def test_campaigns_create_list_and_status(ctl: Ctl, agent: int) -> None:
    """The progress of a campaign, which `status` asks for as well, comes with the dialer."""
    made = ctl.campaigns_create("Spring", agent, "My people.csv", CSV)
    assert (made["state"], made["total_rows"], made["max_concurrency"]) == ("created", None, 3)
    assert made["source_id"].endswith("_My_people.csv")
    (listed,) = ctl.get("/campaign/")["campaigns"]
    assert listed == ctl.get(f"/campaign/{made['id']}") == made
    assert {name: listed[name] for name in ("name", "workflow_name", "processed_rows", "failed_rows")} == {
        "name": "Spring",
        "workflow_name": "lead qualification - outbound",
        "processed_rows": 0,
        "failed_rows": 0,
    }
    assert ctl.get(f"/campaign/{made['id']}/runs", page=1, limit=8)["runs"] == []


def test_keys_list_create_and_revoke(ctl: Ctl, server: Any) -> None:
    made = ctl.request("POST", "/user/api-keys", json={"name": "ci"})
    assert made["api_key"].startswith(made["key_prefix"])
    other = Ctl(server.url, made["api_key"])
    try:
        assert other.get(CONFIGS)["configurations"]
        assert ctl.request("DELETE", f"/user/api-keys/{made['id']}")["success"]
        with pytest.raises(AssertionError, match=r"401 .*Invalid or expired API key"):
            other.get(CONFIGS)
    finally:
        other.close()
    active = ctl.get("/user/api-keys", include_archived="false")
    everything = ctl.get("/user/api-keys", include_archived="true")
    assert [key["name"] for key in active] == ["VOICEAPI_API_KEY"]
    assert [(key["name"], key["is_active"], key["last_used_at"] is None) for key in everything] == [
        ("VOICEAPI_API_KEY", True, False),
        ("ci", False, False),
    ]


def test_telephony_configs_and_providers(ctl: Ctl) -> None:
    (simulator,) = ctl.get(CONFIGS)["configurations"]
    read = ("name", "provider", "is_default_outbound", "phone_number_count", "is_ready_for_outbound", "inactive")
    assert tuple(simulator[name] for name in read) == ("Simulator", "simulator", True, 1, True, False)
    providers = ctl.get("/organizations/telephony-providers/metadata")["providers"]
    assert [provider["provider"] for provider in providers] == [
        *("cloudonix", "jambonz", "plivo", "signalwire", "simulator", "telnyx", "twilio", "vobiz", "vonage")
    ]
    for provider in providers:
        assert provider["connectivity"] in ("api", "sip")
        assert provider["display_name"]
        assert all(field["name"] for field in provider["fields"])
        assert provider["docs_url"] is None or provider["docs_url"].startswith("https://")


def test_tools_list(ctl: Ctl) -> None:
    assert ctl.get("/tools/") == []


# Last, because from here on the agents of this server ask a model that can't be reached.
def test_models_show_and_set_and_agents_set_model(ctl: Ctl, agent: int) -> None:
    """Keys come back masked with every change, and are put back from what is stored."""
    empty = ctl.get(MODELS)
    assert (empty["configuration"]["byok"]["pipeline"]["llm"]["provider"], empty["source"]) == ("scripted", "empty")
    assert ctl.agents_set_model(agent, "llm", "scripted", "scripted")
    assert ctl.models_set("llm", "scripted", "scripted")["source"] == "organization_v2"
    assert len(ctl.runs_chat(agent, "Yes.")[0]) == 2
    ctl.request("PUT", f"/workflow/{agent}", json={"workflow_configurations": {}})
    services = {
        name: {"provider": "openai", "model": name, "api_key": f"secret-{name}"} for name in ("llm", "tts", "stt")
    }
    pipeline = {"mode": "byok", "byok": {"mode": "pipeline", "pipeline": services}}
    ctl.request("PUT", MODELS, json=pipeline)
    shown = ctl.models_set("llm", "openai", "gpt-5")
    expected = {name: {**services[name], "api_key": f"******-{name}"} for name in services}
    expected["llm"]["model"] = "gpt-5"
    assert shown["configuration"] == {"version": 2, "mode": "byok", "byok": {"mode": "pipeline", "pipeline": expected}}
    assert shown["source"] == "organization_v2"
    assert {"test_phone_number": None, "timezone": None}.items() <= shown["effective_configuration"].items()
    # The models of an agent start as a copy of the organization's, whose keys the client has only seen masked.
    expected["tts"]["model"] = "echo"
    for _ in ("made from the organization's", "changed where it is"):
        saved = ctl.agents_set_model(agent, "tts", "openai", "echo")
        override = saved["workflow_configurations"]["model_configuration_v2_override"]
        assert override["byok"] == {"mode": "pipeline", "pipeline": expected}
