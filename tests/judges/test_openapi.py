"""Judges the OpenAPI document: that it is what the service serves, that it is sound, and that it keeps the contract."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from openapi_spec_validator import OpenAPIV31SpecValidator

from voiceapi import VoiceAPI

ROOT = Path(__file__).parents[2]
JSON = "application/json"
# The only answer without a body.
NOT_MODIFIED = "304"


def read(path: str) -> Any:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


# For each path and method of the contract that a release of ours must have: where and how its parameters are called,
# which members its body must have and may have, and which its answer has, all the way down. Left out on purpose are
# four keys of node types, which the published SDK refuses, and the credentials of Asterisk, which isn't offered.
CONTRACT: dict[str, dict[str, dict[str, list[str]]]] = read("tests/data/contract.json")
SNAPSHOT: dict[str, Any] = read("schemas/openapi.json")
OPERATIONS = [(path, method) for path, methods in CONTRACT.items() for method in methods]


@cache
def served() -> dict[tuple[str, str], dict[str, Any]]:
    """Every operation of the document, the parameters of its path included."""
    return {
        (path, method): {**operation, "parameters": item.get("parameters", []) + operation.get("parameters", [])}
        for path, item in SNAPSHOT["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return dict(SNAPSHOT["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    return schema


def members(schema: dict[str, Any], place: str = "", above: tuple[str, ...] = ()) -> Iterator[str]:
    """Every member that a value may have, as `runs[].cost_info`; a shape within itself is entered once."""
    reference = schema.get("$ref", "")
    if reference in above:
        return
    above = (*above, reference) if reference else above
    schema = resolved(schema)
    for word in ("anyOf", "oneOf", "allOf"):
        for choice in schema.get(word, []):
            yield from members(choice, place, above)
    if "items" in schema:
        yield from members(schema["items"], f"{place}[]", above)
    for name, below in schema.get("properties", {}).items():
        path = f"{place}.{name}" if place else name
        yield path
        yield from members(below, path, above)


def content(part: dict[str, Any]) -> dict[str, Any]:
    return dict(part.get("content", {}).get(JSON, {}).get("schema", {}))


def test_the_snapshot_is_what_the_service_serves(bare: FlaskClient) -> None:
    answer = bare.get("/api/v1/openapi.json")
    assert (answer.status_code, answer.mimetype) == (200, JSON)
    assert answer.get_json() == SNAPSHOT, "Run: python -m voiceapi openapi > schemas/openapi.json"


def test_the_snapshot_is_what_the_command_writes(tmp_path: Path) -> None:
    """To the letter, without a warning, without a database."""
    command = [sys.executable, "-W", "error", "-m", "voiceapi", "openapi"]
    environment = {"PYTHONPATH": str(ROOT), "VOICEAPI_DATABASE": str(tmp_path / "not-made.db")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True, timeout=60)
    assert done.stdout == (ROOT / "schemas/openapi.json").read_bytes()
    assert done.stderr == b""
    assert list(tmp_path.iterdir()) == []


def test_a_mount_prefix_is_the_address_of_the_server_and_of_no_path(
    tmp_path: Path, database_at: Callable[[Path], str]
) -> None:
    host = Flask("host")
    host.config.update(VOICEAPI_DATABASE=database_at(tmp_path / "voice.db"), VOICEAPI_API_KEY="test-key-0123456789")
    VoiceAPI().init_app(host, url_prefix="/voice")
    try:
        answer = host.test_client().get("/voice/api/v1/openapi.json")
    finally:
        host.extensions["voiceapi"].close()
    assert answer.get_json() == {**SNAPSHOT, "servers": [{"url": "/voice"}]}


def test_it_is_openapi_3_1() -> None:
    assert SNAPSHOT["openapi"] == "3.1.0"
    assert [error.message for error in OpenAPIV31SpecValidator(SNAPSHOT).iter_errors()] == []


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_the_contract_is_kept(path: str, method: str) -> None:
    wanted = CONTRACT[path][method]
    ours = served()[path, method]
    named = {f"{parameter['in']} {parameter['name']}" for parameter in ours["parameters"]}
    body = content(ours.get("requestBody", {}))
    answer = content(ours["responses"]["200"])
    assert sorted(set(wanted["parameters"]) - named) == []
    assert sorted(set(wanted.get("request", [])) - set(members(body))) == []
    assert sorted(set(resolved(body).get("required", [])) - set(wanted.get("required", []))) == []
    assert sorted(set(wanted["response"]) - set(members(answer))) == []


def test_every_operation_can_be_named_found_and_summed_up() -> None:
    """What generators of client code and of documentation need of each."""
    names = [operation["operationId"] for operation in served().values()]
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)] == []
    listed = [tag["name"] for tag in SNAPSHOT["tags"]]
    used = [operation["tags"] for operation in served().values()]
    assert sorted({tag for tags in used for tag in tags}) == listed
    assert {len(tags) for tags in used} == {1}
    summaries = [operation.get("summary", "") for operation in served().values()]
    assert [summary for summary in summaries if not summary.endswith(".") or "\n" in summary] == []


def test_every_response_is_described() -> None:
    bare = [
        (path, method, status)
        for (path, method), operation in served().items()
        for status, response in operation["responses"].items()
        if not response["description"] or bool(response.get("content")) != (status != NOT_MODIFIED)
    ]
    assert bare == []


PUBLIC = {
    ("/api/v1/health", "get"),
    ("/api/v1/health/ready", "get"),
    ("/api/v1/openapi.json", "get"),
    ("/api/v1/public/download/workflow/{token}/{artifact_type}", "get"),
    ("/api/v1/s3/files/{token}", "get"),
    ("/api/v1/s3/files/{token}", "put"),
}


# What a request may be sent again for with the same key, and is carried out once.
REPEATABLE = {
    *(("/api/v1/campaign/create", "post"), ("/api/v1/campaign/create/csv", "post")),
    ("/api/v1/telephony/initiate-call", "post"),
    *((f"/api/v1/public/agent/{test}{{uuid}}", "post") for test in ("", "test/")),
    *((f"/api/v1/public/agent/{test}workflow/{{workflow_uuid}}", "post") for test in ("", "test/")),
}


# The headers that say whether a request is carried out.
CONDITIONS = ("Idempotency-Key", "If-Match", "If-None-Match")
# What changes or deletes what the console edits, or copies a workflow, may be asked to do so only if it is as it was
# read.
EDITS = {
    ("/api/v1/workflow/{workflow_id}", "put"),
    ("/api/v1/workflow/{workflow_id}/status", "put"),
    *((f"/api/v1/workflow/{{workflow_id}}/{change}", "post") for change in ("publish", "create-draft", "duplicate")),
    ("/api/v1/workflow/{workflow_id}/versions/{version_id}/restore", "post"),
    *((f"/api/v1/organizations/{singular}", "put") for singular in ("preferences", "model-configurations/v2")),
    ("/api/v1/campaign/{campaign_id}", "patch"),
    *(
        (f"/api/v1/{record}", method)
        for record in (
            *("tools/{tool_uuid}", "credentials/{credential_uuid}", "workflow/{workflow_id}/cases/{case_id}"),
            "organizations/telephony-configs/{config_id}",
            "organizations/telephony-configs/{config_id}/phone-numbers/{phone_number_id}",
        )
        for method in ("put", "delete")
    ),
}

TAGGED = {
    (f"/api/v1/{path}", "get")
    for path in ("workflow/fetch/{workflow_id}", "node-types", "node-types/{name}", "openapi.json")
}


def expected_conditions(path: str, method: str) -> dict[str, bool]:
    """The headers that make a request conditional."""
    if (path, method) in EDITS:
        return {"If-Match": False}
    return {"If-None-Match": False} if (path, method) in TAGGED else {}


def expected_security(path: str, method: str) -> tuple[list[dict[str, list[str]]], dict[str, bool]]:
    if (path, method) in PUBLIC:
        return [], {}
    if path.startswith("/api/v1/public/agent/"):
        return [{"apiKey": []}], {"X-API-Key": True}
    return [{"apiKey": []}, {"bearer": []}], {"authorization": False, "X-API-Key": False}


def test_the_document_says_how_to_authenticate() -> None:
    for (path, method), operation in served().items():
        headers = {p["name"]: p["required"] for p in operation["parameters"] if p["in"] == "header"}
        repeatable = {"Idempotency-Key": False} if (path, method) in REPEATABLE else {}
        others = {name: headers.pop(name) for name in list(headers) if name in CONDITIONS}
        assert others == repeatable | expected_conditions(path, method), (path, method)
        assert (operation["security"], headers) == expected_security(path, method), (path, method)


def test_a_key_is_asked_for_where_the_document_says_so(bare: FlaskClient) -> None:
    """The routes of triggers check the request first, so there a missing key is a missing header."""
    for (path, method), operation in served().items():
        body = {"phone_number": "+12025550123"} if "requestBody" in operation else None
        asked = bare.open(re.sub(r"{\w+}", "1", path), method=method.upper(), json=body)
        _, headers = expected_security(path, method)
        refused = {401: "authorization" in headers, 422: list(headers) == ["X-API-Key"]}.get(asked.status_code, False)
        assert refused == bool(headers), (path, method, asked.text)


def test_ids_in_paths_are_whole_numbers() -> None:
    types = {
        (parameter["name"], parameter["schema"]["type"])
        for operation in served().values()
        for parameter in operation["parameters"]
        if parameter["in"] == "path"
    }
    texts = {"uuid", "workflow_uuid", "credential_uuid", "tool_uuid", "document_uuid", "delivery_uuid", "token"}
    texts |= {"artifact_type", "name", "phone_number"}
    assert {name for name, kind in types if kind == "string"} == texts
    assert {name for name, kind in types if kind == "integer"} == {
        *("workflow_id", "run_id", "campaign_id", "config_id", "phone_number_id", "api_key_id", "row_id"),
        *("version_id", "first_id", "second_id", "case_id"),
    }


def test_bounds_nulls_and_defaults_are_written_as_3_1_has_them() -> None:
    schemas = SNAPSHOT["components"]["schemas"]
    assert "nullable" not in json.dumps(SNAPSHOT)
    assert schemas["NewUpload"]["properties"]["file_size"] == {
        "type": "integer",
        "exclusiveMinimum": 0,
        "maximum": 10485760,
        "description": "bytes",
    }
    assert schemas["Chat"]["properties"]["updated_at"] == {"type": ["string", "null"], "format": "date-time"}
    assert schemas["Campaign"]["properties"]["schedule_config"] == {
        "anyOf": [{"$ref": "#/components/schemas/Schedule"}, {"type": "null"}]
    }
    query = {p["name"]: p for p in served()["/api/v1/workflow/{workflow_id}/runs", "get"]["parameters"]}
    assert query["limit"]["schema"] == {"type": "integer", "default": 50, "minimum": 1, "maximum": 100}
    assert SNAPSHOT["components"]["securitySchemes"] == {
        "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        "bearer": {"type": "http", "scheme": "bearer"},
    }


def test_every_component_is_used_and_the_body_of_an_error_is_one_of_them() -> None:
    schemas = SNAPSHOT["components"]["schemas"]
    text = json.dumps(SNAPSHOT)
    assert [name for name in schemas if f'"#/components/schemas/{name}"' not in text] == []
    assert [name for name in schemas if not re.fullmatch(r"([A-Z]+[a-z]+)+", name)] == []
    errors = {
        content(response).get("$ref")
        for operation in served().values()
        for status, response in operation["responses"].items()
        if status not in ("200", NOT_MODIFIED)
    }
    assert errors == {"#/components/schemas/ErrorBody"}
    assert schemas["ErrorBody"]["properties"]["detail"]["items"] == {"$ref": "#/components/schemas/ErrorItem"}
    assert schemas["ErrorItem"]["required"] == ["loc", "msg", "type"]
