"""A served app with the relays' door, and a number of Twilio's whose calls go over them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from lines.call import API, PUBLIC
from lines.twilio_compatible import US
from streamed import Writer
from strict_relay import RelayedCall

from voiceapi.cli.server import Server
from voiceapi.relay.door import Door
from voiceapi.service import Service
from voiceapi.store import runs
from voiceapi.store.runs import Run


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"VOICEAPI_PUBLIC_URL": PUBLIC}


@pytest.fixture
def door(app: Flask, service: Service) -> Iterator[Door]:
    """The door of an app that is served as `serve` does."""
    door = Door(service)
    options: dict[str, Any] = {"host": "127.0.0.1", "port": 0, "threads": 4, "connections": 100}
    server = Server(app, **options, idle_timeout=60, max_body=1024 * 1024, door=door)
    thread = threading.Thread(target=server.run)
    thread.start()
    door.start()
    door.port = server.addresses[0][1]  # type: ignore[attr-defined]
    yield door
    server.stop()
    thread.join()
    server.close()


@pytest.fixture
def number(client: FlaskClient) -> Callable[..., int]:
    """Has a workflow answer our number at a carrier; returns the id of its configuration."""

    def make(workflow_id: int, given: Any = RelayedCall.config, **config: Any) -> int:
        configs = f"{API}/organizations/telephony-configs"
        client.delete(f"{configs}/1/phone-numbers/1")  # the simulator's own number is the same
        config = {**given, "transport": "relay", **config}
        answer = client.post(configs, json={"name": "Carrier", "config": config})
        assert answer.status_code == 200, answer.text
        made = int(answer.get_json()["id"])
        answer = client.post(
            f"{configs}/{made}/phone-numbers", json={"address": US, "inbound_workflow_id": workflow_id}
        )
        assert answer.status_code == 200, answer.text
        return made

    return make


@pytest.fixture
def ring(
    door: Any, client: FlaskClient, workflow: Callable[..., Any], number: Callable[..., int]
) -> Iterator[Callable[..., RelayedCall]]:
    """Calls our number, by default as Twilio does; the call is answered, and its relay isn't open yet."""
    calls: list[RelayedCall] = []

    def make(
        definition: Any = None, configurations: Any = None, caller: type[RelayedCall] = RelayedCall, **data: Any
    ) -> RelayedCall:
        made = workflow(definition, **data)
        if configurations:
            address = f"{API}/workflow/{made['id']}"
            answer = client.put(address, json={"name": "Agent", "workflow_configurations": configurations})
            assert answer.status_code == 200, answer.text
            client.post(f"{address}/publish")
        configuration = number(made["id"], caller.config)
        calls.append(caller(door.port))
        calls[-1].ring(configuration)
        return calls[-1]

    yield make
    for call in calls:
        call.closing.close()


@pytest.fixture
def writes(service: Service) -> Callable[..., Writer]:
    """Lets a model write these replies, one a request, each piece by piece."""

    def write(*replies: Any) -> Writer:
        writer = Writer(*replies)
        object.__setattr__(service, "model", writer.model)
        return writer

    return write


@pytest.fixture
def transcript(service: Service) -> Callable[[], list[str]]:
    """Who said what in the only call."""

    def read() -> list[str]:
        with service.store.session():
            return re.sub(r"(?m)^\[.*?\] ", "", runs.transcript(Run.get())).splitlines()

    return read
