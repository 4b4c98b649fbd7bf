"""The reasons why a database can't be used, each a sentence for its operator, logged once while it lasts."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import peewee
from playhouse.pool import MaxConnectionsExceeded

from ..errors import OutOfService

log = logging.getLogger("voiceapi")

# How often a reason is logged while it lasts.
REPEAT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the database can't be used.

    :param detail: a sentence for the client.
    :param instruction: a sentence for the operator, after the place of the database.
    :param retry_after: seconds after which a request may succeed.
    """

    detail: str
    instruction: str
    retry_after: int = 60


class StoreError(Exception):
    """A database that can't be used; its text is one line for the person who starts the service."""


class DatabaseUnavailable(OutOfService):
    """The database can't be used at the moment, and the reason is in the log. Nothing was stored."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.detail, reason.retry_after)
        self.reason = reason


LOCKED = Reason(
    "The database is locked by another program, so nothing was stored.",
    "is locked by another program. Writes are refused until it is free.",
    5,
)
BUSY = Reason(
    "Another transaction is taking long, so nothing was stored.",
    "has been busy with one transaction for long. Others are refused until it ends.",
    5,
)
FULL = Reason("The disk is full, so nothing was stored.", "can't grow: the disk is full.", 5)
READ_ONLY = Reason(
    "The database can't be written at the moment.",
    "can't be written: its file or its folder is read-only for this process.",
)
INPUT_OUTPUT = Reason(
    "The database can't be written or read at the moment.",
    "can't be written or read: the system reports an I/O error. Look at the disk, and at limits of file sizes.",
)
DAMAGED = Reason(
    "The database can't be used.",
    "is damaged. Stop the service, keep the file, and restore a backup (docs/operations.md).",
)
UNOPENED = Reason(
    "The database can't be opened at the moment.",
    "can't be opened. Look whether its folder is there, and at the limit of open files.",
    5,
)
EXHAUSTED = Reason(
    "Too many requests use the database at the moment.",
    "has no free connection: all of the pool are in use.",
    5,
)
UNREACHABLE = Reason(
    "The database can't be reached at the moment.",
    "can't be reached. Look whether its server runs, and at the way to it.",
    5,
)
# By the lower byte of SQLite's result codes. Any other error of SQLite's is a defect of ours.
REASONS: Mapping[int, Reason] = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_IOERR: INPUT_OUTPUT,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_CANTOPEN: UNOPENED,
}
# By SQLSTATE, or its class. Any other error of PostgreSQL's is a defect of ours.
SQLSTATES: Mapping[str, Reason] = {
    "08": UNREACHABLE,
    "57P": UNREACHABLE,  # its server stops or starts
    "25006": READ_ONLY,
    "25P03": UNREACHABLE,  # the server gave up a process that was silent within a transaction
    "40": BUSY,  # two transactions waited for each other
    "53100": FULL,
    "53200": EXHAUSTED,
    "53300": EXHAUSTED,
    "55P03": BUSY,
    "57014": BUSY,
    "58": INPUT_OUTPUT,
    "XX": DAMAGED,
}
# Where they are the reason, another connection may do better.
LOST = (UNREACHABLE, EXHAUSTED, READ_ONLY)

# Peewee's errors for which PostgreSQL's client has no SQLSTATE.
UNSTATED = (peewee.OperationalError, peewee.InterfaceError)
DATABASE_ERRORS = (DatabaseUnavailable, peewee.PeeweeException, sqlite3.Error, MaxConnectionsExceeded)


class Failures:
    """The failures of one database; each reason is logged once a minute, and the end of the last one, too.

    :param location: the database, as its operator named it.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        # False until the database is ready: what keeps a service from starting is told by who starts it.
        self.is_logged = False
        self._lock = threading.Lock()
        # When each reason that lasts was logged, in seconds of the monotonic clock.
        self._logged: dict[Reason, float] = {}

    def last(self) -> bool:
        """True while a reason lasts: from the failure of one transaction to the success of another."""
        return bool(self._logged)

    def find(self, error: BaseException | None) -> DatabaseUnavailable | None:
        """The error to raise in place of `error`, whose reason is logged; None if the database isn't the cause.

        The cause may be an earlier error: SQLite rolls back by itself on some, and a second ROLLBACK fails, too.
        """
        if isinstance(error, DatabaseUnavailable):
            return error
        reason = reason_of(cause_of(error))
        return None if reason is None else self.unavailable(reason)

    def unavailable(self, reason: Reason) -> DatabaseUnavailable:
        """The error of a reason, which is logged."""
        moment = time.monotonic()
        with self._lock:
            logged = self._logged.get(reason)
            is_due = self.is_logged and (logged is None or moment - logged >= REPEAT_SECONDS)
            if is_due:
                self._logged[reason] = moment
        if is_due:
            log.error("The database %s %s", self.location, reason.instruction)
        return DatabaseUnavailable(reason)

    def end(self) -> None:
        """Log that the database can be written again. A damaged one stays damaged, though a transaction succeeds."""
        with self._lock:
            ended = [reason for reason in self._logged if reason is not DAMAGED]
            for reason in ended:
                del self._logged[reason]
        if ended:
            log.warning("The database %s can be written again.", self.location)


def cause_of(error: BaseException | None) -> BaseException | None:
    """The error that says why the database can't be used, `error` itself or one before it; None if there is none."""
    while isinstance(error, DATABASE_ERRORS):
        if reason_of(error) is not None:
            return error
        error = error.__context__
    return None


def is_lock(error: BaseException | None) -> bool:
    """True if another connection's lock on the file is why a statement failed."""
    return reason_of(error) is LOCKED


def is_lost(error: BaseException | None) -> bool:
    """True if a statement failed because of its connection, so that another one may do better."""
    return not isinstance(error, MaxConnectionsExceeded) and reason_of(error) in LOST


def reason_of(error: BaseException | None) -> Reason | None:
    """Why a statement failed; None if that isn't for the database."""
    if isinstance(error, MaxConnectionsExceeded):
        return EXHAUSTED
    cause = getattr(error, "orig", error)  # Peewee's error holds the driver's
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        return REASONS.get(code & 0xFF)
    if not type(cause).__module__.startswith("psycopg"):
        return None
    state = getattr(cause, "sqlstate", None)
    if state is None:
        # The client's own: no connection, a lost one, or one that was closed for it.
        return UNREACHABLE if isinstance(error, UNSTATED) else None
    return next((reason for begin, reason in SQLSTATES.items() if state.startswith(begin)), None)
