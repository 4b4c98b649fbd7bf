"""Where JSON values hold secrets: definitions of workflows, definitions of tools, configurations of workflows.

A secret is stored encrypted at its own place, as a Fernet token, so that the JSON around it can be read without it. Of
a URL only the password is encrypted. They are decrypted right before a request is sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from copy import deepcopy
from itertools import accumulate
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from ..errors import FieldError, InvalidFields
from ..masking import (
    HIDDEN,
    PLAIN_HEADERS,
    UNMATCHED,
    is_masked,
    mask,
    mask_password,
    split_password,
    unmask_password,
)
from ..security import TOKEN, TOKEN_START, SecretError, Vault
from ..strict_json import Fragment, decode, encode

# Members of a node's data that are keys of other services, and those that are URLs.
NODE_KEYS = ("qa_api_key", "noveum_api_key", "paygent_api_key", "tuner_api_key")
NODE_URLS = ("endpoint_url", "pre_call_fetch_url", "qa_endpoint")
NODE_MEMBERS = frozenset((*NODE_KEYS, *NODE_URLS, "custom_headers"))
# Members of a model's configuration that are keys, at any depth.
MODEL_KEYS = ("api_key", "credentials", "aws_access_key", "aws_secret_key")
# The member of a model's configuration whose values are those of headers.
EXTRA_HEADERS = "extra_headers"
KEY, HEADER, URL = "key", "header", "url"
# Characters that the removed secrets of a draft may take, as they are stored.
MOST_REMOVED = 200_000


class SecretField(NamedTuple):
    """A text that is a secret, or a URL with a password.

    :param path: the names of members and the indexes of items that lead to it.
    :param place: what it belongs to, such as a node's id and a header's name; it stays when items are moved.
    :param kind: KEY, whose last characters answers show; HEADER; or URL.
    """

    path: tuple[str | int, ...]
    place: tuple[Hashable, ...]
    text: str
    kind: str


Find = Callable[[Any], Iterable[SecretField]]


def in_definition(definition: Any) -> Iterator[SecretField]:
    """The secrets in a workflow's definition, whatever its shape: keys, headers and URLs of its nodes."""
    nodes = definition.get("nodes") if isinstance(definition, Mapping) else None
    seen: Counter[str] = Counter()  # in an unfinished definition, several nodes may have one id
    for index, node in enumerate(nodes if isinstance(nodes, list) else ()):
        data = node.get("data") if isinstance(node, Mapping) else None
        if isinstance(data, Mapping):
            id = str(node.get("id"))
            path, place = ("nodes", index, "data"), (id, seen[id])
            seen[id] += 1
            if NODE_MEMBERS.isdisjoint(data):
                continue
            for name in NODE_KEYS:
                yield from _text(KEY, (*path, name), (*place, name), data.get(name))
            for name in NODE_URLS:
                yield from _text(URL, (*path, name), (*place, name), data.get(name))
            yield from _headers((*path, "custom_headers"), (*place, "custom_headers"), data.get("custom_headers"))


def in_tool(definition: Any) -> Iterator[SecretField]:
    """The secrets in a tool's definition: the static headers and the URLs of its config and of its resolver."""
    config = definition.get("config") if isinstance(definition, Mapping) else None
    resolver = config.get("resolver") if isinstance(config, Mapping) else None
    for path, found in ((("config",), config), (("config", "resolver"), resolver)):
        if isinstance(found, Mapping):
            yield from _text(URL, (*path, "url"), (*path, "url"), found.get("url"))
            yield from _headers((*path, "headers"), (*path, "headers"), found.get("headers"))


def in_configurations(
    value: Any, path: tuple[str | int, ...] = (), *, within_key: bool = False
) -> Iterator[SecretField]:
    """The secrets in the configuration of a model, or in those of a workflow: keys, headers and URLs at any depth.

    :param path: that of the value.
    :param within_key: the value is a member of MODEL_KEYS, so that every text in it is a secret.
    """
    if isinstance(value, str):
        yield from _text(KEY if within_key else URL, path, path, value)
    below = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, found in below:
        if name == EXTRA_HEADERS and not within_key:
            yield from _headers((*path, name), (*path, name), found)
        else:
            yield from in_configurations(found, (*path, name), within_key=within_key or name in MODEL_KEYS)


def _text(kind: str, path: tuple[str | int, ...], place: tuple[Hashable, ...], text: Any) -> Iterator[SecretField]:
    if isinstance(text, str) and text and (kind != URL or split_password(text)):
        yield SecretField(path, place, text, kind)


def _headers(path: tuple[str | int, ...], place: tuple[Hashable, ...], headers: Any) -> Iterator[SecretField]:
    """The values that may be secrets in an object of headers, or in a list of them as `key` and `value`."""
    named: list[tuple[tuple[str | int, ...], Any, Any]] = []
    if isinstance(headers, Mapping):
        named = [((*path, name), name, value) for name, value in headers.items()]
    elif isinstance(headers, list):
        named = [
            ((*path, index, "value"), header.get("key"), header.get("value"))
            for index, header in enumerate(headers)
            if isinstance(header, Mapping)
        ]
    seen: Counter[str] = Counter()
    for where, name, value in named:
        known = name.strip().lower() if isinstance(name, str) else ""
        if known not in PLAIN_HEADERS:
            yield from _text(HEADER, where, (*place, known, seen[known]), value)
            seen[known] += 1


def encrypted(vault: Vault, value: Any, find: Find) -> Any:
    """The value with all its secrets, which are in clear, encrypted."""
    return _changed(value, find, lambda field: _encrypt(vault, field))


