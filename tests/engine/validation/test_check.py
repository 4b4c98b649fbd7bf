import json
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapi.engine.graph import add_trigger_paths, strip_unknown_data, template_variables, trigger_paths
from voiceapi.engine.validation.finding import Finding
from voiceapi.engine.validation.graph_rules import (
    check,
    instance_findings,
    taken_path_findings,
    tool_name_findings,
    transition_name_findings,
    trigger_path_findings,
)
from voiceapi.engine.validation.lint import lint
from voiceapi.engine.validation.outline import Outline

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda value: st.lists(value, max_size=4) | st.dictionaries(st.text(max_size=5), value, max_size=4),
    max_leaves=12,
)


@dataclass(frozen=True)
class Tool:
    name: str
    category: str = "http_api"


def triples(findings: list[Finding]) -> list[list[str | None]]:
    return [[each.kind, each.id, each.field] for each in findings]


def tools_of(definitions: Any) -> dict[str, Tool]:
    return {tool["tool_uuid"]: Tool(tool["name"], tool["category"]) for tool in definitions["tools"]}


# -- the sample definitions


def test_the_valid_samples_are_valid(definitions: Any, catalogue: Any) -> None:
    for sample in definitions["valid"]:
        assert check(Outline.of(sample["definition"]), catalogue, tools_of(definitions)) == [], sample["name"]


def test_the_invalid_samples_get_their_errors(definitions: Any, catalogue: Any) -> None:
    for sample in definitions["invalid"]:
        assert triples(check(Outline.of(sample["definition"]), catalogue, tools_of(definitions))) == sample["errors"], (
            sample["name"]
        )


def test_the_invalid_samples_at_create(definitions: Any, catalogue: Any) -> None:
    for sample in definitions["invalid"]:
        refused = [
            *trigger_path_findings(Outline.of(sample["definition"])),
            *instance_findings(Outline.of(sample["definition"]), catalogue),
            *transition_name_findings(Outline.of(sample["definition"])),
            *tool_name_findings(Outline.of(sample["definition"]), tools_of(definitions)),
        ]
        assert bool(refused) == (sample["create"] == "422"), sample["name"]


# -- the schema stage


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (None, [None, "A workflow definition must be an object with nodes and edges."]),
        ([], [None, "A workflow definition must be an object with nodes and edges."]),
        ({}, ["nodes", 'The workflow needs a list "nodes".', "edges", 'The workflow needs a list "edges".']),
        ({"nodes": {}, "edges": []}, ["nodes", 'The workflow needs a list "nodes".']),
        (
            {"nodes": [3], "edges": [None]},
            ["nodes.0", "Each of the nodes must be an object.", "edges.0", "Each of the edges must be an object."],
        ),
    ],
)
def test_a_definition_of_another_shape(definition: Any, expected: list[str | None], catalogue: Any) -> None:
    pairs = zip(expected[::2], expected[1::2], strict=True)
    assert check(Outline.of(definition), catalogue) == [
        Finding("workflow", None, field, str(text)) for field, text in pairs
    ]


BEGIN = {"id": "s", "type": "startCall", "position": {"x": 0, "y": 0}, "data": {"name": "S", "prompt": "p"}}


def found_in(node: Any, catalogue: Any) -> list[list[str | None]]:
    """The errors of a node beside a start node; for a start node, of that node alone."""
    findings = check(Outline.of({"nodes": [BEGIN, node], "edges": []}), catalogue)
    return [[each.kind, each.id, each.field, each.message] for each in findings]


@pytest.mark.parametrize(
    ("change", "kind", "id", "field", "message"),
    [
        ({"id": None}, "workflow", None, "nodes.1.id", "This node needs an id, which must be text."),
        ({"id": True}, "workflow", None, "nodes.1.id", "This node needs an id, which must be text."),
        ({"id": 7}, "node", "7", "id", "The id of this node must be text."),
        (
            {"position": None},
            "node",
            "n",
            "position",
            "This node needs a position, an object with the numbers x and y.",
        ),
        ({"position": {"y": 1}}, "node", "n", "position.x", "x is missing; it must be a number."),
        ({"position": {"x": "a", "y": "1.5"}}, "node", "n", "position.x", "x must be a number."),
        ({"type": ""}, "node", "n", "type", "This node needs a type, one of "),
        ({"type": ["a"]}, "node", "n", "type", "This node needs a type, one of "),
        ({"type": "dialer"}, "node", "n", "type", '"dialer" is not a type of node; it must be one of '),
        ({"data": []}, "node", "n", "data", "This node needs data, an object."),
    ],
)
def test_the_envelope_of_a_node(change: Any, kind: str, id: str, field: str, message: str, catalogue: Any) -> None:
    [found] = found_in({**BEGIN, "id": "n", **change}, catalogue)
    assert found[:3] == [kind, id, field]
    assert str(found[3]).startswith(message)


