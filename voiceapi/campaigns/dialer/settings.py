"""The input of the plan from the database: a campaign's settings and the contacts that are due."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from ...service import Service
from ...store import campaigns as records
from ...store import dialing, organizations
from ...store.campaigns import Campaign
from ...store.telephony import TelephonyConfiguration
from ...telephony.configurations import calls_per_second
from ...telephony.numbers import zones_of_number
from .calling_hours import DAY, schedule
from .eligibility import Candidate, Eligibility, zones_of
from .plan import DialSettings


def settings_of(service: Service, campaign: Campaign, configuration: TelephonyConfiguration | None) -> DialSettings:
    """How a campaign calls, through this configuration."""
    preferences = organizations.get(campaign.organization_id).preferences
    own = {"calling_hours": campaign.calling_hours, "max_attempts_per_day": campaign.max_attempts_per_day}
    pace = None if configuration is None else calls_per_second(configuration)
    return DialSettings(
        campaign.state,
        schedule(campaign.schedule_config),
        Eligibility.read(preferences, own),
        service.settings.concurrent_calls,
        campaign.max_concurrency,
        timedelta() if pace is None else timedelta(seconds=1 / pace),
    )


def candidates(
    campaign: Campaign, eligibility: Eligibility, moment: datetime, limit: int, due: dict[int, records.Contact]
) -> Iterator[Candidate]:
    """The contacts that are due, with what decides whether they may be called at `moment`.

    They are read when the first one is asked for: a campaign that is held calls nobody.

    :param limit: how many are read.
    :param due: gets what is read, by id.
    """
    due |= {contact.id: contact for contact in dialing.due(campaign.id, moment, limit)}
    numbers = [contact.phone_number for contact in due.values()]
    listed = dialing.not_to_call(campaign.organization_id, numbers)
    since = moment - DAY
    recent = {} if eligibility.most_a_day is None else dialing.dialed_since(campaign.organization_id, numbers, since)
    for contact in due.values():
        number = contact.phone_number
        zones = zones_of(contact.variables.get("timezone"), number, zones_of_number) if eligibility.hours else ()
        yield Candidate(contact.id, number, zones, number in listed, recent.get(number, ()))
