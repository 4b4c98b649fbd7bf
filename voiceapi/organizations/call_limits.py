"""What an organization allows its outbound calls: which countries are called, and how many calls a day. Pure.

Both are preferences. They hold for triggers, calls by hand, campaigns and transfers, so that a leaked key can't dial
expensive numbers all night.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..telephony.numbers import country_of
from ..timestamps import write_time

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits of an organization.

    :param countries: ISO 3166 codes of the countries whose numbers may be called; None is any number.
    :param calls_a_day: how many calls are placed within any 24 hours, 1 or more; None is without limit.
    """

    countries: tuple[str, ...] | None = None
    calls_a_day: int | None = None

    @classmethod
    def read(cls, preferences: Mapping[str, Any]) -> CallLimits:
        """The limits that an organization's preferences set."""
        countries = preferences.get("allowed_countries")
        return cls(None if countries is None else tuple(countries), preferences.get("max_calls_a_day"))

    def refusal(self, address: str) -> str | None:
        """Why an address may not be called, in a sentence; None if its country is allowed.

        A number whose country isn't known isn't allowed, nor is a SIP address: it may lead anywhere.
        """
        if self.countries is None:
            return None
        country = country_of(address)
        if country in self.countries:
            return None
        belongs = "The country of this address isn't known" if country is None else f"This number belongs to {country}"
        return f"{belongs}, and the organization allows calls to {', '.join(self.countries)} only."


@dataclass(frozen=True, slots=True)
class Quota:
    """How many calls an organization may still place, and when it may place more once none is left."""

    left: int
    more_at: datetime

    def after_call(self) -> Quota:
        """The quota once another call is placed."""
        return Quota(self.left - 1, self.more_at)


def exhausted(calls_a_day: int | None, more_at: datetime) -> str:
    """The sentence that says why no call is placed until `more_at`."""
    calls = f"{calls_a_day} call{'' if calls_a_day == 1 else 's'}"
    return f"The organization places at most {calls} within 24 hours; the next one may be placed at {_time(more_at)}."


def _time(at: datetime) -> str:
    # Rounded up, so that nobody tries a moment too early.
    return write_time(at + timedelta(microseconds=-at.microsecond % 1_000_000), "seconds")
