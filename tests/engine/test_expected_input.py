"""Hints for the speech recogniser, and when keys are complete."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapi.engine.compose import LONGEST_HINT, MOST_HINTS, asks_for_keys, end_of_speech, keys_expected, speech_hints
from voiceapi.engine.graph import Edge, Node


def node(**data: Any) -> Node:
    return Node("1", "agentNode", "Ask", data)


def edge(label: str, condition: str = "") -> Edge:
    return Edge("e", "1", "2", label, condition)


@pytest.mark.parametrize(
    ("data", "configurations", "edges", "hints"),
    [
        ({}, {}, [], ()),
        ({}, {}, [edge("Yes"), edge("No thanks")], ("Yes", "No thanks")),
        (
            {},
            {},
            [edge("new_order", 'The caller wants to order, or says "shopping cart".')],
            ("new order", "shopping cart", "order"),
        ),
        (
            {},
            {},
            [edge("Termin", "Der Anrufer möchte den Termin verschieben.")],
            ("Termin", "Anrufer", "möchte", "verschieben"),
        ),
        (
            {"speech_hints": ["Llanfair"]},
            {"speech_hints": ["Acme  Ltd", "llanfair"]},
            [edge("Yes")],
            ("Llanfair", "Acme Ltd", "Yes"),
        ),
        ({"speech_hints": ["{{name}}", "Ann"]}, {}, [edge("Call {{name | them}}")], ("Ann",)),
        ({"speech_hints": "Llanfair"}, {"speech_hints": [7, None, " "]}, [edge("")], ()),
        ({}, {}, [edge("x" * LONGEST_HINT), edge("x" * (LONGEST_HINT + 1))], ("x" * LONGEST_HINT,)),
    ],
)
def test_hints(data: Any, configurations: Any, edges: list[Edge], hints: tuple[str, ...]) -> None:
    assert speech_hints(node(**data), edges, configurations) == hints


def test_hints_are_bounded_and_the_given_ones_come_first() -> None:
    given = [f"name {number}" for number in range(70)]
    found = speech_hints(node(speech_hints=given), [edge(f"label {number}") for number in range(70)], {})
    assert len(found) == MOST_HINTS
    assert found[:70] == tuple(given)


@pytest.mark.parametrize(
    ("data", "edges", "keys"),
    [
        ({}, [edge("Press 1 for new orders"), edge("Press 2 for anything else")], 1),
        ({}, [edge("Orders", "The caller pressed 1."), edge("Other")], None),
        ({}, [edge("Orders", "The caller says so, or they press 1."), edge("Other")], 1),
        ({}, [edge("Bestellung", "Für Bestellungen drücken Sie die 1.")], 1),
        ({}, [edge("Press 1"), edge("Press 12")], None),
        ({}, [edge("Press 10"), edge("Press 20")], 2),
        ({}, [edge("Press 1", "Within 24 hours.")], None),
        ({}, [edge("1 person"), edge("2 people")], None),
        ({}, [edge("Yes"), edge("No")], None),
        ({}, [], None),
        (
            {"extraction_enabled": True, "extraction_variables": [{"name": "n", "type": "number"}]},
            [edge("Press 1")],
            None,
        ),
    ],
)
def test_keys_of_a_menu_are_complete_at_once(data: Any, edges: list[Edge], keys: int | None) -> None:
    assert keys_expected(node(**data), edges) == keys


def extracting(*variables: tuple[str, str, str]) -> dict[str, Any]:
    found = [{"name": name, "type": type, "prompt": hint} for name, type, hint in variables]
    return {"extraction_enabled": True, "extraction_variables": found}


@pytest.mark.parametrize(
    ("hint", "keys"),
    [
        ("The 4-digit PIN.", 4),
        ("ein 6-stelliger Code", 6),
        ("le code à 4 chiffres", 4),
        ("4桁の番号", 4),
        ("4 to 6 digits", None),
        ("at least 4 digits", None),
        ("mindestens 4 Ziffern", None),
        ("the last four digits", None),
        ("The account number, 8 digits or more", None),
        ("8 Ziffern oder länger", None),
        ("Four or 5 digits", None),
        ("ZIP: five digits, or nine with the 4 digit extension", None),
        ("amount with 2 digits after the decimal point", None),
        ("99 digits", None),
        ("0 digits", None),
        ("PIN", None),
        ("", None),
    ],
)
def test_the_length_of_a_number_that_its_variable_tells(hint: str, keys: int | None) -> None:
    asked = node(**extracting(("pin", "string", hint)))
    assert keys_expected(asked, [edge("Press 1")]) == keys
    assert asks_for_keys(asked, []) is (keys is None)
    assert keys_expected(node(**extracting(("pin", "string", hint), ("name", "string", ""))), []) is None


@pytest.mark.parametrize(
    ("data", "asks"),
    [
        ({}, False),
        (extracting(("people", "number", "")), True),
        (extracting(("name", "string", "")), False),
        (extracting(("account", "string", "the account number")), True),
        (extracting(("numéro", "string", "")), True),
        (extracting(("coming", "boolean", "their number")), False),
    ],
)
def test_where_the_caller_may_press_keys(data: Any, asks: bool) -> None:
    assert asks_for_keys(node(**data), [edge("Yes")]) is asks


@pytest.mark.parametrize(
    ("data", "configurations", "edges", "asked"),
    [
        ({}, {}, [], "normal"),
        ({}, {}, [edge("Interested"), edge("Not interested")], "normal"),
        # A word or a number is asked for.
        ({}, {}, [edge("Yes"), edge("No!")], "quick"),
        ({}, {}, [edge("Sí"), edge("2")], "quick"),
        ({}, {}, [edge("Press 1"), edge("Press 2")], "quick"),
        ({}, {}, [edge("Red", 'They say "red".'), edge("Blue", 'They say "blue" or "azure".')], "quick"),
        ({}, {}, [edge("Yes"), edge("Another day", 'They say "another day".')], "normal"),
        (extracting(("people", "number", "")), {}, [edge("Counted")], "quick"),
        (extracting(("people", "number", ""), ("name", "string", "")), {}, [edge("Yes")], "normal"),
        # Settings go first: the node's, then the workflow's.
        ({}, {"end_of_speech": "patient"}, [edge("Yes")], "patient"),
        ({"end_of_speech": "normal"}, {"end_of_speech": "patient"}, [edge("Yes")], "normal"),
        ({"end_of_speech": 2}, {"end_of_speech": 0.4}, [], 2.0),
        ({"end_of_speech": ""}, {"end_of_speech": 0.4}, [], 0.4),
        ({"end_of_speech": 0.3}, {"end_of_speech": 11}, [], "normal"),
        ({"end_of_speech": "slow"}, {"end_of_speech": True}, [], "normal"),
    ],
)
def test_the_pause_that_ends_speech(data: Any, configurations: Any, edges: list[Edge], asked: Any) -> None:
    assert end_of_speech(node(**data), edges, configurations) == asked
