"""Creates databases to measure: one workflow with a trigger, two API keys, one phone number, and many runs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from voiceapi import create_app
from voiceapi.organizations import api_keys
from voiceapi.store.database import write
from voiceapi.store.runs import Run
from voiceapi.store.telephony import PhoneNumber
from voiceapi.store.workflows import Workflow
from voiceapi.workflows import versions

from .processes import KEY

TRIGGER_PATH = "benchmark"
FIRST_RUN = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = timedelta(days=100)
BATCH = 1000


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids that the requests contain."""

    workflow: int
    api_key: int
    configuration: int
    phone_number: int


def definition(*, trigger: bool) -> dict[str, Any]:
    """A workflow definition of four nodes, and a trigger if wanted."""
    nodes = [
        ("1", "startCall", "Hello", {"prompt": "Ask whether now is a good time.", "greeting": "Is now a good time?"}),
        ("2", "agentNode", "Question", {"prompt": "Ask how many people will come."}),
        ("3", "endCall", "Thanks", {"prompt": "Thank the caller and say goodbye."}),
        ("4", "endCall", "Later", {"prompt": "Say that you will call again another day."}),
    ]
    if trigger:
        nodes.append(("5", "trigger", "Trigger", {"trigger_path": TRIGGER_PATH}))
    edges = [("1", "2", "Yes"), ("1", "4", "No"), ("2", "3", "Done")]
    return {
        "nodes": [
            {"id": id, "type": kind, "position": {"x": 0, "y": 0}, "data": {"name": name, **data}}
            for id, kind, name, data in nodes
        ],
        "edges": [
            {
                "id": f"{source}-{target}",
                "source": source,
                "target": target,
                "data": {"label": label, "condition": f"The caller says {label.lower()}."},
            }
            for source, target, label in edges
        ],
    }


def seed(database: Path, runs: int) -> Ids:
    """Create the database, with this many runs of its workflow spread over `SPAN`."""
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY})
    service = app.extensions["voiceapi"]
    with service.store.session():
        organization = api_keys.require_organization(api_keys.DEFAULT_ORGANIZATION).id
        workflow, version = versions.create(service.vault, organization, "Benchmark", definition(trigger=True))
        other, _ = api_keys.create(organization, "other")
        number = PhoneNumber.get()
        rows = _rows(runs, organization, workflow.id, version.id)
        for first in range(0, runs, BATCH):
            with write():
                Run.insert_many([row for row, _ in zip(rows, range(min(BATCH, runs - first)), strict=False)]).execute()
        Workflow.update(total_runs=runs).execute()
        ids = Ids(workflow.id, other.id, number.telephony_configuration_id, number.id)
    service.close()
    return ids


def _rows(runs: int, organization: int, workflow: int, version: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(1)
    for number in range(runs):
        called = f"+1202555{number % 10_000:04}"
        duration = None if number % 20 == 0 else round(chance.expovariate(1 / 90), 1)
        moment = FIRST_RUN + SPAN * (number / runs)
        yield {
            "organization": organization,
            "workflow": workflow,
            "version": version,
            "name": f"WR-API-{number}",
            "mode": "simulator",
            "state": "completed",
            "token": f"seeded-{number}",
            "caller_number": "+12025550199",
            "called_number": called,
            "initial_context": {"phone_number": called, "first_name": "Ada", "direction": "outbound"},
            "gathered_context": {
                "nodes_visited": ["Hello", "Question", "Thanks"],
                "extracted_variables": {"guests": chance.randrange(1, 9)},
                "call_disposition": "Thanks",
                "mapped_call_disposition": "Thanks",
            },
            "disposition": "Thanks",
            "duration": duration,
            "has_transcript": True,
            "created_at": moment,
            "answered_at": moment,
            "ended_at": moment + timedelta(seconds=duration or 0),
        }
