"""The base classes of all schemas, and the schemas that more than one resource uses."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import EXCLUDE, Schema, pre_load
from marshmallow.fields import Raw

from ..answers import UNKNOWN_FIELDS, warn
from ..errors import Message
from .fields import MODEL, Integer, Items, Length, Pattern, Range, Text

# For the document: the headers of answers that may be read again, or edited, and the answer without content.
READ_TAG = {"ETag": {"description": "for If-None-Match", "schema": {"type": "string"}}}
EDIT_TAG = {"ETag": {"description": "for If-Match with the next change", "schema": {"type": "string"}}}
UNCHANGED = "The answer is as it was"


class ResponseSchema(Schema):
    """An answer, see `answer_of`. The tests hold every answer to its schema, and refuse unknown members."""


class BodySchema(Schema):
    """A request body. Unknown fields are ignored, and named in the answer's Warning header."""

    error_messages = {"type": MODEL, "unknown": Message("Extra inputs are not permitted", "extra_forbidden")}

    class Meta:
        unknown = EXCLUDE

    @pre_load
    def note_unknown(self, data: Any, **kwargs: Any) -> Any:
        if isinstance(data, dict) and self.unknown == EXCLUDE:
            known = {field.data_key or name for name, field in self.load_fields.items()}
            unknown = [name for name in data if name not in known]
            if unknown:
                warn(UNKNOWN_FIELDS, unknown)
        return data


class QuerySchema(Schema):
    """Parameters of a query string; unknown ones are ignored."""

    class Meta:
        unknown = EXCLUDE


class ReadSchema(QuerySchema):
    """The headers of a request that reads what has a tag."""

    if_none_match = Text(
        load_default="",
        data_key="If-None-Match",
        description="the ETag of an earlier answer: 304 when the answer would be the same",
    )


class EditSchema(QuerySchema):
    """The headers of a request that changes or deletes what has a tag."""

    if_match = Text(
        load_default="",
        data_key="If-Match",
        description="the ETag of the record as it was read: 412 when it was changed since",
    )


class RepeatableSchema(QuerySchema):
    """The headers of a request that may be repeated with an Idempotency-Key."""

    idempotency_key = Text(
        load_default=None,
        data_key="Idempotency-Key",
        validate=[Length(min=1, max=255), Pattern(re.compile(r"[\x20-\x7e]*"))],
        description="the same request with the same key is carried out once within 24 hours",
    )


class PagingSchema(QuerySchema):
    page = Integer(load_default=1, validate=Range(min=1), description="page number, starting from 1")
    limit = Integer(load_default=50, validate=Range(min=1, max=100), description="number of items per page")


class ErrorItemSchema(ResponseSchema):
    loc = Items(Raw(metadata={"type": ["string", "integer"]}), required=True)
    msg = Text(required=True)
    type = Text(required=True)


class ErrorBodySchema(ResponseSchema):
    """A sentence, or a list of items when the request breaks rules, or an object where a sentence isn't enough."""

    detail = Raw(
        required=True,
        metadata={"type": ["string", "array", "object"], "items": {"$ref": "#/components/schemas/ErrorItem"}},
    )


class DoneSchema(ResponseSchema):
    """A sentence that confirms what was done."""

    message = Text(required=True)
