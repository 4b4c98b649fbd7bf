"""Answers as JSON."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from flask import Response

from ..strict_json import decode, encode
from .compression import compress, not_modified, set_tag


def json_response(value: Any, status: int = 200) -> Response:
    """Compact JSON in the order given; instants as ISO 8601 text in UTC. A host app's JSON provider is not used."""
    return _response(encode(value, newline=True), status)


def unless_known(text: bytes) -> Response:
    """JSON text that rarely changes, with a tag made of it; 304 if the request's If-None-Match has that."""
    tag = sha256(text).hexdigest()[:32]
    return not_modified(tag) or set_tag(_response(text), tag)


def _response(text: bytes, status: int = 200) -> Response:
    return compress(Response(text, status, content_type="application/json"))


def json_values(value: Any) -> Any:
    """The value as a client reads it: instants as text. For an answer that is stored to be sent again."""
    return decode(encode(value).decode())
