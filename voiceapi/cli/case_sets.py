"""Sets of conversation cases: read from files beside those of agents or from stored workflows, and run in parallel."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from flask import Flask, g
from flask.cli import with_appcontext

from ..api.answers import UNKNOWN_FIELDS
from ..api.errors import items
from ..api.schemas.tools import DEFINITIONS, DescribedToolSchema, ToolSchema
from ..engine.actions import LanguageModel
from ..engine.validation.graph_rules import check
from ..engine.validation.outline import Outline
from ..errors import FieldError, InvalidFields
from ..llm import selection
from ..organizations import api_keys
from ..rehearsal import case_file, strict_yaml, testing
from ..rehearsal.case_file import ENDINGS
from ..rehearsal.cases import Case, CaseResult, ModelKind
from ..rehearsal.conduct import run_case
from ..rehearsal.subject import Subject
from ..service import Service
from ..store.base import find, require
from ..store.organizations import Organization
from ..store.tools import Tool
from ..store.workflows import Workflow
from ..workflows import node_types, versions
from .base import current_service, with_session
from .definitions import UNKNOWN, AgentFile, read_agent, read_bytes
from .output import printable, progress

# Gives the configured language model of an agent with these configurations; None if there is none.
ModelOf = Callable[[Mapping[str, Any]], LanguageModel | None]
PLACE = "tools"
# A case takes about 2 ms, and starting a process as long as several of them: with fewer cases it isn't worth it.
LEAST_FOR_PROCESSES = 100
# How many cases a process is given at a time.
BATCH = 20
# How many conversations with a language model go on at a time.
THREADS = 8
# A case with what it rehearses.
Job = tuple[Subject, Case]


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
    records = read_tools(tools)
    known = {record.tool_uuid for record in records}
    return [
        *records,
        *read_tools_beside(str(path), (each for each in agent.tools if each.get("tool_uuid") not in known)),
    ]


# -- tools, read as strictly as the API reads them


def read_tools(given: Iterable[Mapping[str, Any]]) -> list[Tool]:
    """Records of tools, which aren't stored.

    :param given: tools as the API takes or answers them, each with its tool_uuid.
    :raises InvalidFields: with the places of what is wrong.
    """
    errors: list[FieldError] = []
    records: dict[str, Tool] = {}
    # The schemas note members that they don't know in the app's context.
    app = Flask("voiceapi", static_folder=None)
    for index, tool in enumerate(given):
        with app.app_context():
            record = _record(tool, (PLACE, index), errors)
        if record.tool_uuid in records:
            errors.append(FieldError((PLACE, index, "tool_uuid"), "another tool has it"))
        records[record.tool_uuid] = record
    if errors:
        raise InvalidFields(errors)
    return list(records.values())


def read_tools_beside(name: str, given: Iterable[Mapping[str, Any]]) -> list[Tool]:
    """Records of the tools that the file of an agent brings along, as `read_tools` makes them.

    :raises click.UsageError: with the file's name and the first place, when one is wrong.
    """
    try:
        return read_tools(given)
    except InvalidFields as invalid:
        error = invalid.errors[0]
        place = ".".join(map(str, error.path))
        raise click.UsageError(f"{click.format_filename(name)}: {place}: {error.message}.") from None


def _record(tool: Mapping[str, Any], path: tuple[str | int, ...], errors: list[FieldError]) -> Tool:
    schema = DescribedToolSchema()
    fields = {name: value for name, value in tool.items() if name in schema.fields}
    wrong = items(schema.validate(fields), ())
    errors += [FieldError((*path, *_in_the_file(each["loc"])), each["msg"]) for each in wrong]
    unknown = [name for name in tool if name not in schema.fields and name not in ToolSchema().fields]
    unknown += g.get("voiceapi_warnings", {}).get(UNKNOWN_FIELDS, [])
    errors += [FieldError(path, f"{name} isn't known", "extra_forbidden") for name in dict.fromkeys(unknown)]
    uuid = tool.get("tool_uuid")
    if not isinstance(uuid, str) or not uuid:
        errors.append(FieldError((*path, "tool_uuid"), "it is the uuid by which nodes attach the tool", "missing"))
    if errors:
        return Tool(tool_uuid=str(uuid))
    loaded = schema.load(fields)
    return Tool(
        tool_uuid=uuid,
        name=loaded["name"],
        description=loaded["description"],
        category=loaded["definition"]["type"],
        status=tool.get("status") or "active",
        definition=loaded["definition"],
    )


def _in_the_file(loc: list[str | int]) -> list[str | int]:
    """The place of an error without the type of the definition, which the API names after it."""
    return [
        part
        for at, part in enumerate(loc)
        if not (at == 1 and loc[0] == "definition" and part in (*DEFINITIONS, "python"))
    ]


# -- stored workflows, and the configured model


@with_appcontext
@with_session
def stored_set(id: int, override: ModelKind | None = None) -> CaseSet:
    """The enabled cases of a stored workflow, with its draft or else its released version.

    :param override: what speaks in cases that aren't played.
    :raises click.UsageError: when it has none.
    :raises InvalidInput: when the version can't be run.
    """
    workflow = require(Workflow, UNKNOWN.format(id), id=id)
    version = versions.current(workflow)
    versions.load_graph(workflow, version)
    cases = tuple(
        replace(case, context={**version.template_context_variables, **case.context}).spoken_by(override)
        for case in testing.read(testing.stored(workflow))
    )
    if not cases:
        raise click.UsageError(f"Workflow {id} has no conversation cases that are enabled.")
    subject = Subject.of_organization(
        current_service(), workflow.organization_id, version.definition, version.configurations
    )
    name = f"workflow {id}"
    return CaseSet(name, name, workflow.name, subject, cases)


@with_appcontext
def configured_model(configurations: Mapping[str, Any]) -> LanguageModel | None:
    """The language model of `model_for`, in the command's service."""
    return model_for(current_service(), configurations)


