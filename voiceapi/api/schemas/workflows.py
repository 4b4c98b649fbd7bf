"""Schemas of workflows, their versions, the findings of a check, and the types of node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import INCLUDE, RAISE, ValidationError, post_load
from marshmallow.fields import Dict, Raw

from ...engine.expected_input import LONGEST_HINT, MOST_HINTS
from ...engine.phrases import DEFAULT_LANGUAGE, PHRASES
from ...engine.template import placeholders
from ...rehearsal.stored_cases import MOST_CASES
from ..errors import Message
from .base import BodySchema, QuerySchema, ResponseSchema
from .cases import CASE
from .fields import Choice, Flag, Integer, Items, Length, Model, Number, Object, Pattern, Range, Text, Time
from .tools import NewToolSchema

# That come with a workflow.
MOST_TOOLS = 100
FIELD_NAME = Pattern(r"^[A-Za-z][A-Za-z0-9_]{0,63}$")


class ComingToolSchema(NewToolSchema):
    tool_uuid = Text(
        required=True, validate=Length(1, 36), metadata={"description": "by which nodes attach it; it gets a new one"}
    )


class CreateWorkflowSchema(BodySchema):
    name = Text(required=True)
    workflow_definition = Object(required=True)
    tools = Items(
        Model(ComingToolSchema),
        load_default=list,
        validate=Length(max=MOST_TOOLS),
        metadata={"description": "tools that nodes attach; those that are here already aren't stored once more"},
    )
    cases = Items(
        Object(metadata=CASE),
        load_default=list,
        validate=Length(max=MOST_CASES),
        metadata={"description": "conversation cases that are stored with it"},
    )


class CreateFromTemplateSchema(BodySchema):
    call_type = Text(required=True, validate=Choice(("inbound", "outbound"), "literal_error"))
    use_case = Text(required=True)
    activity_description = Text(required=True)


class AmbientNoiseSchema(BodySchema):
    enabled = Flag()
    volume = Number()

    class Meta:
        unknown = INCLUDE


class FieldMappingSchema(BodySchema):
    context_path = Text(required=True, validate=Length(1, 255))
    destination_field = Text(required=True, validate=FIELD_NAME)


# Where the called number has no workflow, there is nothing to replace the phrase by.
REPLACEABLE = {name: text for name, text in PHRASES[DEFAULT_LANGUAGE].items() if name != "number_not_in_service"}


def _check_phrase(text: str) -> None:
    """A phrase may be spoken when nothing is known of a call, so it can't have variables."""
    if not text.strip():
        raise ValidationError(Message("Value error, a phrase is spoken, so it can't be blank"))
    if next(placeholders(text), None) is not None:
        raise ValidationError(Message("Value error, a phrase is spoken as it is written: it can't have {{variables}}"))


