"""What a model writes, as it is spoken."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from voiceapi.llm.speakable import read_entities, speakable

SPOKEN = {
    "a heading and emphasis": (
        "# Hours\nWe are **open** from *nine* to _five_, __really__.",
        "Hours.\nWe are open from nine to five, really.",
    ),
    "lists": ("Choose:\n- Red\n* Blue\n\n1. One\n2) Two\n", "Choose:\nRed.\nBlue.\n\n1. One.\n2. Two."),
    "a list of tasks": ("- [ ] Call\n- [x] Pay!", "Call.\nPay!"),
    "a table": (
        "| Dish | Price |\n|---|---:|\n| Tea | $5.00 |\n| Cake | 1,200 |",
        "Dish, Price.\n\nTea, $5.00.\nCake, 1,200.",
    ),
    "a quotation": ("> She said:\n> yes", "She said:\nyes"),
    "a rule": ("Yes.\n\n---\n\nNo.", "Yes.\n\nNo."),
    "links": (
        'See [our *site*](https://example.com/a?b=c "Title"), ![a map](map.png) or [this][1].\n\n[1]: https://x.org',
        "See our site, a map or this.",
    ),
    "bare URLs": (
        "Visit https://www.example.com/book?x=1, http://a.io/q/w_e%20r or <https://b.de/>.",
        "Visit example.com/book, a.io or b.de.",
    ),
    "code": ("Say `yes` or:\n```python\nhello\n```", "Say yes or:\n\nhello"),
    "tags": (
        "<speak>Hello<break time=\"1s\"/> <emphasis level='strong'>you</emphasis><br>and <b>you</b></speak>",
        "Hello you\nand you",
    ),
    "a placeholder": ("Hello <your name>, welcome.", "Hello your name, welcome."),
    "marks of a model": ("<|im_start|>Hello.<|im_end|></s>", "Hello."),
    "an answer in tags": ("<reply>Hello.</reply><x>Bye.</x>", "Hello.Bye."),
    "emoji": ("Great \U0001f600! Hi \U0001f44b there\U0001f44dyou \u2764\ufe0f", "Great! Hi there you"),
    "a family": ("\U0001f468\u200d\U0001f469\u200d\U0001f467 come", "come."),
    "emoji as bullets": ("\u2705 Red\n\u2705 Blue", "Red.\nBlue."),
    "keys": ("Press 1\ufe0f\u20e3 or #.", "Press 1 or #."),
    "escapes": (r"It costs \$5.00 \(or less\).", "It costs $5.00 (or less)."),
    "an accent for an apostrophe": ("I don`t know.", "I don't know."),
    "Chinese": (
        "你好**世界**吧。\n- 红色\n看https://example.com/a。谢谢",
        "你好世界吧。\n红色。\n看example.com/a。谢谢",
    ),
    "Hindi": ("**नमस्ते** दुनिया। क्\u200dष", "नमस्ते दुनिया। क्\u200dष"),
    "Arabic": ("# مرحبا\n**أهلا** بك؟", "مرحبا.\nأهلا بك؟"),
    "German": ("**Öffnungszeiten:** 8–12 Uhr, _außer_ sonntags", "Öffnungszeiten: 8–12 Uhr, außer sonntags"),
    "French": ("Bonjour *Zoé*, ça va \U0001f642 ?", "Bonjour Zoé, ça va?"),
}
# What stays as it is.
PLAIN = (
    "It costs $5.00, €1,200 or 3.50 £.",
    "3 * 4 = 12, 2*3 = 6, 2**3 = 8, 3 < 4 and 5 > 2.",
    "Do you know C#, F# and snake_case_names?",
    "A 5* hotel, ~5 minutes away, at 20°C & 50%.",
    "Write to a_b@example.com (or #1 @home).",
    "One line.\nAnother one.\n\nA paragraph.",
    "\"Yes,\" she said - 'no'… really?!",
    "We're open 10 – 12, 12:30 → 14:00; R&D, AT&T, №1 ©.",
    '{"name": "Ada"}',
    "Grüße, ¿qué tal?, 你好。 नमस्ते। שלום",
)


@pytest.mark.parametrize("name", SPOKEN)
def test_what_is_spoken(name: str) -> None:
    written, spoken = SPOKEN[name]
    assert speakable(written) == spoken
    assert speakable(spoken) == spoken


@pytest.mark.parametrize("text", PLAIN)
def test_what_can_be_spoken_stays(text: str) -> None:
    assert speakable(text) == text


def test_entities_are_read_once() -> None:
    assert read_entities("I&#39;m &amp;lt; &amp;#39; AT&amp;T R&D &quot;x&quot; &#x41; &copy=1 &foo; &") == (
        'I\'m &lt; &#39; AT&T R&D "x" A &copy=1 &foo; &'
    )


# Pieces of markup of all kinds, so that what is generated from them is more hostile than text usually is.
PIECES = (
    *"*_~`#>|-+<>[]()\\/:.!&=\"'\n\t 1",
    "**", "```", "\n- ", "\n1. ", "<b>", "</b>", "<x>", "<x", "<br/>", "<!--", "-->", "](", "![", "[a](b)", "http://",
    "www.", "https://a.b/c", "a", "b c", "é", "世", "नि", "\U0001f600", "\u200d", "\ufe0f", "\0", "| - |", "\n---\n",
    "<|", "|>", "&lt;", "\u2022 ", "mailto:", "a@b.c", "[^1]", "[a]: b",
)  # fmt: skip
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join)


@given(HOSTILE)
@settings(max_examples=200, deadline=None)
def test_what_was_spoken_is_spoken_as_it_is(text: str) -> None:
    once = speakable(text)
    assert speakable(once) == once


@given(HOSTILE)
@settings(max_examples=150, deadline=None)
@example("http://0_¹")
def test_no_markup_is_added(text: str) -> None:
    spoken = speakable(text)
    for mark in "*_~`#<>[]|\\{}":
        assert spoken.count(mark) <= text.count(mark)
    assert "\U0001f600" not in spoken


@given(st.lists(st.sampled_from(["hello", "Zoé", "世界", "नमस्ते", "42"]), min_size=1), HOSTILE)
@settings(max_examples=150, deadline=None)
def test_words_are_never_lost(words: list[str], around: str) -> None:
    """Outside of tags, URLs and comments, which go whole."""
    marks = re.sub(r"[<>\[\]/:@#&]|\w", "", around)
    text = f"{marks}\n{' '.join(words)}\n{marks}"
    assert all(word in speakable(text) for word in words)


FLOODS = (
    "*", "_", "`", "<", ">", "[", "|", "\\", "~", "#", " ", "\n", "&", "\u200d", "\U0001f600", "<a ", "[a](", "**a",
    "<!--", "http://", "www.", "> ", "- ", "1. ", "<<b>b>", "a_", "a.", "&#39;", "[a]: ", "<a b=c ", "[^a]",
    '<a b="', "x \U0001f600 ",
)  # fmt: skip


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("start", ["", "<a", "[a](", "http://"])
@pytest.mark.long
def test_long_hostile_text_takes_no_longer_for_its_length(flood: str, start: str) -> None:
    """40,000 characters are what is read of an answer; quadratic work on them would take minutes."""
    text = start + flood * (40_000 // len(flood))
    before = time.process_time()
    speakable(read_entities(text))
    assert time.process_time() - before < 30
