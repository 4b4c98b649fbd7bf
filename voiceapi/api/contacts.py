"""The contacts of a campaign, its dry run, a campaign made with its list in one request, and the do-not-call list."""

from __future__ import annotations

import hashlib
from typing import Any

from flask import Response, request

from ..campaigns import campaigns, contact_list, contact_report, contacts, do_not_call, list_check
from ..campaigns.campaigns import Reserve
from ..campaigns.dry_run import report
from ..runs import files
from ..store import dialing
from ..store.campaigns import Campaign
from .auth import organization, service
from .blueprint import Blueprint
from .campaign_form import CHECK_FORM, FORM, read_campaign
from .campaigns import campaign_answer
from .idempotent import HEADERS, answer_once
from .request_body import read_file
from .runs import LONG_REPORT, csv_answer, paging
from .schemas.base import DoneSchema, PagingSchema, RepeatableSchema
from .schemas.campaigns import CampaignSchema, CreateCampaignFormSchema
from .schemas.contacts import (
    AddedListSchema,
    AddedSchema,
    CheckedListSchema,
    CheckListFormSchema,
    ContactDetailSchema,
    ContactsQuerySchema,
    ContactsReportQuerySchema,
    ContactsSchema,
    ForbiddenPageSchema,
    ForbidSchema,
    SimulateSchema,
    SimulationSchema,
)

blueprint = Blueprint("contacts", __name__, tag="campaigns")

CSV = {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}}


@blueprint.post("/campaign/create/csv")
@blueprint.alt_response(503)
@blueprint.doc(requestBody=FORM)  # type: ignore[untyped-decorator]
@blueprint.alt_response(400)
@blueprint.alt_response(409)
@blueprint.alt_response(413, description="The list is larger than 10 MiB")
@blueprint.arguments(RepeatableSchema, location="headers")
@blueprint.response(200, CampaignSchema, headers=HEADERS)
def create_campaign_with_list(headers: dict[str, Any]) -> Response:
    """Create a campaign with its contact list: a form of the same fields, and the list as `file`."""
    body, form, content = read_campaign(request, CreateCampaignFormSchema())
    file_name = form.file_name or "contacts.csv"

    def create(reserve: Reserve | None) -> Campaign:
        with (
            contact_list.reading(service(), organization(), len(content)),
            files.stored(organization(), file_name, content) as key,
        ):
            wanted = {**body, "source_type": "csv", "source_id": key}
            return campaigns.create(service(), organization(), wanted, "file", reserve)

    def sent() -> Any:
        fields = {name: [text] for name, text in form.fields.items()}
        return [fields, file_name, hashlib.sha256(content).hexdigest()]

    return answer_once(organization(), headers["idempotency_key"], create, campaign_answer, sent)


@blueprint.post("/campaign/check/csv")
@blueprint.alt_response(503)
@blueprint.doc(requestBody=CHECK_FORM)  # type: ignore[untyped-decorator]
@blueprint.alt_response(400)
@blueprint.alt_response(413, description="The list is larger than 10 MiB")
@blueprint.response(200, CheckedListSchema)
def check_list() -> dict[str, Any]:
    """Check a contact list against a workflow, as creating a campaign would: nothing is stored."""
    body, _, content = read_campaign(request, CheckListFormSchema())
    return list_check.check(service(), organization(), body, content)


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
    return csv_answer(name, contact_report.text(service(), campaign_id, state), is_long=is_long)


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
    source = campaigns.get(organization(), campaign_id).source_id
    with contact_list.reading(service(), organization(), files.size(organization(), source)):
        return report.simulate(service(), organization(), campaign_id, body)


@blueprint.get("/do-not-call")
@blueprint.arguments(PagingSchema, location="query")
@blueprint.response(200, ForbiddenPageSchema)
def list_numbers_not_to_call(query: dict[str, Any]) -> dict[str, Any]:
    """List the numbers that campaigns don't call, the newest first."""
    entries, total = do_not_call.listed(organization(), query["page"], query["limit"])
    return {
        **paging(total, query),
        "phone_numbers": [
            {"phone_number": entry.phone_number, "reason": entry.reason, "created_at": entry.created_at}
            for entry in entries
        ],
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
@blueprint.doc(requestBody=CSV)  # type: ignore[untyped-decorator]
@blueprint.alt_response(400)
@blueprint.alt_response(413, description="The list is larger than 10 MiB")
@blueprint.response(200, AddedListSchema)
def add_list_not_to_call() -> dict[str, Any]:
    """Put the column phone_number of a CSV on the do-not-call list."""
    content = read_file(request, files.LARGEST, "A list")
    added = do_not_call.add_list(service(), organization(), content)
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
