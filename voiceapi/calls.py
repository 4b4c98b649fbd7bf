"""Use cases of calls: place one, answer it, take a turn, hear a status, settle it.

A run is stored before the carrier is asked. Asking is at most once: when the carrier doesn't answer, the call is
`unknown` and never dialed again by itself. Turn n is answered once; the same webhook, twice or late, gets the stored
answer. A final status ends the run for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from . import conversation, telephony_configs
from . import world as worlds
from .conversation import Progress, actions_from_json, actions_to_json
from .errors import Forbidden, Refused
from .flow import events as ev
from .flow.actions import Action, HangUp, Redirect, Say
from .flow.engine import IllegalEvent
from .flow.graph import Graph
from .llm.scripted import Scripted
from .service import Service
from .store.database import Clash, write
from .store.fields import now
from .store.find import again, one
from .store.models import Run, StatusCallback, TelephonyConfiguration, Turn
from .store.models import WorkflowVersion as Version
from .telephony.carrier import (
    FINAL,
    Account,
    After,
    Carrier,
    Document,
    Machine,
    Manner,
    Report,
    Words,
)
from .telephony.carriers import CARRIERS
from .telephony.providers import PROVIDERS
from .telephony.simulator import Simulator
from .telephony.webhook import Links, Webhook

RING_SECONDS = 60
# How long a call whose carrier gave no answer counts as one in progress.
UNKNOWN_SECONDS = 60
GRACE_SECONDS = 60
LONGEST_CALL_SECONDS = 1200
# How long a call may go on without a word of its carrier.
SILENT_SECONDS = RING_SECONDS + LONGEST_CALL_SECONDS + GRACE_SECONDS
TRIES = 5
# What the caller hears while the model thinks.
FILLER = "One moment, please."


@dataclass(frozen=True)
class Webhooks:
    """A carrier's webhooks, from a thread of this process instead of over HTTP."""

    service: Service

    def turn(self, token: str, number: int, after: After, webhook: Webhook) -> Document:
        with self.service.store.session():
            return take_turn(self.service, token, number, after, webhook)

    def status(self, token: str, webhook: Webhook) -> None:
        with self.service.store.session():
            hear_status(self.service, token, webhook)


def carrier_of(service: Service, provider: str, credentials: Mapping[str, Any]) -> Carrier:
    """The carrier of a configuration.

    :raises Refused: when this release can't call through it.
    """
    if provider == "simulator":
        return Simulator(
            Webhooks(service),
            service.vault.key("simulator"),
            service.workers.submit,
            lambda seconds: service.workers.stopping.wait(seconds),
            bool(credentials.get("realtime")),
        )
    if provider not in CARRIERS:
        raise Refused(PROVIDERS[provider].unavailable)
    return CARRIERS[provider](Account(credentials, service.outward.send, service.settings.carrier_url(provider)))


def links(service: Service, run: Run, turn: int) -> Links:
    """Where the carrier of a run is sent; `turn` comes next."""
    return Links(f"{service.base_url}/api/v1/telephony/calls", run.token, turn)


def carrier_of_run(service: Service, run: Run) -> Carrier:
    configuration = one(TelephonyConfiguration, id=run.telephony_configuration_id)
    credentials = {} if configuration is None else telephony_configs.credentials(service.vault, configuration)
    return carrier_of(service, run.mode, credentials)


def in_progress(organization: int) -> int:
    """The calls of an organization that are ringing or talking, counted from their rows. An overdue one is neither."""
    count: int = Run.select().where(Run.organization == organization, Run.overdue_at > now()).count()
    return count


def take_turn(service: Service, token: str, number: int, after: After, webhook: Webhook) -> Document:
    """Answer a carrier's "what now?": turn 0 is the answered call, turn n the caller's n-th words or silence.

    :raises Forbidden: when no run has this token, or the carrier didn't sign the webhook.
    """
    run, carrier = _admit(service, token, webhook)
    heard = carrier.read_turn(webhook, after)
    if heard is None:
        return carrier.receipt()
    at = now().timestamp()
    event: ev.Event
    match heard:
        case Machine():
            event = ev.CallEnded(at, "voicemail_detected")
        case Words() if number > 0:
            event = ev.CallerSaid(at, heard.text)
        case _:
            event = ev.Started(at) if number == 0 else ev.CallerSilent(at)
    words = heard.text if isinstance(heard, Words) else ""
    actions = _within_patience(service, run, number, event, words)
    return carrier.render(actions, links(service, run, number + 1), Manner())


def _admit(service: Service, token: str, webhook: Webhook) -> tuple[Run, Carrier]:
    """The run that a webhook is about, once its signature is checked.

    :raises Forbidden: when no run has this token, or the carrier didn't sign the webhook.
    """
    run = one(Run, token=token)
    if run is None:
        raise Forbidden("There is no such call.")
    carrier = carrier_of_run(service, run)
    if carrier.verify(webhook) is False:
        raise Forbidden("The signature of this webhook is wrong.")
    return run, carrier


