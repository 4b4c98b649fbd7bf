"""Frozen dataclasses as plain JSON data, and back."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class Family:
    """The base of dataclasses that are told apart by their class's name, such as all events."""

    def to_json(self) -> dict[str, Any]:
        """Return the member as JSON data, its class's name under ``kind``."""
        return {"kind": type(self).__name__, **encode(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the member that `to_json` wrote; raise ValueError with a sentence for anything else."""
        kind = data.get("kind") if isinstance(data, Mapping) else None
        family: Any = cls
        members = _members(family)
        if not isinstance(kind, str) or kind not in members:
            raise ValueError(f"{kind!r} is not a kind of {cls.__name__}.")
        member: type[Self] = members[kind]
        return decode(member, data)


@cache
def _members(family: Any) -> dict[str, Any]:
    """The classes of a family by their names, itself the last one."""
    found = {name: each for child in family.__subclasses__() for name, each in _members(child).items()}
    return {**found, family.__name__: family}


_PLAIN = frozenset({str, int, float, bool, NoneType})


def encode(value: Any) -> Any:
    """Return `value` with its dataclasses as objects and its tuples as lists."""
    if type(value) in _PLAIN:  # almost all there is: asked first
        return value
    kind: Any = type(value)
    names = _names(kind)
    if names is not None:
        return {name: encode(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    return value


def decode(kind: type[T], data: Any) -> T:
    """Return the dataclass that `encode` wrote. Absent members take their default, unknown ones are passed over.

    ValueError, with a sentence that names the place, for data of another shape.
    """
    decoded: T = _read(kind, data, kind.__name__)
    return decoded


@cache
def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass; None for any other."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


@cache
def _shape(kind: type) -> list[tuple[Field[Any], Any]]:
    hints = get_type_hints(kind)
    return [(field, hints[field.name]) for field in fields(kind)]


@cache
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(kind), get_args(kind)


def _read(kind: Any, data: Any, place: str) -> Any:
    if kind is Any:
        return data
    origin, arguments = _parts(kind)
    if origin in (UnionType, Union):
        other = next(each for each in arguments if each is not NoneType)
        return None if data is None else _read(other, data, place)
    if is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, _expect(Mapping, data, place), place)
    if origin is tuple:
        items = enumerate(_expect(list, data, place))
        return tuple(_read(arguments[0], item, f"{place}.{index}") for index, item in items)
    if origin is Mapping and arguments[1] is Any:
        return _expect(Mapping, data, place)
    if origin is Mapping:
        return {key: _read(arguments[1], item, f"{place}.{key}") for key, item in _expect(Mapping, data, place).items()}
    if origin is Literal:
        if data not in arguments:
            raise ValueError(f"{place} must be one of {', '.join(arguments)}.")
        return data
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    return _expect(kind, data, place)


def _record(kind: type, data: Mapping[str, Any], place: str) -> Any:
    values = {}
    for field, hint in _shape(kind):
        if field.name in data:
            values[field.name] = _read(hint, data[field.name], f"{place}.{field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{place} needs {field.name}.")
    return kind(**values)


def _expect(kind: type, data: Any, place: str) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise ValueError(f"{place} must be of type {kind.__name__}.")
    return data
