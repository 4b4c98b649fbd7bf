"""Views of a campaign's contacts: the state of each, and the reasons for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import NotPossible, RecordNotFound
from ..runs.reports import LINES, lines
from ..service import Service
from ..store import dialing
from ..store.base import find, require
from ..store.campaigns import Campaign, Contact, Decision
from ..store.fields import now
from ..store.telephony import TelephonyConfiguration
from ..store.workflows import Workflow
from ..telephony.configurations import NotConfigured, reader, resolve_outbound
from ..telephony.numbers import Reader
from .campaigns import check_columns, check_values, get, variables_of
from .contact_list import ContactList, reading
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


# -- the contacts of a campaign as CSV, some lines at a time: the columns of its list, and where each contact stands


# After the columns of the list, which may have any other names.
COLUMNS = ("contact_row", "contact_state", "contact_attempts", "contact_reasons")


def text(service: Service, campaign_id: int, state: str | None) -> Iterator[str]:
    """The contacts in the order of their rows; those of one state if given."""
    with service.store.session():
        names = dialing.columns(campaign_id)
        yield lines([(*names, *COLUMNS)])
        row = 0
        while contacts := dialing.contacts_after(campaign_id, row, state, LINES):
            row = contacts[-1].row
            decisions = dialing.decisions([contact.id for contact in contacts])
            yield lines(
                (
                    *(contact.variables.get(name) for name in names),
                    *(contact.row, contact.state, contact.attempts),
                    " ".join(decision.reason for decision in decisions.get(contact.id, ())),
                )
                for contact in contacts
            )


# -- what a contact list would make of a campaign, found before anything is stored


# How much of a list is shown: rows that are skipped, rows of the preview with their columns, characters of a cell.
MOST_SKIPPED, PREVIEW_ROWS, PREVIEW_COLUMNS, LONGEST_CELL = 100, 10, 50, 200


def check(service: Service, organization: int, wanted: Mapping[str, Any], content: bytes) -> dict[str, Any]:
    """Read a list as `campaigns.create` does with the same workflow and telephony configuration; nothing is stored.

    A list without the column of the numbers is read too, so that the answer shows which columns there are.

    :param wanted: `workflow_id`; `telephony_configuration_id` and `phone_number_column`, which may be None.
    :raises RecordNotFound: when there is no such workflow.
    :raises NotPossible: for a list that can't be read, and for no telephony configuration to call through.
    :raises OutOfService: when the list is long and too many slow requests are in progress.
    """
    workflow = require(Workflow, "Workflow not found", id=wanted["workflow_id"], organization=organization)
    try:
        configuration = resolve_outbound(organization, wanted["telephony_configuration_id"])
    except NotConfigured:
        raise NotPossible("telephony_configuration_not_found") from None
    read = reader(configuration)
    with reading(service, organization, len(content)):
        contacts = ContactList(content, wanted["phone_number_column"], needs_numbers=False)
        variables = variables_of(workflow)
        rows, skipped_count = 0, 0
        skipped: list[dict[str, Any]] = []
        preview: list[dict[str, Any]] = []
        empty: Counter[str] = Counter()
        for contact in contacts.contacts(read):
            rows += 1
            shown = {
                "row": contact.row,
                "phone_number": contact.phone_number[:LONGEST_CELL],
                "skipped": contact.skipped,
            }
            if len(preview) < PREVIEW_ROWS:
                cells = list(contact.values.items())[:PREVIEW_COLUMNS]
                preview.append({**shown, "values": {name: text[:LONGEST_CELL] for name, text in cells}})
            if contact.skipped is None:
                empty.update(name for name in variables if not contact.values.get(name, "").strip())
                continue
            skipped_count += 1
            if len(skipped) < MOST_SKIPPED:
                skipped.append(shown)
        return {
            "columns": list(contacts.columns),
            "variables": [
                {"name": name, "is_column": name in contacts.variables, "empty_rows": empty[name]} for name in variables
            ],
            "rows": rows,
            "skipped_count": skipped_count,
            "skipped": skipped,
            "preview": preview,
            "refusal": _refusal(contacts, variables, read),
        }


def _refusal(contacts: ContactList, variables: list[str], read: Reader) -> str | None:
    """Why no campaign can be created with the list, in the sentence that creating one answers."""
    try:
        contacts.check_number_column()
        check_columns(contacts, variables)
        check_values(contacts, variables, read)
    except NotPossible as error:
        return str(error.detail)
    return None
