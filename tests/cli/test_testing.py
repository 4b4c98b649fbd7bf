"""The command `test`: conversation cases of files and of stored workflows."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from voiceapi.cli import case_sets
from voiceapi.cli.main import group

EXAMPLES = Path(__file__).parents[2] / "examples"
CASES = """
model: scripted
context: {first_name: Ada}
cases:
  - name: She comes
    turns:
      - caller: "Yes, I can."
        says: How many
        edges: [Yes]
        node: Companions
      - caller: Three.
    expect: {disposition: user_qualified, variables: {companions: 3}}
  - name: She doesn't
    turns:
      - caller: No.
        node: Another day
"""
WRONG = """
cases:
  - name: She comes
    context: {first_name: Ada}
    turns:
      - caller: "Yes, I can."
        says: [How many, banana]
        never: wonderful
        node: See you
      - caller: Three.
    expect: {disposition: no_answer}
  - name: She doesn't
    turns: [{caller: No., edges: ["No"]}]
"""
Run = Callable[..., Result]


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with an agent in it. There is no database, and no command may make one."""
    folder = tmp_path / "agents"
    folder.mkdir()
    shutil.copy(EXAMPLES / "appointment.json", folder / "agent.json")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("VOICEAPI_DATABASE", str(tmp_path / "nowhere" / "voice.db"))
    return folder


@pytest.fixture
def run() -> Run:
    def command(*arguments: str) -> Result:
        result = CliRunner().invoke(group, ["test", *arguments], prog_name="voiceapi")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return command


def without_time(text: str) -> str:
    return re.sub(r"in \d+\.\d s\.", "in 0.0 s.", text)


def test_cases_that_pass_are_counted_with_their_coverage(run: Run, agents: Path) -> None:
    Path("agent.cases.yaml").write_text(CASES)
    done = run("agent.cases.yaml")
    assert without_time(done.stdout) == (
        "agent.json: nodes 4 of 4, edges 3 of 3, variables 1 of 1\n2 cases passed, in 0.0 s.\n"
    )
    assert (done.exit_code, done.stderr) == (0, "")
    assert not (agents.parent / "nowhere").exists()


def test_a_failed_case_is_a_dialogue_with_the_difference_at_its_line(run: Run, agents: Path) -> None:
    Path("agent.cases.yaml").write_text(WRONG)
    done = run("agent.cases.yaml")
    assert done.exit_code == 1
    greeting = "Hello Ada, this is the dental practice. You have an appointment on Thursday at ten. Can you come?"
    answer = "Wonderful. How many people will come with you?"
    assert without_time(done.stdout) == (
        "FAILED She comes (agent.cases.yaml:3)\n"
        f"    Remind      agent    {greeting}\n"
        "    Remind      caller   Yes, I can.\n"
        "  > Companions  -> edge  Yes → Companions\n"
        "        turns.0.node\n"
        "          expected: the conversation stands at “See you”\n"
        "          but:      It stands at “Companions”.\n"
        f"  > Companions  agent    {answer}\n"
        "        turns.0.says\n"
        "          expected: the agent says “banana”\n"
        f"          but:      It said “{answer}”.\n"
        "        turns.0.never\n"
        "          expected: the agent doesn't say “wonderful”\n"
        f"          but:      It said “{answer}”.\n"
        "    Companions  caller   Three.\n"
        "    See you     -> edge  Answered → See you\n"
        "    See you     agent    Thank you, I have noted that. See you on Thursday. Goodbye.\n"
        "  > The conversation as a whole\n"
        "        expect.disposition\n"
        "          expected: the disposition is no_answer\n"
        "          but:      It is user_qualified.\n"
        "\n"
        "agent.json: nodes 4 of 4, edges 3 of 3, variables 1 of 1\n"
        "1 of 2 cases failed, in 0.0 s.\n"
    )


def test_what_no_case_touches_is_named(run: Run, agents: Path) -> None:
    Path("agent.cases.yaml").write_text(CASES)
    done = run("agent.json", "-k", "DOESN'T")
    assert without_time(done.stdout) == (
        "agent.json: nodes 2 of 4 (50 %), edges 1 of 3 (33.3 %), variables 0 of 1 (0 %)\n"
        "  untouched node: Companions\n"
        "  untouched node: See you\n"
        "  untouched edge: Yes (Remind → Companions)\n"
        "  untouched edge: Answered (Companions → See you)\n"
        "  untouched variable: companions (Companions)\n"
        "1 case passed, in 0.0 s.\n"
    )


