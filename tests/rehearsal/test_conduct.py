"""The conversation of a case: each expectation met and not met, and what is played instead of the world."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from rehearsed import record

from voiceapi.engine import events as ev
from voiceapi.llm.scripted import Scripted
from voiceapi.rehearsal import conduct
from voiceapi.rehearsal.case_file import read_case
from voiceapi.rehearsal.cases import CaseResult
from voiceapi.rehearsal.conduct import MOST_MISMATCHES, run_case
from voiceapi.rehearsal.played import contains
from voiceapi.rehearsal.subject import Subject


def node(id: str, type: str, **data: Any) -> dict[str, Any]:
    data = {"name": f"Node {id}", "prompt": f"You are at {id}.", **data}
    return {"id": id, "type": type, "position": {"x": 0, "y": 0}, "data": data}


def edge(id: str, source: str, target: str, label: str) -> dict[str, Any]:
    return {"id": id, "source": source, "target": target, "data": {"label": label, "condition": f"They say {label}."}}


def tool(uuid: str, name: str, type: str, **config: Any) -> Any:
    definition = {"type": type} | ({"config": config} if config else {})
    return record({"tool_uuid": uuid, "name": name, "description": f"{name}.", "definition": definition})


DEFINITION = {
    "nodes": [
        node(
            "a",
            "startCall",
            greeting="Hello {{name}}, it’s “Ann”.",
            tool_uuids=["slot", "sums", "desk", "asked"],
            extraction_enabled=True,
            extraction_variables=[{"name": "day", "type": "string", "prompt": "the day"}],
        ),
        node("b", "agentNode"),
        node("c", "endCall", prompt="Thank you, goodbye."),
        node(
            "w",
            "webhook",
            endpoint_url="https://example.org/hook",
            http_method="POST",
            payload_template={"day": "{{gathered_context.day}}", "name": "{{initial_context.name}}"},
        ),
    ],
    "edges": [edge("a-b", "a", "b", "Go"), edge("b-a", "b", "a", "Back"), edge("b-c", "b", "c", "Done")],
}
TOOLS = [
    tool("slot", "Find a slot", "http_api", method="GET", url="https://example.org/slots"),
    tool("sums", "Sums", "calculator"),
    tool("desk", "Front desk", "transfer_call", destination="+12025550100"),
    tool("asked", "Asked desk", "transfer_call", destination_source="dynamic", resolver={"url": "https://example.org"}),
]
SUBJECT = Subject.of_definition(DEFINITION, tools=TOOLS)
CASE: dict[str, Any] = {
    "name": "a",
    "model": "played",
    "context": {"name": "Ada"},
    "tools": [{"tool": "find_a_slot", "with": {"day": "monday"}, "returns": {"free": [10]}}],
    "opening": {"says": "hello ADA", "node": "a", "edges": []},
    "turns": [
        {
            "caller": "On Monday?",
            "model": [
                {"call": "find_a_slot", "with": {"day": "monday", "hour": 9}},
                {"say": "There is one at ten."},
            ],
            "says": ["one at", "TEN."],
            "matches": r"at \w+\.$",
            "never": "eleven",
            "node": "Node a",
            "edges": [],
        },
        {
            "caller": "Good.",
            "model": [{"edge": "Go"}, {"extract": {"day": "monday"}}, {"say": "Anything else?"}],
            "node": "b",
            "edges": ["Go"],
        },
        {"keys": "1", "model": [{"edge": "b-c"}, {"say": "Thank you, goodbye."}], "edges": ["Done"], "says": "goodbye"},
    ],
    "expect": {
        "nodes": ["a", "Node b", "c"],
        "edges": ["a-b", "Done"],
        "never": "sorry",
        "variables": {"day": "monday", "hour": None},
        "disposition": "user_qualified",
        "tags": ["user_qualified", "user_speech"],
        "webhooks": [{"node": "Node w", "body": {"day": "monday"}}],
    },
}


def changed(place: str, value: Any, case: Any = CASE) -> Any:
    """A copy of the case with another value at a place; None removes what is there."""
    case = json.loads(json.dumps(case))
    at = case
    *parents, last = (int(part) if part.isdigit() else part for part in place.split("."))
    for part in parents:
        at = at[part]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return case


def run(case: Mapping[str, Any], subject: Subject = SUBJECT) -> CaseResult:
    return run_case(subject, read_case(case))


def mismatches(result: CaseResult) -> list[tuple[str, str, str]]:
    return [(each.place, each.expected, each.found) for each in result.mismatches]


def test_a_case_that_is_met_has_the_whole_course_of_the_conversation() -> None:
    found = run(CASE)
    assert mismatches(found) == []
    assert found.passed
    assert [(line.role, line.place, line.node_id, line.text) for line in found.dialogue] == [
        ("agent", "opening", "a", "Hello Ada, it’s “Ann”."),
        ("caller", "turns.0", "a", "On Monday?"),
        ("tool", "turns.0", "a", 'find_a_slot {"day": "monday", "hour": 9}'),
        ("answer", "turns.0", "a", 'find_a_slot {"free": [10]}'),
        ("agent", "turns.0", "a", "There is one at ten."),
        ("caller", "turns.1", "a", "Good."),
        ("edge", "turns.1", "b", "Go → Node b"),
        ("agent", "turns.1", "b", "Anything else?"),
        ("caller", "turns.2", "b", "[keys 1]"),
        ("edge", "turns.2", "c", "Done → Node c"),
        ("agent", "turns.2", "c", "Thank you, goodbye."),
    ]
    assert (found.nodes, found.edges) == (("a", "b", "c"), ("a-b", "b-c"))
    assert found.extracted == {"a": ("day",)}
    assert found.variables == {"day": "monday"}
    assert found.disposition == "user_qualified"
    assert found.webhooks == {"w": {"day": "monday", "name": "Ada", "call_disposition": "user_qualified"}}
    assert json.loads(json.dumps(found.as_dict()))["passed"] is True


SAID = "It said “There is one at ten.”."


@pytest.mark.parametrize(
    ("place", "value", "at", "expected", "happened", "line"),
    [
        ("opening.says", "Bob", "opening.says", "the agent says “Bob”", "It said “Hello Ada, it’s “Ann”.”.", 0),
        ("opening.node", "b", "opening.node", "the conversation stands at “b”", "It stands at “Node a”.", 0),
        ("turns.0.says", ["ten", "12"], "turns.0.says", "the agent says “12”", SAID, 4),
        ("turns.0.matches", ["^There", "^at"], "turns.0.matches", "what the agent says matches “^at”", SAID, 4),
        ("turns.0.never", ["Ten.", "x"], "turns.0.never", "the agent doesn't say “Ten.”", SAID, 4),
        ("turns.0.node", "Node b", "turns.0.node", "the conversation stands at “Node b”", "It stands at “Node a”.", 4),
        ("turns.0.edges", ["Go"], "turns.0.edges", "the edges “Go” are taken", "None was taken.", 4),
        ("turns.1.edges", [], "turns.1.edges", "no edge is taken", "Taken were “Go”.", 6),
        ("turns.1.edges", ["Go", "Done"], "turns.1.edges", "the edges “Go”, “Done” are taken", "Taken were “Go”.", 6),
        (
            "expect.nodes",
            ["a", "c"],
            "expect.nodes",
            "the nodes “a”, “c” are passed",
            "It was “Node a”, “Node b”, “Node c”.",
            None,
        ),
        (
            "expect.edges",
            ["Done", "Go"],
            "expect.edges",
            "the edges “Done”, “Go” are taken",
            "Taken were “Go”, “Done”.",
            None,
        ),
        ("expect.never", ["x", "one AT"], "expect.never", "the agent never says “one AT”", SAID, 4),
        ("expect.variables", {"day": "friday"}, "expect.variables.day", 'day is "friday"', 'It is "monday".', None),
        ("expect.variables", {"hour": 9}, "expect.variables.hour", "hour is 9", "It is null.", None),
        ("expect.disposition", "no", "expect.disposition", "the disposition is no", "It is user_qualified.", None),
        ("expect.tags", ["hot"], "expect.tags", "call_tags are hot", "They are user_speech, user_qualified.", None),
        (
            "expect.webhooks",
            [],
            "expect.webhooks",
            "no other webhook is owed",
            "There is the one of “Node w”, too.",
            None,
        ),
        ("expect.webhooks", ["w", "w"], "expect.webhooks.1", "the run owes the webhook of “w”", "It doesn't.", None),
        (
            "expect.webhooks",
            [{"node": "w", "body": {"day": 1}}],
            "expect.webhooks.0.body",
            'the body has {"day": 1}',
            'It is {"day": "monday", "name": "Ada", "call_disposition": "user_qualified"}.',
            None,
        ),
        (
            "tools.0.with",
            {"day": "friday"},
            "tools.0.with",
            'find_a_slot is called with {"day": "friday"}',
            'It was called with {"day": "monday", "hour": 9}.',
            2,
        ),
        (
            "tools.0.tool",
            "other",
            "tools",
            "an answer for each call of find_a_slot",
            'It was called with {"day": "monday", "hour": 9}.',
            2,
        ),
        ("tools", [*CASE["tools"], {"tool": "sums"}], "tools.1", "sums is called", "It wasn't called.", None),
        ("fetch", {"returns": {}}, "fetch", "the agent fetches context before the conversation", "It doesn't.", None),
        ("turns.0.transfers_to", "+1", "turns.0.transfers_to", "the caller is transferred to +1", "Nobody was.", 4),
        (
            "turns.0.model.1",
            {"edge": "Done"},
            "turns.0.model",
            "an edge “Done” can be chosen",
            "At “Node a” there are: Go.",
            4,
        ),
        (
            "turns.0.model.1",
            {"call": "nothing"},
            "turns.0.model",
            "a tool “nothing” can be chosen",
            "At “Node a” there are: find_a_slot, safe_calculator, front_desk, asked_desk.",
            4,
        ),
        (
            "turns.0.model",
            CASE["turns"][0]["model"][:1],
            "turns.0.model",
            "a decision for each time that the model is asked",
            "The model was asked at “Node a”, to reply.",
            4,
        ),
        (
            "turns.1.model",
            [*CASE["turns"][1]["model"], {"say": "Hm", "call": "sums"}],
            "turns.1.model",
            "the model is asked for this decision: say “Hm”, call sums",
            "It wasn't asked.",
            7,
        ),
        (
            "turns",
            [*CASE["turns"], {"caller": "Hm."}, {"silence": True}],
            "turns.3",
            "the conversation goes on",
            "It was over, with 2 turns left.",
            10,
        ),
    ],
)
def test_what_is_not_met_is_named_with_the_line_of_the_dialogue(
    place: str, value: Any, at: str, expected: str, happened: str, line: int | None
) -> None:
    found = run(changed(place, value))
    first = next(each for each in found.mismatches if each.place == at)
    assert (first.expected, first.found) == (expected, happened)
    assert first.line == line
    assert not found.passed


def test_texts_are_compared_without_upper_case_blanks_and_kinds_of_quotes() -> None:
    case = {"name": "a", "context": {"name": "ADA"}, "opening": {"says": 'HELLO  ada, it\'s "ann"'}}
    assert run(case).passed


@pytest.mark.parametrize(
    ("whole", "part", "is_there"),
    [
        ({"a": 1, "b": {"c": [1, 2]}}, {"b": {"c": [1, 2]}}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": None}, {"a": None}, True),
        ({}, {"a": None}, False),
        ({"a": 1.0}, {"a": 1}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": 0}, {"a": False}, False),
    ],
)
def test_a_part_of_an_object_is_found_in_it(whole: Any, part: Any, is_there: bool) -> None:
    assert contains(whole, part) is is_there


def test_a_search_that_takes_too_long_is_a_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    case = {"name": "a", "context": {"name": "a" * 500}, "opening": {"matches": r"(a+)+\1b"}}
    monkeypatch.setattr(conduct, "LONGEST_SEARCH", 0.01)
    assert run(case).mismatches[0].found == "It took too long."


def test_a_conversation_of_another_course_has_a_bounded_number_of_mismatches() -> None:
    case = {"name": "a", "opening": {"says": [str(number) for number in range(99)]}}
    assert len(run(case).mismatches) == MOST_MISMATCHES


# -- the caller


@pytest.mark.parametrize(
    ("turn", "line", "disposition"),
    [
        ({"silence": True}, "[silence]", "user_hangup"),
        ({"hangs_up": True}, "[hangs up]", "user_hangup"),
        ({"ends": "call_duration_exceeded"}, "[the call ends: call_duration_exceeded]", "call_duration_exceeded"),
        ({"keys": "1#"}, "[keys 1#]", "user_hangup"),
    ],
)
def test_what_a_caller_does_besides_speaking(turn: Any, line: str, disposition: str) -> None:
    found = run({"name": "a", "turns": [turn], "expect": {"disposition": disposition}})
    assert found.passed
    assert found.dialogue[1].text == line


def test_a_caller_who_has_nothing_more_to_say_hangs_up() -> None:
    found = run({"name": "a"})
    assert [(line.place, line.text) for line in found.dialogue[1:]] == [("end", "[hangs up]")]
    assert found.disposition == "user_hangup"


def test_the_conversation_begins_when_and_as_the_case_says() -> None:
    definition = json.loads(json.dumps(DEFINITION))
    definition["nodes"][0]["data"]["greeting"] = "{{current_time_UTC}}"
    subject = Subject.of_definition(definition, tools=TOOLS)
    case = {"name": "a", "at": "2027-05-06T07:08:00+02:00", "opening": {"says": ["2027", "05:08"]}}
    assert mismatches(run(case, subject)) == []
    assert mismatches(run({"name": "a", "opening": {"says": ["2026-03-02", "09:00"]}}, subject)) == []


def test_a_call_has_a_longest_duration_and_a_chat_has_none() -> None:
    turns = [{"caller": "Hm?", "after": 200}, {"caller": "Hm?", "after": 200}]
    assert run({"name": "a", "turns": turns}).disposition == "call_duration_exceeded"
    assert run({"name": "a", "turns": turns, "direction": "chat"}).disposition == "user_hangup"


def test_what_the_caller_says_is_not_said_by_the_agent() -> None:
    assert mismatches(run({"name": "a", "turns": [{"caller": "xyzzy"}], "expect": {"never": "xyzzy"}})) == []


def test_a_node_that_leads_to_itself_is_passed_once_until_the_conversation_leaves_it() -> None:
    definition = json.loads(json.dumps(DEFINITION))
    definition["edges"].append(edge("b-b", "b", "b", "Again"))
    turns = [{"caller": each} for each in ("go", "again", "back", "go")]
    case = {"name": "a", "turns": turns, "expect": {"nodes": ["a", "b", "a", "b"]}}
    found = run(case, Subject.of_definition(definition, tools=TOOLS))
    assert mismatches(found) == []
    assert found.nodes == ("a", "b", "b", "a", "b")


def test_a_webhook_is_of_the_time_at_which_the_conversation_ended() -> None:
    definition = json.loads(json.dumps(DEFINITION))
    definition["nodes"][3]["data"]["payload_template"] = {"at": "{{current_time_UTC}}"}
    case = {"name": "a", "direction": "chat", "turns": [{"caller": "Hm?", "after": 7200}]}
    body = run(case, Subject.of_definition(definition, tools=TOOLS)).webhooks["w"]
    assert "11:00" in body["at"], body


# -- what is played


def test_tools_answer_in_order_and_those_that_send_nothing_are_run() -> None:
    case = {
        "name": "a",
        "model": "played",
        "tools": [
            {"tool": "find_a_slot", "returns": 1},
            {"tool": "find_a_slot", "fails": "Nothing is free."},
            {"tool": "find_a_slot", "optional": True},
        ],
        "turns": [
            {
                "caller": "Hm.",
                "model": [
                    {"calls": [{"call": "find_a_slot"}, {"call": "safe_calculator", "with": {"expression": "6*7"}}]},
                    {"call": "find_a_slot"},
                    {"say": "Done."},
                ],
            }
        ],
    }
    found = run(case)
    assert mismatches(found) == []
    answers = [line.text for line in found.dialogue if line.role == "answer"]
    assert answers[0] == "find_a_slot 1"
    assert "42" in answers[1]
    assert '"error": "Nothing is free."' in answers[2]


def test_a_call_without_an_answer_fails_the_case_at_its_line() -> None:
    case = {
        "name": "a",
        "model": "played",
        "tools": [{"tool": "find_a_slot", "returns": 1}],
        "turns": [
            {"caller": "Hm.", "model": [{"call": "find_a_slot"}, {"call": "find_a_slot"}, {"say": "Well."}]},
        ],
    }
    (found,) = run(case).mismatches
    assert (found.place, found.expected) == ("tools", "an answer for each call of find_a_slot")
    assert run(case).dialogue[found.line or 0].role == "tool"
    assert found.line == 4


def test_a_model_that_fails_is_played() -> None:
    case = {"name": "a", "model": "played", "turns": [{"caller": "Hm.", "model": [{"fails": "busy"}]}]}
    found = run(case)
    assert found.passed
    assert [line.text for line in found.dialogue if line.role == "error"] == ["llm: busy"]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("answered", "transfer_success"),
        ("busy", "The line was busy."),
        ("no_answer", "Nobody answered there."),
        ("failed", "The call there failed."),
        ("caller_hangs_up", "The caller hung up"),
    ],
)
def test_a_transfer_has_the_outcome_of_its_turn(outcome: str, status: str) -> None:
    turn = {"caller": "A person!", "model": [{"call": "front_desk"}], "transfers_to": "+12025550100"}
    over = outcome in ("answered", "caller_hangs_up")
    model = turn["model"] if over else [*turn["model"], {"say": "Nobody is there."}]
    found = run({"name": "a", "model": "played", "turns": [{**turn, "model": model, "transfer": outcome}]})
    assert mismatches(found) == []
    assert any(status in line.text for line in found.dialogue if line.role == "answer"), found.dialogue


def test_a_transfer_elsewhere_is_a_mismatch() -> None:
    turn = {"caller": "A person!", "model": [{"call": "front_desk"}], "transfers_to": "+12025550199"}
    (found,) = run({"name": "a", "model": "played", "turns": [turn]}).mismatches
    assert (found.place, found.found) == ("turns.0.transfers_to", "It was +12025550100.")


def test_a_transfer_in_another_turn_is_a_mismatch() -> None:
    first = {"caller": "A person!", "model": [{"call": "front_desk"}, {"say": "Busy."}], "transfer": "busy"}
    second = {"caller": "Now?", "model": [{"say": "No."}], "transfers_to": "+12025550100"}
    found = run({"name": "a", "model": "played", "turns": [first, second]})
    wanted = "the caller is transferred to +12025550100"
    assert mismatches(found) == [("turns.1.transfers_to", wanted, "Nobody was.")]


def test_the_destination_that_a_server_names_is_played() -> None:
    turn = {"caller": "A person!", "model": [{"call": "asked_desk"}], "transfers_to": "+12025550111"}
    tools = [{"tool": "asked_desk", "returns": {"transfer_to": "+12025550111"}}]
    found = run({"name": "a", "model": "played", "tools": tools, "turns": [turn]})
    assert mismatches(found) == []


FETCHING = Subject.of_definition(
    {
        **DEFINITION,
        "nodes": [
            node(
                "a",
                "startCall",
                greeting="Hello {{tier}}.",
                pre_call_fetch_mode="inbound",
                pre_call_fetch_url="https://example.org",
            ),
            *DEFINITION["nodes"][1:],
        ],
    }
)


@pytest.mark.parametrize(
    ("case", "place", "said"),
    [
        ({"fetch": {"returns": {"tier": "gold"}}, "direction": "inbound"}, None, "Hello gold."),
        ({"fetch": {"fails": "no answer"}, "direction": "inbound"}, None, "Hello ."),
        ({"direction": "inbound"}, "fetch", "Hello ."),
        ({"direction": "outbound"}, None, "Hello ."),
    ],
)
def test_the_fetch_before_the_conversation_is_played(case: Any, place: str | None, said: str) -> None:
    found = run({"name": "a", **case}, FETCHING)
    assert [each.place for each in found.mismatches] == ([place] if place else [])
    assert [line.text for line in found.dialogue if line.role == "agent"] == [said]


def test_a_webhook_that_is_owed_without_a_body_is_none_with_one() -> None:
    definition = json.loads(json.dumps(DEFINITION))
    definition["nodes"][3]["data"] |= {"http_method": "GET"}
    subject = Subject.of_definition(definition)
    expected = {"name": "a", "expect": {"webhooks": [{"node": "w", "body": {"day": 1}}]}}
    bodies = run(expected, subject).webhooks
    found = run(expected, subject)
    assert [each.place for each in found.mismatches] == ["expect.webhooks.0.body"], bodies


# -- who speaks


class Parrot(Scripted):
    """A model that repeats what the caller said."""

    def reply(self, ask: Any) -> ev.Answer:
        return ev.ModelReplied(ask.at, ask.number, str(ask.messages[-1]["content"]), ())


def test_the_configured_model_speaks_where_the_case_says_so() -> None:
    subject = Subject.of_definition(DEFINITION, tools=TOOLS, model=Parrot())
    case = {"name": "a", "model": "configured", "turns": [{"caller": "Who is there?", "says": "who is there?"}]}
    assert mismatches(run(case, subject)) == []
    assert not run({**case, "model": "scripted"}, subject).passed
    (found, *_) = run(case).mismatches
    assert (found.place, found.expected) == ("model", "a language model is configured")


def test_the_scripted_model_is_the_default() -> None:
    assert mismatches(run({"name": "a", "turns": [{"caller": "go", "edges": ["Go"]}]})) == []


def test_the_workflows_configurations_count() -> None:
    subject = Subject.of_definition(DEFINITION, {"phrases": {"not_understood": "Pardon?"}}, TOOLS)
    german = Subject.of_definition(DEFINITION, {"language": "de-DE"}, TOOLS)
    case = {"name": "a", "turns": [{"caller": "xyzzy"}]}
    texts = {run(case, each).dialogue[2].text for each in (SUBJECT, subject, german)}
    assert len(texts) >= 2
