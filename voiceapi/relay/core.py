"""One call over a text relay, pure: frames and turns' answers in, frames and orders out. It reads no clock.

Silence counts from the end of the agent's speech, as the carrier tells it, else as long as the text takes to speak.
What the caller says while a turn is decided is kept for the next one. After an interruption nothing more of that turn
is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..engine.actions import Action, Listen, Play, Redirect, Say
from ..telephony.carriers.events import CallerInput, Keys, Silence, Speech
from ..telephony.carriers.webhook import pieces

# How long keys are waited for after one of them, unless `#` or their number ends them.
KEY_SECONDS = 3.0
# How long a character takes to speak, at most, and how long a caller speaks without a pause, where nothing is heard of
# their end.
SECONDS_A_CHARACTER, LONGEST_SPEECH_SECONDS = 0.1, 60.0
# Wrong frames in a row that close the socket, and frames within a second.
MOST_WRONG, MOST_FRAMES = 10, 50
# Close codes of RFC 6455.
NORMAL, BAD_DATA, REFUSED, TOO_LARGE, FAILED = 1000, 1007, 1008, 1009, 1011


# -- frames from a carrier, in the same terms for every dialect


@dataclass(frozen=True, slots=True)
class Setup:
    """The first frame, which names the call."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the caller has said; unless it is `whole`, more follows, with this text again."""

    text: str
    whole: bool


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the telephone."""

    key: str


@dataclass(frozen=True, slots=True)
class Interruption:
    """The caller has interrupted the agent, of whose last speech they had heard this."""

    played: str


@dataclass(frozen=True, slots=True)
class Speaking:
    """The agent, or else the caller, has begun or ended to speak."""

    agent: bool
    began: bool


@dataclass(frozen=True, slots=True)
class Trouble:
    """The carrier complains, such as about a frame of ours."""

    text: str


@dataclass(frozen=True, slots=True)
class Other:
    """A frame that needs no answer, and may be of a type that isn't known."""


Frame = Setup | Prompt | Key | Interruption | Speaking | Trouble | Other


class WrongFrame(ValueError):
    """A frame that the carrier's documents don't allow; the reason is a sentence without what the caller said."""


class Dialect(Protocol):
    """How one carrier writes its frames, each of which is the text of a message."""

    def read(self, message: str) -> Frame:
        """:raises WrongFrame: when it is none of the carrier's."""

    def text(self, token: str, *, last: bool, interruptible: bool) -> Mapping[str, Any]: ...
    def end(self) -> Mapping[str, Any]: ...


# -- orders to who has the socket


@dataclass(frozen=True, slots=True)
class Send:
    """Send a frame."""

    frame: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TakeTurn:
    """Have a turn decided, and give its actions to `Talk.take`, part by part."""

    number: int
    caller_input: CallerInput


@dataclass(frozen=True, slots=True)
class NoteCut:
    """Store what of the latest turn was heard, and what was not."""

    played: str
    unplayed: str


@dataclass(frozen=True, slots=True)
class Close:
    """Close the socket with this code."""

    code: int


@dataclass(frozen=True, slots=True)
class Warn:
    """Log a sentence."""

    sentence: str


Order = Send | TakeTurn | NoteCut | Close | Warn


