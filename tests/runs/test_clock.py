"""A clock that is set back by an hour while calls are in progress."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from voiceapi import jobs
from voiceapi.runs import lifecycle
from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.base import reload
from voiceapi.store.fields import now
from voiceapi.store.runs import Run
from voiceapi.workflows import versions


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_WORKER": False}


@pytest.fixture
def place(service: Service, db: None, talk: Callable[..., Any]) -> Callable[..., Run]:
    """Stores a call in progress that waits for news from its carrier."""

    def store(token: str) -> Run:
        workflow, _ = versions.create(service.vault, 1, "Agent", talk())
        lease = now() + timedelta(seconds=30)
        columns = {"state": "ringing", "phone_lease_until": lease, **lifecycle.in_progress()}
        return runs.create(workflow, name="n", mode="twilio", token=token, **columns)

    return store


def clocks(run: Run) -> list[datetime]:
    found = reload(run)
    return [getattr(found, column.name) for column in lifecycle.FURTHEST]


def test_a_call_in_progress_holds_its_slot_no_longer(
    service: Service, place: Callable[..., Run], ahead: Callable[..., Any]
) -> None:
    with ahead():
        run = place("a")
    right = place("b")
    before = clocks(right)
    moment = now()
    assert clocks(run)[2] > moment + timedelta(minutes=80)
    jobs.correct_clock(service, moment)
    assert clocks(run) == [moment + timedelta(seconds=seconds) for seconds in lifecycle.FURTHEST.values()]
    assert clocks(right) == before
    past = moment + timedelta(seconds=lifecycle.NO_NEWS_SECONDS + 1)
    assert {each.id for each in runs.past_deadline(past)} == {run.id, right.id}
    assert runs.in_progress(1, past) == 0


def test_a_clock_that_is_right_extends_nothing(
    service: Service, place: Callable[..., Run], caplog: pytest.LogCaptureFixture
) -> None:
    run = place("a")
    before = clocks(run)
    jobs.correct_clock(service)
    assert clocks(run) == before
    assert "clock" not in caplog.text
