"""`/metrics`: what is counted, who may read it, and what never stands in it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families

from voiceapi import VoiceAPI, create_app
from voiceapi.engine.events import ModelFailed
from voiceapi.operating.metrics import MOST_MODELS, PrometheusMetrics
from voiceapi.runs.lifecycle import note_end
from voiceapi.security import WRONG_KEYS_A_MINUTE
from voiceapi.service import Service
from voiceapi.store.runs import Run

API = "/api/v1"
KEY = "test-key-0123456789"
METRICS_KEY = "metrics-key-9876543210"
READER = {"Authorization": f"Bearer {METRICS_KEY}"}


class Failing:
    """A language model whose server is down."""

    def reply(self, ask: Any) -> ModelFailed:
        return ModelFailed(ask.at, ask.number, "down")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[[Path], str]) -> Iterator[Flask]:
    location = database_at(tmp_path_factory.mktemp("metrics") / "voice.db")
    app = create_app({"VOICEAPI_DATABASE": location, "VOICEAPI_API_KEY": KEY, "VOICEAPI_METRICS_KEY": METRICS_KEY})
    yield app
    app.extensions["voiceapi"].close()


@pytest.fixture
def client(measured: Flask) -> FlaskClient:
    client = measured.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    return client


def samples(app: Flask, path: str = "/metrics") -> dict[str, float]:
    """The samples by name and labels, as they stand in the text."""
    answer = app.test_client().get(path, headers=READER)
    assert (answer.status_code, answer.content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = list(text_string_to_metric_families(answer.text))
    assert all(family.documentation and family.name.startswith("voiceapi_") for family in families)
    return {
        " ".join((sample.name, *sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_calls_turns_and_failures_are_counted(
    measured: Flask, client: FlaskClient, workflow: Any, finished: Any
) -> None:
    service: Service = measured.extensions["voiceapi"]
    agent = workflow(path="measured")
    body = {"phone_number": "+12025550123", "initial_context": {"simulated_callee": ["Yes"]}}
    run = client.post(f"{API}/public/agent/measured", json=body).get_json()["workflow_run_id"]
    finished(agent["id"], run)
    busy = client.post(f"{API}/public/agent/measured", json={"phone_number": "+12025550101"}).get_json()
    finished(agent["id"], busy["workflow_run_id"])
    object.__setattr__(service, "model", Failing())
    sessions = f"{API}/workflow/{agent['id']}/text-chat/sessions"
    chat = client.post(sessions, json={}).get_json()
    client.post(f"{sessions}/{chat['workflow_run_id']}/messages", json={"text": "Yes"})
    object.__setattr__(service, "model", None)
    found = samples(measured)
    expected = {
        "voiceapi_calls_started_total simulator outbound": 2,
        "voiceapi_calls_ended_total simulator outbound user_qualified": 1,
        "voiceapi_calls_ended_total simulator outbound busy": 1,
        "voiceapi_turn_seconds_count simulator scripted": 2,
        "voiceapi_turn_seconds_bucket simulator +Inf scripted": 2,
        "voiceapi_turn_seconds_count textchat other": 2,
        "voiceapi_model_failures_total other": 1,
        "voiceapi_deliveries pending": 0,
        "voiceapi_deliveries dead_letter": 0,
        "voiceapi_deliveries not_sent": 0,
        "voiceapi_delivery_delay_seconds": 0,
        "voiceapi_follow_ups": 0,
        "voiceapi_campaigns running": 0,
        "voiceapi_dialer_contacts due": 0,
        "voiceapi_dialer_contacts dialing": 0,
        "voiceapi_slow_requests running": 0,
        "voiceapi_slow_requests limit": 32,
        "voiceapi_slow_turns": 0,
        "voiceapi_background_queue": 0,
    }
    assert {name: found.get(name) for name in expected} == expected
    path = service.store.path
    if path is None:
        assert found["voiceapi_database_bytes database"] > 1_000_000
        assert "voiceapi_database_bytes wal" not in found
    else:
        assert found["voiceapi_database_bytes database"] == path.stat().st_size
        assert found["voiceapi_database_bytes wal"] > 0
    assert "voiceapi_writer_wait_seconds_total" in found
    assert not [name for name in found if "_created" in name]


def test_what_is_queued_and_when_jobs_ran_is_read_when_asked(
    measured: Flask, client: FlaskClient, workflow: Any, finished: Any, talk: Any, wait_for: Callable[..., Any]
) -> None:
    definition = talk("queued")
    # Private addresses aren't allowed, so its webhook stays pending.
    data = {"name": "Hook", "endpoint_url": "http://127.0.0.1:9/", "http_method": "POST", "enabled": True}
    definition["nodes"].append({"id": "w", "type": "webhook", "position": {"x": 0, "y": 0}, "data": data})
    agent = workflow(definition)
    answer = client.post(f"{API}/public/agent/queued", json={"phone_number": "+12025550101"})
    finished(agent["id"], answer.get_json()["workflow_run_id"])
    assert samples(measured)["voiceapi_deliveries pending"] == 1
    wait_for(lambda: "voiceapi_job_last_run_timestamp_seconds dial" in samples(measured))
    assert samples(measured)["voiceapi_job_last_run_timestamp_seconds sweep_calls"] > 1e9


def test_labels_are_words_of_bounded_number() -> None:
    metrics = PrometheusMetrics()
    good = ("gpt-4o-2024-08-06", "claude-3-5-sonnet-20241022")
    for name in (*good, "+12025550123", "call 12025550123", "a12025550123", "x" * 65, "a\nb"):
        metrics.turn_answered("twilio", name, 0.1)
    for number in range(MOST_MODELS + 10):
        metrics.model_failed(f"m{number}")
    metrics.call_started("a carrier that isn't one", "outbound")
    text = metrics.text().decode()
    models = set(re.findall(r'model="([^"]*)"', text))
    assert {*good, "other"} < models
    assert len(models) == MOST_MODELS + 1
    assert "12025550123" not in text
    assert 'voiceapi_calls_started_total{carrier="other",direction="outbound"} 1.0' in text


def test_a_disposition_of_a_workflow_is_no_label(service: Service) -> None:
    object.__setattr__(service, "metrics", metrics := PrometheusMetrics())
    for disposition in ("Wants a quote", "busy", None):
        run = Run(id=7, workflow_id=1, mode="twilio", call_type="inbound", disposition=disposition, duration=1.0)
        note_end(service, run)
    assert set(re.findall(r'disposition="([^"]*)"', metrics.text().decode())) == {"busy", "other"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"X-API-Key": KEY}, 401),
        ({"Authorization": f"Bearer {KEY}"}, 401),
        ({"Authorization": f"Basic {METRICS_KEY}"}, 401),
        ({"Authorization": "Bearer é"}, 401),
        ({"X-API-Key": METRICS_KEY}, 200),
        (READER, 200),
    ],
)
def test_only_the_key_of_the_metrics_reads_them(measured: Flask, headers: dict[str, str], status: int) -> None:
    for path in ("/metrics", "/metrics/"):
        answer = measured.test_client().get(path, headers=headers)
        assert answer.status_code == status
        if status == 401:
            assert answer.get_json() == {"detail": "Send VOICEAPI_METRICS_KEY as Authorization: Bearer or as X-API-Key"}


def test_it_is_no_key_of_the_api(measured: Flask) -> None:
    assert measured.test_client().get(f"{API}/workflow/fetch", headers=READER).status_code == 401


def test_too_many_wrong_keys_are_refused_and_the_right_one_is_not(measured: Flask) -> None:
    client = measured.test_client()
    wrong = {"headers": {"X-API-Key": "wrong"}, "environ_base": {"REMOTE_ADDR": "192.0.2.7"}}
    statuses = [client.get("/metrics", **wrong).status_code for _ in range(WRONG_KEYS_A_MINUTE + 1)]  # type: ignore[arg-type]
    assert (statuses[0], statuses[-1]) == (401, 429)
    right = client.get("/metrics", headers=READER, environ_base={"REMOTE_ADDR": "192.0.2.7"})
    assert right.status_code == 200


def test_without_its_key_there_are_none_and_nothing_is_counted(app: Flask) -> None:
    assert app.extensions["voiceapi"].metrics is None
    assert app.test_client().get("/metrics", headers=READER).status_code == 404


def test_without_the_library_the_answer_says_what_to_install(
    tmp_path: Path,
    database_at: Callable[[Path], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    given = {"VOICEAPI_DATABASE": database_at(tmp_path / "a.db"), "VOICEAPI_API_KEY": KEY}
    app = create_app({**given, "VOICEAPI_METRICS_KEY": METRICS_KEY})
    detail = "The metrics need prometheus-client, which isn't installed: pip install prometheus-client."
    assert capsys.readouterr().err == f"{detail}\n"
    assert app.extensions["voiceapi"].metrics is None
    answer = app.test_client().get("/metrics", headers=READER)
    assert (answer.status_code, answer.get_json()) == (501, {"detail": detail})
    assert app.test_client().get("/metrics").status_code == 401
    app.extensions["voiceapi"].close()


def test_two_apps_do_not_mix_and_a_prefix_counts(
    measured: Flask, tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    host = Flask("host")
    host.config |= {
        "VOICEAPI_DATABASE": database_at(tmp_path / "b.db"),
        "VOICEAPI_API_KEY": KEY,
        "VOICEAPI_METRICS_KEY": METRICS_KEY,
    }
    VoiceAPI(host, url_prefix="/voice")
    host.extensions["voiceapi"].metrics.call_started("vonage", "inbound")
    assert samples(host, "/voice/metrics")["voiceapi_calls_started_total vonage inbound"] == 1
    assert "voiceapi_calls_started_total vonage inbound" not in samples(measured)
    assert host.test_client().get("/metrics", headers=READER).status_code == 404
    host.extensions["voiceapi"].close()


@pytest.mark.long
def test_a_start_without_metrics_imports_no_library(tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    import subprocess

    script = f"""
import sys
from voiceapi import create_app
create_app({{"VOICEAPI_DATABASE": {database_at(tmp_path / "c.db")!r}, "VOICEAPI_API_KEY": {KEY!r}}})
print("prometheus_client" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
