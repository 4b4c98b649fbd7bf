"""The other running campaigns in a dry run, which take a part of the organization's limit and of the pace."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..dialer.plan import Load, Settings, held
from .day import CallsOfDay

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
    settings: Settings
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
