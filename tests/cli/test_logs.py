"""Log lines: what they say, as text and as JSON, and what they keep to themselves."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import Client

from voiceapi.cli.logs import TEXT, JSONLines, RequestLog, log_to_stderr
from voiceapi.config import Settings
from voiceapi.engine.events import ModelFailed
from voiceapi.runs.lifecycle import note_end
from voiceapi.service import Service
from voiceapi.store.runs import Run

API = "/api/v1"
KEY = "test-key-0123456789"
TIME = re.compile(r"[0-9-]{10}T[0-9:]{8}\.[0-9]{3}Z")


class Failing:
    """A language model whose server is down."""

    def reply(self, ask: Any) -> ModelFailed:
        return ModelFailed(ask.at, ask.number, "down")


@pytest.fixture
def written() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Has the log written as JSON lines; returns them without their times."""
    log, stream = logging.getLogger("voiceapi"), io.StringIO()
    handler, level = logging.StreamHandler(stream), log.level
    handler.setFormatter(JSONLines())
    log.addHandler(handler)
    log.setLevel(logging.INFO)

    def lines() -> list[dict[str, Any]]:
        found = [json.loads(line) for line in stream.getvalue().splitlines()]
        assert all(TIME.fullmatch(line.pop("time")) for line in found)
        return found

    yield lines
    log.removeHandler(handler)
    log.setLevel(level)


def test_a_call_leaves_a_line_at_its_start_and_one_at_its_end(
    client: FlaskClient, workflow: Any, finished: Any, written: Callable[[], list[dict[str, Any]]]
) -> None:
    created = workflow(path="logged")
    body = {"phone_number": "+12025550123", "initial_context": {"simulated_callee": ["Yes"]}}
    run = client.post(f"{API}/public/agent/logged", json=body).get_json()["workflow_run_id"]
    finished(created["id"], run)
    start, end = (line for line in written() if "event" in line)
    fields = {"run": run, "workflow": created["id"], "carrier": "simulator", "direction": "outbound", "level": "info"}
    assert start == {
        **fields,
        "event": "call_started",
        "message": f"Run {run}: outbound call to ...0123 through configuration 1 'Simulator' (simulator)",
    }
    seconds = end.pop("seconds")
    assert end == {
        **fields,
        "event": "call_ended",
        "disposition": "user_qualified",
        "message": f"Run {run}: call ended as user_qualified after {seconds:.1f} s",
    }


@pytest.mark.parametrize(
    ("disposition", "shown"),
    [
        ("busy", "busy"),
        ("Wants a quote", "Wants a quote"),
        (None, "none"),
        ("Call +12025550123 back", "other"),
        ("a\nb", "other"),
        ("x" * 61, "other"),
    ],
)
def test_a_disposition_that_may_be_anything_is_shown_if_it_is_a_code(
    service: Service, written: Callable[[], list[dict[str, Any]]], disposition: str | None, shown: str
) -> None:
    note_end(service, Run(id=7, workflow_id=1, mode="textchat", disposition=disposition, duration=1.25))
    assert [(line["event"], line["disposition"], line["seconds"]) for line in written()] == [
        ("chat_ended", shown, 1.25)
    ]


def test_a_refused_webhook_and_a_failed_model_have_the_run_as_a_field(
    bare: FlaskClient, client: FlaskClient, workflow: Any, service: Service, written: Callable[[], list[dict[str, Any]]]
) -> None:
    token = "no-such-token-as-this-one"
    assert bare.post(f"{API}/telephony/calls/{token}/turns/0").status_code == 403
    object.__setattr__(service, "model", Failing())
    agent = workflow()
    sessions = f"{API}/workflow/{agent['id']}/text-chat/sessions"
    chat = client.post(sessions, json={}).get_json()
    client.post(f"{sessions}/{chat['workflow_run_id']}/messages", json={"text": "Yes"})
    refused, *others = written()
    assert (refused["event"], refused["level"]) == ("webhook_refused", "warning")
    assert token not in json.dumps(refused)
    assert "run" not in refused
    assert [(line["event"], line["run"]) for line in others] == [("model_failed", chat["workflow_run_id"])]


def test_a_traceback_is_one_line(written: Callable[[], list[dict[str, Any]]]) -> None:
    try:
        raise ValueError("one\ntwo")
    except ValueError:
        logging.getLogger("voiceapi").exception("It failed in run %s", 5, extra={"run": 5})
    [line] = written()
    assert (line["message"], line["run"], line["level"]) == ("It failed in run 5", 5, "error")
    assert line["traceback"].splitlines()[-1].strip() == "two"


