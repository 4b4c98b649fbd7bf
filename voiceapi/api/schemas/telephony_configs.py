"""Schemas of telephony configurations. Those of a carrier's credentials are made from its entry in PROVIDERS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema
from marshmallow.fields import Raw

from ...telephony.configurations import SLOWEST_PACE
from ...telephony.providers import PROVIDERS, Field, FieldType, Provider
from .base import BodySchema, ResponseSchema
from .fields import Flag, Integer, Items, Length, Model, Number, Object, Range, Tagged, Text, Time

# How each kind of form field is read, and its type in the document.
KINDS: Mapping[FieldType, tuple[type[Text | Flag], str]] = {
    "text": (Text, "string"),
    "password": (Text, "string"),
    "textarea": (Text, "string"),
    "boolean": (Flag, "boolean"),
}
FIRST_DEFAULT = (
    "Whether outbound calls that name no configuration go through this one. "
    "Left out, only the organization's first configuration of a real carrier becomes the default."
)
PACE = "How many calls may be placed in a second; null for the carrier's own pace."


def _read(field: Field) -> Text | Flag:
    kind, _ = KINDS[field.type]
    if field.required:
        return kind(required=True, validate=Length(min=1))
    return kind(load_default=field.default, allow_none=field.default is None)


def _schema(provider: Provider) -> type[Schema]:
    pace = Number(allow_none=True, validate=Range(min=SLOWEST_PACE))
    return BodySchema.from_dict({field.name: _read(field) for field in provider.fields} | {"calls_per_second": pace})


def _document(provider: Provider) -> dict[str, Any]:
    """The JSON Schema of what `_schema` reads, with the tag that says which carrier it is."""
    properties: dict[str, Any] = {"provider": {"const": provider.name}}
    for field in provider.fields:
        _, kind = KINDS[field.type]
        shape = {"type": kind, "minLength": 1} if field.required else {"type": kind, "default": field.default}
        if not field.required and field.default is None:
            shape["type"] = [kind, "null"]
        properties[field.name] = {**shape, "description": field.description}
    properties["calls_per_second"] = {"type": ["number", "null"], "minimum": SLOWEST_PACE, "description": PACE}
    required = ["provider", *(field.name for field in provider.fields if field.required)]
    return {"title": provider.display_name, "type": "object", "properties": properties, "required": required}


def _config(**kwargs: Any) -> Tagged:
    shapes = [_document(provider) for provider in PROVIDERS.values()]
    if kwargs.get("allow_none"):
        shapes.append({"type": "null"})
    schemas = {name: _schema(provider) for name, provider in PROVIDERS.items()}
    return Tagged("provider", schemas, metadata={"oneOf": shapes}, **kwargs)


class NewConfigurationSchema(BodySchema):
    name = Text(required=True, validate=Length(1, 64))
    is_default_outbound = Flag(load_default=None, metadata={"description": FIRST_DEFAULT})
    config = _config(required=True)


class ConfigurationChangeSchema(BodySchema):
    name = Text(load_default=None, allow_none=True, validate=Length(1, 64))
    config = _config(load_default=None, allow_none=True)


class ConnectionSchema(ResponseSchema):
    """What the list and the detail of a configuration share."""

    id = Integer(required=True)
    name = Text(required=True)
    provider = Text(required=True)
    connectivity = Text(required=True, metadata={"enum": ["api", "sip"]})
    is_default_outbound = Flag(required=True)
    inactive = Flag(required=True)
    inactive_since = Time(required=True, allow_none=True)
    inactive_reason = Text(required=True, allow_none=True)
    created_at = Time(required=True)
    updated_at = Time(required=True)


class ConfigurationItemSchema(ConnectionSchema):
    phone_number_count = Integer(required=True, metadata={"description": "active numbers only"})
    is_ready_for_outbound = Flag(required=True)
    outbound_blocked_reason = Text(required=True, allow_none=True)


class ConfigurationListSchema(ResponseSchema):
    configurations = Items(Model(ConfigurationItemSchema), required=True)


class SetupStepSchema(ResponseSchema):
    key = Text(required=True)
    title = Text(required=True)
    description = Text(required=True)
    complete = Flag(required=True)
    blocks_outbound = Flag(required=True)


class SetupChecklistSchema(ResponseSchema):
    ready_for_outbound = Flag(required=True)
    outbound_blocked_reason = Text(required=True, allow_none=True)
    steps = Items(Model(SetupStepSchema), required=True)
    docs_url = Text(required=True, allow_none=True)


class SIPTransportSchema(ResponseSchema):
    transport = Text(required=True)
    hostname = Text(required=True)
    port = Integer(required=True)
    uri = Text(required=True)


class SIPRegionSchema(ResponseSchema):
    region = Text(required=True)
    inbound_transports = Items(Model(SIPTransportSchema), required=True)
    outbound_origin_ip = Text(required=True)


class SIPConnectivitySchema(ResponseSchema):
    provider_display_name = Text(required=True)
    regions = Items(Model(SIPRegionSchema), required=True)


class TrunkSchema(ResponseSchema):
    id = Integer(required=True)
    name = Text(required=True)
    enabled = Flag(required=True)
    settings = Object(required=True)
    phone_number_count = Integer(required=True)
    created_at = Time(required=True)
    updated_at = Time(required=True)


class WebhookURLsSchema(ResponseSchema):
    """What to enter at the carrier for calls to the numbers of a configuration."""

    inbound = Text(required=True)
    status = Text(required=True)


class ConfigurationDetailSchema(ConnectionSchema):
    credentials = Object(required=True, metadata={"description": "secrets are masked"})
    calls_per_second = Number(required=True, allow_none=True, metadata={"description": PACE})
    webhook_urls = Model(
        WebhookURLsSchema,
        required=True,
        allow_none=True,
        metadata={"description": "null for the simulator, and while VOICEAPI_PUBLIC_URL isn't set"},
    )
    sip_connectivity = Model(SIPConnectivitySchema, required=True, allow_none=True)
    setup_checklist = Model(SetupChecklistSchema, required=True, allow_none=True)
    supports_trunks = Flag(required=True)
    trunks = Items(Model(TrunkSchema), required=True)


class FieldOptionSchema(ResponseSchema):
    value = Text(required=True)
    label = Text(required=True)


class FieldConditionSchema(ResponseSchema):
    field = Text(required=True)
    equals = Raw(required=True)


class FormFieldSchema(ResponseSchema):
    name = Text(required=True)
    label = Text(required=True)
    type = Text(required=True)
    required = Flag(required=True)
    sensitive = Flag(required=True)
    description = Text(required=True, allow_none=True)
    placeholder = Text(required=True, allow_none=True)
    options = Items(Model(FieldOptionSchema), required=True, allow_none=True)
    visible_when = Model(FieldConditionSchema, required=True, allow_none=True)
    section = Text(required=True, allow_none=True)


class CarrierSchema(ResponseSchema):
    provider = Text(required=True)
    display_name = Text(required=True)
    connectivity = Text(required=True, metadata={"enum": ["api", "sip"]})
    form = Items(Model(FormFieldSchema), required=True, data_key="fields", attribute="fields")
    docs_url = Text(required=True, allow_none=True)


class CarrierListSchema(ResponseSchema):
    providers = Items(Model(CarrierSchema), required=True)
