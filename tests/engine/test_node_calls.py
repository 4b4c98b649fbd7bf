"""The tool that a node calls when it is entered, before it speaks."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from voiceapi.engine.actions import AskModel, Fetch, Finish, Function, HangUp, Listen, Pause, RunTool, Say
from voiceapi.engine.compose import ArgumentError, read_argument, unset_opening_variables
from voiceapi.engine.events import (
    CallEnded,
    CallerSaid,
    Fetched,
    ModelReplied,
    Started,
    ToolCall,
    ToolReturned,
    VariablesExtracted,
    says_error,
)
from voiceapi.engine.graph import Graph, template_variables
from voiceapi.engine.state import State
from voiceapi.engine.step import DELAY_SECONDS, ROUNDS, IllegalEvent, outstanding
from voiceapi.engine.template import KIB64

from .conftest import edge, node

PARAMETERS = {
    "type": "object",
    "properties": {"people": {"type": "integer"}, "name": {"type": "string"}, "vegan": {"type": "boolean"}},
    "required": ["people"],
}
BOOK = Function("book", "Book a table.", PARAMETERS, tool_uuid="python:book", on_entry=True)
CALL = {
    "tool": "python:book",
    "arguments": {"people": "{{companions}}", "name": "{{name}}", "vegan": "{{vegan}}"},
    "save_as": "booking",
    "on_error": "sorry",
}
EXTRACTION = {
    "extraction_enabled": True,
    "extraction_variables": [{"name": "companions", "type": "number", "prompt": "how many"}],
}
ON = ToolCall("c1", "on")


def definition(last: Any = CALL, **data: Any) -> dict[str, Any]:
    """hello -> done (an end that makes a call) or sorry (when that fails); `data` is that of hello."""
    return {
        "nodes": [
            node("hello", "startCall", "How many come?", **EXTRACTION, **data),
            node("done", "endCall", "Your table is at {{booking.time | another time}}.", call=last),
            node("sorry", "agentNode", "There is none."),
        ],
        "edges": [edge("hello", "done", "On"), edge("sorry", "done", "Again")],
    }


@pytest.fixture
def booked(make_call: Any) -> Any:
    """A conversation that is about to enter the node that books a table; gives the actions of that too."""

    def begin(call: Any = CALL, companions: Any = 4, *, offered: Any = (BOOK,), **setup: Any) -> Any:
        found = make_call(definition(call), functions={"done": tuple(offered)}, **setup)
        found.send(Started)
        found.send(ModelReplied, "How many come?")
        found.send(CallerSaid, "We are four.")
        found.send(ModelReplied, "", (ON,))
        found.records.clear()
        return found, found.send(VariablesExtracted, {"companions": companions} if companions is not None else {})

    return begin


def test_the_call_is_made_before_the_node_speaks(booked: Any) -> None:
    call, actions = booked()
    assert actions == [
        RunTool(
            4,
            1000.0,
            node_id="done",
            call_id="entry_4",
            name="book",
            tool_uuid="python:book",
            arguments={"people": 4, "name": "Ann"},
            initial_context={"name": "Ann"},
            gathered_context=call.state.gathered_context,
            on_entry=True,
        )
    ]
    [ask] = call.send(ToolReturned, {"time": "19:00"})
    assert isinstance(ask, AskModel)
    assert (ask.occasion, ask.prompt) == ("opening", "Your table is at 19:00.")
    assert ask.functions == ()
    assert call.state.gathered_context["booking"] == {"time": "19:00"}
    assert [type(each) for each in call.send(ModelReplied, "At seven. Bye.")] == [Say, HangUp, Finish]
    assert call.recorded("rtf-function-call-start")[-1] == {
        "function_name": "book",
        "tool_call_id": "entry_4",
        "arguments": {"people": 4, "name": "Ann"},
        "on_entry": True,
    }
    assert call.recorded("rtf-function-call-end")[-1] == {
        "function_name": "book",
        "tool_call_id": "entry_4",
        "result": '{"time": "19:00"}',
        "on_entry": True,
    }


def test_a_model_reads_nothing_of_the_call_but_what_the_prompt_says(booked: Any) -> None:
    """It didn't call the function, and some servers refuse calls that their model hasn't made."""
    call, _ = booked()
    before = call.state.messages
    [ask] = call.send(ToolReturned, {"time": "19:00"})
    assert ask.messages == before
    assert "book" not in json.dumps(before)


def test_when_it_fails_the_node_of_on_error_is_entered_instead(booked: Any) -> None:
    call, _ = booked()
    [ask] = call.send(ToolReturned, {"status": "error", "error": "We are full."})
    assert (ask.node_id, ask.occasion, ask.prompt) == ("sorry", "opening", "There is none.")
    assert call.state.gathered_context["booking"] is None
    entered = call.recorded("rtf-node-transition")[-1]
    assert (entered["node_id"], entered["previous_node_id"]) == ("sorry", "done")
    assert (entered["edge_id"], entered["edge_label"]) == ("done.on_error", "on_error")
    assert entered["reason"] == {"kind": "error"}
    assert call.recorded("rtf-pipeline-error") == []
    assert call.state.gathered_context["nodes_visited"] == ["Hello", "Done", "Sorry"]
    # Entered again, it calls again, and what was kept before doesn't count.
    call.send(ModelReplied, "There is none. Again?")
    call.send(CallerSaid, "Again.")
    [again] = call.send(ModelReplied, "", (ToolCall("c2", "again"),))
    assert (again.node_id, again.call_id) == ("done", "entry_7")
    [ask] = call.send(ToolReturned, {"time": "20:00"})
    assert ask.prompt == "Your table is at 20:00."


@pytest.mark.parametrize("on_error", [None, "", "gone"])
def test_without_on_error_the_node_speaks_and_the_failure_is_recorded(booked: Any, on_error: Any) -> None:
    call, _ = booked({**CALL, "on_error": on_error})
    [ask] = call.send(ToolReturned, {"status": "error", "error": "We are full."})
    assert (ask.node_id, ask.prompt) == ("done", "Your table is at another time.")
    assert call.recorded("rtf-pipeline-error") == [
        {"error": "The call of book failed: We are full.", "fatal": False, "processor": "tool"}
    ]


@pytest.mark.parametrize(
    ("companions", "error"),
    [
        (None, 'The argument "people" has no value.'),
        (2.5, 'The argument "people" must be a whole number, not "2.5".'),
    ],
)
def test_arguments_that_do_not_fit_are_a_failure_and_nothing_is_called(
    booked: Any, companions: Any, error: str
) -> None:
    call, [ask] = booked(companions=companions)
    assert (type(ask), ask.node_id) == (AskModel, "sorry")
    assert json.loads(call.recorded("rtf-function-call-end")[-1]["result"]) == {"status": "error", "error": error}
    assert call.state.gathered_context["booking"] is None


def test_a_missing_argument_is_noted_and_an_optional_one_left_out(booked: Any) -> None:
    call, [request] = booked(
        {**CALL, "arguments": {"people": 3, "name": "{{nobody}}", "vegan": "on", "more": ["{{name}}"]}}
    )
    assert request.arguments == {"people": 3, "vegan": True, "more": ["Ann"]}
    assert "nobody" in call.state.missing


def test_arguments_have_their_own_bound(booked: Any) -> None:
    call, [ask] = booked({**CALL, "arguments": {"people": 2, "name": "x" * KIB64 + "y"}})
    assert ask.node_id == "sorry"
    result = call.recorded("rtf-function-call-end")[-1]["result"]
    assert 'The text of the arguments of \\"Done\\" is larger than 64 KiB' in result


def test_a_result_that_is_too_large_to_be_kept_is_a_failure(booked: Any) -> None:
    large = {"text": "x" * KIB64}
    call, _ = booked()
    [ask] = call.send(ToolReturned, large)
    assert ask.node_id == "sorry"
    assert "larger than 64 KiB, so it can't be kept as booking" in call.recorded("rtf-function-call-end")[-1]["result"]
    call, _ = booked({key: value for key, value in CALL.items() if key != "save_as"})
    [ask] = call.send(ToolReturned, large)
    assert ask.node_id == "done"
    assert "booking" not in call.state.gathered_context


@pytest.mark.parametrize("result", ["a text", 5, None, True, ["a"], {}])
def test_any_result_is_kept_under_its_name(make_call: Any, result: Any) -> None:
    call = make_call(definition({"tool": "t", "save_as": "booking"}))
    call.send(Started)
    call.send(ModelReplied, "Hello.")
    call.send(CallerSaid, "On.")
    call.send(ModelReplied, "", (ON,))
    [request] = call.send(VariablesExtracted, {})
    assert (request.name, request.tool_uuid) == ("t", "t")
    call.send(ToolReturned, result)
    assert call.state.gathered_context["booking"] == result
    assert says_error(result) is False


def test_what_counts_as_a_failure() -> None:
    assert all(map(says_error, ({"status": "error"}, {"error": "No."}, {"status": "error", "status_code": 500})))
    assert not any(map(says_error, ({"status": "success", "error": "x"}, {"error": None}, {"error": ""}, "error", [1])))


# -- the start


def start(greeting: str = "Hello, at {{booking.time}}?", **data: Any) -> dict[str, Any]:
    return definition(None, greeting=greeting, call={**CALL, "arguments": {"people": 2}}, **data)


@pytest.mark.parametrize("direction", ["inbound", "outbound", None])
def test_the_start_calls_before_its_greeting(make_call: Any, direction: str | None) -> None:
    call = make_call(start(), functions={"hello": (BOOK,)}, direction=direction, voice=direction is not None)
    [request] = call.send(Started)
    assert (type(request), request.node_id) == (RunTool, "hello")
    said, listen = call.send(ToolReturned, {"time": "19:00"})
    assert (said.text, type(listen)) == ("Hello, at 19:00?", Listen)
    assert call.state.messages == ({"role": "assistant", "content": "Hello, at 19:00?"},)


def test_without_a_greeting_the_model_opens_after_the_call(make_call: Any) -> None:
    call = make_call(start(greeting=""), functions={"hello": (BOOK,)})
    call.send(Started)
    [ask] = call.send(ToolReturned, {"time": "19:00"})
    assert (type(ask), ask.occasion) == (AskModel, "opening")
    # A function that the model calls before it has said a word doesn't enter the node once more.
    [ask] = call.send(ModelReplied, "", (ToolCall("c", "nothing"),))
    assert (type(ask), ask.occasion) == (AskModel, "opening")


def test_the_start_leads_on_when_its_call_fails_and_greets_nobody(make_call: Any) -> None:
    call = make_call(start(), functions={"hello": (BOOK,)})
    call.send(Started)
    [ask] = call.send(ToolReturned, {"error": "No."})
    assert (type(ask), ask.node_id) == (AskModel, "sorry")
    said, _ = call.send(ModelReplied, "There is none.")
    assert said.interruptible is False


def test_the_fetch_and_the_pause_come_first_and_once(make_call: Any) -> None:
    fetching = {"pre_call_fetch_mode": "always", "pre_call_fetch_url": "https://example.com", "delayed_start": True}
    call = make_call(start(**fetching), functions={"hello": (BOOK,)})
    assert [type(each) for each in call.send(Started)] == [Fetch]
    assert [type(each) for each in call.send(Fetched, {})] == [Pause, RunTool]
    assert [type(each) for each in call.send(ToolReturned, {"time": "19:00"})] == [Say, Listen]
    assert DELAY_SECONDS == 2.0


def test_the_tools_message_is_spoken_first(make_call: Any) -> None:
    spoken = Function("book", "", PARAMETERS, tool_uuid="t", speech="One moment, {{name}}.", on_entry=True)
    call = make_call(start(), functions={"hello": (spoken,)})
    said, request = call.send(Started)
    assert (said, type(request)) == (Say("One moment, Ann.", False), RunTool)


# -- its place in a conversation


def test_a_function_that_is_called_on_entry_is_not_offered(make_call: Any) -> None:
    attached = Function("look_up", "Look up.", tool_uuid="u")
    call = make_call(start(greeting=""), functions={"hello": (attached, BOOK)})
    call.send(Started)
    [ask] = call.send(ToolReturned, {})
    assert [each.name for each in ask.functions] == ["look_up", "on"]
    [ask] = call.send(ModelReplied, "", (ToolCall("c", "book"),))
    assert "There is no function" in ask.messages[-1]["content"]


def test_the_call_goes_on_from_what_is_stored(booked: Any) -> None:
    call, [request] = booked()
    data = json.loads(json.dumps(call.state.to_json()))
    call.state = State.from_json(data)
    assert outstanding(call.graph, call.state, 1000.0) == request
    with pytest.raises(IllegalEvent, match="while entering"):
        call.send(CallerSaid, "Hello?")
    del data["call_due"]
    assert State.from_json(data).call_due is False


def test_the_end_of_the_call_drops_a_late_result(booked: Any) -> None:
    call, _ = booked()
    [finish] = call.send(CallEnded, "user_hangup")
    assert isinstance(finish, Finish)
    assert call.send(ToolReturned, {"time": "19:00"}) == []
    assert "booking" not in call.state.gathered_context


def test_a_call_that_takes_too_long_ends(booked: Any) -> None:
    call, _ = booked()
    assert isinstance(call.send(ToolReturned, {"time": "19:00"}, at=1301.0)[-1], Finish)
    assert call.state.reason == "call_duration_exceeded"


def test_calls_that_fail_in_a_circle_end(make_call: Any) -> None:
    """Only validation by an earlier release let such a definition through."""
    circle = {
        "nodes": [
            node("a", "startCall", greeting="Hi.", call={"tool": "t", "on_error": "b"}),
            node("b", "agentNode", call={"tool": "t", "on_error": "c"}),
            node("c", "agentNode", call={"tool": "t", "on_error": "b"}),
        ],
        "edges": [edge("a", "b", "On"), edge("b", "c", "On")],
    }
    call = make_call(circle)
    actions = call.send(Started)
    for _ in range(ROUNDS):
        assert isinstance(actions[-1], RunTool)
        actions = call.send(ToolReturned, {"error": "No."})
    assert isinstance(actions[-1], AskModel)
    assert [each["error"] for each in call.recorded("rtf-pipeline-error")] == ["The call of t failed: No."]


def test_results_stand_beside_the_initial_context(make_call: Any) -> None:
    look_up = Function("look_up", "", tool_uuid="u", speech="I look at {{booking.time}}.")
    call = make_call(
        start(greeting="{{booking.time}} {{name}} {{gathered_context.booking.time}}"),
        context={"name": "Ann", "booking": {"time": "noon"}},
        functions={"hello": (look_up, BOOK)},
    )
    [request] = call.send(Started)
    assert request.saved == {}
    said, _ = call.send(ToolReturned, {"time": "19:00"})
    assert said.text == "19:00 Ann 19:00"
    # Tools that are called later know it as well.
    call.send(CallerSaid, "Look it up.")
    said, request = call.send(ModelReplied, "", (ToolCall("c", "look_up"),))
    assert said.text == "I look at 19:00."
    assert (request.saved, request.on_entry) == ({"booking": {"time": "19:00"}}, False)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", " a ", " a "),
        ("number", " 2.5 ", 2.5),
        ("number", "3", 3),
        ("integer", "4", 4),
        ("boolean", "Yes", True),
        ("boolean", "0", False),
        ("array", '["a", 1]', ["a", 1]),
        ("object", '{"a": 1}', {"a": 1}),
        (None, "{}", "{}"),
        ("date", "2026-01-31", "2026-01-31"),
    ],
)
def test_a_text_is_read_as_the_type_of_its_parameter(kind: str | None, text: str, value: Any) -> None:
    parameters = {"properties": {"x": {"type": kind} if kind else 7}}
    assert read_argument("x", text, parameters) == value


@pytest.mark.parametrize(
    ("kind", "text", "described"),
    [
        ("number", "four", "a number"),
        ("number", "nan", "a number"),
        ("integer", "2.5", "a whole number"),
        ("boolean", "maybe", "true or false"),
        ("array", "{}", "a list in JSON"),
        ("array", "[NaN]", "a list in JSON"),
        ("object", "[1]", "an object in JSON"),
        ("object", "{", "an object in JSON"),
    ],
)
def test_a_text_of_another_type_is_refused(kind: str, text: str, described: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        read_argument("x", text, {"properties": {"x": {"type": kind}}})
    assert str(raised.value) == f'The argument "x" must be {described}, not "{text}".'


def test_what_is_no_text_stays_as_it_is() -> None:
    assert read_argument("x", 4.5, {"properties": {"x": {"type": "integer"}}}) == 4.5
    assert read_argument("x", "4", {}) == "4"


def test_variables_that_calls_keep_are_asked_of_nobody() -> None:
    told = start(greeting="{{booking}} {{booking.time}} {{first_name}}")
    assert template_variables(told) == ["first_name"]
    graph = Graph.read(told)
    assert unset_opening_variables(graph, {}, "outbound", datetime(2026, 1, 1, tzinfo=UTC)) == ["first_name"]


@pytest.mark.parametrize(
    "call",
    [None, 7, [], {}, {"tool": ""}, {"tool": 5}, {"arguments": {}}],
)
def test_a_malformed_call_is_none(call: Any) -> None:
    assert Graph.read(definition(call)).node("done").call is None


def test_only_nodes_that_speak_call() -> None:
    graph = Graph.read({"nodes": [node("a", "startCall"), node("w", "webhook", call=CALL)], "edges": []})
    assert graph.node("w").call is None
    assert graph.on_error == {}
