"""What a contact list would make of a campaign, found before anything is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..errors import NotPossible
from ..service import Service
from ..store.base import require
from ..store.workflows import Workflow
from ..telephony.providers import PROVIDERS
from ..telephony.selection import NotConfigured, resolve_outbound
from .campaigns import check_columns, variables_of
from .contact_list import ContactList, reading

# How much of a list is shown: rows that are skipped, rows of the preview with their columns, characters of a cell.
MOST_SKIPPED, PREVIEW_ROWS, PREVIEW_COLUMNS, LONGEST_CELL = 100, 10, 50, 200


def check(service: Service, organization: int, wanted: Mapping[str, Any], content: bytes) -> dict[str, Any]:
    """Read a list as `campaigns.create` does with the same workflow and telephony configuration; nothing is stored.

    :param wanted: `workflow_id` and `telephony_configuration_id`, which may be None.
    :raises RecordNotFound: when there is no such workflow.
    :raises NotPossible: for a list that can't be read, and for no telephony configuration to call through.
    :raises OutOfService: when the list is long and too many slow requests are in progress.
    """
    workflow = require(Workflow, "Workflow not found", id=wanted["workflow_id"], organization=organization)
    try:
        configuration = resolve_outbound(organization, wanted["telephony_configuration_id"])
    except NotConfigured:
        raise NotPossible("telephony_configuration_not_found") from None
    with reading(service, organization, len(content)):
        contacts = ContactList(content)
        variables = variables_of(workflow)
        rows, skipped_count = 0, 0
        skipped: list[dict[str, Any]] = []
        preview: list[dict[str, Any]] = []
        empty: Counter[str] = Counter()
        for contact in contacts.contacts(sip=PROVIDERS[configuration.provider].dials_sip):
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
                {"name": name, "is_column": name in contacts.columns, "empty_rows": empty[name]} for name in variables
            ],
            "rows": rows,
            "skipped_count": skipped_count,
            "skipped": skipped,
            "preview": preview,
            "refusal": _refusal(contacts, variables),
        }


def _refusal(contacts: ContactList, variables: list[str]) -> str | None:
    """Why no campaign can be created with the list, in the sentence that creating one answers."""
    try:
        check_columns(contacts, variables)
    except NotPossible as error:
        return str(error.detail)
    return None
