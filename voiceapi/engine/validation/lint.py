"""Warnings about a workflow definition, which is allowed but probably mistaken, and their suppression by its author."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from ..compose import ArgumentError, read_argument
from ..graph import SPEAKING, NodeCall, data_of
from ..template import as_number
from .field_types import EDGE_FIELDS, IGNORE, Catalogue, NodeType
from .finding import RULES, Finding
from .outline import Outline, attached_credential, attached_documents, attached_tools
from .paths import Paths, unreachable_code

# The field of a warning, its message and its code.
Warned = tuple[str, str, str]
# Kind and id of what the codes belong to; the workflow has no id.
_Owner = tuple[str, str | None]
_WORKFLOW: _Owner = ("workflow", None)
# What comes of a tool or a document that can't be used.
_WITHOUT = "this node goes without it"


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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TEXT = ("text", lambda value: isinstance(value, str))
_SIZE = ("a number above 0", lambda value: _is_number(value) and value > 0)
# Each member of a note: what it has to be, and the test.
_NOTE_MEMBERS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("id", "text"), _TEXT),
    **dict.fromkeys(("x", "y"), ("a number", _is_number)),
    **dict.fromkeys(("width", "height"), _SIZE),
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
        if id in outline.calls:
            found += _of_call(id, outline.calls[id], data["call"], tools)
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
    return [*found, *_notes(outline.definition)]


def _notes(definition: object) -> Iterator[Finding]:
    """Yield a warning for each reason for which an editor can't show a note; conversations don't read notes."""
    notes = definition.get("notes") if isinstance(definition, Mapping) else None
    if not isinstance(notes, list):
        if notes is not None:
            yield Finding("workflow", None, "notes", "notes isn't a list, so that none is shown.", "unusable-note")
        return
    for index, note in enumerate(notes):
        place = f"notes.{index}"
        if not isinstance(note, dict):
            text = "This note isn't an object, so that it isn't shown."
            yield Finding("workflow", None, place, text, "unusable-note")
            continue
        for name, (wanted, test) in _NOTE_MEMBERS.items():
            if not test(note.get(name)):
                text = f"{name} of this note isn't {wanted}, so that it isn't shown."
                yield Finding("workflow", None, f"{place}.{name}", text, "unusable-note")


def _of_call(
    id: str, call: NodeCall, given: Mapping[str, Any], warnings: Mapping[str, str] | None
) -> Iterator[Finding]:
    """Yield the warnings about the call that a node makes, and about its tool."""
    for name in given:
        if not hasattr(call, name):
            yield Finding("node", id, *_without_effect(f"call.{name}"))
    for each in () if warnings is None else _missing("tool", id, [call.tool], warnings):
        yield replace(each, field="data.call.tool", message=each.message.replace(_WITHOUT, "the call fails"))


def argument_findings(outline: Outline, tools: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield what is wrong with the arguments of nodes' calls.

    :param tools: the JSON schemas of the parameters of tools by uuid; calls of others are passed over.
    """
    for id, call in outline.calls.items():
        schema = tools.get(call.tool)
        if schema is None:
            continue
        for name, value in call.arguments.items():
            field = f"data.call.arguments.{name}"
            if name not in schema.get("properties", {}):
                text = f"The tool has no parameter {name}, so that this argument has no effect."
                yield Finding("node", id, field, text, "unknown-argument")
            elif isinstance(value, str) and value.strip() and "{{" not in value:
                try:
                    read_argument(name, value, schema)
                except ArgumentError as error:
                    yield Finding("node", id, field, f"{error} So the call fails.", "unfit-argument")
        for name in schema.get("required", ()):
            if call.arguments.get(name) in (None, ""):
                text = f"The tool requires the argument {name}, so that the call fails."
                yield Finding("node", id, "data.call.arguments", text, "unfit-argument")


def _missing(kind: str, id: str, uuids: list[str], warnings: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the warnings about the tools or documents of a node; one that isn't in `warnings` doesn't exist."""
    for index, uuid in enumerate(uuids):
        known = warnings.get(uuid)
        text = f'There is no {kind} "{uuid}"; {_WITHOUT}.' if known is None else known
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


# -- suppression: `lint_ignore` at a node or an edge, a list of codes


def suppressed(
    outline: Outline, configurations: Mapping[str, Any], found: Iterable[Finding], unchecked: Collection[str] = ()
) -> tuple[list[Finding], int]:
    """Return the findings that aren't ignored, with those about the lists of codes themselves; and how many are.

    The configurations' codes count for the whole workflow. What prevents publishing can't be ignored.

    :param unchecked: the codes whose rules weren't asked, so that ignoring one isn't reported as having no effect.
    """
    lists = list(_lists(outline, configurations))
    ignored: dict[_Owner, set[str]] = {}
    for owner, _, codes in lists:
        ignored.setdefault(owner, set()).update(code for code in codes if can_be_ignored(code))
    kept: list[Finding] = []
    used: set[tuple[_Owner, str]] = set()
    count = 0
    # Which codes nothing is found for is known after the others.
    for finding in chain(found, _about(lists, used, {*unchecked, "unused-ignore"})):
        owners = [each for each in ((finding.kind, finding.id), _WORKFLOW) if finding.code in ignored.get(each, ())]
        used.update((owner, finding.code) for owner in owners)
        if owners:
            count += 1
        else:
            kept.append(finding)
    return kept, count


def _lists(outline: Outline, configurations: Mapping[str, Any]) -> Iterator[tuple[_Owner, str, list[str]]]:
    """Yield each list of codes: whose it is, the field that it is in, and the codes; what isn't text is skipped."""
    for kind, items in (("node", outline.by_id.values()), ("edge", outline.edges)):
        for item in items:
            if isinstance(codes := data_of(item).get(IGNORE), list) and isinstance(id := item.get("id"), str):
                yield (kind, id), f"data.{IGNORE}", [each for each in codes if isinstance(each, str)]
    if isinstance(codes := configurations.get(IGNORE), list):
        field = f"workflow_configurations.{IGNORE}"
        yield _WORKFLOW, field, [each for each in codes if isinstance(each, str)]


def can_be_ignored(code: str) -> bool:
    """Return whether `lint_ignore` may name a code: that of a rule which doesn't prevent publishing."""
    return code in RULES and not RULES[code].prevents_publishing


def _about(
    lists: Iterable[tuple[_Owner, str, list[str]]], used: Collection[tuple[_Owner, str]], excused: Collection[str]
) -> Iterator[Finding]:
    """Yield what is wrong with the lists of codes."""
    for owner, field, codes in lists:
        kind: Any = owner[0]
        for index, code in enumerate(codes):
            place = f"{field}.{index}"
            if code not in RULES:
                text = f'There is no rule "{code[:60]}".'
                yield Finding(kind, owner[1], place, text, "unknown-ignored-code")
            elif RULES[code].prevents_publishing:
                text = f'"{code}" prevents publishing and can\'t be ignored.'
                yield Finding(kind, owner[1], place, text, "unknown-ignored-code")
            elif (owner, code) not in used and code not in excused:
                yield Finding(kind, owner[1], place, f'Nothing is found here for "{code}".', "unused-ignore")
