"""Actions: what `step` asks its caller to do. Only a Request is answered, by an event with the same number.

Requests and their answers: Fetch and Fetched; AskModel and ModelReplied or ModelFailed; Extract and
VariablesExtracted or ExtractionFailed; RunTool and ToolReturned; Transfer and TransferSettled. Listen is followed by
CallerSaid or CallerSilent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from .events import Answer
from .extraction import Variable
from .phrases import phrases
from .serialization import Tagged

# In OpenAI's shape, and beside that: a user's message has the member KEYED if its text was keyed, not spoken; an
# assistant's has KEPT if its model's server sent more than text and calls (see events.ModelReplied).
Message = Mapping[str, Any]
KEYED, KEPT = "keyed", "kept"
Occasion = Literal["opening", "reply", "idle", "goodbye"]
# How long a pause ends what the caller says: in seconds, or left to what the carrier can do best.
EndOfSpeech = float | Literal["quick", "normal", "patient"]


@dataclass(frozen=True)
class Function:
    """A function offered to the model: an edge or a tool.

    An edge has a `label`, and its condition as description. `parameters` is a JSON schema. `speech`, a template, is
    spoken before the tool runs. `tool_uuid` is the stored tool, `document_uuids` are the documents it searches.
    `transfers` says whether the tool transfers the call. With `on_entry` it is the tool that the node itself calls when
    it is entered, and isn't offered.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    label: str | None = None
    tool_uuid: str | None = None
    speech: str = ""
    document_uuids: tuple[str, ...] = ()
    transfers: bool = False
    on_entry: bool = False


@dataclass(frozen=True)
class Action(Tagged):
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
    """Wait for the caller to speak or to press keys.

    CallerSilent follows `timeout_seconds` after the last speech if they do neither. `hints` are phrases that the
    recogniser is to expect. Keys end with `#`, after a pause, or when there are `keys` of them. Speech ends after the
    pause that `end_of_speech` asks for.
    """

    timeout_seconds: float
    interruptible: bool
    hints: tuple[str, ...] = ()
    keys: int | None = None
    end_of_speech: EndOfSpeech = "normal"


@dataclass(frozen=True)
class Redirect(Action):
    """Have the carrier ask for turn number `turn` again, because its reply isn't ready yet.

    It has been given the first `part` actions of that turn.
    """

    turn: int
    part: int = 0


@dataclass(frozen=True)
class HangUp(Action):
    """End the call at the carrier, after the speech before this action."""


@dataclass(frozen=True)
class Finish(Action):
    """The conversation has ended, for `reason` (a disposition code) and with `disposition`; its state is final."""

    reason: str
    disposition: str


@dataclass(frozen=True)
class Record(Action):
    """An event for the run's log: `type` is such as "rtf-bot-text", `at` in seconds since 1970, `payload` by type."""

    type: str
    payload: Mapping[str, Any]
    at: float
    turn: int
    node_id: str
    node_name: str


@dataclass(frozen=True)
class Request(Action):
    """The base of actions that are answered; `at` is the time of the request in seconds since 1970."""

    number: int
    at: float


@dataclass(frozen=True)
class Fetch(Request):
    """Fetch context from the URL that the start node names, before anything is said."""

    url: str
    credential_uuid: str | None


@dataclass(frozen=True)
class AskModel(Request):
    """Ask the language model to continue the conversation.

    `system` is the whole system prompt, `prompt` the node's own part of it; `messages` is the history in OpenAI's
    shape. `greeting` is that of a start node, or empty. `script` is what the scripted model speaks instead of the
    prompt, or empty; with a `script_problem`, a sentence, it can't be made. `occasion`: "opening" when the node was
    just entered, "reply" to the caller or to function results, "idle" after one silence, "goodbye" after the second,
    which ends the call. `phrases` are the service's own sentences in the workflow's language, by name; `end_keys` is
    what is said of the key that ends others, where it is needed. `takes_opt_outs` says whether a caller who wants no
    more calls ends the call. `first_sentence` says whether the reply's first sentence may be spoken while the model
    still writes, although nobody listens to the caller meanwhile. With a `problem`, a sentence, the prompt can't be
    made: the answer is ModelFailed, and no model is asked.
    """

    node_id: str
    node_name: str
    occasion: Occasion
    system: str
    prompt: str
    greeting: str
    messages: tuple[Message, ...]
    functions: tuple[Function, ...]
    phrases: Mapping[str, str] = field(default_factory=lambda: phrases({}))
    problem: str = ""
    takes_opt_outs: bool = True
    end_keys: str = ""
    script: str = ""
    script_problem: str = ""
    first_sentence: bool = True

    @property
    def opening(self) -> bool:
        """Whether the node was just entered and has to speak."""
        return self.occasion == "opening"

    @property
    def idle(self) -> bool:
        """Whether the model is asked because the caller is silent."""
        return self.occasion in ("idle", "goodbye")


@dataclass(frozen=True)
class Extract(Request):
    """Find the values of `variables` in `messages`; `prompt` is the workflow author's instruction, rendered.

    With a `problem`, a sentence, the prompt can't be made: the answer is ExtractionFailed, and no model is asked.
    """

    node_id: str
    node_name: str
    variables: tuple[Variable, ...]
    prompt: str
    messages: tuple[Message, ...]
    problem: str = ""


@dataclass(frozen=True)
class RunTool(Request):
    """Run a tool that the model called, or, with `on_entry`, the node that was entered.

    Its templates are rendered from the two contexts; `saved` are the results of nodes' calls, by variable. `function`
    names one of an MCP tool's functions.
    """

    node_id: str
    call_id: str
    name: str
    tool_uuid: str | None
    arguments: Mapping[str, Any]
    initial_context: Mapping[str, Any] = field(default_factory=dict)
    gathered_context: Mapping[str, Any] = field(default_factory=dict)
    document_uuids: tuple[str, ...] = ()
    saved: Mapping[str, Any] = field(default_factory=dict)
    on_entry: bool = False
    function: str = ""


@dataclass(frozen=True)
class Transfer(Request):
    """Transfer the call to `destination`, which has `timeout_seconds` to answer."""

    destination: str
    timeout_seconds: float


def iso(at: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601 UTC with milliseconds and ``Z``."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- protocols of what a conversation needs from outside


class LanguageModel(Protocol):
    """A language model. It raises nothing: a failure is an answer too (ModelFailed, ExtractionFailed)."""

    def reply(self, ask: AskModel) -> Answer: ...

    def extract(self, request: Extract) -> Answer: ...
