"""While slow requests have all their threads, others of their kind are refused whole, and quick ones go through."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from flask.testing import FlaskClient
from lines.call import API, PUBLIC, Call
from lines.twilio_compatible import THEM, TWILIO, US

from voiceapi.api import runs as runs_api
from voiceapi.bulkhead import Bulkhead
from voiceapi.campaigns import contact_list, do_not_call
from voiceapi.engine.phrases import phrases
from voiceapi.errors import OutOfService
from voiceapi.http_client import Reply
from voiceapi.llm.scripted import Scripted
from voiceapi.llm.selection import from_configuration
from voiceapi.llm.wire import Completion
from voiceapi.rehearsal import stored_cases
from voiceapi.runs import insights
from voiceapi.service import Service
from voiceapi.store import dialing, knowledge
from voiceapi.store.base import update
from voiceapi.store.campaigns import DoNotCall
from voiceapi.store.database import write
from voiceapi.store.fields import now
from voiceapi.store.knowledge import Document, Passage
from voiceapi.store.organizations import Organization
from voiceapi.store.runs import Run, RunEvent
from voiceapi.tools.knowledge import documents

CONFIGS = f"{API}/organizations/telephony-configs"
LONG_LIST = b"phone_number\n" + b"".join(b"+12025%06d\n" % (550_000 + row) for row in range(1_500))
SHORT_LIST = b"phone_number\n+12025550124\n"


class Patient:
    """The scripted model behind a gate; as it isn't `Scripted`, it counts as one on another server."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.extract = Scripted().extract

    def reply(self, ask: Any) -> Any:
        assert self.gate.wait(60)
        return Scripted().reply(ask)

    def complete(self, system: str, user: str) -> Completion:
        """What the caller of a rehearsal does, and the agent of a description."""
        start = {"id": "hello", "type": "startCall", "data": {"name": "Hello", "prompt": "Help.", "greeting": "Hello!"}}
        return Completion(f"[hang up] {json.dumps({'nodes': [start], 'edges': []})}")


class Accepting:
    """A client of a carrier that accepts every call."""

    def send(self, *_: Any, **__: Any) -> Reply:
        return Reply(TWILIO.placed[0], {}, json.dumps(TWILIO.placed[1]).encode(), 0.0)

    def close(self) -> None: ...


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_PUBLIC_URL": PUBLIC, "VOICEAPI_WORKER": "off", "VOICEAPI_THREADS": "6"}


@pytest.fixture
def carrier(client: FlaskClient, service: Service) -> int:
    """A configuration of a carrier that accepts every call."""
    object.__setattr__(service, "http", Accepting())
    config = {"provider": "twilio", **TWILIO.credentials, "calls_per_second": 1000}
    client.delete(f"{CONFIGS}/1/phone-numbers/1")
    made: int = client.post(CONFIGS, json={"name": "Twilio", "config": config}).get_json()["id"]
    assert client.post(f"{CONFIGS}/{made}/phone-numbers", json={"address": US}).status_code == 200
    return made


@pytest.fixture
def full(service: Service) -> Iterator[Callable[[], None]]:
    """Gives all permits for slow work to another organization."""
    with ExitStack() as held:

        def fill() -> None:
            bulkhead = Bulkhead(threads=2)
            object.__setattr__(service, "bulkhead", bulkhead)
            held.enter_context(bulkhead.slow("another"))

        yield fill


def stored(service: Service) -> dict[str, Any]:
    """Every row of the database, but for when a key was last used."""
    with service.store.session():
        database = service.store.database
        tables = [name for name in database.get_tables() if name != "api_key"]
        return {name: database.execute_sql(f'SELECT * FROM "{name}"').fetchall() for name in tables}


