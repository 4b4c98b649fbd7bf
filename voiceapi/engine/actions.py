"""What the engine wants done. A Request is answered by an event that carries its number; everything else is not.

Request and answers: Fetch and Fetched; AskModel and ModelReplied or ModelFailed; Extract and VariablesExtracted or
ExtractionFailed; RunTool and ToolReturned; Transfer and TransferSettled. Listen ends in CallerSaid or CallerSilent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from .extraction import Variable
from .serialization import Family

Message = Mapping[str, Any]
Occasion = Literal["opening", "reply", "idle", "goodbye"]


@dataclass(frozen=True)
class Function:
    """A function offered to the model: an edge, which has a `label` and whose description is its condition, or a tool.

    `parameters` is a JSON schema. `speech`, a template, is spoken before the tool runs; `tool_uuid` names its record,
    `document_uuids` what it looks things up in.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    label: str | None = None
    tool_uuid: str | None = None
    speech: str = ""
    document_uuids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Action(Family):
    """The base of all actions."""


@dataclass(frozen=True)
class Say(Action):
    """Speak `text`; `interruptible` says whether the caller may talk over it."""

    text: str
    interruptible: bool


@dataclass(frozen=True)
class Play(Action):
    """Play a recording; `text` is its transcript, to be spoken by a carrier that can't play it."""

    recording_id: str
    text: str
    interruptible: bool


@dataclass(frozen=True)
class Pause(Action):
    """Wait before speaking."""

    seconds: float


@dataclass(frozen=True)
class Listen(Action):
    """Wait for the caller's words; silence of `timeout_seconds` after the last speech is CallerSilent."""

    timeout_seconds: float
    interruptible: bool


@dataclass(frozen=True)
class Redirect(Action):
    """Ask for turn number `turn` again: its reply is still being decided."""

    turn: int


@dataclass(frozen=True)
class HangUp(Action):
    """End the call at the carrier, after what was spoken before."""


@dataclass(frozen=True)
class Finish(Action):
    """The conversation is over and its state final: `reason` ended it, `disposition` is its outcome."""

    reason: str
    disposition: str


@dataclass(frozen=True)
class Record(Action):
    """Something to keep on the run, in the shapes of the API contract's feedback events."""

    type: str
    payload: Mapping[str, Any]
    at: float
    turn: int
    node_id: str
    node_name: str

    def as_event(self) -> dict[str, Any]:
        """Return the event as a run's logs carry it."""
        return {
            "type": self.type,
            "payload": dict(self.payload),
            "timestamp": iso(self.at),
            "turn": self.turn,
            "node_id": self.node_id,
            "node_name": self.node_name,
        }


@dataclass(frozen=True)
class Request(Action):
    """The base of actions that are answered; `at` is the time at which the request was made."""

    number: int
    at: float


@dataclass(frozen=True)
class Fetch(Request):
    """Ask the workflow's own server for context before anything is said."""

    url: str
    credential_uuid: str | None


@dataclass(frozen=True)
class AskModel(Request):
    """Ask the language model to go on. `system` is the composed prompt, `messages` the history in OpenAI's shape.

    `prompt` is the node's own prompt, rendered; `greeting` that of a start node, or empty. On the occasion
    "opening" the node was just entered and has to speak; "idle" asks whether the caller is there, "goodbye" ends the
    call for silence.
    """

    node_id: str
    node_name: str
    occasion: Occasion
    system: str
    prompt: str
    greeting: str
    messages: tuple[Message, ...]
    functions: tuple[Function, ...]

    @property
    def opening(self) -> bool:
        """Whether the node was just entered and has to speak."""
        return self.occasion == "opening"

    @property
    def idle(self) -> bool:
        """Whether it is the caller's silence that has to be spoken to."""
        return self.occasion in ("idle", "goodbye")


@dataclass(frozen=True)
class Extract(Request):
    """Find the values of `variables` in the conversation so far; `prompt` is the author's advice, rendered."""

    node_id: str
    node_name: str
    variables: tuple[Variable, ...]
    prompt: str
    messages: tuple[Message, ...]


@dataclass(frozen=True)
class RunTool(Request):
    """Carry out a tool that the model called; the contexts are there for its templates."""

    node_id: str
    call_id: str
    name: str
    tool_uuid: str | None
    arguments: Mapping[str, Any]
    initial_context: Mapping[str, Any] = field(default_factory=dict)
    gathered_context: Mapping[str, Any] = field(default_factory=dict)
    document_uuids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Transfer(Request):
    """Put the caller through to `destination`, which has `timeout_seconds` to answer."""

    destination: str
    timeout_seconds: float


def iso(at: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601 UTC with milliseconds and ``Z``."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
