"""Two processes that decide about the same calls at the same moment: what one of them stores, the other one knows.

Two services on one database stand for them. Each test has both of them decide before either stores, if nothing keeps
them apart: a function that a decision rests on waits, for a moment, until the other one has called it, too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from voiceapi.background.pausing_jobs import PausingJobs
from voiceapi.background.slow_jobs import SlowJobs
from voiceapi.calls import ending, simulated, triggers, turns, webhooks
from voiceapi.calls.outbound import Placement
from voiceapi.calls.setup import CallRequest
from voiceapi.calls.simulated import Caller
from voiceapi.calls.triggers import Target, WantedCall
from voiceapi.campaigns import campaigns
from voiceapi.campaigns import lifecycle as campaign_lifecycle
from voiceapi.campaigns.dialer import list_import, worker
from voiceapi.campaigns.dialer.worker import Dialer
from voiceapi.conversations import text_chats
from voiceapi.conversations.request_handler import RequestHandler
from voiceapi.engine.actions import Transfer
from voiceapi.errors import Conflict, LimitReached, ServiceError
from voiceapi.opening import open_service
from voiceapi.organizations import preferences
from voiceapi.postcall import delivery, outbox, processing
from voiceapi.runs import files, lifecycle
from voiceapi.runs import preparation as run_cases
from voiceapi.service import Service
from voiceapi.store import chats, dialing, organizations, postcall, retention, runs
from voiceapi.store.base import insert
from voiceapi.store.campaigns import Campaign, Contact
from voiceapi.store.database import write
from voiceapi.store.fields import now
from voiceapi.store.locks import NO_LOCK
from voiceapi.store.organizations import ApiKey
from voiceapi.store.postcall import Delivery, DeliveryAttempt, FollowUp
from voiceapi.store.runs import Run, Turn
from voiceapi.store.telephony import TelephonyConfiguration
from voiceapi.store.workflows import Workflow
from voiceapi.telephony import phones
from voiceapi.telephony.carriers.events import StatusUpdate

pytestmark = pytest.mark.postgresql

NUMBER = "+12025550123"
# How long a decision waits for the other process's.
SECONDS = 0.3


@pytest.fixture(autouse=True)
def silent_phones(monkeypatch: pytest.MonkeyPatch) -> None:
    """No simulated phone goes on with a call."""
    monkeypatch.setattr(PausingJobs, "start", lambda *_, **__: None)


@pytest.fixture
def other(service: Service) -> Iterator[Service]:
    """The service of another process."""
    found = open_service(service.settings)
    found.workers.process = os.getpid()
    yield found
    found.close()


@pytest.fixture
def meet(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets two threads meet that have called these functions, each of a module: neither goes on before the other."""

    def patch(*places: tuple[Any, str]) -> None:
        barrier = threading.Barrier(2)

        def met(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            with suppress(threading.BrokenBarrierError):
                barrier.wait(SECONDS)
            return result

        for module, name in places:
            monkeypatch.setattr(module, name, partial(met, getattr(module, name)))

    return patch


def at_once(first: Service, second: Service, *acts: Callable[[Service], Any]) -> list[Any]:
    """What each service's act returns, or the error that it raises; one act is that of both."""

    def carry_out(service: Service, act: Callable[[Service], Any]) -> Any:
        with service.store.session():
            try:
                return act(service)
            except ServiceError as error:
                return error

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(carry_out, (first, second), (acts[0], acts[-1])))


def trigger(service: Service) -> Placement:
    key = ApiKey.get_by_id(1)
    return triggers.trigger(service, key, Target("trigger_path", "line"), WantedCall(NUMBER))


def call_in(service: Service) -> Run:
    return simulated.call_workflow(service, 1, 1, Caller())


def transfer(service: Service) -> Any:
    """None if the transfer was counted."""
    handler = RequestHandler(service, {}, 1, run=Run(mode="twilio"))
    return next(handler.answer(Transfer(1, 0.0, "+12025550177", 30.0)), None)


