"""Answers as JSON."""

from __future__ import annotations

from typing import Any

from flask import Response

from ..strict_json import decode, encode


def json_response(value: Any, status: int = 200) -> Response:
    """Compact JSON in the order given; instants as ISO 8601 text in UTC. A host app's JSON provider is not used."""
    return Response(encode(value, newline=True), status, mimetype="application/json")


def json_values(value: Any) -> Any:
    """The value as a client reads it: instants as text. For an answer that is stored to be sent again."""
    return decode(encode(value).decode())
