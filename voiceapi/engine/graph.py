"""A workflow definition as a graph of nodes and edges, and functions that read or change definitions as JSON."""

import re
import unicodedata
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from .template import as_boolean, as_number, is_built_in, placeholders
from .validation.field_types import EDGE_FIELDS, Catalogue

SPEAKING = ("startCall", "agentNode", "endCall")
PROMPTED = (*SPEAKING, "globalNode")

_NOT_IN_SLUG = re.compile("[^a-z0-9]")
# Characters of a function name before its hash; servers take 64 in all.
_LONGEST_READABLE = 48
# Context variables that the service sets itself, so that contacts don't have to supply them.
_SUPPLIED = {"campaign_id", "provider", "source_uuid", "caller_number"}


class GraphError(ValueError):
    """A definition that can't be run; the message names the place."""


@dataclass(frozen=True)
class NodeCall:
    """The tool that a node calls when it is entered, before it speaks.

    :param tool: its uuid.
    :param arguments: JSON values with templates in their texts, by parameter.
    :param save_as: the variable that the result is kept in; empty for none.
    :param on_error: the id of the node that is entered instead when the call fails; empty for none.
    :param function: one of an MCP tool's functions; empty for any other tool.
    """

    tool: str
    arguments: Mapping[str, Any]
    save_as: str = ""
    on_error: str = ""
    function: str = ""


@dataclass(frozen=True)
class Node:
    """A node. `data` is stored as its editor sent it; the methods convert values and ignore malformed ones."""

    id: str
    type: str
    name: str
    data: Mapping[str, Any]

    def text(self, field: str) -> str:
        """Return a text field of the data, or an empty text."""
        value = self.data.get(field)
        return value if isinstance(value, str) else ""

    def flag(self, field: str, default: bool) -> bool:
        """Return a boolean field of the data, or `default`."""
        value = as_boolean(self.data.get(field))
        return default if value is None else value

    def number(self, field: str) -> float | None:
        """Return a number field of the data, or None."""
        return as_number(self.data.get(field))

    @property
    def prompt(self) -> str:
        """The prompt, not rendered."""
        return self.text("prompt")

    @property
    def script(self) -> str:
        """What the scripted model speaks instead of the prompt, not rendered; empty for the prompt."""
        return self.text("scripted_text")

    @property
    def allow_interrupt(self) -> bool:
        """Whether the caller may talk over this node's speech; false unless the data says otherwise."""
        return self.flag("allow_interrupt", False)

    @property
    def ends_call(self) -> bool:
        """Whether the call ends after this node has spoken."""
        return self.type == "endCall"

    @cached_property
    def call(self) -> NodeCall | None:
        """The tool that is called when the node is entered."""
        return call_of({"type": self.type, "data": self.data})


@dataclass(frozen=True)
class Edge:
    """An edge that the language model may follow; `condition` says when."""

    id: str
    source: str
    target: str
    label: str
    condition: str
    transition_speech: str = ""
    transition_speech_type: str = "text"
    transition_speech_recording_id: str = ""

    @property
    def function_name(self) -> str:
        """The name of the function by which a language model follows this edge."""
        return transition_slug(self.label)

    @property
    def former_name(self) -> str:
        """Its name in conversations that an earlier release stored, in which several edges may have one name."""
        return _ascii_slug(self.label)


