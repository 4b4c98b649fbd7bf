"""Streamed replies: events cut anywhere, deltas of each provider, and what of a reply is settled before its end."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamed import events

from voiceapi.llm.chat_completions import _following
from voiceapi.llm.spoken_reply import spoken_reply
from voiceapi.llm.streams import (
    LONGEST_STREAM,
    SHORTEST_PART,
    Assembly,
    ErrorInStream,
    Pace,
    clauses,
    data_of,
    sentences,
    settled,
    whole,
    words,
)
from voiceapi.llm.wire import Completion, NotACompletion

STREAM = (
    b": OPENROUTER PROCESSING\n\n"
    b"data: one\r\n\r\n"
    b"event: x\nid: 7\ndata:two\ndata:  three\n\n"
    b"data: f\xc3\xbcnf\r\r"
    b":\n\n"
    b"data\n\n"
    b'error: {"code": 500}\n\n'
    b"data: [DONE]\n"
)
DATA = ["one", "two\n three", "f\u00fcnf", "", '{"error": {"code": 500}}', "[DONE]"]


def test_the_data_of_events() -> None:
    assert [each for each in data_of([STREAM]) if each is not None] == DATA


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_may_be_cut_anywhere(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[start:end] for start, end in itertools.pairwise(places)]
    assert [each for each in data_of(chunks) if each is not None] == DATA


def test_a_comment_is_no_data() -> None:
    assert list(data_of([b": ping\n\n"])) == [None, None]


def test_a_stream_has_a_bound() -> None:
    with pytest.raises(NotACompletion, match="larger than"):
        list(data_of(b"data: x" * 1000 for _ in range(LONGEST_STREAM // 7000 + 2)))


# -- deltas


def assembled(*chunks: Any) -> Completion:
    found = Assembly()
    for chunk in chunks:
        found.add(chunk if isinstance(chunk, str) else json.dumps(chunk))
    return found.completion()


def delta(finish: str | None = None, **members: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": members, "finish_reason": finish}]}


def part(index: int | None = 0, id: str | None = None, name: str | None = None, arguments: str = "") -> dict[str, Any]:
    """A part of a function call; what a server leaves out is absent."""
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return {**({} if index is None else {"index": index}), **({"id": id} if id else {}), "function": function}


def calls(completion: Completion) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in completion.calls]


def test_text_and_usage_of_a_stream() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    answer = {"choices": [{"message": {"content": "Good  morning. "}, "finish_reason": "stop"}], "usage": usage}
    found = Assembly()
    for data in data_of(events(answer)):
        if data is not None:
            found.add(data)
    assert (found.is_done, found.is_whole, found.text) == (True, True, "Good  morning. ")
    completion = found.completion()
    assert (completion.text, completion.usage["total_tokens"], completion.cut) == ("Good  morning.", 5, False)


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        # OpenAI: id and name once, arguments by parts.
        ([[part(0, "a", "book", '{"d')], [part(0, arguments='": 1}')]], [("a", "book", '{"d": 1}')]),
        # Two calls, their parts mixed.
        (
            [[part(0, "a", "x", "{"), part(1, "b", "y", "{")], [part(1, arguments="}")], [part(0, arguments="}")]],
            [("a", "x", "{}"), ("b", "y", "{}")],
        ),
        # Mistral: whole calls in one chunk, without an index.
        ([[part(None, "a", "x", "{}"), part(None, "b", "y", "{}")]], [("a", "x", "{}"), ("b", "y", "{}")]),
        # Gemini: index 0 for calls side by side; an old Ollama: neither index nor id.
        ([[part(0, "a", "x", "{}")], [part(0, "b", "y", "{}")]], [("a", "x", "{}"), ("b", "y", "{}")]),
        ([[part(None, None, "x", "{}")], [part(None, None, "y", "{}")]], [("", "x", "{}"), ("", "y", "{}")]),
        # One that repeats id and name with each part.
        ([[part(0, "a", "x", "{")], [part(0, "a", "x", "}")]], [("a", "x", "{}")]),
    ],
)
def test_calls_by_parts(deltas: list[Any], expected: list[tuple[str, str, str]]) -> None:
    """Whatever the finish reason says: Gemini and vLLM end with `stop`."""
    assert calls(assembled(*(delta(tool_calls=each) for each in deltas), delta("stop"))) == expected


def test_members_of_a_provider_are_joined() -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    completion = assembled(
        delta(role="assistant", content=None, reasoning_content="Let me "),
        delta(content="Hi.", reasoning_content="think.", refusal=None),
        delta(reasoning_details=[{"type": "text", "index": 0, "text": "a"}]),
        delta(reasoning_details=[{"type": "text", "index": 0, "text": "b"}, {"type": "text", "index": 1, "text": "c"}]),
        delta(tool_calls=[{**part(0, "a", "x", "{}"), "extra_content": signature}]),
        delta("tool_calls"),
    )
    details = [{"type": "text", "index": 0, "text": "ab"}, {"type": "text", "index": 1, "text": "c"}]
    assert completion.others == {"reasoning_content": "Let me think.", "reasoning_details": details}
    assert completion.calls[0].others == {"extra_content": signature}
    assert completion.text == "Hi."


def test_thoughts_in_parts_of_the_content_are_left_out() -> None:
    """Mistral's way."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    completion = assembled(delta(content=[thought]), delta(content=[{"type": "text", "text": "Hi."}]), delta("stop"))
    assert completion.text == "Hi."


def test_chunks_without_a_choice_and_of_other_choices_say_nothing() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "No."}, "finish_reason": None}]}
    assert assembled({"choices": []}, delta(content="Yes."), other, delta("stop")).text == "Yes."


