"""Judges every operation against the document, with requests that nobody would think of.

No answer is a 500, has a status or a content type that the document doesn't name, or breaks its schema; and the
service must be able to do what it offers: the records that a request needs are there, so each operation succeeds too.
`VOICEAPI_TEST_SEED=... pytest -m long tests/judges/test_schemathesis.py` repeats a run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi import checks

from voiceapi import create_app, keys

DOCUMENT = Path(__file__).parents[2] / "schemas/openapi.json"
API = "/api/v1"
KEY = "test-key-0123456789"
SEED = int(os.environ.get("VOICEAPI_TEST_SEED", "20250607"))
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
CSV = b"phone_number,name\n+12025550123,Ann\n"
FILTERS = '[{"attribute":"status","value":{"status":"completed"}}]'
MODELS = {"mode": "dograh", "dograh": {"api_key": "secret"}, "byok": None}
SIMULATOR = {"provider": "simulator"}
# At an address that doesn't leave this machine: trying it out is refused there, which is an answer, too.
TOOL = {"type": "http_api", "config": {"method": "GET", "url": "http://127.0.0.1:9"}}


def token_of(url: str) -> str:
    return urlsplit(url).path.rpartition("/")[2]


class World:
    """An app with one record of everything, and what makes another where a request uses one up."""

    def __init__(self, app: Flask, definition: Callable[..., Any]) -> None:
        self.app = app
        self.client = app.test_client()
        self.client.environ_base["HTTP_X_API_KEY"] = KEY
        self.definition = definition
        self.reached: dict[str, set[int]] = {}
        self.names = (f"clay {number}" for number in count())
        self.config_id = self.get("/organizations/telephony-configs")["configurations"][0]["id"]
        self.numbers = f"/organizations/telephony-configs/{self.config_id}/phone-numbers"
        # Low ids are those that come up by chance: these records are there to be spoilt.
        for _ in range(5):
            self.workflow()
            self.key()
        released = self.post("/workflow/create/definition", name="Seeded", workflow_definition=definition("seeded"))
        self.agent, self.uuid = released["id"], released["workflow_uuid"]
        self.post("/public/agent/seeded", phone_number="+12025550123")
        self.chat_id = self.chat()
        self.post(f"/workflow/{self.agent}/text-chat/sessions/{self.chat_id}/end")
        chatted = self.get(f"/workflow/{self.agent}/runs/{self.chat_id}")
        self.public_token = chatted["public_access_token"]
        self.file_key = self.upload()
        self.campaign = self.post(
            "/campaign/create", name="Seeded", workflow_id=self.agent, source_type="csv", source_id=self.file_key
        )["id"]

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self.client.open(f"{API}{path}", method=method, json=body)
        assert answer.status_code == 200, answer.text
        return answer.get_json()

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def post(self, path: str, **body: Any) -> Any:
        return self.ask("POST", path, body)

    def workflow(self) -> int:
        return int(self.post("/workflow/create/definition", name="Clay", workflow_definition=self.definition())["id"])

    def draft(self) -> int:
        workflow = self.workflow()
        self.ask("PUT", f"/workflow/{workflow}", {"workflow_definition": self.definition()})
        return workflow

    def key(self) -> int:
        return int(self.post("/user/api-keys", name="Clay")["id"])

    def chat(self) -> int:
        return int(self.post(f"/workflow/{self.agent}/text-chat/sessions")["workflow_run_id"])

    def configuration(self) -> int:
        made = self.post("/organizations/telephony-configs", name=next(self.names), config=SIMULATOR)
        return int(made["id"])

    def credential(self) -> str:
        made = self.post("/credentials/", name=next(self.names), credential_type="none", credential_data={})
        return str(made["uuid"])

    def tool(self) -> str:
        return str(self.post("/tools/", name="Clay", definition=TOOL)["tool_uuid"])

    def number(self) -> int:
        return int(self.post(self.numbers, address=next(self.names))["id"])

    def prepared(self) -> dict[str, Any]:
        return dict(self.post("/s3/presigned-upload-url", file_name="list.csv", file_size=len(CSV)))

    def upload(self) -> str:
        slot = self.prepared()
        assert self.client.put(urlsplit(slot["upload_url"]).path, data=CSV).status_code == 200
        return str(slot["file_key"])

    def token_to_put(self) -> str:
        return token_of(self.prepared()["upload_url"])

    def token_to_fetch(self) -> str:
        return token_of(self.get(f"/s3/signed-url?key={self.file_key}")["url"])

    def send(self, case: schemathesis.Case) -> None:
        """Ask, with a good key nearly always and three times in four for what is there, and judge the answer."""
        operation = case.operation.definition.raw["operationId"]
        drawn = repr((case.path_parameters, case.query, case.headers, case.body))
        digest = crc32(drawn.encode("utf-8", "replace"))
        if digest % 4:
            aim(case, operation, self)
        if digest % 16:
            case.headers["X-API-Key"] = KEY
        answer = case.call_and_validate(checks=CHECKS, app=self.app)
        self.reached.setdefault(operation, set()).add(answer.status_code)
        if operation == "archive_key":
            self.restore_own_key()

    def restore_own_key(self) -> None:
        """A key may archive itself; the next case needs it again."""
        service = self.app.extensions["voiceapi"]
        with service.store.session():
            keys.reactivate(1, 1)


def fresh_name(world: World) -> str:
    return next(world.names)


# What the members of a request are aimed at: a value, or what finds or makes one. First the path; an operation that
# uses its record up, or spoils it, gets one of its own.
PATHS: dict[str, Any] = {
    "workflow_id": lambda world: world.agent,
    "run_id": lambda world: world.chat_id,
    "campaign_id": lambda world: world.campaign,
    "config_id": lambda world: world.config_id,
    "phone_number_id": World.number,
    "api_key_id": World.key,
    "name": "startCall",
    "uuid": "seeded",
    "workflow_uuid": lambda world: world.uuid,
    "artifact_type": "transcript",
    "credential_uuid": World.credential,
    "tool_uuid": World.tool,
}
OWN_PATHS: dict[tuple[str, str], Any] = {
    ("publish_workflow", "workflow_id"): World.draft,
    ("update_workflow", "workflow_id"): World.workflow,
    ("update_workflow_status", "workflow_id"): World.workflow,
    ("create_draft", "workflow_id"): World.workflow,
    ("send_message", "run_id"): World.chat,
    ("rewind_chat", "run_id"): World.chat,
    ("end_chat", "run_id"): World.chat,
    ("delete_configuration", "config_id"): World.configuration,
    ("update_configuration", "config_id"): World.configuration,
    ("put_file", "token"): World.token_to_put,
    ("get_file", "token"): World.token_to_fetch,
    ("download_artifact", "token"): lambda world: world.public_token,
}
# Then the query and the body: what a schema can't tell.
LISTED = {"filters": FILTERS}
STATUSES = {"status": "archived,active"}
QUERIES: dict[str, dict[str, Any]] = {
    "list_runs": LISTED,
    "list_campaign_runs": LISTED,
    "list_usage": LISTED,
    "list_workflows": STATUSES,
    "summarize_workflows": STATUSES,
    "list_tools": {"status": "active", "category": "mcp"},
    "sign_address": {"key": lambda world: world.file_key},
}
CALL = {"phone_number": "+12025550123", "telephony_configuration_id": None, "from_phone_number_id": None}
TIMES = {"retry_config": None, "schedule_config": None, "timezone": None, "time_slots": None}
BODIES: dict[str, dict[str, Any]] = {
    "trigger_agent": CALL,
    "trigger_agent_test": CALL,
    "trigger_workflow": CALL,
    "trigger_workflow_test": CALL,
    "initiate_call": {**CALL, "workflow_id": lambda world: world.agent, "workflow_run_id": None},
    "send_message": {"expected_revision": None},
    "end_chat": {"expected_revision": None},
    "rewind_chat": {"expected_revision": None, "cursor_turn_id": None},
    "create_campaign": {
        **TIMES,
        "workflow_id": lambda world: world.agent,
        "source_id": lambda world: world.file_key,
        "telephony_configuration_id": None,
    },
    "update_campaign": TIMES,
    "create_number": {
        "address": fresh_name,
        "country_code": None,
        "inbound_workflow_id": None,
        "telephony_trunk_id": None,
    },
    "update_number": {"inbound_workflow_id": None, "telephony_trunk_id": None},
    "create_configuration": {"name": fresh_name, "config": SIMULATOR},
    "update_configuration": {"name": None, "config": None},
    "create_credential": {"name": fresh_name, "credential_type": "none"},
    "update_credential": {"name": fresh_name, "credential_type": None, "credential_data": None},
    "create_tool": {"category": None, "definition": TOOL},
    "update_tool": {"status": "active", "definition": TOOL},
    "set_preferences": {"timezone": "Europe/Berlin"},
    "set_model_configuration": MODELS,
}


def aim(case: schemathesis.Case, operation: str, world: World) -> None:
    """Put what is there where the request names what isn't; what breaks the schema stays as it is."""

    def put(values: dict[str, Any], name: str, target: Any) -> None:
        values[name] = target(world) if callable(target) else target

    for name, value in case.path_parameters.items():
        target = OWN_PATHS.get((operation, name)) or PATHS.get(name)
        if target is not None and (str(value).lstrip("-").isdecimal() or not name.endswith("_id")):
            put(case.path_parameters, name, target)
    for name, target in QUERIES.get(operation, {}).items():
        if isinstance(case.query.get(name), str):
            put(case.query, name, target)
    if isinstance(case.body, dict):
        for name in case.body.keys() & BODIES.get(operation, {}).keys():
            put(case.body, name, BODIES[operation][name])


