"""Removes what is kept about one phone number, as a person may demand; it stays on the do-not-call list."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidInput, NotPossible
from ..service import Service
from ..store import forgetting
from ..store.database import erasing, write
from ..store.forgetting import Number
from ..telephony.numbers import NotDialable, dialable


@dataclass(frozen=True)
class Forgotten:
    """How much was removed: runs with all that belongs to them, contacts, rows of contact lists, conversation cases."""

    runs: int
    contacts: int
    rows: int
    cases: int


def forget(service: Service, number: str, organization: int | None = None) -> Forgotten:
    """Remove the runs, contacts, rows of contact lists and stored cases that hold a number, in one transaction.

    With a run go its log, transcript, text chat, status callbacks, webhooks and stored answers to requests. All of it
    is overwritten in the database's file. The do-not-call list stays as it is.

    :param number: in E.164, or a SIP address.
    :param organization: whose records are searched; those of all organizations if it is None.
    :raises InvalidInput: when it is no such number.
    :raises NotPossible: for a number of a telephony configuration, while a call with the number is in progress, or
        while a contact list is being read.
    """
    try:
        wanted = Number(dialable(number, sip=True))
    except NotDialable as error:
        raise InvalidInput(error.reason) from None
    with service.store.session(), erasing(service.store), write():
        if forgetting.is_own(wanted, organization):
            raise NotPossible(
                "This is a number of a telephony configuration, so all calls from it and to it would be removed, "
                "whoever they were with. Remove it there first if you want that."
            )
        runs = forgetting.runs_of(wanted, organization)
        if any(run.deadline_at is not None for run in runs):
            raise NotPossible("A call with this number is in progress. Try again when it has ended.")
        if forgetting.list_is_being_read(organization):
            raise NotPossible("A campaign's contact list is being read. Try again in a moment.")
        contacts = forgetting.contacts_of(wanted, organization)
        forgetting.delete_contacts(contacts)
        forgetting.delete_runs(runs)
        cases = forgetting.cases_of(wanted, organization)
        forgetting.delete_cases(cases)
        rows = 0
        for upload, content, removed in forgetting.uploads_without(wanted, organization):
            forgetting.store_upload(upload, content)
            rows += removed
    return Forgotten(len(runs), len(contacts), rows, len(cases))
