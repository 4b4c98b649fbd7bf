"""A contact list is refused as a whole with a sentence, or each of its rows is a contact or a reason."""

from __future__ import annotations

from functools import partial

from voiceapi.campaigns.contact_list import MOST_COLUMNS, PHONE_NUMBER, ContactList, number_of
from voiceapi.errors import NotPossible
from voiceapi.store.dialing import listed_form
from voiceapi.telephony.numbers import read_number

READ = partial(read_number, countries=("DE",), sip=True)
SEEDS = (
    b"phone_number,name\n+12025550123,Ann\n+12025550123,Ann again\n,\n123,Bob\n",
    '\ufeffPhone_Number;Name;Name\r\n+4930123456;Zoë;x\r\n"+49 30 123457";"two\r\nlines"\r\n'.encode(),
    "phone_number\tname\n+12025550123\tZo\xeb\n".encode("cp1252"),
    b'phone_number\n"+12025550123\n',
    b'phone_number\n"+1202"5550123\n+12025550124\n',
    b"name\nAnn\n",
    b"phone_number\n",
    b"phone_number,reason\nsip:ann@example.org,asked\nSIP:[::1]:5060,\n004930123456,x\n",
    b"phone_number\r+12025550123\r+12025550124",
    b"a\0b",
    b"\xff\xfep\0h\0",
)


def check(data: bytes) -> None:
    try:
        listed = ContactList(data)
    except NotPossible as refusal:
        assert str(refusal.detail)
        return
    assert PHONE_NUMBER in listed.columns
    assert len(listed.columns) <= MOST_COLUMNS
    rows = list(listed.rows())
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        assert (row.error is None) == bool(row.values)
        assert set(row.values) <= set(listed.columns) - {""}
        "".join(row.values.values()).encode()
    seen = set()
    contacts = list(listed.contacts(READ))
    assert len(contacts) == len(rows)
    for contact, row in zip(contacts, rows, strict=True):
        number, error = number_of(row, READ)
        assert contact.row == row.number
        assert contact.phone_number == number
        if error is not None:
            assert contact.skipped == error
        elif contact.skipped is None:
            assert number not in seen
            assert READ(number) == number
            assert listed_form(listed_form(number)) == listed_form(number)
            seen.add(number)
        else:
            assert number in seen
