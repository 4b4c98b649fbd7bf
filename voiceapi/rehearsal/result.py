"""What a conversation case led to: the dialogue, what wasn't as expected, and the parts of the workflow passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Role = Literal["caller", "agent", "edge", "tool", "answer", "error"]


@dataclass(frozen=True)
class Mismatch:
    """Something that isn't as expected.

    :param place: in the case, such as `turns.2.says`, `expect.variables.day` or `tools.0.with`.
    :param expected: a phrase that goes on after "expected: ".
    :param found: a sentence.
    :param line: the index of the line of the dialogue that it concerns; None if it concerns the whole conversation.
    """

    place: str
    expected: str
    found: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.place}: expected: {self.expected}. {self.found}"


@dataclass(frozen=True)
class Line:
    """A line of the dialogue.

    :param role: who speaks; or what else happened: an edge followed, a function called or its answer, an error.
    :param place: the turn in the case, "opening" or such as "turns.2".
    :param node_id: the node at which it was.
    """

    role: Role
    text: str
    place: str
    node_id: str
    node_name: str


@dataclass(frozen=True)
class CaseResult:
    """The result of one case; it passed if there are no `mismatches`.

    :param nodes: the ids of the nodes passed, in order; `edges` those of the edges taken.
    :param extracted: of each node at which variables were extracted, by its id, the names of those with a value.
    :param variables: all extracted variables with their last values.
    :param missing: template variables without a value.
    :param webhooks: the webhooks owed, by the id of the node, with their bodies.
    :param messages: the conversation in the shape in which it was given to a language model.
    """

    name: str
    dialogue: tuple[Line, ...]
    mismatches: tuple[Mismatch, ...]
    nodes: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()
    extracted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    disposition: str | None = None
    tags: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    webhooks: Mapping[str, Any] = field(default_factory=dict)
    messages: tuple[Mapping[str, Any], ...] = ()

    @property
    def passed(self) -> bool:
        return not self.mismatches

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON data, without the messages."""
        data = {"passed": self.passed, **asdict(self)}
        del data["messages"]
        return data
