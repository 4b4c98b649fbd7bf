"""The numbers of rows of lists, kept by triggers of the database, so that none is counted when a list is read.

To count 100,000 entries of an index takes SQLite ten times as long as to read a page of a list. A trigger counts a row
in the transaction that stores, changes or deletes it, whatever statement of whichever program does so. Only REPLACE, of
which nothing here makes use, deletes rows without a trigger.
Only SQLite has the triggers: with other databases, lists are counted when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .database import bound_path, execute

# Stands for NULL in a key; it equals no text and no number.
NONE = "x''"
# Runs are counted by spans of 2 ** 32 microseconds, 72 minutes: a shift rounds down, also before 1970.
SPAN_BITS = 32
SPAN = 1 << SPAN_BITS


@dataclass(frozen=True, slots=True)
class Counted:
    """A table whose rows are counted, in a table of its own: one row for each key, and how many rows have it.

    :param key: the columns of the key with their types, each with its value in a row, whose columns begin with `row.`.
    :param columns: the columns of the row that may change, and a key with them.
    """

    table: str
    key: Mapping[str, str]
    columns: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The names of the columns of the key."""
        return [column.split()[0] for column in self.key]

    def create(self) -> tuple[str, ...]:
        """The statements that create the table of counts and its triggers, and count what is there."""
        counts, names = f"{self.table}_count", ", ".join(self.names)
        columns = ", ".join(f"{column} NOT NULL" for column in self.key)
        add = (
            f"INSERT INTO {counts} VALUES ({', '.join(self._values('new'))}, 1) "
            "ON CONFLICT DO UPDATE SET number = number + 1;"
        )
        was = " AND ".join(f"{name} = {value}" for name, value in zip(self.names, self._values("old"), strict=True))
        remove = (
            f"UPDATE {counts} SET number = number - 1 WHERE {was}; DELETE FROM {counts} WHERE {was} AND number = 0;"
        )
        pairs = zip(self._values("old"), self._values("new"), strict=True)
        differs = " OR ".join(f"{old} IS NOT {new}" for old, new in pairs)
        groups = ", ".join(str(place + 1) for place in range(len(self.key)))
        return (
            f"CREATE TABLE {counts} ({columns}, number INTEGER NOT NULL, PRIMARY KEY ({names})) WITHOUT ROWID",
            f"CREATE TRIGGER {counts}_added AFTER INSERT ON {self.table} BEGIN {add} END",
            f"CREATE TRIGGER {counts}_removed AFTER DELETE ON {self.table} BEGIN {remove} END",
            f"CREATE TRIGGER {counts}_changed AFTER UPDATE OF {', '.join(self.columns)} ON {self.table} "
            f"WHEN {differs} BEGIN {remove} {add} END",
            f"INSERT INTO {counts} SELECT {', '.join(self._values(self.table))}, count(*) FROM {self.table} "
            f"GROUP BY {groups}",
        )

    def _values(self, row: str) -> list[str]:
        return [value.replace("row.", f"{row}.") for value in self.key.values()]


# The columns have the names of those of `run`, so that a condition on them holds for both tables.
RUNS = Counted(
    "run",
    {
        "workflow_id INTEGER": "row.workflow_id",
        "span INTEGER": f"row.created_at >> {SPAN_BITS}",
        "campaign_id INTEGER": f"coalesce(row.campaign_id, {NONE})",
        "state TEXT": "CASE row.state WHEN 'completed' THEN 'completed' ELSE 'open' END",
        "disposition TEXT": f"coalesce(row.disposition, {NONE})",
        "call_type TEXT": "row.call_type",
        "mode TEXT": "row.mode",
    },
    ("created_at", "campaign_id", "state", "disposition", "call_type", "mode"),
)
CONTACTS = Counted("contact", {"campaign_id INTEGER": "row.campaign_id", "state TEXT": "row.state"}, ("state",))
DELIVERIES = Counted(
    "delivery", {"organization_id INTEGER": "row.organization_id", "state TEXT": "row.state"}, ("state",)
)
# The number of its runs that the API shows of a workflow.
TOTAL_RUNS = (
    "CREATE TRIGGER workflow_run_added AFTER INSERT ON run "
    "BEGIN UPDATE workflow SET total_runs = total_runs + 1 WHERE id = new.workflow_id; END",
    "CREATE TRIGGER workflow_run_removed AFTER DELETE ON run "
    "BEGIN UPDATE workflow SET total_runs = total_runs - 1 WHERE id = old.workflow_id; END",
    "UPDATE workflow SET total_runs = (SELECT coalesce(sum(number), 0) FROM run_count WHERE workflow_id = workflow.id)",
)


def create(database: Any) -> None:
    """Create the tables of counts with their triggers, and count what is there."""
    for counted in (RUNS, CONTACTS, DELIVERIES):
        for statement in counted.create():
            database.execute_sql(statement)
    for statement in TOTAL_RUNS:
        database.execute_sql(statement)


def by_state(counted: Counted, **owner: int) -> dict[str, int]:
    """How many rows with these values in the key are in each state; a state without any is missing."""
    table, number = (f"{counted.table}_count", "sum(number)") if exist() else (counted.table, "count(*)")
    where = " AND ".join(f"{name} = ?" for name in owner)
    statement = f"SELECT state, {number} FROM {table} WHERE {where} GROUP BY state"
    return {state: int(number) for state, number in execute(statement, *owner.values()).fetchall()}


def exist() -> bool:
    """True if the bound database keeps counts, which only SQLite does."""
    return bound_path() is not None
