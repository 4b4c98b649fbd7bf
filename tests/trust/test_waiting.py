"""Who waits lets the server's other threads go on first, so that one thread at a time can answer all that is quick."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from flask.testing import FlaskClient
from holding import held
from lines.call import API

from voiceapi.bulkhead import on_waiting, yield_server_thread
from voiceapi.conversations import text_chats
from voiceapi.http_client import RequestFailed
from voiceapi.service import Service
from voiceapi.store.chats import ChatSession
from voiceapi.store.database import execute, write


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_WORKER": "off"}


@pytest.fixture
def waits() -> Iterator[list[str]]:
    """Grows whenever the thread of the test is about to wait, as one of a server's does."""
    noted: list[str] = []
    on_waiting(lambda: noted.append("waits"))
    yield noted
    on_waiting(lambda: None)


def test_on_a_thread_of_no_server_nothing_happens(waits: list[str]) -> None:
    other = threading.Thread(target=yield_server_thread)
    other.start()
    other.join()
    assert not waits
    yield_server_thread()
    assert waits == ["waits"]


def test_before_another_server_is_asked(service: Service, waits: list[str]) -> None:
    with service.store.session(), pytest.raises(RequestFailed):
        service.http.send("GET", "http://127.0.0.1:1/", timeout=5, trusted=True)
    assert waits


def test_before_a_slow_turn_is_waited_for(service: Service, waits: list[str]) -> None:
    with service.store.session():
        assert service.slow_jobs.run_once("turn", lambda: "done") == "done"
    assert waits


def test_before_slow_work_begins(service: Service, waits: list[str]) -> None:
    with service.store.session(), service.bulkhead.slow(1):
        assert waits


def test_while_another_thread_writes(service: Service, waits: list[str], wait_for: Callable[..., Any]) -> None:
    """Its connection to a file has returned to the pool by then; PostgreSQL is what it waits for by a connection."""
    begun, in_use = threading.Event(), []

    def hold() -> None:
        with service.store.session(), write():
            begun.set()
            wait_for(lambda: waits)
            in_use.append(len(service.store.database._in_use))

    other = threading.Thread(target=hold)
    with service.store.session():
        assert execute("SELECT 1").fetchone() == (1,)
        other.start()
        assert begun.wait(60)
        with write():
            assert waits == ["waits"]
    other.join()
    assert in_use == [2 if service.store.path is None else 1]


def test_while_another_process_writes(service: Service, waits: list[str]) -> None:
    with ExitStack() as holding:
        holding.enter_context(held(service.store.location))

        def end() -> None:
            waits.append("waits")
            holding.close()

        on_waiting(end)
        with service.store.session(), write():
            assert waits


def test_while_the_turn_of_a_chat_is_pending(
    service: Service, waits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause between two looks is one of the thread that asks."""
    monkeypatch.setattr(text_chats.time, "sleep", lambda _: waits.append("sleeps"))
    monkeypatch.setattr(service.store, "release", lambda: waits.append("releases"))
    session = ChatSession(status=text_chats.chats.PENDING, updated_at=text_chats.now())
    done = ChatSession(status="idle", updated_at=text_chats.now())
    found = iter([session, done])
    monkeypatch.setattr(text_chats.chats, "latest", lambda _: next(found))
    assert text_chats._without_pending_turn(service, session) is done
    assert waits == ["releases", "sleeps"]


def test_a_quick_request_never_waits(
    client: FlaskClient, workflow: Callable[..., Any], service: Service, waits: list[str]
) -> None:
    """Reading, writing, and a chat with the scripted model. A transaction on PostgreSQL waits for other processes."""
    made = workflow(path="line")["id"]
    chats = f"{API}/workflow/{made}/text-chat/sessions"
    chat = f"{chats}/{client.post(chats, json={}).get_json()['workflow_run_id']}"
    waits.clear()
    for answer in (
        client.get(f"{API}/health"),
        client.get(f"{API}/workflow/fetch/{made}"),
        client.post(f"{API}/workflow/{made}/validate"),
        client.get(f"{API}/workflow/{made}/runs"),
        client.post(f"{API}/public/agent/unknown", json={"phone_number": "+12025550123"}),
    ):
        assert answer.status_code in (200, 404), answer.text
    assert not waits
    assert client.post(f"{chat}/messages", json={"text": "Yes."}).status_code == 200
    assert bool(waits) == (service.store.path is None)
