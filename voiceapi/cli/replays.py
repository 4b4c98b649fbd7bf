"""The command `replay`: past runs on another version of their agent."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click
from flask.cli import with_appcontext

from ..rehearsal import replays
from ..rehearsal.cases import Line
from ..rehearsal.replay import Divergence
from ..rehearsal.replays import MOST_RUNS, OWN, ReplayedRun, Replays
from ..runs import filters
from ..store.base import require
from ..store.runs import Run
from .base import ID, JSON, ORGANIZATION, current_service, owner_of, with_session, with_settings
from .definitions import workflow_of
from .output import printable, progress, show_json, show_table
from .runs import UNKNOWN, filter_options, filters_of

SPEAKERS = {"edge": "-> edge", "tool": "-> tool", "answer": "<- tool"}
OUTCOMES = {
    "same": "It goes the same way.",
    "differs": "It goes the same way, with differences.",
    "diverges": "It goes another way.",
    "not_replayed": "It can't be replayed.",
}


class _Version(click.ParamType):  # type: ignore[type-arg]
    """The number of a version, or a word for one."""

    name = "version"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value in ("draft", OWN) else ID(value, param, ctx)


@click.command("replay")
@click.argument("run_ids", metavar="[RUN_ID]...", type=ID, nargs=-1)
@click.option("--workflow", "workflow_id", type=ID, help="Replay the newest runs of the workflow with this id.")
@click.option("--last", type=click.IntRange(1, MOST_RUNS), default=20, show_default=True, help="How many of them.")
@filter_options
@click.option(
    "--version",
    type=_Version(),
    default="draft",
    show_default=True,
    help="The number of the version to replay on, draft, or own: each run on what it was held with.",
)
@ORGANIZATION
@JSON
@with_settings(VOICEAPI_WORKER="off")
@with_appcontext
@with_session
@click.pass_context
def replay(
    context: click.Context,
    /,
    run_ids: tuple[int, ...],
    workflow_id: int | None,
    last: int,
    version: Any,
    organization: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Replay past runs on the draft of their agent, or on another version: where do they go another way?

    The caller does what they did. The scripted model speaks again; of a language model and of tools, the recorded
    answers are used. Nothing is sent or stored. Without a draft, the released version is the draft.
    """
    owner = owner_of(organization)
    if bool(run_ids) == (workflow_id is not None):
        raise click.UsageError("Give either the ids of runs, or --workflow.")
    given = [name for name in ("last", *options) if context.get_parameter_source(name) is not _DEFAULT]
    if run_ids and given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} chooses among the runs of a --workflow.")
    if run_ids:
        found = [require(Run, UNKNOWN.format(id), id=id, organization=owner) for id in run_ids]
        workflow_id = found[0].workflow_id
        if any(run.workflow_id != workflow_id for run in found):
            raise click.UsageError("The runs are of several workflows. Replay those of one at a time.")
    else:
        workflow_of(owner, workflow_id or 0)
    criteria, _ = filters.read(filters_of(options), filters.OF_INSIGHTS)
    number = None if version == "draft" else version
    ids = list(dict.fromkeys(run_ids)) or None
    with progress("Replaying"):
        result = replays.of_workflow(current_service(), owner, workflow_id or 0, ids, last, criteria, number)
    if as_json:
        from ..api.rehearsals import replays_answer

        show_json(replays_answer(result))
    elif ids is not None and len(ids) == 1:
        _show_run(result.runs[0])
    else:
        _show_all(result)
    if result.count("diverges") or (ids and result.count("not_replayed")):
        sys.exit(1)  # context.exit would close the database within its session


_DEFAULT = click.core.ParameterSource.DEFAULT


def _show_run(each: ReplayedRun) -> None:
    """Write what the replay of one run led to, its dialogue included where it goes another way."""
    click.echo(f"Run {each.run.id}: {OUTCOMES[each.outcome]} {printable(each.problem)}".rstrip())
    if each.replay is None:
        return
    for difference in each.replay.differences:
        click.echo(f"\n{difference.place}, {printable(difference.node_name)}: {difference.kind}")
        for mark, text in (("-", difference.was), ("+", difference.would_be)):
            for line in text.splitlines():
                click.secho(f"  {mark} {printable(line)}", fg="red" if mark == "-" else "green")
    if each.replay.divergence is not None:
        _show_divergence(each.replay.divergence)


def _show_divergence(divergence: Divergence) -> None:
    click.echo()
    _show_lines(" ", divergence.before)
    click.secho(f"\nAt “{printable(divergence.node_name)}”: {printable(divergence.reason)}", bold=True)
    for title, mark, lines in (("was", "-", divergence.was), ("would be", "+", divergence.would_be)):
        click.echo(f"{title}:" if lines else f"{title}: nothing")
        _show_lines(mark, lines)


def _show_lines(mark: str, lines: Sequence[Line]) -> None:
    for line in lines:
        click.secho(
            f"{mark} {SPEAKERS.get(line.role, line.role):<7}  {printable(line.text)}",
            fg={"-": "red", "+": "green"}.get(mark),
        )


def _show_all(result: Replays) -> None:
    """Write how many runs there are of each outcome, the nodes, and of each run that isn't the same a line."""
    on = "Each on what it was held with" if result.version is None else f"On version {result.version.version_number}"
    counts = ", ".join(f"{result.count(outcome)} {outcome.replace('_', ' ')}" for outcome in replays.OUTCOMES)
    click.echo(f"{on}: {counts}.")
    nodes = [(node.name, node.passed, node.diverged, node.differed) for node in result.nodes()]
    if nodes:
        click.echo()
        show_table(("NODE", "PASSED", "DIVERGED", "DIFFERED"), nodes, empty="")
    rows = [(each.run.id, each.outcome.replace("_", " "), *_where(each)) for each in result.runs]
    if rows := [row for row in rows if row[1] != "same"]:
        click.echo()
        show_table(("RUN", "OUTCOME", "NODE", "WHY"), rows, empty="")


def _where(each: ReplayedRun) -> tuple[str, str]:
    if each.replay is None:
        return "", each.problem
    if each.replay.divergence is not None:
        return each.replay.divergence.node_name, each.replay.divergence.reason
    differences = each.replay.differences
    return (differences[0].node_name, f"other {differences[0].kind}") if differences else ("", "")
