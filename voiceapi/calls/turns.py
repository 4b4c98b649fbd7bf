"""The turns of a call: each is answered once, however often its webhook comes, despite slow models and restarts.

A turn that needs nothing but this process is decided and stored at once. One that has to ask another server, for the
model's reply or a tool's result, is stored as pending first; another thread carries it on and stores every answer
before it asks for the next. A webhook that asks for the turn in the meantime, in this process or another one, waits for
a while, then gets a filler and a redirect to ask again. After a restart the turn goes on from what was stored; a tool
that was being called then is not called a second time.

Of a reply that the model still writes, sentences go ahead: each is stored with its turn before a webhook gets it, and
a redirect leads on to the rest. Where each document ended is stored, too, so that a repeated webhook gets the same.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

from ..conversations.conversation import Conversation, Progress, append_log, combine
from ..engine import events as ev
from ..engine.actions import Action, HangUp, Listen, Pause, Play, Record, Redirect, RunTool, Say, Transfer, iso
from ..engine.phrases import filler, filler_after, phrases
from ..engine.step import IllegalEvent
from ..llm import selection
from ..llm.streams import clauses, sentences
from ..organizations.api_keys import DEFAULT_ORGANIZATION
from ..runs import lifecycle
from ..service import Service, has_ended
from ..store import runs
from ..store.base import find, insert, reload, require, scalar, set_changed, update
from ..store.database import ConcurrentUpdate, write
from ..store.fields import now
from ..store.locks import NO_LOCK, UNREPEATABLE, run_lock
from ..store.organizations import Organization
from ..store.runs import Run, RunEvent, Snapshot, Turn
from ..store.workflows import WorkflowVersion
from ..telephony.carriers.base import VoiceSettings
from ..telephony.carriers.events import CallerInput, Keys, Speech, Transferred
from ..telephony.connect import CARRIERS
from ..tools import transfer_call
from . import ending

log = logging.getLogger("voiceapi")

# What a run's log says of a call that was answered after the run had ended; the sentence that was spoken follows.
ANSWERED_LATE = "Somebody answered this call after its run had ended, and was told:"
# How long the slowest voice takes for a character, and how long a caller may speak without a pause.
SECONDS_A_CHARACTER = 0.1
LONGEST_SPEECH_SECONDS = 60.0
# What the log says of a reply that the caller interrupted while the model was writing it.
CUT = "The caller interrupted this reply, so the rest of it wasn't asked for."
# How a transfer may end a conversation; its outcome may be reported after the end of the call.
TRANSFER_OUTCOMES = ("transfer_call", "user_hangup")
# A pending turn is left to the process that decides it until that hasn't said so for this long, as it does every few
# seconds. A process that has ended is not waited for where that is known.
WORKER_TIMEOUT, AHEAD = timedelta(seconds=15), timedelta(seconds=2)
# How often a process looks for the answer to a turn that another one decides.
LOOK_SECONDS = 0.1


class CallOver(Exception):
    """The call is over, so nobody would hear the answer of a turn."""


class RelayEnded(Exception):
    """The relay that asked for a turn has ended, so that the rest of the turn wasn't given out."""


