"""The types of node as the rules read them: the fields of a node's data, in the catalogue or accepted besides."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

# The codes of lint that are ignored at a node or an edge.
IGNORE = "lint_ignore"
EDGE_FIELDS = (
    *("label", "condition", "transition_speech", "transition_speech_type", "transition_speech_recording_id"),
    IGNORE,
)

# (fewest, most) nodes of a type. Not in the catalogue, because published clients refuse unknown keys there.
INSTANCES: Mapping[str, tuple[int, int | None]] = {
    "globalNode": (0, 1),
    "noveum": (0, 1),
    "paygent": (0, 1),
    "startCall": (1, 1),
    "trigger": (0, 1),
    "tuner": (0, 1),
}


@dataclass(frozen=True)
class Field:
    """One member of a node's data; `options`, `minimum` and `maximum` hold only what is enforced."""

    name: str
    kind: str
    nullable: bool = True
    required: bool = False
    options: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    members: tuple["Field", ...] = ()


_KINDS = {
    "string": "text",
    "mention_textarea": "text",
    "url": "text",
    "recording_ref": "text",
    "credential_ref": "text",
    "options": "text",
    "boolean": "boolean",
    "number": "number",
    "tool_refs": "texts",
    "document_refs": "texts",
    "fixed_collection": "records",
    "json": "object",
}
_WHOLE = {"qa_min_call_duration", "qa_sample_rate", "tuner_workspace_id"}
_NEVER_NULL = {
    "name",
    "noveum_environment",
    "paygent_indicator",
    "pre_call_fetch_mode",
    "qa_min_call_duration",
    "qa_sample_rate",
}
_ENFORCED_OPTIONS = {"pre_call_fetch_mode"}
_ENFORCED_LIMITS = {"tuner"}

_EVERYWHERE = (
    Field("is_start", "boolean", nullable=False),
    Field("is_end", "boolean", nullable=False),
    Field(IGNORE, "texts"),
)
# Members of properties that are JSON objects, which published clients don't know of.
_MEMBERS: Mapping[str, tuple[Field, ...]] = {
    "call": (
        Field("tool", "filled", nullable=False, required=True),
        Field("function", "text"),
        Field("arguments", "object"),
        Field("save_as", "variable"),
        Field("on_error", "text"),
    )
}
_INTERRUPT = Field("allow_interrupt", "boolean", nullable=False)
_FILTERS = Field("mcp_tool_filters", "lists")
# Phrases that the speech recogniser is to expect, and the pause that ends what the caller says.
_LISTENING = (Field("speech_hints", "texts"), Field("end_of_speech", "pause"))
# Whether a reply's first sentence goes ahead, also a setting of the workflow.
FIRST_SENTENCE, GOES_AHEAD = "first_sentence", ("auto", "off")
_SPEAKING = Field(FIRST_SENTENCE, "text", options=GOES_AHEAD)
_BEYOND_CATALOGUE: Mapping[str, tuple[Field, ...]] = {
    # The older spelling of pre_call_fetch_mode, sent by published clients.
    "startCall": (_FILTERS, *_LISTENING, _SPEAKING, Field("pre_call_fetch_enabled", "boolean", nullable=False)),
    "agentNode": (_FILTERS, *_LISTENING, _SPEAKING),
    "endCall": (_INTERRUPT, _SPEAKING),
    "globalNode": (_INTERRUPT, Field("add_global_prompt", "boolean", nullable=False)),
}

# Errors are reported in this order; those of all other fields follow in the order of the catalogue.
_FIRST = (
    "tool_uuids",
    "document_uuids",
    "mcp_tool_filters",
    "extraction_enabled",
    "extraction_prompt",
    "extraction_variables",
    "prompt",
    "allow_interrupt",
    "add_global_prompt",
    "name",
    "is_start",
    "is_end",
)


@dataclass(frozen=True)
class UsualValues:
    """What a property usually is: one of `options`, or a number from `minimum` to `maximum`."""

    name: str
    options: tuple[str, ...]
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True)
class NodeType:
    """A type of node, its spec in the catalogue compiled once for the rules.

    :param fields: those of a node's data, in the order in which their errors are reported; `names` are theirs.
    :param switch: the field that turns an integration on, which is named after it, such as ``tuner_enabled``; None for
        a type that isn't one. While it is on, `needed` are required: the names of fields, with their defaults.
    :param usual: the properties of which a warning says what they usually are.
    :param degrees: of each direction, "incoming" and "outgoing", the fewest and the most neighbours.
    :param instances: the fewest and the most nodes of the type; None for any number.
    """

    display_name: str
    fields: tuple[Field, ...]
    names: frozenset[str]
    switch: str | None
    needed: Mapping[str, Any]
    usual: tuple[UsualValues, ...]
    degrees: tuple[tuple[str, int | None, int | None], ...]
    instances: tuple[int, int | None] | None


# The types of node by name.
Catalogue = Mapping[str, NodeType]


def compiled(type: str, spec: Mapping[str, Any]) -> NodeType:
    """Return a type of node as the rules read it, from its spec in the catalogue."""
    properties = spec["properties"]
    listed = {prop["name"]: _field(prop, type) for prop in properties}
    beyond = {field.name: field for field in (*_EVERYWHERE, *_BEYOND_CATALOGUE.get(type, ()))}
    known = beyond | listed
    fields = tuple(known[name] for name in dict.fromkeys((*_FIRST, *listed, *beyond)) if name in known)
    switch = f"{type}_enabled"
    is_integration = any(prop["name"] == switch for prop in properties)
    required = [prop for prop in properties if prop.get("required") and prop["name"] != "name"]
    limits = spec.get("graph_constraints") or {}
    return NodeType(
        display_name=spec["display_name"],
        fields=fields,
        names=frozenset(field.name for field in fields),
        switch=switch if is_integration else None,
        needed={prop["name"]: prop.get("default") for prop in required} if is_integration else {},
        usual=tuple(usual for prop in properties if (usual := _usual(prop)) is not None),
        degrees=tuple((way, limits.get(f"min_{way}"), limits.get(f"max_{way}")) for way in ("incoming", "outgoing")),
        instances=INSTANCES.get(type),
    )


def _field(prop: Mapping[str, Any], type: str) -> Field:
    name = prop["name"]
    kind = _KINDS.get(prop["type"], "any")
    limited = type in _ENFORCED_LIMITS
    return Field(
        name,
        kind="integer" if name in _WHOLE else kind,
        nullable=kind != "boolean" and name not in _NEVER_NULL,
        required=name == "name",
        options=_values(prop) if name in _ENFORCED_OPTIONS else (),
        minimum=prop.get("min_value") if limited else None,
        maximum=prop.get("max_value") if limited else None,
        members=tuple(_member(member) for member in prop.get("properties") or ()) or _MEMBERS.get(name, ()),
    )


def _member(prop: Mapping[str, Any]) -> Field:
    needed = bool(prop.get("required"))
    return replace(
        Field(prop["name"], _KINDS.get(prop["type"], "any")),
        nullable=not needed,
        required=needed,
        options=_values(prop),
    )


def _values(prop: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(option["value"] for option in prop.get("options") or ())


def _usual(prop: Mapping[str, Any]) -> UsualValues | None:
    """What a property usually is; None when its spec says nothing of it."""
    minimum, maximum = (prop.get(f"{end}_value") if prop["type"] == "number" else None for end in ("min", "max"))
    options = _values(prop)
    limited = options or minimum is not None or maximum is not None
    return UsualValues(prop["name"], options, minimum, maximum) if limited else None
