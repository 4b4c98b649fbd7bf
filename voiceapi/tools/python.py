"""Functions of the host's app as tools: a JSON schema from their type hints, and checked arguments."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import date
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ..engine.actions import Function, RunTool
from ..engine.events import ToolReturned
from ..engine.template import MIB, as_boolean
from ..strict_json import decode, encode, storable
from .tool import RunnableTool, ToolContext, ToolError

CATEGORY, PREFIX = "python", "python:"
HINTS = "str, int, float, bool, date, Literal, Optional and list of these"
# What a parameter is for a person, by its JSON type.
KINDS = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}


class UnknownHint(TypeError):
    """A function can't be a tool as it is written; the text says why."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One that the model fills in.

    :param schema: of its values; those of a list have theirs in `items`.
    :param is_optional: it may be left out, or null: then the function's default counts, or None.
    """

    name: str
    schema: Mapping[str, Any]
    is_optional: bool


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A function of the host's app that agents may call.

    :param takes_run: the name of the parameter that gets the conversation, if there is one.
    :param timeout: seconds after which its result is dropped.
    :param organizations: the names of those that may use it; None is all.
    """

    call: Callable[..., Any]
    name: str
    description: str
    parameters: tuple[Parameter, ...]
    takes_run: str | None = None
    timeout: float = 10.0
    organizations: frozenset[str] | None = None

    @classmethod
    def of(
        cls,
        call: Callable[..., Any],
        run: type,
        *,
        name: str | None = None,
        timeout: float = 10.0,
        organizations: Collection[str] | None = None,
    ) -> HostFunction:
        """The tool that a function makes by its name, its docstring and its type hints.

        :param run: the type of the parameter that gets the conversation.
        :raises UnknownHint: for a parameter without a hint or with another one than HINTS, and one that can't be given
            by name.
        :raises TypeError: for what `require_function` refuses.
        :raises ValueError: for a name that isn't one of a function, or a time-out that isn't between 0 and 60 seconds.
        """
        require_function(call)
        if isinstance(organizations, str):
            raise TypeError("organizations is a list of names.")
        name = call.__name__ if name is None else name
        if not name.isidentifier() or not name.isascii() or len(name) > 64:
            raise ValueError(f"{name!r} isn't the name of a tool: ASCII letters, digits and _, at most 64.")
        if not 0 < timeout <= 60:
            raise ValueError(f"The timeout of {name} must be more than 0 and at most 60 seconds, not {timeout}.")
        parameters, takes_run = [], None
        for each in inspect.signature(call).parameters.values():
            place = f"The parameter {each.name!r} of {name}"
            if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
                raise UnknownHint(f"{place} can't be given by name.")
            if each.annotation is each.empty:
                raise UnknownHint(f"{place} has no type hint; it may have {HINTS}.")
            hint = _evaluated(each.annotation, call, {"Run": run}, place)
            if hint is run:
                takes_run = each.name
                continue
            schema, may_be_null = _schema(hint, place)
            parameters.append(Parameter(each.name, schema, may_be_null or each.default is not each.empty))
        description = inspect.getdoc(call) or name.replace("_", " ")
        allowed = None if organizations is None else frozenset(organizations)
        return cls(call, name, description, tuple(parameters), takes_run, timeout, allowed)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments that the model is asked for."""
        return {
            "type": "object",
            "properties": {each.name: dict(each.schema) for each in self.parameters},
            "required": [each.name for each in self.parameters if not each.is_optional],
        }

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, each of the type of its hint; a text is read as that type. Unknown ones are dropped.

        :raises ToolError: when one is missing or of another type.
        """
        found = {}
        for each in self.parameters:
            if arguments.get(each.name) is not None:
                found[each.name] = _value(each.schema, arguments[each.name], f"The parameter '{each.name}'")
            elif not each.is_optional:
                raise ToolError(f"The parameter '{each.name}' is required.")
            elif inspect.signature(self.call).parameters[each.name].default is inspect.Parameter.empty:
                found[each.name] = None
        return found


def require_function(call: Any) -> None:
    """:raises TypeError: for what returns a coroutine or a generator, which nothing would run, or isn't a function."""
    if not callable(call) or not hasattr(call, "__qualname__"):
        raise TypeError(f"{call!r} isn't a function.")
    if inspect.iscoroutinefunction(call) or inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise TypeError(f"{call.__qualname__} must be a plain function: nothing runs a coroutine or a generator.")


# What the hints of a function may name although its module has it for the type checker only.
_NAMES: Mapping[str, Any] = {
    "date": date,
    **{name: getattr(typing, name) for name in ("Annotated", "List", "Literal", "Optional", "Union")},
}


