"""Runs of the examples with callers who say anything: replayed, they go the same way; their cases pass."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from flask.testing import FlaskClient
from replaying import problems

from voiceapi.rehearsal import recording as recordings
from voiceapi.rehearsal.replay import replay
from voiceapi.rehearsal.subject import Subject
from voiceapi.service import Service
from voiceapi.store.runs import Run

API = "/api/v1"
EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = [
    "Yes.",
    "No, thank you.",
    "Two people.",
    "Hm?",
    "",
    "1",
    "tomorrow at ten",
    "a person, please",
    "my order 4711",
]


@pytest.mark.parametrize("name", ["appointment", "menu", "survey"])
def test_runs_of_an_example(client: FlaskClient, service: Service, finished: Any, name: str) -> None:
    body = json.loads((EXAMPLES / f"{name}.json").read_text())
    definition = body["workflow_definition"]
    assert client.post(f"{API}/workflow/create/definition", json=body).status_code == 200
    random = Random(name)
    for _ in range(3):
        lines = [random.choice(WORDS) for _ in range(random.randrange(6))]
        call = {"workflow_id": 1, "from_number": "+12025550123", "lines": lines}
        answer = client.post(f"{API}/telephony/simulated-call", json=call)
        assert answer.status_code == 200, answer.json
        finished(1, answer.json["workflow_run_id"])
        url = f"{API}/workflow/1/text-chat/sessions"
        chat = client.post(url, json={}).json["workflow_run_id"]
        for line in lines:
            client.post(f"{url}/{chat}/messages", json={"text": line or "..."})
    # A definition in which every edge leads back to where it comes from.
    turned = {**definition, "edges": [{**edge, "target": edge["source"]} for edge in definition["edges"]]}
    with service.store.session():
        found = [recordings.of_run(service, run) for run in Run.select()]
        assert len(found) == 6
        assert [problem for recording in found for problem in problems(service, recording.run)] == []
        for recording in found:
            moves = sum(record.type == "rtf-node-transition" for each in recording.exchanges for record in each.records)
            other = replay(recording, Subject.of_definition(turned), {})
            assert (other.divergence is None) == (moves == 1), other
