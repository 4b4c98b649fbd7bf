"""Runs: list, read, prepare, report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from flask import Response

from ..calls import ending
from ..runs import filters, reports
from ..runs.preparation import prepare, transcript_address, usage, with_public_token
from ..store import run_lists
from ..store import runs as store
from ..store.base import require
from ..store.run_lists import Criteria, ListedRun, UsedRun, column_is, created_through
from ..store.runs import Run
from ..store.workflows import Workflow
from ..timestamps import write_time
from ..workflows import versions
from .answers import answer_of, compress, members_of, paging
from .auth import base_url, organization, service
from .blueprint import Blueprint
from .schemas import runs as schemas

blueprint = Blueprint("runs", __name__)

# Runs of a report that is read quickly.
LONG_REPORT = 2000


@blueprint.get("/workflow/<workflow_id>/runs")
@blueprint.arguments(schemas.RunsQuerySchema, location="query")
@blueprint.response(200, schemas.WorkflowRunsSchema)
def list_runs(query: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Get the runs of a workflow, calls and chats, with optional filtering and sorting."""
    workflow = versions.get(organization(), workflow_id)
    criteria, applied = filters.read(query["filters"], filters.OF_WORKFLOW)
    page = run_lists.of_workflow(workflow, criteria, query["view"])
    return {**paging(page.total, query), "runs": [run_answer(run) for run in page.runs], "applied_filters": applied}


@blueprint.get("/workflow/<workflow_id>/runs/<run_id>")
@blueprint.response(200, schemas.RunDetailsSchema)
def get_run(workflow_id: int, run_id: int) -> dict[str, Any]:
    """Get one run with its logs, its annotations and where its transcript is."""
    run = require(Run, "Workflow run not found", id=run_id, workflow=workflow_id, organization=organization())
    return run_with_details(run)


@blueprint.post("/workflow/<workflow_id>/runs/<run_id>/end")
@blueprint.alt_response(503)
@blueprint.alt_response(400, description="The carrier refused to end the call")
@blueprint.response(200, schemas.RunDetailsSchema)
def end_run(workflow_id: int, run_id: int) -> dict[str, Any]:
    """End a run: hang up on its call, or end its text chat; one that has ended stays as it is."""
    run = require(Run, "Workflow run not found", id=run_id, workflow=workflow_id, organization=organization())
    return run_with_details(ending.end(service(), run))


@blueprint.post("/workflow/<workflow_id>/runs")
@blueprint.arguments(schemas.CreateRunSchema)
@blueprint.response(200, schemas.CreatedRunSchema)
def create_run(body: dict[str, Any], workflow_id: int) -> dict[str, Any]:
    """Prepare a run: it can be dialed by initiate-call."""
    workflow = require(Workflow, "Workflow not found", id=workflow_id, organization=organization())
    run = prepare(workflow, body["name"], body["mode"])
    return answer_of(schemas.CreatedRunSchema, run, definition_id=run.version_id)


@blueprint.get("/workflow/<workflow_id>/report")
@blueprint.alt_response(503)
@blueprint.arguments(schemas.ReportQuerySchema, location="query")
@blueprint.response(200, {"type": "string"}, content_type="text/csv")
def download_report(query: dict[str, Any], workflow_id: int) -> Response:
    """Download the completed runs of a workflow as CSV."""
    workflow = versions.get(organization(), workflow_id)
    name = f"workflow_{workflow_id}_report.csv"
    return csv_response(name, column_is("workflow_id", workflow.id), filters.OF_WORKFLOW, query)


@blueprint.get("/organizations/usage/runs")
@blueprint.arguments(schemas.UsageQuerySchema, location="query")
@blueprint.response(200, schemas.UsageSchema)
def list_usage(query: dict[str, Any]) -> dict[str, Any]:
    """List all runs of the organization, calls and chats, newest first."""
    criteria, _ = filters.read(query["filters"], filters.OF_ORGANIZATION)
    criteria &= created_through(query["start_date"], query["end_date"])
    page = run_lists.of_organization(organization(), criteria, query["view"])
    url = base_url()
    used = [used_answer(run, url) for run in page.runs]
    return {
        **paging(page.total, query),
        "runs": used,
        "total_dograh_tokens": 0.0,
        "total_duration_seconds": sum(run["call_duration_seconds"] for run in used),
    }


@blueprint.get("/organizations/usage/totals")
@blueprint.arguments(schemas.TotalsQuerySchema, location="query")
@blueprint.response(200, schemas.TotalsSchema)
def get_totals(query: dict[str, Any]) -> dict[str, Any]:
    """Get how many runs the organization has, without tests, and how long all of them took."""
    count, seconds = run_lists.totals(organization(), include_tests=query["include_tests"])
    return {"total_count": count, "total_duration_seconds": round(seconds)}


@blueprint.get("/organizations/usage/runs/report")
@blueprint.alt_response(503)
@blueprint.arguments(schemas.ReportQuerySchema, location="query")
@blueprint.response(200, {"type": "string"}, content_type="text/csv")
def download_usage_report(query: dict[str, Any]) -> Response:
    """Download the completed runs of the organization as CSV."""
    owned = column_is("organization_id", organization())
    return csv_response("runs_report.csv", owned, filters.OF_ORGANIZATION, query)


