"""Use cases of the do-not-call list: numbers that no campaign of the organization calls."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import FieldError, InvalidFields, RecordNotFound
from ..service import Service
from ..store import dialing
from ..store.campaigns import DoNotCall
from ..store.database import write
from ..store.locks import NO_LOCK
from ..telephony.numbers import NotDialable, dialable
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


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a list: how many numbers are new, how many were there already, and the refused rows.

    :param refused: the first MOST_REFUSED of the `refused_count` rows, by number, each with why.
    """

    new: int
    already_listed: int
    refused_count: int
    refused: Mapping[int, str]


def add_list(service: Service, organization: int, content: bytes) -> Added:
    """Put the column `phone_number` of a CSV on the list; its other columns don't matter, but for `reason`.

    Each BATCH of numbers is stored in a transaction of its own, so that nobody waits long to write. What an
    interrupted request has stored stays, for those numbers mustn't be called; the same list, sent again, completes it.

    :raises NotPossible: when the file isn't text, has no data row, or no `phone_number` column.
    :raises OutOfService: when the list is long and too many slow requests are in progress; nothing is stored then.
    """
    new = readable = refused_count = 0
    refused: dict[int, str] = {}
    good: dict[str, str | None] = {}
    with reading(service, organization, len(content)):
        for row in ContactList(content).rows():
            number, error = number_of(row, sip=True)
            if error is not None:
                refused_count += 1
                if refused_count <= MOST_REFUSED:
                    refused[row.number] = error
                continue
            readable += 1
            good.setdefault(number, row.values.get("reason", "").strip() or None)
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