@pytest.fixture
def slow_requests(
    client: FlaskClient, service: Service, workflow: Callable[..., Any], carrier: int, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Callable[[], Any]]:
    """Every kind of slow request by its name, each ready to be sent."""
    patient = Patient()
    patient.gate.set()
    object.__setattr__(service, "model", patient)
    # What counts as long here; longer ones would take their time.
    for module, limit in (
        *((runs_api, "LONG_REPORT"), (contact_list, "SHORT"), (documents, "SHORT"), (stored_cases, "QUICK")),
        (insights, "QUICK_RUNS"),
    ):
        monkeypatch.setattr(module, limit, 0)
    made = workflow(path="line")["id"]
    definition = {"schema_version": 1, "type": "http_api", "config": {"method": "GET", "url": "https://example.org"}}
    tool = client.post(f"{API}/tools/", json={"name": "Ask", "definition": definition}).get_json()["tool_uuid"]
    chats = f"{API}/workflow/{made}/text-chat/sessions"
    chat = f"{chats}/{client.post(chats, json={}).get_json()['workflow_run_id']}"
    with service.store.session(), write():
        ended = Run.get()
        ended.state, ended.duration = "completed", 1.0
        update(ended)
    chat = f"{chats}/{client.post(chats, json={}).get_json()['workflow_run_id']}"
    call = client.post(f"{API}/public/agent/line", json={"phone_number": THEM}).get_json()["workflow_run_id"]
    form = {"name": "Spring", "workflow_id": str(made)}
    answer = client.post(f"{API}/campaign/create/csv", data={**form, "file": (io.BytesIO(SHORT_LIST), "l.csv")})
    campaign = answer.get_json()
    body = {"name": "Fall", "workflow_id": made, "source_type": "csv", "source_id": campaign["source_id"]}
    uploads = f"{API}/knowledge-base/documents"
    return {
        "trial": lambda: client.post(f"{API}/tools/{tool}/test", json={}),
        "pdf": lambda: client.post(uploads, data={"file": (io.BytesIO(b"%PDF-1.4"), "x.pdf")}),
        "long text": lambda: client.post(uploads, data={"file": (io.BytesIO(b"A word."), "x.txt")}),
        "numbers": lambda: client.post(f"{API}/do-not-call/csv", data=SHORT_LIST),
        "campaign with its list": lambda: client.post(
            f"{API}/campaign/create/csv", data={**form, "file": (io.BytesIO(SHORT_LIST), "l.csv")}
        ),
        "checked list": lambda: client.post(
            f"{API}/campaign/check/csv", data={"workflow_id": str(made), "file": (io.BytesIO(SHORT_LIST), "l.csv")}
        ),
        "dry run of a list": lambda: client.post(
            f"{API}/campaign/simulate/csv", data={**form, "file": (io.BytesIO(SHORT_LIST), "l.csv")}
        ),
        "campaign": lambda: client.post(f"{API}/campaign/create", json=body),
        "dry run": lambda: client.post(f"{API}/campaign/{campaign['id']}/simulate", json={}),
        "chat": lambda: client.post(chats, json={}),
        "message": lambda: client.post(f"{chat}/messages", json={"text": "Perhaps."}),
        "rewind": lambda: client.post(f"{chat}/rewind", json={"cursor_turn_id": None}),
        "end of a chat": lambda: client.post(f"{chat}/end", json={}),
        "trigger": lambda: client.post(f"{API}/public/agent/line", json={"phone_number": THEM}),
        "initiate": lambda: client.post(
            f"{API}/telephony/initiate-call", json={"workflow_id": made, "phone_number": THEM}
        ),
        "end of a call": lambda: client.post(f"{API}/workflow/{made}/runs/{call}/end"),
        "report": lambda: client.get(f"{API}/workflow/{made}/report"),
        "insights": lambda: client.get(f"{API}/workflow/{made}/insights"),
        "doctor": lambda: client.get(f"{API}/organizations/doctor"),
        "test": lambda: client.post(f"{API}/workflow/{made}/test", json={"cases": [{"name": "x"}]}),
        "test by a model": lambda: client.post(
            f"{API}/workflow/{made}/test", json={"cases": [{"name": "x", "model": "configured"}]}
        ),
        "file of cases": lambda: client.post(
            f"{API}/workflow/{made}/cases/file", json={"file": "cases: [{name: x}]", "replace": True}
        ),
        "workflow with cases": lambda: client.post(
            f"{API}/workflow/create/definition", json={"name": "x", "workflow_definition": {}, "cases": [{"name": "x"}]}
        ),
        "rehearsal": lambda: client.post(f"{API}/workflow/{made}/rehearsal", json={"conversations": 1}),
        "rehearsal with a model": lambda: client.post(
            f"{API}/workflow/{made}/rehearsal", json={"caller": "in a hurry", "conversations": 1}
        ),
        "description": lambda: client.post(f"{API}/workflow/describe", json={"description": "Say hello."}),
    }


