"""The input of the plan from the database: a campaign's settings and the contacts that are due."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from ...service import Service
from ...store import campaigns as records
from ...store import dialing
from ...store.base import require
from ...store.campaigns import Campaign
from ...store.organizations import Organization
from ...store.telephony import TelephonyConfiguration
from ...telephony.configurations import calls_per_second
from ...telephony.numbers import zones_of_number
from .calling_hours import DAY, schedule
from .eligibility import Contact, Eligibility, zones_of
from .plan import Settings


def settings_of(service: Service, campaign: Campaign, configuration: TelephonyConfiguration | None) -> Settings:
    """How a campaign calls, through this configuration."""
    return Settings(
        campaign.state,
        schedule(campaign.schedule_config),
        eligibility_of(campaign),
        service.settings.concurrent_calls,
        campaign.max_concurrency,
        timedelta() if configuration is None else _interval(configuration),
    )


def eligibility_of(campaign: Campaign) -> Eligibility:
    """The calling hours and attempts a day that its organization and the campaign itself set."""
    preferences = require(Organization, "Organization not found", id=campaign.organization_id).preferences
    own = {"calling_hours": campaign.calling_hours, "max_attempts_per_day": campaign.max_attempts_per_day}
    return Eligibility.read(preferences, own)


def candidates(
    organization: int, due: Sequence[records.Contact], eligibility: Eligibility, moment: datetime
) -> Iterator[Contact]:
    """The contacts with what decides whether they may be called at `moment`."""
    numbers = [contact.phone_number for contact in due]
    listed = dialing.not_to_call(organization, numbers)
    recent = {} if eligibility.most_a_day is None else dialing.dialed_since(organization, numbers, moment - DAY)
    for contact in due:
        number = contact.phone_number
        zones = zones_of(contact.variables.get("timezone"), number, zones_of_number) if eligibility.hours else ()
        yield Contact(contact.id, number, zones, number in listed, recent.get(number, ()))


def _interval(configuration: TelephonyConfiguration) -> timedelta:
    pace = calls_per_second(configuration)
    return timedelta() if pace is None else timedelta(seconds=1 / pace)
