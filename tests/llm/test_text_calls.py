"""Function calls that small models write as text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceapi.llm.spoken_reply import WrittenCall, without_calls

# What models wrote: a call of NAME with no arguments, or with the day Thursday.
BARE = (
    "{name}()",
    "`{name}()`",
    "**{name}()**",
    "Function call: {name}()",
    "[{name}()]",
    "print(default_api.{name}())",
    "```tool_code\nprint({name}())\n```",
    "call: {name}",
    "Action: {name}",
    "functions.{name}:",
    "functions.{name}:0",
    "functions.{name}:\n{{ }}",
    '{{"name": "{name}", "arguments": {{}}}}',
    '{{"function": "{name}"}}',
    '{{"action": "{name}"}}',
    '{{"name": "{name}", "parameters": null}}',
    "<tool_call>{name}</tool_call>",
    "<tool_call>\n<function={name}>\n</function>\n</tool_call>",
    "[TOOL_CALLS]{name}{{}}",
)
WITH_DAY = (
    '[{name}(day="Thursday")]',
    "{name}(day='Thursday')",
    "{name}(day=Thursday)",
    '{{"name": "{name}", "arguments": {{"day": "Thursday"}}}}',
    '{{"name": "{name}", "parameters": {{"day": "Thursday"}}}}',
    '{{"name": "{name}", "arguments": "{{\\"day\\": \\"Thursday\\"}}"}}',
    "{{'name': '{name}', 'arguments': {{'day': 'Thursday'}}}}",
    '{{"type": "function", "function": {{"name": "{name}", "parameters": {{"day": "Thursday"}}}}}}',
    '{{"tool": "{name}", "args": {{"day": "Thursday"}}}}',
    '[{{"name": "{name}", "arguments": {{"day": "Thursday"}}}}]',
    '{{"tool_calls": [{{"function": {{"name": "{name}", "arguments": {{"day": "Thursday"}}}}}}]}}',
    '```json\n{{"name": "{name}", "arguments": {{"day": "Thursday"}}}}\n```',
    '<tool_call>\n{{"name": "{name}", "arguments": {{"day": "Thursday"}}}}\n</tool_call>',
    '<tool_call>{{"name": "{name}", "arguments": {{"day": "Thursday"}}}}',
    '<|tool_call|>[{{"name": "{name}", "arguments": {{"day": "Thursday"}}}}]<|/tool_call|>',
    '<function_call>{{"name": "{name}", "arguments": {{"day": "Thursday"}}}}</function_call>',
    '<function={name}>{{"day": "Thursday"}}</function>',
    "<tool_call>\n<function={name}>\n<parameter=day>\nThursday\n</parameter>\n</function>\n</tool_call>",
    '<function_calls><invoke name="{name}"><parameter name="day">Thursday</parameter></invoke></function_calls>',
    '<|python_tag|>{{"name": "{name}", "parameters": {{"day": "Thursday"}}}}',
    '[TOOL_CALLS][{{"name": "{name}", "arguments": {{"day": "Thursday"}}}}]',
    'functions.{name}:\n{{"day": "Thursday"}}',
    'to=functions.{name} {{"day": "Thursday"}}',
    'Action: {name}\nAction Input: {{"day": "Thursday"}}',
)
SHAPES = [(shape, "{}") for shape in BARE] + [(shape, '{"day": "Thursday"}') for shape in WITH_DAY]


@pytest.mark.parametrize(("shape", "arguments"), SHAPES)
def test_a_call_of_an_offered_function_is_read(shape: str, arguments: str) -> None:
    found = without_calls(shape.format(name="book"), {"book": "book"})
    assert (found.text, found.calls, found.dropped) == ("", [WrittenCall("book", arguments)], [])


@pytest.mark.parametrize(("shape", "_"), SHAPES)
@pytest.mark.parametrize("name", ["end_call", "transfer"])
def test_a_call_of_another_function_is_dropped(shape: str, _: str, name: str) -> None:
    found = without_calls(shape.format(name=name), {"book": "book"})
    assert (found.text, found.calls, found.dropped) == ("", [], [name])


@pytest.mark.parametrize(("shape", "_"), SHAPES)
def test_words_around_a_call_stay(shape: str, _: str) -> None:
    text = f"Let me see.\n{shape.format(name='end_call')}\nOne moment, please."
    found = without_calls(text, {})
    # What follows a tag that isn't closed can't be told from its content.
    assert found.text.split() in (["Let", "me", "see.", "One", "moment,", "please."], ["Let", "me", "see."])
    assert found.dropped == ["end_call"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Goodbye! end_call()", "Goodbye!"),
        ("end_call", ""),
        ("[end_call]", ""),
        ("Goodbye. [end_call]", "Goodbye."),
        ("Goodbye. <end_call/>", "Goodbye."),
        ('I will use "look_up()" now.', "I will use now."),
        ('{"name": "look_up", "arguments": {"day": "Thur', ""),
        ('{"name": "look_up", "arguments": {day: Thursday}} Thanks.', "Thanks."),
        ("look_up(1), look_up(2)", ""),
        ("<tool_call>", ""),
        ("<tool_call>\nLet me see.", "Let me see."),
        ("<tool_call>hm, what?</tool_call> Let me see.", "Let me see."),
    ],
)
def test_other_shapes(text: str, left: str) -> None:
    found = without_calls(text, {})
    assert (found.text, found.calls, found.found) == (left, [], True)


@pytest.mark.parametrize(
    "text",
    [
        "Your room(s) are ready (or not).",
        "f(x) is 3, and Paris(France) is big.",
        "Yes",
        "The call: transfer is ready.",
        "Call: Monday.",
        "Hello [first_name], are you there?",
        "I'll call you at 5 (pm) and book a table.",
        '{"name": "Ada"}',
        "Press [1] or {2}.",
        "",
    ],
)
def test_other_words_stay(text: str) -> None:
    found = without_calls(text, {"yes": "yes"})
    assert (found.text, found.calls, found.found) == (text, [], False)


def test_broken_arguments_reach_the_engine_as_they_are() -> None:
    """It tells the model that they aren't JSON."""
    found = without_calls('{"name": "book", "arguments": {day: Thursday}}', {"book": "book"})
    assert found.calls == [WrittenCall("book", "{day: Thursday}}")]


PIECES = (
    *"{}[]()<>|`\"':,=\n\\_ a1",
    "<tool_call>", "</tool_call>", "```", '{"name": "', '"arguments": {', "functions.", "Action: ", "book", "end_call",
    "<function=", "<parameter=a>", "print(", "[TOOL_CALLS]", "()", "\0",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(text: str) -> None:
    found = without_calls(text, {"book": "book"})
    assert {call.name for call in found.calls} <= {"book"}
    assert len(found.text) <= len(text)
    assert found.found or found.text == text.replace("\0", "")


FLOODS = (
    '{"name":', '[{"name":', "a(", 'a("', "<tool_call>", "</tool_call>", "```", "functions.a {", "call: x\n", "[a_b",
    " ", "\\", '"', "a", "a_", "<function=", "{", "<parameter=a>", "end_call() ", "[", "(", "\n",
)  # fmt: skip


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("start", ["", '{"name": "', "<function=a>", "a(", "Action:"])
@pytest.mark.long
def test_long_hostile_text_takes_no_longer_for_its_length(flood: str, start: str) -> None:
    text = start + flood * (40_000 // len(flood))
    before = time.process_time()
    without_calls(text, {"book": "book"})
    assert time.process_time() - before < 30