@pytest.mark.parametrize(
    ("type", "data", "field", "message"),
    [
        ("startCall", {"name": None}, "name", "name must be text."),
        ("startCall", {"prompt": " \n"}, "prompt", "This node needs a prompt."),
        ("agentNode", {"prompt": None}, "prompt", "This node needs a prompt."),
        ("endCall", {"prompt": ""}, "prompt", "This node needs a prompt."),
        ("globalNode", {"prompt": 7}, "prompt", "prompt must be text."),
        ("startCall", {"allow_interrupt": "maybe"}, "allow_interrupt", "allow_interrupt must be true or false."),
        ("endCall", {"allow_interrupt": 2}, "allow_interrupt", "allow_interrupt must be true or false."),
        ("endCall", {"is_end": None}, "is_end", "is_end must be true or false."),
        ("globalNode", {"add_global_prompt": []}, "add_global_prompt", "add_global_prompt must be true or false."),
        ("startCall", {"greeting": 1}, "greeting", "greeting must be text."),
        (
            "startCall",
            {"delayed_start_duration": "soon"},
            "delayed_start_duration",
            "delayed_start_duration must be a number.",
        ),
        (
            "startCall",
            {"pre_call_fetch_mode": "never"},
            "pre_call_fetch_mode",
            "pre_call_fetch_mode must be one of disabled, always, inbound, outbound.",
        ),
        ("agentNode", {"tool_uuids": "u"}, "tool_uuids", "tool_uuids must be a list of texts."),
        ("startCall", {"speech_hints": "Acme"}, "speech_hints", "speech_hints must be a list of texts."),
        ("agentNode", {"speech_hints": ["Acme", 7]}, "speech_hints.1", "Each of speech_hints must be text."),
        *(
            (
                "agentNode",
                {"end_of_speech": value},
                "end_of_speech",
                "end_of_speech must be quick, normal, patient, or seconds from 0.4 to 10.",
            )
            for value in ("slow", 0.3, "1", True)
        ),
        ("agentNode", {"tool_uuids": ["u", 7]}, "tool_uuids.1", "Each of tool_uuids must be text."),
        ("startCall", {"call": []}, "call", "call must be an object."),
        ("endCall", {"call": {}}, "call.tool", "tool is missing; it must be text that is not empty."),
        ("agentNode", {"call": {"tool": None}}, "call.tool", "tool must be text that is not empty."),
        ("agentNode", {"call": {"tool": "t", "arguments": "x"}}, "call.arguments", "arguments must be an object."),
        ("agentNode", {"call": {"tool": "t", "on_error": 5}}, "call.on_error", "on_error must be text."),
        ("agentNode", {"call": {"tool": "t", "function": 5}}, "call.function", "function must be text."),
        *(
            (
                "agentNode",
                {"call": {"tool": "t", "save_as": value}},
                "call.save_as",
                "save_as must be the name of a variable: at most 64 letters, digits and _, and none of the service's "
                "own.",
            )
            for value in (
                5,
                "a b",
                "a.b",
                "2nd",
                "x" * 65,
                "nodes_visited",
                "call_disposition",
                "gathered_context",
                "current_time",
                "current_weekday",
            )
        ),
        (
            "agentNode",
            {"mcp_tool_filters": {"u": "x"}},
            "mcp_tool_filters.u",
            "Each of mcp_tool_filters must be a list.",
        ),
        (
            "agentNode",
            {"extraction_variables": {}},
            "extraction_variables",
            "extraction_variables must be a list of objects.",
        ),
        (
            "endCall",
            {"extraction_variables": [7]},
            "extraction_variables.0",
            "Each of extraction_variables must be an object.",
        ),
        (
            "endCall",
            {"extraction_variables": [{"name": "a", "type": "date"}]},
            "extraction_variables.0.type",
            "type must be one of string, number, boolean.",
        ),
        (
            "endCall",
            {"extraction_variables": [{"type": "string"}]},
            "extraction_variables.0.name",
            "name is missing; it must be text.",
        ),
        ("webhook", {"custom_headers": [{"key": "k"}]}, "custom_headers.0.value", "value is missing; it must be text."),
        ("webhook", {"payload_template": []}, "payload_template", "payload_template must be an object."),
        ("qa", {"qa_sample_rate": 1.5}, "qa_sample_rate", "qa_sample_rate must be a whole number."),
        ("qa", {"qa_min_call_duration": None}, "qa_min_call_duration", "qa_min_call_duration must be a whole number."),
        ("tuner", {}, "tuner_agent_id tuner_workspace_id tuner_api_key", "This node is enabled and needs "),
        (
            "paygent",
            {"paygent_api_key": "k", "paygent_agent_id": "a", "paygent_customer_id": " "},
            "paygent_customer_id",
            "This node is enabled",
        ),
        (
            "tuner",
            {"tuner_workspace_id": 0},
            "tuner_workspace_id",
            "tuner_workspace_id must be a whole number, at least 1.",
        ),
        ("tuner", {"cost_tts_rate": -1}, "cost_tts_rate", "cost_tts_rate must be a number, at least 0, at most 100."),
    ],
)
def test_the_data_of_a_node(type: str, data: Any, field: str, message: str, catalogue: Any) -> None:
    found = found_in({**BEGIN, "id": "n", "type": type, "data": {"name": "N", "prompt": "p", **data}}, catalogue)
    assert [each[:3] for each in found] == [["node", "n", f"data.{name}"] for name in field.split()]
    assert all(str(each[3]).startswith(message) for each in found)


