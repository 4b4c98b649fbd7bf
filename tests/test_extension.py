"""voiceapi inside a host's Flask app, which is not changed otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import click
import flask_smorest
import pytest
from flask import Flask, Response, abort, jsonify, request, session
from flask.json.provider import DefaultJSONProvider
from flask.testing import FlaskClient
from flask.views import MethodView
from marshmallow import Schema, fields
from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.routing import IntegerConverter, Map, Rule

from voiceapi import VoiceAPI, create_app
from voiceapi.cli import gunicorn_jobs
from voiceapi.config import SettingError
from voiceapi.service import opened
from voiceapi.store.organizations import ApiKey
from voiceapi.store.runs import Run

ROOT = Path(__file__).parent.parent
KEY = "test-key-0123456789"
API = "/voice/api/v1"
AUTHORIZED = {"X-API-Key": KEY}
REFUSED = {"detail": "Authorization header required"}


@pytest.fixture
def embed(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[Callable[..., Flask]]:
    """Mounts voiceapi under /voice of a host app, on its own database."""
    hosts: list[Flask] = []

    def mount(host: Flask, database: str = "voice.db", **options: Any) -> Flask:
        host.config.update(VOICEAPI_DATABASE=database_at(tmp_path / database), VOICEAPI_API_KEY=KEY)
        VoiceAPI(**options).init_app(host, url_prefix="/voice")
        hosts.append(host)
        return host

    yield mount
    for host in hosts:
        host.extensions["voiceapi"].close()


@pytest.fixture
def host(embed: Callable[..., Flask]) -> Flask:
    return embed(Flask("host"))


def test_addresses_are_built_as_of_any_route_but_only_then_compiled(
    embed: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling what builds them took most of `init_app`. The host's own routes are as they would be without us."""
    compiled: list[str] = []
    compile_builder = Rule._compile_builder

    def compile_and_note(self: Rule, append_unknown: bool = True) -> Any:
        compiled.append(self.rule)
        return compile_builder(self, append_unknown)

    monkeypatch.setattr(Rule, "_compile_builder", compile_and_note)
    host = Flask("host")
    host.add_url_rule("/own/<int:number>", "own", lambda number: str(number))
    embed(host)
    assert {rule for rule in compiled if rule.startswith("/voice")} == set()
    assert host.url_rule_class is Rule
    for rule in host.url_map.iter_rules():
        values = dict.fromkeys(rule.arguments, "a b") | {"step": "wait"}
        values |= {name: 7 for name, converter in rule._converters.items() if isinstance(converter, IntegerConverter)}
        usual = Rule(rule.rule, defaults=rule.defaults, endpoint="it")
        Map([usual])
        for unknown in (True, False):
            assert rule.build(values, unknown) == usual.build(values, unknown)
    assert len([rule for rule in compiled if rule.startswith("/voice/api")]) > 100


def key_names(client: FlaskClient) -> list[str]:
    answer = client.get(f"{API}/user/api-keys", headers=AUTHORIZED)
    return [key["name"] for key in answer.get_json()]


# -- under the prefix


@pytest.mark.parametrize(
    ("method", "path", "status", "body", "allow"),
    [
        ("GET", "/nothing", 404, {"detail": "Not Found"}, None),
        ("GET", "", 404, {"detail": "Not Found"}, None),
        ("DELETE", "/health", 405, {"detail": "Method Not Allowed"}, {"GET", "HEAD", "OPTIONS"}),
        ("GET", "/workflow/create/definition", 405, {"detail": "Method Not Allowed"}, {"POST", "OPTIONS"}),
        ("GET", "/user/api-keys", 401, REFUSED, None),
    ],
)
def test_errors_under_the_prefix_are_json(
    host: Flask, method: str, path: str, status: int, body: dict[str, Any], allow: set[str] | None
) -> None:
    answer = host.test_client().open(f"{API}{path}", method=method)
    assert (answer.status_code, answer.get_json()) == (status, body)
    assert (set(answer.allow) or None) == allow


def test_the_document_is_that_of_the_service_with_the_prefix_as_its_server(host: Flask) -> None:
    embedded = host.test_client().get(f"{API}/openapi.json").get_json()
    assert embedded.pop("servers") == [{"url": "/voice"}]
    snapshot = json.loads((ROOT / "schemas" / "openapi.json").read_text(encoding="utf-8"))
    assert snapshot.pop("servers") == [{"url": "/"}]
    assert embedded == snapshot


