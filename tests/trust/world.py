"""Organizations for the tests of isolation: one with a record of every kind, a stranger with a few, and a new one."""

from __future__ import annotations

import io
import itertools
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import uuid4

from flask import Flask, request
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from voiceapi import VoiceAPI
from voiceapi.organizations import api_keys
from voiceapi.store.database import Store, database, execute, sql, write
from voiceapi.store.postcall import Delivery, DeliveryAttempt, Listener
from voiceapi.store.runs import Run

API = "/api/v1"
KEY = "test-key-0123456789"
# Part of every text that the rich organization stores.
MARK = "Alpha"
LIST = b"phone_number,first_name\n+12025550123,Alpha\n"
# Another number when anybody has written since this connection asked last.
VERSION = "PRAGMA data_version"
POSTGRESQL_VERSION = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
TWILIO = {"provider": "twilio", "account_sid": f"AC{'0' * 32}", "auth_token": "1" * 32}

Ids = dict[str, Any]


class Asked(NamedTuple):
    """An answer without what differs from request to request: the ids that were asked for, and when."""

    status: int
    text: str
    headers: tuple[tuple[str, str], ...]


class World:
    """One app: `alpha` has a record of every kind, `beta` is a stranger to it, `gamma` has nothing of its own.

    `theirs` are the ids of alpha's records, `mine` those of beta's, by what they are called in paths and bodies.
    `login` is the header of a request whose organization the host's own login decides.
    """

    login = "X-Login"

    def __init__(self, location: str, talk: Callable[..., Any]) -> None:
        self.talk = talk
        self.app = Flask("world")
        self.app.config.update(TESTING=True, VOICEAPI_DATABASE=location, VOICEAPI_API_KEY=KEY, VOICEAPI_WORKER="off")
        VoiceAPI(self.app, authenticate=lambda: request.headers.get(self.login))
        self.service = self.app.extensions["voiceapi"]
        # Its connection writes nothing, so that VERSION counts what all others write.
        self.reader = Store(location)
        self.dumped: tuple[Any, frozenset[tuple[str, str]]] | None = None
        # A wrong key counts against its address, so each request has an address of its own.
        self.addresses = (f"10.0.{number // 250}.{number % 250}" for number in itertools.count())
        self.keys = {name: self.key_of(name) for name in ("alpha", "beta", "gamma")}
        self.theirs = self.build(self.client("alpha"), MARK, "alpha")
        self.theirs |= self.extras(self.client("alpha"), self.theirs)
        self.settle()
        self.photo = self.dump()
        self.mine = self.build(self.client("beta"), "Beta", "beta")
        self.unknown: Ids = {
            name: 987654321 if isinstance(value, int) else _unlike(value) for name, value in self.theirs.items()
        }

    def key_of(self, name: str) -> str:
        with self.service.store.session():
            organization = api_keys.get_or_create_organization(self.service, name)
            return api_keys.create(organization.id, "VOICEAPI_API_KEY")[1]

    def client(self, name: str | None = None, key: str | None = None) -> FlaskClient:
        client = self.app.test_client()
        if name or key:
            client.environ_base["HTTP_X_API_KEY"] = key or self.keys[str(name)]
        return client

    def close(self) -> None:
        self.reader.close()
        self.service.close()

    def settle(self) -> None:
        """Wait until no simulated call goes on."""
        deadline = time.monotonic() + 60
        while self.service.phones.running() or self._in_progress():
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def _in_progress(self) -> bool:
        with self.service.store.session():
            return Run.select().where(Run.deadline_at.is_null(False), Run.mode != "textchat").count() > 0

    def dump(self) -> frozenset[tuple[str, str]]:
        """Every row of the database, without when keys were last used, and without the index of documents' words."""
        with self.reader.session():
            [version] = execute(sql(sqlite=VERSION, postgresql=POSTGRESQL_VERSION)).fetchone()
            if self.dumped is None or self.dumped[0] != version:
                rows = set[tuple[str, str]]()
                for name in (name for name in database.get_tables() if not name.startswith("passage_words_")):
                    found = execute(f'SELECT * FROM "{name}"')
                    kept = [at for at, column in enumerate(found.description) if column[0] != "last_used_at"]
                    rows |= {(name, repr([row[at] for at in kept])) for row in found}
                self.dumped = version, frozenset(rows)
            return self.dumped[1]

    def send(self, client: FlaskClient, operation: str, ids: Ids, **sent: Any) -> TestResponse:
        """The answer to an operation whose path has those ids."""
        method, template = operation.split(" ")
        path = re.sub(r"{(\w+)}", lambda found: str(ids[found[1]]), template)
        return client.open(API + path, method=method, environ_overrides={"REMOTE_ADDR": next(self.addresses)}, **sent)

    def ask(self, client: FlaskClient, operation: str, ids: Ids, *named: Any, **sent: Any) -> Asked:
        """What a stranger is answered.

        :param named: the ids that the request names; they may stand in the answer.
        """
        answer = self.send(client, operation, ids, **sent)
        text = answer.get_data(as_text=True)
        for value in sorted(map(str, named), key=len, reverse=True):
            text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", "#", text)
        for name, value in self.theirs.items():
            assert not isinstance(value, str) or value not in text, f"{operation} shows alpha's {name}: {text}"
        assert MARK not in text, f"{operation} shows something of alpha's: {text}"
        headers = [(name, value) for name, value in answer.headers.items() if name not in ("Content-Length", "Date")]
        return Asked(answer.status_code, text, tuple(headers))

    # -- what the organizations have

    def build(self, client: FlaskClient, mark: str, path: str) -> Ids:
        """A record of each kind that requests name by an id; returns those ids."""

        def make(operation: str, ids: Ids | None = None, **sent: Any) -> Any:
            answer = self.send(client, operation, ids or {}, **sent)
            assert answer.status_code == 200, f"{operation}: {answer.text}"
            return answer.get_json()

        credential = {"name": mark, "credential_type": "bearer_token", "credential_data": {"token": f"{mark}-secret"}}
        credential_uuid = make("POST /credentials/", json=credential)["uuid"]
        document = {"file": (io.BytesIO(f"{mark} opens at nine.".encode()), f"{mark}.md")}
        document_uuid = make("POST /knowledge-base/documents", data=document)["document_uuid"]
        tool = {"name": mark, "definition": http_tool(credential_uuid)}
        tool_uuid = make("POST /tools/", json=tool)["tool_uuid"]
        transfer = {"name": f"{mark} transfer", "definition": transfer_tool(credential_uuid)}
        transfer_uuid = make("POST /tools/", json=transfer)["tool_uuid"]
        definition = self.talk(path, greeting=f"{mark} here, is now a good time?")
        workflow = make("POST /workflow/create/definition", json={"name": mark, "workflow_definition": definition})
        workflow_id, workflow_uuid = workflow["id"], workflow["workflow_uuid"]
        config = {"name": mark, "config": {"provider": "simulator"}}
        config_id = make("POST /organizations/telephony-configs", json=config)["id"]
        number = {"address": f"+120255501{50 if mark == MARK else 60}", "label": mark}
        numbers = "POST /organizations/telephony-configs/{config_id}/phone-numbers"
        phone_number_id = make(numbers, {"config_id": config_id}, json=number)["id"]
        case = {"name": mark, "turns": [{"caller": f"Yes, {mark}.", "edges": ["Yes"]}]}
        case_id = make("POST /workflow/{workflow_id}/cases", {"workflow_id": workflow_id}, json={"case": case})["id"]
        run = {"name": mark, "mode": "simulator"}
        run_id = make("POST /workflow/{workflow_id}/runs", {"workflow_id": workflow_id}, json=run)["id"]
        chat = make(
            "POST /workflow/{workflow_id}/text-chat/sessions",
            {"workflow_id": workflow_id},
            json={"name": mark, "initial_context": {"first_name": mark}},
        )
        slot = make("POST /s3/presigned-upload-url", json={"file_name": f"{mark}.csv", "file_size": len(LIST)})
        assert client.put(slot["upload_url"], data=LIST).status_code == 200
        form = {"name": mark, "workflow_id": str(workflow_id), "file": (io.BytesIO(LIST), f"{mark}.csv")}
        campaign_id = make("POST /campaign/create/csv", data=form)["id"]
        forbidden = "+12025550171" if mark == MARK else "+12025550172"
        make("POST /do-not-call", json={"phone_numbers": [forbidden], "reason": mark})
        return {
            "credential_uuid": credential_uuid,
            "document_uuid": document_uuid,
            "tool_uuid": tool_uuid,
            "transfer_uuid": transfer_uuid,
            "workflow_id": workflow_id,
            "workflow_uuid": workflow_uuid,
            "case_id": case_id,
            "uuid": path,
            "config_id": config_id,
            "phone_number_id": phone_number_id,
            "run_id": run_id,
            "chat_id": chat["workflow_run_id"],
            "turn_id": chat["session_data"]["turns"][0]["id"],
            "file_key": slot["file_key"],
            "campaign_id": campaign_id,
            "row_id": 1,
            "phone_number": forbidden,
            "api_key_id": make("POST /user/api-keys", json={"name": mark})["id"],
        }

    def extras(self, client: FlaskClient, ids: Ids) -> Ids:
        """What only the rich organization has: an ended call and its webhook, a started campaign, other settings."""

        def make(operation: str, **sent: Any) -> Any:
            answer = self.send(client, operation, ids, **sent)
            assert answer.status_code == 200, f"{operation}: {answer.text}"
            return answer.get_json()

        call = {"phone_number": "+12025550123", "initial_context": {"first_name": MARK}}
        repeatable = {"Idempotency-Key": "order-4711"}
        run_id = make("POST /public/agent/{uuid}", json=call, headers=repeatable)["workflow_run_id"]
        self.settle()
        with self.service.store.session(), write():
            run = Run.get_by_id(run_id)
            delivery = Delivery.create(
                organization=run.organization_id,
                run=run,
                node_id="w",
                node_name=MARK,
                delivery_uuid=str(uuid4()),
                state="dead_letter",
                method="POST",
                url=f"https://example.org/{MARK}",
                body=MARK.encode(),
            )
            Listener.get_or_create(name="shop.note")
            DeliveryAttempt.create(delivery=delivery, number=1, error=MARK)
        make("POST /campaign/{campaign_id}/start")
        make("POST /campaign/{campaign_id}/pause")
        make("PUT /workflow/{workflow_id}", json={"name": MARK, "workflow_configurations": {"max_call_duration": 60}})
        make("POST /organizations/telephony-configs", json={"name": f"{MARK} Twilio", "config": TWILIO})
        make("PUT /organizations/preferences", json={"test_phone_number": "+12025550123", "timezone": "Europe/Berlin"})
        make("POST /organizations/webhook-secrets/rotate")
        key = make("POST /user/api-keys", json={"name": f"{MARK} archived"})
        make(f"DELETE /user/api-keys/{key['id']}")
        self.archived_key = key["api_key"]
        return {"ended_run_id": run_id, "delivery_uuid": delivery.delivery_uuid, "run_token": run.token}


def http_tool(credential_uuid: str | None = None) -> dict[str, Any]:
    """The definition of a tool that sends a credential."""
    config = {"method": "GET", "url": "https://example.org", "credential_uuid": credential_uuid}
    return {"schema_version": 1, "type": "http_api", "config": config}


def transfer_tool(credential_uuid: str | None = None) -> dict[str, Any]:
    """The definition of a transfer whose destination is asked for with a credential."""
    resolver = {"type": "http", "url": "https://example.org", "credential_uuid": credential_uuid}
    config = {"destination_source": "dynamic", "resolver": resolver}
    return {"schema_version": 1, "type": "transfer_call", "config": config}


def _unlike(text: str) -> str:
    """Text of the same form as an id, that names nothing."""
    return re.sub(r"[0-9a-f]{8}-", "00000000-", text) if "-" in text[8:9] or "/" in text else f"{text[:-3]}zzz"
