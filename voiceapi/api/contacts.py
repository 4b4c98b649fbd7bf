"""The contacts of a campaign, its dry run, and a campaign made with its list in one request."""

from __future__ import annotations

import hashlib
from typing import Any

from flask import Response, request

from ..campaigns import campaigns, contacts
from ..campaigns.campaigns import Claim
from ..campaigns.dry_run import report
from ..runs import files
from ..store.campaigns import Campaign as Record
from .auth import organization, service
from .blueprint import Blueprint
from .campaigns import answer
from .idempotent import HEADERS, once
from .multipart import FORM, read_form
from .schemas.base import ErrorBody, Repeatable
from .schemas.campaigns import Campaign, CreateCampaignForm
from .schemas.contacts import ContactDetail, Contacts, ContactsQuery, Simulate, Simulation

blueprint = Blueprint("contacts", __name__, tag="campaigns", url_prefix="/campaign")


@blueprint.post("/create/csv")
@blueprint.doc(requestBody=FORM)  # type: ignore[untyped-decorator]
@blueprint.alt_response(400, schema=ErrorBody)
@blueprint.alt_response(409, schema=ErrorBody)
@blueprint.alt_response(413, schema=ErrorBody, description="The list is larger than 10 MiB")
@blueprint.arguments(Repeatable, location="headers")
@blueprint.response(200, Campaign, headers=HEADERS)
def create_campaign_with_list(headers: dict[str, Any]) -> Response:
    """Create a campaign with its contact list: a form of the same fields, and the list as `file`."""
    body, file_name, content = read_form(request, CreateCampaignForm())

    def create(claim: Claim | None) -> Record:
        with files.stored(organization(), file_name, content) as key:
            wanted = {**body, "source_type": "csv", "source_id": key}
            return campaigns.create(service(), organization(), wanted, "file", claim)

    def form() -> Any:
        return [request.form.to_dict(flat=False), file_name, hashlib.sha256(content).hexdigest()]

    return once(Campaign(), organization(), headers["idempotency_key"], create, answer, form)


@blueprint.get("/<campaign_id>/contacts")
@blueprint.arguments(ContactsQuery, location="query")
@blueprint.response(200, Contacts)
def list_contacts(query: dict[str, Any], campaign_id: int) -> dict[str, Any]:
    """List the contacts of a campaign: where each stands, and why."""
    page, limit = query["page"], query["limit"]
    found, total = contacts.listed(service(), organization(), campaign_id, query["state"], page, limit)
    paging = {"total_count": total, "page": page, "limit": limit, "total_pages": -(-total // limit)}
    return {**paging, "contacts": found}


@blueprint.get("/<campaign_id>/contacts/<row_id>")
@blueprint.response(200, ContactDetail)
def get_contact(campaign_id: int, row_id: int) -> dict[str, Any]:
    """Get the contact of a data row, with every decision about it."""
    return contacts.one_of(service(), organization(), campaign_id, row_id)


@blueprint.post("/<campaign_id>/simulate")
@blueprint.arguments(Simulate)
@blueprint.response(200, Simulation)
def simulate_campaign(body: dict[str, Any], campaign_id: int) -> dict[str, Any]:
    """Live through a campaign on a virtual clock: nobody is called, nothing is stored."""
    return report.simulate(service(), organization(), campaign_id, body)
