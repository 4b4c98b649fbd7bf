"""The command `test` with stored workflows, language models, watched files; and coverage drawn by `graph`."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import Result
from flask.testing import FlaskClient

from tests.cli.conftest import command_on
from voiceapi.cli import output, testing
from voiceapi.cli.watch import run_on_change
from voiceapi.service import Service

EXAMPLES = Path(__file__).parents[2] / "examples"
AGENT = json.loads((EXAMPLES / "appointment.json").read_text())["workflow_definition"]
Run = Callable[..., Result]


@pytest.fixture
def stored(client: FlaskClient, workflow: Callable[..., Any]) -> Any:
    """A stored workflow with two cases; the second one is disabled."""
    made = workflow(AGENT, name="Reminder")
    variables = {"template_context_variables": {"first_name": "Grace"}}
    assert client.put(f"/api/v1/workflow/{made['id']}", json=variables).status_code == 200
    for name, enabled in (("She comes", True), ("Later", False)):
        case = {"name": name, "opening": {"says": "Hello Grace"}, "turns": [{"caller": "Yes.", "node": "Companions"}]}
        body = {"name": name, "enabled": enabled, "case": case}
        assert client.post(f"/api/v1/workflow/{made['id']}/cases", json=body).status_code == 200
    return made


def test_the_enabled_cases_of_a_stored_workflow_are_run(service: Service, stored: Any) -> None:
    done = command_on(service.store.location)("test", str(stored["id"]))
    assert done.exit_code == 0, done.stdout
    id = stored["id"]
    assert done.stdout.splitlines()[0] == f"workflow {id}: nodes 2 of 4 (50 %), edges 1 of 3 (33.3 %), " + (
        "variables 0 of 1 (0 %)"
    )
    assert done.stdout.splitlines()[-1].startswith("1 case passed, in ")


def test_files_and_stored_workflows_are_run_at_once(service: Service, stored: Any, tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "menu.json", tmp_path / "menu.json")
    shutil.copy(EXAMPLES / "menu.cases.yaml", tmp_path / "menu.cases.yaml")
    done = command_on(service.store.location)("test", str(tmp_path), str(stored["id"]), "--json")
    found = json.loads(done.stdout)
    assert [each["agent"] for each in found["coverage"]] == [f"{tmp_path}/menu.json", f"workflow {stored['id']}"]
    assert found["failed"] == 0
    assert (found["results"][-1]["file"], found["results"][-1]["line"]) == (f"workflow {stored['id']}", None)


def test_a_stored_workflow_without_cases_is_named(service: Service, workflow: Callable[..., Any]) -> None:
    made = workflow(AGENT)
    run = command_on(service.store.location)
    for arguments in (("test", str(made["id"])), ("graph", str(made["id"]), "--coverage")):
        done = run(*arguments)
        assert done.exit_code == 2
        assert f"Workflow {made['id']} has no conversation cases that are enabled." in done.stderr
    assert "There is no workflow with id 99." in run("test", "99").stderr


# -- drawn


def test_the_coverage_of_a_stored_workflow_is_drawn(service: Service, stored: Any) -> None:
    done = command_on(service.store.location)("graph", str(stored["id"]), "--coverage")
    assert done.exit_code == 0, done.stderr
    root = ElementTree.fromstring(done.stdout)
    classes = {each.get("data-edge"): str(each.get("class")) for each in root.iter() if each.get("data-edge")}
    assert [name for name in classes.values() if "untouched" in name.split()] == ["edge untouched"] * 2
    assert root.findtext("{http://www.w3.org/2000/svg}title") == "Reminder"


def test_the_coverage_of_a_file_is_that_of_the_cases_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = command_on("/nowhere/voice.db")
    shutil.copy(EXAMPLES / "menu.json", "menu.json")
    assert "there is no menu.cases.yaml beside it" in run("graph", "menu.json", "--coverage").stderr
    shutil.copy(EXAMPLES / "menu.cases.yaml", "menu.cases.yaml")
    done = run("graph", "menu.json", "--coverage", "-o", "menu.svg")
    assert (done.exit_code, done.stderr) == (0, "Wrote menu.svg.\n")
    assert "Nodes 7 of 7; edges 13 of 13; variables 2 of 2." in Path("menu.svg").read_text()
    assert run("graph", "./menu.json", "--coverage", "--layered").stdout != Path("menu.svg").read_text()
    Path("menu.cases.yaml").write_text("workflow: other.json\ncases: [{name: a}]")
    shutil.copy("menu.json", "other.json")
    done = run("graph", "menu.json", "--coverage")
    assert "The cases beside menu.json are those of another agent." in done.stderr


# -- language models


@contextmanager
def model_server(answer: Callable[[], object]) -> Iterator[str]:
    """A model that says "Hm." whatever it is asked, after `answer` has returned; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            answer()
            content = b'{"choices": [{"message": {"role": "assistant", "content": "Hm."}}]}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    """A file with three cases for a language model."""
    (tmp_path / "agent.json").write_text(json.dumps(AGENT))
    path = tmp_path / "agent.cases.yaml"
    cases = [{"name": f"case {i}", "turns": [{"caller": "Who is there?", "says": "Hm."}]} for i in range(3)]
    path.write_text(json.dumps({"model": "configured", "cases": cases}))
    return path


