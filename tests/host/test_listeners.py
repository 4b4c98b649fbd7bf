"""Functions of a host's app that get each ended run: at least once, whichever process ended it."""

from __future__ import annotations

import os
import runpy
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, current_app, has_request_context

from voiceapi import Run, VoiceAPI
from voiceapi.postcall import delivery
from voiceapi.service import Service
from voiceapi.store import postcall
from voiceapi.store.database import execute
from voiceapi.store.fields import now
from voiceapi.store.postcall import Delivery, DeliveryAttempt, Listener

NUMBER = "+12025550123"
API = "/voice/api/v1"
AUTHORIZED = {"X-API-Key": "test-key-0123456789"}
voice = VoiceAPI()
told: list[tuple[Run, str, bool]] = []
failures: list[BaseException] = []
holding: list[threading.Event] = []


@voice.on_run_completed
def note(run: Run) -> None:
    told.append((run, current_app.name, has_request_context()))
    if holding:
        holding[0].wait(60)
    if failures:
        raise failures.pop()


@pytest.fixture
def mount(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[Callable[..., Flask]]:
    """Makes apps on one database, by default without threads."""
    apps: list[Flask] = []
    database = database_at(tmp_path / "voice.db")

    def make(extension: VoiceAPI, *, worker: bool = False) -> Flask:
        app = Flask("shop")
        app.config.update(VOICEAPI_DATABASE=database, VOICEAPI_API_KEY=AUTHORIZED["X-API-Key"], VOICEAPI_WORKER=worker)
        extension.init_app(app, url_prefix="/voice")
        apps.append(app)
        return app

    told.clear()
    failures.clear()
    yield make
    while holding:
        holding.pop().set()
    for app in apps:
        app.extensions["voiceapi"].close()


@pytest.fixture
def app(mount: Callable[..., Flask]) -> Iterator[Flask]:
    found = mount(voice)
    with found.app_context(), found.extensions["voiceapi"].store.session():
        yield found


@pytest.fixture
def service(app: Flask) -> Service:
    found: Service = app.extensions["voiceapi"]
    return found


def end_a_chat(extension: VoiceAPI, talk: Callable[..., Any]) -> Run:
    chat = extension.chat(extension.publish(talk(), name="Agent"))
    chat.say("Yes, that's fine.")
    assert chat.is_over
    return chat.run


def test_a_run_is_given_to_the_listener_in_the_apps_context(service: Service, talk: Callable[..., Any]) -> None:
    run = end_a_chat(voice, talk)
    assert told == []
    assert delivery.call_next_listener(service)
    assert told == [(run, "shop", False)]
    assert not delivery.call_next_listener(service)
    (row,) = Delivery.select()
    assert (row.state, row.attempts, row.last_error) == ("succeeded", 1, None)


def test_the_threads_of_the_app_call_it(
    mount: Callable[..., Flask], talk: Callable[..., Any], wait_for: Callable[..., Any]
) -> None:
    app = mount(voice, worker=True)
    with app.app_context():
        run = end_a_chat(voice, talk)
    wait_for(lambda: told)
    assert told == [(run, "shop", False)]


def test_a_failure_is_tried_again_and_given_up(
    service: Service, app: Flask, talk: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    run = end_a_chat(voice, talk)
    moment = now()
    for attempt, wait in enumerate((30, 60, 120, 240), 1):
        failures.append(KeyError("Ada") if attempt > 2 else (KeyboardInterrupt, SystemExit)[attempt - 1](3))
        assert delivery.call_next_listener(service, moment)
        assert not delivery.call_next_listener(service, moment + timedelta(seconds=wait - 1))
        moment += timedelta(seconds=wait)
    failures.append(KeyError("Ada"))
    assert delivery.call_next_listener(service, moment)
    assert f"Run {run.id}: {note.__module__}.note failed" in caplog.text
    client = app.test_client()
    url = f"{API}/workflow/{run.agent}/runs/{run.id}/deliveries"
    (shown,) = client.get(url, headers=AUTHORIZED).get_json()["deliveries"]
    assert (shown["state"], shown["method"], shown["url"]) == ("dead_letter", "PYTHON", f"{note.__module__}.note")
    assert [each["error"] for each in shown["attempts"]] == [
        "KeyboardInterrupt: 3",
        "SystemExit: 3",
        *["KeyError: 'Ada'"] * 3,
    ]
    again = client.post(f"{url}/{shown['delivery_uuid']}/redeliver", headers=AUTHORIZED)
    assert again.status_code == 200, again.text
    assert delivery.call_next_listener(service, moment)
    (row,) = Delivery.select()
    assert (row.state, row.attempts, len(told)) == ("succeeded", 6, 6)


def test_another_process_records_the_run_and_leaves_it_to_one_that_has_the_function(
    mount: Callable[..., Flask], service: Service, talk: Callable[..., Any]
) -> None:
    delivery.note_listeners(service)
    other = VoiceAPI()
    bare = mount(other)
    with bare.app_context():
        run = end_a_chat(other, talk)
        assert not delivery.call_next_listener(bare.extensions["voiceapi"])
        assert not delivery.deliver_next(bare.extensions["voiceapi"])
    assert delivery.call_next_listener(service)
    assert [each.id for each, _, _ in told] == [run.id]


def test_a_function_that_no_process_has_any_more_gets_no_more_runs(
    mount: Callable[..., Flask], service: Service, talk: Callable[..., Any]
) -> None:
    delivery.note_listeners(service)
    Listener.update(seen_at=now() - timedelta(days=31)).execute()
    other = VoiceAPI()
    with mount(other).app_context():
        end_a_chat(other, talk)
    assert Delivery.select().count() == 0


def test_what_waits_for_a_function_that_is_gone_is_given_up(
    service: Service, app: Flask, talk: Callable[..., Any]
) -> None:
    """Else the run would be kept for good where runs are removed after some days."""
    run = end_a_chat(voice, talk)
    Delivery.update(listener="shop.renamed", url="shop.renamed").execute()
    Listener.insert(name="shop.renamed", seen_at=now() - timedelta(days=29)).execute()
    delivery.give_up_unseen(service)
    assert Delivery.get().state == "pending"
    Listener.update(seen_at=now() - timedelta(days=31)).where(Listener.name == "shop.renamed").execute()
    delivery.give_up_unseen(service)
    url = f"{API}/workflow/{run.agent}/runs/{run.id}/deliveries"
    (shown,) = app.test_client().get(url, headers=AUTHORIZED).get_json()["deliveries"]
    assert shown["state"] == "dead_letter"
    assert [each["error"] for each in shown["attempts"]] == [
        "No process has had the function shop.renamed for 30 days."
    ]


def test_the_run_that_waits_longest_is_given_first(
    service: Service, talk: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many runs wait for another function of this process."""
    given: list[str] = []
    monkeypatch.setattr(service.host, "listeners", {"a.first": given.append, "b.last": given.append})
    monkeypatch.setattr(service.host, "give", lambda function, id: function(id))
    ended = [end_a_chat(voice, talk).id for _ in range(2)]
    rows = {(row.run_id, row.listener): row for row in Delivery.select()}
    for seconds, key in enumerate([(ended[1], "b.last"), (ended[1], "a.first"), (ended[0], "a.first")]):
        Delivery.update(next_attempt_at=now() - timedelta(seconds=60 - seconds)).where(
            Delivery.id == rows[key].id
        ).execute()
    while delivery.call_next_listener(service):
        pass
    assert given == [ended[1], ended[1], ended[0], ended[0]]


def test_a_process_notes_its_functions_when_it_starts(mount: Callable[..., Flask], talk: Callable[..., Any]) -> None:
    """Those that are decorated after `init_app`, too: another process may end a run before the first request."""
    late = VoiceAPI()
    app = mount(late)
    late.on_run_completed(note)
    other = VoiceAPI()
    with mount(other).app_context():
        run = end_a_chat(other, talk)
    assert delivery.call_next_listener(app.extensions["voiceapi"])
    assert [each.id for each, _, _ in told] == [run.id]


def test_a_function_that_takes_longer_than_its_claim_is_called_once(
    mount: Callable[..., Flask],
    talk: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    wait_for: Callable[..., Any],
) -> None:
    """Two processes have the function, and the claim is renewed many times."""
    monkeypatch.setattr(delivery, "LEASE", timedelta(seconds=1))
    monkeypatch.setattr(delivery, "RENEW_SECONDS", 0.05)
    renewed: list[int] = []
    renew = postcall.renew_delivery
    monkeypatch.setattr(postcall, "renew_delivery", lambda id, *given: (renewed.append(id), renew(id, *given)))
    is_done = threading.Event()
    holding.append(is_done)
    apps = [mount(voice, worker=True) for _ in range(2)]
    with apps[0].app_context():
        run = end_a_chat(voice, talk)
    for app in apps:
        app.test_client().get("/")
    began = now()
    wait_for(lambda: told)
    wait_for(lambda: now() - began > timedelta(seconds=2.5) and len(renewed) > 20)
    is_done.set()
    service = apps[0].extensions["voiceapi"]

    def state() -> str:
        with service.store.session():
            return str(Delivery.get().state)

    wait_for(lambda: state() == "succeeded")
    assert [each.id for each, _, _ in told] == [run.id]


def test_a_claim_is_renewed_while_the_function_runs(service: Service, talk: Callable[..., Any]) -> None:
    end_a_chat(voice, talk)
    moment = now()
    claimed = delivery.claim(moment, [f"{note.__module__}.note"])
    assert claimed is not None
    service.host.running.add((os.getpid(), claimed.id, claimed.attempts))
    Delivery.update(next_attempt_at=moment).execute()
    delivery.renew_listeners(service)
    assert Delivery.get().next_attempt_at > moment + timedelta(seconds=60)
    # A process that was killed renews nothing: the run is given once more.
    assert delivery.call_next_listener(service, moment + timedelta(seconds=200))
    delivery.renew_listeners(service)
    assert Delivery.get().next_attempt_at is None
    assert [each.number for each in DeliveryAttempt.select()] == [1, 2]


def test_a_function_needs_a_name_and_takes_a_run() -> None:
    class Shop:
        def note(self, run: Run) -> None: ...

    def nothing() -> None: ...

    with pytest.raises(ValueError, match="define it at the top of a module"):
        voice.on_run_completed(lambda run: None)
    for function in (Shop.note, nothing):
        with pytest.raises(TypeError, match="gets a run and nothing else"):
            voice.on_run_completed(function)  # type: ignore[type-var]


def test_a_script_names_its_functions_as_a_server_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else `python shop.py` would leave a name to which runs are given that gunicorn's processes never take."""
    file = tmp_path / "shop.py"
    file.write_text("from voiceapi.host.listeners import name_of\ndef note(run): ...\nname = name_of(note)\n")
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    assert runpy.run_path(str(file), run_name="__main__")["name"] == "shop.note"


@pytest.mark.sqlite
def test_what_is_due_is_looked_up_by_an_index(service: Service) -> None:
    query = "SELECT id FROM delivery WHERE listener = ? AND next_attempt_at <= ? ORDER BY next_attempt_at"
    plan = execute(f"EXPLAIN QUERY PLAN {query}", "a", 1).fetchall()
    assert "delivery_listener_due" in str(plan)
