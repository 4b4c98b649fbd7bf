"""Thirty requests at once over three processes: one of them wins, or exactly as many as a limit allows."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cluster import Cluster
from several_hosts import ask

from benchmarks.ledger import unsettled
from benchmarks.mixed import form
from benchmarks.postgresql_server import Server
from benchmarks.processes import API, KEY
from voiceapi.store.campaigns import Campaign
from voiceapi.store.runs import Run
from voiceapi.store.telephony import PhoneNumber, TelephonyConfiguration
from voiceapi.store.workflows import WorkflowVersion

AT_ONCE, ROUNDS, LIMIT = 30, 5, 7
# Longer than a round takes, so that no call ends meanwhile.
RING_SECONDS = 6.0

pytestmark = pytest.mark.long

numbers = itertools.count(5_560_000)


@pytest.fixture(scope="module")
def service(postgres: Server, cluster: Callable[..., Cluster]) -> Cluster:
    """Three hosts with a process each."""
    location = postgres.url("postgres", postgres.port)
    return cluster(location, seed="", hosts=3, calls=LIMIT, pace=1000.0, gentle=True, ring_seconds=RING_SECONDS)


@pytest.fixture
def idle(service: Cluster) -> Iterator[Cluster]:
    """The service, none of whose calls is in progress."""
    yield service
    deadline = time.monotonic() + 4 * RING_SECONDS
    while True:
        with service.session():
            if not (left := unsettled()):
                return
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


def at_once(service: Cluster, requests: list[tuple[str, str, Any, dict[str, str]]]) -> list[tuple[int, Any]]:
    """Send requests at one moment, each to the next process; returns the status and JSON of each answer."""
    barrier, answers = threading.Barrier(len(requests)), [(0, None)] * len(requests)

    def send(n: int, method: str, path: str, body: Any, headers: dict[str, str]) -> None:
        host = service.hosts[n % len(service.hosts)]
        barrier.wait()
        answers[n] = ask(host.port, method, path, body, **headers)

    threads = [threading.Thread(target=send, args=(n, *request)) for n, request in enumerate(requests)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def statuses(answers: list[tuple[int, Any]]) -> Counter[int]:
    return Counter(status for status, _ in answers)


def number() -> str:
    return f"+1202{next(numbers)}"


@pytest.mark.parametrize("round", range(ROUNDS))
def test_thirty_triggers_at_the_limit(idle: Cluster, round: int) -> None:
    called = [number() for _ in range(AT_ONCE)]
    answers = at_once(idle, [("POST", "/public/agent/line", {"phone_number": each}, {}) for each in called])
    assert statuses(answers) == {200: LIMIT, 429: AT_ONCE - LIMIT}, answers
    asked = {note["to"] for note in idle.notes().of("placed")} & set(called)
    assert asked == {each for each, (status, _) in zip(called, answers, strict=True) if status == 200}
    with idle.session():
        assert Run.select().where(Run.called_number.in_(called)).count() == LIMIT


def test_thirty_triggers_a_day(idle: Cluster) -> None:
    with idle.session():
        so_far = Run.select().where(Run.call_type == "outbound").count()
    idle.ask("PUT", "/organizations/preferences", {"max_calls_a_day": so_far + 3})
    called = [number() for _ in range(AT_ONCE)]
    answers = at_once(idle, [("POST", "/public/agent/line", {"phone_number": each}, {}) for each in called])
    idle.ask("PUT", "/organizations/preferences", {"max_calls_a_day": None})
    assert statuses(answers) == {200: 3, 429: AT_ONCE - 3}, answers
    assert len({note["to"] for note in idle.notes().of("placed")} & set(called)) == 3


@pytest.mark.parametrize("round", range(ROUNDS))
def test_thirty_triggers_with_one_idempotency_key(service: Cluster, round: int) -> None:
    called = number()
    request = ("POST", "/public/agent/line", {"phone_number": called}, {"Idempotency-Key": f"call {round}"})
    answers = at_once(service, [request] * AT_ONCE)
    assert set(statuses(answers)) <= {200, 409}, answers
    # Who was told that the first one is in progress finds its answer later.
    answers += at_once(service, [request] * AT_ONCE)
    runs = {answer["workflow_run_id"] for status, answer in answers if status == 200}
    assert len(runs) == 1, answers
    assert statuses(answers[AT_ONCE:]) == {200: AT_ONCE}
    assert [note["to"] for note in service.notes().of("placed")].count(called) == 1
    with service.session():
        assert [run.id for run in Run.select().where(Run.called_number == called)] == list(runs)


def test_thirty_campaigns_with_one_idempotency_key(service: Cluster) -> None:
    content, kind = form(
        {"name": "Once", "workflow_id": service.agent}, "list.csv", f"phone_number\n{number()}\n".encode()
    )
    request = ("POST", "/campaign/create/csv", content, {"Content-Type": kind, "Idempotency-Key": "campaign"})
    answers = at_once(service, [request] * AT_ONCE)
    assert set(statuses(answers)) <= {200, 409}, answers
    answers += at_once(service, [request] * AT_ONCE)
    assert statuses(answers[AT_ONCE:]) == {200: AT_ONCE}
    assert len({answer["id"] for status, answer in answers if status == 200}) == 1
    with service.session():
        assert Campaign.select().where(Campaign.name == "Once").count() == 1


@pytest.mark.parametrize("round", range(ROUNDS))
def test_thirty_publish_one_draft(service: Cluster, talk: Callable[..., Any], round: int) -> None:
    made = service.ask("POST", "/workflow/create/definition", {"name": f"Draft {round}", "workflow_definition": talk()})
    draft = talk(prompt=f"Ask in round {round}.")
    service.ask("PUT", f"/workflow/{made['id']}", {"name": f"Draft {round}", "workflow_definition": draft})
    answers = at_once(service, [("POST", f"/workflow/{made['id']}/publish", {}, {})] * AT_ONCE)
    assert statuses(answers) == {200: 1, 400: AT_ONCE - 1}, answers
    with service.session():
        versions = list(WorkflowVersion.select().where(WorkflowVersion.workflow == made["id"]))
    assert sorted((version.version_number, version.status) for version in versions) == [
        (1, "archived"),
        (2, "published"),
    ]


@pytest.mark.parametrize("round", range(ROUNDS))
def test_thirty_save_a_draft_that_they_read_at_once(service: Cluster, talk: Callable[..., Any], round: int) -> None:
    made = service.ask("POST", "/workflow/create/definition", {"name": f"Edit {round}", "workflow_definition": talk()})
    path, tag = f"/workflow/{made['id']}", etag(service, f"/workflow/fetch/{made['id']}")
    prompts = [f"Ask as number {n}." for n in range(AT_ONCE)]
    bodies = [{"name": f"Edit {round}", "workflow_definition": talk(prompt=prompt)} for prompt in prompts]
    answers = at_once(service, [("PUT", path, body, {"If-Match": tag}) for body in bodies])
    assert statuses(answers) == {200: 1, 412: AT_ONCE - 1}, answers
    [won] = [n for n, (status, _) in enumerate(answers) if status == 200]
    with service.session():
        drafts = list(
            WorkflowVersion.select().where(WorkflowVersion.workflow == made["id"], WorkflowVersion.status == "draft")
        )
    assert [prompts[won] in json.dumps(draft.definition) for draft in drafts] == [True]


def test_thirty_drafts_without_a_condition_leave_one(service: Cluster, talk: Callable[..., Any]) -> None:
    made = service.ask("POST", "/workflow/create/definition", {"name": "Crowd", "workflow_definition": talk()})
    bodies = [{"name": "Crowd", "workflow_definition": talk(prompt=f"Ask as number {n}.")} for n in range(AT_ONCE)]
    answers = at_once(service, [("PUT", f"/workflow/{made['id']}", body, {}) for body in bodies])
    assert statuses(answers) == {200: AT_ONCE}, answers
    with service.session():
        versions = list(WorkflowVersion.select().where(WorkflowVersion.workflow == made["id"]))
    assert sorted((version.version_number, version.status) for version in versions) == [(1, "published"), (2, "draft")]


def test_thirty_set_the_default_caller(service: Cluster) -> None:
    made = [service.ask("POST", service.numbers, {"address": number()})["id"] for _ in range(6)]
    for round in range(ROUNDS):
        chosen = random.Random(round).sample(made, len(made)) * (AT_ONCE // len(made))
        answers = at_once(
            service, [("POST", f"{service.numbers}/{each}/set-default-caller", None, {}) for each in chosen]
        )
        assert statuses(answers) == {200: AT_ONCE}, answers
        with service.session():
            ours = PhoneNumber.select().where(PhoneNumber.telephony_configuration == service.configuration)
            defaults = [each.id for each in ours.where(PhoneNumber.is_default_caller_id)]
        assert len(defaults) == 1
        assert defaults[0] in made


def test_thirty_set_the_default_configuration(service: Cluster) -> None:
    place = "/organizations/telephony-configs"
    made = [
        service.ask(
            "POST", place, {"name": f"Other {n}", "config": {"provider": "simulator"}, "is_default_outbound": False}
        )
        for n in range(3)
    ]
    ids = [each["id"] for each in made]
    for _ in range(ROUNDS):
        answers = at_once(
            service,
            [("POST", f"{place}/{each}/set-default-outbound", None, {}) for each in ids * (AT_ONCE // len(ids))],
        )
        assert statuses(answers) == {200: AT_ONCE}, answers
        with service.session():
            query = TelephonyConfiguration.select().where(TelephonyConfiguration.is_default_outbound)
            defaults = [each.id for each in query]
        assert len(defaults) == 1
        assert defaults[0] in ids
    service.ask("POST", f"{place}/{service.configuration}/set-default-outbound")


def test_thirty_take_one_trigger_path(service: Cluster, talk: Callable[..., Any]) -> None:
    bodies = [{"name": f"Path {n}", "workflow_definition": talk("wanted")} for n in range(AT_ONCE)]
    answers = at_once(service, [("POST", "/workflow/create/definition", body, {}) for body in bodies])
    assert statuses(answers) == {200: 1, 409: AT_ONCE - 1}, answers


def etag(service: Cluster, path: str) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{service.hosts[0].port}{API}{path}", headers={"X-API-Key": KEY})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.headers["ETag"])
