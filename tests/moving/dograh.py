"""A strict fake of the service that is imported from: the contract's shapes, only its paths, only its key."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "dgr_a-key-of-the-source"
TOOL, ARCHIVED, CREDENTIAL, DOCUMENT, LOST, RECORDING = (
    f"{number}1111111-1111-4111-8111-111111111111" for number in range(6)
)
TIME = "2024-01-02T03:04:05Z"
HOURS = b"We open at nine."


def definition(greeting: str) -> dict[str, Any]:
    """A definition as it is answered: its secrets masked, with references of each kind."""
    attached = {"tool_uuids": [TOOL, ARCHIVED], "document_uuids": [DOCUMENT, LOST]}
    data = {
        "name": "Hello",
        "prompt": "Greet.",
        "greeting": greeting,
        "pre_call_fetch_credential_uuid": CREDENTIAL,
        "greeting_recording_id": RECORDING,
        **attached,
    }
    nodes = [
        {"id": "1", "type": "startCall", "position": {"x": 0, "y": 0}, "data": data},
        {"id": "2", "type": "endCall", "position": {"x": 0, "y": 200}, "data": {"name": "Bye", "prompt": "Goodbye."}},
        {
            "id": "3",
            "type": "trigger",
            "position": {"x": 9, "y": 0},
            "data": {"name": "T", "trigger_path": "reception"},
        },
        {
            "id": "4",
            "type": "webhook",
            "position": {"x": 9, "y": 99},
            "data": {
                "name": "CRM",
                "endpoint_url": "https://crm.example.org/calls",
                "credential_uuid": CREDENTIAL,
                "custom_headers": [{"key": "X-Tenant", "value": "********"}],
            },
        },
    ]
    edges = [{"id": "1-2", "source": "1", "target": "2", "data": {"label": "Done", "condition": "They are done."}}]
    return {"nodes": nodes, "edges": edges, "viewport": {"x": 0, "y": 0, "zoom": 1}}


def version(number: int, status: str, greeting: str) -> dict[str, Any]:
    own = {
        "mode": "byok",
        "byok": {"mode": "pipeline", "pipeline": {"llm": {"provider": "openai", "api_key": "***ab12"}}},
    }
    return {
        "id": 100 + number,
        "version_number": number,
        "status": status,
        "created_at": TIME,
        "published_at": None if status == "draft" else TIME,
        "workflow_json": definition(greeting),
        "workflow_configurations": {
            "max_call_duration": 999_999 if number == 2 else 600,
            "voice": "Joanna",
            **({"model_configuration_v2_override": own} if number == 2 else {}),
        },
        "template_context_variables": {"city": "Graz"},
    }


def tool(uuid: str, name: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": 5,
        "tool_uuid": uuid,
        "name": name,
        "description": "It looks up.",
        "category": definition["type"],
        "icon": "globe",
        "icon_color": "#3B82F6",
        "status": "active",
        "definition": definition,
        "created_at": TIME,
        "updated_at": None,
        "created_by": {"id": 1, "provider_id": "p"},
    }


def campaign(id: int, name: str, state: str, workflow: int) -> dict[str, Any]:
    return {
        "id": id,
        "name": name,
        "workflow_id": workflow,
        "workflow_name": "Reception",
        "state": state,
        "source_type": "csv",
        "source_id": "campaigns/1/x_people.csv",
        "total_rows": 2,
        "processed_rows": 1,
        "failed_rows": 0,
        "created_at": TIME,
        "started_at": None,
        "completed_at": None,
        "retry_config": {
            "enabled": True,
            "max_retries": 1,
            "retry_delay_seconds": 120,
            "retry_on_busy": True,
            "retry_on_no_answer": True,
            "retry_on_voicemail": False,
        },
        "max_concurrency": 2,
        "schedule_config": {
            "enabled": True,
            "timezone": "Europe/Vienna",
            "slots": [{"day_of_week": 0, "start_time": "09:00", "end_time": "17:00"}],
        },
        "circuit_breaker": {
            "enabled": False,
            "failure_threshold": 0.5,
            "window_seconds": 120,
            "min_calls_in_window": 5,
        },
        "executed_count": 1 if state == "running" else 0,
        "total_queued_count": 0,
        "parent_campaign_id": None,
        "redialed_campaign_id": None,
        "telephony_configuration_id": 3,
        "telephony_configuration_name": "Main",
        "logs": [],
    }


def answers(origin: str) -> dict[str, Any]:
    """The answers by path."""
    workflow = {"status": "active", "created_at": TIME, "total_runs": 4, "folder_id": None}
    url = {"type": "http_api", "schema_version": 1}
    config = {
        "method": "GET",
        "url": "https://crm.example.org/{{id}}",
        "headers": {"X-Secret": "********"},
        "credential_uuid": CREDENTIAL,
    }
    return {
        "/workflow/fetch": [
            {"id": 7, "name": "Reception", "workflow_uuid": "a" * 36, **workflow},
            {"id": 8, "name": "Old one", "workflow_uuid": "b" * 36, **workflow, "status": "archived"},
        ],
        "/workflow/7/versions": [
            version(3, "draft", "Draft."),
            version(2, "published", "Published."),
            version(1, "archived", "First."),
        ],
        "/workflow/8/versions": [{**version(1, "published", "Old."), "workflow_json": {"nodes": [], "edges": []}}],
        "/tools/": [
            tool(TOOL, "Look up", {**url, "config": config}),
            tool("9" * 36, "Broken", {"type": "native", "schema_version": 1, "config": {}}),
        ],
        "/credentials/": [
            {
                "uuid": CREDENTIAL,
                "name": "CRM",
                "description": None,
                "credential_type": "bearer_token",
                "created_at": TIME,
                "updated_at": None,
            }
        ],
        "/knowledge-base/documents": {
            "documents": [
                {
                    "id": 1,
                    "document_uuid": DOCUMENT,
                    "filename": "hours.md",
                    "file_size_bytes": len(HOURS),
                    "file_hash": hashlib.sha256(HOURS).hexdigest(),
                    "mime_type": "text/markdown",
                    "processing_status": "completed",
                    "processing_error": None,
                    "total_chunks": 1,
                    "retrieval_mode": "chunked",
                    "custom_metadata": {},
                    "docling_metadata": {},
                    "source_url": None,
                    "created_at": TIME,
                    "updated_at": TIME,
                    "organization_id": 1,
                    "created_by": 1,
                    "is_active": True,
                }
            ],
            "total": 1,
            "limit": 100,
            "offset": 0,
        },
        "/campaign/": {
            "campaigns": [
                campaign(1, "Winter", "created", 7),
                campaign(2, "Under way", "running", 7),
                campaign(3, "Over", "completed", 7),
                campaign(4, "Elsewhere", "created", 99),
            ]
        },
        **{
            f"/campaign/{id}/source-download-url": {"download_url": f"{origin}/list?token=t", "expires_in": 3600}
            for id in (1, 2)
        },
        "/organizations/telephony-configs": {
            "configurations": [{"id": 3, "name": "Main", "provider": "twilio", "phone_number_count": 2}]
        },
        "/organizations/model-configurations/v2": {
            "configuration": {"mode": "dograh"},
            "effective_configuration": {},
            "source": "organization_v2",
        },
        "/workflow-recordings/": {"recordings": [{"recording_id": RECORDING}], "total": 1},
    }


@contextmanager
def served(**changes: Any) -> Iterator[tuple[str, list[str]]]:
    """The fake's address, and the paths asked for.

    :param changes: answers that replace others, by path without the first slash; an int is a status alone.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked.append(self.path)
            origin = f"http://127.0.0.1:{self.server.server_address[1]}"
            if parts.path == "/list":
                # The signed address: the key doesn't belong here.
                assert self.headers["X-API-Key"] is None
                return self.reply(200, b"phone_number,city\n+12025550171,Graz\n+12025550172,Linz\n")
            known = {**answers(origin), **{f"/{path}": answer for path, answer in changes.items()}}
            answer = known.get(parts.path.removeprefix("/api/v1"), 404)
            if self.headers["X-API-Key"] != KEY:
                return self.reply(401, b'{"detail": "Invalid or expired API key"}')
            if isinstance(answer, int):
                return self.reply(answer, b'{"detail": "Not Found"}')
            if isinstance(answer, bytes):
                return self.reply(200, answer)
            query = parse_qs(parts.query)
            offset, limit = (int(query.get(name, [default])[0]) for name, default in (("offset", 0), ("limit", 100)))
            if isinstance(answer, dict) and "offset" in answer:
                answer = {**answer, "documents": answer["documents"][offset : offset + limit]}
            elif parts.path.endswith("/versions"):
                answer = answer[offset : offset + limit]
            return self.reply(200, json.dumps(answer).encode())

        def reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if 300 <= status < 400:
                self.send_header("Location", "https://voice.example.org/api/v1/workflow/fetch")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
