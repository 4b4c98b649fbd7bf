"""How long the five ways through the code are. `pytest -s` prints them: a table, and the own steps in order."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from flask.testing import FlaskClient
from lines import LINES, Line
from lines.call import API, Call
from tracing import Way, way

from voiceapi.campaigns.dialer.worker import Dialer
from voiceapi.service import Service

HEADING = "| | functions | files | besides the ground | own steps |\n|---|---|---|---|---|"
THEIRS = "+12025550123"
# Files and own steps at most.
MOST = {
    "trigger": (52, 45),
    "turn": (46, 26),
    "final status": (32, 21),
    "contact": (41, 48),
    "page of runs": (18, 8),
}


@pytest.fixture(scope="module")
def line() -> Line:
    """Twilio's."""
    return next(each for each in LINES if each.name == "twilio")


@pytest.fixture(scope="module")
def ways() -> Iterator[dict[str, Way]]:
    """What was traced, which is printed at the end."""
    found: dict[str, Way] = {}
    yield found
    table = [f"| {name} | {' | '.join(map(str, each.counts))} |\n" for name, each in found.items()]
    steps = [f"\n{name}\n" + "".join(f"  {' '.join(step)}\n" for step in each.own) for name, each in found.items()]
    sys.stdout.writelines([f"\n\n{HEADING}\n", *table, *steps])


def hold(ways: dict[str, Way], **traced: Way) -> None:
    """Keep ways for the table, and fail if one has become longer."""
    found = {name.replace("_", " "): each for name, each in traced.items()}
    ways |= found
    counts = {name: (len(each.files), len(each.own)) for name, each in found.items()}
    assert [name for name, (files, own) in counts.items() if files > MOST[name][0] or own > MOST[name][1]] == [], counts


@pytest.mark.sqlite
def test_the_ways_of_a_call(
    dial: Callable[..., Call], client: FlaskClient, call: Call, configuration: int, ways: dict[str, Way]
) -> None:
    dial()
    call.answered()
    call.says("Yes, that's fine.")
    call.status("completed")  # the process is warm
    body = {"phone_number": THEIRS, "telephony_configuration_id": configuration}
    with way() as trigger:
        answer = client.post(f"{API}/public/agent/line", json=body)
    assert answer.status_code == 200, answer.text
    call.follow(answer.get_json()["workflow_run_id"])
    call.answered()
    with way() as turn:
        call.says("Yes, that's fine.")
    with way() as status:
        call.status("completed")
    assert call.run.is_completed
    runs = f"{API}/workflow/{call.run.workflow_id}/runs"
    assert client.get(runs).get_json()["total_count"] == 2
    with way() as page:
        client.get(runs)
    hold(ways, trigger=trigger, turn=turn, final_status=status, page_of_runs=page)


@pytest.mark.sqlite
def test_the_way_of_a_contact(
    client: FlaskClient,
    fresh: None,
    service: Service,
    configuration: int,
    workflow: Callable[..., Any],
    office: Any,
    ways: dict[str, Way],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def at_once(job: Callable[..., Any], *args: Any) -> Future[None]:
        job(*args)
        return Future()

    monkeypatch.setattr(service.workers, "submit", at_once)
    made = str(workflow()["id"])
    dialer, dial = Dialer(service), Dialer._dial
    # The app's own dialer leaves the contacts to this one.
    monkeypatch.setattr(Dialer, "_dial", lambda self, *args: dial(self, *args) if self is dialer else (None, 1.0))

    def campaign(number: str) -> None:
        form = {"name": "Spring", "workflow_id": made, "telephony_configuration_id": str(configuration)}
        csv = io.BytesIO(f"phone_number\n{number}".encode())
        created = client.post(f"{API}/campaign/create/csv", data={**form, "file": (csv, "list.csv")})
        assert created.status_code == 200, created.text
        assert client.post(f"{API}/campaign/{created.get_json()['id']}/start").status_code == 200
        dialer.look()  # reads the list

    campaign("+12025550171")
    dialer.look()
    campaign("+12025550172")
    placed = len(office.asked)
    with way() as contact:
        dialer.look()
    assert len(office.asked) == placed + 1
    assert ("calls/outbound.py", "place") in contact.functions
    hold(ways, contact=contact)
