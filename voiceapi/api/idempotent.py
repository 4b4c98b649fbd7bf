"""An endpoint whose request may be sent again, with an `Idempotency-Key`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flask import Response, after_this_request, request

from ..calls.idempotency import IdempotentRequest, fingerprint
from ..calls.outbound import Stopped
from ..errors import ServiceError
from .blueprint import json_body
from .json_response import json_response, json_values

Made = TypeVar("Made")
REPLAYED = "Idempotent-Replayed"
# For the document: the header of an answer, as `response` takes it.
HEADERS = {REPLAYED: {"description": "`true` on what an earlier request was answered", "schema": {"type": "string"}}}


def answer_once(
    organization: int,
    key: str | None,
    make: Callable[[Callable[[Any], None] | None], Made],
    answer: Callable[[Made], dict[str, Any]],
    body: Callable[[], Any] = json_body,
) -> Response:
    """Do what the request asks for, or answer it as the first request with its key was answered.

    :param key: None when the client sent none; then every request is the first.
    :param make: does it, and calls its argument in the transaction that stores what is made.
    :param answer: the plain answer, from what was made.
    :param body: the body as parsed JSON: what makes two requests the same, beside the path.
    """
    if key is None:
        return json_response(answer(make(None)))
    operation = (request.endpoint or "").rpartition(".")[2]
    sent = fingerprint([request.view_args, body()])
    asked = IdempotentRequest(organization, operation, key, sent, lambda made: json_values(answer(made)))
    stored = asked.stored_response()
    if stored is None:
        try:
            return json_response(asked.save_response(asked.answer(make(asked.reserve))))
        except Stopped:
            asked.release()
            raise
        except ServiceError:
            # Another one of the same may have been quicker, and have taken the slot or the prepared run.
            stored = None if asked.reserved else asked.stored_response()
            if stored is None:
                raise
    after_this_request(_mark_replayed)
    if isinstance(stored, ServiceError):
        raise stored
    return json_response(stored)


def _mark_replayed(response: Response) -> Response:
    response.headers[REPLAYED] = "true"
    return response
