"""Requests with an `Idempotency-Key`: carried out once; sent again, they get the stored answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Response, after_this_request, request

from ..calls.idempotency import Once, fingerprint
from .answers import json_response, json_values
from .blueprint import json_body

REPLAYED = "Idempotent-Replayed"
# For the document: the header of an answer, as `response` takes it.
HEADERS = {REPLAYED: {"description": "`true` on what an earlier request was answered", "schema": {"type": "string"}}}


def idempotent(
    organization: int, key: str | None, answer: Callable[[Any], dict[str, Any]], body: Callable[[], Any] = json_body
) -> Once:
    """The request that is being answered, to be carried out once; see `Once`.

    :param key: None when the client sent none; then every request is carried out.
    :param answer: makes the plain answer from the placed call or the campaign.
    :param body: returns the body as JSON values; two requests with the same path and body are the same.
    """
    operation = (request.endpoint or "").rpartition(".")[2]
    if key is None:
        return Once(organization, operation, key, "", answer)
    sent = fingerprint([request.view_args, body()])
    return Once(organization, operation, key, sent, lambda made: json_values(answer(made)))


def answer_once(once: Once) -> Response:
    """The answer to a request that was carried out, now or earlier.

    :raises ServiceError: when the first request with the key was refused.
    """
    if once.is_repeated:
        after_this_request(_mark_replayed)
    if once.refusal is not None:
        raise once.refusal
    return json_response(once.answer)


def _mark_replayed(response: Response) -> Response:
    response.headers[REPLAYED] = "true"
    return response
