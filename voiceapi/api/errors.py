"""Errors as HTTP answers: the status of each error of a use case, and the one shape of all error bodies.

A body is `{"detail": ...}`: a sentence, an object, or for a request that breaks rules a list of items. An item has
`loc` ("path", "query", "header" or "body", then names and indexes), `msg` and `type`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flask import Blueprint, Flask, Response, current_app, request
from werkzeug.exceptions import HTTPException, InternalServerError
from werkzeug.routing import RequestRedirect

from .. import errors
from .answers import json_response

log = logging.getLogger("voiceapi")


class UnsupportedEncoding(errors.ServiceError):
    """The body's charset or content encoding is unknown here."""


class InvalidRequest(errors.InvalidInput):
    """The request breaks rules; `detail` is the list of items."""


# The status of an error is that of the first of its classes that is here.
STATUS: Mapping[type[errors.ServiceError], int] = {
    errors.ServiceError: 400,
    errors.NotPossible: 400,
    errors.NotAuthenticated: 401,
    errors.NotPermitted: 403,
    errors.RecordNotFound: 404,
    errors.Conflict: 409,
    errors.Outdated: 412,
    errors.SizeExceeded: 413,
    UnsupportedEncoding: 415,
    errors.InvalidInput: 422,
    errors.LimitReached: 429,
    errors.OutOfService: 503,
}
TITLES = {404: "Not Found", 405: "Method Not Allowed", 413: "The request body is too large."}


class Message(str):
    """A validation message of marshmallow's that keeps its machine-readable type."""

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


def field_item(error: errors.FieldError) -> dict[str, Any]:
    """The item of an error that a use case found in its input: the query of a GET, which has no body, else the body."""
    location = "query" if request.method == "GET" else "body"
    message = f"Value error, {error.message}" if error.type == "value_error" else error.message
    return item((location, *error.path), message, error.type)


def answer_service_error(error: errors.ServiceError) -> Response:
    """The answer to an error of a use case, with Retry-After where time helps."""
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    detail = [field_item(each) for each in error.errors] if isinstance(error, errors.InvalidFields) else error.detail
    response = json_response({"detail": detail}, status)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def answer_http_exception(error: HTTPException) -> Response:
    """The answer to an error of Flask's or Werkzeug's own, with its headers (Allow, Retry-After) kept."""
    if error.response is not None and isinstance(error.response, Response):
        return error.response
    code = error.code or 500
    response = json_response({"detail": TITLES.get(code, error.description)}, code)
    for name, value in error.get_headers():
        if name.lower() not in ("content-type", "content-length"):
            response.headers[name] = value
    return response


def answer_exception(error: Exception) -> Response:
    """The answer to any other exception: 503 if the database can't be used, whose log says why.

    Otherwise it is a defect of ours: the log has all of it, the client a plain sentence.
    """
    unavailable = current_app.extensions["voiceapi"].store.failures.find(error)
    if unavailable is not None:
        return answer_service_error(unavailable)
    token = (request.view_args or {}).get("token")  # whoever has it may use the address
    path = request.path.replace(token, "…") if token else request.path
    log.error("%s %s failed", request.method, path, exc_info=error)
    return json_response({"detail": InternalServerError.description}, 500)


def install(scope: Blueprint | Flask) -> None:
    """Answer the errors raised under a blueprint, or of a whole app; a host's other pages keep their own."""
    scope.register_error_handler(errors.ServiceError, answer_service_error)
    scope.register_error_handler(HTTPException, answer_http_exception)
    scope.register_error_handler(Exception, answer_exception)


def install_routing(app: Flask, prefix: str) -> None:
    """Answer what can't be routed under the mount prefix, and so never reaches a blueprint's own handlers.

    Without a prefix, a host app's own pages stand beside ours: only `/api` and each version below it are ours. The
    first request of a process, whatever its path, starts the background jobs.
    """
    ours = re.compile(rf"{re.escape(prefix)}(/.*)?" if prefix else r"/api(/?|/v[0-9]+(/.*)?)", re.DOTALL)

    def answer_routing() -> Response | None:
        app.extensions["voiceapi"].start_jobs()
        error = request.routing_exception
        # A redirect can only lead to a route of the host's.
        if isinstance(error, RequestRedirect) or not isinstance(error, HTTPException):
            return None
        return answer_http_exception(error) if ours.fullmatch(request.path) else None

    app.before_request(answer_routing)