def operations(examples: int, coverage: bool) -> Any:
    """The operations of the document, which is the one that the service serves: another judge sees to that."""
    config = SchemathesisConfig.from_dict(
        {
            "seed": SEED,
            "cache": {"enabled": False},
            "generation": {"max-examples": examples, "database": "none"},
            "phases": {"coverage": {"enabled": coverage, "unexpected-methods": []}},
        }
    )
    return schemathesis.openapi.from_path(DOCUMENT, config=config)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, talk: Callable[..., Any]) -> Iterator[World]:
    database = tmp_path_factory.mktemp("world") / "voice.db"
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_CONCURRENT_CALLS": 1000})
    yield World(app, talk)
    app.extensions["voiceapi"].close()


@pytest.fixture(autouse=True)
def seed() -> None:
    """Shown with whatever fails."""
    print(f"VOICEAPI_TEST_SEED={SEED}")  # noqa: T201


UNHURRIED = settings(deadline=None, suppress_health_check=list(HealthCheck))


@operations(3, coverage=False).parametrize()
@UNHURRIED
def test_a_few_requests_of_each_operation(case: schemathesis.Case, world: World) -> None:
    world.send(case)


@pytest.mark.long
@operations(50, coverage=True).parametrize()
@UNHURRIED
def test_many_requests_of_each_operation(case: schemathesis.Case, world: World) -> None:
    world.send(case)


@pytest.mark.long
def test_each_operation_succeeded_too(world: World) -> None:
    """Said of the requests of the tests above."""
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    offered = {
        operation["operationId"]
        for item in document["paths"].values()
        for method, operation in item.items()
        if method != "parameters"
    }
    assert set(world.reached) == offered
    assert sorted(name for name, statuses in world.reached.items() if 200 not in statuses) == []
