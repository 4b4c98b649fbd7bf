from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from flask import Flask
from flask.cli import FlaskGroup, with_appcontext
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.__main__ import main
from voiceapi.api.openapi import document
from voiceapi.cli import base, campaigns, definitions
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group
from voiceapi.config import API_KEY
from voiceapi.engine.phrases import phrases
from voiceapi.service import Service
from voiceapi.store.database import Store
from voiceapi.store.failures import StoreError
from voiceapi.store.migrations import check_version

from .conftest import command_on

ROOT = Path(__file__).parents[2]
KEY = re.compile(r"va_[A-Za-z0-9_-]{43}")
FIRST = "First API key, shown this once: "


@pytest.fixture
def settings(tmp_path: Path, database_at: Callable[..., str]) -> dict[str, str]:
    return {"VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"), "VOICEAPI_API_KEY": "test-key-0123456789"}


@pytest.fixture
def run(settings: dict[str, str]) -> Callable[..., Result]:
    """Runs a command in this process; what it writes to standard error stays apart."""

    def command(*arguments: str, input: str | bytes = "", **env: str) -> Result:
        obj = script_info(create_app)
        result = CliRunner().invoke(
            group, arguments, input=input, env={**settings, **env}, prog_name="voiceapi", obj=obj
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return command


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., str]:
    """Writes a file; returns its name."""

    def write(content: Any, name: str = "agent.json") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return str(path)

    return write


# -- what needs no database

COMMANDS = [
    *(
        (command,)
        for command in ("serve", "chat", "graph", "validate", "keys", "doctor", "openapi", "campaign", "dial")
    ),
    ("console",),
    *(("keys", command) for command in ("create", "list", "archive", "reactivate")),
    *(("campaign", command) for command in ("create", "start", "watch", "simulate")),
]
AGENT = str(ROOT / "examples" / "appointment.json")
NEEDS_NO_DATABASE = [
    ((), 2, "Usage: voiceapi [OPTIONS] COMMAND [ARGS]..."),
    (("--version",), 0, "voiceapi, version "),
    (("-h",), 0, "Usage: voiceapi [OPTIONS] COMMAND [ARGS]..."),
    (("--help",), 0, "Usage: voiceapi [OPTIONS] COMMAND [ARGS]..."),
    *(((*command, "--help"), 0, f"Usage: voiceapi {' '.join(command)} ") for command in COMMANDS),
    *(((*command, "--mistyped"), 2, "Error: No such option '--mistyped'") for command in COMMANDS),
    *(((*command, "mistyped"), 2, "Error: No such command 'mistyped'") for command in ((), ("keys",), ("campaign",))),
    (("serve", "--port", "eight"), 2, "Error: Invalid value for '--port'"),
    (("keys", "create"), 2, "Error: Missing argument 'NAME'."),
    (("campaign", "start", "x"), 2, "Error: Invalid value for 'CAMPAIGN_ID'"),
    (("validate", AGENT), 0, f"{AGENT} is valid."),
    (("validate", "missing.json"), 2, "Error: missing.json can't be read: No such file or directory."),
    (("openapi",), 0, '"openapi": "3'),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, where a command would make its database."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("VOICEAPI_DATABASE", "voice.db")
    return folder


def refuse(_: Any) -> Flask:
    raise AssertionError("this command made an app")


@pytest.mark.parametrize(("arguments", "code", "shown"), NEEDS_NO_DATABASE)
def test_no_app_is_made_for_it(folder: Path, arguments: tuple[str, ...], code: int, shown: str) -> None:
    result = CliRunner().invoke(group, arguments, obj=script_info(refuse), prog_name="voiceapi")
    assert (result.exit_code, shown in result.output) == (code, True), result.output
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("arguments", "code", "shown"), NEEDS_NO_DATABASE)
def test_a_host_answers_it_alike(shared: FlaskClient, arguments: tuple[str, ...], code: int, shown: str) -> None:
    flask = FlaskGroup(create_app=lambda: shared.application, load_dotenv=False)
    result = CliRunner().invoke(flask, ["voiceapi", *arguments], prog_name="flask")
    shown = shown.replace("Usage: voiceapi", "Usage: flask voiceapi")
    assert (result.exit_code, shown in result.output) == (code, True), result.output


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("voiceapi ", set(group.list_commands(click.Context(group)))),
        ("voiceapi keys ", {"archive", "create", "list", "reactivate"}),
        ("voiceapi serve --", {"--host", "--port", "--tunnel", "--help"}),
        ("voiceapi serve --port 8000 --h", {"--host", "--help"}),
        ("voiceapi campaign watch 1 --j", {"--json"}),
    ],
)
def test_completion_makes_no_app(folder: Path, words: str, completed: set[str]) -> None:
    env = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1), "_VOICEAPI_COMPLETE": "bash_complete"}
    result = CliRunner().invoke(group, env=env, obj=script_info(refuse), prog_name="voiceapi")
    assert {line.partition(",")[2] for line in result.output.splitlines()} == completed
    assert list(folder.iterdir()) == []


