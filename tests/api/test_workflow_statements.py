"""How many statements requests on workflows cost: none that the request doesn't need."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient
from tracing import tracing

from voiceapi.engine.validation.outline import Outline
from voiceapi.organizations import api_keys, credentials
from voiceapi.service import Service
from voiceapi.tools import stored

API = "/api/v1"
STATEMENT = re.compile(r'(SELECT|INSERT|UPDATE|DELETE)\b.*?\b(?:FROM|INTO|UPDATE) "?(\w+)', re.DOTALL)


@pytest.fixture
def statements(service: Service, db: None) -> Callable[[Callable[[], Any]], list[str]]:
    """Makes a request, and returns its statements, each as its verb and its table."""
    connection = service.store.database.connection()

    def trace(request: Callable[[], Any]) -> list[str]:
        executed: list[str] = []
        with tracing(connection, executed.append):
            request()
        return [f"{found[1]} {found[2]}" for each in executed if (found := STATEMENT.match(each))]

    return trace


def test_a_workflow_is_created_by_an_insert_for_each_record(
    service: Service, client: FlaskClient, workflow: Callable[..., Any], statements: Callable[..., list[str]]
) -> None:
    """And PostgreSQL is asked for the count of its runs, which SQLite keeps with the workflow."""
    workflow()
    records = ["INSERT workflow", "INSERT workflow_version"]
    count = ["SELECT workflow_count"] if service.store.path is None else []
    assert statements(workflow) == ["SELECT api_key", *records, *count]
    assert statements(lambda: workflow(path="mine")) == [
        "SELECT api_key",
        "SELECT trigger_path",
        *records,
        "INSERT trigger_path",
        *count,
    ]


def test_an_unknown_trigger_costs_the_key_and_one_look_up(
    client: FlaskClient, service: Service, statements: Callable[..., list[str]]
) -> None:
    def request() -> None:
        answer = client.post(f"{API}/public/agent/unknown", json={"phone_number": "+12025550123"})
        assert answer.status_code == 404

    assert statements(request) == ["SELECT api_key", "SELECT workflow"]


def test_validation_asks_only_for_what_the_definition_names(
    client: FlaskClient,
    service: Service,
    workflow: Callable[..., Any],
    statements: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of tools, documents and credentials, one query each at most; and the definition is walked over once."""
    walks = []
    monkeypatch.setattr(Outline, "of", lambda definition, of=Outline.of: walks.append(definition) or of(definition))
    organization = api_keys.require_organization(api_keys.DEFAULT_ORGANIZATION).id
    fields = {"name": "Sums", "description": None, "icon": None, "icon_color": None}
    tool = stored.create(service.vault, organization, {**fields, "definition": {"type": "calculator"}}).tool_uuid
    credential = credentials.create(service.vault, organization, "CRM", None, "bearer_token", {"token": "s3cret"}).uuid
    plain, naming = (
        workflow()["id"],
        workflow(path="mine", tool_uuids=[tool], document_uuids=["gone"], pre_call_fetch_credential_uuid=credential)[
            "id"
        ],
    )

    def validate(workflow_id: int) -> None:
        found = client.post(f"{API}/workflow/{workflow_id}/validate").get_json()
        assert (found["is_valid"], len(found["warnings"])) == (True, 0 if workflow_id == plain else 3)

    walks.clear()
    least = ["SELECT api_key", "SELECT workflow", "SELECT workflow_version", "SELECT organization"]
    assert statements(lambda: validate(plain)) == least
    assert len(walks) == 1
    more = ["SELECT credential", "SELECT document", "SELECT tool", "SELECT trigger_path"]
    assert sorted(statements(lambda: validate(naming))) == sorted([*least, *more])
    assert len(walks) == 2
