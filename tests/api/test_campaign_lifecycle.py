"""Campaigns from start to end, over the API, with the simulator as the carrier and every call really made."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask.testing import FlaskClient

from voiceapi.api import contacts as contacts_api
from voiceapi.bulkhead import Bulkhead
from voiceapi.campaigns import contacts as contact_report
from voiceapi.campaigns import lifecycle
from voiceapi.engine.actions import AskModel
from voiceapi.engine.events import ModelFailed
from voiceapi.http_client import HTTPClient, Reply
from voiceapi.llm.scripted import Scripted
from voiceapi.llm.selection import Misconfigured
from voiceapi.runs import lifecycle as run_lifecycle
from voiceapi.service import Service
from voiceapi.store.campaigns import Contact, Decision, Upload
from voiceapi.store.database import write
from voiceapi.store.fields import now
from voiceapi.store.runs import Run
from voiceapi.telephony.carriers import simulator

API = "/api/v1"
BUSY, SILENT, FAILING, MACHINE = (f"+120255501{n}" for n in ("01", "02", "03", "04"))
ANN, BOB, CY = "+12025550171", "+12025550172", "+12025550173"
UNDIALABLE = "A number to call is written with + and its country code, such as +12025550123."
NO_COUNTRY = (
    "The number needs + and its country code, as in +12025550123, unless the telephony configuration names a country."
)
ONCE = {"max_retries": 0}
SOON = {"max_retries": 1, "retry_delay_seconds": 30}


@pytest.fixture
def create(client: FlaskClient, workflow: Callable[..., Any]) -> Callable[..., int]:
    """Makes a campaign of these numbers, or of a whole CSV; returns its id."""

    def make(*numbers: str, csv: str | None = None, **settings: Any) -> int:
        text = csv or "phone_number\n" + "\n".join(numbers)
        form = {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
        fields = {"name": "Spring", "workflow_id": str(workflow()["id"]), **form}
        answer = client.post(
            f"{API}/campaign/create/csv", data={**fields, "file": (io.BytesIO(text.encode()), "l.csv")}
        )
        assert answer.status_code == 200, answer.text
        return int(answer.get_json()["id"])

    return make


@pytest.fixture
def ended(client: FlaskClient, wait_for: Callable[..., Any]) -> Callable[[int], dict[str, Any]]:
    """Waits until a campaign is no longer at work; returns its progress."""

    def wait(campaign_id: int) -> dict[str, Any]:
        def stopped() -> Any:
            progress = client.get(f"{API}/campaign/{campaign_id}/progress").get_json()
            return progress if progress["state"] not in ("syncing", "running") else None

        return dict(wait_for(stopped))

    return wait


def act(client: FlaskClient, campaign_id: int, word: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"{API}/campaign/{campaign_id}/{word}", json=body if word in ("redial", "simulate") else None)
    assert answer.status_code == 200, answer.text
    return dict(answer.get_json())


def contacts(client: FlaskClient, campaign_id: int, **query: Any) -> dict[str, Any]:
    return dict(client.get(f"{API}/campaign/{campaign_id}/contacts", query_string=query).get_json())


def by_number(client: FlaskClient, campaign_id: int) -> dict[str, dict[str, Any]]:
    return {contact["phone_number"]: contact for contact in contacts(client, campaign_id)["contacts"]}


def make_due(db: None, client: FlaskClient, service: Service) -> None:
    """Let the time until the next attempts be over."""
    Contact.update(next_attempt_at=now()).where(Contact.state.in_(("queued", "retry"))).execute()
    service.store.dialer_wakeup.set()


def test_the_contacts_as_csv(
    client: FlaskClient, service: Service, create: Any, ended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contact_report, "LINES", 2)
    unreadable = '"1"2,\n' * 3
    campaign_id = create(
        csv=f"phone_number,note\n{unreadable}{ANN},=1+1\n{BUSY},\n,\n12,x\n{ANN},y\n", retry_config=ONCE
    )
    report = f"{API}/campaign/{campaign_id}/contacts/report"
    heading = "contact_row,contact_state,contact_attempts,contact_reasons"
    assert client.get(report).text.splitlines() == [heading]
    act(client, campaign_id, "start")
    ended(campaign_id)
    lines = [
        f"phone_number,note,{heading}",
        *(
            f""",,{n},skipped,0,"Line {n + 1} can't be read as a row of CSV: ',' expected after '""'.\""""
            for n in (1, 2, 3)
        ),
        f"{ANN},'=1+1,4,completed,1,It is called for the first time. The call was answered.",
        f"{BUSY},,5,failed,1,It is called for the first time. The line was busy; that is not followed by another "
        "attempt.",
        f'12,x,6,skipped,0,"{NO_COUNTRY}"',
        f"{ANN},y,7,skipped,0,The number is in row 4 already.",
    ]
    answer = client.get(report)
    assert answer.text.splitlines() == lines
    assert answer.headers["Content-Disposition"] == f"attachment; filename=campaign_{campaign_id}_all_contacts.csv"
    assert client.get(report, query_string={"state": "skipped"}).text.splitlines() == [*lines[:4], *lines[6:]]
    assert client.get(report, query_string={"state": "gone"}).status_code == 422
    monkeypatch.setattr(contacts_api, "LONG_REPORT", 1)
    bulkhead = Bulkhead(threads=2, wait_seconds=0.0)
    object.__setattr__(service, "bulkhead", bulkhead)
    with bulkhead.slow("another"):
        assert client.get(report).status_code == 503
        assert client.get(report, query_string={"state": "failed"}).status_code == 200
    with client.get(report) as answer:
        assert answer.status_code == 200
    assert bulkhead.permit_queue.running == []


