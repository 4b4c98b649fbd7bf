"""Use cases of an organization's stored tools: list, create, change, test."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from ..engine.actions import RunTool
from ..engine.template import KIB64, as_text, size
from ..errors import Conflict, FieldError, InvalidFields, NotPossible, RecordNotFound
from ..http_client import Reply
from ..masking import mask_headers, mask_password
from ..organizations import credentials
from ..security import Vault
from ..service import Service
from ..store import secret_fields, tags, tools
from ..store.database import write
from ..store.fields import now
from ..store.tools import Tool
from .http_api import HttpApi, prepare, send_request
from .python import CATEGORY as PYTHON
from .tool import ToolError

STATUSES = ("active", "archived", "draft")
CATEGORIES = ("http_api", "end_call", "transfer_call", "calculator", "native", "integration", "mcp", "python")
HINTS = {
    401: "The server wants a credential, or another one.",
    403: "The server doesn't let this credential in.",
    404: "The server has nothing at this address: check the URL.",
    405: "The server takes another method at this address.",
    422: "The server doesn't take these values: check parameters and body.",
}
TIMEOUT_HINT = "Raise timeout_ms, or make the server answer sooner: the caller waits for it."
VALUES_HINT = "Give values in llm_params for what the model is asked for, in preset_params for what a call would know."


def get(organization: int, uuid: str) -> Tool:
    """A tool of the organization, of any status.

    :raises RecordNotFound: when the organization has no such tool.
    """
    found = tools.get(organization, uuid)
    if found is None:
        raise RecordNotFound("Tool not found")
    return found


def listed(organization: int, statuses: Sequence[str], category: str) -> list[Tool]:
    """The organization's tools by name; without statuses all but the archived ones, without a category of all.

    :raises NotPossible: for an unknown status or category.
    """
    for status in statuses:
        _check_choice("status", status, STATUSES)
    if category:
        _check_choice("category", category, CATEGORIES)
    return tools.of_organization(organization, statuses, category)


def _check_size(fields: Mapping[str, Any]) -> None:
    """A workflow may have a tool at each node, and a state holds what each node offers."""
    for name in ("description", "definition"):
        if size(as_text(fields.get(name) or "")) > KIB64:
            raise InvalidFields([FieldError((name,), "a tool's text may have at most 64 KiB")])


def create(vault: Vault, organization: int, fields: Mapping[str, Any], uuid: str | None = None) -> Tool:
    """Store a tool; it is active at once.

    :param fields: `name`, `description`, `icon`, `icon_color` and `definition`.
    :param uuid: a new one if None.
    :raises RecordNotFound: when the definition names a credential that the organization doesn't have.
    :raises InvalidFields: for a secret that is masked, or when its texts are too large.
    """
    require_credentials(organization, fields["definition"])
    _check_size(fields)
    with write():
        definition = secret_fields.merged(vault, fields["definition"], secret_fields.in_tool, at=("definition",))
        record: Tool = Tool.create(
            organization=organization,
            tool_uuid=uuid or str(uuid4()),
            category=definition["type"],
            **{**fields, "definition": definition},
        )
    return record


def update(
    vault: Vault, organization: int, uuid: str, changes: Mapping[str, Any], expected: tags.Expected = None
) -> Tool:
    """Change `name`, `description`, `icon`, `icon_color`, `definition` or `status`; a value of None changes nothing.

    :param expected: whether the tool's tag is one that the editor expects; None when any is.
    :raises RecordNotFound: when there is no such tool, or the definition names an unknown credential.
    :raises Outdated: when the tag isn't expected.
    :raises NotPossible: for an unknown status.
    :raises Conflict: when it is a function of the host's app.
    :raises InvalidFields: when the definition's type isn't the tool's category, which never changes, when the texts are
        too large, or for a masked secret that stands for no stored one.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    _check_size(given)
    if "status" in given:
        _check_choice("status", given["status"], STATUSES)
    with write():
        record = get(organization, uuid)
        if record.category == PYTHON:
            raise Conflict("This tool is a function of the app that voiceapi is part of; change it there.")
        tags.TOOL.require(expected, record)
        definition = given.get("definition")
        if definition is not None:
            if definition["type"] != record.category:
                raise InvalidFields([FieldError((), mismatch(record.category, definition["type"]))])
            require_credentials(organization, definition)
            given["definition"] = secret_fields.merged(
                vault, definition, secret_fields.in_tool, [record.definition], ("definition",)
            )
        for name, value in given.items():
            setattr(record, name, value)
        record.updated_at = now()
        record.save()
    return record