@pytest.mark.parametrize(
    ("demanded", "code", "gaps"),
    [
        (["100"], 1, ["50 % of the nodes", "33.3 % of the edges", "0 % of the variables"]),
        (["edges=33.3", "nodes=50"], 0, []),
        (["edges=33.4"], 1, ["33.3 % of the edges"]),
        (["0"], 0, []),
        (["50", "edges=0", "variables=0"], 0, []),
    ],
)
def test_a_coverage_may_be_demanded(run: Run, agents: Path, demanded: list[str], code: int, gaps: list[str]) -> None:
    Path("agent.cases.yaml").write_text(CASES)
    done = run("-k", "doesn't", *(part for each in demanded for part in ("--min-coverage", each)))
    assert done.exit_code == code
    assert [line for line in done.stdout.splitlines() if "demanded" in line] == [
        f"agent.json: {gap} are covered, and {demanded[0].removeprefix('edges=')} % are demanded." for gap in gaps
    ]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [("101", "101.0 is not in the range 0<=x<=100"), ("lines=3", "'lines' is none of nodes"), ("x", "'x' is not a")],
)
def test_a_coverage_that_cannot_be_demanded_is_wrong_usage(run: Run, agents: Path, value: str, complaint: str) -> None:
    done = run("--min-coverage", value)
    assert done.exit_code == 2
    assert complaint in done.stderr


def test_the_coverage_of_an_agent_is_that_of_all_its_case_files(run: Run, agents: Path) -> None:
    comes, refuses = CASES.split("  - name: She doesn't")
    Path("agent.cases.yaml").write_text(comes)
    Path("deep").mkdir()
    Path("deep", "more.cases.yml").write_text(f"workflow: ../agent.json\ncases:\n  - name: She doesn't{refuses}")
    done = run(".", "agent.cases.yaml")
    assert without_time(done.stdout) == (
        "agent.json: nodes 4 of 4, edges 3 of 3, variables 1 of 1\n2 cases passed, in 0.0 s.\n"
    )


def test_hidden_folders_are_not_searched(run: Run, agents: Path) -> None:
    Path("agent.cases.yaml").write_text(CASES)
    Path(".venv").mkdir()
    Path(".venv", "other.cases.yaml").write_text("nonsense")
    assert run().exit_code == 0


def test_json_has_the_dialogues_and_the_coverage(run: Run, agents: Path) -> None:
    Path("agent.cases.yaml").write_text(WRONG)
    done = run("--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["passed"], found["failed"]) == (1, 1, 1)
    first, second = found["results"]
    assert (first["name"], first["file"], first["line"], first["passed"]) == ("She comes", "agent.cases.yaml", 3, False)
    assert first["mismatches"][0] == {
        "place": "turns.0.says",
        "expected": "the agent says “banana”",
        "found": "It said “Wonderful. How many people will come with you?”.",
        "line": 3,
    }
    assert first["dialogue"][3]["text"] == "Wonderful. How many people will come with you?"
    assert second["passed"]
    assert found["coverage"] == [
        {
            "agent": "agent.json",
            "nodes": {"covered": 4, "total": 4, "percent": 100.0, "untouched": []},
            "edges": {"covered": 3, "total": 3, "percent": 100.0, "untouched": []},
            "variables": {"covered": 1, "total": 1, "percent": 100.0, "untouched": []},
        }
    ]


def test_dialogues_of_all_cases_are_shown_when_asked_for(run: Run, agents: Path) -> None:
    Path("agent.cases.yaml").write_text(CASES)
    done = run("-v")
    assert "PASSED She comes (agent.cases.yaml:5)\n" in done.stdout
    assert "caller   Three." in done.stdout


# -- what is wrong is named by file, line, column and place


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        (
            "cases:\n  - name: a\n    turns:\n      - caller: x\n        say: y\n      - {}\n",
            [
                "agent.cases.yaml:5:9: cases.0.turns.0.say: it isn't known; known are caller, keys,",
                "agent.cases.yaml:6:9: cases.0.turns.1: it needs exactly one of caller,",
            ],
        ),
        ("cases: [", ["agent.cases.yaml:1:9: while parsing a flow node, expected the node content"]),
        ("cases:\n  - name: a\n    name: b\n", ["agent.cases.yaml:3:5: “name” is there twice."]),
        ("", ["agent.cases.yaml:1:1: it must be an object."]),
        ("model: foo\ncases: [{name: a}]", ["agent.cases.yaml:1:1: model: it must be one of scripted,"]),
        ("workflow: other.json\ncases: [{name: a}]", ["other.json can't be read: No such file or directory."]),
        (
            "tools: [{name: x, colour: red, definition: {type: http_api, config: {url: 5}}}]\ncases: [{name: a}]",
            [
                "agent.cases.yaml:1:61: tools.0.definition.config.method: Field required.",
                "agent.cases.yaml:1:70: tools.0.definition.config.url: Input should be a valid string.",
                "agent.cases.yaml:1:9: tools.0: colour isn't known.",
                "agent.cases.yaml:1:9: tools.0.tool_uuid: it is the uuid by which nodes attach the tool.",
            ],
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_named_by_its_place(
    run: Run, agents: Path, text: str, complaints: list[str]
) -> None:
    Path("agent.cases.yaml").write_text(text)
    Path("other.cases.yaml").write_text("workflow: agent.json\ncases: [{name: fine}]")
    done = run()
    assert (done.exit_code, done.stdout) == (2, "")
    for complaint in complaints:
        assert complaint in done.stderr, done.stderr


def test_the_errors_of_all_files_are_named(run: Run, agents: Path) -> None:
    Path("agent.cases.yaml").write_text("cases: 5")
    Path("b.cases.yaml").write_bytes(b"\xff")
    Path("c.cases.json").write_text('{"cases": []}')
    done = run()
    assert done.exit_code == 2
    for name in (
        "agent.cases.yaml:1:1: cases: it must",
        "b.cases.yaml is not text",
        "c.cases.json:1:2: cases: it must",
    ):
        assert name in done.stderr, done.stderr


def test_an_agent_that_cannot_be_run_is_named_with_its_errors(run: Run, agents: Path) -> None:
    Path("agent.json").write_text(json.dumps({"nodes": [{"id": "1", "type": "startCall", "data": {}}], "edges": []}))
    Path("agent.cases.yaml").write_text(CASES)
    done = run()
    assert done.exit_code == 2
    assert "agent.json: node 1 data.name: name is missing; it must be text." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["empty"], "empty holds no conversation cases: *.cases.yaml, *.cases.yml, *.cases.json."),
        (["agent.json"], "agent.json holds no conversation cases: there is no agent.cases.yaml beside it."),
        (["missing.cases.yaml"], "missing.cases.yaml can't be read: No such file or directory."),
        (["more.cases.yaml", "-k", "nobody"], "None of the 2 cases has 'nobody' in its name."),
        (["more.cases.yaml", "--junit", "empty"], "empty can't be written: Is a directory."),
        (["more.cases.yaml", "--svg", "no/a.svg"], "no/a.svg can't be written: No such file or directory."),
        (["more.cases.yaml", "--jobs", "0"], "0 is not in the range"),
        (["5", "--watch"], "--watch takes files and folders."),
    ],
)
def test_wrong_usage_is_named(run: Run, agents: Path, arguments: list[str], complaint: str) -> None:
    Path("empty").mkdir()
    Path("more.cases.yaml").write_text(f"workflow: agent.json\n{CASES}")
    done = run(*arguments)
    assert done.exit_code == 2
    assert complaint in done.stderr


