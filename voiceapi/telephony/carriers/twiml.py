"""Documents of the carriers compatible with Twilio: actions as a `<Response>` and its verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from ...engine.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from . import markup
from .base import Document, VoiceSettings
from .markup import dial, element, expected_input, redirect, seconds
from .speech import pieces
from .webhook import CallbackURLs

# With actionOnEmptyResult the action URL is requested also when nobody spoke.
LISTENING = {"speechTimeout": "auto", "actionOnEmptyResult": "true"}


@dataclass(frozen=True, slots=True)
class Style:
    """How one carrier's documents differ from Twilio's.

    :param gather: attributes of `<Gather>` beside those that all carriers have.
    :param takes_hints: whether `<Gather>` has phrases that the recogniser is to expect.
    :param voice: the voice when none is chosen; None for the carrier's default.
    :param language_with_voice: whether a chosen voice is given a language, too.
    """

    gather: Mapping[str, str] = field(default_factory=lambda: LISTENING)
    takes_hints: bool = True
    voice: str | None = None
    language_with_voice: bool = True


def write(actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings, style: Style) -> Document:
    """The document that carries out `actions`; after its last verb the call ends."""
    return markup.write(
        actions,
        lambda action: _verbs(action, urls, voice, style),
        lambda listen: [element("Gather", _gather(listen, urls, voice, style)), redirect(urls.silence)],
    )


def _verbs(action: Action, urls: CallbackURLs, voice: VoiceSettings, style: Style) -> list[Element]:
    match action:
        case Say() | Play():
            return [element("Say", _voice(voice, style), piece) for piece in pieces(action.text)]
        case Pause():
            return [element("Pause", {"length": seconds(action.seconds)})]
        case Transfer():
            return [dial(action, urls, voice, "Sip")]
        case Redirect():
            return [redirect(urls.wait(action.turn))]
        case HangUp():
            return [Element("Hangup")]
        case _:
            return []


def _gather(action: Listen, urls: CallbackURLs, voice: VoiceSettings, style: Style) -> dict[str, str]:
    return {
        "input": "dtmf speech",
        **expected_input(action, takes_hints=style.takes_hints),
        "action": urls.next,
        "method": "POST",
        "language": voice.language,
        "timeout": seconds(action.timeout_seconds),
        **style.gather,
    }


def _voice(voice: VoiceSettings, style: Style) -> dict[str, str]:
    name = voice.name or style.voice
    language = {"language": voice.language} if voice.name is None or style.language_with_voice else {}
    return {**language, **({"voice": name} if name else {})}
