"""The service's own sentences: every language has all of them, and a workflow may replace each."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapi.engine.phrases import ALIASES, FILLERS, PHRASES, filler, filler_after, phrases

ENGLISH = PHRASES["en"]
OTHERS = ("es", "fr", "de", "it", "pt", "nl", "pl", "sv", "hi", "ja", "zh")


def test_the_languages_that_are_promised() -> None:
    assert PHRASES.keys() >= {"en", *OTHERS}
    assert all(target in PHRASES for target in ALIASES.values())


@pytest.mark.parametrize("language", [language for language in PHRASES if language != "en"])
def test_every_phrase_is_translated(language: str) -> None:
    table = PHRASES[language]
    assert table.keys() == ENGLISH.keys()
    for name, text in table.items():
        assert text == text.strip()
        assert text[-1] in ".!?।。！？:：" or name == "or", f"{language}, {name}"
        assert text not in ENGLISH.values(), f"{language}, {name}"
    assert len(set(table.values())) == len(table)


@pytest.mark.parametrize(
    ("language", "spoken"),
    [
        ("de", "de"),
        ("de-AT", "de"),
        (" DE-de ", "de"),
        ("cmn-CN", "zh"),
        ("yue-Hant-HK", "zh"),
        ("xx-XX", "en"),
        ("", "en"),
        (None, "en"),
        (7, "en"),
    ],
)
def test_the_phrases_are_in_the_workflows_language(language: Any, spoken: str) -> None:
    assert phrases({"language": language}) == PHRASES[spoken]


def test_a_workflow_replaces_single_phrases() -> None:
    found = phrases({"language": "fr-FR", "phrases": {"wait": "Une seconde.", "unknown": "x", "apology": " "}})
    assert found == {**PHRASES["fr"], "wait": "Une seconde."}


@pytest.mark.parametrize("given", [None, [], "x", {"wait": None}, {"wait": 1}])
def test_what_was_stored_before_phrases_were_checked_breaks_no_call(given: Any) -> None:
    assert phrases({"phrases": given}) == ENGLISH


def test_fillers_vary() -> None:
    english = [ENGLISH[name] for name in FILLERS]
    assert [filler({}, given) for given in range(5)] == [*english, english[1], english[2]]
    assert filler({"language": "ja-JP"}, 1) == PHRASES["ja"]["still_waiting"]


def test_a_workflow_with_fillers_of_its_own_has_no_others() -> None:
    """Its language may be one that the service doesn't speak."""
    one = {"language": "tr-TR", "phrases": {"wait": "Bir dakika."}}
    assert {filler(one, given) for given in range(4)} == {"Bir dakika."}
    two = {"phrases": {"wait": "Hold on.", "long_wait": "Still here."}}
    assert [filler(two, given) for given in range(4)] == ["Hold on.", *["Still here."] * 3]


@pytest.mark.parametrize(
    ("given", "seconds"), [(None, 2.5), ("x", 2.5), (True, 2.5), (1, 1.0), (3.5, 3.5), (0.1, 1.0), (60, 3.5)]
)
def test_when_the_first_filler_comes(given: Any, seconds: float) -> None:
    assert filler_after({"filler_after": given}) == seconds
