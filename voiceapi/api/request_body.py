"""Reads the body of a request: its size, its encoding, its charset and then its JSON."""

from __future__ import annotations

import re
from typing import Any

from flask import Request

from ..errors import FieldError, InvalidFields, NotPossible, SizeExceeded
from ..strict_json import parse
from .errors import UnsupportedEncoding

JSON_TYPE = re.compile(r"application/([\w.+-]+\+)?json", re.ASCII)
ABSENT = object()


def refuse_encoded(request: Request) -> None:
    """Refuse a body that is compressed.

    :raises UnsupportedEncoding: for any Content-Encoding.
    """
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise UnsupportedEncoding(f"The content encoding {encoding[:40]!r} is not supported; send the body unencoded.")


def read_file(request: Request, largest: int, name: str) -> bytes:
    """The body of `request`, which is a file by itself.

    :raises InvalidFields: for a form.
    :raises UnsupportedEncoding: for a body that is compressed.
    :raises SizeExceeded: above `largest` bytes, naming it as `name`.
    """
    refuse_encoded(request)
    if request.mimetype.startswith("multipart/"):
        raise InvalidFields([FieldError((), "the body must be the file itself, not a form")])
    return read_bytes(request, largest, name)


def read_bytes(request: Request, largest: int, name: str = "The request body") -> bytes:
    """The raw body of `request`.

    :raises SizeExceeded: above `largest` bytes, naming it as `name`.
    """
    too_large = SizeExceeded(f"{name} may have at most {largest} bytes.")
    # Werkzeug silently cuts off a body without Content-Length at its limit: with one byte more, it can be noticed.
    request.max_content_length = largest + 1
    if (request.content_length or 0) > largest:
        raise too_large
    content = request.get_data()
    if len(content) > largest:
        raise too_large
    return content


def read_json(request: Request, largest: int) -> Any:
    """Parse the body of `request`; ABSENT when there is none, the raw text when its type isn't JSON.

    :raises SizeExceeded: above `largest` bytes.
    :raises UnsupportedEncoding: for a charset or a content encoding that is unknown here.
    :raises NotPossible: when the bytes are not text in their charset.
    :raises InvalidFields: when the text is not JSON, or holds values that can't be stored.
    """
    refuse_encoded(request)
    raw = read_bytes(request, largest)
    if not raw:
        return ABSENT
    charset = request.mimetype_params.get("charset", "utf-8")
    try:
        text = raw.decode(charset)
    except UnicodeError:
        raise NotPossible("There was an error parsing the body") from None
    except (LookupError, ValueError):
        raise UnsupportedEncoding(f"The charset {charset[:40]!r} is not known; send UTF-8.") from None
    if not JSON_TYPE.fullmatch(request.mimetype):
        return text
    return parse(text)