class TestOneFreeCall:
    @pytest.fixture
    def settings(self) -> dict[str, Any]:
        return {"VOICEAPI_CONCURRENT_CALLS": "1"}

    @pytest.mark.parametrize("act", [trigger, call_in])
    def test_the_last_free_call_is_taken_once(
        self, service: Service, other: Service, workflow: Callable[..., Any], meet: Any, act: Any, db: None
    ) -> None:
        workflow(path="line")
        meet((runs, "in_progress"))
        first, second = at_once(service, other, trigger, act)
        assert sum(isinstance(each, LimitReached) for each in (first, second)) == 1
        assert Run.select().count() == 1

    def test_two_dialers_take_it_once(
        self, service: Service, other: Service, started: Callable[..., int], meet: Any, db: None
    ) -> None:
        two = started(NUMBER), started("+12025550124")
        meet((runs, "in_progress"))
        assert len(dialed(service, other, *two)) == 1


@pytest.mark.parametrize("act", [trigger, transfer])
def test_the_last_call_of_a_day_is_placed_once(
    service: Service, other: Service, workflow: Callable[..., Any], meet: Any, act: Any, db: None
) -> None:
    workflow(path="line")
    preferences.replace(1, {"max_calls_a_day": 1})
    meet((organizations, "latest_calls"))
    found = at_once(service, other, trigger, act)
    assert organizations.latest_calls(1, now() - timedelta(days=1), now() + timedelta(days=1), 9)[0] == 1
    # What is refused is an error, or a result for the model.
    assert sum(isinstance(each, Placement) or each is None for each in found) == 1


@pytest.fixture
def started(service: Service, workflow: Callable[..., Any], db: None) -> Callable[..., int]:
    """Starts a campaign that calls these numbers; returns its id."""

    def start(*numbers: str) -> int:
        wanted = {
            **dict.fromkeys((*campaigns.CHANGEABLE, "telephony_configuration_id")),
            **{"name": "C", "workflow_id": workflow()["id"], "source_type": "csv", "strict": False},
            "source_id": files.store(1, "c.csv", "\n".join(["phone_number", *numbers]).encode()),
        }
        found: int = campaigns.create(service, 1, wanted).id
        campaign_lifecycle.start(1, found)
        assert list_import.take(found)
        list_import.read_list(service, found)
        return found

    return start


def dialed(first: Service, second: Service, *ids: int) -> list[CallRequest]:
    """What two dialers claim at once: of one campaign, or each of its own."""
    claims: list[CallRequest] = []
    for service in (first, second):
        service.workers.submit = lambda job, *args: claims.extend(args)  # type: ignore[method-assign, assignment, misc]
    at_once(first, second, *(lambda service, id=id: Dialer(service)._dial(id, 1) for id in ids))
    return claims


def test_two_dialers_call_a_contact_once(
    service: Service, other: Service, started: Callable[..., int], meet: Any, db: None
) -> None:
    campaign = started(NUMBER)
    meet((dialing, "due"))
    assert len(dialed(service, other, campaign)) == 1
    assert [contact.attempts for contact in Contact.select()] == [1]
    assert Run.select().count() == Campaign.get_by_id(campaign).executed_count == 1


def test_two_dialers_keep_the_pace_of_their_account(
    service: Service, other: Service, started: Callable[..., int], meet: Any, db: None
) -> None:
    two = started(NUMBER), started("+12025550124")
    TelephonyConfiguration.update(calls_per_second=1.0).execute()
    meet((worker, "next_call_at"))
    assert len(dialed(service, other, *two)) == 1


def test_two_dialers_keep_the_attempts_that_a_number_gets_a_day(
    service: Service, other: Service, started: Callable[..., int], meet: Any, db: None
) -> None:
    two = started(NUMBER), started(NUMBER)
    preferences.replace(1, {"max_attempts_per_day": 1})
    meet((dialing, "dialed_since"))
    assert len(dialed(service, other, *two)) == 1


def test_one_process_reads_a_contact_list(
    service: Service, other: Service, started: Callable[..., int], meet: Any, db: None
) -> None:
    campaign = started(NUMBER)
    Campaign.update(state="syncing", source_status="pending", source_lease_until=None).execute()
    submitted: list[Any] = []
    for each in (service, other):
        each.workers.submit = lambda *job: submitted.append(job)  # type: ignore[method-assign, assignment, misc]
    meet((list_import, "_campaign"))
    at_once(service, other, lambda each: Dialer(each)._read_list(campaign))
    assert len(submitted) == 1


