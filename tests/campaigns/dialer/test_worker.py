"""Claims, and what becomes of them when something goes wrong on the way."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from flask import Flask

from voiceapi import create_app, jobs
from voiceapi.calls import outbound, sweeper
from voiceapi.calls.setup import CallRequest
from voiceapi.campaigns import attempts, campaigns, lifecycle
from voiceapi.campaigns.dialer import list_import
from voiceapi.campaigns.dialer.worker import Dialer
from voiceapi.errors import Conflict
from voiceapi.runs import files
from voiceapi.runs import lifecycle as run_lifecycle
from voiceapi.service import Service
from voiceapi.store import campaigns as records
from voiceapi.store import dialing
from voiceapi.store.campaigns import Campaign, Upload
from voiceapi.store.database import write
from voiceapi.store.fields import now
from voiceapi.store.runs import Run
from voiceapi.store.telephony import TelephonyConfiguration
from voiceapi.telephony import connect
from voiceapi.telephony.carriers.rest import CarrierRefused, CarrierSilent
from voiceapi.telephony.configurations import reserve_call_slot
from voiceapi.workflows import versions

Contact = records.Contact


@pytest.fixture
def app(tmp_path: Any, database_at: Callable[..., str]) -> Any:
    """Its own threads don't dial: the tests do, step by step."""
    app = create_app(
        {"VOICEAPI_DATABASE": database_at(tmp_path / "v.db"), "VOICEAPI_WORKER": False, "VOICEAPI_CONCURRENT_CALLS": 3}
    )
    yield app
    app.extensions["voiceapi"].close()


@pytest.fixture
def start(service: Service, db: None, talk: Callable[..., Any]) -> Callable[..., int]:
    """Makes and starts a campaign of so many people whose list is read; returns its id."""

    def begin(people: int = 5, *, read: bool = True, **settings: Any) -> int:
        workflow, _ = versions.create(service.vault, 1, "Agent", talk())
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


def claim(service: Service, campaign_id: int) -> list[CallRequest]:
    with write():
        return Dialer(service)._claim(campaign_id, now())[1]


def run_of(request: CallRequest) -> Run:
    assert request.prepared is not None
    return request.prepared


def contact_of(request: CallRequest) -> int:
    return int(Contact.get(run_id=run_of(request).id).id)


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


def test_of_two_campaigns_with_one_free_slot_the_one_dialed_longest_ago_is_next(service: Service, start: Any) -> None:
    """Also when the clock was set back by an hour after the first of them had dialed."""
    object.__setattr__(service.settings, "concurrent_calls", 1)
    campaigns_started = [start(4) for _ in range(3)]
    dialer, began = Dialer(service), now()
    turns = []
    for turn in range(9):
        moment = began + timedelta(hours=1) if turn < 1 else began + timedelta(seconds=turn)
        for campaign_id, _, _ in dialing.active():
            with write():
                claims = dialer._claim(campaign_id, moment)[1]
            turns += [campaign_id] * len(claims)
            for claimed in claims:
                with write():
                    run_lifecycle.complete(service, run_of(claimed))
            if claims:
                break
    assert turns == campaigns_started * 3


