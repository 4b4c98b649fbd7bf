from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from voiceapi.store.workflows import WorkflowVersion
from voiceapi.strict_json import encode
from voiceapi.workflows import versions

API = "/api/v1"
NUMBER = {"phone_number": "+12025550123"}


def test_a_published_definition_is_checked_with_its_first_trigger_only(
    client: FlaskClient, workflow: Callable[..., Any], talk: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = workflow(path="line")
    monkeypatch.setattr(versions, "definitions", versions.Definitions(100_000))
    checked = []
    check = versions.check
    monkeypatch.setattr(versions, "check", lambda *given: checked.append(1) or check(*given))
    for _ in range(3):
        assert client.post(f"{API}/public/agent/line", json=NUMBER).status_code == 200
    assert len(checked) == 1
    changed = talk("line")
    changed["nodes"][0]["data"]["name"] = "Another"
    client.put(f"{API}/workflow/{made['id']}", json={"workflow_definition": changed})
    client.post(f"{API}/workflow/{made['id']}/publish")
    checked.clear()
    for _ in range(3):
        assert client.post(f"{API}/public/agent/line", json=NUMBER).status_code == 200
    assert len(checked) == 1


def test_the_definitions_that_are_kept_are_bounded(talk: Callable[..., Any]) -> None:
    rows = [WorkflowVersion(definition=talk(f"path-{n}")) for n in range(4)]
    kept = versions.Definitions(3 * len(encode(rows[0].definition)))
    first = [kept.read(row) for row in rows[:3]]
    assert [each.paths for each in first] == [["path-0"], ["path-1"], ["path-2"]]
    assert kept.read(rows[0]) is first[0]  # which was used last now
    kept.read(rows[3])
    assert kept.read(rows[0]) is first[0]
    assert kept.read(rows[1]) is not first[1]
    none = versions.Definitions(10)
    assert none.read(rows[0]) is not none.read(rows[0])
