"""The state and the actions while `step` works on one event, with the operations that its handlers share."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .actions import KEYED, Action, Finish, HangUp, Play, Record, Say, iso
from .compose import Composer, Speech, arguments_of, tool_called
from .disposition import tags_of, with_disposition
from .events import Event, ModelAnswer
from .extraction import variables_of
from .graph import Edge, Graph, Node
from .history import LONGEST_INPUT, has_room
from .sentences import cut
from .state import Phase, State
from .template import size

# How often the model is asked within one turn; each round of function calls leads to another request.
ROUNDS = 8
# Characters said in one turn, which is one document: as XML, where & takes five bytes, they fit the smallest limit of a
# carrier, 64 kB.
LONGEST_SPEECH = 10_000

# How many failures of the model in a row end a call. A text chat goes on: nobody is kept on the phone.
FATAL_FAILURES = 2

_DONE = {"status": "done"}

# Reasons for which the call goes on without the agent, or has ended at the carrier already.
_NO_HANG_UP = {"user_hangup", "transfer_call", "call_transferred"}
_NO_EXTRACTION = {"voicemail_detected", "pipeline_error"}


class StepState:
    """The state so far and the actions so far of one step."""

    def __init__(self, graph: Graph, state: State, event: Event) -> None:
        self.graph = graph
        self.state = state
        self.at = event.at
        self.actions: list[Action] = []
        self.missing: set[str] = set()

    @property
    def composer(self) -> Composer:
        return Composer(self.graph, self.state, self.at, self.missing)

    @property
    def node(self) -> Node:
        return self.graph.node(self.state.node_id)

    def result(self) -> tuple[State, tuple[Action, ...]]:
        pending = self.composer.pending_action()
        missing = tuple(sorted({*self.state.missing, *self.missing}))
        return replace(self.state, missing=missing), (*self.actions, *([pending] if pending else []))

    def set(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)

    def wait(self, phase: Phase) -> None:
        """End the step with the request that belongs to `phase`."""
        self.set(phase=phase, number=self.state.number + 1)

    def add_usage(self, event: ModelAnswer) -> None:
        if event.usage:
            used = self.state.usage.get(event.model, {})
            total = {kind: used.get(kind, 0) + event.usage.get(kind, 0) for kind in {**used, **event.usage}}
            self.set(usage={**self.state.usage, event.model: total})
        if event.seconds:
            processor, _, model = event.model.rpartition("|||")
            self.record("rtf-ttfb-metric", {"ttfb_seconds": event.seconds, "processor": processor, "model": model})

    def record(self, type: str, payload: Mapping[str, Any], node_id: str = "") -> None:
        node = self.graph.node(node_id or self.state.node_id)
        self.actions.append(Record(type, payload, self.at, self.state.turn, node.id, node.name))

    def record_error(self, error: str, processor: str, *, fatal: bool = False) -> None:
        self.record("rtf-pipeline-error", {"error": error, "fatal": fatal, "processor": processor})

    def add_message(self, role: str, content: str, **members: Any) -> bool:
        """Add a message to the history; False, and nothing is added, when the history would become too large."""
        message = {"role": role, "content": content, **members}
        if not has_room(self.state.messages, message):
            return False
        self.set(messages=(*self.state.messages, message))
        return True

    # -- speech

    def begin_turn(self) -> None:
        self.set(turn=self.state.turn + 1, rounds=0, spoken=0)

    def add_caller_text(self, text: str, keyed: bool) -> bool:
        """Begin a turn with what the caller said; False when the history has no room for it."""
        self.begin_turn()
        self.set(caller_spoke=True)
        text = text.strip()
        if size(text) > LONGEST_INPUT:
            self.record_error("What the caller said is larger than 64 KiB; the rest of it was dropped.", "speech")
            text = text.encode()[:LONGEST_INPUT].decode(errors="ignore")
        mark = {KEYED: True} if keyed else {}
        self.record("rtf-user-transcription", {"text": text, "final": True, "timestamp": iso(self.at), **mark})
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

    def say(self, speech: Speech, interruptible: bool = False) -> str:
        """Say a speech, as far as it fits into the turn, and return what is said of it."""
        text = self.fitting(speech.text)
        self.set(spoken=self.state.spoken + len(text))
        if speech.recording_id:
            self.actions.append(Play(speech.recording_id, text, interruptible))
        elif text:
            self.actions.append(Say(text, interruptible))
        if text:
            self.record("rtf-bot-text", {"text": text, "timestamp": iso(self.at)})
        return text

    def say_first(self, speeches: Iterator[Speech]) -> str | None:
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
        failures = self.state.failures + 1
        fatal = fatal or (self.state.setup.voice and failures >= FATAL_FAILURES)
        last = fatal or self.node.ends_call or self.state.occasion == "goodbye"
        self.set(failures=failures)
        self.record_error(error, "llm", fatal=fatal)
        self.say(Speech(self.composer.phrases["failure_goodbye" if last else "apology"]))
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

    def enter_node(self, node: Node, by: Edge | None = None) -> None:
        """Enter a node by an edge; the start node is entered by none."""
        previous = None if by is None else self.graph.node(by.source)
        visited = self.state.gathered_context.get("nodes_visited") or []
        if node.name not in visited:
            self.set(gathered_context={**self.state.gathered_context, "nodes_visited": [*visited, node.name]})
        self.set(node_id=node.id, entered=True)
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
            },
        )

    # -- functions that the model called

    def run_calls(self) -> None:
        """Run the functions that the model called until one needs a request; after the last, ask the model again."""
        while self.state.calls:
            call, source = self.state.calls[0], self.state.calls_from
            payload = {"function_name": call.name, "tool_call_id": call.id, "arguments": arguments_of(call)}
            self.record("rtf-function-call-start", payload, source)
            if edge := self.graph.edge_called(source, call.name):
                if self.state.node_id != source:
                    self.return_error("The conversation has already moved on in this reply.")
                elif variables_of(self.node):
                    self.wait("extracting")
                    return
                else:
                    self.follow(edge)
            elif tool := tool_called(self.state, call):
                if payload["arguments"] is None:
                    self.return_error("The arguments are not a JSON object.")
                    continue
                self.say_first(iter([self.composer.speech(tool.speech, f'The message of the tool "{tool.name}"')]))
                self.wait("acting")
                return
            else:
                self.return_error(f'There is no function "{call.name}" here.')
        self.set(occasion="opening" if self.state.entered else "reply", calls_from="")
        self.ask_model()

    def follow(self, edge: Edge) -> None:
        self.say_first(self.composer.transition(edge))
        self.enter_node(self.graph.node(edge.target), edge)
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
        self.set(reason=reason, calls=(), calls_from="")
        if reason not in _NO_HANG_UP:
            self.actions.append(HangUp())
        if under_way and reason not in _NO_EXTRACTION and variables_of(self.node):
            self.wait("closing")
        else:
            self.finish()

    def finish(self) -> None:
        context = with_disposition(self.state)
        self.set(phase="ended", gathered_context=context)
        self.actions.append(Finish(self.state.reason, context["call_disposition"]))
