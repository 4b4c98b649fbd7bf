"""The pre-call fetch: the workflow's own server is told who calls, and may answer with context for the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.actions import Fetch
from ..engine.events import Fetched
from ..http_client import RequestFailed
from .http_api import json_of
from .tool import ToolContext

SECONDS = 10.0
LARGEST_ANSWER = 256 * 1024


def fetch(request: Fetch, call: Mapping[str, Any], desk: ToolContext) -> Fetched:
    """Ask once; whatever fails is told as `error`, and the call goes on without.

    :param call: `agent_id`, `from_number` and `to_number`.
    """
    try:
        reply = desk.send(
            "POST",
            request.url,
            headers=desk.header(request.credential_uuid) or {},
            # The event is called so for outbound calls as well.
            json={"event": "call_inbound", "call_inbound": dict(call)},
            timeout=SECONDS,
            largest=LARGEST_ANSWER,
        )
    except RequestFailed as error:
        return _failed(request, str(error))
    if not 200 <= reply.status < 300:
        return _failed(request, f"the status was {reply.status}.")
    try:
        answer = json_of(reply)
    except ValueError:
        return _failed(request, "the answer is not JSON.")
    match answer:
        case {"call_inbound": Mapping() as inner}:
            answer = inner
        case Mapping():
            pass
        case _:
            return _failed(request, "the answer is not a JSON object.")
    found = answer.get("initial_context")
    found = found if isinstance(found, Mapping) else answer.get("dynamic_variables")
    return Fetched(request.at, request.number, dict(found) if isinstance(found, Mapping) else {})


def _failed(request: Fetch, why: str) -> Fetched:
    return Fetched(request.at, request.number, {}, error=f"The fetch before the call failed: {why}")