@pytest.mark.long
def test_the_console_script_in_an_empty_folder(folder: Path) -> None:
    def shown(*arguments: str, **env: str) -> str:
        command = [sys.executable, "-m", "voiceapi", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert shown("--version").startswith("voiceapi, version ")
    assert shown("validate", AGENT) == f"{AGENT} is valid.\n"
    assert "_VOICEAPI_COMPLETE=zsh_complete voiceapi" in shown(_VOICEAPI_COMPLETE="zsh_source")
    assert list(folder.iterdir()) == []


def test_the_service_is_closed_with_the_command(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    close = Service.close

    def noted(service: Service) -> None:
        closed.append(service)
        close(service)

    monkeypatch.setattr(Service, "close", noted)
    assert run("keys", "list").exit_code == 0
    assert run("keys", "archive", "9").exit_code == 1
    assert len(closed) == 2


def test_a_hosts_service_stays_open(shared: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Service, "close", refuse)
    result = shared.application.test_cli_runner().invoke(args=["voiceapi", "keys", "list"])
    assert (result.exit_code, result.output.split()[-1]) == (0, "VOICEAPI_API_KEY")


# -- serve


@contextmanager
def served(settings: dict[str, str], *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server process, and the line that says where it listens."""
    command = [sys.executable, "-m", "voiceapi", "serve", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **settings}, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        try:
            yield server, server.stderr.readline().strip()
        finally:
            server.kill()


def test_serve_answers_until_it_is_terminated(settings: dict[str, str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with served(settings, "--port", str(port)) as (server, line):
        assert re.fullmatch(rf"voiceapi \S+ listens on http://127\.0\.0\.1:{port}", line)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/health", timeout=60) as answer:
            # The port of --port is also the one in the addresses of answers.
            assert json.load(answer)["backend_api_endpoint"] == f"http://127.0.0.1:{port}"
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        assert server.stderr is not None
        # The key of VOICEAPI_API_KEY isn't shown.
        assert server.stderr.read() == f"Console: http://127.0.0.1:{port}/\n"


@pytest.mark.parametrize(
    ("arguments", "host", "port"),
    [
        ((), "127.0.0.2", 8123),
        (("--port", "0"), "127.0.0.2", 0),
        (("--port", "65535", "--host", "127.0.0.3"), "127.0.0.3", 65535),
    ],
)
@pytest.mark.parametrize("hosted", [False, True])
def test_options_of_serve_go_before_the_settings(
    tmp_path: Path,
    database_at: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    host: str,
    port: int,
    hosted: bool,
) -> None:
    """Also by a host app's `flask voiceapi serve`, whose settings were read before. 0 has the system choose a port."""
    asked = []

    def refuse(app: Any, *, host: str, port: int, **_: Any) -> None:
        asked.append((host, port))
        raise OSError(errno.EADDRINUSE, "in use")

    monkeypatch.setattr("voiceapi.cli.server.Server", refuse)
    database, settings = database_at(tmp_path / "v.db"), {"VOICEAPI_HOST": "127.0.0.2", "VOICEAPI_PORT": "8123"}
    if hosted:
        app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": "test-key-0123456789", **settings})
        result = CliRunner().invoke(FlaskGroup(create_app=lambda: app), ["voiceapi", "serve", *arguments])
        app.extensions["voiceapi"].close()
    else:
        result = command_on(database)("serve", *arguments, **settings)
    assert asked == [(host, port)], result.output
    assert f"Port {port} of {host} is in use" in result.stderr


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_a_port_that_there_is_not_is_refused(tmp_path: Path, database_at: Callable[..., str], port: str) -> None:
    result = command_on(database_at(tmp_path / "v.db"))("serve", "--port", port)
    assert (result.exit_code, "Invalid value for '--port'" in result.stderr) == (2, True)


@pytest.mark.long
def test_serve_shows_the_first_key_once(settings: dict[str, str]) -> None:
    del settings["VOICEAPI_API_KEY"]
    with served(settings, "--port", "0") as (server, line):
        assert line.startswith(FIRST)
        key = line.removeprefix(FIRST)
        assert KEY.fullmatch(key)
        assert server.stderr is not None
        origin = server.stderr.readline().split()[-1]
        assert server.stderr.readline() == f"Console: {origin}/#key={key}\n"
        with urllib.request.urlopen(origin, timeout=60) as answer:
            assert answer.headers["Content-Type"].startswith("text/html")
    with served(settings, "--port", "0") as (server, line):
        listens = re.fullmatch(r"voiceapi \S+ listens on (http://127\.0\.0\.1:[1-9]\d*)", line)
        assert listens is not None
        assert server.stderr is not None
        assert server.stderr.readline() == f"Console: {listens[1]}/\n"


@pytest.mark.long
def test_serve_on_a_name_with_several_addresses(settings: dict[str, str]) -> None:
    with served(settings, "--host", "*", "--port", "0") as (_, line):
        assert re.fullmatch(r"voiceapi \S+ listens on (http://(0\.0\.0\.0|\[::\]):\d+( and |$))+", line)


@pytest.mark.long
def test_serve_where_it_can_not_listen(settings: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with served(settings, "--port", str(taken.getsockname()[1])) as (server, line):
            port = taken.getsockname()[1]
            assert line == (
                f"Error: Port {port} of 127.0.0.1 is in use by another program; choose another with --port or "
                "VOICEAPI_PORT."
            )
            assert server.wait(60) == 1
    with served(settings, "--host", "nowhere.invalid") as (server, line):
        reason = "Invalid host/port specified. --host or VOICEAPI_HOST says where to listen."
        assert (line, server.wait(60)) == (f"Error: Can't listen on nowhere.invalid, port 8000: {reason}", 1)


# -- settings and files that can't be used


@pytest.mark.parametrize(
    ("env", "error"),
    [
        ({"VOICEAPI_PORT": "x"}, "VOICEAPI_PORT must be a whole number from 0 to 65535, not 'x'."),
        (
            {"VOICEAPI_API_KEY": "secret"},
            f"VOICEAPI_API_KEY must be {API_KEY}.",
        ),
        (
            {"VOICEAPI_DATABASE": "foo://x"},
            "The database foo://x isn't known: give a path, or a URL postgresql://...",
        ),
        (
            {"VOICEAPI_DATABASE": "/dev/null/voice.db"},
            "The files of the database /dev/null/voice.db can't be made: File exists.",
        ),
        ({"VOICEAPI_DATABASE": "/"}, "The database / can't be opened: unable to open database file."),
    ],
)
@pytest.mark.parametrize("command", [("serve",), ("keys", "list"), ("chat", "1")])
def test_a_bad_setting_is_one_line(run: Callable[..., Result], env: Any, error: str, command: tuple[str, ...]) -> None:
    result = run(*command, **env)
    # A setting that can't be read is an error of usage; one that can, and leads to no database, is a finding.
    code = 2 if error.startswith("VOICEAPI_") else 1
    error = error if code == 2 else f"{error} VOICEAPI_DATABASE says where it is."
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", f"Error: {error}\n")


def test_a_file_that_is_no_database(run: Callable[..., Result], save: Callable[..., str]) -> None:
    name = save(b"These are no records, but words.", "notes.txt")
    result = run("keys", "list", VOICEAPI_DATABASE=name)
    error = f"Error: The database {name} can't be opened: file is not a database. VOICEAPI_DATABASE says where it is.\n"
    assert (result.exit_code, result.stderr) == (1, error)
    assert sorted(path.name for path in Path(name).parent.iterdir()) == ["notes.txt"]


BAD_FILES = [
    (b"", "is not JSON that can be used: JSON decode error, at 0."),
    (b'{"nodes": [', "is not JSON that can be used: JSON decode error, at 11."),
    (b'{"nodes": NaN}', "is not JSON that can be used: JSON decode error, at 10."),
    (b'{"\xff": 1}', "is not text in UTF-8."),
    (
        b"[" * 100_000,
        "is not JSON that can be used: Value error, lists and objects may be nested at most 100 deep, at its top.",
    ),
    (
        b'{"nodes": [{"id": "\\ud800"}]}',
        "is not JSON that can be used: Input should be a valid string, unable to parse raw data as a unicode string, "
        "at nodes.0.id.",
    ),
]


@pytest.mark.parametrize("command", ["validate", "chat"])
@pytest.mark.parametrize(("content", "error"), BAD_FILES)
def test_a_bad_file_is_one_line(
    run: Callable[..., Result], save: Callable[..., str], command: str, content: bytes, error: str
) -> None:
    name = save(content)
    result = run(command, name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1] == f"Error: {name} {error}"


@pytest.mark.parametrize("command", ["validate", "chat"])
@pytest.mark.parametrize(("name", "reason"), [("nope.json", "No such file or directory"), (".", "Is a directory")])
def test_a_file_that_can_not_be_read(
    run: Callable[..., Result], tmp_path: Path, command: str, name: str, reason: str
) -> None:
    path = str(tmp_path / name)
    result = run(command, path)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, f"Error: {path} can't be read: {reason}.")


@pytest.mark.parametrize("name", ["/dev/zero", "-"])
@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a file without an end")
def test_a_file_without_an_end_is_not_read_whole(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(definitions, "LARGEST", 2 * 1024 * 1024)
    result = run("validate", name, input=b" " * (2 * 1024 * 1024 + 1))
    shown = "Standard input" if name == "-" else name
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, f"Error: {shown} is larger than 2 MiB.")


@pytest.mark.parametrize("arguments", [["--help"], ["keys", "--help"], ["lint", "{file}"], ["openapi"]])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full disk")
def test_output_to_a_full_disk_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    file = ROOT / "examples" / "menu.json"
    # What is left in the buffer can't be written when the file is closed, either.
    with suppress(OSError), open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as ended:
            main([each.format(file=file) for each in arguments])
    assert ended.value.code == 1
    assert capsys.readouterr().err == "Error: What the command writes can't be written: No space left on device.\n"


# -- validate


def test_validate_a_good_file(run: Callable[..., Result], save: Callable[..., str], talk: Callable[..., Any]) -> None:
    for definition in (talk(), {"name": "x", "workflow_definition": talk()}):
        name = save(definition)
        result = run("validate", name)
        assert (result.exit_code, result.stdout, result.stderr) == (0, f"{name} is valid.\n", "")
    result = run("validate", name, "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"is_valid": True, "errors": [], "warnings": []})


def test_validate_a_file_with_findings(run: Callable[..., Result], save: Callable[..., str], talk: Any) -> None:
    definition = talk(prompt="", no_such_field=1)
    name = save(definition)
    result = run("validate", name)
    assert (result.exit_code, result.stderr) == (1, "")
    first, second, last = result.stdout.splitlines()
    assert first.startswith("error: node 1 data.prompt: ")
    assert second == "warning: node 1 data.no_such_field: no_such_field is not known here and has no effect."
    assert last == f"{name} is not valid."
    result = run("validate", name, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["is_valid"]) == (1, False)
    assert [(item["kind"], item["id"], item["field"]) for item in found["errors"]] == [("node", "1", "data.prompt")]


def test_validate_needs_no_database(run: Callable[..., Result], save: Callable[..., str], talk: Any) -> None:
    assert run("validate", save(talk()), VOICEAPI_DATABASE="/dev/null/voice.db").exit_code == 0


@pytest.mark.parametrize("content", ["[]", "3", "null", "{}", '{"nodes": 1, "edges": {}}'])
def test_validate_whatever_is_json(run: Callable[..., Result], save: Callable[..., str], content: str) -> None:
    assert run("validate", save(content.encode())).exit_code == 1


# -- chat


def test_chat_with_a_file(run: Callable[..., Result], save: Callable[..., str], talk: Callable[..., Any]) -> None:
    name = save(talk(greeting="Hello {{name}}, is now a good time?"))
    result = run("chat", name, "--set", "name=Ann=Bee", input="yes please\n")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "agent: Hello Ann=Bee, is now a good time?",
        "agent: Great, goodbye.",
        "-- user_qualified; gathered: {}",
    ]


def test_chat_until_the_input_ends(run: Callable[..., Result], save: Callable[..., str], talk: Any) -> None:
    result = run("chat", save(talk()), "--json", input="hm\n")
    assert result.exit_code == 0
    said = json.loads(result.stdout)
    assert said["disposition"] == "user_hangup"
    assert (said["nodes_visited"], said["errors"]) == (["Hello"], [])
    assert [line["role"] for line in said["transcript"]] == ["assistant", "user", "assistant"]


def test_chat_with_silence(run: Callable[..., Result], save: Callable[..., str], talk: Any) -> None:
    result = run("chat", save(talk()), input="\n\n")
    assert result.stdout.splitlines()[-1] == "-- user_idle_max_duration_exceeded; gathered: {}"


def test_chat_with_words_that_are_no_text(run: Callable[..., Result], save: Callable[..., str], talk: Any) -> None:
    result = run("chat", save(talk()), "--json", input=b"yes \xff\n")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["transcript"][1] == {"role": "user", "text": "yes \ufffd"}


@pytest.mark.parametrize("as_json", [False, True])
def test_chat_with_a_model_that_fails(
    run: Callable[..., Result],
    save: Callable[..., str],
    talk: Any,
    as_json: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The chat goes on, and the reason of each failure is there at once."""
    monkeypatch.setattr("voiceapi.llm.chat_completions.WAITS", (0.0, 0.0))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    result = run("chat", save(talk()), *(["--json"] * as_json), input="yes\n", VOICEAPI_LLM_URL=f"http://{address}/v1")
    reason = f"The model server can't be asked: http://{address} could not be reached"
    (line,) = result.stderr.splitlines()
    assert (result.exit_code, line.startswith(f"error: llm: {reason}")) == (0, True)
    if as_json:
        found = json.loads(result.stdout)
        assert found["errors"] == [{"processor": "llm", "error": line.removeprefix("error: llm: ")}]
        assert found["disposition"] == "user_hangup"
    else:
        apology = f"agent: {phrases({})['apology']}"
        assert result.stdout.splitlines()[1:] == [apology, "-- user_hangup; gathered: {}"]


NEEDED = (
    "warning: node 1 data.prompt: This prompt is an instruction to a language model; no language model is configured, "
    "so it is spoken as it is written."
)


def test_chat_warns_of_what_needs_a_model(run: Callable[..., Result], save: Callable[..., str], talk: Any) -> None:
    result = run("chat", save(talk(greeting="")), "--json", input="yes\n")
    assert (result.exit_code, result.stderr) == (0, f"{NEEDED}\n")
    assert json.loads(result.stdout)["disposition"] == "user_qualified"
    assert run("chat", save(talk()), input="yes\n").stderr == ""
    url = "http://127.0.0.1:1/v1"
    assert "warning" not in run("chat", save(talk(greeting="")), VOICEAPI_LLM_URL=url).stderr


def test_validate_warns_of_what_needs_a_model(run: Callable[..., Result], save: Callable[..., str], talk: Any) -> None:
    name = save(talk(greeting="", tool_uuids=["x"]))
    result = run("validate", name)
    tool = "warning: node 1 data.tool_uuids.0: Only a language model calls this tool; no language model is configured."
    assert (result.exit_code, result.stdout) == (0, f"{NEEDED}\n{tool}\n{name} is valid.\n")
    found = json.loads(run("validate", "--json", name).stdout)
    assert [each["field"] for each in found["warnings"]] == ["data.prompt", "data.tool_uuids.0"]
    url = "http://127.0.0.1:1/v1"
    assert run("validate", name, VOICEAPI_LLM_URL=url).stdout == f"{name} is valid.\n"


@contextmanager
def model_server() -> Iterator[tuple[str, list[Any]]]:
    """A model that always says the same; its URL, and the bodies of the requests to it."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            content = b'{"choices": [{"message": {"role": "assistant", "content": "Hm."}}]}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_chat_with_a_file_offers_the_tools_and_documents_of_the_default_organization(
    run: Callable[..., Result], save: Callable[..., str], settings: dict[str, str], talk: Any
) -> None:
    app = create_app(settings)
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = settings["VOICEAPI_API_KEY"]
    calculator = {"name": "Sums", "definition": {"schema_version": 1, "type": "calculator", "config": {}}}
    tool = client.post("/api/v1/tools/", json=calculator).get_json()["tool_uuid"]
    file = {"file": (io.BytesIO(b"We open at nine."), "hours.md")}
    document = client.post("/api/v1/knowledge-base/documents", data=file).get_json()["document_uuid"]
    app.extensions["voiceapi"].close()
    name = save(talk(tool_uuids=[tool, "unknown"], document_uuids=[document]))
    with model_server() as (url, asked):
        result = run("chat", name, input="When do you open?\n", VOICEAPI_LLM_URL=url)
    assert (result.exit_code, result.stderr) == (0, "")
    offered = [each["function"]["name"] for each in asked[0]["tools"]]
    assert offered == ["retrieve_from_knowledge_base", "safe_calculator", "yes", "no"]
    without = run("chat", name, input="yes\n")
    assert [line.split(": ")[1] for line in without.stderr.splitlines()] == [
        "node 1 data.tool_uuids.0",
        "node 1 data.tool_uuids.1",
        "node 1 data.document_uuids",
    ]


def test_chat_with_a_file_without_a_default_organization(
    run: Callable[..., Result], save: Callable[..., str], talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voiceapi.cli.chat.api_keys.DEFAULT_ORGANIZATION", "nobody")
    result = run("chat", save(talk(tool_uuids=["x"], document_uuids=["y"])), input="yes\n")
    assert result.stdout.splitlines()[-1] == "-- user_qualified; gathered: {}"


def test_chat_with_a_stored_workflow(run: Callable[..., Result], settings: dict[str, str], talk: Any) -> None:
    app = create_app(settings)
    client = app.test_client()
    headers = {"X-API-Key": settings["VOICEAPI_API_KEY"]}
    body = {"name": "x", "workflow_definition": talk(greeting="Stored.")}
    client.post("/api/v1/workflow/create/definition", json=body, headers=headers)
    app.extensions["voiceapi"].close()
    assert run("chat", "1").stdout.splitlines()[0] == "agent: Stored."
    for missing, error in (
        ("2", "There is no workflow with id 2. `voiceapi workflow list` shows which there are."),
        ("9" * 30, f"{'9' * 30} can't be read: No such file or directory."),
        ("²", "² can't be read: No such file or directory."),
    ):
        assert run("chat", missing).stderr.splitlines()[-1] == f"Error: {error}"


def test_chat_that_can_not_begin(run: Callable[..., Result], save: Callable[..., str], talk: Any) -> None:
    name = save({})
    result = run("chat", name)
    error = f'Error: {name} can\'t be run: The workflow needs a list "nodes". Try `voiceapi validate`.\n'
    assert (result.exit_code, result.stderr) == (1, error)
    for pair, text in (("name", "--set takes NAME=VALUE, not 'name'."), ("=x", "--set takes NAME=VALUE, not '=x'.")):
        result = run("chat", save(talk()), "--set", pair)
        assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, f"Error: {text}")


# -- keys


def test_a_key_is_written_alone(run: Callable[..., Result], settings: dict[str, str]) -> None:
    result = run("keys", "create", "ci")
    key = result.stdout.removesuffix("\n")
    assert (result.exit_code, result.stderr) == (0, "")
    assert KEY.fullmatch(key)
    result = run("keys", "create", "theirs", "--organization", "strangers")
    assert KEY.fullmatch(result.stdout.removesuffix("\n"))
    app = create_app(settings)
    configs = "/api/v1/organizations/telephony-configs"
    headers = {"X-API-Key": key}
    assert app.test_client().get(configs, headers=headers).get_json()["configurations"][0]["id"] == 1
    headers = {"X-API-Key": result.stdout.strip()}
    assert app.test_client().get(configs, headers=headers).get_json()["configurations"][0]["id"] == 2
    app.extensions["voiceapi"].close()


def test_the_first_key_stays_apart_from_the_new_one(run: Callable[..., Result]) -> None:
    result = run("keys", "create", "ci", VOICEAPI_API_KEY="")
    assert KEY.fullmatch(result.stdout.removesuffix("\n"))
    assert result.stderr.startswith(FIRST)


def test_keys_are_archived_and_reactivated(run: Callable[..., Result]) -> None:
    run("keys", "create", "ci")
    for command, word in (("archive", "archived"), ("reactivate", "active")):
        result = run("keys", command, "2")
        assert (result.exit_code, result.stdout) == (0, f"Key 2 is {word}.\n")
        head, *listed = run("keys", "list").stdout.splitlines()
        assert head.split() == ["ID", "KEY", "STATE", "LAST", "USED", "NAME"]
        assert [line.split()[2:] for line in listed] == [["active", "VOICEAPI_API_KEY"], [word, "ci"]]
    rows = json.loads(run("keys", "list", "--json").stdout)
    shown = {"id": 2, "name": "ci", "key_prefix": rows[1]["key_prefix"], "is_active": True, "last_used_at": None}
    assert rows[1] == shown


NOBODY = "There is no organization named 'none'; --organization takes one of 'default'."


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("archive", "9"), 1, "There is no key with id 9. `voiceapi keys list` shows which there are."),
        (("reactivate", "9"), 1, "There is no key with id 9. `voiceapi keys list` shows which there are."),
        (("list", "--organization", "none"), 1, NOBODY),
        (("archive", "1", "--organization", "none"), 1, NOBODY),
        (
            ("archive", "9" * 30),
            2,
            f"Invalid value for 'KEY_ID': {'9' * 30} is not in the range 1<=x<=9223372036854775807.",
        ),
        (("create", "\udcff"), 2, "Invalid value for 'NAME': it must be text in UTF-8."),
        (
            ("create", "x", "--organization", "\udcff"),
            2,
            "Invalid value for '--organization': it must be text in UTF-8.",
        ),
    ],
)
def test_keys_that_are_not_there(run: Callable[..., Result], arguments: tuple[str, ...], code: int, error: str) -> None:
    result = run("keys", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.splitlines()[-1] == f"Error: {error}"


# -- openapi


@pytest.mark.long
def test_the_document_needs_no_database(run: Callable[..., Result]) -> None:
    result = run("openapi", VOICEAPI_DATABASE="/dev/null/voice.db", VOICEAPI_PORT="none")
    assert (result.exit_code, json.loads(result.stdout)) == (0, document())


def test_the_commands_of_a_host_use_its_app(settings: dict[str, str]) -> None:
    app = create_app(settings)
    flask = FlaskGroup(create_app=lambda: app)
    result = CliRunner().invoke(flask, ["voiceapi", "keys", "list"])
    assert (result.exit_code, result.output.split()[-1]) == (0, "VOICEAPI_API_KEY")
    app.extensions["voiceapi"].close()


@pytest.mark.long
def test_a_campaign_from_the_command_line(run: Callable[..., Result], settings: dict[str, str], tmp_path: Path) -> None:
    """Made and started by commands, dialed by a process that does nothing else, watched to its end."""
    app = create_app({**settings, "VOICEAPI_WORKER": False})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = settings["VOICEAPI_API_KEY"]
    client.post("/api/v1/workflow/create/definition", json=json.loads((ROOT / "examples/appointment.json").read_text()))
    app.extensions["voiceapi"].close()
    contacts = tmp_path / "people.csv"
    contacts.write_text("Phone\n+12025550171\n+12025550172\nnobody\n")
    create = ("campaign", "create", str(contacts), "--workflow", "1")
    refused = run(*create)
    assert (refused.exit_code, "It has 'phone'." in refused.stderr) == (1, True)
    create = (*create, "--phone-number-column", "Phone")
    refused = run(*create, "--strict")
    assert (refused.exit_code, refused.stderr.splitlines()[-1]) == (
        1,
        "Error: row 3: A number to call is written with + and its country code, such as +12025550123.",
    )
    assert run(*create, "--calling-hours", "9-5").exit_code == 2
    assert run(*create).stdout == "1\n"
    assert "contacts to call: 2" in " ".join(run("campaign", "show", "1").stdout.split())
    simulated = run("campaign", "simulate", "1", "--json")
    assert json.loads(simulated.stdout)["skipped"] == {"row_skipped": 1}
    assert run("campaign", "simulate", "1").stdout.splitlines()[-1].endswith(".")
    assert run("campaign", "watch", "1").stdout == "created     0.0 %  no contacts yet\n"
    assert run("campaign", "start", "1").stdout == "Campaign 1 is started.\n"
    dialer = subprocess.Popen(
        [sys.executable, "-m", "voiceapi", "dial"], cwd=ROOT, env={**os.environ, **settings}, stderr=subprocess.PIPE
    )
    try:
        watched = run("campaign", "watch", "1")
        assert (watched.exit_code, watched.stdout.splitlines()[-1]) == (0, "completed 100.0 %  2 completed, 1 skipped")
    finally:
        dialer.send_signal(signal.SIGTERM)
        _, errors = dialer.communicate(timeout=60)
    assert (dialer.returncode, errors.decode().splitlines()[-1]) == (0, "voiceapi stops")


def test_watching_shows_each_line_once(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """A count that the line doesn't show may change."""
    states = iter([("running", 3), ("running", 4), ("completed", 4)])

    def progress(*_: Any) -> dict[str, Any]:
        state, failed = next(states)
        return {
            "state": state,
            "progress_percentage": 100.0,
            "contacts": {"retry": 3},
            "failed_calls": failed,
            "not_dialed_since": None,
        }

    monkeypatch.setattr(campaigns.campaigns, "get", lambda *_: None)
    monkeypatch.setattr(campaigns.lifecycle, "progress", progress)
    monkeypatch.setattr(campaigns, "WATCH_SECONDS", 0)
    assert run("campaign", "watch", "1").stdout == "running   100.0 %  3 retry\ncompleted 100.0 %  3 retry\n"


# -- what is waited for, and what isn't


@pytest.fixture(scope="module")
def unreachable() -> StoreError:
    """The error of a server that doesn't run."""
    with pytest.raises(StoreError, match="can't be opened") as raised:
        check_version(Store("postgresql://voice@127.0.0.1:1/voice"))
    return raised.value


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch, app: Flask) -> Callable[..., Result]:
    """Runs a command that waits for its database, whose app fails with these errors before it is made."""

    def start(errors: list[StoreError], name: str = "starts") -> Result:
        passed = 0.0

        def sleep(seconds: float) -> None:
            nonlocal passed
            passed += seconds

        def make(_: Any) -> Flask:
            if errors:
                raise errors.pop(0)
            return app

        @group.command("starts", with_appcontext=False)
        @base.waits_for_database
        @with_appcontext
        def command() -> None:
            click.echo(f"started after {passed:g} s")

        monkeypatch.setattr(base, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: passed))
        try:
            return CliRunner().invoke(group, [name], prog_name="voiceapi", obj=script_info(make))
        finally:
            del group.commands["starts"]

    return start


