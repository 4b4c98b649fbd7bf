"""Judges sequences of requests: campaigns, contacts, chats, documents and numbers are carried from answer to request.

The links between the operations are the table below. No answer is a 500, has a status or a content type that the
document doesn't name, or breaks its schema, whatever came before.
`VOICEAPI_TEST_SEED=... pytest -m long tests/judges/test_stateful.py` repeats a run.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.errors import FlakyStrategyDefinition
from schemathesis.config import SchemathesisConfig
from schemathesis.core.transport import Response
from schemathesis.specs.openapi import checks

from voiceapi import create_app

DOCUMENT = Path(__file__).parents[2] / "schemas/openapi.json"
API = "/api/v1"
KEY = "test-key-0123456789"
SEED = int(os.environ.get("VOICEAPI_TEST_SEED", "20261122"))
ROUNDS, SCENARIOS, STEPS = 5, 5, 30
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
# The simulator finds the first one busy, and the others answer.
CSV = b"phone_number,name\n+12025550101,Ann\n+12025550124,Bob\n+12025550125,Cid\nnobody,Dan\n"
NUMBER = "+12025550126"

CAMPAIGN = {"path.campaign_id": "$response.body#/id"}
CHAT = {"path.workflow_id": "$response.body#/workflow_id", "path.run_id": "$response.body#/workflow_run_id"}
REVISION = {"expected_revision": "$response.body#/revision"}
DOCUMENTS = {"path.document_uuid": "$response.body#/document_uuid"}
OF_CAMPAIGN = (
    *("get_campaign", "start_campaign", "pause_campaign", "resume_campaign", "update_campaign", "redial_campaign"),
    *("list_contacts", "get_contact", "list_campaign_runs", "get_campaign_progress", "simulate_campaign"),
    *("download_campaign_report", "get_source_download_url"),
)
TO_CAMPAIGN: dict[str, Any] = dict.fromkeys(OF_CAMPAIGN, (CAMPAIGN, None))
TO_CAMPAIGN["get_contact"] = ({**CAMPAIGN, "path.row_id": 1}, None)
TO_CHAT = {
    "get_chat": (CHAT, None),
    "send_message": (CHAT, REVISION),
    "rewind_chat": (CHAT, {**REVISION, "cursor_turn_id": "$response.body#/session_data/turns/0/id"}),
    "end_chat": (CHAT, REVISION),
}
# From an operation to those that its answer leads to: parameters, and members of the body.
LINKS: dict[str, dict[str, tuple[dict[str, str], dict[str, Any] | None]]] = {
    "prepare_upload": {"create_campaign": ({}, {"source_id": "$response.body#/file_key"})},
    "create_campaign": TO_CAMPAIGN,
    "create_campaign_with_list": TO_CAMPAIGN,
    **dict.fromkeys(("start_campaign", "pause_campaign", "resume_campaign", "update_campaign"), TO_CAMPAIGN),
    "redial_campaign": TO_CAMPAIGN,
    "create_chat": TO_CHAT,
    "send_message": TO_CHAT,
    "rewind_chat": TO_CHAT,
    "upload_document": {
        "get_document": (DOCUMENTS, None),
        "delete_document": (DOCUMENTS, None),
        "search_documents": ({}, {"document_uuids": ["$response.body#/document_uuid"]}),
    },
    "add_numbers_not_to_call": {"remove_number_not_to_call": ({"path.phone_number": NUMBER}, None)},
    "get_campaign": {"list_campaigns": ({}, None)},
    "get_document": {"list_documents": ({}, None)},
    "add_list_not_to_call": {"list_numbers_not_to_call": ({}, None)},
    # Ways to begin: a list, and what is created next.
    "list_workflows": {"create_chat": ({"path.workflow_id": "$response.body#/0/id"}, None)},
    "list_campaigns": dict.fromkeys(("create_campaign", "create_campaign_with_list"), ({}, None)),
    "list_documents": {"upload_document": ({}, None)},
    "list_numbers_not_to_call": {"add_numbers_not_to_call": ({}, None)},
}
# What these operations answer is the latest of its kind: the parameter that takes it, and where the answer has it.
CREATING = {
    **{name: {"campaign_id": "id"} for name in ("create_campaign", "create_campaign_with_list")},
    **{name: {"run_id": "workflow_run_id"} for name in ("create_chat", "send_message")},
    "upload_document": {"document_uuid": "document_uuid"},
}
BODIES: dict[str, Any] = {
    "update_campaign": {"name": "Changed"},
    "redial_campaign": {"retry_on_busy": True},
    # By its first bytes the client gives it a name that ends in .pdf; that it can't be read is an answer, too.
    "upload_document": {"file": b"%PDF-1.7", "retrieval_mode": "chunked"},
    "add_numbers_not_to_call": {"phone_numbers": [NUMBER]},
    "simulate_campaign": {},
}
# A minute of a day that isn't near.
SLOT = {"day_of_week": (datetime.now(UTC).weekday() + 3) % 7, "start_time": "00:00", "end_time": "00:01"}
NEVER = {"enabled": True, "timezone": "UTC", "slots": [SLOT]}
KEPT = {*LINKS, *(target for targets in LINKS.values() for target in targets)}


def linked() -> Any:
    """The document, with these operations only and the links between them."""
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    for path, item in list(document["paths"].items()):
        for method, operation in list(item.items()):
            if method == "parameters":
                continue
            links = LINKS.get(operation["operationId"], {})
            operation["responses"]["200"]["links"] = {
                target: {
                    "operationId": target,
                    **({"parameters": parameters} if parameters else {}),
                    **({"requestBody": body} if body else {}),
                }
                for target, (parameters, body) in links.items()
            }
            if operation["operationId"] not in KEPT:
                del item[method]
        if not item.keys() - {"parameters"}:
            del document["paths"][path]
    config = SchemathesisConfig.from_dict(
        {
            "seed": SEED,
            "cache": {"enabled": False},
            "generation": {"database": "none"},
            # Only our links: those that would be inferred lead to what is missing.
            "phases": {"stateful": {"inference": {"algorithms": []}}},
        }
    )
    return schemathesis.openapi.from_dict(document, config=config)


class World:
    """An app with an agent and an uploaded list, and how often each operation was answered with each status."""

    def __init__(self, app: Flask, definition: Callable[..., Any], wait_for: Callable[..., Any]) -> None:
        self.app = app
        self.answers: dict[str, Counter[int]] = {}
        self.broken: list[str] = []
        self.client = client = app.test_client()
        client.environ_base["HTTP_X_API_KEY"] = KEY
        agent = {"name": "Seeded", "workflow_definition": definition("seeded")}
        self.agent = int(client.post(f"{API}/workflow/create/definition", json=agent).get_json()["id"])
        slot = client.post(f"{API}/s3/presigned-upload-url", json={"file_name": "list.csv", "file_size": len(CSV)})
        path = slot.get_json()["upload_url"].partition("/api/")[2]
        assert client.put(f"/api/{path}", data=CSV).status_code == 200
        self.file_key = slot.get_json()["file_key"]
        # A campaign whose first callee was busy.
        fields = {"name": "Over", "workflow_id": self.agent, "source_type": "csv", "source_id": self.file_key}
        made = client.post(
            f"{API}/campaign/create", json={**fields, "strict": False, "retry_config": {"enabled": False}}
        )
        self.over = int(made.get_json()["id"])
        assert client.post(f"{API}/campaign/{self.over}/start").status_code == 200
        wait_for(lambda: client.get(f"{API}/campaign/{self.over}").get_json()["state"] == "completed", 60)
        # The record of each kind that was last seen, by the name of the parameter that takes its id.
        self.latest: dict[str, Any] = {"workflow_id": self.agent, "phone_number": NUMBER, "row_id": 1}

    def aim(self, case: schemathesis.Case, operation: str, drawn: int) -> None:
        """Put what is there, and what a schema can't say, in place of what was drawn."""
        case.path_parameters |= {name: self.latest[name] for name in case.path_parameters if name in self.latest}
        if operation == "add_list_not_to_call":
            case.body = CSV.decode()
        elif operation in ("send_message", "rewind_chat", "end_chat"):
            case.body = {"text": "Yes."} if operation == "send_message" else {}
            if operation == "rewind_chat":
                case.body["cursor_turn_id"] = self.latest.get("turn_id") if drawn & 16 else None
            if drawn & 8:  # the latest one has often ended
                opened = self.client.post(f"{API}/workflow/{self.agent}/text-chat/sessions", json={})
                case.path_parameters["run_id"] = opened.get_json()["workflow_run_id"]
        elif operation in ("create_campaign", "create_campaign_with_list"):
            file = {"file": CSV} if "list" in operation else {"source_type": "csv", "source_id": self.file_key}
            case.body = {"name": "Drawn", "workflow_id": self.agent, "retry_config": {"enabled": False}, **file}
            case.body |= {"schedule_config": NEVER} if drawn & 8 else {}
        elif operation in BODIES:
            case.body = BODIES[operation]
        if operation == "redial_campaign" and drawn & 8:
            case.path_parameters["campaign_id"] = self.over

    def note(self, operation: str, answer: Response) -> None:
        self.answers.setdefault(operation, Counter())[answer.status_code] += 1
        if answer.status_code != 200 or operation not in CREATING:
            return
        found = answer.json()
        self.latest |= {parameter: found[member] for parameter, member in CREATING[operation].items()}
        if operation == "send_message":
            self.latest["turn_id"] = found["session_data"]["turns"][0]["id"]


