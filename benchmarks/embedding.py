"""What voiceapi costs the tests of a host's app: once for the suite, and for each app that a test makes."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .processes import ROOT

APPS, TIMES = 40, 5
HOST = """
import os
from flask import Flask

if os.environ["WITH"]:
    from voiceapi import VoiceAPI

    voice = VoiceAPI()


def create_app():
    app = Flask(__name__)
    app.add_url_rule("/", "home", lambda: "Hello.")
    if os.environ["WITH"]:
        voice.init_app(app, url_prefix="/voice")
    return app
"""
# As in the tutorial of Flask: an app for each test.
TESTS = """
import os

import host
import pytest


@pytest.fixture
def app():
    return host.create_app()


@pytest.mark.parametrize("number", range(int(os.environ["APPS"])))
def test_home(app, number):
    assert app.test_client().get("/").text == "Hello."
"""


@dataclass(frozen=True, slots=True)
class Embedding:
    """Seconds of the processor that voiceapi adds to a suite: once, with its first app, and for each further one."""

    once: float
    each: float


def measure_embedding(folder: Path, apps: int = APPS, times: int = TIMES) -> Embedding:
    """The medians of a few runs of suites with one test and with many, each with voiceapi and without."""
    suite = folder / "host-suite"
    suite.mkdir()
    (suite / "host.py").write_text(HOST, encoding="utf-8")
    (suite / "test_host.py").write_text(TESTS, encoding="utf-8")
    found: dict[tuple[str, int], list[float]] = {}
    for number in range(times + 1):
        for given in ("", "voiceapi"):
            for count in (1, 1 + apps):
                seconds = _seconds(suite, given, count)
                if number:  # the first run compiles
                    found.setdefault((given, count), []).append(seconds)
    taken = {key: statistics.median(values) for key, values in found.items()}
    once, all_ = (taken["voiceapi", count] - taken["", count] for count in (1, 1 + apps))
    return Embedding(once, (all_ - once) / apps)


def _seconds(suite: Path, given: str, count: int) -> float:
    """Of the processor, which a run of the suite takes."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VOICEAPI_")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment |= {"WITH": given, "APPS": str(count), "PYTHONPATH": str(ROOT)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    subprocess.run(command, cwd=suite, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
