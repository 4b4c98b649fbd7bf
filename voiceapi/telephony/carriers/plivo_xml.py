"""Documents of Plivo and the carriers compatible with it: actions as a `<Response>` and its verbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from ...engine.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from . import markup
from .base import Document, VoiceSettings
from .markup import dial, element, expected_input, redirect, seconds
from .speech import pieces
from .webhook import CallbackURLs

# The limits of waiting for the caller to speak, in seconds.
SHORTEST_WAIT, LONGEST_WAIT = 5, 60
# Keys end after this many seconds without another one.
KEY_PAUSE = 3
# An Amazon Polly voice has a language of its own; the others speak the language that they are given.
OWN_LANGUAGE = "Polly."


@dataclass(frozen=True, slots=True)
class Style:
    """How one carrier's documents differ.

    :param listening: the name of its verb for listening.
    :param keeps_plus: whether it writes numbers with their `+`.
    """

    listening: str
    keeps_plus: bool

    def number(self, address: str) -> str:
        """A number or address as the carrier writes it."""
        return address if self.keeps_plus else address.removeprefix("+")


def write(actions: Sequence[Action], urls: CallbackURLs, voice: VoiceSettings, style: Style) -> Document:
    """The document that carries out `actions`; after its last verb the call ends."""
    return markup.write(
        actions,
        lambda action: _verbs(action, urls, voice, style),
        lambda listen: [element(style.listening, _listening(listen, urls, voice)), redirect(urls.silence)],
    )


def _verbs(action: Action, urls: CallbackURLs, voice: VoiceSettings, style: Style) -> list[Element]:
    match action:
        case Say() | Play():
            return [element("Speak", _voice(voice), piece) for piece in pieces(action.text)]
        case Pause():
            return [element("Wait", {"length": seconds(action.seconds)})]
        case Transfer():
            return [dial(action, urls, voice, "User", style.number)]
        case Redirect():
            return [redirect(urls.wait(action.turn))]
        case HangUp():
            return [Element("Hangup")]
        case _:
            return []


def _listening(action: Listen, urls: CallbackURLs, voice: VoiceSettings) -> dict[str, str]:
    wait = min(max(action.timeout_seconds, SHORTEST_WAIT), LONGEST_WAIT)
    return {
        "action": urls.next,
        "method": "POST",
        "inputType": "dtmf speech",
        **expected_input(action),
        "digitEndTimeout": str(KEY_PAUSE),
        "executionTimeout": seconds(wait),
        "speechEndTimeout": "auto",
        "language": voice.language,
    }


def _voice(voice: VoiceSettings) -> dict[str, str]:
    if voice.name is None:
        return {"language": voice.language}
    if voice.name.startswith(OWN_LANGUAGE):
        return {"voice": voice.name}
    return {"language": voice.language, "voice": voice.name}