@dataclass(frozen=True)
class Graph:
    """A definition that can be run."""

    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]
    start: Node

    @classmethod
    def read(cls, definition: Mapping[str, Any]) -> "Graph":
        """Read a definition. Of several nodes with one id the last counts, of several start nodes the first.

        :raises GraphError: with a sentence, for a definition that can't be run; one without errors always can.
        """
        nodes = {node.id: node for node in map(_node, _items(definition, "nodes"))}
        edges = tuple(map(_edge, _items(definition, "edges")))
        for edge in edges:
            for end in (edge.source, edge.target):
                if end not in nodes:
                    raise GraphError(f'Edge "{edge.id}" names a node "{end}" that is not in the workflow.')
        start = next((node for node in nodes.values() if node.type == "startCall"), None)
        if start is None:
            raise GraphError("The workflow has no start node, so no call can begin.")
        return cls(nodes, edges, start)

    @property
    def global_node(self) -> Node | None:
        """The first global node, whose prompt stands before that of other nodes."""
        return next((node for node in self.nodes.values() if node.type == "globalNode"), None)

    def node(self, id: str) -> Node:
        """:raises GraphError: when there is no node with this id."""
        try:
            return self.nodes[id]
        except KeyError:
            raise GraphError(f'The workflow has no node "{id}".') from None

    def edges_from(self, id: str) -> tuple[Edge, ...]:
        """Return the edges that leave a node, in the order of the definition."""
        return self._edges_by_source.get(id, ())

    @cached_property
    def on_error(self) -> Mapping[str, Edge]:
        """The ways that conversations go when the call of a node fails, by the node's id. No model is offered them."""
        ends = ((id, each.call.on_error) for id, each in self.nodes.items() if each.call)
        return {id: Edge(on_error_id(id), id, end, ON_ERROR, "") for id, end in ends if end in self.nodes}

    @property
    def ways(self) -> tuple[Edge, ...]:
        """The edges, and after them the ways of `on_error`."""
        return (*self.edges, *self.on_error.values())

    @cached_property
    def saved(self) -> frozenset[str]:
        """The variables that calls of nodes keep their results in."""
        return frozenset(each.call.save_as for each in self.nodes.values() if each.call and each.call.save_as)

    @cached_property
    def _edges_by_source(self) -> dict[str, tuple[Edge, ...]]:
        edges: dict[str, list[Edge]] = {}
        for edge in self.edges:
            edges.setdefault(edge.source, []).append(edge)
        return {id: tuple(each) for id, each in edges.items()}

    def edge_called(self, id: str, function_name: str, *, former: bool = True) -> Edge | None:
        """Return the edge from node `id` with this function name, or None.

        :param former: without one, the first edge with this former name counts, too.
        """
        edges = self.edges_from(id)
        found = next((edge for edge in edges if edge.function_name == function_name), None)
        if found is None and former:
            return next((edge for edge in edges if edge.former_name == function_name), None)
        return found


def _items(definition: object, key: str) -> list[Any]:
    items = definition.get(key) if isinstance(definition, Mapping) else None
    if not isinstance(items, list):
        raise GraphError(f'The workflow needs a list "{key}".')
    return items


def _node(item: object) -> Node:
    match item:
        case {"id": str(id), "type": str(type), "data": Mapping() as data}:
            name = data.get("name")
            return Node(id, type, name if isinstance(name, str) else id, data)
    raise GraphError("Each node of a workflow is an object with an id, a type and data.")


def _edge(item: object) -> Edge:
    match item:
        case {"id": str(id), "source": str(source), "target": str(target), "data": Mapping() as data}:
            match data:
                case {"label": str(label), "condition": str(condition)}:
                    speech = {key: data[key] for key in _SPEECH if isinstance(data.get(key), str)}
                    return Edge(id, source, target, label, condition, **speech)
            raise GraphError(f'Edge "{id}" needs a label and a condition.')
    raise GraphError("Each edge of a workflow is an object with an id, a source, a target and data.")


_SPEECH = ("transition_speech", "transition_speech_type", "transition_speech_recording_id")


def transition_slug(label: str) -> str:
    """Return the function name of an edge: its label in lower case, each character outside a-z and 0-9 as ``_``.

    A label that isn't ASCII keeps the letters that are, without accents, and a hash distinguishes it from all others.
    """
    if label.isascii():
        return _ascii_slug(label)
    plain = unicodedata.normalize("NFKC", label).casefold().strip()
    letters = "".join(each for each in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(each))
    readable = tool_slug(letters)[:_LONGEST_READABLE].strip("_") or "edge"
    return f"{readable}_{sha256(plain.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def tool_slug(name: str) -> str:
    """Return the function name of a tool: its name in lower case, other characters than a-z and 0-9 as single ``_``."""
    return re.sub("_+", "_", _ascii_slug(name)).strip("_")


def _ascii_slug(text: str) -> str:
    return _NOT_IN_SLUG.sub("_", text.lower())


