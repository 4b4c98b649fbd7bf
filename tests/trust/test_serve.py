"""`voiceapi serve` as a process: crowds of connections, few files, and how it stops."""

from __future__ import annotations

import json
import os
import re
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from lines.call import API, PUBLIC
from lines.line import Request
from lines.twilio_compatible import TWILIO, US
from slowdown import Slowdown

from voiceapi import create_app
from voiceapi.store.runs import Turn
from voiceapi.store.workflows import Workflow

HERE = Path(__file__).parent
KEY = "test-key-0123456789"
# A number of files that is as low as that of many systems, and the connections that it leaves.
FEW_FILES, FEW_CONNECTIONS = 1024, 256
# Shorter than the default, so that a crowd need not stay as long.
IDLE_TIMEOUT = 30


class Service:
    """A service process with an agent that answers the calls to a Twilio number."""

    def __init__(self, database: str, inbound: str, process: subprocess.Popen[str]) -> None:
        self.database = database
        self.process = process
        self.lines: list[str] = []
        # The address that requests come from.
        self.client = "127.0.0.1"
        self._inbound = inbound
        port = None
        while port is None:
            self.lines.append(self.read_line())
            assert self.lines[-1], f"The process has ended: {self.lines}"
            port = re.search(r"(?i)listen(?:s on|ing at:) http://127\.0\.0\.1:(\d+)", self.lines[-1])
        self.port = int(port[1])

    def read_line(self) -> str:
        """The next line of standard error, without those of the log and the console's address; blank at its end."""
        assert self.process.stderr is not None
        lines = iter(self.process.stderr.readline, "")
        others = (line.strip() for line in lines if " INFO Run " not in line and not line.startswith("Console: "))
        return next(others, "")

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        client = HTTPConnection("127.0.0.1", self.port, timeout=60, source_address=(self.client, 0))
        try:
            client.request(method, path, body, headers)
            answer = client.getresponse()
            return answer.status, answer.read()
        finally:
            client.close()

    def health(self) -> None:
        assert self.ask("GET", f"{API}/health")[0] == 200

    def call(self) -> Phone:
        """A call whose agent has greeted."""
        phone = Phone(self, f"CA{secrets.token_hex(16)}")
        phone.hear(TWILIO.webhook("inbound", "call", f"{PUBLIC}{self._inbound}", CallSid=phone.id))
        return phone

    def stop(self) -> int:
        """The exit code after a SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class Phone:
    """A caller, and Twilio between him and the service."""

    def __init__(self, service: Service, id: str) -> None:
        self._service, self.id = service, id
        self.next = ""

    def hear(self, request: Request) -> list[str]:
        """The names of the verbs that answer a signed webhook."""
        path = request.url.removeprefix(PUBLIC)
        status, document = self._service.ask(request.method, path, request.body, **request.headers)
        assert status == 200, document
        verbs = TWILIO.read(document)
        self.next = next((verb.url for verb in verbs if verb.url), "")
        return [verb.name for verb in verbs]

    def says(self, text: str) -> list[str]:
        return self.hear(TWILIO.webhook("turns", "words", self.next, CallSid=self.id, SpeechResult=text))

    def waits(self) -> list[str]:
        """Follow the redirect after a filler."""
        return self.hear(TWILIO.webhook("turns", "answered", self.next, CallSid=self.id))


Serve = Callable[..., Service]


@pytest.fixture
def serve(tmp_path: Path, database_at: Callable[[Path], str], talk: Callable[..., Any]) -> Iterator[Serve]:
    """Starts a service process. Options are its settings, and what its process runs."""
    database = database_at(tmp_path / "voice.db")
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    body = {"name": "Agent", "workflow_definition": talk()}
    agent = client.post(f"{API}/workflow/create/definition", json=body).get_json()["id"]
    configs = f"{API}/organizations/telephony-configs"
    config = {"name": "Twilio", "config": {"provider": "twilio", **TWILIO.credentials, "amd_enabled": False}}
    made = client.post(configs, json=config).get_json()["id"]
    # The simulator's own number is the same.
    client.delete(f"{configs}/1/phone-numbers/1")
    number = {"address": US, "inbound_workflow_id": agent}
    assert client.post(f"{configs}/{made}/phone-numbers", json=number).status_code == 200
    app.extensions["voiceapi"].close()

    with ExitStack() as closing:

        def start(
            *,
            preexec: Callable[[], None] | None = None,
            program: str = "-m voiceapi serve --port 0",
            **settings: object,
        ) -> Service:
            given = {"DATABASE": database, "API_KEY": KEY, "PUBLIC_URL": PUBLIC, **settings}

            def prepare() -> None:
                # A shell lets what it starts in the background ignore it, the tests and their children included.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                if preexec is not None:
                    preexec()

            process = subprocess.Popen(
                [sys.executable, *program.split()],
                cwd=HERE.parents[1],
                env={**os.environ, **{f"VOICEAPI_{name}": str(value) for name, value in given.items()}},
                stderr=subprocess.PIPE,
                preexec_fn=prepare,
                text=True,
            )
            assert process.stderr is not None
            closing.enter_context(process.stderr)
            closing.callback(process.wait)
            closing.callback(process.kill)
            return Service(database, f"{API}/telephony/inbound/{made}", process)

        yield start


@contextmanager
def crowd(service: Service, count: int, seconds: float) -> Iterator[None]:
    command = [sys.executable, str(HERE / "crowd.py"), str(service.port), str(count), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "connected\n"
            yield
            assert process.poll() is None, "The crowd left too early."
        finally:
            process.kill()


def longest(service: Service, seconds: float) -> dict[str, float]:
    """The longest that health, the first webhook of a call and a turn took, asked twice a second for so long.

    They are seconds of a machine that does nothing else.
    """
    slowdown, found = Slowdown(), dict.fromkeys(("health", "call", "turn"), 0.0)
    until = time.monotonic() + seconds

    def measure(name: str, action: Callable[[], Any]) -> Any:
        began = time.monotonic()
        result = action()
        found[name] = max(found[name], time.monotonic() - began)
        return result

    while time.monotonic() < until:
        began = time.monotonic()
        measure("health", service.health)
        phone = measure("call", service.call)
        assert measure("turn", lambda phone=phone: phone.says("yes")) == ["say", "hangup"]
        slowdown.measure()
        time.sleep(max(0.0, began + 0.5 - time.monotonic()))
    return {name: took / slowdown.worst for name, took in found.items()}


# -- connections


@pytest.mark.long
@pytest.mark.parametrize(
    ("count", "seconds"),
    # Longer than IDLE_TIMEOUT.
    [(900, 75), (1500, 40)],
    ids=["as many as are allowed", "more than are allowed"],
)
def test_a_crowd_that_idles_and_drips_keeps_nobody_waiting(serve: Serve, count: int, seconds: float) -> None:
    service = serve(CONCURRENT_CALLS=1000, IDLE_TIMEOUT=IDLE_TIMEOUT)
    with crowd(service, count, seconds + 60):
        # The first to ask for the document of the API wait until it is made.
        time.sleep(5)
        found = longest(service, seconds)
    assert {name: took for name, took in found.items() if took >= 1} == {}


@pytest.mark.long
def test_few_files_leave_few_connections_and_the_start_says_so(serve: Serve) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, FEW_FILES))

    service = serve(preexec=limit, CONCURRENT_CALLS=1000)
    assert service.lines[0] == (
        f"VOICEAPI_CONNECTIONS is 1000, but there are {FEW_CONNECTIONS}, because this process may open only {FEW_FILES}"
        " files (ulimit -n, LimitNOFILE)."
    )
    # Too few for all, and for a while also for the files of the service itself. The crowd's own address has so many
    # new connections in a second that each loses its place before long.
    service.client = "127.0.0.2"
    with crowd(service, 900, 60):
        time.sleep(1)
        found = longest(service, 10)
    assert {name: took for name, took in found.items() if took >= 1} == {}
    assert service.stop() == 0


@pytest.mark.long
def test_a_number_of_connections_that_the_files_allow_is_not_mentioned(serve: Serve) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, FEW_FILES))

    assert len(serve(preexec=limit, CONNECTIONS=FEW_CONNECTIONS).lines) == 1


# -- behind a proxy


def lines_of(proxy: str) -> str:
    """The configuration of a proxy in docs/operations.md."""
    page = (HERE.parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")
    return page.split(f"```{proxy}\n")[1].split("```")[0]


def caddy(folder: Path, port: int, behind: int) -> list[str]:
    given = lines_of("Caddyfile").replace("voice.example.org", f"http://127.0.0.1:{port}")
    assert "127.0.0.1:8000" in given
    (folder / "Caddyfile").write_text("{\n\tadmin off\n}\n" + given.replace("127.0.0.1:8000", f"127.0.0.1:{behind}"))
    return ["run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


def nginx(folder: Path, port: int, behind: int) -> list[str]:
    given = lines_of("nginx").replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
    assert "127.0.0.1:8000" in given
    given = re.sub("ssl_certificate.*;", "", given.replace("127.0.0.1:8000", f"127.0.0.1:{behind}"))
    paths = "".join(f"{name}_temp_path {folder};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;\n" if os.geteuid() == 0 else ""
    around = f"{user}daemon off;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{given}}}\n"
    (folder / "nginx.conf").write_text(around)
    return ["-e", str(folder / "errors"), "-c", str(folder / "nginx.conf"), "-p", str(folder)]


@pytest.mark.long
@pytest.mark.parametrize("proxy", [caddy, nginx], ids=lambda proxy: proxy.__name__)
def test_the_lines_for_a_proxy_do_what_the_page_says(
    serve: Serve, tmp_path: Path, wait_for: Callable[..., Any], proxy: Callable[[Path, int, int], list[str]]
) -> None:
    program = shutil.which(proxy.__name__)
    if program is None:
        pytest.skip(f"{proxy.__name__} isn't installed.")
    service = serve()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, *proxy(tmp_path, port, service.port)]
    with subprocess.Popen(command, env={**os.environ, "HOME": str(tmp_path)}, stderr=subprocess.DEVNULL) as process:
        try:
            service.port = port

            def listens() -> bool:
                with socket.socket() as client:
                    return client.connect_ex(("127.0.0.1", port)) == 0

            wait_for(listens)
            # What Twilio signs comes through as it was.
            assert service.call().says("yes") == ["say", "hangup"]
            key = {"X-API-Key": KEY, "Content-Type": "application/json"}
            path = f"{API}/workflow/create/definition"
            status, answer = service.ask("POST", path, b" " * 16_900_000, **key)
            assert (status, "detail" in json.loads(answer)) == (413, True)
            with suppress(ConnectionError):  # the proxy refuses it before all of it is sent
                status, answer = service.ask("POST", path, b" " * 18_000_000, **key)
                assert (status, b"detail" in answer) == (413, False)
        finally:
            process.terminate()


# -- stopping


class Model(BaseHTTPRequestHandler):
    """A language model that answers when it may."""

    may_answer = threading.Event()
    asked = threading.Event()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.set()
        self.may_answer.wait(60)
        message = {"role": "assistant", "content": "I see."}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def model() -> Iterator[str]:
    """The base URL of a model server."""
    Model.may_answer.clear()
    Model.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    Model.may_answer.set()
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def in_background(action: Callable[[], Any]) -> Iterator[list[Any]]:
    """What the action returns, in a list, at the end of the block."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(action()))
    thread.start()
    yield results
    thread.join()


