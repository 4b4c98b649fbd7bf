"""Where conversation cases come from: files beside the files of agents, and stored workflows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import click

from ..engine.ports import LanguageModel
from ..engine.validation.check import check
from ..engine.validation.outline import Outline
from ..errors import FieldError, InvalidFields
from ..rehearsal import case_file, strict_yaml
from ..rehearsal.case_file import ENDINGS
from ..rehearsal.cases import Case, ModelKind
from ..rehearsal.subject import Subject
from ..store.tools import Tool
from ..workflows import node_types
from .definitions import AgentFile, read_agent, read_bytes
from .output import printable

# Gives the configured language model of an agent with these configurations; None if there is none.
ModelOf = Callable[[Mapping[str, Any]], LanguageModel | None]


@dataclass(frozen=True)
class CaseSet:
    """The cases of one file, or of a stored workflow, with the agent that they rehearse.

    :param source: the file of the cases, or what stands for the stored workflow.
    :param agent: the file of the agent, or the same; the sets of one agent have one coverage.
    :param name: of the agent.
    :param lines: of each case the line of its file in which it begins; empty for stored ones.
    """

    source: str
    agent: str
    name: str
    subject: Subject
    cases: tuple[Case, ...]
    lines: tuple[int, ...] = ()


def is_case_file(path: Path) -> bool:
    return path.name.endswith(ENDINGS)


def files_at(paths: Iterable[Path]) -> list[Path]:
    """The case files at these paths: of a folder all that are in it, of an agent's file the one beside it.

    :raises click.UsageError: for a path at which there is none.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        at = list(_in_folder(path)) if path.is_dir() else [path] if is_case_file(path) else beside(path)
        if not at:
            kinds = ", ".join(f"*{ending}" for ending in ENDINGS)
            wanted = kinds if path.is_dir() else f"there is no {path.stem}{ENDINGS[0]} beside it"
            raise click.UsageError(f"{click.format_filename(path)} holds no conversation cases: {wanted}.")
        found |= {each.resolve(): each for each in at if each.resolve() not in found}
    return list(found.values())


def _in_folder(folder: Path) -> Iterator[Path]:
    for at, folders, files in os.walk(folder):
        # Neither .git nor .venv.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (path for name in sorted(files) if is_case_file(path := Path(at, name)))


def beside(path: Path) -> list[Path]:
    """The case files beside an agent's file."""
    found = (path.with_name(f"{path.stem}{ending}") for ending in ENDINGS)
    return [each for each in found if each.is_file()]


def watched(paths: Iterable[Path]) -> list[Path]:
    """All files on which the cases at these paths depend, as far as they can be read."""
    found = []
    for path in paths:
        found.append(path)
        try:
            files = files_at([path])
        except click.UsageError:
            continue
        for file in files:
            try:
                found += [file, _agent_in(file, file.stat().st_mtime_ns)]
            except (OSError, click.UsageError, InvalidFields):
                found += [file, agent_of(file, None)]
    return [path for path in dict.fromkeys(found) if not path.is_dir()]


@lru_cache(maxsize=1000)
def _agent_in(path: Path, _changed: int) -> Path:
    """The file of the agent that a case file names, which is read again only when it has changed."""
    return agent_of(path, case_file.read_file(_text(path)).workflow)


def agent_of(path: Path, workflow: str | None) -> Path:
    """The file of the agent that the case file at `path` rehearses.

    :param workflow: the name that the case file gives; without one it is the file of the same name.
    """
    if workflow is not None:
        return Path(os.path.normpath(path.parent / workflow))
    ending = next(ending for ending in ENDINGS if path.name.endswith(ending))
    return path.with_name(f"{path.name.removesuffix(ending)}.json")


def read(paths: Iterable[Path], model_of: ModelOf, override: ModelKind | None = None) -> list[CaseSet]:
    """Read case files with their agents.

    :param override: what speaks in cases that aren't played.
    :raises click.UsageError: with a line for each thing that is wrong, of all files.
    """
    sets: list[CaseSet] = []
    wrong: list[str] = []
    for path in paths:
        try:
            sets.append(read_set(path, model_of, override))
        except click.UsageError as error:
            wrong.append(error.message)
    if wrong:
        raise click.UsageError("\n".join(wrong))
    return sets


def read_set(path: Path, model_of: ModelOf, override: ModelKind | None = None) -> CaseSet:
    """Read one case file with its agent, as `read` does.

    :raises click.UsageError: with a line for each thing that is wrong: the file, the line, the column and the place.
    """
    text = _text(path)
    try:
        found = case_file.read_file(text)
        file = agent_of(path, found.workflow)
        agent = checked_agent(file)
        cases = tuple(
            replace(case, context={**agent.variables, **case.context}).spoken_by(override) for case in found.cases
        )
        model = model_of(agent.configurations) if any(case.model == "configured" for case in cases) else None
        records = tool_records(file, agent, found.tools)
    except InvalidFields as invalid:
        raise click.UsageError("\n".join(_located(path, text, invalid.errors))) from None
    places = strict_yaml.Places(text)
    lines = tuple(places.of(("cases", index))[0] for index in range(len(found.cases)))
    subject = Subject.of_definition(agent.definition, agent.configurations, records, model)
    return CaseSet(click.format_filename(path), click.format_filename(file), file.stem, subject, cases, lines)


def standalone(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The cases in a file as data, so that each stands alone, and the tools that it brings.

    :raises click.UsageError: as `read_set` does.
    """
    text = _text(path)
    try:
        return case_file.contents(text)
    except InvalidFields as invalid:
        raise click.UsageError("\n".join(_located(path, text, invalid.errors))) from None


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode()
    except UnicodeError:
        raise click.UsageError(f"{click.format_filename(path)} is not text in UTF-8.") from None


def _located(path: Path, text: str, errors: Iterable[FieldError]) -> Iterator[str]:
    for line, column, error in strict_yaml.located(text, errors):
        place = ".".join(str(part) for part in error.path)
        named = f"{place}: " if place else ""
        yield printable(f"{click.format_filename(path)}:{line}:{column}: {named}{error.message}.")


def checked_agent(path: Path) -> AgentFile:
    """The agent in a file.

    :raises click.UsageError: with a line for each error, when it can't be run.
    """
    agent = read_agent(str(path))
    findings = check(Outline.of(agent.definition), node_types.rules())
    if findings:
        name = click.format_filename(path)
        lines = (" ".join(filter(None, (each.kind, each.id, each.field))) + f": {each.message}" for each in findings)
        raise click.UsageError("\n".join(printable(f"{name}: {line}") for line in lines))
    return agent


def tool_records(path: Path, agent: AgentFile, tools: Sequence[Mapping[str, Any]]) -> list[Tool]:
    """The tools of the case file, and those that the agent's file brings besides."""
    if not tools and not agent.tools:
        return []
    # The API's schemas take longer to import than most case files take to run.
    from .case_tools import read_tools, read_tools_beside

    records = read_tools(tools)
    known = {record.tool_uuid for record in records}
    return [
        *records,
        *read_tools_beside(str(path), (each for each in agent.tools if each.get("tool_uuid") not in known)),
    ]
