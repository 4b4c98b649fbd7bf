"""Use cases of calls: answer one, take a turn, hear a status, settle it.

A run is stored before the carrier is asked (see `placing`). Turn n is answered once; the same webhook, twice or late,
gets the stored answer (see `answering`). A final status ends the run for good.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from ..campaigns import attempts
from ..conversations.conversation import Conversation
from ..conversations.driver import Progress
from ..engine import events as ev
from ..engine.actions import HangUp, Say
from ..errors import Forbidden, NotPossible
from ..postcall import outbox
from ..service import Service
from ..store import runs
from ..store.base import find, reload, require, scalar
from ..store.database import ConcurrentUpdate, write
from ..store.fields import now
from ..store.runs import Run, StatusCallback
from ..store.workflows import WorkflowVersion as Version
from ..telephony import connect
from ..telephony.carriers.base import (
    FINAL,
    CallerInput,
    Carrier,
    Document,
    Machine,
    Silence,
    Speech,
    StatusUpdate,
    Transferred,
    VoiceSettings,
)
from ..telephony.carriers.rest import CarrierRefused, CarrierSilent
from ..telephony.carriers.webhook import CallbackURLs, Webhook
from ..tools import transfer_call
from .turns import MAX_ATTEMPTS, answer, deadline

log = logging.getLogger("voiceapi")

# What a webhook that asks for a turn follows; the last two carry no words.
Step = Literal["turn", "transfer", "silence", "wait"]
# How long after a call's end its carrier may still tell how a transfer came out.
TRANSFER_GRACE = timedelta(seconds=10)
# What the caller hears when it is us who fail.
GOODBYE = "I'm sorry, something went wrong on our side. Please try again later. Goodbye."


@dataclass(frozen=True)
class SimulatedWebhooks:
    """A carrier's webhooks, from a thread of this process instead of over HTTP."""

    service: Service

    def turn(self, token: str, number: int, after: Step, webhook: Webhook) -> Document:
        with self.service.store.session():
            return take_turn(self.service, token, number, after, webhook)

    def status(self, token: str, webhook: Webhook) -> None:
        with self.service.store.session():
            record_status(self.service, token, webhook)


def links(service: Service, run: Run, turn: int) -> CallbackURLs:
    """Where the carrier of a run is sent; `turn` comes next."""
    return CallbackURLs(f"{service.base_url}/api/v1/telephony/calls", run.token, turn)


def in_progress(organization: int) -> int:
    """The calls of an organization that are ringing or talking, counted from their rows. An overdue one is neither."""
    return runs.in_progress(organization)


def take_turn(service: Service, token: str, number: int, step: Step, webhook: Webhook) -> Document:
    """Answer a carrier's "what now?": turn 0 is the answered call, turn n the caller's n-th words or silence.

    Whatever goes wrong on our side is spoken: a carrier that got no document would speak words of its own.

    :raises Forbidden: when no run has this token, or the carrier didn't sign the webhook.
    """
    run, carrier = admit(service, token, webhook)
    heard = Silence() if step == "silence" or step == "wait" else carrier.read_turn(webhook, step)
    if heard is None:
        return carrier.acknowledge()
    return reply(service, run, carrier, number, _event(heard, number))


def reply(service: Service, run: Run, carrier: Carrier, number: int, event: ev.Event) -> Document:
    """The document of turn `number`, which began with `event`."""
    try:
        actions = answer(service, run, number, event)
    except Exception:
        log.exception("Turn %s of run %s could not be answered", number, run.id)
        actions = [Say(GOODBYE, False), HangUp()]
    return carrier.render(actions, links(service, run, number + 1), voice_settings(run))


def voice_settings(run: Run) -> VoiceSettings:
    """How a run's carrier speaks, listens and dials: `language` and `voice` are in the workflow's configurations."""
    chosen = scalar(Version, "configurations", id=run.version_id) or {}
    language, voice = (value if isinstance(value := chosen.get(name), str) else "" for name in ("language", "voice"))
    ours = run.called_number if run.call_type == "inbound" else run.caller_number
    return VoiceSettings(language.strip() or "en-US", voice.strip() or None, ours)


def hear_machine(service: Service, token: str, webhook: Webhook) -> Document:
    """Keep that an answering machine took the call, found out while the conversation went on.

    :raises Forbidden: when no run has this token, or the carrier didn't sign the webhook.
    """
    run, carrier = admit(service, token, webhook)
    if isinstance(carrier.read_turn(webhook, "machine"), Machine):
        call_id = carrier.read_status(webhook).call_id
        hear(service, run, carrier, StatusUpdate(None, "machine", call_id, machine=True))
    return carrier.acknowledge()


def _hang_up(carrier: Carrier, call_id: str) -> None:
    try:
        carrier.hang_up(call_id)
    except (CarrierRefused, CarrierSilent) as error:
        log.warning("The call %s to an answering machine goes on: %s", call_id, error)


def _event(heard: CallerInput, number: int) -> ev.Event:
    at = now().timestamp()
    match heard:
        case Machine():
            return ev.CallEnded(at, "voicemail_detected")
        case Transferred():
            # The number of the request is the conversation's to know.
            return ev.TransferSettled(at, 0, heard.answered, transfer_call.settled(heard.answered, heard.reason))
        case Speech() if number > 0:
            return ev.CallerSaid(at, heard.text)
        case _:
            return ev.Started(at) if number == 0 else ev.CallerSilent(at)