@pytest.mark.parametrize(
    ("type", "data"),
    [
        ("startCall", {"name": "", "allow_interrupt": "yes", "delayed_start_duration": "99", "greeting_type": "song"}),
        ("agentNode", {"extraction_variables": [{"name": "", "type": "string", "prompt": None}], "odd": 1}),
        ("webhook", {"http_method": "BREW", "custom_headers": None, "payload_template": None, "prompt": None}),
        ("qa", {"qa_sample_rate": "500", "qa_min_call_duration": -3.0, "qa_provider": "nobody"}),
        ("tuner", {"tuner_enabled": False, "tuner_workspace_id": None}),
        ("trigger", {}),
    ],
)
def test_what_is_taken_leniently(type: str, data: Any, catalogue: Any) -> None:
    node = {**BEGIN, "id": "n", "type": type, "data": {"name": "N", "prompt": "p", **data}}
    edges = [{"id": "e", "source": "s", "target": "n", "data": {"label": " ", "condition": " "}}]
    nodes, edges = ([node], []) if type == "startCall" else ([BEGIN, node], edges if type == "agentNode" else [])
    assert check(Outline.of({"nodes": nodes, "edges": edges}), catalogue) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"source": None}, [["edge", "e", "source", "This edge needs a source, the id of a node."]]),
        (
            {"target": "x"},
            [["edge", "e", "target", 'The target of this edge is "x", which is not a node of the workflow.']],
        ),
        ({"data": None}, [["edge", "e", "data", "This edge needs data, an object with a label and a condition."]]),
        (
            {"data": {"label": "", "transition_speech": 3}},
            [
                ["edge", "e", "data.label", "label must be text that is not empty."],
                ["edge", "e", "data.condition", "condition is missing; it must be text that is not empty."],
                ["edge", "e", "data.transition_speech", "transition_speech must be text."],
            ],
        ),
        (
            {"id": None, "source": "y"},
            [
                ["workflow", None, "edges.0.id", "This edge needs an id, which must be text."],
                [
                    "workflow",
                    None,
                    "edges.0.source",
                    'The source of this edge is "y", which is not a node of the workflow.',
                ],
            ],
        ),
    ],
)
def test_edges(change: Any, expected: Any, catalogue: Any) -> None:
    edge = {"id": "e", "source": "s", "target": "s", "data": {"label": "l", "condition": "c"}, **change}
    findings = check(Outline.of({"nodes": [BEGIN], "edges": [edge]}), catalogue)
    assert [[each.kind, each.id, each.field, each.message] for each in findings] == expected


def test_all_errors_of_a_node_are_reported(catalogue: Any) -> None:
    node = {"id": "n", "type": "agentNode", "data": {"prompt": 1, "tool_uuids": 2, "add_global_prompt": 3}}
    assert [each[2] for each in found_in(node, catalogue)] == [
        "position",
        "data.tool_uuids",
        "data.prompt",
        "data.add_global_prompt",
        "data.name",
    ]


