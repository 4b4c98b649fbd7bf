"""A caller who says random things, mostly words of the edges, and a language model that decides at random."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any, Literal

from ...engine.actions import AskModel, Extract, Function
from ...engine.events import ModelReplied, ToolCall, VariablesExtracted
from ...engine.extraction import ANSWERED_BY, VOICEMAIL, Variable
from ...engine.graph import Edge, Graph
from ..cases import CaseTurn, TransferOutcome
from ..conduct import CaseConversation
from . import defects
from .defects import SEPARATOR, Tries

Purpose = Literal[
    "answer",
    "paraphrase",
    "value",
    "yes_or_no",
    "number",
    "keys",
    "silence",
    "hang_up",
    "misunderstanding",
    "person",
    "wrong_order",
]
# How often a caller does what, of each kind of caller: who answers what is asked gets far, the others try the rest.
WILLING: Mapping[Purpose, int] = {"answer": 70, "value": 20, "paraphrase": 6, "yes_or_no": 2, "number": 2}
DIFFICULT: Mapping[Purpose, int] = {
    "answer": 42,
    "value": 10,
    "paraphrase": 10,
    "yes_or_no": 6,
    "number": 5,
    "keys": 4,
    "silence": 6,
    "hang_up": 2,
    "misunderstanding": 6,
    "person": 3,
    "wrong_order": 6,
}
_TRANSFERS: tuple[TransferOutcome, ...] = ("answered", "answered", "busy", "no_answer", "caller_hangs_up")
# Functions in one turn; an engine that counts more replies takes them for a circle.
MOST_CALLS = 4
# What a hint lists is chosen from, as in "price, speed or quality"; its longer parts are sentences.
LONGEST_CHOICE = 20
_TEXTS = ("something", "something else")


class RandomCaller:
    """One caller. The same random source gives the same caller, after the same tries."""

    def __init__(self, graph: Graph, random: Random, tries: Tries) -> None:
        self._graph = graph
        self._random = random
        self._tries = tries
        self._habits = random.choice((WILLING, DIFFICULT))

    def next_turn(self, conversation: CaseConversation) -> CaseTurn | None:
        purpose = self._random.choices(list(self._habits), list(self._habits.values()))[0]
        edges = self._graph.edges_from(conversation.here.id)
        transfer = self._random.choice(_TRANSFERS)
        match purpose:
            case "silence":
                return CaseTurn(is_silent=True, transfer=transfer)
            case "hang_up":
                return None
            case "keys":
                return CaseTurn(keys=self._random.choice(defects.KEYS), transfer=transfer)
            case "answer" | "paraphrase" | "value" if edges:
                edge = self._promising(edges)
                if purpose == "answer" and (keys := defects.keys_of(edge)) and self._random.random() < 0.7:
                    self._tries.note(edge)
                    return CaseTurn(keys=self._random.choice(keys), transfer=transfer)
                return CaseTurn(says=self._words(purpose, conversation, edge), transfer=transfer)
        return CaseTurn(says=self._other_words(purpose, conversation), transfer=transfer)

    def _promising(self, edges: tuple[Edge, ...]) -> Edge:
        return self._random.choices(edges, [self._tries.promise(edge) for edge in edges])[0]

    def _words(self, purpose: Purpose, conversation: CaseConversation, edge: Edge) -> str:
        if purpose == "value" and (values := defects.values(conversation.here)):
            return self._random.choice(values)
        if purpose == "paraphrase":
            return defects.paraphrase(edge)
        self._tries.note(edge)
        return self._random.choice(defects.answers(edge) or (edge.label,))

    def _other_words(self, purpose: Purpose, conversation: CaseConversation) -> str:
        match purpose:
            case "misunderstanding":
                return self._random.choice(defects.MISUNDERSTANDINGS)
            case "person":
                self._tries.persons[conversation.here.id] += 1
                return self._random.choice(defects.PERSON)
            case "number":
                return self._random.choice(defects.NUMBERS)
            case "wrong_order" if others := [
                edge for edge in self._graph.edges if edge.source != conversation.here.id and defects.answers(edge)
            ]:
                return self._random.choice(defects.answers(self._random.choice(others)))
        return self._random.choice(defects.YES_OR_NO)


# -- a language model that decides at random


class RandomModel:
    """Speaks for an agent that is made for a language model: it shows the ways that a real one could go."""

    def __init__(self, graph: Graph, random: Random, tries: Tries) -> None:
        self._graph = graph
        self._random = random
        self._tries = tries

    def reply(self, ask: AskModel) -> ModelReplied:
        """A function, where one is offered and not too many were called in this turn; else a few words."""
        chance = {"opening": 0.1, "reply": 0.75, "idle": 0.1, "goodbye": 0.0}[ask.occasion]
        if ask.functions and _calls_in_turn(ask) < MOST_CALLS and self._random.random() < chance:
            weights = [self._promise(ask.node_id, each) for each in ask.functions]
            function = self._random.choices(ask.functions, weights)[0]
            self._note(ask.node_id, function)
            arguments = json.dumps(self._arguments(function), ensure_ascii=False)
            return ModelReplied(ask.at, ask.number, "", (ToolCall(f"call_{ask.number}", function.name, arguments),))
        return ModelReplied(ask.at, ask.number, f"({ask.node_name})")

    def extract(self, request: Extract) -> VariablesExtracted:
        """A value of its type for most variables."""
        values = {each.name: self._value(each) for each in request.variables if self._random.random() < 0.9}
        return VariablesExtracted(request.at, request.number, values)

    def _promise(self, id: str, function: Function) -> float:
        edge = self._graph.edge_called(id, function.name)
        return 1 / (1 + self._tries.tools[id, function.name]) if edge is None else self._tries.promise(edge)

    def _note(self, id: str, function: Function) -> None:
        edge = self._graph.edge_called(id, function.name)
        if edge is None:
            self._tries.tools[id, function.name] += 1
        else:
            self._tries.note(edge)

    def _value(self, variable: Variable) -> Any:
        if variable == ANSWERED_BY:
            return VOICEMAIL if self._random.random() < 0.1 else "CONVERSATION"
        listed = [part.strip() for part in SEPARATOR.split(variable.hint)]
        if variable.type == "string" and len(listed) > 1 and all(len(each) <= LONGEST_CHOICE for each in listed):
            return self._random.choice(listed)
        return self._of_type(variable.type)

    def _arguments(self, function: Function) -> dict[str, Any]:
        properties = function.parameters.get("properties")
        required = function.parameters.get("required") or ()
        return {
            name: self._of_type(kind.get("type") if isinstance(kind, Mapping) else None)
            for name, kind in (properties if isinstance(properties, Mapping) else {}).items()
            if name in required or self._random.random() < 0.5
        }

    def _of_type(self, type: Any) -> Any:
        match type:
            case "number" | "integer":
                return self._random.randint(0, 10)
            case "boolean":
                return self._random.random() < 0.5
            case "object":
                return {}
            case "array":
                return []
        return self._random.choice(_TEXTS)


def _calls_in_turn(ask: AskModel) -> int:
    """How many functions have answered since the caller last spoke."""
    count = 0
    for message in reversed(ask.messages):
        if message["role"] == "user":
            break
        count += message["role"] == "tool"
    return count
