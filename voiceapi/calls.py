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

from . import attempts, conversation, language_models, telephony_configs
from . import world as worlds
from .answering import LONGEST_CALL_SECONDS, RING_SECONDS, TRIES, answer, in_silence, talk_of
from .conversation import Progress
from .errors import Busy, Conflict, Missing, Refused
from .flow import events as ev
from .flow.actions import Record
from .secrets import new_token
from .service import Service
from .store import runs
from .store.database import Clash, write
from .store.fields import now
from .store.find import again, need, one
from .store.models import PhoneNumber, Run, StatusCallback, TelephonyConfiguration, Workflow
from .store.models import WorkflowVersion as Version
from .telephony.carrier import FINAL, Carrier, CarrierRefused, CarrierSilent, Document, OutboundCall
from .telephony.providers import PROVIDERS
from .telephony.simulator import Simulator

# How long a call whose carrier gave no answer counts as one in progress.
UNKNOWN_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Placement:
    """A call that was placed; `status` is `initiated`, or `unknown` when the carrier gave no answer."""

    run: Run
    status: str


@dataclass(frozen=True, slots=True)
class Agent:
    """What carries a call out: a workflow, in one of its versions, through a configuration and its number."""

    workflow: Workflow
    version: Version
    configuration: TelephonyConfiguration
    number: PhoneNumber | None


@dataclass(frozen=True)
class Webhooks:
    """A carrier's webhooks, from a thread of this process instead of over HTTP."""

    service: Service

    def turn(self, token: str, number: int, fields: Mapping[str, Any]) -> Document:
        with self.service.store.session():
            return take_turn(self.service, token, number, fields)

    def status(self, token: str, fields: Mapping[str, Any]) -> None:
        with self.service.store.session():
            hear_status(self.service, token, fields)


def carrier_of(service: Service, provider: str, credentials: Mapping[str, Any]) -> Carrier:
    """The carrier of a configuration.

    :raises Refused: when this release can't call through it.
    """
    if provider != "simulator":
        raise Refused(PROVIDERS[provider].unavailable)
    return Simulator(
        Webhooks(service),
        service.workers.submit,
        lambda seconds: service.workers.stopping.wait(seconds),
        bool(credentials.get("realtime")),
    )


def carrier_of_run(service: Service, run: Run) -> Carrier:
    configuration = one(TelephonyConfiguration, id=run.telephony_configuration_id)
    credentials = {} if configuration is None else telephony_configs.credentials(service.vault, configuration)
    return carrier_of(service, run.mode, credentials)


def place(
    service: Service,
    agent: Agent,
    to: str,
    name: str,
    context: Mapping[str, Any],
    gathered: Mapping[str, Any],
    prepared: Run | None = None,
) -> Placement:
    """Call `to` with `agent`, as a new run called `name` or as the `prepared` one.

    :param to: E.164, or a sip: address where the carrier takes them.
    :raises Busy: when the organization has as many calls in progress as it may have.
    :raises Refused: when the carrier said no; the run is then completed with the reason.
    """
    number = None if agent.number is None else agent.number.address_normalized
    credentials = telephony_configs.credentials(service.vault, agent.configuration)
    carrier = carrier_of(service, agent.configuration.provider, credentials)
    run = _store_call(service, agent, to, number, name, context, gathered, prepared)
    call = OutboundCall(run.token, to, number, RING_SECONDS, LONGEST_CALL_SECONDS, run.initial_context)
    try:
        call_id = carrier.place_call(call)
    except CarrierRefused as refusal:
        _fail(run, str(refusal))
        raise Refused(f"Failed to initiate call: {refusal}") from None
    except CarrierSilent:
        with write():
            # Unless a webhook came meanwhile: then the carrier has spoken after all.
            Run.update(overdue_at=now() + timedelta(seconds=UNKNOWN_SECONDS)).where(
                Run.id == run.id, Run.overdue_at == run.overdue_at
            ).execute()
        return Placement(run, "unknown")
    with write():
        fresh = again(run)
        fresh.carrier_call_id = call_id
        fresh.gathered_context = {**fresh.gathered_context, "call_id": call_id}
        fresh.save(only=[Run.carrier_call_id, Run.gathered_context])
    return Placement(fresh, "initiated")


def _store_call(
    service: Service,
    agent: Agent,
    to: str,
    number: str | None,
    name: str,
    context: Mapping[str, Any],
    gathered: Mapping[str, Any],
    prepared: Run | None,
) -> Run:
    world = worlds.of(service, agent.workflow.organization_id, agent.version.configurations)
    context = {**context, **language_models.runtime_configuration(world.model)}
    columns: dict[str, Any] = {
        "version": agent.version,
        "draft": agent.version.definition if agent.version.status == "draft" else None,
        "telephony_configuration_id": agent.configuration.id,
        "mode": agent.configuration.provider,
        "call_type": "outbound",
        "caller_number": number,
        "called_number": to,
        "initial_context": {**context, "caller_number": number} if number else dict(context),
        "gathered_context": {"provider": agent.configuration.provider, **gathered},
        "overdue_at": in_silence(),
    }
    with write():
        if in_progress(agent.workflow.organization_id) >= service.settings.concurrent_calls:
            raise Busy("Concurrent call limit reached")
        if prepared is None:
            return runs.create(agent.workflow, name=name, token=new_token(), **columns)
        # Two calls of one prepared run at once: the second one finds the first one's mark here.
        run: Run = again(prepared)
        if not is_undialed(run):
            raise Conflict("Workflow run already has an active call")
        for column, value in columns.items():
            setattr(run, column, value)
        run.save()
    return run


