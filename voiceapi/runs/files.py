"""Use cases of files: signed addresses to put a contact list at, and to fetch it or a transcript from.

A signed address works without a key, for one file, one direction and a limited time. Keys of files are those of the
API contract, G.1 and I.7: `campaigns/{organization}/{uuid}_{name}` and `transcripts/{run}.txt`.
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
from ..store.campaigns import Campaign, Upload
from ..store.database import write
from ..store.fields import now
from ..store.runs import Run

# Bytes of a contact list.
LARGEST = 10 * 1024 * 1024
# Seconds that an address to put a file at is good for.
UPLOAD_LASTS = 900

CONTACT_LIST = re.compile(r"campaigns/([0-9]{1,18})/[A-Za-z0-9._-]+")
TRANSCRIPT = re.compile(r"transcripts/([0-9]{1,18})\.txt")
UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class File:
    """A file on its way out; `inline` asks the browser to show it rather than to save it."""

    name: str
    content: bytes
    media_type: str
    inline: bool


def prepare(service: Service, organization: int, file_name: str) -> tuple[str, str]:
    """A key for a contact list that is about to come, and the address to PUT it at within 900 seconds.

    Of the name, the last 100 characters are kept; whatever isn't a letter, a digit, or one of `._-` becomes `_`.
    """
    key = _new_key(organization, file_name)
    payload = {"organization": organization, "key": key}
    token = service.vault.sign(payload, "put a file", now().timestamp() + UPLOAD_LASTS)
    return key, _address(service, token)


def keep(organization: int, file_name: str, content: bytes) -> str:
    """Store a contact list that came along with a request; returns the file's key."""
    key = _new_key(organization, file_name)
    with write():
        Upload.create(organization=organization, file_key=key, content=content)
    return key


@contextmanager
def kept(organization: int, file_name: str, content: bytes) -> Iterator[str]:
    """The key of a file that is stored for what is done with it, and is gone again when that is refused."""
    key = keep(organization, file_name, content)
    try:
        yield key
    except ServiceError:
        with write():
            Upload.delete().where(Upload.file_key == key).execute()
        raise


def receive(service: Service, token: str, content: bytes) -> str:
    """Store what was PUT at a signed address; again, as long as no campaign uses it. Returns the file's key.

    :raises NotPermitted: for an address that isn't valid any more.
    :raises Conflict: once the file is the source of a campaign.
    """
    payload = service.vault.verify(token, "put a file", now().timestamp())
    if payload is None:
        raise NotPermitted("The upload address is not valid, or has expired")
    key: str = payload["key"]
    with write():
        if Campaign.select().where(Campaign.source_id == key).exists():
            raise Conflict("The file is the source of a campaign and can't be replaced any more")
        columns = {"organization": payload["organization"], "file_key": key, "content": content, "created_at": now()}
        Upload.insert(columns).on_conflict(
            conflict_target=[Upload.file_key], preserve=[Upload.content, Upload.created_at]
        ).execute()
    return key


def read(organization: int, key: str) -> bytes:
    """The bytes of a contact list.

    :raises RecordNotFound: when the organization has put no file of that key.
    """
    found = Upload.select(Upload.content).where(Upload.organization == organization, Upload.file_key == key)
    stored = found.scalar()
    if stored is None:
        raise RecordNotFound("File not found")
    return bytes(stored)


def address(service: Service, organization: int, key: str, expires_in: int, *, inline: bool) -> str:
    """An address to fetch a file of the organization from, good for `expires_in` seconds.

    :raises NotPossible: when the key is none of ours.
    :raises NotPermitted: when the file is another organization's.
    """
    if match := CONTACT_LIST.fullmatch(key):
        if int(match[1]) != organization:
            raise NotPermitted("Access denied")
    elif match := TRANSCRIPT.fullmatch(key):
        if not Run.select().where(Run.id == int(match[1]), Run.organization == organization).exists():
            raise NotPermitted("Access denied for this workflow run")
    else:
        raise NotPossible("Invalid key format")
    payload = {"organization": organization, "key": key, "inline": inline}
    return _address(service, service.vault.sign(payload, "get a file", now().timestamp() + expires_in))


def fetch(service: Service, token: str) -> File:
    """The file that a signed address leads to.

    :raises NotPermitted: for an address that isn't valid any more.
    :raises RecordNotFound: when there is no such file, or not yet.
    """
    payload = service.vault.verify(token, "get a file", now().timestamp())
    if payload is None:
        raise NotPermitted("The download address is not valid, or has expired")
    key: str = payload["key"]
    name = key.rpartition("/")[2]
    if match := TRANSCRIPT.fullmatch(key):
        run: Run | None = Run.get_or_none(Run.id == int(match[1]), Run.has_transcript)
        if run is None:
            raise RecordNotFound("File not found")
        return File(name, runs.transcript(run).encode(), "text/plain", payload["inline"])
    return File(name, read(payload["organization"], key), "text/csv", payload["inline"])


def _new_key(organization: int, file_name: str) -> str:
    return f"campaigns/{organization}/{uuid4()}_{UNSAFE.sub('_', file_name[-LONGEST_NAME:])}"


def _address(service: Service, token: str) -> str:
    return f"{service.base_url}/api/v1/s3/files/{token}"
