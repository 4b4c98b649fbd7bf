"""Documents of the Twilio family: neutral actions as a `<Response>` and its verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from ...engine.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from ..numbers import normalize
from . import markup
from .base import Document, VoiceSettings
from .markup import element, redirect, seconds
from .speech import clean, pieces
from .webhook import CallbackURLs


@dataclass(frozen=True, slots=True)
class Style:
    """What one carrier of the family writes in its own way.

    :param gather: attributes of `<Gather>` beside those that all have.
    :param voice: who speaks when no voice is chosen; None for the carrier's usual one.
    :param names_language: whether a chosen voice is told a language.
    """

    gather: Mapping[str, str]
    voice: str | None = None
    names_language: bool = True


def write(actions: Sequence[Action], links: CallbackURLs, voice_settings: VoiceSettings, style: Style) -> Document:
    """The document that carries out `actions`; when it has been carried out, the call ends."""
    return markup.write(
        actions,
        lambda action: _verbs(action, links, voice_settings, style),
        lambda listen: [element("Gather", _gather(listen, links, voice_settings, style)), redirect(links.silence)],
    )


def _verbs(action: Action, links: CallbackURLs, voice_settings: VoiceSettings, style: Style) -> list[Element]:
    match action:
        case Say() | Play():
            return [element("Say", _voice(voice_settings, style), piece) for piece in pieces(action.text)]
        case Pause():
            return [element("Pause", {"length": seconds(action.seconds)})]
        case Transfer():
            return [_dial(action, links, voice_settings)]
        case Redirect():
            return [redirect(links.wait(action.turn))]
        case HangUp():
            return [Element("Hangup")]
        case _:
            return []


def _gather(action: Listen, links: CallbackURLs, voice_settings: VoiceSettings, style: Style) -> dict[str, str]:
    return {
        "input": "speech",
        "action": links.next,
        "method": "POST",
        "language": voice_settings.language,
        "timeout": seconds(action.timeout_seconds),
        **style.gather,
    }


def _voice(voice_settings: VoiceSettings, style: Style) -> dict[str, str]:
    voice = voice_settings.voice or style.voice
    language = {"language": voice_settings.language} if voice_settings.voice is None or style.names_language else {}
    return {**language, **({"voice": voice} if voice else {})}


def _dial(action: Transfer, links: CallbackURLs, voice_settings: VoiceSettings) -> Element:
    attributes = {"action": links.transferred, "method": "POST", "timeout": seconds(action.timeout_seconds)}
    if voice_settings.number:
        attributes["callerId"] = voice_settings.number
    dial = element("Dial", attributes)
    to = normalize(clean(action.destination))
    dial.append(element("Sip" if to.address_type == "sip_uri" else "Number", {}, to.address_normalized))
    return dial
