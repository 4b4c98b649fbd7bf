"""What the dry run of a stored campaign takes from the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from voiceapi.campaigns import campaigns, lifecycle
from voiceapi.campaigns.dialer import list_import
from voiceapi.campaigns.dialer.worker import Dialer
from voiceapi.campaigns.dry_run.report import simulate
from voiceapi.runs import files
from voiceapi.runs import lifecycle as run_lifecycle
from voiceapi.service import Service
from voiceapi.store.campaigns import Campaign
from voiceapi.store.database import write
from voiceapi.store.fields import now
from voiceapi.store.telephony import TelephonyConfiguration
from voiceapi.workflows import versions

Wanted = dict[str, Any]
ANSWERED: Wanted = {
    "seed": 1,
    "outcomes": {"answered": 1},
    "talk_seconds": {"shortest": 50, "longest": 50},
    "days": 14,
    "starts_at": None,
}


@pytest.fixture
def settings() -> dict[str, Any]:
    """The tests dial themselves."""
    return {"VOICEAPI_WORKER": False, "VOICEAPI_CONCURRENT_CALLS": 4}


@pytest.fixture
def campaign(service: Service, db: None, talk: Callable[..., Any]) -> Callable[..., int]:
    """Creates a campaign to so many people, and starts it if asked to; returns its id."""

    def create(people: int, first: int = 2000, *, started: bool = False, **own: Any) -> int:
        workflow, _ = versions.create(service.vault, 1, "Agent", talk())
        rows = "\n".join(f"+1202555{first + number}" for number in range(people))
        names = ("telephony_configuration_id", "retry_config", "schedule_config", "circuit_breaker", "max_concurrency")
        wanted = {
            **dict.fromkeys((*names, "calling_hours", "max_attempts_per_day")),
            **{"name": "n", "workflow_id": workflow.id, "source_type": "csv", "strict": False, **own},
            "source_id": files.store(1, "l.csv", f"phone_number\n{rows}\n".encode()),
        }
        created = int(campaigns.create(service, 1, wanted).id)
        if started:
            lifecycle.start(1, created)
            with write():
                assert list_import.take(created)
            list_import.read_list(service, created)
        return created

    return create


def minutes(found: dict[str, Any]) -> float:
    return float((found["ends_at"] - found["starts_at"]).total_seconds() / 60)


def test_what_was_dialed_before_counts_for_the_attempts_a_day(service: Service, campaign: Callable[..., int]) -> None:
    calls, tried = campaign(2, started=True), campaign(4, max_attempts_per_day=1)
    assert simulate(service, 1, tried, ANSWERED)["postponed"] == {}
    with write():
        _, (one, _) = Dialer(service)._claim(calls, now())
    with write():
        run_lifecycle.complete(service, one.run)
    found = simulate(service, 1, tried, ANSWERED)
    assert (found["postponed"], found["attempts"]) == ({"attempts_a_day": 2}, 4)
    assert minutes(found) > 24 * 60
    # Nobody was called by an attempt that was given back.
    assert Dialer(service).recover(now() + timedelta(seconds=31)) == 1
    assert simulate(service, 1, tried, ANSWERED)["postponed"] == {"attempts_a_day": 1}
    early = {**ANSWERED, "starts_at": now() - timedelta(days=2)}
    assert simulate(service, 1, tried, early)["postponed"] == {}
    late = {**ANSWERED, "starts_at": now() + timedelta(days=2)}
    assert simulate(service, 1, tried, late)["postponed"] == {}


def test_other_running_campaigns_take_their_part_of_the_limit(service: Service, campaign: Callable[..., int]) -> None:
    """Twenty people with four calls of a minute each at a time: five minutes alone."""
    tried = campaign(20)
    alone = simulate(service, 1, tried, ANSWERED)
    assert (minutes(alone), alone["peak_concurrency"]) == (5, 4)
    other = campaign(20, 3000, started=True)
    shared = simulate(service, 1, tried, ANSWERED)
    assert shared == simulate(service, 1, tried, ANSWERED)
    assert (minutes(shared), shared["attempts"]) == (10, 20)
    # One with a concurrency of its own leaves the others more, and so does one that is done after a while.
    Campaign.update(max_concurrency=1).where(Campaign.id == other).execute()
    assert 6 <= minutes(simulate(service, 1, tried, ANSWERED)) <= 7
    short = campaign(4, 4000, started=True)
    assert 7 <= minutes(simulate(service, 1, tried, ANSWERED)) <= 9
    for stopped in (other, short):
        lifecycle.pause(1, stopped)
    assert minutes(simulate(service, 1, tried, ANSWERED)) == 5


def test_other_campaigns_are_called_in_their_own_hours(service: Service, campaign: Callable[..., int]) -> None:
    tried = campaign(20)
    day = (now() + timedelta(days=2)).weekday()
    schedule = {
        "enabled": True,
        "timezone": "UTC",
        "slots": [{"day_of_week": day, "start_time": "10:00", "end_time": "11:00"}],
    }
    campaign(20, 3000, started=True, schedule_config=schedule)
    assert minutes(simulate(service, 1, tried, ANSWERED)) == 5


def test_campaigns_of_one_account_share_its_pace(service: Service, campaign: Callable[..., int]) -> None:
    TelephonyConfiguration.update(calls_per_second=0.1).execute()
    tried = campaign(7)
    brief = {**ANSWERED, "talk_seconds": {"shortest": 10, "longest": 10}}
    # One call each ten seconds, and twenty seconds for the last of them.
    assert minutes(simulate(service, 1, tried, brief)) * 60 == pytest.approx(6 * 10 + 20)
    campaign(7, 3000, started=True)
    assert minutes(simulate(service, 1, tried, brief)) * 60 == pytest.approx(13 * 10 + 20)


def test_other_campaigns_go_on_dialing_while_this_one_waits_for_its_own_calls(
    service: Service, campaign: Callable[..., int]
) -> None:
    """A call each half minute: the first is the other's, and three of its calls follow each one of 100 s here."""
    TelephonyConfiguration.update(calls_per_second=1 / 30).execute()
    tried = campaign(3, max_concurrency=1)
    long = {**ANSWERED, "talk_seconds": {"shortest": 90, "longest": 90}}
    assert minutes(simulate(service, 1, tried, long)) * 60 == pytest.approx(3 * 100)
    campaign(20, 3000, started=True)
    assert minutes(simulate(service, 1, tried, long)) * 60 == pytest.approx(30 + 2 * 120 + 100)
