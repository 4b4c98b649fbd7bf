"""Where commands get a workflow's definition from: a file, or a stored workflow."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import click

from ..engine.validation.finding import SEVERITIES, Finding
from ..errors import InvalidFields
from ..store.base import require
from ..store.workflows import Workflow
from ..strict_json import parse
from ..workflows import versions
from ..workflows.linting import LintReport
from .output import printable

STANDARD_INPUT = "-"
# Bytes of a file. It keeps a device or a pipe that never ends from filling the memory.
LARGEST = 64 * 1024 * 1024
UNKNOWN = "There is no workflow with id {}. `voiceapi workflow list` shows which there are."


def workflow_of(owner: int, id: int) -> Workflow:
    """The organization's workflow with this id.

    :raises RecordNotFound: with a sentence that says what to do next.
    """
    return require(Workflow, UNKNOWN.format(id), id=id, organization=owner)


def is_stored(workflow: str) -> bool:
    """Whether a command's argument is the id of a stored workflow: a number that isn't the name of a file."""
    return re.fullmatch("[0-9]{1,18}", workflow) is not None and not Path(workflow).exists()


def read_definition(workflow: str) -> tuple[Any, dict[str, Any], Workflow | None]:
    """The definition and configurations of a file or of a stored workflow, and which one that is."""
    if is_stored(workflow):
        record = require(Workflow, UNKNOWN.format(workflow), id=int(workflow))
        version = versions.current(record)
        return version.definition, version.configurations, record
    return read_file(workflow), {}, None


@dataclass(frozen=True)
class AgentFile:
    """What a file holds of an agent; nothing of it is checked.

    :param variables: its template variables.
    :param tools: those that the file brings along.
    """

    definition: Any
    configurations: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)
    tools: tuple[dict[str, Any], ...] = ()


def read_file(name: str) -> Any:
    """The definition in a JSON file, as `read_agent` has it."""
    return read_agent(name).definition


def read_agent(name: str) -> AgentFile:
    """The agent in a JSON file: a definition alone, a body to create it, an answer of the API, or an export."""
    found = read_json(name)
    if not isinstance(found, dict):
        return AgentFile(found)
    version = found
    match found.get("workflows"):
        case [{"versions": [*_, {"workflow_json": _} as newest]}]:
            version = newest
        case [_, _, *_]:
            raise click.UsageError(f"{file_name(name)} holds several workflows; export one of them.")
    for member in ("workflow_definition", "workflow_json"):
        if member in version:
            tools = found.get("tools")
            return AgentFile(
                version[member],
                _object(version, "workflow_configurations"),
                _object(version, "template_context_variables"),
                tuple(each for each in tools if isinstance(each, dict)) if isinstance(tools, list) else (),
            )
    return AgentFile(version)


def _object(found: dict[str, Any], member: str) -> dict[str, Any]:
    value = found.get(member)
    return value if isinstance(value, dict) else {}


def read_json(name: str) -> Any:
    """What a JSON file holds, or standard input if its name is `-`.

    :raises click.UsageError: with the place, when it can't be read or isn't JSON.
    """
    try:
        return parse((_whole(sys.stdin.buffer, name) if name == STANDARD_INPUT else read_bytes(Path(name))).decode())
    except UnicodeError:
        raise click.UsageError(f"{file_name(name)} is not text in UTF-8.") from None
    except InvalidFields as invalid:
        first = invalid.errors[0]
        place = ".".join(str(part) for part in first.path)
        prefix = "Value error, " if first.type == "value_error" else ""
        text = f"{file_name(name)} is not JSON that can be used: {prefix}{first.message}, at {place or 'its top'}."
        raise click.UsageError(text) from None


def file_name(name: str) -> str:
    """A file's name as messages show it."""
    return "Standard input" if name == STANDARD_INPUT else click.format_filename(name)


def read_bytes(path: Path) -> bytes:
    """What a file holds.

    :raises click.UsageError: when it can't be read, or is larger than `LARGEST`.
    """
    try:
        with path.open("rb") as file:
            return _whole(file, str(path))
    except OSError as error:
        raise click.UsageError(f"{click.format_filename(path)} can't be read: {error.strerror}.") from None


def _whole(file: BinaryIO, name: str) -> bytes:
    found = file.read(LARGEST + 1)
    if len(found) > LARGEST:
        raise click.UsageError(f"{file_name(name)} is larger than {LARGEST // 1024**2} MiB.")
    return found


def show_lint(name: str, report: LintReport) -> None:
    """Write a line for each finding of lint, with its code, and one that counts them."""
    for each in report.findings:
        place = " ".join(part for part in (each.kind, each.id, each.field) if part)
        click.echo(printable(f"{each.severity}: {place}: {each.message} [{each.code}]"))
    counts = [(report.count(severity), severity) for severity in SEVERITIES]
    found = ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts if count)
    ignored = f" ({report.suppressed} suppressed)" if report.suppressed else ""
    click.echo(f"{file_name(name)}: {found or 'nothing found'}{ignored}.")


def show_findings(kind: str, findings: Iterable[Finding], *, err: bool = False) -> None:
    """Write a line for each finding."""
    for item in findings:
        place = " ".join(part for part in (item.kind, item.id, item.field) if part)
        click.echo(printable(f"{kind}: {place}: {item.message}"), err=err)
