"""The engine: `step(graph, state, event)` returns the next state and the actions to carry out. It does no I/O.

A turn begins when the caller speaks or is silent, and ends with Listen. In between the model replies, calls functions
and follows edges. Each Request ends a step; its answer is the event of the next step.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .actions import Action, Occasion, Pause
from .compose import Composer, Speech, wants_fetch
from .events import (
    Answer,
    CallEnded,
    CallerSaid,
    CallerSilent,
    Event,
    ExtractionFailed,
    Fetched,
    ModelAnswer,
    ModelFailed,
    ModelReplied,
    Started,
    ToolReturned,
    TransferSettled,
    VariablesExtracted,
)
from .extraction import ANSWERED_BY, VOICEMAIL, convert, merge_values, variables_of
from .graph import Graph
from .history import NO_ROOM, problem_of
from .state import Phase, State
from .step_state import StepState

DELAY_SECONDS = 2.0

_NOT_FROM_FETCH = {"provider", "runtime_configuration", "mps_correlation_id"}


class IllegalEvent(Exception):
    """An event that can't happen in this state, which isn't changed by it."""

    def __init__(self, state: State, event: Event) -> None:
        expected = ", ".join(kind.__name__ for kind in (*_HANDLERS[state.phase], CallEnded))
        number = f" number {event.number}" if isinstance(event, Answer) else ""
        super().__init__(
            f"{type(event).__name__}{number} can't happen while {state.phase} (request {state.number}); "
            f"expected: {expected}."
        )
        self.phase = state.phase
        self.event = event


def step(graph: Graph, state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    """Return the state after `event`, and the actions to carry out in this order.

    Once the call is ending, late answers only add their usage, and further CallEnded events are ignored.

    :raises IllegalEvent: for an event that can't happen in this state.
    """
    current = StepState(graph, state, event)
    if isinstance(event, ModelAnswer):
        current.add_usage(event)
    if state.phase in ("closing", "ended") and _is_late(state, event):
        return current.state, ()
    if isinstance(event, CallEnded):
        current.end(event.reason)
        return current.result()
    handle = _HANDLERS[state.phase].get(type(event))
    if handle is None or (isinstance(event, Answer) and event.number != state.number):
        raise IllegalEvent(state, event)
    if _time_is_up(state, event):
        if isinstance(event, CallerSaid) and event.text.strip():
            current.add_caller_text(event.text, event.keyed)
        current.end("call_duration_exceeded")
    else:
        handle(current, event)
    return current.result()


def outstanding(graph: Graph, state: State, at: float) -> Action | None:
    """Return the action that the conversation waits for, a Request or Listen, to continue it after a restart."""
    return Composer(graph, state, at, set()).pending_action()


def _is_late(state: State, event: Event) -> bool:
    if isinstance(event, CallEnded):
        return True
    return isinstance(event, Answer) and (state.phase == "ended" or event.number < state.number)


def _time_is_up(state: State, event: Event) -> bool:
    if not state.setup.voice or state.phase in ("new", "transferring", "closing"):
        return False
    return event.at - state.started_at >= state.setup.call_seconds


# -- handlers of the events, by phase in _HANDLERS


def _start(current: StepState, _: Started) -> None:
    current.set(started_at=current.at)
    current.enter_node(current.graph.start)
    if wants_fetch(current.node, current.state.setup.direction):
        current.wait("fetching")
    else:
        _open(current)


def _fetched(current: StepState, event: Fetched) -> None:
    if event.error:
        current.record_error(event.error, "pre_call_fetch")
    new = {name: value for name, value in event.context.items() if name not in _NOT_FROM_FETCH}
    setup = current.state.setup
    current.set(setup=replace(setup, initial_context={**setup.initial_context, **new}))
    _open(current)


def _open(current: StepState) -> None:
    if current.node.flag("delayed_start", False):
        seconds = current.node.number("delayed_start_duration") or 0
        current.actions.append(Pause(float(seconds) if seconds > 0 else DELAY_SECONDS))
    greeting = current.say_first(current.composer.greetings())
    if greeting is None:
        current.ask_model()
        return
    if greeting:
        current.add_message("assistant", greeting)
    current.end_turn()


def _said(current: StepState, event: CallerSaid) -> None:
    if not event.text.strip():
        _silent(current, event)
        return
    is_first = not current.state.caller_spoke
    has_room = current.add_caller_text(event.text, event.keyed)
    current.set(silences=0, occasion="reply")
    if not has_room:
        current.apologise(NO_ROOM, fatal=True)
    elif is_first and current.state.setup.screening:
        current.wait("screening")
    else:
        current.ask_model()


def _screened(current: StepState, event: VariablesExtracted) -> None:
    values, _ = convert((ANSWERED_BY,), event.values)
    if VOICEMAIL in values.get(ANSWERED_BY.name, "").upper():
        current.end("voicemail_detected")
    else:
        current.ask_model()


def _not_screened(current: StepState, event: ExtractionFailed) -> None:
    current.record_error(event.error, "voicemail_detection")
    current.ask_model()


def _silent(current: StepState, _: Event) -> None:
    silences = current.state.silences + 1
    occasion: Occasion = "idle" if silences == 1 else "goodbye"
    current.begin_turn()
    current.set(silences=silences, occasion=occasion)
    current.ask_model()


def _replied(current: StepState, event: ModelReplied) -> None:
    for note in event.notes:
        current.record_error(note, "speech")
    if event.misses:
        current.record("rtf-not-understood", {"misses": event.misses})
    text = current.fitting(event.text.strip())
    calls = () if current.state.occasion == "goodbye" else event.calls
    if not text and not calls:
        current.apologise("The model answered without words and without a function.")
        return
    if problem := problem_of(calls):
        current.apologise(problem)
        return
    functions = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    if not current.add_message("assistant", text, **({"tool_calls": functions} if functions else {})):
        current.apologise(NO_ROOM, fatal=True)
        return
    if text:
        # The first speech of a call can't be interrupted.
        current.say(Speech(text), current.node.allow_interrupt and current.state.turn > 0)
        current.set(entered=False, failures=0)
    if calls:
        current.set(calls=calls, calls_from=current.state.node_id)
        current.run_calls()
    elif event.end_reason:
        current.set(entered=False)
        current.add_tag(event.end_tag)
        current.end(event.end_reason)
    else:
        current.end_turn()


def _failed(current: StepState, event: ModelFailed) -> None:
    current.apologise(event.error)


def _extracted(current: StepState, event: VariablesExtracted) -> None:
    values, notes = convert(variables_of(current.node), event.values)
    for note in notes:
        current.record_error(note, "extraction")
    if values:
        current.record("rtf-variables-extracted", {"variables": values})
    current.set(gathered_context=merge_values(current.state.gathered_context, values))
    _after_extraction(current)


def _not_extracted(current: StepState, event: ExtractionFailed) -> None:
    current.record_error(event.error, "extraction")
    _after_extraction(current)


def _after_extraction(current: StepState) -> None:
    if current.state.phase == "closing":
        current.finish()
        return
    edge = current.graph.edge_called(current.state.calls_from, current.state.calls[0].name)
    if edge:
        current.follow(edge)
    current.run_calls()


def _returned(current: StepState, event: ToolReturned) -> None:
    if event.speech:
        current.say(Speech(event.speech))
    if event.transfer_to:
        current.set(transfer_to=event.transfer_to, transfer_timeout=event.transfer_timeout)
        current.wait("transferring")
        return
    current.return_result(event.result)
    if event.end_reason:
        current.add_tag("end_call_tool")
        current.set(gathered_context={**current.state.gathered_context, "call_disposition": event.end_reason})
        current.end(event.end_reason)
    else:
        current.run_calls()


def _transferred(current: StepState, event: TransferSettled) -> None:
    current.return_result(event.result)
    if event.answered:
        current.end("transfer_call")
    elif event.caller_hung_up:
        current.end("user_hangup")
    else:
        current.run_calls()


_HANDLERS: Mapping[Phase, Mapping[type[Event], Callable[[StepState, Any], None]]] = {
    "new": {Started: _start},
    "fetching": {Fetched: _fetched},
    "thinking": {ModelReplied: _replied, ModelFailed: _failed},
    "extracting": {VariablesExtracted: _extracted, ExtractionFailed: _not_extracted},
    "acting": {ToolReturned: _returned},
    "transferring": {TransferSettled: _transferred},
    "listening": {CallerSaid: _said, CallerSilent: _silent},
    "screening": {VariablesExtracted: _screened, ExtractionFailed: _not_screened},
    "closing": {VariablesExtracted: _extracted, ExtractionFailed: _not_extracted},
    "ended": {},
}
