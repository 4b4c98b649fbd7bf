from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.store import runs
from voiceapi.store.campaigns import Upload
from voiceapi.store.organizations import Organization
from voiceapi.store.runs import Run, RunEvent
from voiceapi.store.workflows import Workflow

PRESIGN = "/api/v1/s3/presigned-upload-url"
SIGNED = "/api/v1/s3/signed-url"
CONTACTS = b"phone_number,name\n+12025550101,Ann\n"
LARGEST = 10 * 1024 * 1024
CSV = {"content-type": "text/csv"}
UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def presign(client: FlaskClient, **body: Any) -> dict[str, Any]:
    answer = client.post(PRESIGN, json={"file_name": "list.csv", "file_size": 30, **body})
    assert answer.status_code == 200
    return dict(answer.get_json())


def path(url: str) -> str:
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.query) == ("http", "localhost", "")
    return parts.path


def upload(client: FlaskClient, bare: FlaskClient, content: bytes = CONTACTS) -> str:
    slot = presign(client)
    assert bare.put(path(slot["upload_url"]), data=content, headers=CSV).status_code == 200
    return str(slot["file_key"])


def signed(client: FlaskClient, key: str, **query: Any) -> str:
    answer = client.get(SIGNED, query_string={"key": key, **query})
    assert answer.status_code == 200
    return path(answer.get_json()["url"])


def test_an_upload_takes_an_address_and_no_key(client: FlaskClient, bare: FlaskClient) -> None:
    slot = presign(client, content_type="text/csv")
    key = slot["file_key"]
    assert slot == {"upload_url": slot["upload_url"], "file_key": key, "expires_in": 900}
    assert re.fullmatch(f"campaigns/1/{UUID}_list\\.csv", key)
    answer = bare.put(path(slot["upload_url"]), data=CONTACTS, headers=CSV)
    assert (answer.status_code, answer.get_json()) == (200, {"file_key": key, "file_size": len(CONTACTS)})


@pytest.mark.parametrize(
    ("file_name", "kept"),
    [
        ("list.csv", "list.csv"),
        ("Spring list (2).csv", "Spring_list__2_.csv"),
        ("../../etc/x.csv", ".._.._etc_x.csv"),
        ("Zoë.csv", "Zo_.csv"),
        ("a" * 500 + ".csv", "a" * 96 + ".csv"),
    ],
)
def test_the_key_keeps_what_is_safe_of_the_name(client: FlaskClient, file_name: str, kept: str) -> None:
    assert re.fullmatch(f"campaigns/1/{UUID}_{re.escape(kept)}", presign(client, file_name=file_name)["file_key"])


@pytest.mark.parametrize(
    ("change", "item"),
    [
        (
            {"file_name": "list.CSV"},
            {
                "loc": ["body", "file_name"],
                "msg": r"String should match pattern '.*\.csv$'",
                "type": "string_pattern_mismatch",
            },
        ),
        (
            {"file_size": 0},
            {"loc": ["body", "file_size"], "msg": "Input should be greater than 0", "type": "greater_than"},
        ),
        (
            {"file_size": LARGEST + 1},
            {
                "loc": ["body", "file_size"],
                "msg": "Input should be less than or equal to 10485760",
                "type": "less_than_equal",
            },
        ),
    ],
)
def test_an_address_is_for_a_csv_within_the_limits(client: FlaskClient, change: dict[str, Any], item: Any) -> None:
    answer = client.post(PRESIGN, json={"file_name": "list.csv", "file_size": 30, **change})
    assert (answer.status_code, answer.get_json()) == (422, {"detail": [item]})


def test_addresses_are_given_out_to_key_holders(bare: FlaskClient) -> None:
    for answer in (bare.post(PRESIGN, json={}), bare.get(SIGNED)):
        assert (answer.status_code, answer.get_json()) == (401, {"detail": "Authorization header required"})


@pytest.mark.parametrize("token", ["nonsense", "W10.x", "é", "a.b.c"])
def test_a_made_up_address_leads_nowhere(bare: FlaskClient, token: str) -> None:
    answer = bare.put(f"/api/v1/s3/files/{token}", data=CONTACTS, headers=CSV)
    assert (answer.status_code, answer.get_json()) == (
        403,
        {"detail": "The upload address is not valid, or has expired"},
    )
    answer = bare.get(f"/api/v1/s3/files/{token}")
    assert (answer.status_code, answer.get_json()) == (
        403,
        {"detail": "The download address is not valid, or has expired"},
    )


def test_an_address_works_one_way_only(client: FlaskClient, bare: FlaskClient) -> None:
    slot = presign(client)
    assert bare.get(path(slot["upload_url"])).status_code == 403
    assert bare.put(signed(client, slot["file_key"]), data=b"x", headers=CSV).status_code == 403


def test_an_address_expires(app: Flask, bare: FlaskClient) -> None:
    vault = app.extensions["voiceapi"].vault
    payload = {"organization": 1, "key": "campaigns/1/x.csv", "inline": False}
    statuses = []
    for seconds in (-1, 60):
        until = (datetime.now(UTC) + timedelta(seconds=seconds)).timestamp()
        url = f"/api/v1/s3/files/{vault.sign(payload, 'put a file', until)}"
        statuses.append(bare.put(url, data=CONTACTS, headers=CSV).status_code)
        url = f"/api/v1/s3/files/{vault.sign(payload, 'get a file', until)}"
        statuses.append(bare.get(url).status_code)
    assert statuses == [403, 403, 200, 200]


