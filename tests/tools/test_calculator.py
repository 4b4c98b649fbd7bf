"""The calculator: values of expressions, and expressions that it refuses."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapi.tools.calculator import MAX_NUMBER, calculate
from voiceapi.tools.tool import ToolError

NOT_ARITHMETIC = "This is not an expression of numbers, + - * / % ** and parentheses."
TOO_LARGE = "The result is too large."


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        (" -7 % 3 ", 2),
        ("10 / 4", 2.5),
        ("0.1 + 0.2", 0.3),
        ("1e3", 1000.0),
        ("2 ** 10", 1024),
        ("2 ** -1", 0.5),
        ("9 ** 0.5", 3.0),
        ("0 ** 5", 0),
        ("--5", 5),
    ],
)
def test_values_of_expressions(expression: str, result: float) -> None:
    found = calculate(expression)
    assert (found, type(found)) == (result, type(result))


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("", NOT_ARITHMETIC),
        ("2 +", NOT_ARITHMETIC),
        ("7 // 2", NOT_ARITHMETIC),
        ("1, 2", NOT_ARITHMETIC),
        ("'a' * 9", NOT_ARITHMETIC),
        ("__import__('os')", NOT_ARITHMETIC),
        ("e", NOT_ARITHMETIC),
        ("e()", NOT_ARITHMETIC),
        ("1e5(2)", NOT_ARITHMETIC),
        ("007", NOT_ARITHMETIC),
        ("(" * 199 + "1", NOT_ARITHMETIC),
        ("1 / 0", "Nothing can be divided by zero."),
        ("5 % 0", "Nothing can be divided by zero."),
        ("0 ** -1", "Nothing can be divided by zero."),
        ("(-8) ** 0.5", "A negative number has no such root."),
        ("9 ** 9 ** 9", TOO_LARGE),
        ("9 ** 9 ** 9 ** 9 ** 9", TOO_LARGE),
        ("(-9) ** 99", TOO_LARGE),
        ("0.001 ** -99", TOO_LARGE),
        ("1e30 * 10", TOO_LARGE),
        ("1e999", TOO_LARGE),
        ("9" * 100, TOO_LARGE),
        ("1" * 201, "The expression may have at most 200 characters."),
    ],
)
def test_expressions_that_are_refused(expression: str, error: str) -> None:
    with pytest.raises(ToolError) as refused:
        calculate(expression)
    assert str(refused.value) == error


@given(st.text("0123456789.+-*/%() eE_", max_size=60))
def test_any_expression_is_worked_out_or_refused(expression: str) -> None:
    with suppress(ToolError):
        assert abs(calculate(expression)) <= MAX_NUMBER
