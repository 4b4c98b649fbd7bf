"""The contacts of a campaign as CSV, some lines at a time: the columns of its list, and where each contact stands."""

from __future__ import annotations

from collections.abc import Iterator

from ..runs.reports import LINES, lines
from ..service import Service
from ..store import dialing

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
