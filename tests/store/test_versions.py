"""Databases of earlier releases are brought up to this one's schema, and what was under way in them goes on.

tests/data/version-1.sql to version-9.sql were dumped from files that the releases with these schema versions made, with
the secret and the API key that stand below: requests to the API, the simulator's phones and the dialer one step at a
time, then every table, index and trigger as SQL. The files of version 2 to 9 hold what a killed process left:

* run 1, a call that has ended and owes its webhook; run 2, a call with two turns answered; run 3, one that rings;
  run 4, a text chat;
* campaign 1, running: contacts that were reached, are due for a retry, ring, were claimed but never called, are
  queued, and can't be called; campaign 2, paused; campaign 3, whose list was read up to row 2 of 3; campaign 4, not
  started;
* a pace of the simulator's configuration and one of a carrier's, which version 2 kept in two places.

That of version 4 is the file of version 3, opened by the release with version 4. Through its API it was given what that
release stored in clear, each text beginning with "s3cr3t": a workflow with a key, headers and passwords in URLs,
published and as a draft; a chat with each of the two, one of which owes its webhook as rendered, the other its follow-
up; tools with static headers and passwords; and a credential, which was encrypted already. That of version 5 is the
file of version 4, opened by the release with version 5, and so on. That of version 7 has one more workflow: run 11 is a
chat with it as published, run 12 the call of a test trigger, runs 13 and 14 a chat and a call of its draft. That of
version 8 has two documents.
version-6-postgresql.sql is what `voiceapi copy` made of the file of version 6 on PostgreSQL, dumped by pg_dump
--inserts.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.store import dialing, knowledge, secret_fields
from voiceapi.store.campaigns import Campaign, Contact
from voiceapi.store.database import write
from voiceapi.store.fields import Instant, now
from voiceapi.store.postcall import Delivery
from voiceapi.store.runs import Run, Step, Turn
from voiceapi.store.telephony import TelephonyConfiguration
from voiceapi.store.tools import Tool
from voiceapi.store.workflows import WorkflowVersion, content_hash

pytestmark = pytest.mark.sqlite

DATA = Path(__file__).parent.parent / "data"
# In the files. As a setting it is refused by now; a key that a database has goes on working.
KEY = "k" * 16
API = "/api/v1"


# When the files were made; their instants are stored as microseconds, and within JSON as seconds, since 1970.
MADE = {
    2: datetime(2026, 11, 22, 4, 23, 48, tzinfo=UTC),
    3: datetime(2026, 11, 22, 6, 17, 59, tzinfo=UTC),
    4: datetime(2026, 11, 22, 9, 25, 31, tzinfo=UTC),
    5: datetime(2026, 11, 22, 12, 48, 45, tzinfo=UTC),
    6: datetime(2026, 11, 22, 23, 28, 53, tzinfo=UTC),
    7: datetime(2026, 11, 23, 19, 17, 9, tzinfo=UTC),
    8: datetime(2026, 11, 23, 22, 27, 1, tzinfo=UTC),
    9: datetime(2026, 11, 27, 7, 45, 11, tzinfo=UTC),
}
# The oldest go through every migration, and those between pass through what they have gone through.
BETWEEN = [pytest.param(version, marks=pytest.mark.long) for version in (3, 4, 5, 6, 7, 8)]
INSTANT = re.compile(r"\b1795\d{6}(?:\d{6}\b|\.\d+)")


def restore(path: Path, version: int) -> Path:
    """A file of this version, as if its process had been killed a minute ago."""
    text = (DATA / f"version-{version}.sql").read_text()
    passed = (now() - MADE.get(version, now())).total_seconds() - 60

    def shifted(found: re.Match[str]) -> str:
        return str(float(found[0]) + passed if "." in found[0] else int(found[0]) + round(passed * 1e6))

    connection = sqlite3.connect(path)
    connection.executescript(INSTANT.sub(shifted, text) if version in MADE else text)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    return path


def open_app(path: Path, *, worker: bool = False) -> Flask:
    given = {"VOICEAPI_DATABASE": path, "VOICEAPI_SECRET": "s" * 32}
    return create_app({**given, "VOICEAPI_WORKER": worker, "VOICEAPI_CONCURRENT_CALLS": 20})


def client_of(app: Flask) -> FlaskClient:
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    return client


def schema(path: Path) -> dict[str, Any]:
    """Tables, indexes and triggers; of each table its columns, whatever their order, and its foreign keys."""
    connection = sqlite3.connect(path)
    found: dict[str, Any] = {}
    named = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
    for kind, name, sql in connection.execute(named).fetchall():
        found[f"{kind} {name}"] = sql
        if kind == "table":
            columns = {(row[1], row[2], row[3], row[5]) for row in connection.execute(f'PRAGMA table_info("{name}")')}
            keys = {row[2:7] for row in connection.execute(f'PRAGMA foreign_key_list("{name}")')}
            found[f"{kind} {name}"] = (columns, keys)
    connection.close()
    return found


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.long), *BETWEEN, 9])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=[2, *BETWEEN, 9])
def recent(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def app(tmp_path: Path, recent: int) -> Iterator[Flask]:
    """The file of a recent version, opened by this release without threads."""
    app = open_app(restore(tmp_path / "old.db", recent))
    with app.extensions["voiceapi"].store.session():
        yield app
    app.extensions["voiceapi"].close()


@pytest.fixture
def working(tmp_path: Path, recent: int) -> Iterator[FlaskClient]:
    """The file of a recent version, opened by this release with its threads at work."""
    app = open_app(restore(tmp_path / "old.db", recent), worker=True)
    app.extensions["voiceapi"].workers.start()
    with app.extensions["voiceapi"].store.session():
        yield client_of(app)
    app.extensions["voiceapi"].close()


def test_the_schema_is_that_of_a_new_file(tmp_path: Path, version: int) -> None:
    old, new = restore(tmp_path / "old.db", version), tmp_path / "new.db"
    for path in (old, new):
        open_app(path).extensions["voiceapi"].close()
    assert schema(old) == schema(new)
    assert (tmp_path / f"old.db.version-{version}").exists()
    connection = sqlite3.connect(old)
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_what_lists_show_is_counted(tmp_path: Path, version: int) -> None:
    """Also where the releases up to version 5 had counted wrongly."""
    path = restore(tmp_path / "old.db", version)
    before = sqlite3.connect(path)
    before.execute("UPDATE workflow SET total_runs = total_runs + ?", [7 if version < 6 else 0])
    before.commit()
    before.close()
    open_app(path).extensions["voiceapi"].close()
    after = sqlite3.connect(path)
    total = "SELECT count(*) FROM run WHERE workflow_id = workflow.id"
    assert after.execute(f"SELECT name FROM workflow WHERE total_runs != ({total})").fetchall() == []
    for table, owner in (("run", "workflow_id"), ("contact", "campaign_id"), ("delivery", "organization_id")):
        kept = f"SELECT {owner}, sum(number) FROM {table}_count GROUP BY {owner}"
        rows = f"SELECT {owner}, count(*) FROM {table} GROUP BY {owner}"
        assert after.execute(kept).fetchall() == after.execute(rows).fetchall()
    after.close()


def test_versions_get_the_hash_of_their_content(tmp_path: Path, version: int) -> None:
    """What the runs of earlier releases were carried out by isn't known for sure."""
    app = open_app(restore(tmp_path / "old.db", version))
    with app.extensions["voiceapi"].store.session():
        stored = list(WorkflowVersion.select())
        assert stored
        for each in stored:
            content = (each.definition, each.configurations, each.template_context_variables)
            assert each.content_hash == content_hash(*content)
        assert {run.content_hash for run in Run.select() if version < 7} <= {None}
    app.extensions["voiceapi"].close()


