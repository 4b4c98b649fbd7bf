"""Reads the body of a request: its size, its encoding, its charset and then its JSON."""

from __future__ import annotations

import re
from typing import Any

from flask import Request

from ..errors import Refused, TooLarge, Unreadable
from ..strict_json import parse

JSON_TYPE = re.compile(r"application/([\w.+-]+\+)?json", re.ASCII)
ABSENT = object()


def read_json(request: Request, largest: int) -> Any:
    """Parse the body of `request`; ABSENT when there is none, the raw text when its type isn't JSON.

    :raises TooLarge: above `largest` bytes.
    :raises Unreadable: for a charset or a content encoding that is unknown here.
    :raises Refused: when the bytes are not text in their charset.
    :raises Invalid: when the text is not JSON, or holds something that no JSON reader must accept.
    """
    request.max_content_length = largest
    if request.content_length is not None and request.content_length > largest:
        raise TooLarge(f"The request body may have at most {largest} bytes.")
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Unreadable(f"The content encoding {encoding[:40]!r} is not supported; send the body unencoded.")
    raw = request.get_data(cache=True)
    if not raw:
        return ABSENT
    charset = request.mimetype_params.get("charset", "utf-8")
    try:
        text = raw.decode(charset)
    except UnicodeError:
        raise Refused("There was an error parsing the body") from None
    except (LookupError, ValueError):
        raise Unreadable(f"The charset {charset[:40]!r} is not known; send UTF-8.") from None
    if not JSON_TYPE.fullmatch(request.mimetype):
        return text
    return parse(text, ("body",))
