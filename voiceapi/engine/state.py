"""The state of a conversation: everything between two events, as plain data."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

from .actions import Function, Message, Occasion
from .events import ToolCall
from .graph import Graph
from .serialization import decode, encode
from .values import as_boolean, as_number

Phase = Literal[
    "new", "fetching", "thinking", "extracting", "acting", "transferring", "listening", "screening", "closing", "ended"
]  # fmt: skip

CALL_SECONDS, LONGEST_CALL_SECONDS = 300.0, 1200.0
IDLE_SECONDS = 10.0


@dataclass(frozen=True)
class Setup:
    """What a conversation is given at its beginning.

    `functions` are the tools offered at each node, by node id; `recordings` the transcripts of the recordings that
    can be played, by id; `direction` is "inbound", "outbound" or, for a chat, None. Only what is `voice` has a
    maximum duration.
    """

    initial_context: Mapping[str, Any]
    configurations: Mapping[str, Any]
    functions: Mapping[str, tuple[Function, ...]] = field(default_factory=dict)
    recordings: Mapping[str, str] = field(default_factory=dict)
    direction: str | None = None
    voice: bool = True

    @property
    def call_seconds(self) -> float:
        """The longest that the call may last, from max_call_duration: 300 s unless set, at most 1200 s."""
        return min(self._seconds("max_call_duration", CALL_SECONDS), LONGEST_CALL_SECONDS)

    @property
    def idle_seconds(self) -> float:
        """The silence after which the caller counts as idle, from max_user_idle_timeout: 10 s unless set."""
        return self._seconds("max_user_idle_timeout", IDLE_SECONDS)

    @property
    def screening(self) -> Mapping[str, Any] | None:
        """The settings by which the first words of somebody we called are judged: a person's, or a machine's.

        None when they aren't: voicemail_detection is not enabled, or nobody was called.
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

    `messages` are the model's, in OpenAI's shape; what is spoken beside them is not in there. `number` is that of
    the latest request. `entered` says that the node has yet to speak. `calls` are the functions of the model's last
    reply still to be carried out, the first of them under way, offered at node `calls_from`. `missing` names the
    template variables that had no value, `usage` adds up tokens by model.
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
    silences: int = 0
    heard: bool = False
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
        """Return the state that `to_json` wrote; raise ValueError with a sentence for anything else."""
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
    """Return the state before the first event; what is handed in is copied. See Setup for the arguments."""
    setup = Setup(
        deepcopy(dict(initial_context)),
        deepcopy(dict(configurations)),
        dict(functions or {}),
        dict(recordings or {}),
        direction,
        voice,
    )
    return State(setup, graph.start.id, gathered_context=deepcopy(dict(gathered_context or {})))


_BY_NAME = ("messages", "gathered_context")


def checkpoint(state: State) -> dict[str, Any]:
    """Return the state as a text chat's checkpoint; the setup, which the session has anyway, is not in it."""
    data = state.to_json()
    del data["setup"]
    return {
        "version": 1,
        "anchor_turn_id": None,
        "current_node_id": data.pop("node_id"),
        **{name: data.pop(name) for name in _BY_NAME},
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
    """Return the state of a text chat at `checkpoint`; one without a node is at the beginning.

    GraphError when the workflow has no such node any more, ValueError when the checkpoint is of another shape.
    """
    fresh = begin(graph, initial_context, configurations, functions=functions, voice=False)
    id = checkpoint.get("current_node_id")
    if id is None:
        return fresh
    data = {**fresh.to_json(), "phase": "listening", **(checkpoint.get("tool_state") or {})}
    kept = {name: checkpoint[name] for name in _BY_NAME if checkpoint.get(name)}
    return State.from_json({**data, **kept, "node_id": graph.node(id).id})
