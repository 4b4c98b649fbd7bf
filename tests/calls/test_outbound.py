"""Placing calls at the pace of their account, and asking the carrier what became of those that went silent."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.calls import sweeper
from voiceapi.errors import LimitReached, NotPossible
from voiceapi.http_client import HTTPClient, Reply, RequestFailed
from voiceapi.organizations import api_keys
from voiceapi.runs import lifecycle
from voiceapi.service import Service
from voiceapi.store.base import reload
from voiceapi.store.database import write
from voiceapi.store.fields import now
from voiceapi.store.runs import Run
from voiceapi.store.telephony import TelephonyConfiguration
from voiceapi.telephony import configurations, connect
from voiceapi.telephony.configurations import LONGEST_WAIT, SLOWEST_PACE, reserve_call_slot

API = "/api/v1"
CONFIGS = f"{API}/organizations/telephony-configs"
TWILIO = {"provider": "twilio", "account_sid": "AC1", "auth_token": "12345"}


class Wire(HTTPClient):
    """What would go out: it is kept, and answered as told."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        object.__setattr__(self, "asked", [])
        object.__setattr__(self, "answers", list(answers))

    def send(self, method: str, url: str, **options: Any) -> Reply:
        self.asked.append((method, url, now()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, body, *headers = answer
        return Reply(status, *headers or [{}], body, 0.0)


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_PUBLIC_URL": "https://voice.example.org"}


@pytest.fixture
def configure(app: Flask, client: FlaskClient, service: Service) -> Callable[..., TelephonyConfiguration]:
    """Adds a Twilio configuration with a number, whose requests go to `wire`."""

    def add(name: str = "Main", wire: Wire | None = None, **more: Any) -> TelephonyConfiguration:
        made = client.post(CONFIGS, json={"name": name, "config": {**TWILIO, **more}}).get_json()["id"]
        client.post(f"{CONFIGS}/{made}/phone-numbers", json={"address": f"+120255502{made:02}"})
        if wire is not None:
            app.extensions["voiceapi"] = replace(service, http=wire)
        with service.store.session():
            return TelephonyConfiguration.get_by_id(made)

    return add


def turns(service: Service, configuration: TelephonyConfiguration, count: int) -> list[float]:
    """When each of so many calls may be placed, in seconds from now; taken by as many threads at once."""
    started = now()

    def take(_: int) -> float:
        with service.store.session(), write():
            wait = reserve_call_slot(reload(configuration))
            return (now() - started).total_seconds() + wait

    with ThreadPoolExecutor(count) as threads:
        return sorted(threads.map(take, range(count)))


def test_threads_take_turns(service: Service, configure: Callable[..., Any]) -> None:
    taken = turns(service, configure(calls_per_second=2), 8)
    gaps = [later - earlier for earlier, later in itertools.pairwise(taken)]
    assert all(gap == pytest.approx(0.5, abs=0.05) for gap in gaps)


def test_configurations_of_one_account_share_its_pace(service: Service, configure: Callable[..., Any]) -> None:
    main, second, other = configure(), configure("Second"), configure("Other", account_sid="AC2")
    assert turns(service, main, 1) == [pytest.approx(0, abs=0.1)]
    assert turns(service, second, 1) == [pytest.approx(1, abs=0.1)]
    assert turns(service, other, 1) == [pytest.approx(0, abs=0.1)]


def test_another_organization_does_not_slow_an_account_down(service: Service, configure: Callable[..., Any]) -> None:
    """Who knows the id of somebody's account could store it too, with any pace and without its token."""
    mine = configure()
    with service.store.session():
        stranger = api_keys.get_or_create_organization(service, "strangers")
        config = {**TWILIO, "amd_enabled": False, "calls_per_second": 0.2}
        theirs = configurations.create(service.vault, stranger.id, "Theirs", config)
    assert turns(service, theirs, 2) == [pytest.approx(0, abs=0.1), pytest.approx(5, abs=0.1)]
    assert turns(service, mine, 1) == [pytest.approx(0, abs=0.1)]


def test_no_pace_is_slower_than_the_slowest(
    service: Service, client: FlaskClient, configure: Callable[..., Any]
) -> None:
    configuration = configure(calls_per_second=SLOWEST_PACE)
    with service.store.session(), write():
        # As earlier releases could store it.
        TelephonyConfiguration.update(calls_per_second=1e-300).where(
            TelephonyConfiguration.id == configuration
        ).execute()
        assert reserve_call_slot(reload(configuration)) == 0.0
    body = {"config": {**TWILIO, "calls_per_second": 1e-12}}
    assert client.put(f"{CONFIGS}/{configuration.id}", json=body).status_code == 422


def test_a_call_does_not_wait_for_ever(service: Service, configure: Callable[..., Any]) -> None:
    configuration = configure(calls_per_second=2 / LONGEST_WAIT)
    turns(service, configuration, 3)
    with pytest.raises(LimitReached, match=r"this account places 0\.2 a second"):
        turns(service, configuration, 1)
    with service.store.session():
        before = reload(configuration).paced_until
        with pytest.raises(LimitReached), write():
            reserve_call_slot(reload(configuration))
        assert reload(configuration).paced_until == before


def test_the_simulator_has_no_pace(service: Service) -> None:
    with service.store.session():
        configuration = TelephonyConfiguration.get_by_id(1)
        with write():
            assert [reserve_call_slot(configuration) for _ in range(100)] == [0.0] * 100


def test_calls_are_placed_at_that_pace(
    client: FlaskClient, configure: Callable[..., Any], workflow: Callable[..., Any]
) -> None:
    wire = Wire((201, b'{"sid": "CA1"}'))
    configuration = configure(wire=wire, calls_per_second=20)
    workflow(path="line")
    body = {"phone_number": "+12025550123", "telephony_configuration_id": configuration.id}
    begin = now()
    for _ in range(3):
        assert client.post(f"{API}/public/agent/line", json=body).status_code == 200
    # Each not before its turn; how long after it depends on what else the machine is doing.
    assert [at >= begin + timedelta(seconds=0.049 * place) for place, (_, _, at) in enumerate(wire.asked)] == [True] * 3


# -- calls whose end is never reported


def test_a_run_that_is_ended_while_it_waits_for_its_turn_is_not_called(
    client: FlaskClient, service: Service, configure: Callable[..., Any], workflow: Callable[..., Any], db: None
) -> None:
    wire = Wire((201, b'{"sid": "CA1"}'))
    configuration = configure(wire=wire, calls_per_second=0.5)
    workflow(path="line")
    with write():
        reserve_call_slot(configuration)
    body = {"phone_number": "+12025550123", "telephony_configuration_id": configuration.id}

    class Ends(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert (timeout or 0.0) > 1
            assert service.store.database.is_closed()  # others may need the connection meanwhile
            answer = client.post(f"{API}/workflow/1/runs/1/end")
            assert (answer.status_code, answer.get_json()["is_completed"]) == (200, False)
            return False

    service.workers.stopping = Ends()
    answer = client.post(f"{API}/public/agent/line", json=body)
    assert (answer.status_code, answer.get_json()["detail"]) == (400, "The run was ended before its call was placed.")
    assert wire.asked == []
    run = Run.get_by_id(1)
    assert (run.state, run.disposition, run.duration) == ("completed", "canceled", 0.0)


def test_a_run_that_is_ended_while_its_carrier_is_asked_is_hung_up(
    client: FlaskClient,
    configure: Callable[..., Any],
    workflow: Callable[..., Any],
    wait_for: Callable[..., Any],
    db: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Without the sweeper, which would ask as well.
    monkeypatch.setattr(sweeper.runs, "to_hang_up", list)

    class Ends(Wire):
        def send(self, method: str, url: str, **options: Any) -> Reply:
            if not self.asked:
                ended.append(client.post(f"{API}/workflow/1/runs/1/end").status_code)
            return super().send(method, url, **options)

    ended: list[int] = []
    wire = Ends((201, b'{"sid": "CA1"}'), (200, b"{}"))
    configuration = configure(wire=wire)
    workflow(path="line")
    body = {"phone_number": "+12025550123", "telephony_configuration_id": configuration.id}
    assert client.post(f"{API}/public/agent/line", json=body).status_code == 200
    wait_for(lambda: Run.get_by_id(1).hung_up_at is not None)
    assert ended == [200]
    assert [url.rpartition("/")[2] for _, url, _ in wire.asked] == ["Calls.json", "CA1.json"]


@pytest.fixture
def silent(
    app: Flask, client: FlaskClient, configure: Callable[..., Any], workflow: Callable[..., Any]
) -> Callable[..., tuple[Service, int]]:
    """Places a call that its carrier says nothing of until it is asked; returns the run."""

    def place(*answers: Any) -> tuple[Service, int]:
        configuration = configure(wire=Wire((201, b'{"sid": "CA1"}'), *answers))
        workflow(path="line")
        body = {"phone_number": "+12025550123", "telephony_configuration_id": configuration.id}
        placed = client.post(f"{API}/public/agent/line", json=body).get_json()
        found: Service = app.extensions["voiceapi"]
        return found, placed["workflow_run_id"]

    return place


@pytest.mark.parametrize(
    ("answer", "outcome", "duration"),
    [
        ((200, b'{"status": "busy", "duration": "0"}'), "busy", 0),
        ((200, b'{"status": "no-answer"}'), "no-answer", 0),
        ((404, b'{"message": "gone"}'), "failed", 0),
        ((200, b""), "failed", 0),
        ((200, b"[1]"), "failed", 0),
        (RequestFailed("timeout", "too late", sent=True), "failed", 0),
    ],
)
def test_a_carrier_is_asked_what_became_of_a_silent_call(
    silent: Callable[..., Any], answer: Any, outcome: str, duration: float
) -> None:
    service, run_id = silent(answer)
    assert sweeper.sweep(service, now() + timedelta(hours=1)) == 1
    with service.store.session():
        run = Run.get_by_id(run_id)
        assert (run.state, run.disposition, run.duration) == ("completed", outcome, duration)
    method, url, _ = service.http.asked[-1]
    assert (method, url) == ("GET", "https://api.twilio.com/2010-04-01/Accounts/AC1/Calls/CA1.json")
    assert len([1 for method, _, _ in service.http.asked if method == "POST"]) == 1


def test_a_call_that_goes_on_is_left_alone(silent: Callable[..., Any]) -> None:
    going, over = (
        b'{"status": "in-progress"}',
        b'{"status": "completed", "duration": "7", "price": "-0.03", "price_unit": "USD"}',
    )
    service, run_id = silent((200, going), (200, over))
    sweeper.sweep(service, now() + timedelta(hours=1))
    with service.store.session():
        run = Run.get_by_id(run_id)
        assert (run.state, run.deadline_at > now()) == ("ringing", True)
    sweeper.sweep(service, now() + timedelta(hours=1))
    with service.store.session():
        run = Run.get_by_id(run_id)
        # It was answered, and nobody asked for its first turn.
        assert (run.state, run.disposition, run.duration) == ("completed", "failed", 7)
        assert run.annotations == {"call_price": {"amount": 0.03, "currency": "USD"}}


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_webhook_that_overtakes_the_answer_names_the_call_where_the_answer_does_not(
    app: Flask, client: FlaskClient, configure: Callable[..., Any], workflow: Callable[..., Any], confirmed: bool
) -> None:
    class Racing(Wire):
        def send(self, method: str, url: str, **options: Any) -> Reply:
            with write():
                Run.update(carrier_call_id="CA-from-webhook", call_id_confirmed=confirmed).execute()
            return super().send(method, url, **options)

    configuration = configure(wire=Racing((201, b'{"sid": "CA-from-answer"}')))
    workflow(path="line")
    body = {"phone_number": "+12025550123", "telephony_configuration_id": configuration.id}
    run_id = client.post(f"{API}/public/agent/line", json=body).get_json()["workflow_run_id"]
    with app.extensions["voiceapi"].store.session():
        run = Run.get_by_id(run_id)
        named = "CA-from-webhook" if confirmed else "CA-from-answer"
        assert (run.carrier_call_id, run.gathered_context["call_id"]) == (named, named)
        assert connect.connect_run(app.extensions["voiceapi"], run).account.credentials["account_sid"] == "AC1"


def test_a_carrier_that_takes_no_more_calls_for_now(
    client: FlaskClient, configure: Callable[..., Any], workflow: Callable[..., Any], db: None
) -> None:
    """It is 429 with its Retry-After, the account waits, and the same request succeeds after that."""
    busy = (429, b'{"code": 20429, "message": "Too Many Requests"}', {"Retry-After": "40"})
    wire = Wire(busy, (201, b'{"sid": "CA1"}'))
    configuration = configure(wire=wire)
    workflow(path="line")
    client.put(f"{API}/organizations/preferences", json={"max_calls_a_day": 1})
    body = {"phone_number": "+12025550123", "telephony_configuration_id": configuration.id}

    def ask() -> tuple[int, Any, str | None]:
        answer = client.post(f"{API}/public/agent/line", json=body, headers={"Idempotency-Key": "one"})
        said = answer.get_json()
        return answer.status_code, said.get("detail", said.get("status")), answer.headers.get("Retry-After")

    refused = "Failed to initiate call: Twilio answered 429: Too Many Requests (code 20429)."
    assert ask() == (429, refused, "40")
    run = Run.get_by_id(1)
    assert (run.state, run.disposition) == ("completed", "error")
    status, detail, wait = ask()
    assert (status, detail) == (429, "The carrier takes no more calls of this account for now.")
    assert 30 < int(wait or 0) <= 40
    assert len(wire.asked) == 1
    TelephonyConfiguration.update(paced_until=now()).execute()
    assert ask()[:2] == (200, "initiated")
    assert len(wire.asked) == 2


def test_a_prepared_run_stays_so_while_the_carrier_takes_no_calls(
    client: FlaskClient, configure: Callable[..., Any], workflow: Callable[..., Any], db: None
) -> None:
    configuration = configure(wire=Wire((429, b"{}", {"Retry-After": "1"}), (201, b'{"sid": "CA1"}')))
    workflow(path="line")
    made = client.post(f"{API}/workflow/1/runs", json={"mode": "twilio", "name": "Prepared"}).get_json()["id"]
    body = {"workflow_id": 1, "workflow_run_id": made, "phone_number": "+12025550123"}
    body["telephony_configuration_id"] = configuration.id
    assert client.post(f"{API}/telephony/initiate-call", json=body).status_code == 429
    run = Run.get_by_id(made)
    assert (run.state, run.deadline_at, run.slot_until) == ("prepared", None, None)
    TelephonyConfiguration.update(paced_until=now()).execute()
    assert client.post(f"{API}/telephony/initiate-call", json=body).get_json()["status"] == "initiated"


def test_an_answer_without_the_id_of_a_call_is_unknown(
    client: FlaskClient, configure: Callable[..., Any], workflow: Callable[..., Any], db: None
) -> None:
    configuration = configure(wire=Wire((201, b'{"status": "queued"')))  # the body broke off
    workflow(path="line")
    body = {"workflow_id": 1, "phone_number": "+12025550123", "telephony_configuration_id": configuration.id}
    placed = client.post(f"{API}/telephony/initiate-call", json=body).get_json()
    reason = "Twilio answered without the id of a call. It isn't known whether the phone rang."
    name = placed["workflow_run_name"]
    assert (placed["status"], placed["message"]) == (
        "unknown",
        f"The call with run name {name} may have been placed or not. {reason}",
    )
    run = Run.get_by_id(placed["workflow_run_id"])
    assert (run.state, run.gathered_context["error"]) == ("unknown", reason)


def test_a_refusal_after_a_webhook_has_ended_the_call_leaves_the_end_as_it_is(
    app: Flask, client: FlaskClient, configure: Callable[..., Any], workflow: Callable[..., Any]
) -> None:
    service: Service = app.extensions["voiceapi"]

    class Racing(Wire):
        def send(self, method: str, url: str, **options: Any) -> Reply:
            with write():
                run = Run.get()
                run.disposition = "busy"
                lifecycle.complete(service, run, 0)
            return super().send(method, url, **options)

    configuration = configure(wire=Racing((400, b'{"message": "No."}')))
    workflow(path="line")
    body = {"phone_number": "+12025550123", "telephony_configuration_id": configuration.id}
    assert client.post(f"{API}/public/agent/line", json=body).status_code == 400
    with service.store.session():
        assert (Run.get().state, Run.get().disposition) == ("completed", "busy")


@pytest.mark.parametrize(
    ("home", "refused"), [("http://127.0.0.1:3000/v1", False), ("https://jambonz.example.org/v1", True)]
)
def test_a_jambonz_of_this_machine_needs_no_public_url(
    service: Service, client: FlaskClient, home: str, refused: bool
) -> None:
    """Its address is part of its credentials, not a setting."""
    fields = {"account_sid": "a", "api_key": "b", "webhook_secret": "c"}
    config = {"provider": "jambonz", "api_base_url": home, **fields}
    made = client.post(CONFIGS, json={"name": "Ours", "config": config}).get_json()["id"]
    object.__setattr__(service, "settings", replace(service.settings, public_url=None))
    with service.store.session():
        configuration = TelephonyConfiguration.get_by_id(made)
        with pytest.raises(NotPossible, match=r"^VOICEAPI_PUBLIC_URL isn't set") if refused else nullcontext():
            connect.require_public_url(service, configuration)