class Relay(Protocol):
    """A text relay, which takes a turn clause by clause.

    `is_cut`: the caller has interrupted the turn; a reply that is still written ends with what was given out.
    """

    @property
    def is_open(self) -> bool: ...
    @property
    def is_cut(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn that a carrier asks for: 0 is the answered call, n what follows the caller's n-th input.

    :param run: as it was stored a moment ago.
    :param machine: the carrier has reported an answering machine.
    :param part: how many actions of the turn it was given before.
    :param relay: the text relay that asks, None for a webhook. What a relay gets counts as given out.
    :param reported: what the carrier has reported of its own latency, in seconds, by the names of the run's log.
    """

    run: Run
    number: int
    caller_input: CallerInput
    machine: bool = False
    part: int = 0
    relay: Relay | None = None
    reported: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """What the carrier is to do.

    :param next: the number of the turn that it asks for after a Listen or Transfer.
    """

    actions: list[Action]
    next: int
    voice: VoiceSettings


def answer(service: Service, request: TurnRequest) -> TurnAnswer:
    """Answer a turn. The first call decides and stores the answer; later calls return it.

    A call that a machine took is to end. An error of this service is spoken, and ends the call, too: without an answer
    the carrier would speak its own message.

    :raises DatabaseUnavailable: when the database can't be used, and the turn isn't answered.
    :raises RelayEnded: when the relay that asks has ended.
    """
    run, number = request.run, request.number
    if request.machine:
        with write(run_lock(run.id)):
            ending.request_hang_up(run, ending.VOICEMAIL)
            run = reload(run)
        request = replace(request, run=run)
    # The end of the call has waited for the outcome of a transfer.
    ended = isinstance(request.caller_input, Transferred) and runs.is_over(run.id)
    version = find(WorkflowVersion, id=run.version_id)
    configurations = {} if version is None else version.configurations
    try:
        actions = _decide(service, request, version, ended)
        if request.relay is not None and not isinstance(actions[-1], Redirect):
            _require_open(request)
            with write(run_lock(run.id)):
                give_out(find(Turn, run=run.id, number=number))
    except RelayEnded:
        raise
    except Exception as error:
        unavailable = service.store.failures.find(error)
        if unavailable is not None:
            raise unavailable from error
        log.exception("Turn %s of run %s could not be answered", number, run.id, extra={"run": run.id})
        _record_failure(run, number, error)
        actions = [Say(phrases(configurations)["service_error"], False), HangUp()]
    if ended:
        ending.finish(service, run.id, ending.webhook_wait(service, run))
    return TurnAnswer(actions, number + 1, voice_settings(configurations, run))


def _record_failure(run: Run, number: int, error: Exception) -> None:
    # What an error says may be secret, so only the log shows it.
    sentence = f"An error of this service, {type(error).__name__}, ended the call at turn {number}. Its log says more."
    try:
        ending.fail(run, sentence)
    except Exception:
        # The caller still gets a sentence.
        log.exception("The failure of run %s could not be recorded", run.id, extra={"run": run.id})


def voice_settings(configurations: Mapping[str, Any], run: Run | None = None) -> VoiceSettings:
    """How a carrier speaks, listens and dials: `language` and `voice` are in the workflow's configurations.

    :param run: that of the call, whose own number a transfer shows; None while no run has it.
    """
    chosen = (configurations.get(name) for name in ("language", "voice"))
    language, voice = (value.strip() if isinstance(value, str) else "" for value in chosen)
    ours = None if run is None else run.called_number if run.call_type == "inbound" else run.caller_number
    return VoiceSettings(language or "en-US", voice or None, ours, lifecycle.LONGEST_CALL_SECONDS)


def _decide(service: Service, request: TurnRequest, version: WorkflowVersion | None, ended: bool) -> list[Action]:
    """The actions of a turn.

    For a turn that takes long to decide: a filler, and a redirect that asks again. A hang-up for every turn, also one
    that is answered or pending, of a call that this service is to end.

    :param version: that of the run; None if it is gone.
    :param ended: the carrier has reported the end of the call before.
    """
    run, number, part = request.run, request.number, request.part
    configurations = {} if version is None else version.configurations
    for attempt in range(ending.MAX_ATTEMPTS):
        conversation = None
        if attempt:
            run = reload(run)
        # A turn that another worker stores from here on is refused as a concurrent update.
        latest = find(Turn, newest_by="number", run=run)
        turn = find(Turn, run=run, number=number) if latest is not None and latest.number > number else latest
        turns_done = 0
        if turn is not None and turn.number < number:
            turns_done, turn = turn.number + (turn.answered_at is not None), None
        is_answered = turn is not None and turn.answered_at is not None
        if run.hang_up_reason is not None or (run.is_completed and not is_answered):
            break
        try:
            begins = turn is None
            if turn is None:
                if turns_done != number:
                    break
                turn, conversation = _begin(service, replace(request, run=run), version, ended)
            if turn.answered_at is None and all(each <= part for each in turn.given):
                carry_on = partial(_carry_on, service, run.id, number, conversation, request.relay)
                is_first = part == 0 and (begins or not runs.fillers(turn))
                at_most = filler_after(configurations) if is_first else math.inf
                key, wait = (run.id, number), None if request.relay else ending.webhook_wait(service, run)
                turn = service.slow_jobs.run_once(key, carry_on, wait, at_most, beyond=part)
                _require_open(request)
                if turn is None or turn.ready:  # where its documents ended is known to the database only
                    return _go_ahead(run, number, part) or _ask_to_wait(run, number, part, configurations)
            return _from(turn, part) if turn.given else [Action.from_json(each) for each in turn.actions[part:]]
        except CallOver:
            break
        except (ConcurrentUpdate, IllegalEvent):
            # Most likely another worker took the turn, and its answer is there by now.
            continue
    # The call is over or to end, or has not come to this turn.
    return [HangUp()] if number else _answer_ended(service, reload(run), configurations)


def _from(turn: Turn, part: int) -> list[Action]:
    """The actions of a turn behind its first `part`: up to where that document ended, else all of an answered one."""
    end = next((each for each in turn.given if each > part), None)
    actions = [Action.from_json(each) for each in turn.actions[part:end]]
    return actions if end is None else [*actions, Redirect(turn.number, end)]


def _require_open(request: TurnRequest) -> None:
    # What the caller has interrupted isn't said after the relay either.
    if request.relay is not None and not (request.relay.is_open or request.relay.is_cut):
        raise RelayEnded


def give_out(turn: Turn | None) -> None:
    """Store that all that an answered turn says was given out, so that a document which follows goes on behind it.

    Call it in a transaction with the lock of the run.
    """
    if turn is not None and turn.answered_at is not None:
        spoken = [each for each, action in enumerate(turn.actions, 1) if action["kind"] in ("Say", "Play")]
        if spoken and spoken[-1] not in turn.given:
            turn.given = [*turn.given, spoken[-1]]
            update(turn)


def interrupt(service: Service, run_id: int, played: str, unplayed: str) -> None:
    """Store that the caller interrupted the latest turn, which is answered. Nothing if the conversation isn't there."""
    for _ in range(ending.MAX_ATTEMPTS):
        run = require(Run, "The call is gone.", id=run_id)
        conversation = Conversation.of_run(service, run)
        try:
            progress = next(conversation.advance(ev.SpeechCut(now().timestamp(), played, unplayed)))
            with write(run_lock(run_id)):
                run = reload(run)
                if not run.is_completed:
                    conversation.store(run, progress)
                    update(run)
            return
        except IllegalEvent:
            return
        except ConcurrentUpdate:
            continue


def _go_ahead(run: Run, number: int, part: int) -> list[Action]:
    """What is ready of a turn behind its first `part` actions, and a redirect to the rest; all if it is answered.

    Where it ends is stored. Nothing if nothing is ready.

    :raises CallOver: as `_ask_to_wait`.
    """
    with write(run_lock(run.id)):
        _, turn = _in_progress(run, number)
        if turn.answered_at is None and all(each <= part for each in turn.given):
            if turn.ready <= part:
                return []
            turn.given, turn.ahead_at = [*turn.given, turn.ready], turn.ahead_at or now()
            update(turn)
    return _from(turn, part)


def _in_progress(run: Run, number: int) -> tuple[Run, Turn]:
    """A run and a turn of it as they are now.

    :raises CallOver: when the call is over or to end, and the turn isn't answered.
    """
    run, turn = reload(run), require(Turn, "The turn is gone.", run=run.id, number=number)
    if run.hang_up_reason is not None or (run.is_completed and turn.answered_at is None):
        raise CallOver
    return run, turn


def _ask_to_wait(run: Run, number: int, part: int, configurations: Mapping[str, Any]) -> list[Action]:
    """A filler for a turn whose reply isn't ready, recorded as spoken, and a redirect that asks again.

    The turn's own actions if it has just been answered.

    :raises CallOver: when the call is over or to end.
    """
    with write(run_lock(run.id)):
        run, turn = _in_progress(run, number)
        if turn.answered_at is not None:
            return _from(turn, part)
        text = filler(configurations, runs.fillers(turn))
        at, latest = now().timestamp(), find(RunEvent, newest_by="id", run=run.id)
        node = ("", "") if latest is None else (latest.node_id or "", latest.node_name or "")
        spoken = {"text": text, "timestamp": iso(at), "filler": True}
        append_log(run, [Record("rtf-bot-text", spoken, at, scalar(Snapshot, "state", run=run.id)["turn"], *node)])
        set_changed(run, has_transcript=True)
        update(run)
    return [Say(text, False), Redirect(number, part)]


def _answer_ended(service: Service, run: Run, configurations: Mapping[str, Any]) -> list[Action]:
    """The first turn of a call that is over or to end: a hang-up, and a note that it was answered.

    An outbound call whose run has ended may still be answered if nothing was ever reported of it. It gets an apology.
    """
    given_up = run.is_completed and run.call_type == "outbound" and run.hang_up_reason is None
    if given_up and run.answered_at is None and not runs.is_over(run.id):
        return _apologize(service, run, configurations)
    with write(run_lock(run.id)):
        run = reload(run)
        if not run.is_completed and run.answered_at is None:
            lifecycle.mark_talking(run, now())
            update(run, Run.state, Run.answered_at)
    return [HangUp()]


def _apologize(service: Service, run: Run, configurations: Mapping[str, Any]) -> list[Action]:
    """The only turn of a call that was answered after its run had ended, which it stays: who calls, and a goodbye."""
    text = phrases(configurations)["answered_too_late"].replace("{caller}", _caller(run))
    actions: list[Action] = [Say(text, False), HangUp()]
    at = now()
    with write(run_lock(run.id)):
        if find(Turn, run=run, number=0) is not None:  # it was being decided when the run ended
            return [HangUp()]
        times = {"at": at, "touched_at": at, "answered_at": at}
        insert(Turn, run=run.id, number=0, actions=[each.to_json() for each in actions], worker=service.worker, **times)
        payload = {"error": f"{ANSWERED_LATE} {text}", "fatal": False}
        append_log(run, [Record("rtf-pipeline-error", payload, at.timestamp(), 0, "", "")])
    return actions


def _caller(run: Run) -> str:
    """Who calls: the organization if it was given a name, else our number, digit by digit."""
    name = scalar(Organization, "name", id=run.organization_id)
    return name if name and name != DEFAULT_ORGANIZATION else " ".join(run.caller_number or run.name)


def _begin(
    service: Service, request: TurnRequest, version: WorkflowVersion | None, ended: bool
) -> tuple[Turn, Conversation]:
    """Store how a turn begins, and its answer with it unless another server has to be asked first."""
    run, number, given, moment = request.run, request.number, request.caller_input, now()
    at = moment.timestamp()
    event: ev.Event
    match given:
        case Transferred():
            hung_up = not given.answered and (given.caller_hung_up or ended)
            result = transfer_call.transfer_result(given.answered, given.reason, hung_up, given.cause)
            # The conversation knows the number of the request.
            event = ev.TransferSettled(at, 0, given.answered, result, hung_up)
        case _ if number == 0:
            event = ev.Started(at)
        case Speech():
            event = ev.CallerSaid(at, given.text)
        case Keys():
            event = ev.CallerSaid(at, given.digits, keyed=True)
        case _:
            event = ev.CallerSilent(at)
    carrier = CARRIERS.get(run.mode)
    keys_need_hash = carrier is not None and not carrier.ends_keys
    pace = sentences if request.relay is None else clauses
    conversation = Conversation.of_run(service, run, version, keys_need_hash=keys_need_hash, pace=pace)
    conversation.reported = request.reported
    progress = next(conversation.advance(event))
    said = event.text if isinstance(event, ev.CallerSaid) else ""
    times = {"at": moment, "touched_at": moment}
    turn = Turn(run=run.id, number=number, caller_text=said, worker=service.worker, actions=[], **times)
    _store(service, conversation, run, turn, progress, begins=True)
    return turn, conversation


def _carry_on(
    service: Service,
    run_id: int,
    number: int,
    conversation: Conversation | None,
    relay: Relay | None = None,
) -> Turn | None:
    """Decide the pending turn `number` of a run, from where it stands, unless another process does.

    :param conversation: that of the run, if this process has just begun the turn; otherwise it is loaded.
    :param relay: the one that asked for it, if any.
    :returns: the turn as it is answered; None when another process takes longer than a webhook waits.
    """
    # What the model or a tool has answered isn't to be asked for again.
    with service.store.session(UNREPEATABLE):
        turn = _left_by_others(service, run_id, number)
        if turn is None:
            return None
        run = require(Run, "The call is gone.", id=run_id)
        turn.worker = service.worker
        service.start_threads()
        pace = sentences if relay is None else clauses
        conversation = conversation or Conversation.of_run(service, run, pace=pace)
        with ExitStack() as streams:
            parts = streams.enter_context(closing(conversation.advance(None)))
            while turn.answered_at is None:
                progress = next(parts)
                if relay is not None and relay.is_cut and conversation.state.said:
                    streams.close()
                    end = ev.ModelReplied(now().timestamp(), conversation.state.number, "", notes=(CUT,))
                    parts = streams.enter_context(closing(conversation.advance(end)))
                    progress = combine((progress, next(parts)))
                if progress.steps or progress.request is None or isinstance(progress.request, RunTool):
                    _store(service, conversation, run, turn, progress)
                    if turn.ready and turn.answered_at is None:
                        service.slow_jobs.reach((run_id, number), turn.ready)
        return turn


def _left_by_others(service: Service, run_id: int, number: int) -> Turn | None:
    """A turn that is answered, or left to this process; None when another one takes longer than a webhook waits."""
    until = time.monotonic() + service.slow_jobs.wait_seconds
    while True:
        turn = require(Turn, "The turn is gone.", run=run_id, number=number)
        if turn.answered_at is not None or turn.worker == service.worker:
            return turn
        if not _has_other_worker(service, turn):
            with write(NO_LOCK):
                claimed = runs.claim_turn(turn, service.worker, now())
            if claimed:
                return turn
        service.slow_jobs.reach((run_id, number), turn.ready)
        if time.monotonic() >= until:
            return None
        service.store.release()
        time.sleep(LOOK_SECONDS)


def _store(
    service: Service, conversation: Conversation, run: Run, turn: Turn, progress: Progress, *, begins: bool = False
) -> None:
    """Store the progress of a turn, and with it that of its conversation and run.

    :param begins: the turn isn't stored yet, and its request is left to another thread. Otherwise this thread answers
        the request next, and a tool is marked as being called.
    :raises ConcurrentUpdate: when another worker has carried the call on, or completed it.
    :raises CallOver: when the call is over or to end; only the outcome of a transfer is still stored then.
    """
    calling = progress.request.number if isinstance(progress.request, RunTool) and not begins else None
    actions = [*(Action.from_json(each) for each in turn.actions), *progress.actions]
    turn.actions = [*turn.actions, *(action.to_json() for action in progress.actions)]
    if progress.state.said:
        turn.ready = len(turn.actions)
    turn.touched_at = now()
    if progress.request is None or progress.state.phase == "closing":  # what follows a goodbye is heard by nobody
        turn.answered_at = turn.touched_at
        if turn.caller_text:
            ahead_at = scalar(Turn, "ahead_at", run=run.id, number=turn.number) if turn.ready else None
            waited = conversation.latency(turn.at, turn.answered_at, ahead_at)
            progress = replace(progress, records=(*progress.records, waited))
    with write(run_lock(run.id)):
        run = reload(run)
        if run.is_completed:
            raise ConcurrentUpdate("The run is completed.")
        is_outcome = progress.state.reason in TRANSFER_OUTCOMES
        if run.hang_up_reason is not None or (not is_outcome and runs.is_over(run.id)):
            raise CallOver
        conversation.store(run, progress, calling)
        if begins:
            insert(Turn, **turn.__data__)
        else:
            update(turn)
        if turn.number == 0 and run.answered_at is None:
            lifecycle.mark_talking(run, turn.at)
        if any(isinstance(action, HangUp) for action in actions):
            lifecycle.extend(run, lifecycle.CLOSING_SECONDS, lifecycle.CLOSING_SECONDS)
        else:
            seconds = sum(map(_longest, actions)) + lifecycle.GRACE_SECONDS
            lifecycle.extend(run, max(lifecycle.TURN_SLOT_SECONDS, seconds))
        update(run)
    if service.metrics is not None and turn.answered_at is not None:
        seconds = max(0.0, (turn.answered_at - turn.at).total_seconds())
        service.metrics.turn_answered(run.mode, selection.name_of(conversation.handler.model), seconds)


def _longest(action: Action) -> float:
    """The seconds that a carrier may take to carry out an action, before its next webhook."""
    match action:
        case Say() | Play():
            return SECONDS_A_CHARACTER * len(action.text)
        case Pause():
            return action.seconds
        case Listen():
            return action.timeout_seconds + LONGEST_SPEECH_SECONDS
        case Transfer():
            return action.timeout_seconds + lifecycle.LONGEST_CALL_SECONDS
        case _:
            return 0.0


def _has_other_worker(service: Service, turn: Turn) -> bool:
    """True if another process is presumed to be at work on a turn."""
    moment = now()
    # Another host's clock may be a little ahead. What lies further in the future was stored before one was set back.
    lately = moment - WORKER_TIMEOUT <= turn.touched_at <= moment + AHEAD
    return turn.worker != service.worker and lately and not has_ended(turn.worker)


def renew(service: Service, moment: datetime | None = None) -> None:
    """Tell other processes that this one is still at work on the turns that have been pending for a while.

    :param moment: now, unless given.
    """
    deciding = [key[0] for key in service.slow_jobs.running() if isinstance(key, tuple) and isinstance(key[1], int)]
    if deciding:
        moment = moment or now()
        with service.store.session(), write(NO_LOCK):
            runs.touch_turns(service.worker, deciding, moment, moment - WORKER_TIMEOUT / 5)
