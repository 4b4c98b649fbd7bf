"""The commands that show something at once: `demo`, `chat --verbose`, completion; and how commands are cut short."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from voiceapi import create_app
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group

from .conftest import ROOT, command_on

AGENT = str(ROOT / "examples" / "appointment.json")
SPOKEN = """\
agent: Hello Ada, this is the dental practice. You have an appointment on Thursday at ten. Can you come?
caller: Yes, I can.
agent: Wonderful. How many people will come with you?
caller: We will be three.
agent: Thank you, I have noted that. See you on Thursday. Goodbye.
"""


@contextmanager
def answering(replies: list[dict[str, Any]]) -> Iterator[str]:
    """A language model that gives these replies one after the other, the last again and again; its URL."""
    left = list(replies)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            reply = left.pop(0) if len(left) > 1 else left[0]
            content = json.dumps({"choices": [{"message": {"role": "assistant", **reply}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_demo_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(group, ["demo"], obj=script_info(create_app), prog_name="voiceapi")
    assert (result.exit_code, result.stderr) == (0, "")
    head, spoken, outcome, after = result.stdout.split("\n\n")
    assert head.startswith("'Demo: Appointment reminder' calls +12025550123 through the simulator.")
    assert f"{spoken}\n" == SPOKEN
    assert "disposition: user_qualified\n" in outcome
    assert 'variables:   {"companions": 3}' in outcome
    assert re.search(r"^Next:\n  voiceapi demo --database voice\.db +keeps", after)
    # Nothing of it is left.
    assert list(tmp_path.iterdir()) == []


def test_a_demo_in_a_database_that_is_kept(tmp_path: Path, database_at: Callable[..., str]) -> None:
    path = database_at(tmp_path / "voice.db")
    run = command_on(database_at(tmp_path / "another.db"))
    for _ in range(2):
        result = run("demo", "--database", path, "-v")
        assert result.exit_code == 0
        assert "\ncaller: Yes, I can.\n" in result.stdout
        assert '\n  edge: "Yes", from Remind to Companions\n' in result.stdout
        assert f"VOICEAPI_DATABASE={shlex.quote(path)} voiceapi chat -v 1" in result.stdout
    kept = command_on(path)
    # Both calls are of one agent.
    assert len(json.loads(kept("workflow", "list", "--json").stdout)) == 1
    assert json.loads(kept("run", "list", "--json").stdout)["total_count"] == 2
    assert not (tmp_path / "another.db").exists()


def test_a_name_of_the_demos_database(
    tmp_path: Path, database_at: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One with a blank can be copied from what is shown; an empty one isn't another database's."""
    monkeypatch.chdir(tmp_path)
    run = command_on(database_at(tmp_path / "another.db"))
    assert "VOICEAPI_DATABASE='my voice.db' voiceapi serve" in run("demo", "--database", "my voice.db").stdout
    result = run("demo", "--database", "")
    assert (result.exit_code, result.stdout) == (2, "")
    assert not (tmp_path / "another.db").exists()


def test_what_a_file_holds_is_not_obeyed_by_the_terminal(
    tmp_path: Path, database_at: Callable[..., str], talk: Any
) -> None:
    definition = talk()
    definition["edges"][0]["id"] = definition["edges"][0]["target"] = "x\x1b[2J\ry"
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(definition))
    result = command_on(database_at(tmp_path / "voice.db"))("validate", str(path))
    assert "error: edge x [2J y " in result.stdout


def test_chat_takes_no_agent_from_where_the_caller_speaks(tmp_path: Path, database_at: Callable[..., str]) -> None:
    result = command_on(database_at(tmp_path / "voice.db"))("chat", "-", input="{}")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        2,
        "Error: WORKFLOW must be a file or an id, because standard input is what the caller says.",
    )


def test_chat_shows_what_happens(tmp_path: Path, database_at: Callable[..., str]) -> None:
    run = command_on(database_at(tmp_path / "voice.db"))
    shown = run("chat", "-v", AGENT, input="yes\ntwo\n").stdout
    assert re.search(
        r"""
\ \ model:\ scripted,\ reply\ in\ 0\.\d\d\ s\n
\ \ edge:\ "Yes",\ from\ Remind\ to\ Companions\n
\ \ node:\ Companions\n
agent:\ Wonderful""",
        shown,
        re.VERBOSE,
    )
    assert '\n  variables: {"companions": 2}\nagent: Thank you' in shown
    found = json.loads(run("chat", "-v", "--json", AGENT, input="yes\n").stdout)
    assert found["trace"][0] == ["node: Remind"]
    assert 'edge: "Yes", from Remind to Companions' in found["trace"][1]
    assert "trace" not in json.loads(run("chat", "--json", AGENT).stdout)


