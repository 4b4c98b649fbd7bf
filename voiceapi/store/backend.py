"""The differences between SQLite and PostgreSQL; no other module asks which one it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .failures import Reason
from .locks import Lock

T = TypeVar("T")
# A row with the values of the columns that are read or stored.
Row = tuple[Any, ...]


class RowsRefused(Exception):
    """The database refuses one of these rows: its values, a constraint, or a limit such as that of an index."""

    def __init__(self, rows: Sequence[Row], reason: str) -> None:
        super().__init__(reason)
        self.rows = rows
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Space:
    """What a database takes, in bytes.

    :param is_incremental: free space can be given back little by little, which files of the first releases can't.
    """

    total: int
    free: int = 0
    is_incremental: bool = False


class Backend(Protocol):
    """One kind of database. Its errors are the driver's or Peewee's; see `failures`."""

    # Peewee's database.
    database: Any
    # True if transactions with different locks run side by side, so that triggers only add what they count.
    is_concurrent: bool
    # True if notifications of other processes arrive.
    notifies: bool
    # True if a column takes values of its type only.
    is_strict: bool

    @property
    def waited_seconds(self) -> float:
        """How long the transactions of this process have waited until they could begin, in all."""

    def sql(self, sqlite: T, postgresql: T) -> T:
        """The text, or what else stands for it, of this kind of database."""

    def transaction(self, locks: Sequence[Lock]) -> AbstractContextManager[None]:
        """A transaction that has its locks, or is the only one if it names none.

        :raises DatabaseUnavailable: when it can't begin within the thread's `begin_timeout`.
        """

    def lock(self, locks: Sequence[Lock]) -> None:
        """Take locks in addition to those of the transaction at hand."""

    def execute(self, statement: str, values: Sequence[Any]) -> Any:
        """Execute SQL with `?` for each value."""

    def notify(self, channel: str, payload: str) -> None:
        """Send to the other processes."""

    def notifications(self, channel: str, seconds: float) -> Iterator[list[str]]:
        """What others send to a channel, as often as something comes, and every so many seconds; at first nothing.

        :raises DatabaseUnavailable: when the connection, which is one of its own, is lost.
        """

    def processes(self) -> set[str] | None:
        """The names of the processes that are connected to the database; None if it doesn't know."""

    def problem(self, seconds: float) -> Reason | None:
        """Why nobody can write to the database, found out on a connection of its own without writing.

        :param seconds: how long another transaction is waited for.
        """

    def settings(self) -> Mapping[str, str]:
        """The settings of the database's server by name."""

    def sizes(self) -> dict[str, int]:
        """The bytes of the database, and of its other files."""

    def space(self) -> Space:
        """How much the database takes."""

    def vacuum(self, rebuild: bool, on_progress: Callable[[float], object]) -> bool:
        """Remove what was deleted; False if that has to be done little by little.

        :param rebuild: write everything anew, which gives all free space back; nobody else can write meanwhile.
        :param on_progress: called with the share that is done.
        """

    def truncate_wal(self) -> None:
        """Empty the WAL, if no reader needs it."""

    def schema_version(self, tables: Iterable[str]) -> int:
        """The version of the schema; 0 if the database is new.

        :param tables: the names of all tables of the schema.
        :raises StoreError: when the database can't hold the schema.
        """

    def set_schema_version(self, version: int) -> None:
        """Store the version of the schema."""

    def keep_copy(self, version: int) -> None:
        """Keep a copy of the database, of this version, as a way back from a migration."""

    def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Store rows, in the quickest way.

        :raises RowsRefused: when the database refuses one of them.
        """

    def set_next_id(self, table: str, at_least: int) -> int:
        """Have the next record of a table get an id behind the largest one, and return that id."""

    def long_statements(self) -> AbstractContextManager[None]:
        """Wait for long statements, such as one that counts a large table."""

    def analyze(self, tables: Sequence[str]) -> None:
        """Have the database choose its indexes by what the tables hold now."""
