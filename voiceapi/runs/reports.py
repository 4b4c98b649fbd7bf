"""The report of runs as CSV, line by line and safe against formulas in spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ..service import Service
from ..store import run_lists
from ..store.runs import Run
from ..timestamps import write_time
from .runs import transcript_address

COLUMNS = (
    *("Run ID", "Campaign ID", "Agent ID", "Agent Definition ID", "Created At", "Phone Number"),
    *("Call Disposition", "Call Duration (s)"),
)
TAIL = ("Call Tags", "Transcript URL", "Recording URL")
# The beginning of what a spreadsheet takes for a formula; a plain number is none.
FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")


def lines(
    service: Service, base_url: str, where: list[Any], since: datetime | None, until: datetime | None
) -> Iterator[str]:
    """The report of completed runs with a duration, newest first, one line at a time.

    There is a column for each variable that any run extracted, in the order of their first appearance. Addresses of
    transcripts begin with `base_url`.
    """
    with service.store.session():
        names = list(dict.fromkeys(name for run in run_lists.finished(where, since, until) for name in _extracted(run)))
        yield _line((*COLUMNS, *names, *TAIL))
        for run in run_lists.finished(where, since, until):
            yield _line(_cells(run, names, base_url))


def _extracted(run: Run) -> dict[str, Any]:
    found = run.gathered_context.get("extracted_variables")
    return found if isinstance(found, dict) else {}


def _cells(run: Run, names: list[str], base_url: str) -> tuple[Any, ...]:
    extracted = _extracted(run)
    tags = run.gathered_context.get("call_tags")
    return (
        run.id,
        run.campaign_id,
        run.workflow_id,
        run.version_id,
        write_time(run.created_at),
        run.initial_context.get("phone_number"),
        run.disposition,
        round(run.duration or 0),
        *(extracted.get(name) for name in names),
        ", ".join(str(tag) for tag in tags) if isinstance(tags, list) else "",
        transcript_address(run, base_url),
        "",
    )


def _line(values: tuple[Any, ...]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow([_safe(value) for value in values])
    return text.getvalue()


def _safe(value: Any) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text
