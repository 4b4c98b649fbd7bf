"""Campaigns lived through on a virtual clock: the plan's promises, in every zone and across changes of the clock."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceapi.campaigns.dialer.calling_hours import DAY, Slot, Weekly, daily
from voiceapi.campaigns.dialer.eligibility import Candidate, Eligibility
from voiceapi.campaigns.dialer.plan import DialSettings
from voiceapi.campaigns.dry_run.simulator import Mix, Rehearsal, rehearse
from voiceapi.campaigns.retry import OUTCOMES, Breaker, Retry

YEAR = timedelta(days=365)
FINAL = {"completed", "failed", "skipped", "unknown"}
ZONES = sorted(available_timezones())
STARTS = (
    *(datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)),
    *(datetime(2026, 3, 7, 12, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 4, 4, tzinfo=UTC)),
)
MIX = Mix({"answered": 5, "busy": 2, "no_answer": 2, "voicemail": 2, "failed": 1, "unknown": 1})
NO_BREAKER = Breaker(False, 0.5, timedelta(seconds=120), 5)


def clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


windows = st.tuples(st.integers(0, 1439), st.integers(30, 1200)).map(
    lambda window: (clock(window[0]), clock((window[0] + window[1]) % 1440))
)
schedules = st.none() | st.builds(
    lambda zone, slots: Weekly(zone, tuple(Slot.read(day, *window) for day, window in slots)),
    st.sampled_from(ZONES),
    st.lists(st.tuples(st.integers(0, 6), windows), min_size=1, max_size=4),
)
eligibilities = st.builds(
    lambda hours, most: Eligibility(tuple(daily(*window) for window in hours), most),
    st.lists(windows, max_size=2),
    st.none() | st.integers(1, 3),
)
contacts = st.lists(
    st.tuples(st.integers(1, 8), st.lists(st.sampled_from(ZONES), max_size=2), st.booleans()), min_size=1, max_size=12
).map(
    lambda rows: [
        Candidate(id, f"+{number}", tuple(zones), do_not_call=listed and number == 1)
        for id, (number, zones, listed) in enumerate(rows)
    ]
)


@settings(max_examples=150, deadline=None, print_blob=True)
@given(
    contacts=contacts,
    schedule=schedules,
    eligibility=eligibilities,
    limits=st.tuples(st.integers(1, 4), st.none() | st.integers(1, 4)),
    interval=st.sampled_from([0.0, 1.0, 90.0]).map(lambda seconds: timedelta(seconds=seconds)),
    retry=st.builds(
        Retry,
        st.integers(0, 4),
        st.integers(30, 7 * 86400).map(lambda seconds: timedelta(seconds=seconds)),
        st.frozensets(st.sampled_from(["busy", "no_answer", "voicemail"])),
    ),
    seed=st.integers(0, 2**32),
    starts_at=st.sampled_from(STARTS),
)
def test_the_promises_of_a_campaign(
    contacts: list[Candidate],
    schedule: Weekly | None,
    eligibility: Eligibility,
    limits: tuple[int, int | None],
    interval: timedelta,
    retry: Retry,
    seed: int,
    starts_at: datetime,
) -> None:
    rules = DialSettings("running", schedule, eligibility, limits[0], limits[1], interval)
    found = rehearse(rules, retry, NO_BREAKER, contacts, MIX, seed, starts_at, YEAR)
    every_contact_ends(found, contacts)
    nobody_is_called_twice_at_once(found, retry)
    nobody_is_called_outside_hours(found, eligibility, schedule)
    nobody_is_called_too_often(found, eligibility)
    no_limit_is_passed(found, rules)


def every_contact_ends(found: Rehearsal, contacts: list[Candidate]) -> None:
    assert set(found.states) == {contact.id for contact in contacts}
    assert set(found.states.values()) <= FINAL
    assert found.ended_at is not None
    listed = {contact.id for contact in contacts if contact.do_not_call}
    assert {found.states[id] for id in listed} <= {"skipped"}


def nobody_is_called_twice_at_once(found: Rehearsal, retry: Retry) -> None:
    """No attempt comes twice, they come in order, and each waits for the end of the one before, and its delay."""
    attempts = defaultdict(list)
    for attempt in found.attempts:
        attempts[attempt.contact.id].append(attempt)
    for made in attempts.values():
        assert [attempt.number for attempt in made] == list(range(1, len(made) + 1))
        assert len(made) <= retry.most + 1
        for before, after in itertools.pairwise(made):
            assert after.at >= before.ends_at + retry.delay
            assert before.outcome in retry.outcomes


def nobody_is_called_outside_hours(found: Rehearsal, eligibility: Eligibility, schedule: Weekly | None) -> None:
    """By the wall clock of each zone that a contact may be in; a contact of no known zone isn't called at all."""
    for attempt in found.attempts:
        assert schedule is None or schedule.is_open(attempt.at)
        assert attempt.contact.zones or not eligibility.hours
        for zone in attempt.contact.zones:
            local = attempt.at.astimezone(ZoneInfo(zone))
            minute = local.hour * 60 + local.minute
            for window in eligibility.hours:
                begin, end = window[0].start, window[0].end
                assert begin <= minute < end or begin <= minute + 1440 < end, (zone, local)


