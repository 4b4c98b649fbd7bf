"""The built-in tools: calculator works out an arithmetic expression within limits, end_call ends the call."""

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
from .tool import RunnableTool, ToolContext, ToolError, schema, spoken

PURPOSE = "Calculate an expression of numbers, + - * / % ** and parentheses."
MAX_LENGTH = 200
# Of every intermediate result, so that no step can take long.
MAX_NUMBER = 1e30
DIGITS = 12

# Other characters never reach Python's parser, which emits warnings for some spellings.
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
DISPOSITION = "end_call_tool"
REASON = "Why the call is ended, in a few words."
MAX_REASON_LENGTH = 255


class Calculator(RunnableTool):
    """Answers with the value of the model's expression, or with the reason why it has none."""

    is_local = True

    def function(self) -> Function:
        """The function that the model is offered; its name and parameter are the same for every calculator."""
        expression = {"name": "expression", "type": "string", "description": "such as (3 + 4) * 2.5", "required": True}
        return Function(CALCULATOR, self.description or PURPOSE, schema([expression]), tool_uuid=self.uuid)

    def run(self, request: RunTool, _context: ToolContext) -> ToolReturned:
        expression = request.arguments.get("expression")
        try:
            if not isinstance(expression, str):
                raise ToolError("The parameter 'expression' is required, as text.")
            result: dict[str, Any] = {"expression": expression, "result": calculate(expression)}
        except ToolError as error:
            result = {"error": str(error)}
        return ToolReturned(request.at, request.number, result)


def calculate(expression: str) -> int | float:
    """The value of an expression of at most 200 characters; fractions are rounded to 12 digits.

    :raises ToolError: with a sentence for the model, when it isn't arithmetic or a number exceeds 1e30.
    """
    if len(expression) > MAX_LENGTH:
        raise ToolError(f"The expression may have at most {MAX_LENGTH} characters.")
    try:
        if not ARITHMETIC.fullmatch(expression):
            raise ValueError
        value = _value(ast.parse(expression.strip(), mode="eval").body)
    except ZeroDivisionError:
        raise ToolError("Nothing can be divided by zero.") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolError("This is not an expression of numbers, + - * / % ** and parentheses.") from None
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
    # Check the size of a power before computing it: the computation itself could take minutes.
    if op is ast.Pow and left and right * math.log10(abs(left)) > math.log10(MAX_NUMBER):
        raise ToolError("The result is too large.")
    if op is ast.Pow and left < 0 and right != int(right):
        raise ToolError("A negative number has no such root.")
    return _bounded(BINARY[op](left, right))


def _bounded(number: int | float) -> int | float:
    if not abs(number) <= MAX_NUMBER:
        raise ToolError("The result is too large.")
    return number


# -- end_call


class EndCall(RunnableTool):
    """Says its message and ends the call. A reason given by the model becomes the call's disposition."""

    is_local = True

    def function(self) -> Function:
        """The function that the model is offered, with a parameter `reason` if the author wants one."""
        description = self.config["endCallReasonDescription"] or REASON
        reason = {"name": "reason", "type": "string", "description": description, "required": True}
        parameters = [reason] if self.config["endCallReason"] else []
        return Function(self.function_name, self.purpose, schema(parameters), tool_uuid=self.uuid)

    def run(self, request: RunTool, _context: ToolContext) -> ToolReturned:
        given = request.arguments.get("reason") if self.config["endCallReason"] else None
        reason = given.strip()[:MAX_REASON_LENGTH] if isinstance(given, str) else ""
        result = {"status": "success", "action": "ending_call"}
        speech = ""
        try:
            if self.config["messageType"] == "custom":
                speech = spoken(self.config["customMessage"], request)
        except ToolError as error:  # the call is to end all the same
            result["error"] = str(error)
        return ToolReturned(request.at, request.number, result, speech=speech, end_reason=reason or DISPOSITION)
