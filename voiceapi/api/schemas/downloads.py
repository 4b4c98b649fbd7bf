"""The query of a download."""

from __future__ import annotations

from .base import QuerySchema
from .fields import Flag


class DownloadQuerySchema(QuerySchema):
    inline = Flag(load_default=False, metadata={"description": "show it in the browser instead of saving it"})
