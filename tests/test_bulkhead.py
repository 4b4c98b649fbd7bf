"""The queue of slow work, decided without threads, and the waiting for them."""

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

from voiceapi.bulkhead import RETURN_SECONDS, Bulkhead, Permit, PermitQueue
from voiceapi.errors import OutOfService

ORGANIZATIONS = st.sampled_from(["a", "b", "c"])


def ask(queue: PermitQueue, organization: str, lane: str | None = None, at: float = 0.0) -> Permit:
    permit = Permit(organization, lane)
    queue.ask(permit, at)
    return permit


def states(*permits: Permit) -> list[str]:
    return ["runs" if permit.is_granted else "away" if permit.decided.is_set() else "waits" for permit in permits]


def running(queue: PermitQueue) -> Counter[Any]:
    return Counter(permit.organization for permit in queue.running)


# -- who runs


def test_one_organization_alone_has_all_permits() -> None:
    queue = PermitQueue(limit=3, places=2)
    assert states(*(ask(queue, "a") for _ in range(6))) == ["runs"] * 3 + ["waits"] * 2 + ["away"]


def test_beside_others_an_organization_leaves_a_permit_to_one_that_has_none() -> None:
    queue = PermitQueue(limit=3, places=4)
    queue.organizations = 3
    first = [ask(queue, "a") for _ in range(4)]
    assert states(*first) == ["runs", "runs", "waits", "waits"]
    second, third = ask(queue, "b"), ask(queue, "c")
    assert states(*first, second, third) == ["runs", "runs", "waits", "waits", "runs", "waits"]
    # The next one goes to who has none; then all have one, and what is free goes to anybody.
    queue.leave(first[0], 0.0)
    assert states(third, *first[2:]) == ["runs", "waits", "waits"]
    for permit in (second, third, first[1]):
        queue.leave(permit, 0.0)
    assert states(*first[2:], ask(queue, "a"), ask(queue, "b")) == ["runs", "runs", "waits", "runs"]


def test_a_single_permit_is_for_all() -> None:
    queue = PermitQueue(limit=1, places=2)
    queue.organizations = 2
    assert states(ask(queue, "a"), ask(queue, "b")) == ["runs", "waits"]


def test_who_has_less_is_next() -> None:
    queue = PermitQueue(limit=4, places=4)
    first = [ask(queue, "a") for _ in range(6)]
    second = [ask(queue, "b") for _ in range(2)]
    for permit in first[:2]:
        queue.leave(permit, 0.0)
    assert (running(queue), states(*second)) == ({"a": 2, "b": 2}, ["runs", "runs"])
    queue.leave(second[0], 0.0)
    assert running(queue) == {"a": 3, "b": 1}


def test_an_organization_with_many_that_wait_gives_its_place_to_another() -> None:
    queue = PermitQueue(limit=2, places=2)
    many = [ask(queue, "a") for _ in range(4)]
    other = ask(queue, "b")
    assert states(*many, other) == ["runs", "runs", "waits", "away", "waits"]
    queue.leave(many[0], 0.0)
    assert states(other) == ["runs"]


def test_the_share_of_who_was_turned_away_is_kept_for_a_while() -> None:
    queue = PermitQueue(limit=4, places=4)
    first = [ask(queue, "a") for _ in range(8)]
    other = ask(queue, "b")
    assert states(other, *first[7:]) == ["waits", "away"]
    queue.refuse(other, 5.0)
    for permit in first[:3]:
        queue.leave(permit, 6.0)
    assert running(queue) == {"a": 2}
    assert states(ask(queue, "b", at=7.0)) == ["runs"]
    # It was served, so nothing is kept for it any more.
    assert running(queue) == {"a": 3, "b": 1}


def test_a_share_that_nobody_comes_for_is_given_away() -> None:
    queue = PermitQueue(limit=2, places=2)
    first = [ask(queue, "a") for _ in range(3)]
    queue.refuse(ask(queue, "b"), 0.0)
    queue.leave(first[0], 1.0)
    assert states(first[2]) == ["waits"]
    queue.grant(RETURN_SECONDS)
    assert states(first[2]) == ["runs"]


