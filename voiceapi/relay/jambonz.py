"""The frames of jambonz' websocket API: events of its own, acknowledgements and commands of ours.

What may be interrupted goes out as tokens, which jambonz' streaming voice speaks as they come. It refuses them while
its buffer is full, so the next one waits until it has taken the one before. What may not be interrupted goes out as
verbs, which it carries out one after the other, and it listens when they are done.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar

from ..calls.relays import Opening
from ..engine.actions import Listen
from ..telephony.carriers import jambonz
from ..telephony.carriers.webhook import amount, clean, pieces, text_at
from .core import (
    Collected,
    Dialect,
    Frame,
    Interruption,
    Latency,
    Other,
    Played,
    Prompt,
    Setup,
    Trouble,
    Written,
    WrongFrame,
    read_object,
)

# Characters of one token, of which its buffer takes 1,000, and bytes of the verbs of one message, of 24 KiB at most.
LONGEST_TOKEN, MOST_BYTES = 800, 20_000
# Events that it waits with until they are acknowledged.
SESSIONS = ("session:new", "session:redirect", "session:reconnect")
ACKNOWLEDGED = (*SESSIONS, "session:adulting", "verb:hook", "dial:confirm")


class Jambonz(Dialect):
    """One socket of jambonz.

    Events and fields that aren't known are let through.
    """

    subprotocol: ClassVar[str] = "ws.jambonz.org"
    reconnects: ClassVar[bool] = jambonz.Jambonz.reconnects

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._owed: list[Written] = []
        # Texts that it hasn't got, and None where they are to be spoken whatever follows; what it hasn't answered, with
        # its id; and whether it refused that because its buffer was full, and has said since that it isn't any more.
        self._queue: deque[str | None] = deque()
        self._asked: tuple[str, str] | None = None
        self._is_full = self._has_resumed = False
        # Once the first id is answered, what has the second one was lost with the socket before.
        self._probe = "", ""
        self._ids = count(1)
        # Whether its voice takes tokens; and whether the words of this turn go out as verbs, None before the first.
        self._streams = True
        self._by_verbs: bool | None = None
        self._listen: Listen | None = opening.listen
        self._spoke_by_verbs = False

    @property
    def cuts_speech(self) -> bool:
        # Verbs wait for each other.
        return not self._spoke_by_verbs

    def read(self, message: str) -> Sequence[Frame]:
        found = read_object(message)
        type, data = found["type"], found.get("data")
        if type in ACKNOWLEDGED:
            id = text_at(found, "msgid")
            if not id:
                raise WrongFrame("It has no msgid.")
            if type in SESSIONS:
                return self._begin(id, type == "session:reconnect", found)
            self._owed.append({"type": "ack", "msgid": id, "data": []})
        match type:
            case "verb:hook":
                return tuple(_heard(data))
            case "tts:tokens-result":
                return self._take_result(data)
            case "tts:streaming-event":
                return self._follow(data)
            case "jambonz:error":
                # What else it has quotes our frame.
                return (Trouble(f"{text_at(data, 'msg')} {text_at(data, 'details')}".strip()[:300]),)
        return (Other(),)

    def owed(self) -> Sequence[Written]:
        owed, self._owed = self._owed, []
        return owed

    def say(self, token: str, *, last: bool, interruptible: bool) -> Sequence[Written]:
        frames: list[Written] = []
        if self._by_verbs is None:
            self._by_verbs = self._spoke_by_verbs = not (interruptible and self._streams)
            if not interruptible:
                self._listen = None
                frames += _commands([{"verb": "config", **jambonz.NOT_LISTENING}])
        if self._by_verbs:
            frames += self._says([token])
        elif token:
            self._queue += _cut(token)
        if last:
            if not self._by_verbs:
                self._queue.append(None)
            self._by_verbs = None
        return [*frames, *self._send()]

    def listen(self, listen: Listen) -> Sequence[Written]:
        # How long the caller may be silent is none of its business.
        known, self._listen = self._listen, listen
        if known is not None and _how(known) == _how(listen):
            return ()
        return _commands(jambonz.relay_listening(listen, self._opening.voice))

    def end(self) -> Sequence[Written]:
        verb = {"verb": "redirect", "actionHook": self._opening.end}
        return _commands([verb], queue=self._spoke_by_verbs)

    def take_over(self, before: Dialect) -> None:
        if isinstance(before, Jambonz):
            self._queue, self._asked, self._streams = before._queue, before._asked, before._streams
            self._ids = before._ids

    def _begin(self, id: str, is_again: bool, found: Mapping[str, Any]) -> Sequence[Frame]:
        """Answer the first event of a socket, unless it is a new one of a call that has gone on."""
        opening, verbs = self._opening, []
        if opening.spoken is not None:
            # It may not have got them on the socket before; if it has, it takes no notice.
            verbs = jambonz.relay_opening(opening.spoken, opening.listen, opening.voice)
        elif not is_again:
            return (Setup(()),)
        first, *further = _parts(verbs) or [[]]
        self._owed.append({"type": "ack", "msgid": id, "data": first})
        self._owed += [frame for part in further for frame in _commands(part)]
        if self._asked is not None:
            self._probe = self._next_id(), self._asked[0]
            self._owed.append(_tokens(self._probe[0], " "))
        else:
            self._owed += self._send()
        return (Setup((text_at(found, "call_sid"), text_at(found, "data", "call_sid"))),)

    # -- the buffer of its voice

    def _send(self) -> list[Written]:
        """Send what it can take now."""
        frames: list[Written] = []
        while self._queue and self._asked is None:
            token = self._queue.popleft()
            if token is None:
                frames.append({"type": "command", "command": "tts:flush"})
                continue
            self._asked = self._next_id(), token
            self._has_resumed = False
            frames.append(_tokens(*self._asked))
        return frames

    def _send_again(self) -> None:
        if self._asked is not None:
            self._queue.appendleft(self._asked[1])
            self._asked, self._is_full = None, False
            self._owed += self._send()

    def _take_result(self, data: Any) -> Sequence[Frame]:
        id, is_ok = text_at(data, "id"), text_at(data, "status").lower() == "ok"
        probe, lost = self._probe
        if self._asked is None or id not in (probe, self._asked[0]):
            pass
        elif id == probe:
            if lost == self._asked[0]:
                self._send_again()
        elif is_ok:
            self._asked = None
            self._owed += self._send()
        elif text_at(data, "reason") == "full":
            self._is_full = True
            if self._has_resumed:
                self._send_again()
        else:
            # Its voice takes no tokens, so the verb speaks them, now and later.
            texts = [self._asked[1], *(each for each in self._queue if each is not None)]
            self._queue.clear()
            self._asked, self._streams = None, False
            self._by_verbs, self._spoke_by_verbs = None if self._by_verbs is None else True, True
            self._owed += self._says(texts)
            return (Trouble(f"Its voice takes no tokens: {text_at(data, 'reason')[:200]}"),)
        return (Other(),)

    def _follow(self, data: Any) -> Sequence[Frame]:
        match text_at(data, "event_type"):
            case "stream_resumed":
                self._has_resumed = True
                if self._is_full:
                    self._send_again()
            case "user_interruption":
                refused = [self._asked[1]] if self._asked is not None and self._is_full else []
                unsent = "".join([*refused, *(each for each in self._queue if each is not None)])
                self._queue.clear()
                self._asked, self._is_full, self._by_verbs = None, False, None
                # What was on the way when it cleared its buffer.
                self._owed.append({"type": "command", "command": "tts:clear"})
                return (Interruption(None, unsent),)
            case "tts_spoken":
                text, cut = text_at(data, "text"), isinstance(data, Mapping) and data.get("bargein") is True
                return (Interruption(text) if cut else Played(text),)
        return (Other(),)

    def _says(self, texts: Sequence[str]) -> list[Written]:
        voice = self._opening.voice
        return [frame for piece in pieces("".join(texts)) for frame in _commands(jambonz.relay_say(piece, voice))]

    def _next_id(self) -> str:
        return str(next(self._ids))


def _heard(data: Any) -> Iterator[Frame]:
    """What the background listening has found: keys, else speech, and how long the recogniser took."""
    # A number for each final transcript, with a comma behind it.
    found = [amount(each) for each in text_at(data, "stt_latency_ms").split(",") if each.strip()]
    taken = [each for each in found if each is not None]
    if taken:
        yield Latency("recognition_seconds", taken[-1])
    if text_at(data, "reason") == "error":
        yield Trouble(f"Its recogniser failed: {text_at(data, 'details')[:200]}")
    elif keys := text_at(data, "digits"):
        yield Collected(keys)
    elif text := clean(text_at(data, "speech", "alternatives", 0, "transcript")):
        # It may also report what it takes for the end before it is sure.
        yield Prompt(text, text_at(data, "speech", "is_final") != "False")


def _how(listen: Listen) -> tuple[Any, ...]:
    return listen.hints, listen.keys, listen.end_of_speech


def _cut(token: str) -> Iterator[str]:
    while len(token) > LONGEST_TOKEN:
        at = max(token.rfind(" ", 1, LONGEST_TOKEN), 0) or LONGEST_TOKEN
        yield token[:at]
        token = token[at:]
    yield token


def _tokens(id: str, text: str) -> Written:
    return {"type": "command", "command": "tts:tokens", "data": {"id": id, "tokens": text}}


def _commands(verbs: Sequence[Mapping[str, Any]], *, queue: bool = True) -> list[Written]:
    """The commands that carry out verbs, after those that it carries out now, or else instead of them."""
    return [{"type": "command", "command": "redirect", "queueCommand": queue, "data": part} for part in _parts(verbs)]


def _parts(verbs: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Verbs in the parts of which each is one message."""
    parts: list[list[Mapping[str, Any]]] = []
    length = MOST_BYTES
    for verb in verbs:
        size = len(json.dumps(verb, ensure_ascii=False).encode())
        if length + size > MOST_BYTES:
            parts.append([])
            length = 0
        parts[-1].append(verb)
        length += size
    return parts