# -- what speaks, and the tools


@pytest.mark.parametrize("brought_by", ["agent", "cases"])
def test_tools_come_with_the_agent_or_the_cases(run: Run, agents: Path, brought_by: str) -> None:
    agent = json.loads((EXAMPLES / "repair.json").read_text())
    shutil.copy(EXAMPLES / "repair.cases.yaml", "repair.cases.yaml")
    tools = agent.pop("tools") if brought_by == "cases" else []
    Path("repair.json").write_text(json.dumps(agent))
    if tools:
        with Path("repair.cases.yaml").open("a") as file:
            file.write(f"\ntools: {json.dumps(tools)}\n")
    done = run("repair.cases.yaml")
    assert done.exit_code == 0, done.stdout


def test_a_file_describes_functions_of_an_app_that_an_agent_calls(
    run: Run, agents: Path, talk: Callable[..., Any]
) -> None:
    """The app needn't be there: what they answer stands in the case, or is missing."""
    call = {"tool": "python:book", "arguments": {"people": "{{people}}"}, "save_as": "booking", "on_error": "3"}
    definition = talk(greeting="At {{booking.time}}?", call=call, tool_uuids=["python:book"])
    Path("agent.json").write_text(json.dumps(definition))
    schema: dict[str, Any] = {"properties": {"people": {"type": "integer"}}, "required": ["people"]}
    described = {"type": "python", "config": {"parameters": {"type": "object", **schema}, "timeout_seconds": 10.0}}
    tools = [{"tool_uuid": "python:book", "name": "book", "description": "Book a table.", "definition": described}]
    asked = {"call": "book", "with": {"people": 2}}
    case: dict[str, Any] = {
        "name": "a table",
        "model": "played",
        "context": {"people": "4"},
        "tools": [
            {"tool": "book", "with": {"people": 4}, "returns": {"time": "19:00"}},
            {"tool": "book", "with": {"people": 2}, "fails": "We are full."},
        ],
        "opening": {"says": "At 19:00?"},
        "turns": [{"caller": "For two?", "model": [asked, {"say": "Not for two."}], "says": "Not for two."}],
    }
    full = {
        "name": "none",
        "context": {"people": "many"},
        "opening": {"says": "Sorry, goodbye.", "edges": ["on_error"]},
    }
    Path("agent.cases.yaml").write_text(json.dumps({"tools": tools, "cases": [case, full]}))
    done = run("agent.json")
    assert done.exit_code == 0, done.stdout
    tools[0]["definition"] = {"type": "python", "config": {"parameters": {"required": "people"}}}
    Path("agent.cases.yaml").write_text(json.dumps({"tools": tools, "cases": [case]}))
    done = run("agent.json")
    assert done.exit_code == 2
    assert "tools.0.definition.config.parameters.required: Input should be a valid list." in done.stderr