def test_an_upload_may_be_repeated(client: FlaskClient, bare: FlaskClient) -> None:
    slot = presign(client)
    for content in (b"first", b"second"):
        assert bare.put(path(slot["upload_url"]), data=content, headers=CSV).status_code == 200
    assert bare.get(signed(client, slot["file_key"])).data == b"second"


@pytest.mark.usefixtures("db")
def test_ten_mebibytes_and_not_a_byte_more(client: FlaskClient, bare: FlaskClient) -> None:
    url = path(presign(client)["upload_url"])
    answer = bare.put(url, data=b"x" * (LARGEST + 1), headers=CSV)
    assert (answer.status_code, answer.get_json()) == (
        413,
        {"detail": "A contact list may have at most 10485760 bytes."},
    )
    assert Upload.select().count() == 0
    assert bare.put(url, data=b"x" * LARGEST, headers=CSV).status_code == 200


def test_the_limit_of_other_bodies_stays(client: FlaskClient) -> None:
    name = "x" * 2 * 1024 * 1024 + ".csv"
    assert client.post(PRESIGN, json={"file_name": name, "file_size": 30}).status_code == 413


@pytest.mark.parametrize(("inline", "disposition"), [("false", "attachment"), ("true", "inline")])
def test_a_contact_list_is_fetched_without_a_key(
    client: FlaskClient, bare: FlaskClient, inline: str, disposition: str
) -> None:
    key = upload(client, bare)
    answer = bare.get(signed(client, key, inline=inline))
    assert answer.data == CONTACTS
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.headers["Content-Disposition"] == f"{disposition}; filename={key.rpartition('/')[2]}"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_address_says_how_long_it_is_good(client: FlaskClient) -> None:
    key = presign(client)["file_key"]
    for query, seconds in (({}, 3600), ({"expires_in": 60}, 60), ({"storage_backend": "minio"}, 3600)):
        answer = client.get(SIGNED, query_string={"key": key, **query}).get_json()
        assert answer == {"url": answer["url"], "expires_in": seconds}


def test_a_file_that_never_came_is_missing(client: FlaskClient, bare: FlaskClient) -> None:
    answer = bare.get(signed(client, presign(client)["file_key"]))
    assert (answer.status_code, answer.get_json()) == (404, {"detail": "File not found"})


@pytest.mark.parametrize(
    ("query", "status", "detail"),
    [
        ({"key": ""}, 400, "Invalid key format"),
        ({"key": "campaigns/1/"}, 400, "Invalid key format"),
        ({"key": "campaigns/1/../2/x.csv"}, 400, "Invalid key format"),
        ({"key": "voice.db"}, 400, "Invalid key format"),
        ({"key": "campaigns/99/x.csv"}, 404, "File not found"),
        ({"key": "transcripts/99.txt"}, 404, "File not found"),
        ({}, 422, [{"loc": ["query", "key"], "msg": "Field required", "type": "missing"}]),
        (
            {"key": "campaigns/1/x.csv", "expires_in": 0},
            422,
            [
                {
                    "loc": ["query", "expires_in"],
                    "msg": "Input should be greater than or equal to 1",
                    "type": "greater_than_equal",
                }
            ],
        ),
    ],
)
def test_no_address_for_other_files(client: FlaskClient, query: dict[str, Any], status: int, detail: Any) -> None:
    answer = client.get(SIGNED, query_string=query)
    assert (answer.status_code, answer.get_json()) == (status, {"detail": detail})


def test_files_of_another_organization_stay_there(
    client: FlaskClient, stranger: FlaskClient, bare: FlaskClient
) -> None:
    answer = stranger.get(SIGNED, query_string={"key": upload(client, bare)})
    assert (answer.status_code, answer.get_json()) == (404, {"detail": "File not found"})


@pytest.mark.usefixtures("db")
def test_a_transcript_is_fetched_by_its_key(client: FlaskClient, stranger: FlaskClient, bare: FlaskClient) -> None:
    workflow = Workflow.create(organization=Organization.get(name="default"), workflow_uuid="w", name="w")
    run = runs.create(workflow, name="r", mode="textchat", token="t")
    key = f"transcripts/{run.id}.txt"
    url = signed(client, key)
    assert (bare.get(url).status_code, bare.get(url).get_json()) == (404, {"detail": "File not found"})

    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    RunEvent.create(run=run, turn=1, type="rtf-bot-text", payload={"text": "Zoë?"}, at=moment)
    Run.update(has_transcript=True).execute()
    answer = bare.get(url)
    assert answer.text == "[2026-01-02T03:04:05.000Z] assistant: Zoë?\n"
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Disposition"] == f"attachment; filename={run.id}.txt"

    refused = stranger.get(SIGNED, query_string={"key": key})
    assert (refused.status_code, refused.get_json()) == (404, {"detail": "File not found"})


def test_the_address_is_where_clients_reach_the_service(tmp_path: Any, database_at: Callable[..., str]) -> None:
    app = create_app(
        {
            "VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"),
            "VOICEAPI_API_KEY": "test-key-0123456789",
            "VOICEAPI_PUBLIC_URL": "https://voice.example.org",
        }
    )
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = "test-key-0123456789"
    assert presign(client)["upload_url"].startswith("https://voice.example.org/api/v1/s3/files/")
    app.extensions["voiceapi"].close()
