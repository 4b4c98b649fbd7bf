"""The plugin for pytest: each case of a case file is a test, and other runs of pytest don't notice it."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from voiceapi.cli import pytest_plugin
from voiceapi.cli.pytest_plugin import CaseItem
from voiceapi.rehearsal.case_file import ENDINGS

ROOT = Path(__file__).parents[2]
PLUGIN = "voiceapi.cli.pytest_plugin"
# pytest finds the plugin of an installed voiceapi itself, and refuses a plugin that it is given twice.
INSTALLED = any(point.value == PLUGIN for point in metadata.entry_points(group="pytest11"))
GIVEN = () if INSTALLED else ("-p", PLUGIN)
PYTEST = (sys.executable, "-W", "error", "-m", "pytest", *GIVEN, "-p", "no:cacheprovider")
CASES = """
cases:
  - name: She comes
    context: {first_name: Ada}
    turns:
      - {caller: "Yes, I can.", says: banana}
  - name: She doesn't
    turns:
      - {caller: No., node: Another day}
"""


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    folder = tmp_path / "agents"
    folder.mkdir()
    shutil.copy(ROOT / "examples" / "appointment.json", folder / "agent.json")
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest there in a process of its own, with the plugin; every warning is an error."""
    return subprocess.run(
        [*PYTEST, *arguments], cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )


def test_it_is_registered_for_every_pytest() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert setup["options.entry_points"]["pytest11"].split() == ["voiceapi", "=", PLUGIN]


def test_it_knows_the_names_of_case_files() -> None:
    assert pytest_plugin.ENDINGS == ENDINGS


def test_importing_it_imports_nothing_else() -> None:
    script = (
        "import sys, pytest; before = {*sys.modules}; import voiceapi.cli.pytest_plugin; "
        "print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["voiceapi", "voiceapi.cli", PLUGIN]


def test_pytest_is_told_where_a_case_begins() -> None:
    """It counts lines from 0, and a case from 1."""
    case = SimpleNamespace(path=Path("a.cases.yaml"), name="She comes", _line=3)
    assert CaseItem.reportinfo(case) == (Path("a.cases.yaml"), 2, "She comes")  # type: ignore[arg-type]


@pytest.mark.long
def test_a_run_without_case_files_is_as_without_it(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(
        "import sys\n\ndef test_it():\n    assert not {'voiceapi.rehearsal', 'yaml', 'flask'} & {*sys.modules}\n"
    )
    (tmp_path / "notes.yaml").write_text("not: [read")
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert "warning" not in done.stdout


@pytest.mark.long
def test_each_case_is_a_test_and_a_failed_one_a_dialogue(agents: Path) -> None:
    (agents / "agent.cases.yaml").write_text(CASES)
    done = run(agents, "--junitxml", "results.xml", "--voiceapi-coverage")
    assert done.returncode == 1, done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "_ She comes _" in done.stdout
    assert "turns.0.says: expected: the agent says “banana”. It said “Wonderful." in done.stdout
    assert "  Remind      caller   Yes, I can.\n" in done.stdout
    assert "> Companions  agent    Wonderful. How many people will come with you?\n" in done.stdout
    assert f"{agents}/agent.json: nodes 3 of 4 (75 %), edges 2 of 3 (66.6 %), variables 0 of 1 (0 %)\n" in done.stdout
    assert "FAILED agent.cases.yaml::She comes - turns.0.says" in done.stdout
    assert "Traceback" not in done.stdout
    # `voiceapi test --junit` writes the same elements with the same names.
    theirs = ElementTree.parse(agents / "results.xml").getroot()
    written = subprocess.run(
        [sys.executable, "-m", "voiceapi", "test", "--junit", "ours.xml"],
        cwd=agents,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
    )
    assert written.returncode == 1
    ours = ElementTree.parse(agents / "ours.xml").getroot()
    assert [each.tag for each in ours.iter()] == [each.tag for each in theirs.iter()]
    for mine, pytests in zip(ours.iter(), theirs.iter(), strict=True):
        assert {*pytests.attrib} <= {*mine.attrib}, mine.tag
    assert [each.get("name") for each in ours.iter("testcase")] == [
        each.get("name") for each in theirs.iter("testcase")
    ]


@pytest.mark.long
def test_tests_are_chosen_and_spread_as_pytest_does(agents: Path) -> None:
    (agents / "agent.cases.yaml").write_text(CASES)
    done = run(agents, "-n", "2", "--voiceapi-coverage")
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "nodes 3 of 4 (75 %)" in done.stdout
    done = run(agents, "agent.cases.yaml::She doesn't")
    assert "1 passed" in done.stdout, done.stdout
    assert "coverage" not in done.stdout


@pytest.mark.long
def test_what_is_wrong_in_a_file_is_an_error_of_collection(agents: Path) -> None:
    (agents / "agent.cases.yaml").write_text("cases:\n  - name: a\n    turn: []\n")
    done = run(agents)
    assert done.returncode == 2
    assert "agent.cases.yaml:3:5: cases.0.turn: it isn't known" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.long
def test_a_case_for_a_language_model_asks_the_one_in_the_environment(agents: Path, tmp_path: Path) -> None:
    """There is none here, so the case says so; the database that keeps a model is opened for it alone."""
    (agents / "agent.cases.yaml").write_text("cases: [{name: a, model: configured}]")
    database = tmp_path / "voice.db"
    env = {"PYTHONPATH": str(ROOT), "VOICEAPI_DATABASE": str(database), "VOICEAPI_API_KEY": "test-key-0123456789"}
    done = subprocess.run(PYTEST, cwd=agents, env=env, capture_output=True, text=True)
    assert "model: expected: a language model is configured." in done.stdout, done.stdout
    assert database.exists()
