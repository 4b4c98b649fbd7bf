"""The report of runs as CSV, some lines at a time and safe against formulas in spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from ..service import Service
from ..store import run_lists
from ..store.run_lists import Criteria, ReportedRun
from ..timestamps import write_time
from .lifecycle import reason_of
from .preparation import transcript_address

COLUMNS = (
    *("Run ID", "Campaign ID", "Agent ID", "Agent Definition ID", "Created At", "Phone Number"),
    *("Call Disposition", "Call Duration (s)"),
)
TAIL = ("Call Tags", "Transcript URL", "Recording URL", "Failure Reason", "Test")
# How many lines are sent at a time: each time costs the server as much as ten lines.
LINES = 100
# The beginning of what a spreadsheet takes for a formula; a plain number is none.
FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")


def text(service: Service, base_url: str, criteria: Criteria) -> Iterator[str]:
    """The report of completed runs with a duration, newest first, some lines at a time.

    There is a column for each variable that any run extracted, in the order of their first appearance. Addresses of
    transcripts begin with `base_url`.
    """
    with service.store.session():
        contexts = run_lists.gathered(criteria)
        names = list(dict.fromkeys(name for context in contexts for name in _extracted(context)))
        yield lines([(*COLUMNS, *names, *TAIL)])
        runs = run_lists.finished(criteria)
        while some := list(islice(runs, LINES)):
            yield lines(_cells(run, names, base_url) for run in some)


def _extracted(gathered_context: dict[str, Any]) -> dict[str, Any]:
    found = gathered_context.get("extracted_variables")
    return found if isinstance(found, dict) else {}


def _cells(run: ReportedRun, names: list[str], base_url: str) -> tuple[Any, ...]:
    extracted = _extracted(run.gathered_context)
    tags = run.gathered_context.get("call_tags")
    return (
        run.id,
        run.campaign_id,
        run.workflow_id,
        run.version_id,
        write_time(run.created_at),
        run.initial_context.get("phone_number"),
        run.disposition,
        round(run.duration),
        *(extracted.get(name) for name in names),
        ", ".join(str(tag) for tag in tags) if isinstance(tags, list) else "",
        transcript_address(run, base_url),
        "",
        reason_of(run.gathered_context),
        "true" if run.is_test else "",
    )


def lines(rows: Iterable[tuple[Any, ...]]) -> str:
    """Lines of CSV, safe against formulas in spreadsheets."""
    text = io.StringIO()
    csv.writer(text).writerows([_safe(value) for value in row] for row in rows)
    return text.getvalue()


def _safe(value: Any) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text
