"""Campaigns go on after a restart of the host's server: by themselves under gunicorn, else with any request."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.request import urlopen

import pytest

from voiceapi import create_app
from voiceapi.store.campaigns import Campaign, Contact
from voiceapi.store.database import Store, execute
from voiceapi.store.runs import Run

ROOT = Path(__file__).parents[2]
KEY = "test-key-0123456789"
API = "/api/v1"
CONTACTS = 20

pytestmark = [pytest.mark.long, pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")]

HOST = """
    import os
    from flask import Flask
    from voiceapi import VoiceAPI

    app = Flask("host")
    VoiceAPI(app, url_prefix="/voice")

    @app.get("/own")
    def own():
        return str(os.getpid())
"""

# The same app from a factory, inside of middleware and of a function; and the configuration of a host that has one.
WRAPPED = """
    from werkzeug.middleware.dispatcher import DispatcherMiddleware

    def create_app():
        import host
        mounted = DispatcherMiddleware(host.app, {"/nothing": lambda *_: []})
        return lambda environ, start_response: mounted(environ, start_response)
"""
CONFIGURATION = "from voiceapi.cli.gunicorn_jobs import post_worker_init, worker_exit\n"


@dataclass
class Host:
    """The folder of a host, and its database."""

    folder: Path
    store: Store

    def state(self) -> tuple[str, int, int]:
        """The campaign's state, its completed contacts, and how many runs there are."""
        with self.store.session():
            contacts = Contact.select().where(Contact.state == "completed").count()
            return Campaign.get().state, contacts, Run.select().count()

    def answered_calls(self) -> list[int]:
        """How many calls to each number were answered."""
        with self.store.session():
            rows = execute(
                "SELECT count(*) FROM run WHERE id IN (SELECT run_id FROM turn WHERE number = 0) GROUP BY called_number"
            ).fetchall()
        return [count for (count,) in rows]


@pytest.fixture
def host(tmp_path: Path, database_at: Callable[[Path], str], talk: Callable[..., Any]) -> Iterator[Host]:
    """A host, and a database with a campaign that was started and whose process has stopped."""
    (tmp_path / "host.py").write_text(dedent(HOST))
    location = database_at(tmp_path / "voice.db")
    app = create_app({"VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    body = {"name": "Agent", "workflow_definition": talk("path")}
    assert client.post(f"{API}/workflow/create/definition", json=body).status_code == 200
    rows = "phone_number\n" + "".join(f"+120255502{number:02}\n" for number in range(CONTACTS))
    place = client.post(f"{API}/s3/presigned-upload-url", json={"file_name": "list.csv", "file_size": len(rows)})
    key, url = place.get_json()["file_key"], place.get_json()["upload_url"]
    assert client.put(url.removeprefix("http://localhost"), data=rows).status_code == 200
    body = {"name": "Campaign", "workflow_id": 1, "source_type": "csv", "source_id": key, "max_concurrency": 5}
    made = client.post(f"{API}/campaign/create", json=body)
    assert made.status_code == 200, made.text
    started = client.post(f"{API}/campaign/{made.get_json()['id']}/start")
    assert started.status_code == 200, started.text
    app.extensions["voiceapi"].close()
    store = Store(location)
    yield Host(tmp_path, store)
    store.close()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def serving(host: Host, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A server that runs the host, stopped at the end with all its processes."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{host.folder}{os.pathsep}{ROOT}",
        "VOICEAPI_DATABASE": host.store.location,
        "VOICEAPI_API_KEY": KEY,
    }
    with (host.folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=host.folder,
            env=environment,
            stderr=log,
            start_new_session=True,
            text=True,
        )
        try:
            yield server
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(60)
            finally:
                if server.poll() is None:
                    os.killpg(server.pid, signal.SIGKILL)


def get(url: str, seconds: float = 60.0) -> str:
    """The page at a URL, once its server listens."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urlopen(url) as answer:
                return str(answer.read().decode())
        except (OSError, HTTPException):  # it isn't there yet, or is being replaced
            assert time.monotonic() < deadline, f"{url} doesn't answer"
            time.sleep(0.1)


def children(pid: int) -> list[int]:
    """The processes that a process has made and that haven't ended."""
    command = ["ps", "-o", "pid=,stat=", "--ppid", str(pid)]
    listed = subprocess.run(command, capture_output=True, text=True).stdout.split("\n")
    return [int(line.split()[0]) for line in listed if line and "Z" not in line]


def complete(host: Host, wait_for: Callable[..., Any]) -> None:
    wait_for(lambda: host.state()[0] == "completed", 90)
    # Every contact was called, and once: no parent process dialed, too, and no call was placed again after a kill.
    # A run that a killed process had only claimed is released, and was no call.
    assert host.state()[:2] == ("completed", CONTACTS)
    assert host.answered_calls() == [1] * CONTACTS
    log = (host.folder / "server.log").read_text()
    assert log.partition("Traceback")[1:] == ("", "")


@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["", "preload"])
@pytest.mark.parametrize("kind", ["sync", "gthread"])
def test_under_gunicorn_one_request_of_the_hosts_starts_the_campaign(
    host: Host, kind: str, preload: list[str], wait_for: Callable[..., Any]
) -> None:
    pytest.importorskip("gunicorn")
    port = free_port()
    command = ["gunicorn", "-w", "3", "-k", kind, "--threads", "4" if kind == "gthread" else "1", *preload]
    with serving(host, *command, "-b", f"127.0.0.1:{port}", "host:app"):
        before = host.state()
        time.sleep(2.0)
        assert host.state() == before
        get(f"http://127.0.0.1:{port}/own")
        complete(host, wait_for)


@pytest.mark.parametrize(
    "options",
    [
        ["-c", "python:voiceapi.cli.gunicorn_jobs", "host:app"],
        ["-c", "python:voiceapi.cli.gunicorn_jobs", "--threads", "4", "--preload", "wrapped:create_app()"],
        ["-c", "configured.py", "wrapped:create_app()"],
        ["-c", "python:voiceapi.cli.gunicorn", "wrapped:create_app()"],
    ],
    ids=["app", "wrapped and preloaded", "own configuration", "our settings"],
)
def test_under_gunicorn_a_campaign_goes_on_without_a_request(
    host: Host, options: list[str], wait_for: Callable[..., Any]
) -> None:
    """By the line of docs/embedding.md; also when the worker is killed, and when gunicorn reloads."""
    pytest.importorskip("gunicorn")
    (host.folder / "wrapped.py").write_text(dedent(WRAPPED))
    (host.folder / "configured.py").write_text(CONFIGURATION)
    with serving(host, "gunicorn", "-w", "1", "-b", f"127.0.0.1:{free_port()}", *options) as server:
        wait_for(lambda: host.state()[2] >= 1)
        (worker,) = children(server.pid)
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: children(server.pid) not in ([], [worker]))
        server.send_signal(signal.SIGHUP)
        complete(host, wait_for)


