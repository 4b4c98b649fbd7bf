"""A running service, and requests to its API."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import requests

KEY = "console-test-key-0123456789"


class Server:
    """A `voiceapi serve` on loopback, or another command that serves."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, listens: str, seconds: float = 30) -> None:
        self.process, self._log = process, log
        deadline = time.monotonic() + seconds
        while not (found := re.search(listens, self.log)):
            assert process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)
        self.port = int(found[1])
        self.origin = f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What it has printed."""
        return self._log.read_text()

    def printed_address(self) -> str:
        """The address that the start printed for the browser."""
        found = re.findall(rf"{re.escape(self.origin)}/\S*", self.log)
        assert len(found) == 1, self.log
        return str(found[0])

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


Serve = Callable[..., Server]


class Api:
    """The service's API for tests: `ask` gives the JSON of an answer that is a success."""

    def __init__(self, origin: str, key: str | None, prefix: str = "") -> None:
        self.base = f"{origin}{prefix}/api/v1"
        self.session = requests.Session()
        if key:
            self.session.headers["X-API-Key"] = key

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        answer = self.session.request(method, self.base + path, json=body, timeout=30, **options)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def get(self, path: str, **options: Any) -> Any:
        return self.ask("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        return self.ask("POST", path, body, **options)

    def put(self, path: str, body: Any = None, **options: Any) -> Any:
        return self.ask("PUT", path, body, **options)


class Answering(BaseHTTPRequestHandler):
    """A handler of a server that stands in for another program's; a test's own says in `reply` what it answers."""

    def reply(self) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.reply()

    def do_POST(self) -> None:
        self.reply()

    def sent(self) -> Any:
        """The JSON of the request's body."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def give(self, body: bytes, kind: str = "application/json", status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def listening(handler: type[Answering]) -> Iterator[str]:
    """The origin of a server on loopback whose requests are handled so."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
