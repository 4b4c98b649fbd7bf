"""Credentials: stored encrypted, never shown, and the header of each type."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.organizations import api_keys, credentials
from voiceapi.security import Vault
from voiceapi.service import Service
from voiceapi.store.base import require
from voiceapi.store.database import execute
from voiceapi.store.organizations import Credential, Organization

URL = "/api/v1/credentials/"
TOKEN = {"token": "s3cret-token"}
NOT_FOUND = (404, {"detail": "Credential not found"})


def create(client: FlaskClient, name: str = "CRM", type: str = "bearer_token", data: Any = TOKEN) -> Any:
    body = {"name": name, "description": "for tests", "credential_type": type, "credential_data": data}
    answer = client.post(URL, json=body)
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def said(answer: Any) -> tuple[int, Any]:
    return answer.status_code, answer.get_json()


def owner() -> int:
    return int(api_keys.require_organization("default").id)


def test_a_credential_is_made_shown_listed_changed_and_deleted(client: FlaskClient) -> None:
    made = create(client)
    assert made == {
        "uuid": made["uuid"],
        "name": "CRM",
        "description": "for tests",
        "credential_type": "bearer_token",
        "created_at": made["created_at"],
        "updated_at": None,
    }
    first = create(client, "Alpha", "none", {})
    assert client.get(URL).get_json() == [first, made]
    changed = client.put(f"{URL}{made['uuid']}", json={"name": "Other CRM", "description": None}).get_json()
    assert changed == {**made, "name": "Other CRM", "updated_at": changed["updated_at"]}
    assert changed["updated_at"] > made["created_at"]
    assert client.get(f"{URL}{made['uuid']}").get_json() == changed
    assert said(client.delete(f"{URL}{made['uuid']}")) == (200, {"status": "deleted", "uuid": made["uuid"]})
    assert said(client.get(f"{URL}{made['uuid']}")) == NOT_FOUND
    assert client.get(URL).get_json() == [first]


def test_no_secret_is_stored_in_clear_nor_at_all_once_it_is_deleted(client: FlaskClient, db: None) -> None:
    made = create(client)
    (stored,) = execute("SELECT data FROM credential").fetchone()
    assert stored
    assert TOKEN["token"] not in stored
    client.delete(f"{URL}{made['uuid']}")
    assert execute("SELECT data FROM credential").fetchone() == (None,)


@pytest.mark.parametrize(
    ("type", "data", "header"),
    [
        ("none", {"anything": 1}, {}),
        ("bearer_token", {"token": "abc"}, {"Authorization": "Bearer abc"}),
        ("api_key", {"header_name": "X-Key", "api_key": "abc"}, {"X-Key": "abc"}),
        ("basic_auth", {"username": "Zo\u00eb", "password": "p:w"}, {"Authorization": "Basic Wm/DqzpwOnc="}),
        ("custom_header", {"header_name": "X-Tenant", "header_value": "7"}, {"X-Tenant": "7"}),
    ],
)
def test_the_header_of_each_type(
    client: FlaskClient, service: Service, db: None, type: str, data: Any, header: Any
) -> None:
    made = create(client, type=type, data=data)
    assert credentials.header(service, owner(), made["uuid"]) == header


def test_without_a_usable_credential_there_is_no_header(client: FlaskClient, service: Service, db: None) -> None:
    made = create(client)
    stranger = Organization.create(name="stranger").id
    asked = [(stranger, made["uuid"]), (owner(), "unknown"), (owner(), None), (None, made["uuid"])]
    assert [credentials.header(service, *each) for each in asked] == [{}] * 4
    record = require(Credential, "", uuid=made["uuid"])
    record.data = Vault(b"another secret, long enough to be").encrypt("{}")
    record.save()
    assert credentials.header(service, owner(), made["uuid"]) == {}
    client.delete(f"{URL}{made['uuid']}")
    assert credentials.header(service, owner(), made["uuid"]) == {}


@pytest.mark.parametrize(
    ("type", "data", "detail"),
    [
        ("api_key", {"api_key": "abc"}, "API Key credential requires 'header_name' and 'api_key' fields"),
        ("bearer_token", {}, "Bearer Token credential requires 'token' field"),
        ("bearer_token", {"token": ""}, "Bearer Token credential requires 'token' field"),
        ("bearer_token", {"token": 5}, "Bearer Token credential requires 'token' field"),
        ("basic_auth", {"username": "a"}, "Basic Auth credential requires 'username' and 'password' fields"),
        (
            "custom_header",
            {"header_name": "a"},
            "Custom Header credential requires 'header_name' and 'header_value' fields",
        ),
        (
            "api_key",
            {"header_name": "X Key", "api_key": "abc"},
            "The header_name of a credential may hold letters, digits and !#$%&'*+.^_`|~- only, and no blanks.",
        ),
        (
            "bearer_token",
            {"token": "a\r\nX-Other: b"},
            "A credential is sent as a header: it may not begin or end with a blank, hold a line break or another "
            "control character, nor a character outside Latin-1.",
        ),
    ],
)
def test_data_that_makes_no_header_is_refused(client: FlaskClient, type: str, data: Any, detail: str) -> None:
    body = {"name": "CRM", "credential_type": type, "credential_data": data}
    assert said(client.post(URL, json=body)) == (400, {"detail": detail})
    made = create(client)
    change = {"credential_type": type, "credential_data": data}
    assert said(client.put(f"{URL}{made['uuid']}", json=change)) == (400, {"detail": detail})


def test_a_new_type_needs_data_of_that_type(client: FlaskClient, service: Service, db: None) -> None:
    made = create(client)
    url = f"{URL}{made['uuid']}"
    refused = client.put(url, json={"credential_type": "api_key"})
    assert said(refused) == (400, {"detail": "API Key credential requires 'header_name' and 'api_key' fields"})
    assert client.put(url, json={"credential_data": {"token": "new"}}).status_code == 200
    assert credentials.header(service, owner(), made["uuid"]) == {"Authorization": "Bearer new"}


def test_a_name_is_taken_for_good(client: FlaskClient) -> None:
    taken = (409, {"detail": "A credential with the name 'CRM' already exists"})
    made = create(client)
    other = create(client, "Other")
    body = {"name": "CRM", "credential_type": "none", "credential_data": {}}
    assert said(client.post(URL, json=body)) == taken
    assert said(client.put(f"{URL}{other['uuid']}", json={"name": "CRM"})) == taken
    client.delete(f"{URL}{made['uuid']}")
    assert said(client.post(URL, json=body)) == taken


def test_what_is_missing_or_of_another_type(client: FlaskClient) -> None:
    types = "'none', 'api_key', 'bearer_token', 'basic_auth' or 'custom_header'"
    assert client.post(URL, json={"credential_type": "magic"}).get_json()["detail"] == [
        {"loc": ["body", "name"], "msg": "Field required", "type": "missing"},
        {"loc": ["body", "credential_type"], "msg": f"Input should be {types}", "type": "enum"},
        {"loc": ["body", "credential_data"], "msg": "Field required", "type": "missing"},
    ]


def test_a_credential_of_another_organization_is_missing(
    client: FlaskClient, bare: FlaskClient, service: Service, db: None
) -> None:
    made = create(client)
    _, key = api_keys.create(api_keys.get_or_create_organization(service, "stranger").id, "key")
    headers = {"X-API-Key": key}
    assert bare.get(URL, headers=headers).get_json() == []
    assert said(bare.get(f"{URL}{made['uuid']}", headers=headers)) == NOT_FOUND
    assert said(bare.put(f"{URL}{made['uuid']}", headers=headers, json={})) == NOT_FOUND
    assert said(bare.delete(f"{URL}{made['uuid']}", headers=headers)) == NOT_FOUND


def test_validate_warns_of_credentials_that_are_not_there(client: FlaskClient, talk: Any, workflow: Any) -> None:
    ours, deleted, unknown = create(client)["uuid"], create(client, "Old")["uuid"], "gone"
    client.delete(f"{URL}{deleted}")
    definition = talk(pre_call_fetch_credential_uuid=deleted)
    definition["nodes"] += [
        {"id": uuid, "type": "webhook", "position": {"x": 0, "y": 0}, "data": {"name": "Tell", "credential_uuid": uuid}}
        for uuid in (ours, unknown)
    ]
    found = client.post(f"/api/v1/workflow/{workflow(definition)['id']}/validate").get_json()
    without = 'There is no credential "{}"; the request is sent without one.'
    assert [(warning["id"], warning["field"], warning["message"]) for warning in found["warnings"]] == [
        ("1", "data.pre_call_fetch_credential_uuid", without.format(deleted)),
        (unknown, "data.credential_uuid", without.format(unknown)),
    ]
