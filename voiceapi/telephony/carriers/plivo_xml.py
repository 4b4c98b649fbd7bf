"""Documents of the Plivo family: neutral actions as a `<Response>` and its verbs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from ...engine.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from ..numbers import normalize
from . import markup
from .base import Document, Manner
from .markup import element, redirect, seconds
from .speech import clean, pieces
from .webhook import Links

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


def write(actions: Sequence[Action], links: Links, manner: Manner, style: Style) -> Document:
    """The document that carries out `actions`; when it has been carried out, the call ends."""
    return markup.write(
        actions,
        lambda action: _verbs(action, links, manner, style),
        lambda listen: [element(style.listening, _listening(listen, links, manner)), redirect(links.silence)],
    )


def _verbs(action: Action, links: Links, manner: Manner, style: Style) -> list[Element]:
    match action:
        case Say() | Play():
            return [element("Speak", _voice(manner), piece) for piece in pieces(action.text)]
        case Pause():
            return [element("Wait", {"length": seconds(action.seconds)})]
        case Transfer():
            return [_dial(action, links, manner, style)]
        case Redirect():
            return [redirect(links.wait(action.turn))]
        case HangUp():
            return [Element("Hangup")]
        case _:
            return []


def _listening(action: Listen, links: Links, manner: Manner) -> dict[str, str]:
    wait = min(max(action.timeout_seconds, SHORTEST_WAIT), LONGEST_WAIT)
    return {
        "action": links.next,
        "method": "POST",
        "inputType": "speech",
        "executionTimeout": seconds(wait),
        "speechEndTimeout": "auto",
        "language": manner.language,
    }


def _voice(manner: Manner) -> dict[str, str]:
    if manner.voice is None:
        return {"language": manner.language}
    if manner.voice.startswith(OWN_LANGUAGE):
        return {"voice": manner.voice}
    return {"language": manner.language, "voice": manner.voice}


def _dial(action: Transfer, links: Links, manner: Manner, style: Style) -> Element:
    attributes = {"action": links.transferred, "method": "POST", "timeout": seconds(action.timeout_seconds)}
    if manner.number:
        attributes["callerId"] = style.number(manner.number)
    dial = element("Dial", attributes)
    to = normalize(clean(action.destination))
    is_sip = to.address_type == "sip_uri"
    dial.append(element("User" if is_sip else "Number", {}, style.number(to.address_normalized)))
    return dial
