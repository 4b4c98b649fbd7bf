"""The dry run of a campaign: the dialer's own plan on a clock that jumps from one event to the next.

Nobody is called and nothing is stored. The same seed and contacts give the same result.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

from ...organizations.call_limits import Quota
from ..dialer.calling_hours import DAY
from ..dialer.eligibility import Block, Candidate
from ..dialer.plan import DialSettings, Load, held, plan
from ..retry import FAILURES, Breaker, Retry, after_call

RINGING = {"busy": 2.0, "failed": 2.0, "refused": 0.0, "canceled": 10.0, "no_answer": 60.0}
ANSWERED_AFTER = 10.0
# About twenty seconds of computing: a longer dry run is cut off there.
MOST_ATTEMPTS = 300_000


@dataclass(frozen=True, slots=True)
class Mix:
    """How contacts behave: the share of each outcome, and the shortest and longest talk in seconds."""

    shares: Mapping[str, float]
    talk: tuple[float, float] = (30.0, 120.0)

    def outcome(self, seed: int, contact: int, attempt: int) -> tuple[str, float, float]:
        """The outcome of an attempt, and the seconds of ringing and of talk: always the same for the same seed."""
        random = Random(f"{seed}:{contact}:{attempt}")
        outcome = random.choices(tuple(self.shares), tuple(self.shares.values()))[0]
        if outcome not in ("answered", "voicemail"):
            return outcome, RINGING.get(outcome, 60.0), 0.0
        return outcome, ANSWERED_AFTER, random.uniform(*self.talk) if outcome == "answered" else self.talk[0]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call of the dry run. `number` counts the contact's attempts from 1; `seconds` is how long was talked."""

    contact: Candidate
    number: int
    at: datetime
    ends_at: datetime
    outcome: str
    seconds: float


@dataclass
class Rehearsal:
    """What has happened so far in a dry run.

    :param states: the state of each contact by its id; one that isn't final when the dry run was cut off stays so.
    :param skipped: who is never called, and why.
    :param postponed: how often contacts had to wait, by the code of the reason.
    :param tripped_at: when the circuit breaker would have paused the campaign; the dry run goes on as if resumed.
    """

    attempts: list[Attempt] = field(default_factory=list)
    states: dict[int, str] = field(default_factory=dict)
    skipped: dict[int, Block] = field(default_factory=dict)
    postponed: Counter[str] = field(default_factory=Counter)
    tripped_at: list[datetime] = field(default_factory=list)
    peak: int = 0
    ended_at: datetime | None = None


@dataclass
class _Queue:
    """The waiting contacts: retries before first attempts, each by the time they are due."""

    retries: list[tuple[datetime, int]] = field(default_factory=list)
    queued: list[tuple[datetime, int]] = field(default_factory=list)

    def due(self, moment: datetime) -> Iterator[int]:
        for line in (self.retries, self.queued):
            while line and line[0][0] <= moment:
                yield heapq.heappop(line)[1]

    def later(self) -> datetime | None:
        return min((line[0][0] for line in (self.retries, self.queued) if line), default=None)


@dataclass
class _BreakerWindow:
    """The circuit breaker's sliding window. It is emptied when the breaker trips, as by a resume."""

    breaker: Breaker
    ended: deque[tuple[datetime, bool]] = field(default_factory=deque)
    failed: int = 0

    def trips_on(self, attempt: Attempt) -> bool:
        self.ended.append((attempt.ends_at, attempt.outcome in FAILURES))
        self.failed += self.ended[-1][1]
        while self.ended[0][0] <= attempt.ends_at - self.breaker.window:
            self.failed -= self.ended.popleft()[1]
        if not self.breaker.trips(len(self.ended), self.failed):
            return False
        self.ended.clear()
        self.failed = 0
        return True


def rehearse(
    settings: DialSettings,
    retry: Retry,
    breaker: Breaker,
    contacts: Sequence[Candidate],
    mix: Mix,
    seed: int,
    starts_at: datetime,
    longest: timedelta,
    others: Sequence[OtherCampaign] = (),
    account: object = None,
    day: CallsOfDay | None = None,
) -> Rehearsal:
    """Run a campaign from `starts_at` to its end, or for as long as `longest`, or for 300,000 calls.

    :param others: the organization's other running campaigns, which take their turns.
    :param account: the carrier account that the campaign calls through.
    :param day: the organization's calls of the 24 hours before; without it their number isn't limited.
    """
    found = Rehearsal(states=dict.fromkeys((contact.id for contact in contacts), "queued"))
    known = {contact.id: contact for contact in contacts}
    tried: Counter[int] = Counter()
    recent: defaultdict[str, tuple[datetime, ...]] = defaultdict(tuple)
    line = _Queue(queued=[(starts_at, contact.id) for contact in contacts])
    heapq.heapify(line.queued)
    talking: list[tuple[datetime, int, Attempt]] = []
    window = _BreakerWindow(breaker)
    rest = OtherCampaigns(others, lambda campaign, number: sum(mix.outcome(seed, -campaign, number)[1:]))
    pace: Pace = {}
    day = day or CallsOfDay()
    clock, turn, last_turn = starts_at, 0, 0

    def due() -> Iterator[Candidate]:
        for id in line.due(clock):
            contact = known[id]
            past = (*contact.recent, *recent[contact.number])
            yield replace(contact, recent=tuple(at for at in past if at > clock - DAY))

    while clock <= starts_at + longest and len(found.attempts) + rest.dialed < MOST_ATTEMPTS:
        rest.end_calls(clock)
        while talking and talking[0][0] <= clock:
            attempt = heapq.heappop(talking)[2]
            verdict = after_call(attempt.outcome, attempt.number, attempt.ends_at, retry)
            found.states[attempt.contact.id] = verdict.state
            if verdict.due_at is not None:
                heapq.heappush(line.retries, (verdict.due_at, attempt.contact.id))
            if window.trips_on(attempt):
                found.tripped_at.append(attempt.ends_at)
        turn += 1
        before = last_turn
        rest.dial(clock, len(talking), pace, day, turn, 0, before)
        load = Load(len(talking) + rest.in_progress, len(talking), pace.get(account), day.quota(clock))
        decided = plan(clock, settings, due(), load)
        for contact, reason in decided.blocked:
            if reason.until is None:
                found.states[contact.id], found.skipped[contact.id] = "skipped", reason
            else:
                found.postponed[reason.code] += 1
                heapq.heappush(line.retries if tried[contact.id] else line.queued, (reason.until, contact.id))
        for contact in decided.dial:
            tried[contact.id] += 1
            day.record(clock)
            recent[contact.number] = (*(at for at in recent[contact.number] if at > clock - DAY), clock)
            pace[account], last_turn = clock + settings.interval, turn
            found.states[contact.id] = "dialing"
            outcome, rings, talks = mix.outcome(seed, contact.id, tried[contact.id])
            ends_at = clock + timedelta(seconds=round(rings + talks, 3))
            attempt = Attempt(contact, tried[contact.id], clock, ends_at, outcome, talks)
            found.attempts.append(attempt)
            heapq.heappush(talking, (ends_at, len(found.attempts), attempt))
        rest.dial(clock, len(talking), pace, day, turn, before + 1, turn - 1)
        found.peak = max(found.peak, len(talking))
        if not talking and line.later() is None:
            found.ended_at = clock
            break
        later = None if decided.hold is not None else line.later()
        events = (decided.look_again, later, talking[0][0] if talking else None, rest.next_event())
        ahead = [at for at in events if at is not None]
        if not ahead:
            found.ended_at = clock
            break
        clock = max(clock, min(ahead))
    return found


