"""Creates the tables, or migrates them to the schema of this release.

`PRAGMA user_version`, on PostgreSQL the table `voiceapi_schema`, is the version of the schema. A new database gets the
newest version at once; an older file is backed up beside itself and then migrated, all steps in one transaction.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..security import Vault
from ..strict_json import decode
from . import counts, dialing, encryption, indexes, knowledge
from .base import Record
from .campaigns import Campaign, Contact, Decision, DoNotCall, Upload
from .chats import ChatSession, ChatTurn
from .database import Store, execute, sql, truncating_wal, write
from .encryption import SecretCheck
from .failures import DatabaseUnavailable, StoreError, cause_of, is_lock
from .idempotency import IdempotencyKey
from .knowledge import Document, Passage
from .locks import BeginTimeout
from .organizations import ApiKey, CountedCall, Credential, Organization
from .postcall import DUE, Delivery, DeliveryAttempt, FollowUp, Listener, WebhookSecret
from .runs import Run, RunEvent, Snapshot, StatusCallback, Step, Turn
from .telephony import Connection, PhoneNumber, RejectedCall, TelephonyConfiguration, Tunnel
from .tools import Tool
from .workflows import ConversationCase, TriggerPath, Workflow, WorkflowVersion, content_hash

VERSION = 10
TABLES: tuple[type[Record], ...] = (
    *(SecretCheck, Organization, ApiKey, Credential, Tool, Document, Passage, WebhookSecret),
    *(Workflow, WorkflowVersion, TriggerPath, ConversationCase),
    *(TelephonyConfiguration, PhoneNumber, RejectedCall, Connection, Tunnel),
    *(Upload, Campaign, Contact, Decision, DoNotCall, CountedCall),
    *(Run, RunEvent, Step, Snapshot, Turn, StatusCallback, IdempotencyKey, ChatSession, ChatTurn),
    *(FollowUp, Delivery, DeliveryAttempt, Listener),
)
# Up to this version secrets were stored in clear, and what was deleted wasn't always overwritten.
ENCRYPTED_SINCE = 5
# Since this version the totals of lists are kept as `counts` does.
COUNTED_SINCE = 8
# Since this version passages are searched as `knowledge` does; a migration indexes so many of them at once.
SEARCHED_SINCE, INDEXED_AT_ONCE = 9, 1000
# For how long, and after what pause each time, a file that another process has locked is tried again.
LOCKED_SECONDS, PAUSE_SECONDS = 30.0, 0.1
# How long a start waits for another one that creates or migrates the tables.
MIGRATION = BeginTimeout(120.0)

# The columns and indexes that version 2 adds.
COLUMNS_OF_2 = (
    ("telephony_configuration", "paced_until INTEGER"),
    ("snapshot", "calling INTEGER"),
    ("turn", "heard TEXT NOT NULL DEFAULT ''"),
    ("turn", "answered_at INTEGER"),
    ("turn", "worker TEXT NOT NULL DEFAULT ''"),
    ("turn", "touched_at INTEGER NOT NULL DEFAULT 0"),
    ("status_callback", "outcome TEXT"),
)
INDEXES_OF_2 = (
    "CREATE UNIQUE INDEX run_one_inbound_call ON run (telephony_configuration_id, carrier_call_id) "
    "WHERE call_type = 'inbound'",
    "CREATE INDEX campaign_active ON campaign (state) WHERE state IN ('syncing', 'running')",
)


def _to_2(database: Any, _: Vault) -> None:
    """Tools, documents, webhooks and contacts get their tables; turns may be pending."""
    for table, column in COLUMNS_OF_2:
        database.execute_sql(f'ALTER TABLE "{table}" ADD COLUMN {column}')
    for index in INDEXES_OF_2:
        database.execute_sql(index)
    # Every turn of version 1 was stored with its answer.
    database.execute_sql('UPDATE "turn" SET answered_at = at, touched_at = at')


def _runs_to_3(database: Any) -> None:
    """Runs have named states; a call that may have been placed, without any report of its carrier, is `unknown`."""
    database.execute_sql('ALTER TABLE "run" RENAME COLUMN overdue_at TO deadline_at')
    database.execute_sql('ALTER TABLE "turn" RENAME COLUMN heard TO caller_text')
    database.execute_sql(
        """UPDATE "run" SET state = CASE
            WHEN state = 'running' THEN 'talking'
            WHEN deadline_at IS NULL THEN 'prepared'
            WHEN carrier_call_id IS NOT NULL THEN 'ringing'
            ELSE 'unknown' END
        WHERE state != 'completed'"""
    )


# The columns that move from the table `dialing` to `campaign`: name, type, name in `dialing`.
CAMPAIGN_COLUMNS_OF_3 = (
    ("calling_hours", "TEXT", "calling_hours"),
    ("max_attempts_per_day", "INTEGER", "max_attempts_per_day"),
    ("source_status", "TEXT NOT NULL DEFAULT 'pending'", "source_status"),
    ("source_error", "TEXT", "source_error"),
    ("synced_at", "INTEGER", "synced_at"),
    ("source_lease_until", "INTEGER", "lease_until"),
    ("breaker_reset_at", "INTEGER NOT NULL DEFAULT 0", "watched_since"),
)


def _campaigns_to_3(database: Any) -> None:
    """The table `dialing` is merged into `campaign`; a file that began as version 1 may lack that table."""
    for name, type, _ in CAMPAIGN_COLUMNS_OF_3:
        database.execute_sql(f'ALTER TABLE "campaign" ADD COLUMN {name} {type}')
    database.execute_sql('UPDATE "campaign" SET breaker_reset_at = created_at')
    if "dialing" in database.get_tables():
        changes = ", ".join(f"{name} = dialing.{was}" for name, _, was in CAMPAIGN_COLUMNS_OF_3)
        database.execute_sql(f'UPDATE "campaign" SET {changes} FROM dialing WHERE dialing.campaign_id = campaign.id')
        database.execute_sql("DROP TABLE dialing")


def _pace_to_3(database: Any) -> None:
    """The table `pace` is merged into `telephony_configuration`: the dialer and other calls have one pace."""
    if "pace" in database.get_tables():
        # One call a second unless it is configured: no carrier's default is slower.
        database.execute_sql(
            """UPDATE telephony_configuration
            SET paced_until = max(coalesce(paced_until, 0),
                last_call_at + CAST(1000000 / coalesce(nullif(calls_per_second, 0), 1) AS INTEGER))
            FROM pace WHERE pace.configuration_id = telephony_configuration.id"""
        )
        database.execute_sql("DROP TABLE pace")


def _to_3(database: Any, _: Vault) -> None:
    for change in (_runs_to_3, _campaigns_to_3, _pace_to_3):
        change(database)
    # A chat stores the functions its model is offered; those of older chats are computed by their next turn.
    database.execute_sql('ALTER TABLE "chat_session" ADD COLUMN functions TEXT')


# The columns that version 4 adds.
COLUMNS_OF_4 = (
    ("run", "slot_until INTEGER"),
    ("run", "check_at INTEGER"),
    ("run", "call_id_confirmed INTEGER NOT NULL DEFAULT 0"),
    ("run", "hang_up_reason TEXT"),
    ("run", "hung_up_at INTEGER"),
    ("run", "phone_worker TEXT"),
    ("run", "phone_lease_until INTEGER"),
    ("campaign", "dialed_at INTEGER"),
)


def _to_4(database: Any, _: Vault) -> None:
    """A call in progress holds its slot until its deadline, and its carrier is asked about it at once."""
    for table, column in COLUMNS_OF_4:
        database.execute_sql(f'ALTER TABLE "{table}" ADD COLUMN {column}')
    database.execute_sql(
        'UPDATE "run" SET slot_until = deadline_at, check_at = created_at WHERE deadline_at IS NOT NULL'
    )
    # No process has a lease on the simulated calls, so the first one may carry them out.
    database.execute_sql(
        """UPDATE "run" SET phone_lease_until = created_at
        WHERE deadline_at IS NOT NULL AND mode = 'simulator' AND call_type = 'outbound'"""
    )
    database.execute_sql("DROP INDEX run_in_progress")
    database.execute_sql(
        "CREATE INDEX run_in_progress ON run (organization_id, slot_until) WHERE deadline_at IS NOT NULL"
    )


def _to_5(database: Any, vault: Vault) -> None:
    """What is secret in definitions, tools and webhooks is encrypted."""
    encryption.encrypt_clear(database, vault)


# The indexes of runs that version 6 replaces, and those that it adds.
INDEXES_BEFORE_6 = (
    "run_workflow_id_created_at_id",
    "run_campaign_id_created_at_id",
    "run_by_duration",
    "run_by_duration_rising",
)
INDEXES_OF_6 = (
    "CREATE INDEX run_of_workflow ON run "
    "(workflow_id, created_at, id, state, disposition, duration, call_type, mode, campaign_id, name)",
    "CREATE INDEX run_of_campaign ON run (campaign_id, created_at, id, state, disposition, duration, name) "
    "WHERE campaign_id IS NOT NULL",
    "CREATE INDEX run_by_duration ON run (workflow_id, duration, id)",
    "CREATE INDEX run_by_name ON run (workflow_id, name, id)",
    "CREATE INDEX run_by_id ON run (workflow_id, id)",
)


def _to_6(database: Any, _: Vault) -> None:
    """The indexes of runs hold what their lists are filtered by."""
    for name in INDEXES_BEFORE_6:
        database.execute_sql(f'DROP INDEX "{name}"')
    for index in INDEXES_OF_6:
        database.execute_sql(index)


# Version 7 replaces an index of runs, so that it also holds the version, and the view that PostgreSQL's lists read.
INDEX_OF_7 = (
    "CREATE INDEX run_of_workflow ON run "
    "(workflow_id, created_at, id, state, disposition, duration, call_type, mode, campaign_id, name, version_id)"
)
INDEX_OF_7_IN_POSTGRESQL = (
    "CREATE INDEX run_of_workflow ON run (workflow_id, created_at, id, state, disposition_key, duration, call_type, "
    "mode, campaign_id, name_key, version_id)"
)
VIEW_OF_7 = """CREATE OR REPLACE VIEW listed_run AS SELECT id, organization_id, workflow_id, campaign_id, created_at,
state, duration, call_type, mode, caller_number, called_number, name_key AS name, disposition_key AS disposition, tags,
version_id FROM run"""


def _to_7(database: Any, _: Vault) -> None:
    """Versions have the hash of their content; what the runs until now were carried out by isn't known for sure.

    An index of runs holds their versions.
    """
    database.execute_sql("ALTER TABLE workflow_version ADD COLUMN content_hash TEXT NOT NULL DEFAULT ''")
    database.execute_sql("ALTER TABLE run ADD COLUMN content_hash TEXT")
    contents = "SELECT definition, configurations, template_context_variables FROM workflow_version WHERE id = ?"
    for (id,) in execute("SELECT id FROM workflow_version").fetchall():
        content = (decode(text) for text in execute(contents, id).fetchone())
        execute("UPDATE workflow_version SET content_hash = ? WHERE id = ?", content_hash(*content), id)
    database.execute_sql("DROP INDEX run_of_workflow")
    database.execute_sql(sql(INDEX_OF_7, INDEX_OF_7_IN_POSTGRESQL))
    for view in sql([], [VIEW_OF_7]):
        database.execute_sql(view)


# The columns that version 8 adds.
COLUMNS_OF_8 = (
    ("telephony_configuration", "country TEXT"),
    ("campaign", "phone_number_column TEXT"),
    ("campaign", "contacts_to_call INTEGER"),
)  # fmt: skip
# Version 8 replaces an index of runs once more, and the view, so that they also hold whether a run is a test.
INDEX_OF_8 = f"{INDEX_OF_7[:-1]}, is_test)"
INDEX_OF_8_IN_POSTGRESQL = f"{INDEX_OF_7_IN_POSTGRESQL[:-1]}, is_test)"
VIEW_OF_8 = VIEW_OF_7.replace(" FROM run", ", is_test FROM run")
# The calls of test triggers by the names that these gave them; other runs by their draft, whose copy a call keeps. A
# chat with a draft that was published since is no longer known as a test.
TESTS_BEFORE_8 = """UPDATE run SET is_test = true WHERE draft IS NOT NULL
OR version_id IN (SELECT id FROM workflow_version WHERE status = 'draft')
OR (name LIKE ? AND gathered_context LIKE ?)"""
TEST_TRIGGER = ("WR-TEST-____", '%"triggered_by"%')


def _runs_to_8(database: Any) -> None:
    """Runs say whether they are tests."""
    boolean = sql("INTEGER", "BOOLEAN")  # the type that Peewee gives such a column
    database.execute_sql(f"ALTER TABLE run ADD COLUMN is_test {boolean} NOT NULL DEFAULT false")
    execute(TESTS_BEFORE_8, *TEST_TRIGGER)
    database.execute_sql("DROP INDEX run_of_workflow")
    database.execute_sql(sql(INDEX_OF_8, INDEX_OF_8_IN_POSTGRESQL))
    database.execute_sql(indexes.TESTS)
    for view in sql([], [VIEW_OF_8]):
        database.execute_sql(view)


def _to_8(database: Any, _: Vault) -> None:
    """Configurations may have a country, and runs are tests or not. Calls that no workflow took get their table.

    SIP addresses on do-not-call lists are stored in the form that decides.
    """
    for table, column in COLUMNS_OF_8:
        # On PostgreSQL all whole numbers are of 64 bits.
        database.execute_sql(f'ALTER TABLE "{table}" ADD COLUMN {column.replace("INTEGER", sql("INTEGER", "BIGINT"))}')
    _runs_to_8(database)
    if "do_not_call" not in database.get_tables():  # a file of version 1, which had no list
        return
    listed = "SELECT id, organization_id, phone_number FROM do_not_call WHERE phone_number LIKE ? ORDER BY id"
    for id, organization, address in execute(listed, "sip%").fetchall():
        form = dialing.listed_form(address)
        if form != address:
            known = "SELECT 1 FROM do_not_call WHERE organization_id = ? AND phone_number = ?"
            if execute(known, organization, form).fetchone():
                execute("DELETE FROM do_not_call WHERE id = ?", id)
            else:
                execute("UPDATE do_not_call SET phone_number = ? WHERE id = ?", form, id)


# The full-text index until version 8: of the passages themselves on SQLite, of our own stems on PostgreSQL.
SEARCHED_UNTIL_8 = (
    "TRIGGER IF EXISTS passage_added",
    "TRIGGER IF EXISTS passage_removed",
    "TABLE IF EXISTS passage_words",
)
SEARCHED_UNTIL_8_IN_POSTGRESQL = ("TABLE IF EXISTS passage_words", "TABLE IF EXISTS document_words")


def _to_9(database: Any, _: Vault) -> None:
    """Passages are indexed again, by words that the database stems; see `knowledge`."""
    for each in sql(sqlite=SEARCHED_UNTIL_8, postgresql=SEARCHED_UNTIL_8_IN_POSTGRESQL):
        database.execute_sql(f"DROP {each}")


def _to_10(database: Any, _: Vault) -> None:
    """A turn keeps what of it was given out ahead of the rest, a workflow from which file a host's app published it.

    So does a turn of a text chat, with what led to that. A delivery keeps whether it is none of a webhook, a draft the
    secrets that were removed from it.
    """
    database.execute_sql("ALTER TABLE workflow_version ADD COLUMN removed_secrets TEXT")
    database.execute_sql(f"ALTER TABLE workflow ADD COLUMN published_from {sql('VARCHAR(64)', 'TEXT')}")
    if "turn" in database.get_tables():  # a file of version 1 has none of the tables below
        whole = sql("INTEGER", "BIGINT")
        for column in (f"ready {whole} NOT NULL DEFAULT 0", "given TEXT NOT NULL DEFAULT '[]'"):
            database.execute_sql(f"ALTER TABLE turn ADD COLUMN {column}")
        database.execute_sql(f"ALTER TABLE turn ADD COLUMN ahead_at {whole}")
        database.execute_sql("ALTER TABLE chat_turn ADD COLUMN steps TEXT NOT NULL DEFAULT '[]'")
    if "delivery" in database.get_tables():
        database.execute_sql("ALTER TABLE delivery ADD COLUMN listener TEXT")
        database.execute_sql("DROP INDEX delivery_due")
        for index in DUE:
            database.execute_sql(index)


# From version N to N + 1. A step uses SQL only, because the models are those of the newest version; new tables are
# created after the last step.
STEPS: Mapping[int, Callable[[Any, Vault], None]] = dict(
    enumerate((_to_2, _to_3, _to_4, _to_5, _to_6, _to_7, _to_8, _to_9, _to_10), 1)
)


def check_version(store: Store, version: int = VERSION) -> int:
    """The version of the schema that the file has, 0 for a new one.

    :raises StoreError: when the file is no database, can't be opened, or was written by a newer release.
    """
    return _try_while_locked(store, lambda: _check_version(store, version))


def migrate(
    store: Store, vault: Vault, version: int = VERSION, steps: Mapping[int, Callable[[Any, Vault], None]] = STEPS
) -> int:
    """Create or migrate the tables of `store`; returns the version that the file had, 0 for a new one.

    :param vault: encrypts the secrets that earlier releases stored in clear.
    :raises StoreError: when the file is no database, can't be opened, or was written by a newer release.
    """
    found = _try_while_locked(store, lambda: _migrate(store, vault, version, steps))
    store.failures.is_logged = True
    return found


def _try_while_locked(store: Store, call: Callable[[], int]) -> int:
    until = time.monotonic() + LOCKED_SECONDS
    try:
        while True:
            try:
                return call()
            except DatabaseUnavailable as unavailable:
                # Switching to WAL doesn't wait while another process does the same.
                if not is_lock(cause_of(unavailable)) or time.monotonic() >= until:
                    raise
                time.sleep(PAUSE_SECONDS)
    except DatabaseUnavailable as error:
        raise StoreError(f"The database {store.name} can't be opened: {_reason(cause_of(error))}.") from error
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"The database {store.name} can't be opened: {_reason(error)}.") from error
    except Exception as error:
        if type(error).__module__ == "peewee":
            raise StoreError(f"The database {store.name} can't be opened: {_reason(error)}.") from error
        raise


def _check_version(store: Store, version: int) -> int:
    with store.session():
        found = _version(store)
    if found > version:
        raise StoreError(
            f"{store.name} was written by a newer release: its schema is {found}, this one's is {version}. "
            "Install that release, or restore a backup made by this one."
        )
    return found


def _migrate(store: Store, vault: Vault, version: int, steps: Mapping[int, Callable[[Any, Vault], None]]) -> int:
    with store.session(MIGRATION):
        found = _check_version(store, version)
        if 0 < found < version:
            store.backend.keep_copy(found)
            if found < ENCRYPTED_SINCE:
                # Free pages may hold what was deleted long ago; PostgreSQL is known since version 6.
                store.database.execute_sql("VACUUM")
        if found < version:
            with truncating_wal(store), write():
                # Read again: another process may have migrated while this one waited for the lock.
                current = _version(store)
                for step in range(current, version) if current else ():
                    steps[step](store.database, vault)
                known = set(store.database.get_tables())
                store.database.create_tables([table for table in TABLES if table._meta.table_name not in known])
                if current < SEARCHED_SINCE:
                    knowledge.create(store)
                    while knowledge.index_missing(INDEXED_AT_ONCE):
                        pass
                if current == 0:
                    indexes.create(store)
                if current < COUNTED_SINCE:
                    counts.create(store)
                store.backend.set_schema_version(version)
        return found


def _reason(error: BaseException | None) -> str:
    """What an error says, in one line; of PostgreSQL's without the statement that it is about."""
    diagnosis = getattr(getattr(error, "orig", error), "diag", None)
    text = getattr(diagnosis, "message_primary", None) or str(error)
    return " ".join(text.split()).rstrip(" .!?")


def _version(store: Store) -> int:
    return store.backend.schema_version(table._meta.table_name for table in TABLES)