class Talk:
    """What one socket has come to.

    :param call_id: as the setup has to name the call.
    :param number: the turn whose end the document had.
    :param said: what was spoken in it, by the document and before.
    :param listen: how the agent listens after it.
    :param at: now, in seconds of any clock; so are all other times.

    `wake_at` is when `wake` is to be called, None for never. `is_cut` is true once the turn that is being decided is
    interrupted, `is_over` once the session is to end.
    """

    def __init__(self, dialect: Dialect, call_id: str, number: int, said: str, listen: Listen, at: float) -> None:
        self._dialect = dialect
        self._call_id = call_id
        self._number = number
        self._said = said
        self._unplayed = ""
        self._listen = listen
        self._is_set_up = self._is_deciding = self.is_over = self.is_cut = False
        self._waiting: deque[CallerInput] = deque()
        self._keys = ""
        self._keys_until: float | None = None
        self._silent_until: float | None = at + self._longest(said)
        self._wrong = 0
        self._times: deque[float] = deque(maxlen=MOST_FRAMES)

    @property
    def wake_at(self) -> float | None:
        times = [self._keys_until, None if self._is_deciding else self._silent_until]
        known = [each for each in times if each is not None]
        return min(known) if known and not self.is_over else None

    def receive(self, message: str, at: float) -> list[Order]:
        """Take a message of the carrier."""
        if self.is_over:
            return []
        if len(self._times) == MOST_FRAMES and at - self._times[0] < 1:
            return self._close(REFUSED, f"The carrier sent more than {MOST_FRAMES} frames in a second.")
        self._times.append(at)
        try:
            frame = self._dialect.read(message)
            if not self._is_set_up and not isinstance(frame, Setup | Other):
                raise WrongFrame("A frame came before the setup.")
        except WrongFrame as wrong:
            self._wrong += 1
            if self._wrong >= MOST_WRONG:
                return self._close(BAD_DATA, f"{wrong} It was the last of {MOST_WRONG} in a row.")
            return [Warn(f"A frame of the relay is wrong: {wrong}")]
        self._wrong = 0
        match frame:
            case Setup():
                if frame.call_id != self._call_id:
                    return self._close(REFUSED, "The relay is about another call than its address.")
                self._is_set_up = True
            case Prompt(text=text, whole=True) if text.strip():
                self._keys, self._keys_until = "", None
                return self._hear(Speech(text.strip()))
            case Prompt():
                self._silent_until = at + LONGEST_SPEECH_SECONDS
            case Key():
                return self._press(frame.key, at)
            case Interruption():
                return self._interrupted(frame.played, at)
            case Speaking():
                longest = self._longest(self._said) if frame.agent else LONGEST_SPEECH_SECONDS
                self._silent_until = at + (longest if frame.began else self._listen.timeout_seconds)
            case Trouble():
                return [Warn(f"The carrier complains: {frame.text}")]
        return []

    def take(self, actions: Sequence[Action], at: float) -> list[Order]:
        """Take what a turn says next; after the last of its parts, what it ends with."""
        *_, last = actions
        orders: list[Order] = []
        if self.is_over:
            return orders
        spoken = [each for each in actions if isinstance(each, Say | Play) and each.text.strip()]
        if self.is_cut:
            self._unplayed = " ".join(filter(None, (self._unplayed, *(each.text for each in spoken))))
            spoken = []
        for action in spoken:
            for piece in pieces(action.text):
                token = f" {piece}" if self._said else piece
                self._said += token
                orders.append(Send(self._dialect.text(token, last=False, interruptible=action.interruptible)))
        if isinstance(last, Redirect):
            return orders
        if self.is_cut:
            orders.append(NoteCut(self._said, self._unplayed))
        elif self._said:
            orders.append(Send(self._dialect.text("", last=True, interruptible=True)))
        self._is_deciding = False
        if isinstance(last, Listen):
            self._listen = last
            self._silent_until = at + (last.timeout_seconds if self.is_cut else self._longest(self._said))
            return orders + (self._ask(self._waiting.popleft()) if self._waiting else [])
        self.is_over = True  # a hang-up or a transfer is in the document that the carrier asks for then
        return [*orders, Send(self._dialect.end())]

    def wake(self, at: float) -> list[Order]:
        """Take what it means that so much time has passed."""
        if self._keys_until is not None and at >= self._keys_until:
            return self._end_keys()
        if self._silent_until is None or at < self._silent_until or self._is_deciding or self.is_over:
            return []
        return self._ask(Silence()) if self._is_set_up else self._close(REFUSED, "The relay's setup never came.")

    # -- what the caller does

    def _hear(self, given: CallerInput) -> list[Order]:
        if not self._is_deciding:
            return self._ask(given)
        last = self._waiting[-1] if self._waiting else None
        if isinstance(given, Speech) and isinstance(last, Speech):
            self._waiting[-1] = Speech(f"{last.text} {given.text}")
        else:
            self._waiting.append(given)
        return []

    def _press(self, key: str, at: float) -> list[Order]:
        self._silent_until = at + KEY_SECONDS + self._listen.timeout_seconds
        if key == "#":
            return self._end_keys()
        self._keys += key
        self._keys_until = at + KEY_SECONDS
        return self._end_keys() if len(self._keys) == self._listen.keys else []

    def _end_keys(self) -> list[Order]:
        keys, self._keys, self._keys_until = Keys.read(self._keys), "", None
        return [] if keys is None else self._hear(keys)

    def _interrupted(self, played: str, at: float) -> list[Order]:
        self._silent_until = at + self._listen.timeout_seconds
        if not self._said or self.is_cut:
            return []
        self._said, self._unplayed = split(self._said, played)
        self.is_cut = self._is_deciding  # then more of the turn may follow, which isn't sent
        return [NoteCut(self._said, self._unplayed)] if self._unplayed and not self.is_cut else []

    def _ask(self, given: CallerInput) -> list[Order]:
        self._number += 1
        self._is_deciding, self.is_cut, self._said, self._unplayed = True, False, "", ""
        return [TakeTurn(self._number, given)]

    def _close(self, code: int, sentence: str) -> list[Order]:
        self.is_over = True
        return [Warn(sentence), Close(code)]

    def _longest(self, said: str) -> float:
        return SECONDS_A_CHARACTER * len(said) + self._listen.timeout_seconds


def split(said: str, played: str) -> tuple[str, str]:
    """What was said, as far as a carrier reports that it was heard, and the rest.

    Only letters and digits are compared: the carrier may write the rest in another way. What it reports may begin in
    the middle, and if it isn't found, its length counts.
    """
    letters, wanted = _letters(said), _letters(played)
    begin = max(letters.find(wanted), 0)
    count = begin + len(wanted)
    end = 0
    while end < len(said) and (count or not said[end].isalnum()):
        count -= bool(_letters(said[end]))
        end += 1
    end = end if wanted else 0
    return said[:end].rstrip(), said[end:].strip()


def _letters(text: str) -> str:
    return "".join(letter.lower()[0] for letter in text if letter.isalnum())
