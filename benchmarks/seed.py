"""Creates databases to measure: a workflow with a trigger and many runs, a campaign, two long workflows."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from voiceapi import create_app
from voiceapi.organizations import api_keys
from voiceapi.store.base import Record, insert, insert_all
from voiceapi.store.campaigns import Campaign, Contact, Decision
from voiceapi.store.database import write
from voiceapi.store.migrations import VERSION
from voiceapi.store.postcall import Delivery
from voiceapi.store.runs import Run
from voiceapi.store.telephony import PhoneNumber
from voiceapi.workflows import versions

from .processes import KEY

TRIGGER_PATH = "benchmark"
FIRST_RUN = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = timedelta(days=100)
BATCH = 1000
# The most contacts of the campaign; a smaller database has one for each run.
CONTACTS = 100_000
NODES: Sequence[tuple[str, str, str, Any]] = (
    ("1", "startCall", "Hello", {"prompt": "Ask whether now is a good time.", "greeting": "Is now a good time?"}),
    ("2", "agentNode", "Question", {"prompt": "Ask how many people will come."}),
    ("3", "endCall", "Thanks", {"prompt": "Thank the caller and say goodbye."}),
    ("4", "endCall", "Later", {"prompt": "Say that you will call again another day."}),
)
EDGES = (("1", "2", "Yes"), ("1", "4", "No"), ("2", "3", "Done"))
# Numbers of nodes: twice as many show whether validation takes twice as long.
LONG = (1000, 2000)
CALLER_NUMBER = "+12025550199"
ENDINGS = ("user_qualified", "user_hangup", "Thanks")
SUMMARY = "They come at eight and like it quiet."


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids that the requests contain; `long` has those of the long workflows by their number of nodes."""

    workflow: int
    api_key: int
    configuration: int
    phone_number: int
    campaign: int
    long: dict[int, int]


def definition(*, trigger: bool) -> dict[str, Any]:
    """A workflow definition of four nodes, and a trigger if wanted."""
    triggers = [("5", "trigger", "Trigger", {"trigger_path": TRIGGER_PATH})] if trigger else []
    return _definition([*NODES, *triggers], EDGES)


def endless_definition() -> dict[str, Any]:
    """A definition of five nodes, in which two questions take turns as long as the caller says yes."""
    back = ("5", "agentNode", "Wishes", {"prompt": "Ask what else they wish for."})
    return _definition([*NODES, back], [*EDGES, ("2", "5", "Yes"), ("5", "2", "Yes")])


def _definition(nodes: Iterable[tuple[str, str, str, Any]], edges: Iterable[tuple[str, str, str]]) -> dict[str, Any]:
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


def short_definition() -> dict[str, Any]:
    """A definition in which the call ends with the answer to the first question."""
    found = definition(trigger=False)
    found["nodes"] = [node for node in found["nodes"] if node["id"] != "2"]
    found["edges"] = [{**found["edges"][0], "id": "1-3", "target": "3"}, found["edges"][1]]
    return found


def long_definition(nodes: int) -> dict[str, Any]:
    """A valid definition of this many nodes in a row; each of them but the last two leads to the end as well."""
    last = nodes - 1
    kinds = ["startCall", *["agentNode"] * (nodes - 2), "endCall"]
    edges = [(each, each + 1, "Next") for each in range(last)]
    edges += [(each, last, "Stop") for each in range(last - 1)]
    return {
        "nodes": [
            {
                "id": str(number),
                "type": kind,
                "position": {"x": 0, "y": 100 * number},
                "data": {
                    "name": f"Step {number}",
                    "prompt": f"Ask question {number} and listen to {{{{first_name}}}}.",
                },
            }
            for number, kind in enumerate(kinds)
        ],
        "edges": [
            {
                "id": f"{source}-{target}-{label}",
                "source": str(source),
                "target": str(target),
                "data": {"label": label, "condition": f"The caller wants to go on with {target}."},
            }
            for source, target, label in edges
        ],
    }


