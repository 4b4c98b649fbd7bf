"""Decides which contacts to call now, which not and why, and when to plan again. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ...organizations.call_limits import Quota, exhausted
from ...timestamps import write_time
from .calling_hours import HORIZON_DAYS, Weekly
from .eligibility import Block, Candidate, Eligibility, block

# The codes of the holds by the organization's limits: of calls a day, and of calls at once.
CALLS_A_DAY = "max_calls_a_day"
ORGANIZATION_LIMIT = "organization_limit"
# The reason that holds back a campaign in each state but `running`.
STATES = {
    "created": "The campaign has not been started.",
    "syncing": "The campaign's contacts are being read.",
    "paused": "The campaign is paused.",
    "completed": "The campaign has ended.",
    "failed": "The campaign has failed.",
}


@dataclass(frozen=True, slots=True)
class DialSettings:
    """How a campaign calls.

    :param interval: from one call to the next through its telephony configuration; zero is as fast as can be.
    """

    state: str
    schedule: Weekly | None
    eligibility: Eligibility
    organization_limit: int
    campaign_limit: int | None = None
    interval: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class Load:
    """The calls in progress, and what bounds the next ones.

    :param next_call_at: when the carrier's account may place the next one; None is at any time.
    :param quota: how many the organization may still place within 24 hours; None is any number.
    """

    organization: int
    campaign: int
    next_call_at: datetime | None = None
    quota: Quota | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a campaign calls nobody now; `until` is when to plan again, None if only an event changes it."""

    code: str
    reason: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now.

    :param dial: to be called now, in this order.
    :param blocked: not to be called now, each with the reason and, if it is only for a while, until when.
    :param hold: why nobody else is called now; None when nobody else is due.
    :param look_again: when to plan again, unless a call ends or the campaign is changed before.
    """

    dial: tuple[Candidate, ...] = ()
    blocked: tuple[tuple[Candidate, Block], ...] = ()
    hold: Hold | None = None
    look_again: datetime | None = None


def plan(
    moment: datetime,
    settings: DialSettings,
    due: Iterable[Candidate],
    load: Load,
    later: Callable[[], datetime | None] = lambda: None,
) -> Plan:
    """Decide about the contacts that are `due`, in their order.

    :param due: read only as long as another call may be placed; each contact read is decided about.
    :param later: when the next contact after them is due, if any; asked once all of them are read.
    """
    dial: list[Candidate] = []
    dialed: Counter[str] = Counter()
    blocked: list[tuple[Candidate, Block]] = []
    waiting = iter(due)
    hold = held(moment, settings, load)
    while hold is None:
        contact = next(waiting, None)
        if contact is None:
            break
        # Two contacts may have one number: the call just decided about counts for the other as well.
        contact = replace(contact, recent=(*contact.recent, *(moment,) * dialed[contact.number]))
        reason = block(moment, contact, settings.eligibility, settings.schedule)
        if reason is not None:
            blocked.append((contact, reason))
            continue
        dial.append(contact)
        dialed[contact.number] += 1
        quota = None if load.quota is None else load.quota.after_call()
        load = Load(load.organization + 1, load.campaign + 1, moment + settings.interval, quota)
        hold = held(moment, settings, load)
    again = [reason.until for _, reason in blocked if reason.until is not None]
    if hold is not None:
        again = [] if hold.until is None else [hold.until]
    elif (next_due := later()) is not None:
        again.append(max(next_due, moment))
    return Plan(tuple(dial), tuple(blocked), hold, min(again, default=None))


def held(moment: datetime, settings: DialSettings, load: Load) -> Hold | None:
    """Why the whole campaign calls nobody at `moment`; None if it may call."""
    if settings.state != "running":
        return Hold(settings.state, STATES[settings.state])
    if settings.schedule is not None and not settings.schedule.is_open(moment):
        opens = settings.schedule.open_from(moment) or moment + timedelta(days=HORIZON_DAYS)
        return Hold("outside_schedule", f"The campaign's schedule opens at {write_time(opens, 'seconds')}.", opens)
    if load.organization >= settings.organization_limit:
        return Hold(ORGANIZATION_LIMIT, f"{load.organization} calls of the organization are in progress.")
    if settings.campaign_limit is not None and load.campaign >= settings.campaign_limit:
        return Hold("campaign_limit", f"{load.campaign} calls of the campaign are in progress.")
    if load.quota is not None and load.quota.left <= 0:
        reason = exhausted(settings.eligibility.call_limits.calls_a_day, load.quota.more_at)
        return Hold(CALLS_A_DAY, reason, load.quota.more_at)
    if load.next_call_at is not None and moment < load.next_call_at:
        reason = "The last call was placed a moment ago."
        if load.next_call_at - moment > settings.interval:  # the carrier takes no more calls, or others are next
            reason = f"The account places its next call at {write_time(load.next_call_at, 'seconds')}."
        return Hold("pace", reason, load.next_call_at)
    return None
