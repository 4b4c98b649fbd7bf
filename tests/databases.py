"""The databases of the tests: files, or with `--database postgresql` those of a server that is started for them.

VOICEAPI_TEST_DATABASE names a server's database instead, by its URL; its user has to be allowed to create databases.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

VARIABLE = "VOICEAPI_TEST_DATABASE"
SECRET = "secret-of-the-tests-0123456789-0123456789"
# After so many tests on one database the rows that they deleted are removed for good.
VACUUM_EVERY = 100
# Deletes all rows but those of the new database, and counts ids from where it did.
RESET = """
CREATE SCHEMA first;
DO $$ DECLARE each record; BEGIN
  FOR each IN SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' LOOP
    EXECUTE format('CREATE TABLE first.%1$I AS TABLE public.%1$I', each.name);
  END LOOP;
  CREATE TABLE first.sequences AS SELECT sequencename::text AS name, last_value AS last FROM pg_sequences
    WHERE schemaname = 'public';
END $$;
CREATE FUNCTION first.reset() RETURNS void AS $$ DECLARE each record; BEGIN
  SET LOCAL session_replication_role = replica;
  -- No value can be given to a generated column.
  FOR each IN SELECT table_name AS name, string_agg(quote_ident(column_name), ', ') AS columns
    FROM information_schema.columns JOIN pg_tables ON (schemaname, tablename) = (table_schema, table_name)
    WHERE schemaname = 'public' AND is_generated = 'NEVER' GROUP BY table_name LOOP
    EXECUTE format('DELETE FROM public.%I', each.name);
    EXECUTE format('INSERT INTO public.%1$I (%2$s) SELECT %2$s FROM first.%1$I', each.name, each.columns);
  END LOOP;
  PERFORM setval('public.' || quote_ident(name), coalesce(last, 1), last IS NOT NULL) FROM first.sequences;
END $$ LANGUAGE plpgsql;
"""


def start_server(config: pytest.Config) -> None:
    """Start a server for the tests on PostgreSQL, unless one is named; pytest-xdist's workers share it."""
    if config.getoption("--database") != "postgresql":
        return
    os.environ.setdefault("VOICEAPI_SECRET", SECRET)
    if VARIABLE not in os.environ:
        from benchmarks.postgresql_server import Server

        server = Server()
        os.environ[VARIABLE] = server.url("postgres")
        config.add_cleanup(server.close)


class Files:
    """Databases as files."""

    def at(self, path: Path) -> str:
        return str(path)

    def copy(self, path: Path, target: Path) -> str:
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy2(file, target.with_name(file.name.replace(path.name, target.name)))
        return str(target)

    def close(self) -> None:
        pass


class PostgreSQLDatabases:
    """Databases on the server, each made when it is first asked for."""

    def __init__(self) -> None:
        import psycopg

        self.url = os.environ[VARIABLE]
        self.connection: psycopg.Connection[Any] = psycopg.connect(self.url, autocommit=True)
        self.names: set[str] = set()

    def at(self, path: Path, template: str = "template1") -> str:
        """The URL of the database that stands for a file."""
        name = _name(path)
        if name not in self.names:
            self.names.add(name)
            self.connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        parts = urlsplit(self.url)
        authority = f"{parts.scheme}://{parts.netloc}/{name}"
        return f"{authority}?{parts.query}" if parts.query else authority

    def copy(self, path: Path, target: Path) -> str:
        """The URL of a copy of the database that stands for a file; nobody may use that one meanwhile."""
        return self.at(target, _name(path))

    def close(self) -> None:
        for name in self.names:
            self.connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        self.connection.close()


def _name(path: Path) -> str:
    return f"test_{hashlib.sha256(f'{os.getpid()} {path}'.encode()).hexdigest()[:20]}"


class Blank:
    """A new database, to which every test comes back; only one test uses it at a time."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.url = url
        self.connection: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        self.connection.execute(RESET.encode())
        self.used = 0

    def reset(self) -> None:
        self.connection.execute("SET lock_timeout = '10s'")
        self.connection.execute("SELECT first.reset()")
        self.used += 1
        if self.used % VACUUM_EVERY == 0:
            self.connection.execute("VACUUM")

    def close(self) -> None:
        self.connection.close()


def databases(config: pytest.Config) -> Iterator[Files | PostgreSQLDatabases]:
    found = PostgreSQLDatabases() if config.getoption("--database") == "postgresql" else Files()
    yield found
    found.close()


def skip_others(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests that are about another kind of database.

    Those that ask for no database are left out on PostgreSQL, because they are the same as on SQLite.
    """
    chosen = config.getoption("--database")
    if chosen == "postgresql":
        asking = {
            item: "databases" in getattr(item, "fixturenames", ("databases",)) or item.get_closest_marker("postgresql")
            for item in items
        }
        config.hook.pytest_deselected(items=[item for item in items if not asking[item]])
        items[:] = [item for item in items if asking[item]]
    for name, reason in (("sqlite", "about SQLite's file"), ("postgresql", "about PostgreSQL: --database postgresql")):
        for item in items if name != chosen else ():
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=reason))
