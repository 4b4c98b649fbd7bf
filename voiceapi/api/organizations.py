"""The organization: its preferences, disposition codes, models and API keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response
from marshmallow import INCLUDE, ValidationError, pre_load, validates_schema
from marshmallow.fields import Raw

from ..calls import doctor
from ..llm import configuration as models
from ..llm.parameters import MOST_TOKENS, PARAMETERS, Parameter, unknown
from ..organizations import api_keys, preferences
from ..store import organizations
from ..store.organizations import ApiKey, Organization
from ..store.tags import MODELS, PREFERENCES
from .answers import UNKNOWN_FIELDS, answer_of, expected, tagged, warn
from .auth import organization, service
from .blueprint import Blueprint
from .errors import Message
from .schemas import fields
from .schemas.base import EDIT_TAG, BodySchema, EditSchema, QuerySchema, ResponseSchema
from .schemas.campaigns import ATTEMPTS, CallingHoursSchema, SetCallingHoursSchema, known_zone

COUNTRIES = fields.Length(min=1, max=250)
CALLS_A_DAY = fields.Range(min=1, max=100_000)
blueprint = Blueprint("organizations", __name__)
api_key_blueprint = Blueprint("api_keys", __name__)


# -- schemas


class NewPreferencesSchema(BodySchema):
    test_phone_number = fields.Text(load_default=None)
    timezone = fields.Text(load_default=None, validate=known_zone)
    external_pbx_integrations_enabled = fields.Flag(load_default=False)
    calling_hours = fields.Model(SetCallingHoursSchema, load_default=None)
    max_attempts_per_day = fields.Integer(load_default=None, validate=ATTEMPTS)
    # Without a default: see preferences.KEPT.
    allowed_countries = fields.Items(
        fields.Country(),
        allow_none=True,
        validate=COUNTRIES,
        description="whose numbers may be called, by ISO 3166 codes; if left out it stays as it is",
    )
    max_calls_a_day = fields.Integer(
        allow_none=True, validate=CALLS_A_DAY, description="in any 24 hours; if left out it stays as it is"
    )


class PreferencesSchema(ResponseSchema):
    test_phone_number = fields.Text(required=True, allow_none=True)
    timezone = fields.Text(required=True, allow_none=True, description="an IANA name")
    external_pbx_integrations_enabled = fields.Flag(required=True)
    calling_hours = fields.Model(CallingHoursSchema, required=True, allow_none=True)
    max_attempts_per_day = fields.Integer(required=True, allow_none=True)
    allowed_countries = fields.Items(fields.Country(), required=True, allow_none=True)
    max_calls_a_day = fields.Integer(required=True, allow_none=True)


class KnownDispositionsSchema(ResponseSchema):
    codes = fields.Items(fields.Text(), required=True)
    end_task_reason_codes = fields.Items(fields.Text(), required=True)


class ServiceKey(Raw):
    """One key of a model service, or a list of them."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, str):
            return value
        if not isinstance(value, list):
            raise ValidationError([fields.LIST])
        wrong = {index: [fields.STRING] for index, key in enumerate(value) if not isinstance(key, str)}
        if wrong:
            raise ValidationError(wrong)
        return value


class ModelServiceSchema(BodySchema):
    """A model service of any vendor: whatever else the vendor takes is kept."""

    class Meta:
        unknown = INCLUDE

    provider = fields.Text(required=True)
    model = fields.Text(allow_none=True)
    api_key = ServiceKey(allow_none=True, metadata={"type": ["string", "array"], "items": {"type": "string"}})


class SentParameter(Raw):
    """A parameter that is sent to the model's server."""

    def __init__(self, parameter: Parameter) -> None:
        super().__init__(allow_none=True, metadata={"description": parameter.allowed, **parameter.schema})
        self.parameter = parameter

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        if self.parameter.read(value) is None:
            raise ValidationError([Message(f"Value error, use {self.parameter.allowed}")])
        return value


class LimitedModelSchema(ModelServiceSchema):
    max_tokens = fields.Integer(
        allow_none=True,
        validate=fields.Range(min=1, max=MOST_TOKENS),
        description="the most tokens of one reply; VOICEAPI_LLM_MAX_TOKENS unless given",
    )

    @pre_load
    def note_unknown(self, data: Any, **kwargs: Any) -> Any:
        if isinstance(data, dict):
            warn(UNKNOWN_FIELDS, unknown(data))
        return data


LanguageModelSchema = LimitedModelSchema.from_dict(
    {name: SentParameter(each) for name, each in PARAMETERS.items() if name != "max_tokens"},
    name="LanguageModelSchema",
)


class PipelineModelsSchema(BodySchema):
    llm = fields.Model(LanguageModelSchema, required=True)
    tts = fields.Model(ModelServiceSchema, required=True)
    stt = fields.Model(ModelServiceSchema, required=True)
    embeddings = fields.Model(ModelServiceSchema, allow_none=True)


