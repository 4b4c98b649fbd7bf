"""Who is called now, who isn't and why, and when the dialer looks again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from voiceapi.campaigns.dialer.calling_hours import Slot, Weekly, daily
from voiceapi.campaigns.dialer.eligibility import Block, Candidate, Eligibility, block, zones_of
from voiceapi.campaigns.dialer.plan import DialSettings, Hold, Load, Plan, plan
from voiceapi.campaigns.retry import Breaker, Retry, Verdict, after_call
from voiceapi.organizations.call_limits import CallLimits, Quota
from voiceapi.telephony.numbers import zones_of_number

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)  # a Monday
SECOND = timedelta(seconds=1)
ANN, BOB, CY = (Candidate(id, f"+1202555010{id}") for id in (1, 2, 3))
OPEN = DialSettings("running", None, Eligibility(), organization_limit=10)
IDLE = Load(0, 0)
PACE = Hold("pace", "The last call was placed a moment ago.", NOON + SECOND)
WORKDAY, MORNING = {"start": "09:00", "end": "17:00"}, {"start": "08:00", "end": "12:00"}


def settings(**change: Any) -> DialSettings:
    return DialSettings(
        **{"state": "running", "schedule": None, "eligibility": Eligibility(), "organization_limit": 10, **change}
    )


HOUR = timedelta(hours=1)
A_FEW = settings(eligibility=Eligibility(call_limits=CallLimits(calls_a_day=5)))
TOMORROW = Hold(
    "max_calls_a_day",
    "The organization places at most 5 calls within 24 hours; the next one may be placed at 2026-06-01T13:00:00Z.",
    NOON + HOUR,
)


@pytest.mark.parametrize(
    ("config", "load", "dialed", "hold"),
    [
        (OPEN, IDLE, (ANN, BOB, CY), None),
        (OPEN, Load(8, 0), (ANN, BOB), Hold("organization_limit", "10 calls of the organization are in progress.")),
        (OPEN, Load(10, 0), (), Hold("organization_limit", "10 calls of the organization are in progress.")),
        (A_FEW, Load(0, 0, None, Quota(2, NOON + HOUR)), (ANN, BOB), TOMORROW),
        (A_FEW, Load(0, 0, None, Quota(0, NOON + HOUR)), (), TOMORROW),
        (A_FEW, Load(0, 0, None, Quota(-3, NOON + HOUR)), (), TOMORROW),
        (A_FEW, Load(0, 0, None, Quota(4, NOON + HOUR)), (ANN, BOB, CY), None),
        (settings(campaign_limit=1), IDLE, (ANN,), Hold("campaign_limit", "1 calls of the campaign are in progress.")),
        (settings(interval=SECOND), IDLE, (ANN,), PACE),
        (settings(interval=SECOND), Load(1, 1, NOON), (ANN,), PACE),
        (settings(state="paused"), IDLE, (), Hold("paused", "The campaign is paused.")),
        (
            settings(schedule=Weekly("UTC", (Slot.read(0, "13:00", "14:00"),))),
            IDLE,
            (),
            Hold(
                "outside_schedule",
                "The campaign's schedule opens at 2026-06-01T13:00:00Z.",
                NOON + timedelta(hours=1),
            ),
        ),
    ],
)
def test_a_campaign_calls_as_far_as_it_may(config: DialSettings, load: Load, dialed: Any, hold: Hold | None) -> None:
    decided = plan(NOON, config, [ANN, BOB, CY], load)
    assert decided == Plan(dialed, (), hold, hold and hold.until)


def test_no_contact_is_looked_at_that_there_is_no_room_for() -> None:
    due = iter([ANN, BOB, CY])
    plan(NOON, settings(campaign_limit=2), due, IDLE)
    assert list(due) == [CY]


def test_the_next_look_is_at_whoever_is_due_first() -> None:
    later = NOON + timedelta(hours=3)
    assert plan(NOON, OPEN, [], IDLE, lambda: later) == Plan(look_again=later)
    eligibility = Eligibility(hours=(daily("13:00", "14:00"),))
    blocked = plan(NOON, settings(eligibility=eligibility), [Candidate(1, "+1", ("UTC",))], IDLE, lambda: later)
    assert blocked.look_again == NOON + timedelta(hours=1)


NINE_TO_FIVE = Eligibility(hours=(daily("09:00", "17:00"),))
PARIS, TOKYO, HONOLULU = "Europe/Paris", "Asia/Tokyo", "Pacific/Honolulu"


def caller(*zones: str, recent: int = 0, listed: bool = False) -> Candidate:
    """Somebody whose number was dialed so often, once an hour until now."""
    past = tuple(NOON - timedelta(hours=ago) for ago in range(recent, 0, -1))
    return Candidate(1, "+1", zones, listed, past)


@pytest.mark.parametrize(
    ("contact", "eligibility", "expected"),
    [
        (caller(), Eligibility(), None),
        (caller(PARIS), NINE_TO_FIVE, None),
        (caller(listed=True), Eligibility(), Block(None, "do_not_call", "The number is on the do-not-call list.")),
        (
            caller(),
            NINE_TO_FIVE,
            Block(None, "zone_unknown", "The contact's time zone is not known, and calling hours are set."),
        ),
        (
            caller(TOKYO),
            NINE_TO_FIVE,
            Block(
                NOON + timedelta(hours=12),
                "outside_hours",
                "It is outside the calling hours of Asia/Tokyo until 2026-06-02T00:00:00Z.",
            ),
        ),
        (
            caller(PARIS, TOKYO),
            NINE_TO_FIVE,
            Block(
                NOON + timedelta(hours=19),
                "outside_hours",
                "It is outside the calling hours of 2 possible time zones at once until 2026-06-02T07:00:00Z.",
            ),
        ),
        (
            caller(HONOLULU, TOKYO),
            Eligibility(hours=(daily("12:00", "13:00"),)),
            Block(
                None,
                "hours_never_open",
                "No time within 14 days is in the calling hours of 2 possible time zones at once and in the campaign's "
                "schedule.",
            ),
        ),
        (caller(recent=2), Eligibility(most_a_day=3), None),
        (
            caller(recent=3),
            Eligibility(most_a_day=3),
            Block(
                NOON + timedelta(hours=21),
                "attempts_a_day",
                "The number had 3 attempts within 24 hours; it is looked at again at 2026-06-02T09:00:00Z.",
            ),
        ),
        (
            caller(PARIS, recent=6),
            Eligibility(hours=(daily("09:00", "10:00"),), most_a_day=1),
            Block(
                datetime(2026, 6, 3, 7, tzinfo=UTC),
                "attempts_a_day",
                "The number had 1 attempt within 24 hours; it is looked at again at 2026-06-03T07:00:00Z.",
            ),
        ),
    ],
)
def test_who_is_eligible(contact: Candidate, eligibility: Eligibility, expected: Block | None) -> None:
    assert block(NOON, contact, eligibility) == expected


def test_a_contact_waits_for_an_hour_that_the_campaign_is_open_in_as_well() -> None:
    schedule = Weekly("UTC", (Slot.read(2, "03:00", "04:00"),))
    reason = block(NOON, caller(TOKYO), NINE_TO_FIVE, schedule)
    assert reason is not None
    assert reason.until == datetime(2026, 6, 3, 3, tzinfo=UTC)
    never = block(NOON, caller(PARIS), NINE_TO_FIVE, schedule)
    assert never is not None
    assert (never.code, never.until) == ("hours_never_open", None)


@pytest.mark.parametrize(
    ("given", "eligibility"),
    [
        ([{}, {"calling_hours": None, "max_attempts_per_day": None}], Eligibility()),
        ([{"max_attempts_per_day": 3}, {"max_attempts_per_day": 2}], Eligibility(most_a_day=2)),
        ([{"calling_hours": WORKDAY}] * 2, NINE_TO_FIVE),
        (
            [{"calling_hours": WORKDAY}, {"calling_hours": MORNING}],
            Eligibility(hours=(daily("09:00", "17:00"), daily("08:00", "12:00"))),
        ),
    ],
)
def test_all_that_organization_and_campaign_set_counts(given: Any, eligibility: Eligibility) -> None:
    assert Eligibility.read(*given) == eligibility


@pytest.mark.parametrize(
    ("column", "number", "zones"),
    [
        (None, "+4930123456", ("Europe/Berlin",)),
        ("  ", "+4930123456", ("Europe/Berlin",)),
        ("Asia/Tokyo", "+4930123456", ("Asia/Tokyo",)),
        ("Berlin", "+4930123456", ()),
        ("../../etc/passwd", "+4930123456", ()),
        (None, "+88212345678", ()),
        (None, "sip:ann@example.org", ()),
    ],
)
def test_the_zones_of_a_contact(column: str | None, number: str, zones: tuple[str, ...]) -> None:
    assert zones_of(column, number, zones_of_number) == zones


def test_a_number_of_no_area_is_in_all_of_them() -> None:
    assert len(zones_of(None, "+18005550123", zones_of_number)) > 20


RETRY = {
    "enabled": True,
    "max_retries": 2,
    "retry_delay_seconds": 3600,
    "retry_on_busy": True,
    "retry_on_no_answer": True,
    "retry_on_voicemail": False,
}


@pytest.mark.parametrize(
    ("outcome", "attempts", "verdict"),
    [
        ("answered", 1, Verdict("completed", None, "answered", "The call was answered.")),
        (
            "busy",
            1,
            Verdict(
                "retry",
                NOON + timedelta(hours=1),
                "busy",
                "The line was busy; the next attempt is due at 2026-06-01T13:00:00Z.",
            ),
        ),
        ("busy", 3, Verdict("failed", None, "busy", "The line was busy; that was the last of 3 attempts.")),
        (
            "voicemail",
            1,
            Verdict(
                "failed",
                None,
                "voicemail",
                "An answering machine answered; that is not followed by another attempt.",
            ),
        ),
        ("failed", 1, Verdict("failed", None, "failed", "The call failed; that is not followed by another attempt.")),
        (
            "unknown",
            1,
            Verdict(
                "unknown",
                None,
                "unknown",
                "The carrier didn't confirm the call, so the phone may have rung; nobody is called again for that.",
            ),
        ),
    ],
)
def test_what_follows_a_call(outcome: str, attempts: int, verdict: Verdict) -> None:
    assert after_call(outcome, attempts, NOON, Retry.read(RETRY)) == verdict


@pytest.mark.parametrize("change", [{"enabled": False}, {"max_retries": 0}])
def test_no_retries_when_they_are_off(change: dict[str, Any]) -> None:
    assert after_call("busy", 1, NOON, Retry.read({**RETRY, **change})).state == "failed"


BREAKER = {"enabled": True, "failure_threshold": 0.5, "window_seconds": 120, "min_calls_in_window": 4}


@pytest.mark.parametrize(
    ("change", "ended", "failed", "trips"),
    [
        ({}, 4, 2, True),
        ({}, 3, 3, False),
        ({}, 5, 2, False),
        ({"enabled": False}, 9, 9, False),
        ({"failure_threshold": 0}, 9, 0, False),
        ({"failure_threshold": 0}, 9, 1, True),
    ],
)
def test_when_too_many_calls_fail(change: dict[str, Any], ended: int, failed: int, trips: bool) -> None:
    assert Breaker.read({**BREAKER, **change}).trips(ended, failed) == trips
