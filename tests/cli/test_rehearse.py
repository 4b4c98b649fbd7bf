"""The command `rehearse`: played callers against agents in files and stored ones."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.rehearsal.broken_agents import BROKEN
from tests.rehearsal.strict_model import StrictModel, serving, settings_of
from voiceapi.cli.main import group

Command = Callable[..., Result]
EXAMPLES = Path(__file__).parents[2] / "examples"

Run = Callable[..., Result]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with agents in it. There is no database, and no command may make one."""
    folder = tmp_path / "agents"
    folder.mkdir()
    broken = BROKEN["a question without an edge"]
    (folder / "broken.json").write_text(json.dumps(broken.definition))
    for name in ("appointment.json", "repair.json", "table.json"):
        shutil.copy(EXAMPLES / name, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("VOICEAPI_DATABASE", str(tmp_path / "nowhere" / "voice.db"))
    return folder


@pytest.fixture
def rehearse(here: Path) -> Run:
    def command(*arguments: str) -> Result:
        result = CliRunner().invoke(group, ["rehearse", *arguments], prog_name="voiceapi")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return command


def test_random_callers_find_a_dead_end(rehearse: Run, here: Path) -> None:
    result = rehearse("broken.json", "--random", "-n", "40", "--seed", "3")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "40 conversations with random callers. The agent was spoken by the scripted model."
    assert lines[1].startswith("Endings:  ")
    assert lines[3] == "Coverage: nodes 3 of 3, edges 2 of 2, variables 0 of 0"
    assert lines[5].startswith("dead-end: Nobody left “When”. No edge leads on, and nothing ends the call there; ")
    assert lines[6] == "    Ask   agent    Do you want to come?"
    assert lines[8] == "    When  -> edge  Yes → When"
    assert lines[-3] == "    When  caller   [hangs up]"
    assert lines[-1] == "Found: 1. Seed: 3"
    assert rehearse("broken.json", "-n", "40", "--seed", "3").stdout == result.stdout
    assert not (here.parent / "nowhere").exists()


def test_a_sound_agent_is_good(rehearse: Run) -> None:
    result = rehearse("appointment.json", "-n", "30", "--seed", "1")
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "Found: 0. Seed: 1")
    assert "the scripted model" in rehearse("table.json", "-n", "1").output
    assert "random decisions" in rehearse("table.json", "-n", "1", "--model", "played").output


def test_an_agent_without_scripted_texts_is_spoken_by_random_decisions(rehearse: Run, here: Path) -> None:
    text = (here / "table.json").read_text()
    (here / "table.json").write_text(re.sub(r',\s*"scripted_text": "[^"]*"', "", text))
    assert "random decisions" in rehearse("table.json", "-n", "1").output


def test_a_language_model_in_the_environment_speaks_for_files(rehearse: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICEAPI_LLM_URL", "http://127.0.0.1:9/v1")
    assert "random decisions" in rehearse("appointment.json", "-n", "1").output


def test_the_tools_of_a_file_are_offered(rehearse: Run) -> None:
    result = rehearse("repair.json", "-n", "60", "--seed", "1", "--model", "played")
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "Found: 0. Seed: 1")


def test_the_tools_of_cases_beside_a_file_are_offered(rehearse: Run, here: Path) -> None:
    broken = BROKEN["a tool that only a language model calls"]
    (here / "agent.json").write_text(json.dumps(broken.definition))
    (here / "agent.cases.yaml").write_text(json.dumps({"tools": broken.tools, "cases": [{"name": "a"}]}))
    result = rehearse("agent.json", "-n", "20", "--save", "found.cases.yaml")
    assert "find_a_slot was never called at “Ask”: only a language model calls it" in result.output
    assert rehearse("agent.json", "-n", "20", "--model", "played").exit_code == 0
    # The file of cases brings the tools along that it needs.
    assert "tools:" in (here / "found.cases.yaml").read_text()
    assert CliRunner().invoke(group, ["test", "found.cases.yaml"]).exit_code == 0


def test_what_is_found_is_saved_as_cases_that_pass(rehearse: Run, here: Path) -> None:
    result = rehearse("broken.json", "-n", "40", "--save", "cases/found.cases.yaml")
    assert (result.exit_code, "can't be written" in result.output) == (2, True)
    for name in ("found.cases.yaml", "broken.cases.json"):
        result = rehearse("broken.json", "-n", "40", "--save", name)
        assert (result.exit_code, f"Wrote 1 case into {name}." in result.output) == (1, True)
        assert CliRunner().invoke(group, ["test", name]).exit_code == 0
    text = (here / "found.cases.yaml").read_text()
    assert text.startswith("workflow: broken.json\ncases:\n- name: 'dead-end: When'\n")
    assert "workflow" not in json.loads((here / "broken.cases.json").read_text())
    assert rehearse("broken.json", "--save", "found.cases.yaml").exit_code == 2
    result = rehearse("appointment.json", "-n", "20", "--seed", "1", "--save", "none.cases.yaml")
    assert (result.exit_code, "There is nothing to write" in result.output) == (0, True)
    assert not (here / "none.cases.yaml").exists()