def test_of_a_lane_one_runs_at_a_time() -> None:
    queue = PermitQueue(limit=4, places=4)
    one, two, else_ = ask(queue, "a", "documents"), ask(queue, "b", "documents"), ask(queue, "a", "lists")
    assert states(one, two, else_) == ["runs", "waits", "runs"]
    queue.leave(one, 0.0)
    assert states(two) == ["runs"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), ORGANIZATIONS, st.sampled_from([None, None, "lists"])),
        st.tuples(st.sampled_from(["leave", "refuse"]), st.integers(0, 30)),
        st.tuples(st.just("pass"), st.floats(0, 6)),
    ),
    max_size=60,
)


@settings(max_examples=50)
@given(limit=st.integers(1, 8), places=st.integers(0, 4), organizations=st.integers(1, 4), steps=STEPS)
def test_whatever_comes_the_bounds_hold_and_no_permit_lies_idle(
    limit: int, places: int, organizations: int, steps: list[Any]
) -> None:
    queue, permits, at = PermitQueue(limit, places), [], 0.0
    queue.organizations = organizations
    for name, *values in steps:
        if name == "ask":
            permits.append(ask(queue, *values, at))
        elif name == "pass":
            at += values[0]
            queue.grant(at)
        elif permits:
            getattr(queue, name)(permits[values[0] % len(permits)], at)
        check(queue, permits)
    # Nothing waits for ever: once those that are expected haven't come, whatever waits runs.
    while queue.running or queue.waiting:
        at += RETURN_SECONDS
        queue.grant(at)
        assert queue.running
        for permit in list(queue.running):
            queue.leave(permit, at)


