"""The state of a conversation between two events, as frozen data that can be stored as JSON."""

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

from .actions import KEPT, Function, Message, Occasion
from .events import ToolCall
from .graph import Graph
from .serialization import decode, encode, with_current_names
from .template import MIB, as_boolean, as_number, size

Phase = Literal[
    "new", "fetching", "entering", "thinking", "extracting", "acting", "transferring", "listening", "screening",
    "closing", "ended",
]  # fmt: skip

# The setting, and the disposition and tag of a conversation with somebody who wants no more calls.
DO_NOT_CALL = "do_not_call"
CALL_SECONDS, LONGEST_CALL_SECONDS = 300.0, 1200.0
IDLE_SECONDS = 10.0
# Bytes of UTF-8 of all messages.
LONGEST_HISTORY = MIB


@dataclass(frozen=True)
class Setup:
    """The settings and the context that a conversation starts with.

    `functions` are the tools offered at each node, by node id; `recordings` the transcripts of the recordings that
    can be played, by id; `direction` is "inbound", "outbound" or, for a chat, None. `voice` is false for chats, which
    have no maximum duration. `campaign` says whether it is a campaign's call. `keys_need_hash`: the carrier waits long
    for another key unless # ends them.
    """

    initial_context: Mapping[str, Any]
    configurations: Mapping[str, Any]
    functions: Mapping[str, tuple[Function, ...]] = field(default_factory=dict)
    recordings: Mapping[str, str] = field(default_factory=dict)
    direction: str | None = None
    voice: bool = True
    campaign: bool = False
    keys_need_hash: bool = False

    @property
    def do_not_call(self) -> Mapping[str, Any] | None:
        """The settings of do_not_call: `key` and `words` by which a caller refuses further calls. None if disabled."""
        chosen = self.configurations.get(DO_NOT_CALL)
        settings = chosen if isinstance(chosen, Mapping) else {}
        return None if as_boolean(settings.get("enabled")) is False else settings

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
    of the latest request. `entered` is true until the node has spoken, `call_due` until its call is made. `calls` are
    the functions of the model's last reply that are still to run, the first of them running, offered at node
    `calls_from`; or the call of that node, which was entered. `rounds` counts the model's replies in this turn and the
    ways taken after calls that failed, `spoken` the characters said in it, `said` the parts that were given out of a
    reply that is still being written, `silences` the caller's silences in a row, `failures` the model's failures in a
    row: without words of its own or a new node between them. `missing` names template variables that had no value,
    `usage` sums tokens by model.
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
    said: str = ""
    silences: int = 0
    failures: int = 0
    caller_spoke: bool = False
    entered: bool = False
    call_due: bool = False
    calls: tuple[ToolCall, ...] = ()
    calls_from: str = ""
    transfer_to: str = ""
    transfer_timeout: float = 0.0
    reason: str = ""

    def changed(self, **changes: Any) -> "State":
        """A copy with other values of these fields: `dataclasses.replace` in a sixth of its time, 17 times a turn.

        :raises TypeError: for a name that is no field.
        """
        if not changes.keys() <= self.__dict__.keys():
            raise TypeError(f"No fields of a state: {', '.join(sorted(changes.keys() - self.__dict__.keys()))}")
        state = object.__new__(State)
        state.__dict__.update(self.__dict__, **changes)
        return state

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
    campaign: bool = False,
    keys_need_hash: bool = False,
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
        campaign,
        keys_need_hash,
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


# -- the disposition and the tags of a call


def with_disposition(state: State) -> dict[str, Any]:
    """Return an ended call's gathered_context with call_disposition, mapped_call_disposition and call_tags.

    A call_disposition that was extracted or set by a tool wins over the reason for which the call ended, but not over
    do_not_call; a call that ended because the model failed has the tag pipeline_error all the same.
    """
    context = state.gathered_context
    gathered = str(context.get("call_disposition") or "").strip()
    disposition = state.reason if state.reason == DO_NOT_CALL else gathered or state.reason
    tags = [*tags_of(context), *([state.reason] if state.reason == "pipeline_error" else [])]
    if state.setup.voice:
        tags += ["user_speech"] if state.caller_spoke else []
        tags += [str(value) for name, value in context.items() if name.startswith("tag_") and value not in (None, "")]
    return {
        **context,
        "call_disposition": disposition,
        "mapped_call_disposition": disposition,
        "call_tags": list(dict.fromkeys([*tags, disposition])),
    }


def tags_of(context: Mapping[str, Any]) -> list[str]:
    """Return the call_tags gathered so far as texts; none when they aren't a list."""
    tags = context.get("call_tags")
    return [str(tag) for tag in tags] if isinstance(tags, list) else []


# -- the size of the history, which the model gets with each request


def size_of(message: Message) -> int:
    """The bytes of a message: its content, the functions that it calls, and what is kept with it."""
    found = size(message.get("content") or "")
    for call in message.get("tool_calls") or ():  # without a generator: a long history is counted in each turn
        found += size(call["function"]["name"]) + size(call["function"]["arguments"])
    if kept := message.get(KEPT):
        found += size(json.dumps(kept, ensure_ascii=False))
    return found


def joined(messages: Iterable[Message], message: Message) -> tuple[Message, ...] | None:
    """A history with a message added; None when it would become too large.

    Where it has no room, what is kept with its oldest messages is dropped: models can do without, and callers can't.
    """
    history = list(messages)
    excess = sum(map(size_of, history)) + size_of(message) - LONGEST_HISTORY
    for place, each in enumerate(history):
        if excess <= 0:
            break
        if each.get(KEPT):
            history[place] = {name: value for name, value in each.items() if name != KEPT}
            excess -= size_of(each) - size_of(history[place])
    return (*history, message) if excess <= 0 else None


def cut_short(messages: Iterable[Message], unplayed: str) -> tuple[Message, ...]:
    """The history with the agent's latest messages as the caller heard them, who interrupted it before `unplayed`.

    Letters and digits are counted from the end: a turn says more than messages, and messages keep other blanks.
    """
    history, left = list(messages), sum(map(str.isalnum, unplayed))
    for place in reversed(range(len(history))):
        message = history[place]
        if not left or message["role"] == "user":
            break
        if message["role"] == "assistant" and message["content"]:
            text: str = message["content"]
            end = len(text)
            while end and (left or not text[end - 1].isalnum()):
                end -= 1
                left -= text[end].isalnum()
            history[place] = {**message, "content": f"{text[:end]}\u2026"}
    return tuple(history)
