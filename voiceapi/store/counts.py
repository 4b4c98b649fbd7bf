"""The numbers of rows of lists, kept by triggers of the database, so that none is counted when a list is read.

To count 100,000 entries of an index takes SQLite ten times as long as to read a page of a list. A trigger counts a row
in the transaction that stores, changes or deletes it, whatever statement of whichever program does so. Only REPLACE, of
which nothing here makes use, deletes rows without a trigger.

SQLite has one row for each key, and changes its number. On PostgreSQL, transactions that run side by side would wait
for each other there, so triggers only add rows, of +1 or -1 for instance, which `fold` sums up now and then. In both,
what is read is the sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .database import Store, execute, sql, write
from .locks import counts_lock

# Stands for NULL in a key in SQLite; it equals no text and no number.
NONE = "x''"
# Runs are counted by spans of 2 ** 32 microseconds, 72 minutes: a shift rounds down, also before 1970.
SPAN_BITS = 32
SPAN = 1 << SPAN_BITS
# PostgreSQL's indexes don't take long texts. Of a longer disposition, so many characters are its key.
LONGEST_KEY = 255


@dataclass(frozen=True, slots=True)
class Counted:
    """A table whose rows are counted, in a table of its own, by a key.

    :param key: the columns of the key with their types, each with its value in a row, whose columns begin with `row.`.
    :param columns: the columns of the row that may change, and a key with them.
    :param nullable: the columns of the key that may be null.
    :param texts: the columns of the key whose texts may be long.
    """

    table: str
    counts: str
    key: Mapping[str, str]
    columns: tuple[str, ...] = ()
    nullable: frozenset[str] = field(default_factory=frozenset)
    texts: frozenset[str] = field(default_factory=frozenset)

    @property
    def names(self) -> list[str]:
        """The names of the columns of the key."""
        return [column.split()[0] for column in self.key]

    def in_sqlite(self) -> tuple[str, ...]:
        """The statements that create the table of counts and its triggers, and count what is there."""
        counts, names = self.counts, ", ".join(self.names)
        columns = ", ".join(f"{column} NOT NULL" for column in self.key)
        old, new = self._sqlite_values("old"), self._sqlite_values("new")
        add = f"INSERT INTO {counts} VALUES ({', '.join(new)}, 1) ON CONFLICT DO UPDATE SET number = number + 1;"
        was = " AND ".join(f"{name} = {value}" for name, value in zip(self.names, old, strict=True))
        remove = (
            f"UPDATE {counts} SET number = number - 1 WHERE {was}; DELETE FROM {counts} WHERE {was} AND number = 0;"
        )
        differs = " OR ".join(f"{before} IS NOT {after}" for before, after in zip(old, new, strict=True))
        groups = ", ".join(str(place + 1) for place in range(len(self.key)))
        return (
            f"CREATE TABLE {counts} ({columns}, number INTEGER NOT NULL, PRIMARY KEY ({names})) WITHOUT ROWID",
            f"CREATE TRIGGER {counts}_added AFTER INSERT ON {self.table} BEGIN {add} END",
            f"CREATE TRIGGER {counts}_removed AFTER DELETE ON {self.table} BEGIN {remove} END",
            f"CREATE TRIGGER {counts}_changed AFTER UPDATE OF {', '.join(self.columns)} ON {self.table} "
            f"WHEN {differs} BEGIN {remove} {add} END",
            f"INSERT INTO {counts} SELECT {', '.join(self._sqlite_values(self.table))}, count(*) FROM {self.table} "
            f"GROUP BY {groups}",
        )

    def in_postgresql(self) -> tuple[str, ...]:
        """The same for PostgreSQL. Rows that one statement stores or deletes are counted together."""
        counts, names = self.counts, ", ".join(self.names)
        columns = ", ".join(self._postgresql_columns())
        groups = ", ".join(str(place + 1) for place in range(len(self.key)))
        old, new = ", ".join(self._postgresql_values("old")), ", ".join(self._postgresql_values("new"))
        rows = ", ".join(self._postgresql_values("rows"))
        add, many = f"INSERT INTO {counts} ({names}, number)", f"count(*) FROM rows GROUP BY {groups}"
        statements = [
            f"CREATE TABLE {counts} ({columns}, number INTEGER NOT NULL, is_new BOOLEAN NOT NULL DEFAULT true) "
            "WITH (autovacuum_vacuum_scale_factor = 0.05)",
            f"CREATE INDEX {counts}_key ON {counts} ({names}) INCLUDE (number)",
            f"CREATE INDEX {counts}_new ON {counts} ({self.names[0]}) WHERE is_new",
            *self._trigger("added", f"{add} SELECT {rows}, {many};", "AFTER INSERT", "NEW TABLE AS rows"),
            *self._trigger("removed", f"{add} SELECT {rows}, -{many};", "AFTER DELETE", "OLD TABLE AS rows"),
            *self._trigger("emptied", f"DELETE FROM {counts};", "AFTER TRUNCATE"),
        ]
        if self.columns:
            pairs = zip(self._postgresql_values("old"), self._postgresql_values("new"), strict=True)
            differs = " OR ".join(f"{before} IS DISTINCT FROM {after}" for before, after in pairs)
            changed = f"AFTER UPDATE OF {', '.join(self.columns)}"
            statements += self._trigger("changed", f"{add} VALUES ({old}, -1), ({new}, 1);", changed, when=differs)
        there = ", ".join(self._postgresql_values(self.table))
        statements.append(f"{add} SELECT {there}, count(*) FROM {self.table} GROUP BY {groups}")
        return tuple(statements)

    def removal(self) -> Iterator[str]:
        """The statements that remove the table of counts and its triggers, if they are there."""
        for name in ("added", "removed", "emptied", "changed"):
            # On PostgreSQL a trigger goes with its function.
            function = f"DROP FUNCTION IF EXISTS {self.counts}_{name}() CASCADE"
            yield sql(f"DROP TRIGGER IF EXISTS {self.counts}_{name}", function)
        yield f"DROP TABLE IF EXISTS {self.counts}"

    def _trigger(self, name: str, action: str, event: str, rows: str = "", when: str = "") -> tuple[str, str]:
        """The statements that create a trigger of PostgreSQL with its function.

        :param rows: names the rows of a statement; `when`: the trigger is about each row for which that holds.
        """
        function = f"{self.counts}_{name}"
        given = f"REFERENCING {rows} " if rows else ""
        each = f"ROW WHEN ({when})" if when else "STATEMENT"
        return (
            f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {action} RETURN NULL; END $$",
            f"CREATE TRIGGER {function} {event} ON {self.table} {given}FOR EACH {each} EXECUTE FUNCTION {function}()",
        )

    def folding(self) -> str:
        """The statement that puts sums in place of what PostgreSQL's triggers have added, and of older sums."""
        names = ", ".join(self.names)
        same = " AND ".join(
            f"sums.{name} {'IS NOT DISTINCT FROM' if name in self.nullable else '='} keys.{name}" for name in self.names
        )
        return f"""WITH added AS (DELETE FROM {self.counts} WHERE is_new RETURNING {names}, number),
            replaced AS (
                DELETE FROM {self.counts} AS sums USING (SELECT DISTINCT {names} FROM added) AS keys
                WHERE NOT sums.is_new AND {same} RETURNING {", ".join(f"sums.{name}" for name in self.names)}, number)
            INSERT INTO {self.counts} ({names}, number, is_new) SELECT {names}, sum(number), false
            FROM (SELECT * FROM added UNION ALL SELECT * FROM replaced) AS rows
            GROUP BY {names} HAVING sum(number) <> 0"""

    def _sqlite_values(self, row: str) -> list[str]:
        values = {name: f"coalesce({value}, {NONE})" if name in self.nullable else value for name, value in self._key()}
        return [value.replace("row.", f"{row}.") for value in values.values()]

    def _postgresql_columns(self) -> Iterator[str]:
        for name, column in zip(self.names, self.key, strict=True):
            typed = column.replace("INTEGER", "BIGINT").replace("TEXT", 'TEXT COLLATE "C"')
            yield typed if name in self.nullable else f"{typed} NOT NULL"

    def _postgresql_values(self, row: str) -> list[str]:
        values = {name: f"left({value}, {LONGEST_KEY})" if name in self.texts else value for name, value in self._key()}
        return [value.replace("row.", f"{row}.") for value in values.values()]

    def _key(self) -> list[tuple[str, str]]:
        return list(zip(self.names, self.key.values(), strict=True))