def test_a_campaign_ends_when_its_last_two_calls_end_at_once(
    service: Service, other: Service, started: Callable[..., int], meet: Any, db: None
) -> None:
    campaign = started(NUMBER, "+12025550124")
    for claim in dialed(service, other, campaign):
        Dialer(service)._place(claim)
    Run.update(state="talking", answered_at=now()).execute()
    meet((dialing, "is_open"))
    at_once(service, other, *(partial(end_answered, run=run) for run in Run.select()))
    assert [contact.state for contact in Contact.select()] == ["completed"] * 2
    assert Campaign.get_by_id(campaign).state == "completed"


def end_answered(service: Service, run: Run) -> None:
    webhooks.record(service, run, StatusUpdate("completed", "completed", duration=9.0))


def end_busy(service: Service, run: Run) -> None:
    webhooks.record(service, run, StatusUpdate("busy", "busy"))


def test_a_prepared_run_is_placed_or_ended(
    service: Service, other: Service, workflow: Callable[..., Any], meet: Any, db: None
) -> None:
    workflow(path="line")
    run = run_cases.prepare(Workflow.get_by_id(1), "Prepared", "simulator")
    meet((lifecycle, "is_dialable"), (ending, "record_outcome"))

    def place(service: Service) -> Placement:
        return triggers.initiate(service, 1, 1, run.id, WantedCall(NUMBER))

    placed, _ = at_once(service, other, place, lambda service: ending.end(service, run))
    stored = Run.get_by_id(run.id)
    if isinstance(placed, Conflict):
        assert (stored.state, stored.disposition) == ("completed", "canceled")
    else:
        assert (stored.state, stored.disposition, stored.hang_up_reason) == ("ringing", None, "user_hangup")


@pytest.fixture
def ended(service: Service, workflow: Callable[..., Any], talk: Callable[..., Any], db: None) -> Callable[[], Run]:
    """A run that has ended, and whose webhook is still to be made."""
    definition = talk("line")
    webhook = {"name": "Hook", "enabled": True, "http_method": "POST", "endpoint_url": "https://example.com/{{nobody}}"}
    definition["nodes"].append({"id": "w", "type": "webhook", "position": {"x": 0, "y": 0}, "data": webhook})
    workflow(definition)
    service.workers.wake = lambda: None  # type: ignore[method-assign]

    def end() -> Run:
        run = trigger(service).run
        end_busy(service, run)
        return Run.get_by_id(run.id)

    return end


def test_a_price_that_comes_while_webhooks_are_made_is_kept(
    service: Service, other: Service, ended: Callable[[], Run], meet: Any, db: None
) -> None:
    """Both change the run's annotations."""
    run = ended()
    other.workers.wake = lambda: None  # type: ignore[method-assign]
    priced = StatusUpdate(None, "price", price=0.5, currency="USD")
    meet((postcall, "unrendered"), (webhooks, "insert"))
    at_once(service, other, processing.process_next, lambda service: webhooks.record(service, run, priced))
    annotations = Run.get_by_id(run.id).annotations
    assert (annotations["missing_variables"], annotations["call_price"]["amount"]) == (["nobody"], 0.5)


def test_a_run_gets_one_public_token(
    service: Service, other: Service, ended: Callable[[], Run], meet: Any, db: None
) -> None:
    """Of its end, which makes one for webhooks, and of a request that shows it."""
    ended()
    run = trigger(service).run
    Run.update(has_transcript=True).where(Run.id == run.id).execute()
    shown = Run.get_by_id(run.id)
    meet((outbox, "find"), (runs, "publish"))
    _, found = at_once(service, other, partial(end_busy, run=run), lambda _: run_cases.with_public_token(shown))
    assert found.public_access_token == Run.get_by_id(run.id).public_access_token is not None


@contextmanager
def claiming(service: Service, claim: Callable[[], Any]) -> Iterator[Any]:
    """A transaction of another process that has claimed something, and isn't committed while the block lasts."""
    claimed, go = threading.Event(), threading.Event()
    found: list[Any] = []

    def hold() -> None:
        with service.store.session(), write(NO_LOCK):
            found.append(claim())
            claimed.set()
            go.wait(60)

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        assert claimed.wait(60)
        try:
            yield found[0]
        finally:
            go.set()
            holding.result(60)


