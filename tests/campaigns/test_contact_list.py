from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from voiceapi.campaigns.contact_list import MOST_COLUMNS, Contact, ContactList
from voiceapi.errors import NotPossible
from voiceapi.telephony.numbers import read_number


def without(found: str, column: str = "phone_number") -> str:
    """The refusal of a list that has these columns."""
    return (
        f"Source must contain a '{column}' column. It has {found}. "
        "Rename the one with the numbers, or name it in phone_number_column."
    )


ANN = {"phone_number": "+12025550101", "name": "Ann"}
NO_COUNTRY = (
    "The number needs + and its country code, as in +12025550123, unless the telephony configuration names a country."
)


def read(
    content: bytes, sip: bool = False, countries: Sequence[str] = ()
) -> list[tuple[int, str, dict[str, str], str | None]]:
    contacts = ContactList(content).contacts(partial(read_number, countries=countries, sip=sip))
    return [(each.row, each.phone_number, dict(each.values), each.skipped) for each in contacts]


@pytest.mark.parametrize(
    "content",
    [
        b"phone_number,name\n+12025550101,Ann\n",
        b"phone_number,name\r\n+12025550101,Ann",
        b"phone_number,name\r+12025550101,Ann\r",
        b"\xef\xbb\xbfphone_number,name\n+12025550101,Ann\n",
        b"phone_number;name\n+12025550101;Ann\n",
        b"phone_number\tname\n+12025550101\tAnn\n",
        b'"phone_number","name"\n"+12025550101","Ann"\n',
        b"  Phone_Number , NAME\n+12025550101,Ann\n",
        b"\n  ,\nphone_number,name\n\n,,\n+12025550101,Ann\n \n",
        b"phone_number,name\n+12025550101,Ann,surplus,cells\n",
        b"name,phone_number,name\nBob,+12025550101,Ann\n",
        b"phone_number,,name\n+12025550101,nameless,Ann\n",
    ],
)
def test_the_many_ways_to_write_one_list(content: bytes) -> None:
    contacts = ContactList(content)
    assert list(contacts.contacts(partial(read_number, sip=False))) == [Contact(1, "+12025550101", ANN)]
    assert set(contacts.columns) - {""} == {"phone_number", "name"}


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        (b'"Ann\r\nof ""Troy"""', 'Ann\r\nof "Troy"'),
        (b'"a;b,c"', "a;b,c"),
        ("Zoë €".encode(), "Zoë €"),
        ("Zoë €".encode("cp1252"), "Zoë €"),
        (b" as written ", " as written "),
        (b"", ""),
    ],
)
def test_a_cell_is_kept_as_written(cell: bytes, name: str) -> None:
    assert read(b"phone_number,name\n+12025550101," + cell) == [(1, "+12025550101", {**ANN, "name": name}, None)]


def test_a_short_row_is_filled_up() -> None:
    content = b"name,phone_number,city\nAnn,+12025550101\n"
    assert read(content) == [(1, "+12025550101", {**ANN, "city": ""}, None)]


@pytest.mark.parametrize(
    ("written", "number", "reason"),
    [
        ("+1 (202) 555-0101", "+12025550101", None),
        ("  +12025550101 ", "+12025550101", None),
        ("2025550101", "2025550101", NO_COUNTRY),
        ("0044 20 7946 0000", "+442079460000", None),
        ("", "", "There is no phone number."),
        ("   ", "", "There is no phone number."),
        ("+1202", "+1202", "A number to call is written with + and its country code, such as +12025550123."),
        ("call me", "call me", "A number to call is written with + and its country code, such as +12025550123."),
        (
            "+120255501019",
            "+120255501019",
            "+120255501019 is too short or too long for a telephone number of its country.",
        ),
        (
            "sip:ann@example.org",
            "sip:ann@example.org",
            "This carrier calls telephone numbers only, such as +12025550123, not SIP addresses.",
        ),
    ],
)
def test_a_number_is_made_ready_or_skipped_with_the_reason(written: str, number: str, reason: str | None) -> None:
    values = {"name": "Ann", "phone_number": written}
    assert read(f"name,phone_number\nAnn,{written}\n".encode()) == [(1, number, values, reason)]


def test_a_sip_address_is_called_where_the_carrier_takes_them() -> None:
    values = {"phone_number": "SIP:ann@Example.org:5060"}
    assert read(b"phone_number\nSIP:ann@Example.org:5060\n", sip=True) == [(1, "sip:ann@example.org", values, None)]


def test_a_number_is_called_once_however_it_is_written() -> None:
    content = b"phone_number\n+12025550101\n+12025550102\n+1 202 555 0101\n+1-202-555-0101\n"
    reasons = [reason for _, _, _, reason in read(content)]
    assert reasons == [None, None, "The number is in row 1 already.", "The number is in row 1 already."]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'+12025550109,"a"b', "Line 3 can't be read as a row of CSV: ',' expected after '\"'."),
        (
            b'+12025550109,"opened\nand"broken',
            "Lines 3 to 4 can't be read as a row of CSV: ',' expected after '\"'.",
        ),
        (
            b"+12025550109," + b"x" * 140_000,
            "Line 3 can't be read as a row of CSV: field larger than field limit (131072).",
        ),
    ],
)
def test_a_row_that_cannot_be_read_stops_no_other(bad: bytes, reason: str) -> None:
    content = b"phone_number,name\n+12025550101,Ann\n" + bad + b"\n+12025550102,Ann\n"
    assert read(content) == [
        (1, "+12025550101", ANN, None),
        (2, "", {}, reason),
        (3, "+12025550102", {**ANN, "phone_number": "+12025550102"}, None),
    ]


