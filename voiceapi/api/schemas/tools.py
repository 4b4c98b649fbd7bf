"""Schemas of tools and of their definitions, one for each type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema
from marshmallow.fields import Raw

from ...tools.http_api import LONGEST_TIMEOUT_MS
from ...tools.stored import CATEGORIES, mismatch
from ..errors import Message
from . import fields
from .base import BodySchema, QuerySchema, ResponseSchema

TYPES = ("string", "number", "boolean", "object", "array")
MESSAGES = ("none", "custom", "audio")
URL = fields.Pattern("^https?://.+$")


class Method(fields.Text):
    """An HTTP method; small letters are accepted."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        return super()._deserialize(value, attr, data, **kwargs).upper()


class Texts(fields.Object):
    """An object whose members are texts."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(metadata={"additionalProperties": {"type": "string"}}, **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> dict[str, Any]:
        found = super()._deserialize(value, attr, data, **kwargs)
        wrong: dict[str | int, Any] = {
            name: [fields.STRING] for name, text in found.items() if not isinstance(text, str)
        }
        if wrong:
            raise ValidationError(wrong)
        return found


class ToolParameterSchema(BodySchema):
    name = fields.Text(required=True)
    type = fields.Text(required=True, validate=fields.Choice(TYPES, "literal_error"))
    description = fields.Text(required=True)
    required = fields.Flag(load_default=True)


class PresetParameterSchema(BodySchema):
    name = fields.Text(required=True)
    type = fields.Text(required=True, validate=fields.Choice(TYPES, "literal_error"))
    value_template = fields.Text(required=True)
    required = fields.Flag(load_default=True)


class HttpConfigSchema(BodySchema):
    method = Method(required=True, validate=fields.Choice(("GET", "POST", "PUT", "PATCH", "DELETE")))
    url = fields.Text(required=True, validate=URL)
    headers = Texts(load_default=None)
    credential_uuid = fields.Text(load_default=None)
    parameters = fields.Items(fields.Model(ToolParameterSchema), load_default=None)
    preset_parameters = fields.Items(fields.Model(PresetParameterSchema), load_default=None)
    timeout_ms = fields.Integer(
        load_default=5000, allow_none=True, validate=fields.Range(min=1, max=LONGEST_TIMEOUT_MS)
    )
    customMessage = fields.Text(load_default=None)
    customMessageType = fields.Text(load_default=None, validate=fields.Choice(("text", "audio"), "literal_error"))
    customMessageRecordingId = fields.Text(load_default=None)
    body_template = fields.Object(load_default=None)


class EndCallConfigSchema(BodySchema):
    messageType = fields.Text(load_default="none", validate=fields.Choice(MESSAGES, "literal_error"))
    customMessage = fields.Text(load_default=None)
    audioRecordingId = fields.Text(load_default=None)
    endCallReason = fields.Flag(load_default=False)
    endCallReasonDescription = fields.Text(load_default=None)


class ResolverSchema(BodySchema):
    type = fields.Text(load_default="http", validate=fields.Choice(("http",), "literal_error"))
    url = fields.Text(required=True, validate=URL)
    headers = Texts(load_default=None)
    credential_uuid = fields.Text(load_default=None)
    timeout_ms = fields.Integer(load_default=3000, validate=fields.Range(min=500, max=5000))
    wait_message = fields.Text(load_default=None)
    parameters = fields.Items(fields.Model(ToolParameterSchema), load_default=None)
    preset_parameters = fields.Items(fields.Model(PresetParameterSchema), load_default=None)


class RouteSchema(BodySchema):
    context_value = fields.Text(required=True, validate=fields.Length(1, 255))
    destination = fields.Text(required=True, validate=fields.Length(1, 255))


def _refuse_duplicates(routes: list[Mapping[str, str]]) -> None:
    values = [route["context_value"].strip().casefold() for route in routes]
    if len(set(values)) < len(values):
        raise ValidationError([Message("Value error, each context_value may be there once, in whatever case")])


class RuleSchema(BodySchema):
    context_path = fields.Text(required=True, validate=fields.Length(1, 255))
    routes = fields.Items(
        fields.Model(RouteSchema), required=True, validate=[fields.Length(1, 100), _refuse_duplicates]
    )


class ContextMappingSchema(BodySchema):
    """Rules, or a single rule without the list around it."""

    rules = fields.Items(fields.Model(RuleSchema), load_default=None, validate=fields.Length(1, 20))
    context_path = fields.Text(load_default=None, validate=fields.Length(1, 255))
    routes = fields.Items(
        fields.Model(RouteSchema), load_default=None, validate=[fields.Length(1, 100), _refuse_duplicates]
    )
    fallback_destination = fields.Text(load_default=None, validate=fields.Length(max=255))

    @validates_schema(skip_on_field_errors=True)
    def complete(self, data: dict[str, Any], **kwargs: Any) -> None:
        if not data["rules"] and not (data["context_path"] and data["routes"]):
            raise ValidationError([Message("Value error, rules are required, or a context_path with its routes")])


class TransferCallConfigSchema(BodySchema):
    destination_source = fields.Text(
        load_default="static", validate=fields.Choice(("static", "dynamic", "context_mapping"), "literal_error")
    )
    destination = fields.Text(load_default="")
    messageType = fields.Text(load_default="none", validate=fields.Choice(MESSAGES, "literal_error"))
    customMessage = fields.Text(load_default=None)
    audioRecordingId = fields.Text(load_default=None)
    timeout = fields.Integer(load_default=30, validate=fields.Range(min=5, max=120))
    parameters = fields.Items(fields.Model(ToolParameterSchema), load_default=None)
    resolver = fields.Model(ResolverSchema, load_default=None)
    context_mapping = fields.Model(ContextMappingSchema, load_default=None)

    @validates_schema(skip_on_field_errors=True)
    def complete(self, data: dict[str, Any], **kwargs: Any) -> None:
        for source, member in (("dynamic", "resolver"), ("context_mapping", "context_mapping")):
            if data["destination_source"] == source and data[member] is None:
                text = f"Value error, {member} is required when destination_source is {source}"
                raise ValidationError([Message(text)])


class McpConfigSchema(BodySchema):
    transport = fields.Text(
        load_default="streamable_http", validate=fields.Choice(("streamable_http",), "literal_error")
    )
    url = fields.Text(required=True, validate=URL)
    credential_uuid = fields.Text(load_default=None)
    tools_filter = fields.Items(fields.Text(), load_default=list)
    timeout_secs = fields.Integer(load_default=30, validate=fields.Range(min=0))
    sse_read_timeout_secs = fields.Integer(load_default=300, validate=fields.Range(min=0))
    discovered_tools = fields.Items(fields.Object(), load_default=list)


class ToolDefinitionSchema(BodySchema):
    schema_version = fields.Integer(load_default=1)


class HttpDefinitionSchema(ToolDefinitionSchema):
    type = fields.Text(required=True, validate=fields.Choice(("http_api",)))
    config = fields.Model(HttpConfigSchema, required=True)


class EndCallDefinitionSchema(ToolDefinitionSchema):
    type = fields.Text(required=True, validate=fields.Choice(("end_call",)))
    config = fields.Model(EndCallConfigSchema, required=True)


class TransferCallDefinitionSchema(ToolDefinitionSchema):
    type = fields.Text(required=True, validate=fields.Choice(("transfer_call",)))
    config = fields.Model(TransferCallConfigSchema, required=True)


class CalculatorDefinitionSchema(ToolDefinitionSchema):
    type = fields.Text(required=True, validate=fields.Choice(("calculator",)))


class McpDefinitionSchema(ToolDefinitionSchema):
    type = fields.Text(required=True, validate=fields.Choice(("mcp",)))
    config = fields.Model(McpConfigSchema, required=True)


DEFINITIONS = {
    "http_api": HttpDefinitionSchema,
    "end_call": EndCallDefinitionSchema,
    "transfer_call": TransferCallDefinitionSchema,
    "calculator": CalculatorDefinitionSchema,
    "mcp": McpDefinitionSchema,
}


class NewToolSchema(BodySchema):
    name = fields.Text(required=True, validate=fields.Length(max=255))
    description = fields.Text(load_default=None)
    category = fields.Text(
        load_default=None,
        validate=fields.Choice(("", *CATEGORIES), "literal_error"),
        description="the definition's type when it is left out or empty",
    )
    icon = fields.Text(load_default="globe", allow_none=True, validate=fields.Length(max=50))
    icon_color = fields.Text(load_default="#3B82F6", allow_none=True, validate=fields.Length(max=7))
    definition = fields.TaggedObject("type", DEFINITIONS, required=True)

    @validates_schema(skip_on_field_errors=True)
    def one_kind(self, data: dict[str, Any], **kwargs: Any) -> None:
        category, type = data["category"], data["definition"]["type"]
        if category and category != type:
            raise ValidationError([Message(f"Value error, {mismatch(category, type)}")])


class PythonParametersSchema(BodySchema):
    type = fields.Text(load_default="object")
    properties = fields.Object(load_default=dict)
    required = fields.Items(fields.Text(), load_default=list)


class PythonConfigSchema(BodySchema):
    parameters = fields.Model(PythonParametersSchema, required=True)
    timeout_seconds = fields.Number(load_default=10.0)


class PythonDefinitionSchema(ToolDefinitionSchema):
    type = fields.Text(required=True, validate=fields.Choice(("python",)))
    config = fields.Model(PythonConfigSchema, required=True)


class DescribedToolSchema(NewToolSchema):
    """A tool as a file of cases describes it, which may be a function of an app, too."""

    definition = fields.TaggedObject("type", {**DEFINITIONS, "python": PythonDefinitionSchema}, required=True)


class ToolChangeSchema(BodySchema):
    name = fields.Text(load_default=None, validate=fields.Length(max=255))
    description = fields.Text(load_default=None)
    icon = fields.Text(load_default=None, validate=fields.Length(max=50))
    icon_color = fields.Text(load_default=None, validate=fields.Length(max=7))
    definition = fields.TaggedObject("type", DEFINITIONS, load_default=None)
    status = fields.Text(load_default=None, description="active, archived or draft")


class ToolQuerySchema(QuerySchema):
    status = fields.Text(load_default="", description="one or a comma list of active, archived, draft")
    category = fields.Text(load_default="", description="kind of tool, such as http_api")


class ToolAuthorSchema(ResponseSchema):
    id = fields.Integer(required=True)
    provider_id = fields.Text(required=True)


class ToolSchema(ResponseSchema):
    id = fields.Integer(required=True)
    tool_uuid = fields.Text(required=True)
    name = fields.Text(required=True)
    description = fields.Text(required=True, allow_none=True)
    category = fields.Text(required=True)
    icon = fields.Text(required=True, allow_none=True)
    icon_color = fields.Text(required=True, allow_none=True)
    status = fields.Text(required=True)
    definition = fields.Object(required=True)
    created_at = fields.Time(required=True)
    updated_at = fields.Time(required=True, allow_none=True)
    created_by = fields.Model(ToolAuthorSchema, required=True, allow_none=True, description="null: keys have no users")


class ArchivedToolSchema(ResponseSchema):
    status = fields.Text(required=True)
    tool_uuid = fields.Text(required=True)


class TrialSchema(BodySchema):
    llm_params = fields.Object(load_default=dict, description="what the model would give")
    preset_params = fields.Object(load_default=dict, description="in place of preset parameters' templates")


class TrialResultSchema(ResponseSchema):
    status = fields.Text(required=True, metadata={"enum": ["success", "error"]})
    status_code = fields.Integer(required=True, allow_none=True)
    data = Raw(required=True, allow_none=True, metadata={"description": "the answer's JSON, whatever it is"})
    error = fields.Text(required=True, allow_none=True)
    hint = fields.Text(required=True, allow_none=True)
    request_method = fields.Text(required=True)
    request_url = fields.Text(required=True)
    request_headers = Texts(required=True, allow_none=True)
    request_body = fields.Object(required=True, allow_none=True)
    request_params = Texts(required=True, allow_none=True)
    duration_ms = fields.Integer(required=True)