def objects(definition: object, key: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of the list `key` in any JSON value; whatever is malformed is skipped."""
    items = definition.get(key) if isinstance(definition, Mapping) else None
    if isinstance(items, list):
        yield from (item for item in items if isinstance(item, dict))


def data_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a node or an edge; empty when it is malformed."""
    data = item.get("data")
    return data if isinstance(data, dict) else {}


# The label of a way that is taken when a node's call fails.
ON_ERROR = "on_error"
# The texts of a call that may be left out.
_TEXTS_OF_CALL = ("save_as", "on_error", "function")


def on_error_id(id: str) -> str:
    """Return the id of the way that is taken when the call of node `id` fails."""
    return f"{id}.{ON_ERROR}"


def call_of(node: Mapping[str, Any]) -> NodeCall | None:
    """Return the tool that a node calls when it is entered; None if it calls none, or what it says is malformed."""
    match data_of(node).get("call") if node.get("type") in SPEAKING else None:
        case {"tool": str(tool), **others} if tool:
            arguments = others.get("arguments")
            texts = {name: text for name in _TEXTS_OF_CALL if isinstance(text := others.get(name), str)}
            return NodeCall(tool, arguments if isinstance(arguments, Mapping) else {}, **texts)
    return None


def template_variables(definition: object) -> list[str]:
    """Return, sorted, the template variables that a campaign's contacts must supply.

    They come from prompts, scripted texts, greetings and transition speech, without dotted paths, placeholders with a
    default, results that nodes' calls keep, and variables that the service sets itself.
    """
    texts: list[Any] = []
    saved = {call.save_as for node in objects(definition, "nodes") if (call := call_of(node))}
    for node in objects(definition, "nodes"):
        if node.get("type") in PROMPTED:
            texts.append(data_of(node).get("prompt"))
        if node.get("type") in SPEAKING:
            texts.append(data_of(node).get("scripted_text"))
        if node.get("type") == "startCall":
            texts.append(data_of(node).get("greeting"))
    texts += [data_of(edge).get("transition_speech") for edge in objects(definition, "edges")]
    return sorted(
        {
            each.path
            for text in texts
            if isinstance(text, str)
            for each in placeholders(text)
            if each.default is None and not ("." in each.path or each.path in saved or is_supplied(each.path))
        }
    )


def is_supplied(path: str) -> bool:
    """Return whether the service itself sets a variable: a clock, or a member of the initial context."""
    return path in _SUPPLIED or is_built_in(path)


def add_trigger_paths(
    definition: Mapping[str, Any], new_path: Callable[[], str], replace_all: bool = False
) -> dict[str, Any]:
    """Return a copy in which every trigger node has a path; missing and empty ones come from `new_path`.

    With `replace_all` every path is new, as a duplicate needs. Nodes without an object as data stay as they are.
    """

    def with_path(node: Any) -> Any:
        match node:
            case {"type": "trigger", "data": dict(data)} if replace_all or not data.get("trigger_path"):
                return {**node, "data": {**data, "trigger_path": new_path()}}
        return node

    nodes = definition.get("nodes")
    return {**definition, "nodes": [with_path(node) for node in nodes]} if isinstance(nodes, list) else dict(definition)


def trigger_paths(definition: object) -> list[tuple[str, str, bool]]:
    """Return (node id, path, enabled) for each trigger node with a path; malformed nodes are skipped."""
    return [trigger for node in objects(definition, "nodes") if (trigger := trigger_of(node)) is not None]


def trigger_of(node: Mapping[str, Any]) -> tuple[str, str, bool] | None:
    """Return (id, path, enabled) of a trigger node with a path; None for any other."""
    if node.get("type") != "trigger":
        return None
    match node:
        case {"id": str(id), "data": {"trigger_path": str(path)} as data} if path:
            return id, path, as_boolean(data.get("enabled")) is not False
    return None


def strip_unknown_data(definition: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """Return a copy without the unknown members in the data of nodes and edges.

    Nodes of a type that isn't in the catalogue, and malformed items, stay as they are.
    """

    def stripped(item: Any, key: str) -> Any:
        match item:
            case {"data": dict(data)} if key == "edges":
                known: Container[str] = EDGE_FIELDS
            case {"data": dict(data), "type": str(type)} if type in catalogue:
                known = catalogue[type].names
            case _:
                return item
        return {**item, "data": {name: value for name, value in data.items() if name in known}}

    return {
        **definition,
        **{
            key: [stripped(item, key) for item in items]
            for key in ("nodes", "edges")
            if isinstance(items := definition.get(key), list)
        },
    }
