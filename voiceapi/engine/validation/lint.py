"""Warnings about a workflow definition: what is allowed but probably a mistake."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ..graph import SPEAKING, data_of
from ..values import as_number
from .field_types import EDGE_FIELDS, Catalogue, NodeType
from .finding import Finding
from .outline import Outline, attached_credential, attached_documents, attached_tools
from .paths import Paths, unreachable_code

# The field of a warning, its message and its code.
Warned = tuple[str, str, str]


def _is_on(value: object) -> bool:
    return value is not False


def _is_recording(value: object) -> bool:
    return value == "audio"


# What this release stores but doesn't carry out, by node type or "edge": (field, value of an absent field, test whether
# the value asks for it, message).
NotRun = tuple[str, object, Callable[[object], bool], str]
_MCP: NotRun = ("mcp_tool_filters", None, bool, "No tools of MCP servers are offered in this release.")
_NO_RECORDINGS = "There are no recordings in this release."
NOT_RUN: Mapping[str, tuple[NotRun, ...]] = {
    "noveum": (("noveum_enabled", True, _is_on, "Nothing is sent to Noveum in this release."),),
    "paygent": (("paygent_enabled", True, _is_on, "Nothing is sent to Paygent in this release."),),
    "tuner": (("tuner_enabled", True, _is_on, "Nothing is sent to Tuner in this release."),),
    "startCall": (("greeting_type", None, _is_recording, _NO_RECORDINGS), _MCP),
    "agentNode": (_MCP,),
    "endCall": (_MCP,),
    "edge": (("transition_speech_type", None, _is_recording, _NO_RECORDINGS),),
}


def lint(
    outline: Outline,
    catalogue: Catalogue,
    tools: Mapping[str, str] | None = None,
    documents: Mapping[str, str] | None = None,
    credentials: Collection[str] | None = None,
) -> list[Finding]:
    """Return the warnings about a definition; malformed parts are skipped, since `check` reports them.

    :param catalogue: the types of node by name.
    :param tools: a warning, or an empty text, for each of the organization's tools by uuid; None skips these checks.
    :param documents: the same for the organization's documents.
    :param credentials: the uuids of the organization's credentials; None skips this check.
    """
    nodes = [node for node in outline.nodes if isinstance(node.get("id"), str)]
    edges = [edge for edge in outline.edges if isinstance(edge.get("id"), str)]
    found = [*_duplicate_ids("node", nodes), *_duplicate_ids("edge", edges)]
    paths = Paths.of(outline)
    together = paths.together()
    for id, node in outline.by_id.items():
        type, data = node.get("type"), data_of(node)
        if type in SPEAKING[1:] and id not in paths.reachable:
            code = unreachable_code(paths, together, id)
            found.append(Finding("node", id, None, "No path leads from the start to this node.", code))
        if isinstance(type, str) and type in catalogue:
            found += [Finding("node", id, *each) for each in _unusual(data, catalogue[type])]
            found += [Finding("node", id, *each) for each in _not_run(data, type)]
        if tools is not None:
            found += _missing("tool", id, attached_tools(node), tools)
        if documents is not None:
            found += _missing("document", id, attached_documents(node), documents)
        credential = attached_credential(node)
        if credentials is not None and credential is not None and credential[1] not in credentials:
            text = f'There is no credential "{credential[1]}"; the request is sent without one.'
            found.append(Finding("node", id, f"data.{credential[0]}", text, "missing-credential"))
    for edge in edges:
        data = data_of(edge)
        found += [Finding("edge", edge["id"], *_without_effect(name)) for name in data if name not in EDGE_FIELDS]
        found += [Finding("edge", edge["id"], *each) for each in _not_run(data, "edge")]
    return found


def _missing(kind: str, id: str, uuids: list[str], warnings: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the warnings about the tools or documents of a node; one that isn't in `warnings` doesn't exist."""
    for index, uuid in enumerate(uuids):
        known = warnings.get(uuid)
        text = f'There is no {kind} "{uuid}"; this node goes without it.' if known is None else known
        if text:
            code = f"{'missing' if known is None else 'unusable'}-{kind}"
            yield Finding("node", id, f"data.{kind}_uuids.{index}", text, code)


def _duplicate_ids(kind: Any, items: list[dict[str, Any]]) -> Iterator[Finding]:
    effect = "only the last of them counts" if kind == "node" else "messages can't tell them apart"
    for id, count in Counter(item["id"] for item in items).items():
        if count > 1:
            yield Finding(kind, id, "id", f"{count} {kind}s have this id; {effect}.", "duplicate-id")


def _unusual(data: Mapping[str, Any], type: NodeType) -> Iterator[Warned]:
    yield from (_without_effect(name) for name in data if name not in type.names)
    for usual in type.usual:
        name, value = usual.name, data.get(usual.name)
        if usual.options and isinstance(value, str) and value not in usual.options:
            yield f"data.{name}", f"{name} is usually one of {', '.join(usual.options)}.", "unusual-value"
        number = as_number(value)
        if number is not None:
            if usual.minimum is not None and number < usual.minimum:
                yield f"data.{name}", f"{name} is usually at least {usual.minimum:g}.", "unusual-value"
            if usual.maximum is not None and number > usual.maximum:
                yield f"data.{name}", f"{name} is usually at most {usual.maximum:g}.", "unusual-value"


def _not_run(data: Mapping[str, Any], type: str) -> Iterator[Warned]:
    for name, default, asks, text in NOT_RUN.get(type, ()):
        if asks(data.get(name, default)):
            yield f"data.{name}", text, "not-in-this-release"


def _without_effect(name: str) -> Warned:
    return f"data.{name}", f"{name} is not known here and has no effect.", "unknown-field"
