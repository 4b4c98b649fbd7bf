"""Tests an http_api tool: sends its request once and reports the request, the reply and a hint on errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ..engine.actions import RunTool
from ..http_client import Reply
from ..masking import mask_headers, mask_password
from .http_api import HttpApi, prepare, send_request
from .tool import ToolError

HINTS = {
    401: "The server wants a credential, or another one.",
    403: "The server doesn't let this credential in.",
    404: "The server has nothing at this address: check the URL.",
    405: "The server takes another method at this address.",
    422: "The server doesn't take these values: check parameters and body.",
}
TIMEOUT_HINT = "Raise timeout_ms, or make the server answer sooner: the caller waits for it."
VALUES_HINT = "Give values in llm_params for what the model is asked for, in preset_params for what a call would know."


def run_test(
    tool: HttpApi,
    arguments: Mapping[str, Any],
    presets: Mapping[str, Any],
    header: Mapping[str, str],
    send: Callable[..., Reply],
    at: float,
) -> dict[str, Any]:
    """The result of one call of the tool, with the members of the API's answer.

    Unlike in a call, a status of 400 or above is an error.

    :param arguments: what a model would give.
    :param presets: values of preset parameters, used instead of their templates.
    :param header: that of the tool's credential; the result hides the values of all headers that may hold a secret.
    :param at: Unix time of the call, for templates that name the current time.
    """
    request = RunTool(0, at, "", "", tool.function_name, tool.uuid, arguments)
    result: dict[str, Any] = dict.fromkeys(
        ("status_code", "data", "error", "hint", "request_headers", "request_body", "request_params")
    )
    url = mask_password(tool.config["url"])
    result |= {"request_method": tool.config["method"], "request_url": url, "duration_ms": 0}
    try:
        prepared = prepare(tool.config, request, header, presets)
    except ToolError as error:
        return {**result, "status": "error", "error": str(error), "hint": VALUES_HINT}
    started = time.monotonic()
    result |= send_request(send, prepared)
    result |= {
        "request_url": mask_password(prepared.url),
        "request_headers": mask_headers(prepared.headers),
        "request_body": prepared.body,
        "request_params": prepared.params,
        "duration_ms": round((time.monotonic() - started) * 1000),
    }
    status = result["status_code"]
    if status is None:
        timed_out = result["error"].startswith("Request timed out")
        return {**result, "hint": TIMEOUT_HINT if timed_out else None}
    if status >= 400:
        return {**result, "status": "error", "error": f"The server answered {status}.", "hint": HINTS.get(status)}
    return result
