"""The windows of a week, in every zone, also on days when the clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from voiceapi.campaigns.dialer.calling_hours import HORIZON_DAYS, Slot, Weekly, daily, next_open, schedule

MINUTE = timedelta(minutes=1)
ZONES = sorted(available_timezones())
# Spring and autumn changes of both hemispheres, at 02:00, at midnight, by half an hour, and a day that was left out.
CHANGES = [
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("America/Havana", datetime(2026, 3, 8, 5, tzinfo=UTC)),
    ("America/Havana", datetime(2026, 11, 1, 5, tzinfo=UTC)),
    ("America/Sao_Paulo", datetime(2018, 11, 4, 3, tzinfo=UTC)),
    ("America/Sao_Paulo", datetime(2019, 2, 17, 2, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
    ("Africa/Casablanca", datetime(2026, 2, 15, 2, tzinfo=UTC)),
]


def clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


slots = st.builds(
    lambda day, start, length: Slot.read(day, clock(start), clock((start + length) % 1440)),
    st.integers(0, 6),
    st.integers(0, 1439),
    st.integers(1, 1439),
)
near_a_change = st.builds(
    lambda change, minutes: (change[0], change[1] + minutes * MINUTE),
    st.sampled_from(CHANGES),
    st.integers(-2 * 1440, 2 * 1440),
)
anywhere = st.tuples(
    st.sampled_from(ZONES), st.integers(1_600_000_000, 1_900_000_000).map(lambda s: datetime.fromtimestamp(s, UTC))
)


@settings(max_examples=400, deadline=None, print_blob=True)
@given(st.one_of(near_a_change, anywhere), st.lists(slots, min_size=1, max_size=3))
def test_the_next_opening_is_open_and_nothing_before_it_is(place: tuple[str, datetime], windows: list[Slot]) -> None:
    """The two ways of asking agree: the wall clock of an instant, and the spans that a day of UTC is cut into."""
    zone, moment = place
    weekly = Weekly(zone, tuple(windows))
    opens = weekly.open_from(moment)
    if opens is None:
        # Nothing but a window that a change of the clock skips is shut for two weeks.
        assert not any(weekly.is_open(moment + hours * timedelta(hours=1)) for hours in range(24 * HORIZON_DAYS))
        return
    note(f"{zone} opens {opens.astimezone(ZoneInfo(zone))}")
    assert weekly.is_open(opens)
    assert (opens == moment) == weekly.is_open(moment)
    before = opens - timedelta(seconds=1)
    assert opens == moment or not weekly.is_open(before)
    for back in range(1, 240):
        probe = opens - back * MINUTE
        assert probe < moment or not weekly.is_open(probe)


@settings(max_examples=150, deadline=None, print_blob=True)
@given(st.lists(st.tuples(st.sampled_from(ZONES), slots), min_size=1, max_size=4), st.sampled_from(CHANGES))
def test_all_calendars_are_open_at_the_instant_that_they_agree_on(
    places: list[tuple[str, Slot]], change: tuple[str, datetime]
) -> None:
    calendars = [Weekly(zone, daily(clock(s.start), clock(s.end % 1440))) for zone, s in places]
    moment = change[1] - timedelta(hours=12)
    opens = next_open(calendars, moment)
    steps = range(0, 24 * 60 * 3, 17)
    together = (moment + step * MINUTE for step in steps)
    first = next((at for at in together if all(calendar.is_open(at) for calendar in calendars)), None)
    if opens is not None:
        assert all(calendar.is_open(opens) for calendar in calendars)
    assert first is None or (opens is not None and opens <= first)


BERLIN = "Europe/Berlin"
TABLE = [
    ("an ordinary day, before", BERLIN, (0, "09:00", "17:00"), "2026-06-01T06:59:59Z", "2026-06-01T07:00:00Z"),
    ("at the opening", BERLIN, (0, "09:00", "17:00"), "2026-06-01T07:00:00Z", "2026-06-01T07:00:00Z"),
    ("at the close", BERLIN, (0, "09:00", "17:00"), "2026-06-01T15:00:00Z", "2026-06-08T07:00:00Z"),
    ("until midnight", BERLIN, (0, "09:00", "24:00"), "2026-06-01T21:59:59Z", "2026-06-01T21:59:59Z"),
    ("midnight itself", BERLIN, (0, "09:00", "24:00"), "2026-06-01T22:00:00Z", "2026-06-08T07:00:00Z"),
    ("overnight, evening", BERLIN, (4, "22:00", "06:00"), "2026-06-05T19:00:00Z", "2026-06-05T20:00:00Z"),
    ("overnight, morning", BERLIN, (4, "22:00", "06:00"), "2026-06-06T03:59:00Z", "2026-06-06T03:59:00Z"),
    ("overnight, Sunday into Monday", BERLIN, (6, "22:00", "06:00"), "2026-06-01T03:00:00Z", "2026-06-01T03:00:00Z"),
    ("an hour that is skipped", BERLIN, (6, "02:00", "03:00"), "2026-03-28T12:00:00Z", "2026-04-05T00:00:00Z"),
    ("a skipped start", BERLIN, (6, "02:30", "05:00"), "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"),
    ("an hour that comes twice", BERLIN, (6, "02:00", "03:00"), "2026-10-25T01:30:00Z", "2026-10-25T01:30:00Z"),
    ("its start comes twice", BERLIN, (6, "02:30", "02:45"), "2026-10-25T00:45:00Z", "2026-10-25T01:30:00Z"),
    ("overnight through the spring", BERLIN, (5, "22:00", "04:00"), "2026-03-29T01:59:00Z", "2026-03-29T01:59:00Z"),
    ("overnight, closed in spring", BERLIN, (5, "22:00", "04:00"), "2026-03-29T02:00:00Z", "2026-04-04T20:00:00Z"),
    ("half an hour of summer", "Australia/Lord_Howe", (6, "01:45", "02:00"), "2026-04-04T15:00:00Z",
     "2026-04-04T15:15:00Z"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "zone", "window", "moment", "opens"), TABLE, ids=[row[0] for row in TABLE])
def test_a_window_opens(name: str, zone: str, window: tuple[int, str, str], moment: str, opens: str) -> None:
    weekly = Weekly(zone, (Slot.read(*window),))
    assert weekly.open_from(datetime.fromisoformat(moment)) == datetime.fromisoformat(opens)


def test_a_window_that_is_skipped_twice_in_a_row_never_opens() -> None:
    """Calendars that share no time have no next time."""
    morning, evening = Weekly("UTC", daily("08:00", "09:00")), Weekly("UTC", daily("20:00", "21:00"))
    assert next_open([morning, evening], datetime(2026, 6, 1, tzinfo=UTC)) is None


def test_a_schedule_that_is_off_is_none() -> None:
    slot = {"day_of_week": 0, "start_time": "09:00", "end_time": "17:00"}
    config = {"enabled": True, "timezone": BERLIN, "slots": [slot]}
    assert schedule(config) == Weekly(BERLIN, (Slot(0, 540, 1020),))
    assert schedule({**config, "enabled": False}) is None
    assert schedule(None) is None