def test_the_runs_of_drafts_and_test_triggers_are_tests(tmp_path: Path, version: int) -> None:
    """Run 10 is a chat with a draft since version 4; lists count tests apart."""
    path = restore(tmp_path / "old.db", version)
    open_app(path).extensions["voiceapi"].close()
    connection = sqlite3.connect(path)
    tests = [id for (id,) in connection.execute("SELECT id FROM run WHERE is_test ORDER BY id")]
    assert tests == ([10] if version >= 4 else []) + ([12, 13, 14] if version >= 7 else [])
    assert connection.execute("SELECT coalesce(sum(number), 0) FROM run_count WHERE is_test").fetchone() == (
        len(tests),
    )
    connection.close()


def test_documents_are_searched_as_this_release_does(tmp_path: Path) -> None:
    """Until version 8 a run of Chinese characters was one word."""
    app = open_app(restore(tmp_path / "old.db", 8))
    with app.extensions["voiceapi"].store.session():
        for question, filename in (("a repair", "hours.md"), ("\u600e\u4e48\u9000\u6b3e", "\u9000\u6b3e.md")):
            [hit] = knowledge.search(1, question, None, 5)
            assert hit.document.filename == filename
        with write():
            assert knowledge.delete_part(hit.document, 2)
        assert knowledge.search(1, question, None, 5) == []
    app.extensions["voiceapi"].close()


