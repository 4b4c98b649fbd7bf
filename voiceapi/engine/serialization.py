"""Converts frozen dataclasses to JSON data and back; events, actions and states are stored in this form."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

# Fields that were renamed, "Class.old name": "new name". Data that an earlier release stored has the old names.
RENAMED_FIELDS = {"State.heard": "caller_spoke"}


class Tagged:
    """The base of dataclasses whose JSON data carries the name of their class under ``kind``, such as all events."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON data, and the name of the class under ``kind``."""
        return {"kind": type(self).__name__, **encode(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the object that `to_json` wrote, of this class or a subclass.

        :raises ValueError: with a sentence, for data of another shape.
        """
        kind = data.get("kind") if isinstance(data, Mapping) else None
        base: Any = cls
        classes = _classes(base)
        if not isinstance(kind, str) or kind not in classes:
            raise ValueError(f"{kind!r} is not a kind of {cls.__name__}.")
        found: type[Self] = classes[kind]
        return decode(found, data)


@cache
def _classes(base: Any) -> dict[str, Any]:
    """A class and all below it, by name."""
    found = {name: each for child in base.__subclasses__() for name, each in _classes(child).items()}
    return {**found, base.__name__: base}


_SCALARS = frozenset({str, int, float, bool, NoneType})


def encode(value: Any) -> Any:
    """Return `value` with its dataclasses as objects and its tuples as lists; a dict that needs neither is shared."""
    if type(value) in _SCALARS:  # first, because most values are
        return value
    kind: Any = type(value)
    if kind is dict and _SCALARS.issuperset(map(type, value.values())):  # such as the messages of a long history
        return value
    names = _names(kind)
    if names is not None:
        return {name: encode(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    return value


def decode(kind: type[T], data: Any) -> T:
    """Return the dataclass that `encode` wrote. Absent members get their default, unknown ones are ignored.

    :raises ValueError: with a sentence that names the place, for data of another shape.
    """
    decoded: T = _decode(kind, data, kind.__name__)
    return decoded


def with_current_names(kind: type, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the stored members of a dataclass, those that were renamed since under their new names."""
    renamed = _renamed(kind)
    return {renamed.get(name, name): value for name, value in data.items()} if renamed else data


@cache
def _renamed(kind: type) -> dict[str, str]:
    places = ((*old.split("."), new) for old, new in RENAMED_FIELDS.items())
    return {name: new for owner, name, new in places if owner == kind.__name__}


@cache
def _names(kind: type) -> tuple[str, ...] | None:
    """The names of a dataclass's fields; None for any other class."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


@cache
def _fields(kind: type) -> list[tuple[Field[Any], Any]]:
    hints = get_type_hints(kind)
    return [(field, hints[field.name]) for field in fields(kind)]


@cache
def _origin(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(kind), get_args(kind)


def _decode(kind: Any, data: Any, place: str) -> Any:
    if kind is Any:
        return data
    origin, arguments = _origin(kind)
    if origin in (UnionType, Union):
        others = [each for each in arguments if each is not NoneType]
        # Of several types, text is of the last.
        return None if data is None else _decode(others[-1 if isinstance(data, str) else 0], data, place)
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind, _expect(Mapping, data, place), place)
    if origin is tuple:
        if arguments[0] == Mapping[str, Any] and type(data) is list and all(type(item) is dict for item in data):
            return tuple(data)  # such as a long history, whose messages need no look at each
        items = enumerate(_expect(list, data, place))
        return tuple(_decode(arguments[0], item, f"{place}.{index}") for index, item in items)
    if origin is Mapping and arguments[1] is Any:
        return _expect(Mapping, data, place)
    if origin is Mapping:
        return {
            key: _decode(arguments[1], item, f"{place}.{key}") for key, item in _expect(Mapping, data, place).items()
        }
    if origin is Literal:
        if data not in arguments:
            raise ValueError(f"{place} must be one of {', '.join(arguments)}.")
        return data
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    return _expect(kind, data, place)


def _dataclass(kind: type, data: Mapping[str, Any], place: str) -> Any:
    data, values = with_current_names(kind, data), {}
    for field, hint in _fields(kind):
        if field.name in data:
            values[field.name] = _decode(hint, data[field.name], f"{place}.{field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{place} needs {field.name}.")
    return kind(**values)


def _expect(kind: type, data: Any, place: str) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise ValueError(f"{place} must be of type {kind.__name__}.")
    return data
