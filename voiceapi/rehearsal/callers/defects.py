"""The defects of an agent that conversations with it show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from ...engine.actions import Function
from ...engine.extraction import variables_of
from ...engine.graph import Edge, Graph, Node
from ...llm.scripted import NOT_UNDERSTOOD, PERSON_REQUESTED
from ..cases import CaseResult, Line, ModelKind
from ..subject import Subject
from .improvised import Held

Code = Literal["dead-end", "loop-without-exit", "not-understood", "tool-never-called", "pipeline-error"]
CODES: tuple[Code, ...] = ("pipeline-error", "dead-end", "loop-without-exit", "not-understood", "tool-never-called")
# What was tried so often and never happened counts as impossible.
ENOUGH = 4
# Reasons of endings that aren't the agent's doing.
_NOT_BY_AGENT = frozenset(
    (
        *("user_hangup", "user_idle_max_duration_exceeded", "pipeline_error", "call_duration_exceeded"),
        *("voicemail_detected", NOT_UNDERSTOOD, PERSON_REQUESTED),
    )
)
_QUOTED = re.compile(r"[\"“”„«»]([^\"“”„«»]+)[\"“”„«»]")
# What a condition lists, after a colon or as "price, speed or quality".
_AFTER_COLON = re.compile(r":\s*([^.:;]+)")
_ITEM = r"[\w'’-]++(?: [\w'’-]++)?"
# The second way passes over items that no "or" follows, which each would else be tried as the first one.
_LISTED = re.compile(rf"(?<![\w'’-])(?:({_ITEM}(?:, {_ITEM})+,? or {_ITEM})|(?:{_ITEM}, )++)")
SEPARATOR = re.compile(r",\s*(?:or\s+)?|(?<!\s)\s++or\s+")
_LONGEST = 60
# How a label says yes or no in as many words.
_SAME: dict[str, tuple[str, ...]] = {"yes": ("yes", "yes please"), "no": ("no", "no thank you")}
_PRESSED = re.compile(r"(?<![\w.,])[0-9*#](?!\w)")
_KEYS = re.compile(r"\b(?:press|push|dial|keys?)\b", re.IGNORECASE)
_SUBJECT = re.compile(
    r"\b(?:the )?(?:caller|customer|client|patient|guest|person|user|callee)(?:'s)?\b|\bthey\b", re.IGNORECASE
)

YES_OR_NO = ("yes", "no", "Yes, that's right.", "No, not at all.", "maybe", "I don't know")
NUMBERS = ("one", "two", "3", "4", "ten", "twenty", "0", "a hundred")
MISUNDERSTANDINGS = (
    *("Sorry?", "What did you say?", "Who is this?", "I didn't get that.", "hm", "Could you repeat that?"),
    *("It is raining here.", "blue elephants", "uh, wait a moment", "¿Qué?", "…"),
)
PERSON = ("I want to talk to a person.", "operator", "Can I speak to someone?", "Give me a human, please.")
KEYS = tuple("0123456789*#")
# A value for each kind of variable that the scripted model finds by its name or hint.
_VALUES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"e[ -]?mail", ("My address is ada@example.com.",)),
    (r"phone|mobile|callback number", ("My number is 202 555 0123.",)),
    (r"date|day|when", ("On Monday.", "Tomorrow.", "On the third of May.")),
    (r"time|hour|clock", ("At ten o'clock.", "At half past three.")),
    (r"name|called", ("My name is Ada Lovelace.",)),
)


@dataclass(frozen=True)
class Defect:
    """Something that is wrong with the agent.

    :param nodes: the ids of the nodes at which it is.
    :param count: in how many conversations it was.
    :param is_in: whether a conversation shows it.
    :param tool: the function that is never called, or the uuid of a tool that isn't offered.
    """

    code: Code
    nodes: tuple[str, ...]
    message: str
    count: int
    is_in: Callable[[CaseResult], bool]
    tool: str | None = None


@dataclass
class Tries:
    """What was tried so far in a rehearsal, so that other things are tried next.

    :param edges: how often an edge was meant, by its id.
    :param tools: how often a function was called, by the id of the node and its name.
    :param persons: how often a person was asked for, by the id of the node.
    """

    graph: Graph
    edges: Counter[str] = field(default_factory=Counter)
    tools: Counter[tuple[str, str]] = field(default_factory=Counter)
    persons: Counter[str] = field(default_factory=Counter)
    # What `_beyond` has found since it changed last.
    _counted: dict[str, int] = field(default_factory=dict)

    def promise(self, edge: Edge) -> float:
        """How much an edge promises: it was tried seldom, or leads to others that were."""
        return 1 / (1 + self.edges[edge.id]) + self._beyond(edge.target) / 2

    def note(self, edge: Edge) -> None:
        """Count that the edge was meant."""
        self.edges[edge.id] += 1
        if self.edges[edge.id] >= ENOUGH:
            self._seldom.discard(edge.id)
            self._counted.clear()

    @cached_property
    def _seldom(self) -> set[str]:
        return {edge.id for edge in self.graph.edges if self.edges[edge.id] < ENOUGH}

    def _beyond(self, id: str) -> int:
        """How many edges that were tried seldom can be come to from a node, at most 2 * ENOUGH.

        They are counted when it is asked: the edges beyond all nodes of a large graph take too much memory.
        """
        if id not in self._counted:
            reached, left, found = {id}, [id], 0
            while left and self._seldom and found < 2 * ENOUGH:
                edges = self.graph.edges_from(left.pop())
                found += sum(edge.id in self._seldom for edge in edges)
                new = {edge.target for edge in edges} - reached
                reached |= new
                left += new
            self._counted[id] = min(found, 2 * ENOUGH)
        return self._counted[id]


@dataclass(frozen=True)
class Evidence:
    """The conversations held with an agent.

    :param model: what spoke for the agent in them.
    """

    subject: Subject
    model: ModelKind
    held: Sequence[Held]
    tries: Tries

    @cached_property
    def edges(self) -> Mapping[str, Edge]:
        """The agent's edges, by id."""
        return {edge.id: edge for edge in self.subject.graph.ways}

    @cached_property
    def passed(self) -> Counter[str]:
        """In how many conversations each node was passed."""
        return Counter(id for each in self.held for id in {*each.result.nodes})

    @cached_property
    def taken(self) -> frozenset[str]:
        """The ids of the edges taken."""
        return frozenset(id for each in self.held for id in each.result.edges)

    @cached_property
    def _called(self) -> frozenset[tuple[str, str]]:
        lines = (line for each in self.held for line in each.result.dialogue if line.role == "tool")
        return frozenset((line.node_id, line.text.split(" ", 1)[0]) for line in lines)

    def uncalled(self, id: str) -> Iterator[Function]:
        """The functions offered at a node, besides its edges, that were called in no conversation."""
        return (each for each in self.subject.offered(id) if (id, each.name) not in self._called)

    def can_be_taken(self, edge: Edge) -> bool:
        """False for an edge that callers have meant often enough, and that was never taken."""
        if edge.id in self.taken:
            return True
        return self.model != "scripted" or self.tries.edges[edge.id] < ENOUGH

    def may_be_ended_at(self, id: str) -> bool:
        """True if a function that the node offers transfers the caller, or may end the call: nobody has called it."""
        if any(each.transfers and self.can_be_called(id, each) for each in self.subject.offered(id)):
            return True
        return any(self.can_be_called(id, each) for each in self.uncalled(id))

    def can_be_called(self, id: str, function: Function) -> bool:
        """False for a function of a node that should have been called by now, and never was."""
        if (id, function.name) in self._called:
            return True
        if self.model != "scripted":
            return self.passed[id] < ENOUGH
        return function.transfers and self.tries.persons[id] < ENOUGH


