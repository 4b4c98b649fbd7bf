"""What the dry run of a stored campaign takes from the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from voiceapi.campaigns import campaigns, lifecycle
from voiceapi.campaigns.dialer import list_import
from voiceapi.campaigns.dialer.worker import Dialer
from voiceapi.campaigns.dry_run import report
from voiceapi.campaigns.dry_run.simulator import Rehearsal
from voiceapi.organizations import preferences
from voiceapi.runs import files
from voiceapi.runs import lifecycle as run_lifecycle
from voiceapi.service import Service
from voiceapi.store.campaigns import Campaign, Contact
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

    def create(people: int, first: int = 2000, zones: Sequence[str] = (), *, started: bool = False, **own: Any) -> int:
        workflow, _ = versions.create(service.vault, 1, "Agent", talk())
        numbered = enumerate(zones or [""] * people)
        rows = "\n".join(f"+1202555{first + number},{zone}" for number, zone in numbered)
        names = ("telephony_configuration_id", "retry_config", "schedule_config", "circuit_breaker", "max_concurrency")
        wanted = {
            **dict.fromkeys((*names, "calling_hours", "max_attempts_per_day")),
            **{"name": "n", "workflow_id": workflow.id, "source_type": "csv", "strict": False, **own},
            "source_id": files.store(1, "l.csv", f"phone_number,timezone\n{rows}\n".encode()),
        }
        created = int(campaigns.create(service, 1, wanted).id)
        if started:
            lifecycle.start(1, created)
            with write():
                assert list_import.take(created)
            list_import.read_list(service, created)
        return created

    return create


def simulate(service: Service, organization: int, campaign_id: int, wanted: Wanted) -> dict[str, Any]:
    return report.simulate(service, campaigns.get(organization, campaign_id), wanted)


def minutes(found: dict[str, Any]) -> float:
    return float((found["ends_at"] - found["starts_at"]).total_seconds() / 60)


def test_what_was_dialed_before_counts_for_the_attempts_a_day(service: Service, campaign: Callable[..., int]) -> None:
    calls, tried = campaign(2, started=True), campaign(4, max_attempts_per_day=1)
    assert simulate(service, 1, tried, ANSWERED)["postponed"] == {}
    with write():
        _, (one, _) = Dialer(service)._claim(calls, now())
    with write():
        run_lifecycle.complete(service, one.prepared)
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


ZONES = ("UTC", "Asia/Tokyo", "America/New_York", "Europe/Berlin", "")


def window(begin: datetime, minutes: int) -> dict[str, str]:
    return {"start": f"{begin:%H:%M}", "end": f"{begin + timedelta(minutes=minutes):%H:%M}"}


def dial(service: Service, campaign_id: int, at: datetime) -> tuple[list[tuple[int, datetime]], datetime | None]:
    """The rows that the dialer calls at this moment, each with it, and when it looks again."""
    with write():
        decided, requests = Dialer(service)._claim(campaign_id, at)
        rows = [Contact.get(run_id=request.prepared.id).row for request in requests if request.prepared]
    return [(row, at) for row in rows], decided.look_again


def test_what_the_dry_run_says_of_changed_settings_is_what_the_dialer_does(
    service: Service, campaign: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of contacts that wait for an hour or for the next day, whoever changes what, with a pause after it or without."""
    object.__setattr__(service.settings, "concurrent_calls", 1000)
    rehearsals: list[Rehearsal] = []
    rehearse = report.rehearse
    monkeypatch.setattr(report, "rehearse", lambda *given: rehearsals.append(rehearse(*given)) or rehearsals[-1])
    unchanged: Wanted = dict.fromkeys(campaigns.CHANGEABLE)
    called_at_once = 0
    for seed in range(8):
        random = Random(seed)
        first = 2000 + 10 * seed
        # Hours that are closed now in each of the zones, or numbers that were called a moment ago.
        rule: Wanted = {"calling_hours": window(now() + timedelta(hours=4), 1)}
        if seed % 2:
            rule = {"max_attempts_per_day": 1}
            dial(service, campaign(5, first, started=True), now())
        is_own = seed % 4 < 2
        preferences.replace(1, {} if is_own else rule)
        waiting = campaign(5, first, ZONES, started=True, **(rule if is_own else {}))
        assert dial(service, waiting, now())[0] == []
        changes: Wanted = {
            "calling_hours": window(now() + timedelta(hours=random.randrange(-6, 6)), random.choice((360, 1439))),
            "max_attempts_per_day": random.choice((1, 2)),
        }
        if is_own:
            slots = [{"day_of_week": day, "start_time": "08:00", "end_time": "20:00"} for day in range(7)]
            schedule = {"enabled": True, "timezone": "UTC", "slots": slots}
            changes["schedule_config"] = random.choice((None, schedule))
            campaigns.update(service, 1, waiting, {**unchanged, **changes})
        else:
            preferences.replace(1, random.choice((changes, {})))
        if random.random() < 0.5:
            lifecycle.pause(1, waiting)
            lifecycle.resume(1, waiting)
        moment = again = now()
        simulate(service, 1, waiting, {**ANSWERED, "starts_at": moment})
        expected = {(attempt.contact.id, attempt.at) for attempt in rehearsals.pop().attempts}
        dialed: list[tuple[int, datetime]] = []
        while again is not None:
            found, again = dial(service, waiting, again)
            dialed += found
        assert sorted(dialed) == sorted(expected), (seed, changes)
        called_at_once += sum(at == moment for _, at in dialed)
    assert called_at_once >= 5
