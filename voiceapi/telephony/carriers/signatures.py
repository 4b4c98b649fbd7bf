"""Checks of signatures that more than one carrier uses.

The URL of a webhook is our public one, raw, as the carrier was given it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from .webhook import Webhook

DEFAULT_PORTS = {"http": 80, "https": 443}
# How old a signature with a time in it may be, in seconds, and how far ahead of our clock its time.
TOLERANCE = 300.0


def same(given: str, expected: str) -> bool:
    """Compare two signatures in constant time, so that the time doesn't disclose the expected one."""
    return hmac.compare_digest(given.encode(), expected.encode())


def sha1(key: str, text: str) -> str:
    """HMAC-SHA1 in base64."""
    return base64.b64encode(hmac.digest(key.encode(), text.encode(), "sha1")).decode()


def over_form(webhook: Webhook, key: str, given: str, *, unique: bool) -> bool:
    """True if `given` is the HMAC-SHA1 over the URL and the form, its fields sorted by name.

    :param unique: whether the values of a repeated field are signed sorted and once each, or all as they were sent.
    """
    digest = dict(webhook.query).get("bodySHA256")
    if not key:
        return False  # anybody could sign with nothing
    if digest is not None:  # a body that is no form is signed by its digest in the query
        if not same(digest.lower(), hashlib.sha256(webhook.body).hexdigest()):
            return False
        signed = ""
    elif webhook.body and not webhook.form:
        return False  # the signature wouldn't cover it
    else:
        signed = "".join(name + value for name, value in _sorted(webhook.form, unique=unique))
    return any(same(given, sha1(key, url + signed)) for url in spellings(webhook.url))


def is_recent(timestamp: str, now: float) -> bool:
    """True if a time, in seconds since 1970 as text, is at most TOLERANCE away from `now`."""
    return timestamp.isdecimal() and len(timestamp) < 16 and abs(now - int(timestamp)) <= TOLERANCE


def spellings(url: str) -> Iterator[str]:
    """The URL as it is, and with its scheme's default port left out or put in: carriers sign either."""
    yield url
    parts = urlsplit(url)
    port = f":{DEFAULT_PORTS.get(parts.scheme, '')}"
    host = parts.netloc
    if host.endswith(port):
        yield url.replace(host, host.removesuffix(port), 1)
    elif parts.port is None:
        yield url.replace(host, host + port, 1)


def _sorted(pairs: Iterable[tuple[str, str]], *, unique: bool) -> list[tuple[str, str]]:
    return sorted(set(pairs)) if unique else sorted(pairs, key=lambda pair: pair[0])
