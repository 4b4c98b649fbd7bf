"""Rules on single nodes and edges: their members, the types and the limits of these."""

from collections.abc import Callable, Container, Iterator, Mapping
from math import inf
from typing import Any, Literal

from ..graph import PROMPTED
from ..values import as_boolean, as_integer, as_number
from .field_types import EDGE_FIELDS, IGNORE, Catalogue, Field
from .finding import Finding
from .outline import Outline

# Path of a member inside its node or edge, and the message.
Error = tuple[str, str]
Kind = Literal["node", "edge"]

_NOT_A_NODE = "which is not a node of the workflow."
_LISTS: Mapping[str, Kind] = {"nodes": "node", "edges": "edge"}

# For each kind of value: its description in messages, and its test.
_VALUES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "any": ("anything", lambda _: True),
    "text": ("text", lambda value: isinstance(value, str)),
    "filled": ("text that is not empty", lambda value: isinstance(value, str) and value != ""),
    "boolean": ("true or false", lambda value: as_boolean(value) is not None),
    "number": ("a number", lambda value: isinstance(value, bool) or as_number(value) is not None),
    "integer": ("a whole number", lambda value: isinstance(value, bool) or as_integer(value) is not None),
    "texts": ("a list of texts", lambda value: isinstance(value, list)),
    "records": ("a list of objects", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, dict)),
    "lists": ("an object of lists", lambda value: isinstance(value, dict)),
}

_POSITION_FIELDS = tuple(Field(name, "number", nullable=False, required=True) for name in ("x", "y"))
_EDGE_FIELDS = tuple(
    Field(name, "filled", nullable=False, required=True)
    if name in ("label", "condition")
    else Field(name, "texts" if name == IGNORE else "text")
    for name in EDGE_FIELDS
)


def schema_findings(outline: Outline, catalogue: Catalogue) -> list[Finding]:
    """Return the errors of any JSON value that should be a workflow definition: nodes first, then edges."""
    definition = outline.definition
    if not isinstance(definition, Mapping):
        return [
            Finding(
                "workflow", None, None, "A workflow definition must be an object with nodes and edges.", "malformed"
            )
        ]
    ends = outline.by_id if isinstance(definition.get("nodes"), list) else None
    found = []
    for key, kind in _LISTS.items():
        items = definition.get(key)
        if not isinstance(items, list):
            found.append(Finding("workflow", None, key, f'The workflow needs a list "{key}".', "malformed"))
            continue
        for index, item in enumerate(items):
            if not isinstance(item, dict):
                found.append(
                    Finding("workflow", None, f"{key}.{index}", f"Each of the {key} must be an object.", "malformed")
                )
                continue
            errors = list(_node(item, catalogue) if kind == "node" else _edge(item, ends))
            if errors or not isinstance(item.get("id"), str):
                found += _findings(kind, f"{key}.{index}", item.get("id"), errors)
    return found


def _findings(kind: Kind, place: str, id: object, errors: list[Error]) -> Iterator[Finding]:
    """Turn the errors of one node or edge into findings; without a readable id they name its place in the list."""
    if isinstance(id, str):
        yield from (Finding(kind, id, field, message, _code(message)) for field, message in errors)
        return
    if isinstance(id, int | float) and not isinstance(id, bool):
        yield Finding(kind, str(id), "id", f"The id of this {kind} must be text.", "malformed")
        yield from (Finding(kind, str(id), field, message, _code(message)) for field, message in errors)
        return
    yield Finding("workflow", None, f"{place}.id", f"This {kind} needs an id, which must be text.", "malformed")
    yield from (Finding("workflow", None, f"{place}.{field}", message, _code(message)) for field, message in errors)


def _code(message: str) -> str:
    return "missing-node" if message.endswith(_NOT_A_NODE) else "malformed"


