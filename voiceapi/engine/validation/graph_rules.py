"""The rules that a definition has to keep before it may be published: `check` has them all.

They are on single nodes and edges, whose members have types and limits, on the graph, on trigger paths, and on the
function names of edges and tools.

Clients show these messages and may compare them, so their texts don't change.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping
from math import inf
from typing import Any, Literal, Protocol

from ..compose import PAUSE, read_end_of_speech
from ..extraction import RESERVED
from ..graph import PROMPTED, SPEAKING, data_of, tool_slug
from ..template import as_boolean, as_integer, as_number, is_built_in
from .field_types import EDGE_FIELDS, IGNORE, Catalogue, Field
from .finding import Finding
from .outline import Outline, attached_documents, attached_tools

_PATH = re.compile("[A-Za-z0-9_-]+")
_PATH_LENGTH = 36
# Function names that are fixed: the lookup in a node's documents, and the calculator.
LOOKUP = "retrieve_from_knowledge_base"
CALCULATOR = "safe_calculator"
# Tool categories whose function isn't named after the tool. An MCP server names its functions itself.
FIXED_NAMES = {"calculator": CALCULATOR, "mcp": ""}
# Tool categories that a node can call when it is entered.
CALLABLE = ("calculator", "http_api", "python")
# What a call's result can't be kept as, besides the clocks; and the longest name.
_NO_VARIABLE = RESERVED | {"call_disposition", "gathered_context", "initial_context"}
_LONGEST_VARIABLE = 64

# Path of a member inside its node or edge, and the message.
Error = tuple[str, str]
Kind = Literal["node", "edge"]

_NOT_A_NODE = "which is not a node of the workflow."
_LISTS: Mapping[str, Kind] = {"nodes": "node", "edges": "edge"}


def _is_variable(value: object) -> bool:
    """Whether a call's result can be kept under this name; an empty one keeps none."""
    if not isinstance(value, str) or not value.isidentifier():
        return value == ""
    return len(value) <= _LONGEST_VARIABLE and value not in _NO_VARIABLE and not is_built_in(value)


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
    "variable": (
        f"the name of a variable: at most {_LONGEST_VARIABLE} letters, digits and _, and none of the service's own",
        _is_variable,
    ),
    "pause": (PAUSE, lambda value: read_end_of_speech(value) is not None),
}

_POSITION_FIELDS = tuple(Field(name, "number", nullable=False, required=True) for name in ("x", "y"))
_EDGE_FIELDS = tuple(
    Field(name, "filled", nullable=False, required=True)
    if name in ("label", "condition")
    else Field(name, "texts" if name == IGNORE else "text")
    for name in EDGE_FIELDS
)


class CheckedTool(Protocol):
    """What these rules read of an organization's tool."""

    @property
    def name(self) -> str: ...

    @property
    def category(self) -> str: ...


def check(
    outline: Outline,
    catalogue: Catalogue,
    tools: Mapping[str, CheckedTool] | None = None,
    taken_paths: Container[str] = (),
) -> list[Finding]:
    """Return every rule that a definition breaks; an empty list means that it may be published.

    The shape of the graph is only checked when nodes and edges have the right members.

    :param catalogue: the types of node by name.
    :param tools: the organization's tools by uuid.
    :param taken_paths: the trigger paths of other workflows.
    """
    schema = schema_findings(outline, catalogue)
    return [
        *schema,
        *([] if schema else graph_findings(outline, catalogue)),
        *trigger_path_findings(outline),
        *tool_name_findings(outline, tools or {}),
        *call_findings(outline, tools or {}),
        *taken_path_findings(outline, taken_paths),
    ]


# -- single nodes and edges


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
    "object": lambda value, field, path: _members(value, field.members, path),
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


# -- the graph, its names and its paths


def graph_findings(outline: Outline, catalogue: Catalogue) -> list[Finding]:
    """Return the errors in the shape of a graph whose nodes and edges have the right members."""
    return [
        *_instances(Counter(node["type"] for node in outline.by_id.values()), catalogue),
        *_degrees(outline, catalogue),
        *transition_name_findings(outline),
        *_on_error_findings(outline),
    ]