class RealtimeModelsSchema(BodySchema):
    realtime = fields.Model(ModelServiceSchema, required=True)
    llm = fields.Model(LanguageModelSchema, required=True)
    embeddings = fields.Model(ModelServiceSchema, allow_none=True)


class OwnModelsSchema(BodySchema):
    mode = fields.Text(required=True, validate=fields.Choice(("pipeline", "realtime"), "literal_error"))
    pipeline = fields.Model(PipelineModelsSchema, allow_none=True)
    realtime = fields.Model(RealtimeModelsSchema, allow_none=True)

    @validates_schema(skip_on_field_errors=True)
    def complete(self, data: dict[str, Any], **kwargs: Any) -> None:
        mode = data["mode"]
        if data.get(mode) is None:
            raise ValidationError([Message(f"Value error, byok.{mode} is required when byok.mode is {mode}")])
        for name, chosen in data[mode].items():
            if chosen is not None and chosen["provider"] == "dograh":
                raise ValidationError([Message(f"Value error, BYOK {name} cannot use Dograh provider")])


class HostedModelsSchema(BodySchema):
    api_key = fields.Text(required=True)
    voice = fields.Text(load_default="default")
    speed = fields.Number(load_default=1.0, validate=fields.Range(0.5, 2.0))
    language = fields.Text(load_default="multi")


class NewModelConfigurationSchema(BodySchema):
    version = fields.Integer(load_default=2, validate=fields.Choice((2,), "literal_error"))
    mode = fields.Text(required=True, validate=fields.Choice(("dograh", "byok"), "literal_error"))
    dograh = fields.Model(HostedModelsSchema, allow_none=True)
    byok = fields.Model(OwnModelsSchema, allow_none=True)

    @validates_schema(skip_on_field_errors=True)
    def complete(self, data: dict[str, Any], **kwargs: Any) -> None:
        mode = data["mode"]
        if data.get(mode) is None:
            raise ValidationError([Message(f"Value error, {mode} configuration is required when mode is {mode}")])


class EffectiveConfigurationSchema(ResponseSchema):
    """What a conversation may use: null for what isn't configured."""

    llm = fields.Object(required=True, allow_none=True)
    tts = fields.Object(required=True, allow_none=True)
    stt = fields.Object(required=True, allow_none=True)
    embeddings = fields.Object(required=True, allow_none=True)
    realtime = fields.Object(required=True, allow_none=True)
    is_realtime = fields.Flag(required=True)
    test_phone_number = fields.Text(required=True, allow_none=True)
    timezone = fields.Text(required=True, allow_none=True)


class ModelConfigurationSchema(ResponseSchema):
    configuration = fields.Object(
        required=True, allow_none=True, description="as it was put, keys masked; else what speaks"
    )
    effective_configuration = fields.Model(EffectiveConfigurationSchema, required=True)
    source = fields.Text(required=True, metadata={"enum": ["organization_v2", "legacy_user_v1", "empty"]})


class KeyQuerySchema(QuerySchema):
    include_archived = fields.Flag(load_default=False, description="whether archived keys are listed as well")


class NewApiKeySchema(BodySchema):
    name = fields.Text(required=True)


class ApiKeyRecordSchema(ResponseSchema):
    id = fields.Integer(required=True)
    name = fields.Text(required=True)
    key_prefix = fields.Text(required=True)
    is_active = fields.Flag(required=True)
    created_at = fields.Time(required=True)
    last_used_at = fields.Time(required=True, allow_none=True)
    archived_at = fields.Time(required=True, allow_none=True)


class CreatedApiKeySchema(ResponseSchema):
    id = fields.Integer(required=True)
    name = fields.Text(required=True)
    key_prefix = fields.Text(required=True)
    api_key = fields.Text(required=True, description="the key itself, shown only here")
    created_at = fields.Time(required=True)


class OutcomeSchema(ResponseSchema):
    success = fields.Flag(required=True)
    message = fields.Text(required=True)


class ReactivatedApiKeySchema(ApiKeyRecordSchema, OutcomeSchema):
    """The API key, and a sentence that it is active again."""

    class Meta:
        unknown = INCLUDE


class DoctorQuerySchema(QuerySchema):
    telephony_configuration_id = fields.Integer(
        load_default=None, description="the one to check; all, the public address and the model otherwise"
    )


class DoctorFindingSchema(ResponseSchema):
    """What was checked. Nothing is wrong with it if `wrong` is null; `note` is worth knowing even so."""

    subject = fields.Text(required=True)
    wrong = fields.Text(required=True, allow_none=True)
    note = fields.Text(required=True, allow_none=True)
    telephony_configuration_id = fields.Integer(
        required=True, allow_none=True, description="null for what is about none"
    )


class DoctorSchema(ResponseSchema):
    findings = fields.Items(fields.Model(DoctorFindingSchema), required=True)


@blueprint.get("/organizations/preferences")
@blueprint.response(200, PreferencesSchema, headers=EDIT_TAG)
def get_preferences() -> Response:
    """Show the preferences of the organization."""
    return show_preferences(organizations.get(organization()))


