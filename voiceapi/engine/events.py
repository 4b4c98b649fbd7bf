"""What can happen to a conversation. A run is its events, from Started to CallEnded or the agent's own ending.

`at` is the time of each event in seconds since 1970, UTC; the engine knows no other clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .serialization import Family


@dataclass(frozen=True)
class ToolCall:
    """A function that the model wants called; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str = "{}"


@dataclass(frozen=True)
class Event(Family):
    """The base of all events."""

    at: float


@dataclass(frozen=True)
class Started(Event):
    """The callee answered, or the chat was opened."""


@dataclass(frozen=True)
class CallerSaid(Event):
    """The caller's words of one turn; blank words count as silence."""

    text: str


@dataclass(frozen=True)
class CallerSilent(Event):
    """The caller said nothing for as long as Listen waits."""


@dataclass(frozen=True)
class CallEnded(Event):
    """Somebody or something outside the conversation ended it; after an ending it changes nothing.

    `reason` is a disposition code: user_hangup, voicemail_detected, call_duration_exceeded, pipeline_error ...
    """

    reason: str


@dataclass(frozen=True)
class Answer(Event):
    """The base of answers to a request; `number` is that of the request."""

    number: int


@dataclass(frozen=True)
class Spent(Answer):
    """The base of answers of a language model; `usage` counts tokens by kind and is added up for `model`.

    `model` is "provider|||model"; `seconds` is how long it took, 0 where nobody measured.
    """

    model: str = field(default="", kw_only=True)
    usage: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)


@dataclass(frozen=True)
class Fetched(Answer):
    """The pre-call fetch answered: `context` is laid over the initial context. After a failure it is empty."""

    context: Mapping[str, Any]
    error: str = ""


@dataclass(frozen=True)
class ModelReplied(Spent):
    """The model's words, the functions it wants called, or both."""

    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class ModelFailed(Spent):
    """The model gave no usable reply, retries included."""

    error: str


@dataclass(frozen=True)
class VariablesExtracted(Spent):
    """The values found, by variable, as the model gave them; a variable not found is absent or null."""

    values: Mapping[str, Any]


@dataclass(frozen=True)
class ExtractionFailed(Spent):
    """Variables could not be extracted; the conversation goes on without them."""

    error: str


@dataclass(frozen=True)
class ToolReturned(Answer):
    """A tool was carried out, well or badly: `result` is JSON data for the model.

    `speech` is spoken first. With `end_reason` the call ends then; with `transfer_to` the caller is put through to
    that number, which has `transfer_timeout` seconds to answer.
    """

    result: Any
    speech: str = ""
    end_reason: str = ""
    transfer_to: str = ""
    transfer_timeout: float = 30.0


@dataclass(frozen=True)
class TransferSettled(Answer):
    """The transfer was answered, and the call is over for the agent, or it was not; `result` tells the model."""

    answered: bool
    result: Any
