"""Reads files of conversation cases, in YAML or JSON, strictly: each error names its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import prod
from typing import Any, cast

from ..errors import FieldError, InvalidFields
from ..timestamps import read_time
from .cases import (
    BEGINNING,
    DIRECTIONS,
    MODELS,
    TRANSFER_OUTCOMES,
    Case,
    CaseFetch,
    CaseTurn,
    ExpectedOutcome,
    ModelKind,
    OwedWebhook,
    PlayedCall,
    PlayedDecision,
    ToolAnswer,
)

# Of one file, and of one case.
MOST_CASES, MOST_TURNS, MOST_ERRORS = 1000, 200, 20
# Of a regular expression: compiling (?:a{3000}){3000} takes seconds and gigabytes.
LONGEST_PATTERN, MOST_REPEATS = 1000, 50_000
# What is after an even number of backslashes isn't escaped.
_RECURSION = re.compile(r"(?<!\\)(?:\\\\)*\(\?(?:R|[-+]?[0-9]|&|P[>&])")
ENDING = ".cases.yaml"
ENDINGS = (ENDING, ".cases.yml", ".cases.json")

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class CaseFile:
    """What a file of cases holds.

    :param workflow: the file of the workflow, as it is written there; None for the file of the same name.
    :param tools: the tools that the definition attaches, as the API takes them, not checked yet.
    """

    cases: tuple[Case, ...]
    workflow: str | None = None
    tools: tuple[Mapping[str, Any], ...] = ()


def read_file(text: str) -> CaseFile:
    """The cases in the text of a file.

    :raises InvalidFields: with the places of what is wrong.
    """
    return _whole_file(_data(text))


def contents(text: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The cases in the text of a file as data, each with what the file says for all of them; and the tools that it has.

    :raises InvalidFields: with the places of what is wrong.
    """
    data = _data(text)
    file = _whole_file(data)
    shared = {name: data[name] for name in _SHARED if data.get(name) is not None}
    found = []
    for case in data["cases"]:
        own = {name: value for name, value in case.items() if value is not None}
        context = {**shared.get("context", {}), **own.get("context", {})}
        found.append({**shared, **own, **({"context": context} if context else {})})
    return found, [dict(tool) for tool in file.tools]


def _data(text: str) -> Any:
    from . import strict_yaml  # its library is left for who reads files

    return strict_yaml.load(text)


def read_case(data: Any, path: Path = ()) -> Case:
    """One case, as a file has it in its list `cases`.

    :param path: where it is in the input; it begins the path of every error.
    :raises InvalidFields: with the places of what is wrong.
    """
    reader = _Reader()
    case = _case(reader, data, path, {})
    reader.finish()
    return case


