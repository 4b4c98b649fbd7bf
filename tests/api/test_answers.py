"""Answers are what the endpoints return; `tests/conftest.py` checks each of them against its schema."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from marshmallow import Schema, ValidationError

from voiceapi.api.answers import json_response, json_values

API = "/api/v1"


def test_nothing_is_dumped_while_serving(
    app: Flask, client: FlaskClient, workflow: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise AssertionError("An answer is what the endpoint returns; its schema only documents it.")

    client.get(f"{API}/openapi.json")  # made once, by schemas that dump their defaults
    # The check of all answers dumps, too.
    monkeypatch.setattr(Flask, "process_response", Flask.process_response.__wrapped__)  # type: ignore[attr-defined]
    monkeypatch.setattr(Schema, "dump", fail)
    workflow(path="plain")
    listings = [rule.rule for rule in app.url_map.iter_rules() if "GET" in (rule.methods or ()) and not rule.arguments]
    answers = {path: client.get(path).status_code for path in listings if path.startswith(API)}
    assert len(answers) > 15
    assert set(answers.values()) == {200, 422}  # the one that lacks its key
    assert [path for path, status in answers.items() if status == 422] == [f"{API}/s3/signed-url"]
    called = client.post(f"{API}/public/agent/plain", json={"phone_number": "+12025550123"})
    assert called.status_code == 200
    assert client.get(f"{API}/workflow/1/runs/1").status_code == 200
    assert client.put(f"{API}/user/api-keys/1/reactivate").status_code == 200


def test_an_unknown_member_is_found(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of all answers in tests/conftest.py finds a member that the schema doesn't have."""
    leak = {"id": 1, "name": "k", "key_hash": "secret"}
    monkeypatch.setattr("voiceapi.api.organizations.api_key_answer", lambda _record: leak)
    with pytest.raises(ValidationError, match=r"'key_hash': \['Unknown field.'\]"):
        client.get(f"{API}/user/api-keys")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime(2026, 5, 1, 9, 30, tzinfo=UTC), "2026-05-01T09:30:00Z"),
        (datetime(2026, 5, 1, 9, 30, 0, 7, tzinfo=UTC), "2026-05-01T09:30:00.000007Z"),
    ],
)
def test_instants_are_utc_text(app: Flask, value: datetime, text: str) -> None:
    assert json_values({"at": [value]}) == {"at": [text]}
    with app.app_context():
        assert json_response({"at": value}).get_data(as_text=True) == f'{{"at":"{text}"}}\n'


def test_what_json_does_not_know_is_refused() -> None:
    with pytest.raises(TypeError, match="set is not a JSON value"):
        json_values({"tags": {"a"}})
