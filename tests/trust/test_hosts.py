"""Several hosts, each a gunicorn with several processes, on one database: any of them answers what another began."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hosts import METRICS_KEY, OURS, PUBLIC, SYNC, THREADS, Caller, Host, Model, names, prepare, say
from lines.call import API

from voiceapi.store.database import Store
from voiceapi.store.runs import Turn

pytest.importorskip("gunicorn")

pytestmark = pytest.mark.long

Start = Callable[..., Host]


@pytest.fixture
def database(tmp_path: Path, database_at: Callable[[Path], str]) -> str:
    return database_at(tmp_path / "voice.db")


@pytest.fixture
def model() -> Iterator[Model]:
    found = Model()
    yield found
    found.close()


@pytest.fixture
def start(database: str, tmp_path: Path) -> Iterator[Start]:
    """Starts a host. The numbers of its log files tell the hosts of a test apart."""
    with ExitStack() as closing:
        started = 0

        def begin(*arguments: str, **settings: object) -> Host:
            nonlocal started
            started += 1
            host = Host(tmp_path / f"host-{started}.log", arguments or OURS, DATABASE=database, **settings)
            closing.callback(host.close)
            return host

        yield begin


@pytest.mark.parametrize("arguments", [OURS, THREADS, SYNC], ids=["our settings", "threads", "sync"])
def test_a_turn_its_retry_and_its_wait_reach_different_hosts(
    arguments: tuple[str, ...], start: Start, database: str, model: Model, talk: Callable[..., Any]
) -> None:
    inbound = prepare(database, talk)
    hosts = [start(*arguments, LLM_URL=model.url, LLM_MODEL="m") for _ in range(3)]
    caller = Caller(inbound)
    assert names(caller.calls(hosts[0])) == ["say", "listen", "redirect"]
    # Twilio gives up on the first host, and its second attempt reaches another one.
    with pytest.raises(TimeoutError):
        caller.says(hosts[1], "What is it about?", timeout=1.0)
    assert names(caller.says(hosts[2], "What is it about?")) == ["say", "redirect"]
    assert names(caller.waits(hosts[0])) == ["say", "redirect"]
    # It waits for the other host's answer, instead of speaking another filler.
    threading.Timer(1.0, model.may_answer.set).start()
    assert say(caller.waits(hosts[2])) == "I see."
    assert model.asked == 1
    assert say(caller.says(hosts[0], "And then?")) == "I see."
    assert [turn["caller_text"] for turn in turns(database)] == ["", "What is it about?", "And then?"]


def turns(database: str) -> list[dict[str, Any]]:
    store = Store(database)
    with store.session():
        found = list(Turn.select().order_by(Turn.number).dicts())
    store.close()
    return found


def test_what_one_host_stores_any_other_serves(start: Start, database: str, talk: Callable[..., Any]) -> None:
    prepare(database, talk)
    one, other = start(), start()
    list_of_two = b"phone_number,name\n+12025550124,Ann\n+12025550123,Ben\n"

    # An upload: its address from one host, its content sent to the other, a campaign made from it by the first.
    wanted = {"file_name": "list.csv", "file_size": len(list_of_two)}
    place = one.json("POST", "/s3/presigned-upload-url", wanted)
    assert other.ask("PUT", path_of(place["upload_url"]), list_of_two)[0] == 200
    body = {"name": "List", "workflow_id": 1, "source_type": "csv", "source_id": place["file_key"]}
    campaign = one.json("POST", "/campaign/create", body)["id"]
    address = other.json("GET", f"/s3/signed-url?key={place['file_key']}")["url"]
    assert one.ask("GET", path_of(address)) == (200, list_of_two)

    # Its calls: whoever dials them, both show the same.
    other.json("POST", f"/campaign/{campaign}/start")
    until(lambda: one.json("GET", f"/campaign/{campaign}/progress")["state"] == "completed")
    assert other.json("GET", f"/campaign/{campaign}/progress") == one.json("GET", f"/campaign/{campaign}/progress")

    # A call and its transcript, by the public link and by a signed one.
    call = {"phone_number": "+12025550123"}
    once = {"Idempotency-Key": "order-4711"}
    run = one.json("POST", "/public/agent/line", call, **once)["workflow_run_id"]
    assert other.json("POST", "/public/agent/line", call, **once)["workflow_run_id"] == run
    url = f"/workflow/1/runs/{run}"
    until(lambda: other.json("GET", url)["is_completed"])
    shown = one.json("GET", url)
    public = other.ask("GET", path_of(shown["transcript_public_url"]))
    assert public[0] == 200
    assert b"Hello, is now a good time?" in public[1]
    signed = other.json("GET", f"/s3/signed-url?key={shown['transcript_url']}")["url"]
    assert one.ask("GET", path_of(signed)) == public

    # A key made by one host is one of the other's, and no longer when that archives it.
    made = one.json("POST", "/user/api-keys", {"name": "program"})
    headers = {"X-API-Key": made["api_key"]}
    assert other.ask("GET", f"{API}/user/api-keys", None, headers)[0] == 200
    other.json("DELETE", f"/user/api-keys/{made['id']}")
    assert one.ask("GET", f"{API}/user/api-keys", None, headers)[0] == 401


def test_a_document_of_one_host_is_found_by_any_other(start: Start, database: str, talk: Callable[..., Any]) -> None:
    prepare(database, talk)
    one, other = start(), start()
    boundary = "two-hosts"
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="hours.md"\r\n\r\n'
        f"The bakery opens at nine.\r\n--{boundary}--\r\n"
    ).encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    document = one.json("POST", "/knowledge-base/documents", body, **kind)["document_uuid"]
    found = other.json("POST", "/knowledge-base/search", {"query": "When does the bakery open?"})
    assert [chunk["text"] for chunk in found["chunks"]] == ["The bakery opens at nine."]
    other.json("DELETE", f"/knowledge-base/documents/{document}")
    assert one.json("POST", "/knowledge-base/search", {"query": "When does the bakery open?"})["chunks"] == []


@pytest.mark.parametrize("arguments", [OURS, THREADS], ids=["our settings", "threads"])
def test_a_turn_goes_on_when_its_host_stops(
    arguments: tuple[str, ...], start: Start, database: str, model: Model, talk: Callable[..., Any]
) -> None:
    """By our settings it is finished first. Otherwise another host takes it over as soon as the process has ended."""
    inbound = prepare(database, talk)
    stopping, staying = (start(*arguments, LLM_URL=model.url, LLM_MODEL="m") for _ in range(2))
    caller = Caller(inbound)
    caller.calls(stopping)
    assert names(caller.says(stopping, "What is it about?")) == ["say", "redirect"]
    stopper = threading.Thread(target=stopping.stop)
    began = time.monotonic()
    stopper.start()
    if arguments == OURS:
        assert names(caller.waits(staying)) == ["say", "redirect"]
        model.may_answer.set()
    stopper.join()
    assert time.monotonic() - began < 30
    model.may_answer.set()
    assert say(caller.waits(staying)) == "I see."
    assert model.asked == (1 if arguments == OURS else 2)
    assert stopping.process.returncode == 0
    assert "Traceback" not in stopping.log.read_text()


def test_a_killed_process_leaves_its_turn_to_another_host(
    start: Start, database: str, model: Model, talk: Callable[..., Any]
) -> None:
    inbound = prepare(database, talk)
    killed, staying = (start(LLM_URL=model.url, LLM_MODEL="m") for _ in range(2))
    caller = Caller(inbound)
    caller.calls(killed)
    assert names(caller.says(killed, "What is it about?")) == ["say", "redirect"]
    for worker in killed.workers():
        os.kill(worker, signal.SIGKILL)
    model.may_answer.set()
    assert say(caller.waits(staying)) == "I see."
    # gunicorn has begun others, which answer as well.
    assert say(caller.says(killed, "And then?")) == "I see."


def test_webhooks_and_quick_requests_find_a_thread_while_turns_are_slow(
    start: Start, database: str, model: Model, talk: Callable[..., Any]
) -> None:
    """Two processes of four threads each, and more callers than there are threads."""
    inbound = prepare(database, talk)
    host = start(LLM_URL=model.url, LLM_MODEL="m", THREADS=4, CONCURRENT_CALLS=100)
    callers = [Caller(inbound) for _ in range(24)]
    for caller in callers:
        caller.calls(host)
    took: list[float] = []

    def speak(caller: Caller) -> None:
        began = time.monotonic()
        assert names(caller.says(host, "What is it about?")) == ["say", "redirect"]
        took.append(time.monotonic() - began)

    with ThreadPoolExecutor(len(callers)) as pool:
        speaking = [pool.submit(speak, caller) for caller in callers]
        time.sleep(0.5)
        began = time.monotonic()
        assert host.ask("GET", f"{API}/health")[0] == 200
        waited = time.monotonic() - began
        for each in speaking:
            each.result(60)
    # The model doesn't answer before, so whoever waited for it would wait for a minute.
    assert max(waited, *took) < 30
    model.may_answer.set()
    for caller in callers:
        until(lambda caller=caller: say(caller.waits(host)) == "I see.")


def test_each_process_is_ready_by_itself_and_the_metrics_are_those_of_all(
    start: Start, database: str, talk: Callable[..., Any]
) -> None:
    prepare(database, talk)
    host = start("-c", "python:voiceapi.cli.gunicorn", "--workers", "3", METRICS_KEY=METRICS_KEY, WORKER="off")
    for _ in range(6):
        assert host.json("GET", "/health/ready") == {"status": "ready", "database": "ok", "worker": "off"}
    for _ in range(20):
        host.json("POST", "/public/agent/line", {"phone_number": "+12025550123"})
    running = quote('[{"attribute": "status", "value": {"status": "in_progress"}}]')
    until(lambda: host.json("GET", f"/organizations/usage/runs?filters={running}")["total_count"] == 0)
    for _ in range(6):
        status, text = host.ask("GET", "/metrics", None, {"X-API-Key": METRICS_KEY})
        assert status == 200
        counts = dict(line.rpartition(" ")[::2] for line in text.decode().splitlines() if not line.startswith("#"))
        assert counts['voiceapi_calls_started_total{carrier="simulator",direction="outbound"}'] == "20.0"
        ended = [float(n) for name, n in counts.items() if name.startswith("voiceapi_calls_ended_total")]
        assert sum(ended) == 20


def test_a_secret_of_another_host_is_refused_at_the_start(
    start: Start, database: str, tmp_path: Path, talk: Callable[..., Any]
) -> None:
    prepare(database, talk)
    with pytest.raises(AssertionError, match="The secret isn't the one"):
        start(SECRET="another-secret-0123456789-0123456789")


def path_of(url: str) -> str:
    assert url.startswith(PUBLIC)
    return url.removeprefix(PUBLIC)


def until(ask: Callable[[], Any], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not ask():
        assert time.monotonic() < deadline, "It takes too long."
        time.sleep(0.1)
