"""Trying an http_api tool out: what was sent, what came back, and what to do about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ..engine.actions import RunTool
from ..http_client import Reply
from .http_api import exchange, prepare
from .tool import Tool, ToolFault

HINTS = {
    401: "The server wants a credential, or another one.",
    403: "The server doesn't let this credential in.",
    404: "The server has nothing at this address: check the URL.",
    405: "The server takes another method at this address.",
    422: "The server doesn't take these values: check parameters and body.",
}
TIMEOUT_HINT = "Raise timeout_ms, or make the server answer sooner: the caller waits for it."
# Instead of a credential, whose last characters may be all of it: "Basic dTpw" is u:p.
HIDDEN = "********"
VALUES_HINT = "Give values in llm_params for what the model is asked for, in preset_params for what a call would know."


def trial(
    tool: Tool,
    arguments: Mapping[str, Any],
    presets: Mapping[str, Any],
    header: Mapping[str, str],
    send: Callable[..., Reply],
    at: float,
) -> dict[str, Any]:
    """What came of one call of the tool, in the contract's shape; unlike for a model, a status from 400 is an error.

    :param header: the credential's, whose value is not shown.
    """
    request = RunTool(0, at, "", "", tool.function_name, tool.uuid, arguments)
    told: dict[str, Any] = dict.fromkeys(
        ("status_code", "data", "error", "hint", "request_headers", "request_body", "request_params")
    )
    told |= {"request_method": tool.config["method"], "request_url": tool.config["url"], "duration_ms": 0}
    try:
        prepared = prepare(tool.config, request, header, presets)
    except ToolFault as fault:
        return {**told, "status": "error", "error": str(fault), "hint": VALUES_HINT}
    started = time.monotonic()
    result = exchange(send, prepared)
    shown = {name: HIDDEN if header.get(name) == value else value for name, value in prepared.headers.items()}
    told |= {
        **result,
        "request_url": prepared.url,
        "request_headers": shown,
        "request_body": prepared.body,
        "request_params": prepared.params,
        "duration_ms": round((time.monotonic() - started) * 1000),
    }
    status = told["status_code"]
    if status is None:
        late = told["error"].startswith("Request timed out")
        return {**told, "hint": TIMEOUT_HINT if late else None}
    if status >= 400:
        return {**told, "status": "error", "error": f"The server answered {status}.", "hint": HINTS.get(status)}
    return told