# The columns have the names of those of `run`, so that a condition on them holds for both tables.
RUNS = Counted(
    "run",
    "run_count",
    {
        "workflow_id INTEGER": "row.workflow_id",
        "span INTEGER": f"row.created_at >> {SPAN_BITS}",
        "campaign_id INTEGER": "row.campaign_id",
        "state TEXT": "CASE row.state WHEN 'completed' THEN 'completed' ELSE 'open' END",
        "disposition TEXT": "row.disposition",
        "call_type TEXT": "row.call_type",
        "mode TEXT": "row.mode",
        "is_test BOOLEAN": "row.is_test",
    },
    ("created_at", "campaign_id", "state", "disposition", "call_type", "mode", "is_test"),
    frozenset(("campaign_id", "disposition")),
    frozenset(("disposition",)),
)
CONTACTS = Counted(
    "contact", "contact_count", {"campaign_id INTEGER": "row.campaign_id", "state TEXT": "row.state"}, ("state",)
)
DELIVERIES = Counted(
    "delivery",
    "delivery_count",
    {"organization_id INTEGER": "row.organization_id", "state TEXT": "row.state"},
    ("state",),
)
TABLES = (RUNS, CONTACTS, DELIVERIES)
# The number of its runs that the API shows of a workflow: SQLite's triggers keep it in the workflow's row.
TOTAL_RUNS = (
    "DROP TRIGGER IF EXISTS workflow_run_added",
    "DROP TRIGGER IF EXISTS workflow_run_removed",
    "CREATE TRIGGER workflow_run_added AFTER INSERT ON run "
    "BEGIN UPDATE workflow SET total_runs = total_runs + 1 WHERE id = new.workflow_id; END",
    "CREATE TRIGGER workflow_run_removed AFTER DELETE ON run "
    "BEGIN UPDATE workflow SET total_runs = total_runs - 1 WHERE id = old.workflow_id; END",
    "UPDATE workflow SET total_runs = (SELECT coalesce(sum(number), 0) FROM run_count WHERE workflow_id = workflow.id)",
)
TOTALS = Counted("run", "workflow_count", {"workflow_id INTEGER": "row.workflow_id"})
ON_POSTGRESQL = (*TABLES, TOTALS)


