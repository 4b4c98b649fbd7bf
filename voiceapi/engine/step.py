"""The engine: ``step(graph, state, event)`` gives the next state and what is to be done. It neither waits nor fails.

A turn begins with the caller's words or silence and ends with Listen. In between the model is asked, calls functions,
moves along edges; each request to the world ends a step, and its answer is the event of the next.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .actions import Action, Occasion, Pause
from .compose import Composer, Speech, wants_fetch
from .disposition import tags_of
from .events import (
    Answer,
    CallEnded,
    CallerSaid,
    CallerSilent,
    Event,
    ExtractionFailed,
    Fetched,
    ModelFailed,
    ModelReplied,
    Spent,
    Started,
    ToolReturned,
    TransferSettled,
    VariablesExtracted,
)
from .extraction import ANSWERED_BY, VOICEMAIL, gathered, typed, variables_of
from .graph import Graph
from .state import Phase, State
from .step_state import Turn

DELAY_SECONDS = 2.0

_NOT_FROM_FETCH = {"provider", "runtime_configuration", "mps_correlation_id"}


class IllegalEvent(Exception):
    """An event that can't happen at this state; the state stays as it was."""

    def __init__(self, state: State, event: Event) -> None:
        expected = ", ".join(kind.__name__ for kind in (*_TABLE[state.phase], CallEnded))
        number = f" number {event.number}" if isinstance(event, Answer) else ""
        super().__init__(
            f"{type(event).__name__}{number} can't happen while {state.phase} (request {state.number}); "
            f"expected: {expected}."
        )
        self.phase = state.phase
        self.event = event