def test_a_quote_that_is_never_closed_is_told_at_the_end() -> None:
    content = b'phone_number,name\n+12025550101,"Ann\n+12025550102,Bob\n'
    assert read(content) == [(1, "", {}, "Lines 2 to 3 can't be read as a row of CSV: unexpected end of data.")]


def test_a_thousand_columns() -> None:
    names = [f"c{number}" for number in range(1000)]
    content = ",".join(["phone_number", *names]) + "\n" + ",".join(["+12025550101", *names])
    values = {"phone_number": "+12025550101", **{name: name for name in names}}
    assert read(content.encode()) == [(1, "+12025550101", values, None)]


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"", "CSV file must have a header row and at least one data row"),
        (b"\n\n", "CSV file must have a header row and at least one data row"),
        (b"phone_number,name\n", "CSV file must have a header row and at least one data row"),
        (b"phone_number,name\n,\n", "CSV file must have a header row and at least one data row"),
        (b"name,city\nAnn,Troy\n", without("'name', 'city'")),
        (b"Name;Phone\nAnn;+12025550101\n", without("'name', 'phone'")),
        (b"phone number\n+12025550101\n", without("'phone number'")),
        (b"phone" + b",c" * 22 + b"\n+12025550101", without("'phone'" + ", 'c'" * 19 + " and 3 more")),
        (b"p" * 60 + b"\n+12025550101", without(f"'{'p' * 50}'")),
        (b'"a"b\n+12025550101\n', without("no column with a name")),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "Invalid CSV format: the file is not text; save it as CSV in UTF-8"),
        (
            "phone_number\n+12025550101".encode("utf-16"),
            "Invalid CSV format: the file is not text; save it as CSV in UTF-8",
        ),
        (b"phone_number\n+12025550101\x81", "Invalid CSV format: the file is not text; save it as CSV in UTF-8"),
        (
            b"phone_number" + b",c" * MOST_COLUMNS + b"\n+12025550101",
            "Source has 2001 columns; at most 2000 are possible",
        ),
    ],
)
def test_what_is_no_contact_list_is_refused(content: bytes, detail: str) -> None:
    with pytest.raises(NotPossible) as refusal:
        ContactList(content)
    assert refusal.value.detail == detail


def test_another_column_has_the_numbers() -> None:
    content = b"Name;Phone ;phone_number\nAnn;+12025550101;old\nBob;;+12025550102\n"
    contacts = ContactList(content, " PHONE")
    assert contacts.columns == ("name", "phone", "phone_number")
    ann = {"name": "Ann", "phone": "+12025550101", "phone_number": "+12025550101"}
    bob = {"name": "Bob", "phone": "", "phone_number": ""}
    assert list(contacts.contacts(partial(read_number, sip=False))) == [
        Contact(1, "+12025550101", ann),
        Contact(2, "", bob, "There is no phone number."),
    ]
    assert ContactList(content, " ").columns == contacts.columns
    with pytest.raises(NotPossible) as refusal:
        ContactList(content, "Mobile")
    assert refusal.value.detail == without("'name', 'phone', 'phone_number'", "mobile")


def test_the_rows_can_be_read_again() -> None:
    contacts = ContactList(b"phone_number\n+12025550101\n+12025550102\n")
    assert list(contacts.rows()) == list(contacts.rows())


@given(st.binary(max_size=200).map(lambda content: b"phone_number,name\n" + content) | st.binary(max_size=200))
@example(b'phone_number\n"')
@example(b'"phone_number\n')
@example(b"\xff\xfe")
@example(b"\xef\xbb\xbf")
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        contacts = ContactList(content)
    except NotPossible:
        return
    found = list(contacts.contacts(partial(read_number, sip=True)))
    assert [contact.row for contact in found] == list(range(1, len(found) + 1))
    called = [contact.phone_number for contact in found if contact.skipped is None]
    assert len(set(called)) == len(called)


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(
    st.lists(st.tuples(st.integers(0, 9999), CELLS), min_size=1, max_size=10),
    st.sampled_from(",;\t"),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["utf-8", "utf-8-sig"]),
)
def test_what_a_csv_writer_writes_is_read_back(
    rows: list[tuple[int, str]], delimiter: str, ending: str, encoding: str
) -> None:
    text = io.StringIO(newline="")
    writer: Any = csv.writer(text, delimiter=delimiter, lineterminator=ending, quoting=csv.QUOTE_ALL)
    writer.writerow(["phone_number", "name"])
    expected = [{"phone_number": f"+1202555{number:04}", "name": name} for number, name in rows]
    for values in expected:
        writer.writerow(values.values())
    contacts = ContactList(text.getvalue().encode(encoding))
    assert [dict(row.values) for row in contacts.rows()] == expected
