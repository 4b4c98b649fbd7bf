"""Telephony configurations of the organization, and the carriers that there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response
from marshmallow import Schema
from marshmallow.fields import Field as MarshmallowField
from marshmallow.fields import Raw

from ..calls import relays
from ..calls.inbound import MEANINGS
from ..store.tags import CONFIGURATION
from ..store.telephony import MOST_REJECTED, TelephonyConfiguration, active_number_count, rejected_calls
from ..telephony import configurations as configs
from ..telephony import providers
from ..telephony.configurations import SLOWEST_PACE
from ..telephony.connect import CARRIERS
from ..telephony.inbound_urls import InboundURLs
from ..telephony.providers import PROVIDERS, CredentialField, FieldType, Provider
from .answers import answer_of, expected, tagged
from .auth import organization, service
from .blueprint import Blueprint
from .schemas import fields
from .schemas.base import EDIT_TAG, BodySchema, DoneSchema, EditSchema, ResponseSchema

# How each kind of form field is read, and its type in the document.
KINDS: Mapping[FieldType, tuple[type[fields.Text | fields.Flag], str]] = {
    "text": (fields.Text, "string"),
    "password": (fields.Text, "string"),
    "textarea": (fields.Text, "string"),
    "select": (fields.Text, "string"),
    "boolean": (fields.Flag, "boolean"),
}
FIRST_DEFAULT = (
    "Whether outbound calls that name no configuration go through this one. "
    "Left out, only the organization's first configuration of a real carrier becomes the default."
)
PACE = "How many calls may be placed in a second; null for the carrier's own pace."
COUNTRY = (
    "Whose national numbers may be called, as an ISO 3166 code of two letters. "
    "Without it, the country_code of the default caller number counts; without both, every number needs + or 00."
)
blueprint = Blueprint("telephony_configs", __name__)


# -- schemas; those of credentials are made from PROVIDERS


def _read(field: CredentialField) -> fields.Text | fields.Flag:
    kind, _ = KINDS[field.type]
    if field.required:
        return kind(required=True, validate=fields.Length(min=1))
    if field.options:
        return kind(load_default=field.default, validate=fields.Choice([option.value for option in field.options]))
    return kind(load_default=field.default, allow_none=field.default is None)


def _schema(provider: Provider) -> type[Schema]:
    settings: dict[str, MarshmallowField[Any]] = {
        "calls_per_second": fields.Number(allow_none=True, validate=fields.Range(min=SLOWEST_PACE)),
        "country": fields.Country(allow_none=True),
    }
    return BodySchema.from_dict({field.name: _read(field) for field in provider.fields} | settings)


def _document(provider: Provider) -> dict[str, Any]:
    """The JSON Schema of what `_schema` reads, with the tag that says which carrier it is."""
    properties: dict[str, Any] = {"provider": {"const": provider.name}}
    for field in provider.fields:
        _, kind = KINDS[field.type]
        shape = {"type": kind, "minLength": 1} if field.required else {"type": kind, "default": field.default}
        if not field.required and field.default is None:
            shape["type"] = [kind, "null"]
        if field.options:
            shape["enum"] = [option.value for option in field.options]
        properties[field.name] = {**shape, "description": field.description}
    properties["calls_per_second"] = {"type": ["number", "null"], "minimum": SLOWEST_PACE, "description": PACE}
    properties["country"] = {"type": ["string", "null"], "description": COUNTRY}
    required = ["provider", *(field.name for field in provider.fields if field.required)]
    return {"title": provider.display_name, "type": "object", "properties": properties, "required": required}


def _config(**kwargs: Any) -> fields.TaggedObject:
    shapes = [_document(provider) for provider in PROVIDERS.values()]
    if kwargs.get("allow_none"):
        shapes.append({"type": "null"})
    schemas = {name: _schema(provider) for name, provider in PROVIDERS.items()}
    return fields.TaggedObject("provider", schemas, metadata={"oneOf": shapes}, **kwargs)


class NewConfigurationSchema(BodySchema):
    name = fields.Text(required=True, validate=fields.Length(1, 64))
    is_default_outbound = fields.Flag(load_default=None, description=FIRST_DEFAULT)
    config = _config(required=True)


class ConfigurationChangeSchema(BodySchema):
    name = fields.Text(load_default=None, validate=fields.Length(1, 64))
    config = _config(load_default=None, allow_none=True)


class ConnectionSchema(ResponseSchema):
    """What the list and the detail of a configuration share."""

    id = fields.Integer(required=True)
    name = fields.Text(required=True)
    provider = fields.Text(required=True)
    connectivity = fields.Text(required=True, metadata={"enum": ["api", "sip"]})
    is_default_outbound = fields.Flag(required=True)
    inactive = fields.Flag(required=True)
    inactive_since = fields.Time(required=True, allow_none=True)
    inactive_reason = fields.Text(required=True, allow_none=True)
    created_at = fields.Time(required=True)
    updated_at = fields.Time(required=True)


class ConfigurationItemSchema(ConnectionSchema):
    phone_number_count = fields.Integer(required=True, description="active numbers only")
    is_ready_for_outbound = fields.Flag(required=True)
    outbound_blocked_reason = fields.Text(required=True, allow_none=True)


class ConfigurationListSchema(ResponseSchema):
    configurations = fields.Items(fields.Model(ConfigurationItemSchema), required=True)


class SetupStepSchema(ResponseSchema):
    key = fields.Text(required=True)
    title = fields.Text(required=True)
    description = fields.Text(required=True)
    complete = fields.Flag(required=True)
    blocks_outbound = fields.Flag(required=True)


class SetupChecklistSchema(ResponseSchema):
    ready_for_outbound = fields.Flag(required=True)
    outbound_blocked_reason = fields.Text(required=True, allow_none=True)
    steps = fields.Items(fields.Model(SetupStepSchema), required=True)
    docs_url = fields.Text(required=True, allow_none=True)


class SIPTransportSchema(ResponseSchema):
    transport = fields.Text(required=True)
    hostname = fields.Text(required=True)
    port = fields.Integer(required=True)
    uri = fields.Text(required=True)


class SIPRegionSchema(ResponseSchema):
    region = fields.Text(required=True)
    inbound_transports = fields.Items(fields.Model(SIPTransportSchema), required=True)
    outbound_origin_ip = fields.Text(required=True)


class SIPConnectivitySchema(ResponseSchema):
    provider_display_name = fields.Text(required=True)
    regions = fields.Items(fields.Model(SIPRegionSchema), required=True)


class TrunkSchema(ResponseSchema):
    id = fields.Integer(required=True)
    name = fields.Text(required=True)
    enabled = fields.Flag(required=True)
    settings = fields.Object(required=True)
    phone_number_count = fields.Integer(required=True)
    created_at = fields.Time(required=True)
    updated_at = fields.Time(required=True)


class WebhookURLsSchema(ResponseSchema):
    """What to enter at the carrier for calls to the numbers of a configuration."""

    inbound = fields.Text(required=True)
    status = fields.Text(required=True)


class ConfigurationDetailSchema(ConnectionSchema):
    credentials = fields.Object(required=True, description="secrets are masked")
    calls_per_second = fields.Number(required=True, allow_none=True, description=PACE)
    country = fields.Text(required=True, allow_none=True, description=COUNTRY)
    webhook_urls = fields.Model(
        WebhookURLsSchema,
        required=True,
        allow_none=True,
        description="null for the simulator, and while VOICEAPI_PUBLIC_URL isn't set",
    )
    sip_connectivity = fields.Model(SIPConnectivitySchema, required=True, allow_none=True)
    setup_checklist = fields.Model(SetupChecklistSchema, required=True, allow_none=True)
    supports_trunks = fields.Flag(required=True)
    trunks = fields.Items(fields.Model(TrunkSchema), required=True)


class RejectedCallSchema(ResponseSchema):
    """Calls of one caller to one number that no workflow took for one reason."""

    from_number = fields.Text(required=True)
    to_number = fields.Text(required=True)
    reason = fields.Text(required=True, metadata={"enum": list(MEANINGS)})
    message = fields.Text(required=True, description="the reason in words")
    workflow_id = fields.Integer(required=True, allow_none=True, description="the agent called, if known")
    count = fields.Integer(required=True)
    first_at = fields.Time(required=True)
    last_at = fields.Time(required=True)


class RejectedCallListSchema(ResponseSchema):
    rejected_calls = fields.Items(
        fields.Model(RejectedCallSchema), required=True, description=f"the latest first, at most {MOST_REJECTED}"
    )


class FieldOptionSchema(ResponseSchema):
    value = fields.Text(required=True)
    label = fields.Text(required=True)


class FieldConditionSchema(ResponseSchema):
    field = fields.Text(required=True)
    equals = Raw(required=True)


class FormFieldSchema(ResponseSchema):
    name = fields.Text(required=True)
    label = fields.Text(required=True)
    type = fields.Text(required=True)
    required = fields.Flag(required=True)
    sensitive = fields.Flag(required=True)
    description = fields.Text(required=True, allow_none=True)
    placeholder = fields.Text(required=True, allow_none=True)
    options = fields.Items(fields.Model(FieldOptionSchema), required=True, allow_none=True)
    visible_when = fields.Model(FieldConditionSchema, required=True, allow_none=True)
    section = fields.Text(required=True, allow_none=True)


class CarrierSchema(ResponseSchema):
    provider = fields.Text(required=True)
    display_name = fields.Text(required=True)
    connectivity = fields.Text(required=True, metadata={"enum": ["api", "sip"]})
    form = fields.Items(fields.Model(FormFieldSchema), required=True, data_key="fields", attribute="fields")
    docs_url = fields.Text(required=True, allow_none=True)


class CarrierListSchema(ResponseSchema):
    providers = fields.Items(fields.Model(CarrierSchema), required=True)


@blueprint.get("/organizations/telephony-providers/metadata")
@blueprint.response(200, CarrierListSchema)
def list_carriers() -> dict[str, Any]:
    """List the telephony carriers with the credentials that each takes."""
    return {"providers": providers.metadata()}


@blueprint.get("/organizations/telephony-configs")
@blueprint.response(200, ConfigurationListSchema)
def list_configurations() -> dict[str, Any]:
    """List the telephony configurations of the organization, its accounts at carriers."""
    return {"configurations": [item_answer(*listed) for listed in configs.listed(organization())]}


@blueprint.post("/organizations/telephony-configs")
@blueprint.alt_response(409)
@blueprint.arguments(NewConfigurationSchema)
@blueprint.response(200, ConfigurationDetailSchema, headers=EDIT_TAG)
def create_configuration(body: dict[str, Any]) -> Response:
    """Store an account at a carrier. Its secrets are encrypted, and shown masked from then on."""
    return show_configuration(
        configs.create(
            service().vault,
            organization(),
            body["name"],
            body["config"],
            is_default_outbound=body["is_default_outbound"],
        )
    )


@blueprint.get("/organizations/telephony-configs/<config_id>")
@blueprint.alt_response(400)
@blueprint.response(200, ConfigurationDetailSchema, headers=EDIT_TAG)
def get_configuration(config_id: int) -> Response:
    """Show a telephony configuration, a carrier account, its secrets masked."""
    return show_configuration(configs.get(organization(), config_id))


@blueprint.put("/organizations/telephony-configs/<config_id>")
@blueprint.alt_response(409)
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.arguments(ConfigurationChangeSchema)
@blueprint.response(200, ConfigurationDetailSchema, headers=EDIT_TAG)
def update_configuration(headers: dict[str, Any], body: dict[str, Any], config_id: int) -> Response:
    """Rename a telephony configuration or replace its credentials; a secret sent back masked stays as it is."""
    changes = (body["name"], body["config"])
    return show_configuration(configs.update(service().vault, organization(), config_id, *changes, expected(headers)))


@blueprint.delete("/organizations/telephony-configs/<config_id>")
@blueprint.alt_response(409)
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.response(200, DoneSchema)
def delete_configuration(headers: dict[str, Any], config_id: int) -> dict[str, Any]:
    """Remove a telephony configuration with its numbers, unless a campaign calls through it."""
    configs.delete(organization(), config_id, expected(headers))
    return {"message": "Telephony configuration deleted"}


@blueprint.get("/organizations/telephony-configs/<config_id>/rejected-calls")
@blueprint.response(200, RejectedCallListSchema)
def list_rejected_calls(config_id: int) -> dict[str, Any]:
    """List the calls to the numbers of a telephony configuration that no workflow took, with the reason."""
    found = rejected_calls(configs.get(organization(), config_id).id)
    return {"rejected_calls": [answer_of(RejectedCallSchema, each, message=MEANINGS[each.reason]) for each in found]}


@blueprint.post("/organizations/telephony-configs/<config_id>/set-default-outbound")
@blueprint.alt_response(400)
@blueprint.response(200, ConfigurationDetailSchema, headers=EDIT_TAG)
def set_default_outbound(config_id: int) -> Response:
    """Make it the configuration of calls that name none."""
    return show_configuration(configs.set_default_outbound(organization(), config_id))


@blueprint.post("/organizations/telephony-configs/<config_id>/reactivate")
@blueprint.alt_response(400)
@blueprint.response(200, ConfigurationDetailSchema, headers=EDIT_TAG)
def reactivate_configuration(config_id: int) -> Response:
    """Use a telephony configuration again that was set aside."""
    return show_configuration(configs.reactivate(organization(), config_id))


def item_answer(configuration: TelephonyConfiguration, active_numbers: int) -> dict[str, Any]:
    ready, reason = configs.readiness(configuration, active_numbers)
    return answer_of(
        ConfigurationItemSchema,
        configuration,
        connectivity=PROVIDERS[configuration.provider].connectivity,
        phone_number_count=active_numbers,
        is_ready_for_outbound=ready,
        outbound_blocked_reason=reason,
    )


def show_configuration(configuration: TelephonyConfiguration) -> Response:
    answer = answer_of(
        ConfigurationDetailSchema,
        configuration,
        connectivity=PROVIDERS[configuration.provider].connectivity,
        credentials=configs.masked_credentials(service().vault, configuration),
        webhook_urls=webhook_urls(configuration),
        sip_connectivity=None,
        setup_checklist=setup_checklist(configuration),
        supports_trunks=False,
        trunks=[],
    )
    return tagged(CONFIGURATION.tag(configuration), answer)


def webhook_urls(configuration: TelephonyConfiguration) -> dict[str, Any] | None:
    """The URLs to enter at the carrier; None for the simulator, and while none would lead here."""
    if configuration.is_simulated or service().settings.public_url is None:
        return None
    urls = InboundURLs(f"{service().base_url}/api/v1/telephony/inbound", configuration.id)
    retries = CARRIERS[configuration.provider].retries
    return {"inbound": f"{urls.answer}{retries}", "status": f"{urls.status}{retries}"}


def setup_checklist(configuration: TelephonyConfiguration) -> dict[str, Any] | None:
    """What is left to do before calls can go out; None for a carrier that needs nothing."""
    carrier = PROVIDERS[configuration.provider]
    if not carrier.needs_caller_id:
        return None
    numbers = active_number_count(configuration)
    ready, reason = configs.readiness(configuration, numbers)
    step = {
        "key": "caller_id",
        "title": "Add a phone number",
        "description": f"Calls show one of the numbers of your {carrier.display_name} account.",
        "complete": numbers > 0,
        "blocks_outbound": True,
    }
    steps = [step]
    if configs.masked_credentials(service().vault, configuration).get("transport") == "relay":
        obstacle = relays.why_not(service())
        shown = f"Calls go by webhooks until then. {obstacle}" if obstacle else "Calls go over a text relay."
        relay = {"key": "relay", "title": "Have a text relay", "description": shown}
        steps.append({**relay, "complete": not obstacle, "blocks_outbound": False})
    return {
        "ready_for_outbound": ready,
        "outbound_blocked_reason": reason,
        "steps": steps,
        "docs_url": carrier.docs_url,
    }