def _evaluated(hint: Any, call: Callable[..., Any], names: Mapping[str, Any], place: str) -> Any:
    """The type that a hint is, which may be text: `from __future__ import annotations` makes texts of all.

    :param names: those besides `_NAMES` that the function's module need not have.
    """
    known = {**_NAMES, **names, **getattr(inspect.unwrap(call), "__globals__", {})}
    try:
        # Of this parameter alone: what the function returns may be a name that only the type checker has.
        found = typing.get_type_hints(types.SimpleNamespace(__annotations__={"it": hint}), known, include_extras=True)
    except NameError as error:
        raise UnknownHint(
            f"{place} has the hint {hint!r}, and {error.name!r} isn't defined in its module when the app runs. Define "
            "or import it at the top, not under `if TYPE_CHECKING:`."
        ) from None
    except (AttributeError, SyntaxError, TypeError) as error:
        raise UnknownHint(f"{place} has the hint {hint!r}, which can't be read: {error}") from None
    return found["it"]


def _schema(hint: Any, place: str) -> tuple[dict[str, Any], bool]:
    """The schema of a hint, and whether None is one of its values."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        schema, may_be_null = _schema(inner, place)
        texts = [note for note in notes if isinstance(note, str)]
        return {**schema, **({"description": texts[0]} if texts else {})}, may_be_null
    if get_origin(hint) in (Union, types.UnionType):
        others = [each for each in get_args(hint) if each is not type(None)]
        if len(others) == 1 and len(get_args(hint)) == 2:
            return _schema(others[0], place)[0], True
    elif get_origin(hint) is Literal and (values := get_args(hint)):
        kinds = {type(value) for value in values}
        if len(kinds) == 1 and kinds <= {str, int}:
            return {"type": "string" if kinds == {str} else "integer", "enum": list(values)}, False
    elif get_origin(hint) is list and get_args(hint):
        schema, may_be_null = _schema(get_args(hint)[0], place)
        if not may_be_null and "items" not in schema:
            return {"type": "array", "items": schema}, False
    elif isinstance(hint, type) and hint in _SIMPLE:
        return dict(_SIMPLE[hint]), False
    raise UnknownHint(f"{place} has the hint {hint!r}; it may have {HINTS}.")


_SIMPLE: Mapping[type, Mapping[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    date: {"type": "string", "format": "date"},
}


def _value(schema: Mapping[str, Any], value: Any, place: str) -> Any:
    """A value of the schema's type; a text is read as one."""
    if schema["type"] == "array":
        if not isinstance(value, list):
            raise ToolError(f"{place} must be a list.")
        return [_value(schema["items"], each, f"{place}, item {number},") for number, each in enumerate(value, 1)]
    try:
        found = _READERS[schema.get("format") or schema["type"]](value)
    except (ValueError, KeyError, TypeError, OverflowError):
        kind = "a date such as 2026-01-31" if "format" in schema else KINDS[schema["type"]]
        raise ToolError(f"{place} must be {kind}, not {str(value)[:100]!r}.") from None
    if "enum" in schema and found not in schema["enum"]:
        allowed = ", ".join(map(str, schema["enum"]))
        raise ToolError(f"{place} must be one of {allowed}, not {str(value)[:100]!r}.")
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    number = float(value)
    if number - number != 0:  # infinite, or not a number
        raise ValueError
    return number


def _whole(value: Any) -> int:
    if isinstance(value, str):
        return int(value)
    if isinstance(value, bool) or value != int(value):
        raise ValueError
    return int(value)


def _flag(value: Any) -> bool:
    found = value if isinstance(value, bool) else as_boolean(_text(value).strip())
    if found is None:
        raise ValueError
    return found


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "string": _text,
    "integer": _whole,
    "number": _number,
    "boolean": _flag,
    "date": lambda value: date.fromisoformat(_text(value).strip()),
}


def as_json(value: Any) -> Any:
    """What a function returns as JSON values, as the database takes them: of a dataclass its fields, of dates text.

    :raises TypeError: when it holds anything else.
    """
    text = encode(_plain(value)).decode()
    if len(text) > MIB:
        raise ToolError("The tool returned more than 1 MiB.")
    return storable(decode(text))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value


class PythonTool(RunnableTool):
    """A function of the host's app."""

    is_local = False

    def function(self) -> Function:
        """The function that the model is offered."""
        parameters = self.config.get("parameters", {"type": "object", "properties": {}})
        return Function(self.function_name, self.purpose, parameters, tool_uuid=self.uuid)

    def run(self, request: RunTool, context: ToolContext) -> ToolReturned:
        if context.call_host is None:
            raise ToolError("There is no app with functions here.")
        result = context.call_host(self.uuid.removeprefix(PREFIX), request.arguments)
        return ToolReturned(request.at, request.number, result)