def is_undialed(run: Run) -> bool:
    """Whether a run was only prepared: nobody was called with it."""
    return bool(run.state == "initialized" and run.overdue_at is None and run.mode != "textchat")


def in_progress(organization: int) -> int:
    """The calls of an organization that are ringing or talking, counted from their rows. An overdue one is neither."""
    return runs.in_progress(organization)


def take_turn(service: Service, token: str, number: int, fields: Mapping[str, Any]) -> Document:
    """Answer a carrier's "what now?": turn 0 is the answered call, turn n the caller's n-th words or silence.

    :raises Missing: when no run has this token.
    """
    run = _of_token(token)
    carrier = carrier_of_run(service, run)
    heard = carrier.read_turn(fields)
    at = now().timestamp()
    event: ev.Event
    if heard.machine:
        event = ev.CallEnded(at, "voicemail_detected")
    elif number == 0:
        event = ev.Started(at)
    else:
        event = ev.CallerSaid(at, heard.text) if heard.text else ev.CallerSilent(at)
    return carrier.render(answer(service, run, number, event), number + 1)


def hear_status(service: Service, token: str, fields: Mapping[str, Any]) -> None:
    """Keep a carrier's word about a call; a final one ends the run, once.

    :raises Missing: when no run has this token.
    """
    run = _of_token(token)
    report = carrier_of_run(service, run).read_status(fields)
    final = report.status if report.status in FINAL else None
    with write():
        kept = {"call_id": report.call_id, "duration": report.duration}
        StatusCallback.create(run=run, status=report.raw, outcome=final, fields=kept)
        Run.update(overdue_at=in_silence()).where(Run.id == run.id, Run.overdue_at.is_null(False)).execute()
    if final is not None:
        # A model may have to find variables yet: the carrier doesn't wait for it longer than for a turn.
        service.turns.decided((run.id, "end"), lambda: settle_heard(service, run.id))


def settle_heard(service: Service, run_id: int) -> None:
    """End a run whose call has ended, by the first final word of its carrier."""
    with service.store.session():
        final = StatusCallback.select().where(StatusCallback.run == run_id, StatusCallback.outcome.is_null(False))
        word = final.order_by(StatusCallback.id).first()
        for _ in range(TRIES):
            run = need(Run, "The call is gone.", id=run_id)
            connected = run.state == "running"
            try:
                last = _concluded(service, run) if connected else None
                with write():
                    run = again(run)
                    if run.is_completed:
                        return
                    if (run.state == "running") != connected:
                        continue
                    if last is not None:
                        conversation.store_progress(run, *last)
                        _complete(run, word.fields["duration"])
                    else:
                        _complete(run, word.fields["duration"] or 0, word.outcome)
                return
            except Clash:
                continue


def _concluded(service: Service, run: Run) -> tuple[Progress, int]:
    """The end of the conversation of a call that is over, and the number of steps that were stored before it.

    What comes before a last extraction is stored here, so that a restart finds it.
    """
    talk = talk_of(service, run)
    # After a goodbye only what was to follow it is left to do.
    event = None if talk.state.phase == "closing" else ev.CallEnded(now().timestamp(), "user_hangup")
    steps = talk.steps
    for progress in talk.goes_on(event):
        if progress.asks is not None:
            with write():
                run = again(run)
                conversation.store_progress(run, progress, steps)
                run.save()
            steps += len(progress.steps)
    return progress, steps


def _complete(run: Run, duration: float | None, status: str | None = None) -> None:
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
    attempts.note_ended(run)


def settle_overdue(service: Service, run: Run, moment: datetime) -> bool:
    """Complete a run whose last word hasn't come by `moment`, with the reason on it."""
    last = (
        _concluded(service, run) if run.state == "running" and talk_of(service, run).state.phase == "closing" else None
    )
    with write():
        run = again(run)
        if run.overdue_at is None or run.overdue_at >= moment:
            return False
        if last is not None:
            conversation.store_progress(run, *last)
        error = "The carrier's last word about this call never came."
        run.gathered_context = {**run.gathered_context, "error": error}
        _complete(run, None, None if run.disposition else "failed")
    return True


def _fail(run: Run, error: str) -> None:
    """Complete a run whose call was never placed, with the reason on it."""
    at = now()
    with write():
        run = again(run)
        record = Record("rtf-pipeline-error", {"error": error, "fatal": True}, at.timestamp(), 0, "", "")
        conversation.keep_records(run, [record])
        run.gathered_context = {
            **run.gathered_context,
            "error": error,
            "call_disposition": "error",
            "mapped_call_disposition": "error",
        }
        run.disposition = "error"
        _complete(run, 0)


def _of_token(token: str) -> Run:
    run = one(Run, token=token)
    if run is None:
        raise Missing("There is no such call.")
    return run
