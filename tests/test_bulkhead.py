"""The shares of slow work, decided without threads, and the waiting for them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceapi.bulkhead import RETURN_SECONDS, Bulkhead, Shares, Ticket
from voiceapi.errors import OutOfService

ORGANIZATIONS = st.sampled_from(["a", "b", "c"])


def ask(shares: Shares, organization: str, lane: str | None = None, at: float = 0.0) -> Ticket:
    ticket = Ticket(organization, lane)
    shares.ask(ticket, at)
    return ticket


def states(*tickets: Ticket) -> list[str]:
    return ["runs" if ticket.is_granted else "away" if ticket.decided.is_set() else "waits" for ticket in tickets]


def running(shares: Shares) -> Counter[Any]:
    return Counter(ticket.organization for ticket in shares.running)


# -- who runs


def test_one_organization_alone_has_all_permits() -> None:
    shares = Shares(permits=3, places=2)
    assert states(*(ask(shares, "a") for _ in range(6))) == ["runs"] * 3 + ["waits"] * 2 + ["away"]


def test_who_has_less_is_next() -> None:
    shares = Shares(permits=4, places=4)
    first = [ask(shares, "a") for _ in range(6)]
    second = [ask(shares, "b") for _ in range(2)]
    for ticket in first[:2]:
        shares.leave(ticket, 0.0)
    assert (running(shares), states(*second)) == ({"a": 2, "b": 2}, ["runs", "runs"])
    shares.leave(second[0], 0.0)
    assert running(shares) == {"a": 3, "b": 1}


def test_an_organization_with_many_that_wait_gives_its_place_to_another() -> None:
    shares = Shares(permits=2, places=2)
    many = [ask(shares, "a") for _ in range(4)]
    other = ask(shares, "b")
    assert states(*many, other) == ["runs", "runs", "waits", "away", "waits"]
    shares.leave(many[0], 0.0)
    assert states(other) == ["runs"]


def test_the_share_of_who_was_turned_away_is_kept_for_a_while() -> None:
    shares = Shares(permits=4, places=4)
    first = [ask(shares, "a") for _ in range(8)]
    other = ask(shares, "b")
    assert states(other, *first[7:]) == ["waits", "away"]
    shares.turn_away(other, 5.0)
    for ticket in first[:3]:
        shares.leave(ticket, 6.0)
    assert running(shares) == {"a": 2}
    assert states(ask(shares, "b", at=7.0)) == ["runs"]
    # It was served, so nothing is kept for it any more.
    assert running(shares) == {"a": 3, "b": 1}


def test_a_share_that_nobody_comes_for_is_given_away() -> None:
    shares = Shares(permits=2, places=2)
    first = [ask(shares, "a") for _ in range(3)]
    shares.turn_away(ask(shares, "b"), 0.0)
    shares.leave(first[0], 1.0)
    assert states(first[2]) == ["waits"]
    shares.grant(RETURN_SECONDS)
    assert states(first[2]) == ["runs"]


def test_of_a_lane_one_runs_at_a_time() -> None:
    shares = Shares(permits=4, places=4)
    one, two, else_ = ask(shares, "a", "documents"), ask(shares, "b", "documents"), ask(shares, "a", "lists")
    assert states(one, two, else_) == ["runs", "waits", "runs"]
    shares.leave(one, 0.0)
    assert states(two) == ["runs"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), ORGANIZATIONS, st.sampled_from([None, None, "lists"])),
        st.tuples(st.sampled_from(["leave", "turn_away"]), st.integers(0, 30)),
        st.tuples(st.just("pass"), st.floats(0, 6)),
    ),
    max_size=60,
)


@settings(max_examples=50)
@given(permits=st.integers(1, 8), places=st.integers(0, 4), steps=STEPS)
def test_whatever_comes_the_bounds_hold_and_no_permit_lies_idle(permits: int, places: int, steps: list[Any]) -> None:
    shares, tickets, at = Shares(permits, places), [], 0.0
    for name, *values in steps:
        if name == "ask":
            tickets.append(ask(shares, *values, at))
        elif name == "pass":
            at += values[0]
            shares.grant(at)
        elif tickets:
            getattr(shares, name)(tickets[values[0] % len(tickets)], at)
        check(shares, tickets)
    # Nothing waits for ever: once those that are expected haven't come, whatever waits runs.
    while shares.running or shares.waiting:
        at += RETURN_SECONDS
        shares.grant(at)
        assert shares.running
        for ticket in list(shares.running):
            shares.leave(ticket, at)


def check(shares: Shares, tickets: list[Ticket]) -> None:
    assert len(shares.running) <= shares.permits
    assert len(shares.waiting) <= shares.places
    assert all(count == 1 for lane, count in Counter(each.lane for each in shares.running).items() if lane)
    for ticket in tickets:
        assert not (ticket in shares.running and ticket in shares.waiting)
        assert ticket.decided.is_set() != (ticket in shares.waiting)
        assert ticket.is_granted or ticket not in shares.running
    free, having = shares.permits - len(shares.running), running(shares)
    for ticket in shares.waiting:
        if free and ticket.lane is None:
            # It waits only because another organization is expected, and its own has its share.
            assert having[ticket.organization] >= -(-shares.permits // 3)


# -- waiting


def hold(bulkhead: Bulkhead, pool: ThreadPoolExecutor, organization: str = "a") -> Callable[[], None]:
    """Begin slow work; returns what ends it."""
    begun, end = threading.Event(), threading.Event()

    def work() -> None:
        with bulkhead.slow(organization):
            begun.set()
            end.wait(10)

    done = pool.submit(work)
    assert begun.wait(5)

    def stop() -> None:
        end.set()
        done.result(5)

    return stop


def test_slow_work_has_half_of_the_threads_and_a_quarter_waits() -> None:
    bounds = {}
    for threads in (1, 2, 3, 4, 16, 64):
        bulkhead = Bulkhead(threads)
        slow = bulkhead.shares.permits + bulkhead.shares.places
        bounds[threads] = (bulkhead.shares.permits, bulkhead.shares.places, threads - slow)
    assert bounds == {1: (1, 0, 0), 2: (1, 0, 1), 3: (1, 0, 2), 4: (2, 1, 1), 16: (8, 4, 4), 64: (32, 16, 16)}


def test_slow_work_waits_for_a_permit_and_is_turned_away_after_a_while() -> None:
    bulkhead = Bulkhead(threads=4, wait_seconds=0.05)
    with ThreadPoolExecutor(4) as pool:
        stops = [hold(bulkhead, pool) for _ in range(2)]
        with pytest.raises(OutOfService) as refused, bulkhead.slow("a"):
            pytest.fail("It has no permit.")
        assert (refused.value.retry_after, "busy" in refused.value.detail) == (5, True)
        bulkhead.wait_seconds = 5.0
        threading.Timer(0.02, stops.pop()).start()
        with bulkhead.slow("b"):
            assert len(bulkhead.shares.running) == 2
        stops.pop()()
    assert (bulkhead.shares.running, bulkhead.shares.waiting) == ([], [])


def test_what_finds_no_place_to_wait_is_turned_away_at_once() -> None:
    bulkhead = Bulkhead(threads=2)
    with ThreadPoolExecutor(1) as pool:
        stop = hold(bulkhead, pool)
        before = time.monotonic()
        with pytest.raises(OutOfService), bulkhead.slow("b"):
            pytest.fail("It has no permit.")
        assert time.monotonic() - before < 1
        stop()


def test_work_that_fails_gives_its_permit_back() -> None:
    bulkhead = Bulkhead(threads=2)
    with pytest.raises(KeyError), bulkhead.slow("a"):
        raise KeyError
    with bulkhead.slow("b"):
        pass


# -- webhooks that wait


def test_a_webhook_waits_until_its_turn_is_done() -> None:
    bulkhead, job = Bulkhead(threads=16), Future[str]()
    threading.Timer(0.02, job.set_result, ["Hello."]).start()
    bulkhead.wait_for_job("a", job, 5.0)
    assert job.done()
    before = time.monotonic()
    bulkhead.wait_for_job("a", Future(), 0.02)
    assert 0.02 <= time.monotonic() - before < 1


def test_webhooks_that_wait_leave_threads_to_others(wait_for: Callable[..., Any]) -> None:
    """Of 16 threads 14 may wait. Who comes then makes one of the organization with the most waiting give up."""
    bulkhead, job = Bulkhead(threads=16), Future[None]()
    with ThreadPoolExecutor(16) as pool:
        many = [pool.submit(bulkhead.wait_for_job, "a", job, 10.0) for _ in range(14)]
        wait_for(lambda: len(bulkhead._queue) == 14)
        other = pool.submit(bulkhead.wait_for_job, "b", job, 10.0)
        wait_for(lambda: sum(each.done() for each in many) == 1)
        # Slow work that begins takes threads away from those that wait.
        stop = hold(bulkhead, pool)
        wait_for(lambda: sum(each.done() for each in many) == 2)
        assert not other.done()
        job.set_result(None)
        other.result(5)
        stop()
    assert bulkhead._queue == []


def test_on_few_threads_a_webhook_waits_only_while_no_slow_work_runs() -> None:
    for threads, slow_work, waits in ((1, False, True), (2, False, True), (2, True, False)):
        bulkhead, before = Bulkhead(threads), time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            stop = hold(bulkhead, pool) if slow_work else lambda: None
            bulkhead.wait_for_job("a", Future(), 0.05)
            stop()
        assert (time.monotonic() - before >= 0.05) == waits, threads


def test_an_interrupt_ends_the_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    bulkhead = Bulkhead(threads=4)

    def interrupt(_: Ticket) -> None:
        raise KeyboardInterrupt

    with bulkhead.slow("a"), bulkhead.slow("a"), monkeypatch.context() as patch:
        patch.setattr(bulkhead, "_wait", interrupt)
        with pytest.raises(KeyboardInterrupt), bulkhead.slow("b"):
            pytest.fail("It has no permit.")
    assert (bulkhead.shares.running, bulkhead.shares.waiting) == ([], [])
