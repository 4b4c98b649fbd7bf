"""Claims, and what becomes of them when something goes wrong on the way."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask

from voiceapi import create_app
from voiceapi.calls import outbound, sweeper
from voiceapi.campaigns import campaigns, lifecycle
from voiceapi.campaigns.dialer import list_import
from voiceapi.campaigns.dialer.worker import Claim, Dialer
from voiceapi.errors import Conflict
from voiceapi.runs import files
from voiceapi.runs import lifecycle as run_lifecycle
from voiceapi.service import Service
from voiceapi.store import campaigns as records
from voiceapi.store.campaigns import Campaign, Upload
from voiceapi.store.database import write
from voiceapi.store.fields import now
from voiceapi.store.runs import Run
from voiceapi.store.telephony import TelephonyConfiguration
from voiceapi.telephony import connect
from voiceapi.telephony.carriers.rest import CarrierRefused, CarrierSilent
from voiceapi.workflows import versions

Contact = records.Contact


@pytest.fixture
def app(tmp_path: Any) -> Any:
    """Its own threads don't dial: the tests do, step by step."""
    app = create_app({"VOICEAPI_DATABASE": tmp_path / "v.db", "VOICEAPI_WORKER": False, "VOICEAPI_CONCURRENT_CALLS": 3})
    yield app
    app.extensions["voiceapi"].close()


@pytest.fixture
def start(service: Service, db: None, talk: Callable[..., Any]) -> Callable[..., int]:
    """Makes and starts a campaign of so many people whose list is read; returns its id."""

    def begin(people: int = 5, *, read: bool = True, **settings: Any) -> int:
        workflow, _ = versions.create(1, "Agent", talk())
        rows = "\n".join(f"+1202555{2000 + number}" for number in range(people))
        names = ("telephony_configuration_id", "retry_config", "schedule_config", "circuit_breaker", "max_concurrency")
        wanted = {
            **dict.fromkeys((*names, "calling_hours", "max_attempts_per_day")),
            **{"name": "n", "workflow_id": workflow.id, "source_type": "csv", "strict": False, **settings},
            "source_id": files.store(1, "l.csv", f"phone_number\n{rows}\n".encode()),
        }
        campaign_id = int(campaigns.create(service, 1, wanted).id)
        lifecycle.start(1, campaign_id)
        if read:
            with write():
                assert list_import.take(campaign_id)
            list_import.read_list(service, campaign_id)
        return campaign_id

    return begin


def claim(service: Service, campaign_id: int) -> list[Claim]:
    with write():
        return Dialer(service)._claim(campaign_id, now())[1]


def states(campaign_id: int) -> dict[str, int]:
    return {state: count for state, count in lifecycle.progress(1, campaign_id)["contacts"].items() if count}


def codes(contact: int) -> list[str]:
    decisions = records.Decision.select().where(records.Decision.contact == contact)
    return [decision.code for decision in decisions.order_by(records.Decision.id)]


def log_of(campaign_id: int) -> tuple[str, str, str]:
    campaign = Campaign.get_by_id(campaign_id)
    return campaign.state, campaign.logs[-1]["event"], campaign.logs[-1]["message"]


def test_claims_take_up_the_room_there_is(service: Service, start: Any) -> None:
    one, other = start(max_concurrency=2), start()
    assert [len(claim(service, campaign_id)) for campaign_id in (one, one, other, other)] == [2, 0, 1, 0]
    assert states(one) == {"queued": 3, "dialing": 2}


def test_a_claim_whose_lease_expires_is_released(service: Service, start: Any) -> None:
    campaign_id = start(1)
    (claimed,) = claim(service, campaign_id)
    dialer = Dialer(service)
    assert dialer.recover() == 0
    assert dialer.recover(now() + timedelta(seconds=31)) == 1
    contact = Contact.get_by_id(claimed.contact_id)
    assert (contact.state, contact.attempts, codes(contact.id)) == ("queued", 0, ["dialed", "released"])
    campaign = Campaign.get_by_id(campaign_id)
    assert (campaign.processed_rows, campaign.executed_count, campaign.total_queued_count) == (0, 0, 1)
    # Whoever comes too late with it finds a run that can't be dialed any more.
    with pytest.raises(Conflict):
        outbound.place(service, claimed.agent, claimed.to, "n", {}, {}, claimed.run)
    dialer._carry_out(claimed)
    assert Run.select().where(Run.deadline_at.is_null(False)).count() == 0


def test_a_claim_that_was_carried_out_stays(service: Service, start: Any) -> None:
    (claimed,) = claim(service, start(1))
    Run.update(state="placing", deadline_at=now() + timedelta(hours=1)).where(Run.id == claimed.run.id).execute()
    assert Dialer(service).recover(now() + timedelta(seconds=31)) == 0
    contact = Contact.get_by_id(claimed.contact_id)
    assert (contact.state, contact.attempts, contact.lease_until) == ("dialing", 1, None)


def test_the_room_may_be_gone_by_the_time_of_the_call(service: Service, start: Any) -> None:
    campaign_id = start(1)
    (claimed,) = claim(service, campaign_id)
    for number in range(3):
        Run.create(
            organization=1, workflow=claimed.agent.workflow, name="x", mode="simulator", token=str(number),
            **run_lifecycle.in_progress(),
        )  # fmt: skip
    Dialer(service)._carry_out(claimed)
    assert codes(claimed.contact_id) == ["dialed", "released"]
    assert (states(campaign_id), Campaign.get_by_id(campaign_id).state) == ({"queued": 1}, "running")


