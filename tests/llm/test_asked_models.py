"""What the doctor's question finds out about a model on one's own machine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.llm.strict_providers import LocalServer
from voiceapi.http_client import Reply
from voiceapi.llm.chat_completions import ChatCompletions
from voiceapi.llm.selection import (
    DROPPED,
    REFUSED,
    SMALL_CONTEXT,
    TALKED,
    TEMPLATES,
    WORDS,
    WORDS_OF_FUNCTION,
    ProbeFailed,
    ask,
)
from voiceapi.strict_json import encode


def asked(server: LocalServer) -> str:
    """What is said of the model: what it lacks, or why it can't be used."""

    def send(method: str, url: str, *, json: Any, **_: Any) -> Reply:
        status, answer = server.answer(json)
        return Reply(status, {}, encode(answer), 0.1)

    try:
        return ask(ChatCompletions(send, "http://127.0.0.1:11434/v1", "klein"))[1]
    except ProbeFailed as failure:
        return f"wrong: {failure}"


@pytest.mark.parametrize("inflation", [1.0, 1.15, 1.4])
@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({}, ""),
        ({"counts": False}, ""),
        ({"functions": "written"}, ""),
        ({"functions": "talked"}, TALKED),
        ({"functions": "talked", "counts": False}, TALKED),
        ({"functions": "dropped"}, f"wrong: {DROPPED} {TEMPLATES}"),
        ({"functions": "dropped", "counts": False}, TALKED),
        ({"functions": "refused"}, f"{REFUSED} {TEMPLATES}"),
        ({"functions": "refused", "context": 512}, f"wrong: {SMALL_CONTEXT}"),
        ({"context": 2048}, f"wrong: {SMALL_CONTEXT}"),
        ({"context": 2048, "functions": "talked"}, f"wrong: {SMALL_CONTEXT}"),
        ({"context": 512, "functions": "dropped"}, f"wrong: {SMALL_CONTEXT}"),
        ({"context": 4096}, ""),
    ],
)
def test_what_a_model_lacks_is_named(server: dict[str, Any], said: str, inflation: float) -> None:
    assert asked(LocalServer(**server, inflation=inflation)) == said


def test_a_server_that_refuses_long_prompts_says_so_itself() -> None:
    said = asked(LocalServer(context=1024, cuts=False))
    assert said.startswith("wrong: The model server finds the conversation too long for its model (400). It said: ")
    assert said.endswith(SMALL_CONTEXT)


def test_one_request_is_enough_unless_functions_are_refused() -> None:
    server = LocalServer()
    asked(server)
    (body,) = server.asked
    (tool,) = body["tools"]
    assert (tool["function"]["name"], body["tool_choice"], [each["role"] for each in body["messages"]]) == (
        "note",
        "auto",
        ["system", "user"],
    )
    assert WORDS + WORDS_OF_FUNCTION > 2048
    # What OpenAI takes at most.
    assert len(tool["function"]["description"]) <= 1024
    enum = tool["function"]["parameters"]["properties"]["wish"]["enum"]
    assert len(set(enum)) == len(enum) <= 250
    refusing = LocalServer(functions="refused")
    asked(refusing)
    assert ["tools" in each for each in refusing.asked] == [True, False]
