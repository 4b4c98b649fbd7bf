"""Renders a webhook node into the request that reports an ended run to another system."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from ..engine.template import KIB64, MIB, Bound, placeholders, render, render_value

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
WITH_BODY = ("POST", "PUT", "PATCH")
# A header whose name contains one of these is left out: secrets belong in a credential.
SECRET_WORDS = (
    *("authorization", "auth", "token", "secret", "password", "passwd", "cookie", "credential"),
    *("api-key", "apikey", "api_key", "access-key"),
)
# Says that a test made the webhook, also where a request has no object to say it in.
TEST_HEADER = ("Voiceapi-Test", "true")
# Headers that the HTTP client sets itself.
FRAMING = ("connection", "content-length", "host", "transfer-encoding")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True)
class RenderedRequest:
    """The part of a request that is the same for every attempt: all but credential, signature and delivery headers.

    :param body: None for a method that carries none.
    :param missing: the variables without a value, which were rendered empty.
    :param dropped: the names of headers that were left out.
    """

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None
    missing: tuple[str, ...]
    dropped: tuple[str, ...]


def render_request(
    data: Mapping[str, Any], context: Mapping[str, Any], now: datetime, *, is_test: bool = False
) -> RenderedRequest:
    """Render the request of a webhook node.

    :param data: the node's data.
    :param context: the variables of its templates; `gathered_context` is one of them.
    :param is_test: the run is a test, and the request says so: in its payload, if that is an object, and in a header.
    :raises TextTooLong: when the URL or the headers are more than 64 KiB, or the body is more than 1 MiB.
    """
    missing: set[str] = set()
    method = str(data.get("http_method") or "POST").upper()
    method = method if method in METHODS else "POST"
    body = _body(data.get("payload_template"), context, now, missing, is_test) if method in WITH_BODY else None
    # By the names in small letters: of several spellings of one name the last counts.
    headers = {} if body is None else {"content-type": ("Content-Type", "application/json")}
    dropped = []
    bound = Bound(KIB64, "The block of headers")
    for name, template in _headers(data.get("custom_headers")):
        lower = name.lower()
        is_secret = any(word in lower for word in SECRET_WORDS)
        if HEADER_NAME.fullmatch(name) and lower not in FRAMING and not is_secret:
            headers.pop(lower, None)
            value = render(template, context, bound, now=now, missing=missing)
            headers[lower] = bound.take(name), _header_value(value)
        else:
            dropped.append(name)
    if is_test:
        headers[TEST_HEADER[0].lower()] = TEST_HEADER
    url = _url(str(data.get("endpoint_url") or ""), context, now, missing)
    # The variables that every run has may be empty, but they aren't missing.
    unknown = tuple(sorted(missing - context.keys()))
    return RenderedRequest(method, url, dict(headers.values()), body, unknown, tuple(dropped))


def _body(template: Any, context: Mapping[str, Any], now: datetime, missing: set[str], is_test: bool) -> bytes:
    bound = Bound(MIB, "The body")
    payload = render_value({} if template is None else template, context, bound, now=now, missing=missing)
    if isinstance(payload, dict):
        payload.setdefault("call_disposition", context["gathered_context"].get("call_disposition") or "")
        if is_test:
            payload["test"] = True
    # Counted again: as JSON a control character has six bytes.
    text = Bound(MIB, "The body").take(json.dumps(payload, ensure_ascii=False, separators=(",", ":")))
    return text.encode("utf-8", "replace")


def _headers(listed: Any) -> Iterator[tuple[str, str]]:
    for header in listed if isinstance(listed, list) else ():
        match header:
            case {"key": str(name), "value": str(value)} if name.strip():
                yield name.strip(), value


def _header_value(value: str) -> str:
    """The value on one line, as a text of Latin-1 characters that are its UTF-8 bytes, as HTTP clients require."""
    return CONTROL.sub(" ", value).strip().encode("utf-8", "replace").decode("latin-1")


def _url(template: str, context: Mapping[str, Any], now: datetime, missing: set[str]) -> str:
    """The URL. Values are percent-encoded, so that none can change the host; only one at the very start is a URL."""
    template = template.strip()
    bound = Bound(KIB64, "The URL")
    parts, done = [], 0
    for each in placeholders(template):
        value = render(template[each.start : each.end], context, Bound(KIB64, "The URL"), now=now, missing=missing)
        value = quote(value, "", errors="replace") if each.start else value
        parts += [bound.take(template[done : each.start]), bound.take(value)]
        done = each.end
    return "".join([*parts, bound.take(template[done:])]).strip()
