"""Schemas of runs: in a listing, alone, and in the organization's usage."""

from __future__ import annotations

from .base import BodySchema, PagingSchema, QuerySchema, ResponseSchema
from .fields import Choice, EndTime, Flag, Integer, Items, Length, Model, Number, Object, Text, Time

DIRECTION = Choice(("inbound", "outbound"))
FILTERS = "a JSON array of criteria, each an object with attribute and value; its type may be left out"


class CreateRunSchema(BodySchema):
    mode = Text(required=True, validate=Length(max=64))
    name = Text(required=True)


class CreatedRunSchema(ResponseSchema):
    id = Integer(required=True)
    workflow_id = Integer(required=True)
    name = Text(required=True)
    mode = Text(required=True)
    created_at = Time(required=True)
    definition_id = Integer(required=True)
    initial_context = Object(required=True, allow_none=True)


class RunsQuerySchema(PagingSchema):
    filters = Text(load_default=None, metadata={"description": FILTERS})
    sort_by = Text(load_default="created_at", validate=Choice(("created_at", "duration", "id", "name")))
    sort_order = Text(load_default="desc", validate=Choice(("asc", "desc")))


class UsageQuerySchema(RunsQuerySchema):
    start_date = Time(load_default=None)
    end_date = EndTime(load_default=None)


class ReportQuerySchema(QuerySchema):
    filters = Text(load_default=None, metadata={"description": FILTERS})
    start_date = Time(load_default=None)
    end_date = EndTime(load_default=None)


class ArtifactsSchema(ResponseSchema):
    """Where the files of a run are: storage keys, and public addresses once there are any."""

    transcript_url = Text(required=True, allow_none=True)
    recording_url = Text(required=True, allow_none=True)
    user_recording_url = Text(required=True, allow_none=True)
    bot_recording_url = Text(required=True, allow_none=True)
    transcript_public_url = Text(required=True, allow_none=True)
    recording_public_url = Text(required=True, allow_none=True)
    user_recording_public_url = Text(required=True, allow_none=True)
    bot_recording_public_url = Text(required=True, allow_none=True)
    public_access_token = Text(required=True, allow_none=True)


class RunSchema(ArtifactsSchema):
    id = Integer(required=True)
    workflow_id = Integer(required=True)
    name = Text(required=True)
    mode = Text(required=True)
    created_at = Time(required=True)
    is_completed = Flag(required=True)
    call_type = Text(required=True, validate=DIRECTION)
    definition_id = Integer(required=True, allow_none=True)
    caller_number = Text(required=True, allow_none=True)
    called_number = Text(required=True, allow_none=True)
    call_duration_seconds = Integer(required=True, allow_none=True)
    disposition = Text(required=True, allow_none=True)
    cost_info = Object(required=True, allow_none=True)
    usage_info = Object(required=True, allow_none=True)
    initial_context = Object(required=True, allow_none=True)
    gathered_context = Object(required=True, allow_none=True)
    logs = Object(required=True, allow_none=True)
    annotations = Object(required=True, allow_none=True)


class RunDetailsSchema(RunSchema):
    """A run alone."""

    content_hash = Text(
        required=True,
        allow_none=True,
        metadata={"description": "that of the version as it carried the run out; null for a run of an earlier release"},
    )


class PageSchema(ResponseSchema):
    total_count = Integer(required=True)
    page = Integer(required=True)
    limit = Integer(required=True)
    total_pages = Integer(required=True)


class CampaignRunsSchema(PageSchema):
    runs = Items(Model(RunSchema), required=True)


class WorkflowRunsSchema(CampaignRunsSchema):
    applied_filters = Items(Object(), required=True, allow_none=True)


class UsedRunSchema(ArtifactsSchema):
    id = Integer(required=True)
    workflow_id = Integer(required=True)
    workflow_name = Text(required=True, allow_none=True)
    name = Text(required=True)
    created_at = Time(required=True)
    dograh_token_usage = Number(required=True)
    call_duration_seconds = Integer(required=True)
    phone_number = Text(required=True, allow_none=True, metadata={"deprecated": True})
    caller_number = Text(required=True, allow_none=True)
    called_number = Text(required=True, allow_none=True)
    call_type = Text(required=True, allow_none=True)
    mode = Text(required=True, allow_none=True)
    campaign_id = Integer(required=True, allow_none=True)
    is_completed = Flag(required=True)
    disposition = Text(required=True, allow_none=True)
    initial_context = Object(required=True, allow_none=True)
    gathered_context = Object(required=True, allow_none=True)
    charge_usd = Number(required=True, allow_none=True)


class UsageSchema(PageSchema):
    runs = Items(Model(UsedRunSchema), required=True)
    total_dograh_tokens = Number(required=True)
    total_duration_seconds = Integer(required=True)
