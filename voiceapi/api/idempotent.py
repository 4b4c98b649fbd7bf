"""Answers a request with an `Idempotency-Key` once; the same request, sent again, gets the stored answer."""

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
    """Carry the request out, or repeat the answer to the first request with its key.

    :param key: None when the client sent none; then every request is carried out.
    :param make: carries it out. Its argument, unless None, reserves the key: it is called with the new run or campaign,
        in the transaction that stores it.
    :param answer: makes the plain answer from what `make` returned.
    :param body: returns the body as JSON values; two requests with the same path and body are the same.
    """
    if key is None:
        return json_response(answer(make(None)))
    operation = (request.endpoint or "").rpartition(".")[2]
    sent = fingerprint([request.view_args, body()])
    repeatable = IdempotentRequest(organization, operation, key, sent, lambda made: json_values(answer(made)))
    stored = repeatable.stored_response()
    if stored is None:
        try:
            return json_response(repeatable.save_response(repeatable.answer(make(repeatable.reserve))))
        except Stopped:
            repeatable.release()
            raise
        except ServiceError:
            # The same request, sent twice at once: the other one may have taken the last free call or the prepared run.
            stored = None if repeatable.reserved else repeatable.stored_response()
            if stored is None:
                raise
    after_this_request(_mark_replayed)
    if isinstance(stored, ServiceError):
        raise stored
    return json_response(stored)


def _mark_replayed(response: Response) -> Response:
    response.headers[REPLAYED] = "true"
    return response
