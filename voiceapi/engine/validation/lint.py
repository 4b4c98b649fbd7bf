"""Warnings about a workflow definition: what is allowed but probably a mistake."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ..graph import SPEAKING, data_of, objects
from ..values import as_number
from .field_types import EDGE_FIELDS, Catalogue, fields_of
from .finding import Finding
from .graph_rules import attached_documents, attached_tools


def _is_on(value: object) -> bool:
    return value is not False


def _is_recording(value: object) -> bool:
    return value == "audio"


# The field of a node type that names a credential.
CREDENTIALS = {"startCall": "pre_call_fetch_credential_uuid", "webhook": "credential_uuid"}

# What this release stores but doesn't carry out: (node types or "edge", field, value of an absent field, test whether
# the value asks for it, message).
NOT_RUN: tuple[tuple[tuple[str, ...], str, object, Callable[[object], bool], str], ...] = (
    (("noveum",), "noveum_enabled", True, _is_on, "Nothing is sent to Noveum in this release."),
    (("paygent",), "paygent_enabled", True, _is_on, "Nothing is sent to Paygent in this release."),
    (("tuner",), "tuner_enabled", True, _is_on, "Nothing is sent to Tuner in this release."),
    (("startCall",), "greeting_type", None, _is_recording, "There are no recordings in this release."),
    (SPEAKING, "mcp_tool_filters", None, bool, "No tools of MCP servers are offered in this release."),
    (("edge",), "transition_speech_type", None, _is_recording, "There are no recordings in this release."),
)


def lint(
    definition: object,
    catalogue: Catalogue,
    tools: Mapping[str, str] | None = None,
    documents: Mapping[str, str] | None = None,
    credentials: Collection[str] | None = None,
) -> list[Finding]:
    """Return the warnings for any JSON value; malformed parts are skipped, since `check` reports them.

    :param tools: a warning, or an empty text, for each of the organization's tools by uuid; None skips these checks.
    :param documents: the same for the organization's documents.
    :param credentials: the uuids of the organization's credentials; None skips this check.
    """
    nodes = [node for node in objects(definition, "nodes") if isinstance(node.get("id"), str)]
    edges = [edge for edge in objects(definition, "edges") if isinstance(edge.get("id"), str)]
    found = [*_duplicate_ids("node", nodes), *_duplicate_ids("edge", edges)]
    reachable = _reachable(nodes, edges)
    for node in {node["id"]: node for node in nodes}.values():
        id, type = node["id"], node.get("type")
        if type in SPEAKING[1:] and id not in reachable:
            found.append(Finding("node", id, None, "No path leads from the start to this node."))
        if isinstance(type, str) and type in catalogue:
            found += [
                Finding("node", id, f"data.{name}", text) for name, text in _unusual(data_of(node), type, catalogue)
            ]
            found += [Finding("node", id, f"data.{name}", text) for name, text in _not_run(data_of(node), type)]
        for index, uuid in enumerate(attached_tools(node) if tools is not None else ()):
            if text := (tools or {}).get(uuid, f'There is no tool "{uuid}"; this node goes without it.'):
                found.append(Finding("node", id, f"data.tool_uuids.{index}", text))
        for index, uuid in enumerate(attached_documents(node) if documents is not None else ()):
            if text := (documents or {}).get(uuid, f'There is no document "{uuid}"; this node goes without it.'):
                found.append(Finding("node", id, f"data.document_uuids.{index}", text))
        credential = data_of(node).get(field := CREDENTIALS.get(str(type), ""))
        if credentials is not None and isinstance(credential, str) and credential and credential not in credentials:
            text = f'There is no credential "{credential}"; the request is sent without one.'
            found.append(Finding("node", id, f"data.{field}", text))
    for edge in edges:
        unknown = [name for name in data_of(edge) if name not in EDGE_FIELDS]
        found += [Finding("edge", edge["id"], f"data.{name}", _without_effect(name)) for name in unknown]
        found += [Finding("edge", edge["id"], f"data.{name}", text) for name, text in _not_run(data_of(edge), "edge")]
    return found


def _duplicate_ids(kind: Any, items: list[dict[str, Any]]) -> Iterator[Finding]:
    effect = "only the last of them counts" if kind == "node" else "messages can't tell them apart"
    for id, count in Counter(item["id"] for item in items).items():
        if count > 1:
            yield Finding(kind, id, "id", f"{count} {kind}s have this id; {effect}.")


def _reachable(nodes: list[dict[str, Any]], edges: list[dict[str, Any]]) -> set[str]:
    """Return the ids of the nodes to which a path leads from a start node."""
    ahead = [node["id"] for node in nodes if node.get("type") == "startCall"]
    targets: dict[object, list[str]] = {}
    for edge in edges:
        match edge:
            case {"source": str(source), "target": str(target)}:
                targets.setdefault(source, []).append(target)
    reached: set[str] = set()
    while ahead:
        id = ahead.pop()
        if id not in reached:
            reached.add(id)
            ahead += targets.get(id, [])
    return reached


def _unusual(data: Mapping[str, Any], type: str, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    known = {field.name for field in fields_of(type, catalogue)}
    for name in data:
        if name not in known:
            yield name, _without_effect(name)
    for prop in catalogue[type]["properties"]:
        value, name = data.get(prop["name"]), prop["name"]
        options = [option["value"] for option in prop.get("options") or ()]
        if options and isinstance(value, str) and value not in options:
            yield name, f"{name} is usually one of {', '.join(options)}."
        number = as_number(value)
        low, high = prop.get("min_value"), prop.get("max_value")
        if number is not None and prop["type"] == "number":
            if low is not None and number < low:
                yield name, f"{name} is usually at least {low:g}."
            if high is not None and number > high:
                yield name, f"{name} is usually at most {high:g}."


def _not_run(data: Mapping[str, Any], type: str) -> Iterator[tuple[str, str]]:
    for types, name, default, asks, text in NOT_RUN:
        if type in types and asks(data.get(name, default)):
            yield name, text


def _without_effect(name: str) -> str:
    return f"{name} is not known here and has no effect."