class _Reader:
    """Collects what is wrong while the parts of a file are read."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def wrong(self, path: Path, message: str, type: str = "value_error") -> None:
        self.errors.append(FieldError(path, message, type))

    def finish(self) -> None:
        if self.errors:
            raise InvalidFields(self.errors[:MOST_ERRORS])

    def members(self, data: Any, path: Path, known: tuple[str, ...]) -> dict[str, Any]:
        """The members of an object that are there; one that isn't known is an error."""
        if not isinstance(data, dict):
            self.wrong(path, "it must be an object", "dict_type")
            return {}
        for name in data:
            if name not in known:
                self.wrong((*path, name), f"it isn't known; known are {', '.join(known)}", "extra_forbidden")
        return {name: value for name, value in data.items() if name in known and value is not None}

    def text(self, data: Any, path: Path) -> str:
        """A text; a whole number is taken as the text that it is. Of 5.10, only 5.1 would be left."""
        if isinstance(data, str):
            return data
        if isinstance(data, int) and not isinstance(data, bool):
            return str(data)
        advice = "; put it in quotes" if isinstance(data, float | bool) else ""
        self.wrong(path, f"it must be a text{advice}", "string_type")
        return ""

    def texts(self, data: Any, path: Path) -> tuple[str, ...]:
        """A text or a list of them."""
        return tuple(self.text(each, place) for each, place in self.items(data, path))

    def items(self, data: Any, path: Path, most: int = MOST_CASES) -> Iterator[tuple[Any, Path]]:
        """The items of a list with their places; what isn't a list is its only item."""
        if not isinstance(data, list):
            yield data, path
            return
        if len(data) > most:
            self.wrong(path, f"it may have at most {most} items, and has {len(data)}", "too_long")
            return
        for index, each in enumerate(data):
            yield each, (*path, index)

    def object(self, data: Any, path: Path) -> dict[str, Any]:
        if isinstance(data, dict):
            return data
        self.wrong(path, "it must be an object", "dict_type")
        return {}

    def flag(self, data: Any, path: Path) -> bool:
        if not isinstance(data, bool):
            self.wrong(path, "it must be true or false", "bool_type")
        return data is True

    def choice(self, data: Any, path: Path, choices: tuple[str, ...]) -> str:
        if data not in choices:
            self.wrong(path, f"it must be one of {', '.join(choices)}", "enum")
            return choices[0]
        return cast(str, data)

    def patterns(self, data: Any, path: Path) -> tuple[str, ...]:
        import regex  # as few cases need it

        found = []
        for each, place in self.items(data, path):
            pattern = self.text(each, place)
            if len(pattern) > LONGEST_PATTERN or _repeats(pattern) > MOST_REPEATS:
                limits = f"at most {LONGEST_PATTERN} characters, and repeats that come to at most {MOST_REPEATS}"
                self.wrong(place, f"a regular expression may have {limits}")
                continue
            if _RECURSION.search(pattern):
                # Half a second of recursion takes hundreds of megabytes.
                self.wrong(place, "a regular expression may not call itself or a group of itself, as (?R) or (?1)")
                continue
            try:
                found.append(regex.compile(pattern).pattern)
            except (regex.error, RecursionError, OverflowError) as error:
                self.wrong(place, f"it isn't a regular expression: {error}")
        return tuple(found)


def _repeats(pattern: str) -> int:
    """How often what is repeated most stands in a compiled pattern, at most: (?:a{9}){9} has 81 of a."""
    return prod(max(1, int(count)) for count in re.findall(r"\{\s*([0-9]{1,9})", pattern))


# What a file says for all its cases.
_SHARED = ("model", "context", "direction")


def _whole_file(data: Any) -> CaseFile:
    reader = _Reader()
    found = reader.members(data, (), ("workflow", *_SHARED, "tools", "cases"))
    defaults = {
        "model": reader.choice(found.get("model", MODELS[0]), ("model",), MODELS),
        "direction": reader.choice(found.get("direction", DIRECTIONS[0]), ("direction",), DIRECTIONS),
        "context": reader.object(found.get("context", {}), ("context",)),
    }
    if not isinstance(found.get("cases"), list) or not found["cases"]:
        reader.wrong(("cases",), "it must be a list of cases", "missing" if "cases" not in found else "list_type")
    cases = [_case(reader, each, place, defaults) for each, place in reader.items(found.get("cases") or [], ("cases",))]
    seen: set[str] = set()
    for index, case in enumerate(cases):
        if case.name in seen:
            reader.wrong(("cases", index, "name"), f"another case has the name “{case.name}”")
        seen.add(case.name)
    tools = tuple(reader.object(each, place) for each, place in reader.items(found.get("tools") or [], ("tools",)))
    workflow = reader.text(found["workflow"], ("workflow",)) if "workflow" in found else None
    reader.finish()
    return CaseFile(tuple(cases), workflow, tools)


_CASE = ("name", "model", "context", "direction", "at", "fetch", "tools", "opening", "turns", "expect")


