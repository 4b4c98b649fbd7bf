"""The command `connect`: a number of a carrier's account, an agent, and what both need, here and at the carrier."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click
from flask.cli import with_appcontext

from ..calls import doctor, number_setup, triggers
from ..calls.number_setup import Account, Connected
from ..errors import InvalidFields
from ..service import Service
from ..store import workflows
from ..store.telephony import TelephonyConfiguration
from ..store.workflows import Workflow
from ..telephony.connect import CARRIERS
from ..telephony.numbers import normalize
from ..telephony.providers import PROVIDERS
from .base import ID, JSON, ORGANIZATION, TEXT, current_service, owner_of, with_session, with_settings
from .call import follow
from .output import printable, progress, show_json, show_table


def _normalized(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Callback of --number: + and digits, however it is written."""
    return None if value is None else normalize(value, None).address_normalized


# It places a call at most; a server on the same database does what follows.
@click.command("connect")
@click.argument("carrier", required=False, type=click.Choice(sorted(CARRIERS)))
@click.option("--number", type=TEXT, callback=_normalized, help="The number to connect, with + and country code.")
@click.option("--agent", type=TEXT, help="The agent that answers calls to it: its id or its name.")
@click.option("--name", type=TEXT, help="Name of the carrier account, if it is new; the carrier's otherwise.")
@click.option("--configuration", type=ID, help="The id of the carrier account, if several have its credentials.")
@click.option("--call", "to", type=TEXT, help="Have the agent call this telephone afterwards.")
@click.option("--undo", is_flag=True, help="Put back what stood before the number was first connected.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.option("--yes", is_flag=True, help="Don't ask before anything is changed, nor for a telephone to call.")
@ORGANIZATION
@JSON
@with_settings(VOICEAPI_WORKER="off")
@with_appcontext
@with_session
def connect_number(
    carrier: str | None,
    number: str | None,
    agent: str | None,
    name: str | None,
    configuration: int | None,
    to: str | None,
    undo: bool,
    dry_run: bool,
    yes: bool,
    organization: str,
    as_json: bool,
) -> None:
    """Connect a telephone number of CARRIER with an agent, or undo it.

    It stores the account and the number, chooses the agent that answers, sets the addresses of calls at the carrier,
    and runs `voiceapi doctor`. What will change is said before. What is missing is asked for at a terminal;
    credentials are taken from the environment, such as TWILIO_AUTH_TOKEN, or else asked for.
    """
    service, owner = current_service(), owner_of(organization)
    if undo:
        _undo(service, owner, carrier, number, dry_run=dry_run, yes=yes, as_json=as_json)
        return
    carrier = carrier or _ask("CARRIER", "Carrier", type=click.Choice(sorted(CARRIERS)))
    number_setup.require_https(service, PROVIDERS[carrier].display_name)
    account = _account(service, owner, carrier, configuration, number)
    number = number or _choose_number(service, account)
    workflow = _agent(owner, agent)
    with progress("Asking the carrier"):
        plan = number_setup.plan(service, account, number, workflow.id, name)
    if not as_json:
        _show("What will change:" if plan.changes else f"{number} is connected already.", plan.changes)
    result: dict[str, Any] = {"number": number, "workflow_id": workflow.id, "changes": plan.changes, "dry_run": dry_run}
    if dry_run:
        if as_json:
            show_json(result)
        return
    if plan.changes:
        _confirm("Change this?", yes)
    with progress("Connecting"):
        connected = number_setup.carry_out(service, plan)
    _show("Left to do at the carrier:" if connected.notes else "", connected.notes, err=as_json)
    findings = _doctor(service, owner, connected, quiet=as_json)
    to = to if yes or as_json or to else _telephone()
    run = None if to is None else _call(service, workflow, connected, to, silent=as_json)
    if as_json:
        ids = {"telephony_configuration_id": connected.configuration.id, "phone_number_id": connected.number.id}
        shown = [asdict(each) for each in findings]
        show_json({**result, **ids, "notes": connected.notes, "findings": shown, "workflow_run_id": run})
    sys.exit(1 if any(each.wrong for each in findings) else 0)


# -- what is asked for


def _ask(flag: str, text: str, **options: Any) -> Any:
    """What somebody types at the terminal.

    :raises click.UsageError: when there is none; it names the argument, option or variable.
    """
    if not sys.stdin.isatty():
        raise click.UsageError(f"{flag} is missing, and there is no terminal to ask at.")
    return click.prompt(text, err=True, **options)


def _confirm(text: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("--yes is missing, and there is no terminal to ask at.")
    click.confirm(text, abort=True, err=True)


def _variable(carrier: str, field: str) -> str:
    """The variable of the environment that has a credential."""
    return f"{carrier}_{field}".upper()


def _account(service: Service, owner: int, carrier: str, configuration: int | None, number: str | None) -> Account:
    """The account, with credentials of the environment, those that are stored, and those that are typed."""
    provider = PROVIDERS[carrier]
    given = {each.name: text for each in provider.asked if (text := os.environ.get(_variable(carrier, each.name)))}
    labels = {each.name: each for each in provider.asked}

    def ask(names: Sequence[str], **options: Any) -> None:
        for name in names:
            field, variable = labels[name], _variable(carrier, name)
            text = _ask(variable, field.label, hide_input=field.sensitive, **options)
            given.update({name: text.strip()} if text.strip() else {})

    try:
        return number_setup.open_account(service, owner, carrier, given, configuration, number)
    except InvalidFields as invalid:
        missing = [str(each.path[-1]) for each in invalid.errors]
    if not sys.stdin.isatty():
        needed = " and ".join(_variable(carrier, each) for each in missing)
        raise click.UsageError(f"{needed} must be set in the environment, because there is no terminal to ask at.")
    ask(missing)
    optional = [each.name for each in provider.asked if not each.required and each.name not in given]
    ask(optional, default="", show_default=False, prompt_suffix=" (empty: none): ")
    return number_setup.open_account(service, owner, carrier, given, configuration, number)


def _choose_number(service: Service, account: Account) -> str:
    with progress("Asking the carrier"):
        listed = number_setup.account_numbers(service, account)
    if listed is None:
        typed = _ask("--number", f"Number of this {account.carrier.name} account, with + and country code")
        return normalize(typed, None).address_normalized
    usable = [each for each in listed if not each.obstacle]
    if not usable:
        raise click.ClickException(f"This {account.carrier.name} account has no number that takes calls.")
    if not sys.stdin.isatty():
        known = ", ".join(each.number for each in usable[: number_setup.MOST_NAMED])
        raise click.UsageError(f"--number is missing; it takes one of the account's numbers, such as {known}.")
    show_table(("NUMBER", "NAME"), [(each.number, each.label) for each in usable], empty="")
    choice = click.Choice([each.number for each in usable])
    only = usable[0].number if len(usable) == 1 else None
    return str(click.prompt("Number", err=True, type=choice, show_choices=False, default=only))


def _agent(owner: int, given: str | None) -> Workflow:
    """The agent of that id or name; without one, the only one that there is, or the one that is chosen."""
    active = workflows.of_organization(owner, "active")
    if given is None and len(active) == 1:
        return active[0]
    if not active:
        raise click.ClickException("There is no agent yet; `voiceapi workflow import FILE` stores one.")
    if given is None:
        if sys.stdin.isatty():
            show_table(("ID", "AGENT"), [(each.id, each.name) for each in active], empty="")
        given = str(_ask("--agent", "Agent that answers calls to it, by its id", type=ID))
    found = [each for each in active if given in (str(each.id), each.name)]
    if len(found) != 1:
        known = ", ".join(f"{each.id} {each.name!r}" for each in active)
        several = "Several agents have this name" if found else f"There is no agent {given!r}"
        raise click.BadParameter(f"{several}; there are {known}.", param_hint="--agent")
    return found[0]


# -- what is shown and done


def _show(title: str, sentences: Sequence[str], *, err: bool = False) -> None:
    if title:
        click.echo(title, err=err)
    for sentence in sentences:
        click.echo(f"  {printable(sentence)}", err=err)


def _doctor(service: Service, owner: int, connected: Connected, *, quiet: bool) -> list[doctor.CheckResult]:
    """What doctor finds about the configuration, and about what all of them need."""
    with progress("Asking models and carriers") as state:
        found = doctor.examine_organization(service, owner)
        findings = [each for id, each in found if id in (None, connected.configuration.id)]
        for finding in () if quiet else findings:
            state.write(printable(f"{finding.subject}: {finding.sentence}"))
    return findings


def _telephone() -> str | None:
    """The telephone to call, for which somebody at a terminal is asked."""
    if not sys.stdin.isatty():
        return None
    text = "Your own telephone, with + and country code, for a call by the agent (empty: none)"
    return click.prompt(text, err=True, default="", show_default=False).strip() or None


def _call(service: Service, workflow: Workflow, connected: Connected, to: str, *, silent: bool) -> int:
    """Have the agent call, and show what is said; returns the run's id."""
    wanted = triggers.WantedCall(to, None, connected.configuration.id, connected.number.id)
    run = triggers.call(service, workflow, wanted).run
    if not silent:
        click.echo(f"Calling {to}. Ctrl-C stops watching; the call goes on.", err=True)
        try:
            run = follow(run, silent=False)
            click.echo(f"-- {run.disposition}; run {run.id}, {round(run.duration or 0)} s")
        except KeyboardInterrupt:
            click.echo(f"-- run {run.id} goes on")
    return int(run.id)


def _undo(
    service: Service,
    owner: int,
    carrier: str | None,
    number: str | None,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    configuration, chosen = _connected(service, owner, carrier, number)
    with progress("Asking the carrier"):
        planned = number_setup.undo(service, owner, configuration.id, chosen, dry_run=True)
    if not as_json:
        _show("What will be put back:", planned.restored)
    undone = planned
    if not dry_run:
        if not as_json:
            _show("What stays:" if planned.left else "", planned.left)
        _confirm("Put this back?", yes)
        with progress("Undoing"):
            undone = number_setup.undo(service, owner, configuration.id, chosen)
    if as_json:
        show_json({"number": chosen, "dry_run": dry_run, "restored": undone.restored, "left": undone.left})
    else:
        _show("What stays, because it was changed since:" if undone.left else "", undone.left)
    sys.exit(1 if undone.left else 0)


def _connected(
    service: Service, owner: int, carrier: str | None, number: str | None
) -> tuple[TelephonyConfiguration, str]:
    """The connected number that is meant."""
    known = [
        (each, address)
        for each, address in number_setup.connected(service, owner)
        if carrier in (None, each.provider) and number in (None, address)
    ]
    if not known:
        raise click.ClickException("No such number is connected." if carrier or number else "No number is connected.")
    if len(known) > 1:
        addresses = ", ".join(address for _, address in known)
        if not sys.stdin.isatty():
            raise click.UsageError(f"--number is missing; it takes one of those that are connected: {addresses}.")
        chosen = click.prompt("Number", err=True, type=click.Choice([address for _, address in known]))
        known = [each for each in known if each[1] == chosen]
    return known[0]
