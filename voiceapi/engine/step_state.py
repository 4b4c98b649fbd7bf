"""One step of the engine under way: the state so far, the actions so far, and the moves that make up a turn."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .actions import Action, Finish, HangUp, Play, Record, Say, iso
from .compose import Composer, Speech, arguments_of, tool_called
from .disposition import concluded
from .events import Event, Spent
from .extraction import variables_of
from .graph import Edge, Graph, Node
from .state import Phase, State

APOLOGY = "I'm sorry, something went wrong on my side. Could you say that again, please?"
GOODBYE = "I have to end the call here. Goodbye."

# How often the model is asked within one turn; each function it calls leads to another question.
ROUNDS = 8

_DONE = {"status": "done"}

# The call goes on without us, or is over already.
_NO_HANG_UP = {"user_hangup", "transfer_call", "call_transferred"}
_NO_EXTRACTION = {"voicemail_detected", "pipeline_error"}


class Turn:
    """One step under way: the state so far and the actions so far."""

    def __init__(self, graph: Graph, state: State, event: Event) -> None:
        self.graph = graph
        self.state = state
        self.at = event.at
        self.actions: list[Action] = []
        self.missing: set[str] = set()

    @property
    def compose(self) -> Composer:
        return Composer(self.graph, self.state, self.at, self.missing)

    @property
    def node(self) -> Node:
        return self.graph.node(self.state.node_id)

    def settled(self) -> tuple[State, tuple[Action, ...]]:
        awaited = self.compose.awaited()
        missing = tuple(sorted({*self.state.missing, *self.missing}))
        return replace(self.state, missing=missing), (*self.actions, *([awaited] if awaited else []))

    def set(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)

    def wait(self, phase: Phase) -> None:
        """End the step with the request that belongs to `phase`."""
        self.set(phase=phase, number=self.state.number + 1)

    def count(self, event: Spent) -> None:
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

    def fault(self, error: str, processor: str) -> None:
        self.record("rtf-pipeline-error", {"error": error, "fatal": False, "processor": processor})

    def remember(self, role: str, content: str, **members: Any) -> None:
        self.set(messages=(*self.state.messages, {"role": role, "content": content, **members}))

    # -- words

    def begin(self) -> None:
        self.set(turn=self.state.turn + 1, rounds=0)

    def hear(self, text: str) -> None:
        self.begin()
        self.set(heard=True)
        text = text.strip()
        self.remember("user", text)
        self.record("rtf-user-transcription", {"text": text, "final": True, "timestamp": iso(self.at)})

    def say(self, speech: Speech, interruptible: bool = False) -> None:
        if speech.recording_id:
            self.actions.append(Play(speech.recording_id, speech.text, interruptible))
        else:
            self.actions.append(Say(speech.text, interruptible))
        if speech.text:
            self.record("rtf-bot-text", {"text": speech.text, "timestamp": iso(self.at)})

    def say_first(self, speeches: Iterator[Speech]) -> Speech | None:
        """Say the first of `speeches` that can be heard; a recording that is not there is put on record."""
        for speech in speeches:
            if self.compose.can_be_spoken(speech):
                self.say(speech)
                return speech
            if speech.recording_id:
                self.fault(f'The recording "{speech.recording_id}" is not there to be played.', "recording")
        return None

    # -- the course of a turn

    def think(self) -> None:
        """Ask the model to go on, unless it has been asked too often in this turn."""
        if self.state.rounds >= ROUNDS:
            self.apologise(f"The model was asked {ROUNDS} times in one turn and still called functions.")
            return
        self.set(rounds=self.state.rounds + 1)
        self.wait("thinking")

    def apologise(self, error: str) -> None:
        """Put a failure of the model on record and go on: listen, or end where the call was about to end."""
        self.fault(error, "llm")
        last = self.node.ends_call or self.state.occasion == "goodbye"
        self.say(Speech(GOODBYE if last else APOLOGY))
        self.rest()

    def rest(self) -> None:
        """End the turn: the agent has spoken, so the call ends or the caller has the word."""
        self.set(entered=False, calls=(), calls_from="")
        if self.state.occasion == "goodbye":
            self.end("user_idle_max_duration_exceeded")
        elif self.node.ends_call:
            self.end("user_qualified")
        else:
            self.set(phase="listening")

    def enter(self, node: Node, previous: Node | None = None) -> None:
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
                "allow_interrupt": node.allow_interrupt,
            },
        )

    # -- functions that the model called

    def carry_out(self) -> None:
        """Carry out the next function of the model's reply; after the last, ask the model again."""
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
                    self.cross(edge)
            elif tool := tool_called(self.state, call):
                if payload["arguments"] is None:
                    self.return_error("The arguments are not a JSON object.")
                    continue
                if tool.speech:
                    self.say(Speech(self.compose.render(tool.speech)))
                self.wait("acting")
                return
            else:
                self.return_error(f'There is no function "{call.name}" here.')
        self.set(occasion="opening" if self.state.entered else "reply", calls_from="")
        self.think()

    def cross(self, edge: Edge) -> None:
        left = self.node
        self.say_first(self.compose.transition(edge))
        self.enter(self.graph.node(edge.target), left)
        self.return_result(_DONE)

    def return_error(self, error: str) -> None:
        self.return_result({"status": "error", "error": error})

    def return_result(self, result: Any) -> None:
        """Give the model the result of the call under way, and take that call off the list."""
        call, *rest = self.state.calls
        text = json.dumps(result, ensure_ascii=False)
        self.remember("tool", text, tool_call_id=call.id)
        payload = {"function_name": call.name, "tool_call_id": call.id, "result": text}
        self.record("rtf-function-call-end", payload, self.state.calls_from)
        self.set(calls=tuple(rest))

    # -- the end

    def end(self, reason: str) -> None:
        """End the call: hang up, extract a last time, conclude."""
        under_way = self.state.phase != "new"
        self.set(reason=reason, calls=(), calls_from="")
        if reason not in _NO_HANG_UP:
            self.actions.append(HangUp())
        if under_way and reason not in _NO_EXTRACTION and variables_of(self.node):
            self.wait("closing")
        else:
            self.conclude()

    def conclude(self) -> None:
        context = concluded(self.state)
        self.set(phase="ended", gathered_context=context)
        self.actions.append(Finish(self.state.reason, context["call_disposition"]))
