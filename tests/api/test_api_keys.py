from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.store.organizations import ApiKey

KEYS = "/api/v1/user/api-keys"
NOT_FOUND = {"detail": "API key not found"}
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")


def made(client: FlaskClient, name: str = "ci") -> dict[str, Any]:
    answer = client.post(KEYS, json={"name": name})
    assert answer.status_code == 200
    return dict(answer.get_json())


def record(client: FlaskClient, key_id: int) -> dict[str, Any]:
    listed = client.get(f"{KEYS}?include_archived=true").get_json()
    return next(key for key in listed if key["id"] == key_id)


def status_of(app: Flask, key: str, header: str = "X-API-Key") -> int:
    return app.test_client().get(KEYS, headers={header: key}).status_code


def test_a_new_key_is_shown_once_and_works(app: Flask, client: FlaskClient) -> None:
    key = made(client, "ci")
    raw = key["api_key"]
    assert key == {
        "id": 2,
        "name": "ci",
        "key_prefix": raw[:8],
        "api_key": raw,
        "created_at": key["created_at"],
    }
    assert re.fullmatch(r"va_[A-Za-z0-9_-]{43}", raw)
    assert INSTANT.fullmatch(key["created_at"])
    assert status_of(app, raw) == 200
    assert status_of(app, f"Bearer {raw}", "Authorization") == 200
    assert raw not in client.get(KEYS).text


@pytest.mark.usefixtures("db")
def test_the_key_itself_is_stored_nowhere(client: FlaskClient) -> None:
    raw = made(client)["api_key"]
    columns = ApiKey.select().dicts()
    assert not any(raw in str(row) for row in columns)


def test_listing_shows_active_keys_and_archived_ones_when_asked(client: FlaskClient) -> None:
    kept, gone = made(client, "kept"), made(client, "gone")
    client.delete(f"{KEYS}/{gone['id']}")
    names = [key["name"] for key in client.get(KEYS).get_json()]
    assert names == ["VOICEAPI_API_KEY", "kept"]
    every = client.get(f"{KEYS}?include_archived=true").get_json()
    assert [(key["name"], key["is_active"], key["archived_at"] is None) for key in every] == [
        ("VOICEAPI_API_KEY", True, True),
        ("kept", True, True),
        ("gone", False, False),
    ]
    assert every[1] == {
        "id": kept["id"],
        "name": "kept",
        "key_prefix": kept["key_prefix"],
        "is_active": True,
        "created_at": kept["created_at"],
        "last_used_at": None,
        "archived_at": None,
    }


def test_last_use_is_recorded(app: Flask, client: FlaskClient, wait_for: Callable[..., Any]) -> None:
    key = made(client)
    status_of(app, key["api_key"])
    used = wait_for(lambda: record(client, key["id"])["last_used_at"])
    assert INSTANT.fullmatch(used)
    assert used > key["created_at"]


def test_an_archived_key_is_refused_until_it_is_reactivated(app: Flask, client: FlaskClient) -> None:
    key = made(client)
    answer = client.delete(f"{KEYS}/{key['id']}")
    assert (answer.status_code, answer.get_json()) == (
        200,
        {"success": True, "message": "API key archived successfully"},
    )
    refused = app.test_client().get(KEYS, headers={"X-API-Key": key["api_key"]})
    assert (refused.status_code, refused.get_json()) == (401, {"detail": "Invalid or expired API key"})

    answer = client.put(f"{KEYS}/{key['id']}/reactivate")
    assert (answer.status_code, answer.get_json()) == (
        200,
        {
            "id": key["id"],
            "name": "ci",
            "key_prefix": key["key_prefix"],
            "is_active": True,
            "created_at": key["created_at"],
            "last_used_at": None,
            "archived_at": None,
            "success": True,
            "message": "API key reactivated successfully",
        },
    )
    assert status_of(app, key["api_key"]) == 200


def test_reactivating_an_active_key_changes_nothing(client: FlaskClient) -> None:
    key = made(client)
    before = record(client, key["id"])
    for _ in range(2):
        answer = client.put(f"{KEYS}/{key['id']}/reactivate")
        assert answer.status_code == 200
        assert answer.get_json().items() >= before.items()