def test_the_do_not_call_list_keeps_its_addresses_in_the_form_that_decides(tmp_path: Path) -> None:
    path = restore(tmp_path / "old.db", 6)
    stored = (
        "sips:Ann@example.org;transport=tls",
        "sip:ann@example.org",
        "sip:+12025550170@pbx.example.org",
        "+4930901820",
    )
    with sqlite3.connect(path) as connection:
        for address in stored:
            connection.execute(
                "INSERT INTO do_not_call (organization_id, phone_number, created_at) VALUES (1, ?, 1)", (address,)
            )
    connection.close()
    app = open_app(path)
    with app.extensions["voiceapi"].store.session():
        asked = ["sip:ann@example.org:5061", "+12025550170", "+4930901820", "sip:bob@example.org"]
        assert dialing.not_to_call(1, asked) == set(asked[:3])
        assert {"sip:ann@example.org", "+12025550170", "+4930901820"} <= dialing.all_not_to_call(1)
    app.extensions["voiceapi"].close()


def test_what_version_1_stored_is_read(tmp_path: Path) -> None:
    app = open_app(restore(tmp_path / "old.db", 1))
    client = client_of(app)
    run = client.get(f"{API}/workflow/1/runs/1").get_json()
    assert (run["is_completed"], len(run["logs"]["realtime_feedback_events"]) > 0) == (True, True)
    assert client.get(f"{API}/tools/").get_json() == []
    with app.extensions["voiceapi"].store.session():
        assert Turn.select().where(Turn.answered_at.is_null()).count() == 0
    app.extensions["voiceapi"].close()


def test_a_campaign_that_version_1_created_is_dialed(tmp_path: Path, wait_for: Callable[..., Any]) -> None:
    """That release could create campaigns, but not yet start them."""
    app = open_app(restore(tmp_path / "old.db", 1), worker=True)
    assert client_of(app).post(f"{API}/campaign/1/start").get_json()["state"] == "syncing"
    with app.extensions["voiceapi"].store.session():
        wait_for(lambda: Campaign.get_by_id(1).state == "completed")
        assert reached(1) == dict.fromkeys(("+12025552041", "+12025552042"), 1)
    app.extensions["voiceapi"].close()


