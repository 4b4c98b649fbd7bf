"""Files of conversation cases: what they hold, and each error with its place."""

from __future__ import annotations

import copy
import json
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceapi.errors import InvalidFields
from voiceapi.rehearsal import case_file
from voiceapi.rehearsal.case_file import MOST_CASES, MOST_TURNS, CaseFile, read_case, read_file
from voiceapi.rehearsal.cases import (
    Case,
    CaseFetch,
    CaseTurn,
    ExpectedOutcome,
    OwedWebhook,
    PlayedCall,
    PlayedDecision,
    ToolAnswer,
)
from voiceapi.rehearsal.strict_yaml import load

WHOLE = """
workflow: other.json
model: played
direction: inbound
context: {firm: A, city: Bonn}
tools: [{tool_uuid: t, name: Sums}]
cases:
  - name: " Everything "
    at: 2026-03-02T09:00:00+01:00
    context: {city: Cork}
    fetch: {returns: {tier: gold}}
    tools:
      - {tool: sums, with: {a: 1}, returns: [2]}
      - {tool: sums, fails: broken, optional: true}
    opening:
      model: [{say: Hello}]
      says: hello
    turns:
      - caller: yes
        after: 2.5
        model:
          - {say: Well, edge: Yes}
          - {call: sums, with: {a: 1}}
          - {calls: [{edge: No}, {call: sums}]}
          - {extract: {day: monday}}
          - {fails: busy}
        says: [a, b]
        matches: "[0-9]{2}"
        never: c
        node: Two
        edges: [Yes]
      - {keys: 12#, transfers_to: "+12025550100", transfer: no_answer}
      - silence: true
      - hangs_up: true
    expect:
      nodes: [One, Two]
      edges: []
      never: [d]
      variables: {day: monday, hour: null}
      disposition: user_qualified
      tags: hot
      webhooks: [Report, {node: Other, body: {a: 1}}]
  - name: 7
    model: scripted
    fetch: {fails: no answer}
    turns: {ends: call_duration_exceeded}
"""


def test_everything_is_read() -> None:
    everything = Case(
        "Everything",
        (
            CaseTurn(
                says="yes",
                after=2.5,
                decisions=(
                    PlayedDecision("Well", (PlayedCall(edge="Yes"),)),
                    PlayedDecision("", (PlayedCall(tool="sums", arguments={"a": 1}),)),
                    PlayedDecision("", (PlayedCall(edge="No"), PlayedCall(tool="sums"))),
                    PlayedDecision(extracts={"day": "monday"}),
                    PlayedDecision(fails="busy"),
                ),
                contains=("a", "b"),
                matches=("[0-9]{2}",),
                never=("c",),
                node="Two",
                edges=("Yes",),
            ),
            CaseTurn(keys="12#", transfers_to="+12025550100", transfer="no_answer"),
            CaseTurn(is_silent=True),
            CaseTurn(ends="user_hangup"),
        ),
        CaseTurn(decisions=(PlayedDecision("Hello"),), contains=("hello",)),
        "played",
        {"firm": "A", "city": "Cork"},
        "inbound",
        datetime(2026, 3, 2, 8, tzinfo=UTC),
        CaseFetch({"tier": "gold"}),
        (ToolAnswer("sums", {"a": 1}, [2]), ToolAnswer("sums", None, None, "broken", optional=True)),
        ExpectedOutcome(
            ("One", "Two"),
            (),
            ("d",),
            {"day": "monday", "hour": None},
            "user_qualified",
            ("hot",),
            (OwedWebhook("Report"), OwedWebhook("Other", {"a": 1})),
        ),
    )
    second = Case(
        "7",
        (CaseTurn(ends="call_duration_exceeded"),),
        context={"firm": "A", "city": "Bonn"},
        direction="inbound",
        fetch=CaseFetch(fails="no answer"),
    )
    assert read_file(WHOLE) == CaseFile((everything, second), "other.json", ({"tool_uuid": "t", "name": "Sums"},))


