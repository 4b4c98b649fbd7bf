"""The console's address: what a start shows, and the command `console`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask import Flask
from flask.testing import FlaskClient

from voiceapi import VoiceAPI, create_app
from voiceapi.cli.base import script_info
from voiceapi.cli.console import show_address
from voiceapi.cli.main import group

KEY = "test-key-0123456789"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[..., str]) -> Callable[..., Result]:
    """Runs a command on one database."""
    settings = {
        "VOICEAPI_DATABASE": database_at(tmp_path_factory.mktemp("console") / "voice.db"),
        "VOICEAPI_API_KEY": KEY,
    }

    def command(*arguments: str, **env: str) -> Result:
        obj = script_info(create_app)
        return CliRunner().invoke(group, arguments, env={**settings, **env}, prog_name="voiceapi", obj=obj)

    return command


@pytest.mark.parametrize(
    ("env", "before"),
    [
        ({"VOICEAPI_HOST": "0.0.0.0", "VOICEAPI_PORT": "8010"}, "http://127.0.0.1:8010/#key="),
        ({"VOICEAPI_HOST": "::"}, "http://[::1]:8000/#key="),
        ({"VOICEAPI_PUBLIC_URL": "https://voice.example.org", "VOICEAPI_PORT": "0"}, "https://voice.example.org/#key="),
    ],
)
def test_the_command_makes_a_key_and_writes_the_address_with_it(
    run: Callable[..., Result], env: dict[str, str], before: str
) -> None:
    result = run("console", **env)
    address, key = result.stdout.strip().split("#key=")
    assert (result.exit_code, result.stderr, f"{address}#key=", key[:3]) == (0, "", before, "va_")


def test_the_key_is_of_the_organization_and_the_name_that_are_given(run: Callable[..., Result]) -> None:
    address, key = run("console", "--organization", "Ada", "--name", "laptop").stdout.strip().split("#key=")
    assert address == "http://127.0.0.1:8000/"
    (listed,) = json.loads(run("keys", "list", "--organization", "Ada", "--json").stdout)
    assert (listed["name"], key.startswith(listed["key_prefix"])) == ("laptop", True)


@pytest.mark.parametrize(
    ("env", "code", "error"),
    [
        ({"VOICEAPI_CONSOLE": "off"}, 1, "Error: The console isn't served: VOICEAPI_CONSOLE is off.\n"),
        ({"VOICEAPI_PORT": "0"}, 2, "Error: VOICEAPI_PORT is 0, so every start has another port: "),
    ],
)
def test_no_key_is_made_where_there_is_no_address(
    run: Callable[..., Result], env: dict[str, str], code: int, error: str
) -> None:
    result = run("console", "--organization", "Nobody", **env)
    assert (result.exit_code, result.stdout, error in result.stderr) == (code, "", True)
    assert run("keys", "list", "--organization", "Nobody").exit_code == 1


# -- in a host app


def hosted(database: str, **settings: Any) -> Flask:
    app = Flask("host")
    app.config.update(VOICEAPI_DATABASE=database, **settings)
    return app


def test_a_hosts_console_is_at_its_prefix(
    tmp_path: Path, database_at: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    app = hosted(database_at(tmp_path / "voice.db"), VOICEAPI_API_KEY=KEY)
    VoiceAPI().init_app(app, url_prefix="/voice")
    result = app.test_cli_runner().invoke(args=["voiceapi", "console"])
    app.extensions["voiceapi"].close()
    assert result.stdout.startswith("/voice/console#key=va_")
    assert result.stderr == "This is a path of your app; set VOICEAPI_PUBLIC_URL for the whole address.\n"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "/voice/console"),
        ({"VOICEAPI_PUBLIC_URL": "https://a.example"}, "https://a.example/voice/console"),
        ({"VOICEAPI_CONSOLE": "off"}, None),
    ],
)
def test_the_first_key_of_a_host_comes_with_the_address(
    tmp_path: Path,
    database_at: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, str],
    address: str | None,
) -> None:
    app = hosted(database_at(tmp_path / "voice.db"), **settings)
    VoiceAPI().init_app(app, url_prefix="/voice")
    app.extensions["voiceapi"].close()
    first, *lines = capsys.readouterr().err.splitlines()
    key = first.removeprefix("First API key, shown this once: ")
    assert lines == ([f"Console: {address}#key={key}"] if address else [])


def test_behind_a_login_no_key_is_needed(
    tmp_path: Path, database_at: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    app = hosted(database_at(tmp_path / "voice.db"))
    VoiceAPI(authenticate=lambda: "ada").init_app(app, url_prefix="/voice")
    app.extensions["voiceapi"].close()
    assert "Console" not in capsys.readouterr().err


# -- what a start shows


@pytest.mark.parametrize(
    ("listening", "shown"),
    [
        (("127.0.0.1", 8000), "http://127.0.0.1:8000/"),
        (("0.0.0.0", 8000), "http://127.0.0.1:8000/"),
        (("::", 9), "http://[::1]:9/"),
        (("fd00::7", 80), "http://[fd00::7]:80/"),
        (("192.0.2.1", 8000), "http://192.0.2.1:8000/"),
    ],
)
def test_the_address_leads_a_browser_to_the_server(
    shared: FlaskClient, capsys: pytest.CaptureFixture[str], listening: tuple[str, int], shown: str
) -> None:
    with shared.application.app_context():
        show_address(listening)
    assert capsys.readouterr().err == f"Console: {shown}\n"


def test_the_public_address_is_shown_beside_it(
    tmp_path: Path, database_at: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {
        "VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"),
        "VOICEAPI_PUBLIC_URL": "https://voice.example.org",
    }
    app = create_app(settings)
    with app.app_context():
        show_address(("127.0.0.1", 8000))
        show_address(("127.0.0.1", 8000))
    app.extensions["voiceapi"].close()
    first, address, later = capsys.readouterr().err.splitlines()
    key = first.removeprefix("First API key, shown this once: ")
    assert address == f"Console: http://127.0.0.1:8000/#key={key} and https://voice.example.org/#key={key}"
    assert later == "Console: http://127.0.0.1:8000/ and https://voice.example.org/"


def test_nothing_is_shown_of_a_console_that_is_off(
    tmp_path: Path, database_at: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    app = create_app(
        {"VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"), "VOICEAPI_API_KEY": KEY, "VOICEAPI_CONSOLE": "off"}
    )
    with app.app_context():
        show_address(("127.0.0.1", 8000))
    app.extensions["voiceapi"].close()
    assert capsys.readouterr().err == ""
