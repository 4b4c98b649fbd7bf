"""Use cases of credentials for other services, which tools, pre-call fetches and webhooks send as a header.

Secrets are stored encrypted and never returned.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from ..errors import Conflict, NotPossible
from ..security import Vault, decrypt_json, encrypt_json
from ..service import Service
from ..store import organizations, tags
from ..store.base import find, require
from ..store.database import write
from ..store.fields import now
from ..store.organizations import Credential

# The members of each type's data, and the error text when one is missing.
REQUIRED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "none": ((), ""),
    "api_key": (("header_name", "api_key"), "API Key credential requires 'header_name' and 'api_key' fields"),
    "bearer_token": (("token",), "Bearer Token credential requires 'token' field"),
    "basic_auth": (("username", "password"), "Basic Auth credential requires 'username' and 'password' fields"),
    "custom_header": (
        ("header_name", "header_value"),
        "Custom Header credential requires 'header_name' and 'header_value' fields",
    ),
}
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[!-~\x80-\xff]([ \t]*[!-~\x80-\xff])*")


def header(service: Service, organization_id: int | None, credential_uuid: str | None) -> dict[str, str]:
    """The header that a request with this credential carries.

    It is {} when there is no such credential, when its type is `none`, or when it was encrypted with another secret of
    the service: the request is then sent without it, and the other service decides what to answer.
    """
    record = find(Credential, uuid=credential_uuid, organization=organization_id, is_active=True)
    if record is None or record.data is None:
        return {}
    try:
        return header_of(record.credential_type, decrypt_json(service.vault, record.data))
    except NotPossible:
        return {}


def header_of(type: str, data: Mapping[str, Any]) -> dict[str, str]:
    """The header of a credential of this type with this data."""
    match type:
        case "api_key":
            return {data["header_name"]: data["api_key"]}
        case "bearer_token":
            return {"Authorization": f"Bearer {data['token']}"}
        case "basic_auth":
            pair = f"{data['username']}:{data['password']}".encode()
            return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        case "custom_header":
            return {data["header_name"]: data["header_value"]}
    return {}


def exists(organization_id: int | None, credential_uuid: str) -> bool:
    """True if the organization has this credential."""
    return find(Credential, uuid=credential_uuid, organization=organization_id, is_active=True) is not None


def get(organization: int, uuid: str) -> Credential:
    """:raises RecordNotFound: when the organization has no such credential."""
    return require(Credential, "Credential not found", uuid=uuid, organization=organization, is_active=True)


def listed(organization: int) -> list[Credential]:
    """The organization's credentials, by name."""
    return organizations.credentials_of(organization)


def uuids(organization: int) -> set[str]:
    """The uuids of the organization's credentials."""
    return {record.uuid for record in listed(organization)}


def create(
    vault: Vault,
    organization: int,
    name: str,
    description: str | None,
    type: str,
    data: Mapping[str, Any],
    uuid: str | None = None,
) -> Credential:
    """Store a credential, its data encrypted.

    :param type: one of REQUIRED.
    :param uuid: a new one if None.
    :raises NotPossible: when the data lacks a member of the type, or can't be sent as a header.
    :raises Conflict: when a credential of that name exists or existed.
    """
    validate(type, data)
    with write():
        _refuse_taken_name(organization, name)
        record: Credential = Credential.create(
            organization=organization,
            uuid=uuid or str(uuid4()),
            name=name,
            description=description,
            credential_type=type,
            data=encrypt_json(vault, data),
        )
    return record


def update(
    vault: Vault, organization: int, uuid: str, changes: Mapping[str, Any], expected: tags.Expected = None
) -> Credential:
    """Change `name`, `description`, `credential_type` or `credential_data`; what is absent or None stays.

    :param expected: whether the credential's tag is one that the editor expects; None when any is.
    :raises RecordNotFound: when there is no such credential.
    :raises Outdated: when the tag isn't expected.
    :raises NotPossible: when the data lacks a member of the type, or can't be sent as a header.
    :raises Conflict: when another credential has the name.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    with write():
        record = get(organization, uuid)
        tags.CREDENTIAL.require(expected, record)
        if given.get("name", record.name) != record.name:
            _refuse_taken_name(organization, given["name"])
        if "credential_type" in given or "credential_data" in given:
            type = given.get("credential_type", record.credential_type)
            data = given["credential_data"] if "credential_data" in given else decrypt_json(vault, str(record.data))
            validate(type, data)
            record.credential_type = type
            record.data = encrypt_json(vault, data)
        record.name = given.get("name", record.name)
        record.description = given.get("description", record.description)
        record.updated_at = now()
        record.save()
    return record


def delete(organization: int, uuid: str, expected: tags.Expected = None) -> None:
    """Delete the secret; requests that refer to the credential are sent without it from now on. Its name stays taken.

    :param expected: as in `update`.
    :raises RecordNotFound: when there is no such credential.
    :raises Outdated: when the tag isn't expected.
    """
    with write():
        record = get(organization, uuid)
        tags.CREDENTIAL.require(expected, record)
        record.is_active = False
        record.data = None
        record.save()


def validate(type: str, data: Mapping[str, Any]) -> None:
    """Check that the data has the members of the type and makes a valid header.

    :raises NotPossible: with a sentence, when it doesn't.
    """
    names, text = REQUIRED[type]
    for name in names:
        if not isinstance(data.get(name), str) or not data[name]:
            raise NotPossible(text)
    for name, value in header_of(type, data).items():
        if not HEADER_NAME.fullmatch(name):
            raise NotPossible(
                "The header_name of a credential may hold letters, digits and !#$%&'*+.^_`|~- only, and no blanks."
            )
        if not HEADER_VALUE.fullmatch(value):
            raise NotPossible(
                "A credential is sent as a header: it may not begin or end with a blank, hold a line break or another "
                "control character, nor a character outside Latin-1."
            )


def _refuse_taken_name(organization: int, name: str) -> None:
    if find(Credential, organization=organization, name=name) is not None:
        raise Conflict(f"A credential with the name '{name}' already exists")
