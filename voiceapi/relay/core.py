"""One call over a text relay, pure: frames and turns' answers in, frames and orders out. It reads no clock.

Silence counts from the end of the agent's speech, as the carrier tells it, else as long as the text takes to speak.
What the caller says while a turn is decided is kept for the next one. After an interruption nothing more of that turn
is sent. Where a new turn's words, or the end, would cut what is still spoken, they come after it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..engine.actions import Action, Listen, Play, Redirect, Say
from ..strict_json import storable
from ..telephony.carriers.events import CallerInput, Keys, Silence, Speech
from ..telephony.carriers.webhook import pieces

# How long keys are waited for after one of them, unless `#` or their number ends them.
KEY_SECONDS = 3.0
# How long a character takes to speak, at most and at least, and how long a caller speaks without a pause, where nothing
# is heard of their end.
SECONDS_A_CHARACTER, LEAST_SECONDS_A_CHARACTER, LONGEST_SPEECH_SECONDS = 0.1, 0.03, 60.0
# How long it takes until words that were sent begin to be spoken, at most.
BEGIN_SECONDS = 1.5
# Wrong frames in a row that close the socket, and frames within a second.
MOST_WRONG, MOST_FRAMES = 10, 50
# Close codes of RFC 6455.
NORMAL, BAD_DATA, REFUSED, TOO_LARGE, FAILED = 1000, 1007, 1008, 1009, 1011


# -- frames from a carrier, in the same terms for every dialect


@dataclass(frozen=True, slots=True)
class Setup:
    """The first frame, which names the call, by any of these."""

    call_ids: tuple[str, ...]


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
class Collected:
    """Keys that the carrier has collected until they ended."""

    keys: str


@dataclass(frozen=True, slots=True)
class Interruption:
    """The caller has interrupted the agent, of whose last speech they had heard this; None if nobody knows.

    :param unsent: the end of that speech, which the carrier hadn't taken yet.
    """

    played: str | None
    unsent: str = ""


@dataclass(frozen=True, slots=True)
class Latency:
    """How long something took at the carrier, in milliseconds, by the name that the run's log has for it."""

    name: str
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Speaking:
    """The agent, or else the caller, has begun or ended to speak."""

    agent: bool
    began: bool


@dataclass(frozen=True, slots=True)
class Played:
    """The agent has spoken this text to its end."""

    text: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """The carrier complains, such as about a frame of ours."""

    text: str


@dataclass(frozen=True, slots=True)
class Other:
    """A frame that needs no answer, and may be of a type that isn't known."""


Frame = Setup | Prompt | Key | Collected | Interruption | Latency | Speaking | Played | Trouble | Other


class WrongFrame(ValueError):
    """A frame that the carrier's documents don't allow; the reason is a sentence without what the caller said."""


def read_object(message: str) -> Mapping[str, Any]:
    """The JSON object that a message is, in which `type` is a text.

    :raises WrongFrame: when it is anything else.
    """
    try:
        found = storable(json.loads(message))
    except (ValueError, RecursionError):
        raise WrongFrame("It isn't JSON.") from None
    if not isinstance(found, Mapping) or not isinstance(found.get("type"), str):
        raise WrongFrame("It is no object with a type.")
    return found


Written = Mapping[str, Any]


