"""An endpoint whose request may be sent again, with an `Idempotency-Key`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from flask import Response, after_this_request, request
from marshmallow import Schema

from ..calls.idempotency import Promise, fingerprint
from ..calls.outbound import Stopped
from ..errors import ServiceError
from .blueprint import json_body
from .json_response import json_response

Made = TypeVar("Made")
REPLAYED = "Idempotent-Replayed"
# For the document: what `response` is told of the answer's headers.
HEADERS = {REPLAYED: {"description": "`true` on what an earlier request was answered", "schema": {"type": "string"}}}


def once(
    shape: Schema,
    organization: int,
    key: str | None,
    make: Callable[[Callable[[Any], None] | None], Made],
    show: Callable[[Made], Mapping[str, Any]],
    body: Callable[[], Any] = json_body,
) -> Response:
    """Do what the request asks for, or answer it as the first request with its key was answered.

    :param shape: of the answer.
    :param key: None when the client sent none; then every request is the first.
    :param make: does it, and lets the key be claimed in the transaction that stores what is made.
    :param show: the answer, from what was made.
    :param body: the body as parsed JSON: what makes two requests the same, beside the path.
    """
    if key is None:
        return json_response(shape.dump(show(make(None))))
    asked = fingerprint([request.view_args, body()])
    promise = Promise(organization, _operation(), key, asked, lambda made: shape.dump(show(made)))
    kept = promise.kept()
    if kept is None:
        try:
            return json_response(promise.keep(promise.show(make(promise.claim))))
        except Stopped:
            promise.release()
            raise
        except ServiceError:
            # Another one of the same may have been quicker, and have taken the slot or the prepared run.
            kept = None if promise.claimed else promise.kept()
            if kept is None:
                raise
    after_this_request(_tell_replayed)
    if isinstance(kept, ServiceError):
        raise kept
    return json_response(kept)


def _operation() -> str:
    return (request.endpoint or "").rpartition(".")[2]


def _tell_replayed(response: Response) -> Response:
    response.headers[REPLAYED] = "true"
    return response