# -- the graph stage


def test_the_texts_of_the_graph_stage(definitions: Any, catalogue: Any) -> None:
    texts = {
        sample["name"]: [each.message for each in check(Outline.of(sample["definition"]), catalogue)]
        for sample in definitions["invalid"]
    }
    assert texts["counts"] == [
        "Workflow can have at most one Global Node",
        "Workflow must have at least one Start Call",
        "Agent Node must have at least 1 incoming edge(s)",
        "End Call must have at least 1 incoming edge(s)",
    ]
    assert texts["wiring"] == [
        "Start Call cannot have incoming edges",
        "End Call cannot have outgoing edges",
        "Global Node cannot have incoming edges",
        "Global Node cannot have outgoing edges",
        "API Trigger cannot have incoming edges",
        "Webhook cannot have incoming edges",
        "Webhook cannot have outgoing edges",
        "QA Analysis cannot have incoming edges",
        "QA Analysis cannot have outgoing edges",
    ]


def test_limits_of_other_catalogues_have_their_text(booking: Any, catalogue: Any) -> None:
    spec = replace(catalogue["agentNode"], degrees=(("incoming", 2, None), ("outgoing", None, 1)))
    edges = [
        *booking["edges"],
        {**booking["edges"][2], "id": "x", "target": "ask", "data": {"label": "Again", "condition": "c"}},
    ]
    findings = check(Outline.of({**booking, "edges": edges}), {**catalogue, "agentNode": spec})
    assert [each.message for each in findings] == ["Agent Node can have at most 1 outgoing edge(s)"]


def test_a_self_loop_and_parallel_edges_are_allowed(booking: Any, catalogue: Any) -> None:
    loop = {"id": "l", "source": "ask", "target": "ask", "data": {"label": "Again", "condition": "c"}}
    parallel = {**booking["edges"][2], "data": {"label": "Also", "condition": "c"}}
    assert check(Outline.of({**booking, "edges": [*booking["edges"], loop, parallel]}), catalogue) == []


def test_clashing_transition_names(booking: Any, catalogue: Any) -> None:
    edges = deepcopy(booking["edges"])
    edges[1]["data"]["label"] = "book"
    edges[2]["data"]["label"] = "Book"
    text = 'Transition tool name "book" is duplicated for this node. Use a unique edge label.'
    expected = [Finding("edge", "start-ask", "data.label", text), Finding("edge", "start-done", "data.label", text)]
    assert check(Outline.of({**booking, "edges": edges}), catalogue) == expected
    assert transition_name_findings(Outline.of({"edges": edges})) == expected
    edges[1]["data"]["label"], edges[2]["data"]["label"] = "预约", "取消"
    assert check(Outline.of({**booking, "edges": edges}), catalogue) == []


# -- trigger paths


@pytest.mark.parametrize(
    ("path", "messages"),
    [
        ("ok-1_A", []),
        ("", []),
        (None, []),
        (7, ["Trigger path must be a string."]),
        ("a" * 36, []),
        ("a" * 37, ["Trigger path must be 36 characters or fewer."]),
        (
            "a/b",
            ["Trigger path must be a single URL path segment using only letters, numbers, hyphens, and underscores."],
        ),
        (
            "é" * 37,
            [
                "Trigger path must be 36 characters or fewer.",
                "Trigger path must be a single URL path segment using only letters, numbers, hyphens, and underscores.",
            ],
        ),
        ("first", ["Trigger path is duplicated in this workflow."]),
    ],
)
def test_trigger_paths(path: Any, messages: list[str]) -> None:
    nodes = [
        {"id": id, "type": "trigger", "data": {"trigger_path": each}} for id, each in (("1", "first"), ("2", path))
    ]
    findings = trigger_path_findings(Outline.of({"nodes": nodes}))
    assert findings == [Finding("node", "2", "data.trigger_path", message) for message in messages]


def test_a_path_of_another_workflow(definitions: Any, catalogue: Any) -> None:
    definition = definitions["valid"][1]["definition"]
    expected = [
        Finding(
            "node",
            "t",
            "data.trigger_path",
            "Trigger path is already in use. Please choose another one or leave empty to use a unique one generated by "
            "the server.",
        )
    ]
    assert check(Outline.of(definition), catalogue, taken_paths={"clinic-reminder-a1"}) == expected
    assert taken_path_findings(Outline.of(definition), {"clinic-reminder-a1"}) == expected
    assert taken_path_findings(Outline.of(definition), {"another"}) == []