def test_a_start_waits_for_a_database_that_is_not_reached_yet(
    starts: Callable[..., Result], unreachable: StoreError
) -> None:
    result = starts([unreachable] * 12)
    assert (result.exit_code, result.stdout) == (0, "started after 12 s\n")
    assert result.stderr.splitlines() == [f"{unreachable} Waits for it, {left} s at most." for left in (30, 25, 20)]


@pytest.mark.parametrize("name", ["serve", "dial"])
def test_the_wait_for_a_database_ends(name: str, starts: Callable[..., Result], unreachable: StoreError) -> None:
    result = starts([unreachable] * 40, name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 6 + 1
    assert result.stderr.endswith(f"Error: {unreachable} VOICEAPI_DATABASE says where it is.\n")
    # What waiting doesn't mend is told at once.
    result = starts([StoreError("The database x was written by a newer release.")], name)
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)


INTERRUPTED = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from voiceapi.__main__ import main
main(["keys", "list"])
"""


@pytest.mark.parametrize("name", [pytest.param("voiceapi.cli.main", marks=pytest.mark.long), "voiceapi.opening"])
def test_an_interrupt_while_a_command_is_imported_says_nothing(name: str, settings: dict[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(name=name)], capture_output=True, env={**os.environ, **settings}
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, b"", b"")
