"""The indexes that differ between SQLite and PostgreSQL, and what PostgreSQL's need.

Those of runs hold what lists of runs are filtered by, so that rows are read for a page only.

PostgreSQL's indexes don't take texts of more than 2,700 bytes. Columns that it generates hold the beginning of the
texts of runs that may be longer, and the view `listed_run` shows them by the names of the columns that they are made
of; in a list, the rest of such a text doesn't count. Another column has a run's call tags, each an entry of an index.
Where an index only finds a text or keeps it unique, it holds a hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .base import marks
from .counts import LONGEST_KEY
from .database import Store, sql

# Tests are few among the runs of an organization, and are taken off its totals.
TESTS = "CREATE INDEX run_tests ON run (organization_id, duration, is_test) WHERE is_test"
IN_SQLITE = (
    "CREATE INDEX run_of_workflow ON run "
    "(workflow_id, created_at, id, state, disposition, duration, call_type, mode, campaign_id, name, version_id, "
    "is_test)",
    "CREATE INDEX run_of_campaign ON run (campaign_id, created_at, id, state, disposition, duration, name) "
    "WHERE campaign_id IS NOT NULL",
    "CREATE INDEX run_by_duration ON run (workflow_id, duration, id)",
    "CREATE INDEX run_by_name ON run (workflow_id, name, id)",
    "CREATE INDEX run_by_id ON run (workflow_id, id)",
    TESTS,
)


def _tags_of(context: str) -> str:
    found = f"""jsonb_path_query(({context})::jsonb, 'lax $.call_tags[*] ? (@.type() == "string")')"""
    return f"ARRAY(SELECT left(tag #>> '{{}}', {LONGEST_KEY}) FROM {found} AS tag)"


# What jsonb refuses to hold, U+0000 and half of a surrogate pair, is replaced, so that no input makes a write fail.
REFUSED = r"(?<!\\)((?:\\\\)*)\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})"
REPLACED = rf"regexp_replace(context, '{REFUSED}', '\1\\ufffd', 'g')"
TAGS = f"""CREATE FUNCTION run_tags(context TEXT) RETURNS TEXT[] LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    BEGIN
        RETURN {_tags_of("context")};
    EXCEPTION WHEN data_exception THEN
        RETURN {_tags_of(REPLACED)};
    END;
EXCEPTION WHEN OTHERS THEN
    RETURN '{{}}';
END $$"""
IN_POSTGRESQL = (
    TAGS,
    f"""ALTER TABLE run
    ADD COLUMN name_key TEXT COLLATE "C" GENERATED ALWAYS AS (left(name, {LONGEST_KEY})) STORED,
    ADD COLUMN disposition_key TEXT COLLATE "C" GENERATED ALWAYS AS (left(disposition, {LONGEST_KEY})) STORED,
    ADD COLUMN tags TEXT[] COLLATE "C" GENERATED ALWAYS AS (run_tags(gathered_context)) STORED""",
    """CREATE VIEW listed_run AS SELECT id, organization_id, workflow_id, campaign_id, created_at, state, duration,
    call_type, mode, caller_number, called_number, name_key AS name, disposition_key AS disposition, tags,
    version_id, is_test FROM run""",
    "CREATE INDEX run_of_workflow ON run (workflow_id, created_at, id, state, disposition_key, duration, call_type, "
    "mode, campaign_id, name_key, version_id, is_test)",
    "CREATE INDEX run_of_campaign ON run (campaign_id, created_at, id, state, disposition_key, duration, name_key) "
    "WHERE campaign_id IS NOT NULL",
    # Two, because runs without a duration come last both ways.
    "CREATE INDEX run_by_duration ON run (workflow_id, duration, id)",
    "CREATE INDEX run_by_duration_falling ON run (workflow_id, duration DESC NULLS LAST, id DESC)",
    "CREATE INDEX run_by_name ON run (workflow_id, name_key, id)",
    "CREATE INDEX run_by_id ON run (workflow_id, id)",
    # Few, but found among all others else: an index of several columns isn't searched for what a column doesn't equal.
    "CREATE INDEX run_open ON run (workflow_id, created_at, id) WHERE state <> 'completed'",
    "CREATE INDEX run_by_tag ON run USING gin (tags)",
    TESTS,
    # Soon after rows have changed, for only a table that was vacuumed is read from its indexes alone.
    "ALTER TABLE run SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02, "
    "autovacuum_analyze_scale_factor = 0.02)",
)
# Indexes of PostgreSQL in place of those that the tables have in SQLite, by the names of the tables.
HASHED = {
    "contact": ("contact_phone_number", "INDEX", "({phone_number})"),
    "do_not_call": ("do_not_call_organization_id_phone_number", "UNIQUE INDEX", "(organization_id, {phone_number})"),
    "delivery": ("delivery_run_id_node_id", "UNIQUE INDEX", "(run_id, {node_id})"),
    "credential": ("credential_organization_id_name", "UNIQUE INDEX", "(organization_id, {name})"),
    "phone_number": (
        "phone_number_organization_id_address_normalized",
        "UNIQUE INDEX",
        "(organization_id, {address_normalized})",
    ),
    "run": (
        "run_one_inbound_call",
        "UNIQUE INDEX",
        "(telephony_configuration_id, {carrier_call_id}) WHERE call_type = 'inbound'",
    ),
}


def hashed(text: str) -> str:
    """The hash of a column or a value in PostgreSQL's SQL."""
    return f"hashtextextended({text}, 0)"


def one_of(column: str, values: Sequence[str | None]) -> str:
    """The condition that a column has one of these values, for an index that holds hashes on PostgreSQL."""
    return sql(
        f"{column} IN ({marks(values)})", f"{hashed(column)} IN ({', '.join([hashed('?')] * len(values)) or 'NULL'})"
    )


def create(store: Store) -> None:
    """Create the indexes that differ."""
    for statement in store.backend.sql(IN_SQLITE, (*IN_POSTGRESQL, *_hashed_indexes())):
        store.database.execute_sql(statement)


def _hashed_indexes() -> Iterator[str]:
    """The statements that put PostgreSQL's indexes of hashes in the place of others."""
    for table, (name, kind, columns) in HASHED.items():
        texts = {column: hashed(column) for column in re.findall(r"{(\w+)}", columns)}
        yield from (f"DROP INDEX {name}", f"CREATE {kind} {name} ON {table} {columns.format(**texts)}")
