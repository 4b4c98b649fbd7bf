"""What is spoken of replies that small models write beside their words."""

from __future__ import annotations

import time

import pytest

from voiceapi.llm.spoken_reply import spoken_reply
from voiceapi.llm.wire import Completion


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("Assistant: See you then.", "See you then."),
        ("**Agent:** See you then.", "See you then."),
        ("<|im_start|>assistant\nHello.<|im_end|>", "Hello."),
        ("<|start_header_id|>assistant<|end_header_id|>\n\nHello.", "Hello."),
        ("Fine.\n\nUser: thanks\nAssistant: bye", "Fine."),
        ("Fine.<|im_end|>\n<|im_start|>user\nthanks", "Fine."),
        ('{"response": "Hello, Ada."}', "Hello, Ada."),
        ('```json\n{"message": "Hello,\\nAda."}\n```', "Hello,\nAda."),
        # These stay.
        ("The assistant: a person.", "The assistant: a person."),
        ("Assistant dentists are here.", "Assistant dentists are here."),
        ("Which user: Ann?", "Which user: Ann?"),
        ('{"size": 4}', '{"size": 4}'),
        ('{"a": "x", "b": "y"}', '{"a": "x", "b": "y"}'),
        ('{"broken": "', '{"broken": "'),
    ],
)
def test_only_the_agents_own_words_are_spoken(written: str, text: str) -> None:
    assert spoken_reply(Completion(written), {}).text == text


@pytest.mark.parametrize("flood", ["\n", " ", "\n ", "{", "}", "```", "Assistant: ", "\nuser", "<|im_start|>", "{}"])
def test_no_text_takes_long(flood: str) -> None:
    started = time.process_time()
    spoken_reply(Completion(flood * (100_000 // len(flood))), {})
    assert time.process_time() - started < 30