def turns(database: str) -> list[bool]:
    """Whether the turns of the only call are answered, in their order."""
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
    with app.extensions["voiceapi"].store.session():
        found = [turn.answered_at is not None for turn in Turn.select().order_by(Turn.number)]
    app.extensions["voiceapi"].close()
    return found


@pytest.mark.long
def test_a_stop_finishes_the_request_and_the_turn_in_progress(serve: Serve, model: str) -> None:
    service = serve(LLM_URL=model, LLM_MODEL="m", LLM_STREAM="off")
    phone = service.call()
    idle = socket.create_connection(("127.0.0.1", service.port), timeout=60)
    with in_background(lambda: phone.says("What is it about?")) as heard:
        assert Model.asked.wait(60)
        service.process.send_signal(signal.SIGTERM)
        assert service.read_line() == "Stopping: waits for 1 request and 1 turn."
        with pytest.raises(ConnectionRefusedError):
            service.health()
        assert idle.recv(1) == b""
        Model.may_answer.set()
    idle.close()
    assert heard == [["say", "listen", "redirect"]]
    assert service.process.wait(60) == 0
    assert service.read_line() == ""
    assert turns(service.database) == [True, True]


@pytest.mark.long
def test_a_stop_finishes_a_turn_that_nobody_waits_for(serve: Serve, model: str) -> None:
    service = serve(LLM_URL=model, LLM_MODEL="m", LLM_STREAM="off")
    assert service.call().says("What is it about?") == ["say", "redirect"]
    service.process.send_signal(signal.SIGTERM)
    assert service.read_line() == "Stopping: waits for 1 turn."
    Model.may_answer.set()
    assert service.process.wait(60) == 0
    assert turns(service.database) == [True, True]


