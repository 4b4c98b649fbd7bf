"""The command `lint`: what is wrong with workflows, or is probably a mistake."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click
from flask.cli import with_appcontext

from ..config import PREFIX
from ..service import Service
from ..store.base import require
from ..store.tools import Tool
from ..store.workflows import Workflow
from ..workflows import linting
from .base import JSON, TEXT, current_service, owner_of, with_session
from .definitions import STANDARD_INPUT, UNKNOWN, AgentFile, is_stored, read_agent, show_lint
from .watch import WATCH, Watcher, run_on_change


@click.command("lint")
@click.argument("workflows", nargs=-1, required=True, metavar="FILE|ID...")
@click.option(
    "--organization",
    type=TEXT,
    help="Look the tools, documents and credentials of a file up in this organization, and see which model speaks.",
)
@WATCH
@JSON
def lint(workflows: tuple[str, ...], organization: str | None, watch: bool, as_json: bool) -> None:
    """Say what is wrong with workflows, or is probably a mistake: definitions' files or stored workflows' ids.

    Each finding has the code of its rule, which has a page in docs/lint/. Exit code 1 when there are errors or
    warnings; notes don't count. Without --organization, linting a file needs no database.
    """

    def run() -> int:
        reports = [(name, _report(name, organization)) for name in workflows]
        if as_json:
            found = [{"workflow": name, **report.as_dict()} for name, report in reports]
            click.echo(json.dumps(found, ensure_ascii=False, indent=None if watch else 2))
        else:
            for name, report in reports:
                show_lint(name, report)
        return int(any(report.count("error") or report.count("warning") for _, report in reports))

    if not watch:
        sys.exit(run())
    if any(name == STANDARD_INPUT or is_stored(name) for name in workflows):
        raise click.UsageError("--watch takes files.")
    files = [Path(name) for name in workflows]
    sys.exit(run_on_change(Watcher(lambda: files), run))


def _report(name: str, organization: str | None) -> linting.LintReport:
    return _stored(name) if is_stored(name) else _file(name) if organization is None else _owned(name, organization)


@with_appcontext
@with_session
def _stored(id: str) -> linting.LintReport:
    workflow = require(Workflow, UNKNOWN.format(id), id=int(id))
    return linting.lint_workflow(current_service(), workflow.organization_id, workflow.id)


@with_appcontext
@with_session
def _owned(name: str, organization: str) -> linting.LintReport:
    """The report on a file whose tools, documents and credentials are an organization's, beside those of the file."""
    return _file(name, (current_service(), owner_of(organization)))


def _file(name: str, owner: tuple[Service, int] | None = None) -> linting.LintReport:
    agent = read_agent(name)
    has_model = bool(os.environ.get(f"{PREFIX}LLM_URL"))
    around = linting.surroundings_of_file(
        agent.definition, agent.configurations, _tools(name, agent), has_model=has_model, owner=owner
    )
    return linting.lint_file(agent.definition, agent.configurations, agent.variables, around)


def _tools(name: str, agent: AgentFile) -> list[Tool]:
    if not agent.tools:
        return []
    # The API's schemas take long to import.
    from .case_sets import read_tools_beside

    return read_tools_beside(name, agent.tools)
