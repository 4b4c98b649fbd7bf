"""Events: what happens to a conversation, from Started to CallEnded. Replaying a run's events gives its state again.

`at` is the time of an event in seconds since 1970; the engine reads no clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .serialization import Tagged


@dataclass(frozen=True)
class ToolCall:
    """A function that the model wants called; `arguments` is the JSON text as the model wrote it.

    `why` is what the scripted model called it for, see rtf-node-transition's `reason` in docs/conversation.md; empty of
    other models. It explains the call, and makes no other call of it.
    """

    id: str
    name: str
    arguments: str = "{}"
    why: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Event(Tagged):
    """The base of all events."""

    at: float


@dataclass(frozen=True)
class Started(Event):
    """The callee answered, or the chat was opened."""


@dataclass(frozen=True)
class CallerSaid(Event):
    """What the caller said in one turn, or the keys that they pressed if it was `keyed`; blank text is silence."""

    text: str
    keyed: bool = False


@dataclass(frozen=True)
class CallerSilent(Event):
    """The caller said nothing for as long as Listen waits."""


@dataclass(frozen=True)
class SpeechCut(Event):
    """The caller has interrupted what the agent said since their last turn: they heard `played`, not `unplayed`."""

    played: str
    unplayed: str


@dataclass(frozen=True)
class CallEnded(Event):
    """The call was ended from outside: by the caller, the carrier or the service. Ignored once the call has ended.

    `reason` is a disposition code: user_hangup, voicemail_detected, call_duration_exceeded, pipeline_error ...
    """

    reason: str


@dataclass(frozen=True)
class Answer(Event):
    """The base of answers to a request; `number` is that of the request."""

    number: int


@dataclass(frozen=True)
class ModelAnswer(Answer):
    """The base of a language model's answers.

    `model` is "provider|||model", `usage` its tokens by kind such as "total_tokens", `seconds` how long it took, and
    `first_seconds` how long until the first word of a streamed answer; each is 0 when that isn't known.
    """

    model: str = field(default="", kw_only=True)
    usage: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)
    first_seconds: float = field(default=0.0, kw_only=True)


@dataclass(frozen=True)
class Fetched(Answer):
    """The pre-call fetch has ended: `context` is merged into the initial context; it is empty after an `error`."""

    context: Mapping[str, Any]
    error: str = ""


@dataclass(frozen=True)
class ModelSpoke(Answer):
    """A part of the model's reply, which is spoken while the rest is written: `text` follows the parts before it.

    ModelReplied has the whole text in the end. So a fold over a conversation's events may leave parts out, unless the
    conversation ended in the middle of the reply.
    """

    text: str


@dataclass(frozen=True)
class ModelReplied(ModelAnswer):
    """The model spoke, called functions, or both; `notes` says, for the run's log, what was left out of its words.

    With an `end_reason`, a disposition code, the call ends after the text; `end_tag` is added to its call_tags.
    `misses`: how many of the caller's turns in a row the model didn't understand, this one included; 0 when it did, and
    for a model that can't tell. `kept` is what else the model's server sent and may want back, in that server's own
    terms; it is kept with the message. `looked_at` explains a miss: each edge's label as `edge`, and `words` that
    lead to it.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    notes: tuple[str, ...] = ()
    end_reason: str = ""
    end_tag: str = ""
    misses: int = 0
    kept: Mapping[str, Any] = field(default_factory=dict)
    looked_at: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class ModelFailed(ModelAnswer):
    """The model gave no usable reply, retries included."""

    error: str


@dataclass(frozen=True)
class VariablesExtracted(ModelAnswer):
    """The values by variable as the model gave them; a variable that wasn't found is absent or null."""

    values: Mapping[str, Any]


@dataclass(frozen=True)
class ExtractionFailed(ModelAnswer):
    """Variables could not be extracted; the conversation goes on without them."""

    error: str


@dataclass(frozen=True)
class ToolReturned(Answer):
    """A tool has run or failed: `result` is JSON data for the model.

    `speech` is spoken first. Then the call ends if there is an `end_reason`, a disposition code, or is transferred if
    there is a `transfer_to`, an address with `transfer_timeout` seconds to answer.
    """

    result: Any
    speech: str = ""
    end_reason: str = ""
    transfer_to: str = ""
    transfer_timeout: float = 30.0


def says_error(result: Any) -> bool:
    """Whether a tool's result says that it failed: its `status` is "error", or without one there is an `error`."""
    if not isinstance(result, Mapping):
        return False
    return result.get("status") == "error" or (result.get("status") is None and bool(result.get("error")))


@dataclass(frozen=True)
class TransferSettled(Answer):
    """A transfer was answered, which ends the call for the agent, or failed; `result` is JSON data for the model.

    `caller_hung_up`: it wasn't answered because the caller hung up, which ends the call as well.
    """

    answered: bool
    result: Any
    caller_hung_up: bool = False
