"""The engine: `step(graph, state, event)` returns the next state and the actions to carry out. It does no I/O.

A turn begins when the caller speaks or is silent, and ends with Listen. In between the model replies, calls functions
and follows edges. Each Request ends a step; its answer is the event of the next step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .actions import KEPT, KEYED, Action, Finish, Function, HangUp, Occasion, Pause, Play, Record, Say, iso
from .compose import (
    OPT_OUT,
    ArgumentError,
    Composer,
    Utterance,
    arguments_of,
    cut,
    end_of_speech,
    tool_called,
    wants_fetch,
)
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
    ModelSpoke,
    SpeechCut,
    Started,
    ToolCall,
    ToolReturned,
    TransferSettled,
    VariablesExtracted,
    says_error,
)
from .extraction import ANSWERED_BY, VOICEMAIL, convert, merge_values, variables_of
from .graph import Edge, Graph, Node, NodeCall
from .phrases import phrases
from .state import DO_NOT_CALL, Phase, State, cut_short, joined, tags_of, with_disposition
from .template import KIB64, TextTooLong, as_text, size

DELAY_SECONDS = 2.0

_NOT_FROM_FETCH = {"provider", "runtime_configuration", "mps_correlation_id"}
# What a caller says, without punctuation.
_WORDS = re.compile(r"[^\s.,;:!?¿¡。！？、，।]+")
# How often the model is asked within one turn; each round of function calls leads to another request.
ROUNDS = 8
# Characters said in one turn, which is one document: as XML, where & takes five bytes, they fit the smallest limit of a
# carrier, 64 kB.
LONGEST_SPEECH = 10_000

# How many failures of the model in a row end a call. A text chat goes on: nobody is kept on the phone.
FATAL_FAILURES = 2

_DONE = {"status": "done"}

# Phases in which a call isn't ended because it has taken too long.
_UNTIMED = {"new", "transferring", "closing"}
# Reasons for which the call goes on without the agent, or has ended at the carrier already.
_NO_HANG_UP = {"user_hangup", "transfer_call", "call_transferred"}
_NO_EXTRACTION = {"voicemail_detected", "pipeline_error"}
# Bytes of UTF-8: of what the caller says in one turn, of the functions that one reply calls.
LONGEST_INPUT = KIB64
LONGEST_CALLS = KIB64
# How many functions one reply may call.
MOST_CALLS = 32

NO_ROOM = "The conversation has more than 1 MiB of text, so it ends here."


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
    is_timed = state.setup.voice and state.phase not in _UNTIMED
    if is_timed and event.at - state.started_at >= state.setup.call_seconds:
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
    current.arrive()


def _said(current: StepState, event: CallerSaid) -> None:
    if not event.text.strip():
        _silent(current, event)
        return
    is_first = not current.state.caller_spoke
    has_room = current.add_caller_text(event.text, event.keyed)
    current.set(silences=0, occasion="reply")
    if not has_room:
        current.apologise(NO_ROOM, fatal=True)
    elif _opts_out(current, event):
        current.opt_out()
    elif is_first and current.state.setup.screening:
        current.wait("screening")
    else:
        current.ask_model()


def _cut_short(current: StepState, event: SpeechCut) -> None:
    current.set(messages=cut_short(current.state.messages, event.unplayed))
    current.record("rtf-bot-interrupted", {"played": event.played, "unplayed": event.unplayed})


def _opts_out(current: StepState, event: CallerSaid) -> bool:
    """Whether the caller pressed the key, or said nothing but some of the words, of the workflow's do_not_call."""
    settings = current.state.setup.do_not_call or {}
    said = " ".join(_WORDS.findall(event.text.casefold()))
    if event.keyed:
        return settings.get("key") == event.text.strip()
    words = settings.get("words")
    return isinstance(words, list) and said in {" ".join(_WORDS.findall(str(each).casefold())) for each in words} - {""}


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
    current.set(turn=current.state.turn + 1, rounds=0, spoken=0, silences=silences, occasion=occasion)
    current.ask_model()


def _spoke(current: StepState, event: ModelSpoke) -> None:
    before = current.state.said
    part = cut(event.text if before else event.text.lstrip(), LONGEST_SPEECH - current.state.spoken - len(before))
    said = before + part
    current.say_rest(said)
    # Of what follows a part that was cut nothing fits, either.
    spoken = current.state.spoken if part.strip() == event.text.strip() else LONGEST_SPEECH - len(said)
    current.set(said=said, spoken=spoken)
    current.is_being_answered = True