@pytest.fixture
def world(
    tmp_path: Path, database_at: Callable[[Path], str], talk: Callable[..., Any], wait_for: Callable[..., Any]
) -> Iterator[World]:
    app = create_app({"VOICEAPI_DATABASE": database_at(tmp_path / "voice.db"), "VOICEAPI_API_KEY": KEY})
    yield World(app, talk, wait_for)
    app.extensions["voiceapi"].close()


@pytest.mark.long
def test_any_sequence_of_requests(world: World) -> None:
    print(f"VOICEAPI_TEST_SEED={SEED}")  # noqa: T201

    class Sequence(linked().as_state_machine()):  # type: ignore[misc]
        def before_call(self, case: schemathesis.Case) -> None:
            case.headers["X-API-Key"] = KEY
            # It asks for compressed answers otherwise, and takes them for the text itself.
            case.headers["Accept-Encoding"] = "identity"
            drawn = crc32(repr((case.path_parameters, case.query, case.body)).encode("utf-8", "replace"))
            if drawn % 4:
                world.aim(case, case.operation.definition.raw["operationId"], drawn)

        def call(self, case: schemathesis.Case, **kwargs: Any) -> Response:
            answer: Response = case.call(app=world.app, **kwargs)
            world.note(case.operation.definition.raw["operationId"], answer)
            return answer

        def validate_response(self, response: Response, case: schemathesis.Case, **kwargs: Any) -> None:
            try:
                case.validate_response(response, checks=CHECKS)
            except BaseException as error:
                world.broken.append(str(error))
                raise

    unhurried = settings(
        max_examples=SCENARIOS,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for number in range(ROUNDS):
        seeded(SEED + number)(Sequence)
        # What the service answers depends on all that came before, which hypothesis doesn't expect: the round is over.
        with suppress(FlakyStrategyDefinition):
            Sequence.run(settings=unhurried)
    assert world.broken == []
    never = sorted(name for name in KEPT if not world.answers.get(name, Counter())[200])
    assert never == [], {name: dict(world.answers.get(name, {})) for name in never}
