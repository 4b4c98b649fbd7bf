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
from . import fields
from .base import BodySchema, ResponseSchema
from .runs import RESULT

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LONGEST_DELAY = 7 * 24 * 3600
NAME = fields.Length(min=1, max=255)
CONCURRENCY = fields.Range(min=1, max=100)
ATTEMPTS = fields.Range(min=1, max=100)
SLOTS = fields.Length(min=1, max=50)
CLOCK = fields.Pattern(re.compile(r"^\d{2}:\d{2}$", re.ASCII))
RETRY_SPELLINGS: Mapping[str, tuple[str, Callable[[int], int]]] = {
    "max_attempts": ("max_retries", lambda attempts: attempts - 1),
    "retry_interval_minutes": ("retry_delay_seconds", lambda minutes: minutes * 60),
}
TIME_OF_DAY = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")


def refusal(text: str, field: str = "_schema") -> ValidationError:
    """The error of a rule that Pydantic doesn't have: at a field, or at the object as a whole."""
    return ValidationError(Message(f"Value error, {text}"), field)


def number_column() -> fields.Text:
    """The field that names the column of a list with the numbers to call."""
    description = "the column of the list with the numbers, in upper or lower case, if it isn't phone_number"
    return fields.Text(load_default=None, validate=NAME, description=description)


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
    enabled = fields.Flag(metadata={"default": RETRY["enabled"]})
    max_retries = fields.Integer(validate=fields.Range(min=0, max=10), metadata={"default": RETRY["max_retries"]})
    retry_delay_seconds = fields.Integer(
        validate=fields.Range(min=30, max=LONGEST_DELAY), metadata={"default": RETRY["retry_delay_seconds"]}
    )
    retry_on_busy = fields.Flag(metadata={"default": RETRY["retry_on_busy"]})
    retry_on_no_answer = fields.Flag(metadata={"default": RETRY["retry_on_no_answer"]})
    retry_on_voicemail = fields.Flag(metadata={"default": RETRY["retry_on_voicemail"]})
    max_attempts = fields.Integer(
        validate=fields.Range(min=1, max=11), description="instead of max_retries: the first call counts too"
    )
    retry_interval_minutes = fields.Integer(
        validate=fields.Range(min=1, max=LONGEST_DELAY // 60), description="instead of retry_delay_seconds"
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
    day_of_week = fields.Integer(required=True, validate=fields.Range(min=0, max=6), description="0 is Monday")
    start_time = fields.Text(required=True, validate=CLOCK)
    end_time = fields.Text(required=True, validate=CLOCK)

    @validates_schema
    def has_a_length(self, data: dict[str, Any], **kwargs: Any) -> None:
        check_window(data["start_time"], data["end_time"])


class SetScheduleSchema(BodySchema):
    enabled = fields.Flag(load_default=True)
    timezone = fields.Text(load_default="UTC", validate=known_zone)
    slots = fields.Items(fields.Model(SetSlotSchema), required=True, validate=SLOTS)


class SetTimeSlotSchema(BodySchema):
    day = fields.Text(required=True, validate=known_day, metadata={"enum": DAYS})
    start = fields.Text(required=True, validate=CLOCK)
    end = fields.Text(required=True, validate=CLOCK)

    @validates_schema
    def has_a_length(self, data: dict[str, Any], **kwargs: Any) -> None:
        check_window(data["start"], data["end"])

    @post_load
    def in_one_spelling(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        day = DAYS.index(data["day"].lower())
        return {"day_of_week": day, "start_time": data["start"], "end_time": data["end"]}


class SetCircuitBreakerSchema(BodySchema):
    enabled = fields.Flag(load_default=CIRCUIT_BREAKER["enabled"])
    failure_threshold = fields.Number(
        load_default=CIRCUIT_BREAKER["failure_threshold"], validate=fields.Range(min=0, max=1)
    )
    window_seconds = fields.Integer(
        load_default=CIRCUIT_BREAKER["window_seconds"], validate=fields.Range(min=30, max=600)
    )
    min_calls_in_window = fields.Integer(
        load_default=CIRCUIT_BREAKER["min_calls_in_window"], validate=fields.Range(min=1, max=100)
    )


class SetCallingHoursSchema(BodySchema):
    """A daily window in the time zone of the callee; it may go past midnight."""

    start = fields.Text(required=True, validate=CLOCK)
    end = fields.Text(required=True, validate=CLOCK)

    @validates_schema
    def has_a_length(self, data: dict[str, Any], **kwargs: Any) -> None:
        check_window(data["start"], data["end"])


class SettingsSchema(BodySchema):
    """How and when a campaign calls, in either spelling; null is the same as left out."""

    retry_config = fields.Model(SetRetrySchema, load_default=None)
    max_concurrency = fields.Integer(load_default=None, validate=CONCURRENCY)
    schedule_config = fields.Model(SetScheduleSchema, load_default=None)
    circuit_breaker = fields.Model(SetCircuitBreakerSchema, load_default=None)
    calling_hours = fields.Model(SetCallingHoursSchema, load_default=None)
    max_attempts_per_day = fields.Integer(load_default=None, validate=ATTEMPTS, description="in any 24 hours")
    timezone = fields.Text(load_default=None, validate=known_zone)
    time_slots = fields.Items(fields.Model(SetTimeSlotSchema), load_default=None, validate=SLOTS)

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
    name = fields.Text(required=True, validate=NAME)
    workflow_id = fields.Integer(required=True)
    source_type = fields.Text(required=True, validate=fields.Pattern("^csv$"))
    source_id = fields.Text(required=True, description="the file_key of an uploaded contact list")
    phone_number_column = number_column()
    telephony_configuration_id = fields.Integer(load_default=None)


class RedialSchema(BodySchema):
    name = fields.Text(load_default=None, validate=NAME)
    retry_on_voicemail = fields.Flag(load_default=True)
    retry_on_no_answer = fields.Flag(load_default=True)
    retry_on_busy = fields.Flag(load_default=True)
    retry_on_refused = fields.Flag(
        load_default=None, description="contacts whose calls the carrier refused; null is true if any of the others is"
    )
    retry_config = fields.Model(SetRetrySchema, load_default=None)

    @validates_schema(skip_on_field_errors=True)
    def picks_somebody(self, data: dict[str, Any], **kwargs: Any) -> None:
        flags = ("retry_on_voicemail", "retry_on_no_answer", "retry_on_busy")
        others = any(data[flag] for flag in flags)
        if data["retry_on_refused"] is None:
            data["retry_on_refused"] = others
        if not others and not data["retry_on_refused"]:
            raise refusal(f"At least one of {', '.join(flags)} must be true")


class NameSchema(BodySchema):
    name = fields.Text(load_default=None, validate=NAME)


class StrictSchema(BodySchema):
    strict = fields.Flag(load_default=False, description="refuse a list of which any row would be skipped")


class CreateCampaignSchema(SettingsSchema, StrictSchema, SourceSchema):
    """A campaign to store."""


class CreateCampaignFormSchema(SettingsSchema, StrictSchema, NameSchema):
    """A campaign to store, as the fields of a form that also has its list."""

    name = fields.Text(required=True, validate=NAME)
    workflow_id = fields.Integer(required=True)
    phone_number_column = number_column()
    telephony_configuration_id = fields.Integer(load_default=None)


class UpdateCampaignSchema(SettingsSchema, NameSchema):
    """What to change of a campaign."""


class RetrySchema(ResponseSchema):
    enabled = fields.Flag(required=True)
    max_retries = fields.Integer(required=True)
    retry_delay_seconds = fields.Integer(required=True)
    retry_on_busy = fields.Flag(required=True)
    retry_on_no_answer = fields.Flag(required=True)
    retry_on_voicemail = fields.Flag(required=True)


class SlotSchema(ResponseSchema):
    day_of_week = fields.Integer(required=True)
    start_time = fields.Text(required=True)
    end_time = fields.Text(required=True)


class ScheduleSchema(ResponseSchema):
    enabled = fields.Flag(required=True)
    timezone = fields.Text(required=True)
    slots = fields.Items(fields.Model(SlotSchema), required=True)


class CircuitBreakerSchema(ResponseSchema):
    enabled = fields.Flag(required=True)
    failure_threshold = fields.Number(required=True)
    window_seconds = fields.Integer(required=True)
    min_calls_in_window = fields.Integer(required=True)


class CallingHoursSchema(ResponseSchema):
    start = fields.Text(required=True)
    end = fields.Text(required=True)


class LogEntrySchema(ResponseSchema):
    ts = fields.Text(required=True)
    level = fields.Text(required=True)
    event = fields.Text(required=True)
    message = fields.Text(required=True)
    details = fields.Object(required=True, allow_none=True)


class CampaignSchema(ResponseSchema):
    id = fields.Integer(required=True)
    name = fields.Text(required=True)
    workflow_id = fields.Integer(required=True)
    workflow_name = fields.Text(required=True)
    state = fields.Text(required=True)
    source_type = fields.Text(required=True)
    source_id = fields.Text(required=True)
    phone_number_column = fields.Text(required=True, allow_none=True)
    contacts_to_call = fields.Integer(
        required=True,
        allow_none=True,
        description="rows of the list to be called, as counted at the creation; total_rows is null then",
    )
    total_rows = fields.Integer(required=True, allow_none=True)
    processed_rows = fields.Integer(required=True)
    failed_rows = fields.Integer(required=True)
    created_at = fields.Time(required=True)
    started_at = fields.Time(required=True, allow_none=True)
    completed_at = fields.Time(required=True, allow_none=True)
    retry_config = fields.Model(RetrySchema, required=True)
    max_concurrency = fields.Integer(required=True, allow_none=True)
    schedule_config = fields.Model(ScheduleSchema, required=True, allow_none=True)
    circuit_breaker = fields.Model(CircuitBreakerSchema, required=True)
    executed_count = fields.Integer(required=True)
    total_queued_count = fields.Integer(required=True)
    parent_campaign_id = fields.Integer(required=True, allow_none=True)
    redialed_campaign_id = fields.Integer(required=True, allow_none=True)
    telephony_configuration_id = fields.Integer(required=True, allow_none=True)
    telephony_configuration_name = fields.Text(required=True, allow_none=True)
    logs = fields.Items(fields.Model(LogEntrySchema), required=True)
    calling_hours = fields.Model(CallingHoursSchema, required=True, allow_none=True)
    max_attempts_per_day = fields.Integer(required=True, allow_none=True)


class CampaignsSchema(ResponseSchema):
    campaigns = fields.Items(fields.Model(CampaignSchema), required=True)


class LastSettingsSchema(ResponseSchema):
    retry_config = fields.Model(RetrySchema, required=True)
    max_concurrency = fields.Integer(required=True, allow_none=True)
    schedule_config = fields.Model(ScheduleSchema, required=True, allow_none=True)
    circuit_breaker = fields.Model(CircuitBreakerSchema, required=True)


class DefaultsSchema(ResponseSchema):
    concurrent_call_limit = fields.Integer(required=True)
    from_numbers_count = fields.Integer(required=True)
    default_retry_config = fields.Model(RetrySchema, required=True)
    last_campaign_settings = fields.Model(LastSettingsSchema, required=True, allow_none=True)


class SourceSyncSchema(ResponseSchema):
    status = fields.Text(required=True, metadata={"enum": ["pending", "in_progress", "completed", "failed"]})
    last_synced_at = fields.Time(required=True, allow_none=True)
    error = fields.Text(required=True, allow_none=True)


class ProgressSchema(ResponseSchema):
    campaign_id = fields.Integer(required=True)
    state = fields.Text(required=True)
    total_rows = fields.Integer(required=True)
    processed_rows = fields.Integer(required=True)
    failed_calls = fields.Integer(required=True)
    progress_percentage = fields.Number(required=True)
    source_sync = fields.Model(SourceSyncSchema, required=True)
    rate_limit = fields.Integer(required=True)
    started_at = fields.Time(required=True, allow_none=True)
    completed_at = fields.Time(required=True, allow_none=True)
    contacts = fields.Object(required=True, description="how many contacts are in each state")
    not_dialed_since = fields.Time(
        required=True,
        allow_none=True,
        description="since when no process has dialed for it although it is at work; null while one does",
    )


class DispositionCountSchema(ResponseSchema):
    disposition = fields.Text(required=True, description=RESULT)
    calls = fields.Integer(required=True)


class OutcomesSchema(ResponseSchema):
    campaign_id = fields.Integer(required=True)
    outcomes = fields.Object(required=True, description="how many calls were answered, busy ..., retried ones too")
    dispositions = fields.Items(
        fields.Model(DispositionCountSchema), required=True, description="the commonest first, at most 50"
    )


class SourceDownloadSchema(ResponseSchema):
    download_url = fields.Text(required=True)
    expires_in = fields.Integer(required=True)
