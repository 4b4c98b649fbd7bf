"""transfer_call: finds the destination of a transfer and what is said before it. The carrier makes the transfer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.actions import Function, RunTool
from ..engine.events import ToolReturned
from ..engine.template import value_at
from ..http_client import RequestFailed
from .http_api import data_of, merge_headers
from .tool import (
    RunnableTool,
    ToolContext,
    ToolError,
    called_at,
    contexts,
    declared_arguments,
    preset_values,
    schema,
    spoken,
)

MAX_DESTINATION_LENGTH = 255
MAX_REPLY_BYTES = 64 * 1024
# The message for the model by the reason of a failed transfer.
FAILURES: Mapping[str, str] = {
    "no_destination": "There is no destination to transfer this call to.",
    "invalid_destination": "This destination can't be dialed.",
    "no_context_mapping_match": "What is known of this call leads to no destination.",
    "missing_parameter": "The destination could not be asked for.",
    "preset_parameter_error": "The destination could not be asked for: a preset parameter has no usable value.",
    "credential_not_found": "The destination could not be asked for: the credential is missing.",
    "resolver_timeout": "The destination was asked for, and the answer took too long.",
    "resolver_request_failed": "The destination could not be asked for.",
    "resolver_http_error": "The destination was asked for and refused.",
    "invalid_resolver_response": "The destination was asked for, and the answer named none.",
    "invalid_custom_message": "The destination was asked for, and the answer's message is no text.",
    "country_not_allowed": "This destination may not be called.",
    "call_limit_reached": "No more calls may be placed for now.",
    "timeout": "Nobody answered there.",
    "provider_error": "The carrier could not put the caller through.",
    "caller_hung_up": "The caller hung up before anybody answered there.",
    "textchat_not_supported": "A text chat can't be transferred.",
}


# The details of a transfer that wasn't answered, where the carrier gives no cause, by its outcome.
NOT_ANSWERED: Mapping[str, str] = {
    "busy": "The line was busy.",
    "canceled": "The call there was canceled.",
    "failed": "The call there failed.",
}


class TransferFailed(Exception):
    """The call can't be transferred: `reason` is one of FAILURES, `details` a sentence to add to its message."""

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.details = details


def failed(reason: str, details: str = "") -> dict[str, Any]:
    """The result of a failed transfer, for the model; the conversation goes on."""
    return {"status": "transfer_failed", "reason": reason, "message": f"{FAILURES[reason]} {details}".strip()}


def transfer_result(answered: bool, outcome: str, caller_hung_up: bool = False, cause: str = "") -> dict[str, Any]:
    """The result of a transfer, for the model, once the carrier has reported how it ended.

    :param outcome: when it wasn't answered: busy, no-answer, failed or canceled.
    :param caller_hung_up: it wasn't answered because the call has ended.
    :param cause: why it wasn't answered, as a sentence; empty if the carrier doesn't say.
    """
    if answered:
        return {"status": "transfer_success", "message": "The caller was put through."}
    if caller_hung_up:
        return failed("caller_hung_up")
    if outcome == "no-answer":
        return failed("timeout")
    return failed("provider_error", cause or NOT_ANSWERED.get(outcome, ""))