def test_chat_shows_why_an_answer_was_not_understood(
    tmp_path: Path, database_at: Callable[..., str], talk: Any
) -> None:
    """Each edge that was looked at, with the words that lead to it, also if there are none, or long ones."""
    definition = talk()
    definition["edges"][1]["data"]["condition"] = "x" * 999
    definition["edges"].append({**definition["edges"][0], "id": "e", "data": {"label": "...", "condition": "..."}})
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(definition))
    shown = command_on(database_at(tmp_path / "voice.db"))("chat", "-v", str(path), input="eh\n").stdout.splitlines()
    miss = shown.index("  not understood, 1 in a row")
    assert [line[:60] for line in shown[miss + 1 : miss + 5]] == [
        "    the edge 'Yes' is taken for: yes, callee, agrees",
        f"    the edge 'No' is taken for: no, {'x' * 24}",
        "    the edge '...' has no words to be taken for",
        "agent: Sorry, I didn't get that. Hello, is now a good time?",
    ]
    assert len(shown[miss + 2]) < 310


def test_chat_shows_functions_with_their_answers(tmp_path: Path, database_at: Callable[..., str], talk: Any) -> None:
    """The model calls a tool: its arguments and its answer are shown, and the model by name."""
    replies = [
        {"tool_calls": [{"id": "c1", "function": {"name": "nowhere", "arguments": '{"x": 1}'}}]},
        {"content": "Done."},
    ]
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(talk()))
    with answering(replies) as url:
        run = command_on(database_at(tmp_path / "voice.db"))
        result = run("chat", "-v", str(path), input="yes\n", VOICEAPI_LLM_URL=url, VOICEAPI_LLM_MODEL="m1")
    assert '\n  function: nowhere({"x": 1})\n' in result.stdout
    assert "\n  answer of nowhere: " in result.stdout
    assert re.search(r"\n  model: m1 of openai-compatible, reply in \d+\.\d\d s\n", result.stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_written_without_a_database(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    env = {"_VOICEAPI_COMPLETE": f"{shell}_source", "VOICEAPI_DATABASE": "voice.db"}
    result = CliRunner().invoke(group, env=env, prog_name="voiceapi", obj=script_info(create_app))
    assert result.exit_code == 0
    assert f"_VOICEAPI_COMPLETE={shell}_complete" in result.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_completion_works_in_bash(tmp_path: Path) -> None:
    (tmp_path / "voiceapi").write_text(f'#!/bin/sh\nexec {sys.executable} -m voiceapi "$@"\n')
    (tmp_path / "voiceapi").chmod(0o755)
    script = """
        eval "$(_VOICEAPI_COMPLETE=bash_source voiceapi)"
        COMP_WORDS=(voiceapi workflow ex) COMP_CWORD=2
        _voiceapi_completion voiceapi; echo "${COMPREPLY[@]}"
    """
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("export", "")


def start(database: str, *arguments: str) -> subprocess.Popen[str]:
    env = {**os.environ, "VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": "test-key-0123456789"}
    command = [sys.executable, "-m", "voiceapi", *arguments]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell has what it starts in the background ignore an interrupt, and so would the command.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.long
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, database_at: Callable[..., str]) -> None:
    with start(database_at(tmp_path / "voice.db"), "openapi") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""


@pytest.mark.long
def test_an_interrupt_is_quiet(tmp_path: Path, database_at: Callable[..., str]) -> None:
    """While a command waits for what comes on standard input, and while it works."""
    database = database_at(tmp_path / "voice.db")
    command_on(database)("keys", "list")
    with start(database, "chat", AGENT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("agent: ")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline().startswith("-- user_hangup")
        assert (process.stderr.read().strip(), process.wait(60)) == ("", 0)
    with start(database, "dial") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "voiceapi dials\n"
        process.send_signal(signal.SIGINT)
        assert (process.stderr.read(), process.wait(60)) == ("voiceapi stops\n", 0)