def test_addresses_given_out_carry_the_prefix(embed: Callable[..., Flask]) -> None:
    app = Flask("host")
    app.config["VOICEAPI_PUBLIC_URL"] = "https://calls.example.org"
    assert embed(app).extensions["voiceapi"].base_url == "https://calls.example.org/voice"


def test_requests_within_one_context_of_the_app_are_answered_one_by_one(host: Flask, talk: Any) -> None:
    """Tests of a host often push the app's context around their client."""
    with host.app_context():
        client = host.test_client()
        body = {"name": "Agent", "workflow_definition": talk()}
        made = client.post(f"{API}/workflow/create/definition", json=body, headers=AUTHORIZED)
        answer = client.put(
            f"{API}/workflow/{made.get_json()['id']}/status", json={"status": "archived"}, headers=AUTHORIZED
        )
    assert (answer.status_code, answer.get_json()["status"]) == (200, "archived")


def test_a_second_init_app_is_refused(host: Flask) -> None:
    with pytest.raises(RuntimeError, match="voiceapi is already part of this app"):
        VoiceAPI(host)


@pytest.mark.parametrize("prefix", ["voice", "voice/"])
def test_a_prefix_starts_with_a_slash(tmp_path: Path, prefix: str) -> None:
    app = Flask("host")
    app.config["VOICEAPI_DATABASE"] = tmp_path / "voice.db"
    with pytest.raises(ValueError, match=f"url_prefix must start with a slash, not '{prefix}'"):
        VoiceAPI().init_app(app, url_prefix=prefix)
    assert list(tmp_path.iterdir()) == []


# -- the host's own things


def plain(app: Flask) -> None:
    """A host that leaves its errors to Flask."""


def page(app: Flask) -> None:
    app.register_error_handler(404, lambda error: ("<h1>Lost?</h1>", 404))


def any_error(app: Flask) -> None:
    app.register_error_handler(HTTPException, lambda error: (f"<h1>Error {error.code}</h1>", error.code))


LOST = NotFound().get_body()


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (plain, plain, LOST),
        (page, plain, "<h1>Lost?</h1>"),
        (any_error, plain, "<h1>Error 404</h1>"),
        (plain, any_error, "<h1>Error 404</h1>"),
        (page, any_error, "<h1>Lost?</h1>"),
    ],
)
def test_the_hosts_error_pages_stay_and_the_apis_are_json(
    embed: Callable[..., Flask], before: Callable[[Flask], None], after: Callable[[Flask], None], lost: str
) -> None:
    app = Flask("host")
    app.add_url_rule("/forbidden", view_func=lambda: abort(404), endpoint="forbidden")
    before(app)
    embed(app)
    after(app)
    client = app.test_client()
    for path in ("/nowhere", "/forbidden", "/voices", "/api/v1/health"):
        answer = client.get(path)
        assert (answer.status_code, answer.text, answer.mimetype) == (404, lost, "text/html"), path
    for path in (f"{API}/nowhere", "/voice", "/voice/", "/voice/nowhere", "/voice/api/v10/health"):
        answer = client.get(path)
        assert (answer.status_code, answer.get_json()) == (404, {"detail": "Not Found"}), path
    wrong_method = client.put(f"{API}/health")
    assert (wrong_method.get_json(), set(wrong_method.allow)) == (
        {"detail": "Method Not Allowed"},
        {"GET", "HEAD", "OPTIONS"},
    )
    assert client.get(f"{API}/workflow/fetch/7", headers=AUTHORIZED).get_json() == {
        "detail": "Workflow with id 7 not found"
    }


