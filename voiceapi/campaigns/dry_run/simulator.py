"""The dry run of a campaign: the dialer's own plan on a clock that jumps from one event to the next.

Nobody is called and nothing is stored. The same seed and contacts give the same result.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

from ..dialer.calling_hours import DAY
from ..dialer.eligibility import Block, Contact
from ..dialer.plan import Load, Settings, plan
from ..retry import FAILURES, Breaker, Retry, after_call
from .day import CallsOfDay
from .others import OtherCampaign, OtherCampaigns, Pace

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

    contact: Contact
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
    settings: Settings,
    retry: Retry,
    breaker: Breaker,
    contacts: Sequence[Contact],
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

    def due() -> Iterator[Contact]:
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
