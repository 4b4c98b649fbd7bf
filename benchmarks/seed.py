"""Creates databases to measure: one workflow with a trigger, two API keys, one phone number, and many runs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from voiceapi import create_app
from voiceapi.organizations import api_keys
from voiceapi.store.base import insert_all
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
CALLER_NUMBER = "+12025550199"
ENDINGS = ("user_qualified", "user_hangup", "Thanks")
SUMMARY = "They come at eight and like it quiet."


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
        rows = _rows(runs, organization, workflow.id, version.id, number.telephony_configuration_id)
        while batch := list(itertools.islice(rows, BATCH)):
            with write():
                insert_all(Run, batch)
        Workflow.update(total_runs=runs).execute()
        ids = Ids(workflow.id, other.id, number.telephony_configuration_id, number.id)
    service.close()
    return ids


def _rows(runs: int, organization: int, workflow: int, version: int, configuration: int) -> Iterator[dict[str, Any]]:
    """Runs as calls by trigger leave them behind: what they gathered, tags and the longer texts of a model included."""
    chance = random.Random(1)
    for number in range(runs):
        called = f"+1202555{number % 10_000:04}"
        answered = number % 20 != 0
        duration = round(chance.expovariate(1 / 90), 1) if answered else None
        moment = FIRST_RUN + SPAN * (number / runs)
        gathered = _gathered(chance, number) if answered else _unanswered(number)
        yield {
            **Run._meta.get_default_dict(),
            "organization": organization,
            "workflow": workflow,
            "version": version,
            "telephony_configuration_id": configuration,
            "name": f"WR-API-{chance.randrange(1000, 10_000)}",
            "mode": "simulator",
            "state": "completed",
            "token": f"seeded-{number}",
            "carrier_call_id": gathered["call_id"],
            "caller_number": CALLER_NUMBER,
            "called_number": called,
            "initial_context": {
                "provider": "simulator",
                "direction": "outbound",
                "phone_number": called,
                "first_name": "Ada",
                "called_number": called,
                "caller_number": CALLER_NUMBER,
            },
            "gathered_context": gathered,
            "disposition": gathered["call_disposition"],
            "duration": duration,
            "has_transcript": answered,
            "created_at": moment,
            "answered_at": moment if answered else None,
            "ended_at": moment + timedelta(seconds=duration or 0),
        }


def _gathered(chance: random.Random, number: int) -> dict[str, Any]:
    guests, ending = chance.randrange(1, 9), chance.choice(ENDINGS)
    extracted = {"guests": guests, "summary": f"The table is for {guests}. {SUMMARY}"}
    return {
        "provider": "simulator",
        "triggered_by": "api",
        "call_id": f"SIM-{number:016}",
        "nodes_visited": ["Hello", "Question", "Thanks"],
        **extracted,
        "extracted_variables": extracted,
        "call_disposition": ending,
        "mapped_call_disposition": ending,
        "call_tags": ["user_speech", ending],
    }


def _unanswered(number: int) -> dict[str, Any]:
    return {
        "provider": "simulator",
        "triggered_by": "api",
        "call_id": f"SIM-{number:016}",
        "nodes_visited": [],
        "call_disposition": "no_answer",
        "mapped_call_disposition": "no_answer",
        "call_tags": ["no_answer"],
    }