def test_the_hosts_own_smorest_api_is_untouched(embed: Callable[..., Flask]) -> None:
    class Pet(Schema):
        name = fields.String(required=True)

    def make() -> Flask:
        app = Flask("host")
        app.config.update(API_TITLE="Pets", API_VERSION="1", OPENAPI_VERSION="3.0.3", OPENAPI_URL_PREFIX="/docs")
        blueprint = flask_smorest.Blueprint("pets", "pets", url_prefix="/pets")

        @blueprint.route("/")
        class Pets(MethodView):
            @blueprint.arguments(Pet)
            @blueprint.response(201, Pet)
            def post(self, pet: dict[str, Any]) -> dict[str, Any]:
                return pet

        flask_smorest.Api(app).register_blueprint(blueprint)
        return app

    alone, shared = make().test_client(), embed(make()).test_client()
    for method, path, body in (
        ("GET", "/docs/openapi.json", None),
        ("POST", "/pets/", {"name": "Rex"}),
        ("POST", "/pets/", {"name": 7}),
        ("DELETE", "/pets/", None),
        ("GET", "/pets/nowhere", None),
    ):
        expected, found = (client.open(path, method=method, json=body) for client in (alone, shared))
        assert (found.status_code, found.data, dict(found.headers)) == (
            expected.status_code,
            expected.data,
            dict(expected.headers),
        )
    assert "Pets" not in shared.get(f"{API}/openapi.json").text
    assert key_names(shared) == ["VOICEAPI_API_KEY"]


def test_the_hosts_json_provider_size_limit_and_hooks_are_its_own(embed: Callable[..., Flask]) -> None:
    class Shouting(DefaultJSONProvider):
        def dumps(self, obj: Any, **kwargs: Any) -> str:
            return super().dumps(obj, **kwargs).upper()

    app = Flask("host")
    app.json = Shouting(app)
    app.config["MAX_CONTENT_LENGTH"] = 100
    seen: list[str] = []
    app.before_request(lambda: seen.append(f"before {request.path}"))
    app.add_url_rule("/own", view_func=lambda: jsonify(size=len(request.data)), endpoint="own", methods=["POST"])
    client = embed(app).test_client()

    assert client.post("/own", data=b"x" * 50).text == '{"SIZE":50}\n'
    assert client.post("/own", data=b"x" * 101).status_code == 413
    assert client.get(f"{API}/health").get_json()["status"] == "ok"
    large = json.dumps({"name": "x" * 1000})
    made = client.post(f"{API}/user/api-keys", data=large, content_type="application/json", headers=AUTHORIZED)
    assert made.get_json()["name"] == "x" * 1000
    assert client.post("/own", data=b"x" * 101).status_code == 413
    assert seen == ["before /own", "before /own", f"before {API}/health", f"before {API}/user/api-keys", "before /own"]


def test_a_hook_of_the_host_may_refuse_a_request(embed: Callable[..., Flask]) -> None:
    app = Flask("host")

    def maintenance() -> Response:
        return Response("closed", 503, {"Retry-After": "60"}, mimetype="text/plain")

    app.before_request(maintenance)
    assert embed(app).test_client().get(f"{API}/health").text == "closed"


def test_the_hosts_routes_pass_none_of_our_hooks(embed: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch) -> None:
    app = Flask("host")
    app.add_url_rule("/own", view_func=lambda: "own", endpoint="own")
    embed(app)
    fired: list[str] = []
    tables = (app.before_request_funcs, app.after_request_funcs, app.teardown_request_funcs)
    for table in tables:
        for owner, hooks in table.items():
            if owner is not None:
                monkeypatch.setitem(table, owner, [_noting(fired, owner, hook) for hook in hooks])
    # One hook sees every request: it looks for routing errors under our prefix.
    assert [len(table.get(None, [])) for table in tables] == [1, 0, 0]
    client = app.test_client()
    assert (client.get("/own").text, client.get("/nowhere").status_code, fired) == ("own", 404, [])
    assert client.get(f"{API}/user/api-keys", headers=AUTHORIZED).status_code == 200
    assert sorted(set(fired)) == ["voiceapi", "voiceapi.guarded"]


def _noting(fired: list[str], owner: str | None, hook: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*args: Any) -> Any:
        fired.append(str(owner))
        return hook(*args)

    return noted


def test_only_what_is_promised_is_added_to_the_host(embed: Callable[..., Flask]) -> None:
    before, app = Flask("host"), Flask("host")
    own = click.Command("openapi")
    for host in (before, app):
        host.cli.add_command(own)
    embed(app)
    assert set(app.extensions) - set(before.extensions) == {"voiceapi"}
    assert set(app.blueprints) - set(before.blueprints) == {
        name
        for name in app.blueprints
        if name in ("voiceapi", "voiceapi_console", "voiceapi_documents") or name.startswith("voiceapi.")
    }
    assert {key for key in set(app.config) - set(before.config) if not key.startswith("VOICEAPI_")} == set()
    assert app.error_handler_spec[None] == before.error_handler_spec[None]
    assert set(app.cli.commands) - set(before.cli.commands) == {"voiceapi"}
    assert app.cli.commands["openapi"] is own
    assert app.json is not None
    assert type(app.json) is type(before.json)


