"""Schemas of campaigns. Schedule and retry are read in two spellings (docs/campaigns.md), and answered in the first:

* `schedule_config.slots`, `retry_config.max_retries` and `retry_config.retry_delay_seconds`;
* `timezone` and `time_slots` beside the name, `retry_config.max_attempts` (the first call included) and
  `retry_config.retry_interval_minutes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from marshmallow import ValidationError, post_load, validates_schema

from ...campaigns.campaigns import CIRCUIT_BREAKER, RETRY
from ..errors import Message
from .base import BodySchema, ResponseSchema
from .fields import Flag, Integer, Items, Length, Model, Number, Object, Pattern, Range, Text, Time

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LONGEST_DELAY = 7 * 24 * 3600
NAME = Length(min=1, max=255)
CONCURRENCY = Range(min=1, max=100)
ATTEMPTS = Range(min=1, max=100)
SLOTS = Length(min=1, max=50)
CLOCK = Pattern(re.compile(r"^\d{2}:\d{2}$", re.ASCII))
RETRY_SPELLINGS: Mapping[str, tuple[str, Callable[[int], int]]] = {
    "max_attempts": ("max_retries", lambda attempts: attempts - 1),
    "retry_interval_minutes": ("retry_delay_seconds", lambda minutes: minutes * 60),
}
TIME_OF_DAY = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")


def refusal(text: str, field: str = "_schema") -> ValidationError:
    """The error of a rule that Pydantic doesn't have: at a field, or at the object as a whole."""
    return ValidationError(Message(f"Value error, {text}"), field)


def known_zone(name: str) -> None:
    """Refuse what isn't the IANA name of a time zone."""
    try:
        ZoneInfo(name)
    except (ValueError, LookupError, OSError):  # no such zone, a folder of zones, a path
        raise ValidationError(Message(f"Value error, Invalid timezone: {name[:100]}")) from None


def known_day(name: str) -> None:
    """Refuse what isn't a day of the week; capitals don't matter."""
    if name.lower() not in DAYS:
        raise ValidationError(Message(f"Input should be {', '.join(map(repr, DAYS[:-1]))} or '{DAYS[-1]}'", "enum"))


def check_window(start: str, end: str) -> None:
    """Check a daily window: it may go past midnight or end at 24:00, but not be empty."""
    for time in (start, end):
        if not TIME_OF_DAY.fullmatch(time) and (time != "24:00" or time == start):
            raise refusal(f"{time} is not a time of day")
    if start == end:
        raise refusal("start_time and end_time must differ, or nobody is ever called")