def _within_patience(service: Service, run: Run, number: int, event: ev.Event, heard: str) -> list[Action]:
    """The answer or, when the model takes long, a filler and the way to ask again."""
    if _is_quick(service, run):
        return _answer_once(service, run, number, event)

    def decide() -> list[Action]:
        with service.store.session():
            return _answer_once(service, run, number, event)

    actions: list[Action] | None = service.turns.decided((run.id, number), decide)
    return [Say(FILLER, False), Redirect(number, heard)] if actions is None else actions


def _is_quick(service: Service, run: Run) -> bool:
    version = one(Version, id=run.version_id)
    configurations = {} if version is None else version.configurations
    return isinstance(worlds.of(service, run.organization_id, configurations).model, Scripted)


def _answer_once(service: Service, run: Run, number: int, event: ev.Event) -> list[Action]:
    for _ in range(TRIES):
        # Counted first: a turn that another worker stores from here on is found, or clashes.
        taken = turns_taken(run)
        stored = one(Turn, run=run, number=number)
        if stored is not None:
            return actions_from_json(stored.actions)
        run = again(run)
        if run.is_completed or taken != number:
            break
        try:
            return _converse(service, run, event, number)
        except (Clash, IllegalEvent):
            # Most likely another worker took the turn meanwhile; its answer is there by now.
            continue
    # Over, or a turn that this call has not come to: there is nothing to say.
    return [HangUp()]


def turns_taken(run: Run) -> int:
    count: int = Turn.select().where(Turn.run == run.id).count()
    return count


def _converse(service: Service, run: Run, event: ev.Event, number: int) -> list[Action]:
    progress, steps = _advance(service, run, event)
    with write():
        run = again(run)
        if run.is_completed:
            return [HangUp()]
        conversation.store_progress(run, progress, steps)
        Turn.create(run=run, number=number, actions=actions_to_json(progress.actions))
        if number == 0:
            run.state = "running"
            run.answered_at = now()
        run.overdue_at = from_now(SILENT_SECONDS)
        run.save()
    return list(progress.actions)


def _advance(service: Service, run: Run, event: ev.Event) -> tuple[Progress, int]:
    version = one(Version, id=run.version_id)
    if version is None:
        raise ValueError(f"Run {run.id} has no definition to be carried out by.")
    graph = Graph.read(version.definition if run.draft is None else run.draft)
    state, steps = conversation.open_state(run, graph, version)
    world = worlds.of(service, run.organization_id, version.configurations)
    return conversation.advance(world, graph, state, event), steps


def hear_status(service: Service, token: str, webhook: Webhook) -> Document:
    """Keep a carrier's word about a call; a final one ends the run, once.

    :raises Forbidden: when no run has this token, or the carrier didn't sign the webhook.
    """
    run, carrier = _admit(service, token, webhook)
    report = carrier.read_status(webhook)
    with write():
        StatusCallback.create(run=run, status=report.raw, fields=_kept(report))
        Run.update(overdue_at=from_now(SILENT_SECONDS)).where(Run.id == run.id, Run.overdue_at.is_null(False)).execute()
    if report.status in FINAL:
        _settle(service, run, report)
    return carrier.receipt()


def _kept(report: Report) -> dict[str, Any]:
    return {"call_id": report.call_id, "duration": report.duration}


def _settle(service: Service, run: Run, report: Report) -> None:
    """End a run by its final status, with the conversation's own ending in the same transaction."""
    for _ in range(TRIES):
        run = again(run)
        if run.is_completed:
            return
        connected = run.state == "running"
        progress, steps = (None, 0)
        if connected:
            progress, steps = _advance(service, run, ev.CallEnded(now().timestamp(), "user_hangup"))
        try:
            with write():
                run = again(run)
                if run.is_completed:
                    return
                if (run.state == "running") != connected:
                    continue
                if progress is not None:
                    conversation.store_progress(run, progress, steps)
                    complete(run, report.duration)
                else:
                    complete(run, report.duration or 0, str(report.status))
            return
        except Clash:
            continue


def complete(run: Run, duration: float | None, status: str | None = None) -> None:
    """Mark a run completed; call it inside a transaction.

    :param duration: seconds as the carrier counted them; None takes the time since the answer.
    :param status: how the call came out, where no conversation has decided it.
    """
    ended = now()
    if duration is None:
        duration = (ended - run.answered_at).total_seconds() if run.answered_at else 0
    if status is not None:
        not_connected = ["not_connected"] if run.answered_at is None else []
        tags = [*run.gathered_context.get("call_tags", []), *not_connected, f"telephony_{status}"]
        run.gathered_context = {
            **run.gathered_context,
            "call_disposition": status,
            "mapped_call_disposition": status,
            "call_tags": list(dict.fromkeys(tags)),
        }
        run.disposition = status
    run.state = "completed"
    run.duration = duration
    run.ended_at = ended
    run.overdue_at = None
    run.save()


def settle_overdue(run: Run, moment: datetime) -> bool:
    """Complete a run whose last word hasn't come by `moment`, with the reason on it; call it inside a transaction."""
    if run.overdue_at is None or run.overdue_at >= moment:
        return False
    run.gathered_context = {**run.gathered_context, "error": "The carrier's last word about this call never came."}
    complete(run, None, None if run.disposition else "failed")
    return True


def from_now(seconds: float) -> datetime:
    return now() + timedelta(seconds=seconds)
