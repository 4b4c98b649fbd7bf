"""How large the history of a conversation may become: what has no room ends it, or is replaced by an error."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from voiceapi.engine import events as ev
from voiceapi.engine.actions import AskModel, Function, HangUp, Listen, Say
from voiceapi.engine.state import LONGEST_HISTORY, State, cut_short, size_of
from voiceapi.engine.step import LONGEST_CALLS, LONGEST_INPUT, MOST_CALLS, NO_ROOM


def size(call: Any) -> int:
    return sum(map(size_of, call.state.messages))


def errors(call: Any) -> list[str]:
    return [each["error"] for each in call.recorded("rtf-pipeline-error")]


def say(call: Any, text: str) -> list[Any]:
    """The caller says something, and the model repeats its question."""
    call.send(ev.CallerSaid, text)
    return list(call.send(ev.ModelReplied, "And?")) if call.state.phase == "thinking" else []


def test_a_conversation_that_has_no_room_left_ends(make_call: Callable[..., Any]) -> None:
    for voice in (True, False):
        call = make_call(voice=voice)
        call.send(ev.Started)
        while call.state.phase == "listening":
            say(call, "x" * LONGEST_INPUT)
        assert (call.state.phase, call.state.reason) == ("ended", "pipeline_error")
        assert errors(call) == [NO_ROOM]
        assert LONGEST_HISTORY - 2 * LONGEST_INPUT < size(call) <= LONGEST_HISTORY


def test_what_is_kept_with_a_message_counts_and_gives_way(make_call: Callable[..., Any]) -> None:
    call = make_call()
    call.send(ev.Started)
    kept = {"from": "me", "message": {"reasoning": "x" * LONGEST_INPUT}, "calls": []}
    for _ in range(20):
        call.send(ev.CallerSaid, "Hm?")
        call.send(ev.ModelReplied, "And?", kept=kept)
    assert errors(call) == []
    assert size(call) <= LONGEST_HISTORY
    said = [message for message in call.state.messages if message["content"] == "And?"]
    assert [message.get("kept") for message in said] == [None] * 5 + [kept] * 15
    call.send(ev.CallerSaid, "x" * LONGEST_INPUT)
    call.send(ev.ModelReplied, "And?")
    assert errors(call) == []
    assert sum("kept" in message for message in call.state.messages) < 15
    assert size(call) <= LONGEST_HISTORY
    assert State.from_json(json.loads(json.dumps(call.state.to_json()))) == call.state


def test_what_the_caller_says_is_cut(make_call: Callable[..., Any]) -> None:
    call = make_call()
    call.send(ev.Started)
    call.send(ev.CallerSaid, "é" * LONGEST_INPUT)
    assert call.state.messages[-1] == {"role": "user", "content": "é" * (LONGEST_INPUT // 2)}
    assert errors(call) == ["What the caller said is larger than 64 KiB; the rest of it was dropped."]
    assert isinstance(call.waits_for, AskModel)


def test_too_many_functions_at_once_are_a_failure_of_the_model(make_call: Callable[..., Any]) -> None:
    call = make_call()
    call.send(ev.Started)
    call.send(ev.CallerSaid, "Yes.")
    said, *_ = call.send(ev.ModelReplied, "", tuple(ev.ToolCall(str(n), "f") for n in range(MOST_CALLS + 1)))
    assert isinstance(said, Say)
    assert errors(call) == ["The model called 33 functions at once; at most 32 are carried out."]
    # The second failure in a row ends the call, as any of the model's.
    call.send(ev.CallerSaid, "Yes.")
    actions = call.send(ev.ModelReplied, "", (ev.ToolCall("1", "f", "x" * LONGEST_CALLS),))
    assert any(isinstance(each, HangUp) for each in actions)
    assert errors(call)[1:] == ["The model's function calls are larger than 64 KiB."]
    assert size(call) < 1000


def test_a_result_that_has_no_room_is_replaced_by_an_error(make_call: Callable[..., Any]) -> None:
    tool = Function("look", "Looks something up.", tool_uuid="u")
    call = make_call(functions={"start": (tool,)})
    call.send(ev.Started)
    call.send(ev.CallerSaid, "Yes.")
    call.send(ev.ModelReplied, "", (ev.ToolCall("1", tool.name), ev.ToolCall("2", tool.name)))
    for _ in range(2):
        call.send(ev.ToolReturned, {"data": "x" * (LONGEST_HISTORY * 2 // 3)})
    first, second = (message["content"] for message in call.state.messages[-2:])
    assert len(first) > LONGEST_HISTORY / 2
    assert second == '{"status": "error", "error": "The result is too large for this conversation."}'
    assert isinstance(call.waits_for, AskModel)
    assert isinstance(call.send(ev.ModelReplied, "Fine.")[-1], Listen)


def test_what_the_caller_interrupted_is_kept_as_far_as_they_heard_it(make_call: Callable[..., Any]) -> None:
    call = make_call()
    call.send(ev.Started)
    say(call, "Hm?")
    before = call.state.messages[:-1]
    assert call.state.messages[-1]["content"] == "And?"
    call.send(ev.SpeechCut, "", "And?")
    assert call.state.messages == (*before, {"role": "assistant", "content": "\u2026"})
    assert call.recorded("rtf-bot-interrupted") == [{"played": "", "unplayed": "And?"}]
    assert call.state.phase == "listening"


@pytest.mark.parametrize(
    ("unplayed", "kept"),
    [
        ("", ["One.", "Two, three."]),
        ("three.", ["One.", "Two\u2026"]),
        ("ree", ["One.", "Two, th\u2026"]),
        ("Two, three.", ["One.", "\u2026"]),
        ("One moment. Two, three.", ["\u2026", "\u2026"]),
        ("ne. Two, three.", ["O\u2026", "\u2026"]),
    ],
)
def test_messages_are_cut_short_from_the_end(unplayed: str, kept: list[str]) -> None:
    """What the caller said before stays, and so do the calls of functions between the texts."""
    call = {"role": "assistant", "content": "One.", "tool_calls": [{"id": "c1"}]}
    result = {"role": "tool", "content": "{}", "tool_call_id": "c1"}
    history = [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Hm."}, call, result]
    found = cut_short([*history, {"role": "assistant", "content": "Two, three."}], unplayed)
    assert [message["content"] for message in found] == ["Hello.", "Hm.", kept[0], "{}", kept[1]]
    assert found[2]["tool_calls"] == call["tool_calls"]