def test_conversations_with_a_language_model_go_on_side_by_side(service: Service, asking: Path) -> None:
    together = threading.Barrier(3, timeout=20)
    with model_server(together.wait) as url:
        done = command_on(service.store.location)("test", str(asking), VOICEAPI_LLM_URL=url)
    assert done.exit_code == 0, done.stdout


def test_what_takes_longer_shows_that_it_goes_on(
    service: Service, asking: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "QUIET_SECONDS", 0.05)
    with model_server(partial(time.sleep, 0.2)) as url:
        done = command_on(service.store.location)("test", str(asking), "--jobs", "1", VOICEAPI_LLM_URL=url)
    assert done.exit_code == 0, done.stdout
    assert "2 of 3 cases ...\n" in done.stderr


def test_the_scripted_cases_of_a_file_may_be_tried_with_the_configured_model(service: Service, asking: Path) -> None:
    asking.write_text(asking.read_text().replace("configured", "scripted"))
    run = command_on(service.store.location)
    assert run("test", str(asking)).exit_code == 1
    with model_server(lambda: None) as url:
        assert run("test", str(asking), "--model", "configured", VOICEAPI_LLM_URL=url).exit_code == 0


def test_without_a_language_model_such_cases_say_so(service: Service, asking: Path) -> None:
    done = command_on(service.store.location)("test", str(asking))
    assert done.exit_code == 1
    assert "expected: a language model is configured" in done.stdout


def test_a_stored_workflow_may_be_tried_with_the_configured_model(service: Service, stored: Any) -> None:
    run = command_on(service.store.location)
    with model_server(lambda: None) as url:
        done = run("test", str(stored["id"]), "--model", "configured", VOICEAPI_LLM_URL=url)
    assert done.exit_code == 1
    assert "agent    Hm." in done.stdout


# -- watched


def test_cases_run_again_when_one_of_their_files_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, cases, more = (tmp_path / name for name in ("agent.json", "agent.cases.yaml", "more.cases.yaml"))
    agent.write_text(json.dumps(AGENT))
    cases.write_text("cases: [{name: a, opening: {says: Hello}}]")
    steps: Iterator[Callable[[], object]] = iter(
        (
            partial(agent.write_text, json.dumps(AGENT).replace("Hello", "Good day")),
            lambda: None,
            partial(cases.write_text, "cases: ["),
            lambda: None,
            partial(cases.write_text, "cases: [{name: a, opening: {says: Good day}}]"),
            lambda: None,
            partial(more.write_text, "workflow: agent.json\ncases: [{name: b}]"),
            lambda: None,
        )
    )

    def sleep(_: float) -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr(testing, "run_on_change", partial(run_on_change, sleep=sleep))
    done = command_on("/nowhere/voice.db")("test", str(tmp_path), "--watch", "--json")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["passed"], each["failed"]) for each in answers] == [(1, 0), (0, 1), (1, 0), (2, 0)]
    assert [line.split(": ")[0] for line in done.stderr.splitlines()] == [
        f"-- {agent} changed",
        f"-- {cases} changed",
        "Error",
        f"-- {cases} changed",
        f"-- {more} changed",
    ]
    assert f"{cases}:1:9: while parsing" in done.stderr
    assert done.exit_code == 0