def test_later_stages_run_on_a_broken_definition(catalogue: Any) -> None:
    definition = {"nodes": [{"id": "t", "type": "trigger", "data": {"trigger_path": "a b"}}]}
    fields = [each.field for each in check(Outline.of(definition), catalogue)]
    assert fields == ["position", "data.name", "edges", "data.trigger_path"]


# -- names of tools


def test_clashing_tool_names() -> None:
    tools = {
        "a": Tool("Next Step!"),
        "b": Tool("next  step", "end_call"),
        "c": Tool("next step", "mcp"),
        "d": Tool("Other"),
    }
    definition = {
        "nodes": [
            {"id": "n", "data": {"tool_uuids": ["b", "a", "a", "c", "d", "unknown", 7]}},
            {"id": "m", "data": {"tool_uuids": ["c", "d"]}},
        ],
        "edges": [
            {"id": "1", "source": "n", "data": {"label": "Next Step"}},
            {"id": "2", "source": "m", "data": {"label": "Next Step"}},
            {"id": "3", "source": "m", "data": {"label": "Next Step!"}},
            {"id": "4", "source": "m", "data": {"label": "other"}},
        ],
    }
    assert tool_name_findings(Outline.of(definition), tools) == [
        Finding(
            "node",
            "n",
            "data.tool_uuids",
            'Custom tools "next  step", "Next Step!" generate duplicate LLM tool name "next_step" on this node. '
            "Rename one of the tools.",
        ),
        Finding(
            "edge",
            "1",
            "data.label",
            'Transition tool name "next_step" conflicts with custom tool "next  step", "Next Step!" attached to this '
            "node. Use a unique edge label or rename the custom tool.",
        ),
        Finding(
            "edge",
            "4",
            "data.label",
            'Transition tool name "other" conflicts with custom tool "Other" attached to this node. '
            "Use a unique edge label or rename the custom tool.",
        ),
    ]
    assert tool_name_findings(Outline.of({**definition, "edges": None}), tools) == []


# -- warnings


def test_warnings(booking: Any, catalogue: Any) -> None:
    assert lint(Outline.of(booking), catalogue, tools={}) == []
    nodes = deepcopy(booking["nodes"])
    nodes[1]["data"] |= {"delayed_start_duration": 60, "greeting_type": "song", "is_static": True}
    nodes[2]["data"] |= {"tool_uuids": ["known", "gone", "old"]}
    edges = [edge for edge in deepcopy(booking["edges"]) if edge["source"] != "start"]
    edges[0]["data"]["speed"] = 1
    definition = {"nodes": [*nodes, nodes[3]], "edges": edges}
    nodes[0]["data"]["call"] = {"tool": "gone"}
    nodes[2]["data"]["call"] = {"tool": "gone", "later": True}
    nodes[3]["data"]["call"] = {"tool": "old"}
    warnings = {"known": "", "old": "The tool is old; this node goes without it."}
    assert lint(Outline.of(definition), catalogue, tools=warnings) == [
        Finding("node", "done", "id", "2 nodes have this id; only the last of them counts."),
        Finding("node", "rules", "data.call", "call is not known here and has no effect."),
        Finding("node", "start", "data.is_static", "is_static is not known here and has no effect."),
        Finding("node", "start", "data.greeting_type", "greeting_type is usually one of text, audio."),
        Finding("node", "start", "data.delayed_start_duration", "delayed_start_duration is usually at most 10."),
        Finding("node", "ask", None, "No path leads from the start to this node."),
        Finding("node", "ask", "data.tool_uuids.1", 'There is no tool "gone"; this node goes without it.'),
        Finding("node", "ask", "data.tool_uuids.2", "The tool is old; this node goes without it."),
        Finding("node", "ask", "data.call.later", "call.later is not known here and has no effect."),
        Finding("node", "ask", "data.call.tool", 'There is no tool "gone"; the call fails.'),
        Finding("node", "done", None, "No path leads from the start to this node."),
        Finding("node", "done", "data.call.tool", "The tool is old; the call fails."),
        Finding("edge", "ask-done", "data.speed", "speed is not known here and has no effect."),
    ]


