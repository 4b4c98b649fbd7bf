"""Use cases of the do-not-call list: numbers that no campaign of the organization calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from ..errors import FieldError, InvalidFields, RecordNotFound
from ..service import Service
from ..store import dialing
from ..store.campaigns import DoNotCall
from ..store.database import write
from ..telephony.numbers import NotDialable, dialable
from .contact_list import ContactList, number_of, reading

# How many numbers are stored in one transaction, and how many refused rows an answer names.
BATCH, MOST_REFUSED = 500, 1000


def listed(organization: int, page: int, limit: int) -> tuple[list[DoNotCall], int]:
    """A page of the list, the newest first, and how many numbers are on it."""
    return dialing.page_of_do_not_call(organization, page, limit)


def add(organization: int, numbers: Sequence[str], reason: str | None) -> int:
    """Put numbers on the list; returns how many weren't there yet.

    :raises InvalidFields: for each text that isn't a number with its country code; nothing is stored then.
    """
    found, errors = [], []
    for index, text in enumerate(numbers):
        try:
            found.append(canonical(text))
        except NotDialable as error:
            errors.append(FieldError(("phone_numbers", index), error.reason))
    if errors:
        raise InvalidFields(errors)
    with write():
        return dialing.add_to_do_not_call(organization, dict.fromkeys(found, reason))


def add_list(service: Service, organization: int, content: bytes) -> tuple[int, int, list[tuple[int, str]]]:
    """Put the column `phone_number` of a CSV on the list; its other columns don't matter, but for `reason`.

    Returns how many numbers are new, how many were there already, and the refused rows, each with why.

    Each BATCH of rows is read, then stored in a transaction of its own, so that nobody waits long to write. What an
    interrupted request has stored stays, for those numbers mustn't be called; the same list, sent again, completes it.

    :raises NotPossible: when the file isn't text, has no data row, or no `phone_number` column.
    :raises OutOfService: when the list is long and too many slow requests are in progress; nothing is stored then.
    """
    with reading(service, organization, len(content)):
        rows = ContactList(content).rows()
        new = readable = 0
        refused: list[tuple[int, str]] = []
        while batch := list(islice(rows, BATCH)):
            good: dict[str, str | None] = {}
            for row in batch:
                number, error = number_of(row, sip=True)
                if error is None:
                    good.setdefault(number, row.values.get("reason", "").strip() or None)
                    readable += 1
                else:
                    refused.append((row.number, error))
            if good:
                with write():
                    new += dialing.add_to_do_not_call(organization, good)
        return new, readable - new, refused


def remove(organization: int, number: str) -> None:
    """Take a number off the list.

    :raises RecordNotFound: when it isn't on it.
    """
    try:
        number = canonical(number)
    except NotDialable:
        raise RecordNotFound("The number is not on the do-not-call list") from None
    with write():
        if not dialing.remove_from_do_not_call(organization, number):
            raise RecordNotFound("The number is not on the do-not-call list")


def canonical(text: str) -> str:
    """The number as campaigns dial it.

    :raises NotDialable: when it isn't one.
    """
    return dialable(text, sip=True)