class Dialect(ABC):
    """How one carrier writes its frames, each of which is the text of a message.

    `subprotocol` is what the handshake has to agree on, if anything. `reconnects` is true if the carrier opens another
    socket at the same address when one has dropped.
    """

    subprotocol: ClassVar[str] = ""
    reconnects: ClassVar[bool] = False

    @property
    def cuts_speech(self) -> bool:
        """True if the end, and the words of a new turn, cut what is still spoken of the turn before."""
        return False

    @abstractmethod
    def read(self, message: str) -> Sequence[Frame]:
        """:raises WrongFrame: when it is none of the carrier's."""

    def owed(self) -> Sequence[Written]:
        """The frames that those read since the last call ask for by themselves, such as to acknowledge them."""
        return ()

    @abstractmethod
    def say(self, token: str, *, last: bool, interruptible: bool) -> Sequence[Written]: ...
    def listen(self, listen: Listen) -> Sequence[Written]:
        """What tells the carrier how to listen after a turn, if it has to be told."""
        return ()

    @abstractmethod
    def end(self) -> Sequence[Written]: ...

    def take_over(self, before: Dialect) -> None:
        """Take over the words that the carrier hasn't taken of the one whose socket dropped, if it reconnects."""
        raise NotImplementedError


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
    # How many of its actions were given out before, and the seconds of what the carrier has reported of itself.
    part: int = 0
    reported: Mapping[str, float] = field(default_factory=dict)


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
    :param part: how many actions of that turn were given out before the socket of a relay dropped, which this one goes
        on with; None for a relay that begins.

    `wake_at` is when `wake` is to be called, None for never. `is_cut` is true once the turn that is being decided is
    interrupted, `is_over` once the session is to end.
    """

    def __init__(
        self,
        dialect: Dialect,
        call_id: str,
        number: int,
        said: str,
        listen: Listen,
        at: float,
        part: int | None = None,
    ) -> None:
        self.dialect = dialect
        self._call_id = call_id
        self._number = number
        self._said = said
        self._part = part
        self._unplayed = ""
        # Whether it isn't known how much of what was interrupted had been heard.
        self._is_unclear = False
        self._reported: dict[str, float] = {}
        self._listen = listen
        self._is_set_up = self._is_deciding = self._is_ending = self.is_over = self.is_cut = False
        self._waiting: deque[CallerInput] = deque()
        self._keys = ""
        self._keys_until: float | None = None
        self._silent_until: float | None = at + self._longest(said)
        # When what was said is spoken, at the latest and at the earliest; and whether the carrier reports on speech.
        self._spoken_at = self._not_spoken_before = at
        self._reports_speech = False
        self._expect_speech(said, at)
        self._wrong = 0
        self._times: deque[float] = deque(maxlen=MOST_FRAMES)

    def take_over(self, before: Talk) -> None:
        """Go on where the talk of the socket that dropped has stopped."""
        self.dialect.take_over(before.dialect)
        if before.is_cut and before._is_deciding:
            self.is_cut, self._said, self._unplayed = True, before._said, before._unplayed
            self._is_unclear = before._is_unclear
        before.is_over = True

    @property
    def wake_at(self) -> float | None:
        if self.is_over:
            return None
        if self._is_ending:
            return self._spoken_at
        times = [self._keys_until]
        if not self._is_deciding:
            times += [self._silent_until, self._spoken_at if self._waiting else None]
        return min((each for each in times if each is not None), default=None)

    def receive(self, message: str, at: float) -> list[Order]:
        """Take a message of the carrier."""
        if self.is_over:
            return []
        if len(self._times) == MOST_FRAMES and at - self._times[0] < 1:
            return self._close(REFUSED, f"The carrier sent more than {MOST_FRAMES} frames in a second.")
        self._times.append(at)
        try:
            frames = self.dialect.read(message)
            if not self._is_set_up and not all(isinstance(frame, Setup | Other) for frame in frames):
                raise WrongFrame("A frame came before the setup.")
        except WrongFrame as wrong:
            self._wrong += 1
            if self._wrong >= MOST_WRONG:
                return self._close(BAD_DATA, f"{wrong} It was the last of {MOST_WRONG} in a row.")
            return [Warn(f"A frame of the relay is wrong: {wrong}")]
        self._wrong = 0
        orders = [order for frame in frames for order in self._receive(frame, at)]
        owed = self.dialect.owed()
        return orders if any(isinstance(order, Close) for order in orders) else [*map(Send, owed), *orders]

    def _receive(self, frame: Frame, at: float) -> list[Order]:
        match frame:
            case Setup():
                if self._call_id not in frame.call_ids:
                    return self._close(REFUSED, "The relay is about another call than its address.")
                is_first, self._is_set_up = not self._is_set_up, True
                if is_first and self._part is not None:
                    self._is_deciding = True
                    return [TakeTurn(self._number, Silence(), self._part)]
            case Prompt() | Key() | Collected() if self._is_ending:
                pass
            case Prompt(text=text, whole=True) if text.strip():
                self._keys, self._keys_until = "", None
                return self._hear(Speech(text.strip()), at)
            case Prompt(whole=True):
                self._silent_until = self._silence_from(at)
            case Prompt():
                self._silent_until = at + LONGEST_SPEECH_SECONDS
            case Key():
                return self._press(frame.key, at)
            case Collected() if keys := Keys.read(frame.keys):
                return self._hear(keys, at)
            case Interruption():
                return self._interrupted(frame, at)
            case Latency():
                self._reported[frame.name] = round(frame.milliseconds / 1000, 3)
            case Speaking(began=True):
                self._reports_speech = True
                self._silent_until = at + (self._longest(self._said) if frame.agent else LONGEST_SPEECH_SECONDS)
            case Speaking():
                self._reports_speech = True
                # Sooner it ends what was said before the latest words, which the carrier hadn't got yet.
                is_spoken = frame.agent and at >= self._not_spoken_before
                orders = self._end_speech(at) if is_spoken else []
                self._silent_until = self._silence_from(at)
                return orders
            case Played() if (played := _letters(frame.text)) and _letters(self._said).endswith(played):
                self._reports_speech = True
                return self._end_speech(at)
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
                self._expect_speech(token, at)
                orders += map(Send, self.dialect.say(token, last=False, interruptible=action.interruptible))
        if isinstance(last, Redirect):
            return orders
        if self.is_cut:
            orders += [NoteCut(self._said, self._unplayed)] if self._unplayed or not self._is_unclear else []
        elif self._said:
            orders += map(Send, self.dialect.say("", last=True, interruptible=True))
        self._is_deciding = False
        if isinstance(last, Listen):
            self._listen = last
            orders += map(Send, self.dialect.listen(last))
            silent_until = at + (last.timeout_seconds if self.is_cut else self._longest(self._said))
            self._silent_until = max(silent_until, self._spoken_at)
            return orders + self._go_on(at)
        self._is_ending = True  # a hang-up or a transfer is in the document that the carrier asks for then
        return orders + self._go_on(at)

    def wake(self, at: float) -> list[Order]:
        """Take what it means that so much time has passed."""
        if self._is_ending or (self._waiting and not self._is_deciding and at >= self._spoken_at):
            return self._go_on(at)
        if self._keys_until is not None and at >= self._keys_until:
            return self._end_keys(at)
        if self._silent_until is None or at < self._silent_until or self._is_deciding or self.is_over:
            return []
        return self._ask(Silence()) if self._is_set_up else self._close(REFUSED, "The relay's setup never came.")

    # -- what the caller does

    def _hear(self, given: CallerInput, at: float) -> list[Order]:
        if not self._reports_speech and not self._is_deciding:
            self._spoken_at = self._not_spoken_before = at  # nobody knows, and each answer would have to wait
        last = self._waiting[-1] if self._waiting else None
        if isinstance(given, Speech) and isinstance(last, Speech):
            self._waiting[-1] = Speech(f"{last.text} {given.text}")
        else:
            self._waiting.append(given)
        return self._go_on(at)

    def _go_on(self, at: float) -> list[Order]:
        """End the session, or take up what the caller has said, as soon as it cuts nothing."""
        if self._is_deciding or self.is_over or (self.dialect.cuts_speech and at < self._spoken_at):
            return []
        if self._is_ending:
            self.is_over = True
            return [*map(Send, self.dialect.end())]
        return self._ask(self._waiting.popleft()) if self._waiting else []

    def _expect_speech(self, words: str, at: float) -> None:
        self._spoken_at = max(self._spoken_at, at + BEGIN_SECONDS) + SECONDS_A_CHARACTER * len(words)
        self._not_spoken_before = max(self._not_spoken_before, at) + LEAST_SECONDS_A_CHARACTER * len(words)

    def _end_speech(self, at: float) -> list[Order]:
        self._spoken_at = self._not_spoken_before = at
        return self._go_on(at)

    def _press(self, key: str, at: float) -> list[Order]:
        self._silent_until = at + KEY_SECONDS + self._listen.timeout_seconds
        if key == "#":
            return self._end_keys(at)
        self._keys += key
        self._keys_until = at + KEY_SECONDS
        return self._end_keys(at) if len(self._keys) == self._listen.keys else []

    def _end_keys(self, at: float) -> list[Order]:
        keys, self._keys, self._keys_until = Keys.read(self._keys), "", None
        return [] if keys is None else self._hear(keys, at)

    def _interrupted(self, cut: Interruption, at: float) -> list[Order]:
        self._silent_until = at + self._listen.timeout_seconds
        is_known_later = self._is_unclear and cut.played is not None
        if not self._said or (self.is_cut and not is_known_later):
            return self._end_speech(at)
        if cut.played is None:
            self._said, unplayed = self._said.removesuffix(cut.unsent), cut.unsent.strip()
        else:
            self._said, unplayed = split(self._said, cut.played)
        self._unplayed = f"{unplayed} {self._unplayed}".strip() if is_known_later else unplayed
        self._is_unclear = cut.played is None
        self.is_cut = self._is_deciding  # then more of the turn may follow, which isn't sent
        noted = [NoteCut(self._said, self._unplayed)] if unplayed and not self.is_cut else []
        return [*noted, *self._end_speech(at)]

    def _ask(self, given: CallerInput) -> list[Order]:
        self._number += 1
        self._is_deciding, self.is_cut, self._said, self._unplayed = True, False, "", ""
        self._is_unclear = False
        reported, self._reported = self._reported, {}
        return [TakeTurn(self._number, given, reported=reported)]

    def _close(self, code: int, sentence: str) -> list[Order]:
        self.is_over = True
        return [Warn(sentence), Close(code)]

    def _silence_from(self, at: float) -> float:
        """When a caller who doesn't speak counts as silent, but not while the agent still speaks."""
        return max(at, self._spoken_at) + self._listen.timeout_seconds

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
