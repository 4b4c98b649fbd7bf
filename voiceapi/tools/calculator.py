"""calculator: arithmetic for a model, in bounds that no expression can escape."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..engine.actions import Function, RunTool
from ..engine.events import ToolReturned
from ..engine.validation.graph_rules import CALCULATOR
from .parameters import schema
from .tool import Tool, ToolContext, ToolFault

PURPOSE = "Calculate an expression of numbers, + - * / % ** and parentheses."
LONGEST = 200
# Of every number on the way, so that no step can take long.
LARGEST = 1e30
DIGITS = 12

# Nothing else reaches Python's parser, which would warn of odd spellings.
ARITHMETIC = re.compile(r"[0-9eE_.+\-*/%()\s]*")

BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


def offer(tool: Tool) -> Function:
    """What the model is offered, the same for every calculator."""
    asked = {"name": "expression", "type": "string", "description": "such as (3 + 4) * 2.5", "required": True}
    return Function(CALCULATOR, tool.description or PURPOSE, schema([asked]), tool_uuid=tool.uuid)


def run(_tool: Tool, request: RunTool, _desk: ToolContext) -> ToolReturned:
    """Tell the model the result, or why there is none."""
    expression = request.arguments.get("expression")
    try:
        if not isinstance(expression, str):
            raise ToolFault("The parameter 'expression' is required, as text.")
        result: dict[str, Any] = {"expression": expression, "result": calculate(expression)}
    except ToolFault as fault:
        result = {"error": str(fault)}
    return ToolReturned(request.at, request.number, result)


def calculate(expression: str) -> int | float:
    """The value of an expression of at most 200 characters; fractions are rounded to 12 digits.

    :raises ToolFault: with a sentence, for anything else than arithmetic, and for numbers beyond 1e30.
    """
    if len(expression) > LONGEST:
        raise ToolFault(f"The expression may have at most {LONGEST} characters.")
    try:
        if not ARITHMETIC.fullmatch(expression):
            raise ValueError
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except ZeroDivisionError:
        raise ToolFault("Nothing can be divided by zero.") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolFault("This is not an expression of numbers, + - * / % ** and parentheses.") from None
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _value(node: ast.expr) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in UNARY:
            return _bounded(UNARY[type(op)](_value(operand)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
            return _applied(type(op), _value(left), _value(right))
    raise ValueError


def _applied(op: type[ast.operator], left: int | float, right: int | float) -> int | float:
    # Its size is known before it is worked out.
    if op is ast.Pow and left and right * math.log10(abs(left)) > math.log10(LARGEST):
        raise ToolFault("The result is too large.")
    if op is ast.Pow and left < 0 and right != int(right):
        raise ToolFault("A negative number has no such root.")
    return _bounded(BINARY[op](left, right))


def _bounded(number: int | float) -> int | float:
    if not abs(number) <= LARGEST:
        raise ToolFault("The result is too large.")
    return number
