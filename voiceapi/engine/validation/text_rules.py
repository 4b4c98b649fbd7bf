"""Rules on what is spoken and asked: too long, nothing to speak, conditions that are the same."""

import re
from collections.abc import Iterator
from typing import Any

from ..graph import SPEAKING, data_of
from ..step_state import LONGEST_SPEECH
from ..template import MIB, placeholders, size
from ..values import as_boolean
from .finding import Finding
from .outline import Outline

_TAG = re.compile(r"<[^<>]*>")
_WORD = re.compile(r"\w+")


def text_findings(outline: Outline, *, speaks_prompts: bool) -> Iterator[Finding]:
    """Yield what is wrong with the texts of a definition. Of a text with variables, the rest counts.

    :param speaks_prompts: prompts are spoken as they are written, since the scripted model speaks.
    """
    general = (data_of(each).get("prompt") for each in outline.by_id.values() if each.get("type") == "globalNode")
    before = size(_literal(next(general, "")))
    for id, node in outline.by_id.items():
        type, data = node.get("type"), data_of(node)
        if type not in SPEAKING:
            continue
        greeting = data.get("greeting") if type == "startCall" else None
        has_greeting = isinstance(greeting, str) and bool(greeting.strip())
        if has_greeting:
            yield from _greeting(id, str(greeting))
        if speaks_prompts and not has_greeting:
            yield from _spoken("node", id, "data.prompt", data.get("prompt"))
        shared = before if as_boolean(data.get("add_global_prompt")) is not False else 0
        own = data.get("prompt")
        if not isinstance(own, str) or shared + 4 * len(own) <= MIB:  # a character has at most four bytes
            continue
        if (bytes := shared + size(_literal(own))) > MIB:
            text = f"This prompt and the global node's have {bytes} bytes; a model is asked at most 1 MiB."
            yield Finding("node", id, "data.prompt", text, "prompt-too-long")
    for edge in outline.edges:
        if isinstance(edge_id := edge.get("id"), str):
            yield from _spoken("edge", edge_id, "data.transition_speech", data_of(edge).get("transition_speech"))


def _greeting(id: str, text: str) -> Iterator[Finding]:
    yield from _spoken("node", id, "data.greeting", text)
    if next(placeholders(text), None) is None and not _WORD.search(_TAG.sub("", text)):
        message = "This greeting has no word that can be spoken; without one, the agent begins with its prompt."
        yield Finding("node", id, "data.greeting", message, "unspeakable-greeting")


def _spoken(kind: Any, id: str, field: str, text: object) -> Iterator[Finding]:
    if not isinstance(text, str) or len(text) <= LONGEST_SPEECH:
        return
    if (length := len(_literal(text))) > LONGEST_SPEECH:
        message = (
            f"This text has {length} characters. A turn can say {LONGEST_SPEECH}, which is what a carrier takes; the "
            "rest is not spoken."
        )
        yield Finding(kind, id, field, message, "speech-too-long")


def _literal(text: object) -> str:
    """A text without its placeholders."""
    if not isinstance(text, str) or "{{" not in text:
        return text if isinstance(text, str) else ""
    parts, done = [], 0
    for each in placeholders(text):
        parts.append(text[done : each.start])
        done = each.end
    return "".join([*parts, text[done:]])


def alike_findings(outline: Outline) -> Iterator[Finding]:
    """Yield each edge whose condition is that of an earlier edge of its node, though it leads elsewhere."""
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for edge in outline.edges:
        id, source, condition = edge.get("id"), edge.get("source"), data_of(edge).get("condition")
        if not (isinstance(id, str) and isinstance(source, str) and isinstance(condition, str) and condition.strip()):
            continue
        known = first.setdefault((source, " ".join(condition.casefold().split()).rstrip(".!")), edge)
        if known.get("target") != edge.get("target"):
            label = data_of(known).get("label")
            text = f'This edge has the condition of the edge "{label}" of its node, and leads elsewhere.'
            yield Finding("edge", id, "data.condition", text, "edges-alike")