def instance_findings(outline: Outline, catalogue: Catalogue) -> list[Finding]:
    """Return one finding for each type of which a draft has too many nodes; a draft may have too few."""
    counts = Counter(type for node in outline.nodes if isinstance(type := node.get("type"), str))
    return list(_instances(counts, catalogue, drafting=True))


def _instances(counts: Counter[str], catalogue: Catalogue, *, drafting: bool = False) -> Iterator[Finding]:
    for type, spec in sorted(catalogue.items()):
        fewest, most = spec.instances or (0, None)
        if most is not None and counts[type] > most:
            yield Finding("workflow", None, None, f"Workflow can have at most one {spec.display_name}", "node-count")
        if counts[type] < fewest and not drafting:
            yield Finding("workflow", None, None, f"Workflow must have at least one {spec.display_name}", "node-count")


def _degrees(outline: Outline, catalogue: Catalogue) -> Iterator[Finding]:
    sources: defaultdict[str, set[str]] = defaultdict(set)
    targets: defaultdict[str, set[str]] = defaultdict(set)
    for edge in outline.edges:
        targets[edge["source"]].add(edge["target"])
        sources[edge["target"]].add(edge["source"])
    for id, call in outline.calls.items():
        if outline.by_id.get(call.on_error, {}).get("type") in SPEAKING[1:]:
            sources[call.on_error].add(id)
    for id, node in outline.by_id.items():
        spec = catalogue[node["type"]]
        for way, fewest, most in spec.degrees:
            count = len((sources if way == "incoming" else targets)[id])
            if most is not None and count > most:
                few = "cannot have" if most == 0 else f"can have at most {most}"
                plural = "edges" if most == 0 else "edge(s)"
                yield Finding("node", id, None, f"{spec.display_name} {few} {way} {plural}", "node-degree")
            if fewest is not None and count < fewest:
                text = f"{spec.display_name} must have at least {fewest} {way} edge(s)"
                yield Finding("node", id, None, text, "node-degree")


def transition_name_findings(outline: Outline) -> list[Finding]:
    """Return one finding for each edge whose function name another edge of the same node has too."""
    counts = Counter((source, slug) for source, _, slug in outline.labelled)
    return [
        Finding(
            "edge",
            id,
            "data.label",
            f'Transition tool name "{slug}" is duplicated for this node. Use a unique edge label.',
            "duplicate-label",
        )
        for source, id, slug in outline.labelled
        if slug and counts[source, slug] > 1
    ]


def tool_name_findings(outline: Outline, tools: Mapping[str, CheckedTool]) -> list[Finding]:
    """Return a finding for each function name that two tools of a node share, or a tool and an edge of it.

    `tools` are the organization's, by uuid; unknown tools of a node are skipped.
    """
    if not tools or not outline.has_lists():
        return []
    edges: defaultdict[str, list[tuple[str | None, str]]] = defaultdict(list)
    for source, id, slug in outline.labelled:
        edges[source].append((id, slug))
    found = []
    for node in outline.nodes:
        named: defaultdict[str, list[str]] = defaultdict(list)
        for uuid in dict.fromkeys(attached_tools(node)):
            if uuid in tools and tools[uuid].category not in FIXED_NAMES:
                named[tool_slug(tools[uuid].name)].append(f'"{tools[uuid].name}"')
        id = node.get("id")
        if not named or not isinstance(id, str):
            continue
        found += [
            Finding(
                "node",
                id,
                "data.tool_uuids",
                f'Custom tools {", ".join(names)} generate duplicate LLM tool name "{slug}" on this node. '
                "Rename one of the tools.",
                "tool-name-conflict",
            )
            for slug, names in named.items()
            if len(names) > 1
        ]
        found += [
            Finding(
                "edge",
                edge,
                "data.label",
                f'Transition tool name "{slug}" conflicts with custom tool {", ".join(named[slug])} attached to this '
                "node. Use a unique edge label or rename the custom tool.",
                "tool-name-conflict",
            )
            for edge, slug in edges[id]
            if slug in named
        ]
    return found


