"""The command that calls an agent by a simulated phone."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

import click
from flask.cli import with_appcontext

from ..calls import ending, relays, simulated
from ..calls.simulated import Caller
from ..errors import InvalidFields
from ..organizations import api_keys
from ..relay.simulated import RelayPhone
from ..store import runs
from ..store.base import reload
from ..store.runs import Run
from .base import JSON, ORGANIZATION, TEXT, current_service, with_session, with_settings

POLL_SECONDS = 0.05
KEYS, INTERRUPT = "keys:", "interrupt:"
NAMES = {"user": "caller", "assistant": "agent"}


# The call is carried out by this process; a server on the same database does what follows its end.
@click.command("call")
@click.argument("agent", type=TEXT)
@click.option("--from", "number", type=TEXT, help="The caller's number, such as +12025550123.")
@click.option(
    "--say",
    "lines",
    type=TEXT,
    multiple=True,
    metavar="TEXT",
    help=f'What the caller says, once for each turn: "" is silence, {KEYS}12# are keys. Without it, three sentences. '
    f"With --relay, {INTERRUPT}WORD:TEXT says TEXT as soon as the agent has said WORD.",
)
@click.option(
    "--relay",
    is_flag=True,
    help="Talk over a text relay, in frames of Twilio's ConversationRelay, instead of webhooks.",
)
@ORGANIZATION
@JSON
@with_settings(VOICEAPI_WORKER="off")
@with_appcontext
@with_session
def call_agent(
    agent: str, number: str | None, lines: tuple[str, ...], relay: bool, organization: str, as_json: bool
) -> None:
    """Call AGENT, a workflow's id or one of its numbers, by a simulated phone, and show what is said.

    The call comes in as a carrier's would, so the published version answers, and there is a run of it.
    """
    owner = api_keys.require_organization(organization).id
    read = [_line(text, relay) for text in lines]
    words = [after for after, _ in read]
    phone = partial(RelayPhone, current_service(), words) if relay else None
    caller = Caller(number, [line for _, line in read] or None, make_phone=phone)
    try:
        if agent.isascii() and agent.isdigit() and len(agent) < 7:
            run = simulated.call_workflow(current_service(), owner, int(agent), caller)
        else:
            run = simulated.call_number(current_service(), owner, agent, caller)
    except InvalidFields as invalid:
        first = invalid.errors[0]
        if first.path[0] == "lines":
            raise click.BadParameter(
                f"Keys are digits and *, with # at most at their end: {KEYS}12#.", param_hint="--say"
            ) from None
        raise click.BadParameter(f"{first.message.rstrip('.')}.", param_hint="--from") from None
    try:
        run = follow(run, silent=as_json, relay=relay)
    except KeyboardInterrupt:
        ending.end(current_service(), run)
        run = follow(run, silent=True)
    if as_json:
        click.echo(json.dumps(_result(run), ensure_ascii=False, indent=2))
    else:
        click.echo(f"-- {run.disposition}; run {run.id}, {round(run.duration or 0)} s")


def _line(text: str, relay: bool) -> tuple[str, str | dict[str, str]]:
    """The words of the agent that a line of the caller interrupts, if any, and the line."""
    if text.startswith(INTERRUPT):
        words, _, line = (part.strip() for part in text.removeprefix(INTERRUPT).partition(":"))
        if not (relay and words and line):
            message = f"An interruption is {INTERRUPT}WORD:TEXT, and needs --relay."
            raise click.BadParameter(message, param_hint="--say")
        return words, line
    return "", {"keys": text.removeprefix(KEYS)} if text.startswith(KEYS) else text


def follow(run: Run, *, silent: bool, relay: bool = False) -> Run:
    """Show what is said until the call has ended; returns the run as it is then.

    :param relay: the call goes over a text relay, which otherwise its log shows: what the agent says is shown once the
        caller has spoken, because only then it is known what they heard.
    """
    shown = 0
    while True:
        run = reload(run)
        said, relay = _said(run), relay or bool(runs.events(run, relays.OPENED))
        while relay and not run.is_completed and said and said[-1]["role"] == "agent":
            said.pop()
        for line in said[shown:] if not silent else ():
            click.echo(f"{line['role']}: {line['text']}")
        shown = len(said)
        if run.is_completed:
            return run
        time.sleep(POLL_SECONDS)


def _said(run: Run) -> list[dict[str, str]]:
    return [{"role": NAMES[who], "text": text} for _, who, text in runs.utterances(runs.events(run))]


def _result(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "workflow_id": run.workflow_id,
        "caller_number": run.caller_number,
        "called_number": run.called_number,
        "disposition": run.disposition,
        "call_duration_seconds": round(run.duration or 0),
        "transcript": _said(run),
        "gathered": run.gathered_context.get("extracted_variables", {}),
    }
