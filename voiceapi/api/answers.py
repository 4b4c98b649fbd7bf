"""Answers as JSON."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from functools import cache
from hashlib import sha256
from typing import Any, cast
from urllib.parse import quote

from flask import Response, after_this_request, g, has_request_context, request
from marshmallow import Schema
from werkzeug.http import parse_etags

from ..store.tags import Expected
from ..strict_json import decode, encode


def json_response(value: Any, status: int = 200) -> Response:
    """Compact JSON in the order given; instants as ISO 8601 text in UTC. A host app's JSON provider is not used."""
    return compress(Response(encode(value, newline=True), status, content_type="application/json"))


def unless_known(text: bytes) -> Response:
    """JSON text that rarely changes, with a tag made of it; 304 if the request's If-None-Match has that."""
    tag = sha256(text).hexdigest()[:32]
    return not_modified(tag) or set_tag(compress(Response(text, content_type="application/json")), tag)


def tagged(tag: str, value: Any) -> Response:
    """An answer with the tag of what it shows."""
    return set_tag(json_response(value), tag)


def answer_of(schema: type[Schema], record: Any, **others: Any) -> dict[str, Any]:
    """The members that `schema` documents: `others`, and the record's attributes of the names of the rest."""
    return {name: others[name] if name in others else getattr(record, name) for name in members_of(schema)}


@cache
def members_of(schema: type[Schema]) -> tuple[str, ...]:
    """The names of a schema's fields in the order of their declaration."""
    return tuple(schema().fields)


def paging(total: int, query: dict[str, Any]) -> dict[str, int]:
    """The members of a page of a list with `total` items.

    :param query: loaded by PagingSchema.
    """
    page, limit = query["page"], query["limit"]
    return {"total_count": total, "page": page, "limit": limit, "total_pages": -(-total // limit)}


def json_values(value: Any) -> Any:
    """The value as a client reads it: instants as text. For an answer that is stored to be sent again."""
    return decode(encode(value).decode())


# -- warning headers: what a request has too much or lacks is named in its answer


UNKNOWN_FIELDS = "fields not known here and passed over"
MISSING_VARIABLES = "variables that the greeting needs and initial_context lacks"
MODEL_NEEDS = "parts that need a language model, and none is configured"


def warn(text: str, names: Iterable[str]) -> None:
    """Name these in a Warning header of the answer: of all names for one text at most ten, each cut at 100 characters.

    :param text: one of the texts above.
    """
    if "voiceapi_warnings" not in g:
        g.voiceapi_warnings = {}
        if has_request_context():  # a command that uses the schemas has none
            after_this_request(_add_headers)
    g.voiceapi_warnings.setdefault(text, []).extend(names)


def _add_headers(response: Response) -> Response:
    for text, names in g.voiceapi_warnings.items():
        if names:
            named = ", ".join(quote(str(name)[:100], safe="") for name in dict.fromkeys(names[:10]))
            response.headers.add("Warning", f'199 voiceapi "{text}: {named}"')
    return response


# -- compressed answers, and the tags of answers, which say how they are encoded
# A strong tag stands for the same bytes, so the tag of a compressed answer has an ending of its own. It isn't made
# weak, because `If-Match` doesn't count weak tags in HTTP, and clients may keep to that.


# Level 1 takes 5 ns a byte, a fraction of what it takes to send the four fifths that it saves; level 6 saves a fortieth
# more in three times the time.
LEVEL = 1
# What fits into three packets arrives as soon uncompressed, and costs less.
LEAST_BYTES = 4096
# What ends the tag of a compressed answer.
COMPRESSED = "-gzip"
GZIP_WINDOW = 31  # of zlib: 32 kB, with the head and the end of gzip


def compress(response: Response) -> Response:
    """The response compressed, if it is sent piece by piece or has at least LEAST_BYTES, and the client asks for it.

    It has no tag yet.
    """
    whole = response.get_data() if response.is_sequence else None
    if whole is not None and len(whole) < LEAST_BYTES:
        return response
    response.vary.add("Accept-Encoding")
    if request.accept_encodings.best_match(("gzip", "identity")) != "gzip":
        return response
    response.headers["Content-Encoding"] = "gzip"
    if whole is None:
        response.response = _compressed(cast(Generator[str | bytes, None, None], response.response))
    else:
        response.set_data(gzip.compress(whole, LEVEL, mtime=0))
    return response


def _compressed(parts: Generator[str | bytes, None, None]) -> Iterator[bytes]:
    compressor = zlib.compressobj(LEVEL, wbits=GZIP_WINDOW)
    with closing(parts):  # also when the client has gone
        for part in parts:
            if piece := compressor.compress(part.encode() if isinstance(part, str) else part):
                yield piece
    yield compressor.flush()


def set_tag(response: Response, tag: str) -> Response:
    """The response with an ETag."""
    response.set_etag(tag + (COMPRESSED if response.content_encoding else ""))
    return response


def not_modified(tag: str) -> Response | None:
    """The answer 304 if the request's If-None-Match has this tag, of the answer compressed or not; else None."""
    known = request.if_none_match
    for each in (tag, tag + COMPRESSED):
        if known.contains_weak(each):
            response = Response(status=304, content_type="")
            response.vary.add("Accept-Encoding")
            response.set_etag(each)
            return response
    return None


def expected(headers: dict[str, Any]) -> Expected:
    """Whether a tag is one of the request's If-Match; in that, what follows a hyphen doesn't count.

    Weak tags count, too: proxies make tags weak, and a tag here is of what is stored, not of bytes. An If-Match whose
    tags can't be read matches nothing.

    :param headers: loaded by EditSchema.
    """
    sent = parse_etags(headers["if_match"])
    if not headers["if_match"].strip() or sent.star_tag:
        return None
    tags = sent.as_set(include_weak=True)
    known = {each.partition("-")[0] for each in tags if each}  # Werkzeug has an empty tag as None
    return known.__contains__
