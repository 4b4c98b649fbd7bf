"""Campaigns: create, list, read, change, start, pause, resume, dial again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Response

from ..campaigns import campaigns, contact_list, lifecycle
from ..runs import files, filters
from ..store import run_lists
from ..store.campaigns import Campaign
from ..store.run_lists import column_is
from ..store.tags import CAMPAIGN
from .answers import answer_of, expected, paging, tagged
from .auth import base_url, organization, service
from .blueprint import Blueprint
from .idempotent import HEADERS, answer_once, idempotent
from .runs import csv_response, run_answer
from .schemas import campaigns as schemas
from .schemas.base import EDIT_TAG, EditSchema, RepeatableSchema
from .schemas.runs import CampaignRunsSchema, ReportQuerySchema, RunsQuerySchema

blueprint = Blueprint("campaigns", __name__)

# How long the address of a contact list is valid.
SOURCE_URL_SECONDS = 3600
SETTINGS = ("retry_config", "max_concurrency", "schedule_config", "circuit_breaker")


@blueprint.post("/campaign/create")
@blueprint.alt_response(503)
@blueprint.alt_response(409)
@blueprint.arguments(RepeatableSchema, location="headers")
@blueprint.arguments(schemas.CreateCampaignSchema)
@blueprint.response(200, schemas.CampaignSchema, headers=HEADERS)
def create_campaign(headers: dict[str, Any], body: dict[str, Any]) -> Response:
    """Create a new campaign."""
    with idempotent(organization(), headers["idempotency_key"], campaign_answer) as once:
        if not once.is_repeated:
            with contact_list.reading(service(), organization(), files.size(organization(), body["source_id"])):
                once.save(campaigns.create(service(), organization(), body, reserve=once.reserve))
    return answer_once(once)


@blueprint.get("/campaign/")
@blueprint.response(200, schemas.CampaignsSchema)
def list_campaigns() -> dict[str, Any]:
    """List all campaigns, the newest first."""
    return {"campaigns": campaign_answers(campaigns.listed(organization()))}


@blueprint.get("/campaign/<campaign_id>")
@blueprint.response(200, schemas.CampaignSchema, headers=EDIT_TAG)
def get_campaign(campaign_id: int) -> Response:
    """Get one campaign with its settings and its log."""
    return show_campaign(campaigns.get(organization(), campaign_id))


@blueprint.patch("/campaign/<campaign_id>")
@blueprint.alt_response(412)
@blueprint.arguments(EditSchema, location="headers")
@blueprint.arguments(schemas.UpdateCampaignSchema)
@blueprint.response(200, schemas.CampaignSchema, headers=EDIT_TAG)
def update_campaign(headers: dict[str, Any], body: dict[str, Any], campaign_id: int) -> Response:
    """Change the name or the settings of a campaign that hasn't ended; what is left out stays."""
    return show_campaign(campaigns.update(service(), organization(), campaign_id, body, expected(headers)))


@blueprint.get("/campaign/<campaign_id>/runs")
@blueprint.arguments(RunsQuerySchema, location="query")
@blueprint.response(200, CampaignRunsSchema)
def list_campaign_runs(query: dict[str, Any], campaign_id: int) -> dict[str, Any]:
    """Get the runs of a campaign, with optional filtering and sorting."""
    campaign = campaigns.get(organization(), campaign_id, f"Campaign {campaign_id} not found")
    criteria, _ = filters.read(query["filters"], filters.OF_WORKFLOW)
    page = run_lists.of_campaign(campaign, criteria, query["view"])
    return {**paging(page.total, query), "runs": [run_answer(run) for run in page.runs]}


@blueprint.post("/campaign/<campaign_id>/start")
@blueprint.alt_response(400)
@blueprint.response(200, schemas.CampaignSchema)
def start_campaign(campaign_id: int) -> dict[str, Any]:
    """Start a campaign: its list is read, then it is dialed."""
    campaign = lifecycle.start(organization(), campaign_id)
    start_workers()
    return campaign_answer(campaign)


@blueprint.post("/campaign/<campaign_id>/pause")
@blueprint.alt_response(400)
@blueprint.response(200, schemas.CampaignSchema)
def pause_campaign(campaign_id: int) -> dict[str, Any]:
    """Pause a campaign; the calls in progress go on to their end."""
    return campaign_answer(lifecycle.pause(organization(), campaign_id))