# -- the calls of the last 24 hours in a dry run, which the organization's limit of calls a day counts


class CallsOfDay:
    """When calls were placed, the earliest first.

    :param most: how many may be placed within 24 hours; None is without limit, and nothing is recorded then.
    :param before: when calls were placed before the dry run begins.
    """

    def __init__(self, most: int | None = None, before: Iterable[datetime] = ()) -> None:
        self._most = most
        self._times = deque(before if most is not None else ())

    def record(self, at: datetime) -> None:
        """Count a call; `at` is never before that of an earlier one."""
        if self._most is not None:
            self._times.append(at)

    def quota(self, clock: datetime) -> Quota | None:
        """How many calls may still be placed at `clock`; None is any number."""
        if self._most is None:
            return None
        # As many as may be placed decide alone when the next one may be.
        while self._times and (self._times[0] <= clock - DAY or len(self._times) > self._most):
            self._times.popleft()
        return Quota(self._most - len(self._times), (self._times[0] if self._times else clock) + DAY)


# -- the other running campaigns in a dry run, which take a part of the organization's limit and of the pace


# When the next call of each carrier account may begin.
Pace = dict[object, datetime]


@dataclass
class OtherCampaign:
    """A running campaign besides the one of the dry run. Each of its open contacts is called once, at any hour.

    :param waiting: how many contacts are still to be called.
    :param account: of the carrier; campaigns of one account share its pace.
    :param calling: its calls in progress.
    :param turn: when it last dialed, counted in turns; 0 before it does.
    """

    id: int
    settings: DialSettings
    waiting: int
    account: object
    calling: int = 0
    turn: int = 0
    held_until: datetime | None = None


class OtherCampaigns:
    """The calls of the other campaigns.

    :param seconds: how long the call to contact number `n` of a campaign takes, from its id and `n`.
    """

    def __init__(self, campaigns: Iterable[OtherCampaign], seconds: Callable[[int, int], float]) -> None:
        self._campaigns = list(campaigns)
        self._seconds = seconds
        self._calls: list[tuple[datetime, int, OtherCampaign]] = []
        self.dialed = 0

    @property
    def in_progress(self) -> int:
        """How many calls go on."""
        return len(self._calls)

    def end_calls(self, clock: datetime) -> None:
        """End the calls that are over."""
        while self._calls and self._calls[0][0] <= clock:
            heapq.heappop(self._calls)[2].calling -= 1

    def dial(self, clock: datetime, calls: int, pace: Pace, day: CallsOfDay, turn: int, since: int, until: int) -> None:
        """Let the campaigns whose last turn was from `since` to `until` dial, the one that dialed longest ago first.

        :param calls: those of the dry run's own campaign that go on.
        :param day: the calls of the last 24 hours; those placed here are added.
        :param turn: the number of this turn.
        """
        chosen = [each for each in self._campaigns if since <= each.turn <= until]
        for campaign in sorted(chosen, key=lambda each: (each.turn, each.id)):
            campaign.held_until = None
            while campaign.waiting:
                load = Load(calls + self.in_progress, campaign.calling, pace.get(campaign.account), day.quota(clock))
                hold = held(clock, campaign.settings, load)
                if hold is not None:
                    campaign.held_until = hold.until
                    break
                day.record(clock)
                self.dialed += 1
                campaign.waiting -= 1
                campaign.calling += 1
                campaign.turn = turn
                pace[campaign.account] = clock + campaign.settings.interval
                ends_at = clock + timedelta(seconds=round(self._seconds(campaign.id, campaign.waiting), 3))
                heapq.heappush(self._calls, (ends_at, self.dialed, campaign))

    def next_event(self) -> datetime | None:
        """When the next of their calls ends, or a campaign may dial again."""
        times = [each.held_until for each in self._campaigns if each.held_until is not None]
        return min([*times, *(end for end, _, _ in self._calls[:1])], default=None)
