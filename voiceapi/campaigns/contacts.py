"""Views of a campaign's contacts: the state of each, and the reasons for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import RecordNotFound
from ..service import Service
from ..store import dialing
from ..store.base import find
from ..store.campaigns import Campaign, Contact, Decision
from ..store.fields import now
from ..store.telephony import TelephonyConfiguration
from .campaigns import get
from .dialer.plan import held
from .dialer.settings import settings_of
from .dialer.worker import load_of

WAITING = ("queued", "retry")


def listed(
    service: Service, organization: int, campaign_id: int, state: str | None, page: int, limit: int
) -> tuple[list[dict[str, Any]], int]:
    """A page of the contacts in the order of their rows, and how many there are; of one state if given.

    :raises RecordNotFound: when there is no such campaign.
    """
    campaign = get(organization, campaign_id)
    contacts, total = dialing.page(campaign_id, state, page, limit)
    decisions = dialing.decisions([contact.id for contact in contacts])
    return _views(service, campaign, contacts, decisions), total


def one_of(service: Service, organization: int, campaign_id: int, row: int) -> dict[str, Any]:
    """The contact of a data row, with every decision about it.

    :raises RecordNotFound: when there is no such campaign, or the list has no such row, or it hasn't been read yet.
    """
    campaign = get(organization, campaign_id)
    contact = find(Contact, campaign=campaign_id, row=row)
    if contact is None:
        raise RecordNotFound(f"Campaign {campaign_id} has no contact of row {row}")
    decisions = dialing.decisions([contact.id])
    history = [
        {"at": each.at, "code": each.code, "reason": each.reason, "workflow_run_id": each.run_id}
        for each in decisions.get(contact.id, ())
    ]
    return {
        **_views(service, campaign, [contact], decisions)[0],
        "variables": contact.variables,
        "decisions": history,
    }


def _views(
    service: Service, campaign: Campaign, contacts: Sequence[Contact], decisions: Mapping[int, Sequence[Decision]]
) -> list[dict[str, Any]]:
    hold_reason = _hold_reason(service, campaign) if any(contact.state in WAITING for contact in contacts) else ""
    moment = now()
    found = []
    for contact in contacts:
        made = decisions.get(contact.id, ())
        reasons = [decision.reason for decision in made]
        if contact.state in WAITING and contact.next_attempt_at <= moment:
            reasons.append(hold_reason)
        runs = dict.fromkeys(decision.run_id for decision in made if decision.run_id is not None)
        found.append(
            {
                "row": contact.row,
                "phone_number": contact.phone_number,
                "state": contact.state,
                "attempts": contact.attempts,
                "next_attempt_at": contact.next_attempt_at,
                "workflow_run_ids": list(runs),
                "reasons": reasons,
            }
        )
    return found


def _hold_reason(service: Service, campaign: Campaign) -> str:
    """Why the dialer isn't calling contacts that are due at the moment."""
    configuration = find(TelephonyConfiguration, id=campaign.telephony_configuration_id)
    settings = settings_of(service, campaign, configuration)
    moment = now()
    hold = held(moment, settings, load_of(campaign, configuration, settings, moment))
    return "It is due, and its turn comes." if hold is None else hold.reason
