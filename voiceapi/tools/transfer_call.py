"""transfer_call: whom to put the caller through to, and what is said before. The transfer itself is the carrier's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..engine.actions import Function, RunTool
from ..engine.events import ToolReturned
from ..http_client import RequestFailed
from .http_api import data_of, over
from .parameters import chosen, preset, schema
from .tool import Tool, ToolContext, ToolFault, contexts, moment, spoken

LONGEST_DESTINATION = 255
LARGEST_ANSWER = 64 * 1024
# What the model is told of each reason for which nobody was put through.
FAILURES: Mapping[str, str] = {
    "no_destination": "There is no destination to transfer this call to.",
    "no_context_mapping_match": "What is known of this call leads to no destination.",
    "missing_parameter": "The destination could not be asked for.",
    "preset_parameter_error": "The destination could not be asked for: a preset parameter has no usable value.",
    "credential_not_found": "The destination could not be asked for: the credential is missing.",
    "resolver_timeout": "The destination was asked for, and the answer took too long.",
    "resolver_request_failed": "The destination could not be asked for.",
    "resolver_http_error": "The destination was asked for and refused.",
    "invalid_resolver_response": "The destination was asked for, and the answer named none.",
    "invalid_custom_message": "The destination was asked for, and the answer's message is no text.",
    "timeout": "Nobody answered there.",
    "provider_error": "The carrier could not put the caller through.",
    "textchat_not_supported": "A text chat can't be transferred.",
}


class Failure(Exception):
    """Why nobody can be put through: one of FAILURES, and what there is to add."""

    def __init__(self, reason: str, more: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.more = more


def failed(reason: str, more: str = "") -> dict[str, Any]:
    """What the model is told; it goes on talking."""
    return {"status": "transfer_failed", "reason": reason, "message": f"{FAILURES[reason]} {more}".strip()}


def settled(answered: bool, outcome: str) -> dict[str, Any]:
    """What the model is told once the carrier has told how a transfer came out.

    :param outcome: when it wasn't answered: busy, no-answer, failed or canceled.
    """
    if answered:
        return {"status": "transfer_success", "message": "The caller was put through."}
    return failed("timeout") if outcome == "no-answer" else failed("provider_error", f"The line was {outcome}.")


def offer(tool: Tool) -> Function:
    """What the model is offered: parameters are those that a resolver wants to know."""
    speech = (tool.config["resolver"] or {}).get("wait_message") or ""
    return Function(
        tool.function_name,
        tool.purpose,
        schema(_asked(tool.config)),
        tool_uuid=tool.uuid,
        speech=speech if is_dynamic(tool) else "",
    )


def is_dynamic(tool: Tool) -> bool:
    """Whether another server is asked for the destination."""
    return bool(tool.config["destination_source"] == "dynamic")


def run(tool: Tool, request: RunTool, desk: ToolContext) -> ToolReturned:
    """Find the destination; the message is spoken before it is dialed."""
    try:
        if desk.no_transfer:
            raise Failure(desk.no_transfer)
        destination, message = SOURCES[tool.config["destination_source"]](tool.config, request, desk)
        destination = destination.strip()
        if not destination or len(destination) > LONGEST_DESTINATION:
            raise Failure("no_destination")
    except Failure as failure:
        return ToolReturned(request.at, request.number, failed(failure.reason, failure.more))
    if message is None and tool.config["messageType"] == "custom":
        message = spoken(tool.config["customMessage"], request)
    return ToolReturned(
        request.at,
        request.number,
        None,
        speech=message or "",
        transfer_to=destination,
        transfer_timeout=float(tool.config["timeout"]),
    )


def _asked(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if config["destination_source"] != "dynamic":
        return []
    return (config["resolver"] or {}).get("parameters") or config["parameters"] or []


def _static(config: Mapping[str, Any], request: RunTool, _desk: ToolContext) -> tuple[str, None]:
    return spoken(config["destination"], request), None


def _mapped(config: Mapping[str, Any], request: RunTool, _desk: ToolContext) -> tuple[str, None]:
    """The destination of the first rule one of whose routes has the value that is known of the call."""
    mapping = config["context_mapping"]
    for rule in mapping["rules"] or [mapping]:  # a single rule may be spelled without the list
        value = _plain(_known(rule["context_path"], request))
        for route in rule["routes"]:
            if value and _plain(route["context_value"]) == value:
                return spoken(route["destination"], request), None
    if not mapping["fallback_destination"]:
        raise Failure("no_context_mapping_match")
    return spoken(mapping["fallback_destination"], request), None


def _known(path: str, request: RunTool) -> Any:
    """The value of a path that may name its context; one that doesn't is looked for where it was gathered first."""
    gathered, initial = request.gathered_context, request.initial_context
    places = ({**contexts(request)}, gathered, gathered.get("extracted_variables"), initial)
    found = (_walk(path, place) for place in places)
    return next((value for value in found if value is not None), None)


def _walk(path: str, value: Any) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _plain(value: Any) -> str:
    return "" if value is None else str(value).strip().casefold()


def _resolved(config: Mapping[str, Any], request: RunTool, desk: ToolContext) -> tuple[str, str | None]:
    """Ask the author's server: it is sent the model's arguments, over which preset parameters win."""
    resolver = config["resolver"]
    header = desk.header(resolver["credential_uuid"])
    if header is None:
        raise Failure("credential_not_found")
    try:
        asked = chosen(_asked(config), request.arguments)
    except ToolFault as fault:
        raise Failure("missing_parameter", str(fault)) from None
    context = {**request.initial_context, **request.gathered_context, **contexts(request)}
    try:
        given = preset(resolver["preset_parameters"], context, moment(request))
    except ToolFault as fault:
        raise Failure("preset_parameter_error", str(fault)) from None
    try:
        reply = desk.send(
            "POST",
            resolver["url"],
            headers=over(resolver["headers"] or {}, header),
            json={**asked, **given},
            timeout=resolver["timeout_ms"] / 1000,
            largest=LARGEST_ANSWER,
        )
    except RequestFailed as error:
        reason = "resolver_timeout" if error.kind == "timeout" else "resolver_request_failed"
        raise Failure(reason, str(error)) from None
    if not 200 <= reply.status < 300:
        raise Failure("resolver_http_error", f"The status was {reply.status}.")
    match data_of(reply):
        case {"transfer_context": {"destination": str(destination), **rest}} if destination.strip():
            message = rest.get("custom_message")
            if message is not None and not isinstance(message, str):
                raise Failure("invalid_custom_message")
            return destination, message or None
    raise Failure("invalid_resolver_response")


SOURCES: Mapping[str, Callable[[Mapping[str, Any], RunTool, ToolContext], tuple[str, str | None]]] = {
    "static": _static,
    "context_mapping": _mapped,
    "dynamic": _resolved,
}