def test_a_case_alone_is_read_as_in_a_file() -> None:
    data = {"name": "a", "turns": [{"caller": "b"}]}
    (in_file,) = read_file(json.dumps({"cases": [data]})).cases
    assert read_case(data) == in_file == Case("a", (CaseTurn(says="b"),))


TURN = "cases.0.turns.0"


@pytest.mark.parametrize(
    ("turn", "place", "message"),
    [
        ({}, TURN, "it needs exactly one of caller, keys, silence, hangs_up, ends"),
        ({"caller": "a", "keys": "1"}, TURN, "it needs exactly one of caller, keys, silence, hangs_up, ends"),
        ({"silence": False}, TURN, "it needs exactly one of caller, keys, silence, hangs_up, ends"),
        (5, TURN, "it must be an object"),
        ({"caller": "a", "say": "b"}, f"{TURN}.say", "it isn't known; known are caller, keys, silence, hangs_up, ends"),
        ({"caller": True}, f"{TURN}.caller", "it must be a text; put it in quotes"),
        ({"caller": 5.1}, f"{TURN}.caller", "it must be a text; put it in quotes"),
        ({"caller": ["a"]}, f"{TURN}.caller", "it must be a text"),
        ({"keys": "12a"}, f"{TURN}.keys", "it must be 1 to 64 of the keys 0 to 9, * and #"),
        ({"keys": "1" * 65}, f"{TURN}.keys", "it must be 1 to 64 of the keys 0 to 9, * and #"),
        ({"silence": "yes"}, f"{TURN}.silence", "it must be true or false"),
        ({"hangs_up": 1}, f"{TURN}.hangs_up", "it must be true or false"),
        ({"ends": {}}, f"{TURN}.ends", "it must be a text"),
        ({"caller": "a", "after": -1}, f"{TURN}.after", "it must be a number of seconds from 0 to 86400"),
        ({"caller": "a", "after": True}, f"{TURN}.after", "it must be a number of seconds from 0 to 86400"),
        ({"caller": "a", "says": [{}]}, f"{TURN}.says.0", "it must be a text"),
        ({"caller": "a", "matches": ["a", "("]}, f"{TURN}.matches.1", "it isn't a regular expression: missing )"),
        ({"caller": "a", "matches": "(?:a{500}){500}"}, f"{TURN}.matches", "a regular expression may have at most"),
        ({"caller": "a", "matches": "a" * 1001}, f"{TURN}.matches", "a regular expression may have at most"),
        ({"caller": "a", "matches": "(" * 900}, f"{TURN}.matches", "it isn't a regular expression"),
        *(
            ({"caller": "a", "matches": each}, f"{TURN}.matches", "a regular expression may not call itself")
            for each in (r"a(?R)?b", r"(a|b(?1)c)", r"(a|b(?-1))", r"(?P<n>a(?&n)?)", r"(?P<n>a(?P>n)?)", r"\\\\(?0)?")
        ),
        ({"caller": "a", "never": None, "node": []}, f"{TURN}.node", "it must be a text"),
        ({"caller": "a", "edges": {"a": 1}}, f"{TURN}.edges", "it must be a text"),
        ({"caller": "a", "transfer": "maybe"}, f"{TURN}.transfer", "it must be one of answered, busy, no_answer"),
        ({"caller": "a", "transfer": []}, f"{TURN}.transfer", "it must be one of answered, busy, no_answer"),
        ({"caller": "a", "model": {}}, f"{TURN}.model", "it needs one of say, edge, call, calls, extract, fails"),
        (
            {"caller": "a", "model": [{"fails": "a", "say": "b"}]},
            f"{TURN}.model.0",
            "each of extract, fails, call_ends stands alone",
        ),
        ({"caller": "a", "model": {"extract": []}}, f"{TURN}.model.extract", "it must be an object"),
        ({"caller": "a", "model": {"edge": "a", "call": "b"}}, f"{TURN}.model", "it needs either edge, the label or"),
        ({"caller": "a", "model": {"with": {}}}, f"{TURN}.model", "it needs either edge, the label or id of one"),
        ({"caller": "a", "model": {"calls": [{}]}}, f"{TURN}.model.calls.0", "it needs either edge, the label or id"),
        ({"caller": "a", "model": {"call": "a", "with": 5}}, f"{TURN}.model.with", "it must be an object"),
        ({"caller": "a", "model": {"jump": 5}}, f"{TURN}.model.jump", "it isn't known; known are say, edge, call"),
    ],
)
def test_what_is_wrong_in_a_turn_has_its_place(turn: Any, place: str, message: str) -> None:
    case = {"name": "a", "model": "played", "turns": [turn]}
    assert_wrong({"cases": [case]}, place, message)