def test_warnings_about_what_is_only_stored_and_about_credentials(booking: Any, catalogue: Any) -> None:
    nodes, edges = deepcopy(booking["nodes"]), deepcopy(booking["edges"])
    start = next(node for node in nodes if node["type"] == "startCall")
    start["data"] |= {"greeting_type": "audio", "pre_call_fetch_credential_uuid": "gone"}
    start["data"]["mcp_tool_filters"] = {"t": ["a"]}
    edges[0]["data"]["transition_speech_type"] = "audio"
    hook = {"id": "hook", "type": "webhook", "position": {"x": 0, "y": 0}, "data": {"name": "Hook"}}
    hooks = [{**hook, "id": id, "data": {"name": id, "credential_uuid": id}} for id in ("known", "lost")]
    definition = {"nodes": [*nodes, *hooks], "edges": edges}
    found = [
        Finding("node", start["id"], "data.greeting_type", "There are no recordings in this release."),
        Finding("node", start["id"], "data.mcp_tool_filters", "No tools of MCP servers are offered in this release."),
    ]
    spoken = [
        Finding("edge", edges[0]["id"], "data.transition_speech_type", "There are no recordings in this release.")
    ]
    without = "the request is sent without one."
    gone = Finding(
        "node", start["id"], "data.pre_call_fetch_credential_uuid", f'There is no credential "gone"; {without}'
    )
    lost = Finding("node", "lost", "data.credential_uuid", f'There is no credential "lost"; {without}')
    assert lint(Outline.of(definition), catalogue) == [*found, *spoken]
    assert lint(Outline.of(definition), catalogue, credentials={"known"}) == [*found, gone, lost, *spoken]


# -- any JSON value


KEYS = [
    *("id", "type", "position", "data", "source", "target", "label", "trigger_path", "tool_uuids", "prompt", "x", "y"),
    *("call", "tool", "arguments", "save_as", "on_error"),
]
TYPES = ["startCall", "agentNode", "endCall", "globalNode", "trigger", "webhook", "qa", "tuner"]
NAMED = st.dictionaries(st.sampled_from(KEYS), JSON | st.sampled_from([*TYPES, {"label": "a"}, {"x": 1, "y": "2"}]))
SHAPED = st.fixed_dictionaries({"nodes": JSON | st.lists(NAMED | JSON), "edges": JSON | st.lists(NAMED | JSON)})


@given(JSON | SHAPED | NAMED)
def test_any_json_value_is_judged(definition: Any) -> None:
    catalogue = _CATALOGUE
    tools = {"": Tool("a"), "a": Tool("A")}
    before = repr(definition)
    findings = [
        *check(Outline.of(definition), catalogue, tools, taken_paths={"", "a"}),
        *lint(Outline.of(definition), catalogue, {"": "", "a": "Careful."}),
        *instance_findings(Outline.of(definition), catalogue),
    ]
    assert all(each.id is None or isinstance(each.id, str) for each in findings)
    assert all(isinstance(each.message, str) and each.kind in ("node", "edge", "workflow") for each in findings)
    assert json.dumps([each.as_dict() for each in findings])
    assert isinstance(template_variables(definition), list)
    assert all(isinstance(path, str) for _, path, _ in trigger_paths(definition))
    if isinstance(definition, dict):
        assert isinstance(add_trigger_paths(definition, lambda: "p"), dict)
        assert isinstance(strip_unknown_data(definition, catalogue), dict)
    assert repr(definition) == before


_CATALOGUE: dict[str, Any] = {}


@pytest.fixture(autouse=True, scope="module")
def _catalogue(catalogue: Any) -> None:
    # hypothesis calls the test many times, so it can't take a fixture of its own for each.
    _CATALOGUE.update(catalogue)


def test_what_is_stored_but_not_run_is_warned_of(booking: Any, catalogue: Any) -> None:
    nodes = deepcopy(booking["nodes"])
    nodes[1]["data"] |= {"pre_call_fetch_mode": "always", "greeting_type": "audio"}
    nodes[2]["data"] |= {"tool_uuids": ["a"], "document_uuids": ["b"]}
    position = {"x": 0, "y": 0}
    more = [
        {"id": "eye", "type": "tuner", "position": position, "data": {"name": "On"}},
        {"id": "no eye", "type": "tuner", "position": position, "data": {"name": "Off", "tuner_enabled": False}},
    ]
    assert [
        (each.id, each.field, each.message)
        for each in lint(Outline.of({**booking, "nodes": [*nodes, *more]}), catalogue)
    ] == [
        ("start", "data.greeting_type", "There are no recordings in this release."),
        ("eye", "data.tuner_enabled", "Nothing is sent to Tuner in this release."),
    ]