def test_json(rehearse: Run) -> None:
    result = rehearse("broken.json", "-n", "40", "--seed", "3", "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["passed"], found["seed"], found["conversations"]) == (1, False, 3, 40)
    assert [each["code"] for each in found["findings"]] == ["dead-end"]
    assert len(found["findings"][0]["case"]["turns"]) == 2


def test_answers_of_a_file_are_given(rehearse: Run, here: Path) -> None:
    given = "context: {first_name: Grace}\ntools: [{tool: find_a_slot, returns: {free: []}}]\n"
    (here / "answers.yaml").write_text(given)
    played = ("repair.json", "-n", "30", "--seed", "1", "--model", "played")
    assert json.loads(rehearse(*played, "--answers", "answers.yaml", "--json").stdout)["passed"]
    (here / "answers.yaml").write_text("fetch: {fails: It is down.}\n")
    result = rehearse("repair.json", "-n", "3", "--answers", "answers.yaml")
    assert "pipeline-error: pre_call_fetch: It is down." in result.output or result.exit_code == 0
    for text, wrong in (
        ("tools: [{}]", "answers.yaml: tools.0.tool: it is the name of a tool."),
        ("tools: 5", "answers.yaml: tools: "),
        ("context: [1]", "answers.yaml: context: "),
        ("other: 1", "answers.yaml must be an object with the members context, fetch and tools."),
        ("a: [", "answers.yaml: 1."),
    ):
        (here / "answers.yaml").write_text(text)
        result = rehearse("repair.json", "--answers", "answers.yaml")
        assert (result.exit_code, wrong in result.output) == (2, True), result.output


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["broken.json", "--random", "--caller", "in a hurry"], "goes with neither --random nor --model"),
        (["broken.json", "--caller", " "], "--caller takes a sentence"),
        (["broken.json", "--caller", "x", "--model", "scripted"], "goes with neither"),
        (["broken.json", "--version", "1"], "--version is of a stored workflow"),
        (["nowhere.json"], "nowhere.json can't be read"),
        (["broken.json", "-n", "0"], "0 is not in the range"),
        (["broken.json", "--seed", "-1"], "-1 is not in the range"),
    ],
)
def test_wrong_usage(rehearse: Run, arguments: list[str], wrong: str) -> None:
    result = rehearse(*arguments)
    assert (result.exit_code, wrong in result.output) == (2, True), result.output


def test_an_agent_that_cant_run_is_wrong_usage(rehearse: Run, here: Path) -> None:
    (here / "empty.json").write_text('{"nodes": [], "edges": []}')
    result = rehearse("empty.json")
    assert (result.exit_code, "must have at least one Start Call" in result.output) == (2, True)


def test_a_stored_workflow_and_its_version(run: Command) -> None:
    draft = json.loads(run("rehearse", "1", "-n", "5", "--seed", "1", "--json").stdout)
    first = json.loads(run("rehearse", "1", "-n", "5", "--seed", "1", "--version", "1", "--json").stdout)
    assert (draft["version_number"], first["version_number"]) == (2, 1)
    missing = run("rehearse", "1", "--version", "9")
    assert (missing.exit_code, "has no version 9" in missing.output) == (1, True)
    assert "There is no workflow with id 7" in run("rehearse", "7").output


@pytest.fixture
def model() -> Iterator[StrictModel]:
    def agent(body: dict[str, object]) -> object:
        return (None, "yes") if str(body["messages"][-1]["content"]) == "Yes!" else "Hm."  # type: ignore[index]

    with serving(StrictModel(lambda body: "Yes!", agent)) as found:
        yield found


def test_a_caller_who_is_described(run: Command, model: StrictModel) -> None:
    result = run("rehearse", "1", "--caller", "in a hurry", "-n", "2", "--seed", "5", **settings_of(model))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "2 conversations with callers: in a hurry. The agent was spoken by its language model."
    assert "Scores:   8 to 8, 8.0 on average, of 2 conversations" in lines
    assert "The worst, conversation 1 (score 8, user_qualified):" in lines
    assert lines[-1] == "Found: 0. Seed: 5"
    assert {body["seed"] for _, body in model.asked} == {5, 6}


def test_a_caller_who_is_described_against_a_file(
    run: Command, model: StrictModel, tmp_path: Path, save: Callable[..., str], talk: Callable[..., Any]
) -> None:
    saved = tmp_path / "worst.cases.yaml"
    result = run(
        *("rehearse", save(talk()), "--caller", "in a hurry", "-n", "1", "--save", str(saved)),
        **settings_of(model),
    )
    assert result.exit_code == 0, result.output
    assert "name: Conversation 1" in saved.read_text()


def test_without_a_language_model_nobody_speaks_the_caller(run: Command) -> None:
    result = run("rehearse", "1", "--caller", "in a hurry")
    assert (result.exit_code, "none is configured" in result.output) == (1, True)


def test_a_callers_model_that_fails_is_a_finding(run: Command, model: StrictModel) -> None:
    model.caller = lambda body: 400
    result = run("rehearse", "1", "--caller", "in a hurry", "-n", "1", **settings_of(model))
    assert (result.exit_code, "The caller's model failed" in result.output) == (1, True)
