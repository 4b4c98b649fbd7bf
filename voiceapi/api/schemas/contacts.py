"""Schemas of a campaign's contacts, of its dry run and of the do-not-call list."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from marshmallow import ValidationError

from ...campaigns.retry import OUTCOMES
from ...store.campaigns import FINAL, OPEN
from ..errors import Message
from .base import BodySchema, PagingSchema, QuerySchema, ResponseSchema
from .campaigns import NAME
from .fields import Choice, Flag, Integer, Items, Length, Model, Number, Object, Range, Text, Time
from .runs import PageSchema

STATE = Choice((*OPEN, *FINAL))
LONGEST_TALK = 4 * 3600
LONGEST_RUN_DAYS = 366
# Far enough from the first and the last day that Python knows.
FIRST_YEAR, LAST_YEAR = 1970, 2999


class ContactsQuerySchema(PagingSchema):
    state = Text(load_default=None, validate=STATE)


class ContactsReportQuerySchema(QuerySchema):
    state = Text(load_default=None, validate=STATE)


class ContactSchema(ResponseSchema):
    row = Integer(required=True, metadata={"description": "data row of the list, counted from 1"})
    phone_number = Text(required=True)
    state = Text(required=True, validate=STATE)
    attempts = Integer(required=True)
    next_attempt_at = Time(required=True, allow_none=True)
    workflow_run_ids = Items(Integer(), required=True)
    reasons = Items(Text(), required=True)


class ContactsSchema(PageSchema):
    contacts = Items(Model(ContactSchema), required=True)


class DecisionSchema(ResponseSchema):
    at = Time(required=True)
    code = Text(required=True)
    reason = Text(required=True)
    workflow_run_id = Integer(required=True, allow_none=True)


class ContactDetailSchema(ContactSchema):
    variables = Object(required=True)
    decisions = Items(Model(DecisionSchema), required=True)


class CheckListFormSchema(BodySchema):
    """The fields of a form that has a contact list."""

    workflow_id = Integer(required=True)
    telephony_configuration_id = Integer(load_default=None, allow_none=True)


class CheckedVariableSchema(ResponseSchema):
    """A variable of the workflow without a default, which the list must have."""

    name = Text(required=True)
    is_column = Flag(required=True)
    empty_rows = Integer(required=True, metadata={"description": "rows to be called that have no value of it"})


class CheckedRowSchema(ResponseSchema):
    row = Integer(required=True, metadata={"description": "data row of the list, counted from 1"})
    phone_number = Text(required=True)
    skipped = Text(required=True, allow_none=True, metadata={"description": "why it isn't called"})


class PreviewRowSchema(CheckedRowSchema):
    values = Object(required=True, metadata={"description": "texts by column: at most 50 of them, of 200 characters"})


class CheckedListSchema(ResponseSchema):
    columns = Items(Text(), required=True)
    variables = Items(Model(CheckedVariableSchema), required=True)
    rows = Integer(required=True)
    skipped_count = Integer(required=True)
    skipped = Items(Model(CheckedRowSchema), required=True, metadata={"description": "at most 100"})
    preview = Items(Model(PreviewRowSchema), required=True, metadata={"description": "the first 10 rows"})
    refusal = Text(
        required=True, allow_none=True, metadata={"description": "why no campaign can be created with the list"}
    )


def check_shares(value: dict[str, Any]) -> None:
    """Check the shares of a dry run's outcomes: known outcomes, numbers from 0 to 1000000, not all of them 0."""
    for name, share in value.items():
        if name not in OUTCOMES:
            known = ", ".join(map(repr, OUTCOMES))
            raise ValidationError(Message(f"Value error, there is no outcome {name[:100]!r}; there are {known}"))
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1_000_000:
            raise ValidationError(Message(f"Value error, the share of {name} must be a number from 0 to 1000000"))
    if not sum(value.values()):
        raise ValidationError(Message("Value error, at least one outcome must have a share"))


def check_start(value: datetime) -> None:
    if not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise ValidationError(Message(f"Value error, the year must be from {FIRST_YEAR} to {LAST_YEAR}"))


class TalkSecondsSchema(BodySchema):
    shortest = Number(required=True, validate=Range(min=0, max=LONGEST_TALK))
    longest = Number(required=True, validate=Range(min=0, max=LONGEST_TALK))


class SimulateSchema(BodySchema):
    """A dry run: `outcomes` gives the share of each outcome of a call, such as {"answered": 3, "busy": 1}."""

    seed = Integer(load_default=1)
    outcomes = Object(load_default=None, allow_none=True, validate=check_shares)
    talk_seconds = Model(TalkSecondsSchema, load_default=None, allow_none=True)
    starts_at = Time(
        load_default=None,
        allow_none=True,
        validate=check_start,
        metadata={"description": "the campaign's created_at if left out"},
    )
    days = Integer(load_default=14, validate=Range(min=1, max=LONGEST_RUN_DAYS))


class HourSchema(ResponseSchema):
    hour = Text(required=True, metadata={"format": "date-time"})
    attempts = Integer(required=True)
    retries = Integer(required=True)
    answered = Integer(required=True)
    minutes = Number(required=True)


class SkippedContactSchema(ResponseSchema):
    row = Integer(required=True)
    phone_number = Text(required=True)
    code = Text(required=True)
    reason = Text(required=True)


class SimulationSchema(ResponseSchema):
    seed = Integer(required=True)
    starts_at = Time(required=True)
    ends_at = Time(
        required=True,
        allow_none=True,
        metadata={"description": "null when it was cut off"},
    )
    contacts = Object(required=True, metadata={"description": "how many contacts end in each state"})
    attempts = Integer(required=True)
    retries = Integer(required=True)
    outcomes = Object(required=True)
    skipped = Object(required=True, metadata={"description": "how many contacts are never called, by code"})
    postponed = Object(required=True, metadata={"description": "how often a contact had to wait, by code"})
    peak_concurrency = Integer(required=True)
    minutes = Number(required=True)
    circuit_breaker_trips = Items(Text(), required=True)
    timeline = Items(Model(HourSchema), required=True)
    skipped_contacts = Items(Model(SkippedContactSchema), required=True, metadata={"description": "at most 1000"})


class ForbidSchema(BodySchema):
    phone_numbers = Items(Text(), required=True, validate=Length(min=1, max=1000))
    reason = Text(load_default=None, allow_none=True, validate=NAME)


class ForbiddenSchema(ResponseSchema):
    phone_number = Text(required=True)
    reason = Text(required=True, allow_none=True)
    created_at = Time(required=True)


class ForbiddenPageSchema(PageSchema):
    phone_numbers = Items(Model(ForbiddenSchema), required=True)


class AddedSchema(ResponseSchema):
    added = Integer(required=True)
    already_listed = Integer(required=True)


class RefusedRowSchema(ResponseSchema):
    row = Integer(required=True)
    reason = Text(required=True)


class AddedListSchema(AddedSchema):
    refused_count = Integer(required=True)
    refused = Items(Model(RefusedRowSchema), required=True, metadata={"description": "at most 1000"})
