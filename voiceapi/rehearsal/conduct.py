"""Holds the conversation of a case, and compares it with what the case expects. No call, no database, no clock."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from ..conversations.conversation import Conversation, combine
from ..engine import events as ev
from ..engine.actions import LanguageModel, Play, Record, Say
from ..engine.graph import Edge, Graph, Node, data_of
from ..engine.state import State, begin, tags_of
from ..engine.template import TextTooLong
from ..llm.scripted import Scripted
from ..postcall import outbox, processing, rendering
from ..timestamps import write_time
from .cases import Case, CaseResult, CaseTurn, Line, Mismatch, Role
from .played import PlayedEffects, PlayedModel, contains
from .subject import Subject

# Seconds that the search for a pattern may take.
LONGEST_SEARCH = 0.5
# A case that expects much of a conversation that went another way has a mismatch for everything.
MOST_MISMATCHES = 50


def run_case(subject: Subject, case: Case) -> CaseResult:
    """Hold the conversation of `case` with the workflow; never raises, whatever the case expects.

    A case with the configured model asks that, which may take long; the others answer within milliseconds.
    """
    conversation = CaseConversation(subject, case)
    conversation.open()
    for index, turn in enumerate(case.turns):
        if conversation.is_over:
            left = len(case.turns) - index
            conversation.report(f"turns.{index}", "the conversation goes on", f"It was over, with {left} turns left.")
            break
        conversation.take(turn)
    conversation.close()
    return conversation.result()


class CaseConversation:
    """One conversation: its state, what was said, and what wasn't as expected.

    It is opened, takes a turn after the other until it `is_over` or the caller has nothing more to say, and is closed.

    :param effects: answers the engine's requests instead of the case.
    """

    def __init__(self, subject: Subject, case: Case, effects: PlayedEffects | None = None) -> None:
        self._subject = subject
        self._graph = subject.graph
        self._case = case
        # With the turn in which each was found, and how many calls of tools there had been.
        self._mismatches: list[tuple[Mismatch, tuple[str, int]]] = []
        self._played = PlayedModel(self._graph, self.report)
        self._effects = effects or PlayedEffects(subject, case, self._speaker(), self.report)
        self._at = case.at.timestamp()
        self._turns = 0
        state = begin(
            self._graph,
            case.context,
            subject.configurations,
            functions=subject.functions,
            direction=case.direction if case.direction != "chat" else None,
            voice=case.direction != "chat",
        )
        self._conversation = Conversation(self._graph, self._effects, state)
        self._dialogue: list[Line] = []
        self._records: list[Record] = []
        self._edges: list[Edge] = []
        self._nodes: list[str] = []

    def _speaker(self) -> LanguageModel:
        if self._case.model == "played":
            return self._played
        if self._case.model == "configured" and self._subject.model is not None:
            return self._subject.model
        return Scripted()

    def report(self, place: str, expected: str, found: str) -> None:
        if len(self._mismatches) < MOST_MISMATCHES:
            mismatch = Mismatch(place, expected, found)
            self._mismatches.append((mismatch, (self._effects.place, self._effects.calls)))

    # -- the conversation

    @property
    def state(self) -> State:
        """The state after the last turn."""
        return self._conversation.state

    @property
    def is_over(self) -> bool:
        return self.state.phase == "ended"

    @property
    def here(self) -> Node:
        """The node at which the conversation stands."""
        return self._graph.node(self.state.node_id)

    @property
    def dialogue(self) -> Sequence[Line]:
        """What was said and done so far."""
        return self._dialogue

    @property
    def records(self) -> Sequence[Record]:
        """What a run would have in its log."""
        return self._records

    def open(self) -> None:
        """Have the agent begin."""
        if self._case.model == "configured" and self._subject.model is None:
            self.report("model", "a language model is configured", "There is none to ask; the scripted one spoke.")
        self._turn("opening", self._case.opening, ev.Started(self._at))

    def take(self, turn: CaseTurn) -> None:
        """Have the caller do something, and the agent answer."""
        self._at += turn.after
        self._turns += 1
        self._turn(f"turns.{self._turns - 1}", turn, _event(turn, self._at))

    def close(self) -> None:
        """End the conversation, as a caller does who has nothing more to say, and check its outcome."""
        if not self.is_over:
            self._played.begin("expect", ())
            self._advance("end", ev.CallEnded(self._at, "user_hangup"))
        self._effects.place = "expect"
        self._effects.finish()
        self._check_outcome()

    def _turn(self, place: str, turn: CaseTurn, event: ev.Event) -> None:
        self._effects.turn, self._effects.place = turn, place
        self._played.begin(place, turn.decisions)
        edges = len(self._edges)
        said = self._advance(place, event)
        self._played.finish()
        self._check_turn(place, turn, " ".join(said), self._edges[edges:])

    def _advance(self, place: str, event: ev.Event) -> list[str]:
        """Feed the event and all answers that follow from it; returns what the agent says."""
        node = self._graph.node(self.state.node_id)
        if line := caller_text(event):
            self._dialogue.append(Line("caller", line, place, node.id, node.name))
        progress = combine(self._conversation.advance(event))
        self._records += progress.records
        for record in progress.records:
            self._note(place, record)
        said = [action.text for action in progress.actions if isinstance(action, Say | Play)]
        if self._effects.call_ended:
            reason, self._effects.call_ended = self._effects.call_ended, ""
            said += self._advance(place, ev.CallEnded(self._at, reason))
        return said

    def _note(self, place: str, record: Record) -> None:
        if record.type == "rtf-node-transition":
            self._nodes.append(record.node_id)
            self._edges += [edge for edge in self._graph.ways if edge.id == record.payload["edge_id"]][:1]
        if (line := line_of(self._graph, record, place)) is not None:
            self._dialogue.append(line)

    # -- what is expected

    def _check_turn(self, place: str, turn: CaseTurn, said: str, edges: list[Edge]) -> None:
        spoken = _plain(said)
        for part in turn.contains:
            if _plain(part) not in spoken:
                self.report(f"{place}.says", f"the agent says “{part}”", _quoted(said))
        if turn.matches:
            self._check_patterns(place, turn.matches, said)
        for part in turn.never:
            if _plain(part) in spoken:
                self.report(f"{place}.never", f"the agent doesn't say “{part}”", _quoted(said))
        if turn.node is not None and not _is_node(self.here, turn.node):
            found_at = f"It stands at “{self.here.name}”."
            self.report(f"{place}.node", f"the conversation stands at “{turn.node}”", found_at)
        if turn.edges is not None:
            self._check_edges(f"{place}.edges", turn.edges, edges)
        if turn.transfers_to is not None and self._effects.transferred_at != place:
            self.report(f"{place}.transfers_to", f"the caller is transferred to {turn.transfers_to}", "Nobody was.")

    def _check_patterns(self, place: str, patterns: tuple[str, ...], said: str) -> None:
        import regex  # as few cases need it

        for pattern in patterns:
            try:
                found = regex.search(pattern, said, timeout=LONGEST_SEARCH)
            except TimeoutError:
                self.report(f"{place}.matches", f"“{pattern}” is searched quickly", "It took too long.")
                continue
            if not found:
                self.report(f"{place}.matches", f"what the agent says matches “{pattern}”", _quoted(said))

    def _check_edges(self, place: str, wanted: tuple[str, ...], taken: list[Edge]) -> None:
        if len(wanted) != len(taken) or not all(
            name in (edge.id, edge.label) for name, edge in zip(wanted, taken, strict=True)
        ):
            labels = ", ".join(f"“{edge.label}”" for edge in taken)
            names = ", ".join(f"“{name}”" for name in wanted)
            found = f"Taken were {labels}." if taken else "None was taken."
            self.report(place, f"the edges {names} are taken" if wanted else "no edge is taken", found)

    def _check_outcome(self) -> None:
        expect = self._case.expect
        if expect.nodes is not None:
            passed = [self._graph.node(id) for id, _ in groupby(self._nodes)]
            if len(passed) != len(expect.nodes) or not all(map(_is_node, passed, expect.nodes)):
                names = ", ".join(f"“{node.name}”" for node in passed)
                wanted = ", ".join(f"“{name}”" for name in expect.nodes)
                self.report("expect.nodes", f"the nodes {wanted} are passed", f"It was {names}.")
        if expect.edges is not None:
            self._check_edges("expect.edges", expect.edges, self._edges)
        for part in expect.never:
            for line in self._dialogue:
                if line.role == "agent" and _plain(part) in _plain(line.text):
                    self.report("expect.never", f"the agent never says “{part}”", _quoted(line.text))
        variables = self._variables()
        for name, value in expect.variables.items():
            found = variables.get(name)
            if not contains({name: found}, {name: value}):
                wanted, given = (json.dumps(each, ensure_ascii=False) for each in (value, found))
                self.report(f"expect.variables.{name}", f"{name} is {wanted}", f"It is {given}.")
        disposition = self._disposition()
        if expect.disposition is not None and disposition != expect.disposition:
            wanted, given = f"the disposition is {expect.disposition}", f"It is {disposition}."
            self.report("expect.disposition", wanted, given)
        tags = tags_of(self.state.gathered_context)
        if expect.tags is not None and {*expect.tags} != {*tags}:
            wanted, given = (", ".join(each) or "empty" for each in (expect.tags, tags))
            self.report("expect.tags", f"call_tags are {wanted}", f"They are {given}.")
        self._check_webhooks()

    def _check_webhooks(self) -> None:
        wanted = self._case.expect.webhooks
        if wanted is None:
            return
        left = dict(self._webhooks())
        for index, webhook in enumerate(wanted):
            place = f"expect.webhooks.{index}"
            id = next((id for id in left if _is_node(self._graph.nodes[id], webhook.node)), None)
            if id is None:
                self.report(place, f"the run owes the webhook of “{webhook.node}”", "It doesn't.")
                continue
            body = left.pop(id)
            if webhook.body is not None and not contains(body, webhook.body):
                part, whole = (json.dumps(each, ensure_ascii=False) for each in (webhook.body, body))
                self.report(f"{place}.body", f"the body has {part}", f"It is {whole}.")
        for id in left:
            name = self._graph.nodes[id].name
            self.report("expect.webhooks", "no other webhook is owed", f"There is the one of “{name}”, too.")

    # -- the result

    def _variables(self) -> Mapping[str, Any]:
        return dict(self.state.gathered_context.get("extracted_variables") or {})

    def _disposition(self) -> str | None:
        found = self.state.gathered_context.get("call_disposition")
        return found if isinstance(found, str) else None

    def _webhooks(self) -> Mapping[str, Any]:
        return owed(self._subject.definition, self.state, datetime.fromtimestamp(self._at, UTC))

    def _line_of(self, mismatch: Mismatch, turn: str, calls: int) -> int | None:
        """The line of the dialogue at which a mismatch is shown; None if it is about the whole conversation."""
        kind = mismatch.place.rpartition(".")[2]
        said = [at for at, line in enumerate(self._dialogue) if line.role == "agent"]
        if mismatch.place == "expect.never":
            return next((at for at in said if _quoted(self._dialogue[at].text) == mismatch.found), None)
        lines = [at for at, line in enumerate(self._dialogue) if line.place == turn]
        if turn == "expect" or not lines:
            return None
        if mismatch.place.startswith("tools"):
            called = [at for at, line in enumerate(self._dialogue) if line.role == "tool"]
            return called[calls - 1] if calls <= len(called) else lines[-1]
        role = _CONCERNED.get(kind)
        return next((at for at in reversed(lines) if self._dialogue[at].role == role), lines[-1])

    def result(self) -> CaseResult:
        extracted: dict[str, tuple[str, ...]] = {}
        for record in self._records:
            if record.type == "rtf-variables-extracted":
                names = (name for name, value in record.payload["variables"].items() if value is not None)
                extracted[record.node_id] = tuple(dict.fromkeys((*extracted.get(record.node_id, ()), *names)))
        return CaseResult(
            self._case.name,
            tuple(self._dialogue),
            tuple(replace(found, line=self._line_of(found, *when)) for found, when in self._mismatches),
            tuple(self._nodes),
            tuple(edge.id for edge in self._edges),
            extracted,
            self._variables(),
            self._disposition(),
            tuple(tags_of(self.state.gathered_context)),
            self.state.missing,
            self._webhooks(),
            self.state.messages,
        )


# The kind of line at which a mismatch is shown, by the last part of its place; otherwise at the last of its turn.
_CONCERNED = {
    "says": "agent",
    "matches": "agent",
    "never": "agent",
    "node": "edge",
    "edges": "edge",
    "model": "error",
}


def _event(turn: CaseTurn, at: float) -> ev.Event:
    if turn.says is not None:
        return ev.CallerSaid(at, turn.says)
    if turn.keys is not None:
        return ev.CallerSaid(at, turn.keys, keyed=True)
    return ev.CallerSilent(at) if turn.is_silent else ev.CallEnded(at, turn.ends or "user_hangup")


def _plain(text: str) -> str:
    """A text as it is compared: without upper case, with single blanks and straight quotes."""
    return " ".join(text.casefold().translate(_QUOTES).split())


_QUOTES = str.maketrans("’‘“”", "''\"\"")


def _is_node(node: Node, name: str) -> bool:
    return name in (node.id, node.name)


def _quoted(said: str) -> str:
    return f"It said “{said}”." if said else "It said nothing."


# -- webhooks: rendered and never sent


def owed(definition: Mapping[str, Any], state: State, moment: datetime) -> dict[str, Any]:
    """The bodies of the webhooks that the ended conversation owes, by the id of their node; null for one without.

    What only a stored run has, such as its id and its transcript, is null in them.
    """
    context = {
        **dict.fromkeys(processing.VARIABLES),
        "call_time": write_time(moment),
        "initial_context": state.setup.initial_context,
        "gathered_context": state.gathered_context,
        "cost_info": {},
        "annotations": {},
        "extra": {},
    }
    bodies: dict[str, Any] = {}
    for node in outbox.webhooks(definition):
        try:
            body = rendering.render_request(data_of(node), context, moment).body
        except TextTooLong as error:
            bodies[node["id"]] = {"error": str(error)}
        else:
            bodies[node["id"]] = None if body is None else json.loads(body)
    return bodies


# -- the dialogue


def is_tool(graph: Graph, record: Record) -> bool:
    """True if the function of a record is a tool, and not an edge."""
    name = record.payload["function_name"]
    return "on_entry" in record.payload or graph.edge_called(record.node_id, name) is None


def caller_text(event: ev.Event) -> str:
    """What an event looks like in a dialogue; empty for one that isn't the caller's or the end of the call."""
    match event:
        case ev.CallerSaid(keyed=True):
            return f"[keys {event.text}]"
        case ev.CallerSaid():
            return event.text
        case ev.CallerSilent():
            return "[silence]"
        case ev.CallEnded(reason="user_hangup"):
            return "[hangs up]"
        case ev.CallEnded():
            return f"[the call ends: {event.reason}]"
    return ""


def line_of(graph: Graph, record: Record, place: str) -> Line | None:
    """The line that a record of a conversation is in its dialogue; None for one that isn't shown.

    :param place: the turn, as in `Line`.
    """
    payload = record.payload
    role: Role
    match record.type:
        case "rtf-node-transition" if payload["edge_id"] is not None:
            role, text = "edge", f"{payload['edge_label']} → {record.node_name}"
        case "rtf-bot-text":
            role, text = "agent", str(payload["text"])
        case "rtf-function-call-start" if is_tool(graph, record):
            role, text = "tool", f"{payload['function_name']} {json.dumps(payload['arguments'], ensure_ascii=False)}"
        case "rtf-function-call-end" if is_tool(graph, record):
            role, text = "answer", f"{payload['function_name']} {payload['result']}"
        case "rtf-pipeline-error":
            role, text = "error", f"{payload['processor']}: {payload['error']}"
        case _:
            return None
    return Line(role, text, place, record.node_id, record.node_name)