def decrypted(vault: Vault, value: Any, find: Find) -> Any:
    """The value with all its secrets in clear, for what is about to use them; one that can't be decrypted is empty."""
    return _changed(value, find, lambda field: _decrypt(vault, field))


def masked(vault: Vault, value: Any, find: Find) -> Any:
    """The value with all its secrets masked, as answers show it."""
    return _changed(value, find, lambda field: _mask(vault, field))


def emptied(value: Any, find: Find, leaves_out: Callable[[SecretField], bool]) -> tuple[Any, list[SecretField]]:
    """The value with the secrets empty for which `leaves_out` is true, URLs without user and password; and these."""
    left = [field for field in find(value) if leaves_out(field)]
    return _changed(value, lambda _: left, lambda field: _without_user(field.text) if field.kind == URL else ""), left


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def masked_text(vault: Vault, text: str, find: Find) -> Any:
    """A stored JSON text as answers show it: its secrets masked, or as it is if it holds none, which most do.

    Every stored secret is a token, or a URL with a token in it.
    """
    return masked(vault, decode(text), find) if TOKEN_START in text else Fragment(text)


def merged(vault: Vault, value: Any, find: Find, stored: Iterable[Any] = (), at: tuple[str | int, ...] = ()) -> Any:
    """An incoming value as it is stored: its secrets encrypted, each mask replaced by the secret that it stands for.

    :param stored: the values in which that secret may be, such as the versions of a workflow; the first match counts.
    :param at: the path of the value in the request.
    :raises InvalidFields: naming each mask for which there is no stored secret.
    """
    known: list[dict[tuple[Hashable, ...], SecretField]] = []
    others = iter(stored)
    errors: list[FieldError] = []

    def matching(field: SecretField) -> str | None:
        for fields in known:
            if (found := _match(vault, field, fields.get(field.place))) is not None:
                return found
        for each in others:
            known.append({below.place: below for below in find(each)})
            if (found := _match(vault, field, known[-1].get(field.place))) is not None:
                return found
        return None

    def change(field: SecretField) -> str:
        # The mask of a key with five characters has a single star.
        found = matching(field) if is_masked(field.text) or field.text.startswith("*") else None
        if found is None and is_masked(field.text):
            errors.append(FieldError((*at, *field.path), UNMATCHED))
            return field.text
        return found or _encrypt(vault, field)

    result = _changed(value, find, change)
    if errors:
        raise InvalidFields(errors)
    return result


def reveal_url(vault: Vault, url: str) -> str:
    """The URL with its password decrypted, if that is a token; without it, if the token is of another secret."""
    parts = split_password(url)
    if parts is None or not TOKEN.fullmatch(parts[1]):
        return url
    return f"{parts[0]}{_clear(vault, parts[1])}{parts[2]}"


def encrypt_url(vault: Vault, url: str) -> str:
    """The URL with its password encrypted, if it has one."""
    parts = split_password(url)
    return url if parts is None else f"{parts[0]}{vault.encrypt(parts[1])}{parts[2]}"


def kept(before: Any, after: Any, earlier: Iterable[Any] = ()) -> list[Any]:
    """The secrets that a change of a definition takes away, so that an editor can undo it: definitions, newest first.

    They have the nodes that lost a secret, with nothing but what may hold one. The oldest are left out if all together
    take more than MOST_REMOVED characters.

    :param before: the stored definition, and `after` the one that takes its place.
    :param earlier: what this function gave for the changes before.
    """
    stay = {field.text for field in in_definition(after)}
    lost = {field.place[0] for field in in_definition(before) if field.text not in stay}
    nodes = [
        {"id": node.get("id"), "data": {name: text for name, text in node["data"].items() if name in NODE_MEMBERS}}
        for node in (before["nodes"] if lost else ())
        if isinstance(node, Mapping) and isinstance(node.get("data"), Mapping) and str(node.get("id")) in lost
    ]
    found = [{"nodes": nodes}, *earlier] if nodes else list(earlier)
    sizes = accumulate(len(encode(each)) for each in found)
    return [each for each, size in zip(found, sizes, strict=True) if size <= MOST_REMOVED]


def _encrypt(vault: Vault, field: SecretField) -> str:
    return encrypt_url(vault, field.text) if field.kind == URL else vault.encrypt(field.text)


def _decrypt(vault: Vault, field: SecretField) -> str:
    return reveal_url(vault, field.text) if field.kind == URL else _clear(vault, field.text)


def _clear(vault: Vault, token: str) -> str:
    """The text of a token; empty when it was encrypted with another secret."""
    try:
        return vault.decrypt(token)
    except SecretError:
        return ""


def _mask(vault: Vault, field: SecretField) -> str:
    if field.kind == URL:
        return mask_password(field.text)
    return (mask(_decrypt(vault, field)) or HIDDEN) if field.kind == KEY else HIDDEN


def _match(vault: Vault, field: SecretField, stored: SecretField | None) -> str | None:
    """What is stored for a mask; None if it isn't that secret's mask."""
    if stored is None:
        return None
    if field.kind == URL:
        return unmask_password(field.text, stored.text)
    return stored.text if field.text == _mask(vault, stored) else None


def _changed(value: Any, find: Find, change: Callable[[SecretField], str]) -> Any:
    """The value with the text of each secret changed; the value itself if it has none."""
    fields = list(find(value))
    if not fields:
        return value
    copy = deepcopy(value)
    for field in fields:
        holder = copy
        for step in field.path[:-1]:
            holder = holder[step]
        holder[field.path[-1]] = change(field)
    return copy
