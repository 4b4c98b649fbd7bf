"""XML documents: a `<Response>` whose verbs a carrier carries out in order; after the last one the call ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from xml.etree.ElementTree import Element, tostring

from ...engine.actions import Action, Listen, Play, Say, Transfer
from ..numbers import normalize
from .base import Document, VoiceSettings
from .speech import clean
from .webhook import CallbackURLs

CONTENT_TYPE = "text/xml; charset=utf-8"
DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'


def write(
    actions: Sequence[Action],
    verbs: Callable[[Action], list[Element]],
    listen: Callable[[Listen], list[Element]],
) -> Document:
    """The document that carries out `actions`.

    :param verbs: what an action other than Listen becomes.
    :param listen: the element that listens, and those after it. What is said before a Listen and may be interrupted
        goes into that element.
    """
    response = Element("Response")
    prompt: list[Element] = []
    for action in actions:
        if isinstance(action, Listen):
            listening, *following = listen(action)
            listening.extend(prompt)
            prompt = []
            response.extend([listening, *following])
        elif isinstance(action, Say | Play) and action.interruptible:
            prompt += verbs(action)
        else:
            response.extend([*prompt, *verbs(action)])
            prompt = []
    response.extend(prompt)
    return Document(CONTENT_TYPE, DECLARATION + tostring(response, encoding="utf-8"))


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


def dial(
    transfer: Transfer, urls: CallbackURLs, voice: VoiceSettings, sip: str, spelled: Callable[[str], str] = str
) -> Element:
    """The verb of a transfer.

    :param sip: the name of the element that holds a sip: address.
    :param spelled: how the carrier writes numbers and addresses.
    """
    attributes = {"action": urls.transferred, "method": "POST", "timeout": seconds(transfer.timeout_seconds)}
    if voice.transfer_limit:
        attributes["timeLimit"] = seconds(voice.transfer_limit)
    if voice.caller_id:
        attributes["callerId"] = spelled(voice.caller_id)
    to = normalize(clean(transfer.destination))
    dialed = element(sip if to.address_type == "sip_uri" else "Number", {}, spelled(to.address_normalized))
    found = element("Dial", attributes)
    found.append(dialed)
    return found


def seconds(duration: float) -> str:
    """Whole seconds, at least one."""
    return str(max(1, math.ceil(duration)))
