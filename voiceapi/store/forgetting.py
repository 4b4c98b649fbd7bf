"""Finds and deletes what is kept about one phone number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from peewee import fn

from .base import Record, in_batches, json_text
from .campaigns import Campaign, Contact, Decision, Upload
from .chats import ChatSession, ChatTurn
from .database import execute, sql
from .fields import Bytes
from .idempotency import IdempotencyKey
from .postcall import Delivery, FollowUp
from .runs import Run, RunEvent, Snapshot, StatusCallback, Step, Turn
from .telephony import PhoneNumber, RejectedCall, TelephonyConfiguration
from .workflows import ConversationCase, Workflow

# The texts of a run and of its rows in other tables in which a number may be.
TEXTS: tuple[tuple[type[Record], str, tuple[str, ...]], ...] = (
    (Run, "id", ("caller_number", "called_number", "initial_context", "gathered_context", "annotations", "name")),
    (RunEvent, "run_id", ("payload",)),
    (Step, "run_id", ("event",)),
    (Snapshot, "run_id", ("state",)),
    (Turn, "run_id", ("caller_text", "actions")),
    (StatusCallback, "run_id", ("fields",)),
    (ChatSession, "run_id", ("checkpoint",)),
    (ChatTurn, "run_id", ("user_text", "assistant_text", "events", "steps", "checkpoint")),
    (Delivery, "run_id", ("body", "url")),
    (IdempotencyKey, "run_id", ("answer",)),
)
# What stands in a text like a phone number, with the marks that people write it with.
_WRITTEN = re.compile(r"\+?[0-9][0-9 \xa0()./-]{5,}[0-9]")
# A record of a contact list: lines, of which those within quotes belong together.
_RECORD = re.compile(rb'(?:"[^"]*(?:"|\Z)|[^"\r\n]++)*(?:\r\n|\n|\r|\Z)')
LONGEST_COUNTRY_CODE = 3
SHORTEST_NATIONAL = 7


@dataclass(frozen=True)
class ForgottenNumber:
    """A phone number in E.164, or a SIP address, as it may stand in texts."""

    address: str

    @property
    def needle(self) -> str:
        """What a text must contain, as its last digits, to be read at all."""
        return self.address.removeprefix("+")

    def is_in(self, text: str) -> bool:
        """True if the text holds the number in full, not only as a part of another one."""
        if not self.address.startswith("+"):
            return self.address.lower() in text.lower()
        return re.search(rf"(?<![0-9]){self.needle}(?![0-9])", text) is not None

    def is_written_in(self, text: str) -> bool:
        """True if a line of a contact list holds it, also in its national form and with blanks or hyphens."""
        if not self.address.startswith("+"):
            return self.is_in(text)
        return any(self._is_same(re.sub("[^0-9]", "", found[0]).lstrip("0")) for found in _WRITTEN.finditer(text))

    def _is_same(self, digits: str) -> bool:
        missing = len(self.needle) - len(digits)
        return (
            0 <= missing <= LONGEST_COUNTRY_CODE
            and self.needle.endswith(digits)
            and (not missing or len(digits) >= SHORTEST_NATIONAL)
        )


def runs_of(number: ForgottenNumber, organization: int | None) -> list[Run]:
    """The runs that hold the number anywhere; of every organization if none is given."""
    found: set[int] = set()
    for model, key, columns in TEXTS:
        table: Any = model._meta
        where = " OR ".join(f"{_searched(table.columns[column])} {_like()} ?" for column in columns)
        statement = f'SELECT {key}, {", ".join(columns)} FROM "{table.table_name}" WHERE {where}'
        for id, *values in execute(statement, *[f"%{number.needle}%"] * len(columns)).fetchall():
            if id is not None and any(number.is_in(_text(value)) for value in values if value is not None):
                found.add(id)
    runs = [Run.get_by_id(id) for id in sorted(found)]
    return [run for run in runs if organization in (None, run.organization_id)]


def _like() -> str:
    """LIKE without regard to the case of ASCII letters, as SQLite has it: that of a SIP address may differ."""
    return sql(sqlite="LIKE", postgresql="ILIKE")


def _searched(field: Any) -> str:
    """The text of a column for LIKE; of bytes, PostgreSQL shows those that aren't ASCII as their numbers."""
    cast = f"CAST({field.column_name} AS TEXT)"
    return sql(sqlite=cast, postgresql=f"encode({field.column_name}, 'escape')") if type(field) is Bytes else cast


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def contacts_of(number: ForgottenNumber, organization: int | None) -> list[Contact]:
    """The contacts with the number, as the one to call or among their variables."""
    statement = f"SELECT id FROM contact WHERE phone_number {_like()} ? OR variables {_like()} ?"
    ids = [id for (id,) in execute(statement, *[f"%{number.needle}%"] * 2).fetchall()]
    found: list[Contact] = []
    for some in in_batches(ids):
        chosen = Contact.select(Contact, Campaign).join(Campaign).where(Contact.id.in_(some)).order_by(Contact.id)
        # Not `+=`: to Peewee, a list plus a query is a UNION.
        found.extend(chosen if organization is None else chosen.where(Campaign.organization == organization))
    return [
        contact
        for contact in found
        if number.is_in(contact.phone_number) or any(number.is_in(str(value)) for value in contact.variables.values())
    ]


