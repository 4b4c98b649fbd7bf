"""Renders a webhook node into the request that tells another system about an ended run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from ..engine.template import placeholders, render, render_value

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
WITH_BODY = ("POST", "PUT", "PATCH")
# A header whose name contains one of these is left out: what it holds belongs into a credential.
SECRETIVE = (
    *("authorization", "auth", "token", "secret", "password", "passwd", "cookie", "credential"),
    *("api-key", "apikey", "api_key", "access-key"),
)
# They say how the request itself is cut into bytes.
FRAMING = ("connection", "content-length", "host", "transfer-encoding")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True)
class Rendered:
    """A request as every attempt sends it, but for credential, signature and the headers that count attempts.

    :param body: None for a method that carries none.
    :param missing: the variables that had no value and were rendered empty.
    :param dropped: the names of headers that were left out.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    missing: tuple[str, ...]
    dropped: tuple[str, ...]


def rendered(data: Mapping[str, Any], context: Mapping[str, Any], now: datetime) -> Rendered:
    """The request of a webhook node with this data.

    :param context: what its templates may name; `gathered_context` is a member of it.
    """
    missing: set[str] = set()
    method = str(data.get("http_method") or "POST").upper()
    method = method if method in METHODS else "POST"
    body = _body(data.get("payload_template"), context, now, missing) if method in WITH_BODY else None
    headers = {"Content-Type": "application/json"} if body is not None else {}
    dropped = []
    for name, template in _headers(data.get("custom_headers")):
        if _may_be_sent(name):
            headers = {other: value for other, value in headers.items() if other.lower() != name.lower()}
            headers[name] = _header_value(render(template, context, now=now, missing=missing))
        else:
            dropped.append(name)
    url = _url(str(data.get("endpoint_url") or ""), context, now, missing)
    # What every run has, though it may be empty, is not missing.
    return Rendered(method, url, headers, body, tuple(sorted(missing - context.keys())), tuple(dropped))


def _body(template: Any, context: Mapping[str, Any], now: datetime, missing: set[str]) -> bytes:
    payload = render_value({} if template is None else template, context, now=now, missing=missing)
    if isinstance(payload, dict):
        payload.setdefault("call_disposition", context["gathered_context"].get("call_disposition") or "")
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _headers(listed: Any) -> Iterator[tuple[str, str]]:
    for header in listed if isinstance(listed, list) else ():
        match header:
            case {"key": str(name), "value": str(value)} if name.strip():
                yield name.strip(), value


def _may_be_sent(name: str) -> bool:
    lower = name.lower()
    secretive = any(word in lower for word in SECRETIVE)
    return HEADER_NAME.fullmatch(name) is not None and lower not in FRAMING and not secretive


def _header_value(value: str) -> str:
    """One line whose UTF-8 bytes pass through a protocol that knows Latin-1 only."""
    return CONTROL.sub(" ", value).strip().encode("utf-8", "replace").decode("latin-1")


def _url(template: str, context: Mapping[str, Any], now: datetime, missing: set[str]) -> str:
    """The address. A value is percent-encoded, so that it can't lead elsewhere; only at the very start is it a URL."""
    template = template.strip()
    parts, done = [], 0
    for each in placeholders(template):
        value = render(template[each.start : each.end], context, now=now, missing=missing)
        parts += [template[done : each.start], quote(value, "", errors="replace") if each.start else value]
        done = each.end
    return "".join([*parts, template[done:]]).strip()