def seed(database: Path | str, runs: int, **settings: str) -> Ids:
    """Create the database, with this many runs of its workflow spread over `SPAN`.

    :param database: a file, or a URL; then `settings`, named without VOICEAPI_, have to have a SECRET.
    """
    given = {f"VOICEAPI_{name}": value for name, value in settings.items()}
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, **given})
    service = app.extensions["voiceapi"]
    with service.store.session():
        organization = api_keys.require_organization(api_keys.DEFAULT_ORGANIZATION).id
        workflow, version = versions.create(service.vault, organization, "Benchmark", definition(trigger=True))
        other, _ = api_keys.create(organization, "other")
        number = PhoneNumber.get()
        campaign = _campaign(organization, workflow.id, min(runs, CONTACTS))
        _fill(Run, _runs(runs, organization, workflow.id, version.id, number.telephony_configuration_id))
        _fill(Contact, _contacts(campaign))
        _fill(Decision, _decisions(campaign))
        _fill(Delivery, _deliveries(campaign))
        long = {
            size: versions.create(service.vault, organization, f"{size} nodes", long_definition(size))[0].id
            for size in LONG
        }
        ids = Ids(workflow.id, other.id, number.telephony_configuration_id, number.id, campaign.id, long)
    service.close()
    return ids


def kept(folder: Path, runs: int) -> tuple[Path, Ids]:
    """The database of this many runs in the folder, created unless an earlier run left it, and its ids.

    The ids stand in a note beside the database, which is written last: without it the database isn't complete.
    """
    database = folder / f"runs-{runs}-version-{VERSION}.db"
    note = database.with_suffix(".json")
    if not note.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob(f"{database.name}*"):
            path.unlink()
        note.write_text(json.dumps(asdict(seed(database, runs))), encoding="utf-8")
    found = json.loads(note.read_text(encoding="utf-8"))
    return database, Ids(**{**found, "long": {int(size): id for size, id in found["long"].items()}})


def _runs(runs: int, organization: int, workflow: int, version: int, configuration: int) -> Iterator[dict[str, Any]]:
    """Runs as calls by trigger leave them behind: what they gathered, tags and the longer texts of a model included."""
    chance = random.Random(1)
    for number in range(runs):
        called = f"+1202555{number % 10_000:04}"
        answered = number % 20 != 0
        duration = round(chance.expovariate(1 / 90), 1) if answered else None
        moment = FIRST_RUN + SPAN * (number / runs)
        gathered = _gathered(chance, number) if answered else _unanswered(number)
        yield {
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


def _campaign(organization: int, workflow: int, rows: int) -> Campaign:
    """A campaign that is over; it has as many rows as contacts are to be stored."""
    with write():
        return insert(
            Campaign,
            organization=organization,
            workflow=workflow,
            name="Benchmark",
            state="completed",
            source_type="csv",
            source_id="seeded",
            source_status="completed",
            retry_config={},
            circuit_breaker={},
            total_rows=rows,
            processed_rows=rows,
        )


def _contacts(campaign: Campaign) -> Iterator[dict[str, Any]]:
    for row in range(1, campaign.total_rows + 1):
        yield {
            "campaign": campaign.id,
            "row": row,
            "phone_number": f"+1202{2_000_000 + row}",
            "variables": {"phone_number": f"+1202{2_000_000 + row}", "first_name": "Ada", "town": f"Town {row % 100}"},
            "state": "completed",
            "attempts": 1,
            "run_id": row,
        }


def _decisions(campaign: Campaign) -> Iterator[dict[str, Any]]:
    """One for each contact, whose id is its row."""
    for row in range(1, campaign.total_rows + 1):
        found = {"code": "completed", "reason": "The call ended as Thanks.", "run_id": row, "at": FIRST_RUN}
        yield {"contact": row, "campaign": campaign.id, **found}


def _deliveries(campaign: Campaign) -> Iterator[dict[str, Any]]:
    """One for each contact's run, given up."""
    for run in range(1, campaign.total_rows + 1):
        yield {
            "organization": campaign.organization_id,
            "run": run,
            "node_id": "hook",
            "node_name": "Hook",
            "delivery_uuid": str(UUID(int=run)),
            "state": "dead_letter",
            "method": "POST",
            "url": "https://hooks.example.org/calls",
            "body": b'{"run": 1}',
            "attempts": 5,
            "most_attempts": 5,
            "last_error": "The receiver answered with 500.",
            "created_at": FIRST_RUN,
            "finished_at": FIRST_RUN,
        }


def _fill(model: type[Record], rows: Iterator[dict[str, Any]]) -> None:
    defaults = model._meta.get_default_dict()
    while batch := [{**defaults, **row} for row in itertools.islice(rows, BATCH)]:
        with write():
            insert_all(model, batch)


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
