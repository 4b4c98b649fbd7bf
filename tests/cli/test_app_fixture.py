"""The fixture `voiceapi` of the plugin for pytest, in a host's own suite, which runs in a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_pytest_plugin import PYTEST

ROOT = Path(__file__).parents[2]
SHOP = """
from flask import Flask
from voiceapi import Run, VoiceAPI

voice = VoiceAPI()
noted = []


def create_app(**config):
    app = Flask(__name__)
    app.config.update(config)
    voice.init_app(app, url_prefix="/voice")
    with app.app_context():
        voice.publish("appointment.json")

    @app.post("/call/<number>")
    def call(number):
        return {"run": voice.call("appointment", number).id}

    return app


@voice.on_run_completed
def note(run: Run) -> None:
    noted.append(run.id)
    if run.to == "+12025550101":
        raise KeyError("nobody answered")


app = create_app()
"""
TESTS = """
import threading
from datetime import timedelta
from pathlib import Path

import pytest

import shop

@pytest.fixture
def app():
    shop.noted.clear()
    return shop.create_app(TESTING=True)


@pytest.mark.parametrize("number", range(3))
def test_a_call_goes_on_to_its_end(app, voiceapi, number):
    assert app.test_client().post("/call/+12025550123").get_json() == {"run": 1}
    (run,) = voiceapi.finish()
    assert (run.id, run.is_completed, run.disposition) == (1, True, "user_hangup")
    assert shop.noted == [1]
    assert voiceapi.finish() == []


class TestAppOfAModule:
    @pytest.fixture
    def app(self):
        shop.noted.clear()
        return shop.app

    @pytest.mark.parametrize("number", range(3))
    def test_it_has_a_database_for_each_test(self, app, voiceapi, number):
        assert app.test_client().post("/call/+12025550123").get_json() == {"run": 1}
        assert [run.id for run in voiceapi.finish()] == [1]
        assert shop.noted == [1]
        runs = app.test_client().get("/voice/api/v1/workflow/1/runs", headers={"X-API-Key": voiceapi.key})
        assert runs.get_json()["total_count"] == 1


def test_what_a_function_raises_fails_the_test_and_is_tried_again_by_the_clock(app, voiceapi):
    app.test_client().post("/call/+12025550101")
    with pytest.raises(KeyError, match="nobody answered"):
        voiceapi.finish()
    (run,) = voiceapi.finish()
    assert (run.disposition, shop.noted) == ("busy", [1])
    began = voiceapi.now
    voiceapi.advance(timedelta(seconds=30))
    assert timedelta(seconds=30) <= voiceapi.now - began < timedelta(seconds=60)
    with pytest.raises(KeyError):
        voiceapi.finish()
    assert shop.noted == [1, 1]


def test_what_the_callee_says(app, voiceapi):
    voiceapi.says("Yes, I can.", "We will be three.")
    app.test_client().post("/call/+12025550123")
    (run,) = voiceapi.finish()
    assert [turn.text for turn in run.turns if turn.who == "caller"] == ["Yes, I can.", "We will be three."]
    assert (run.disposition, run.gathered["extracted_variables"]) == ("user_qualified", {"companions": 3})


def test_a_chat_that_is_left_alone(app, voiceapi):
    with app.app_context():
        shop.voice.chat("appointment")
    assert voiceapi.finish() == []
    voiceapi.advance(timedelta(hours=1))
    (run,) = voiceapi.finish()
    assert run.disposition == "user_idle_max_duration_exceeded"


def test_without_the_fixture_nothing_runs_by_itself():
    app = shop.create_app(VOICEAPI_SECRET="a secret of the tests, 0123456789")
    assert app.test_client().get("/").status_code == 404
    assert [each.name for each in threading.enumerate()] == ["MainThread"]
    assert "voiceapi" in Path(app.extensions["voiceapi"].store.name).parent.parent.name


def test_a_database_of_the_hosts_choice(tmp_path):
    app = shop.create_app(VOICEAPI_DATABASE=tmp_path / "own.db", VOICEAPI_WORKER="on")
    assert (tmp_path / "own.db").exists()
    app.test_client().get("/")
    assert threading.active_count() > 1
    app.extensions["voiceapi"].close()


def test_no_thread_and_no_file_is_left():
    assert [each.name for each in threading.enumerate()] == ["MainThread"]
    assert not Path(shop.app.instance_path).exists()
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "shop.py").write_text(SHOP)
    shutil.copy(ROOT / "examples" / "appointment.json", folder)
    return folder


def run(folder: Path, tests: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_shop.py").write_text(tests)
    environment = {"PYTHONPATH": f"{ROOT}:{folder}"}
    return subprocess.run([*PYTEST, *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def test_a_hosts_suite(shop: Path, tmp_path: Path) -> None:
    done = run(shop, TESTS, f"--basetemp={tmp_path / 'base'}")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "12 passed" in done.stdout
    # What was made for so many apps is gone, but for what pytest itself keeps.
    assert [*(tmp_path / "base").rglob("*.db")] == [tmp_path / "base" / "test_a_database_of_the_hosts_c0" / "own.db"]


@pytest.mark.parametrize(
    ("fixture", "text"),
    [
        ("", "The fixture `voiceapi` needs one named `app`, which returns your Flask app."),
        ("@pytest.fixture\ndef app():\n    return flask.Flask('a')\n", "returns no Flask app with voiceapi"),
    ],
)
@pytest.mark.long
def test_what_the_fixture_needs(shop: Path, fixture: str, text: str) -> None:
    done = run(shop, f"import flask, pytest\n{fixture}\ndef test_it(voiceapi): ...\n")
    assert done.returncode != 0
    assert text in done.stdout + done.stderr


@pytest.mark.long
def test_processes_of_xdist(shop: Path) -> None:
    done = run(shop, TESTS, "-n", "2")
    assert (done.returncode, "12 passed" in done.stdout) == (0, True), done.stdout


def test_a_process_that_a_test_starts_has_the_settings_of_its_environment(tmp_path: Path) -> None:
    """Only apps of the process in which the plugin is get a prepared database."""
    script = (
        "from flask import Flask; from voiceapi import VoiceAPI; "
        f"VoiceAPI(Flask('a', instance_path={str(tmp_path)!r})).init_app"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "voiceapi.db").exists()
