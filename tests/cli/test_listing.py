"""The commands that list, show and change workflows, runs and campaigns."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from databases import Files, PostgreSQLDatabases
from flask.cli import ScriptInfo

from voiceapi import create_app
from voiceapi.campaigns import lifecycle
from voiceapi.cli.main import group
from voiceapi.cli.output import when
from voiceapi.store import campaigns
from voiceapi.store.campaigns import Contact, Decision

from .conftest import KEY, Command, command_on


@pytest.fixture(scope="module")
def read(
    filled: Path, databases: Files | PostgreSQLDatabases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Command]:
    """Runs a command that changes nothing, on the shared database, which is opened once."""
    app = create_app(
        {
            "VOICEAPI_DATABASE": databases.copy(filled, tmp_path_factory.mktemp("read") / "voice.db"),
            "VOICEAPI_API_KEY": "test-key-0123456789",
            "VOICEAPI_WORKER": False,
        }
    )
    yield lambda *arguments: CliRunner().invoke(
        group, arguments, prog_name="voiceapi", obj=ScriptInfo(create_app=lambda: app)
    )
    app.extensions["voiceapi"].close()


def cells(text: str) -> list[list[str]]:
    """The cells of a table, with its head."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def test_workflows_are_listed(read: Command) -> None:
    head, row = cells(read("workflow", "list").stdout)
    assert head == ["ID", "NAME", "STATUS", "VERSION", "RUNS", "CREATED"]
    assert row[:5] == ["1", "Reception", "active", "2 draft", "1"]
    (found,) = json.loads(read("workflow", "list", "--json", "--status", "active").stdout)
    assert (found["id"], found["name"], found["total_runs"]) == (1, "Reception", 1)
    none = read("workflow", "list", "--status", "archived")
    assert (none.exit_code, none.stdout) == (0, "")
    assert none.stderr == "There is no workflow. Make one: voiceapi workflow import FILE.\n"


def test_a_workflow_is_shown(read: Command) -> None:
    shown = read("workflow", "show", "1").stdout
    assert "workflow: 1 Reception\n" in shown
    assert re.search(r"\n {6}2  draft      \S+ \S+\n {6}1  published  \S+ \S+  \S+ \S+\n", shown)
    found = json.loads(read("workflow", "show", "1", "--json").stdout)
    assert found["workflow_definition"]["nodes"][0]["id"] == "1"


def test_versions_are_compared_in_words(read: Command) -> None:
    for arguments in ((), ("1",), ("1", "2")):
        found = read("workflow", "diff", "1", *arguments)
        assert found.exit_code == 1
        first, *sentences = found.stdout.splitlines()
        assert first == "Version 2 (draft) against 1 (published):"
        assert len(sentences) == 1
        assert "Another one." in sentences[0]
    same = read("workflow", "diff", "1", "2", "2")
    assert (same.exit_code, same.stdout.splitlines()[1:]) == (0, ["Nothing differs."])
    assert json.loads(read("workflow", "diff", "1", "--json").stdout)["before"] == 1
    missing = read("workflow", "diff", "1", "7")
    assert (missing.exit_code, missing.stderr) == (1, "Error: Workflow 1 has no version 7; its versions are 1, 2.\n")


def test_a_workflow_is_published_archived_and_activated(run: Command) -> None:
    assert run("workflow", "publish", "1").stdout == "Version 2 of workflow 1 is published.\n"
    again = run("workflow", "publish", "1")
    error = "Error: Workflow 1 has no draft: its newest version is published already.\n"
    assert (again.exit_code, again.stderr) == (1, error)
    assert run("workflow", "diff", "1").exit_code == 1  # against the version published before
    assert run("workflow", "archive", "1").stdout == "Workflow 1 is archived.\n"
    assert cells(run("workflow", "list").stdout)[1][2] == "archived"
    assert run("workflow", "activate", "1").stdout == "Workflow 1 is active.\n"


