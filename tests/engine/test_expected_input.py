"""Hints for the speech recogniser, and when keys are complete."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapi.engine.expected_input import LONGEST_HINT, MOST_HINTS, keys_expected, speech_hints
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
