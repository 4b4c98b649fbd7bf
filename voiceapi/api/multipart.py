"""Reads a multipart form with a file: its fields are those of a JSON body, objects and lists written as JSON."""

from __future__ import annotations

from typing import Any

from flask import Request
from marshmallow import Schema, ValidationError
from werkzeug.exceptions import RequestEntityTooLarge

from ..errors import SizeExceeded
from ..runs.files import LARGEST
from ..strict_json import parse
from .errors import InvalidRequest, items
from .schemas.base import BodySchema
from .schemas.fields import REQUIRED, Items, Model

FIELDS_SIZE = 256 * 1024
BINARY = {"type": "string", "format": "binary"}
OPTIONAL = {
    **{key: {"type": "integer"} for key in ("telephony_configuration_id", "max_concurrency", "max_attempts_per_day")},
    "strict": {"type": "boolean"},
    **{key: {"type": "object"} for key in ("retry_config", "schedule_config", "circuit_breaker", "calling_hours")},
    "timezone": {"type": "string"},
    "time_slots": {"type": "array", "items": {"type": "object"}},
}
FORM = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file", "name", "workflow_id"],
                "properties": {
                    "file": BINARY,
                    "name": {"type": "string"},
                    "workflow_id": {"type": "integer"},
                    **OPTIONAL,
                },
            }
        }
    },
}


def read_form(request: Request, schema: BodySchema) -> tuple[dict[str, Any], str, bytes]:
    """The fields, loaded by `schema`; the name of the file and its bytes.

    :raises InvalidRequest: with an item for everything that is wrong.
    :raises SizeExceeded: for a file of more than 10 MiB, or for fields of more than 256 KiB.
    """
    request.max_content_length = LARGEST + FIELDS_SIZE
    try:
        fields, file = request.form, request.files.get("file")
    except RequestEntityTooLarge:
        raise SizeExceeded(f"A contact list may have at most {LARGEST} bytes.") from None
    messages: dict[str, Any] = {}
    body: dict[str, Any] = {}
    try:
        body = schema.load(_values(schema, {name: fields[name] for name in fields}))
    except ValidationError as error:
        messages = dict(error.messages_dict)
    if file is None:
        messages["file"] = [REQUIRED]
    if messages or file is None:
        raise InvalidRequest(list(items(messages, ("body",))))
    content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise SizeExceeded(f"A contact list may have at most {LARGEST} bytes.")
    return body, file.filename or "contacts.csv", content


def _values(schema: Schema, fields: dict[str, str]) -> dict[str, Any]:
    """The fields as JSON values: objects and lists parsed, null when empty; other empty fields but `name` left out."""
    values: dict[str, Any] = {}
    for name, text in fields.items():
        if isinstance(schema.load_fields.get(name), Items | Model):
            values[name] = parse(text, (name,)) if text.strip() else None
        elif text or name == "name":
            values[name] = text
    return values