def test_a_look_asks_an_organization_without_a_free_call_once(
    service: Service, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that with 200 campaigns whose contacts wait, each call that ends costs one transaction, and not 200."""
    campaigns_started = [start() for _ in range(4)]
    dialer, asked = Dialer(service), list[int]()
    claim_of = dialer._claim
    monkeypatch.setattr(dialer, "_claim", lambda id, moment: asked.append(id) or claim_of(id, moment))
    monkeypatch.setattr(service.workers, "submit", lambda *_: None)
    dialer.look()
    assert [states(id).get("dialing", 0) for id in campaigns_started] == [3, 0, 0, 0]
    dialer.look()
    # The one that dialed is behind the others now.
    assert asked == campaigns_started[:2]


def test_an_attempt_that_was_given_back_is_none_of_those_a_day(service: Service, start: Any) -> None:
    one, other = start(1, max_attempts_per_day=1), start(1, max_attempts_per_day=1)
    (claimed,) = claim(service, one)
    # The same person in the other list waits, because they were dialed a moment ago.
    assert claim(service, other) == []
    waiting = Contact.get(Contact.campaign == other)
    assert (codes(waiting.id), waiting.next_attempt_at > now() + timedelta(hours=23)) == (["attempts_a_day"], True)
    assert Dialer(service).recover(now() + timedelta(seconds=31)) == 1
    # Nobody was called: whoever is next may call now, and then the other one waits.
    moment = now() + timedelta(seconds=32)
    with write():
        assert len(Dialer(service)._claim(other, moment)[1]) == 1
        assert len(Dialer(service)._claim(one, moment)[1]) == 0
    assert codes(contact_of(claimed)) == ["dialed", "released", "attempts_a_day"]


# -- a clock that is set back; each test stores with a clock that is an hour ahead

HOUR = timedelta(hours=1)


def due_in(contact: Any) -> float:
    """Seconds until the contact is due."""
    return (contact.next_attempt_at - now()).total_seconds()


def test_contacts_that_were_imported_by_a_clock_ahead_are_due_now(
    service: Service, start: Any, ahead: Callable[..., Any]
) -> None:
    with ahead():
        campaign_id = start(2)
    assert claim(service, campaign_id) == []
    jobs.correct_clock(service)
    assert len(claim(service, campaign_id)) == 2


def test_a_retry_that_a_clock_ahead_planned_is_due_after_its_delay(
    service: Service, start: Any, ahead: Callable[..., Any]
) -> None:
    retry = {**campaigns.RETRY, "retry_delay_seconds": 300}
    campaign_id = start(1, retry_config=retry)
    with ahead():
        (claimed,) = claim(service, campaign_id)
        run_of(claimed).disposition = "busy"
        with write():
            run_lifecycle.complete(service, run_of(claimed))
    contact = Contact.get_by_id(contact_of(claimed))
    assert (contact.state, due_in(contact) > 3800) == ("retry", True)
    jobs.correct_clock(service)
    contact = Contact.get_by_id(contact_of(claimed))
    assert 290 < due_in(contact) <= 300
    # It is corrected once, not put off again and again.
    jobs.correct_clock(service, now() + timedelta(seconds=30))
    assert due_in(Contact.get_by_id(contact.id)) <= 300


def test_a_contact_that_a_clock_ahead_postponed_is_looked_at_again(
    service: Service, start: Any, ahead: Callable[..., Any]
) -> None:
    other = start(1)
    campaign_id = start(1, max_attempts_per_day=1)
    waits = start(1, calling_hours={"start": "00:00", "end": "24:00"}, max_attempts_per_day=1)
    with ahead():
        assert len(claim(service, other)) == 1
        assert claim(service, campaign_id) == []
    assert due_in(Contact.get(Contact.campaign == campaign_id)) > 24.5 * 3600
    jobs.correct_clock(service)
    contact = Contact.get(Contact.campaign == campaign_id)
    assert due_in(contact) <= 0
    # What was dialed then was dialed now, so this one waits for a day from now.
    assert claim(service, campaign_id) == claim(service, waits) == []
    assert 23.9 * 3600 < due_in(Contact.get_by_id(contact.id)) <= 24 * 3600


def test_a_clock_that_is_right_changes_nothing(service: Service, start: Any, caplog: pytest.LogCaptureFixture) -> None:
    campaign_id = start(2, max_attempts_per_day=1)
    first, second = claim(service, campaign_id)
    for claimed, disposition in ((first, "busy"), (second, "no-answer")):
        run_of(claimed).disposition = disposition
        with write():
            run_lifecycle.complete(service, run_of(claimed))
    tables = (Campaign, Contact, records.Decision)
    before = [list(table.select().dicts()) for table in tables]
    jobs.correct_clock(service)
    assert [list(table.select().dicts()) for table in tables] == before
    assert "clock" not in caplog.text


def test_leases_by_a_clock_ahead_have_expired(service: Service, start: Any, ahead: Callable[..., Any]) -> None:
    campaign_id = start(1)
    unread = start(1, read=False)
    with ahead():
        claim(service, campaign_id)
        with write():
            assert list_import.take(unread)
    assert Dialer(service).recover() == 1
    assert states(campaign_id) == {"queued": 1}
    with write():
        assert list_import.take(unread)
        assert not list_import.take(unread)


def test_the_pace_of_an_account_by_a_clock_ahead_does_not_hold(
    service: Service, start: Any, ahead: Callable[..., Any]
) -> None:
    TelephonyConfiguration.update(calls_per_second=1).execute()
    campaign_id = start(3)
    with ahead():
        assert len(claim(service, campaign_id)) == 1
    jobs.correct_clock(service)
    assert len(claim(service, campaign_id)) == 1
    assert claim(service, campaign_id) == []
    configuration = TelephonyConfiguration.get()
    with write():
        assert 0 < reserve_call_slot(configuration) <= 1


def test_the_circuit_breaker_counts_again_after_the_clock_was_set_back(
    service: Service, start: Any, ahead: Callable[..., Any]
) -> None:
    breaker = {"enabled": True, "failure_threshold": 0.5, "window_seconds": 60, "min_calls_in_window": 1}
    with ahead():
        campaign_id = start(2, circuit_breaker=breaker)
    jobs.correct_clock(service)
    claimed, _ = claim(service, campaign_id)
    run_of(claimed).disposition = "failed"
    with write():
        run_lifecycle.complete(service, run_of(claimed))
    assert log_of(campaign_id)[:2] == ("paused", "circuit_breaker_tripped")


def test_changed_retries_count_for_contacts_that_wait_for_one(service: Service, start: Any) -> None:
    """Another delay is that from the end of the last call; who gets no more attempts has failed."""
    usual = {**campaigns.RETRY, "retry_delay_seconds": 7 * 86400}
    campaign_id, unchanged = start(3, retry_config=usual), dict.fromkeys(campaigns.CHANGEABLE)

    def change(**retry: Any) -> None:
        campaigns.update(service, 1, campaign_id, {**unchanged, "retry_config": {**usual, **retry}})

    dispositions = ("busy", "no-answer", "busy")
    for claimed, disposition in zip(claim(service, campaign_id), dispositions, strict=True):
        run_of(claimed).disposition = disposition
        with write():
            run_lifecycle.complete(service, run_of(claimed))
    change(retry_delay_seconds=3600)
    waiting = list(Contact.select().where(Contact.state == "retry"))
    ended = {contact.id: Run.get_by_id(contact.run_id).ended_at for contact in waiting}
    assert [contact.next_attempt_at - ended[contact.id] for contact in waiting] == [timedelta(hours=1)] * 3
    # Also for one whose next attempt was given back: it was due then.
    with write():
        (again,) = Dialer(service)._claim(campaign_id, ended[waiting[0].id] + timedelta(hours=1))[1][:1]
        contact = Contact.get_by_id(contact_of(again))
        attempts.release(contact, run_of(again), "It stopped.", now())
    change(retry_delay_seconds=7200)
    assert (Contact.get_by_id(contact.id).next_attempt_at < now(), codes(contact.id)[-1]) == (True, "released")
    change(retry_on_busy=False)
    assert states(campaign_id) == {"retry": 1, "failed": 2}
    assert codes(waiting[2].id)[1:] == ["busy", "retries_changed"]
    change(enabled=False)
    assert (states(campaign_id), Campaign.get_by_id(campaign_id).state) == ({"failed": 3}, "completed")
    assert Campaign.get_by_id(campaign_id).failed_rows == 3


def test_a_claim_whose_lease_expires_is_released(service: Service, start: Any) -> None:
    campaign_id = start(1)
    (claimed,) = claim(service, campaign_id)
    dialer = Dialer(service)
    assert dialer.recover() == 0
    assert dialer.recover(now() + timedelta(seconds=31)) == 1
    contact = Contact.get_by_id(contact_of(claimed))
    assert (contact.state, contact.attempts, codes(contact.id)) == ("queued", 0, ["dialed", "released"])
    campaign = Campaign.get_by_id(campaign_id)
    assert (campaign.processed_rows, campaign.executed_count, campaign.total_queued_count) == (0, 0, 1)
    # Whoever comes too late with it finds a run that can't be dialed any more.
    with pytest.raises(Conflict):
        outbound.place(service, claimed)
    dialer._place(claimed)
    assert Run.select().where(Run.deadline_at.is_null(False)).count() == 0


def test_a_claim_that_was_carried_out_stays(service: Service, start: Any) -> None:
    (claimed,) = claim(service, start(1))
    Run.update(state="placing", deadline_at=now() + timedelta(hours=1)).where(Run.id == claimed.prepared.id).execute()
    assert Dialer(service).recover(now() + timedelta(seconds=31)) == 0
    contact = Contact.get_by_id(contact_of(claimed))
    assert (contact.state, contact.attempts, contact.lease_until) == ("dialing", 1, None)


def test_the_room_may_be_gone_by_the_time_of_the_call(service: Service, start: Any) -> None:
    campaign_id = start(1)
    (claimed,) = claim(service, campaign_id)
    for number in range(3):
        Run.create(
            organization=1, workflow=claimed.setup.workflow, name="x", mode="simulator", token=str(number),
            **run_lifecycle.in_progress(),
        )  # fmt: skip
    Dialer(service)._place(claimed)
    assert codes(contact_of(claimed)) == ["dialed", "released"]
    assert (states(campaign_id), Campaign.get_by_id(campaign_id).state) == ({"queued": 1}, "running")


def test_calls_that_are_resumed_and_new_ones_stay_within_the_limits(
    service: Service, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minutes after all processes stopped in the middle of calls, whatever the next one does first."""
    submitted: list[tuple[Callable[..., None], Any]] = []
    monkeypatch.setattr(service.workers, "submit", lambda job, *args: submitted.append((job, args)))
    dialer = Dialer(service)

    def dial() -> None:
        dialer.look()
        placing = [args for job, args in submitted if job == dialer._place]
        submitted.clear()
        for args in placing:
            dialer._place(*args)

    steps = {
        "dial": dial,
        "resume": lambda: sweeper.resume_simulated(service),
        "sweep": lambda: sweeper.sweep(service),
    }
    one = start(9, max_concurrency=2)
    other = start(9)
    dial()
    assert [dialing.dialing(id) for id in (one, other)] == [2, 1]
    is_going_on = Run.deadline_at.is_null(False)
    begun = {run.id for run in Run.select().where(is_going_on)}
    for order in permutations(steps):
        clocks = ("slot_until", "check_at", "deadline_at", "phone_lease_until")
        five_minutes = 5 * 60 * 1_000_000
        Run.update({name: getattr(Run, name) - five_minutes for name in clocks}).where(is_going_on).execute()
        for step in order:
            steps[step]()
            in_progress = {run.id for run in Run.select().where(is_going_on)}
            assert (in_progress, dialing.dialing(one), dialing.dialing(other)) == (begun, 2, 1), (order, step)
        # Their phones report that they go on, as they do with each turn.
        for run in Run.select().where(Run.id.in_(begun)):
            with write():
                run_lifecycle.mark_alive(run)


class Carrier:
    """One that fails while it has an error, and otherwise accepts every call."""

    retries = ""
    is_local = False

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.accepted: list[str] = []

    def place_call(self, call: Any) -> str:
        if self.error is not None:
            raise self.error
        self.accepted.append(call.to)
        return f"CA{call.to}"


def test_a_carrier_that_says_no(service: Service, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign_id = start(1)
    (claimed,) = claim(service, campaign_id)
    monkeypatch.setattr(connect, "connect", lambda *args: Carrier(CarrierRefused("No such number.")))
    Dialer(service)._place(claimed)
    assert states(campaign_id) == {"failed": 1}
    told = records.Decision.select().order_by(records.Decision.id.desc()).get()
    assert (told.code, told.reason) == (
        "refused",
        "The carrier refused the call; that is not followed by another attempt. (No such number.)",
    )
    assert Campaign.get_by_id(campaign_id).state == "completed"


def carry_out(service: Service, campaign_id: int, moment: Any = None) -> int:
    """Claim and place what may be placed now; returns how many calls that were."""
    dialer = Dialer(service)
    with write():
        claims = dialer._claim(campaign_id, moment or now())[1]
    for each in claims:
        dialer._place(each)
    return len(claims)


def totals(campaign_id: int) -> tuple[int, ...]:
    found = Campaign.get_by_id(campaign_id)
    return found.processed_rows, found.failed_rows, found.executed_count, found.total_queued_count


def test_a_refusal_of_the_account_is_no_attempt_and_pauses_the_campaign(
    service: Service, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is in the list is called once the account is in order, and nobody twice."""
    object.__setattr__(service.settings, "concurrent_calls", 5)
    campaign_id = start(12, max_attempts_per_day=1)
    sentence = "Twilio answered 401: Authenticate (code 20003)."
    carrier = Carrier(CarrierRefused(sentence, "account"))
    monkeypatch.setattr(connect, "connect", lambda *args: carrier)
    assert carry_out(service, campaign_id) == 5
    assert carry_out(service, campaign_id) == 0
    assert (states(campaign_id), totals(campaign_id)) == ({"queued": 12}, (0, 0, 0, 12))
    message = f"The carrier takes no calls of this account, so the campaign is paused: {sentence}"
    assert log_of(campaign_id) == ("paused", "account_refused", message)
    contact = Contact.get_by_id(1)
    told = records.Decision.select().where(records.Decision.contact == 1).order_by(records.Decision.id.desc()).get()
    assert (codes(1), told.reason) == (["dialed", "released"], f"No call was placed. {sentence}")
    assert (contact.attempts, contact.lease_until) == (0, None)
    assert Run.select().where(Run.state != "completed").count() == 0
    carrier.error = None
    lifecycle.resume(1, campaign_id)
    while carry_out(service, campaign_id):
        Run.update(slot_until=None).execute()
    assert sorted(carrier.accepted) == [f"+1202555{2000 + number}" for number in range(12)]


def test_a_carrier_that_takes_no_more_calls_holds_the_account_back(
    service: Service, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    TelephonyConfiguration.update(calls_per_second=1000).execute()
    breaker = {"enabled": True, "failure_threshold": 0.1, "window_seconds": 60, "min_calls_in_window": 1}
    campaign_id = start(2, circuit_breaker=breaker)
    carrier = Carrier(CarrierRefused("Twilio answered 429.", "later", retry_after=30))
    monkeypatch.setattr(connect, "connect", lambda *args: carrier)
    assert carry_out(service, campaign_id) == 1
    assert (states(campaign_id), totals(campaign_id)) == ({"queued": 2}, (0, 0, 0, 2))
    message = "The carrier takes no calls for now, so the campaign waits: Twilio answered 429."
    assert log_of(campaign_id) == ("running", "carrier_busy", message)
    with write():
        plan, claims = Dialer(service)._claim(campaign_id, now())
    assert plan.hold is not None
    assert (claims, plan.hold.code) == ([], "pace")
    assert plan.hold.reason.startswith("The account places its next call at ")
    assert carry_out(service, campaign_id, now() + timedelta(seconds=29)) == 0
    carrier.error = None
    assert carry_out(service, campaign_id, now() + timedelta(seconds=31)) == 1
    assert states(campaign_id) == {"queued": 1, "dialing": 1}


def test_a_carrier_that_cannot_be_reached_is_asked_again_for_the_same_contact(
    service: Service, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    TelephonyConfiguration.update(calls_per_second=1000).execute()
    campaign_id = start(1)
    carrier = Carrier(CarrierRefused("https://api.example.org could not be reached.", "later"))
    monkeypatch.setattr(connect, "connect", lambda *args: carrier)
    assert [carry_out(service, campaign_id) for _ in range(2)] == [1, 0]
    carrier.error = None
    TelephonyConfiguration.update(paced_until=now()).execute()
    assert carry_out(service, campaign_id) == 1
    assert carrier.accepted == ["+12025552000"]


@pytest.mark.parametrize("seen", ["webhook", "hang-up"])
def test_a_refused_call_that_was_seen_is_an_attempt(
    service: Service, start: Any, monkeypatch: pytest.MonkeyPatch, seen: str
) -> None:
    """A webhook shows that the phone rang whatever the carrier answered, so the contact isn't called again."""
    campaign_id = start(1)

    class Contradicts(Carrier):
        def place_call(self, call: Any) -> str:
            change = {"state": "ringing"} if seen == "webhook" else {"hang_up_reason": "user_hangup"}
            with write():
                Run.update(**change).execute()
            return super().place_call(call)

    refusal = CarrierRefused("Twilio answered 403.", "account")
    monkeypatch.setattr(connect, "connect", lambda *args: Contradicts(refusal))
    carry_out(service, campaign_id)
    if seen == "webhook":  # the call goes on
        assert (states(campaign_id), codes(1), Run.get().state) == ({"dialing": 1}, ["dialed"], "ringing")
    else:
        assert (states(campaign_id), codes(1)) == ({"failed": 1}, ["dialed", "refused"])


def test_a_redial_takes_the_contacts_whose_calls_the_carrier_refused(
    service: Service, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign_id = start(2)
    monkeypatch.setattr(connect, "connect", lambda *args: Carrier(CarrierRefused("No such number.")))
    assert carry_out(service, campaign_id) == 2
    flags = dict.fromkeys(lifecycle.REDIALED, False)
    wanted = {"name": None, "retry_config": None, **flags, "retry_on_refused": True}
    assert lifecycle.redial(1, campaign_id, wanted).total_rows == 2


def test_a_carrier_that_says_nothing(service: Service, start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign_id = start(1)
    (claimed,) = claim(service, campaign_id)
    silence = CarrierSilent("Twilio answered 500: Oops.")
    monkeypatch.setattr(connect, "connect", lambda *args: Carrier(silence))
    Dialer(service)._place(claimed)
    assert states(campaign_id) == {"dialing": 1}
    monkeypatch.undo()
    sweeper.sweep(service, now() + timedelta(seconds=run_lifecycle.UNKNOWN_SECONDS + 1))
    assert states(campaign_id) == {"unknown": 1}
    told = records.Decision.select().order_by(records.Decision.id.desc()).get()
    assert told.reason == (
        "The carrier didn't confirm the call, so the phone may have rung; nobody is called again for that. "
        "(Twilio answered 500: Oops. It isn't known whether the phone rang.)"
    )
    assert Campaign.get_by_id(campaign_id).state == "completed"


def test_a_call_whose_final_status_never_comes(service: Service, start: Any) -> None:
    campaign_id = start(1)
    (claimed,) = claim(service, campaign_id)
    context = {"provider": "simulator", "call_id": "C1"}
    Run.update(deadline_at=now(), gathered_context=context).where(Run.id == claimed.prepared.id).execute()
    sweeper.sweep(service, now() + timedelta(seconds=1))
    assert (states(campaign_id), codes(contact_of(claimed))) == ({"failed": 1}, ["dialed", "lost"])


def test_what_went_wrong_on_our_side_pauses_the_campaign(
    service: Service, start: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    campaign_id = start(2)
    first, _ = claim(service, campaign_id)

    def broken(*args: Any) -> None:
        raise OSError("No more sockets")

    monkeypatch.setattr(connect, "connect", broken)
    with caplog.at_level(logging.CRITICAL, "voiceapi"):
        Dialer(service)._place(first)
    assert states(campaign_id) == {"queued": 1, "dialing": 1}
    assert log_of(campaign_id) == ("paused", "batch_failed", "Nobody can be called: No more sockets")


def test_a_campaign_that_no_process_sees_to_says_since_when(service: Service, start: Any) -> None:
    """A dialer leaves a sign of itself, also when nobody is to be called now."""

    def since(seconds: float = 0.0) -> Any:
        return records.not_dialed_since(Campaign.get_by_id(campaign_id), moment + timedelta(seconds=seconds))

    campaign_id, moment = start(1, read=False), now()
    started = Campaign.get_by_id(campaign_id).breaker_reset_at
    assert (since(), since(29), since(31)) == (None, None, started)
    with write():
        assert list_import.take(campaign_id)
    assert (since(29), since(61)) == (None, Campaign.get_by_id(campaign_id).source_lease_until - records.LEASE)
    list_import.read_list(service, campaign_id)
    assert since(29) is None
    Campaign.update(schedule_config=_in_three_days(), source_lease_until=None).execute()
    dialer = Dialer(service)
    dialer.look()
    signed = Campaign.get_by_id(campaign_id).source_lease_until
    assert (since(29), since(61)) == (None, signed - records.LEASE)
    # One sign in ten seconds is enough, of however many processes, and one by a clock ahead is none.
    assert [dialing.is_unsigned(moment + timedelta(seconds=seconds)) for seconds in (1, 12)] == [False, True]
    Campaign.update(source_lease_until=moment + timedelta(hours=1)).execute()
    assert (since(31), dialing.is_unsigned(moment)) == (started, True)
    dialer._sign()
    assert since(29) is None
    lifecycle.pause(1, campaign_id)
    assert (since(3600), dialing.is_unsigned(moment + timedelta(hours=1))) == (None, False)
    # Who resumes it gives the others time to begin.
    resumed = lifecycle.resume(1, campaign_id).breaker_reset_at
    assert (since(20), since(3600)) == (None, max(resumed, signed - records.LEASE))


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
