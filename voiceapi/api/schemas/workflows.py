"""Schemas of workflows, their versions, the findings of a check, and the types of node."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from marshmallow import INCLUDE, RAISE, ValidationError, post_load
from marshmallow.fields import Dict, Raw

from ...engine.compose import (
    LONGEST_HINT,
    LONGEST_PAUSE,
    MOST_HINTS,
    PAUSE,
    SHORTEST_PAUSE,
    read_end_of_speech,
)
from ...engine.phrases import DEFAULT_LANGUAGE, LATEST_FILLER, PHRASES, SOONEST_FILLER
from ...engine.template import placeholders
from ...engine.validation.field_types import GOES_AHEAD
from ...errors import InvalidInput
from ...llm.configuration import OVERRIDE, language_model_of
from ...llm.parameters import unknown
from ...rehearsal.stored_cases import MOST_CASES
from ..answers import UNKNOWN_FIELDS, warn
from ..errors import Message
from . import fields
from .base import BodySchema, QuerySchema, ResponseSchema
from .cases import CASE
from .tools import NewToolSchema

# That come with a workflow.
MOST_TOOLS = 100
FIELD_NAME = fields.Pattern(r"^[A-Za-z][A-Za-z0-9_]{0,63}$")


class ComingToolSchema(NewToolSchema):
    tool_uuid = fields.Text(
        required=True, validate=fields.Length(1, 36), description="by which nodes attach it; it gets a new one"
    )


class CreateFromTemplateSchema(BodySchema):
    call_type = fields.Text(required=True, validate=fields.Choice(("inbound", "outbound"), "literal_error"))
    use_case = fields.Text(required=True)
    activity_description = fields.Text(required=True)


class NullableSchema(BodySchema):
    """A body in which an explicit null counts as not sent."""

    @post_load
    def drop_nulls(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {name: value for name, value in data.items() if value is not None}


class AmbientNoiseSchema(BodySchema):
    enabled = fields.Flag()
    volume = fields.Number()

    class Meta:
        unknown = INCLUDE


class FieldMappingSchema(BodySchema):
    context_path = fields.Text(required=True, validate=fields.Length(1, 255))
    destination_field = fields.Text(required=True, validate=FIELD_NAME)


# Where the called number has no workflow, there is nothing to replace the phrase by.
REPLACEABLE = {name: text for name, text in PHRASES[DEFAULT_LANGUAGE].items() if name != "number_not_in_service"}


def _check_phrase(text: str) -> None:
    """A phrase may be spoken when nothing is known of a call, so it can't have variables."""
    if not text.strip():
        raise ValidationError(Message("Value error, a phrase is spoken, so it can't be blank"))
    if next(placeholders(text), None) is not None:
        raise ValidationError(Message("Value error, a phrase is spoken as it is written: it can't have {{variables}}"))


class PhrasesSchema(NullableSchema):
    """What the service speaks by itself, by name, instead of its own sentences; see docs/agents.md."""

    error_messages = {
        "unknown": Message(f"There is no such phrase; the phrases are {', '.join(REPLACEABLE)}", "extra_forbidden")
    }

    class Meta:
        unknown = RAISE
        include = {
            name: fields.Text(allow_none=True, validate=[fields.Length(max=1000), _check_phrase], description=text)
            for name, text in REPLACEABLE.items()
        }


def _check_pause(value: Any) -> None:
    if read_end_of_speech(value) is None:
        raise ValidationError(Message(f"Value error, end_of_speech must be {PAUSE}"))


def _percent() -> fields.Number:
    return fields.Number(allow_none=True, validate=fields.Range(min=0, max=100), description="percent, by the cases")


class RequiredCoverageSchema(NullableSchema):
    nodes = _percent()
    edges = _percent()
    variables = _percent()

    class Meta:
        unknown = RAISE


