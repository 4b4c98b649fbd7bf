"""Whether a contact may be called now: the do-not-call list, countries, local hours, attempts a day. Pure.

In doubt it may not: when hours are set, a contact whose time zone isn't known is not called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from ...organizations.call_limits import CallLimits
from ...timestamps import write_time
from .calling_hours import DAY, HORIZON_DAYS, Slot, Weekly, daily, next_open

# The codes of blocks that end by themselves.
ATTEMPTS_A_DAY, OUTSIDE_HOURS = POSTPONED = ("attempts_a_day", "outside_hours")


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The limits that decide whether a contact may be called at a given time.

    :param hours: windows of the day on the contact's own clock, all of which must be open; empty lets any time pass.
    :param most_a_day: how many attempts one number gets within any 24 hours, 1 or more; None is without limit.
    :param call_limits: those of the organization; a contact is held to its countries.
    """

    hours: tuple[tuple[Slot, ...], ...] = ()
    most_a_day: int | None = None
    call_limits: CallLimits = field(default_factory=CallLimits)

    @classmethod
    def read(cls, *settings: Mapping[str, Any]) -> Eligibility:
        """The limits that the organization's preferences, given first, and the campaign set."""
        windows = dict.fromkeys(
            (hours["start"], hours["end"]) for each in settings if (hours := each.get("calling_hours")) is not None
        )
        caps = [cap for each in settings if (cap := each.get("max_attempts_per_day")) is not None]
        return cls(tuple(daily(*window) for window in windows), min(caps, default=None), CallLimits.read(settings[0]))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A contact that is due.

    :param zones: the zones that the contact may be in; none when that isn't known.
    :param recent: when this number was dialed within the last 24 hours by any campaign, oldest first.
    """

    id: int
    number: str
    zones: tuple[str, ...] = ()
    do_not_call: bool = False
    recent: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Why a contact isn't called now; `until` is when to look again, None means never."""

    until: datetime | None
    code: str
    reason: str


def block(
    moment: datetime, contact: Candidate, eligibility: Eligibility, schedule: Weekly | None = None
) -> Block | None:
    """Why the contact may not be called at `moment`; None if it may.

    :param schedule: the campaign's own windows: the contact's next time must be in one of them.
    """
    if contact.do_not_call:
        return Block(None, "do_not_call", "The number is on the do-not-call list.")
    refusal = eligibility.call_limits.refusal(contact.number)
    if refusal is not None:
        return Block(None, "country_not_allowed", refusal)
    if eligibility.hours and not contact.zones:
        return Block(None, "zone_unknown", "The contact's time zone is not known, and calling hours are set.")
    earliest = moment
    if eligibility.most_a_day is not None and len(contact.recent) >= eligibility.most_a_day:
        earliest = max(moment, contact.recent[-eligibility.most_a_day] + DAY)
    calendars = [Weekly(zone, slots) for zone in contact.zones for slots in eligibility.hours]
    if calendars and schedule is not None:
        calendars.append(schedule)
    opens = next_open(calendars, earliest)
    if opens is None:
        text = f"No time within {HORIZON_DAYS} days is in the calling hours of {_named(contact)}"
        return Block(None, "hours_never_open", f"{text} and in the campaign's schedule.")
    if opens == moment:
        return None
    again = write_time(opens, "seconds")
    if earliest > moment:
        most = f"{eligibility.most_a_day} attempt{'s' if eligibility.most_a_day != 1 else ''}"
        return Block(opens, ATTEMPTS_A_DAY, f"The number had {most} within 24 hours; it is looked at again at {again}.")
    return Block(opens, OUTSIDE_HOURS, f"It is outside the calling hours of {_named(contact)} until {again}.")


def zones_of(column: str | None, number: str, look_up: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
    """The zones that a contact may be in: the one that its row names, else those of its number; none if one is unknown.

    :param look_up: the zones of a telephone number.
    """
    named = (column or "").strip()
    zones = (named,) if named else look_up(number)
    return zones if all(_exists(zone) for zone in zones) else ()


def _named(contact: Candidate) -> str:
    return contact.zones[0] if len(contact.zones) == 1 else f"{len(contact.zones)} possible time zones at once"


@lru_cache(maxsize=1024)
def _exists(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (ValueError, LookupError, OSError):  # no such zone, a folder of zones, a path
        return False
    return True
