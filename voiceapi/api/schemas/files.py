"""Schemas of signed addresses, of the files behind them, and of downloads."""

from __future__ import annotations

from ...runs.files import LARGEST
from .base import BodySchema, QuerySchema, ResponseSchema
from .fields import Flag, Integer, Pattern, Range, Text


class NewUploadSchema(BodySchema):
    file_name = Text(required=True, validate=Pattern(r".*\.csv$"))
    file_size = Integer(
        required=True,
        validate=Range(min=0, min_inclusive=False, max=LARGEST),
        metadata={"description": "bytes"},
    )
    content_type = Text(load_default="text/csv")


class UploadAddressSchema(ResponseSchema):
    upload_url = Text(required=True, metadata={"description": "where to PUT the bytes; no key is needed there"})
    file_key = Text(required=True, metadata={"description": "the source_id of a campaign"})
    expires_in = Integer(required=True, metadata={"description": "seconds"})


class AddressQuerySchema(QuerySchema):
    key = Text(required=True)
    expires_in = Integer(
        load_default=3600, validate=Range(min=1, max=7 * 24 * 3600), metadata={"description": "seconds"}
    )
    inline = Flag(load_default=False)
    storage_backend = Text(load_default=None, metadata={"description": "there is one storage; any name means it"})


class DownloadAddressSchema(ResponseSchema):
    url = Text(required=True)
    expires_in = Integer(required=True, metadata={"description": "seconds"})


class StoredFileSchema(ResponseSchema):
    file_key = Text(required=True)
    file_size = Integer(required=True, metadata={"description": "bytes"})


class DownloadQuerySchema(QuerySchema):
    inline = Flag(load_default=False, metadata={"description": "show it in the browser instead of saving it"})
