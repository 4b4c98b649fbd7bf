"""Masks of secrets, as answers show them: of values, of headers, of passwords in URLs; and of telephone numbers."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit


def mask(value: Any) -> Any:
    """A secret as answers show it: a star for each character, except the last 4 of one that is longer than 4.

    Lists are masked item by item; empty values stay as they are.
    """
    if not value:
        return value
    if isinstance(value, list):
        return [mask(item) for item in value]
    text = str(value)
    end = text[-4:] if len(text) > 4 else ""
    return end.rjust(len(text), "*")


def unmask(value: Any, stored: Any) -> Any:
    """The stored secret if the value is its mask, which a client sent back unchanged; else the value."""
    return stored if stored and value == mask(stored) else value


def unmask_fields(incoming: Mapping[str, Any], stored: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The incoming values, those of `names` unmasked with the stored value of the same name."""
    return {name: unmask(value, stored.get(name)) if name in names else value for name, value in incoming.items()}


_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")
_HOST = re.compile(r"[^/?#\s]*")
# The names of headers whose values are surely secrets; one that ends in "id", such as X-Auth-ID, names an account.
_SECRET_NAME = re.compile("auth|token|secret|passw|cookie|credential|key")
# What stands for a secret of which not even the last characters are shown: "Basic dTpw" is u:p.
HIDDEN = "********"
UNMATCHED = "the value is masked and no stored one matches it, so send it in full"
# Headers whose values are no secrets.
PLAIN_HEADERS = ("accept", "accept-language", "content-type", "user-agent")


def split_password(url: str) -> tuple[str, str, str] | None:
    """A URL as what stands before its password, the password, and the rest; None if it has none.

    A user name without a password counts as one, since some services take a token there. One that holds a template
    variable is no secret itself.
    """
    scheme = _SCHEME.match(url)
    host = scheme and _HOST.match(url, scheme.end())
    if not scheme or not host or "@" not in host[0]:
        return None
    user, colon, password = host[0].rpartition("@")[0].partition(":")
    if not password:
        user, colon, password = "", "", user
    if not password or "{{" in password:
        return None
    start = scheme.end() + len(user) + len(colon)
    return url[:start], password, url[start + len(password) :]


def mask_password(url: str) -> str:
    """The URL with its password hidden, if it has one."""
    parts = split_password(url)
    return url if parts is None else f"{parts[0]}{HIDDEN}{parts[2]}"


def unmask_password(url: str, stored: str) -> str | None:
    """The URL with its hidden password replaced by that of the stored URL of the same user and host.

    None if its password isn't hidden, or the stored URL is another's.
    """
    mine, theirs = split_password(url), split_password(stored)
    if mine is None or theirs is None or mine[1] != HIDDEN:
        return None
    same = mine[0] == theirs[0] and re.split("[/?#]", mine[2])[0] == re.split("[/?#]", theirs[2])[0]
    return f"{mine[0]}{theirs[1]}{mine[2]}" if same else None


def has_hidden_password(url: str) -> bool:
    """True if a URL's password is only the mask of one."""
    return (split_password(url) or ("", "", ""))[1] == HIDDEN


def is_masked(text: str) -> bool:
    """True for a text that can't be anything but a mask: a hidden password in a URL, or three stars at its beginning.

    The mask of a key with less than 7 characters has fewer stars: only the key itself shows what it is.
    """
    return text.startswith("***") or has_hidden_password(text)


def mask_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers as answers show them: every value hidden that may be a secret."""
    return {name: value if name.lower() in PLAIN_HEADERS else HIDDEN for name, value in headers.items()}


def unmask_headers(headers: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Headers, those that are hidden with the stored value of the same name, whatever its case."""
    known = {name.lower(): value for name, value in stored.items()}
    return {name: known.get(name.lower(), value) if value == HIDDEN else value for name, value in headers.items()}


def sent_secrets(url: str, headers: Mapping[str, str]) -> list[str]:
    """The secrets that a request sends: its password, and the values of headers whose names are those of secrets.

    Of a value with a scheme, such as `Bearer`, also the rest alone; of `Basic` the password alone, too. The password of
    the URL also as it is sent, in such a header.
    """
    found = [value for name, value in headers.items() if _is_secret(name)]
    found += [rest for value in found if (rest := value.partition(" ")[2])]
    for value in found:
        with suppress(ValueError):  # not in base64
            found = [*found, b64decode(value, validate=True).decode().partition(":")[2]]
    parts = split_password(url)
    if parts is None:
        return found
    user, password = (unquote(part or "") for part in (urlsplit(url).username, urlsplit(url).password))
    # In Latin-1, as the library `requests` sends it.
    sent = b64encode(f"{user}:{password}".encode("latin-1", "replace")).decode()
    return [*found, parts[1], password, sent]


def _is_secret(name: str) -> bool:
    name = name.lower()
    return _SECRET_NAME.search(name) is not None and not name.endswith("id")


def hide(text: bytes, secrets: Iterable[str]) -> bytes:
    """The text of an answer without the secrets that its request had; those of less than 8 characters are left."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= len(HIDDEN):
            text = text.replace(secret.encode("utf-8", "replace"), HIDDEN.encode())
    return text


def hide_in_begun(text: str, secrets: Iterable[str]) -> str:
    """A text that goes on, without secrets, up to where one may have begun: it is hidden so whatever follows."""
    end, secrets = len(text), [secret for secret in secrets if len(secret) >= len(HIDDEN)]
    while (before := min((_beginning(text, secret, end) for secret in secrets), default=end)) < end:
        end = before
    return hide(text[:end].encode(), secrets).decode()


def _beginning(text: str, secret: str, end: int) -> int:
    """Where a secret begins that goes on at `end`, or may do so behind the text; `end` if there is none."""
    places = (place for place in range(max(0, end - len(secret) + 1), end) if text[place] == secret[0])
    return next((place for place in places if secret.startswith(text[place : place + len(secret)])), end)


def mask_number(number: str) -> str:
    """A number as logs show it: its last four digits. Of a sip: address, or of a caller without a number, nothing."""
    if number.lower().startswith(("sip:", "sips:")):
        return "a SIP address"
    digits = re.sub(r"\D", "", number)
    return f"...{digits[-4:]}" if digits else "no number"