class PublishRequirementsSchema(NullableSchema):
    """What a draft has to meet before it can be published; see docs/testing.md."""

    lint = fields.Text(
        allow_none=True,
        validate=fields.Choice(("errors", "warnings")),
        description="errors: there are no errors; warnings: neither errors nor warnings",
    )
    cases = fields.Flag(allow_none=True, description="there are enabled cases, and all of them pass")
    coverage = fields.Model(RequiredCoverageSchema, allow_none=True)

    class Meta:
        unknown = RAISE


class DoNotCallSettingsSchema(BodySchema):
    """How somebody refuses further calls, besides by saying so."""

    enabled = fields.Flag(
        allow_none=True,
        description="whether a person who wants no more calls ends the call and gets on the list; true when absent",
    )
    key = fields.Text(allow_none=True, validate=fields.Pattern(r"^[0-9*]$"), description="the key that says so")
    words = fields.Items(
        fields.Text(validate=fields.Length(1, 100)),
        allow_none=True,
        validate=fields.Length(max=50),
        description="what says so when nothing else is said",
    )


class ConfigurationsSchema(NullableSchema):
    """How the calls of a workflow behave. What isn't known here is kept; an explicit null counts as not sent."""

    ambient_noise_configuration = fields.Model(AmbientNoiseSchema, allow_none=True)
    max_call_duration = fields.Integer(
        allow_none=True,
        validate=fields.Range(min=0, min_inclusive=False, max=1200),
        description="seconds; 300 when absent",
    )
    max_user_idle_timeout = fields.Number(allow_none=True, description="seconds; 10 when absent")
    smart_turn_stop_secs = fields.Number(allow_none=True)
    turn_start_strategy = fields.Text(
        allow_none=True, validate=fields.Choice(("default", "min_words", "provisional_vad"), "literal_error")
    )
    turn_start_min_words = fields.Integer(allow_none=True)
    provisional_vad_pause_secs = fields.Number(allow_none=True)
    turn_stop_strategy = fields.Text(
        allow_none=True, validate=fields.Choice(("transcription", "turn_analyzer"), "literal_error")
    )
    dictionary = fields.Text(allow_none=True)
    context_compaction_enabled = fields.Flag(allow_none=True)
    text_chat_inactivity_timeout_seconds = fields.Integer(allow_none=True, validate=fields.Range(min=60, max=10500))
    language = fields.Text(allow_none=True, description="a language tag such as de-DE; en-US when absent")
    voice = fields.Text(allow_none=True, description="natural, standard, or the carrier's own name of a voice")
    phrases = fields.Model(PhrasesSchema, allow_none=True)
    do_not_call = fields.Model(DoNotCallSettingsSchema, allow_none=True)
    filler_after = fields.Number(
        allow_none=True,
        validate=fields.Range(min=SOONEST_FILLER, max=LATEST_FILLER),
        description="seconds until the caller of a slow reply is asked to wait; 2.5 when absent",
    )
    first_sentence = fields.Text(
        allow_none=True,
        validate=fields.Choice(GOES_AHEAD, "literal_error"),
        description="whether a reply's first sentence goes ahead; auto when absent. Nodes have one of their own",
    )
    end_of_speech = Raw(
        allow_none=True,
        validate=_check_pause,
        metadata={
            "description": "the pause that ends what the caller says; nodes have one of their own",
            "oneOf": [
                {"type": "string", "enum": ["quick", "normal", "patient"]},
                {"type": "number", "minimum": SHORTEST_PAUSE, "maximum": LONGEST_PAUSE},
                {"type": "null"},
            ],
        },
    )
    speech_hints = fields.Items(
        fields.Text(validate=fields.Length(1, LONGEST_HINT)),
        allow_none=True,
        validate=fields.Length(max=MOST_HINTS),
        description="phrases that the speech recogniser is to expect at every node",
    )
    lint_ignore = fields.Items(
        fields.Text(),
        allow_none=True,
        validate=fields.Length(max=100),
        description="codes of lint that nothing is to be said about in this workflow",
    )
    publish_requirements = fields.Model(PublishRequirementsSchema, allow_none=True)
    external_pbx_field_mappings = fields.Items(
        fields.Model(FieldMappingSchema), allow_none=True, validate=fields.Length(max=100)
    )
    external_pbx_lead_headers = fields.Items(
        fields.Text(validate=FIELD_NAME), allow_none=True, validate=fields.Length(max=50)
    )

    class Meta:
        unknown = INCLUDE