@pytest.mark.parametrize(
    ("case", "place", "message"),
    [
        ("a", "cases.0", "it must be an object"),
        ({}, "cases.0.name", "it must be a text of 1 to 200 characters"),
        ({"name": "  "}, "cases.0.name", "it must be a text of 1 to 200 characters"),
        ({"name": "a" * 201}, "cases.0.name", "it must be a text of 1 to 200 characters"),
        ({"name": "a", "steps": []}, "cases.0.steps", "it isn't known; known are name, model, context"),
        ({"name": "a", "model": "gpt"}, "cases.0.model", "it must be one of scripted, played, configured"),
        ({"name": "a", "model": {}}, "cases.0.model", "it must be one of scripted, played, configured"),
        ({"name": "a", "direction": "up"}, "cases.0.direction", "it must be one of outbound, inbound"),
        ({"name": "a", "context": []}, "cases.0.context", "it must be an object"),
        ({"name": "a", "at": "monday"}, "cases.0.at", "it must be a time in ISO 8601"),
        ({"name": "a", "at": "9999-12-31T23:59:59-01:00"}, "cases.0.at", "it must be a time in ISO 8601"),
        ({"name": "a", "fetch": {}}, "cases.0.fetch", "it needs either returns, an object of variables, or fails"),
        ({"name": "a", "fetch": {"returns": {}, "fails": "b"}}, "cases.0.fetch", "it needs either returns"),
        ({"name": "a", "fetch": {"returns": 5}}, "cases.0.fetch.returns", "it must be an object"),
        ({"name": "a", "tools": [{}]}, "cases.0.tools.0.tool", "it is the name of a tool"),
        ({"name": "a", "tools": {"tool": "b", "with": 5}}, "cases.0.tools.with", "it must be an object"),
        ({"name": "a", "tools": {"tool": "b", "optional": 1}}, "cases.0.tools.optional", "it must be true or false"),
        (
            {"name": "a", "tools": [{"tool": "b", "returns": 1, "fails": "c"}]},
            "cases.0.tools.0",
            "a tool returns, or it fails",
        ),
        ({"name": "a", "opening": {"caller": "b"}}, "cases.0.opening.caller", "it isn't known; known are model, says"),
        ({"name": "a", "opening": {"model": {"say": "b"}}}, "cases.0.opening.model", "only a case whose model is"),
        ({"name": "a", "turns": [{"caller": "b", "model": {"say": "c"}}]}, f"{TURN}.model", "only a case whose model"),
        ({"name": "a", "expect": {"node": "b"}}, "cases.0.expect.node", "it isn't known; known are nodes, edges"),
        ({"name": "a", "expect": {"nodes": [[]]}}, "cases.0.expect.nodes.0", "it must be a text"),
        ({"name": "a", "expect": {"variables": "b"}}, "cases.0.expect.variables", "it must be an object"),
        ({"name": "a", "expect": {"webhooks": [{}]}}, "cases.0.expect.webhooks.0.node", "it is the id or name of a"),
        ({"name": "a", "expect": {"webhooks": {"node": "b", "body": 1}}}, "cases.0.expect.webhooks.body", "it must be"),
        ({"name": "a", "turns": [{"silence": True}] * (MOST_TURNS + 1)}, "cases.0.turns", "it may have at most 200"),
    ],
)
def test_what_is_wrong_in_a_case_has_its_place(case: Any, place: str, message: str) -> None:
    assert_wrong({"cases": [case]}, place, message)
    with pytest.raises(InvalidFields) as caught:
        read_case(case, ("cases", 0))
    assert ".".join(map(str, caught.value.errors[0].path)) == place