def test_an_agent_is_tested_with_its_configurations_and_variables(run: Run, agents: Path) -> None:
    agent = json.loads(Path("agent.json").read_text())
    agent["workflow_configurations"] = {"language": "de-DE"}
    agent["template_context_variables"] = {"first_name": "Grace"}
    Path("agent.json").write_text(json.dumps(agent))
    Path("agent.cases.yaml").write_text(
        "cases: [{name: a, opening: {says: Hello Grace}, turns: [{caller: hm, matches: 'ja|nein|Ja|Nein|nicht'}]}]"
    )
    done = run("agent.json")
    assert done.exit_code == 0, done.stdout


def test_a_case_for_a_language_model_fails_where_there_is_none(run: Run, agents: Path, tmp_path: Path) -> None:
    (tmp_path / "nowhere").mkdir()
    Path("agent.cases.yaml").write_text(CASES)
    assert run("--model", "scripted").exit_code == 0
    Path("agent.cases.yaml").write_text(CASES.replace("model: scripted", "model: configured"))
    assert run("--model", "scripted").exit_code == 0
    # A played case keeps its decisions, whatever is asked for.
    shutil.copy(EXAMPLES / "repair.json", "repair.json")
    shutil.copy(EXAMPLES / "repair.cases.yaml", "repair.cases.yaml")
    assert run("repair.json", "--model", "scripted").exit_code == 0


# -- side by side


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_results_are_in_the_order_of_the_cases(
    run: Run, agents: Path, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    monkeypatch.setattr(case_sets, "BATCH", 2)
    cases = "".join(f"  - {{name: case {i}, turns: [{{caller: 'No.', says: part {i}}}]}}\n" for i in range(9))
    Path("agent.cases.yaml").write_text(f"cases:\n{cases}")
    found = json.loads(run("--json", "--jobs", jobs).stdout)
    assert [each["name"] for each in found["results"]] == [f"case {i}" for i in range(9)]
    assert [each["mismatches"][0]["expected"] for each in found["results"]] == [
        f"the agent says “part {i}”" for i in range(9)
    ]


# -- what CI servers read


def test_junit_is_written_in_the_shape_of_pytest(run: Run, agents: Path) -> None:
    Path("agent.cases.yaml").write_text(WRONG.replace("banana", "ban\\u0001ana"))
    assert run("--junit", "results.xml").exit_code == 1
    root = ElementTree.parse("results.xml").getroot()
    assert root.tag == "testsuites"
    (suite,) = root
    assert {name: suite.get(name) for name in ("name", "errors", "failures", "skipped", "tests")} == {
        "name": "agent.cases.yaml",
        "errors": "0",
        "failures": "1",
        "skipped": "0",
        "tests": "2",
    }
    first, second = suite
    assert (first.get("classname"), first.get("name")) == ("agent.cases.yaml", "She comes")
    assert (first.get("file"), first.get("line")) == ("agent.cases.yaml", "3")
    assert float(str(first.get("time"))) >= 0
    (failure,) = first
    assert str(failure.get("message")).startswith("turns.0.says: expected: the agent says “ban")
    assert "> Companions  agent    Wonderful." in str(failure.text)
    assert list(second) == []


def test_the_coverage_is_drawn(run: Run, agents: Path) -> None:
    Path("agent.cases.yaml").write_text(CASES)
    Path("other.json").write_bytes(Path("agent.json").read_bytes())
    Path("other.cases.yaml").write_text(CASES)
    done = run("agent.json", "-k", "doesn't", "--svg", "one.svg")
    assert (done.exit_code, done.stderr) == (0, "Wrote one.svg.\n")
    text = Path("one.svg").read_text()
    assert "Nodes 2 of 4 (50 %); edges 1 of 3 (33.3 %); variables 0 of 1 (0 %)." in text
    assert "edge untouched" in text
    assert "Never extracted: companions (Companions)." in text
    done = run("--svg", "pictures")
    assert sorted(path.name for path in Path("pictures").iterdir()) == ["agent.svg", "other.svg"]
    done = run("--svg", "one.svg")
    assert done.exit_code == 2
    assert "--svg names one file, and there are 2 agents; name a folder." in done.stderr
