"""Campaigns: create, list, read, change, start, pause, resume, dial again (specification 4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Response

from ..campaigns import campaigns
from ..campaigns import lifecycle as course
from ..campaigns.campaigns import Claim
from ..runs import files, filters
from ..store import runs as store
from ..store.campaigns import Campaign as Record
from ..store.runs import Run
from .auth import organization, service
from .blueprint import Blueprint
from .idempotent import HEADERS, once
from .runs import csv_answer, paging, run_answer, view
from .schemas.base import ErrorBody, Repeatable
from .schemas.campaigns import (
    Campaign,
    Campaigns,
    CreateCampaign,
    Defaults,
    Progress,
    Redial,
    SourceDownload,
    UpdateCampaign,
)
from .schemas.runs import CampaignRuns, ReportQuery, RunsQuery

blueprint = Blueprint("campaigns", __name__)

# Seconds that an address of a contact list is good for.
SOURCE_LASTS = 3600
SETTINGS = ("retry_config", "max_concurrency", "schedule_config", "circuit_breaker")
AS_STORED = (
    *("id", "name", "workflow_id", "state", "source_type", "source_id", "total_rows", "processed_rows", "failed_rows"),
    *("created_at", "started_at", "completed_at", *SETTINGS, "executed_count", "total_queued_count"),
    *("parent_campaign_id", "redialed_campaign_id", "telephony_configuration_id", "logs"),
    *("calling_hours", "max_attempts_per_day"),
)


@blueprint.post("/campaign/create")
@blueprint.alt_response(409, schema=ErrorBody)
@blueprint.arguments(Repeatable, location="headers")
@blueprint.arguments(CreateCampaign)
@blueprint.response(200, Campaign, headers=HEADERS)
def create_campaign(headers: dict[str, Any], body: dict[str, Any]) -> Response:
    """Create a new campaign."""

    def create(claim: Claim | None) -> Record:
        return campaigns.create(service(), organization(), body, claim=claim)

    return once(Campaign(), organization(), headers["idempotency_key"], create, answer)


@blueprint.get("/campaign/")
@blueprint.response(200, Campaigns)
def list_campaigns() -> dict[str, Any]:
    """List all campaigns, the newest first."""
    return {"campaigns": answers(campaigns.listed(organization()))}


@blueprint.get("/campaign/<campaign_id>")
@blueprint.response(200, Campaign)
def get_campaign(campaign_id: int) -> dict[str, Any]:
    """Get one campaign with its settings and its log."""
    return answer(campaigns.get(organization(), campaign_id))


@blueprint.patch("/campaign/<campaign_id>")
@blueprint.arguments(UpdateCampaign)
@blueprint.response(200, Campaign)
def update_campaign(body: dict[str, Any], campaign_id: int) -> dict[str, Any]:
    """Change the name or the settings of a campaign that hasn't ended; what is left out stays."""
    return answer(campaigns.update(service(), organization(), campaign_id, body))


@blueprint.get("/campaign/<campaign_id>/runs")
@blueprint.arguments(RunsQuery, location="query")
@blueprint.response(200, CampaignRuns)
def list_campaign_runs(query: dict[str, Any], campaign_id: int) -> dict[str, Any]:
    """Get the runs of a campaign, with optional filtering and sorting."""
    campaign = campaigns.get(organization(), campaign_id, f"Campaign {campaign_id} not found")
    conditions, _ = filters.read(query["filters"], filters.OF_WORKFLOW)
    page = store.of_campaign(campaign, conditions, **view(query))
    return {**paging(page.total, query), "runs": [run_answer(run) for run in page.runs]}


@blueprint.post("/campaign/<campaign_id>/start")
@blueprint.alt_response(400, schema=ErrorBody)
@blueprint.response(200, Campaign)
def start_campaign(campaign_id: int) -> dict[str, Any]:
    """Start a campaign: its list is read, then it is dialed."""
    return answer(under_way(course.start(organization(), campaign_id)))


@blueprint.post("/campaign/<campaign_id>/pause")
@blueprint.alt_response(400, schema=ErrorBody)
@blueprint.response(200, Campaign)
def pause_campaign(campaign_id: int) -> dict[str, Any]:
    """Pause a campaign; the calls in progress go on to their end."""
    return answer(course.pause(organization(), campaign_id))


@blueprint.post("/campaign/<campaign_id>/resume")
@blueprint.alt_response(400, schema=ErrorBody)
@blueprint.response(200, Campaign)
def resume_campaign(campaign_id: int) -> dict[str, Any]:
    """Resume a paused campaign, with its circuit breaker reset."""
    return answer(under_way(course.resume(organization(), campaign_id)))


@blueprint.post("/campaign/<campaign_id>/redial")
@blueprint.arguments(Redial)
@blueprint.response(200, Campaign)
def redial_campaign(body: dict[str, Any], campaign_id: int) -> dict[str, Any]:
    """Make a campaign of those whom a completed one didn't reach."""
    return answer(course.redial(organization(), campaign_id, body))


@blueprint.get("/campaign/<campaign_id>/progress")
@blueprint.response(200, Progress)
def get_campaign_progress(campaign_id: int) -> dict[str, Any]:
    """Get how far a campaign is."""
    return course.progress(organization(), campaign_id)


@blueprint.get("/campaign/<campaign_id>/source-download-url")
@blueprint.response(200, SourceDownload)
def get_source_download_url(campaign_id: int) -> dict[str, Any]:
    """Get an address to fetch a campaign's contact list from, without a key."""
    campaign = campaigns.get(organization(), campaign_id)
    url = files.address(service(), organization(), campaign.source_id, SOURCE_LASTS, inline=False)
    return {"download_url": url, "expires_in": SOURCE_LASTS}


@blueprint.get("/campaign/<campaign_id>/report")
@blueprint.arguments(ReportQuery, location="query")
@blueprint.response(200, {"type": "string"}, content_type="text/csv")
def download_campaign_report(query: dict[str, Any], campaign_id: int) -> Response:
    """Download the completed runs of a campaign as CSV."""
    campaigns.get(organization(), campaign_id)
    return csv_answer(f"campaign_{campaign_id}_report.csv", [Run.campaign == campaign_id], query)


@blueprint.get("/organizations/campaign-defaults")
@blueprint.response(200, Defaults)
def get_campaign_defaults() -> dict[str, Any]:
    """Get the limits and settings that a new campaign starts from."""
    newest = next(iter(campaigns.listed(organization())), None)
    return {
        "concurrent_call_limit": service().settings.concurrent_calls,
        "from_numbers_count": campaigns.numbers_to_call_from(organization()),
        "default_retry_config": campaigns.RETRY,
        "last_campaign_settings": newest and {name: getattr(newest, name) for name in SETTINGS},
    }


def under_way(campaign: Record) -> Record:
    """The campaign, with this process's threads at work on it if they are to be."""
    if service().settings.worker:
        service().workers.start()
    return campaign


def answer(record: Record) -> dict[str, Any]:
    """A campaign as it is shown."""
    return answers([record])[0]


def answers(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Campaigns as they are shown."""
    workflows, configurations = campaigns.names(records)
    shown = [{name: getattr(record, name) for name in AS_STORED} for record in records]
    for campaign in shown:
        campaign["workflow_name"] = workflows.get(campaign["workflow_id"], "Unknown")
        campaign["telephony_configuration_name"] = configurations.get(campaign["telephony_configuration_id"])
    return shown