def test_another_column_of_the_list_has_the_numbers(client: FlaskClient, create: Any, ended: Any) -> None:
    csv = f"Phone;first_name\n{ANN};Ann\n{BUSY};Bob\n12;Cy\n{ANN};Ann\n"
    campaign_id = create(csv=csv, phone_number_column="Phone", retry_config=ONCE)
    made = client.get(f"{API}/campaign/{campaign_id}").get_json()
    assert [made[name] for name in ("phone_number_column", "contacts_to_call", "total_rows")] == ["Phone", 2, None]
    simulated = client.post(f"{API}/campaign/{campaign_id}/simulate", json={}).get_json()
    assert (simulated["attempts"], simulated["contacts"]["skipped"]) == (2, 2)
    act(client, campaign_id, "start")
    assert ended(campaign_id)["total_rows"] == 2
    assert {number: each["state"] for number, each in by_number(client, campaign_id).items()} == {
        ANN: "skipped",
        BUSY: "failed",
        "12": "skipped",
    }
    contact = client.get(f"{API}/campaign/{campaign_id}/contacts/1").get_json()
    assert contact["variables"] == {"phone": ANN, "first_name": "Ann", "phone_number": ANN}
    child = act(client, campaign_id, "redial")
    assert (child["phone_number_column"], child["contacts_to_call"]) == ("Phone", 1)


