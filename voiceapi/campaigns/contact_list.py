"""Reads a contact list: CSV as spreadsheets write it, row by row.

UTF-8 with or without a byte order mark, else Windows-1252; commas, semicolons or tabs; quoted line breaks. Column
names are trimmed and lower-cased, and of two columns with one name the last counts. Lines without any text are
skipped. Data rows are numbered from 1.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, repeat
from typing import NamedTuple

from ..errors import NotPossible
from ..service import Service
from ..telephony.numbers import NotDialable, Reader

PHONE_NUMBER = "phone_number"
# The first one with which the numbers have a column is the file's delimiter.
DELIMITERS = (",", ";", "\t")
# Short rows are padded, so a very long header with many short rows would exhaust the memory.
MOST_COLUMNS = 2000
# How many columns a refusal names, and so many characters of each.
MOST_NAMED, LONGEST_NAMED = 20, 50
# Bytes of a list that is read quickly; of longer ones, which take seconds, one is read at a time.
SHORT = 64 * 1024
# After so many rows a reader pauses for so long. Python runs one thread at a time, and one that never waits leaves the
# processor to another only after 5 ms, for each statement of each other request.
ROWS_AT_ONCE, PAUSE_SECONDS = 1000, 0.001


def reading(service: Service, organization: int, size: int) -> AbstractContextManager[None]:
    """What a request holds while it reads a contact list of `size` bytes.

    :raises OutOfService: when the list is long and too many slow requests are in progress.
    """
    return nullcontext() if size <= SHORT else service.bulkhead.slow(organization, "lists")


class Row(NamedTuple):
    """A data row: a text for every column, or in `error` the sentence that says why it can't be read."""

    number: int
    values: Mapping[str, str]
    error: str | None = None


class Contact(NamedTuple):
    """Somebody to call: the number as a carrier takes it, or as written when `skipped` says why it won't be called."""

    row: int
    phone_number: str
    values: Mapping[str, str]
    skipped: str | None = None


class ContactList:
    """A contact list. Its rows can be read repeatedly and are never in memory all at once.

    Reading them pauses now and then, so it doesn't belong into a transaction.

    :param content: the file.
    :param number_column: the column with the numbers, in upper or lower case; None for `phone_number`. Rows have its
        text as `phone_number` too, in place of that of a column with this name.
    :param needs_numbers: False reads a list without that column as well; no row has a number then.
    :raises NotPossible: when it isn't text, has no data row, no column with the numbers, or more than 2,000 columns.
    """

    columns: tuple[str, ...]

    def __init__(self, content: bytes, number_column: str | None = None, *, needs_numbers: bool = True) -> None:
        self._content = content
        self._encoding = _encoding(content)
        self._number_column = _column_name(number_column or "") or PHONE_NUMBER
        headings = {delimiter: self._heading(delimiter) for delimiter in DELIMITERS}
        fitting = (delimiter for delimiter, names in headings.items() if self._number_column in names)
        # Without it, what parts the heading into the most columns is most probably the delimiter.
        widest = max(DELIMITERS, key=lambda delimiter: len(headings[delimiter]))
        self._delimiter = next(fitting, widest)
        self.columns = headings[self._delimiter]
        if next(self.rows(), None) is None:
            raise NotPossible("CSV file must have a header row and at least one data row")
        if len(self.columns) > MOST_COLUMNS:
            raise NotPossible(f"Source has {len(self.columns)} columns; at most {MOST_COLUMNS} are possible")
        if needs_numbers:
            self.check_number_column()

    @property
    def variables(self) -> frozenset[str]:
        """The names of what a contact's values hold."""
        return frozenset((*self.columns, PHONE_NUMBER))

    def check_number_column(self) -> None:
        """:raises NotPossible: when the list lacks the column with the numbers; it names those that there are."""
        if self._number_column in self.columns:
            return
        names = [name for name in self.columns if name]
        found = ", ".join(f"'{name[:LONGEST_NAMED]}'" for name in names[:MOST_NAMED])
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        raise NotPossible(
            f"Source must contain a '{self._number_column[:LONGEST_NAMED]}' column. "
            f"It has {found or 'no column with a name'}{more}. Rename the one with the numbers, or name it in "
            "phone_number_column."
        )

    def rows(self) -> Iterator[Row]:
        """Every data row, readable or not; missing cells are empty, surplus ones are dropped."""
        records = self._records(self._delimiter)
        next(records, None)
        for number, (cells, error) in enumerate(records, start=1):
            values = {}
            if error is None:
                values = dict(zip(self.columns, chain(cells, repeat("")), strict=False))
                values.pop("", None)
                if self._number_column != PHONE_NUMBER:
                    values[PHONE_NUMBER] = values.get(self._number_column, "")
            yield Row(number, values, error)
            if number % ROWS_AT_ONCE == 0:
                time.sleep(PAUSE_SECONDS)

    def contacts(self, read: Reader) -> Iterator[Contact]:
        """A contact for every data row; one whose number can't be dialed, or came before, is skipped.

        :param read: reads the numbers, as the campaign's telephony configuration does.
        """
        first_row: dict[str, int] = {}
        for row in self.rows():
            number, reason = number_of(row, read)
            if reason is None and first_row.setdefault(number, row.number) != row.number:
                reason = f"The number is in row {first_row[number]} already."
            yield Contact(row.number, number, row.values, reason)

    def _heading(self, delimiter: str) -> tuple[str, ...]:
        cells, _ = next(self._records(delimiter), ([], None))
        return tuple(map(_column_name, cells))

    def _records(self, delimiter: str) -> Iterator[tuple[list[str], str | None]]:
        """The cells of every record with text in it, or why one can't be read."""
        lines = io.TextIOWrapper(io.BytesIO(self._content), self._encoding, newline="")
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        first = 1
        while True:
            try:
                for cells in reader:
                    if any(map(str.strip, cells)):
                        yield cells, None
                    first = reader.line_num + 1
                return
            except csv.Error as error:
                where = f"Line {first}" if reader.line_num == first else f"Lines {first} to {reader.line_num}"
                yield [], f"{where} can't be read as a row of CSV: {error}."
                first = reader.line_num + 1


def _column_name(text: str) -> str:
    return text.strip().lower()


def number_of(row: Row, read: Reader) -> tuple[str, str | None]:
    """The number of a row as a carrier takes it and None, or as it is written and why it can't be dialed."""
    written = row.values.get(PHONE_NUMBER, "").strip()
    if row.error is not None:
        return written, row.error
    if not written:
        return written, "There is no phone number."
    try:
        return read(written), None
    except NotDialable as error:
        return written, error.reason


def _encoding(content: bytes) -> str:
    if b"\0" not in content:
        for encoding in ("utf-8-sig", "cp1252"):
            try:
                for _ in io.TextIOWrapper(io.BytesIO(content), encoding):
                    pass
            except UnicodeDecodeError:
                continue
            return encoding
    raise NotPossible("Invalid CSV format: the file is not text; save it as CSV in UTF-8")
