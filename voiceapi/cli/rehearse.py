"""The command `rehearse`: an agent talks to practice callers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from flask.cli import with_appcontext

from ..config import PREFIX
from ..errors import InvalidFields
from ..organizations import api_keys
from ..rehearsal import case_file, case_writing, strict_yaml
from ..rehearsal.callers import rehearsals
from ..rehearsal.callers.improvised import Given
from ..rehearsal.callers.rehearsals import Course
from ..rehearsal.callers.report import RehearsalReport
from ..rehearsal.cases import ModelKind
from ..rehearsal.subject import Subject
from ..store.base import find, require
from ..store.organizations import Organization
from ..store.workflows import Workflow
from ..workflows import versions
from .base import JSON, TEXT, current_service, with_session, with_settings
from .case_sets import agent_of, beside, checked_agent, model_for, read_set, tool_records
from .chat import dialogue
from .definitions import UNKNOWN, file_name, is_stored, read_bytes
from .output import printable, progress, show_json, writing

# How many conversations are held unless it is said: random ones cost nothing.
USUAL_RANDOM, USUAL_SPOKEN = 100, 5


@dataclass(frozen=True)
class Agent:
    """The agent that is rehearsed.

    :param tools: those of its file of cases, as they stand there.
    """

    subject: Subject
    given: Given
    organization: int | None = None
    version: int | None = None
    tools: tuple[Any, ...] = ()


@click.command("rehearse")
@click.argument("workflow", type=TEXT)
@click.option("--caller", type=TEXT, metavar="SENTENCE", help="Who the callers are; a language model speaks them.")
@click.option("--random", "is_random", is_flag=True, help="Random callers, who need no language model: the default.")
@click.option(
    "-n",
    "count",
    type=click.IntRange(1, rehearsals.MOST_OF_COMMAND),
    help=f"How many conversations: {USUAL_RANDOM} with random callers, {USUAL_SPOKEN} with others, unless it is said.",
)
@click.option("--seed", type=click.IntRange(0, rehearsals.LARGEST_SEED), help="Repeats a rehearsal; else a new one.")
@click.option("--version", type=click.IntRange(1), help="Of a stored workflow, in place of its draft.")
@click.option(
    "--model", type=click.Choice(["scripted", "played"]), help="What speaks for the agent with random callers."
)
@click.option(
    "--answers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Context, fetch and tools' answers, as in a conversation case, in YAML or JSON.",
)
@click.option("--save", type=click.Path(path_type=Path), metavar="FILE", help="Write what was found as cases.")
@JSON
# Opened for stored workflows and language models; background jobs are the business of a server.
@with_settings(VOICEAPI_WORKER="off")
def rehearse(
    workflow: str,
    caller: str | None,
    is_random: bool,
    count: int | None,
    seed: int | None,
    version: int | None,
    model: ModelKind | None,
    answers: Path | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Have WORKFLOW, a definition's file or a stored workflow's id, talk to practice callers.

    Random callers say words of the edges, press keys, are silent, misunderstand, hang up. They find where the agent
    gets stuck, and need neither a key nor a network. A caller who is described by --caller is spoken by the configured
    language model, and each conversation is judged by the agent's QA prompts. No tool is called in either.

    Exit code 1 when something is found that is wrong.
    """
    if caller is not None and (is_random or model is not None or not caller.strip()):
        raise click.UsageError("--caller takes a sentence, and goes with neither --random nor --model.")
    if save is not None and save.exists():
        raise click.UsageError(f"{click.format_filename(save)} is there already; --save takes the name of a new file.")
    agent = _agent(workflow, version, answers)
    usual = USUAL_RANDOM if caller is None else USUAL_SPOKEN
    with progress("Rehearsing") as shown:

        def note(held: int) -> None:
            shown.text = f"Rehearsing: {held} of {count or usual} conversations"

        course = Course(count or usual, rehearsals.new_seed() if seed is None else seed, agent.given, note=note)
        if caller is None:
            report = rehearsals.with_random_callers(agent.subject, course, model or _model_of_environment(agent))
        else:
            report = _spoken(agent, caller, course)
    has_failed = bool(report.findings) or any(each.failure for each in report.spoken)
    if as_json:
        show_json({"passed": not has_failed, "version_number": agent.version, **report.as_dict()})
    else:
        for line in _lines(report):
            click.echo(line)
    if save is not None:
        _save(save, report, None if is_stored(workflow) else Path(workflow), agent.tools)
    sys.exit(1 if has_failed else 0)


def _model_of_environment(agent: Agent) -> ModelKind | None:
    """Played for a file whose agent a language model would speak here; None if the agent says it."""
    return "played" if agent.organization is None and os.environ.get(f"{PREFIX}LLM_URL") else None


# -- what is rehearsed


def _agent(workflow: str, version: int | None, answers: Path | None) -> Agent:
    given = Given() if answers is None else _given(answers)
    if is_stored(workflow):
        found: Agent = _stored_agent(int(workflow), version, given)
        return found
    if version is not None:
        raise click.UsageError("--version is of a stored workflow, and this is a file.")
    path = Path(workflow)
    agent = checked_agent(path)
    given = replace(given, context={**agent.variables, **given.context})
    for file in beside(path):
        cases = case_file.read_file(read_bytes(file).decode(errors="replace")) if file.is_file() else None
        if cases and cases.tools and agent_of(file, cases.workflow).resolve() == path.resolve():
            return Agent(read_set(file, lambda _: None).subject, given, tools=cases.tools)
    return Agent(Subject.of_definition(agent.definition, agent.configurations, tool_records(path, agent, ())), given)


