"""XML documents: a `<Response>` whose verbs a carrier carries out in order; after the last one the call ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from xml.etree.ElementTree import Element, tostring

from ...engine.actions import Action, Listen, Play, Say
from .base import Document
from .speech import clean

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


def comma_separated(phrases: Iterable[str]) -> str:
    """Phrases as one attribute; a comma within one becomes a blank."""
    return ",".join(" ".join(phrase.replace(",", " ").split()) for phrase in phrases)


def seconds(duration: float) -> str:
    """Whole seconds, at least one."""
    return str(max(1, math.ceil(duration)))