@pytest.mark.parametrize(
    ("file", "place", "message"),
    [
        ([], "", "it must be an object"),
        ({}, "cases", "it must be a list of cases"),
        ({"cases": []}, "cases", "it must be a list of cases"),
        ({"cases": {"name": "a"}}, "cases", "it must be a list of cases"),
        ({"cases": [{"name": "a"}, {"name": "a"}]}, "cases.1.name", "another case has the name “a”"),
        ({"cases": [{"name": str(i)} for i in range(MOST_CASES + 1)]}, "cases", "it may have at most 1000 items"),
        ({"cases": [{"name": "a"}], "agent": 1}, "agent", "it isn't known; known are workflow, model"),
        ({"cases": [{"name": "a"}], "workflow": []}, "workflow", "it must be a text"),
        ({"cases": [{"name": "a"}], "tools": ["b"]}, "tools.0", "it must be an object"),
        ({"cases": [{"name": "a"}, {"name": "b"}], "model": "x"}, "model", "it must be one of scripted, played"),
        ({"cases": [{"name": "a"}, {"name": "b"}], "direction": 1}, "direction", "it must be one of outbound"),
        ({"cases": [{"name": "a"}, {"name": "b"}], "context": 1}, "context", "it must be an object"),
    ],
)
def test_what_is_wrong_in_a_file_has_its_place(file: Any, place: str, message: str) -> None:
    assert_wrong(file, place, message)


def assert_wrong(file: Any, place: str, message: str) -> None:
    with pytest.raises(InvalidFields) as caught:
        read_file(json.dumps(file))
    found = [(".".join(map(str, error.path)), error.message) for error in caught.value.errors]
    assert found[0][0] == place, found
    assert found[0][1].startswith(message)


def test_all_errors_are_named_but_no_more_than_a_reader_can_use() -> None:
    case = {"name": "a", "turns": [{"caller": []}, {"keys": "x"}]}
    with pytest.raises(InvalidFields) as caught:
        read_file(json.dumps({"model": "x", "cases": [case]}))
    assert len(caught.value.errors) == 3
    with pytest.raises(InvalidFields) as caught:
        read_file(json.dumps({"cases": [{"name": "a", "turns": [{}] * 50}]}))
    assert len(caught.value.errors) == case_file.MOST_ERRORS


def test_a_pattern_that_would_take_seconds_to_compile_is_refused_at_once() -> None:
    began = time.process_time()
    with pytest.raises(InvalidFields):
        read_case({"name": "a", "opening": {"matches": "(?:(?:a|b){3000}){ 3000}"}})
    assert time.process_time() - began < 30


# -- properties

EVERYTHING = load(WHOLE)
WORDS = st.sampled_from(["", "a", "yes", "1", "(", "a{9", "2026-03-02", "\0", "\ud800", "x" * 300])
JSON = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60)
@given(JSON)
def test_any_json_is_a_case_or_invalid_fields(data: Any) -> None:
    with suppress(InvalidFields):
        assert isinstance(read_case(data), Case)


@settings(max_examples=80)
@given(st.data())
def test_a_file_in_which_anything_is_replaced_is_read_or_invalid_fields(data: st.DataObject) -> None:
    file = copy.deepcopy(EVERYTHING)
    for _ in range(data.draw(st.integers(1, 3))):
        at = file
        while True:
            places = list(at) if isinstance(at, dict) else range(len(at))
            if not places:
                break
            place = data.draw(st.sampled_from(list(places)))
            if isinstance(at[place], dict | list) and at[place] and data.draw(st.booleans()):
                at = at[place]
                continue
            at[place] = data.draw(JSON)
            break
    with suppress(InvalidFields):
        assert all(isinstance(case, Case) for case in case_file._whole_file(file).cases)


def test_what_only_looks_like_recursion_is_a_pattern() -> None:
    patterns = [r"\(?R", r"\\\(?1\)?", r"(?P<n>a)(?P=n)", r"(a)?(?(1)b|c)", r"(?i:a)(?=b)(?>c)"]
    assert read_case({"name": "a", "opening": {"matches": patterns}}).opening.matches == tuple(patterns)