def test_a_list_is_dialed_to_its_end(
    client: FlaskClient, create: Any, ended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign_id = create(ANN, BUSY, SILENT, FAILING, MACHINE, "", "12", ANN, retry_config=ONCE)
    assert act(client, campaign_id, "start")["state"] == "syncing"
    progress = ended(campaign_id)
    assert {name: progress[name] for name in ("state", "total_rows", "processed_rows", "failed_calls")} == {
        "state": "completed",
        "total_rows": 5,
        "processed_rows": 5,
        "failed_calls": 3,
    }
    assert (progress["progress_percentage"], progress["rate_limit"]) == (100.0, 1)
    assert progress["source_sync"]["status"] == "completed"
    assert progress["contacts"] == {
        **dict.fromkeys(("queued", "dialing", "retry", "unknown"), 0),
        **{"completed": 1, "failed": 4, "skipped": 2},
    }
    campaign = client.get(f"{API}/campaign/{campaign_id}").get_json()
    counters = ("failed_rows", "executed_count", "total_queued_count")
    assert [campaign[name] for name in counters] == [4, 5, 5]
    assert client.get(f"{API}/campaign/{campaign_id}/outcomes").get_json() == {
        "campaign_id": campaign_id,
        "outcomes": {
            **{"answered": 1, "busy": 1, "no_answer": 1, "voicemail": 1, "failed": 1},
            **dict.fromkeys(("refused", "canceled", "lost", "unknown"), 0),
        },
        "dispositions": [
            {"disposition": each, "calls": 1}
            for each in ("busy", "failed", "no-answer", "user_qualified", "voicemail_detected")
        ],
    }
    monkeypatch.setattr(lifecycle, "MOST_DISPOSITIONS", 2)
    assert len(client.get(f"{API}/campaign/{campaign_id}/outcomes").get_json()["dispositions"]) == 2
    assert campaign["completed_at"] > campaign["started_at"]
    told = {row["row"]: (row["state"], row["reasons"]) for row in contacts(client, campaign_id)["contacts"]}
    first, last = "It is called for the first time.", "that is not followed by another attempt."
    assert told == {
        1: ("completed", [first, "The call was answered."]),
        2: ("failed", [first, f"The line was busy; {last}"]),
        3: ("failed", [first, f"Nobody answered; {last}"]),
        4: ("failed", [first, f"The call failed; {last}"]),
        5: ("failed", [first, f"An answering machine answered; {last}"]),
        6: ("skipped", [NO_COUNTRY]),
        7: ("skipped", ["The number is in row 1 already."]),
    }


def test_a_contact_with_its_decisions(client: FlaskClient, create: Any, ended: Any) -> None:
    csv = f"Phone_Number,name,greeting_override_type,greeting_override_text,provider\n{ANN},Ann,text,Hi Ann,x\n"
    campaign_id = create(csv=csv)
    act(client, campaign_id, "start")
    ended(campaign_id)
    detail = client.get(f"{API}/campaign/{campaign_id}/contacts/1").get_json()
    run_id, times = detail["workflow_run_ids"][0], [decision["at"] for decision in detail["decisions"]]
    assert times == sorted(times)
    assert detail == {
        "row": 1,
        "phone_number": ANN,
        "state": "completed",
        "attempts": 1,
        "next_attempt_at": None,
        "workflow_run_ids": [run_id],
        "reasons": ["It is called for the first time.", "The call was answered."],
        "variables": {
            "phone_number": ANN,
            "name": "Ann",
            "greeting_override_type": "text",
            "greeting_override_text": "Hi Ann",
            "provider": "x",
        },
        "decisions": [
            {"at": at, "code": code, "reason": reason, "workflow_run_id": run_id}
            for at, code, reason in zip(times, ("dialed", "answered"), detail["reasons"], strict=True)
        ],
    }
    run = client.get(f"{API}/campaign/{campaign_id}/runs").get_json()["runs"][0]
    assert run["id"] == run_id
    assert run["name"].startswith(f"WR-CAMPAIGN-{campaign_id}-")
    context = dict(run["initial_context"])
    assert context.pop("source_uuid").endswith("_row_1")
    assert context == {
        **context,
        "name": "Ann",
        "greeting_override": {"type": "text", "text": "Hi Ann"},
        "campaign_id": campaign_id,
        "provider": "simulator",
        "called_number": ANN,
        "caller_number": "+12025550199",
        "direction": "outbound",
    }
    missing = client.get(f"{API}/campaign/{campaign_id}/contacts/2")
    assert (missing.status_code, missing.get_json()) == (
        404,
        {"detail": f"Campaign {campaign_id} has no contact of row 2"},
    )


def test_a_retry_comes_after_its_delay(
    client: FlaskClient, create: Any, ended: Any, wait_for: Any, db: None, service: Service
) -> None:
    campaign_id = create(BUSY, retry_config=SOON)
    act(client, campaign_id, "start")
    wait_for(lambda: contacts(client, campaign_id, state="retry")["total_count"])
    contact = contacts(client, campaign_id)["contacts"][0]
    assert contact["reasons"][-1].startswith("The line was busy; the next attempt is due at ")
    make_due(db, client, service)
    assert ended(campaign_id)["contacts"]["failed"] == 1
    contact = contacts(client, campaign_id)["contacts"][0]
    assert (contact["attempts"], len(contact["workflow_run_ids"])) == (2, 2)
    assert contact["reasons"][2:] == [
        "It is called for the second time.",
        "The line was busy; that was the last of 2 attempts.",
    ]
    second = Run.get_by_id(contact["workflow_run_ids"][1])
    assert {"is_retry": True, "retry_attempt": 1, "retry_reason": "busy"}.items() <= second.initial_context.items()
    assert second.initial_context["source_uuid"].endswith("_row_1_retry_1")
    assert second.gathered_context["call_tags"] == ["retry", "retry_reason_busy", "not_connected", "telephony_busy"]


def shut() -> dict[str, Any]:
    """A schedule that doesn't open for days."""
    slot = {"day_of_week": (now().weekday() + 3) % 7, "start_time": "10:00", "end_time": "11:00"}
    return {"timezone": "UTC", "slots": [slot]}


def test_outside_its_schedule_a_campaign_waits(client: FlaskClient, create: Any, wait_for: Any) -> None:
    campaign_id = create(ANN, schedule_config=shut())
    act(client, campaign_id, "start")
    wait_for(lambda: client.get(f"{API}/campaign/{campaign_id}").get_json()["state"] == "running")
    contact = contacts(client, campaign_id)["contacts"][0]
    assert contact["state"] == "queued"
    assert contact["reasons"][0].startswith("The campaign's schedule opens at ")


def test_a_pause_lasts_until_the_resume(client: FlaskClient, create: Any, ended: Any, wait_for: Any) -> None:
    campaign_id = create(ANN, BOB, schedule_config=shut())
    act(client, campaign_id, "start")
    wait_for(lambda: client.get(f"{API}/campaign/{campaign_id}").get_json()["state"] == "running")
    assert act(client, campaign_id, "pause")["state"] == "paused"
    assert by_number(client, campaign_id)[ANN]["reasons"] == ["The campaign is paused."]
    always = [{"day_of_week": day, "start_time": "00:00", "end_time": "24:00"} for day in range(7)]
    client.patch(f"{API}/campaign/{campaign_id}", json={"schedule_config": {"slots": always}})
    assert act(client, campaign_id, "resume")["state"] == "running"
    assert ended(campaign_id)["contacts"]["completed"] == 2


@pytest.mark.parametrize(
    ("word", "detail"),
    [
        ("start", "Campaign must be in 'created' state to start, current state: completed"),
        ("pause", "Campaign must be in 'running' or 'syncing' state to pause, current state: completed"),
        ("resume", "Campaign must be in 'paused' state to resume, current state: completed"),
    ],
)
def test_what_a_completed_campaign_does_not_do(
    client: FlaskClient, create: Any, ended: Any, word: str, detail: str
) -> None:
    campaign_id = create("not a number")
    act(client, campaign_id, "start")
    assert ended(campaign_id)["state"] == "completed"
    answer = client.post(f"{API}/campaign/{campaign_id}/{word}")
    assert (answer.status_code, answer.get_json()) == (400, {"detail": detail})


@pytest.mark.parametrize("word", ["start", "pause", "resume", "redial", "simulate"])
def test_a_campaign_of_others_is_not_there(client: FlaskClient, stranger: FlaskClient, create: Any, word: str) -> None:
    campaign_id = create(ANN)
    answer = stranger.post(f"{API}/campaign/{campaign_id}/{word}", json={})
    assert (answer.status_code, answer.get_json()) == (404, {"detail": "Campaign not found"})
    assert stranger.get(f"{API}/campaign/{campaign_id}/contacts").status_code == 404


@pytest.mark.parametrize("word", ["start", "resume"])
def test_without_telephony_nothing_starts(client: FlaskClient, word: str) -> None:
    assert client.delete(f"{API}/organizations/telephony-configs/1").status_code == 200
    answer = client.post(f"{API}/campaign/1/{word}")
    detail = "You must configure telephony first by going to APP_URL/configure-telephony"
    assert (answer.status_code, answer.get_json()) == (401, {"detail": detail})


def test_too_many_failures_pause_a_campaign(
    client: FlaskClient, create: Any, ended: Any, db: None, service: Service
) -> None:
    breaker = {"min_calls_in_window": 1, "failure_threshold": 0.5}
    campaign_id = create(FAILING, ANN, circuit_breaker=breaker, max_concurrency=1, retry_config=ONCE)
    act(client, campaign_id, "start")
    assert ended(campaign_id)["state"] == "paused"
    log = client.get(f"{API}/campaign/{campaign_id}").get_json()["logs"][0]
    assert log == {
        "ts": log["ts"],
        "level": "error",
        "event": "circuit_breaker_tripped",
        "message": "1 of the last 1 calls within 120 seconds failed: the campaign is paused.",
        "details": {"ended": 1, "failed": 1},
    }
    assert by_number(client, campaign_id)[ANN]["state"] == "queued"
    act(client, campaign_id, "resume")
    assert ended(campaign_id)["contacts"]["completed"] == 1


PEOPLE = [f"+120255502{number:02}" for number in range(8)]


class DeadModel(Scripted):
    """A model whose server refuses the key."""

    def reply(self, ask: AskModel) -> Any:
        return ModelFailed(ask.at, ask.number, "The model server refused the key (401).")


def test_calls_that_end_because_the_model_fails_have_failed(
    client: FlaskClient, create: Any, ended: Any, service: Service
) -> None:
    """Eight people answer an agent that only apologises: after five the campaign is paused."""
    object.__setattr__(service, "model", DeadModel())
    campaign_id = create(*PEOPLE, max_concurrency=1, retry_config=SOON)
    act(client, campaign_id, "start")
    progress = ended(campaign_id)
    assert (progress["state"], progress["contacts"]["failed"], progress["contacts"]["queued"]) == ("paused", 5, 3)
    log = client.get(f"{API}/campaign/{campaign_id}").get_json()["logs"][0]
    assert (log["event"], log["details"]) == ("circuit_breaker_tripped", {"ended": 5, "failed": 5})
    act(client, campaign_id, "resume")
    progress = ended(campaign_id)
    assert (progress["state"], progress["contacts"]["failed"], progress["failed_calls"]) == ("completed", 8, 8)
    contact = by_number(client, campaign_id)[PEOPLE[0]]
    assert (contact["state"], contact["reasons"][-1]) == (
        "failed",
        "The call failed; that is not followed by another attempt. (The model server refused the key (401).)",
    )
    where = json.dumps([{"attribute": "dispositionCode", "value": {"codes": ["pipeline_error"]}}])
    runs = client.get(f"{API}/campaign/{campaign_id}/runs", query_string={"filters": where}).get_json()
    assert runs["total_count"] == 8
    report = client.get(f"{API}/campaign/{campaign_id}/report").text.splitlines()
    assert [line.split(",")[6] for line in report[1:]] == ["pipeline_error"] * 8


def test_a_model_whose_configuration_can_not_be_used_fails_the_calls(
    client: FlaskClient, create: Any, ended: Any, service: Service
) -> None:
    object.__setattr__(service, "model", Misconfigured("The key can't be decrypted."))
    campaign_id = create(ANN, retry_config=ONCE)
    act(client, campaign_id, "start")
    assert ended(campaign_id)["contacts"]["failed"] == 1
    assert by_number(client, campaign_id)[ANN]["reasons"][-1].endswith("(The key can't be decrypted.)")


def test_answered_calls_that_ask_for_no_turn_have_failed(
    client: FlaskClient, create: Any, ended: Any, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the carrier can't reach the public URL; retries and the circuit breaker take them for failures."""

    def hang_up(phone: simulator.Phone, *_: Any) -> Any:
        yield from phone._pass_time(3.0)
        phone._end("completed", 3.0)

    monkeypatch.setattr(simulator.Phone, "_talk", hang_up)
    campaign_id = create(*PEOPLE, max_concurrency=1, retry_config=SOON)
    act(client, campaign_id, "start")
    progress = ended(campaign_id)
    assert (progress["state"], progress["contacts"]["failed"], progress["contacts"]["queued"]) == ("paused", 5, 3)
    reason = by_number(client, campaign_id)[PEOPLE[0]]["reasons"][-1]
    assert reason.startswith("The call failed; that is not followed by another attempt. (The carrier reported the call")


def test_a_workflow_that_cannot_run_pauses_a_campaign(client: FlaskClient, create: Any, ended: Any, db: None) -> None:
    campaign_id = create(ANN)
    workflow_id = client.get(f"{API}/campaign/{campaign_id}").get_json()["workflow_id"]
    client.put(f"{API}/workflow/{workflow_id}/status", json={"status": "archived"})
    act(client, campaign_id, "start")
    assert ended(campaign_id)["state"] == "paused"
    log = client.get(f"{API}/campaign/{campaign_id}").get_json()["logs"][0]
    assert (log["event"], log["message"]) == ("batch_failed", "Nobody can be called: Workflow is not active")
    assert Run.select().count() == 0


def test_a_redial_is_of_those_who_were_not_reached(client: FlaskClient, create: Any, ended: Any) -> None:
    campaign_id = create(ANN, BUSY, SILENT, MACHINE, FAILING, retry_config=ONCE, max_attempts_per_day=5)
    refused = client.post(f"{API}/campaign/{campaign_id}/redial", json={})
    assert refused.get_json() == {"detail": "Only completed campaigns can be redialed (current state: created)"}
    act(client, campaign_id, "start")
    ended(campaign_id)
    child = act(client, campaign_id, "redial", retry_on_busy=False)
    assert {name: child[name] for name in ("name", "state", "total_rows", "parent_campaign_id")} == {
        "name": "Spring (Redial)",
        "state": "created",
        "total_rows": 2,
        "parent_campaign_id": campaign_id,
    }
    assert (child["telephony_configuration_id"], child["max_attempts_per_day"]) == (1, 5)
    assert set(by_number(client, child["id"])) == {SILENT, MACHINE}
    again = client.post(f"{API}/campaign/{campaign_id}/redial", json={})
    assert (again.status_code, again.get_json()) == (400, {"detail": "This campaign has already been redialed"})
    assert act(client, child["id"], "start")["state"] == "running"
    assert ended(child["id"])["contacts"]["failed"] == 2


def test_a_redial_of_nobody_is_refused(client: FlaskClient, create: Any, ended: Any) -> None:
    campaign_id = create(ANN)
    act(client, campaign_id, "start")
    ended(campaign_id)
    answer = client.post(f"{API}/campaign/{campaign_id}/redial", json={})
    assert answer.get_json() == {"detail": "No subscribers match the selected redial criteria"}
    none = {"retry_on_voicemail": False, "retry_on_no_answer": False, "retry_on_busy": False}
    answer = client.post(f"{API}/campaign/{campaign_id}/redial", json=none)
    text = "At least one of retry_on_voicemail, retry_on_no_answer, retry_on_busy must be true"
    item = {"loc": ["body"], "msg": f"Value error, {text}", "type": "value_error"}
    assert (answer.status_code, answer.get_json()) == (422, {"detail": [item]})


def test_calling_hours_and_attempts_of_the_organization_and_of_the_campaign(
    client: FlaskClient, create: Any, ended: Any, wait_for: Any, db: None
) -> None:
    hour = (now() + timedelta(hours=3)).strftime("%H:00"), (now() + timedelta(hours=4)).strftime("%H:00")
    csv = f"phone_number,timezone\n{ANN},UTC\n{BOB},Nowhere\n+88212345678,\n"
    campaign_id = create(csv=csv, calling_hours={"start": hour[0], "end": hour[1]})
    act(client, campaign_id, "start")
    wait_for(lambda: contacts(client, campaign_id, state="skipped")["total_count"] == 2)
    found = by_number(client, campaign_id)
    assert found[ANN]["reasons"][0].startswith("It is outside the calling hours of UTC until ")
    assert found[ANN]["state"] == "queued"
    unknown = ["The contact's time zone is not known, and calling hours are set."]
    assert found[BOB]["reasons"] == found["+88212345678"]["reasons"] == unknown
    assert Run.select().count() == 0


def test_a_number_is_dialed_so_often_a_day(
    client: FlaskClient, create: Any, ended: Any, wait_for: Any, db: None
) -> None:
    client.put(f"{API}/organizations/preferences", json={"max_attempts_per_day": 1})
    for campaign_id in (create(ANN), create(ANN)):
        act(client, campaign_id, "start")
        if campaign_id == 1:
            ended(campaign_id)
    wait_for(lambda: Decision.select().where(Decision.code == "attempts_a_day").exists())
    contact = contacts(client, 2)["contacts"][0]
    assert contact["reasons"][0].startswith("The number had 1 attempt within 24 hours; it is looked at again at ")
    assert Decision.select().where(Decision.code == "dialed").count() == 1


def test_the_do_not_call_list(client: FlaskClient, stranger: FlaskClient, create: Any, ended: Any) -> None:
    url = f"{API}/do-not-call"
    answer = client.post(url, json={"phone_numbers": ["+1 (202) 555-0171", CY], "reason": "Asked by letter"})
    assert (answer.status_code, answer.get_json()) == (200, {"added": 2, "already_listed": 0})
    assert client.post(url, json={"phone_numbers": [CY]}).get_json() == {"added": 0, "already_listed": 1}
    csv = f"phone_number;reason\n{BOB};moved\n{CY};\n2025550100;\n"
    answer = client.post(f"{url}/csv", data=csv, headers={"content-type": "text/csv"})
    assert answer.get_json() == {
        "added": 1,
        "already_listed": 1,
        "refused_count": 1,
        "refused": [{"row": 3, "reason": NO_COUNTRY}],
    }
    found = client.get(url, query_string={"limit": 2}).get_json()
    assert [(entry["phone_number"], entry["reason"]) for entry in found["phone_numbers"]] == [
        (BOB, "moved"),
        (CY, "Asked by letter"),
    ]
    assert (found["total_count"], found["total_pages"]) == (3, 2)
    assert stranger.get(url).get_json()["total_count"] == 0
    assert client.delete(f"{url}/{CY}").get_json() == {"message": "The number may be called again"}
    for number in (CY, "nobody"):
        gone = client.delete(f"{url}/{number}")
        assert (gone.status_code, gone.get_json()) == (404, {"detail": "The number is not on the do-not-call list"})
    wrong = client.post(url, json={"phone_numbers": [ANN, "nobody"]})
    assert wrong.status_code == 422
    assert wrong.get_json()["detail"][0]["loc"] == ["body", "phone_numbers", 1]
    campaign_id = create(ANN, BOB, CY)
    act(client, campaign_id, "start")
    assert ended(campaign_id)["contacts"] == {
        **dict.fromkeys(("queued", "dialing", "retry", "failed", "unknown"), 0),
        **{"completed": 1, "skipped": 2},
    }
    assert by_number(client, campaign_id)[ANN]["reasons"] == ["The number is on the do-not-call list."]


def test_an_address_on_the_list_is_not_called_however_it_is_written(
    client: FlaskClient, create: Any, ended: Any
) -> None:
    listed = ["sips:ann@example.org;transport=tls", CY]
    assert client.post(f"{API}/do-not-call", json={"phone_numbers": listed}).get_json()["added"] == 2
    same = ["sip:Ann@Example.org", "sips:ann@example.org:5061", "sip:%41nn@example.org.", f"sip:{CY}@pbx.example.org"]
    campaign_id = create(*same, "sip:bob@example.org")
    dry = client.post(f"{API}/campaign/{campaign_id}/simulate", json={"seed": 1}).get_json()
    assert dry["skipped"] == {"do_not_call": 4}
    act(client, campaign_id, "start")
    contacts = ended(campaign_id)["contacts"]
    assert (contacts["skipped"], contacts["completed"]) == (4, 1)
    for number in ("SIP:ann@example.org", CY):
        assert client.delete(f"{API}/do-not-call/{number}").status_code == 200


def test_who_opts_out_is_not_called_again(
    service: Service, client: FlaskClient, create: Any, ended: Any, db: None
) -> None:
    """The conversation's disposition counts, also that of a call which no campaign placed."""
    common = {"organization": 1, "name": "x", "mode": "simulator", "disposition": "do_not_call", "answered_at": now()}
    common["workflow"] = client.get(f"{API}/campaign/{create(BOB)}").get_json()["workflow_id"]
    runs = [
        Run.create(**common, token="t", called_number=ANN),
        # Of an inbound call the caller opts out, unless the number is withheld.
        Run.create(**common, token="u", call_type="inbound", called_number=BOB, caller_number="anonymous"),
    ]
    for run in runs:
        with write():
            run_lifecycle.complete(service, run, 3)
    listed = client.get(f"{API}/do-not-call").get_json()["phone_numbers"]
    assert [(entry["phone_number"], entry["reason"]) for entry in listed] == [
        (ANN, "The person asked not to be called.")
    ]


@pytest.mark.parametrize("page", [2, 2**62])
@pytest.mark.parametrize(("url", "listed"), [("campaign/{}/contacts", "contacts"), ("do-not-call", "phone_numbers")])
def test_a_page_behind_the_last_is_empty(client: FlaskClient, create: Any, url: str, listed: str, page: int) -> None:
    answer = client.get(f"{API}/{url.format(create(ANN))}?page={page}")
    assert (answer.status_code, answer.get_json()[listed]) == (200, [])


def test_a_strict_list_is_perfect_or_refused(client: FlaskClient, workflow: Any, db: None) -> None:
    fields = {"name": "n", "workflow_id": str(workflow()["id"]), "strict": "true"}
    content = f"phone_number\n{ANN}\nnobody\n{ANN}\n".encode()
    answer = client.post(f"{API}/campaign/create/csv", data={**fields, "file": (io.BytesIO(content), "l.csv")})
    assert answer.status_code == 422
    assert [(item["loc"], item["msg"]) for item in answer.get_json()["detail"]] == [
        (["body", "file", 2], f"Value error, row 2: {UNDIALABLE}"),
        (["body", "file", 3], "Value error, row 3: The number is in row 1 already."),
    ]
    assert Upload.select().count() == 0


@pytest.mark.parametrize(
    ("form", "places"),
    [
        ({}, {"name", "workflow_id", "file"}),
        ({"name": "n", "workflow_id": "x", "retry_config": "{"}, {"retry_config"}),
        ({"name": "n", "workflow_id": "x", "schedule_config": "{}"}, {"workflow_id", "schedule_config", "file"}),
    ],
)
def test_a_form_is_checked_like_a_body(client: FlaskClient, form: Any, places: set[str]) -> None:
    answer = client.post(f"{API}/campaign/create/csv", data=form, content_type="multipart/form-data")
    assert answer.status_code == 422
    assert {item["loc"][1] for item in answer.get_json()["detail"]} == places


def test_the_list_and_the_report_can_be_fetched(
    client: FlaskClient, bare: FlaskClient, create: Any, ended: Any
) -> None:
    csv = f'phone_number,note\n{ANN},"=1+1"\n'
    campaign_id = create(csv=csv)
    act(client, campaign_id, "start")
    ended(campaign_id)
    address = client.get(f"{API}/campaign/{campaign_id}/source-download-url").get_json()
    assert address["expires_in"] == 3600
    assert bare.get(urlsplit(address["download_url"]).path).text == csv
    report = client.get(f"{API}/campaign/{campaign_id}/report")
    assert report.headers["Content-Disposition"] == f"attachment; filename=campaign_{campaign_id}_report.csv"
    lines = report.text.splitlines()
    assert lines[0].startswith("Run ID,Campaign ID,Agent ID,")
    assert lines[1].split(",")[1:2] == [str(campaign_id)]
    # A plain number stays one: nothing that a spreadsheet would calculate.
    assert f",{ANN}," in lines[1]


def test_a_dry_run_calls_nobody(client: FlaskClient, create: Any, db: None) -> None:
    campaign_id = create(ANN, BOB, "nobody", calling_hours={"start": "09:00", "end": "17:00"}, retry_config=SOON)
    client.post(f"{API}/do-not-call", json={"phone_numbers": [BOB]})
    asked = {"seed": 3, "outcomes": {"busy": 1}, "starts_at": "2026-06-01T00:00:00Z"}
    first = client.post(f"{API}/campaign/{campaign_id}/simulate", json=asked)
    assert first.data == client.post(f"{API}/campaign/{campaign_id}/simulate", json=asked).data
    found = first.get_json()
    assert {name: found[name] for name in ("attempts", "retries", "outcomes", "peak_concurrency", "minutes")} == {
        "attempts": 2,
        "retries": 1,
        "outcomes": {"busy": 2},
        "peak_concurrency": 1,
        "minutes": 0.0,
    }
    assert found["contacts"] == {
        **dict.fromkeys(("queued", "dialing", "retry", "completed", "unknown"), 0),
        **{"failed": 1, "skipped": 2},
    }
    assert found["timeline"] == [
        {"hour": "2026-06-01T13:00:00Z", "attempts": 2, "retries": 1, "answered": 0, "minutes": 0.0}
    ]
    assert (found["skipped"], found["postponed"]) == ({"do_not_call": 1, "row_skipped": 1}, {"outside_hours": 1})
    assert [(each["row"], each["code"]) for each in found["skipped_contacts"]] == [
        (2, "do_not_call"),
        (3, "row_skipped"),
    ]
    assert (Contact.select().count(), Run.select().count()) == (0, 0)


@pytest.mark.parametrize(
    "body",
    [
        {"outcomes": {"asleep": 1}},
        {"outcomes": {"busy": 0}},
        {"outcomes": {"busy": "x"}},
        {"outcomes": {}},
        {"days": 0},
        {"starts_at": "9999-12-31"},
        {"starts_at": "0001-01-01"},
    ],
)
def test_a_dry_run_that_is_refused(client: FlaskClient, create: Any, body: Any) -> None:
    answer = client.post(f"{API}/campaign/{create(ANN)}/simulate", json=body)
    assert answer.status_code == 422
    assert answer.get_json()["detail"][0]["loc"] == ["body", next(iter(body))]


# -- the configuration that a campaign calls through

CONFIGS = f"{API}/organizations/telephony-configs"


def add_twilio(client: FlaskClient) -> int:
    """Adds a Twilio configuration with a number; it becomes the default."""
    config = {"provider": "twilio", "account_sid": "AC1", "auth_token": "12345"}
    made = client.post(CONFIGS, json={"name": "Twilio", "config": config}).get_json()
    assert made["is_default_outbound"] is True
    client.post(f"{CONFIGS}/{made['id']}/phone-numbers", json={"address": "+12025550188"})
    return int(made["id"])


def test_a_campaign_keeps_the_configuration_that_it_was_created_with(
    client: FlaskClient, create: Any, ended: Any
) -> None:
    campaign_id = create(ANN, SILENT, retry_config=ONCE)
    add_twilio(client)
    act(client, campaign_id, "start")
    assert ended(campaign_id)["state"] == "completed"
    again = act(client, campaign_id, "redial")
    assert again["telephony_configuration_name"] == "Simulator"
    act(client, again["id"], "start")
    assert ended(again["id"])["state"] == "completed"
    runs = client.get(f"{API}/organizations/usage/runs").get_json()["runs"]
    assert [run["gathered_context"]["telephony_configuration_name"] for run in runs] == ["Simulator"] * 3


def test_a_campaign_whose_carrier_could_not_reach_the_service_is_paused(
    client: FlaskClient, service: Service, create: Any, ended: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is dialed, no contact is lost: with a public URL it is resumed."""
    asked: list[Any] = []

    def send(_client: HTTPClient, *request: Any, **options: Any) -> Reply:
        asked.append((request, options))
        return Reply(400, {}, b'{"message": "No."}', 0.0)

    monkeypatch.setattr(HTTPClient, "send", send)
    add_twilio(client)
    campaign_id = create(ANN, BOB, retry_config=ONCE)
    act(client, campaign_id, "start")
    assert ended(campaign_id)["state"] == "paused"
    entry = client.get(f"{API}/campaign/{campaign_id}").get_json()["logs"][-1]
    assert entry["event"] == "batch_failed"
    assert entry["message"].startswith("Nobody can be called: VOICEAPI_PUBLIC_URL isn't set, so Twilio couldn't ask")
    told = {number: (each["state"], each["attempts"]) for number, each in by_number(client, campaign_id).items()}
    assert told == {ANN: ("queued", 0), BOB: ("queued", 0)}
    assert (asked, client.get(f"{API}/organizations/usage/runs").get_json()["runs"]) == ([], [])
    object.__setattr__(service, "settings", replace(service.settings, public_url="https://voice.example.org"))
    act(client, campaign_id, "resume")
    assert ended(campaign_id)["state"] == "completed"
    assert len(asked) == 2