class ConfiguredSchema(BodySchema):
    """A request with a workflow's configurations; what a model of its own can't be sent is named, too."""

    workflow_configurations = fields.Model(ConfigurationsSchema, load_default=None)

    @post_load
    def note_unknown_parameters(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        with suppress(InvalidInput):  # which is raised when the override is stored
            override = (data["workflow_configurations"] or {}).get(OVERRIDE)
            warn(UNKNOWN_FIELDS, [] if override is None else unknown(language_model_of(override)))
        return data


class CreateWorkflowSchema(ConfiguredSchema):
    name = fields.Text(required=True)
    workflow_definition = fields.Object(required=True)
    tools = fields.Items(
        fields.Model(ComingToolSchema),
        load_default=list,
        validate=fields.Length(max=MOST_TOOLS),
        description="tools that nodes attach; those that are here already aren't stored once more",
    )
    cases = fields.Items(
        fields.Object(metadata=CASE),
        load_default=list,
        validate=fields.Length(max=MOST_CASES),
        description="conversation cases that are stored with it",
    )
    purpose = fields.Text(load_default=None, description="an example has it, to be chosen by; it isn't stored")
    direction = fields.Text(load_default=None, description="an example has it, to be chosen by; it isn't stored")


class UpdateWorkflowSchema(ConfiguredSchema):
    name = fields.Text(load_default=None)
    workflow_definition = fields.Object(load_default=None)
    template_context_variables = fields.Object(load_default=None)


class UpdateStatusSchema(BodySchema):
    status = fields.Text(required=True, validate=fields.Choice(("active", "archived")))


class StatusQuerySchema(QuerySchema):
    status = fields.Text(load_default=None, description="active, archived, or both with a comma between")


class VersionsQuerySchema(QuerySchema):
    limit = fields.Integer(load_default=None, validate=fields.Range(min=1, max=100))
    offset = fields.Integer(load_default=0, validate=fields.Range(min=0))


class CallDispositionCodesSchema(ResponseSchema):
    disposition_codes = fields.Items(fields.Text(), required=True)


class WorkflowSchema(ResponseSchema):
    id = fields.Integer(required=True)
    name = fields.Text(required=True)
    status = fields.Text(required=True)
    created_at = fields.Time(required=True)
    workflow_definition = fields.Object(required=True)
    current_definition_id = fields.Integer(required=True, allow_none=True)
    template_context_variables = fields.Object(required=True, allow_none=True)
    call_disposition_codes = fields.Model(CallDispositionCodesSchema, required=True, allow_none=True)
    total_runs = fields.Integer(required=True, allow_none=True)
    workflow_configurations = fields.Object(required=True, allow_none=True)
    version_number = fields.Integer(required=True, allow_none=True)
    version_status = fields.Text(required=True, allow_none=True)
    workflow_uuid = fields.Text(required=True, allow_none=True)


class ListedWorkflowSchema(ResponseSchema):
    id = fields.Integer(required=True)
    name = fields.Text(required=True)
    status = fields.Text(required=True)
    created_at = fields.Time(required=True)
    total_runs = fields.Integer(required=True)
    folder_id = fields.Integer(required=True, allow_none=True)
    workflow_uuid = fields.Text(required=True, allow_none=True)


class SummarySchema(ResponseSchema):
    id = fields.Integer(required=True)
    name = fields.Text(required=True)


class CountSchema(ResponseSchema):
    total = fields.Integer(required=True)
    active = fields.Integer(required=True)
    archived = fields.Integer(required=True)


class VersionSchema(ResponseSchema):
    id = fields.Integer(required=True)
    version_number = fields.Integer(required=True)
    status = fields.Text(required=True)
    content_hash = fields.Text(
        required=True, description="SHA-256 of its definition, configurations and variables; runs show it, too"
    )
    created_at = fields.Time(required=True)
    published_at = fields.Time(required=True, allow_none=True)
    workflow_json = fields.Object(required=True)
    workflow_configurations = fields.Object(required=True, allow_none=True)
    template_context_variables = fields.Object(required=True, allow_none=True)


class PublishedSchema(ResponseSchema):
    id = fields.Integer(required=True, description="of the version, not of the workflow")
    version_number = fields.Integer(required=True)
    status = fields.Text(required=True)
    published_at = fields.Time(required=True)


class FindingSchema(ResponseSchema):
    kind = fields.Text(required=True, validate=fields.Choice(("node", "edge", "workflow")))
    id = fields.Text(required=True, allow_none=True)
    field = fields.Text(required=True, allow_none=True)
    message = fields.Text(required=True)


class ValidationSchema(ResponseSchema):
    is_valid = fields.Flag(required=True)
    errors = fields.Items(fields.Model(FindingSchema), required=True)
    warnings = fields.Items(fields.Model(FindingSchema), required=True)


# -- node types: clients refuse members that they don't know


class PropertyOptionSchema(ResponseSchema):
    value = Raw(required=True, metadata={"type": ["string", "integer", "boolean", "number"]})
    label = fields.Text(required=True)
    description = fields.Text(required=True, allow_none=True)


class DisplayOptionsSchema(ResponseSchema):
    show = Dict(fields.Text(), fields.Items(Raw()), required=True, allow_none=True)
    hide = Dict(fields.Text(), fields.Items(Raw()), required=True, allow_none=True)


class PropertySpecSchema(ResponseSchema):
    name = fields.Text(required=True)
    type = fields.Text(required=True)
    display_name = fields.Text(required=True)
    description = fields.Text(required=True)
    llm_hint = fields.Text(required=True, allow_none=True)
    default = Raw(required=True, allow_none=True)
    required = fields.Flag(required=True)
    placeholder = fields.Text(required=True, allow_none=True)
    display_options = fields.Model(DisplayOptionsSchema, required=True, allow_none=True)
    options = fields.Items(fields.Model(PropertyOptionSchema), required=True, allow_none=True)
    properties = fields.Items(fields.Model(lambda: PropertySpecSchema()), required=True, allow_none=True)
    min_value = fields.Number(required=True, allow_none=True)
    max_value = fields.Number(required=True, allow_none=True)
    min_length = fields.Integer(required=True, allow_none=True)
    max_length = fields.Integer(required=True, allow_none=True)
    pattern = fields.Text(required=True, allow_none=True)
    editor = fields.Text(required=True, allow_none=True)


class NodeExampleSchema(ResponseSchema):
    name = fields.Text(required=True)
    description = fields.Text(required=True, allow_none=True)
    data = fields.Object(required=True)


class GraphConstraintsSchema(ResponseSchema):
    min_incoming = fields.Integer(required=True, allow_none=True)
    max_incoming = fields.Integer(required=True, allow_none=True)
    min_outgoing = fields.Integer(required=True, allow_none=True)
    max_outgoing = fields.Integer(required=True, allow_none=True)


class NodeSpecSchema(ResponseSchema):
    name = fields.Text(required=True)
    display_name = fields.Text(required=True)
    description = fields.Text(required=True)
    llm_hint = fields.Text(required=True, allow_none=True)
    category = fields.Text(required=True, metadata={"enum": ["call_node", "global_node", "trigger", "integration"]})
    icon = fields.Text(required=True)
    version = fields.Text(required=True)
    properties = fields.Items(fields.Model(PropertySpecSchema), required=True)
    examples = fields.Items(fields.Model(NodeExampleSchema), required=True)
    graph_constraints = fields.Model(GraphConstraintsSchema, required=True, allow_none=True)


class NodeTypesSchema(ResponseSchema):
    spec_version = fields.Text(required=True)
    node_types = fields.Items(fields.Model(NodeSpecSchema), required=True)
