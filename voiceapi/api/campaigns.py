"""Campaigns: create, list, read, change (specification 4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import campaigns, filters
from ..store import runs as store
from ..store.models import Campaign as Record
from .access import organization, service
from .blueprint import Blueprint
from .bodies.campaigns import Campaign, Campaigns, CreateCampaign, Defaults, UpdateCampaign
from .bodies.runs import CampaignRuns, RunsQuery
from .runs import paging, run_answer, view

blueprint = Blueprint("campaigns", __name__)

SETTINGS = ("retry_config", "max_concurrency", "schedule_config", "circuit_breaker")
AS_STORED = (
    *("id", "name", "workflow_id", "state", "source_type", "source_id", "total_rows", "processed_rows", "failed_rows"),
    *("created_at", "started_at", "completed_at", *SETTINGS, "executed_count", "total_queued_count"),
    *("parent_campaign_id", "redialed_campaign_id", "telephony_configuration_id", "logs"),
)


@blueprint.post("/campaign/create")
@blueprint.arguments(CreateCampaign)
@blueprint.response(200, Campaign)
def create_campaign(body: dict[str, Any]) -> dict[str, Any]:
    """Create a new campaign."""
    return answers([campaigns.create(service(), organization(), body)])[0]


@blueprint.get("/campaign/")
@blueprint.response(200, Campaigns)
def list_campaigns() -> dict[str, Any]:
    """List all campaigns, the newest first."""
    return {"campaigns": answers(campaigns.listed(organization()))}


@blueprint.get("/campaign/<campaign_id>")
@blueprint.response(200, Campaign)
def get_campaign(campaign_id: int) -> dict[str, Any]:
    """Get one campaign with its settings and its log."""
    return answers([campaigns.find(organization(), campaign_id)])[0]


@blueprint.patch("/campaign/<campaign_id>")
@blueprint.arguments(UpdateCampaign)
@blueprint.response(200, Campaign)
def update_campaign(body: dict[str, Any], campaign_id: int) -> dict[str, Any]:
    """Change the name or the settings of a campaign that hasn't ended; what is left out stays."""
    return answers([campaigns.update(service(), organization(), campaign_id, body)])[0]


@blueprint.get("/campaign/<campaign_id>/runs")
@blueprint.arguments(RunsQuery, location="query")
@blueprint.response(200, CampaignRuns)
def list_campaign_runs(query: dict[str, Any], campaign_id: int) -> dict[str, Any]:
    """Get the runs of a campaign, with optional filtering and sorting."""
    campaign = campaigns.find(organization(), campaign_id, f"Campaign {campaign_id} not found")
    conditions, _ = filters.read(query["filters"], filters.OF_WORKFLOW)
    page = store.of_campaign(campaign, conditions, **view(query))
    return {**paging(page.total, query), "runs": [run_answer(run) for run in page.runs]}


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


def answers(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Campaigns as they are shown."""
    workflows, configurations = campaigns.names(records)
    shown = [{name: getattr(record, name) for name in AS_STORED} for record in records]
    for campaign in shown:
        campaign["workflow_name"] = workflows.get(campaign["workflow_id"], "Unknown")
        campaign["telephony_configuration_name"] = configurations.get(campaign["telephony_configuration_id"])
    return shown