def _replied(current: StepState, event: ModelReplied) -> None:
    for note in event.notes:
        current.record_error(note, "speech")
    if event.misses:
        current.record("rtf-not-understood", {"misses": event.misses, "edges": list(event.looked_at)})
    text, said = current.fitting(event.text.strip()), current.state.said.rstrip()
    text = text if text.startswith(said) else said  # what was given out stays, whatever the whole text is
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
    members: dict[str, Any] = {"tool_calls": functions} if functions else {}
    kept = {KEPT: dict(event.kept)} if event.kept else {}
    if not current.add_message("assistant", text, **members, **kept) and not (
        kept and current.add_message("assistant", text, **members)
    ):
        current.apologise(NO_ROOM, fatal=True)
        return
    if text:
        current.say_rest(text)
        current.record_speech(text)
        current.set(entered=False, failures=0, said="", spoken=current.state.spoken + len(text))
    if calls:
        current.set(calls=calls, calls_from=current.state.node_id)
        current.run_calls()
    elif event.end_reason:
        current.set(entered=False)
        current.add_tag(event.end_tag)
        current.end(event.end_reason)
    else:
        current.end_turn()


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
        current.say(Utterance(event.speech))
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
    "entering": {ToolReturned: lambda current, event: current.finish_call(event.result)},
    "thinking": {
        ModelSpoke: _spoke,
        ModelReplied: _replied,
        ModelFailed: lambda current, event: current.apologise(event.error),
    },
    "extracting": {VariablesExtracted: _extracted, ExtractionFailed: _not_extracted},
    "acting": {ToolReturned: _returned},
    "transferring": {TransferSettled: _transferred},
    "listening": {CallerSaid: _said, CallerSilent: _silent, SpeechCut: _cut_short},
    "screening": {VariablesExtracted: _screened, ExtractionFailed: _not_screened},
    "closing": {VariablesExtracted: _extracted, ExtractionFailed: _not_extracted},
    "ended": {},
}


# -- the state and the actions of one step


