"""Fixtures of all tests: each test has its own app on its own database."""

from __future__ import annotations

import gc
import gzip
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from databases import SECRET, Blank, Files, PostgreSQLDatabases, skip_others, start_server
from databases import databases as all_databases
from flask import Flask, Response, request
from flask.testing import FlaskClient
from flask_smorest.utils import resolve_schema_instance
from hypothesis import HealthCheck, core, settings
from marshmallow import RAISE, Schema
from replaying import check_runs
from scan_secrets import SCAN, secrets_in
from tracing import untraced

from voiceapi import create_app
from voiceapi.api import BLUEPRINTS, openapi
from voiceapi.api.blueprint import Blueprint
from voiceapi.api.schemas.base import ErrorBodySchema, ErrorItemSchema
from voiceapi.config import Settings, names
from voiceapi.opening import open_service
from voiceapi.security import Vault
from voiceapi.service import Service
from voiceapi.store import fields, sqlite

# An example takes long where the machine is busy, and making it does, too. That is no failure. `.ci/run` tries more of
# them than everybody does every day.
for profile, examples in (("voiceapi", 50), ("thorough", 150)):
    settings.register_profile(
        profile, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("voiceapi")
# What Hypothesis chooses: something else every day, and the same for everybody on a day.
SEED = int(os.environ.get("VOICEAPI_TEST_SEED", datetime.now(UTC).strftime("%Y%m%d")))

KEY = "test-key-0123456789"
API = "/api/v1"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--replay", action="store_true", help="replay every run on what it was held with")
    parser.addoption("--database", choices=("sqlite", "postgresql"), default="sqlite", help="where the tests store")


def pytest_configure(config: pytest.Config) -> None:
    core.global_force_seed = SEED
    # Keep what is compiled, for the processes that the tests start and for the next run: compiling all modules with
    # their assertions takes each process longer than a tenth of the tests.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    start_server(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"VOICEAPI_TEST_SEED={SEED}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, obj: object) -> Generator[None, Any, Any]:
    """Make nothing of a long test that isn't asked for: schemathesis thinks for seconds about what it would send."""
    found = yield
    marks = {mark.name for mark in getattr(obj, "pytestmark", [])} if isinstance(obj, FunctionType) else set()
    return [] if "long" in marks and collector.config.option.markexpr == "not long" else found


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long parameter by its argument: keys and encrypted files differ in each of xdist's processes."""
    return argname if isinstance(val, str | bytes) and len(val) > 60 else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    skip_others(config, items)


def pytest_collection_finish() -> None:
    """Exempt the thousands of collected tests from garbage collection, and look for garbage seldom."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


@pytest.fixture(scope="session", autouse=True)
def every_answer_is_what_its_schema_says() -> Iterator[None]:
    """Check every JSON answer of every app in this process against its documented schema."""
    process_response = Flask.process_response

    @wraps(process_response)
    def process_and_check(self: Flask, response: Response) -> Response:
        processed = process_response(self, response)
        with untraced():
            check_answer(self, processed)
        if processed.mimetype == "text/event-stream":  # it is still being written
            processed.response = searched(processed.response, request.path)
        elif not processed.direct_passthrough:
            assert not SCAN.found_in_answer(content(processed)), f"{request.path} shows a secret"
        return processed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flask, "process_response", process_and_check)
        yield


@pytest.fixture(scope="session", autouse=True)
def every_secret_is_known() -> Iterator[None]:
    """Note what is encrypted, as a secret that may be in no answer or log, nor in a database when it is closed."""
    encrypt, close = Vault.encrypt, Service.close

    def note(self: Vault, text: str) -> str:
        SCAN.known |= secrets_in(text)
        return encrypt(self, text)

    def close_and_search(self: Service) -> None:
        close(self)
        assert not SCAN.found_in_database(self.store), f"{self.store.name} holds secrets in clear"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Vault, "encrypt", note)
        patch.setattr(Service, "close", close_and_search)
        logging.getLogger("voiceapi").addHandler(SCAN)
        yield
        logging.getLogger("voiceapi").removeHandler(SCAN)


@pytest.fixture(scope="session", autouse=True)
def every_run_is_replayed(pytestconfig: pytest.Config) -> Iterator[None]:
    """With --replay, replay the runs in a database before it is closed."""
    if not pytestconfig.getoption("--replay"):
        yield
        return
    close = Service.close

    def replay_and_close(self: Service) -> None:
        try:
            check_runs(self)
        finally:
            close(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Service, "close", replay_and_close)
        yield


@pytest.fixture(autouse=True)
def no_secret_is_logged() -> Iterator[None]:
    """Search the log of each test, its tracebacks included, for the secrets that went in."""
    SCAN.begin()
    yield
    assert not SCAN.found_in_log()


@pytest.fixture(scope="session")
def databases(pytestconfig: pytest.Config) -> Iterator[Files | PostgreSQLDatabases]:
    yield from all_databases(pytestconfig)


@pytest.fixture(scope="session")
def database_at(databases: Files | PostgreSQLDatabases) -> Callable[[Path], str]:
    """The location of the database that stands for a file, for VOICEAPI_DATABASE."""
    return databases.at


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[[Path], str]) -> Path:
    """The folder of a new database: copying it is quicker than creating one."""
    folder = tmp_path_factory.mktemp("blank")
    app = create_app({"VOICEAPI_DATABASE": database_at(folder / "voice.db"), "VOICEAPI_API_KEY": KEY})
    app.extensions["voiceapi"].close()
    return folder


@pytest.fixture(scope="session")
def mounted(blank: Path, database_at: Callable[[Path], str]) -> Flask:
    """An app with all routes, shared by all tests: mounting them takes longer than most tests."""
    location = database_at(blank / "voice.db")
    app = create_app({"TESTING": True, "VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": KEY})
    app.extensions["voiceapi"].close()
    return app


@pytest.fixture(scope="session")
def renewed(blank: Path, databases: Files | PostgreSQLDatabases, mounted: Flask) -> Iterator[Callable[[Path], str]]:
    """Makes a new database in a folder, of the one in `blank`; returns its location."""
    if isinstance(databases, PostgreSQLDatabases):
        only = Blank(databases.at(blank / "voice.db"))

        def reset(_: Path) -> str:
            only.reset()
            return only.url

        yield reset
        only.close()
        return

    def copy(folder: Path) -> str:
        for file in blank.iterdir():
            shutil.copy2(file, folder)
        return str(folder / "voice.db")

    yield copy


@pytest.fixture
def settings() -> dict[str, Any]:
    """Settings of a test's app besides its database and its key; a module may override them."""
    return {}


for each in BLUEPRINTS:
    if isinstance(each, Blueprint):
        each.store_docs()  # what `check_answer` reads
# Made once for all tests that ask for it.
OPENAPI = openapi.text("")


@pytest.fixture
def app(tmp_path: Path, renewed: Callable[[Path], str], mounted: Flask, settings: dict[str, Any]) -> Iterator[Flask]:
    """The app, with a service of this test only, opened as `create_app` does."""
    given = {"VOICEAPI_DATABASE": renewed(tmp_path), "VOICEAPI_API_KEY": KEY, **settings}
    if "://" in given["VOICEAPI_DATABASE"]:
        given.setdefault("VOICEAPI_SECRET", SECRET)
    with pytest.MonkeyPatch.context() as patch:
        # No test cuts the power, and waiting for the disk takes as long as much of what they do.
        patch.setitem(sqlite.PRAGMAS, "synchronous", 0)
        # What needs an order asks for one: PostgreSQL gives rows in any.
        patch.setitem(sqlite.PRAGMAS, "reverse_unordered_selects", 1)
        service = mounted.extensions["voiceapi"] = open_service(
            Settings.read(dict.fromkeys(names()) | given), openapi=OPENAPI
        )
    # Neither the first request nor the first use of the key starts twenty threads, which would take a sixth of the
    # suite's time. What needs the threads starts them.
    service.workers.process = os.getpid()
    service.keys_used[1] = fields.now()
    yield mounted
    service.close()


@pytest.fixture(scope="session")
def shared(
    tmp_path_factory: pytest.TempPathFactory, talk: Callable[..., Any], database_at: Callable[[Path], str]
) -> Iterator[FlaskClient]:
    """A client of an app that many tests share, for requests that change nothing: it has workflow 1, path `shared`."""
    path = database_at(tmp_path_factory.mktemp("shared") / "voice.db")
    app = create_app({"TESTING": True, "VOICEAPI_DATABASE": path, "VOICEAPI_API_KEY": KEY})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    client.post(f"{API}/workflow/create/definition", json={"name": "Shared", "workflow_definition": talk("shared")})
    yield client
    app.extensions["voiceapi"].close()


@pytest.fixture
def service(app: Flask) -> Service:
    found: Service = app.extensions["voiceapi"]
    return found


@pytest.fixture
def bare(app: Flask) -> FlaskClient:
    """A client without a key."""
    return app.test_client()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client of the default organization."""
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    return client


@pytest.fixture
def db(app: Flask) -> Iterator[None]:
    """The app's database, bound as in a request."""
    with app.extensions["voiceapi"].store.session():
        yield


@pytest.fixture(scope="session")
def samples() -> dict[str, Any]:
    """Workflow definitions, valid and not, each with the findings that are expected."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("data").joinpath("definitions.json").read_text())
    return found


@pytest.fixture(scope="session")
def talk() -> Callable[..., dict[str, Any]]:
    """Makes a valid definition: a greeting, then yes or no; with a trigger when `path` is given.

    Members of the start node's data may be given by name.
    """

    def definition(path: str | None = None, enabled: bool | None = None, **start: Any) -> dict[str, Any]:
        data = {
            "name": "Hello",
            "prompt": "Ask whether now is good.",
            "greeting": "Hello, is now a good time?",
            **start,
        }
        nodes = [
            {"id": "1", "type": "startCall", "position": {"x": 0, "y": 0}, "data": data},
            _end("2", "Fine", "Great, goodbye."),
            _end("3", "Sorry", "Sorry, goodbye."),
        ]
        if path is not None:
            trigger = {"name": "Trigger", "trigger_path": path}
            trigger |= {} if enabled is None else {"enabled": enabled}
            nodes.append({"id": "t", "type": "trigger", "position": {"x": 0, "y": 0}, "data": trigger})
        edges = [_edge("1", "2", "Yes", "The callee agrees."), _edge("1", "3", "No", "The callee declines.")]
        return {"nodes": nodes, "edges": edges, "viewport": {"x": 0, "y": 0, "zoom": 1}}

    return definition


def _end(id: str, name: str, prompt: str) -> dict[str, Any]:
    return {"id": id, "type": "endCall", "position": {"x": 0, "y": 0}, "data": {"name": name, "prompt": prompt}}


def _edge(source: str, target: str, label: str, condition: str) -> dict[str, Any]:
    data = {"label": label, "condition": condition}
    return {"id": f"{source}-{target}", "source": source, "target": target, "data": data}


@pytest.fixture
def workflow(client: FlaskClient, talk: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Creates a workflow of `client`; returns the answer. Without a definition it is that of `talk`."""

    def create(definition: Any = None, *, name: str = "Agent", **data: Any) -> dict[str, Any]:
        body = {"name": name, "workflow_definition": talk(**data) if definition is None else definition}
        answer = client.post(f"{API}/workflow/create/definition", json=body)
        assert answer.status_code == 200, answer.text
        return dict(answer.get_json())

    return create


@pytest.fixture(scope="session")
def wait_for() -> Callable[..., Any]:
    """Calls a function until its result is true, for at most so many seconds; returns that result.

    They are many, because a busy machine may take as long for anything.
    """

    def wait(ask: Callable[[], Any], seconds: float = 60.0) -> Any:
        deadline = time.monotonic() + seconds
        while not (answer := ask()):
            assert time.monotonic() < deadline, f"not true within {seconds} s: {ask}"
            time.sleep(0.005)
        return answer

    return wait


@pytest.fixture
def finished(client: FlaskClient, wait_for: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Waits until a run of a workflow is completed; returns it as the API shows it."""

    def read(workflow_id: int, run_id: int) -> dict[str, Any]:
        url = f"{API}/workflow/{workflow_id}/runs/{run_id}"
        wait_for(lambda: client.get(url).get_json()["is_completed"])
        return dict(client.get(url).get_json())

    return read


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    """What is stored within it is stored by a clock that is an hour ahead, and is set back at its end."""

    def in_an_hour() -> datetime:
        return datetime.now(UTC) + timedelta(hours=1)

    @contextmanager
    def set_forward() -> Iterator[None]:
        with monkeypatch.context() as patch:
            # Every module has imported the function itself.
            patch.setattr(fields.now, "__code__", in_an_hour.__code__)
            yield

    return set_forward


def searched(parts: Any, path: str) -> Iterator[bytes]:
    """The parts of an answer, each searched for secrets together with those before it."""
    whole = b""
    with closing(parts):
        for part in parts:
            whole += part
            assert not SCAN.found_in_answer(whole), f"{path} shows a secret"
            yield part


# -- checks of answers: a schema only documents an answer, nothing is converted while serving


def content(response: Response) -> bytes:
    """The content of an answer, which may be compressed."""
    data = response.get_data()
    return gzip.decompress(data) if response.content_encoding == "gzip" and data else data


def check_answer(app: Flask, response: Response) -> None:
    """Fail if one of our endpoints answered in HTML, what its documentation lacks, or 429 without a time."""
    view = app.view_functions.get(request.endpoint or "")
    module = str(getattr(view, "__module__", ""))
    if not module.startswith("voiceapi.") or module.startswith("voiceapi.console."):
        return  # the host app's, or a page
    assert response.mimetype != "text/html"
    if response.status_code in (429, 503):
        assert int(response.headers["Retry-After"]) > 0
    documented = getattr(view, "_apidoc", None)
    if documented is None or response.mimetype != "application/json":
        return
    answer = json.loads(content(response))
    if response.status_code >= 400:
        # Any request may be refused or fail with these, whatever it asks for.
        described = {*documented["response"]["responses"], 401, 404, 405, 429, 500, 503}
        where = f"{request.method} {request.url_rule}"
        assert response.status_code in described, f"{where} doesn't document {response.status_code}: {answer}"
        check_error(answer)
        return
    schema = documented["response"]["responses"][response.status_code][0]["schema"]
    if not isinstance(schema, dict):
        check_value(answer, resolve_schema_instance(schema))


def check_error(answer: Any) -> None:
    check_value(answer, ErrorBodySchema())
    if isinstance(answer["detail"], list):
        check_value(answer["detail"], ErrorItemSchema(many=True))
    else:
        assert isinstance(answer["detail"], str | dict), answer


def check_value(answer: Any, schema: Schema) -> None:
    """No member is missing, unknown or of another type, however deep."""
    loaded = schema.load(answer, unknown=RAISE)
    assert alike(answer, schema.dump(loaded)), f"{answer} is not what {schema} says."


def alike(answer: Any, expected: Any) -> bool:
    """Whether they are the same JSON. The fields of schemas read text as numbers and much else, answers must not.

    A whole number may stand where any number may.
    """
    if answer is expected:  # an open object, passed on as it is
        return True
    if isinstance(answer, dict) and isinstance(expected, dict):
        return answer.keys() == expected.keys() and all(alike(answer[name], expected[name]) for name in answer)
    if isinstance(answer, list) and isinstance(expected, list):
        return len(answer) == len(expected) and all(map(alike, answer, expected))
    numbers = type(answer) is int and type(expected) is float
    return (type(answer) is type(expected) or numbers) and bool(answer == expected)
