"""An internet of this machine only: a server that answers for the carriers, and requests to wherever they are sent."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from internet import Answer, Request


class Loopback:
    """What `StrictTwilio` needs of an internet. Every request to `url` goes to the one host that is there."""

    def __init__(self) -> None:
        self.hosts: dict[str, Callable[[Request], Answer]] = {}
        loopback = self

        class Handler(BaseHTTPRequestHandler):
            def serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = Request(self.command, "", self.path, dict(self.headers), body)
                answer = loopback.hosts["api.twilio.com"](request)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_: Any) -> None: ...

        for method in ("GET", "POST"):
            setattr(Handler, f"do_{method}", Handler.serve)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # Whoever asks may be killed before the answer.
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fetch(self, method: str, url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> Answer:
        """:raises OSError: when there is no answer, or only a part of one."""
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=timeout)
        try:
            connection.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        except http.client.HTTPException as error:
            raise OSError(str(error)) from None
        finally:
            connection.close()
