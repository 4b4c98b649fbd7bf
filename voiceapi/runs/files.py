"""Signed URLs: contact lists to upload, contact lists and transcripts to download.

A signed URL works without an API key, for one file, one direction and a limited time. The key of a file is
`campaigns/{organization}/{uuid}_{name}` or `transcripts/{run}.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from ..errors import Conflict, NotPermitted, NotPossible, RecordNotFound, ServiceError
from ..service import Service
from ..store import runs
from ..store.base import find, scalar
from ..store.campaigns import Upload, delete_upload, is_campaign_source, replace_upload, upload_size
from ..store.database import write
from ..store.fields import now
from ..store.locks import NO_LOCK
from ..store.runs import Run

# Bytes of a contact list.
LARGEST = 10 * 1024 * 1024
# How long an upload URL is valid.
UPLOAD_SECONDS = 900

CONTACT_LIST = re.compile(r"campaigns/([0-9]{1,18})/[A-Za-z0-9._-]+")
TRANSCRIPT = re.compile(r"transcripts/([0-9]{1,18})\.txt")
UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class File:
    """A file to download; `inline` asks the browser to show it rather than to save it."""

    name: str
    content: bytes
    media_type: str
    inline: bool


def prepare(service: Service, base_url: str, organization: int, file_name: str) -> tuple[str, str]:
    """The key of a contact list, and the URL below `base_url` to PUT it to within 900 seconds.

    Of the name, the last 100 characters are kept; whatever isn't a letter, a digit, or one of `._-` becomes `_`.
    """
    key = _new_key(organization, file_name)
    payload = {"organization": organization, "key": key}
    token = service.vault.sign(payload, "put a file", now().timestamp() + UPLOAD_SECONDS)
    return key, _address(base_url, token)


def store(organization: int, file_name: str, content: bytes) -> str:
    """Store a contact list that is part of a request; returns the file's key."""
    key = _new_key(organization, file_name)
    with write(NO_LOCK):
        Upload.create(organization=organization, file_key=key, content=content)
    return key


@contextmanager
def stored(organization: int, file_name: str, content: bytes) -> Iterator[str]:
    """Store a contact list for the block and yield its key; it is deleted again if the block raises a ServiceError."""
    key = store(organization, file_name, content)
    try:
        yield key
    except ServiceError:
        with write():
            delete_upload(key)
        raise


def receive(service: Service, token: str, content: bytes) -> str:
    """Store a file that was PUT to a signed URL; it can be replaced until a campaign uses it. Returns its key.

    :raises NotPermitted: for a URL that is invalid or has expired.
    :raises Conflict: once the file is the source of a campaign.
    """
    payload = service.vault.verify(token, "put a file", now().timestamp())
    if payload is None:
        raise NotPermitted("The upload address is not valid, or has expired")
    key: str = payload["key"]
    # Campaigns are created without locks, so none begins to use the file meanwhile.
    with write(NO_LOCK):
        if is_campaign_source(key):
            raise Conflict("The file is the source of a campaign and can't be replaced any more")
        replace_upload(payload["organization"], key, content)
    return key


def read(organization: int, key: str) -> bytes:
    """:raises RecordNotFound: when the organization has no contact list with that key."""
    content = scalar(Upload, "content", organization=organization, file_key=key)
    if content is None:
        raise RecordNotFound("File not found")
    return bytes(content)


def size(organization: int, key: str) -> int:
    """The bytes of a contact list; 0 when the organization has no file with that key."""
    return upload_size(organization, key) or 0


def address(service: Service, base_url: str, organization: int, key: str, expires_in: int, *, inline: bool) -> str:
    """A URL below `base_url` to download a file of the organization, valid for `expires_in` seconds.

    :raises NotPossible: when the key has another form.
    :raises RecordNotFound: when the file is another organization's, or a transcript of no run.
    """
    if match := CONTACT_LIST.fullmatch(key):
        if int(match[1]) != organization:
            raise RecordNotFound("File not found")
    elif match := TRANSCRIPT.fullmatch(key):
        if scalar(Run, "id", id=int(match[1]), organization=organization) is None:
            raise RecordNotFound("File not found")
    else:
        raise NotPossible("Invalid key format")
    payload = {"organization": organization, "key": key, "inline": inline}
    return _address(base_url, service.vault.sign(payload, "get a file", now().timestamp() + expires_in))


def fetch(service: Service, token: str) -> File:
    """The file that a signed URL refers to.

    :raises NotPermitted: for a URL that is invalid or has expired.
    :raises RecordNotFound: when there is no such file yet, or any more.
    """
    payload = service.vault.verify(token, "get a file", now().timestamp())
    if payload is None:
        raise NotPermitted("The download address is not valid, or has expired")
    key: str = payload["key"]
    name = key.rpartition("/")[2]
    if match := TRANSCRIPT.fullmatch(key):
        run = find(Run, id=int(match[1]), has_transcript=True)
        if run is None:
            raise RecordNotFound("File not found")
        return File(name, runs.transcript(run).encode(), "text/plain", payload["inline"])
    return File(name, read(payload["organization"], key), "text/csv", payload["inline"])


def _new_key(organization: int, file_name: str) -> str:
    return f"campaigns/{organization}/{uuid4()}_{UNSAFE.sub('_', file_name[-LONGEST_NAME:])}"


def _address(base_url: str, token: str) -> str:
    return f"{base_url}/api/v1/s3/files/{token}"
