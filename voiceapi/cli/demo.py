"""The command `demo`: an agent, a simulated call to it, and what came of it."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import time

import click
from flask.cli import ScriptInfo, with_appcontext

from ..calls import outbound
from ..calls.setup import CallRequest, CallSetup, initial_context
from ..config import PREFIX
from ..engine.graph import Graph
from ..llm import selection
from ..rehearsal import examples
from ..security import new_api_key
from ..service import Service
from ..store import runs
from ..store.base import find, reload
from ..store.runs import Run
from ..store.telephony import SIMULATOR, TelephonyConfiguration
from ..store.workflows import Workflow
from ..telephony.configurations import caller_number
from ..workflows import versions
from .base import ORGANIZATION, current_service, owner_of, use_as_setting, with_session
from .runs import show_event, show_result

EXAMPLE, NUMBER = "Appointment reminder", "+12025550123"
CALLEE = ("Yes, I can.", "We will be three.")
POLL_SECONDS, LONGEST_SECONDS = 0.02, 120.0


def _database(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Callback of --database: without it, the service gets a database that is removed after the command."""
    given = context.ensure_object(ScriptInfo).data
    # Nobody else is to be called meanwhile.
    given[f"{PREFIX}WORKER"] = "off"
    if value == "":
        raise click.BadParameter("it may not be empty; it is the name of a file.")
    if value is not None:
        return str(use_as_setting(context, option, value))
    folder = tempfile.mkdtemp(prefix="voiceapi-demo-")
    # Before the app is made, so it is carried out after the app is closed.
    context.call_on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    # With a key that nobody needs to know, none is announced.
    settings = {"DATABASE": f"{folder}/voiceapi.db", "API_KEY": new_api_key(), "SECRET": None}
    given.update({f"{PREFIX}{name}": each for name, each in settings.items()})
    return None


@click.command("demo")
@click.option(
    "--database",
    callback=_database,
    metavar="FILE",
    help="Keep the agent and its call in this database; in one that is removed again otherwise.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show edges, functions and latencies, too.")
@ORGANIZATION
@with_appcontext
@with_session
def demo(database: str | None, verbose: bool, organization: str) -> None:
    """Have an example agent make a simulated call, and show what is said and what comes of it.

    It needs no account, no key and no network. In a host app it uses the app's own database.
    """
    service = current_service()
    owner = owner_of(organization)
    workflow = _agent(service, owner)
    run = _call(service, owner, workflow)
    version = versions.published(workflow)
    model = selection.choose(service, owner, version.configurations)
    speaker = "the scripted model, since no other is set" if selection.is_scripted(model) else "the language model"
    click.echo(f"{workflow.name!r} calls {NUMBER} through the simulator. It speaks by {speaker}.\n")
    run = _follow(run, Graph.read(version.definition), verbose=verbose)
    click.echo()
    show_result(run)
    click.echo()
    _show_next(database, workflow)
    if not run.is_completed:
        raise click.ClickException(f"The call isn't over after {LONGEST_SECONDS:g} s.")


def _agent(service: Service, owner: int) -> Workflow:
    """The example's workflow: that of an earlier demo if it is still there."""
    example = next(each for each in examples.examples() if each["name"] == EXAMPLE)
    name = f"Demo: {EXAMPLE}"
    known = find(Workflow, organization=owner, name=name, status="active")
    parts = (example["workflow_definition"], example["workflow_configurations"])
    return known or versions.create(service.vault, owner, name, *parts)[0]


def _call(service: Service, owner: int, workflow: Workflow) -> Run:
    simulator = find(TelephonyConfiguration, organization=owner, provider=SIMULATOR)
    if simulator is None:
        raise click.ClickException(
            "This organization has no simulator to call through. Try `voiceapi demo` without --database, or with "
            "another --organization."
        )
    version = versions.published(workflow)
    setup = CallSetup(
        workflow, version, versions.load_graph(workflow, version), simulator, caller_number(simulator, None)
    )
    context = initial_context(simulator, NUMBER, {"first_name": "Ada", "simulated_callee": list(CALLEE)})
    return outbound.place(service, CallRequest(setup, NUMBER, "Demo", context, {})).run


def _follow(run: Run, graph: Graph, *, verbose: bool) -> Run:
    """Write what happens in a call as it happens; returns its run as it is at the end."""
    written = 0
    until = time.monotonic() + LONGEST_SECONDS
    while True:
        run = reload(run)
        happened = runs.events(run)
        for event in happened[written:]:
            show_event(event, graph, verbose=verbose)
        written = len(happened)
        if run.is_completed or time.monotonic() > until:
            return run
        time.sleep(POLL_SECONDS)


def _show_next(database: str | None, workflow: Workflow) -> None:
    if database is None:
        steps = {"voiceapi demo --database voice.db": "keeps the agent and its call"}
        setting = "VOICEAPI_DATABASE=voice.db "
    else:
        steps = {}
        setting = f"VOICEAPI_DATABASE={shlex.quote(database)} "
    steps |= {
        f"{setting}voiceapi chat -v {workflow.id}": "talk to it yourself",
        f"{setting}voiceapi serve": "then open the address that it prints, to see and change it",
    }
    click.echo("Next:")
    for command, what in steps.items():
        click.echo(f"  {command:<52} {what}")
