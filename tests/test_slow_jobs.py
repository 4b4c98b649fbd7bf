"""Turns that take long: the caller is asked to wait, and each turn is decided once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.background import Turns
from voiceapi.calls.turns import FILLER
from voiceapi.engine.actions import AskModel
from voiceapi.engine.events import ModelReplied
from voiceapi.llm.scripted import Scripted
from voiceapi.telephony.carriers.simulator import Simulator

API = "/api/v1"


def test_what_takes_long_is_decided_once() -> None:
    turns, go, asked = Turns(patience=0.05), threading.Event(), []

    def decide() -> str:
        asked.append(1)
        go.wait(5)
        return "Hello."

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: turns.decided("a", decide), range(4))) == [None] * 4
    threading.Timer(0.01, go.set).start()
    turns.patience = 2
    assert turns.decided("a", decide) == "Hello."
    assert asked == [1]


def test_what_deciding_raises_comes_through_and_may_be_tried_again() -> None:
    turns, errors = Turns(), [KeyError("a"), TimeoutError("b")]

    def decide() -> str:
        if errors:
            raise errors.pop(0)
        return "Hello."

    with pytest.raises(KeyError):
        turns.decided("a", decide)
    with pytest.raises(TimeoutError):
        turns.decided("a", decide)
    assert turns.decided("a", decide) == "Hello."


class Slow:
    """The scripted model, after a while; it isn't one that is known to be quick."""

    def __init__(self) -> None:
        self.asked = 0
        self.extract = Scripted().extract

    def reply(self, ask: AskModel) -> ModelReplied:
        self.asked += 1
        time.sleep(0.1)
        return Scripted().reply(ask)


def test_a_call_with_a_slow_model_goes_on(
    app: Flask, client: FlaskClient, workflow: Callable[..., Any], finished: Callable[..., Any], monkeypatch: Any
) -> None:
    service, model, documents = app.extensions["voiceapi"], Slow(), []
    object.__setattr__(service, "model", model)
    service.turns.patience = 0.03
    monkeypatch.setattr(Simulator, "render", watched(Simulator.render, documents))
    made = workflow(path="slow-agent")
    client.post(f"{API}/workflow/{made['id']}/publish")
    context = {"simulated_callee": ["Yes."]}
    body = {"phone_number": "+12025550123", "initial_context": context}
    run = client.post(f"{API}/public/agent/slow-agent", json=body).get_json()["workflow_run_id"]
    done = finished(made["id"], run)
    assert done["gathered_context"]["call_disposition"] == "user_qualified"
    assert model.asked == 2
    assert documents.count([FILLER]) > 0


def watched(render: Any, documents: list[Any]) -> Any:
    def keep(self: Any, actions: Any, *others: Any) -> Any:
        documents.append([action.text for action in actions if hasattr(action, "text")])
        return render(self, actions, *others)

    return keep
