"""end_call: how the model ends a call."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapi.tools.calculator import EndCall


def ending(**config: Any) -> EndCall:
    defaults = {
        "messageType": "none",
        "customMessage": None,
        "endCallReason": False,
        "endCallReasonDescription": None,
    }
    return EndCall("u", "Hang up", None, {**defaults, **config})


@pytest.mark.parametrize(
    ("config", "arguments", "reason", "speech"),
    [
        ({}, {"reason": "not asked for"}, "end_call_tool", ""),
        ({"endCallReason": True}, {"reason": " wrong_number "}, "wrong_number", ""),
        ({"endCallReason": True}, {}, "end_call_tool", ""),
        ({"endCallReason": True}, {"reason": 5}, "end_call_tool", ""),
        ({"endCallReason": True}, {"reason": "x" * 300}, "x" * 255, ""),
        ({"messageType": "custom", "customMessage": "Goodbye, {{name}}."}, {}, "end_call_tool", "Goodbye, Ann."),
        ({"messageType": "audio", "customMessage": "Goodbye."}, {}, "end_call_tool", ""),
    ],
)
def test_a_call_is_ended(post: Any, request_of: Any, config: Any, arguments: Any, reason: str, speech: str) -> None:
    answer = ending(**config).run(request_of(arguments, {"name": "Ann"}), post.context())
    assert (answer.result, answer.end_reason, answer.speech) == (
        {"status": "success", "action": "ending_call"},
        reason,
        speech,
    )


def test_a_message_that_is_too_large_does_not_keep_a_call_from_its_end(post: Any, request_of: Any) -> None:
    tool = ending(messageType="custom", customMessage="{{large}}")
    answer = tool.run(request_of({}, {"large": "x" * 70_000}), post.context())
    assert (answer.end_reason, answer.speech) == ("end_call_tool", "")
    assert answer.result["error"] == "A text of the tool is larger than 64 KiB with its variables filled in."


def test_a_reason_is_asked_for_where_it_is_wanted() -> None:
    assert ending().function().parameters["properties"] == {}
    wanted = ending(endCallReason=True, endCallReasonDescription="Why?").function()
    assert wanted.parameters == {
        "type": "object",
        "properties": {"reason": {"type": "string", "description": "Why?"}},
        "required": ["reason"],
    }
