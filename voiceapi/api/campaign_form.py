"""Reads a campaign from a form: its fields are those of the JSON body, objects and lists written as JSON."""

from __future__ import annotations

from typing import Any

from flask import Request
from marshmallow import Schema, ValidationError

from ..runs.files import LARGEST
from ..strict_json import parse
from .errors import InvalidRequest, items
from .multipart import BINARY, Form, read_form
from .schemas.base import BodySchema
from .schemas.fields import REQUIRED, Items, Model

OPTIONAL = {
    **{key: {"type": "integer"} for key in ("telephony_configuration_id", "max_concurrency", "max_attempts_per_day")},
    "strict": {"type": "boolean"},
    **{key: {"type": "object"} for key in ("retry_config", "schedule_config", "circuit_breaker", "calling_hours")},
    "timezone": {"type": "string"},
    "time_slots": {"type": "array", "items": {"type": "object"}},
}


def _form(required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    properties = {"file": BINARY, **required, **optional}
    schema = {"type": "object", "required": ["file", *required], "properties": properties}
    return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}


# For the document: a campaign with its list, and a list that is only checked.
FORM = _form({"name": {"type": "string"}, "workflow_id": {"type": "integer"}}, OPTIONAL)
CHECK_FORM = _form({"workflow_id": {"type": "integer"}}, {"telephony_configuration_id": {"type": "integer"}})


def read_campaign(request: Request, schema: BodySchema) -> tuple[dict[str, Any], Form, bytes]:
    """The fields loaded by `schema`, the form as it was sent, and the bytes of its file.

    :raises InvalidRequest: with an item for everything that is wrong.
    :raises SizeExceeded: for a file of more than 10 MiB; the other errors are those of `read_form`.
    """
    form = read_form(request, LARGEST, "A contact list")
    messages: dict[str, Any] = {}
    body: dict[str, Any] = {}
    try:
        body = schema.load(_values(schema, form.fields))
    except ValidationError as error:
        messages = dict(error.messages_dict)
    if form.file is None:
        messages["file"] = [REQUIRED]
    if messages or form.file is None:
        raise InvalidRequest(list(items(messages, ("body",))))
    return body, form, form.file


def _values(schema: Schema, fields: dict[str, str]) -> dict[str, Any]:
    """The fields as JSON values: objects and lists parsed, null when empty; other empty fields but `name` left out."""
    values: dict[str, Any] = {}
    for name, text in fields.items():
        if isinstance(schema.load_fields.get(name), Items | Model):
            values[name] = parse(text, (name,)) if text.strip() else None
        elif text or name == "name":
            values[name] = text
    return values