def step(graph: Graph, state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    """Return the state after `event`, and what is to be done, in order.

    IllegalEvent for an event that can't happen now. Once the call is ending, another ending and late answers change
    nothing but the usage.
    """
    turn = Turn(graph, state, event)
    if isinstance(event, Spent):
        turn.count(event)
    if state.phase in ("closing", "ended") and _comes_late(state, event):
        return turn.state, ()
    if isinstance(event, CallEnded):
        turn.end(event.reason)
        return turn.settled()
    handle = _TABLE[state.phase].get(type(event))
    if handle is None or (isinstance(event, Answer) and event.number != state.number):
        raise IllegalEvent(state, event)
    if _time_is_up(state, event):
        if isinstance(event, CallerSaid) and event.text.strip():
            turn.hear(event.text)
        turn.end("call_duration_exceeded")
    else:
        handle(turn, event)
    return turn.settled()


def outstanding(graph: Graph, state: State, at: float) -> Action | None:
    """Return what the conversation waits for, a request or Listen, as `step` last gave it: to go on after a restart."""
    return Composer(graph, state, at, set()).awaited()


def _comes_late(state: State, event: Event) -> bool:
    if isinstance(event, CallEnded):
        return True
    return isinstance(event, Answer) and (state.phase == "ended" or event.number < state.number)


def _time_is_up(state: State, event: Event) -> bool:
    if not state.setup.voice or state.phase in ("new", "transferring", "closing"):
        return False
    return event.at - state.started_at >= state.setup.call_seconds


# -- what each event does in the phase that waits for it


def _start(turn: Turn, _: Started) -> None:
    turn.set(started_at=turn.at)
    turn.enter(turn.graph.start)
    if wants_fetch(turn.node, turn.state.setup.direction):
        turn.wait("fetching")
    else:
        _open(turn)


def _fetched(turn: Turn, event: Fetched) -> None:
    if event.error:
        turn.fault(event.error, "pre_call_fetch")
    new = {name: value for name, value in event.context.items() if name not in _NOT_FROM_FETCH}
    setup = turn.state.setup
    turn.set(setup=replace(setup, initial_context={**setup.initial_context, **new}))
    _open(turn)


def _open(turn: Turn) -> None:
    if turn.node.flag("delayed_start", False):
        seconds = turn.node.number("delayed_start_duration") or 0
        turn.actions.append(Pause(float(seconds) if seconds > 0 else DELAY_SECONDS))
    greeting = turn.say_first(turn.compose.greetings())
    if greeting is None:
        turn.think()
        return
    if greeting.text:
        turn.remember("assistant", greeting.text)
    turn.rest()


def _said(turn: Turn, event: CallerSaid) -> None:
    if not event.text.strip():
        _silent(turn, event)
        return
    is_first = not turn.state.heard
    turn.hear(event.text)
    turn.set(silences=0, occasion="reply")
    if is_first and turn.state.setup.screening:
        turn.wait("screening")
    else:
        turn.think()


def _screened(turn: Turn, event: VariablesExtracted) -> None:
    values, _ = typed((ANSWERED_BY,), event.values)
    if VOICEMAIL in values.get(ANSWERED_BY.name, "").upper():
        turn.end("voicemail_detected")
    else:
        turn.think()


def _not_screened(turn: Turn, event: ExtractionFailed) -> None:
    turn.fault(event.error, "voicemail_detection")
    turn.think()


def _silent(turn: Turn, _: Event) -> None:
    silences = turn.state.silences + 1
    occasion: Occasion = "idle" if silences == 1 else "goodbye"
    turn.begin()
    turn.set(silences=silences, occasion=occasion)
    turn.think()


def _replied(turn: Turn, event: ModelReplied) -> None:
    text = event.text.strip()
    calls = () if turn.state.occasion == "goodbye" else event.calls
    if not text and not calls:
        turn.apologise("The model answered without words and without a function.")
        return
    functions = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    turn.remember("assistant", text, **({"tool_calls": functions} if functions else {}))
    if text:
        # Nobody may talk over the first words of a call.
        turn.say(Speech(text), turn.node.allow_interrupt and turn.state.turn > 0)
        turn.set(entered=False)
    if calls:
        turn.set(calls=calls, calls_from=turn.state.node_id)
        turn.carry_out()
    else:
        turn.rest()


def _failed(turn: Turn, event: ModelFailed) -> None:
    turn.apologise(event.error)


def _extracted(turn: Turn, event: VariablesExtracted) -> None:
    values, notes = typed(variables_of(turn.node), event.values)
    for note in notes:
        turn.fault(note, "extraction")
    turn.set(gathered_context=gathered(turn.state.gathered_context, values))
    _after_extraction(turn)


def _not_extracted(turn: Turn, event: ExtractionFailed) -> None:
    turn.fault(event.error, "extraction")
    _after_extraction(turn)


def _after_extraction(turn: Turn) -> None:
    if turn.state.phase == "closing":
        turn.conclude()
        return
    edge = turn.graph.edge_called(turn.state.calls_from, turn.state.calls[0].name)
    if edge:
        turn.cross(edge)
    turn.carry_out()


def _returned(turn: Turn, event: ToolReturned) -> None:
    if event.speech:
        turn.say(Speech(event.speech))
    if event.transfer_to:
        turn.set(transfer_to=event.transfer_to, transfer_timeout=event.transfer_timeout)
        turn.wait("transferring")
        return
    turn.return_result(event.result)
    if event.end_reason:
        tags = dict.fromkeys([*tags_of(turn.state.gathered_context), "end_call_tool"])
        decided = {"call_disposition": event.end_reason, "call_tags": list(tags)}
        turn.set(gathered_context={**turn.state.gathered_context, **decided})
        turn.end(event.end_reason)
    else:
        turn.carry_out()


def _settled(turn: Turn, event: TransferSettled) -> None:
    turn.return_result(event.result)
    if event.answered:
        turn.end("transfer_call")
    else:
        turn.carry_out()


_TABLE: Mapping[Phase, Mapping[type[Event], Callable[[Turn, Any], None]]] = {
    "new": {Started: _start},
    "fetching": {Fetched: _fetched},
    "thinking": {ModelReplied: _replied, ModelFailed: _failed},
    "extracting": {VariablesExtracted: _extracted, ExtractionFailed: _not_extracted},
    "acting": {ToolReturned: _returned},
    "transferring": {TransferSettled: _settled},
    "listening": {CallerSaid: _said, CallerSilent: _silent},
    "screening": {VariablesExtracted: _screened, ExtractionFailed: _not_screened},
    "closing": {VariablesExtracted: _extracted, ExtractionFailed: _not_extracted},
    "ended": {},
}
