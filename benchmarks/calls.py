"""Measures whole simulated calls, from the first request to the end of the last call, over HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from .cases import trigger_case
from .mixed import form
from .processes import PATIENCE_SECONDS, Load, Server
from .seed import TRIGGER_PATH, short_definition

CONNECTIONS = 8
CAMPAIGN_CALLS, CONCURRENCY = 1000, 10
LOOK_SECONDS = 0.05
IN_PROGRESS = quote(json.dumps([{"attribute": "status", "value": {"status": "in_progress"}}]))


@dataclass(frozen=True, slots=True)
class Calls:
    """Whole calls a second. A call by trigger has three turns of the callee, one of a campaign has one."""

    by_trigger: float
    by_campaign: float


def measure_calls(load: Load, server: Server, seconds: float) -> Calls:
    """Place calls by trigger for this many seconds, and then let a campaign place `CAMPAIGN_CALLS`.

    :raises RuntimeError: when a call was refused, or isn't over after a long time.
    """
    return Calls(_by_trigger(load, server, seconds), _by_campaign(server))


def _by_trigger(load: Load, server: Server, seconds: float) -> float:
    begun = time.perf_counter()
    outcome = load.send(server, trigger_case(TRIGGER_PATH).request, seconds, CONNECTIONS)
    if outcome.statuses.keys() != {"200"}:
        raise RuntimeError(f"Triggers were answered with {dict(outcome.statuses)}.")
    path = f"/organizations/usage/runs?limit=1&filters={IN_PROGRESS}"
    _wait(lambda: server.ask("GET", path)["total_count"] == 0)
    return len(outcome.latencies) / (time.perf_counter() - begun)


def _by_campaign(server: Server) -> float:
    agent = {"name": "Campaign", "workflow_definition": short_definition()}
    fields = {
        "name": "Benchmark",
        "workflow_id": server.ask("POST", "/workflow/create/definition", agent)["id"],
        "max_concurrency": CONCURRENCY,
    }
    people = "".join(f"+1202{2000000 + row},Name {row}\n" for row in range(CAMPAIGN_CALLS))
    content, kind = form(fields, "list.csv", f"phone_number,name\n{people}".encode())
    campaign = server.ask("POST", "/campaign/create/csv", content, kind)["id"]
    begun = time.perf_counter()
    server.ask("POST", f"/campaign/{campaign}/start")
    _wait(lambda: server.ask("GET", f"/campaign/{campaign}/progress")["state"] == "completed")
    return CAMPAIGN_CALLS / (time.perf_counter() - begun)


def _wait(is_over: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10 * PATIENCE_SECONDS
    while not is_over():
        if time.monotonic() > deadline:
            raise RuntimeError("The calls don't end.")
        time.sleep(LOOK_SECONDS)
