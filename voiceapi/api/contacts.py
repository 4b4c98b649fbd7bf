"""The contacts of a campaign, its dry run, a campaign made with its list in one request, and the do-not-call list."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from flask import Request, Response, request
from marshmallow import Schema, ValidationError

from ..campaigns import campaigns, contact_list, contacts, do_not_call
from ..campaigns.dry_run import report
from ..campaigns.retry import OUTCOMES
from ..runs import files
from ..runs.files import LARGEST
from ..store import dialing
from ..store.campaigns import FINAL, OPEN
from ..store.fields import now
from ..strict_json import parse
from .answers import answer_of, paging
from .auth import organization, service
from .blueprint import Blueprint, read_file
from .campaigns import campaign_answer
from .errors import InvalidRequest, Message, items
from .idempotent import HEADERS, answer_once, idempotent
from .multipart import BINARY, Form, read_form
from .runs import LONG_REPORT, csv_answer
from .schemas import fields
from .schemas.base import BodySchema, DoneSchema, PagingSchema, QuerySchema, RepeatableSchema, ResponseSchema
from .schemas.campaigns import NAME, CampaignSchema, CreateCampaignFormSchema, number_column
from .schemas.runs import PageSchema

OPTIONAL = {
    **{key: {"type": "integer"} for key in ("telephony_configuration_id", "max_concurrency", "max_attempts_per_day")},
    "phone_number_column": {"type": "string"},
    "strict": {"type": "boolean"},
    **{key: {"type": "object"} for key in ("retry_config", "schedule_config", "circuit_breaker", "calling_hours")},
    "timezone": {"type": "string"},
    "time_slots": {"type": "array", "items": {"type": "object"}},
}
OF_LIST = {name: OPTIONAL[name] for name in ("telephony_configuration_id", "phone_number_column")}
STATE = fields.Choice((*OPEN, *FINAL))
LONGEST_TALK = 4 * 3600
LONGEST_RUN_DAYS = 366
# Far enough from the first and the last day that Python knows.
FIRST_YEAR, LAST_YEAR = 1970, 2999
blueprint = Blueprint("contacts", __name__, tag="campaigns")

CSV = {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}}


# -- a campaign in a form: objects and lists are written as JSON


def _form(required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    properties = {"file": BINARY, **required, **optional}
    schema = {"type": "object", "required": ["file", *required], "properties": properties}
    return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}


# For the document: a campaign with its list, and a list that is only checked.
FORM = _form({"name": {"type": "string"}, "workflow_id": {"type": "integer"}}, OPTIONAL)
CHECK_FORM = _form({"workflow_id": {"type": "integer"}}, OF_LIST)


def read_campaign(request: Request, schema: BodySchema) -> tuple[dict[str, Any], Form, bytes]:
    """The fields loaded by `schema`, the form as it was sent, and the bytes of its file.

    :raises InvalidRequest: with an item for everything that is wrong.
    :raises SizeExceeded: for a file of more than 10 MiB; the other errors are those of `read_form`.
    """
    form = read_form(request, LARGEST, "A contact list")
    messages: dict[str, Any] = {}
    body: dict[str, Any] = {}
    try:
        body = schema.load(_values(schema, form.fields))
    except ValidationError as error:
        messages = dict(error.messages_dict)
    if form.file is None:
        messages["file"] = [fields.REQUIRED]
    if messages or form.file is None:
        raise InvalidRequest(list(items(messages, ("body",))))
    return body, form, form.file


def _values(schema: Schema, sent: dict[str, str]) -> dict[str, Any]:
    """The fields as JSON values: objects and lists parsed, null when empty; other empty fields but `name` left out."""
    values: dict[str, Any] = {}
    for name, text in sent.items():
        if isinstance(schema.load_fields.get(name), fields.Items | fields.Model):
            values[name] = parse(text, (name,)) if text.strip() else None
        elif text or name == "name":
            values[name] = text
    return values


# -- schemas


class ContactsQuerySchema(PagingSchema):
    state = fields.Text(load_default=None, validate=STATE)


class ContactsReportQuerySchema(QuerySchema):
    state = fields.Text(load_default=None, validate=STATE)


class ContactSchema(ResponseSchema):
    row = fields.Integer(required=True, description="data row of the list, counted from 1")
    phone_number = fields.Text(required=True)
    state = fields.Text(required=True, validate=STATE)
    attempts = fields.Integer(required=True)
    next_attempt_at = fields.Time(required=True, allow_none=True)
    workflow_run_ids = fields.Items(fields.Integer(), required=True)
    reasons = fields.Items(fields.Text(), required=True)


class ContactsSchema(PageSchema):
    contacts = fields.Items(fields.Model(ContactSchema), required=True)


class DecisionSchema(ResponseSchema):
    at = fields.Time(required=True)
    code = fields.Text(required=True)
    reason = fields.Text(required=True)
    workflow_run_id = fields.Integer(required=True, allow_none=True)


class ContactDetailSchema(ContactSchema):
    variables = fields.Object(required=True)
    decisions = fields.Items(fields.Model(DecisionSchema), required=True)


class CheckListFormSchema(BodySchema):
    """The fields of a form that has a contact list."""

    workflow_id = fields.Integer(required=True)
    phone_number_column = number_column()
    telephony_configuration_id = fields.Integer(load_default=None)


class CheckedVariableSchema(ResponseSchema):
    """A variable of the workflow without a default, which the list must have."""

    name = fields.Text(required=True)
    is_column = fields.Flag(required=True)
    empty_rows = fields.Integer(required=True, description="rows to be called that have no value of it")


class CheckedRowSchema(ResponseSchema):
    row = fields.Integer(required=True, description="data row of the list, counted from 1")
    phone_number = fields.Text(required=True)
    skipped = fields.Text(required=True, allow_none=True, description="why it isn't called")


class PreviewRowSchema(CheckedRowSchema):
    values = fields.Object(required=True, description="texts by column: at most 50 of them, of 200 characters")


class CheckedListSchema(ResponseSchema):
    columns = fields.Items(fields.Text(), required=True)
    variables = fields.Items(fields.Model(CheckedVariableSchema), required=True)
    rows = fields.Integer(required=True)
    skipped_count = fields.Integer(required=True)
    skipped = fields.Items(fields.Model(CheckedRowSchema), required=True, description="at most 100")
    preview = fields.Items(fields.Model(PreviewRowSchema), required=True, description="the first 10 rows")
    refusal = fields.Text(required=True, allow_none=True, description="why no campaign can be created with the list")


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
    shortest = fields.Number(required=True, validate=fields.Range(min=0, max=LONGEST_TALK))
    longest = fields.Number(required=True, validate=fields.Range(min=0, max=LONGEST_TALK))


class SimulateSchema(BodySchema):
    """A dry run: `outcomes` gives the share of each outcome of a call, such as {"answered": 3, "busy": 1}."""

    seed = fields.Integer(load_default=1)
    outcomes = fields.Object(load_default=None, validate=check_shares)
    talk_seconds = fields.Model(TalkSecondsSchema, load_default=None)
    starts_at = fields.Time(
        load_default=None, validate=check_start, description="the campaign's created_at if left out"
    )
    days = fields.Integer(load_default=14, validate=fields.Range(min=1, max=LONGEST_RUN_DAYS))


class HourSchema(ResponseSchema):
    hour = fields.Text(required=True, metadata={"format": "date-time"})
    attempts = fields.Integer(required=True)
    retries = fields.Integer(required=True)
    answered = fields.Integer(required=True)
    minutes = fields.Number(required=True)


class SkippedContactSchema(ResponseSchema):
    row = fields.Integer(required=True)
    phone_number = fields.Text(required=True)
    code = fields.Text(required=True)
    reason = fields.Text(required=True)


class SimulationSchema(ResponseSchema):
    seed = fields.Integer(required=True)
    starts_at = fields.Time(required=True)
    first_call_at = fields.Time(required=True, allow_none=True, description="null when nobody is called")
    ends_at = fields.Time(required=True, allow_none=True, description="null when it was cut off")
    contacts = fields.Object(required=True, description="how many contacts end in each state")
    attempts = fields.Integer(required=True)
    retries = fields.Integer(required=True)
    outcomes = fields.Object(required=True)
    skipped = fields.Object(required=True, description="how many contacts are never called, by code")
    postponed = fields.Object(required=True, description="how often a contact had to wait, by code")
    peak_concurrency = fields.Integer(required=True)
    minutes = fields.Number(required=True)
    circuit_breaker_trips = fields.Items(fields.Text(), required=True)
    timeline = fields.Items(fields.Model(HourSchema), required=True)
    skipped_contacts = fields.Items(fields.Model(SkippedContactSchema), required=True, description="at most 1000")


class ForbidListQuerySchema(QuerySchema):
    phone_number_column = number_column()


class ForbidSchema(BodySchema):
    phone_numbers = fields.Items(fields.Text(), required=True, validate=fields.Length(min=1, max=1000))
    reason = fields.Text(load_default=None, validate=NAME)


class ForbiddenSchema(ResponseSchema):
    phone_number = fields.Text(required=True)
    reason = fields.Text(required=True, allow_none=True)
    created_at = fields.Time(required=True)


class ForbiddenPageSchema(PageSchema):
    phone_numbers = fields.Items(fields.Model(ForbiddenSchema), required=True)


class AddedSchema(ResponseSchema):
    added = fields.Integer(required=True)
    already_listed = fields.Integer(required=True)


class RefusedRowSchema(ResponseSchema):
    row = fields.Integer(required=True)
    reason = fields.Text(required=True)


class AddedListSchema(AddedSchema):
    refused_count = fields.Integer(required=True)
    refused = fields.Items(fields.Model(RefusedRowSchema), required=True, description="at most 1000")


@blueprint.post("/campaign/create/csv")
@blueprint.alt_response(503)
@blueprint.doc(requestBody=FORM)
@blueprint.alt_response(400)
@blueprint.alt_response(409)
@blueprint.alt_response(413, description="The list is larger than 10 MiB")
@blueprint.alt_response(415)
@blueprint.arguments(RepeatableSchema, location="headers")
@blueprint.response(200, CampaignSchema, headers=HEADERS)
def create_campaign_with_list(headers: dict[str, Any]) -> Response:
    """Create a campaign with its contact list: a form of the same fields, and the list as `file`."""
    body, form, content = read_campaign(request, CreateCampaignFormSchema())
    file_name = form.file_name or "contacts.csv"

    def sent() -> Any:
        texts = {name: [text] for name, text in form.fields.items()}
        return [texts, file_name, hashlib.sha256(content).hexdigest()]

    with idempotent(organization(), headers["idempotency_key"], campaign_answer, sent) as once:
        if not once.is_repeated:
            with (
                contact_list.reading(service(), organization(), len(content)),
                files.stored(organization(), file_name, content) as key,
            ):
                wanted = {**body, "source_type": "csv", "source_id": key}
                once.save(campaigns.create(service(), organization(), wanted, "file", once.reserve))
    return answer_once(once)


@blueprint.post("/campaign/check/csv")
@blueprint.alt_response(503)
@blueprint.doc(requestBody=CHECK_FORM)
@blueprint.alt_response(400)
@blueprint.alt_response(413, description="The list is larger than 10 MiB")
@blueprint.alt_response(415)
@blueprint.response(200, CheckedListSchema)
def check_list() -> dict[str, Any]:
    """Check a contact list against a workflow, as creating a campaign would: nothing is stored."""
    body, _, content = read_campaign(request, CheckListFormSchema())
    return contacts.check(service(), organization(), body, content)


@blueprint.get("/campaign/<campaign_id>/contacts")
@blueprint.arguments(ContactsQuerySchema, location="query")
@blueprint.response(200, ContactsSchema)
def list_contacts(query: dict[str, Any], campaign_id: int) -> dict[str, Any]:
    """List the contacts of a campaign: where each stands, and why."""
    state, page, limit = query["state"], query["page"], query["limit"]
    found, total = contacts.listed(service(), organization(), campaign_id, state, page, limit)
    return {**paging(total, query), "contacts": found}


@blueprint.get("/campaign/<campaign_id>/contacts/report")
@blueprint.alt_response(503)
@blueprint.arguments(ContactsReportQuerySchema, location="query")
@blueprint.response(200, {"type": "string"}, content_type="text/csv")
def download_contacts(query: dict[str, Any], campaign_id: int) -> Response:
    """Download the contacts of a campaign as CSV: the columns of its list, then where each stands, and why."""
    campaigns.get(organization(), campaign_id)
    state, counted = query["state"], dialing.states(campaign_id)
    name = f"campaign_{campaign_id}_{state or 'all'}_contacts.csv"
    is_long = (sum(counted.values()) if state is None else counted[state]) > LONG_REPORT
    return csv_answer(name, contacts.text(service(), campaign_id, state), is_long=is_long)


@blueprint.get("/campaign/<campaign_id>/contacts/<row_id>")
@blueprint.response(200, ContactDetailSchema)
def get_contact(campaign_id: int, row_id: int) -> dict[str, Any]:
    """Get the contact of a data row, with every decision about it."""
    return contacts.one_of(service(), organization(), campaign_id, row_id)


@blueprint.post("/campaign/<campaign_id>/simulate")
@blueprint.alt_response(503)
@blueprint.arguments(SimulateSchema)
@blueprint.response(200, SimulationSchema)
def simulate_campaign(body: dict[str, Any], campaign_id: int) -> dict[str, Any]:
    """Simulate a campaign on a virtual clock: nobody is called, nothing is stored."""
    campaign = campaigns.get(organization(), campaign_id)
    with contact_list.reading(service(), organization(), files.size(organization(), campaign.source_id)):
        return report.simulate(service(), campaign, body)


@blueprint.post("/campaign/simulate/csv")
@blueprint.alt_response(503)
@blueprint.doc(requestBody=FORM)
@blueprint.alt_response(400)
@blueprint.alt_response(413, description="The list is larger than 10 MiB")
@blueprint.alt_response(415)
@blueprint.response(200, SimulationSchema)
def simulate_list() -> dict[str, Any]:
    """Simulate a campaign before it is made, from the form that makes one, as if it began now: nothing is stored."""
    body, _, content = read_campaign(request, CreateCampaignFormSchema())
    with contact_list.reading(service(), organization(), len(content)):
        wanted = {**body, "source_type": "csv", "source_id": ""}
        campaign = campaigns.drafted(service(), organization(), wanted, lambda: content)
        return report.simulate(service(), campaign, {**SimulateSchema().load({}), "starts_at": now()}, content)


@blueprint.get("/do-not-call")
@blueprint.arguments(PagingSchema, location="query")
@blueprint.response(200, ForbiddenPageSchema)
def list_numbers_not_to_call(query: dict[str, Any]) -> dict[str, Any]:
    """List the numbers on the do-not-call list, the newest first."""
    entries, total = do_not_call.listed(organization(), query["page"], query["limit"])
    return {
        **paging(total, query),
        "phone_numbers": [answer_of(ForbiddenSchema, entry) for entry in entries],
    }


@blueprint.post("/do-not-call")
@blueprint.arguments(ForbidSchema)
@blueprint.response(200, AddedSchema)
def add_numbers_not_to_call(body: dict[str, Any]) -> dict[str, Any]:
    """Put numbers on the do-not-call list."""
    numbers = body["phone_numbers"]
    added = do_not_call.add(organization(), numbers, body["reason"])
    return {"added": added, "already_listed": len(numbers) - added}


@blueprint.post("/do-not-call/csv")
@blueprint.alt_response(503)
@blueprint.doc(requestBody=CSV)
@blueprint.alt_response(400)
@blueprint.alt_response(413, description="The list is larger than 10 MiB")
@blueprint.alt_response(415)
@blueprint.arguments(ForbidListQuerySchema, location="query")
@blueprint.response(200, AddedListSchema)
def add_list_not_to_call(query: dict[str, Any]) -> dict[str, Any]:
    """Put the column of a CSV with the numbers on the do-not-call list."""
    content = read_file(request, files.LARGEST, "A list")
    added = do_not_call.add_list(service(), organization(), content, query["phone_number_column"])
    return {
        "added": added.new,
        "already_listed": added.already_listed,
        "refused_count": added.refused_count,
        "refused": [{"row": row, "reason": reason} for row, reason in added.refused.items()],
    }


@blueprint.delete("/do-not-call/<phone_number>")
@blueprint.response(200, DoneSchema)
def remove_number_not_to_call(phone_number: str) -> dict[str, Any]:
    """Take a number off the do-not-call list."""
    do_not_call.remove(organization(), phone_number)
    return {"message": "The number may be called again"}
