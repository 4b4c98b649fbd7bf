"""Lint over the API: what it looks up, what it leaves out, and that it takes any JSON value."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from voiceapi.api.definitions import QUICK
from voiceapi.engine.validation.finding import RULES
from voiceapi.engine.validation.outline import Outline
from voiceapi.engine.validation.secret_rules import secret_findings
from voiceapi.service import Service
from voiceapi.tools import catalog
from voiceapi.workflows import linting, node_types
from voiceapi.workflows.linting import Surroundings

API = "/api/v1"
Create = Callable[..., dict[str, Any]]
Talk = Callable[..., dict[str, Any]]


def lint(client: FlaskClient, definition: Any, **members: Any) -> dict[str, Any]:
    answer = client.post(f"{API}/lint", json={"workflow_definition": definition, **members})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def codes(report: dict[str, Any]) -> list[str]:
    return [each["code"] for each in report["findings"]]


def saved(client: FlaskClient, id: int, **members: Any) -> None:
    answer = client.put(f"{API}/workflow/{id}", json=members)
    assert answer.status_code == 200, answer.text


# -- validation's findings are lint's


def test_what_validation_finds_is_found_by_lint_with_the_same_words(
    client: FlaskClient, workflow: Create, samples: dict[str, Any], talk: Talk
) -> None:
    broken = talk()
    broken["nodes"][0]["data"] |= {"tool_uuids": ["gone"], "colour": "blue"}
    broken["edges"][1]["target"] = "nobody"
    definitions = [*(sample["definition"] for sample in samples["valid"]), broken, {}, {"nodes": 3}]
    for definition in definitions:
        stored = workflow(definition)
        validated = client.post(f"{API}/workflow/{stored['id']}/validate").get_json()
        linted = client.get(f"{API}/workflow/{stored['id']}/lint").get_json()
        rows = [{name: each[name] for name in ("kind", "id", "field", "message")} for each in linted["findings"]]
        for each in [*validated["errors"], *validated["warnings"]]:
            assert each in rows
        prevented = [each["code"] for each in linted["findings"] if RULES[each["code"]].prevents_publishing]
        assert len(prevented) == len(validated["errors"])
        assert {each["code"] for each in linted["findings"] if not each["suppressible"]} == {*prevented}


def test_a_stored_version_is_linted_as_the_same_definition_that_is_not_stored(
    client: FlaskClient, workflow: Create, talk: Talk
) -> None:
    made = workflow(greeting="Hello {{first_name}}.")
    first = client.get(f"{API}/workflow/{made['id']}/lint").get_json()
    assert codes(first) == ["undeclared-variable"]
    assert lint(client, made["workflow_definition"], workflow_id=made["id"]) == first
    saved(client, made["id"], workflow_definition=talk(greeting="Hello."))
    assert codes(client.get(f"{API}/workflow/{made['id']}/lint").get_json()) == []
    assert client.get(f"{API}/workflow/{made['id']}/lint?version=1").get_json() == first
    missing = client.get(f"{API}/workflow/{made['id']}/lint?version=9")
    assert (missing.status_code, missing.get_json()["detail"]) == (404, f"Workflow {made['id']} has no version 9")
    assert client.get(f"{API}/workflow/999/lint").status_code == 404
    assert client.post(f"{API}/lint", json={"workflow_definition": {}, "workflow_id": 999}).status_code == 404
    assert client.post(f"{API}/lint", json={"workflow_definition": 3}).status_code == 422


def test_lint_stores_nothing(client: FlaskClient, talk: Talk) -> None:
    before = client.get(f"{API}/workflow/count").get_json()
    lint(client, talk("a-path"))
    assert client.get(f"{API}/workflow/count").get_json() == before


def test_a_large_definition_takes_a_thread_for_slow_requests(
    client: FlaskClient, workflow: Create, service: Service, monkeypatch: pytest.MonkeyPatch, talk: Talk
) -> None:
    taken: list[int] = []
    slow = service.bulkhead.slow
    monkeypatch.setattr(service.bulkhead, "slow", lambda owner: (taken.append(owner), slow(owner))[1])
    large = talk()
    large["nodes"] += [
        {"id": f"w{place}", "type": "webhook", "position": {"x": 0, "y": 0}, "data": {"name": "Hook"}}
        for place in range(QUICK)
    ]
    lint(client, talk())
    assert taken == []
    lint(client, large)
    client.get(f"{API}/workflow/{workflow(large)['id']}/lint")
    assert len(taken) == 2


# -- sources of variables


def test_variables_come_from_the_workflow_its_campaign_and_the_fetch(
    client: FlaskClient, workflow: Create, talk: Talk, wait_for: Callable[..., Any]
) -> None:
    made = workflow(greeting="Hello {{first_name}} from {{town}}.")
    lint_of = f"{API}/workflow/{made['id']}/lint"
    assert codes(client.get(lint_of).get_json()) == ["undeclared-variable", "undeclared-variable"]
    saved(client, made["id"], template_context_variables={"first_name": "Ada"})
    assert codes(client.get(lint_of).get_json()) == ["undeclared-variable"]
    body = {
        "source_id": _list(client, "phone_number,first_name,town\n+12025550171,Ada,Rome\n"),
        "workflow_id": made["id"],
        "source_type": "csv",
        "name": "Campaign",
    }
    campaign = client.post(f"{API}/campaign/create", json=body)
    assert campaign.status_code == 200, campaign.text
    started = client.post(f"{API}/campaign/{campaign.get_json()['id']}/start")
    assert started.status_code == 200, started.text
    assert wait_for(lambda: codes(client.get(lint_of).get_json()) == [])
    assert codes(lint(client, made["workflow_definition"])) == ["undeclared-variable", "undeclared-variable"]
    fetching = talk(
        greeting="Hello {{first_name}}.", pre_call_fetch_mode="inbound", pre_call_fetch_url="https://example.com"
    )
    assert codes(lint(client, fetching)) == []
    fetching["nodes"][0]["data"]["pre_call_fetch_mode"] = "disabled"
    assert codes(lint(client, fetching)) == ["undeclared-variable"]


def _list(client: FlaskClient, text: str) -> str:
    address = client.post(f"{API}/s3/presigned-upload-url", json={"file_name": "a.csv", "file_size": len(text)})
    assert address.status_code == 200, address.text
    url = address.get_json()["upload_url"]
    assert client.put(url.partition("localhost")[2] or url, data=text).status_code == 200
    return str(address.get_json()["file_key"])


def conversation(talk: Talk, closing: str, **start: Any) -> dict[str, Any]:
    """A definition whose start extracts `day`, and whose end after a yes says `closing`."""
    variables = [{"name": "day", "type": "string", "prompt": "a day"}]
    found = talk(extraction_enabled=True, extraction_variables=variables, **start)
    found["nodes"][1]["data"]["prompt"] = closing
    return found


@pytest.mark.parametrize(
    "placeholder",
    [
        "gathered_context.day",
        "gathered_context.extracted_variables.day",
        "gathered_context.nobody | soon",
        "gathered_context.nobody|",
        "gathered_context.nodes_visited",
        "gathered_context",
        "current_time",
        "current_weekday_Europe/Berlin",
        "caller_number",
        "initial_context.called_number",
    ],
)
def test_what_has_a_value_on_every_path(client: FlaskClient, talk: Talk, placeholder: str) -> None:
    assert codes(lint(client, conversation(talk, f"See you {{{{{placeholder}}}}}."))) == []


def test_a_transition_speech_has_what_its_node_extracts(client: FlaskClient, talk: Talk) -> None:
    definition = conversation(talk, "Goodbye.")
    definition["edges"][0]["data"]["transition_speech"] = "So, {{gathered_context.day}}."
    assert codes(lint(client, definition)) == []
    definition["nodes"][0]["data"]["extraction_enabled"] = False
    assert codes(lint(client, definition)) == ["unsupplied-variable"]


def test_a_new_node_is_not_warned_of_its_own_defaults(client: FlaskClient, talk: Talk) -> None:
    """Those that the catalogue gives it, as the console and SDKs do; a payload that was changed is looked at."""
    payload = {}
    for type in node_types.node_types():
        definition = talk()
        data = {each["name"]: each["default"] for each in type["properties"] if each["default"] is not None}
        definition["nodes"].append({"id": "new", "type": type["name"], "position": {"x": 0, "y": 0}, "data": data})
        found = lint(client, definition, workflow_configurations=HAS_MODEL)["findings"]
        assert [each for each in found if each["code"] == "unsupplied-variable"] == [], type["name"]
        payload = data.get("payload_template", payload)
    definition["nodes"][-1] |= {
        "type": "webhook",
        "data": {"name": "Hook", "payload_template": {**payload, "more": "x"}},
    }
    found = lint(client, definition, workflow_configurations=HAS_MODEL)["findings"]
    assert [each["field"] for each in found if each["code"] == "unsupplied-variable"] == ["data.payload_template.rsvp"]


def test_a_variable_that_is_used_is_not_left_out(client: FlaskClient, talk: Talk) -> None:
    """By a prompt, by the template of a tool, as a tag of the call, or sent with all others; `hour` is sent."""

    def found(
        name: str, payload: Any = "{{gathered_context.hour}}", closing: str = "Goodbye.", **start: Any
    ) -> list[str]:
        variables = [{"name": each, "type": "string", "prompt": "a day"} for each in ("hour", name)]
        definition = talk(extraction_enabled=True, extraction_variables=variables, **start)
        definition["nodes"][1]["data"]["prompt"] = closing
        data = {"name": "Hook", "endpoint_url": "https://example.com", "payload_template": {"hour": payload}}
        definition["nodes"].append({"id": "h", "type": "webhook", "position": {"x": 0, "y": 0}, "data": data})
        report = lint(client, definition, workflow_configurations=HAS_MODEL)
        return [each["field"] for each in report["findings"] if each["code"] == "variable-left-out"]

    left_out = ["data.extraction_variables.1"]
    assert found("day") == left_out
    assert found("day", payload="{{initial_context.hour}}") == []
    assert found("day", payload="{{gathered_context.extracted_variables}}") == []
    assert found("day", closing="Until {{gathered_context.day | then}}.") == []
    assert found("call_disposition") == []
    assert found("tag_day") == []
    config = {"method": "GET", "url": "https://example.com/{{gathered_context.day}}"}
    body = {"name": "Book", "definition": {"type": "http_api", "config": config}}
    tool = client.post(f"{API}/tools/", json=body).get_json()["tool_uuid"]
    assert found("day", tool_uuids=[tool]) == []
    assert found("week", tool_uuids=[tool]) == left_out


# -- the model, tools that end the call, languages

MODEL = {"provider": "openai", "model": "m", "api_key": "k"}
HAS_MODEL = {
    "model_configuration_v2_override": {"mode": "byok", "byok": {"mode": "pipeline", "pipeline": {"llm": MODEL}}}
}


def test_a_tool_that_ends_the_call_is_a_way_out(client: FlaskClient, talk: Talk) -> None:
    tools = {}
    for kind, config in (
        ("end_call", {}),
        ("transfer_call", {"destination_source": "static", "destination": "+12025550123"}),
    ):
        body = {"name": kind, "definition": {"type": kind, "config": config}}
        tools[kind] = client.post(f"{API}/tools/", json=body).get_json()["tool_uuid"]
    definition = {**talk(), "edges": []}
    definition["nodes"] = definition["nodes"][:1]
    assert codes(lint(client, definition, workflow_configurations=HAS_MODEL)) == ["no-path-to-end"]
    for tool in tools.values():
        definition["nodes"][0]["data"]["tool_uuids"] = [tool]
        assert codes(lint(client, definition, workflow_configurations=HAS_MODEL)) == []
    client.delete(f"{API}/tools/{tools['transfer_call']}")
    found = codes(lint(client, definition, workflow_configurations=HAS_MODEL))
    assert sorted(found) == ["no-path-to-end", "unusable-tool"]


def test_tools_that_come_with_a_definition_are_there(client: FlaskClient, talk: Talk) -> None:
    definition = {**talk(tool_uuids=["hang-up", "gone"]), "edges": []}
    definition["nodes"] = definition["nodes"][:1]
    tool = {"tool_uuid": "hang-up", "name": "Hang up", "definition": {"type": "end_call", "config": {}}}
    members = {"workflow_configurations": HAS_MODEL, "tools": [tool]}
    assert codes(lint(client, definition, **members)) == ["missing-tool"]
    assert codes(lint(client, talk(tool_uuids=["hang-up"]), tools=[tool])) == ["tool-needs-model"]
    assert client.get(f"{API}/tools/").get_json() == []
    records = catalog.records_of([{**tool, "description": ""}])
    alone = linting.lint_file(definition, {}, {}, linting.surroundings_of_file(definition, {}, records, has_model=True))
    assert alone.findings == []


def test_a_loop_that_asks_again_is_fine_if_there_is_a_way_out(client: FlaskClient, talk: Talk) -> None:
    definition = talk()
    definition["nodes"].append(
        {"id": "4", "type": "agentNode", "position": {"x": 0, "y": 0}, "data": {"name": "Again", "prompt": "Really?"}}
    )
    data = {"label": "Perhaps", "condition": "They are not sure."}
    definition["edges"] += [
        {"id": "a", "source": "1", "target": "4", "data": data},
        {"id": "b", "source": "4", "target": "4", "data": data},
    ]
    assert codes(lint(client, definition)) == ["loop-without-exit"]
    definition["edges"].append(
        {"id": "c", "source": "4", "target": "2", "data": {"label": "Yes", "condition": "They say yes."}}
    )
    assert codes(lint(client, definition)) == []


@pytest.mark.parametrize(
    "configurations",
    [
        {"language": "de-DE", "voice": "Google.de-DE-Neural2-B"},
        {"language": "de-AT", "voice": "de-DE-KatjaNeural"},
        {"voice": "Polly.Joanna"},
        {"voice": "en-GB-SoniaNeural"},
        {"language": "cmn-CN", "voice": "cmn-CN-Wavenet-A"},
        {"language": "zh-CN", "voice": "cmn-CN-Wavenet-A"},
        {"language": "cs-CZ", "phrases": {"not_understood": "Prosím?"}},
        {"language": "en-GB"},
    ],
)
def test_languages_and_voices_that_fit(client: FlaskClient, talk: Talk, configurations: dict[str, Any]) -> None:
    assert codes(lint(client, talk(), workflow_configurations=configurations)) == []


# -- secrets


@pytest.mark.parametrize(
    "text",
    [
        "Ask for the password that they got by post.",
        "The token: a number of 6 digits.",
        "Your booking number is ABCDEF1234567890.",
        "Bearer {{initial_context.token}}",
        "https://example.com/calls?token={{initial_context.token}}",
        "api_key={{key}}",
        "We live in Asia, at sk-8, and the risk_level is high.",
        "key=value, secret=nothing-at-all",
        "The access token is in the credential.",
        "****abcd",
    ],
)
def test_texts_without_a_secret(text: str) -> None:
    definition = {"nodes": [{"id": "a", "data": {"prompt": text, "token": text}}]}
    assert secret_findings(Outline.of(definition), {"dictionary": text}, {"x": text}) == []


@pytest.mark.parametrize(
    "text",
    [
        "Use sk-proj-abcdefghijklmnopqrstuvwx for it.",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "xoxb-123456789012-abcdefghijkl",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w",
        "-----BEGIN RSA PRIVATE KEY-----",
        "va_" + "a" * 43,
        "The password: correct7horse",
        '{"client_secret": "a1b2c3d4e5"}',
        "Authorization: Bearer abc123def456",
        "https://example.com/?api_key=abc12345",
    ],
)
def test_texts_with_a_secret(text: str) -> None:
    definition = {"nodes": [{"id": "a", "data": {"prompt": text}}], "edges": [{"id": "e", "data": {"condition": text}}]}
    found = secret_findings(Outline.of(definition), {"dictionary": text}, {"x": text})
    assert [(each.kind, each.id, each.field) for each in found] == [
        ("node", "a", "data.prompt"),
        ("edge", "e", "data.condition"),
        ("workflow", None, "workflow_configurations.dictionary"),
        ("workflow", None, "template_context_variables.x"),
    ]
    assert not any(text in each.message for each in found)


def test_a_slovak_voice_is_no_key() -> None:
    assert secret_findings(Outline.of({}), {"voice": "google.sk-SK-Chirp3-HD-Achernar"}, {}) == []


def test_a_text_of_beginnings_of_tokens_holds_none() -> None:
    definition = {"nodes": [{"id": "a", "data": {"prompt": "eyJ-" * 100_000}}]}
    assert secret_findings(Outline.of(definition), {}, {}) == []


def test_fields_that_are_made_for_secrets_hold_them(client: FlaskClient, talk: Talk) -> None:
    """They are encrypted where they are stored. In a file they stand in clear."""
    definition = talk()
    data = {
        "name": "Review",
        "qa_use_workflow_llm": False,
        "qa_api_key": "sk-abcdefghijklmnopqrstuvwx",
        "qa_endpoint": "https://user:pass@example.com",
    }
    definition["nodes"].append({"id": "q", "type": "qa", "position": {"x": 0, "y": 0}, "data": data})
    key = {**MODEL, "api_key": "sk-abcdefghijklmnopqrstuvwx"}
    override = {"mode": "byok", "byok": {"mode": "pipeline", "pipeline": {"llm": key}}}
    configurations = {"model_configuration_v2_override": override}
    assert codes(lint(client, definition, workflow_configurations=configurations)) == []
    around = Surroundings(Outline.of(definition), is_scripted=False)
    report = linting.lint_file(definition, configurations, {}, around)
    assert [(each.code, each.id, each.field) for each in report.findings] == [
        (
            "clear-text-secret",
            None,
            "workflow_configurations.model_configuration_v2_override.byok.pipeline.llm.api_key",
        ),
        ("clear-text-secret", "q", "data.qa_api_key"),
        ("clear-text-secret", "q", "data.qa_endpoint"),
    ]


# -- leaving findings out


def test_a_code_is_left_out_at_a_node_at_an_edge_and_everywhere(client: FlaskClient, talk: Talk) -> None:
    definition = talk(colour="blue")
    definition["edges"][0]["data"]["priority"] = 1
    definition["edges"][1]["data"]["priority"] = 2
    assert codes(lint(client, definition)) == ["unknown-field"] * 3
    definition["nodes"][0]["data"]["lint_ignore"] = ["unknown-field"]
    report = lint(client, definition)
    assert [each["kind"] for each in report["findings"]] == ["edge", "edge"]
    assert (report["warnings"], report["suppressed"]) == (2, 1)
    definition["edges"][1]["data"]["lint_ignore"] = ["unknown-field"]
    report = lint(client, definition)
    assert [each["id"] for each in report["findings"]] == [definition["edges"][0]["id"]]
    configurations = {"lint_ignore": ["unknown-field"]}
    report = lint(client, definition, workflow_configurations=configurations)
    assert (codes(report), report["suppressed"]) == ([], 3)


def test_what_prevents_publishing_is_not_left_out(client: FlaskClient, workflow: Create, talk: Talk) -> None:
    definition = talk(lint_ignore=["malformed", "node-degree"])
    definition["nodes"][0]["data"].pop("prompt")
    ignore = {"lint_ignore": ["malformed"]}
    report = lint(client, definition, workflow_configurations=ignore)
    assert (codes(report).count("malformed"), report["suppressed"]) == (1, 0)
    assert codes(report).count("unknown-ignored-code") == 3


def test_lint_ignore_is_kept_when_a_workflow_is_saved(client: FlaskClient, workflow: Create, talk: Talk) -> None:
    made = workflow(lint_ignore=["dead-end"], colour="blue")
    definition = made["workflow_definition"]
    definition["edges"][0]["data"] |= {"lint_ignore": ["edges-alike"], "priority": 1}
    ignore = {"lint_ignore": ["island"]}
    saved(client, made["id"], workflow_definition=definition, workflow_configurations=ignore)
    kept = client.get(f"{API}/workflow/fetch/{made['id']}").get_json()
    data, edge = kept["workflow_definition"]["nodes"][0]["data"], kept["workflow_definition"]["edges"][0]["data"]
    assert (data["lint_ignore"], "colour" in data) == (["dead-end"], False)
    assert (edge["lint_ignore"], "priority" in edge) == (["edges-alike"], False)
    assert kept["workflow_configurations"] == ignore
    checked = client.post(f"{API}/workflow/{made['id']}/validate").get_json()
    assert not any("lint_ignore" in str(each["field"]) for each in checked["warnings"])
    assert codes(client.get(f"{API}/workflow/{made['id']}/lint").get_json()) == ["unused-ignore"] * 3


def test_a_code_about_what_is_not_known_may_be_ignored_in_vain(client: FlaskClient, talk: Talk) -> None:
    """A code about tools where none is known, and about a model where one speaks."""
    definition = talk(lint_ignore=["tool-needs-model", "missing-tool"])
    with_model = lint(client, definition, workflow_configurations=HAS_MODEL)
    assert [each["field"] for each in with_model["findings"]] == ["data.lint_ignore.1"]
    scripted = linting.lint_file(definition, {}, {}, Surroundings(Outline.of(definition)))
    assert [each.field for each in scripted.findings] == ["data.lint_ignore.0"]


# -- any JSON value

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda value: st.lists(value, max_size=4) | st.dictionaries(st.text(max_size=5), value, max_size=4),
    max_leaves=12,
)
IDS = st.sampled_from(["a", "b", "c"])
TYPES = st.sampled_from(["startCall", "agentNode", "endCall", "globalNode", "webhook", "qa"])
TEXTS = st.sampled_from(
    ["{{gathered_context.day}}", "{{x | y}}", "{{current_time_Mars}}", "Bearer abc123def456", "Hm."]
)
VARIABLE = st.fixed_dictionaries(
    {"name": st.sampled_from(["day", "x"]), "type": st.just("string"), "prompt": TEXTS | JSON}
)
CALL = st.fixed_dictionaries(
    {"tool": IDS | JSON},
    optional={"arguments": JSON | st.dictionaries(IDS, TEXTS), "save_as": IDS | JSON, "on_error": IDS | JSON},
)
DATA = st.fixed_dictionaries(
    {},
    optional={
        "name": TEXTS | JSON,
        "prompt": TEXTS | JSON,
        "greeting": TEXTS | JSON,
        "label": TEXTS | JSON,
        "condition": TEXTS | JSON,
        "transition_speech": TEXTS | JSON,
        "extraction_enabled": st.booleans() | JSON,
        "extraction_variables": st.lists(VARIABLE | JSON, max_size=3) | JSON,
        "tool_uuids": st.lists(IDS) | JSON,
        "payload_template": JSON | TEXTS,
        "call": CALL | JSON,
        "lint_ignore": st.lists(st.sampled_from([*RULES]) | JSON, max_size=3) | JSON,
    },
)
NODE = st.fixed_dictionaries({"id": IDS | JSON, "type": TYPES | JSON, "data": DATA | JSON})
EDGE = st.fixed_dictionaries({"id": IDS | JSON, "source": IDS | JSON, "target": IDS | JSON, "data": DATA | JSON})
SHAPED = st.fixed_dictionaries(
    {"nodes": st.lists(NODE | JSON, max_size=6) | JSON, "edges": st.lists(EDGE | JSON, max_size=6) | JSON}
)


@given(SHAPED | JSON, JSON, st.booleans())
def test_any_json_value_is_linted(definition: Any, configurations: Any, is_scripted: bool) -> None:
    before = json.dumps(definition)
    given_configurations = configurations if isinstance(configurations, dict) else {"language": configurations}
    around = Surroundings(Outline.of(definition), is_scripted=is_scripted)
    report = linting.lint_file(definition, given_configurations, given_configurations, around).as_dict()
    assert json.loads(json.dumps(report)) == report
    assert json.dumps(definition) == before
