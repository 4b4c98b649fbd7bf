"""XML documents: a `<Response>` whose verbs a carrier carries out in order; after the last one the call ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, tostring

from ...engine.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from ..numbers import normalize
from .base import Pauses, VoiceSettings, WebhookDocument
from .webhook import CallbackURLs, clean, pieces, plain

CONTENT_TYPE = "text/xml; charset=utf-8"
DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'


@dataclass(frozen=True, slots=True)
class Verbs:
    """The verbs of one carrier's documents, but for that which listens.

    :param say: the verb that speaks, with its attributes.
    :param pause: the one that waits.
    :param sip: the name of the element of a transfer that holds a sip: address.
    :param spelled: how the carrier writes numbers and addresses.
    """

    say: tuple[str, Mapping[str, str]]
    pause: str
    sip: str
    spelled: Callable[[str], str] = str

    def of(self, action: Action, urls: CallbackURLs, voice: VoiceSettings) -> list[Element]:
        """What an action other than Listen becomes."""
        match action:
            case Say() | Play():
                return [element(*self.say, piece) for piece in pieces(action.text)]
            case Pause():
                return [element(self.pause, {"length": seconds(action.seconds)})]
            case Transfer():
                return [self._dial(action, urls, voice)]
            case Redirect():
                return [redirect(urls.wait(action.turn, action.part))]
            case HangUp():
                return [Element("Hangup")]
        return []

    def _dial(self, transfer: Transfer, urls: CallbackURLs, voice: VoiceSettings) -> Element:
        attributes = {"action": urls.transferred, "method": "POST", "timeout": seconds(transfer.timeout_seconds)}
        if voice.transfer_limit:
            attributes["timeLimit"] = seconds(voice.transfer_limit)
        if voice.caller_id:
            attributes["callerId"] = self.spelled(voice.caller_id)
        to = normalize(clean(transfer.destination))
        kind = self.sip if to.address_type == "sip_uri" else "Number"
        found = element("Dial", attributes)
        found.append(element(kind, {}, self.spelled(to.address_normalized)))
        return found


def write(
    actions: Sequence[Action],
    urls: CallbackURLs,
    voice: VoiceSettings,
    verbs: Verbs,
    listen: Callable[[Listen], Element],
) -> WebhookDocument:
    """The document that carries out `actions`; after its last verb the call ends.

    :param listen: the element that listens. What is said before a Listen and may be interrupted goes into it.
    """
    response = Element("Response")
    prompt: list[Element] = []
    for action in actions:
        if isinstance(action, Listen):
            listening = listen(action)
            listening.extend(prompt)
            prompt = []
            response.extend([listening, redirect(urls.silence)])
        elif isinstance(action, Say | Play) and action.interruptible:
            prompt += verbs.of(action, urls, voice)
        else:
            response.extend([*prompt, *verbs.of(action, urls, voice)])
            prompt = []
    response.extend(prompt)
    return document(response)


def document(response: Element) -> WebhookDocument:
    """The answer to a webhook that this element is."""
    return WebhookDocument(CONTENT_TYPE, DECLARATION + tostring(response, encoding="utf-8"))


def redirect(url: str) -> Element:
    """A verb that continues with the document at `url`."""
    return element("Redirect", {"method": "POST"}, url)


def element(name: str, attributes: Mapping[str, str], text: str | None = None) -> Element:
    """An element. Attributes are cleaned here; `text` must be clean."""
    result = Element(name, {key: clean(value) for key, value in attributes.items()})
    result.text = text
    return result


def expected_input(listen: Listen, *, takes_hints: bool = True) -> dict[str, str]:
    """The attributes of a verb that listens for how keys end and what the caller is likely to say."""
    keys = {"numDigits": str(listen.keys)} if listen.keys else {}
    # A comma within a phrase would make it two.
    phrases = (" ".join(phrase.replace(",", " ").split()) for phrase in listen.hints)
    hints = {"hints": ",".join(phrases)} if listen.hints and takes_hints else {}
    return {"finishOnKey": "#", **keys, **hints}


def speech_pause(pauses: Pauses, listen: Listen) -> str:
    """After how many whole seconds of silence speech ends; `auto` is up to the carrier."""
    pause = pauses.after(listen.end_of_speech)
    return "auto" if pause is None else seconds(pause)


def seconds(duration: float) -> str:
    """Whole seconds, at least one."""
    return str(max(1, math.ceil(duration)))


# -- prompts inside a verb for listening, which the caller may interrupt


def prompted(actions: Sequence[Action]) -> Iterator[tuple[Action, str]]:
    """The actions, each with its prompt: the text that the caller may interrupt. Only a Listen has one.

    Each Say holds one piece of text, without markup and of at most speech.LONGEST characters; a Play becomes a Say.
    When a prompt is too long for one piece, only its last piece can be interrupted.
    """
    prompt: list[str] = []
    for action in actions:
        if isinstance(action, Say | Play):
            prompt.append(action.text)
            if not action.interruptible:
                yield from _say(prompt)
                prompt = []
        elif isinstance(action, Listen):
            *before, last = [*_pieces(prompt)] or [""]
            prompt = []
            yield from _say(before)
            yield action, last
        else:
            yield from _say(prompt)
            prompt = []
            yield action, ""
    yield from _say(prompt)


def _say(texts: Sequence[str]) -> Iterator[tuple[Action, str]]:
    for piece in _pieces(texts):
        yield Say(piece, False), ""


def _pieces(texts: Sequence[str]) -> Iterator[str]:
    return pieces(plain(" ".join(texts)))