def test_runs_are_listed(read: Command) -> None:
    head, row = cells(read("run", "list").stdout)
    assert head == ["ID", "CREATED", "WORKFLOW", "DIRECTION", "NUMBER", "SECONDS", "RESULT"]
    assert (row[0], row[2], row[3], row[-1]) == ("1", "Reception", "chat", "user_qualified")
    found = json.loads(read("run", "list", "--json").stdout)
    assert (found["total_count"], found["runs"][0]["disposition"]) == (1, "user_qualified")


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (("--workflow", "1", "--disposition", "user_qualified", "--status", "completed", "--channel", "chat"), 1),
        (("--since", "2020-01-01", "--until", "2099-01-01", "--min-duration", "0", "--sort", "id", "--ascending"), 1),
        (("--workflow", "2"), 0),
        (("--campaign", "1"), 0),
        (("--caller", "555"), 0),
        (("--called", "555"), 0),
        (("--direction", "inbound", "--tag", "vip"), 0),
        (("--max-duration", "0.0001", "--since", "2099-01-01"), 0),
    ],
)
def test_runs_are_filtered(read: Command, arguments: tuple[str, ...], count: int) -> None:
    found = read("run", "list", "--json", *arguments)
    assert (found.exit_code, len(json.loads(found.stdout)["runs"])) == (0, count), found.stderr


def test_a_run_is_shown(read: Command) -> None:
    shown = read("run", "show", "1").stdout
    assert re.match(r"run: +1 WR-TEXT-\w+\nworkflow: +1 Reception\nkind: +text chat\n", shown)
    assert "\ncaller: yes\nagent: " in shown
    assert "edge:" not in shown
    verbose = read("run", "show", "1", "-v").stdout
    assert re.search(r'\ncaller: yes\n  edge: "Yes", from \w+ to \w+\n  node: \w+\n', verbose)
    found = json.loads(read("run", "show", "1", "--json").stdout)
    assert found["logs"]["realtime_feedback_events"][0]["type"] == "rtf-node-transition"


def test_campaigns_are_listed_and_shown(read: Command) -> None:
    head, row = cells(read("campaign", "list").stdout)
    assert head == ["ID", "NAME", "WORKFLOW", "STATE", "DONE", "ROWS", "CREATED"]
    assert row[:5] == ["1", "Winter", "Reception", "created", "0"]
    assert json.loads(read("campaign", "list", "--json").stdout)[0]["workflow_name"] == "Reception"
    shown = read("campaign", "show", "1").stdout
    assert re.search(r"campaign: +1 Winter\nworkflow: +1 Reception\ncalls through: +Simulator\n", shown)
    assert re.search(r'retry config: +{"enabled": true', shown)
    assert json.loads(read("campaign", "show", "1", "--json").stdout)["progress"]["state"] == "created"
    assert read("campaign", "report", "1").stdout.startswith("Run ID,")


def test_the_contacts_of_a_campaign_are_listed(
    filled: Path, databases: Files | PostgreSQLDatabases, tmp_path: Path
) -> None:
    database = databases.copy(filled, tmp_path / "voice.db")
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": False})
    due = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
    with app.extensions["voiceapi"].store.session():
        for row, state in enumerate(("completed", "queued", "retry", "retry"), start=1):
            contact = Contact.create(
                campaign=1, row=row, phone_number=f"+1202555017{row}", state=state, attempts=row, next_attempt_at=due
            )
            Decision.create(contact=contact, campaign=1, at=due, code="x", reason=f"First of {row}.")
            if state == "completed":
                Decision.create(contact=contact, campaign=1, at=due, code="x", reason="They have said yes.")
    app.extensions["voiceapi"].close()
    run = command_on(database)
    listed = run("campaign", "contacts", "1")
    head, *rows = cells(listed.stdout)
    assert head == ["ROW", "NUMBER", "STATE", "CALLS", "NEXT", "REASON"]
    assert [row[:4] for row in rows] == [
        ["1", "+12025550171", "completed", "1"],
        ["2", "+12025550172", "queued", "2"],
        ["3", "+12025550173", "retry", "3"],
        ["4", "+12025550174", "retry", "4"],
    ]
    # Only who waits is called next, and the latest reason is shown.
    assert rows[0][4:] == ["They have said yes."]
    assert [row[4] for row in rows[1:]] == [when(due)] * 3
    assert listed.stderr == ""
    second = run("campaign", "contacts", "1", "--page", "2", "--limit", "3")
    assert [row[0] for row in cells(second.stdout)[1:]] == ["4"]
    assert second.stderr == "Page 2 of 2, 4 contacts; --page and --limit show others.\n"
    assert run("campaign", "contacts", "1", "--limit", "2").stderr.startswith("Page 1 of 2, 4 contacts;")
    chosen = json.loads(run("campaign", "contacts", "1", "--state", "retry", "--limit", "1", "--json").stdout)
    assert [contact["row"] for contact in chosen.pop("contacts")] == [3]
    assert chosen == {"total_count": 2, "page": 1, "limit": 1}
    for wrong in (("--limit", "0"), ("--limit", "1001"), ("--page", "0"), ("--state", "lost")):
        assert run("campaign", "contacts", "1", *wrong).exit_code == 2


