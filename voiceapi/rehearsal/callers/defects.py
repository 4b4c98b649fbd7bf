"""What is wrong with an agent by the conversations held with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ...engine.actions import Function
from ...engine.graph import Edge, Graph
from ...llm.scripted import NOT_UNDERSTOOD, PERSON_REQUESTED
from ..cases import ModelKind
from ..result import CaseResult, Line
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
        return {edge.id: edge for edge in self.subject.graph.edges}

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
        offered = self.subject.functions.get(id, ())
        return (each for each in offered if (id, each.name) not in self._called)

    def can_be_taken(self, edge: Edge) -> bool:
        """False for an edge that callers have meant often enough, and that was never taken."""
        if edge.id in self.taken:
            return True
        return self.model != "scripted" or self.tries.edges[edge.id] < ENOUGH

    def may_be_ended_at(self, id: str) -> bool:
        """True if a function that the node offers transfers the caller, or may end the call: nobody has called it."""
        if any(each.transfers and self.can_be_called(id, each) for each in self.subject.functions.get(id, ())):
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