def check(queue: PermitQueue, permits: list[Permit]) -> None:
    assert len(queue.running) <= queue.limit
    assert len(queue.waiting) <= queue.places
    assert all(count == 1 for lane, count in Counter(each.lane for each in queue.running).items() if lane)
    for permit in permits:
        assert not (permit in queue.running and permit in queue.waiting)
        assert permit.decided.is_set() != (permit in queue.waiting)
        assert permit.is_granted or permit not in queue.running
    free, having = queue.limit - len(queue.running), running(queue)
    some_have_none = len(having) < queue.organizations and queue.limit > 1
    # One organization alone never has them all.
    assert free or not some_have_none or len(having) != 1
    for permit in queue.waiting:
        if free > (some_have_none and having[permit.organization] > 0) and permit.lane is None:
            # It waits only because another organization is expected, and its own has its share.
            assert having[permit.organization] >= -(-queue.limit // 3)


# -- waiting


def hold(bulkhead: Bulkhead, pool: ThreadPoolExecutor, organization: str = "a") -> Callable[[], None]:
    """Begin slow work; returns what ends it."""
    begun, end = threading.Event(), threading.Event()

    def work() -> None:
        with bulkhead.slow(organization):
            begun.set()
            end.wait(60)

    done = pool.submit(work)
    assert begun.wait(60)

    def stop() -> None:
        end.set()
        done.result(60)

    return stop


def test_slow_work_has_half_of_the_threads_and_a_quarter_waits() -> None:
    bounds = {}
    for threads in (1, 2, 3, 4, 16, 64):
        bulkhead = Bulkhead(threads)
        slow = bulkhead.permit_queue.limit + bulkhead.permit_queue.places
        bounds[threads] = (bulkhead.permit_queue.limit, bulkhead.permit_queue.places, threads - slow)
    assert bounds == {1: (1, 0, 0), 2: (1, 0, 1), 3: (1, 0, 2), 4: (2, 1, 1), 16: (8, 4, 4), 64: (32, 16, 16)}


def test_slow_work_waits_for_a_permit_and_is_turned_away_after_a_while() -> None:
    bulkhead = Bulkhead(threads=4, wait_seconds=0.05)
    with ThreadPoolExecutor(4) as pool:
        stops = [hold(bulkhead, pool) for _ in range(2)]
        with pytest.raises(OutOfService) as refused, bulkhead.slow("a"):
            pytest.fail("It has no permit.")
        assert (refused.value.retry_after, "busy" in refused.value.detail) == (5, True)
        bulkhead.wait_seconds = 60.0
        threading.Timer(0.02, stops.pop()).start()
        with bulkhead.slow("b"):
            assert len(bulkhead.permit_queue.running) == 2
        stops.pop()()
    assert (bulkhead.permit_queue.running, bulkhead.permit_queue.waiting) == ([], [])


def test_who_asks_first_finds_a_permit_while_another_organization_has_all_that_it_may() -> None:
    bulkhead = Bulkhead(threads=4, wait_seconds=60.0, organizations=lambda: 2)
    with ThreadPoolExecutor(4) as pool:
        stop = hold(bulkhead, pool)
        begun = threading.Event()

        def wait_and_begin() -> None:
            with bulkhead.slow("a"):
                begun.set()

        waits = pool.submit(wait_and_begin)
        # Nobody makes room for it.
        hold(bulkhead, pool, "b")()
        assert not begun.is_set()
        stop()
        waits.result(60)


def test_what_finds_no_place_to_wait_is_turned_away_at_once() -> None:
    bulkhead = Bulkhead(threads=2, wait_seconds=60.0)
    with ThreadPoolExecutor(1) as pool:
        stop = hold(bulkhead, pool)
        before = time.monotonic()
        with pytest.raises(OutOfService), bulkhead.slow("b"):
            pytest.fail("It has no permit.")
        assert time.monotonic() - before < 30
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
    bulkhead.wait_for_job("a", job, 60.0)
    assert job.done()
    before = time.monotonic()
    bulkhead.wait_for_job("a", Future(), 0.02)
    assert time.monotonic() - before >= 0.02


def test_webhooks_that_wait_leave_threads_to_others(wait_for: Callable[..., Any]) -> None:
    """Of 16 threads 14 may wait. Who comes then makes one of the organization with the most waiting give up."""
    bulkhead, job = Bulkhead(threads=16), Future[None]()
    with ThreadPoolExecutor(16) as pool:
        many = [pool.submit(bulkhead.wait_for_job, "a", job, 60.0) for _ in range(14)]
        wait_for(lambda: len(bulkhead._queue) == 14)
        other = pool.submit(bulkhead.wait_for_job, "b", job, 60.0)
        wait_for(lambda: sum(each.done() for each in many) == 1)
        # Slow work that begins takes threads away from those that wait.
        stop = hold(bulkhead, pool)
        wait_for(lambda: sum(each.done() for each in many) == 2)
        assert not other.done()
        job.set_result(None)
        other.result(60)
        stop()
    assert bulkhead._queue == []


def test_on_few_threads_a_webhook_waits_only_while_no_slow_work_runs() -> None:
    for threads, slow_work, waits in ((1, False, True), (2, False, True), (2, True, False)):
        bulkhead, job = Bulkhead(threads), Future[None]()
        with ThreadPoolExecutor(1) as pool:
            stop = hold(bulkhead, pool) if slow_work else lambda: None
            if waits:
                threading.Timer(0.02, job.set_result, [None]).start()
            before = time.monotonic()
            bulkhead.wait_for_job("a", job, 60.0)
            stop()
        assert job.done() == waits, threads
        assert time.monotonic() - before < 30, threads


def test_an_interrupt_ends_the_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    bulkhead = Bulkhead(threads=4)

    def interrupt(_: Permit) -> None:
        raise KeyboardInterrupt

    with bulkhead.slow("a"), bulkhead.slow("a"), monkeypatch.context() as patch:
        patch.setattr(bulkhead, "_wait", interrupt)
        with pytest.raises(KeyboardInterrupt), bulkhead.slow("b"):
            pytest.fail("It has no permit.")
    assert (bulkhead.permit_queue.running, bulkhead.permit_queue.waiting) == ([], [])
