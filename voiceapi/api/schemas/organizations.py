"""Schemas of an organization: preferences, disposition codes, model configuration and API keys."""

from __future__ import annotations

from typing import Any

from marshmallow import INCLUDE, ValidationError, validates_schema
from marshmallow.fields import Raw

from ...llm.configuration import MOST_TOKENS
from ...telephony.numbers import is_country
from ..errors import Message
from .base import BodySchema, QuerySchema, ResponseSchema
from .campaigns import ATTEMPTS, CallingHoursSchema, SetCallingHoursSchema, known_zone
from .fields import LIST, STRING, Choice, Flag, Integer, Items, Length, Model, Number, Object, Range, Text, Time

COUNTRIES = Length(min=1, max=250)
CALLS_A_DAY = Range(min=1, max=100_000)


class Country(Text):
    """An ISO 3166 code of two letters, which are stored as capitals."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        code = text.upper()
        if not text.isascii() or not is_country(code):
            raise ValidationError([Message("Value error, use ISO 3166 codes of two letters, such as US or DE")])
        return code


class NewPreferencesSchema(BodySchema):
    test_phone_number = Text(load_default=None, allow_none=True)
    timezone = Text(load_default=None, allow_none=True, validate=known_zone)
    external_pbx_integrations_enabled = Flag(load_default=False)
    calling_hours = Model(SetCallingHoursSchema, load_default=None, allow_none=True)
    max_attempts_per_day = Integer(load_default=None, allow_none=True, validate=ATTEMPTS)
    # Without a default: see preferences.KEPT.
    allowed_countries = Items(
        Country(),
        allow_none=True,
        validate=COUNTRIES,
        metadata={"description": "whose numbers may be called, by ISO 3166 codes; if left out it stays as it is"},
    )
    max_calls_a_day = Integer(
        allow_none=True,
        validate=CALLS_A_DAY,
        metadata={"description": "in any 24 hours; if left out it stays as it is"},
    )


class PreferencesSchema(ResponseSchema):
    test_phone_number = Text(required=True, allow_none=True)
    timezone = Text(required=True, allow_none=True, metadata={"description": "an IANA name"})
    external_pbx_integrations_enabled = Flag(required=True)
    calling_hours = Model(CallingHoursSchema, required=True, allow_none=True)
    max_attempts_per_day = Integer(required=True, allow_none=True)
    allowed_countries = Items(Country(), required=True, allow_none=True)
    max_calls_a_day = Integer(required=True, allow_none=True)


class KnownDispositionsSchema(ResponseSchema):
    codes = Items(Text(), required=True)
    end_task_reason_codes = Items(Text(), required=True)


class ServiceKey(Raw):
    """One key of a model service, or a list of them."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, str):
            return value
        if not isinstance(value, list):
            raise ValidationError([LIST])
        wrong = {index: [STRING] for index, key in enumerate(value) if not isinstance(key, str)}
        if wrong:
            raise ValidationError(wrong)
        return value


class ModelServiceSchema(BodySchema):
    """A model service of any vendor: whatever else the vendor takes is kept."""

    class Meta:
        unknown = INCLUDE

    provider = Text(required=True)
    model = Text(allow_none=True)
    api_key = ServiceKey(allow_none=True, metadata={"type": ["string", "array"], "items": {"type": "string"}})


class LanguageModelSchema(ModelServiceSchema):
    max_tokens = Integer(
        allow_none=True,
        validate=Range(min=1, max=MOST_TOKENS),
        metadata={"description": "the most tokens of one reply; VOICEAPI_LLM_MAX_TOKENS unless given"},
    )


class PipelineModelsSchema(BodySchema):
    llm = Model(LanguageModelSchema, required=True)
    tts = Model(ModelServiceSchema, required=True)
    stt = Model(ModelServiceSchema, required=True)
    embeddings = Model(ModelServiceSchema, allow_none=True)


class RealtimeModelsSchema(BodySchema):
    realtime = Model(ModelServiceSchema, required=True)
    llm = Model(LanguageModelSchema, required=True)
    embeddings = Model(ModelServiceSchema, allow_none=True)