def csv_response(filename: str, criteria: Criteria, allowed: tuple[str, ...], query: dict[str, Any]) -> Response:
    """The report of the runs that meet the criteria and the query's filters and dates, sent as it is read.

    :param allowed: the attributes that the filters may have.
    :raises OutOfService: when it is long and too many slow requests are in progress.
    """
    criteria &= filters.read(query["filters"], allowed)[0]
    criteria &= created_through(query["start_date"], query["end_date"])
    text = reports.text(service(), base_url(), criteria)
    return csv_answer(filename, text, is_long=run_lists.has_more(criteria, LONG_REPORT))


def csv_answer(filename: str, text: Iterator[str], *, is_long: bool) -> Response:
    """A CSV file, sent as it is made.

    :raises OutOfService: when it is long and too many slow requests are in progress.
    """
    response = Response(text, mimetype="text/csv")
    if is_long:
        # Until all of it is sent: a client that reads slowly holds the thread.
        permit = ExitStack()
        permit.enter_context(service().bulkhead.slow(organization()))
        response.call_on_close(permit.close)
    response.headers["Content-Disposition"] = f"attachment; filename={filename}"
    return compress(response)


NO_ARTIFACTS: dict[str, Any] = dict.fromkeys(members_of(schemas.ArtifactsSchema))


def run_answer(run: Run | ListedRun) -> dict[str, Any]:
    """A run as a list shows it; not by `answer_of`, which takes three times as long for a page of them."""
    seconds = None if run.duration is None else round(run.duration)
    return {
        **NO_ARTIFACTS,
        "id": run.id,
        "workflow_id": run.workflow_id,
        "name": run.name,
        "mode": run.mode,
        "created_at": run.created_at,
        "is_completed": run.is_completed,
        "is_test": run.is_test,
        "call_type": run.call_type,
        "definition_id": run.version_id,
        "caller_number": run.caller_number,
        "called_number": run.called_number,
        "call_duration_seconds": seconds,
        "disposition": run.disposition,
        "transcript_url": f"transcripts/{run.id}.txt" if run.has_transcript else None,
        "cost_info": None if seconds is None else {"dograh_token_usage": 0, "call_duration_seconds": seconds},
        "usage_info": None,
        "initial_context": run.initial_context,
        "gathered_context": run.gathered_context,
        "logs": None,
        "annotations": None,
    }


def run_with_details(run: Run) -> dict[str, Any]:
    """A run as the answer about it alone shows it."""
    run = with_public_token(run)
    return {**run_answer(run), **artifacts(run, base_url()), **details(run)}


def artifacts(run: Run | UsedRun, base_url: str) -> dict[str, Any]:
    """Where anyone who holds the token may fetch the run's transcript."""
    url = transcript_address(run, base_url)
    return {"public_access_token": run.public_access_token, "transcript_public_url": url}


def details(run: Run) -> dict[str, Any]:
    """The members that only the answer about a single run fills in."""
    events = [
        {
            "type": event.type,
            "payload": event.payload,
            "timestamp": write_time(event.at, "milliseconds"),
            "turn": event.turn,
            "node_id": event.node_id,
            "node_name": event.node_name,
        }
        for event in store.events(run)
    ]
    callbacks = [
        {"status": callback.status, "timestamp": write_time(callback.at), **callback.fields}
        for callback in store.status_callbacks(run.id)
    ]
    return {
        "logs": {"realtime_feedback_events": events, "telephony_status_callbacks": callbacks},
        "annotations": run.annotations,
        "content_hash": run.content_hash,
        "usage_info": usage(run) if run.llm_usage or run.duration is not None else None,
    }


def used_answer(run: UsedRun, base_url: str) -> dict[str, Any]:
    """A run as the organization's history of use shows it."""
    price = run.call_price or {}
    return {
        **NO_ARTIFACTS,
        "id": run.id,
        "workflow_id": run.workflow_id,
        "workflow_name": run.workflow_name,
        "name": run.name,
        "created_at": run.created_at,
        "transcript_url": f"transcripts/{run.id}.txt" if run.has_transcript else None,
        **artifacts(run, base_url),
        "dograh_token_usage": 0.0,
        "call_duration_seconds": round(run.duration or 0),
        "phone_number": run.caller_number if run.call_type == "inbound" else _text(run.phone_number),
        "caller_number": run.caller_number,
        "called_number": run.called_number or _text(run.phone_number),
        "call_type": run.call_type,
        "mode": run.mode,
        "campaign_id": run.campaign_id,
        "is_completed": run.is_completed,
        "is_test": run.is_test,
        "disposition": run.disposition,
        "initial_context": run.initial_context,
        "gathered_context": run.gathered_context,
        # The carrier's price of a call, if it named one in US dollars.
        "charge_usd": price.get("amount") if price.get("currency") == "USD" else None,
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
