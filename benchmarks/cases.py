"""The cases to measure: a raw HTTP request each, and what its rate is to reach."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from .processes import API, KEY
from .seed import CONTACTS, FIRST_RUN, SPAN, Ids, definition

PAGE = 50


@dataclass(frozen=True, slots=True)
class Case:
    """A request to measure.

    :param aim: the share of the bare route's rate to reach, at 8 connections.
    :param many_aim: for a listing, which is measured with many runs too: the share of its own rate with few to reach.
    :param status: the status of a right answer.
    """

    name: str
    request: str
    aim: float | None = None
    many_aim: float | None = None
    status: str = "200"


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
    """All cases for a database with this many runs. None of them changes what another one finds."""
    create = {"name": "Created", "workflow_definition": definition(trigger=False)}
    listing = f"{API}/workflow/{ids.workflow}/runs"
    contacts, deliveries = f"{API}/campaign/{ids.campaign}/contacts", f"{API}/organizations/webhook-deliveries"
    last = min(runs, CONTACTS) // PAGE
    number = f"{API}/organizations/telephony-configs/{ids.configuration}/phone-numbers/{ids.phone_number}"
    call = {"phone_number": "+12025550123"}
    return [
        Case("health", raw("GET", f"{API}/health", key=None), 0.95),
        Case("fetch", raw("GET", f"{API}/workflow/fetch/{ids.workflow}"), 0.60),
        Case("reactivate", raw("PUT", f"{API}/user/api-keys/{ids.api_key}/reactivate"), 0.55),
        Case("set-default-caller", raw("POST", f"{number}/set-default-caller"), 0.50),
        Case("create", raw("POST", f"{API}/workflow/create/definition", create), 0.40),
        Case("validate", raw("POST", f"{API}/workflow/{ids.workflow}/validate"), 0.45),
        Case("unknown trigger", raw("POST", f"{API}/public/agent/unknown", call), 0.50, status="404"),
        Case("runs, first page", raw("GET", listing), 0.25, 0.95),
        Case("runs, last page", raw("GET", f"{listing}?page={runs // PAGE}"), None, 0.90),
        Case("runs, date range", raw("GET", f"{listing}?filters={_date_range()}"), None, 0.80),
        Case("runs, by duration", raw("GET", f"{listing}?sort_by=duration"), None, 0.90),
        Case("runs, by name", raw("GET", f"{listing}?sort_by=name"), None, 0.90),
        Case("contacts, first page", raw("GET", contacts), None, 0.90),
        Case("contacts, last page", raw("GET", f"{contacts}?page={last}"), None, 0.90),
        Case("contacts, of a state", raw("GET", f"{contacts}?state=completed&page={last}"), None, 0.90),
        Case("deliveries, last page", raw("GET", f"{deliveries}?page={last}"), None, 0.90),
    ]


def validate_case(name: str, workflow: int) -> Case:
    """The validation of one workflow."""
    return Case(name, raw("POST", f"{API}/workflow/{workflow}/validate"))


def lint_case(name: str, workflow: int) -> Case:
    """The lint of one workflow."""
    return Case(name, raw("GET", f"{API}/workflow/{workflow}/lint"))


def trigger_case(path: str) -> Case:
    """A call by trigger, which the service carries out by itself."""
    return Case("trigger", raw("POST", f"{API}/public/agent/{path}", {"phone_number": "+12025550123"}))


def _date_range() -> str:
    """A filter, URL-encoded, that selects a tenth of all runs."""
    first = FIRST_RUN + SPAN / 2
    value = {"from": first.isoformat(), "to": (first + SPAN / 10).isoformat()}
    return quote(json.dumps([{"attribute": "dateRange", "value": value}]))