# -- processes and threads


@pytest.mark.long
def test_a_host_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Its own `schemas` module is the one that is imported, its commands list ours, and no thread starts at first."""
    (tmp_path / "schemas.py").write_text("OWNER = 'host'\n")
    (tmp_path / "host.py").write_text(
        dedent("""
            import threading
            import schemas
            from flask import Flask
            from voiceapi import VoiceAPI

            def create_app():
                app = Flask("host", instance_path=app_folder())
                VoiceAPI().init_app(app, url_prefix="/voice")
                return app

            def app_folder():
                from pathlib import Path
                return str(Path(__file__).parent / "instance")

            if __name__ == "__main__":
                app = create_app()
                print(schemas.OWNER, threading.active_count(), end=" ")
                print(app.test_client().get("/voice/api/v1/health").status_code)
        """)
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "VOICEAPI_API_KEY": KEY}

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert run("host.py") == "host 1 200\n"
    assert (tmp_path / "instance" / "voiceapi.db").is_file()
    usage, _, rest = run("-m", "flask", "--app", "host", "voiceapi", "--help").partition("\n")
    assert usage.endswith("flask voiceapi [OPTIONS] COMMAND [ARGS]...")
    assert "keys" in rest
    listed = run("-m", "flask", "--app", "host", "voiceapi", "keys", "list")
    assert listed.splitlines()[-1].split() == ["1", KEY[:8] + "...", "active", "VOICEAPI_API_KEY"]


@pytest.mark.parametrize("path", ["/own", "/nowhere", f"{API}/health", f"{API}/nothing", f"{API}/user/api-keys"])
def test_the_first_request_of_any_kind_starts_the_background_jobs(embed: Callable[..., Flask], path: str) -> None:
    before = {*threading.enumerate()}
    app = Flask("host")
    app.add_url_rule("/own", view_func=lambda: "own", endpoint="own")
    embed(app)
    assert app.test_cli_runner().invoke(args=["voiceapi", "keys", "list"]).exit_code == 0
    assert {*threading.enumerate()} == before
    app.test_client().get(path)
    started = {*threading.enumerate()}
    assert started > before
    app.test_client().get(path)
    assert {*threading.enumerate()} == started
    service = app.extensions["voiceapi"]
    service.close()
    assert {*threading.enumerate()} == before
    # A host that has closed the service has ended it.
    app.test_client().get("/own")
    assert {*threading.enumerate()} == before


def test_a_system_that_refuses_threads_fails_no_request(
    embed: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch, wait_for: Callable[..., Any]
) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    app = Flask("host")
    embed(app)
    client, service = app.test_client(), app.extensions["voiceapi"]
    with monkeypatch.context() as patch:
        patch.setattr(threading, "_start_new_thread", refuse)
        for path in (f"{API}/health", f"{API}/user/api-keys"):
            assert client.get(path, headers=AUTHORIZED).status_code == 200
    assert service.workers.process == 0
    assert client.get(f"{API}/health").status_code == 200
    assert service.workers.process == os.getpid()
    # What waited is done as soon as there are threads.
    service.workers.submit(int).result(60)
    wait_for(lambda: client.get(f"{API}/user/api-keys", headers=AUTHORIZED).get_json()[0]["last_used_at"])
    service.close()


def test_no_job_starts_where_they_are_left_to_another_process(embed: Callable[..., Flask]) -> None:
    before = {*threading.enumerate()}
    app = Flask("host")
    app.config["VOICEAPI_WORKER"] = "off"
    embed(app)
    for path in ("/own", f"{API}/health", f"{API}/nothing"):
        app.test_client().get(path)
    assert {*threading.enumerate()} == before


def test_gunicorns_hooks_find_every_app_of_the_process(embed: Callable[..., Flask]) -> None:
    """Nothing is given to them that leads to the apps."""
    opened.clear()  # those that other tests have left
    before = {*threading.enumerate()}
    one, other, silent = Flask("one"), Flask("other"), Flask("silent")
    silent.config["VOICEAPI_WORKER"] = "off"
    for number, app in enumerate((one, other, silent)):
        embed(app, f"{number}.db")
    gunicorn_jobs.post_worker_init(None)
    processes = [app.extensions["voiceapi"].workers.process for app in (one, other, silent)]
    assert processes == [os.getpid(), os.getpid(), 0]
    gunicorn_jobs.worker_exit(None, SimpleNamespace(pid=os.getpid() + 1))
    assert {*threading.enumerate()} > before
    gunicorn_jobs.worker_exit(None, SimpleNamespace(pid=os.getpid()))
    assert {*threading.enumerate()} == before


def place(client: FlaskClient, api: str, path: str) -> int:
    body = {"phone_number": "+12025550123"}
    answer = client.post(f"{api}/public/agent/{path}", json=body, headers=AUTHORIZED)
    assert answer.status_code == 200, answer.text
    return int(answer.get_json()["workflow_run_id"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.long
def test_a_call_completes_in_a_forked_process(
    tmp_path: Path, database_at: Callable[[Path], str], talk: Callable[..., dict[str, Any]]
) -> None:
    """A server such as gunicorn makes the app, answers perhaps, and forks; the child starts its own threads."""
    (tmp_path / "talk.json").write_text(json.dumps(talk("path")))
    script = dedent("""
        import json, os, sys, time, warnings
        from voiceapi import create_app

        database, folder, key = sys.argv[1:]
        app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": key})
        client = app.test_client()
        headers = {"X-API-Key": key}

        def call():
            body = {"phone_number": "+12025550123"}
            run = client.post("/api/v1/public/agent/path", json=body, headers=headers).get_json()["workflow_run_id"]
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                found = client.get(f"/api/v1/workflow/1/runs/{run}", headers=headers).get_json()
                if found["is_completed"]:
                    return found["gathered_context"]["call_disposition"]
                time.sleep(0.01)

        body = {"name": "Agent", "workflow_definition": json.load(open(f"{folder}/talk.json"))}
        client.post("/api/v1/workflow/create/definition", json=body, headers=headers)
        print("parent", call(), flush=True)
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
        if child == 0:
            print("child", call(), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print("parent", call(), flush=True)
        app.extensions["voiceapi"].close()
    """)
    command = [sys.executable, "-c", script, database_at(tmp_path / "voice.db"), str(tmp_path), KEY]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90)
    assert (done.stdout, done.stderr) == ("parent user_qualified\nchild user_qualified\nparent user_qualified\n", "")


def test_two_apps_in_one_process_keep_two_databases(
    tmp_path: Path,
    database_at: Callable[[Path], str],
    talk: Callable[..., dict[str, Any]],
    wait_for: Callable[..., Any],
) -> None:
    """Interleaved from many threads, each app's workflows, calls and runs stay in its own database."""
    apps = [
        create_app(
            {
                "VOICEAPI_DATABASE": database_at(tmp_path / f"{name}.db"),
                "VOICEAPI_API_KEY": KEY,
                "VOICEAPI_CONCURRENT_CALLS": 100,
            }
        )
        for name in ("first", "second")
    ]
    each = 12

    def work(number: int) -> None:
        app = apps[number % 2]
        client = app.test_client()
        name = f"{number % 2}-{number}"
        body = {"name": name, "workflow_definition": talk(f"path-{number}")}
        made = client.post("/api/v1/workflow/create/definition", json=body, headers=AUTHORIZED).get_json()
        run = place(client, "/api/v1", f"path-{number}")
        url = f"/api/v1/workflow/{made['id']}/runs/{run}"
        wait_for(lambda: client.get(url, headers=AUTHORIZED).get_json()["is_completed"])
        assert client.get(f"/api/v1/workflow/fetch/{made['id']}", headers=AUTHORIZED).get_json()["name"] == name

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(2 * each)))
    for number, app in enumerate(apps):
        listed = app.test_client().get("/api/v1/workflow/fetch", headers=AUTHORIZED).get_json()
        assert sorted(row["name"] for row in listed) == sorted(
            f"{number}-{index}" for index in range(number, 2 * each, 2)
        )
        assert [row["total_runs"] for row in listed] == [1] * each
        with app.extensions["voiceapi"].store.session():
            assert Run.select().where(Run.state == "completed").count() == each
        app.extensions["voiceapi"].close()