def test_slow_requests_beyond_the_limit_are_refused_whole(
    service: Service, slow_requests: dict[str, Callable[[], Any]], full: Callable[[], None]
) -> None:
    full()
    before = stored(service)
    for name, send in slow_requests.items():
        answer = send()
        assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "5"), name
        assert "busy with other slow requests" in answer.get_json()["detail"], name
    assert stored(service) == before


def test_every_slow_request_gives_its_permit_back(
    service: Service, slow_requests: dict[str, Callable[[], Any]]
) -> None:
    for name, send in slow_requests.items():
        with send() as answer:
            assert answer.status_code == 200, f"{name}: {answer.text}"
        assert (service.bulkhead.permit_queue.running, service.bulkhead.permit_queue.waiting) == ([], []), name


def test_long_work_of_one_kind_runs_one_after_the_other(
    service: Service, slow_requests: dict[str, Callable[[], Any]]
) -> None:
    kinds = {
        "documents": {"pdf", "long text"},
        "lists": {"numbers", "campaign with its list", "checked list", "campaign", "dry run", "insights"},
        "rehearsals": {"test", "rehearsal", "file of cases", "workflow with cases"},
    }
    bulkhead = Bulkhead(threads=8, wait_seconds=0.0)
    object.__setattr__(service, "bulkhead", bulkhead)
    for kind, names in kinds.items():
        with bulkhead.slow("another", kind):
            statuses = {name: slow_requests[name]().status_code for name in set().union(*kinds.values())}
        assert {name for name, status in statuses.items() if status == 503} == names
        assert set(statuses.values()) == {200, 503}


def test_cases_with_regular_expressions_need_a_permit_however_few_they_are(
    client: FlaskClient, workflow: Callable[..., Any], full: Callable[[], None]
) -> None:
    """A hundred that are searched for as long as they may be take most of a minute."""
    made = workflow()["id"]
    stored = {"name": "stored", "opening": {"matches": "a"}}
    assert client.post(f"{API}/workflow/{made}/cases", json={"case": stored}).status_code == 200
    full()
    for body in ({}, {"cases": [{"name": "x"}, {"name": "given", "turns": [{"caller": "a", "matches": ["a"]}]}]}):
        assert client.post(f"{API}/workflow/{made}/test", json=body).status_code == 503
    assert client.post(f"{API}/workflow/{made}/test", json={"cases": [{"name": "x"}]}).status_code == 200
    for pattern, status in (("", 200), ("  opening: {matches: a}\n", 503)):
        answer = client.post(f"{API}/workflow/{made}/cases/file", json={"file": f"cases:\n- name: y\n{pattern}"})
        assert answer.status_code == status


@pytest.mark.parametrize(("limit", "value"), [("QUICK_RUNS", 0), ("QUICK_GRAPH", 2), ("QUICK_LOGS", 100_000)])
def test_insights_need_a_permit_for_many_runs_long_logs_or_a_large_graph(
    client: FlaskClient,
    service: Service,
    workflow: Callable[..., Any],
    full: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
) -> None:
    """Each of them alone takes long; a few chats can have gigabytes of logs."""
    made = workflow()["id"]
    chats = f"{API}/workflow/{made}/text-chat/sessions"
    long, short = (client.post(chats, json={}).get_json()["workflow_run_id"] for _ in range(2))
    with service.store.session():
        RunEvent.create(run=long, turn=0, type="rtf-bot-text", payload={"text": "x" * 100_000})
    of_short = json.dumps([{"attribute": "runId", "value": {"value": short}}])

    def ask(**query: str) -> int:
        return client.get(f"{API}/workflow/{made}/insights", query_string=query).status_code

    full()
    assert (ask(), ask(filters=of_short)) == (200, 200)
    monkeypatch.setattr(insights, limit, value)
    # The logs are those of the runs that are counted.
    assert (ask(), ask(filters=of_short)) == (503, 200 if limit == "QUICK_LOGS" else 503)
    object.__setattr__(service, "bulkhead", Bulkhead(threads=8, wait_seconds=0.0))
    with service.bulkhead.slow("another", "lists"):
        assert ask() == 503
    assert ask() == 200
    assert (service.bulkhead.permit_queue.running, service.bulkhead.permit_queue.waiting) == ([], [])


def test_the_threads_that_are_shared_are_those_of_the_setting(service: Service) -> None:
    assert (service.bulkhead.permit_queue.limit, service.bulkhead.permit_queue.places) == (3, 1)


