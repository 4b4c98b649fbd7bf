"""The dry run of a campaign, stored or not yet, with its own list and settings, summed up in one answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from ...runs import files
from ...service import Service
from ...store import campaigns as records
from ...store import dialing, organizations
from ...store.base import find
from ...store.campaigns import Campaign
from ...store.fields import EPOCH
from ...store.telephony import TelephonyConfiguration
from ...telephony.configurations import reader
from ...telephony.numbers import zones_of_number
from ...timestamps import write_time
from ..contact_list import ContactList
from ..dialer.calling_hours import DAY
from ..dialer.eligibility import Candidate, Eligibility, zones_of
from ..dialer.settings import settings_of
from ..retry import Breaker, Retry
from .simulator import Attempt, CallsOfDay, Mix, OtherCampaign, Rehearsal, rehearse

# The share of each outcome, unless the request names others.
SHARES: Mapping[str, float] = {"answered": 0.55, "no_answer": 0.2, "voicemail": 0.15, "busy": 0.07, "failed": 0.03}
TALK_SECONDS = (30.0, 120.0)
MOST_SKIPPED = 1000


def simulate(
    service: Service, campaign: Campaign, wanted: Mapping[str, Any], content: bytes | None = None
) -> dict[str, Any]:
    """Run a campaign's whole list as if it began at `starts_at`; the same seed answers the same.

    :param wanted: `seed`, `outcomes` (shares by outcome, None for the usual ones), `talk_seconds` (shortest, longest),
        `days`, and `starts_at`, without which it is when the campaign was created, or when the organization's
        campaigns last dialed if that was later.
    :param content: the list of a campaign that isn't stored.
    :raises NotPossible: when its list can't be read.
    """
    organization = campaign.organization_id
    configuration = find(TelephonyConfiguration, id=campaign.telephony_configuration_id)
    settings = replace(settings_of(service, campaign, configuration), state="running")
    numbers, unread = _numbers(campaign, configuration, content)
    starts_at = wanted["starts_at"] or max(campaign.created_at, dialing.last_dialed_at(organization) or EPOCH)
    calls_a_day = settings.eligibility.call_limits.calls_a_day
    people = list(_contacts(organization, numbers, settings.eligibility, starts_at))
    shares, talk = wanted["outcomes"] or SHARES, wanted["talk_seconds"]
    found = rehearse(
        settings,
        Retry.read(campaign.retry_config),
        Breaker.read(campaign.circuit_breaker),
        people,
        Mix(shares, TALK_SECONDS if talk is None else (talk["shortest"], talk["longest"])),
        wanted["seed"],
        starts_at,
        timedelta(days=wanted["days"]),
        list(_others(service, campaign)),
        _account(configuration),
        CallsOfDay(
            calls_a_day, organizations.call_times(organization, starts_at - DAY, starts_at) if calls_a_day else ()
        ),
    )
    skipped = [(row, number, "row_skipped", reason) for row, number, reason in unread]
    skipped += [(id, numbers[id][0], block.code, block.reason) for id, block in found.skipped.items()]
    states = Counter(found.states.values()) + Counter(skipped=len(unread))
    return {
        "seed": wanted["seed"],
        "starts_at": starts_at,
        "first_call_at": min((attempt.at for attempt in found.attempts), default=None),
        "ends_at": found.ended_at,
        "contacts": {state: states[state] for state in (*records.OPEN, *records.FINAL)},
        "attempts": len(found.attempts),
        "retries": sum(attempt.number > 1 for attempt in found.attempts),
        "outcomes": _counted(attempt.outcome for attempt in found.attempts),
        "skipped": _counted(code for _, _, code, _ in skipped),
        "postponed": dict(sorted(found.postponed.items())),
        "peak_concurrency": found.peak,
        "minutes": round(sum(attempt.seconds for attempt in found.attempts) / 60, 1),
        "circuit_breaker_trips": [write_time(at) for at in found.tripped_at],
        "timeline": _timeline(found),
        "skipped_contacts": [
            {"row": row, "phone_number": number, "code": code, "reason": reason}
            for row, number, code, reason in sorted(skipped)[:MOST_SKIPPED]
        ],
    }


def _numbers(
    campaign: Campaign, configuration: TelephonyConfiguration | None, content: bytes | None
) -> tuple[dict[int, tuple[str, str | None]], list[tuple[int, str, str]]]:
    """Number and zone of every row that can be dialed, and the other rows with their reasons."""
    if campaign.parent_campaign_id is not None:
        stored = dialing.all_contacts(campaign.id)
        return {each.row: (each.phone_number, each.variables.get("timezone")) for each in stored}, []
    if content is None:
        content = files.read(campaign.organization_id, campaign.source_id)
    numbers, unread = {}, []
    for contact in ContactList(content, campaign.phone_number_column).contacts(reader(configuration)):
        if contact.skipped is None:
            numbers[contact.row] = (contact.phone_number, contact.values.get("timezone"))
        else:
            unread.append((contact.row, contact.phone_number, contact.skipped))
    return numbers, unread


def _contacts(
    organization: int, numbers: Mapping[int, tuple[str, str | None]], eligibility: Eligibility, starts_at: datetime
) -> Iterator[Candidate]:
    """The contacts with what the organization's campaigns dialed in the 24 hours before the dry run begins."""
    listed = dialing.all_not_to_call(organization)
    dialed = {}
    if eligibility.most_a_day is not None:
        dialed = dialing.all_dialed(organization, starts_at - DAY, starts_at)
    for row, (number, zone) in numbers.items():
        zones = zones_of(zone, number, zones_of_number) if eligibility.hours else ()
        yield Candidate(row, number, zones, dialing.listed_form(number) in listed, dialed.get(number, ()))


def _others(service: Service, campaign: Campaign) -> Iterator[OtherCampaign]:
    """The other campaigns of the organization that are running or about to."""
    for other in records.active(campaign.organization_id):
        if other.id == campaign.id:
            continue
        configuration = find(TelephonyConfiguration, id=other.telephony_configuration_id)
        settings = replace(settings_of(service, other, configuration), state="running")
        waiting = sum(count for state, count in dialing.states(other.id).items() if state in records.OPEN)
        yield OtherCampaign(other.id, settings, waiting, _account(configuration))


def _account(configuration: TelephonyConfiguration | None) -> object:
    """What tells a carrier's accounts apart; a configuration whose account isn't known has one of its own."""
    if configuration is None or configuration.account_id is None:
        return None if configuration is None else configuration.id
    return configuration.provider, configuration.account_id


def _counted(codes: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(codes).items()))


def _timeline(found: Rehearsal) -> list[dict[str, Any]]:
    """What happens in each hour in which somebody is called."""
    hours: dict[datetime, list[Attempt]] = {}
    for attempt in found.attempts:
        hours.setdefault(attempt.at.replace(minute=0, second=0, microsecond=0), []).append(attempt)
    return [
        {
            "hour": write_time(hour),
            "attempts": len(attempts),
            "retries": sum(attempt.number > 1 for attempt in attempts),
            "answered": sum(attempt.outcome == "answered" for attempt in attempts),
            "minutes": round(sum(attempt.seconds for attempt in attempts) / 60, 1),
        }
        for hour, attempts in sorted(hours.items())
    ]
