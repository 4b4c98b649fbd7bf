"""Stores the conversation cases of a case file with a workflow, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Conflict, FieldError, InvalidFields, InvalidInput
from ..service import Service
from ..store import workflows
from ..store.base import insert, update
from ..store.database import write
from ..store.fields import now
from ..store.workflows import ConversationCase
from ..workflows import versions
from . import case_file, stored_cases, strict_yaml
from .stored_cases import MOST_CASES

# Characters of a file. Reading so many of YAML takes some seconds.
LARGEST = 256 * 1024
# How many names an error lists.
MOST_NAMED = 5


@dataclass(frozen=True)
class Imported:
    """What came of a file.

    :param stored: the cases of the file, in its order.
    :param replaced: how many of them took the place of another one of the same name.
    :param tools_left_out: how many tools the file describes.
    """

    stored: Sequence[ConversationCase]
    replaced: int
    tools_left_out: int


def import_file(service: Service, organization: int, workflow_id: int, text: str, *, replace: bool = False) -> Imported:
    """Store the cases of a file, each with what the file says for all of them.

    Which workflow the file names has no effect, and its tools are left out: a stored workflow has its own.

    :param text: of the file, in YAML or JSON.
    :param replace: whether a case takes the place of a stored one of the same name, which stays enabled or not.
    :raises RecordNotFound: when the organization has no such workflow.
    :raises InvalidFields: with the lines of what is wrong.
    :raises InvalidInput: when the workflow would have more than MOST_CASES cases.
    :raises Conflict: when a stored case has the name of one in the file, and `replace` is false.
    :raises OutOfService: when too many slow requests are in progress.
    """
    versions.get(organization, workflow_id)
    with stored_cases.permit(service, organization, [text]):
        contents, tools = _read(text)
    with write():
        workflow = versions.get(organization, workflow_id)
        known = {case.name: case for case in workflows.cases_of(workflow.id)}
        again = [content["name"] for content in contents if content["name"] in known]
        if again and not replace:
            raise Conflict(_taken(again))
        if len(known) + len(contents) - len(again) > MOST_CASES:
            raise InvalidInput(f"A workflow may have at most {MOST_CASES} cases. Delete some first.")
        stored = [_put(known.get(content["name"]), workflow.id, content) for content in contents]
    return Imported(stored, len(again), tools)


def _read(text: str) -> tuple[list[dict[str, Any]], int]:
    """The cases as they are stored, and how many tools the file has."""
    try:
        given, tools = case_file.contents(text)
        return stored_cases.checked_list(given), len(tools)
    except InvalidFields as error:
        raise InvalidFields([_located(*found) for found in strict_yaml.located(text, error.errors)]) from None


def _located(line: int, column: int, error: FieldError) -> FieldError:
    """An error about the text as a whole, which is what the request has a place for."""
    place = ".".join(str(part) for part in error.path)
    message = f"{place}: {error.message}" if place else error.message
    return FieldError(("file",), f"line {line}, column {column}: {message}")


def _taken(names: Sequence[str]) -> str:
    listed = ", ".join(f"“{name}”" for name in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"The workflow has cases with these names: {listed}{more}. With replace they are replaced."


def _put(known: ConversationCase | None, workflow: int, content: Mapping[str, Any]) -> ConversationCase:
    if known is None:
        return insert(ConversationCase, workflow=workflow, name=content["name"], content=content)
    known.content, known.updated_at = dict(content), now()
    update(known)
    return known
