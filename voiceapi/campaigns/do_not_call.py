"""Use cases of the do-not-call list: numbers that the organization doesn't call."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..errors import FieldError, InvalidFields, InvalidInput, NotPossible, RecordNotFound
from ..service import Service
from ..store import dialing, forgetting
from ..store.campaigns import DoNotCall
from ..store.database import truncating_wal, write
from ..store.forgetting import ForgottenNumber
from ..store.locks import NO_LOCK
from ..store.organizations import all_organizations
from ..telephony.configurations import organization_reader
from ..telephony.numbers import NotDialable
from .contact_list import PAUSE_SECONDS, ContactList, number_of, reading

# How many numbers are stored in one transaction, and how many refused rows an answer names.
BATCH, MOST_REFUSED = 1000, 1000
# How many numbers are sorted before they are stored: in any other order, each would change another page of the index.
SORTED = 100_000


def listed(organization: int, page: int, limit: int) -> tuple[list[DoNotCall], int]:
    """A page of the list, the newest first, and how many numbers are on it."""
    return dialing.page_of_do_not_call(organization, page, limit)


def add(organization: int, numbers: Sequence[str], reason: str | None) -> int:
    """Put numbers on the list; returns how many weren't there yet.

    :raises InvalidFields: for each text that isn't a number to call; nothing is stored then.
    """
    found, errors = [], []
    read = organization_reader(organization)
    for index, text in enumerate(numbers):
        try:
            found.append(dialing.listed_form(read(text)))
        except NotDialable as error:
            errors.append(FieldError(("phone_numbers", index), error.reason))
    if errors:
        raise InvalidFields(errors)
    with write():
        return dialing.add_to_do_not_call(organization, dict.fromkeys(found, reason))


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a list: how many numbers are new, how many were there already, and the refused rows.

    :param refused: the first MOST_REFUSED of the `refused_count` rows, by number, each with why.
    """

    new: int
    already_listed: int
    refused_count: int
    refused: Mapping[int, str]


def add_list(service: Service, organization: int, content: bytes, number_column: str | None = None) -> Added:
    """Put the column of a CSV with the numbers on the list; its other columns don't matter, but for `reason`.

    Each BATCH of numbers is stored in a transaction of its own, so that nobody waits long to write. What an
    interrupted request has stored stays, for those numbers mustn't be called; the same list, sent again, completes it.

    :param number_column: None for `phone_number`.
    :raises NotPossible: when the file isn't text, has no data row, or no column with the numbers.
    :raises OutOfService: when the list is long and too many slow requests are in progress; nothing is stored then.
    """
    new = readable = refused_count = 0
    refused: dict[int, str] = {}
    good: dict[str, str | None] = {}
    read = organization_reader(organization)
    with reading(service, organization, len(content)):
        for row in ContactList(content, number_column).rows():
            number, error = number_of(row, read)
            if error is not None:
                refused_count += 1
                if refused_count <= MOST_REFUSED:
                    refused[row.number] = error
                continue
            readable += 1
            good.setdefault(dialing.listed_form(number), row.values.get("reason", "").strip() or None)
            if len(good) == SORTED:
                new += _store(organization, good)
                good.clear()
        new += _store(organization, good)
    return Added(new, readable - new, refused_count, refused)


def _store(organization: int, numbers: Mapping[str, str | None]) -> int:
    """Put numbers, each with its reason, on the list; returns how many weren't there yet."""
    new, entries = 0, sorted(numbers.items())
    for first in range(0, len(entries), BATCH):
        # In order, so that two lists with the same numbers don't wait for each other.
        with write(NO_LOCK):
            new += dialing.add_to_do_not_call(organization, dict(entries[first : first + BATCH]))
        # Others who wait to write are woken too late to get their turn without a pause.
        time.sleep(PAUSE_SECONDS)
    return new


def remove(organization: int, number: str) -> None:
    """Take a number off the list.

    :raises RecordNotFound: when it isn't on it.
    """
    with suppress(NotDialable):  # an earlier release may have stored what isn't dialed any more
        number = organization_reader(organization)(number)
    with write():
        if not dialing.remove_from_do_not_call(organization, number):
            raise RecordNotFound("The number is not on the do-not-call list")


# -- removes what is kept about one phone number, as a person may demand; it stays on the do-not-call list


@dataclass(frozen=True)
class Forgotten:
    """How much was removed: runs with all that belongs to them, contacts, rows of contact lists, conversation cases."""

    runs: int
    contacts: int
    rows: int
    cases: int


def read(number: str, organization: int | None = None) -> str:
    """The number that somebody wrote, as it is kept; `organization` as in `forget`.

    :raises InvalidInput: when it is no number to call.
    """
    owners = [each.id for each in all_organizations()] if organization is None else [organization]
    try:
        return organization_reader(*owners)(number)
    except NotDialable as error:
        raise InvalidInput(error.reason) from None


def forget(service: Service, number: str, organization: int | None = None) -> Forgotten:
    """Remove the runs, contacts, rows of contact lists and stored cases that hold a number, in one transaction.

    With a run go its log, transcript, text chat, status callbacks, webhooks and stored answers to requests. The calls
    from it that no workflow took go, too. All of it is overwritten in the database's file. The do-not-call list stays
    as it is.

    :param number: in E.164, or a SIP address, as `read` returns it.
    :param organization: whose records are searched; those of all organizations if it is None.
    :raises NotPossible: for a number of a telephony configuration, while a call with the number is in progress, or
        while a contact list is being read.
    """
    wanted = ForgottenNumber(number)
    with service.store.session(), truncating_wal(service.store), write():
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
        forgetting.delete_rejected_calls(wanted, organization)
        rows = 0
        for upload, content, removed in forgetting.uploads_without(wanted, organization):
            forgetting.store_upload(upload, content)
            rows += removed
    return Forgotten(len(runs), len(contacts), rows, len(cases))
