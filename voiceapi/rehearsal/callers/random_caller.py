"""A caller who says random things: mostly words of the edges, now and then anything else that callers do."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Literal

from ...engine.graph import Edge, Graph
from ..cases import TransferOutcome, Turn
from ..conduct import Conversation
from . import answers as say
from .defects import Tries

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


class RandomCaller:
    """One caller. The same random source gives the same caller, after the same tries."""

    def __init__(self, graph: Graph, random: Random, tries: Tries) -> None:
        self._graph = graph
        self._random = random
        self._tries = tries
        self._habits = random.choice((WILLING, DIFFICULT))

    def next_turn(self, conversation: Conversation) -> Turn | None:
        purpose = self._random.choices(list(self._habits), list(self._habits.values()))[0]
        edges = self._graph.edges_from(conversation.here.id)
        transfer = self._random.choice(_TRANSFERS)
        match purpose:
            case "silence":
                return Turn(is_silent=True, transfer=transfer)
            case "hang_up":
                return None
            case "keys":
                return Turn(keys=self._random.choice(say.KEYS), transfer=transfer)
            case "answer" | "paraphrase" | "value" if edges:
                edge = self._promising(edges)
                if purpose == "answer" and (keys := say.keys_of(edge)) and self._random.random() < 0.7:
                    self._tries.note(edge)
                    return Turn(keys=self._random.choice(keys), transfer=transfer)
                return Turn(says=self._words(purpose, conversation, edge), transfer=transfer)
        return Turn(says=self._other_words(purpose, conversation), transfer=transfer)

    def _promising(self, edges: tuple[Edge, ...]) -> Edge:
        return self._random.choices(edges, [self._tries.promise(edge) for edge in edges])[0]

    def _words(self, purpose: Purpose, conversation: Conversation, edge: Edge) -> str:
        if purpose == "value" and (values := say.values(conversation.here)):
            return self._random.choice(values)
        if purpose == "paraphrase":
            return say.paraphrase(edge)
        self._tries.note(edge)
        return self._random.choice(say.answers(edge) or (edge.label,))

    def _other_words(self, purpose: Purpose, conversation: Conversation) -> str:
        match purpose:
            case "misunderstanding":
                return self._random.choice(say.MISUNDERSTANDINGS)
            case "person":
                self._tries.persons[conversation.here.id] += 1
                return self._random.choice(say.PERSON)
            case "number":
                return self._random.choice(say.NUMBERS)
            case "wrong_order" if others := [
                edge for edge in self._graph.edges if edge.source != conversation.here.id and say.answers(edge)
            ]:
                return self._random.choice(say.answers(self._random.choice(others)))
        return self._random.choice(say.YES_OR_NO)
