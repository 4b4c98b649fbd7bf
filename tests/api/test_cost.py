"""What a request costs, counted: statements, layers that Flask calls, values that are decoded."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from tracing import tracing

from voiceapi.store import fields

API = "/api/v1"


@pytest.fixture
def statements(app: Flask) -> Iterator[list[str]]:
    """The statements of this thread's requests, each up to its table."""
    found: list[str] = []
    store = app.extensions["voiceapi"].store
    with store.session():
        connection = store.database.connection()
    with tracing(connection, lambda text: found.append(text.split(" WHERE ")[0].split(" SET ")[0])):
        yield found


@pytest.fixture
def begin(app: Flask) -> list[str | Callable[[str], bool]]:
    """The statements that begin a transaction."""
    if app.extensions["voiceapi"].store.path is None:
        return [lambda text: text.startswith("BEGIN; SELECT set_config")]
    return ["PRAGMA busy_timeout = 0", "BEGIN IMMEDIATE", "PRAGMA busy_timeout = 5000"]


def read(table: str) -> Callable[[str], bool]:
    return lambda text: text.startswith("SELECT ") and text.endswith(f' FROM "{table}"')


def matches(found: list[str], expected: list[str | Callable[[str], bool]]) -> bool:
    return len(found) == len(expected) and all(
        each == text if isinstance(each, str) else each(text) for text, each in zip(found, expected, strict=True)
    )


def test_health_asks_nothing_of_the_database(bare: FlaskClient, statements: list[str]) -> None:
    assert bare.get(f"{API}/health").status_code == 200
    assert statements == []


def test_a_workflow_is_three_reads(
    app: Flask, client: FlaskClient, workflow: Callable[..., Any], statements: list[str]
) -> None:
    """On PostgreSQL its runs are counted in a table of their own, because calls begin side by side."""
    is_counted_apart = app.extensions["voiceapi"].store.path is None
    expected = [read("api_key"), read("workflow"), read("workflow_version")]
    expected += [lambda text: text.endswith(" FROM workflow_count")] if is_counted_apart else []
    url = f"{API}/workflow/fetch/{workflow()['id']}"
    statements.clear()
    for headers in ({}, {"If-None-Match": client.get(url).headers["ETag"]}):
        statements.clear()
        assert client.get(url, headers=headers).status_code in (200, 304)
        assert matches(statements, expected), statements


def test_a_key_is_reactivated_by_one_read_and_one_write(
    client: FlaskClient, statements: list[str], begin: list[Any]
) -> None:
    statements.clear()
    assert client.put(f"{API}/user/api-keys/1/reactivate").status_code == 200
    expected = [read("api_key"), *begin, read("api_key"), 'UPDATE "api_key"', "COMMIT"]
    assert matches(statements, expected), statements


def test_a_default_caller_is_set_by_one_read_and_at_most_two_writes(
    client: FlaskClient, statements: list[str], begin: list[Any]
) -> None:
    numbers = f"{API}/organizations/telephony-configs/1/phone-numbers"
    other = client.post(numbers, json={"address": "+12025550111"}).get_json()["id"]
    for cleared in (["UPDATE phone_number"], []):
        statements.clear()
        answer = client.post(f"{numbers}/{other}/set-default-caller")
        assert answer.get_json()["is_default_caller_id"] is True
        expected = [read("api_key"), *begin, read("phone_number"), *cleared, 'UPDATE "phone_number"', "COMMIT"]
        assert matches(statements, expected), statements
    listed = client.get(numbers).get_json()["phone_numbers"]
    assert [number["id"] for number in listed if number["is_default_caller_id"]] == [other]


def test_what_a_campaigns_page_asks_for_costs_few_statements(
    client: FlaskClient, workflow: Callable[..., Any], statements: list[str]
) -> None:
    """However many rows a list has, and however many calls were made."""
    form = {"name": "Spring", "workflow_id": str(workflow()["id"])}
    contacts = b"phone_number\n" + b"".join(b"+1202555%04d\n" % row for row in range(300))

    def sent() -> dict[str, Any]:
        return {**form, "file": (io.BytesIO(contacts), "contacts.csv")}

    made = client.post(f"{API}/campaign/create/csv", data=sent()).get_json()["id"]
    statements.clear()
    assert client.post(f"{API}/campaign/check/csv", data=sent()).get_json()["rows"] == 300
    checked = ("api_key", "workflow", "workflow_version", "telephony_configuration", "phone_number")
    assert [text for text in statements if not any(read(table)(text) for table in checked)] == []
    assert len(statements) <= 6, statements
    statements.clear()
    assert client.get(f"{API}/campaign/{made}/outcomes").status_code == 200
    assert len(statements) == 4, statements


@pytest.mark.parametrize(("path", "layers"), [("health", 4), ("workflow/fetch/1", 5), ("node-types", 5)])
def test_flask_calls_few_layers(
    app: Flask,
    client: FlaskClient,
    workflow: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    layers: int,
) -> None:
    """Our hook of the whole app, opening and closing the session, the key, and the endpoint."""
    workflow()
    called: list[Any] = []
    ensure_sync = app.ensure_sync

    def count(func: Any) -> Any:
        called.extend([func] if str(func.__module__).startswith("voiceapi.") else [])
        return ensure_sync(func)

    monkeypatch.setattr(app, "ensure_sync", count)
    assert client.get(f"{API}/{path}").status_code == 200
    assert len(called) == layers, called


def test_a_definition_is_decoded_only_if_it_holds_a_secret(
    client: FlaskClient, talk: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[str] = []
    decode = fields.decode
    monkeypatch.setattr(fields, "decode", lambda text: decoded.append(text) or decode(text))
    definition = talk(prompt="Hello é 😀.")
    body = {"name": "Agent", "workflow_definition": definition}
    created = client.post(f"{API}/workflow/create/definition", json=body).get_json()
    decoded.clear()
    answer = client.get(f"{API}/workflow/fetch/{created['id']}")

    assert decoded == []
    assert answer.get_json() == created
    assert "Hello é 😀." in answer.get_data(as_text=True)
    hook = {"id": "hook", "type": "webhook", "position": {"x": 0, "y": 0}}
    hook["data"] = {"name": "Hook", "endpoint_url": "https://me:hunter2@example.com/", "custom_headers": []}
    body["workflow_definition"] = {**definition, "nodes": [*definition["nodes"], hook]}
    url = f"{API}/workflow/{created['id']}"
    assert client.put(url, json=body).status_code == 200
    shown = client.get(f"{API}/workflow/fetch/{created['id']}")
    assert "hunter2" not in shown.text
    assert "https://me:********@example.com/" in shown.text
