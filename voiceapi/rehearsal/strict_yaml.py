"""Reads YAML, and JSON, which is a part of it, as version 1.2 of YAML has it: `yes` and `09:00` are texts.

Anchors and tags aren't accepted, and no name may be there twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import yaml

from ..errors import FieldError, InvalidFields
from ..strict_json import DEEPEST, parse, storable

# The type of an error whose path is a line and a column.
INVALID = "yaml_invalid"


def load(text: str) -> Any:
    """The data in a text of YAML or JSON.

    :raises InvalidFields: when it can't be read; the path is the line and the column, from 1.
    """
    if _is_flow(text):
        try:
            # Many times quicker, and two escapes are one emoji. What is wrong is read again, for its place.
            json.loads(text, object_pairs_hook=_without_repeats)
            return storable(parse(text))
        except (ValueError, InvalidFields, RecursionError):
            pass
    try:
        node = _root(text)
        return storable(None if node is None else _Loader("").construct_document(node))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = (mark.line + 1, mark.column + 1) if mark else ()
        problem = ", ".join(filter(None, (error.context, error.problem)))
        raise InvalidFields([FieldError(place, problem, INVALID)]) from None


# Who reads a file then asks for the places in it, and this is what takes the time.
@lru_cache(maxsize=1)
def _root(text: str) -> yaml.Node | None:
    """The nodes of a text."""
    loader = _loader(text)
    try:
        found: yaml.Node | None = loader.get_single_node()
    except (ValueError, OverflowError):
        # Of an escape such as "\U00110000", or the number of a version.
        mark = loader.get_mark()
        raise yaml.MarkedYAMLError(None, None, "a character or a number is out of range", mark) from None
    return found


class Places:
    """Where the parts of a text are that `load` has read."""

    def __init__(self, text: str) -> None:
        self._text = text

    def of(self, path: Iterable[str | int]) -> tuple[int, int]:
        """The line and the column, from 1, of what is at `path`, of a member its name; else of what is nearest."""
        node = _root(self._text)
        place = (1, 1) if node is None else _start(node)
        for part in path:
            if isinstance(node, yaml.MappingNode):
                found = next((pair for pair in node.value if pair[0].value == part), None)
                if found is None:
                    break
                place, node = _start(found[0]), found[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                place = _start(node)
            else:
                break
        return place


def located(text: str, errors: Iterable[FieldError]) -> Iterator[tuple[int, int, FieldError]]:
    """Each error about a text with its line and its column, from 1; one of `load` then has no path."""
    places = Places(text)
    for error in errors:
        if error.type == INVALID:
            line, column = error.path or (1, 1)
            yield int(line), int(column), replace(error, path=())
        else:
            yield *places.of(error.path), error


def _start(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _is_flow(text: str) -> bool:
    return text.lstrip("\ufeff \t\r\n").startswith(("{", "["))


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("A name is there twice.")
    return found


_DIGITS = tuple("-0123456789")
# Unquoted scalars that aren't texts: the type, its pattern, and the characters that it may begin with.
_SCALARS = (
    ("bool", "true|false", ("t", "f")),
    ("int", "-?(?:0|[1-9][0-9]*)", _DIGITS),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", _DIGITS),
    ("null", "null|~|", ("n", "~", "")),
)
_LONGEST_NUMBER = 40


def _loader(text: str) -> _Loader:
    try:
        # JSON may be indented by tabs, which PyYAML refuses everywhere; in JSON's own texts there are none.
        return _Loader(text.replace("\t", " ") if _is_flow(text) else text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - text.rfind("\n", 0, error.position)
        message = f"the character U+{ord(text[error.position]):04X} isn't accepted"
        raise InvalidFields([FieldError((line, column), message, INVALID)]) from None


# By the first character, as Loader.add_implicit_resolver keeps them.
RESOLVERS = {
    first: [
        (f"tag:yaml.org,2002:{type}", re.compile(rf"(?:{pattern})\Z"))
        for type, pattern, firsts in _SCALARS
        if first in firsts
    ]
    for first in ("", *"-0123456789~tfn")
}


class _Loader(yaml.SafeLoader):
    """YAML with the scalars of its version 1.2, without anchors and tags; of a name that is there twice it says so."""

    yaml_implicit_resolvers = RESOLVERS

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) is not None:
            raise _refused("anchors and aliases aren't accepted", event)
        if getattr(event, "tag", None) is not None:
            raise _refused("tags aren't accepted", event)
        if self.depth >= DEEPEST and isinstance(event, yaml.CollectionStartEvent):
            raise _refused(f"lists and objects may be nested at most {DEEPEST} deep", event)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                raise _refused("the name of a member must be text; put it in quotes", key)
            if key.value in names:
                raise _refused(f"“{key.value}” is there twice", key)
            names.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: Any) -> int:
        value = int(node.value) if len(node.value) <= _LONGEST_NUMBER else 2**63
        if not -(2**63) <= value < 2**63:
            raise _refused("a whole number may have at most 64 bits; put it in quotes", node)
        return value

    def construct_yaml_float(self, node: Any) -> float:
        value = float(node.value)
        if value in (float("inf"), float("-inf")):
            raise _refused("the number is too large", node)
        return value

    yaml_constructors = {
        **yaml.SafeLoader.yaml_constructors,
        "tag:yaml.org,2002:int": construct_yaml_int,
        "tag:yaml.org,2002:float": construct_yaml_float,
    }


def _refused(problem: str, found: Any) -> yaml.MarkedYAMLError:
    """The error about a node or an event."""
    return yaml.MarkedYAMLError(None, None, problem, found.start_mark)