def test_beside_another_organization_none_has_all_permits(service: Service) -> None:
    slow = service.bulkhead.slow
    service.bulkhead.wait_seconds = 0.0
    with slow(1), slow(1):
        with slow(1):
            pass
        with service.store.session(), write():
            other = Organization.create(name="Other").id
        with pytest.raises(OutOfService), slow(1):
            pytest.fail("It has the permit that is kept.")
        with slow(other):
            assert len(service.bulkhead.permit_queue.running) == 3


def test_quick_requests_need_no_permit(
    client: FlaskClient, service: Service, workflow: Callable[..., Any], full: Callable[[], None]
) -> None:
    """The scripted model, the simulator, a short list and a short text never wait for anything."""
    full()
    made = workflow(path="line")["id"]
    chats = f"{API}/workflow/{made}/text-chat/sessions"
    chat = f"{chats}/{client.post(chats, json={}).get_json()['workflow_run_id']}"
    form = {"name": "Spring", "workflow_id": str(made)}
    for answer in (
        client.post(f"{chat}/messages", json={"text": "Yes."}),
        client.post(f"{API}/public/agent/line", json={"phone_number": THEM}),
        client.post(f"{API}/do-not-call/csv", data=SHORT_LIST),
        client.post(f"{API}/campaign/create/csv", data={**form, "file": (io.BytesIO(SHORT_LIST), "l.csv")}),
        client.post(f"{API}/knowledge-base/documents", data={"file": (io.BytesIO(b"We open at nine."), "x.md")}),
        client.get(f"{API}/workflow/{made}/report"),
        client.post(f"{API}/workflow/{made}/test", json={"cases": [{"name": "x", "model": "configured"}]}),
        client.get(f"{API}/workflow/{made}/insights?drawing=true"),
    ):
        assert answer.status_code == 200, answer.text


# -- webhooks


def test_a_webhook_waits_for_a_slow_turn_only_while_there_are_threads(
    client: FlaskClient,
    bare: FlaskClient,
    service: Service,
    workflow: Callable[..., Any],
    carrier: int,
    full: Callable[[], None],
) -> None:
    workflow(path="line")
    model = Patient()
    object.__setattr__(service, "model", model)
    call = Call(bare, TWILIO, service)
    call.follow(client.post(f"{API}/public/agent/line", json={"phone_number": THEM}).get_json()["workflow_run_id"])
    call.answered()
    full()
    service.slow_jobs.wait_seconds = 60.0
    before = time.monotonic()
    said = call.says("Yes.")
    assert time.monotonic() - before < 30
    assert [verb.name for verb in said] == ["say", "redirect"]
    assert said[0].text == phrases({})["wait"]
    object.__setattr__(service, "bulkhead", Bulkhead(threads=2))
    threading.Timer(0.05, model.gate.set).start()
    asked_again = call.hear(call.send(TWILIO.webhook("turns", "answered", call.next)))
    assert [verb.name for verb in asked_again] == ["say", "hangup"]


