from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flask.testing import FlaskClient

import voiceapi
from voiceapi import create_app
from voiceapi.api import openapi

HEALTH = "/api/v1/health"


def healthy(origin: str) -> dict[str, object]:
    return {
        "status": "ok",
        "version": voiceapi.__version__,
        "backend_api_endpoint": origin,
        "tunnel_url": None,
        "deployment_mode": "oss",
        "auth_provider": "local",
        "turn_enabled": False,
        "force_turn_relay": False,
        "signup_enabled": False,
        "stack_project_id": None,
        "stack_publishable_client_key": None,
    }


@pytest.mark.parametrize("headers", [{}, {"X-API-Key": "wrong"}, {"Authorization": "Bearer wrong"}])
def test_health_needs_no_key(bare: FlaskClient, headers: dict[str, str]) -> None:
    answer = bare.get(HEALTH, headers=headers)
    assert (answer.status_code, answer.get_json()) == (200, healthy("http://localhost"))
    assert answer.content_type == "application/json"


def test_a_service_of_its_own_answers_at_the_root_too(bare: FlaskClient, client: FlaskClient) -> None:
    for path in ("/health", "/health/"):
        assert bare.get(path).get_json() == healthy("http://localhost")
    assert bare.get("/health/ready").get_json() == client.get(f"{HEALTH}/ready").get_json()
    assert (bare.post("/health").status_code, bare.get("/health/x").get_json()) == (405, {"detail": "Not Found"})


@pytest.mark.parametrize(
    ("settings", "origin"),
    [
        ({"VOICEAPI_PUBLIC_URL": "https://voice.example.org/"}, "https://voice.example.org"),
        ({"VOICEAPI_HOST": "192.0.2.7", "VOICEAPI_PORT": "9000"}, "http://localhost"),
    ],
)
def test_health_names_the_instances_own_origin(
    tmp_path: Path, database_at: Callable[..., str], settings: dict[str, str], origin: str
) -> None:
    app = create_app(
        {"VOICEAPI_DATABASE": database_at(tmp_path / "other.db"), "VOICEAPI_API_KEY": "test-key-0123456789", **settings}
    )
    assert app.test_client().get(HEALTH).get_json() == healthy(origin)
    app.extensions["voiceapi"].close()


def test_health_by_head_has_no_body(bare: FlaskClient) -> None:
    answer = bare.head(HEALTH)
    assert (answer.status_code, answer.data) == (200, b"")


def test_the_document_is_made_once_however_many_ask_for_it(
    tmp_path: Path, database_at: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a quarter of a second, for anybody: threads that all made it would have no time for others."""
    made: list[str] = []

    def document(prefix: str) -> dict[str, str]:
        made.append(prefix)
        time.sleep(0.05)
        return {"openapi": "3.1.0"}

    monkeypatch.setattr(openapi, "document", document)
    app = create_app(
        {"VOICEAPI_DATABASE": database_at(tmp_path / "other.db"), "VOICEAPI_API_KEY": "test-key-0123456789"}
    )
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: app.test_client().get("/api/v1/openapi.json").get_json(), range(4)))
    app.extensions["voiceapi"].close()
    assert (answers, made) == ([{"openapi": "3.1.0"}] * 4, [""])