def _case(reader: _Reader, data: Any, path: Path, defaults: Mapping[str, Any]) -> Case:
    given = reader.members(data, path, _CASE)
    found = {**defaults, **given}
    name = reader.text(found.get("name", ""), (*path, "name")).strip()
    if not name or len(name) > 200:
        reader.wrong((*path, "name"), "it must be a text of 1 to 200 characters", "missing" if not name else "too_long")
    model = cast(ModelKind, reader.choice(found.get("model", MODELS[0]), (*path, "model"), MODELS))
    opening = (*path, "opening")
    turns = list(reader.items(found.get("turns", []), (*path, "turns"), MOST_TURNS))
    case = Case(
        name,
        tuple(_turn(reader, each, place) for each, place in turns),
        CaseTurn(**_expected(reader, reader.members(found.get("opening", {}), opening, _EXPECTED), opening)),
        model,
        {**defaults.get("context", {}), **reader.object(given.get("context", {}), (*path, "context"))},
        reader.choice(found.get("direction", DIRECTIONS[0]), (*path, "direction"), DIRECTIONS),
        _time(reader, found["at"], (*path, "at")) if "at" in found else BEGINNING,
        _fetched(reader, found["fetch"], (*path, "fetch")) if "fetch" in found else None,
        tuple(
            _tool_answer(reader, each, place) for each, place in reader.items(found.get("tools", []), (*path, "tools"))
        ),
        _outcome(reader, found.get("expect", {}), (*path, "expect")),
    )
    if model != "played":
        places: dict[Path, CaseTurn] = {("opening",): case.opening}
        places |= {("turns", index): turn for index, turn in enumerate(case.turns)}
        for place, turn in places.items():
            if turn.decisions:
                reader.wrong((*path, *place, "model"), "only a case whose model is played has decisions")
    return case


_EXPECTED = ("model", "says", "matches", "never", "node", "edges", "transfers_to", "transfer")
_CALLER = ("caller", "keys", "silence", "hangs_up", "ends")


def _turn(reader: _Reader, data: Any, path: Path) -> CaseTurn:
    found = reader.members(data, path, (*_CALLER, "after", *_EXPECTED))
    expected = _expected(reader, found, path)
    does = [name for name in _CALLER if name in found and found[name] is not False]
    if len(does) != 1:
        reader.wrong(path, f"it needs exactly one of {', '.join(_CALLER)}", "missing" if not does else "value_error")
        return CaseTurn()
    (does_what,) = does
    value, place = found[does_what], (*path, does_what)
    after = found.get("after", 1.0)
    if isinstance(after, bool) or not isinstance(after, int | float) or not 0 <= after <= 86_400:
        reader.wrong((*path, "after"), "it must be a number of seconds from 0 to 86400", "float_type")
        after = 1.0
    expected["after"] = float(after)
    match does_what:
        case "caller":
            return CaseTurn(says=reader.text(value, place), **expected)
        case "keys":
            keys = reader.text(value, place)
            if not re.fullmatch("[0-9*#]{1,64}", keys):
                reader.wrong(place, "it must be 1 to 64 of the keys 0 to 9, * and #")
            return CaseTurn(keys=keys, **expected)
        case "silence":
            return CaseTurn(is_silent=reader.flag(value, place), **expected)
        case "hangs_up":
            reader.flag(value, place)
            return CaseTurn(ends="user_hangup", **expected)
    return CaseTurn(ends=reader.text(value, place), **expected)


def _expected(reader: _Reader, found: Mapping[str, Any], path: Path) -> dict[str, Any]:
    kinds: dict[str, tuple[str, Callable[[Any, Path], Any]]] = {
        "says": ("contains", reader.texts),
        "matches": ("matches", reader.patterns),
        "never": ("never", reader.texts),
        "node": ("node", reader.text),
        "edges": ("edges", reader.texts),
        "transfers_to": ("transfers_to", reader.text),
        "transfer": ("transfer", lambda data, place: reader.choice(data, place, TRANSFER_OUTCOMES)),
        "model": ("decisions", lambda data, place: _decisions(reader, data, place)),
    }
    return {kinds[name][0]: kinds[name][1](value, (*path, name)) for name, value in found.items() if name in kinds}


def _decisions(reader: _Reader, data: Any, path: Path) -> tuple[PlayedDecision, ...]:
    return tuple(_decision(reader, each, place) for each, place in reader.items(data, path, MOST_TURNS))


_CALL = ("edge", "call", "with", "unknown")
# Members of a decision that stand alone.
_ALONE = ("extract", "fails", "call_ends")