class PhrasesSchema(BodySchema):
    """What the service speaks by itself, by name, instead of its own sentences; see docs/agents.md."""

    error_messages = {
        "unknown": Message(f"There is no such phrase; the phrases are {', '.join(REPLACEABLE)}", "extra_forbidden")
    }

    class Meta:
        unknown = RAISE
        include = {
            name: Text(allow_none=True, validate=[Length(max=1000), _check_phrase], metadata={"description": text})
            for name, text in REPLACEABLE.items()
        }

    @post_load
    def drop_nulls(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return without_nulls(data)


def _percent() -> Number:
    return Number(allow_none=True, validate=Range(min=0, max=100), metadata={"description": "percent, by the cases"})


class RequiredCoverageSchema(BodySchema):
    nodes = _percent()
    edges = _percent()
    variables = _percent()

    class Meta:
        unknown = RAISE

    @post_load
    def drop_nulls(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return without_nulls(data)


class PublishRequirementsSchema(BodySchema):
    """What a draft has to meet before it can be published; see docs/testing.md."""

    lint = Text(
        allow_none=True,
        validate=Choice(("errors", "warnings")),
        metadata={"description": "errors: there are no errors; warnings: neither errors nor warnings"},
    )
    cases = Flag(allow_none=True, metadata={"description": "there are enabled cases, and all of them pass"})
    coverage = Model(RequiredCoverageSchema, allow_none=True)

    class Meta:
        unknown = RAISE

    @post_load
    def drop_nulls(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return without_nulls(data)


class ConfigurationsSchema(BodySchema):
    """How the calls of a workflow behave. What isn't known here is kept; an explicit null counts as not sent."""

    ambient_noise_configuration = Model(AmbientNoiseSchema, allow_none=True)
    max_call_duration = Integer(
        allow_none=True,
        validate=Range(min=0, min_inclusive=False, max=1200),
        metadata={"description": "seconds; 300 when absent"},
    )
    max_user_idle_timeout = Number(allow_none=True, metadata={"description": "seconds; 10 when absent"})
    smart_turn_stop_secs = Number(allow_none=True)
    turn_start_strategy = Text(
        allow_none=True, validate=Choice(("default", "min_words", "provisional_vad"), "literal_error")
    )
    turn_start_min_words = Integer(allow_none=True)
    provisional_vad_pause_secs = Number(allow_none=True)
    turn_stop_strategy = Text(allow_none=True, validate=Choice(("transcription", "turn_analyzer"), "literal_error"))
    dictionary = Text(allow_none=True)
    context_compaction_enabled = Flag(allow_none=True)
    text_chat_inactivity_timeout_seconds = Integer(allow_none=True, validate=Range(min=60, max=10500))
    language = Text(allow_none=True, metadata={"description": "a language tag such as de-DE; en-US when absent"})
    voice = Text(allow_none=True, metadata={"description": "the carrier's own name of a voice"})
    phrases = Model(PhrasesSchema, allow_none=True)
    speech_hints = Items(
        Text(validate=Length(1, LONGEST_HINT)),
        allow_none=True,
        validate=Length(max=MOST_HINTS),
        metadata={"description": "phrases that the speech recogniser is to expect at every node"},
    )
    lint_ignore = Items(
        Text(),
        allow_none=True,
        validate=Length(max=100),
        metadata={"description": "codes of lint that nothing is to be said about in this workflow"},
    )
    publish_requirements = Model(PublishRequirementsSchema, allow_none=True)
    external_pbx_field_mappings = Items(Model(FieldMappingSchema), allow_none=True, validate=Length(max=100))
    external_pbx_lead_headers = Items(Text(validate=FIELD_NAME), allow_none=True, validate=Length(max=50))

    class Meta:
        unknown = INCLUDE

    @post_load
    def drop_nulls(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return without_nulls(data)


def without_nulls(data: Mapping[str, Any]) -> dict[str, Any]:
    """The members with a value: an explicit null counts as not sent."""
    return {name: value for name, value in data.items() if value is not None}


class UpdateWorkflowSchema(BodySchema):
    name = Text(load_default=None, allow_none=True)
    workflow_definition = Object(load_default=None, allow_none=True)
    template_context_variables = Object(load_default=None, allow_none=True)
    workflow_configurations = Model(ConfigurationsSchema, load_default=None, allow_none=True)


class EditSchema(QuerySchema):
    """The headers of a request that changes a workflow."""

    if_match = Text(
        load_default="",
        data_key="If-Match",
        metadata={"description": "the ETag of the workflow as it was read: 412 when it was changed since"},
    )


class UpdateStatusSchema(BodySchema):
    status = Text(required=True, validate=Choice(("active", "archived")))


class StatusQuerySchema(QuerySchema):
    status = Text(load_default=None, metadata={"description": "active, archived, or both with a comma between"})


class VersionsQuerySchema(QuerySchema):
    limit = Integer(load_default=None, allow_none=True, validate=Range(min=1, max=100))
    offset = Integer(load_default=0, validate=Range(min=0))


class CallDispositionCodesSchema(ResponseSchema):
    disposition_codes = Items(Text(), required=True)


class WorkflowSchema(ResponseSchema):
    id = Integer(required=True)
    name = Text(required=True)
    status = Text(required=True)
    created_at = Time(required=True)
    workflow_definition = Object(required=True)
    current_definition_id = Integer(required=True, allow_none=True)
    template_context_variables = Object(required=True, allow_none=True)
    call_disposition_codes = Model(CallDispositionCodesSchema, required=True, allow_none=True)
    total_runs = Integer(required=True, allow_none=True)
    workflow_configurations = Object(required=True, allow_none=True)
    version_number = Integer(required=True, allow_none=True)
    version_status = Text(required=True, allow_none=True)
    workflow_uuid = Text(required=True, allow_none=True)


class ListedWorkflowSchema(ResponseSchema):
    id = Integer(required=True)
    name = Text(required=True)
    status = Text(required=True)
    created_at = Time(required=True)
    total_runs = Integer(required=True)
    folder_id = Integer(required=True, allow_none=True)
    workflow_uuid = Text(required=True, allow_none=True)


class SummarySchema(ResponseSchema):
    id = Integer(required=True)
    name = Text(required=True)


class CountSchema(ResponseSchema):
    total = Integer(required=True)
    active = Integer(required=True)
    archived = Integer(required=True)


class VersionSchema(ResponseSchema):
    id = Integer(required=True)
    version_number = Integer(required=True)
    status = Text(required=True)
    content_hash = Text(
        required=True,
        metadata={"description": "SHA-256 of its definition, configurations and variables; runs show it, too"},
    )
    created_at = Time(required=True)
    published_at = Time(required=True, allow_none=True)
    workflow_json = Object(required=True)
    workflow_configurations = Object(required=True, allow_none=True)
    template_context_variables = Object(required=True, allow_none=True)


class PublishedSchema(ResponseSchema):
    id = Integer(required=True, metadata={"description": "of the version, not of the workflow"})
    version_number = Integer(required=True)
    status = Text(required=True)
    published_at = Time(required=True)


class FindingSchema(ResponseSchema):
    kind = Text(required=True, validate=Choice(("node", "edge", "workflow")))
    id = Text(required=True, allow_none=True)
    field = Text(required=True, allow_none=True)
    message = Text(required=True)


class ValidationSchema(ResponseSchema):
    is_valid = Flag(required=True)
    errors = Items(Model(FindingSchema), required=True)
    warnings = Items(Model(FindingSchema), required=True)


# -- node types: clients refuse members that they don't know here, so there are exactly these


class PropertyOptionSchema(ResponseSchema):
    value = Raw(required=True, metadata={"type": ["string", "integer", "boolean", "number"]})
    label = Text(required=True)
    description = Text(required=True, allow_none=True)


class DisplayOptionsSchema(ResponseSchema):
    show = Dict(Text(), Items(Raw()), required=True, allow_none=True)
    hide = Dict(Text(), Items(Raw()), required=True, allow_none=True)


class PropertySpecSchema(ResponseSchema):
    name = Text(required=True)
    type = Text(required=True)
    display_name = Text(required=True)
    description = Text(required=True)
    llm_hint = Text(required=True, allow_none=True)
    default = Raw(required=True, allow_none=True)
    required = Flag(required=True)
    placeholder = Text(required=True, allow_none=True)
    display_options = Model(DisplayOptionsSchema, required=True, allow_none=True)
    options = Items(Model(PropertyOptionSchema), required=True, allow_none=True)
    properties = Items(Model(lambda: PropertySpecSchema()), required=True, allow_none=True)
    min_value = Number(required=True, allow_none=True)
    max_value = Number(required=True, allow_none=True)
    min_length = Integer(required=True, allow_none=True)
    max_length = Integer(required=True, allow_none=True)
    pattern = Text(required=True, allow_none=True)
    editor = Text(required=True, allow_none=True)


class NodeExampleSchema(ResponseSchema):
    name = Text(required=True)
    description = Text(required=True, allow_none=True)
    data = Object(required=True)


class GraphConstraintsSchema(ResponseSchema):
    min_incoming = Integer(required=True, allow_none=True)
    max_incoming = Integer(required=True, allow_none=True)
    min_outgoing = Integer(required=True, allow_none=True)
    max_outgoing = Integer(required=True, allow_none=True)


class NodeSpecSchema(ResponseSchema):
    name = Text(required=True)
    display_name = Text(required=True)
    description = Text(required=True)
    llm_hint = Text(required=True, allow_none=True)
    category = Text(required=True, metadata={"enum": ["call_node", "global_node", "trigger", "integration"]})
    icon = Text(required=True)
    version = Text(required=True)
    properties = Items(Model(PropertySpecSchema), required=True)
    examples = Items(Model(NodeExampleSchema), required=True)
    graph_constraints = Model(GraphConstraintsSchema, required=True, allow_none=True)


class NodeTypesSchema(ResponseSchema):
    spec_version = Text(required=True)
    node_types = Items(Model(NodeSpecSchema), required=True)
