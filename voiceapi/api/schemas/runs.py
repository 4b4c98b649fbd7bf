"""Schemas of runs: in a listing, alone, and in the organization's usage."""

from __future__ import annotations

from typing import Any

from marshmallow import post_load

from ...store.run_lists import View
from . import fields
from .base import BodySchema, PagingSchema, QuerySchema, ResponseSchema

DIRECTION = fields.Choice(("inbound", "outbound"))
IS_TEST = {"description": "held with a draft, or placed by a test trigger"}
RESULT = "the result: how the call or chat ended, as a code such as user_hangup"
ANSWERS = "the answers that the agent found out, and what the service notes of the call"
FILTERS = "a JSON array of criteria, each an object with attribute and value; its type may be left out"


class CreateRunSchema(BodySchema):
    mode = fields.Text(required=True, validate=fields.Length(max=64))
    name = fields.Text(required=True)


class CreatedRunSchema(ResponseSchema):
    id = fields.Integer(required=True)
    workflow_id = fields.Integer(required=True)
    name = fields.Text(required=True)
    mode = fields.Text(required=True)
    created_at = fields.Time(required=True)
    definition_id = fields.Integer(required=True)
    initial_context = fields.Object(required=True, allow_none=True, description="what was known before the call")


class RunsQuerySchema(PagingSchema):
    filters = fields.Text(load_default=None, description=FILTERS)
    sort_by = fields.Text(load_default="created_at", validate=fields.Choice(("created_at", "duration", "id", "name")))
    sort_order = fields.Text(load_default="desc", validate=fields.Choice(("asc", "desc")))

    @post_load
    def add_view(self, query: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add `view`: the page and the order that the query asks for."""
        view = View(query["page"], query["limit"], query["sort_by"], query["sort_order"] == "desc")
        return {**query, "view": view}


class UsageQuerySchema(RunsQuerySchema):
    start_date = fields.Time(load_default=None)
    end_date = fields.EndTime(load_default=None)


class ReportQuerySchema(QuerySchema):
    filters = fields.Text(load_default=None, description=FILTERS)
    start_date = fields.Time(load_default=None)
    end_date = fields.EndTime(load_default=None)


class ArtifactsSchema(ResponseSchema):
    """Where the files of a run are: storage keys, and public addresses once there are any."""

    transcript_url = fields.Text(required=True, allow_none=True)
    recording_url = fields.Text(required=True, allow_none=True)
    user_recording_url = fields.Text(required=True, allow_none=True)
    bot_recording_url = fields.Text(required=True, allow_none=True)
    transcript_public_url = fields.Text(required=True, allow_none=True)
    recording_public_url = fields.Text(required=True, allow_none=True)
    user_recording_public_url = fields.Text(required=True, allow_none=True)
    bot_recording_public_url = fields.Text(required=True, allow_none=True)
    public_access_token = fields.Text(required=True, allow_none=True)


class RunSchema(ArtifactsSchema):
    id = fields.Integer(required=True)
    workflow_id = fields.Integer(required=True)
    name = fields.Text(required=True)
    mode = fields.Text(required=True)
    created_at = fields.Time(required=True)
    is_completed = fields.Flag(required=True)
    is_test = fields.Flag(required=True, metadata=IS_TEST)
    call_type = fields.Text(required=True, validate=DIRECTION)
    definition_id = fields.Integer(required=True, allow_none=True)
    caller_number = fields.Text(required=True, allow_none=True)
    called_number = fields.Text(required=True, allow_none=True)
    call_duration_seconds = fields.Integer(required=True, allow_none=True)
    disposition = fields.Text(required=True, allow_none=True, description=RESULT)
    cost_info = fields.Object(required=True, allow_none=True)
    usage_info = fields.Object(required=True, allow_none=True)
    initial_context = fields.Object(required=True, allow_none=True, description="what was known before the call")
    gathered_context = fields.Object(required=True, allow_none=True, description=ANSWERS)
    logs = fields.Object(required=True, allow_none=True)
    annotations = fields.Object(required=True, allow_none=True)


class RunDetailsSchema(RunSchema):
    """A run alone."""

    content_hash = fields.Text(
        required=True,
        allow_none=True,
        description="that of the version as it carried the run out; null for a run of an earlier release",
    )


class PageSchema(ResponseSchema):
    total_count = fields.Integer(required=True)
    page = fields.Integer(required=True)
    limit = fields.Integer(required=True)
    total_pages = fields.Integer(required=True)


class CampaignRunsSchema(PageSchema):
    runs = fields.Items(fields.Model(RunSchema), required=True)


class WorkflowRunsSchema(CampaignRunsSchema):
    applied_filters = fields.Items(fields.Object(), required=True, allow_none=True)


class UsedRunSchema(ArtifactsSchema):
    id = fields.Integer(required=True)
    workflow_id = fields.Integer(required=True)
    workflow_name = fields.Text(required=True, allow_none=True)
    name = fields.Text(required=True)
    created_at = fields.Time(required=True)
    dograh_token_usage = fields.Number(required=True)
    call_duration_seconds = fields.Integer(required=True)
    phone_number = fields.Text(required=True, allow_none=True, metadata={"deprecated": True})
    caller_number = fields.Text(required=True, allow_none=True)
    called_number = fields.Text(required=True, allow_none=True)
    call_type = fields.Text(required=True, allow_none=True)
    mode = fields.Text(required=True, allow_none=True)
    campaign_id = fields.Integer(required=True, allow_none=True)
    is_completed = fields.Flag(required=True)
    is_test = fields.Flag(required=True, metadata=IS_TEST)
    disposition = fields.Text(required=True, allow_none=True, description=RESULT)
    initial_context = fields.Object(required=True, allow_none=True, description="what was known before the call")
    gathered_context = fields.Object(required=True, allow_none=True, description=ANSWERS)
    charge_usd = fields.Number(required=True, allow_none=True)


class UsageSchema(PageSchema):
    runs = fields.Items(fields.Model(UsedRunSchema), required=True)
    total_dograh_tokens = fields.Number(required=True)
    total_duration_seconds = fields.Integer(required=True, description="of the runs of this page")


class TotalsQuerySchema(QuerySchema):
    include_tests = fields.Flag(load_default=False, description="also runs that are tests, see is_test of a run")


class TotalsSchema(ResponseSchema):
    total_count = fields.Integer(required=True)
    total_duration_seconds = fields.Integer(required=True)
