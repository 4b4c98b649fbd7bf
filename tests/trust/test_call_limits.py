"""Limits of outbound calls: which countries are called, and how many calls are placed within 24 hours."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.campaigns.dialer.worker import Dialer
from voiceapi.organizations import call_quota
from voiceapi.service import Service
from voiceapi.store import organizations
from voiceapi.store.campaigns import Decision
from voiceapi.store.database import execute, write
from voiceapi.store.fields import now
from voiceapi.store.organizations import CountedCall, Organization
from voiceapi.store.runs import Run
from voiceapi.telephony.numbers import country_of

API = "/api/v1"
PREFERENCES = f"{API}/organizations/preferences"
ANN, BOB, CY = "+12025550171", "+12025550172", "+12025550173"
BUSY = "+12025550101"  # as the simulator has it
JAMAICA = "+18765550123"
ABROAD = "This number belongs to JM, and the organization allows calls to US, CA only."
NOWHERE = "The country of this address isn't known, and the organization allows calls to US, CA only."
DAY = timedelta(days=1)


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_CONCURRENT_CALLS": 100}


@pytest.fixture
def prefer(client: FlaskClient) -> Callable[..., dict[str, Any]]:
    def put(**values: Any) -> dict[str, Any]:
        answer = client.put(PREFERENCES, json=values)
        assert answer.status_code == 200, answer.text
        return dict(answer.get_json())

    return put


@pytest.fixture
def trigger(client: FlaskClient, workflow: Callable[..., Any]) -> Callable[..., Any]:
    """Calls a number with an agent by its trigger; returns the answer."""
    workflow(path="line")

    def call(number: str = ANN, **headers: str) -> Any:
        return client.post(f"{API}/public/agent/line", json={"phone_number": number}, headers=headers)

    return call


def pass_time(hours: float) -> None:
    """Let every call have been placed so many hours earlier."""
    execute("UPDATE outbound_call SET at = at - ?", int(hours * 3600 * 10**6))


def count_runs() -> int:
    return int(Run.select().count())


# -- the preferences


def test_the_limits_are_preferences(client: FlaskClient, prefer: Any) -> None:
    limits = {"allowed_countries": ["US", "JM"], "max_calls_a_day": 50}
    shown = prefer(allowed_countries=["us", "Jm"], max_calls_a_day=50)
    assert shown == client.get(PREFERENCES).get_json()
    assert shown.items() >= limits.items()


def test_a_client_that_does_not_know_the_limits_can_not_remove_them(client: FlaskClient, prefer: Any) -> None:
    prefer(allowed_countries=["US"], max_calls_a_day=50, timezone="Europe/Berlin")
    shown = prefer(test_phone_number=ANN)
    assert (shown["allowed_countries"], shown["max_calls_a_day"], shown["timezone"]) == (["US"], 50, None)
    shown = prefer(max_calls_a_day=None)
    assert (shown["allowed_countries"], shown["max_calls_a_day"]) == (["US"], None)
    assert prefer(allowed_countries=None)["allowed_countries"] is None


@pytest.mark.parametrize(
    ("name", "value", "place", "text"),
    [
        ("allowed_countries", "US", [], "Input should be a valid list"),
        ("allowed_countries", [], [], "List should have at least 1 item after validation, not 0"),
        ("allowed_countries", ["US", 1], [1], "Input should be a valid string"),
        *(
            ("allowed_countries", ["US", code], [1], "Value error, use ISO 3166 codes of two letters, such as US or DE")
            for code in ("XX", "USA", "", "1", "001", "ß")
        ),
        ("max_calls_a_day", 0, [], "Input should be greater than or equal to 1"),
        ("max_calls_a_day", 100_001, [], "Input should be less than or equal to 100000"),
        ("max_calls_a_day", 1.5, [], "Input should be a valid integer, got a number with a fractional part"),
    ],
)
def test_limits_that_are_refused(client: FlaskClient, name: str, value: Any, place: list[int], text: str) -> None:
    before = client.get(PREFERENCES).get_json()
    answer = client.put(PREFERENCES, json={name: value})
    [item] = answer.get_json()["detail"]
    assert (answer.status_code, item["loc"], item["msg"]) == (422, ["body", name, *place], text)
    assert client.get(PREFERENCES).get_json() == before


# -- countries


@pytest.mark.parametrize(
    ("address", "country"),
    [
        (ANN, "US"),
        (JAMAICA, "JM"),
        ("+1 (416) 555-0123", "CA"),
        ("+7 727 250 0000", "KZ"),
        ("+74952500000", "RU"),
        ("+441534500000", "JE"),
        ("+4930123456", "DE"),
        ("+882130000000", None),
        ("+88312345678", None),
        ("+80012345678", None),
        ("+15555550123", None),
        ("12025550171", None),
        ("2025550171", None),
        ("tel:+12025550171", None),
        ("+12025550171 ext. 5", None),
        ("+12025550171,,18765550123", None),
        ("+12025550171;isub=1", None),
        ("+1 202 FLOWERS", None),
        ("++12025550171", None),
        ("+1\u200b2025550171", None),
        ("sip:ann@example.org", None),
        ("sip:+12025550171@example.org", None),
        ("1", None),
        ("", None),
        ("+", None),
        ("+99999999999", None),
    ],
)
def test_the_country_of_a_number(address: str, country: str | None) -> None:
    assert country_of(address) == country


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize(
    ("number", "reason"),
    [(JAMAICA, ABROAD), ("sip:ann@example.org", NOWHERE), ("+882130000000", NOWHERE), ("+15555550123", NOWHERE)],
)
def test_a_number_of_another_country_is_not_called(
    client: FlaskClient, workflow: Callable[..., Any], prefer: Any, number: str, reason: str
) -> None:
    made = workflow(path="line")
    prefer(allowed_countries=["US", "CA"], test_phone_number=number)
    expected = {"detail": [{"loc": ["body", "phone_number"], "msg": f"Value error, {reason}", "type": "value_error"}]}
    for path in ("line", "test/line", f"workflow/{made['workflow_uuid']}", f"test/workflow/{made['workflow_uuid']}"):
        answer = client.post(f"{API}/public/agent/{path}", json={"phone_number": number})
        assert (answer.status_code, answer.get_json()) == (422, expected)
    for body in ({"phone_number": number}, {}):  # the test number of the preferences
        answer = client.post(f"{API}/telephony/initiate-call", json={"workflow_id": made["id"], **body})
        assert (answer.status_code, answer.get_json()) == (422, expected)
    assert count_runs() == 0
    prefer(allowed_countries=None)
    assert client.post(f"{API}/public/agent/line", json={"phone_number": JAMAICA}).status_code == 200


# -- calls a day


@pytest.mark.usefixtures("db")
def test_thirty_calls_at_once_place_exactly_as_many_as_are_allowed(
    client: FlaskClient, trigger: Callable[..., Any], prefer: Any
) -> None:
    prefer(max_calls_a_day=7)
    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda number: trigger(f"+120255502{number:02}"), range(30)))
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [429] * 23
    assert count_runs() == 7
    refused = next(answer for answer in answers if answer.status_code == 429)
    seconds = int(refused.headers["Retry-After"])
    assert 86_300 < seconds <= 86_400
    assert refused.get_json()["detail"].startswith(
        "The organization places at most 7 calls within 24 hours; the next one may be placed at 20"
    )


# A process that counts 30 calls at once, when it is told to, and writes how many of them it was allowed.
COUNTING = """
import sys
from concurrent.futures import ThreadPoolExecutor
from voiceapi import create_app
from voiceapi.errors import LimitReached
from voiceapi.organizations.call_quota import reserve_daily_call
from voiceapi.store.database import write

