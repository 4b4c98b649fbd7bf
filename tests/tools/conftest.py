"""A tool context that records requests instead of sending them, and the call of a tool by a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from voiceapi.engine.actions import RunTool
from voiceapi.http_client import Reply, RequestFailed
from voiceapi.tools.tool import ToolContext

CREDENTIALS = {"known": {"Authorization": "Bearer s3cret"}}


@dataclass
class Post:
    """Answers with `body`, or raises `fails`; `sent` are the requests."""

    status: int = 200
    body: Any = field(default_factory=dict)
    fails: RequestFailed | None = None
    sent: list[dict[str, Any]] = field(default_factory=list)

    def send(self, method: str, url: str, **request: Any) -> Reply:
        self.sent.append({"method": method, "url": url, **request})
        if self.fails is not None:
            raise self.fails
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        return Reply(self.status, {}, body, 0.01)

    def context(self, no_transfer: str = "") -> ToolContext:
        return ToolContext(self.send, lambda uuid: CREDENTIALS.get(uuid) if uuid else {}, no_transfer)


@pytest.fixture
def post() -> Post:
    return Post()


@pytest.fixture
def request_of() -> Callable[..., RunTool]:
    def make(arguments: Any = None, initial: Any = None, gathered: Any = None, uuid: str = "uuid") -> RunTool:
        return RunTool(7, 1000.0, "1", "call_1", "tool", uuid, arguments or {}, initial or {}, gathered or {})

    return make