@blueprint.put("/organizations/preferences")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.arguments(NewPreferencesSchema)
@blueprint.response(200, PreferencesSchema, headers=EDIT_TAG)
def set_preferences(headers: dict[str, Any], body: dict[str, Any]) -> Response:
    """Replace the preferences of the organization.

    What is left out goes back to its default, but for allowed_countries and max_calls_a_day: only null removes these.
    """
    return show_preferences(preferences.replace(organization(), body, expected(headers)))


@blueprint.get("/organizations/disposition-codes")
@blueprint.response(200, KnownDispositionsSchema)
def list_disposition_codes() -> dict[str, Any]:
    """List the codes that say how calls came out, the organization's own among them."""
    return {
        "codes": preferences.disposition_codes(organization()),
        "end_task_reason_codes": list(preferences.END_REASONS),
    }


@blueprint.get("/organizations/doctor")
@blueprint.alt_response(503)
@blueprint.alt_response(404)
@blueprint.arguments(DoctorQuerySchema, location="query")
@blueprint.response(200, DoctorSchema)
def examine_organization(query: dict[str, Any]) -> dict[str, Any]:
    """Find what prevents calls: the public address, the model and the carriers are asked, within 20 seconds."""
    found = doctor.examine_organization(service(), organization(), query["telephony_configuration_id"])
    return {
        "findings": [
            answer_of(DoctorFindingSchema, finding, telephony_configuration_id=configuration)
            for configuration, finding in found
        ]
    }


@blueprint.get("/organizations/model-configurations/v2")
@blueprint.alt_response(400)
@blueprint.response(200, ModelConfigurationSchema, headers=EDIT_TAG)
def get_model_configuration() -> Response:
    """Show which models the organization wants to use, their keys masked.

    Of an organization that has set none, these are the operator's, or the scripted one, as they may be changed and put.
    """
    return show_model_configuration(organizations.get(organization()))


@blueprint.put("/organizations/model-configurations/v2")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.arguments(NewModelConfigurationSchema)
@blueprint.response(200, ModelConfigurationSchema, headers=EDIT_TAG)
def set_model_configuration(headers: dict[str, Any], body: dict[str, Any]) -> Response:
    """Replace which models the organization wants to use; a key sent back masked stays as it is."""
    return show_model_configuration(models.replace(service().vault, organization(), body, expected(headers)))


@api_key_blueprint.get("/user/api-keys")
@api_key_blueprint.arguments(KeyQuerySchema, location="query")
@api_key_blueprint.response(200, ApiKeyRecordSchema(many=True))
def list_keys(query: dict[str, Any]) -> list[dict[str, Any]]:
    """List the API keys of the organization."""
    listed = api_keys.listed(organization(), include_archived=query["include_archived"])
    return [api_key_answer(record) for record in listed]


@api_key_blueprint.post("/user/api-keys")
@api_key_blueprint.arguments(NewApiKeySchema)
@api_key_blueprint.response(200, CreatedApiKeySchema)
def create_key(body: dict[str, Any]) -> dict[str, Any]:
    """Make an API key. The key itself is shown in this answer and never again."""
    record, raw = api_keys.create(organization(), body["name"])
    return answer_of(CreatedApiKeySchema, record, api_key=raw)


@api_key_blueprint.delete("/user/api-keys/<api_key_id>")
@api_key_blueprint.response(200, OutcomeSchema)
def archive_key(api_key_id: int) -> dict[str, Any]:
    """Archive an API key: it is refused from now on. A key may archive itself."""
    api_keys.archive(organization(), api_key_id)
    return {"success": True, "message": "API key archived successfully"}


@api_key_blueprint.put("/user/api-keys/<api_key_id>/reactivate")
@api_key_blueprint.response(200, ReactivatedApiKeySchema)
def reactivate_key(api_key_id: int) -> dict[str, Any]:
    """Reactivate an archived API key. An active one stays active."""
    record = api_keys.reactivate(organization(), api_key_id)
    return {"success": True, "message": "API key reactivated successfully", **api_key_answer(record)}


def api_key_answer(record: ApiKey) -> dict[str, Any]:
    return answer_of(ApiKeyRecordSchema, record)


def show_preferences(record: Organization) -> Response:
    return tagged(PREFERENCES.tag(record), preferences.of(record))


def show_model_configuration(record: Organization) -> Response:
    configuration = models.decrypted(service().vault, record.model_configuration)
    return tagged(MODELS.tag(record), model_configuration_answer(configuration, preferences.of(record)))


def model_configuration_answer(configuration: Mapping[str, Any] | None, preferred: Mapping[str, Any]) -> dict[str, Any]:
    unset = None if service().model is not None else models.unset(service().settings)
    masked = unset if configuration is None else models.mask_secrets(configuration)
    return {
        "configuration": masked,
        "effective_configuration": {
            **models.effective_services(masked),
            "test_phone_number": preferred["test_phone_number"],
            "timezone": preferred["timezone"],
        },
        "source": "empty" if configuration is None else "organization_v2",
    }
