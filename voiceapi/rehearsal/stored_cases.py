"""Use cases of the conversation cases that are stored with a workflow: create, list, change, delete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from ..errors import Conflict, FieldError, InvalidFields, InvalidInput
from ..service import Service
from ..store import tags, workflows
from ..store.base import find, insert, require, update
from ..store.database import write
from ..store.fields import now
from ..store.runs import Run
from ..store.workflows import ConversationCase
from ..strict_json import encode
from ..workflows import versions
from . import case_file, saved_case
from .cases import Case

# Of a workflow; and how many bytes one may have as JSON.
MOST_CASES, LARGEST = 500, 64 * 1024
# How many regular expressions a case may have: each may be searched for half a second.
MOST_PATTERNS = 100
# Cases without regular expressions, which may be searched for half a second each, and with so many bytes as JSON in all
# are read, and their conversations held, within a tenth of a second, mostly.
QUICK = 8 * 1024
# Of what is in this lane of the bulkhead, one piece runs at a time, because it keeps the processor busy.
LANE = "rehearsals"


def listed(organization: int, workflow_id: int, limit: int | None, offset: int) -> list[ConversationCase]:
    """The cases of a workflow, oldest first; without a limit all from the offset on.

    :raises RecordNotFound: when the organization has no such workflow.
    """
    return workflows.cases_of(versions.get(organization, workflow_id).id, limit, offset)


def get(organization: int, workflow_id: int, case_id: int) -> ConversationCase:
    """A case of a workflow.

    :raises RecordNotFound: when the organization has no such workflow, or that has no such case.
    """
    workflow = versions.get(organization, workflow_id)
    return require(ConversationCase, f"Case with id {case_id} not found", id=case_id, workflow=workflow)


def create(
    organization: int,
    workflow_id: int,
    content: Mapping[str, Any],
    name: str | None = None,
    *,
    enabled: bool = True,
    at: str = "case",
) -> ConversationCase:
    """Store a case with a workflow.

    :param content: the case as a case file has it.
    :param name: takes the place of the name in `content`.
    :param at: what the places of errors begin with.
    :raises RecordNotFound: when the organization has no such workflow.
    :raises InvalidFields: with the places of what is wrong with the case.
    :raises InvalidInput: when the workflow has MOST_CASES cases.
    :raises Conflict: when another case of the workflow has the name.
    """
    content = checked(content, name, at)
    with write():
        workflow = versions.get(organization, workflow_id)
        if workflows.count_cases(workflow.id) >= MOST_CASES:
            raise InvalidInput(f"A workflow may have at most {MOST_CASES} cases. Delete one first.")
        _refuse_taken(workflow.id, content["name"])
        return insert(ConversationCase, workflow=workflow, name=content["name"], enabled=enabled, content=content)


def create_of_run(
    service: Service, organization: int, workflow_id: int, run_id: int, name: str | None = None, *, enabled: bool = True
) -> ConversationCase:
    """Store the case that a run of a workflow makes, with the workflow.

    :param name: takes the place of the name that the case gets from its run.
    :raises RecordNotFound: when the organization has no such workflow, or that has no such run.
    :raises NotPossible: with a sentence, when no case can be made of the run.
    :raises InvalidFields, InvalidInput, Conflict: as `create`.
    """
    run = require(Run, "Workflow run not found", id=run_id, workflow=workflow_id, organization=organization)
    content = saved_case.case_of(service, run)
    return create(organization, workflow_id, content, name, enabled=enabled, at="run_id")


def change(
    organization: int,
    workflow_id: int,
    case_id: int,
    content: Mapping[str, Any] | None = None,
    name: str | None = None,
    enabled: bool | None = None,
    expected: tags.Expected = None,
) -> ConversationCase:
    """Change a case; a part that is None stays as it is.

    :param expected: whether the case's tag is one that the editor expects; None when any is.
    :raises RecordNotFound, InvalidFields, Conflict: as `create`.
    :raises Outdated: when the tag isn't expected.
    """
    if content is not None:
        content = checked(content, name)
    with write():
        case = get(organization, workflow_id, case_id)
        tags.CASE.require(expected, case)
        if content is None and name is not None:
            content = checked(case.content, name)
        if content is not None:
            if content["name"] != case.name:
                _refuse_taken(case.workflow_id, content["name"])
            case.name, case.content = content["name"], content
        if enabled is not None:
            case.enabled = enabled
        case.updated_at = now()
        update(case)
    return case


def delete(organization: int, workflow_id: int, case_id: int, expected: tags.Expected = None) -> None:
    """Delete a case of a workflow.

    :param expected: as in `change`.
    :raises RecordNotFound: when the organization has no such workflow, or that has no such case.
    :raises Outdated: when the tag isn't expected.
    """
    with write():
        case = get(organization, workflow_id, case_id)
        tags.CASE.require(expected, case)
        case.delete_instance()


def checked(content: Mapping[str, Any], name: str | None = None, at: str = "case") -> dict[str, Any]:
    """A case as it is stored.

    :param at: what the places of errors begin with.
    :raises InvalidFields: with the places of what is wrong.
    """
    given = dict(content) if name is None else {**content, "name": name}
    given["name"] = read(given, (at,)).name
    return given


def checked_list(contents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Cases as they are stored, each with a name of its own.

    :raises InvalidFields: with the places of what is wrong, from `cases` on.
    """
    found: list[dict[str, Any]] = []
    names: set[str] = set()
    errors: list[FieldError] = []
    for index, each in enumerate(contents):
        try:
            content = checked(each)
        except InvalidFields as error:
            # Their paths begin with "case".
            errors += (replace(wrong, path=("cases", index, *wrong.path[1:])) for wrong in error.errors)
            continue
        if content["name"] in names:
            errors.append(FieldError(("cases", index, "name"), "another case has the same name"))
        names.add(content["name"])
        found.append(content)
    if errors:
        raise InvalidFields(errors[: case_file.MOST_ERRORS])
    return found


def read(content: Mapping[str, Any], path: case_file.Path) -> Case:
    """A case that comes by the API: what takes long to be read is refused before.

    :param path: where it is in the input; it begins the path of every error.
    :raises InvalidFields: with the places of what is wrong.
    """
    if (size := len(encode(content))) > LARGEST:
        raise InvalidFields([FieldError(path, f"a case may have at most {LARGEST} bytes as JSON, not {size}")])
    if (patterns := sum(_patterns(content))) > MOST_PATTERNS:
        message = f"a case may have at most {MOST_PATTERNS} regular expressions, not {patterns}"
        raise InvalidFields([FieldError(path, message)])
    return case_file.read_case(content, path)


def permit(service: Service, organization: int, texts: Sequence[str]) -> AbstractContextManager[None]:
    """The permit to read cases that are given as JSON or YAML, and to hold their conversations; quick ones need none.

    :raises OutOfService: when too many slow requests are in progress.
    """
    is_quick = sum(map(len, texts)) <= QUICK and not any("matches" in text for text in texts)
    return nullcontext() if is_quick else service.bulkhead.slow(organization, LANE)


def _patterns(content: Mapping[str, Any]) -> Iterator[int]:
    """How many regular expressions each turn of a case has that wasn't checked yet."""
    turns = content.get("turns")
    for turn in (content.get("opening"), *(turns if isinstance(turns, list) else (turns,))):
        if isinstance(turn, dict) and "matches" in turn:
            yield len(turn["matches"]) if isinstance(turn["matches"], list) else 1


def _refuse_taken(workflow: int, name: str) -> None:
    if find(ConversationCase, workflow=workflow, name=name) is not None:
        raise Conflict(f"Another case of the workflow has the name “{name}”.")