@pytest.mark.long
def test_a_stop_waits_for_a_limited_time_and_the_next_start_goes_on(serve: Serve, model: str) -> None:
    service = serve(LLM_URL=model, LLM_MODEL="m", LLM_STREAM="off", program=f"{HERE / 'short_stop.py'} serve --port 0")
    phone = service.call()
    assert phone.says("What is it about?") == ["say", "redirect"]
    assert service.stop() == 0
    assert service.read_line() == "Stopping: waits for 1 turn."
    assert service.read_line() == "Stops without 1 turn; the next start goes on with what was stored."
    assert turns(service.database) == [True, False]
    Model.may_answer.set()
    phone._service = serve(LLM_URL=model, LLM_MODEL="m", LLM_STREAM="off")
    assert phone.waits() == ["say", "listen", "redirect"]
    assert turns(service.database) == [True, True]


@pytest.mark.long
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_stops_at_once(serve: Serve, model: str, second: signal.Signals) -> None:
    service = serve(LLM_URL=model, LLM_MODEL="m", LLM_STREAM="off")
    service.call().says("What is it about?")
    service.process.send_signal(signal.SIGINT)
    assert service.read_line() == "Stopping: waits for 1 turn."
    service.process.send_signal(second)
    assert service.process.wait(60) == 128 + second
    assert service.read_line() == "Stopped at once, by a second signal; the next start goes on with what was stored."
    assert turns(service.database) == [True, False]