def is_ended_by_agent(held: Held) -> bool:
    """True if the agent ended the conversation because it was at its end."""
    return _NOT_BY_AGENT.isdisjoint((held.reason, *held.result.tags))


def said(result: CaseResult) -> list[Line]:
    """What the caller said and keyed."""
    lines = (line for line in result.dialogue if line.role == "caller")
    return [line for line in lines if not line.text.startswith("[") or line.text.startswith("[keys ")]


# -- answers that a caller could give


@lru_cache(maxsize=4096)
def answers(edge: Edge) -> tuple[str, ...]:
    """What a caller says who means this edge, in its own words: its label, and what its condition quotes or lists."""
    from ...llm.understanding.matching import has_content
    from ...llm.understanding.yes_no import yes_no_intent

    label = " ".join(edge.label.replace("_", " ").split())
    found = [label, *_SAME.get(yes_no_intent(label) or "", ()), *_QUOTED.findall(edge.condition)]
    for listed in (*_AFTER_COLON.findall(edge.condition), *_LISTED.findall(edge.condition)):
        parts = [part.strip() for part in SEPARATOR.split(listed)]
        # "the" alone is no answer.
        found += [part for part in parts if has_content(part) or yes_no_intent(part)] if len(parts) > 1 else []
    return tuple(dict.fromkeys(each for each in found if each and len(each) <= _LONGEST))


def keys_of(edge: Edge) -> tuple[str, ...]:
    """The keys that an edge of a keypad menu names."""
    text = f"{edge.label} {edge.condition}"
    return tuple(_PRESSED.findall(text)) if _KEYS.search(text) else ()


def paraphrase(edge: Edge) -> str:
    """An edge's condition as a caller would say it: "They can come" is "I can come"."""
    from ...llm.understanding.matching import has_content

    said = _SUBJECT.sub("I", edge.condition).strip()
    return said if has_content(said) else edge.label


def values(node: Node) -> tuple[str, ...]:
    """What a caller says who gives the values that a node extracts."""
    found: list[str] = []
    for variable in variables_of(node):
        about = f"{variable.name} {variable.hint}".replace("_", " ").casefold()
        kinds = (texts for pattern, texts in _VALUES if re.search(rf"\b(?:{pattern})", about))
        listed = [part.strip() for part in SEPARATOR.split(variable.hint)]
        match variable.type:
            case "number":
                found += NUMBERS
            case "boolean":
                found += ("yes", "no")
            case _:
                found += next(kinds, tuple(listed) if len(listed) > 1 else ("Ada", "the blue one"))
    return tuple(dict.fromkeys(found))