def test_a_campaign_is_paused_and_goes_on(run: Command) -> None:
    assert run("campaign", "contacts", "1").stderr.startswith("There is no such contact; the list is read when")
    early = run("campaign", "pause", "1")
    assert (early.exit_code, early.stderr.split(",")[0]) == (
        1,
        "Error: Campaign must be in 'running' or 'syncing' state to pause",
    )
    for command, says in (("start", "is started"), ("pause", "is paused"), ("resume", "goes on")):
        assert run("campaign", command, "1").stdout == f"Campaign 1 {says}.\n"
    redial = run("campaign", "redial", "1")
    assert (redial.exit_code, redial.stderr) == (
        1,
        "Error: Only completed campaigns can be redialed (current state: syncing)\n",
    )


def test_a_campaign_for_which_nobody_dials_says_so(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    run("campaign", "start", "1")
    monkeypatch.setattr(campaigns, "LEASE", timedelta(0))
    shown, found = run("campaign", "show", "1"), run("campaign", "show", "1", "--json")
    since = json.loads(found.stdout)["progress"]["not_dialed_since"]
    sentence = f"Nothing has dialed since {since[:19]}Z: no process that dials is at work. Start `voiceapi serve`"
    assert f"no contacts yet. {sentence}" in shown.stdout
    monkeypatch.setattr(time, "sleep", lambda _: lifecycle.pause(1, 1))
    begun, stopped = run("campaign", "watch", "1").stdout.splitlines()
    assert (sentence in begun, "Nothing has dialed" in stopped) == (True, False)
    run("campaign", "resume", "1")
    checked = run("doctor")
    assert (checked.exit_code, "campaign 1 'Winter': Nothing has dialed since " in checked.stdout) == (1, True)


NEXT: list[tuple[tuple[str, ...], int, Any]] = [
    *(
        ((group, command, "77"), 1, f"There is no {group} with id 77. `voiceapi {group} list` shows which there are.")
        for group, commands in {
            "workflow": ("show", "publish", "archive", "activate", "diff"),
            "run": ("show", "end"),
            "campaign": ("show", "contacts", "report", "start", "pause", "resume", "redial", "watch", "simulate"),
        }.items()
        for command in commands
    ),
    (("keys", "create", " "), 2, "it may not be empty; it says what the key is for, such as laptop."),
    (("keys", "create", "x", "--organization", ""), 2, "Invalid value for '--organization': it may not be empty."),
    (
        ("run", "list", "--organization", "nobody"),
        1,
        "There is no organization named 'nobody'; --organization takes one of 'default'.",
    ),
    (("run", "list", "--since", "soon"), 2, "write it like 2026-11-30 or 2026-11-30T09:00Z."),
    (("wrkflow", "list"), 2, "No such command 'wrkflow'. Did you mean 'workflow'?"),
    (("workflow", "lst"), 2, "No such command 'lst'. Did you mean 'list'?"),
    (("run", "list", "--statu", "completed"), 2, "(Did you mean one of: '--sort', '--status', '--tag'?)"),
    (("campaign", "create", "nobody.csv", "--workflow", "1"), 2, "File 'nobody.csv' does not exist."),
    (("campaign", "create", "/", "--workflow", "1"), 2, "File '/' is a directory."),
    (("campaign", "create", __file__, "--workflow", "7"), 1, "There is no workflow with id 7 for --workflow."),
]


@pytest.mark.parametrize(("arguments", "code", "advice"), NEXT)
def test_an_error_says_what_to_do_next(read: Command, arguments: tuple[str, ...], code: int, advice: str) -> None:
    result = read(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.splitlines()[-1].endswith(advice), result.stderr