@pytest.mark.parametrize(
    "chunk",
    [
        {"error": {"message": "No."}},
        {"object": "error", "message": "No.", "code": 400},
        {"choices": [{"index": 0, "delta": {}, "error": {"message": "No."}}]},
    ],
)
def test_an_error_within_a_stream(chunk: Any) -> None:
    with pytest.raises(ErrorInStream) as error:
        assembled(delta(content="Hi"), chunk)
    assert "No." in json.dumps(error.value.body)


@pytest.mark.parametrize("data", ["<html>", "[]", "{}", '{"choices": 1}', "NaN", "[" * 5000])
def test_what_is_no_part_of_a_reply(data: str) -> None:
    with pytest.raises(NotACompletion):
        assembled(data)


# -- what is settled

NAMES = {"book": "book", "end_call": "end_call"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("Hello", ""),
        ("Hello there. How", "Hello there."),
        ("\u4f60\u597d\u3002\u518d", "\u4f60\u597d\u3002"),
        ("I'm **Anna**. How", "I'm Anna."),
        ("<think>Let me see.</think> Hello there. How", "Hello there."),
        # What may become something else.
        ("<think>Let me see. Well then", ""),
        ("I'm **Anna. How are", ""),
        ("Hello <b>there. How", ""),
        ("See https://example.com/x for", ""),
        ('{"response": "Hello there. How', ""),
        ("`book` it. Then", ""),
        ("book(day=1) is done", ""),
        ("functions.book: now it", ""),
        ("Action: book\nAction Input: x", ""),
        ("First line.\nSecond line. And", ""),
        ("end_call then there", ""),
        ("- a list ", "a list"),
        ("1. one ", "1. one"),
        ("\U0001f600 Hello ", "Hello"),
        ("- Well, ", "Well,"),
    ],
)
def test_the_settled_beginning(text: str, expected: str) -> None:
    assert settled(text, NAMES) == expected


PIECES = st.sampled_from(
    [
        *("Hello there. ", "How are you? ", "Yes, ", "at 3.5 p.m. ", "Dr. Smith ", "It's $5.00. ", "**Anna** ", "50% "),
        *(
            "(about five) ",
            "\u4f60\u597d\u3002",
            "\u00bfQu\u00e9 tal? ",
            "caf\u00e9 ",
            "\U0001f600 ",
            "- a list ",
            "1. one ",
        ),
        *(
            "*so* ",
            "_x_ ",
            "`code` ",
            "[a](http://b.c) ",
            "<b>bold</b> ",
            "\n",
            "\nUser: no",
            "| a | b |\n",
            "# Head\n",
        ),
        *('{"name": "book"} ', "book() ", "<tool_call>", "Action: book\n", "end_call ", "www.example.com ", "&amp; "),
        *("Assistant: ", "</think>", "<think>", "```\n", "~~gone~~ ", "==\n", "functions.book ", "\\* "),
    ]
)


@given(st.lists(PIECES, max_size=16).map("".join), st.integers(0, 200))
def test_what_is_settled_is_how_the_reply_begins(whole_text: str, length: int) -> None:
    """Unless its server leaves the opening tag of thoughts in the prompt: then nobody can know."""
    before = settled(whole_text[:length], NAMES)
    if "</think>" in whole_text.replace("<think>", "", 1) or whole_text.count("think>") % 2:
        return
    completion = Assembly()
    completion.add(json.dumps(delta("stop", content=whole_text)))
    assert spoken_reply(completion.completion(), NAMES).text.startswith(before)


@given(st.text(max_size=80), st.text(max_size=80))
def test_a_whole_reply_begins_with_what_was_given_out(given_out: str, text: str) -> None:
    assert _following(given_out, text).startswith(given_out.rstrip())


# -- how much of it is given out


@pytest.mark.parametrize(
    ("pace", "text", "expected"),
    [
        (whole, "Thank you. I have noted that for you.", ""),
        # Short sentences wait for more.
        (sentences, "Thank you.", ""),
        (sentences, "Thank you. I have noted that for you. And", "Thank you. I have noted that for you."),
        (sentences, "I have noted that for you, Mr. Smith, at 3.5", ""),
        # Nobody listens, so nothing is asked.
        (sentences, "I have noted that for you now. Shall we go on? We can.", "I have noted that for you now."),
        (sentences, "Shall we go on with the appointment? We can do that.", ""),
        (sentences, "\u00bfSeguimos con la cita de ma\u00f1ana? Podemos hacerlo ahora.", ""),
        (
            sentences,
            "\u5df2\u7ecf\u4e3a\u60a8\u8bb0\u4e0b\u4e86\u9884\u7ea6\u3002\u518d\u89c1",
            "\u5df2\u7ecf\u4e3a\u60a8\u8bb0\u4e0b\u4e86\u9884\u7ea6\u3002",
        ),
        (clauses, "Well, I think so: yes", "Well, I think so:"),
        (clauses, "at 3.5 o'clock", ""),
        (clauses, "\u662f\u7684\uff0c\u597d", "\u662f\u7684\uff0c"),
        (words, " and more", " and more"),
    ],
)
def test_paces(pace: Pace, text: str, expected: str) -> None:
    assert text[: pace.length(text)] == expected


@given(st.lists(st.sampled_from(["Yes.", " No, ", "why? ", "Good morning to you. ", "\u3002", " 1.5 "]), max_size=30))
def test_sentences_that_go_ahead_are_long_enough_and_ask_nothing(parts: Sequence[str]) -> None:
    text = "".join(parts)
    ahead = text[: sentences.length(text)]
    assert "?" not in ahead
    assert not ahead or len(ahead) * 3 >= SHORTEST_PART