def test_what_version_4_stored_in_clear_is_encrypted(tmp_path: Path) -> None:
    """Nothing is left in the file, its free pages and its WAL either; the copy for the way back holds it in clear."""
    path = restore(tmp_path / "old.db", 4)
    clear = set(re.findall(rb"s3cr3t-[a-z-]+", path.read_bytes()))
    assert len(clear) == 16
    deleted = sqlite3.connect(path)
    deleted.executescript(
        "PRAGMA secure_delete = OFF; CREATE TABLE gone AS WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
        "SELECT 's3cr3t-gone' || hex(zeroblob(2000)) AS text FROM n; DROP TABLE gone"
    )
    deleted.close()
    assert b"s3cr3t-gone" in path.read_bytes()
    app = open_app(path)
    files = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.name.startswith("old.db")}
    assert clear <= set(re.findall(rb"s3cr3t-[a-z-]+", files.pop("old.db.version-4")))
    assert set(files) >= {"old.db", "old.db-wal"}
    for name, content in files.items():
        assert b"s3cr3t" not in content, name
    vault = app.extensions["voiceapi"].vault
    with app.extensions["voiceapi"].store.session():
        versions = {row.version_number: row for row in WorkflowVersion.select().where(WorkflowVersion.workflow == 3)}
        runs, tools = Run.select().where(Run.draft.is_null(False)), Tool.select().order_by(Tool.id)
        read = [
            secret_fields.decrypted(vault, row.definition, secret_fields.in_definition) for row in versions.values()
        ]
        read += [secret_fields.decrypted(vault, row.draft, secret_fields.in_definition) for row in runs]
        read += [secret_fields.decrypted(vault, row.definition, secret_fields.in_tool) for row in tools]
        read += [secret_fields.decrypted(vault, versions[2].configurations, secret_fields.in_configurations)]
        delivery = Delivery.get(Delivery.url.is_null(False))
        read += [secret_fields.reveal_url(vault, delivery.url)]
    assert set(re.findall(rb"s3cr3t-[a-z-]+", json.dumps(read).encode())) == clear
    app.extensions["voiceapi"].close()


def test_a_campaign_keeps_its_settings_and_how_far_it_is(app: Flask) -> None:
    found = client_of(app).get(f"{API}/campaign/").get_json()["campaigns"]
    found_settings = {
        each["name"]: (each["state"], each["calling_hours"], each["max_attempts_per_day"]) for each in found
    }
    all_day = {"start": "00:00", "end": "24:00"}
    assert found_settings == {
        "Running": ("running", all_day, 5),
        "Paused": ("paused", None, None),
        "Syncing": ("syncing", all_day, None),
        "Created": ("created", None, 2),
    }
    stored = list(Campaign.select().order_by(Campaign.id))
    assert [each.source_status for each in stored] == ["completed", "completed", "in_progress", "pending"]
    assert [each.synced_at is not None for each in stored] == [True, True, False, False]
    assert [each.source_lease_until is not None for each in stored] == [False, False, True, False]
    assert all(each.breaker_reset_at >= each.created_at - timedelta(milliseconds=1) for each in stored)


def test_a_campaign_of_a_file_that_was_made_as_version_1(tmp_path: Path) -> None:
    """There, a campaign that was created and couldn't be started had no record of how far its list was read."""
    path = restore(tmp_path / "old.db", 2)
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM dialing WHERE campaign_id = 4")
    connection.commit()
    connection.close()
    app = open_app(path)
    assert client_of(app).get(f"{API}/campaign/4/progress").get_json()["source_sync"]["status"] == "pending"
    with app.extensions["voiceapi"].store.session():
        campaign = Campaign.get_by_id(4)
        assert campaign.breaker_reset_at == campaign.created_at
    app.extensions["voiceapi"].close()


def test_the_pace_of_an_account_holds_on(tmp_path: Path) -> None:
    path = restore(tmp_path / "old.db", 2)
    connection = sqlite3.connect(path)
    last, own = connection.execute(
        "SELECT last_call_at, paced_until FROM pace JOIN telephony_configuration AS c ON c.id = configuration_id "
        "WHERE provider = 'twilio'"
    ).fetchone()
    # The dialer claimed a call, and its process was killed before it took the account's turn.
    connection.execute("UPDATE telephony_configuration SET paced_until = ? WHERE provider = 'twilio'", [own - 10**7])
    connection.commit()
    connection.close()
    app = open_app(path)
    with app.extensions["voiceapi"].store.session():
        carrier = TelephonyConfiguration.get(TelephonyConfiguration.provider == "twilio")
        assert Instant().db_value(carrier.paced_until) == last + 2_000_000  # a call in two seconds
    app.extensions["voiceapi"].close()