def nobody_is_called_too_often(found: Rehearsal, eligibility: Eligibility) -> None:
    dialed = defaultdict(list)
    for attempt in found.attempts:
        dialed[attempt.contact.number].append(attempt.at)
    for moments in dialed.values():
        for moment in moments:
            within = [at for at in moments if moment - DAY < at <= moment]
            assert eligibility.most_a_day is None or len(within) <= eligibility.most_a_day


def no_limit_is_passed(found: Rehearsal, rules: DialSettings) -> None:
    limit = min(rules.organization_limit, rules.campaign_limit or rules.organization_limit)
    for attempt in found.attempts:
        talking = [other for other in found.attempts if other.at <= attempt.at < other.ends_at]
        assert len(talking) <= limit
    moments = [attempt.at for attempt in found.attempts]
    assert all(after - before >= rules.interval for before, after in itertools.pairwise(moments))


def fortnight(people: int, **change: Any) -> Rehearsal:
    contacts = [Candidate(id, f"+1202{id:07}", ("America/New_York",)) for id in range(people)]
    days = Weekly("America/New_York", tuple(Slot.read(day, "09:00", "17:30") for day in range(5)))
    eligibility = Eligibility((daily("10:00", "20:00"),), most_a_day=2)
    retry = Retry(3, timedelta(days=1), frozenset({"busy", "no_answer", "voicemail"}))
    rules = DialSettings("running", days, eligibility, 5, None, timedelta(seconds=1))
    start = datetime(2026, 3, 2, 14, tzinfo=UTC)
    arguments = {"seed": 7, "starts_at": start, "longest": timedelta(days=14), **change}
    return rehearse(rules, retry, NO_BREAKER, contacts, MIX, **arguments)


@pytest.mark.long
def test_ten_thousand_contacts_over_two_weeks_take_seconds() -> None:
    begun = time.process_time()
    found = fortnight(10_000)
    assert time.process_time() - begun < 60
    assert len(found.attempts) > 10_000
    assert found.peak == 5


def test_a_seed_decides_everything() -> None:
    one, same, other = (fortnight(200, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert [a.outcome for a in one.attempts] != [a.outcome for a in other.attempts]


def test_too_many_failures_are_told() -> None:
    people = [Candidate(id, f"+{id}") for id in range(40)]
    rules = DialSettings("running", None, Eligibility(), 2)
    breaker = Breaker(True, 0.5, timedelta(seconds=120), 5)
    mix, retry = Mix({"failed": 1}), Retry(0, timedelta(), frozenset())
    found = rehearse(rules, retry, breaker, people, mix, 1, STARTS[0], YEAR)
    assert len(found.tripped_at) == 8
    assert set(MIX.shares) < set(OUTCOMES)
