"""Judges every operation against the document, with requests that nobody would think of.

No answer is a 500, has a status or a content type that the document doesn't name, or breaks its schema; and the
service must be able to do what it offers: the records that a request needs are there, so each operation succeeds too.
`VOICEAPI_TEST_SEED=... pytest -m long tests/judges/test_schemathesis.py` repeats a run.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
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

from voiceapi import create_app
from voiceapi.api import contacts
from voiceapi.organizations import api_keys

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
# A number that the simulator finds busy.
CSV = b"phone_number,name\n+12025550101,Ann\n"
NUMBER = "+12025550124"
# A minute of a day that isn't near.
SLOT = {"day_of_week": (datetime.now(UTC).weekday() + 3) % 7, "start_time": "00:00", "end_time": "00:01"}
NEVER = {"enabled": True, "timezone": "UTC", "slots": [SLOT]}
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
        self.hooked = self.workflow(webhook=True)
        chatted = self.get(f"/workflow/{self.agent}/runs/{self.chat_id}")
        self.public_token = chatted["public_access_token"]
        self.file_key = self.upload()
        self.campaign = self.created()

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self.client.open(f"{API}{path}", method=method, json=body)
        assert answer.status_code == 200, answer.text
        return answer.get_json()

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def post(self, path: str, **body: Any) -> Any:
        return self.ask("POST", path, body)

    def workflow(self, webhook: bool = False) -> int:
        definition = self.definition()
        if webhook:
            # Its scheme is no HTTP one, so that it is given up at once, and may be sent again.
            data = {"name": "Hook", "endpoint_url": "mailto:clay@example.org"}
            definition["nodes"].append({"id": "w", "type": "webhook", "position": {"x": 0, "y": 0}, "data": data})
        return int(self.post("/workflow/create/definition", name="Clay", workflow_definition=definition)["id"])

    def given_up(self) -> tuple[int, str]:
        """A run whose webhook was given up, and the id of that delivery."""
        run = self.chat(self.hooked)
        self.post(f"/workflow/{self.hooked}/text-chat/sessions/{run}/end")
        for _ in range(1000):
            (delivery,) = self.get(f"/workflow/{self.hooked}/runs/{run}/deliveries")["deliveries"]
            if delivery["state"] == "dead_letter":
                return run, delivery["delivery_uuid"]
            time.sleep(0.01)
        raise AssertionError(f"the webhook is still on its way: {delivery}")

    def draft(self) -> int:
        workflow = self.workflow()
        self.ask("PUT", f"/workflow/{workflow}", {"workflow_definition": self.definition()})
        return workflow

    def key(self) -> int:
        return int(self.post("/user/api-keys", name="Clay")["id"])

    def case(self) -> int:
        return int(self.post(f"/workflow/{self.agent}/cases", case={"name": next(self.names)})["id"])

    def chat(self, workflow: int | None = None) -> int:
        return int(self.post(f"/workflow/{workflow or self.agent}/text-chat/sessions")["workflow_run_id"])

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

    def created(self) -> int:
        wanted = {"name": "Clay", "workflow_id": self.agent, "source_type": "csv", "source_id": self.file_key}
        retry = {"max_retries": 0}
        return int(self.post("/campaign/create", **wanted, retry_config=retry, schedule_config=NEVER)["id"])

    def started(self) -> int:
        """A campaign whose list is read, and whose hours never come."""
        campaign = self.created()
        self.post(f"/campaign/{campaign}/start")
        while not self.get(f"/campaign/{campaign}/contacts")["contacts"]:
            time.sleep(0.01)
        return campaign

    def paused(self) -> int:
        campaign = self.started()
        self.post(f"/campaign/{campaign}/pause")
        return campaign

    def over(self) -> int:
        """A campaign whose one callee was busy."""
        campaign = self.started()
        self.ask("PATCH", f"/campaign/{campaign}", {"schedule_config": {**NEVER, "enabled": False}})
        while self.get(f"/campaign/{campaign}")["state"] != "completed":
            time.sleep(0.01)
        return campaign

    def document(self) -> str:
        form = {"file": (io.BytesIO(b"Open from nine to five."), "hours.txt")}
        answer = self.client.post(f"{API}/knowledge-base/documents", data=form)
        assert answer.status_code == 200, answer.text
        return str(answer.get_json()["document_uuid"])

    def forbidden(self) -> str:
        self.post("/do-not-call", phone_numbers=[NUMBER])
        return NUMBER

    def token_to_put(self) -> str:
        return token_of(self.prepared()["upload_url"])

    def token_to_fetch(self) -> str:
        return token_of(self.get(f"/s3/signed-url?key={self.file_key}")["url"])

    def secrets(self, count: int) -> None:
        """Bring the number of secrets that sign webhooks to one, or two."""
        while (there := len(self.get("/organizations/webhook-secrets")["secrets"])) != count:
            self.post(f"/organizations/webhook-secrets/{'rotate' if there < count else 'retire'}")

    def send(self, case: schemathesis.Case) -> None:
        """Ask, with a good key nearly always and three times in four for what is there, and judge the answer."""
        operation = case.operation.definition.raw["operationId"]
        drawn = repr((case.path_parameters, case.query, case.headers, case.body))
        digest = crc32(drawn.encode("utf-8", "replace"))
        if digest % 4:
            aim(case, operation, self)
        if digest % 16:
            case.headers["X-API-Key"] = KEY
        # It asks for compressed answers otherwise, and takes them for the text itself.
        case.headers["Accept-Encoding"] = "identity"
        answer = case.call_and_validate(checks=CHECKS, app=self.app)
        self.reached.setdefault(operation, set()).add(answer.status_code)
        if operation == "archive_key":
            self.restore_own_key()
        if operation == "update_workflow_status":
            # An id drawn by chance may be the agent's, whose triggers would be 404 from then on.
            self.ask("PUT", f"/workflow/{self.agent}/status", {"status": "active"})
        if operation == "set_preferences":
            # With limits, the next requests would place no calls.
            self.ask("PUT", "/organizations/preferences", {"allowed_countries": None, "max_calls_a_day": None})

    def restore_own_key(self) -> None:
        """A key may archive itself; the next case needs it again."""
        service = self.app.extensions["voiceapi"]
        with service.store.session():
            api_keys.reactivate(1, 1)


ABSENT = object()


def fresh_name(world: World) -> str:
    return next(world.names)


# What the members of a request are aimed at: a value, or what finds or makes one. First the path; an operation that
# uses its record up, or spoils it, gets one of its own.
PATHS: dict[str, Any] = {
    "workflow_id": lambda world: world.agent,
    "run_id": lambda world: world.chat_id,
    "case_id": World.case,
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
    "document_uuid": World.document,
    "row_id": 1,
}
OWN_PATHS: dict[tuple[str, str], Any] = {
    ("publish_workflow", "workflow_id"): World.draft,
    ("update_workflow", "workflow_id"): World.workflow,
    ("update_workflow_status", "workflow_id"): World.workflow,
    ("create_draft", "workflow_id"): World.workflow,
    ("send_message", "run_id"): World.chat,
    ("stream_message", "run_id"): World.chat,
    ("rewind_chat", "run_id"): World.chat,
    ("end_chat", "run_id"): World.chat,
    ("delete_configuration", "config_id"): World.configuration,
    ("update_configuration", "config_id"): World.configuration,
    ("get_contact", "campaign_id"): World.started,
    ("pause_campaign", "campaign_id"): World.started,
    ("resume_campaign", "campaign_id"): World.paused,
    ("redial_campaign", "campaign_id"): World.over,
    ("remove_number_not_to_call", "phone_number"): World.forbidden,
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
    "get_insights": {**LISTED, "version": 1, "campaign_id": lambda world: world.campaign},
    "list_workflows": STATUSES,
    "summarize_workflows": STATUSES,
    "list_tools": {"status": "active", "category": "mcp"},
    "sign_address": {"key": lambda world: world.file_key},
}
CASE = {"name": "Clay", "turns": [{"caller": "Yes."}]}
# Not the number of the document's examples, which may be on the do-not-call list by then.
CALL = {"phone_number": "+12025550177", "telephony_configuration_id": None, "from_phone_number_id": None}
TIMES = {"retry_config": None, "schedule_config": None, "timezone": None, "time_slots": None}
BODIES: dict[str, dict[str, Any]] = {
    "trigger_agent": CALL,
    "trigger_agent_test": CALL,
    "trigger_workflow": CALL,
    "trigger_workflow_test": CALL,
    "initiate_call": {**CALL, "workflow_id": lambda world: world.agent, "workflow_run_id": None},
    "create_case": {"case": CASE, "run_id": None, "name": fresh_name},
    "import_cases": {"file": '{"cases": [{"name": "Clay"}]}', "replace": True},
    "change_case": {"case": None, "name": fresh_name},
    "test_workflow": {"version": "draft", "case_ids": None, "cases": [CASE], "model": "scripted"},
    "rehearse_workflow": {
        **dict.fromkeys(("caller", "context", "fetch", "seed")),
        "conversations": 5,
        "version": "draft",
        "model": "scripted",
        "tools": [{"tool": "look_it_up", "returns": 1}],
    },
    "describe_workflow": {"language": None},
    "replay_runs": {"run_ids": None, "last": 10, "filters": None, "version": "own"},
    "send_message": {"expected_revision": None},
    "stream_message": {"expected_revision": None},
    "end_chat": {"expected_revision": None},
    "rewind_chat": {"expected_revision": None, "cursor_turn_id": None},
    "create_campaign": {
        **TIMES,
        "workflow_id": lambda world: world.agent,
        "source_id": lambda world: world.file_key,
        "telephony_configuration_id": None,
    },
    "create_campaign_with_list": {
        **dict.fromkeys(contacts.OPTIONAL, ABSENT),
        "workflow_id": lambda world: world.agent,
        "file": CSV,
    },
    "simulate_list": {
        **dict.fromkeys(contacts.OPTIONAL, ABSENT),
        "workflow_id": lambda world: world.agent,
        "file": CSV,
    },
    "check_list": {"workflow_id": lambda world: world.agent, "telephony_configuration_id": ABSENT, "file": CSV},
    "update_campaign": TIMES,
    "redial_campaign": {"retry_config": None, "retry_on_busy": True},
    "add_numbers_not_to_call": {"phone_numbers": [NUMBER]},
    # By its first bytes the client calls it a PDF; that it can't be read is an answer, too.
    "upload_document": {"file": b"%PDF-1.7", "retrieval_mode": "chunked", "custom_metadata": "{}"},
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
        if target is ABSENT:
            del values[name]
        else:
            values[name] = target(world) if callable(target) else target

    if operation == "redeliver":
        run, delivery = world.given_up()
        case.path_parameters |= {"workflow_id": world.hooked, "run_id": run, "delivery_uuid": delivery}
        return
    if operation in ("rotate_webhook_secret", "retire_webhook_secret"):
        world.secrets(2 if operation == "retire_webhook_secret" else 1)
    for name, value in case.path_parameters.items():
        target = OWN_PATHS.get((operation, name)) or PATHS.get(name)
        if target is not None and (str(value).lstrip("-").isdecimal() or not name.endswith("_id")):
            put(case.path_parameters, name, target)
    for name, target in QUERIES.get(operation, {}).items():
        if isinstance(case.query.get(name), str):
            put(case.query, name, target)
    if operation == "add_list_not_to_call":
        case.body = CSV.decode()
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
def world(
    tmp_path_factory: pytest.TempPathFactory, database_at: Callable[[Path], str], talk: Callable[..., Any]
) -> Iterator[World]:
    database = database_at(tmp_path_factory.mktemp("world") / "voice.db")
    app = create_app({"VOICEAPI_DATABASE": database, "VOICEAPI_API_KEY": KEY, "VOICEAPI_CONCURRENT_CALLS": 1000})
    yield World(app, talk)
    app.extensions["voiceapi"].close()


@pytest.fixture(autouse=True)
def seed() -> None:
    """Shown with whatever fails."""
    print(f"VOICEAPI_TEST_SEED={SEED}")  # noqa: T201


UNHURRIED = settings(deadline=None, suppress_health_check=list(HealthCheck))


# On SQLite the next test asks more.
@pytest.mark.postgresql
@operations(1, coverage=False).parametrize()
@UNHURRIED
def test_a_request_of_each_operation(case: schemathesis.Case, world: World) -> None:
    world.send(case)


@pytest.mark.long
@operations(50, coverage=True).parametrize()
@UNHURRIED
def test_many_requests_of_each_operation(case: schemathesis.Case, world: World) -> None:
    world.send(case)


# They succeed only with an account at a carrier, which tests/calls/test_number_setup.py stands in for, or with a
# language model, as in tests/workflows/test_describing.py.
OF_OTHERS = ("connect_number", "undo_connection", "describe_workflow")


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
    for name in OF_OTHERS:
        assert 200 not in world.reached.pop(name)
    never = sorted(f"{name} {sorted(statuses)}" for name, statuses in world.reached.items() if 200 not in statuses)
    assert not never, ", ".join(never)
