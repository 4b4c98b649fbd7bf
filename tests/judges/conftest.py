from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest
import waitress

from voiceapi import create_app

KEY = "test-key-0123456789"


@dataclass(frozen=True)
class Server:
    """Where the service is to be reached, and a key that it accepts."""

    url: str
    key: str


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[[Path], str]) -> Iterator[Server]:
    """The service as it is deployed: waitress on a port of this machine, a new database behind it."""
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    database = database_at(tmp_path_factory.mktemp("server") / "voice.db")
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_PUBLIC_URL": url})
    serving = waitress.create_server(app, sockets=[listening], threads=4)
    thread = Thread(target=serving.run, daemon=True)
    thread.start()
    yield Server(url, KEY)
    # Closed from within its own loop, which ends when nothing is left to wait for; it may be awake, and quicker than
    # the byte that is to wake it.
    with suppress(OSError):
        serving.trigger.pull_trigger(lambda: serving.asyncore.close_all(serving._map))
    thread.join(timeout=60)
    serving.task_dispatcher.shutdown()
    app.extensions["voiceapi"].close()
    assert not thread.is_alive()
