"""The pre-call fetch: before a call begins, the author's server gets its numbers and may add to its context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.actions import Fetch
from ..engine.events import Fetched
from ..http_client import RequestFailed
from .http_api import json_of
from .tool import ToolContext

TIMEOUT_SECONDS = 10.0
MAX_REPLY_BYTES = 256 * 1024


def fetch(request: Fetch, call: Mapping[str, Any], context: ToolContext) -> Fetched:
    """Send the request once. A failure is returned as `error`; the call goes on without the context.

    :param call: `agent_id`, `from_number` and `to_number`.
    """
    try:
        reply = context.send(
            "POST",
            context.decrypted_url(request.url),
            headers=context.header(request.credential_uuid) or {},
            # The event has this name for outbound calls, too.
            json={"event": "call_inbound", "call_inbound": dict(call)},
            timeout=TIMEOUT_SECONDS,
            max_bytes=MAX_REPLY_BYTES,
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