class OwnModelsSchema(BodySchema):
    mode = Text(required=True, validate=Choice(("pipeline", "realtime"), "literal_error"))
    pipeline = Model(PipelineModelsSchema, allow_none=True)
    realtime = Model(RealtimeModelsSchema, allow_none=True)

    @validates_schema(skip_on_field_errors=True)
    def complete(self, data: dict[str, Any], **kwargs: Any) -> None:
        mode = data["mode"]
        if data.get(mode) is None:
            raise ValidationError([Message(f"Value error, byok.{mode} is required when byok.mode is {mode}")])
        for name, service in data[mode].items():
            if service is not None and service["provider"] == "dograh":
                raise ValidationError([Message(f"Value error, BYOK {name} cannot use Dograh provider")])


class HostedModelsSchema(BodySchema):
    api_key = Text(required=True)
    voice = Text(load_default="default")
    speed = Number(load_default=1.0, validate=Range(0.5, 2.0))
    language = Text(load_default="multi")


class NewModelConfigurationSchema(BodySchema):
    version = Integer(load_default=2, validate=Choice((2,), "literal_error"))
    mode = Text(required=True, validate=Choice(("dograh", "byok"), "literal_error"))
    dograh = Model(HostedModelsSchema, allow_none=True)
    byok = Model(OwnModelsSchema, allow_none=True)

    @validates_schema(skip_on_field_errors=True)
    def complete(self, data: dict[str, Any], **kwargs: Any) -> None:
        mode = data["mode"]
        if data.get(mode) is None:
            raise ValidationError([Message(f"Value error, {mode} configuration is required when mode is {mode}")])


class EffectiveConfigurationSchema(ResponseSchema):
    """What a conversation may use: null for what isn't configured."""

    llm = Object(required=True, allow_none=True)
    tts = Object(required=True, allow_none=True)
    stt = Object(required=True, allow_none=True)
    embeddings = Object(required=True, allow_none=True)
    realtime = Object(required=True, allow_none=True)
    is_realtime = Flag(required=True)
    test_phone_number = Text(required=True, allow_none=True)
    timezone = Text(required=True, allow_none=True)


class ModelConfigurationSchema(ResponseSchema):
    configuration = Object(
        required=True, allow_none=True, metadata={"description": "as it was put, keys masked; else what speaks"}
    )
    effective_configuration = Model(EffectiveConfigurationSchema, required=True)
    source = Text(required=True, metadata={"enum": ["organization_v2", "legacy_user_v1", "empty"]})


class KeyQuerySchema(QuerySchema):
    include_archived = Flag(load_default=False, metadata={"description": "whether archived keys are listed as well"})


class NewApiKeySchema(BodySchema):
    name = Text(required=True)


class ApiKeyRecordSchema(ResponseSchema):
    id = Integer(required=True)
    name = Text(required=True)
    key_prefix = Text(required=True)
    is_active = Flag(required=True)
    created_at = Time(required=True)
    last_used_at = Time(required=True, allow_none=True)
    archived_at = Time(required=True, allow_none=True)


class CreatedApiKeySchema(ResponseSchema):
    id = Integer(required=True)
    name = Text(required=True)
    key_prefix = Text(required=True)
    api_key = Text(required=True, metadata={"description": "the key itself, shown only here"})
    created_at = Time(required=True)


class OutcomeSchema(ResponseSchema):
    success = Flag(required=True)
    message = Text(required=True)


class ReactivatedApiKeySchema(ApiKeyRecordSchema, OutcomeSchema):
    """The API key, and a sentence that it is active again."""

    class Meta:
        unknown = INCLUDE


class DoctorQuerySchema(QuerySchema):
    telephony_configuration_id = Integer(
        load_default=None, metadata={"description": "the one to check; all, the public address and the model otherwise"}
    )


class DoctorFindingSchema(ResponseSchema):
    """What was checked. Nothing is wrong with it if `wrong` is null; `note` is worth knowing even so."""

    subject = Text(required=True)
    wrong = Text(required=True, allow_none=True)
    note = Text(required=True, allow_none=True)
    telephony_configuration_id = Integer(
        required=True, allow_none=True, metadata={"description": "null for what is about none"}
    )


class DoctorSchema(ResponseSchema):
    findings = Items(Model(DoctorFindingSchema), required=True)