def test_what_another_process_claims_is_left_to_it_without_waiting(
    service: Service, other: Service, ended: Callable[[], Run], db: None
) -> None:
    """Follow-ups, then the deliveries that they make."""
    ids = {ended().id for _ in range(2)}
    moment, later = now(), now() + timedelta(minutes=1)
    with claiming(other, lambda: postcall.lease_follow_up(moment, later)) as theirs:
        ours = processing.claim(moment)
        assert ours is not None
        assert {ours.run.id, theirs} == ids
        assert processing.claim(moment) is None
    FollowUp.update(due_at=moment).execute()
    while processing.process_next(service, moment):
        pass
    deliveries = {each.id for each in Delivery.select()}
    with claiming(other, lambda: postcall.lease_delivery(moment, later)) as theirs:
        sent = delivery.claim(moment)
        assert sent is not None
        assert {sent.id, theirs} == deliveries
        assert delivery.claim(moment) is None


def test_every_delivery_is_claimed_once(service: Service, other: Service, ended: Callable[[], Run], db: None) -> None:
    for _ in range(6):
        ended()
    moment = now()
    while processing.process_next(service, moment):
        pass

    def claim_all(_: Service) -> list[int]:
        return [found.id for found in iter(lambda: delivery.claim(moment), None)]

    first, second = at_once(service, other, claim_all)
    ids = sorted([*first, *second])
    assert ids == sorted(each.id for each in Delivery.select())
    assert sorted((each.delivery_id, each.number) for each in DeliveryAttempt.select()) == [(id, 1) for id in ids]


def test_the_simulated_calls_of_a_process_that_stopped_are_shared_out(
    service: Service, other: Service, workflow: Callable[..., Any], meet: Any, db: None
) -> None:
    workflow(path="line")
    ids = [trigger(service).run.id for _ in range(4)]
    Run.update(phone_worker="gone", phone_lease_until=now() - timedelta(seconds=1)).execute()
    meet((runs, "without_phone"))
    first, second = at_once(service, other, phones.take_over)
    assert sorted(run.id for run in (*first, *second)) == ids


def test_one_process_resumes_a_turn_that_another_one_left(
    service: Service,
    other: Service,
    workflow: Callable[..., Any],
    meet: Any,
    monkeypatch: pytest.MonkeyPatch,
    db: None,
) -> None:
    workflow(path="line")
    # The two services have one process id.
    monkeypatch.setattr(turns, "has_ended", lambda _: False)
    run = trigger(service).run
    insert(Turn, run=run, number=1, actions=[], worker="gone", touched_at=now() - timedelta(minutes=1))
    meet((turns, "_has_other_worker"))
    first, second = (replace(each, slow_jobs=SlowJobs(0.5)) for each in (service, other))
    found = at_once(first, second, lambda service: turns._left_by_others(service, run.id, 1))
    assert sorted(each is None for each in found) == [False, True]


def test_an_old_run_that_another_process_removes_is_left_to_it(
    service: Service, other: Service, ended: Callable[[], Run], db: None
) -> None:
    two = [ended().id for _ in range(2)]
    Delivery.delete().execute()
    FollowUp.delete().execute()
    before = now() + timedelta(days=1)
    with claiming(other, lambda: Run.update(annotations={}).where(Run.id == two[0]).execute()):
        for id in two:
            retention.delete_run(id, before)
        assert [run.id for run in Run.select()] == two[:1]


def test_of_two_messages_to_a_chat_at_one_revision_one_is_answered(
    service: Service, other: Service, workflow: Callable[..., Any], meet: Any, db: None
) -> None:
    workflow(path="line")
    session = text_chats.create(service, 1, 1, None, {}, {})
    meet((text_chats, "_changeable"))
    at = session.revision
    found = at_once(service, other, lambda service: text_chats.say(service, session, "What?", at))
    assert sum(isinstance(each, Conflict) for each in found) == 1, found


def test_a_message_that_another_process_may_be_answering_is_waited_for(
    service: Service, other: Service, workflow: Callable[..., Any], wait_for: Callable[..., Any], db: None
) -> None:
    """As by one that started meanwhile; a message of the only process's time before its start is nobody's any more."""
    workflow(path="line")
    session = text_chats.create(service, 1, 1, None, {}, {})
    with other.store.session(), write():
        chats.append(chats.latest(session), "Yes.")
    started_meanwhile = replace(service, started_at=now())
    assert text_chats._is_being_answered(started_meanwhile, chats.latest(session))
    other.store.close()
    # The server may see a moment later that the connections are closed.
    wait_for(lambda: not text_chats._is_being_answered(started_meanwhile, chats.latest(session)))