def model_for(service: Service, configurations: Mapping[str, Any]) -> LanguageModel | None:
    """The language model that the default organization's agents ask; None when it is the scripted one."""
    with service.store.session():
        default = find(Organization, name=api_keys.DEFAULT_ORGANIZATION)
        model = selection.choose(service, None if default is None else default.id, configurations)
    return None if selection.is_scripted(model) else model


# -- running: in processes, and in threads what waits for a language model


@dataclass(frozen=True)
class TimedResult:
    """The result of a case and the seconds that it took."""

    result: CaseResult
    seconds: float


def run_sets(sets: Sequence[CaseSet], at_a_time: int | None = None) -> list[list[TimedResult]]:
    """Run the cases of all sets, and show the progress; returns their results in the order of the cases.

    :param at_a_time: how many at a time; None for as many as is sensible.
    """
    jobs: list[Job] = []
    for each in sets:
        # A language model can't be sent to another process.
        alone = replace(each.subject, model=None)
        jobs += [(each.subject if case.model == "configured" else alone, case) for case in each.cases]
    found = iter(_run_all(jobs, at_a_time))
    return [list(islice(found, len(each.cases))) for each in sets]


def _run_all(jobs: Sequence[Job], at_a_time: int | None) -> list[TimedResult]:
    found: dict[int, TimedResult] = {}
    asking = [index for index, (_, case) in enumerate(jobs) if case.model == "configured"]
    quick = [index for index, (_, case) in enumerate(jobs) if case.model != "configured"]
    with ExitStack() as stack:
        pending: dict[Future[list[TimedResult]], list[int]] = {}
        workers = min(at_a_time or os.cpu_count() or 1, -(-len(quick) // BATCH))
        if workers > 1 and (at_a_time or len(quick) >= LEAST_FOR_PROCESSES):
            # The first submission starts the processes; there must be no other thread then.
            pending |= _submit(_open(stack, _processes(workers)), jobs, quick, BATCH)
            quick = []
        if asking:
            pending |= _submit(_open(stack, ThreadPoolExecutor(at_a_time or THREADS)), jobs, asking, 1)
        state = stack.enter_context(progress("Running the cases"))
        for index in quick:
            found[index] = _timed(jobs[index])
            state.text = f"{len(found)} of {len(jobs)} cases"
        for future in as_completed(pending):
            found.update(zip(pending[future], future.result(), strict=True))
            state.text = f"{len(found)} of {len(jobs)} cases"
    return [found[index] for index in range(len(jobs))]


def _open(stack: ExitStack, pool: Executor) -> Executor:
    stack.callback(pool.shutdown, cancel_futures=True)
    return pool


def _processes(count: int) -> ProcessPoolExecutor:
    # A fork takes a hundredth of the time of a new interpreter, and is safe where this is the only thread.
    kind = "fork" if sys.platform == "linux" else None
    # Ctrl-C is for this process, which then ends those that it started.
    leave_interrupts = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    return ProcessPoolExecutor(count, get_context(kind), initializer=leave_interrupts)


def _submit(
    pool: Executor, jobs: Sequence[Job], indexes: Sequence[int], size: int
) -> dict[Future[list[TimedResult]], list[int]]:
    batches = (list(indexes[at : at + size]) for at in range(0, len(indexes), size))
    return {pool.submit(_run, [jobs[index] for index in batch]): batch for batch in batches}


def _run(jobs: Sequence[Job]) -> list[TimedResult]:
    return [_timed(job) for job in jobs]


def _timed(job: Job) -> TimedResult:
    began = perf_counter()
    result = run_case(*job)
    return TimedResult(result, perf_counter() - began)
