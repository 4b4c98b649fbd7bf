"""Creates the tables, or migrates them to the schema of this release.

`PRAGMA user_version`, on PostgreSQL the table VERSION_TABLE, is the version of the schema. A new database gets the
newest version at once; an older file is backed up beside itself and then migrated, all steps in one transaction.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..security import Vault
from ..strict_json import decode
from . import counts, encryption, indexes, knowledge
from .base import Record
from .campaigns import Campaign, Contact, Decision, DoNotCall, Upload
from .cases import ConversationCase
from .chats import ChatSession, ChatTurn
from .database import Store, StoreError, bound_path, either, erasing, execute, write
from .failures import DatabaseUnavailable, cause_of, is_lock
from .idempotency import IdempotencyKey
from .knowledge import Document, Passage
from .organizations import ApiKey, Credential, Organization
from .outbound_calls import OutboundCall
from .patience import Patience
from .postcall import Delivery, DeliveryAttempt, FollowUp, WebhookSecret
from .private_files import keep_private
from .runs import Event, Run, StatusCallback, Turn
from .secret_check import SecretCheck
from .steps import Snapshot, Step
from .telephony import PhoneNumber, TelephonyConfiguration
from .tools import Tool
from .workflows import TriggerPath, Workflow, WorkflowVersion, content_hash

VERSION = 7
TABLES: tuple[type[Record], ...] = (
    *(SecretCheck, Organization, ApiKey, Credential, Tool, Document, Passage, WebhookSecret),
    *(Workflow, WorkflowVersion, TriggerPath, ConversationCase, TelephonyConfiguration, PhoneNumber),
    *(Upload, Campaign, Contact, Decision, DoNotCall, OutboundCall),
    *(Run, Event, Step, Snapshot, Turn, StatusCallback, IdempotencyKey, ChatSession, ChatTurn),
    *(FollowUp, Delivery, DeliveryAttempt),
)
# Up to this version secrets were stored in clear, and what was deleted wasn't always overwritten.
ENCRYPTED_SINCE = 5
# Since this version the totals of lists are kept.
COUNTED_SINCE = 6
# For how long, and after what pause each time, a file that another process has locked is tried again.
LOCKED_SECONDS, PAUSE_SECONDS = 30.0, 0.1

# On PostgreSQL: one row with the version of the schema.
VERSION_TABLE = "voiceapi_schema"
# The oldest release of PostgreSQL that is known to work.
LEAST_RELEASE = 14
# How long a start waits for another one that creates or migrates the tables.
MIGRATION = Patience(120.0)

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


def _chats_to_3(database: Any) -> None:
    """A chat stores the functions its model is offered; those of older chats are computed by their next turn."""
    database.execute_sql('ALTER TABLE "chat_session" ADD COLUMN functions TEXT')


def _to_3(database: Any, _: Vault) -> None:
    for change in (_runs_to_3, _campaigns_to_3, _pace_to_3, _chats_to_3):
        change(database)


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
    database.execute_sql(either(INDEX_OF_7, INDEX_OF_7_IN_POSTGRESQL))
    if bound_path() is None:
        database.execute_sql(VIEW_OF_7)


# From version N to N + 1. A step uses SQL only, because the models are those of the newest version; new tables are
# created after the last step.
STEPS: Mapping[int, Callable[[Any, Vault], None]] = {1: _to_2, 2: _to_3, 3: _to_4, 4: _to_5, 5: _to_6, 6: _to_7}


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
    except DatabaseUnavailable as unavailable:
        raise StoreError(f"The database {store.name} can't be opened: {_reason(cause_of(unavailable))}.") from None
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
            _copy(store, found)
            if found < ENCRYPTED_SINCE:
                _empty_free_pages(store)
        if found < version:
            with erasing(store), write():
                # Read again: another process may have migrated while this one waited for the lock.
                current = _version(store)
                for step in range(current, version) if current else ():
                    steps[step](store.database, vault)
                known = set(store.database.get_tables())
                store.database.create_tables([table for table in TABLES if table._meta.table_name not in known])
                knowledge.create(store)
                if current == 0:
                    indexes.create(store)
                if current < COUNTED_SINCE:
                    counts.create(store)
                _set_version(store, version)
        return found


def _reason(error: BaseException | None) -> str:
    """What an error says, in one line; of PostgreSQL's without the statement that it is about."""
    diagnosis = getattr(getattr(error, "orig", error), "diag", None)
    text = getattr(diagnosis, "message_primary", None) or str(error)
    return " ".join(text.split()).rstrip(" .!?")


def _version(store: Store) -> int:
    if store.path is not None:
        return int(store.database.execute_sql("PRAGMA user_version").fetchone()[0])
    release, encoding = store.database.execute_sql(
        "SELECT current_setting('server_version'), current_setting('server_encoding')"
    ).fetchone()
    if int(release.partition(".")[0]) < LEAST_RELEASE:
        raise StoreError(f"The server of {store.name} is PostgreSQL {release}; it must be {LEAST_RELEASE} or newer.")
    if encoding != "UTF8":
        raise StoreError(f"{store.name} has the encoding {encoding}: make a database with ENCODING 'UTF8'.")
    tables = set(store.database.get_tables())
    if VERSION_TABLE in tables:
        return int(store.database.execute_sql(f"SELECT version FROM {VERSION_TABLE}").fetchone()[0])
    names = sorted(tables.intersection(table._meta.table_name for table in TABLES))
    if names:
        raise StoreError(
            f"{store.name} has tables of another application, or of a release that didn't know PostgreSQL in full: "
            f"{', '.join(names[:3])}. Use a database, or a schema of its search_path, of its own."
        )
    return 0


def _set_version(store: Store, version: int) -> None:
    if store.path is not None:
        store.database.execute_sql(f"PRAGMA user_version = {version}")
        return
    store.database.execute_sql(f"CREATE TABLE IF NOT EXISTS {VERSION_TABLE} (version INTEGER NOT NULL)")
    store.database.execute_sql(f"DELETE FROM {VERSION_TABLE}")
    store.database.execute_sql(f"INSERT INTO {VERSION_TABLE} VALUES ({version})")


def _empty_free_pages(store: Store) -> None:
    """Write the file without the free pages in which what was deleted long ago may still be read."""
    if store.path is not None:
        store.database.execute_sql("VACUUM")


def _copy(store: Store, found: int) -> None:
    if store.path is None:
        return
    copy = Path(f"{store.path}.version-{found}")
    keep_private(copy)  # up to version 4 it holds secrets in clear
    target = sqlite3.connect(copy)
    try:
        store.database.connection().backup(target)
    finally:
        target.close()