def _node(node: Mapping[str, Any], catalogue: Catalogue) -> Iterator[Error]:
    position = node.get("position")
    if isinstance(position, dict):
        yield from _members(position, _POSITION_FIELDS, "position")
    else:
        yield "position", "This node needs a position, an object with the numbers x and y."
    type = node.get("type")
    data = node.get("data")
    known = isinstance(type, str) and type in catalogue
    if not isinstance(type, str) or not type:
        yield "type", f"This node needs a type, one of {_listed(catalogue)}."
    elif not known:
        yield "type", f'"{type}" is not a type of node; it must be one of {_listed(catalogue)}.'
    if not isinstance(data, dict):
        yield "data", "This node needs data, an object."
    elif known:
        yield from _data(str(type), data, catalogue)


def _data(type: str, data: Mapping[str, Any], catalogue: Catalogue) -> Iterator[Error]:
    spec = catalogue[type]
    errors = list(_members(data, spec.fields, "data"))
    yield from errors
    if errors:
        return
    if type in PROMPTED and not str(data.get("prompt") or "").strip():
        yield "data.prompt", "This node needs a prompt."
    if spec.switch and as_boolean(data.get(spec.switch, True)):
        for name, default in spec.needed.items():
            value = data.get(name, default)
            if value is None or not str(value).strip():
                yield f"data.{name}", f"This node is enabled and needs {name}."


def _edge(edge: Mapping[str, Any], nodes: Container[str] | None) -> Iterator[Error]:
    for end in ("source", "target"):
        node = edge.get(end)
        if not isinstance(node, str):
            yield end, f"This edge needs a {end}, the id of a node."
        elif nodes is not None and node not in nodes:
            yield end, f'The {end} of this edge is "{node}", {_NOT_A_NODE}'
    data = edge.get("data")
    if not isinstance(data, dict):
        yield "data", "This edge needs data, an object with a label and a condition."
    else:
        yield from _members(data, _EDGE_FIELDS, "data")


def _members(record: Mapping[str, Any], fields: tuple[Field, ...], place: str) -> Iterator[Error]:
    for field in fields:
        if field.name not in record:
            if field.required:
                yield f"{place}.{field.name}", f"{field.name} is missing; it must be {_described(field)}."
            continue
        value = record[field.name]
        if value is None and field.nullable:
            continue
        if not _VALUES[field.kind][1](value) or (field.options and value not in field.options):
            yield f"{place}.{field.name}", f"{field.name} must be {_described(field)}."
        elif field.kind in _INSIDE:
            yield from _INSIDE[field.kind](value, field, f"{place}.{field.name}")


def _limits(value: Any, field: Field, path: str) -> Iterator[Error]:
    if field.minimum is None and field.maximum is None:
        return
    number = float(as_number(value) or 0)
    low = -inf if field.minimum is None else field.minimum
    if not low <= number <= (inf if field.maximum is None else field.maximum):
        yield path, f"{field.name} must be {_described(field)}."


def _texts(value: list[Any], field: Field, path: str) -> Iterator[Error]:
    for index, item in enumerate(value):
        if not isinstance(item, str):
            yield f"{path}.{index}", f"Each of {field.name} must be text."


def _lists(value: dict[str, Any], field: Field, path: str) -> Iterator[Error]:
    for key, item in value.items():
        if not isinstance(item, list):
            yield f"{path}.{key}", f"Each of {field.name} must be a list."


def _records(value: list[Any], field: Field, path: str) -> Iterator[Error]:
    for index, item in enumerate(value):
        if isinstance(item, dict):
            yield from _members(item, field.members, f"{path}.{index}")
        else:
            yield f"{path}.{index}", f"Each of {field.name} must be an object."


# For each kind of value that has something inside it, or limits: the errors of a value that is of the kind.
_INSIDE: Mapping[str, Callable[[Any, Field, str], Iterator[Error]]] = {
    "number": _limits,
    "integer": _limits,
    "texts": _texts,
    "lists": _lists,
    "records": _records,
}


def _described(field: Field) -> str:
    description = f"one of {_listed(field.options)}" if field.options else _VALUES[field.kind][0]
    limits = [
        f"{word} {limit:g}"
        for word, limit in (("at least", field.minimum), ("at most", field.maximum))
        if limit is not None
    ]
    return ", ".join((description, *limits))


def _listed(names: Mapping[str, Any] | tuple[str, ...]) -> str:
    return ", ".join(names)