def admit(service: Service, token: str, webhook: Webhook) -> tuple[Run, Carrier]:
    """The run that a webhook is about, once its signature is checked.

    :raises Forbidden: when no run has this token, or the carrier didn't sign the webhook.
    """
    run = find(Run, token=token)
    if run is None:
        raise Forbidden("There is no such call.")
    try:
        carrier = connect.connect_run(service, run)
    except NotPossible as refusal:
        raise Forbidden(refusal.detail) from None
    if carrier.verify(webhook) is False:
        raise Forbidden("The signature of this webhook is wrong.")
    return run, carrier


def record_status(service: Service, token: str, webhook: Webhook) -> Document:
    """Keep a carrier's word about a call; a final one ends the run, once.

    :raises Forbidden: when no run has this token, or the carrier didn't sign the webhook.
    """
    run, carrier = admit(service, token, webhook)
    hear(service, run, carrier, carrier.read_status(webhook))
    return carrier.acknowledge()


def hear(service: Service, run: Run, carrier: Carrier, report: StatusUpdate) -> None:
    """Keep a carrier's word about a run; a final one ends it, once, and an answering machine is hung up on, once."""
    final = report.status if report.status in FINAL else None
    # Some carriers give a new call another name than the call has later.
    named = report.call_id if run.call_type == "outbound" else None
    with write():
        hangs_up = report.machine and final is None and not reload(run).is_completed and not _machine_took(run)
        StatusCallback.create(run=run, status=report.raw, outcome=final, fields=_kept(report))
        runs.heard(run.id, deadline(), named)
        if report.price is not None:
            _keep_price(reload(run), report)
    if final is not None:
        # A model may have to find variables yet: the carrier doesn't wait for it longer than for a turn.
        service.turns.decided((run.id, "end"), lambda: complete_from_status(service, run.id))
    elif hangs_up and (call_id := named or run.carrier_call_id):
        service.workers.submit(_hang_up, carrier, call_id)


def _machine_took(run: Run) -> bool:
    """Whether the carrier has told already that an answering machine took the call."""
    return any(each.fields.get("machine") for each in StatusCallback.select().where(StatusCallback.run == run))


def _kept(report: StatusUpdate) -> dict[str, Any]:
    """What a run's log shows of a report beside its word: always whose it is and how long, the rest when it is told."""
    told = {"price": report.price, "currency": report.currency, "machine": report.machine or None}
    return {
        "call_id": report.call_id,
        "duration": report.duration,
        **{name: value for name, value in told.items() if value is not None},
    }


def _keep_price(run: Run, report: StatusUpdate) -> None:
    run.annotations = {**run.annotations, "call_price": {"amount": report.price, "currency": report.currency}}
    run.save(only=[Run.annotations])


def complete_from_status(service: Service, run_id: int, moment: datetime | None = None) -> None:
    """End a run whose call has ended, by the first final word of its carrier.

    :param moment: now, unless given.
    """
    with service.store.session():
        heard = runs.status_callbacks(run_id)
        word = next(each for each in heard if each.outcome is not None)
        machine = any(each.fields.get("machine") for each in heard)
        for _ in range(MAX_ATTEMPTS):
            run = require(Run, "The call is gone.", id=run_id)
            connected = run.state == "running"
            conversation = Conversation.from_run(service, run, concluding=True) if connected or machine else None
            waited = (moment or now()) - word.at
            transferring = conversation is not None and conversation.state.phase == "transferring"
            if transferring and waited < TRANSFER_GRACE:
                return  # how the transfer came out may be told after the call's end; the sweeper comes back
            try:
                reason = "voicemail_detected" if machine else "user_hangup"
                last = None if conversation is None else _conclude(run, conversation, reason)
                with write():
                    run = reload(run)
                    if run.is_completed:
                        return
                    if (run.state == "running") != connected:
                        continue
                    if conversation is not None and last is not None:
                        conversation.store(run, last)
                        complete(run, word.fields["duration"])
                    else:
                        complete(run, word.fields["duration"] or 0, word.outcome)
                outbox.begin(service, run)
                return
            except ConcurrentUpdate:
                continue


def _conclude(run: Run, conversation: Conversation, reason: str) -> Progress:
    """The end of the conversation of a call that is over: for `reason`, unless it has ended by itself.

    What comes before a last extraction is stored here, so that a restart finds it; the rest is the caller's to store.
    """
    for progress in conversation.conclude(reason):
        if progress.request is not None:
            with write():
                run = reload(run)
                conversation.store(run, progress)
                run.save()
    return progress


def complete(run: Run, duration: float | None, status: str | None = None) -> None:
    """Mark a run completed and note what follows it; call it inside a transaction, and `outbox.begin` after it.

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
    outbox.enqueue(run)
    run.save()
    attempts.on_run_completed(run)


def expire(service: Service, run: Run, moment: datetime) -> bool:
    """Complete a run whose last word hasn't come by `moment`, with the reason on it."""
    conversation = Conversation.from_run(service, run, concluding=True) if run.state == "running" else None
    closing = conversation is not None and conversation.state.phase == "closing"
    last = _conclude(run, conversation, "user_hangup") if conversation is not None and closing else None
    with write():
        run = reload(run)
        if run.overdue_at is None or run.overdue_at >= moment:
            return False
        if conversation is not None and last is not None:
            conversation.store(run, last)
        error = "The carrier's last word about this call never came."
        run.gathered_context = {**run.gathered_context, "error": error}
        complete(run, None, None if run.disposition else "failed")
    outbox.begin(service, run)
    return True
