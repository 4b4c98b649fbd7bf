"""`voiceapi copy`: a whole database in another one, of the same kind or not, and what keeps one from being copied."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result

from tests.trust.test_isolation import GUARDED, ids_of
from tests.trust.world import World
from voiceapi import create_app
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group
from voiceapi.config import Settings, names
from voiceapi.opening import open_service
from voiceapi.operating.backups import secret_beside
from voiceapi.security import encrypt_json
from voiceapi.service import Service
from voiceapi.store.base import insert
from voiceapi.store.campaigns import Campaign, Contact, Decision, DoNotCall
from voiceapi.store.database import Store, write
from voiceapi.store.migrations import TABLES, VERSION
from voiceapi.store.postcall import DeliveryAttempt, FollowUp
from voiceapi.store.runs import Run
from voiceapi.store.telephony import Connection, RejectedCall, Tunnel
from voiceapi.store.workflows import ConversationCase, Workflow
from voiceapi.telephony.connected_numbers import Changes

KEY = "test-key-0123456789"
SECRET = "the secret of the copies, of more than 32 characters"
# What PostgreSQL's COPY has to escape, and a number that has no short form.
ODD, PRECISE = 'a\ttab, a\nline, a \\N, a "quote", \x01 and ☎️', 0.1 + 0.2
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)

Content = dict[str, list[tuple[Any, ...]]]


def copy(*arguments: str | Path, **env: str) -> Result:
    settings = {"VOICEAPI_SECRET": None, **env}
    return CliRunner().invoke(group, ["copy", *map(str, arguments)], env=settings, obj=script_info(create_app))


def copied(*arguments: str | Path, **env: str) -> Any:
    result = copy(*arguments, "--json", **env)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments: str | Path, **env: str) -> str:
    result = copy(*arguments, **env)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    # What is slow shows its progress first.
    return result.stderr[result.stderr.index("Error:") :]


def content(location: str | Path) -> Content:
    """Every row of every table that there is, but the number of runs that SQLite keeps with a workflow."""
    store = Store(str(location))
    with closing(store), store.session():
        present = store.database.get_tables()
        return {
            table._meta.table_name: list(
                table.select(*(field for field in table._meta.sorted_fields if field.column_name != "total_runs"))
                .order_by(*table._meta.get_primary_keys())
                .tuples()
            )
            for table in TABLES
            if table._meta.table_name in present
        }


def opened(location: str | Path, **settings: Any) -> Service:
    given = {"VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": False, **settings}
    return open_service(Settings.read(dict.fromkeys(names()) | given))


class Kept(NamedTuple):
    """A database with a record of every kind, and what the API answered from it."""

    world: World
    location: str
    content: Content
    answers: dict[str, str]


# Answers that differ from one request to the next.
VARYING = {
    "GET /user/api-keys": "when it was used",
    "GET /campaign/{campaign_id}/source-download-url": "when it expires",
}


def answers(world: World) -> dict[str, str]:
    """What the API answers to the requests that only read, and to a search in the documents."""
    client, found = world.client("alpha"), {}
    for operation in GUARDED:
        if operation.startswith("GET ") and operation not in VARYING:
            answer = world.send(client, operation, ids_of(operation, world.theirs))
            found[operation] = f"{answer.status_code} {answer.get_data(as_text=True)}"
    search = world.send(client, "POST /knowledge-base/search", {}, json={"query": "opens at nine"})
    assert '"similarity"' in search.text
    found["search"] = search.text
    return found


@pytest.fixture(scope="module")
def kept(
    tmp_path_factory: pytest.TempPathFactory, talk: Callable[..., Any], database_at: Callable[[Path], str]
) -> Kept:
    world = World(database_at(tmp_path_factory.mktemp("world") / "voice.db"), talk)
    with world.service.store.session(), write():
        campaign = Campaign.get_by_id(world.theirs["campaign_id"])
        contact = insert(Contact, campaign=campaign.id, row=1, phone_number=ODD, state="completed")
        insert(Decision, contact=contact.id, campaign=campaign.id, code="dialed", reason=ODD)
        insert(
            ConversationCase, workflow=campaign.workflow_id, name=ODD, enabled=False, content={"context": {"a": ODD}}
        )
        insert(FollowUp, run=world.theirs["ended_run_id"])
        rejected = {"from_number": ODD, "to_number": ODD, "reason": "QUOTA_EXCEEDED", "call_id": ODD}
        insert(RejectedCall, telephony_configuration=world.theirs["config_id"], **rejected)
        changes = asdict(Changes(is_new=False))
        sealed = encrypt_json(world.service.vault, changes)
        insert(Connection, telephony_configuration=world.theirs["config_id"], content=sealed)
        insert(Tunnel, url=ODD, worker=ODD, seen_at=LONG_AGO)
        Campaign.update(parent_campaign=campaign.id).where(Campaign.id != campaign.id).execute()
        DeliveryAttempt.update(seconds=PRECISE, error="").execute()
        DoNotCall.delete().where(DoNotCall.id > 1).execute()
    found = answers(world)
    world.close()
    return Kept(world, world.service.store.location, content(world.service.store.location), found)


def test_a_database_goes_to_the_other_kind_and_back_row_by_row(
    kept: Kept, tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    assert all(kept.content.values()), "a record of every kind"
    ways = [kept.location, tmp_path / "file.db", database_at(tmp_path / "other.db"), tmp_path / "last.db"]
    secret = kept.world.service.vault.secret.decode()
    for source, target in pairwise(ways):
        report = copied(source, target, VOICEAPI_SECRET=secret)
        numbers = {name: len(rows) for name, rows in kept.content.items()}
        assert report["tables"] == {name: {"from": number, "to": number} for name, number in numbers.items()}
        for name, ids in report["sequences"].items():
            largest = max([row[0] for row in kept.content[name]], default=0)
            assert (ids["largest"], ids["next"] > largest) == (largest, True)
        assert content(target) == kept.content
        assert content(source) == kept.content
    for way in ways[1:]:
        kept.world.app.extensions["voiceapi"] = service = opened(way, VOICEAPI_SECRET=secret)
        assert answers(kept.world) == kept.answers
        # What it stores gets ids behind those that were copied; runs are counted on from there.
        with service.store.session(), write():
            workflow = Workflow.get_by_id(kept.world.theirs["workflow_id"])
            run = insert(
                Run, organization=workflow.organization_id, workflow=workflow.id, name="n", mode="m", token="t"
            )
            assert run.id > max(row[0] for row in kept.content["run"])
        service.close()


# -- what keeps a database from being copied


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A SQLite file with what its first start makes."""
    path = tmp_path / "voice.db"
    opened(path).close()
    return path


