"""What can go wrong, as a client is told: the faults that any room may raise, and the one handler that answers them.

Every error body is JSON with `detail`: a sentence, a list of items (loc, msg, type) when the request itself is at
fault, or an object where the API contract has one (specification 7).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, InternalServerError, MethodNotAllowed, NotFound

log = logging.getLogger("voiceapi")
COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class ServiceError(Exception):
    """Something that the client is told. `detail` is what the body's detail will be: a sentence or an object."""

    status = 400

    def __init__(self, detail: Any) -> None:
        super().__init__(detail)
        self.detail = detail


class NotPossible(ServiceError):
    """What was asked can't be done as things stand."""


class Unauthorized(ServiceError):
    status = 401


class Forbidden(ServiceError):
    status = 403


class RecordNotFound(ServiceError):
    """There is no such record, or it belongs to another organization, which is not told apart."""

    status = 404


class Conflict(ServiceError):
    status = 409


class TooLarge(ServiceError):
    status = 413


class Unreadable(ServiceError):
    """The body's charset or content encoding is unknown here."""

    status = 415


class Invalid(ServiceError):
    """The request is well-formed but breaks a rule; `detail` is a list of items, or an object or sentence."""

    status = 422


class LimitReached(ServiceError):
    """The limit of calls in progress is reached."""

    status = 429


class Unavailable(ServiceError):
    """The service can't do anything of the kind at the moment, and it isn't the client's fault."""

    status = 503


class Message(str):
    """A message of a validation error that keeps its machine-readable type on its way through marshmallow."""

    type: str

    def __new__(cls, text: str, type: str = "value_error") -> Message:
        message = super().__new__(cls, text)
        message.type = type
        return message

    def format(self, *args: object, **kwargs: object) -> Message:
        return Message(super().format(*args, **kwargs), self.type)

    def __deepcopy__(self, memo: object) -> Message:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Message, (str(self), self.type)


def item(loc: Sequence[str | int], msg: str, type: str) -> dict[str, Any]:
    """One item of a 422: exactly loc, msg and type."""
    return {"loc": list(loc), "msg": msg, "type": type}


def value_error(loc: Sequence[str | int], text: str) -> dict[str, Any]:
    """The item of a rule of our own."""
    return item(loc, f"Value error, {text}", "value_error")


def items(messages: Any, loc: tuple[str | int, ...]) -> Iterator[dict[str, Any]]:
    """Flatten marshmallow's nested messages into items; `_schema` names the object itself."""
    if isinstance(messages, dict):
        for key, below in messages.items():
            yield from items(below, loc if key == "_schema" else (*loc, key))
    elif isinstance(messages, list):
        for message in messages:
            yield from items(message, loc)
    else:
        yield item(loc, str(messages), getattr(messages, "type", "value_error"))


def json_response(value: Any, status: int = 200) -> Response:
    """Compact JSON in the order given. A host app's own JSON provider stays out of it."""
    return Response(COMPACT.encode(value) + "\n", status, mimetype="application/json")


def answer_fault(fault: ServiceError) -> Response:
    return json_response({"detail": fault.detail}, fault.status)


def answer_http(error: HTTPException) -> Response:
    """An error of Flask's or Werkzeug's own, with its headers (Allow, Retry-After) kept."""
    if error.response is not None and isinstance(error.response, Response):
        return error.response
    titles = {404: "Not Found", 405: "Method Not Allowed", 413: "The request body is too large."}
    code = error.code or 500
    response = json_response({"detail": titles.get(code, error.description)}, code)
    for name, value in error.get_headers():
        if name.lower() not in ("content-type", "content-length"):
            response.headers[name] = value
    return response


def answer_crash(error: Exception) -> Response:
    """Anything else is our own defect: logged whole, told as little as possible."""
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return json_response({"detail": InternalServerError.description}, 500)


def install(blueprint: Any) -> None:
    """Answer the errors raised under `blueprint`; the host's other pages keep their own."""
    blueprint.register_error_handler(ServiceError, answer_fault)
    blueprint.register_error_handler(HTTPException, answer_http)
    blueprint.register_error_handler(Exception, answer_crash)


def install_routing(app: Flask, prefix: str) -> None:
    """Answer unknown paths and wrong methods under `prefix`, which never reach a blueprint's own handlers."""

    def answer_routing() -> Response | None:
        error = request.routing_exception
        if isinstance(error, NotFound | MethodNotAllowed) and f"{request.path}/".startswith(f"{prefix}/"):
            return answer_http(error)
        return None

    app.before_request(answer_routing)
