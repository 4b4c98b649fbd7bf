"""The state of a conversation between two events, as frozen data that can be stored as JSON."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

from .actions import Function, Message, Occasion
from .events import ToolCall
from .graph import Graph
from .serialization import decode, encode, with_current_names
from .values import as_boolean, as_number

Phase = Literal[
    "new", "fetching", "thinking", "extracting", "acting", "transferring", "listening", "screening", "closing", "ended"
]  # fmt: skip

CALL_SECONDS, LONGEST_CALL_SECONDS = 300.0, 1200.0
IDLE_SECONDS = 10.0


@dataclass(frozen=True)
class Setup:
    """The settings and the context that a conversation starts with.

    `functions` are the tools offered at each node, by node id; `recordings` the transcripts of the recordings that
    can be played, by id; `direction` is "inbound", "outbound" or, for a chat, None. `voice` is false for chats, which
    have no maximum duration.
    """

    initial_context: Mapping[str, Any]
    configurations: Mapping[str, Any]
    functions: Mapping[str, tuple[Function, ...]] = field(default_factory=dict)
    recordings: Mapping[str, str] = field(default_factory=dict)
    direction: str | None = None
    voice: bool = True

    @property
    def call_seconds(self) -> float:
        """The maximum duration of the call, from max_call_duration: 300 s unless set, at most 1200 s."""
        return min(self._seconds("max_call_duration", CALL_SECONDS), LONGEST_CALL_SECONDS)

    @property
    def idle_seconds(self) -> float:
        """The silence after which the caller counts as idle, from max_user_idle_timeout: 10 s unless set."""
        return self._seconds("max_user_idle_timeout", IDLE_SECONDS)

    @property
    def screening(self) -> Mapping[str, Any] | None:
        """The settings of voicemail detection, which judges the first words after an outbound call is answered.

        None when voicemail_detection isn't enabled, and for inbound calls and chats.
        """
        chosen = self.configurations.get("voicemail_detection")
        if not (self.voice and self.direction == "outbound" and isinstance(chosen, Mapping)):
            return None
        return chosen if as_boolean(chosen.get("enabled")) else None

    def _seconds(self, name: str, default: float) -> float:
        seconds = as_number(self.configurations.get(name))
        return float(seconds) if seconds is not None and seconds > 0 else default


@dataclass(frozen=True)
class State:
    """A conversation between two events.

    `messages` is the model's history in OpenAI's shape; of other speech only the greeting is in it. `number` is that
    of the latest request. `entered` is true until the node has spoken. `calls` are the functions of the model's last
    reply that are still to run, the first of them running, offered at node `calls_from`. `rounds` counts the model's
    replies in this turn, `spoken` the characters said in it, `silences` the caller's silences in a row, `failures` the
    model's failures in a row: without words of its own or a new node between them. `missing` names template variables
    that had no value, `usage` sums tokens by model.
    """

    setup: Setup
    node_id: str
    phase: Phase = "new"
    started_at: float = 0.0
    turn: int = 0
    messages: tuple[Message, ...] = ()
    gathered_context: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    number: int = 0
    occasion: Occasion = "opening"
    rounds: int = 0
    spoken: int = 0
    silences: int = 0
    failures: int = 0
    caller_spoke: bool = False
    entered: bool = False
    calls: tuple[ToolCall, ...] = ()
    calls_from: str = ""
    transfer_to: str = ""
    transfer_timeout: float = 0.0
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON data."""
        data: dict[str, Any] = encode(self)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "State":
        """Return the state that `to_json` wrote, also in an earlier release.

        :raises ValueError: with a sentence, for data of another shape.
        """
        return decode(cls, data)


def begin(
    graph: Graph,
    initial_context: Mapping[str, Any],
    configurations: Mapping[str, Any],
    *,
    functions: Mapping[str, tuple[Function, ...]] | None = None,
    recordings: Mapping[str, str] | None = None,
    direction: str | None = None,
    voice: bool = True,
    gathered_context: Mapping[str, Any] | None = None,
) -> State:
    """Return the state before the first event; the arguments, which Setup describes, are copied."""
    setup = Setup(
        deepcopy(dict(initial_context)),
        deepcopy(dict(configurations)),
        dict(functions or {}),
        dict(recordings or {}),
        direction,
        voice,
    )
    return State(setup, graph.start.id, gathered_context=deepcopy(dict(gathered_context or {})))


_TOP_LEVEL = ("messages", "gathered_context")


def checkpoint(state: State) -> dict[str, Any]:
    """Return the state as a text chat's checkpoint: without the setup, which the session stores itself."""
    data = state.to_json()
    del data["setup"]
    return {
        "version": 1,
        "anchor_turn_id": None,
        "current_node_id": data.pop("node_id"),
        **{name: data.pop(name) for name in _TOP_LEVEL},
        "tool_state": data,
    }


def from_checkpoint(
    graph: Graph,
    checkpoint: Mapping[str, Any],
    initial_context: Mapping[str, Any],
    configurations: Mapping[str, Any],
    *,
    functions: Mapping[str, tuple[Function, ...]] | None = None,
) -> State:
    """Return the state of a text chat at `checkpoint`, the start of the chat for a checkpoint without a node.

    :raises GraphError: when the workflow no longer has the checkpoint's node.
    :raises ValueError: when the checkpoint has another shape.
    """
    start = begin(graph, initial_context, configurations, functions=functions, voice=False)
    id = checkpoint.get("current_node_id")
    if id is None:
        return start
    stored = with_current_names(State, checkpoint.get("tool_state") or {})
    data = {**start.to_json(), "phase": "listening", **stored}
    top = {name: checkpoint[name] for name in _TOP_LEVEL if checkpoint.get(name)}
    return State.from_json({**data, **top, "node_id": graph.node(id).id})