@with_appcontext
@with_session
def _stored_agent(id: int, number: int | None, given: Given) -> Agent:
    workflow = require(Workflow, UNKNOWN.format(id), id=id)
    workflow, version = versions.get_with_version(workflow.organization_id, id, number)
    versions.load_graph(workflow, version)
    organization = workflow.organization_id
    subject = Subject.of_organization(current_service(), organization, version.definition, version.configurations)
    given = replace(given, context={**version.template_context_variables, **given.context})
    return Agent(subject, given, organization, version.version_number)


def _given(path: Path) -> Given:
    name = click.format_filename(path)
    try:
        data = strict_yaml.load(read_bytes(path).decode())
        if not isinstance(data, dict) or not {"context", "fetch", "tools"}.issuperset(data):
            raise click.UsageError(f"{name} must be an object with the members context, fetch and tools.")
        return rehearsals.read_given(data.get("context"), data.get("fetch"), data.get("tools"))
    except UnicodeError:
        raise click.UsageError(f"{name} is not text in UTF-8.") from None
    except InvalidFields as invalid:
        wrong = (f"{name}: {'.'.join(map(str, each.path))}: {each.message}." for each in invalid.errors)
        raise click.UsageError(printable(" ".join(wrong))) from None


@with_appcontext
@with_session
def _spoken(agent: Agent, caller: str, course: Course) -> RehearsalReport:
    service = current_service()
    if agent.organization is not None:
        return rehearsals.with_spoken_callers(service, agent.organization, agent.subject, caller, course)
    default = find(Organization, name=api_keys.DEFAULT_ORGANIZATION)
    subject = replace(agent.subject, model=model_for(service, agent.subject.configurations))
    return rehearsals.with_spoken_callers(service, default.id if default else None, subject, caller, course)


# -- what is shown


def _lines(report: RehearsalReport) -> Iterator[str]:
    held = len(report.held)
    of = "" if held == report.asked else f" of {report.asked}"
    who = "random callers" if report.caller is None else f"callers: {report.caller}"
    speaker = {"scripted": "the scripted model", "played": "random decisions", "configured": "its language model"}
    yield printable(f"{held}{of} conversations with {who}. The agent was spoken by {speaker[report.model]}.")
    yield printable(f"Endings:  {_counted(report.dispositions)}")
    yield printable(f"Nodes:    {_counted({part.name: part.count for part in report.coverage.nodes.parts})}")
    measures = report.coverage.measures
    yield f"Coverage: {', '.join(f'{name} {measure}' for name, measure in measures.items())}"
    for name, measure in measures.items():
        for part in measure.untouched:
            yield printable(f"  untouched {name[:-1]}: {part.name}")
    if report.caller is not None:
        yield from _judged(report)
    for finding in report.findings:
        yield ""
        yield printable(f"{finding.defect.code}: {finding.defect.message}")
        yield from _indented(dialogue(finding.example[1]) if finding.example else ())
    if report.left_out:
        yield f"... and {report.left_out} more."
    yield ""
    yield f"Found: {len(report.findings) + report.left_out}. Seed: {report.seed}"


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def _judged(report: RehearsalReport) -> Iterator[str]:
    scores = [each.score for each in report.spoken if each.score is not None]
    if scores:
        mean = sum(scores) / len(scores)
        yield f"Scores:   {min(scores):g} to {max(scores):g}, {mean:.1f} on average, of {len(scores)} conversations"
    for problem in report.problems:
        yield printable(f"Not judged: {problem}")
    if (place := report.worst) is not None:
        worst = report.spoken[place]
        score = "not judged" if worst.score is None else f"score {worst.score:g}"
        yield ""
        yield f"The worst, conversation {place + 1} ({score}, {printable(str(worst.held.result.disposition))}):"
        yield from _indented(dialogue(worst.held.result))
        for summary in worst.judgement.summaries if worst.judgement else ():
            yield printable(f"  {summary}")


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line.rstrip()}" for line in lines)


def _save(path: Path, report: RehearsalReport, workflow: Path | None, tools: tuple[Any, ...]) -> None:
    """Write what was found as cases, which pass as long as the agent does what it did."""
    cases, left_out = rehearsals.cases_of(report)
    name = None
    if workflow is not None and _agent_beside(path) != workflow.resolve():
        name = os.path.relpath(workflow.resolve(), path.resolve().parent)
    for each in left_out:
        click.echo(printable(f"{each} can't be written as a case: its model did what no case can play."), err=True)
    if not cases:
        click.echo(f"There is nothing to write into {click.format_filename(path)}.", err=True)
        return
    with writing(path):
        text = case_writing.file_text(cases, name, tools=tools, as_json=path.suffix == ".json")
        path.write_text(text, encoding="utf-8")
    count = "1 case" if len(cases) == 1 else f"{len(cases)} cases"
    click.echo(f"Wrote {count} into {file_name(str(path))}.", err=True)


def _agent_beside(path: Path) -> Path | None:
    """The file of the agent that a case file of this name is of; None if it has another kind of name."""
    is_named = path.name.endswith(case_file.ENDINGS)
    return agent_of(path, None).resolve() if is_named else None