def create(store: Store) -> None:
    """Create the tables of counts with their triggers, in place of those of an earlier release; count what is there."""
    sql = store.backend.sql
    tables = sql(sqlite=TABLES, postgresql=ON_POSTGRESQL)
    statements = [statement for counted in tables for statement in counted.removal()]
    for counted in tables:
        statements += sql(sqlite=counted.in_sqlite, postgresql=counted.in_postgresql)()
    for statement in (*statements, *sql(sqlite=TOTAL_RUNS, postgresql=())):
        store.database.execute_sql(statement)


def by_state(counted: Counted, **owner: int) -> dict[str, int]:
    """How many rows with these values in the key are in each state; a state without any is missing.

    :param owner: a column of the key with its value; the rows of all if none is given.
    """
    where = "".join(f" WHERE {name} = ?" for name in owner)
    statement = f"SELECT state, sum(number) FROM {counted.counts}{where} GROUP BY state HAVING sum(number) <> 0"
    return {state: int(number) for state, number in execute(statement, *owner.values()).fetchall()}


def total_runs(workflow: int) -> int:
    """The number of a workflow's runs on PostgreSQL."""
    statement = "SELECT coalesce(sum(number), 0) FROM workflow_count WHERE workflow_id = ?"
    return int(execute(statement, workflow).fetchone()[0])


def total_runs_of_organization(organization: int) -> dict[int, int]:
    """The numbers of runs of an organization's workflows on PostgreSQL; a workflow without any is missing."""
    statement = """SELECT workflow_id, sum(number) FROM workflow_count
        WHERE workflow_id IN (SELECT id FROM workflow WHERE organization_id = ?) GROUP BY workflow_id"""
    return {workflow: int(number) for workflow, number in execute(statement, organization).fetchall()}


def fold() -> None:
    """Sum up what triggers of PostgreSQL have added, so that reading a number stays quick.

    Nobody waits for it: it takes the rows that are committed by now.
    """
    for counted in ON_POSTGRESQL:
        if execute(f"SELECT 1 FROM {counted.counts} WHERE is_new LIMIT 1").fetchone():
            with write(counts_lock()):
                execute(counted.folding())