def test_a_field_that_is_no_json_is_text(written: Callable[[], list[dict[str, Any]]]) -> None:
    logging.getLogger("voiceapi").info("%s", "a\u2028b\n", extra={"place": Path("/srv"), "nothing": None})
    assert written() == [{"level": "info", "message": "a\\u2028b\\n", "place": "/srv"}]


@pytest.mark.parametrize(
    ("method", "path", "line"),
    [
        ("GET", f"{API}/health?token=a-secret", f"GET {API}/health: 200"),
        ("GET", f"{API}/workflow/1/runs/7", f"GET {API}/workflow/1/runs/7: 401"),
        ("GET", f"{API}/workflow/1/runs/2025550123", f"GET {API}/workflow/1/runs/<run_id>: 401"),
        ("GET", f"{API}/telephony/inbound/2025550123", f"GET {API}/telephony/inbound/<config_id>: 403"),
        ("DELETE", f"{API}/do-not-call/+12025550123", f"DELETE {API}/do-not-call/<phone_number>: 401"),
        ("POST", f"{API}/telephony/calls/a-secret/turns/0", f"POST {API}/telephony/calls/<token>/turns/0: 403"),
        ("GET", f"{API}/s3/files/a-secret", f"GET {API}/s3/files/<token>: 403"),
        ("GET", "/a-secret", "GET an unknown path: 404"),
        ("PATCH", f"{API}/health", "PATCH an unknown path: 405"),
        ("A\tB", f"{API}/health", "? an unknown path: 405"),
        ("A" * 21, f"{API}/health", "? an unknown path: 405"),
    ],
)
def test_a_request_leaves_one_line_without_secrets(
    shared: FlaskClient, written: Callable[[], list[dict[str, Any]]], method: str, path: str, line: str
) -> None:
    Client(RequestLog(shared.application)).open(path, method=method)
    [found] = [each for each in written() if each.get("event") == "request"]
    message, _, seconds = found.pop("message").rpartition(" in ")
    assert (message, found.pop("seconds") < 60, seconds.endswith(" ms")) == (line, True, True)
    assert found.get("run") == (7 if path.endswith("/runs/7") else None)


def test_what_an_app_raises_is_logged_as_500(written: Callable[[], list[dict[str, Any]]]) -> None:
    def app(environ: Any, start_response: Any) -> Any:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        Client(RequestLog(app)).get("/")
    assert written()[0]["status"] == 500


def test_a_hosts_own_logging_stays_as_it_is() -> None:
    root = logging.getLogger()
    before = (list(root.handlers), list(logging.getLogger("voiceapi").handlers), logging.getLogger("voiceapi").level)
    assert root.handlers, "pytest is the host here"
    log_to_stderr(Settings.read({"VOICEAPI_LOG": "json"}))
    after = (list(root.handlers), list(logging.getLogger("voiceapi").handlers), logging.getLogger("voiceapi").level)
    assert after == before
    assert "%(message)s" in TEXT


@pytest.mark.long
@pytest.mark.parametrize("kind", ["json", "text"])
def test_serve_writes_its_log_as_it_is_told(tmp_path: Path, database_at: Callable[..., str], kind: str) -> None:
    given = {
        "DATABASE": database_at(tmp_path / "voice.db"),
        "API_KEY": KEY,
        "LOG": kind,
        "LOG_REQUESTS": "on",
        "PORT": "0",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "voiceapi", "serve"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **{f"VOICEAPI_{name}": str(value) for name, value in given.items()}},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    port = re.search(r"listens on http://127\.0\.0\.1:([0-9]+)", first)
    assert port, first
    urllib.request.urlopen(f"http://127.0.0.1:{port[1]}{API}/health").close()
    process.send_signal(signal.SIGTERM)
    lines = [line for line in [first, *process.stderr] if line.strip()]
    assert process.wait(60) == 0
    process.stderr.close()
    assert len(lines) == 3, lines
    console = lines.pop(1)
    if kind == "json":
        request = json.loads(lines[1])
        assert (request["event"], request["path"], request["status"]) == ("request", f"{API}/health", 200)
        assert "listens on" in json.loads(lines[0])["message"]
        assert json.loads(console)["message"].startswith("Console: http://")
    else:
        assert re.fullmatch(rf"[0-9: ,-]+ INFO GET {API}/health: 200 in [0-9.]+ ms\n", lines[1])
