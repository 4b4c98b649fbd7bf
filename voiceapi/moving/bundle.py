"""What is moved: workflows, tools, credentials, documents and campaigns, and what is left out.

An export is JSON with the members of `Bundle`, in the shapes in which the API answers them, and `voiceapi_export`, the
number of this format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import InvalidInput

FORMAT = 1
STATUSES = ("draft", "published", "archived")


@dataclass(frozen=True, slots=True)
class Left:
    """What isn't carried over, or isn't valid: where it belongs, and why, with what to do about it."""

    place: str
    reason: str


@dataclass(slots=True)
class MovedVersion:
    """A version of a workflow, with the members of the API's answer."""

    version_number: int
    status: str
    workflow_json: dict[str, Any]
    workflow_configurations: dict[str, Any] = field(default_factory=dict)
    template_context_variables: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class MovedCase:
    """A conversation case of a workflow, with the members of the API's answer."""

    case: dict[str, Any]
    enabled: bool = True


@dataclass(slots=True)
class MovedWorkflow:
    """A workflow with its versions and cases, the oldest first; `id` is that of its service, which campaigns name."""

    name: str
    versions: list[MovedVersion]
    id: int | None = None
    workflow_uuid: str | None = None
    status: str = "active"
    cases: list[MovedCase] = field(default_factory=list)


@dataclass(slots=True)
class Bundle:
    """All that is moved at a time; what isn't a workflow is as the API answers it."""

    workflows: list[MovedWorkflow]
    tools: list[dict[str, Any]] = field(default_factory=list)
    credentials: list[dict[str, Any]] = field(default_factory=list)
    documents: list[dict[str, Any]] = field(default_factory=list)
    campaigns: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[Left] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {"voiceapi_export": FORMAT, **asdict(self)}


def read(found: Any, name: str) -> Bundle:
    """What a file holds: a definition, the body of a request to create one, an answer of the API, or an export.

    :param name: of a workflow that the file gives none.
    :raises InvalidInput: with a sentence, when it is none of these, or has another shape at a place.
    """
    if not isinstance(found, dict):
        raise InvalidInput(f"It is no workflow: it holds {_kind(found)}, not an object.")
    if "voiceapi_export" in found:
        return read_export(found)
    if "workflow_definition" in found:
        version = {**found, "workflow_json": found["workflow_definition"], "version_number": 1, "status": "published"}
        cases = [{"case": case} for case in objects(found, "cases", "it")]
        given = {**found, "name": found.get("name") or name, "versions": [version], "cases": cases}
        return Bundle([_workflow(given, "it")], objects(found, "tools", "it"))
    if "workflow_json" in found:
        return Bundle([_workflow({"name": name, "versions": [{**found, "status": "published"}]}, "it")])
    if "nodes" not in found:
        raise InvalidInput(
            'It is no workflow: it has no "nodes". It must be a definition, the body of a request to create one, what '
            "the API answers about one, or an export of `voiceapi workflow export`."
        )
    return Bundle([MovedWorkflow(name, [MovedVersion(1, "published", found)])])


def read_export(found: Mapping[str, Any]) -> Bundle:
    """An export, whose shape is checked as far as nothing else checks it.

    :raises InvalidInput: with a sentence that names the place.
    """
    if found["voiceapi_export"] != FORMAT:
        raise InvalidInput(f"The export has the format {found['voiceapi_export']!r}; this release reads {FORMAT}.")
    lists = {name: objects(found, name, "the export") for name in ("tools", "credentials", "documents", "campaigns")}
    workflows = [
        _workflow(each, f"workflows.{index}") for index, each in enumerate(objects(found, "workflows", "the export"))
    ]
    left = [
        Left(text(each, "place", "left_out"), text(each, "reason", "left_out"))
        for each in objects(found, "left_out", "the export")
    ]
    return Bundle(workflows, **lists, left_out=left)


def _workflow(found: Mapping[str, Any], place: str) -> MovedWorkflow:
    versions = sorted(
        (_version(each, f"{place}.versions.{i}") for i, each in enumerate(objects(found, "versions", place))),
        key=lambda version: version.version_number,
    )
    if not versions:
        raise InvalidInput(f"{place} has no versions.")
    if len({version.version_number for version in versions}) < len(versions):
        raise InvalidInput(f"{place} has several versions of one number.")
    id, uuid, status = found.get("id"), found.get("workflow_uuid"), found.get("status")
    return MovedWorkflow(
        text(found, "name", place),
        versions,
        id if isinstance(id, int) else None,
        uuid if isinstance(uuid, str) else None,
        "archived" if status == "archived" else "active",
        [
            MovedCase(_object(each, "case", f"{place}.cases.{index}"), each.get("enabled") is not False)
            for index, each in enumerate(objects(found, "cases", place))
        ],
    )


def _version(found: Mapping[str, Any], place: str) -> MovedVersion:
    number = found.get("version_number", 1)
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < 2**31:
        raise InvalidInput(f"{place}.version_number must be a whole number from 1.")
    if found.get("status") not in STATUSES:
        raise InvalidInput(f"{place}.status must be one of {', '.join(STATUSES)}.")
    definition = found.get("workflow_json")
    if not isinstance(definition, dict):
        raise InvalidInput(f"{place}: the definition must be an object, not {_kind(definition)}.")
    more = [found.get(name) or {} for name in ("workflow_configurations", "template_context_variables")]
    for value, name in zip(more, ("workflow_configurations", "template_context_variables"), strict=True):
        if not isinstance(value, dict):
            raise InvalidInput(f"{place}.{name} must be an object, not {_kind(value)}.")
    return MovedVersion(number, str(found["status"]), definition, *more)


def objects(found: Mapping[str, Any], name: str, place: str) -> list[dict[str, Any]]:
    """The list of objects `name`; empty if it isn't there.

    :raises InvalidInput: when it is something else.
    """
    value = found.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise InvalidInput(f"{place}: {name} must be a list of objects.")
    return value


def _object(found: Mapping[str, Any], name: str, place: str) -> dict[str, Any]:
    value = found.get(name)
    if not isinstance(value, dict):
        raise InvalidInput(f"{place}.{name} must be an object, not {_kind(value)}.")
    return value


def text(found: Mapping[str, Any], name: str, place: str) -> str:
    """The text `name`.

    :raises InvalidInput: when it isn't there, or is something else.
    """
    value = found.get(name)
    if not isinstance(value, str):
        raise InvalidInput(f"{place}.{name} must be a text, not {_kind(value)}.")
    return value


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    return kinds.get(type(value), "a number")
