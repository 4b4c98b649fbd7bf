"""YAML as files of cases have it: few types, no surprises, and every error at its line and column."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceapi.errors import InvalidFields
from voiceapi.rehearsal.strict_yaml import INVALID, Places, load


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("true", True),
        ("True", "True"),
        ("09:00", "09:00"),
        ("2026-03-02", "2026-03-02"),
        ("010", "010"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("+12025550100", "+12025550100"),
        ("12", 12),
        ("-0", 0),
        ("5.10", 5.1),
        ("1e3", 1000.0),
        (".5", ".5"),
        (".inf", ".inf"),
        ("~", None),
        ("null", None),
        ("", None),
        ("'12'", "12"),
        ("=", "="),
        ("<<", "<<"),
        ("|\n  a\n  b\n", "a\nb\n"),
        ('"\\ud83d\\ude00"', "😀"),
        ('"\\ud800"', "\ufffd"),
    ],
)
def test_scalars_are_those_of_version_1_2(text: str, value: Any) -> None:
    found = load(f"a: {text}")["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a: 1\nb: &x 2", (2, 4), "anchors and aliases aren't accepted"),
        ("- &x 1\n- *x", (1, 3), "anchors and aliases aren't accepted"),
        ("a: !!python/object:os.system x", (1, 4), "tags aren't accepted"),
        ("a: !!binary aGk=", (1, 4), "tags aren't accepted"),
        ("a: !!int x", (1, 4), "tags aren't accepted"),
        ("- !!set {b}", (1, 3), "tags aren't accepted"),
        ("a: 1\nb: 2\na: 3", (3, 1), "“a” is there twice"),
        ('{"a": {"b": 1,\n"b": 2}}', (2, 1), "“b” is there twice"),
        ("? [1, 2]\n: 3", (1, 3), "the name of a member must be text; put it in quotes"),
        ("1: 2", (1, 1), "the name of a member must be text; put it in quotes"),
        ("a: 9223372036854775808", (1, 4), "a whole number may have at most 64 bits; put it in quotes"),
        (f"a: {'9' * 5000}", (1, 4), "a whole number may have at most 64 bits; put it in quotes"),
        ("a: 1e999", (1, 4), "the number is too large"),
        ("- a\n---\n- b", (2, 1), "expected a single document in the stream, but found another document"),
        ("a: 1\n b: 2", (2, 3), "mapping values are not allowed here"),
        ('a: "\\U00110000"', (1, 7), "a character or a number is out of range"),
        (f"%YAML {'9' * 5000}.1\n---\na", (1, 7), "a character or a number is out of range"),
        ("a: 1\nb: \x07", (2, 4), "the character U+0007 isn't accepted"),
        ("\ud800", (1, 1), "the character U+D800 isn't accepted"),
        ("[" * 101 + "]" * 101, (1, 101), "lists and objects may be nested at most 100 deep"),
        ("- " * 3000 + "a", (1, 201), "lists and objects may be nested at most 100 deep"),
        ("[" * 200, (1, 101), "lists and objects may be nested at most 100 deep"),
    ],
)
def test_what_is_wrong_has_its_line_and_column(text: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(InvalidFields) as caught:
        load(text)
    (error,) = caught.value.errors
    assert (error.path, error.message, error.type) == (place, message, INVALID)


@pytest.mark.parametrize("text", ['{\n\t"a": [1,\n\t\t2]\n}', '\ufeff{"a": [1, 2]}', "{a: [1, 2]}", "a:\n- 1\n- 2\n"])
def test_json_and_yaml_are_read_alike(text: str) -> None:
    assert load(text) == {"a": [1, 2]}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(max_examples=40)
@given(JSON.filter(lambda value: isinstance(value, dict | list)), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_any_json_is_read_as_it_is(value: Any, indent: Any, ascii: bool) -> None:
    assert load(json.dumps(value, indent=indent, ensure_ascii=ascii)) == value


LETTERS = st.sampled_from(list("abz{}[]:,-?!&*|>'\"%@`#~=<. \n\t0123456789\\xuU_\ud800é\0\ufeff"))


@settings(max_examples=120)
@given(st.text(LETTERS, max_size=30))
def test_no_text_leads_to_another_error(text: str) -> None:
    with suppress(InvalidFields):
        load(text)
        assert min(Places(text).of(["a", 0, "b"])) >= 1


def test_places_are_those_of_names_and_items() -> None:
    places = Places("cases:\n  - name: a\n    turns:\n      - caller: b\n")
    assert places.of(()) == (1, 1)
    assert places.of(("cases",)) == (1, 1)
    assert places.of(("cases", 0)) == (2, 5)
    assert places.of(("cases", 0, "turns", 0, "caller")) == (4, 9)
    # Of what isn't there, the nearest.
    assert places.of(("cases", 0, "turns", 7)) == (3, 5)
    assert places.of(("cases", 0, "nodes")) == (2, 5)
    assert Places('{\n\t"a": 1}').of(["a"]) == (2, 2)
    assert Places("").of(["a"]) == (1, 1)