class StepState:
    """The state so far and the actions so far of one step."""

    def __init__(self, graph: Graph, state: State, event: Event) -> None:
        self.graph = graph
        self.state = state
        self.at = event.at
        self.actions: list[Action] = []
        self.missing: set[str] = set()
        # The request goes on being answered, so that it isn't made again.
        self.is_being_answered = False

    @property
    def composer(self) -> Composer:
        return Composer(self.graph, self.state, self.at, self.missing)

    @property
    def node(self) -> Node:
        return self.graph.node(self.state.node_id)

    def result(self) -> tuple[State, tuple[Action, ...]]:
        pending = None if self.is_being_answered else self.composer.pending_action()
        missing = tuple(sorted({*self.state.missing, *self.missing}))
        return self.state.changed(missing=missing), (*self.actions, *([pending] if pending else []))

    def set(self, **changes: Any) -> None:
        self.state = self.state.changed(**changes)

    def wait(self, phase: Phase) -> None:
        """End the step with the request that belongs to `phase`."""
        self.set(phase=phase, number=self.state.number + 1)

    def add_usage(self, event: ModelAnswer) -> None:
        if event.usage:
            used = self.state.usage.get(event.model, {})
            total = {kind: used.get(kind, 0) + event.usage.get(kind, 0) for kind in {**used, **event.usage}}
            self.set(usage={**self.state.usage, event.model: total})
        if seconds := event.first_seconds or event.seconds:
            processor, _, model = event.model.rpartition("|||")
            self.record("rtf-ttfb-metric", {"ttfb_seconds": seconds, "processor": processor, "model": model})

    def record(self, type: str, payload: Mapping[str, Any], node_id: str = "") -> None:
        node = self.graph.node(node_id or self.state.node_id)
        self.actions.append(Record(type, payload, self.at, self.state.turn, node.id, node.name))

    def record_error(self, error: str, processor: str, *, fatal: bool = False) -> None:
        self.record("rtf-pipeline-error", {"error": error, "fatal": fatal, "processor": processor})

    def add_message(self, role: str, content: str, **members: Any) -> bool:
        """Add a message to the history; False, and nothing is added, when the history would become too large."""
        messages = joined(self.state.messages, {"role": role, "content": content, **members})
        if messages is None:
            return False
        self.set(messages=messages)
        return True

    # -- speech

    def add_caller_text(self, text: str, keyed: bool) -> bool:
        """Begin a turn with what the caller said; False when the history has no room for it."""
        self.set(turn=self.state.turn + 1, rounds=0, spoken=0, caller_spoke=True)
        text = text.strip()
        if size(text) > LONGEST_INPUT:
            self.record_error("What the caller said is larger than 64 KiB; the rest of it was dropped.", "speech")
            text = text.encode()[:LONGEST_INPUT].decode(errors="ignore")
        mark = {KEYED: True} if keyed else {}
        asked = {}
        if self.state.setup.voice:  # a chat has no pauses
            edges = self.graph.edges_from(self.state.node_id)
            asked["end_of_speech"] = end_of_speech(self.node, edges, self.state.setup.configurations)
        self.record("rtf-user-transcription", {"text": text, "final": True, "timestamp": iso(self.at), **mark, **asked})
        return self.add_message("user", text, **mark)

    def fitting(self, text: str) -> str:
        """As much of `text` as can still be said in this turn, cut at the end of a sentence; a cut is recorded."""
        left = LONGEST_SPEECH - self.state.spoken
        if len(text) <= left:
            return text
        kept = cut(text, left)
        self.record_error(
            f"{len(text) - len(kept)} of {len(text)} characters were not spoken: a turn can say {LONGEST_SPEECH} "
            "characters, which is what a carrier takes.",
            "speech",
        )
        return kept

    def say(self, speech: Utterance, interruptible: bool = False) -> str:
        """Say a speech, as far as it fits into the turn, and return what is said of it."""
        text = self.fitting(speech.text)
        self.set(spoken=self.state.spoken + len(text))
        if speech.recording_id:
            self.actions.append(Play(speech.recording_id, text, interruptible))
        elif text:
            self.actions.append(Say(text, interruptible))
        if text:
            self.record_speech(text)
        return text

    def record_speech(self, text: str) -> None:
        self.record("rtf-bot-text", {"text": text, "timestamp": iso(self.at)})

    def say_rest(self, text: str) -> None:
        """Say the part of a reply's text that wasn't given out yet; it is recorded when the reply is whole."""
        rest = text[len(self.state.said.rstrip()) :].strip()
        if rest:
            # The first speech of a call can't be interrupted.
            self.actions.append(Say(rest, self.node.allow_interrupt and self.state.turn > 0))

    def keep_said(self) -> None:
        """Keep what was given out of a reply whose rest will never come."""
        said = self.state.said.strip()
        if said:
            self.record_speech(said)
            self.add_message("assistant", said)
            self.set(said="", spoken=self.state.spoken + len(said), entered=False)

    def say_first(self, speeches: Iterator[Utterance]) -> str | None:
        """Say the first of `speeches` that can be spoken, and return what is said; None when there is none.

        Missing recordings and texts that are too long before it are recorded as errors.
        """
        for speech in speeches:
            if self.composer.can_be_spoken(speech):
                return self.say(speech)
            if speech.recording_id:
                self.record_error(f'The recording "{speech.recording_id}" is not there to be played.', "recording")
            elif speech.problem:
                self.record_error(speech.problem, "speech")
        return None

    # -- the stages of a turn

    def arrive(self) -> None:
        """Go on at the current node: make its call if it was just entered, then let it speak."""
        call = self.node.call if self.state.call_due else None
        if call:
            self.set(call_due=False)
            self.make_call(call)
            return
        opens = self.node.id == self.graph.start.id and self.state.turn == self.state.rounds == 0
        greeting = self.say_first(self.composer.greetings()) if opens else None
        if greeting is None:
            self.ask_model()
            return
        if greeting:
            self.add_message("assistant", greeting)
        self.end_turn()

    def ask_model(self) -> None:
        """Ask the model for its next reply, unless it has been asked too often in this turn."""
        if self.state.rounds >= ROUNDS:
            self.apologise(f"The model was asked {ROUNDS} times in one turn and still called functions.")
            return
        self.set(rounds=self.state.rounds + 1)
        self.wait("thinking")

    def apologise(self, error: str, *, fatal: bool = False) -> None:
        """Record a failure of the model, say so and end the turn.

        The call ends, too, where it was about to end, or when the model has failed FATAL_FAILURES times in a row. A
        failure that is `fatal` ends any conversation.
        """
        self.keep_said()
        failures = self.state.failures + 1
        fatal = fatal or (self.state.setup.voice and failures >= FATAL_FAILURES)
        last = fatal or self.node.ends_call or self.state.occasion == "goodbye"
        self.set(failures=failures)
        self.record_error(error, "llm", fatal=fatal)
        self.say(Utterance(phrases(self.state.setup.configurations)["failure_goodbye" if last else "apology"]))
        if fatal:
            self.set(gathered_context={**self.state.gathered_context, "error": error})
            self.end("pipeline_error")
        else:
            self.end_turn()

    def end_turn(self) -> None:
        """End the turn after the agent has spoken: end the call, or listen."""
        self.set(entered=False, calls=(), calls_from="")
        if self.state.occasion == "goodbye":
            self.end("user_idle_max_duration_exceeded")
        elif self.node.ends_call:
            self.end("user_qualified")
        else:
            self.set(phase="listening")

    def enter_node(self, node: Node, by: Edge | None = None, reason: Mapping[str, Any] | None = None) -> None:
        """Enter a node by an edge and for a reason; the start node is entered by none, and for none."""
        previous = None if by is None else self.graph.node(by.source)
        visited = self.state.gathered_context.get("nodes_visited") or []
        if node.name not in visited:
            self.set(gathered_context={**self.state.gathered_context, "nodes_visited": [*visited, node.name]})
        self.set(node_id=node.id, entered=True, call_due=node.call is not None)
        self.record(
            "rtf-node-transition",
            {
                "node_id": node.id,
                "node_name": node.name,
                "previous_node_id": previous.id if previous else None,
                "previous_node_name": previous.name if previous else None,
                "edge_id": by.id if by else None,
                "edge_label": by.label if by else None,
                "allow_interrupt": node.allow_interrupt,
                "reason": reason,
            },
        )

    # -- the call that a node makes when it is entered

    def make_call(self, call: NodeCall) -> None:
        """Make the call of the current node, unless its arguments don't fit."""
        offered = (each for each in self.state.setup.functions.get(self.node.id, ()) if each.on_entry)
        # A tool that isn't there is found missing when it is to run.
        function = next(offered, Function(call.tool.rpartition(":")[2], "", {}))
        try:
            arguments, problem = self.composer.arguments(call, function.parameters), ""
        except (ArgumentError, TextTooLong) as error:
            arguments, problem = {}, str(error)
        made = ToolCall(f"entry_{self.state.number + 1}", function.name, json.dumps(arguments, ensure_ascii=False))
        self.set(calls=(made,), calls_from=self.node.id)
        self._record_call(made, on_entry=True)
        if problem:
            self.finish_call({"status": "error", "error": problem})
        else:
            self.say_first(iter([self.composer.speech(function.speech, f'The message of the tool "{function.name}"')]))
            self.wait("entering")

    def finish_call(self, result: Any) -> None:
        """Keep the result of the current node's call, and let the node speak; after an error, `on_error` is entered."""
        node, [made] = self.node, self.state.calls
        name = node.call.save_as if node.call else ""
        text = json.dumps(result, ensure_ascii=False)
        if name and size(text) > KIB64:
            result = {"status": "error", "error": f"The result is larger than 64 KiB, so it can't be kept as {name}."}
            text = json.dumps(result, ensure_ascii=False)
        is_error = says_error(result)
        if name:
            self.set(gathered_context={**self.state.gathered_context, name: None if is_error else result})
        payload = {"function_name": made.name, "tool_call_id": made.id, "result": text, "on_entry": True}
        self.record("rtf-function-call-end", payload)
        self.set(calls=(), calls_from="")
        # Nodes whose calls fail may lead to each other; the last of them still asks the model.
        way = self.graph.on_error.get(node.id) if is_error and self.state.rounds < ROUNDS - 1 else None
        if way:
            self.set(rounds=self.state.rounds + 1)
            self.enter_node(self.graph.node(way.target), way, {"kind": "error"})
        elif is_error:
            self.record_error(f"The call of {made.name} failed: {as_text(result.get('error', result))[:1000]}", "tool")
        self.arrive()

    # -- functions that the model called

    def run_calls(self) -> None:
        """Run the functions that the model called until one needs a request; after the last, ask the model again."""
        refuses = any(call.name == OPT_OUT.name for call in self.state.calls)
        # That the person wants no more calls comes first, whatever else the model calls.
        if refuses and OPT_OUT in self.composer.functions(self.graph.node(self.state.calls_from)):
            while self.state.calls:
                self._record_call(self.state.calls[0])
                self.return_result(_DONE)
            self.opt_out()
            return
        while self.state.calls:
            call, source = self.state.calls[0], self.state.calls_from
            arguments = self._record_call(call)
            tool = tool_called(self.state, call)
            if edge := self.graph.edge_called(source, call.name, former=tool is None):
                if self.state.node_id != source:
                    self.return_error("The conversation has already moved on in this reply.")
                elif variables_of(self.node):
                    self.wait("extracting")
                    return
                else:
                    self.follow(edge)
            elif tool:
                if arguments is None:
                    self.return_error("The arguments are not a JSON object.")
                    continue
                self.say_first(iter([self.composer.speech(tool.speech, f'The message of the tool "{tool.name}"')]))
                self.wait("acting")
                return
            else:
                self.return_error(f'There is no function "{call.name}" here.')
        self.set(occasion="opening" if self.state.entered else "reply", calls_from="")
        self.arrive()

    def _record_call(self, call: ToolCall, **members: Any) -> dict[str, Any] | None:
        """Record that a call begins, and return its arguments; None if they are no JSON object."""
        arguments = arguments_of(call)
        payload = {"function_name": call.name, "tool_call_id": call.id, "arguments": arguments, **members}
        self.record("rtf-function-call-start", payload, self.state.calls_from)
        return arguments

    def follow(self, edge: Edge) -> None:
        self.say_first(self.composer.transition(edge))
        reason = self.state.calls[0].why or {"kind": "model", "tool_call_id": self.state.calls[0].id}
        self.enter_node(self.graph.node(edge.target), edge, reason)
        self.set(failures=0)
        self.return_result(_DONE)

    def return_error(self, error: str) -> None:
        self.return_result({"status": "error", "error": error})

    def return_result(self, result: Any) -> None:
        """Add the result of the first call to the messages, and take that call off the list."""
        call, *rest = self.state.calls
        text = json.dumps(result, ensure_ascii=False)
        if not self.add_message("tool", text, tool_call_id=call.id):
            text = json.dumps({"status": "error", "error": "The result is too large for this conversation."})
            self.set(messages=(*self.state.messages, {"role": "tool", "content": text, "tool_call_id": call.id}))
        payload = {"function_name": call.name, "tool_call_id": call.id, "result": text}
        self.record("rtf-function-call-end", payload, self.state.calls_from)
        self.set(calls=tuple(rest))

    # -- the end

    def add_tag(self, tag: str) -> None:
        """Add a tag to call_tags, unless it is empty or there already."""
        context = self.state.gathered_context
        tags = dict.fromkeys([*tags_of(context), *filter(None, [tag])])
        self.set(gathered_context={**context, "call_tags": list(tags)})

    def end(self, reason: str) -> None:
        """End the call: hang up, extract the node's variables, and finish."""
        under_way = self.state.phase != "new"
        self.keep_said()
        if reason == DO_NOT_CALL:
            self.add_tag(DO_NOT_CALL)
            self.record("rtf-do-not-call", {})
        self.set(reason=reason, calls=(), calls_from="")
        if reason not in _NO_HANG_UP:
            self.actions.append(HangUp())
        if under_way and reason not in _NO_EXTRACTION and variables_of(self.node):
            self.wait("closing")
        else:
            self.finish()

    def opt_out(self) -> None:
        """End the call of somebody who wants no more calls, with a sentence that says so."""
        self.say(Utterance(phrases(self.state.setup.configurations)["do_not_call_goodbye"]))
        self.set(entered=False)
        self.end(DO_NOT_CALL)

    def finish(self) -> None:
        context = with_disposition(self.state)
        self.set(phase="ended", gathered_context=context)
        self.actions.append(Finish(self.state.reason, context["call_disposition"]))


# -- the functions that one reply calls


def problem_of(calls: tuple[ToolCall, ...]) -> str:
    """Why the functions that one reply calls can't be carried out: too many, or too large; empty when they can."""
    if len(calls) > MOST_CALLS:
        return f"The model called {len(calls)} functions at once; at most {MOST_CALLS} are carried out."
    if sum(size(call.id) + size(call.name) + size(call.arguments) for call in calls) > LONGEST_CALLS:
        return "The model's function calls are larger than 64 KiB."
    return ""