class TransferCall(RunnableTool):
    """Transfers the caller to a fixed destination, one mapped from the call's context, or one that a server names."""

    @property
    def is_local(self) -> bool:
        """True unless a server is asked for the destination."""
        return not self._is_dynamic

    @property
    def _is_dynamic(self) -> bool:
        return bool(self.config["destination_source"] == "dynamic")

    def function(self) -> Function:
        """The function that the model is offered; its parameters are those that the resolver needs, if there is one."""
        speech = (self.config["resolver"] or {}).get("wait_message") or "" if self._is_dynamic else ""
        parameters = schema(self._parameters())
        return Function(
            self.function_name, self.purpose, parameters, tool_uuid=self.uuid, speech=speech, transfers=True
        )

    def run(self, request: RunTool, context: ToolContext) -> ToolReturned:
        """Find the destination; the conversation then speaks the message and asks the carrier for the transfer.

        :raises ToolError: when the destination or the message is too long.
        """
        try:
            if context.no_transfer:
                raise TransferFailed(context.no_transfer)
            destination, message = self._destination(request, context)
            if not destination.strip() or len(destination) > MAX_DESTINATION_LENGTH:
                raise TransferFailed("no_destination")
            destination = context.transfer_address(destination.strip())
        except TransferFailed as failure:
            return ToolReturned(request.at, request.number, failed(failure.reason, failure.details))
        if message is None and self.config["messageType"] == "custom":
            message = spoken(self.config["customMessage"], request)
        return ToolReturned(
            request.at,
            request.number,
            None,
            speech=message or "",
            transfer_to=destination,
            transfer_timeout=float(self.config["timeout"]),
        )

    def _parameters(self) -> list[Mapping[str, Any]]:
        if not self._is_dynamic:
            return []
        return (self.config["resolver"] or {}).get("parameters") or self.config["parameters"] or []

    def _destination(self, request: RunTool, context: ToolContext) -> tuple[str, str | None]:
        """The destination, and a message that replaces the tool's own."""
        match self.config["destination_source"]:
            case "static":
                return spoken(self.config["destination"], request), None
            case "context_mapping":
                return _mapped(self.config["context_mapping"], request), None
            case _:
                return self._resolved(request, context)

    def _resolved(self, request: RunTool, context: ToolContext) -> tuple[str, str | None]:
        """Ask the author's server. It gets the model's arguments and the presets; a preset wins over an argument."""
        resolver = self.config["resolver"]
        header = context.header(resolver["credential_uuid"])
        if header is None:
            raise TransferFailed("credential_not_found")
        try:
            arguments = declared_arguments(self._parameters(), request.arguments)
        except ToolError as error:
            raise TransferFailed("missing_parameter", str(error)) from None
        variables = {**request.initial_context, **request.gathered_context, **contexts(request)}
        try:
            presets = preset_values(resolver["preset_parameters"], variables, called_at(request))
        except ToolError as error:
            raise TransferFailed("preset_parameter_error", str(error)) from None
        try:
            reply = context.send(
                "POST",
                resolver["url"],
                headers=merge_headers(resolver["headers"] or {}, header),
                json={**arguments, **presets},
                timeout=resolver["timeout_ms"] / 1000,
                max_bytes=MAX_REPLY_BYTES,
            )
        except RequestFailed as error:
            reason = "resolver_timeout" if error.kind == "timeout" else "resolver_request_failed"
            raise TransferFailed(reason, str(error)) from None
        if not 200 <= reply.status < 300:
            raise TransferFailed("resolver_http_error", f"The status was {reply.status}.")
        match data_of(reply):
            case {"transfer_context": {"destination": str(destination), **rest}} if destination.strip():
                message = rest.get("custom_message")
                if message is not None and not isinstance(message, str):
                    raise TransferFailed("invalid_custom_message")
                return destination, message or None
        raise TransferFailed("invalid_resolver_response")


def _mapped(mapping: Mapping[str, Any], request: RunTool) -> str:
    """The destination of the first route whose value equals the context's value at the path of its rule."""
    for rule in mapping["rules"] or [mapping]:  # a single rule may be spelled without the list
        value = _normalized(_context_value(rule["context_path"], request))
        for route in rule["routes"]:
            if value and _normalized(route["context_value"]) == value:
                return spoken(route["destination"], request)
    if not mapping["fallback_destination"]:
        raise TransferFailed("no_context_mapping_match")
    return spoken(mapping["fallback_destination"], request)


def _context_value(path: str, request: RunTool) -> Any:
    """The value at a dotted path, which may begin with the name of its context.

    Without that name the gathered context is searched first, then its extracted variables, then the initial context.
    """
    gathered, initial = request.gathered_context, request.initial_context
    places = ({**contexts(request)}, gathered, gathered.get("extracted_variables"), initial)
    found = (value_at(path, place) for place in places)
    return next((value for value in found if value is not None), None)


def _normalized(value: Any) -> str:
    return "" if value is None else str(value).strip().casefold()