def _on_error_findings(outline: Outline) -> Iterator[Finding]:
    """Yield a finding for each call whose on_error can't be entered."""
    for id, call in outline.calls.items():
        end, code = call.on_error, "unusable-on-error"
        if not end:
            continue
        if end not in outline.by_id:
            text, code = f'on_error is "{end}", {_NOT_A_NODE}', "missing-node"
        elif outline.by_id[end].get("type") not in SPEAKING[1:]:
            text = f'on_error is "{end}", which is no agent or end node.'
        elif end == id:
            text = "on_error is this node itself, which would only call again."
        else:
            continue
        yield Finding("node", id, "data.call.on_error", text, code)


def call_findings(outline: Outline, tools: Mapping[str, CheckedTool]) -> Iterator[Finding]:
    """Yield a finding for each tool that a node calls and can't call. `tools` are the organization's, by uuid."""
    for id, call in outline.calls.items():
        tool = tools.get(call.tool)
        if tool is None:
            continue
        if tool.category in ("end_call", "transfer_call"):
            member, why = "tool", "only a language model may call"
        elif tool.category not in CALLABLE:
            member, why = "tool", "can't be run in this release"
        elif call.function:
            member, why = "function", "has no functions to choose from"
        else:
            continue
        text = f'The tool "{tool.name}" is of the kind {tool.category}, which {why}.'
        yield Finding("node", id, f"data.call.{member}", text, "uncallable-tool")


def trigger_path_findings(outline: Outline) -> list[Finding]:
    """Return the errors of the trigger paths themselves; a missing or empty path is no error."""
    found = []
    seen = set()
    for node in outline.nodes:
        path = data_of(node).get("trigger_path") if node.get("type") == "trigger" else None
        if not path:
            continue
        errors = []
        if not isinstance(path, str):
            errors.append("Trigger path must be a string.")
        else:
            if len(path) > _PATH_LENGTH:
                errors.append(f"Trigger path must be {_PATH_LENGTH} characters or fewer.")
            if not _PATH.fullmatch(path):
                errors.append(
                    "Trigger path must be a single URL path segment using only letters, numbers, hyphens, "
                    "and underscores."
                )
            if path in seen:
                errors.append("Trigger path is duplicated in this workflow.")
            seen.add(path)
        id = node.get("id")
        named = id if isinstance(id, str) else None
        found += [Finding("node", named, "data.trigger_path", error, "trigger-path") for error in errors]
    return found


def taken_path_findings(outline: Outline, taken: Container[str]) -> list[Finding]:
    """Return one finding for each trigger path that is in `taken`, the paths of other workflows."""
    return [
        Finding(
            "node",
            id,
            "data.trigger_path",
            "Trigger path is already in use. Please choose another one or leave empty to use a unique one generated "
            "by the server.",
            "trigger-path-taken",
        )
        for id, path, _ in outline.triggers
        if path in taken
    ]


def fixed_name_findings(outline: Outline, tools: Mapping[str, CheckedTool]) -> list[Finding]:
    """Return a warning for each lookup and calculator that a node can't offer, since something else has its name.

    An edge takes precedence over the lookup, the lookup over the tools, and the first tool over later ones. `check`
    doesn't report these two names, so that such a workflow can be published. `tools` are the organization's, by uuid.
    """
    if not tools and not outline.documents:
        return []
    taken: defaultdict[object, set[str]] = defaultdict(set)
    for source, _, slug in outline.labelled:
        taken[source].add(slug)
    found = []
    for node in outline.nodes:
        id = node.get("id")
        for field, name in _fixed_names(node, tools) if isinstance(id, str) else ():
            if name in taken[id]:
                text = f'Something else on this node is called "{name}" and goes first.'
                found.append(Finding("node", id, field, text, "function-name-taken"))
            taken[id].add(name)
    return found


def _fixed_names(node: Mapping[str, Any], tools: Mapping[str, CheckedTool]) -> Iterator[tuple[str, str]]:
    if attached_documents(node):
        yield "data.document_uuids", LOOKUP
    for index, uuid in enumerate(dict.fromkeys(attached_tools(node))):
        if uuid in tools:
            name = FIXED_NAMES.get(tools[uuid].category, tool_slug(tools[uuid].name))
            if name in (LOOKUP, CALCULATOR):
                yield f"data.tool_uuids.{index}", name