@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["", "preload"])
def test_a_worker_that_is_replaced_leaves_no_campaign_behind(
    host: Host, preload: list[str], wait_for: Callable[..., Any]
) -> None:
    """The master makes another process for the one that is killed, and a reload replaces them all."""
    pytest.importorskip("gunicorn")
    port = free_port()
    url = f"http://127.0.0.1:{port}/own"
    with serving(host, "gunicorn", "-w", "1", *preload, "-b", f"127.0.0.1:{port}", "host:app") as server:
        first = get(url)
        wait_for(lambda: host.state()[2] >= 1)
        os.kill(int(first), signal.SIGKILL)
        second = get(url)
        assert second != first
        server.send_signal(signal.SIGHUP)
        wait_for(lambda: get(url) not in (first, second))
        complete(host, wait_for)


def test_under_the_reloader_only_the_serving_process_dials(host: Host, wait_for: Callable[..., Any]) -> None:
    port = free_port()
    with serving(host, "flask", "--app", "host", "run", "--debug", "--port", str(port)):
        first = get(f"http://127.0.0.1:{port}/own")
        wait_for(lambda: host.state()[2] >= 1)
        (host.folder / "host.py").write_text(dedent(HOST) + "\n# changed\n")
        wait_for(lambda: get(f"http://127.0.0.1:{port}/own") != first)
        complete(host, wait_for)


def test_a_server_that_forks_after_it_has_loaded_the_app(host: Host, wait_for: Callable[..., Any]) -> None:
    """As uWSGI does without lazy-apps: here the parent has even answered requests, and goes on doing so."""
    script = dedent("""
        import os, sys, time, warnings
        import host

        warnings.simplefilter("ignore", DeprecationWarning)
        client = host.app.test_client()
        service = host.app.extensions["voiceapi"]
        before = service.store.database
        client.get("/voice/api/v1/workflow/fetch", headers={"X-API-Key": sys.argv[1]})
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                client.get("/own")
                client.get("/voice/api/v1/workflow/fetch", headers={"X-API-Key": sys.argv[1]})
                assert service.store.database is not before
                time.sleep(40)
                os._exit(0)
            children.append(child)
        time.sleep(40)
    """)
    (host.folder / "forking.py").write_text(script)
    with serving(host, "forking", KEY):
        complete(host, wait_for)
    if host.store.path is not None:
        with host.store.session():
            assert execute("PRAGMA integrity_check").fetchall() == [("ok",)]
