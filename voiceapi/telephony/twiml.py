"""Documents of the Twilio family: neutral actions as a `<Response>` and its verbs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, tostring

from ..flow.actions import Action, HangUp, Listen, Pause, Play, Redirect, Say, Transfer
from .carrier import Document, Manner
from .numbers import normalize
from .speech import clean, pieces
from .webhook import Links

CONTENT_TYPE = "text/xml; charset=utf-8"
DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'


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


def write(actions: Sequence[Action], links: Links, manner: Manner, style: Style) -> Document:
    """The document that carries out `actions`; when it has been carried out, the call ends."""
    response = Element("Response")
    prompt: list[Element] = []  # what the caller may talk over is spoken within the listening that follows it
    for action in actions:
        if isinstance(action, Listen):
            gather = _element("Gather", _gather(action, links, manner, style))
            gather.extend(prompt)
            prompt = []
            response.extend([gather, _redirect(links.silence)])
            continue
        verbs = _verbs(action, links, manner, style)
        if isinstance(action, Say | Play) and action.interruptible:
            prompt += verbs
        else:
            response.extend([*prompt, *verbs])
            prompt = []
    response.extend(prompt)
    return Document(CONTENT_TYPE, DECLARATION + tostring(response, encoding="utf-8"))


def _verbs(action: Action, links: Links, manner: Manner, style: Style) -> list[Element]:
    match action:
        case Say() | Play():
            return [_element("Say", _voice(manner, style), piece) for piece in pieces(action.text)]
        case Pause():
            return [_element("Pause", {"length": _seconds(action.seconds)})]
        case Transfer():
            return [_dial(action, links, manner)]
        case Redirect():
            return [_redirect(links.wait(action.turn))]
        case HangUp():
            return [Element("Hangup")]
        case _:
            return []


def _gather(action: Listen, links: Links, manner: Manner, style: Style) -> dict[str, str]:
    return {
        "input": "speech",
        "action": links.next,
        "method": "POST",
        "language": manner.language,
        "timeout": _seconds(action.timeout_seconds),
        **style.gather,
    }


def _voice(manner: Manner, style: Style) -> dict[str, str]:
    voice = manner.voice or style.voice
    language = {"language": manner.language} if manner.voice is None or style.names_language else {}
    return {**language, **({"voice": voice} if voice else {})}


def _dial(action: Transfer, links: Links, manner: Manner) -> Element:
    attributes = {"action": links.transferred, "method": "POST", "timeout": _seconds(action.timeout_seconds)}
    if manner.number:
        attributes["callerId"] = manner.number
    dial = _element("Dial", attributes)
    to = normalize(clean(action.destination))
    dial.append(_element("Sip" if to.address_type == "sip_uri" else "Number", {}, to.address_normalized))
    return dial


def _redirect(url: str) -> Element:
    return _element("Redirect", {"method": "POST"}, url)


def _element(name: str, attributes: Mapping[str, str], text: str | None = None) -> Element:
    element = Element(name, {key: clean(value) for key, value in attributes.items()})
    element.text = text
    return element


def _seconds(seconds: float) -> str:
    return str(max(1, math.ceil(seconds)))