class SetRetrySchema(BodySchema):
    enabled = Flag(metadata={"default": RETRY["enabled"]})
    max_retries = Integer(validate=Range(min=0, max=10), metadata={"default": RETRY["max_retries"]})
    retry_delay_seconds = Integer(
        validate=Range(min=30, max=LONGEST_DELAY), metadata={"default": RETRY["retry_delay_seconds"]}
    )
    retry_on_busy = Flag(metadata={"default": RETRY["retry_on_busy"]})
    retry_on_no_answer = Flag(metadata={"default": RETRY["retry_on_no_answer"]})
    retry_on_voicemail = Flag(metadata={"default": RETRY["retry_on_voicemail"]})
    max_attempts = Integer(
        validate=Range(min=1, max=11), metadata={"description": "instead of max_retries: the first call counts too"}
    )
    retry_interval_minutes = Integer(
        validate=Range(min=1, max=LONGEST_DELAY // 60), metadata={"description": "instead of retry_delay_seconds"}
    )

    @post_load
    def in_one_spelling(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        for other, (name, convert) in RETRY_SPELLINGS.items():
            if other in data:
                if name in data:
                    raise refusal(f"give either {name} or {other}", other)
                data[name] = convert(data.pop(other))
        return {**RETRY, **data}


class SetSlotSchema(BodySchema):
    day_of_week = Integer(required=True, validate=Range(min=0, max=6), metadata={"description": "0 is Monday"})
    start_time = Text(required=True, validate=CLOCK)
    end_time = Text(required=True, validate=CLOCK)

    @validates_schema
    def has_a_length(self, data: dict[str, Any], **kwargs: Any) -> None:
        check_window(data["start_time"], data["end_time"])


class SetScheduleSchema(BodySchema):
    enabled = Flag(load_default=True)
    timezone = Text(load_default="UTC", validate=known_zone)
    slots = Items(Model(SetSlotSchema), required=True, validate=SLOTS)


class SetTimeSlotSchema(BodySchema):
    day = Text(required=True, validate=known_day, metadata={"enum": DAYS})
    start = Text(required=True, validate=CLOCK)
    end = Text(required=True, validate=CLOCK)

    @validates_schema
    def has_a_length(self, data: dict[str, Any], **kwargs: Any) -> None:
        check_window(data["start"], data["end"])

    @post_load
    def in_one_spelling(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        day = DAYS.index(data["day"].lower())
        return {"day_of_week": day, "start_time": data["start"], "end_time": data["end"]}


class SetCircuitBreakerSchema(BodySchema):
    enabled = Flag(load_default=CIRCUIT_BREAKER["enabled"])
    failure_threshold = Number(load_default=CIRCUIT_BREAKER["failure_threshold"], validate=Range(min=0, max=1))
    window_seconds = Integer(load_default=CIRCUIT_BREAKER["window_seconds"], validate=Range(min=30, max=600))
    min_calls_in_window = Integer(load_default=CIRCUIT_BREAKER["min_calls_in_window"], validate=Range(min=1, max=100))


class SetCallingHoursSchema(BodySchema):
    """A daily window in the time zone of the callee; it may go past midnight."""

    start = Text(required=True, validate=CLOCK)
    end = Text(required=True, validate=CLOCK)

    @validates_schema
    def has_a_length(self, data: dict[str, Any], **kwargs: Any) -> None:
        check_window(data["start"], data["end"])


class SettingsSchema(BodySchema):
    """How and when a campaign calls, in either spelling; null is the same as left out."""

    retry_config = Model(SetRetrySchema, load_default=None, allow_none=True)
    max_concurrency = Integer(load_default=None, allow_none=True, validate=CONCURRENCY)
    schedule_config = Model(SetScheduleSchema, load_default=None, allow_none=True)
    circuit_breaker = Model(SetCircuitBreakerSchema, load_default=None, allow_none=True)
    calling_hours = Model(SetCallingHoursSchema, load_default=None, allow_none=True)
    max_attempts_per_day = Integer(
        load_default=None,
        allow_none=True,
        validate=ATTEMPTS,
        metadata={"description": "in any 24 hours"},
    )
    timezone = Text(load_default=None, allow_none=True, validate=known_zone)
    time_slots = Items(Model(SetTimeSlotSchema), load_default=None, allow_none=True, validate=SLOTS)

    @post_load
    def in_one_spelling(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        zone, slots = data.pop("timezone"), data.pop("time_slots")
        if slots is None:
            if zone is not None:
                raise refusal("timezone goes with time_slots; schedule_config has a timezone of its own", "timezone")
        elif data["schedule_config"] is not None:
            raise refusal("give either schedule_config or time_slots", "time_slots")
        else:
            data["schedule_config"] = {"enabled": True, "timezone": zone or "UTC", "slots": slots}
        return data


class SourceSchema(BodySchema):
    name = Text(required=True, validate=NAME)
    workflow_id = Integer(required=True)
    source_type = Text(required=True, validate=Pattern("^csv$"))
    source_id = Text(required=True, metadata={"description": "the file_key of an uploaded contact list"})
    telephony_configuration_id = Integer(load_default=None, allow_none=True)


class RedialSchema(BodySchema):
    name = Text(load_default=None, allow_none=True, validate=NAME)
    retry_on_voicemail = Flag(load_default=True)
    retry_on_no_answer = Flag(load_default=True)
    retry_on_busy = Flag(load_default=True)
    retry_config = Model(SetRetrySchema, load_default=None, allow_none=True)

    @validates_schema(skip_on_field_errors=True)
    def picks_somebody(self, data: dict[str, Any], **kwargs: Any) -> None:
        flags = ("retry_on_voicemail", "retry_on_no_answer", "retry_on_busy")
        if not any(data[flag] for flag in flags):
            raise refusal(f"At least one of {', '.join(flags)} must be true")


class NameSchema(BodySchema):
    name = Text(load_default=None, allow_none=True, validate=NAME)


class StrictSchema(BodySchema):
    strict = Flag(load_default=False, metadata={"description": "refuse a list of which any row would be skipped"})


class CreateCampaignSchema(SettingsSchema, StrictSchema, SourceSchema):
    """A campaign to store."""


class CreateCampaignFormSchema(SettingsSchema, StrictSchema, NameSchema):
    """A campaign to store, as the fields of a form that also has its list."""

    name = Text(required=True, validate=NAME)
    workflow_id = Integer(required=True)
    telephony_configuration_id = Integer(load_default=None, allow_none=True)


class UpdateCampaignSchema(SettingsSchema, NameSchema):
    """What to change of a campaign."""


class RetrySchema(ResponseSchema):
    enabled = Flag(required=True)
    max_retries = Integer(required=True)
    retry_delay_seconds = Integer(required=True)
    retry_on_busy = Flag(required=True)
    retry_on_no_answer = Flag(required=True)
    retry_on_voicemail = Flag(required=True)


class SlotSchema(ResponseSchema):
    day_of_week = Integer(required=True)
    start_time = Text(required=True)
    end_time = Text(required=True)


class ScheduleSchema(ResponseSchema):
    enabled = Flag(required=True)
    timezone = Text(required=True)
    slots = Items(Model(SlotSchema), required=True)


class CircuitBreakerSchema(ResponseSchema):
    enabled = Flag(required=True)
    failure_threshold = Number(required=True)
    window_seconds = Integer(required=True)
    min_calls_in_window = Integer(required=True)


class CallingHoursSchema(ResponseSchema):
    start = Text(required=True)
    end = Text(required=True)


class LogEntrySchema(ResponseSchema):
    ts = Text(required=True)
    level = Text(required=True)
    event = Text(required=True)
    message = Text(required=True)
    details = Object(required=True, allow_none=True)


class CampaignSchema(ResponseSchema):
    id = Integer(required=True)
    name = Text(required=True)
    workflow_id = Integer(required=True)
    workflow_name = Text(required=True)
    state = Text(required=True)
    source_type = Text(required=True)
    source_id = Text(required=True)
    total_rows = Integer(required=True, allow_none=True)
    processed_rows = Integer(required=True)
    failed_rows = Integer(required=True)
    created_at = Time(required=True)
    started_at = Time(required=True, allow_none=True)
    completed_at = Time(required=True, allow_none=True)
    retry_config = Model(RetrySchema, required=True)
    max_concurrency = Integer(required=True, allow_none=True)
    schedule_config = Model(ScheduleSchema, required=True, allow_none=True)
    circuit_breaker = Model(CircuitBreakerSchema, required=True)
    executed_count = Integer(required=True)
    total_queued_count = Integer(required=True)
    parent_campaign_id = Integer(required=True, allow_none=True)
    redialed_campaign_id = Integer(required=True, allow_none=True)
    telephony_configuration_id = Integer(required=True, allow_none=True)
    telephony_configuration_name = Text(required=True, allow_none=True)
    logs = Items(Model(LogEntrySchema), required=True)
    calling_hours = Model(CallingHoursSchema, required=True, allow_none=True)
    max_attempts_per_day = Integer(required=True, allow_none=True)


class CampaignsSchema(ResponseSchema):
    campaigns = Items(Model(CampaignSchema), required=True)


class LastSettingsSchema(ResponseSchema):
    retry_config = Model(RetrySchema, required=True)
    max_concurrency = Integer(required=True, allow_none=True)
    schedule_config = Model(ScheduleSchema, required=True, allow_none=True)
    circuit_breaker = Model(CircuitBreakerSchema, required=True)


class DefaultsSchema(ResponseSchema):
    concurrent_call_limit = Integer(required=True)
    from_numbers_count = Integer(required=True)
    default_retry_config = Model(RetrySchema, required=True)
    last_campaign_settings = Model(LastSettingsSchema, required=True, allow_none=True)


class SourceSyncSchema(ResponseSchema):
    status = Text(required=True, metadata={"enum": ["pending", "in_progress", "completed", "failed"]})
    last_synced_at = Time(required=True, allow_none=True)
    error = Text(required=True, allow_none=True)


class ProgressSchema(ResponseSchema):
    campaign_id = Integer(required=True)
    state = Text(required=True)
    total_rows = Integer(required=True)
    processed_rows = Integer(required=True)
    failed_calls = Integer(required=True)
    progress_percentage = Number(required=True)
    source_sync = Model(SourceSyncSchema, required=True)
    rate_limit = Integer(required=True)
    started_at = Time(required=True, allow_none=True)
    completed_at = Time(required=True, allow_none=True)
    contacts = Object(required=True, metadata={"description": "how many contacts are in each state"})


class DispositionCountSchema(ResponseSchema):
    disposition = Text(required=True)
    calls = Integer(required=True)


class OutcomesSchema(ResponseSchema):
    campaign_id = Integer(required=True)
    outcomes = Object(
        required=True, metadata={"description": "how many calls ended with each outcome, retried ones too"}
    )
    dispositions = Items(
        Model(DispositionCountSchema), required=True, metadata={"description": "the commonest first, at most 50"}
    )


class SourceDownloadSchema(ResponseSchema):
    download_url = Text(required=True)
    expires_in = Integer(required=True)
