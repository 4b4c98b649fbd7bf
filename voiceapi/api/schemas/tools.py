"""Schemas of tools and of their definitions, one for each type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema
from marshmallow.fields import Raw

from ...tools.http_api import LONGEST_TIMEOUT_MS
from ...tools.stored import CATEGORIES, mismatch
from ..errors import Message
from .base import BodySchema, QuerySchema, ResponseSchema
from .fields import STRING, Choice, Flag, Integer, Items, Length, Model, Object, Pattern, Range, Tagged, Text, Time

TYPES = ("string", "number", "boolean", "object", "array")
MESSAGES = ("none", "custom", "audio")
URL = Pattern("^https?://.+$")


class Method(Text):
    """An HTTP method; small letters are accepted."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        return super()._deserialize(value, attr, data, **kwargs).upper()


class Texts(Object):
    """An object whose members are texts."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(metadata={"additionalProperties": {"type": "string"}}, **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> dict[str, Any]:
        found = super()._deserialize(value, attr, data, **kwargs)
        wrong: dict[str | int, Any] = {name: [STRING] for name, text in found.items() if not isinstance(text, str)}
        if wrong:
            raise ValidationError(wrong)
        return found


def _nullable(kind: type[Text], **kwargs: Any) -> Text:
    return kind(load_default=None, allow_none=True, **kwargs)


class ToolParameterSchema(BodySchema):
    name = Text(required=True)
    type = Text(required=True, validate=Choice(TYPES, "literal_error"))
    description = Text(required=True)
    required = Flag(load_default=True)


class PresetParameterSchema(BodySchema):
    name = Text(required=True)
    type = Text(required=True, validate=Choice(TYPES, "literal_error"))
    value_template = Text(required=True)
    required = Flag(load_default=True)


class HttpConfigSchema(BodySchema):
    method = Method(required=True, validate=Choice(("GET", "POST", "PUT", "PATCH", "DELETE")))
    url = Text(required=True, validate=URL)
    headers = Texts(load_default=None, allow_none=True)
    credential_uuid = _nullable(Text)
    parameters = Items(Model(ToolParameterSchema), load_default=None, allow_none=True)
    preset_parameters = Items(Model(PresetParameterSchema), load_default=None, allow_none=True)
    timeout_ms = Integer(load_default=5000, allow_none=True, validate=Range(min=1, max=LONGEST_TIMEOUT_MS))
    customMessage = _nullable(Text)
    customMessageType = _nullable(Text, validate=Choice(("text", "audio"), "literal_error"))
    customMessageRecordingId = _nullable(Text)
    body_template = Object(load_default=None, allow_none=True)


class EndCallConfigSchema(BodySchema):
    messageType = Text(load_default="none", validate=Choice(MESSAGES, "literal_error"))
    customMessage = _nullable(Text)
    audioRecordingId = _nullable(Text)
    endCallReason = Flag(load_default=False)
    endCallReasonDescription = _nullable(Text)


class ResolverSchema(BodySchema):
    type = Text(load_default="http", validate=Choice(("http",), "literal_error"))
    url = Text(required=True, validate=URL)
    headers = Texts(load_default=None, allow_none=True)
    credential_uuid = _nullable(Text)
    timeout_ms = Integer(load_default=3000, validate=Range(min=500, max=5000))
    wait_message = _nullable(Text)
    parameters = Items(Model(ToolParameterSchema), load_default=None, allow_none=True)
    preset_parameters = Items(Model(PresetParameterSchema), load_default=None, allow_none=True)


class RouteSchema(BodySchema):
    context_value = Text(required=True, validate=Length(1, 255))
    destination = Text(required=True, validate=Length(1, 255))


def _refuse_duplicates(routes: list[Mapping[str, str]]) -> None:
    values = [route["context_value"].strip().casefold() for route in routes]
    if len(set(values)) < len(values):
        raise ValidationError([Message("Value error, each context_value may be there once, in whatever case")])


class RuleSchema(BodySchema):
    context_path = Text(required=True, validate=Length(1, 255))
    routes = Items(Model(RouteSchema), required=True, validate=[Length(1, 100), _refuse_duplicates])


class ContextMappingSchema(BodySchema):
    """Rules, or a single rule without the list around it."""

    rules = Items(Model(RuleSchema), load_default=None, allow_none=True, validate=Length(1, 20))
    context_path = _nullable(Text, validate=Length(1, 255))
    routes = Items(
        Model(RouteSchema), load_default=None, allow_none=True, validate=[Length(1, 100), _refuse_duplicates]
    )
    fallback_destination = _nullable(Text, validate=Length(max=255))

    @validates_schema(skip_on_field_errors=True)
    def complete(self, data: dict[str, Any], **kwargs: Any) -> None:
        if not data["rules"] and not (data["context_path"] and data["routes"]):
            raise ValidationError([Message("Value error, rules are required, or a context_path with its routes")])


class TransferCallConfigSchema(BodySchema):
    destination_source = Text(
        load_default="static", validate=Choice(("static", "dynamic", "context_mapping"), "literal_error")
    )
    destination = Text(load_default="")
    messageType = Text(load_default="none", validate=Choice(MESSAGES, "literal_error"))
    customMessage = _nullable(Text)
    audioRecordingId = _nullable(Text)
    timeout = Integer(load_default=30, validate=Range(min=5, max=120))
    parameters = Items(Model(ToolParameterSchema), load_default=None, allow_none=True)
    resolver = Model(ResolverSchema, load_default=None, allow_none=True)
    context_mapping = Model(ContextMappingSchema, load_default=None, allow_none=True)

    @validates_schema(skip_on_field_errors=True)
    def complete(self, data: dict[str, Any], **kwargs: Any) -> None:
        for source, member in (("dynamic", "resolver"), ("context_mapping", "context_mapping")):
            if data["destination_source"] == source and data[member] is None:
                text = f"Value error, {member} is required when destination_source is {source}"
                raise ValidationError([Message(text)])


class McpConfigSchema(BodySchema):
    transport = Text(load_default="streamable_http", validate=Choice(("streamable_http",), "literal_error"))
    url = Text(required=True, validate=URL)
    credential_uuid = _nullable(Text)
    tools_filter = Items(Text(), load_default=list)
    timeout_secs = Integer(load_default=30, validate=Range(min=0))
    sse_read_timeout_secs = Integer(load_default=300, validate=Range(min=0))
    discovered_tools = Items(Object(), load_default=list)


class DefinitionSchema(BodySchema):
    schema_version = Integer(load_default=1)


class HttpDefinitionSchema(DefinitionSchema):
    type = Text(required=True, validate=Choice(("http_api",)))
    config = Model(HttpConfigSchema, required=True)


class EndCallDefinitionSchema(DefinitionSchema):
    type = Text(required=True, validate=Choice(("end_call",)))
    config = Model(EndCallConfigSchema, required=True)


class TransferCallDefinitionSchema(DefinitionSchema):
    type = Text(required=True, validate=Choice(("transfer_call",)))
    config = Model(TransferCallConfigSchema, required=True)


class CalculatorDefinitionSchema(DefinitionSchema):
    type = Text(required=True, validate=Choice(("calculator",)))


class McpDefinitionSchema(DefinitionSchema):
    type = Text(required=True, validate=Choice(("mcp",)))
    config = Model(McpConfigSchema, required=True)


DEFINITIONS = {
    "http_api": HttpDefinitionSchema,
    "end_call": EndCallDefinitionSchema,
    "transfer_call": TransferCallDefinitionSchema,
    "calculator": CalculatorDefinitionSchema,
    "mcp": McpDefinitionSchema,
}


class NewToolSchema(BodySchema):
    name = Text(required=True, validate=Length(max=255))
    description = _nullable(Text)
    category = Text(
        load_default=None,
        allow_none=True,
        validate=Choice(("", *CATEGORIES), "literal_error"),
        metadata={"description": "the definition's type when it is left out or empty"},
    )
    icon = Text(load_default="globe", allow_none=True, validate=Length(max=50))
    icon_color = Text(load_default="#3B82F6", allow_none=True, validate=Length(max=7))
    definition = Tagged("type", DEFINITIONS, required=True)

    @validates_schema(skip_on_field_errors=True)
    def one_kind(self, data: dict[str, Any], **kwargs: Any) -> None:
        category, type = data["category"], data["definition"]["type"]
        if category and category != type:
            raise ValidationError([Message(f"Value error, {mismatch(category, type)}")])


class ToolChangeSchema(BodySchema):
    name = _nullable(Text, validate=Length(max=255))
    description = _nullable(Text)
    icon = _nullable(Text, validate=Length(max=50))
    icon_color = _nullable(Text, validate=Length(max=7))
    definition = Tagged("type", DEFINITIONS, load_default=None, allow_none=True)
    status = _nullable(Text, metadata={"description": "active, archived or draft"})


class ToolQuerySchema(QuerySchema):
    status = Text(load_default="", metadata={"description": "one or a comma list of active, archived, draft"})
    category = Text(load_default="", metadata={"description": "kind of tool, such as http_api"})


class ToolAuthorSchema(ResponseSchema):
    id = Integer(required=True)
    provider_id = Text(required=True)


class ToolSchema(ResponseSchema):
    id = Integer(required=True)
    tool_uuid = Text(required=True)
    name = Text(required=True)
    description = Text(required=True, allow_none=True)
    category = Text(required=True)
    icon = Text(required=True, allow_none=True)
    icon_color = Text(required=True, allow_none=True)
    status = Text(required=True)
    definition = Object(required=True)
    created_at = Time(required=True)
    updated_at = Time(required=True, allow_none=True)
    created_by = Model(
        ToolAuthorSchema, required=True, allow_none=True, metadata={"description": "null: keys have no users"}
    )


class ArchivedToolSchema(ResponseSchema):
    status = Text(required=True)
    tool_uuid = Text(required=True)


class TrialSchema(BodySchema):
    llm_params = Object(load_default=dict, metadata={"description": "what the model would give"})
    preset_params = Object(load_default=dict, metadata={"description": "in place of preset parameters' templates"})


class TrialResultSchema(ResponseSchema):
    status = Text(required=True, metadata={"enum": ["success", "error"]})
    status_code = Integer(required=True, allow_none=True)
    data = Raw(required=True, allow_none=True, metadata={"description": "the answer's JSON, whatever it is"})
    error = Text(required=True, allow_none=True)
    hint = Text(required=True, allow_none=True)
    request_method = Text(required=True)
    request_url = Text(required=True)
    request_headers = Texts(required=True, allow_none=True)
    request_body = Object(required=True, allow_none=True)
    request_params = Texts(required=True, allow_none=True)
    duration_ms = Integer(required=True)