def _decision(reader: _Reader, data: Any, path: Path) -> PlayedDecision:
    found = reader.members(data, path, ("say", *_CALL, "calls", *_ALONE))
    if not found:
        reader.wrong(path, "it needs one of say, edge, call, calls, extract, fails, call_ends", "missing")
    if len(found) > 1 and not found.keys().isdisjoint(_ALONE) and found.keys() != {"say", "call_ends"}:
        reader.wrong(path, f"each of {', '.join(_ALONE)} stands alone, but for say with call_ends")
    calls = [_call(reader, each, place) for each, place in reader.items(found.get("calls", []), (*path, "calls"))]
    if any(name in found for name in _CALL):
        calls.insert(0, _call(reader, {name: found[name] for name in _CALL if name in found}, path))
    return PlayedDecision(
        reader.text(found.get("say", ""), (*path, "say")),
        tuple(calls),
        reader.object(found["extract"], (*path, "extract")) if "extract" in found else None,
        reader.text(found["fails"], (*path, "fails")) if "fails" in found else None,
        reader.text(found["call_ends"], (*path, "call_ends")) if "call_ends" in found else None,
    )


def _call(reader: _Reader, data: Any, path: Path) -> PlayedCall:
    found = reader.members(data, path, _CALL)
    if ("edge" in found) == ("call" in found):
        reader.wrong(path, "it needs either edge, the label or id of one, or call, the name of a tool")
    arguments = found.get("with", {})
    return PlayedCall(
        reader.text(found["edge"], (*path, "edge")) if "edge" in found else None,
        reader.text(found["call"], (*path, "call")) if "call" in found else None,
        arguments if isinstance(arguments, str) else reader.object(arguments, (*path, "with")),
        reader.flag(found.get("unknown", False), (*path, "unknown")),
    )


def _tool_answer(reader: _Reader, data: Any, path: Path) -> ToolAnswer:
    found = reader.members(data, path, ("tool", "with", "returns", "fails", "call_ends", "optional"))
    if "tool" not in found:
        reader.wrong((*path, "tool"), "it is the name of a tool", "missing")
    if len(found.keys() & {"returns", "fails", "call_ends"}) > 1:
        reader.wrong(path, "a tool returns, or it fails, or the call ends before it answers")
    return ToolAnswer(
        reader.text(found.get("tool", ""), (*path, "tool")),
        reader.object(found["with"], (*path, "with")) if "with" in found else None,
        found.get("returns"),
        reader.text(found["fails"], (*path, "fails")) if "fails" in found else None,
        reader.text(found["call_ends"], (*path, "call_ends")) if "call_ends" in found else None,
        reader.flag(found.get("optional", False), (*path, "optional")),
    )


def _fetched(reader: _Reader, data: Any, path: Path) -> CaseFetch:
    found = reader.members(data, path, ("returns", "fails"))
    if len(found) != 1:
        reader.wrong(path, "it needs either returns, an object of variables, or fails, an error")
    fails = reader.text(found["fails"], (*path, "fails")) if "fails" in found else None
    return CaseFetch(reader.object(found.get("returns", {}), (*path, "returns")), fails)


def _outcome(reader: _Reader, data: Any, path: Path) -> ExpectedOutcome:
    kinds: dict[str, Callable[[Any, Path], Any]] = {
        "nodes": reader.texts,
        "edges": reader.texts,
        "never": reader.texts,
        "variables": reader.object,
        "disposition": reader.text,
        "tags": reader.texts,
        "webhooks": lambda data, place: tuple(
            _webhook(reader, each, inner) for each, inner in reader.items(data, place)
        ),
    }
    found = reader.members(data, path, tuple(kinds))
    return ExpectedOutcome(**{name: kinds[name](value, (*path, name)) for name, value in found.items()})


def _webhook(reader: _Reader, data: Any, path: Path) -> OwedWebhook:
    if isinstance(data, str):
        return OwedWebhook(data)
    found = reader.members(data, path, ("node", "body"))
    if "node" not in found:
        reader.wrong((*path, "node"), "it is the id or name of a webhook node", "missing")
    return OwedWebhook(
        reader.text(found.get("node", ""), (*path, "node")),
        reader.object(found["body"], (*path, "body")) if "body" in found else None,
    )


def _time(reader: _Reader, data: Any, path: Path) -> datetime:
    try:
        return read_time(reader.text(data, path))
    except (ValueError, OverflowError):
        reader.wrong(path, "it must be a time in ISO 8601, such as 2026-03-02T09:00:00+01:00")
        return BEGINNING