def cases_of(number: ForgottenNumber, organization: int | None) -> list[ConversationCase]:
    """The stored conversation cases that hold the number, as one that was made from a run may."""
    statement = f"SELECT id FROM conversation_case WHERE name {_like()} ? OR content {_like()} ?"
    ids = [id for (id,) in execute(statement, *[f"%{number.needle}%"] * 2).fetchall()]
    found: list[ConversationCase] = []
    for some in in_batches(ids):
        chosen = ConversationCase.select(ConversationCase, Workflow).join(Workflow)
        chosen = chosen.where(ConversationCase.id.in_(some))
        found.extend(chosen if organization is None else chosen.where(Workflow.organization == organization))
    texts = ((case, f"{case.name}\n{json_text(case, ConversationCase.content)}") for case in found)
    return [case for case, text in texts if number.is_in(text)]


def uploads_without(number: ForgottenNumber, organization: int | None) -> Iterator[tuple[Upload, bytes, int]]:
    """The uploaded contact lists that hold the number, each with its content without those rows, and their number."""
    owned = Upload.select(Upload.id)
    owned = owned if organization is None else owned.where(Upload.organization == organization)
    for id in [row.id for row in owned]:  # one content at a time, since a list may be large
        upload = Upload.get_by_id(id)
        records = _RECORD.findall(bytes(upload.content))
        kept = [record for record in records if not number.is_written_in(record.decode("utf-8", "replace"))]
        if len(kept) < len(records):
            yield upload, b"".join(kept), len(records) - len(kept)


def is_own(number: ForgottenNumber, organization: int | None) -> bool:
    """True for a number of a telephony configuration: every call from or to it holds it."""
    own = PhoneNumber.select().where(PhoneNumber.address_normalized == number.address)
    return bool((own if organization is None else own.where(PhoneNumber.organization == organization)).exists())


def list_is_being_read(organization: int | None) -> bool:
    """True while a campaign's contact list is being read."""
    reading = Campaign.select().where(Campaign.source_status == "in_progress")
    return bool((reading if organization is None else reading.where(Campaign.organization == organization)).exists())


def delete_runs(runs: Sequence[Run]) -> None:
    """Delete runs with all that belongs to them."""
    for run in runs:
        for model in (RunEvent, Step, Snapshot, Turn, StatusCallback, ChatTurn, ChatSession, FollowUp, Delivery):
            table: Any = model
            table.delete().where(table.run == run.id).execute()
        IdempotencyKey.delete().where(IdempotencyKey.run == run.id).execute()
        Run.delete().where(Run.id == run.id).execute()


def delete_contacts(contacts: Sequence[Contact]) -> None:
    """Delete contacts with the decisions about them."""
    for contact in contacts:
        Decision.delete().where(Decision.contact == contact.id).execute()
        Contact.delete().where(Contact.id == contact.id).execute()


def delete_cases(cases: Sequence[ConversationCase]) -> None:
    """Delete stored conversation cases."""
    for some in in_batches([case.id for case in cases]):
        ConversationCase.delete().where(ConversationCase.id.in_(some)).execute()


def delete_rejected_calls(number: ForgottenNumber, organization: int | None) -> int:
    """Delete the calls from a number that no workflow took; returns how many rows that were."""
    same = fn.LOWER(RejectedCall.from_number) == number.address.lower()
    owned = TelephonyConfiguration.select(TelephonyConfiguration.id)
    owned = owned if organization is None else owned.where(TelephonyConfiguration.organization == organization)
    return int(RejectedCall.delete().where(same, RejectedCall.telephony_configuration.in_(owned)).execute())


def store_upload(upload: Upload, content: bytes) -> None:
    """Replace the content of an uploaded file."""
    Upload.update(content=content).where(Upload.id == upload.id).execute()
