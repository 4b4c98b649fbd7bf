"""Weekly windows in a time zone: whether one is open, and when the next one opens. Pure.

Windows are in local time. When the clock changes, an hour that is skipped is never open, and one that is repeated is
open twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

DAY_MINUTES = 24 * 60
DAY = timedelta(days=1)
# Windows repeat every week, but a change of the clock may skip one: any window opens within two weeks.
HORIZON_DAYS = 14


@dataclass(frozen=True, slots=True)
class Slot:
    """A window that begins on weekday `day`, 0 for Monday. Minutes from that midnight; `end` may be the next day's."""

    day: int
    start: int
    end: int

    @classmethod
    def read(cls, day: int, start: str, end: str) -> Slot:
        """A slot of `HH:MM` texts. An end that isn't after the start is on the next day."""
        begin, finish = _minutes(start), _minutes(end)
        return cls(day, begin, finish if finish > begin else finish + DAY_MINUTES)


@dataclass(frozen=True, slots=True)
class Weekly:
    """Windows of every week, in the zone of this IANA name."""

    zone: str
    slots: tuple[Slot, ...]

    def is_open(self, moment: datetime) -> bool:
        local = moment.astimezone(ZoneInfo(self.zone))
        today, yesterday = local.weekday(), (local.weekday() - 1) % 7
        minute = local.hour * 60 + local.minute
        return any(
            (slot.day == today and slot.start <= minute < slot.end)
            or (slot.day == yesterday and slot.start <= minute + DAY_MINUTES < slot.end)
            for slot in self.slots
        )

    def open_from(self, moment: datetime) -> datetime | None:
        """The first instant at `moment` or later when a window is open, None when there is none within 14 days."""
        first = moment.astimezone(UTC).date()
        for ahead in range(HORIZON_DAYS + 1):
            for begin, end in _spans(self, first + ahead * DAY):
                if end > moment:
                    return max(begin, moment)
        return None


def schedule(config: Mapping[str, Any] | None) -> Weekly | None:
    """Read the `schedule_config` of a campaign; None when calls may be placed at any time."""
    if config is None or not config["enabled"]:
        return None
    slots = (Slot.read(slot["day_of_week"], slot["start_time"], slot["end_time"]) for slot in config["slots"])
    return Weekly(config["timezone"], tuple(slots))


def daily(start: str, end: str) -> tuple[Slot, ...]:
    """The same window on each day of the week."""
    return tuple(Slot.read(day, start, end) for day in range(7))


def next_open(calendars: Sequence[Weekly], moment: datetime) -> datetime | None:
    """The first instant at `moment` or later when all are open at once, None when there is none within 14 days."""
    last = moment + HORIZON_DAYS * DAY
    agreed = 0
    while agreed < len(calendars):
        # Each calendar in turn moves the moment on, until a whole round of them leaves it alone.
        agreed = 0
        for calendar in calendars:
            opens = calendar.open_from(moment)
            if opens is None or opens > last:
                return None
            agreed = agreed + 1 if opens == moment else 0
            moment = opens
    return moment


def _minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


@lru_cache(maxsize=4096)
def _spans(weekly: Weekly, day: date) -> tuple[tuple[datetime, datetime], ...]:
    """When windows are open within a day of UTC, by their beginnings."""
    found = []
    for begin, end, offset in _segments(ZoneInfo(weekly.zone), datetime(day.year, day.month, day.day, tzinfo=UTC)):
        first = (begin + offset).replace(hour=0, minute=0, second=0) - DAY
        for midnight in (first, first + DAY, first + 2 * DAY):
            for slot in weekly.slots:
                if slot.day == midnight.weekday():
                    opens = max(begin, midnight - offset + timedelta(minutes=slot.start))
                    closes = min(end, midnight - offset + timedelta(minutes=slot.end))
                    if opens < closes:
                        found.append((opens, closes))
    return tuple(sorted(found))


def _segments(zone: ZoneInfo, midnight: datetime) -> Iterator[tuple[datetime, datetime, timedelta]]:
    """The parts of a day of UTC with one offset each: a second one when the clock changes on that day."""
    begin, end = midnight, midnight + DAY
    before, after = _offset(zone, begin), _offset(zone, end - timedelta(seconds=1))
    if before != after:
        low, high = begin, end - timedelta(seconds=1)
        while high - low > timedelta(seconds=1):
            middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
            low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
        yield begin, high, before
        begin = high
    yield begin, end, after


def _offset(zone: ZoneInfo, moment: datetime) -> timedelta:
    offset = moment.astimezone(zone).utcoffset()
    return timedelta() if offset is None else offset