def test_a_target_that_holds_anything_is_refused_with_what_it_holds(
    database: Path, tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    target = database_at(tmp_path / "used.db")
    opened(target, VOICEAPI_SECRET=SECRET).close()
    before = content(target)
    error = refused(database, target)
    assert "isn't empty: it holds secret_check 1, organization 1, api_key 1, telephony_configuration 1" in error
    assert content(target) == before


def test_a_file_of_another_program_is_refused_as_a_target(database: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE recipe (name TEXT)")
    before = other.read_bytes()
    assert f"{other} has tables that aren't of voiceapi: recipe." in refused(database, other)
    assert other.read_bytes() == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can make files")
def test_a_folder_that_takes_no_file_is_named(database: Path) -> None:
    assert refused(database, "/proc/copy.db").startswith("Error: /proc/copy.db, or its secret, can't be made: ")


def test_what_is_no_database_of_this_release_is_refused_as_a_source(database: Path, tmp_path: Path) -> None:
    missing, target = tmp_path / "missing.db", tmp_path / "target.db"
    assert refused(missing, target) == f"Error: There is no database {missing}.\n"
    assert refused(database, tmp_path / "no" / "target.db") == f"Error: There is no folder {tmp_path / 'no'}.\n"
    assert refused(database, database) == f"Error: {database} is {database}.\n"
    text = tmp_path / "text.db"
    text.write_text("no database")
    assert refused(text, target) == f"Error: {text} can't be used: file is not a database.\n"
    with closing(sqlite3.connect(database)) as connection:
        for version, reason in ((4, "voiceapi keys list."), (VERSION + 1, "Install that release.")):
            connection.execute(f"PRAGMA user_version = {version}")
            error = refused(database, target)
            assert f"chema is {version}, this " in error or f"schema of {database} is {version}" in error
            assert error.endswith(f"{reason}\n")
    assert not target.exists()


def test_a_database_that_cannot_be_reached_is_named(database: Path) -> None:
    error = refused(database, "postgresql://ann:s3cr3t@127.0.0.1:1/voice")
    assert error.startswith("Error: The database postgresql://ann:********@127.0.0.1:1/voice can't be opened: ")
    assert "VOICEAPI_DATABASE" not in error
    assert refused(database, "mysql://h/d").startswith("Error: The database mysql://h/d isn't known: give a path")


def test_a_database_that_a_process_has_open_is_copied_by_force_only_and_its_campaigns_are_paused(
    database: Path, tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    source, target = database_at(tmp_path / "source.db"), database_at(tmp_path / "target.db")
    assert copied(database, source)["paused_campaigns"] == 0
    service = opened(source, VOICEAPI_SECRET=secret_of(database))
    with service.store.session(), write():
        running = {"retry_config": {}, "circuit_breaker": {}, "source_type": "csv", "source_id": "x"}
        workflow = insert(Workflow, organization=1, workflow_uuid="w", name="w")
        insert(Campaign, organization=1, workflow=workflow.id, name="c", state="running", **running)
    error = refused(source, target, VOICEAPI_SECRET=secret_of(database))
    assert "Stop the service first" in error
    assert "--force" in error
    assert content(target) == {}
    report = copied(source, target, "--force", VOICEAPI_SECRET=secret_of(database))
    assert report["paused_campaigns"] == 1
    service.close()
    states = [dict(zip(Campaign._meta.columns, row, strict=True))["state"] for row in content(target)["campaign"]]
    assert states == ["paused"]


def secret_of(database: Path) -> str:
    return secret_beside(database).read_text().strip()


def test_rows_that_refer_to_nothing_are_named_before_anything_is_copied(database: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "INSERT INTO webhook_secret (id, organization_id, secret, created_at) VALUES (7, 99, 'x', 1)"
        )
        connection.commit()
    target = tmp_path / "target.db"
    error = refused(database, target)
    assert f"{target} can't hold what {database} holds, so nothing was copied:" in error
    assert "webhook_secret 7, organization_id: there is no such organization" in error
    assert not any(content(target).values())


# -- the secret


def test_the_secret_of_a_file_goes_along_with_a_file_and_is_named_for_a_url(
    database: Path, tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    target = database_at(tmp_path / "target.db")
    result = copy(database, target)
    assert result.exit_code == 0, result.output
    if "://" in target:
        assert f"set VOICEAPI_SECRET to the content of {database}.secret" in result.stdout
    else:
        assert f"{target}.secret: the secret goes along." in result.stdout
        assert secret_of(Path(target)) == secret_of(database)
        assert Path(f"{target}.secret").stat().st_mode & 0o777 == 0o600
    opened(target, VOICEAPI_SECRET=secret_of(database)).close()


def test_the_secret_has_to_be_that_of_the_source(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    error = refused(database, target, VOICEAPI_SECRET=SECRET)
    assert f"VOICEAPI_SECRET isn't the one that {database} was encrypted with; that in {database}.secret is." in error
    assert copied(database, target, VOICEAPI_SECRET=secret_of(database))["secret"] is None
    assert not secret_beside(target).exists()
    secret_beside(database).write_text(SECRET)
    error = refused(database, tmp_path / "another.db")
    assert f"The secret in {database}.secret isn't the one that {database} was encrypted with." in error
    secret_beside(database).unlink()
    error = refused(database, tmp_path / "another.db")
    assert f"The secret of {database} is missing: there is no file {database}.secret, and VOICEAPI_SECRET" in error
    assert not (tmp_path / "another.db").exists()


def test_another_secret_beside_the_target_is_kept(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    secret_beside(target).write_text(SECRET)
    assert f"{target}.secret holds another secret." in refused(database, target)
    assert (secret_beside(target).read_text(), any(content(target).values())) == (SECRET, False)


@pytest.mark.postgresql
def test_values_that_postgresql_lacks_are_named_by_table_id_and_column_before_anything_is_copied(
    database: Path, tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    entries = {
        1: ("'a' || char(0)", 1),
        2: ("CAST(x'61ff62' AS TEXT)", 2),
        3: ("x'6162'", 3),
        4: ("'yesterday'", "'yesterday'"),
        5: ("'half'", 1.5),
    }
    with closing(sqlite3.connect(database)) as connection:
        for id, (reason, at) in entries.items():
            connection.execute(f"INSERT INTO do_not_call VALUES ({id}, 1, '+1202555010{id}', {reason}, {at})")
        connection.execute("UPDATE telephony_configuration SET calls_per_second = 'two', is_default_outbound = 2")
        connection.commit()
    target = database_at(tmp_path / "target.db")
    assert refused(database, target).splitlines()[1:-1] == [
        "telephony_configuration 1, calls_per_second: a text instead of a number",
        "telephony_configuration 1, is_default_outbound: 2 isn't from 0 to 1",
        "do_not_call 1, reason: a text with the character U+0000",
        "do_not_call 2, reason: a text that isn't UTF-8",
        "do_not_call 3, reason: bytes instead of a text",
        "do_not_call 4, created_at: a text instead of a whole number",
        "do_not_call 5, created_at: a number instead of a whole number",
    ]
    with closing(sqlite3.connect(database)) as connection:
        connection.executemany(
            "INSERT INTO do_not_call (organization_id, phone_number, created_at) VALUES (1, ?, 'later')",
            [(number,) for number in range(100)],
        )
        connection.commit()
    assert refused(database, target).splitlines()[-2:-1] == ["..."]
    assert not any(content(target).values())


@pytest.mark.postgresql
def test_a_number_that_sqlite_lacks_is_named(
    database: Path, tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    source = database_at(tmp_path / "source.db")
    copied(database, source)
    store = Store(source)
    with closing(store), store.session():
        store.database.execute_sql("UPDATE telephony_configuration SET calls_per_second = 'NaN'")
    error = refused(source, tmp_path / "back.db", VOICEAPI_SECRET=secret_of(database))
    assert "telephony_configuration 1, calls_per_second: not a number (NaN)" in error
