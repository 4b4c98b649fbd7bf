"""Insights: what the runs of a workflow say about its nodes and edges."""

from __future__ import annotations

from typing import Any

from ..runs import filters, insights
from ..store.run_criteria import created_through
from .auth import organization, service
from .blueprint import Blueprint
from .schemas.insights import InsightsQuerySchema, InsightsSchema

blueprint = Blueprint("insights", __name__, url_prefix="/workflow", tag="runs")


@blueprint.get("/<workflow_id>/insights")
@blueprint.alt_response(503)
@blueprint.arguments(InsightsQuerySchema, location="query")
@blueprint.response(200, InsightsSchema)
def get_insights(query: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Count by node and edge what happened in the newest 10,000 of a workflow's runs that meet the filters."""
    criteria, _ = filters.read(query["filters"], filters.OF_INSIGHTS)
    criteria &= created_through(query["start_date"], query["end_date"])
    return insights.of_workflow(
        service(),
        organization(),
        workflow_id,
        criteria,
        version_number=query["version"],
        campaign_id=query["campaign_id"],
        drawing=query["drawing"],
    )
