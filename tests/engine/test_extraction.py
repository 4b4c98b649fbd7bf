from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapi.engine.extraction import RESERVED, Variable, convert, merge_values, variables_of
from voiceapi.engine.graph import Node
from voiceapi.engine.template import as_boolean, as_integer, as_number


@pytest.mark.parametrize(
    ("type", "value", "expected"),
    [
        ("number", 5, 5),
        ("number", 2.5, 2.5),
        ("number", " 42 ", 42),
        ("number", "-3.5", -3.5),
        ("number", "1,200", 1200),
        ("number", "1,200,000.5", 1200000.5),
        ("number", "1,2", None),
        ("number", "five", None),
        ("number", True, None),
        ("number", "1e999", None),
        ("number", "9" * 5000, None),
        ("number", 10**400, None),
        ("number", float("nan"), None),
        ("boolean", True, True),
        ("boolean", "Yes", True),
        ("boolean", " off ", False),
        ("boolean", 0, False),
        ("boolean", 2, None),
        ("boolean", "maybe", None),
        ("boolean", [], None),
        ("string", "a", "a"),
        ("string", "", ""),
        ("string", 5, "5"),
        ("string", False, "false"),
        ("string", {"é": [1]}, '{"é": [1]}'),
    ],
)
def test_typing(type: Any, value: Any, expected: Any) -> None:
    values, notes = convert((Variable("v", type),), {"v": value})
    assert values == ({} if expected is None else {"v": expected})
    assert isinstance(values.get("v"), expected.__class__)
    assert len(notes) == (expected is None)


def test_what_could_not_be_typed_is_noted() -> None:
    variables = (Variable("a", "number"), Variable("b", "boolean"), Variable("c", "string"), Variable("d", "number"))
    values, notes = convert(variables, {"a": "five", "b": None, "d": 1, "extra": 2})
    assert values == {"d": 1}
    assert notes == ['a should be a number, but "five" was found.']


@given(st.sampled_from(["number", "boolean", "string"]), st.floats() | st.text() | st.lists(st.integers()))
def test_any_value_is_typed_or_noted(type: Any, value: Any) -> None:
    values, notes = convert((Variable("v", type),), {"v": value})
    assert len(values) + len(notes) == 1


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"extraction_variables": [{"name": "a", "type": "number"}]}, ()),
        ({"extraction_enabled": True}, ()),
        ({"extraction_enabled": True, "extraction_variables": None}, ()),
        (
            {
                "extraction_enabled": "yes",
                "extraction_variables": [
                    {"name": "a", "type": "number", "prompt": "A"},
                    {"name": "", "type": "string"},
                    {"name": "b", "type": "boolean", "prompt": None},
                    {"name": "c"},
                ],
            },
            (Variable("a", "number", "A"), Variable("b", "boolean", "")),
        ),
    ],
)
def test_the_variables_of_a_node(data: Any, expected: Any) -> None:
    assert variables_of(Node("n", "agentNode", "N", data)) == expected


def test_reserved_names_are_kept_apart() -> None:
    values = dict.fromkeys(RESERVED, "mine")
    context = {"call_id": "CA1", "extracted_variables": {"a": 1}, "a": 1}
    assert merge_values(context, {**values, "a": 2, "call_disposition": "sold"}) == {
        "call_id": "CA1",
        "a": 2,
        "call_disposition": "sold",
        "extracted_variables": {**values, "a": 2, "call_disposition": "sold"},
    }


@pytest.mark.parametrize(
    ("value", "boolean", "number", "integer"),
    [
        (True, True, None, None),
        (1, True, 1, 1),
        (0.0, False, 0.0, 0),
        (2, None, 2, 2),
        ("T", True, None, None),
        ("n", False, None, None),
        (" yes", None, None, None),
        ("1", True, 1, 1),
        (" 15 ", None, 15, 15),
        ("15.0", None, 15.0, 15),
        ("1.5", None, 1.5, None),
        ("+.5e1", None, 5.0, 5),
        ("1_0", None, None, None),
        ("\u0661", None, None, None),
        ("nan", None, None, None),
        ("", None, None, None),
        (None, None, None, None),
        ([], None, None, None),
    ],
)
def test_lenient_values(value: Any, boolean: Any, number: Any, integer: Any) -> None:
    assert (as_boolean(value), as_number(value), as_integer(value)) == (boolean, number, integer)


def test_a_text_that_is_too_large_is_noted() -> None:
    variables = (Variable("a", "string", ""), Variable("b", "string", ""))
    found, notes = convert(variables, {"a": "x" * 65_536, "b": "x" * 65_537})
    assert (list(found), notes) == (["a"], ["b is larger than 64 KiB."])