def test_archiving_again_moves_archived_at(client: FlaskClient) -> None:
    key = made(client)
    client.delete(f"{KEYS}/{key['id']}")
    first = record(client, key["id"])["archived_at"]
    assert client.delete(f"{KEYS}/{key['id']}").status_code == 200
    assert record(client, key["id"])["archived_at"] > first


def test_a_key_may_archive_itself(app: Flask, client: FlaskClient) -> None:
    key = made(client)
    own = app.test_client()
    own.environ_base["HTTP_X_API_KEY"] = key["api_key"]
    assert own.delete(f"{KEYS}/{key['id']}").status_code == 200
    assert own.get(KEYS).status_code == 401
    assert client.get(KEYS).status_code == 200


def test_an_empty_name_and_a_taken_one_are_fine(client: FlaskClient) -> None:
    assert [made(client, name)["name"] for name in ("", "ci", "ci")] == ["", "ci", "ci"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("delete", "{id}"), ("put", "{id}/reactivate")],
)
def test_keys_of_others_and_missing_ones_are_404(
    client: FlaskClient, stranger: FlaskClient, method: str, path: str
) -> None:
    theirs = client.get(KEYS).get_json()[0]["id"]
    for key_id in (theirs, 999_999, 2**62, -1, 0):
        answer = stranger.open(f"{KEYS}/{path.format(id=key_id)}", method=method)
        assert (answer.status_code, answer.get_json()) == (404, NOT_FOUND)
    assert client.get(KEYS).status_code == 200


def test_keys_are_listed_per_organization(client: FlaskClient, stranger: FlaskClient) -> None:
    assert [key["name"] for key in stranger.get(KEYS).get_json()] == ["theirs"]
    assert [key["name"] for key in client.get(KEYS).get_json()] == ["VOICEAPI_API_KEY"]


@pytest.mark.parametrize(
    ("method", "path", "body", "item"),
    [
        ("post", "", {}, {"loc": ["body", "name"], "msg": "Field required", "type": "missing"}),
        (
            "post",
            "",
            {"name": 5},
            {"loc": ["body", "name"], "msg": "Input should be a valid string", "type": "string_type"},
        ),
        (
            "get",
            "?include_archived=perhaps",
            None,
            {
                "loc": ["query", "include_archived"],
                "msg": "Input should be a valid boolean, unable to interpret input",
                "type": "bool_parsing",
            },
        ),
        (
            "put",
            "/abc/reactivate",
            None,
            {
                "loc": ["path", "api_key_id"],
                "msg": "Input should be a valid integer, unable to parse string as an integer",
                "type": "int_parsing",
            },
        ),
        (
            "delete",
            "/1.5",
            None,
            {
                "loc": ["path", "api_key_id"],
                "msg": "Input should be a valid integer, unable to parse string as an integer",
                "type": "int_parsing",
            },
        ),
    ],
)
def test_what_is_refused(client: FlaskClient, method: str, path: str, body: Any, item: dict[str, Any]) -> None:
    answer = client.open(KEYS + path, method=method, json=body)
    assert (answer.status_code, answer.get_json()) == (422, {"detail": [item]})


@pytest.mark.parametrize(
    ("headers", "detail"),
    [
        ({}, "Authorization header required"),
        ({"X-API-Key": "va_unknown"}, "Invalid or expired API key"),
        ({"Authorization": "Bearer "}, "Invalid authorization token"),
        ({"X-API-Key": "va_unknown", "Authorization": "Bearer test-key-0123456789"}, "Invalid or expired API key"),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("get", ""), ("post", ""), ("delete", "/1"), ("put", "/1/reactivate"), ("put", "/abc/reactivate")],
)
def test_without_a_valid_key(bare: FlaskClient, method: str, path: str, headers: dict[str, str], detail: str) -> None:
    answer = bare.open(KEYS + path, method=method, headers=headers)
    assert (answer.status_code, answer.get_json()) == (401, {"detail": detail})


def test_unknown_fields_are_named(client: FlaskClient) -> None:
    answer = client.post(KEYS, json={"name": "ci", "scopes": ["all"], "a\nb": 1})
    assert answer.status_code == 200
    assert answer.headers["Warning"] == '199 voiceapi "fields not known here and passed over: a%0Ab, scopes"'
