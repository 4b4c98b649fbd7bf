"""Conversation cases: what the caller does, what is expected of the agent, and the result of running one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

ModelKind = Literal["scripted", "played", "configured"]
MODELS: tuple[ModelKind, ...] = ("scripted", "played", "configured")
# What may speak in cases that say otherwise; only a case that is played brings the decisions for that.
OVERRIDES: tuple[ModelKind, ...] = ("scripted", "configured")
# As the agent's server sees the call.
DIRECTIONS = ("outbound", "inbound", "chat")
TransferOutcome = Literal["answered", "busy", "no_answer", "failed", "caller_hangs_up"]
TRANSFER_OUTCOMES: tuple[TransferOutcome, ...] = ("answered", "busy", "no_answer", "failed", "caller_hangs_up")
# When a conversation begins that doesn't say when: a Monday, so that what templates say of the time is always the same.
BEGINNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
Role = Literal["caller", "agent", "edge", "tool", "answer", "error"]


@dataclass(frozen=True)
class PlayedCall:
    """A function that a played model calls: the edge of this label or id, or the tool of this name.

    :param arguments: a text is what the model writes that should be an object.
    :param unknown: there is no such tool; models sometimes imagine one.
    """

    edge: str | None = None
    tool: str | None = None
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    unknown: bool = False


@dataclass(frozen=True)
class PlayedDecision:
    """What a played model answers to one request: words and calls, or the variables extracted, or a failure.

    :param call_ends: the call ends before there is an answer, for this reason, a disposition code; with words, in the
        middle of a reply of which these were spoken.
    """

    says: str = ""
    calls: tuple[PlayedCall, ...] = ()
    extracts: Mapping[str, Any] | None = None
    fails: str | None = None
    call_ends: str | None = None


@dataclass(frozen=True)
class ToolAnswer:
    """What a tool answers when it is called.

    :param arguments: those that it must be called with, at least; None accepts any.
    :param fails: the error that the tool answers, instead of `returns`.
    :param call_ends: the call ends before there is an answer, for this reason, a disposition code.
    :param optional: the case passes, too, if the tool isn't called.
    """

    tool: str
    arguments: Mapping[str, Any] | None = None
    returns: Any = None
    fails: str | None = None
    call_ends: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class CaseFetch:
    """What the pre-call fetch gives: variables of the initial context, or an error."""

    returns: Mapping[str, Any] = field(default_factory=dict)
    fails: str | None = None


@dataclass(frozen=True)
class CaseTurn:
    """One turn: what the caller does, what a played model decides, and what is expected of the agent's answer.

    Exactly one of `says`, `keys`, `is_silent` and `ends` is set, in the opening none.

    :param ends: the call ends for this reason, a disposition code: user_hangup if the caller hangs up.
    :param after: seconds since the turn before.
    :param decisions: those of the played model, in order.
    :param contains: parts of what the agent says, in any order; upper and lower case are the same.
    :param matches: regular expressions that are found in what the agent says.
    :param never: what the agent doesn't say.
    :param node: the id or name of the node at which the conversation stands afterwards.
    :param edges: the labels or ids of the edges taken in this turn, exactly these; None accepts any.
    :param transfers_to: where the caller is transferred.
    :param transfer: what becomes of a transfer.
    """

    says: str | None = None
    keys: str | None = None
    is_silent: bool = False
    ends: str | None = None
    after: float = 1.0
    decisions: tuple[PlayedDecision, ...] = ()
    contains: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    node: str | None = None
    edges: tuple[str, ...] | None = None
    transfers_to: str | None = None
    transfer: TransferOutcome = "answered"


@dataclass(frozen=True)
class OwedWebhook:
    """A webhook that the ended run owes: that of the node with this id or name.

    :param body: members that the body has; None accepts any body.
    """

    node: str
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ExpectedOutcome:
    """What is expected of the whole conversation; what is None isn't checked.

    :param nodes: the ids or names of the nodes passed, exactly these, in order.
    :param edges: the labels or ids of the edges taken, exactly these, in order.
    :param never: what the agent says at no time.
    :param variables: extracted variables with their values; null if it has none.
    :param tags: those of call_tags, in any order.
    :param webhooks: the webhooks owed, exactly these.
    """

    nodes: tuple[str, ...] | None = None
    edges: tuple[str, ...] | None = None
    never: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    disposition: str | None = None
    tags: tuple[str, ...] | None = None
    webhooks: tuple[OwedWebhook, ...] | None = None


@dataclass(frozen=True)
class Case:
    """One conversation with an agent.

    :param model: what speaks: the scripted model, the decisions in the case, or the configured language model.
    :param context: the initial context.
    :param direction: of the call, as the agent's server sees it; "chat" for a text chat.
    :param fetch: what the pre-call fetch gives; None if none is expected.
    """

    name: str
    turns: tuple[CaseTurn, ...] = ()
    opening: CaseTurn = field(default_factory=CaseTurn)
    model: ModelKind = "scripted"
    context: Mapping[str, Any] = field(default_factory=dict)
    direction: str = "outbound"
    at: datetime = BEGINNING
    fetch: CaseFetch | None = None
    tools: tuple[ToolAnswer, ...] = ()
    expect: ExpectedOutcome = field(default_factory=ExpectedOutcome)

    def spoken_by(self, model: ModelKind | None) -> Case:
        """The case with another model, unless it is played."""
        return self if model is None or self.model == "played" else replace(self, model=model)


# -- results


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