def mismatch(category: str, type: str) -> str:
    """The error text for a definition whose type isn't the tool's category."""
    return f"category '{category}' must match definition.type '{type}'"


def try_out(
    service: Service, organization: int, uuid: str, arguments: Mapping[str, Any], presets: Mapping[str, Any]
) -> dict[str, Any]:
    """Send the request of an http_api tool once, as a call would; the result shows the request and the reply.

    :param arguments: what the model would give.
    :param presets: values of preset parameters, used instead of their templates.
    :raises RecordNotFound: when there is no such tool.
    :raises NotPossible: when the tool is of another category.
    :raises OutOfService: when too many slow requests are in progress; nothing is sent then.
    """
    record = get(organization, uuid)
    if record.category != "http_api":
        raise NotPossible("Only tools of the category http_api can be tested: the others send nothing by themselves.")
    definition = secret_fields.decrypted(service.vault, record.definition, secret_fields.in_tool)
    tool = HttpApi(record.tool_uuid, record.name, record.description, definition.get("config", {}))
    header = credentials.header(service, organization, tool.config["credential_uuid"])
    send = partial(service.http.send, owner=organization)
    with service.bulkhead.slow(organization):
        return run_test(tool, arguments, presets, header, send, now().timestamp())


def require_credentials(organization: int, definition: Mapping[str, Any]) -> None:
    """:raises RecordNotFound: when a tool's definition names a credential that the organization doesn't have."""
    config = definition.get("config", {})
    for uuid in (config.get("credential_uuid"), (config.get("resolver") or {}).get("credential_uuid")):
        if uuid and not credentials.exists(organization, uuid):
            raise RecordNotFound(
                f"Credential '{uuid}' was not found in this organization. Create it in the UI first, "
                "then retry with its credential_uuid."
            )


def _check_choice(parameter: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise NotPossible(f"Invalid {parameter} '{value}'. Must be one of: {', '.join(choices)}")


# -- the test of a tool: its request is sent once


def run_test(
    tool: HttpApi,
    arguments: Mapping[str, Any],
    presets: Mapping[str, Any],
    header: Mapping[str, str],
    send: Callable[..., Reply],
    at: float,
) -> dict[str, Any]:
    """The result of one call of the tool, with the members of the API's answer.

    :param arguments: what a model would give.
    :param presets: values of preset parameters, used instead of their templates.
    :param header: that of the tool's credential; the result hides the values of all headers that may hold a secret.
    :param at: Unix time of the call, for templates that name the current time.
    """
    request = RunTool(0, at, "", "", tool.function_name, tool.uuid, arguments)
    result: dict[str, Any] = dict.fromkeys(
        ("status_code", "data", "error", "hint", "request_headers", "request_body", "request_params")
    )
    url = mask_password(tool.config["url"])
    result |= {"request_method": tool.config["method"], "request_url": url, "duration_ms": 0}
    try:
        prepared = prepare(tool.config, request, header, presets)
    except ToolError as error:
        return {**result, "status": "error", "error": str(error), "hint": VALUES_HINT}
    started = time.monotonic()
    result |= send_request(send, prepared)
    result |= {
        "request_url": mask_password(prepared.url),
        "request_headers": mask_headers(prepared.headers),
        "request_body": prepared.body,
        "request_params": prepared.params,
        "duration_ms": round((time.monotonic() - started) * 1000),
    }
    status = result["status_code"]
    if status is None:
        timed_out = result["error"].startswith("Request timed out")
        return {**result, "hint": TIMEOUT_HINT if timed_out else None}
    return {**result, "hint": HINTS.get(status)}