# -- the host's own login


@pytest.fixture
def login(embed: Callable[..., Flask]) -> FlaskClient:
    """A host whose users log in by a session cookie; each acts for the organization of the same name."""
    app = Flask("host")
    app.secret_key = "a secret of the host"

    @app.post("/login/<name>")
    def log_in(name: str) -> str:
        session["user"] = name
        return name

    return embed(app, authenticate=lambda: session.get("user")).test_client()


def test_the_hosts_login_decides_the_organization(login: FlaskClient, talk: Callable[..., dict[str, Any]]) -> None:
    url = f"{API}/workflow/create/definition"
    assert login.get(f"{API}/workflow/fetch").get_json() == REFUSED
    made = {}
    for name in ("ada", "grace"):
        login.post(f"/login/{name}")
        made[name] = login.post(url, json={"name": name, "workflow_definition": talk()}).get_json()["id"]
    for name, other in (("ada", "grace"), ("grace", "ada")):
        login.post(f"/login/{name}")
        assert [row["name"] for row in login.get(f"{API}/workflow/fetch").get_json()] == [name]
        missing = login.get(f"{API}/workflow/fetch/{made[other]}")
        assert (missing.status_code, missing.get_json()) == (
            404,
            {"detail": f"Workflow with id {made[other]} not found"},
        )