@pytest.mark.long
def test_a_stop_is_quick_when_nothing_is_in_progress(serve: Serve) -> None:
    service = serve()
    service.call()
    with crowd(service, 50, 30):
        time.sleep(0.5)
        began = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(60) == 0
    # Requests that never arrive and answers that nobody reads are given 5 s, and turns 30.
    assert time.monotonic() - began < 30
    service = serve()
    assert service.stop() == 0
    assert service.read_line() == ""


@pytest.mark.long
def test_a_stop_under_load_loses_nothing_that_was_answered(serve: Serve, talk: Callable[..., Any]) -> None:
    service = serve()
    created: list[str] = []

    def create(number: int) -> None:
        for each in range(10_000):
            name = f"{number}-{each}"
            body = json.dumps({"name": name, "workflow_definition": talk()}).encode()
            headers = {"X-API-Key": KEY, "Content-Type": "application/json"}
            try:
                status, _ = service.ask("POST", f"{API}/workflow/create/definition", body, **headers)
            except ConnectionError:  # refused, or reset if the stop came while it connected
                return
            assert status == 200
            created.append(name)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    assert service.stop() == 0
    for thread in threads:
        thread.join()
    assert len(created) > 20
    app = create_app({"VOICEAPI_DATABASE": service.database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
    with app.extensions["voiceapi"].store.session():
        stored = {workflow.name for workflow in Workflow.select()}
    app.extensions["voiceapi"].close()
    # Nothing is lost, and nothing was done whose client got no answer.
    assert set(created) | {"Agent"} == stored


@pytest.mark.long
def test_gunicorn_stops_soon_in_the_middle_of_a_turn(serve: Serve, model: str) -> None:
    service = serve(
        LLM_URL=model,
        LLM_MODEL="m",
        LLM_STREAM="off",
        program="-m gunicorn --threads 4 --bind 127.0.0.1:0 voiceapi:create_app()",
    )
    phone = service.call()
    assert phone.says("What is it about?") == ["say", "redirect"]
    began = time.monotonic()
    assert service.stop() == 0
    # After its graceful time-out, 30 s, gunicorn would kill what hangs.
    assert time.monotonic() - began < 30
    assert turns(service.database) == [True, False]
    Model.may_answer.set()
    phone._service = serve(LLM_URL=model, LLM_MODEL="m", LLM_STREAM="off")
    assert phone.waits() == ["say", "listen", "redirect"]
