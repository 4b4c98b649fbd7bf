"""Documents of the Plivo family: neutral actions as a `<Response>` and its verbs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from ...engine.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from ..numbers import normalize
from . import markup
from .base import Document, VoiceSettings
from .markup import element, redirect, seconds
from .speech import clean, pieces
from .webhook import CallbackURLs

# How long listening may be told to wait for the first word, in seconds.
SHORTEST_WAIT, LONGEST_WAIT = 5, 60
# A voice of Amazon's brings its language along; the others speak the one that they are told.
OWN_LANGUAGE = "Polly."


@dataclass(frozen=True, slots=True)
class Style:
    """What one carrier of the family writes in its own way.

    :param listening: its name of the verb that listens.
    :param number: how it writes a number that begins with `+`.
    """

    listening: str
    number: Callable[[str], str]


def write(actions: Sequence[Action], links: CallbackURLs, voice_settings: VoiceSettings, style: Style) -> Document:
    """The document that carries out `actions`; when it has been carried out, the call ends."""
    return markup.write(
        actions,
        lambda action: _verbs(action, links, voice_settings, style),
        lambda listen: [element(style.listening, _listening(listen, links, voice_settings)), redirect(links.silence)],
    )


def _verbs(action: Action, links: CallbackURLs, voice_settings: VoiceSettings, style: Style) -> list[Element]:
    match action:
        case Say() | Play():
            return [element("Speak", _voice(voice_settings), piece) for piece in pieces(action.text)]
        case Pause():
            return [element("Wait", {"length": seconds(action.seconds)})]
        case Transfer():
            return [_dial(action, links, voice_settings, style)]
        case Redirect():
            return [redirect(links.wait(action.turn))]
        case HangUp():
            return [Element("Hangup")]
        case _:
            return []


def _listening(action: Listen, links: CallbackURLs, voice_settings: VoiceSettings) -> dict[str, str]:
    wait = min(max(action.timeout_seconds, SHORTEST_WAIT), LONGEST_WAIT)
    return {
        "action": links.next,
        "method": "POST",
        "inputType": "speech",
        "executionTimeout": seconds(wait),
        "speechEndTimeout": "auto",
        "language": voice_settings.language,
    }


def _voice(voice_settings: VoiceSettings) -> dict[str, str]:
    if voice_settings.voice is None:
        return {"language": voice_settings.language}
    if voice_settings.voice.startswith(OWN_LANGUAGE):
        return {"voice": voice_settings.voice}
    return {"language": voice_settings.language, "voice": voice_settings.voice}


def _dial(action: Transfer, links: CallbackURLs, voice_settings: VoiceSettings, style: Style) -> Element:
    attributes = {"action": links.transferred, "method": "POST", "timeout": seconds(action.timeout_seconds)}
    if voice_settings.number:
        attributes["callerId"] = style.number(voice_settings.number)
    dial = element("Dial", attributes)
    to = normalize(clean(action.destination))
    is_sip = to.address_type == "sip_uri"
    dial.append(element("User" if is_sip else "Number", {}, style.number(to.address_normalized)))
    return dial
