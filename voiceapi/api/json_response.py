"""Answers as JSON."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from flask import Response

from ..timestamps import write_time


def _default(value: Any) -> str:
    """What JSON has no type for: instants are ISO 8601 text in UTC with `Z`."""
    if isinstance(value, datetime):
        return write_time(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value.")


COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_default)


def json_response(value: Any, status: int = 200) -> Response:
    """Compact JSON in the order given; instants as ISO 8601 text in UTC. A host app's JSON provider is not used."""
    return Response(COMPACT.encode(value) + "\n", status, mimetype="application/json")


def json_values(value: Any) -> Any:
    """The value as a client reads it: instants as text. For an answer that is stored to be sent again."""
    return json.loads(COMPACT.encode(value))