app = create_app({"VOICEAPI_DATABASE": sys.argv[1], "VOICEAPI_API_KEY": sys.argv[2], "VOICEAPI_WORKER": "off"})
store = app.extensions["voiceapi"].store

def count(_number):
    with store.session():
        try:
            with write():
                reserve_daily_call(1)
        except LimitReached:
            return 0
    return 1

print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(15) as pool:
    print(sum(pool.map(count, range(30))), flush=True)
"""


@pytest.mark.long
@pytest.mark.usefixtures("db")
def test_two_processes_together_place_exactly_as_many_as_are_allowed(service: Service, prefer: Any) -> None:
    prefer(max_calls_a_day=20)
    command = [sys.executable, "-c", COUNTING, service.store.location, "test-key-0123456789"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with ExitStack() as stack:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes: list[Any] = [
            stack.enter_context(subprocess.Popen(command, env=environment, **pipes)) for _ in range(2)
        ]
        assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        placed = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert sum(placed) == CountedCall.select().count() == 20


@pytest.mark.usefixtures("db")
def test_a_call_counts_for_24_hours(trigger: Callable[..., Any], prefer: Any) -> None:
    prefer(max_calls_a_day=2)
    assert trigger().status_code == 200
    pass_time(23)
    assert trigger().status_code == 200
    refused = trigger()
    assert refused.status_code == 429
    assert 3500 < int(refused.headers["Retry-After"]) <= 3600
    pass_time(1)
    assert trigger().status_code == 200
    assert trigger().status_code == 429
    # What counts no more is deleted.
    assert CountedCall.select().count() == 2


@pytest.mark.usefixtures("db")
def test_a_refused_call_leaves_nothing_and_its_idempotency_key_free(trigger: Callable[..., Any], prefer: Any) -> None:
    prefer(max_calls_a_day=1)
    first = trigger(**{"Idempotency-Key": "a"})
    assert first.status_code == 200
    assert trigger(**{"Idempotency-Key": "a"}).get_json() == first.get_json()
    assert trigger(**{"Idempotency-Key": "b"}).status_code == 429
    assert count_runs() == 1
    pass_time(24)
    assert trigger(**{"Idempotency-Key": "b"}).status_code == 200


@pytest.mark.usefixtures("db")
def test_calls_before_the_limit_was_set_and_failed_ones_count(trigger: Callable[..., Any], prefer: Any) -> None:
    for number in (ANN, "+12025550103"):
        assert trigger(number).status_code == 200
    prefer(max_calls_a_day=2)
    assert trigger().status_code == 429
    prefer(max_calls_a_day=3)
    assert trigger().status_code == 200
    pass_time(1)
    assert trigger("+12025550104").status_code == 429
    # Below the calls already placed, it is the latest of them that the next one waits for.
    execute("UPDATE outbound_call SET at = at + 3600000000 WHERE id = (SELECT max(id) FROM outbound_call)")
    prefer(max_calls_a_day=1)
    refused = trigger()
    assert refused.status_code == 429
    assert 86_300 < int(refused.headers["Retry-After"]) <= 86_400


@pytest.mark.usefixtures("db")
def test_a_run_that_was_prepared_long_ago_counts_when_it_is_dialed(
    client: FlaskClient, workflow: Callable[..., Any], prefer: Any
) -> None:
    made = workflow()["id"]
    prefer(max_calls_a_day=1)
    body = {"name": "prepared", "mode": "twilio"}
    prepared = [client.post(f"{API}/workflow/{made}/runs", json=body).get_json()["id"] for _ in range(2)]
    Run.update(created_at=now() - 3 * DAY).execute()
    call = {"workflow_id": made, "phone_number": ANN}
    answers = [client.post(f"{API}/telephony/initiate-call", json={**call, "workflow_run_id": run}) for run in prepared]
    assert [answer.status_code for answer in answers] == [200, 429]


@pytest.mark.usefixtures("db")
def test_another_organization_has_its_own_count(prefer: Any) -> None:
    prefer(max_calls_a_day=1)
    with write():
        call_quota.reserve_daily_call(1)
        found = call_quota.quota(1, 1, now())
        assert found is not None
        assert found.left == 0
        call_quota.reserve_daily_call(Organization.create(name="other").id)


@pytest.mark.usefixtures("db")
def test_calls_of_a_clock_that_was_ahead_count_no_more(trigger: Callable[..., Any], prefer: Any) -> None:
    prefer(max_calls_a_day=1)
    assert trigger().status_code == 200
    pass_time(-2)
    assert trigger().status_code == 200
    assert CountedCall.select().count() == 1
    assert trigger().status_code == 429


def plan_of(service: Service, act: Callable[[], Any]) -> list[str]:
    statements: list[str] = []
    connection = service.store.database.connection()
    connection.set_trace_callback(statements.append)
    act()
    connection.set_trace_callback(None)
    steps = [
        step[3]
        for statement in statements
        for step in connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
        if statement.startswith(("SELECT", "DELETE"))
    ]
    return [step for step in steps if "outbound_call" in step]


@pytest.mark.sqlite
@pytest.mark.usefixtures("db")
def test_the_calls_of_a_day_are_counted_by_an_index(service: Service) -> None:
    moment = now()
    counted = plan_of(service, lambda: organizations.latest_calls(1, moment - DAY, moment, 100))
    added = plan_of(service, lambda: organizations.add_call(1, moment, moment - DAY, moment))
    assert len(counted) == 1
    assert len(added) == 2
    assert all("outbound_call_organization_id_at (organization_id=? AND at" in step for step in (*counted, *added))


# -- campaigns


@pytest.fixture
def campaign(client: FlaskClient, workflow: Callable[..., Any]) -> Callable[..., int]:
    """Makes a campaign of these numbers, each called once unless `retries` says more; returns its id."""

    def make(*numbers: str, retries: int = 0) -> int:
        made = workflow()["id"]
        retry = {"max_retries": retries, "retry_delay_seconds": 3600}
        fields = {"name": "Spring", "workflow_id": str(made), "retry_config": json.dumps(retry)}
        text = "phone_number\n" + "\n".join(numbers)
        answer = client.post(
            f"{API}/campaign/create/csv", data={**fields, "file": (io.BytesIO(text.encode()), "list.csv")}
        )
        assert answer.status_code == 200, answer.text
        return int(answer.get_json()["id"])

    return make


def contacts(client: FlaskClient, id: int) -> dict[str, Any]:
    rows = client.get(f"{API}/campaign/{id}/contacts").get_json()["contacts"]
    return {row["phone_number"]: row for row in rows}


@pytest.mark.usefixtures("db")
def test_a_contact_of_another_country_is_skipped(
    client: FlaskClient, campaign: Callable[..., int], prefer: Any, wait_for: Any
) -> None:
    prefer(allowed_countries=["US", "CA"])
    id = campaign(ANN, JAMAICA, "sip:ann@example.org", BOB)
    dry = client.post(f"{API}/campaign/{id}/simulate", json={}).get_json()
    assert dry["skipped"] == {"country_not_allowed": 2}
    assert [each["reason"] for each in dry["skipped_contacts"]] == [ABROAD, NOWHERE]
    client.post(f"{API}/campaign/{id}/start")
    wait_for(lambda: client.get(f"{API}/campaign/{id}").get_json()["state"] == "completed")
    found = contacts(client, id)
    assert [found[number]["state"] for number in (ANN, BOB)] == ["completed"] * 2
    assert (found[JAMAICA]["state"], found[JAMAICA]["reasons"]) == ("skipped", [ABROAD])
    codes = {decision.code for decision in Decision.select().where(Decision.code.contains("country"))}
    assert codes == {"country_not_allowed"}


@pytest.mark.usefixtures("db")
def test_a_campaign_waits_for_the_next_day_and_goes_on_by_itself(
    client: FlaskClient, service: Service, campaign: Callable[..., int], prefer: Any, wait_for: Any
) -> None:
    prefer(max_calls_a_day=2)
    id = campaign(ANN, BOB, CY)
    client.post(f"{API}/campaign/{id}/start")

    def entries() -> Any:
        return client.get(f"{API}/campaign/{id}").get_json()["logs"]

    [entry] = wait_for(entries)
    reason = "The organization places at most 2 calls within 24 hours; the next one may be placed at "
    assert (entry["level"], entry["event"]) == ("warning", "max_calls_a_day")
    assert entry["message"].startswith(reason)
    wait_for(lambda: Run.select().where(Run.state == "completed").count() == 2)
    shown = client.get(f"{API}/campaign/{id}").get_json()
    assert (shown["state"], shown["executed_count"]) == ("running", 2)
    waiting = contacts(client, id)[CY]
    assert waiting["state"] == "queued"
    assert waiting["reasons"][-1].startswith(reason)
    for _ in range(2):  # it is noted once
        service.store.dialer_wakeup.set()
        assert len(entries()) == 1
    pass_time(24)
    service.store.dialer_wakeup.set()
    wait_for(lambda: client.get(f"{API}/campaign/{id}").get_json()["state"] == "completed")
    assert {row["state"] for row in contacts(client, id).values()} == {"completed"}


@pytest.mark.usefixtures("db")
def test_a_campaign_with_nobody_to_call_now_does_not_say_that_it_waits(
    client: FlaskClient, service: Service, campaign: Callable[..., int], prefer: Any, wait_for: Any
) -> None:
    prefer(max_calls_a_day=1)
    id = campaign(BUSY, retries=1)
    client.post(f"{API}/campaign/{id}/start")
    wait_for(lambda: contacts(client, id).get(BUSY, {}).get("state") == "retry")
    Dialer(service).look()
    assert client.get(f"{API}/campaign/{id}").get_json()["logs"] == []


@pytest.mark.usefixtures("db")
def test_contacts_that_are_claimed_but_not_called_yet_count(
    client: FlaskClient,
    service: Service,
    campaign: Callable[..., int],
    prefer: Any,
    wait_for: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Dialer, "_place", lambda _self, _claim: None)
    prefer(max_calls_a_day=2)
    id = campaign(ANN, BOB, CY)
    client.post(f"{API}/campaign/{id}/start")

    def states() -> list[str]:
        return sorted(row["state"] for row in contacts(client, id).values())

    wait_for(lambda: "dialing" in states())
    Dialer(service).look()
    assert states() == ["dialing", "dialing", "queued"]


@pytest.mark.usefixtures("db")
def test_the_dry_run_holds_to_the_calls_of_a_day(
    client: FlaskClient, trigger: Callable[..., Any], campaign: Callable[..., int], prefer: Any
) -> None:
    assert trigger().status_code == 200
    at = organizations.call_times(1, now() - DAY, now())[0]
    prefer(max_calls_a_day=2)
    id = campaign(ANN, BOB, CY)
    starts = at + timedelta(hours=1)
    body = {"outcomes": {"answered": 1}, "starts_at": starts.isoformat(), "days": 3}
    dry = client.post(f"{API}/campaign/{id}/simulate", json=body).get_json()
    hours = {entry["hour"]: entry["attempts"] for entry in dry["timeline"]}
    # One at once, one a day after the trigger's call, and one a day after the first.
    expected = (starts, at + DAY, starts + DAY)
    assert hours == {f"{each.astimezone(UTC):%Y-%m-%dT%H}:00:00Z": 1 for each in expected}
    assert dry["contacts"]["completed"] == 3