def test_no_connection_of_the_database_is_held_while_another_server_is_asked(
    client: FlaskClient, bare: FlaskClient, service: Service, workflow: Callable[..., Any], request: Any
) -> None:
    http = service.http
    request.getfixturevalue("carrier")
    held: list[int] = []

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            held.append(len(service.store.database._in_use))
            self.rfile.read(int(self.headers["Content-Length"]))
            answer = json.dumps({"choices": [{"message": {"content": "Good morning."}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    made = workflow(path="line")["id"]
    call = Call(bare, TWILIO, service)
    call.follow(client.post(f"{API}/public/agent/line", json={"phone_number": THEM}).get_json()["workflow_run_id"])
    call.answered()
    object.__setattr__(http, "allow_private", True)
    object.__setattr__(service, "http", http)
    object.__setattr__(service, "model", from_configuration(service, {"model": "m", "base_url": f"{url}/v1"}))
    definition = {"schema_version": 1, "type": "http_api", "config": {"method": "POST", "url": url}}
    tool = client.post(f"{API}/tools/", json={"name": "Ask", "definition": definition}).get_json()["tool_uuid"]
    chats = f"{API}/workflow/{made}/text-chat/sessions"
    chat = f"{chats}/{client.post(chats, json={}).get_json()['workflow_run_id']}"
    asked = [client.post(f"{chat}/messages", json={"text": "Yes."}), client.post(f"{API}/tools/{tool}/test", json={})]
    # Neither by the thread that asks, nor by the webhook that waits for it.
    said = call.says("Yes.")
    server.shutdown()
    thread.join()
    server.server_close()
    assert [each.status_code for each in asked] == [200, 200]
    assert [verb.name for verb in said] == ["say", "listen", "redirect"]
    assert held == [0, 0, 0]


def test_no_connection_of_the_database_is_held_while_a_request_waits_for_a_permit(
    service: Service, slow_requests: dict[str, Callable[[], Any]], wait_for: Callable[..., Any]
) -> None:
    with ThreadPoolExecutor(1) as pool, ExitStack() as permits:
        for _ in range(service.bulkhead.permit_queue.limit):
            permits.enter_context(service.bulkhead.slow("another"))
        asked = pool.submit(slow_requests["trial"])
        wait_for(lambda: service.bulkhead.permit_queue.waiting)
        wait_for(lambda: not service.store.database._in_use)
        permits.close()
        assert asked.result(60).status_code == 200


# -- lists and documents


def test_a_long_list_is_stored_in_short_transactions(
    client: FlaskClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each 1,000 numbers in one, in the order of the index, with a pause after each; the answer counts all of them."""
    batches: list[int] = []
    pauses: list[float] = []
    stored: list[str] = []
    add = dialing.add_to_do_not_call

    def watched(organization: int, numbers: Any) -> int:
        assert service.store.database.in_transaction()
        batches.append(len(numbers))
        stored.extend(numbers)
        return add(organization, numbers)

    def paused(seconds: float) -> None:
        if seconds == do_not_call.PAUSE_SECONDS:  # the store pauses as well, for other processes
            assert not service.store.database.in_transaction()
            pauses.append(seconds)

    monkeypatch.setattr(dialing, "add_to_do_not_call", watched)
    monkeypatch.setattr(do_not_call.time, "sleep", paused)
    monkeypatch.setattr(do_not_call, "SORTED", 1_400)
    rows = b"phone_number,reason\n+12025550000,asked\nx,\n+12025550000,again\n" + LONG_LIST.partition(b"\n")[2]
    found = client.post(
        f"{API}/do-not-call/csv", data=rows.replace(b"+12025550001\n", b"+1 202 555 0001,\n")
    ).get_json()
    assert (found["added"], found["already_listed"], found["refused_count"]) == (1_500, 2, 1)
    assert batches == [1_000, 400, 100]
    assert stored == sorted(stored)
    assert len(pauses) == 3 + 1  # and one after 1,000 rows
    with service.store.session():
        assert DoNotCall.select().count() == 1_500
        assert DoNotCall.get(DoNotCall.phone_number == "+12025550000").reason == "asked"


def test_a_list_of_bad_rows_is_counted_and_the_first_ones_are_named(service: Service) -> None:
    """Their reasons aren't kept in memory for as long as the list is read."""
    rows = b"phone_number\n" + b"x\n" * (do_not_call.MOST_REFUSED + 5)
    with service.store.session():
        added = do_not_call.add_list(service, 1, rows)
    assert (added.new, added.already_listed, added.refused_count) == (0, 0, do_not_call.MOST_REFUSED + 5)
    assert list(added.refused) == list(range(1, do_not_call.MOST_REFUSED + 1))


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are stored by two passages."""
    monkeypatch.setattr(documents, "BATCH", 2)
    monkeypatch.setattr(documents, "split", lambda text: text.split())


def upload(client: FlaskClient, text: bytes = b"one two three four five") -> Any:
    return client.post(f"{API}/knowledge-base/documents", data={"file": (io.BytesIO(text), "x.md")})


def test_a_long_document_is_searched_when_all_of_it_is_stored(
    client: FlaskClient, service: Service, batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    add = knowledge.add

    def watched(document: Document, texts: Any, first: int = 0) -> None:
        add(document, texts, first)
        found = knowledge.search(document.organization_id, "one", None, 3)
        seen.append((list(texts), first, document.processing_status, len(found)))

    monkeypatch.setattr(knowledge, "add", watched)
    answer = upload(client).get_json()
    assert seen == [
        (["one", "two"], 0, "processing", 0),
        (["three", "four"], 2, "processing", 0),
        (["five"], 4, "processing", 0),
    ]
    assert (answer["processing_status"], answer["total_chunks"]) == ("completed", 5)
    body = {"query": "five", "limit": 5}
    (found,) = client.post(f"{API}/knowledge-base/search", json=body).get_json()["chunks"]
    assert (found["text"], found["chunk_index"]) == ("five", 4)


def test_a_document_that_is_deleted_while_it_is_stored_leaves_nothing(
    client: FlaskClient, service: Service, batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: float) -> None:
        with write():
            Document.delete().execute()

    monkeypatch.setattr(documents.time, "sleep", gone)
    answer = upload(client)
    assert (answer.status_code, answer.get_json()) == (
        409,
        {"detail": "The document was deleted while it was being stored."},
    )
    with service.store.session():
        assert (Document.select().count(), Passage.select().count()) == (0, 0)


def test_a_long_document_is_deleted_in_several_transactions_and_gone_since_the_first(
    client: FlaskClient, service: Service, batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = upload(client).get_json()["document_uuid"]
    url = f"{API}/knowledge-base/documents"
    left: list[int] = []

    def paused(_: float) -> None:
        assert not service.store.database.in_transaction()
        left.append(Passage.select().count())
        organization = 1
        assert knowledge.of_organization(organization, None, 100, 0) == []
        assert knowledge.with_uuids(organization, {found}) == []
        assert knowledge.search(organization, "one two three four five", None, 5) == []
        assert knowledge.latest_change(organization) == (0, None)
        assert (knowledge.find(organization, found), documents.page(organization, "deleted", 100, 0)) == (None, [])

    monkeypatch.setattr(documents.time, "sleep", paused)
    assert client.delete(f"{url}/{found}").get_json() == {"message": "Document deleted"}
    assert left == [3, 1]
    with service.store.session():
        assert (Document.select().count(), Passage.select().count()) == (0, 0)
    assert client.delete(f"{url}/{found}").status_code == 404


def test_a_document_that_is_deleted_by_its_user_while_it_is_stored_stays_deleted(
    client: FlaskClient, service: Service, batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete(_: float) -> None:
        monkeypatch.setattr(documents.time, "sleep", lambda _: None)
        with write():
            knowledge.delete_part(Document.get(), 1)

    monkeypatch.setattr(documents.time, "sleep", delete)
    assert upload(client).status_code == 409
    with service.store.session():
        assert (Document.select().count(), Passage.select().count()) == (0, 0)


class Killed(BaseException):
    """Ends a thread as the end of its process would."""


def test_what_a_killed_process_left_of_a_document_is_marked_as_failed(
    client: FlaskClient, service: Service, batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: float) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(documents.time, "sleep", killed)
        with pytest.raises(Killed):
            upload(client)
    documents.end_interrupted(service)
    (left,) = client.get(f"{API}/knowledge-base/documents").get_json()["documents"]
    assert left["processing_status"] == "processing"
    documents.end_interrupted(service, now() + documents.STORING)
    (left,) = client.get(f"{API}/knowledge-base/documents").get_json()["documents"]
    assert (left["processing_status"], left["processing_error"]) == ("failed", documents.INTERRUPTED)
    with service.store.session():
        assert Passage.select().count() == 0
    assert client.delete(f"{API}/knowledge-base/documents/{left['document_uuid']}").status_code == 200


def test_what_a_killed_process_left_of_a_deletion_is_deleted(
    client: FlaskClient, service: Service, batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{API}/knowledge-base/documents"
    found = upload(client).get_json()["document_uuid"]

    def killed(_: float) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(documents.time, "sleep", killed)
        with pytest.raises(Killed):
            client.delete(f"{url}/{found}")
    assert client.get(f"{url}/{found}").status_code == 404
    with service.store.session():
        assert (Document.select().count(), Passage.select().count()) == (1, 3)
    documents.end_interrupted(service)
    with service.store.session():
        assert (Document.select().count(), Passage.select().count()) == (0, 0)


def test_no_text_is_read_to_show_or_to_search_a_document(
    client: FlaskClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have 5 MiB. Only that of a document in full-document mode is, which has 50,000 characters at most."""
    found = upload(client).get_json()["document_uuid"]
    with service.store.session():
        texts = [each.text for each in knowledge.of_organization(1, None, 100, 0)]
        texts += [documents.get(1, found).text]
        texts += [hit.document.text for hit in knowledge.search(1, "five", None, 3)]
    assert texts == [None, None, None]


def test_the_process_that_reads_a_document_leaves_the_processor_to_others() -> None:
    script = f"""
import os
from {documents.read.__module__} import _set_limits
before = os.nice(0)
_set_limits()
print(os.nice(0) - before)
"""
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout == "10\n"