class Carrier:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def place_call(self, call: Any) -> None:
        raise self.error


def test_a_carrier_that_says_no(service: Service, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign_id = start(1)
    (claimed,) = claim(service, campaign_id)
    monkeypatch.setattr(connect, "carrier_for", lambda *args: Carrier(CarrierRefused("No such number.")))
    Dialer(service)._carry_out(claimed)
    assert states(campaign_id) == {"failed": 1}
    told = records.Decision.select().order_by(records.Decision.id.desc()).get()
    assert (told.code, told.reason) == (
        "refused",
        "The carrier refused the call; that is not followed by another attempt. (No such number.)",
    )
    assert Campaign.get_by_id(campaign_id).state == "completed"


def test_a_carrier_that_says_nothing(service: Service, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign_id = start(1)
    (claimed,) = claim(service, campaign_id)
    monkeypatch.setattr(connect, "carrier_for", lambda *args: Carrier(CarrierSilent()))
    Dialer(service)._carry_out(claimed)
    assert states(campaign_id) == {"dialing": 1}
    monkeypatch.undo()
    sweeper.sweep(service, now() + timedelta(seconds=run_lifecycle.UNKNOWN_SECONDS + 1))
    assert states(campaign_id) == {"unknown": 1}
    assert Campaign.get_by_id(campaign_id).state == "completed"


def test_a_call_whose_final_status_never_comes(service: Service, start: Any) -> None:
    campaign_id = start(1)
    (claimed,) = claim(service, campaign_id)
    context = {"provider": "simulator", "call_id": "C1"}
    Run.update(deadline_at=now(), gathered_context=context).where(Run.id == claimed.run.id).execute()
    sweeper.sweep(service, now() + timedelta(seconds=1))
    assert (states(campaign_id), codes(claimed.contact_id)) == ({"failed": 1}, ["dialed", "lost"])


def test_what_went_wrong_on_our_side_pauses_the_campaign(
    service: Service, start: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    campaign_id = start(2)
    first, _ = claim(service, campaign_id)

    def broken(*args: Any) -> None:
        raise OSError("No more sockets")

    monkeypatch.setattr(connect, "carrier_for", broken)
    with caplog.at_level(logging.CRITICAL, "voiceapi"):
        Dialer(service)._carry_out(first)
    assert states(campaign_id) == {"queued": 1, "dialing": 1}
    assert log_of(campaign_id) == ("paused", "batch_failed", "Nobody can be called: No more sockets")


def test_the_pace_of_the_configuration_is_kept(service: Service, start: Any) -> None:
    TelephonyConfiguration.update(calls_per_second=2).execute()
    campaign_id = start()
    dialer = Dialer(service)
    with write():
        moment = now()
        plans = [dialer._claim(campaign_id, moment + timedelta(seconds=seconds)) for seconds in (0, 0.4, 0.5)]
    assert [len(claims) for _, claims in plans] == [1, 0, 1]
    assert [plan.look_again for plan, _ in plans] == [
        moment + timedelta(seconds=0.5),
        moment + timedelta(seconds=0.5),
        moment + timedelta(seconds=1),
    ]


def test_a_list_is_read_on_where_it_was_left(service: Service, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_import, "BATCH", 10)
    campaign_id = start(35, read=False)
    stored: list[int] = []
    inner = list_import._store

    def pause_after_the_second(campaign: int, rows: Any) -> bool:
        stored.append(len(rows))
        if len(stored) == 3:
            lifecycle.pause(1, campaign)
        return inner(campaign, rows)

    monkeypatch.setattr(list_import, "_store", pause_after_the_second)
    with write():
        assert list_import.take(campaign_id)
        assert not list_import.take(campaign_id)
    list_import.read_list(service, campaign_id)
    assert states(campaign_id) == {"queued": 20}
    assert Campaign.get_by_id(campaign_id).state == "paused"
    assert lifecycle.resume(1, campaign_id).state == "syncing"
    with write():
        assert list_import.take(campaign_id)
    list_import.read_list(service, campaign_id)
    assert states(campaign_id) == {"queued": 35}
    assert [contact.row for contact in Contact.select().order_by(Contact.row)] == list(range(1, 36))
    assert Campaign.get_by_id(campaign_id).total_rows == 35


def test_a_list_that_is_gone_fails_the_campaign(service: Service, start: Any) -> None:
    campaign_id = start(1, read=False)
    Upload.delete().execute()
    list_import.read_list(service, campaign_id)
    assert log_of(campaign_id) == ("failed", "source_sync_failed", "File not found")
    assert lifecycle.progress(1, campaign_id)["source_sync"] == {
        "status": "failed",
        "last_synced_at": None,
        "error": "File not found",
    }


def test_the_dialer_sleeps_until_it_is_needed(service: Service, start: Any, app: Flask) -> None:
    """Without a campaign for three seconds, with one for one, unless the bell rings."""
    dialer = Dialer(service)
    assert dialer.look() == 3.0
    campaign_id = start(1, schedule_config={"enabled": True, "timezone": "UTC", "slots": [_in_three_days()]})
    service.store.dialer_wakeup.clear()
    assert dialer.look() == 1.0
    assert states(campaign_id) == {"queued": 1}
    assert not service.store.dialer_wakeup.is_set()
    lifecycle.pause(1, campaign_id)
    lifecycle.resume(1, campaign_id)
    assert service.store.dialer_wakeup.is_set()


def _in_three_days() -> dict[str, Any]:
    return {"day_of_week": (now().weekday() + 3) % 7, "start_time": "10:00", "end_time": "11:00"}