def test_a_key_goes_before_the_hosts_login(login: FlaskClient) -> None:
    login.post("/login/ada")
    assert key_names(login) == ["VOICEAPI_API_KEY"]
    assert login.get(f"{API}/user/api-keys").get_json() == []
    wrong = login.get(f"{API}/user/api-keys", headers={"X-API-Key": "wrong"})
    assert (wrong.status_code, wrong.get_json()) == (401, {"detail": "Invalid or expired API key"})


def test_a_login_may_call_somebody(
    login: FlaskClient, talk: Callable[..., dict[str, Any]], wait_for: Callable[..., Any]
) -> None:
    """An organization that a login made has the simulator as its carrier, like the first one."""
    login.post("/login/ada")
    body = {"name": "Agent", "workflow_definition": talk()}
    workflow = login.post(f"{API}/workflow/create/definition", json=body).get_json()["id"]
    call = {"workflow_id": workflow, "phone_number": "+12025550123"}
    placed = login.post(f"{API}/telephony/initiate-call", json=call)
    assert placed.status_code == 200, placed.text
    url = f"{API}/workflow/{workflow}/runs"
    wait_for(lambda: [run["is_completed"] for run in login.get(url).get_json()["runs"]] == [True])


def test_a_hosts_own_runner_reaches_the_hosts_database(tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    host = Flask("host")
    host.config["VOICEAPI_DATABASE"] = database_at(tmp_path / "host.db")
    VoiceAPI(host, url_prefix="/voice")
    made = host.test_cli_runner().invoke(args=["voiceapi", "keys", "create", "mine", "--organization", "ada"])
    assert made.exit_code == 0, made.output
    with host.extensions["voiceapi"].store.session():
        assert [key.name for key in ApiKey.select().order_by(ApiKey.id)] == ["first key", "mine"]
    host.extensions["voiceapi"].close()


def test_a_database_elsewhere_demands_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no folder beside it in which the secret could be kept."""
    monkeypatch.delenv("VOICEAPI_SECRET", raising=False)
    with pytest.raises(SettingError) as raised:
        create_app({"VOICEAPI_DATABASE": "postgresql://voice:s3cr3t@db.example/voice"})
    assert str(raised.value).startswith("VOICEAPI_SECRET must be set, because VOICEAPI_DATABASE is no file")
    assert "s3cr3t" not in str(raised.value)


def test_a_start_imports_nothing_that_is_needed_later_and_looks_for_no_garbage(
    tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    """What a start makes is never looked at again; what only some requests need isn't there yet."""
    settings = {"VOICEAPI_DATABASE": database_at(tmp_path / "v.db"), "VOICEAPI_API_KEY": "start-key-0123456789"}
    create_app(settings).extensions["voiceapi"].close()  # a new database gets its first encrypted value
    script = f"""
import gc, sys
from voiceapi.__main__ import _create_app
runs = []
gc.callbacks.append(lambda phase, info: runs.append(phase))
app = _create_app({settings!r})
print(len(runs), gc.isenabled(), gc.get_freeze_count() > 50_000)
assert app.test_client().get("/api/v1/health").status_code == 200
late = ("cryptography", "requests", "urllib3", "phonenumbers", "limits", "jwt", "pypdf", "playhouse.db_url",
        "regex")
print([name for name in late if name in sys.modules])
"""
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines() == ["0 True True", "[]"]