@blueprint.post("/campaign/<campaign_id>/resume")
@blueprint.alt_response(400)
@blueprint.response(200, schemas.CampaignSchema)
def resume_campaign(campaign_id: int) -> dict[str, Any]:
    """Resume a paused campaign, with its circuit breaker reset."""
    campaign = lifecycle.resume(organization(), campaign_id)
    start_workers()
    return campaign_answer(campaign)


@blueprint.post("/campaign/<campaign_id>/redial")
@blueprint.arguments(schemas.RedialSchema)
@blueprint.response(200, schemas.CampaignSchema)
def redial_campaign(body: dict[str, Any], campaign_id: int) -> dict[str, Any]:
    """Make a campaign of the contacts that a completed one did not reach."""
    return campaign_answer(lifecycle.redial(organization(), campaign_id, body))


@blueprint.get("/campaign/<campaign_id>/progress")
@blueprint.response(200, schemas.ProgressSchema)
def get_campaign_progress(campaign_id: int) -> dict[str, Any]:
    """Get how far a campaign is."""
    return lifecycle.progress(organization(), campaign_id)


@blueprint.get("/campaign/<campaign_id>/outcomes")
@blueprint.response(200, schemas.OutcomesSchema)
def get_campaign_outcomes(campaign_id: int) -> dict[str, Any]:
    """Count the calls of a campaign by whether they were answered (outcome), and by result (disposition)."""
    return lifecycle.outcomes(organization(), campaign_id)


@blueprint.get("/campaign/<campaign_id>/source-download-url")
@blueprint.response(200, schemas.SourceDownloadSchema)
def get_source_download_url(campaign_id: int) -> dict[str, Any]:
    """Get an address to fetch a campaign's contact list from, without a key."""
    campaign = campaigns.get(organization(), campaign_id)
    url = files.address(service(), base_url(), organization(), campaign.source_id, SOURCE_URL_SECONDS, inline=False)
    return {"download_url": url, "expires_in": SOURCE_URL_SECONDS}


@blueprint.get("/campaign/<campaign_id>/report")
@blueprint.alt_response(503)
@blueprint.arguments(ReportQuerySchema, location="query")
@blueprint.response(200, {"type": "string"}, content_type="text/csv")
def download_campaign_report(query: dict[str, Any], campaign_id: int) -> Response:
    """Download the completed runs of a campaign as CSV."""
    campaigns.get(organization(), campaign_id)
    name = f"campaign_{campaign_id}_report.csv"
    return csv_response(name, column_is("campaign_id", campaign_id), filters.OF_WORKFLOW, query)


@blueprint.get("/organizations/campaign-defaults")
@blueprint.response(200, schemas.DefaultsSchema)
def get_campaign_defaults() -> dict[str, Any]:
    """Get the limits and settings that a new campaign starts from."""
    newest = next(iter(campaigns.listed(organization())), None)
    return {
        "concurrent_call_limit": service().settings.concurrent_calls,
        "from_numbers_count": campaigns.numbers_to_call_from(organization()),
        "default_retry_config": campaigns.RETRY,
        "last_campaign_settings": newest and {name: getattr(newest, name) for name in SETTINGS},
    }


def start_workers() -> None:
    """Start this process's threads, the dialer among them, unless VOICEAPI_WORKER is off."""
    if service().settings.worker:
        service().workers.start()


def show_campaign(campaign: Campaign) -> Response:
    return tagged(CAMPAIGN.tag(campaign), campaign_answer(campaign))


def campaign_answer(campaign: Campaign) -> dict[str, Any]:
    """A campaign as the API shows it."""
    return campaign_answers([campaign])[0]


def campaign_answers(found: Sequence[Campaign]) -> list[dict[str, Any]]:
    """Campaigns as the API shows them."""
    workflows, configurations = campaigns.names(found)
    return [
        answer_of(
            schemas.CampaignSchema,
            campaign,
            workflow_name=workflows.get(campaign.workflow_id, "Unknown"),
            telephony_configuration_name=configurations.get(campaign.telephony_configuration_id),
        )
        for campaign in found
    ]