def reached(campaign: int) -> dict[str, int]:
    """How many calls of a campaign were answered, by their number."""
    found: dict[str, int] = {}
    for run in Run.select().where(Run.campaign == campaign, Run.answered_at.is_null(False)):
        found[run.called_number] = found.get(run.called_number, 0) + 1
    return found


def test_a_running_campaign_calls_each_contact_once(working: FlaskClient, wait_for: Callable[..., Any]) -> None:
    wait_for(lambda: Campaign.get_by_id(1).state == "completed")
    assert reached(1) == dict.fromkeys(("+12025552001", "+12025552003", "+12025552004", "+12025552005"), 1)
    states = [(contact.state, contact.attempts) for contact in Contact.select().where(Contact.campaign == 1)]
    assert states == [
        ("completed", 1),
        ("failed", 2),
        ("completed", 1),
        ("completed", 1),
        ("completed", 1),
        ("skipped", 0),
    ]
    assert Campaign.get_by_id(1).processed_rows == 5


def test_a_campaign_whose_list_was_being_read(working: FlaskClient, wait_for: Callable[..., Any]) -> None:
    Campaign.update(source_lease_until=now()).where(Campaign.id == 3).execute()
    wait_for(lambda: Campaign.get_by_id(3).state == "completed")
    assert reached(3) == dict.fromkeys(("+12025552021", "+12025552022", "+12025552023"), 1)
    assert Campaign.get_by_id(3).total_rows == 3


def test_paused_and_created_campaigns_wait_until_they_are_started(
    working: FlaskClient, wait_for: Callable[..., Any]
) -> None:
    assert working.post(f"{API}/campaign/2/resume").get_json()["state"] == "running"
    assert working.post(f"{API}/campaign/4/start").get_json()["state"] == "syncing"
    wait_for(lambda: {Campaign.get_by_id(id).state for id in (2, 4)} == {"completed"})
    assert reached(2) == dict.fromkeys(("+12025552011", "+12025552012"), 1)
    assert reached(4) == {"+12025552031": 1}


def test_calls_go_on_from_their_next_turn(
    tmp_path: Path, recent: int, working: FlaskClient, wait_for: Callable[..., Any]
) -> None:
    copy = sqlite3.connect(tmp_path / f"old.db.version-{recent}")
    before = [json.loads(row[0]) for row in copy.execute("SELECT actions FROM turn WHERE run_id = 2 ORDER BY number")]
    copy.close()
    wait_for(lambda: all(Run.get_by_id(id).is_completed for id in (2, 3)))
    turns = list(Turn.select().where(Turn.run == 2).order_by(Turn.number))
    assert [turn.actions for turn in turns[:2]] == before
    assert [(turn.number, turn.caller_text) for turn in turns] == [(0, ""), (1, ""), (2, "Yes, that is fine.")]
    assert Run.get_by_id(2).disposition == Run.get_by_id(3).disposition == Run.get_by_id(1).disposition
    steps = [step.number for step in Step.select().where(Step.run == 2).order_by(Step.number)]
    assert steps == list(range(len(steps)))


def test_a_text_chat_answers_its_next_message(app: Flask) -> None:
    client, chat = client_of(app), f"{API}/workflow/2/text-chat/sessions/4"
    before = client.get(chat).get_json()
    message = {"text": "Yes, that is fine.", "expected_revision": before["revision"]}
    after = client.post(f"{chat}/messages", json=message).get_json()
    assert after["state"] == "completed"
    turns = after["session_data"]["turns"]
    assert turns[: len(before["session_data"]["turns"])] == before["session_data"]["turns"]
    assert turns[-1]["assistant_message"]["text"] == "Great, goodbye."


def test_an_owed_webhook_is_sent(working: FlaskClient, wait_for: Callable[..., Any]) -> None:
    """As far as its receiver, whose address is a private one, allows."""
    wait_for(lambda: Delivery.get().last_error is not None)
    delivery = Delivery.get()
    assert (delivery.run_id, delivery.url, delivery.attempts) == (1, "http://127.0.0.1:9/hook", 1)
