"""The cases to measure: a raw HTTP request each, and its target rate relative to the bare route."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from .processes import KEY
from .seed import FIRST_RUN, SPAN, TRIGGER_PATH, Ids, definition

API = "/api/v1"
PAGE = 50


@dataclass(frozen=True, slots=True)
class Case:
    """A request to measure. `target` is a share of the bare route's rate; listings are measured with many runs too."""

    name: str
    request: str
    target: float | None = None
    listing: bool = False


def raw(method: str, path: str, body: Any = None, key: str | None = KEY) -> str:
    """The bytes of an HTTP/1.1 request, as text."""
    text = "" if body is None else json.dumps(body)
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    if key is not None:
        lines.append(f"X-API-Key: {key}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(text)}"]
    return "\r\n".join([*lines, "", text])


BARE = raw("GET", "/", key=None)


def cases(ids: Ids, runs: int) -> list[Case]:
    """All cases for a database with this many runs. "trigger" leaves calls behind, so only listings follow it."""
    create = {"name": "Created", "workflow_definition": definition(trigger=False)}
    listing = f"{API}/workflow/{ids.workflow}/runs"
    number = f"{API}/organizations/telephony-configs/{ids.configuration}/phone-numbers/{ids.phone_number}"
    return [
        Case("health", raw("GET", f"{API}/health", key=None), 0.75),
        Case("create", raw("POST", f"{API}/workflow/create/definition", create), 0.3),
        Case("fetch", raw("GET", f"{API}/workflow/fetch/{ids.workflow}"), 0.45),
        Case("validate", raw("POST", f"{API}/workflow/{ids.workflow}/validate")),
        Case("reactivate", raw("PUT", f"{API}/user/api-keys/{ids.api_key}/reactivate"), 0.45),
        Case("set-default-caller", raw("POST", f"{number}/set-default-caller")),
        Case("trigger", raw("POST", f"{API}/public/agent/{TRIGGER_PATH}", {"phone_number": "+12025550123"})),
        Case("runs, first page", raw("GET", listing), listing=True),
        Case("runs, last page", raw("GET", f"{listing}?page={runs // PAGE}"), listing=True),
        Case("runs, date range", raw("GET", f"{listing}?filters={_date_range()}"), listing=True),
        Case("runs, by duration", raw("GET", f"{listing}?sort_by=duration"), listing=True),
    ]


def _date_range() -> str:
    """A filter, URL-encoded, that selects a tenth of all runs."""
    first = FIRST_RUN + SPAN / 2
    value = {"from": first.isoformat(), "to": (first + SPAN / 10).isoformat()}
    return quote(json.dumps([{"attribute": "dateRange", "value": value}]))
