"""The scripted model: it follows a workflow as a voice menu, without network access, and always answers the same."""

import re
from dataclasses import replace

from ..engine.actions import AskModel, Extract, Function, Message
from ..engine.events import ModelReplied, ToolCall, VariablesExtracted
from .understanding.edge_choice import best_edge, person_edge, spoken_choices
from .understanding.person import wants_person
from .understanding.spoken_values import find_values

# After so many turns in a row at one node in which no edge matched, the call ends.
MISSES = 3
# The disposition of a call that this model ends, and what call_tags say about why.
GAVE_UP = "user_disqualified"
NOT_UNDERSTOOD, PERSON_REQUESTED = "not_understood", "person_requested"

# An abbreviation such as "Dr." ends no sentence.
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\bDr\.)(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bSt\.)\s+(?=[^\Wa-z\d_]|[¿¡])|(?<=[。？！])|\n+"
)


class Scripted:
    """Speaks the nodes' texts as written, and follows the edge that the caller's words lead to."""

    def reply(self, ask: AskModel) -> ModelReplied:
        """Return the node's text when it was just entered, else a call of the edge that the caller's words lead to.

        The text is the greeting, or without one the prompt. When the words lead to no edge, the question is asked in
        other words; after MISSES times the call ends. A caller who wants a person gets the node's edge or transfer for
        it, else the call ends.
        """
        line = ask.greeting or ask.prompt
        if ask.opening:
            return _reply(ask, line)
        if ask.occasion == "goodbye":
            return _reply(ask, ask.phrases["silence_goodbye"])
        if ask.idle:
            return _reply(ask, ask.phrases["still_there"], line)
        if ask.messages and ask.messages[-1]["role"] == "tool":
            # The transfer that was called has failed, else nobody would ask.
            return _reply(ask, ask.phrases["person_unavailable"], _question(ask))
        said = _texts_at_node(ask.messages)
        latest = said[-1] if said else ""
        if wants_person(latest):
            return _person(ask, latest)
        if edge := best_edge(latest, ask.functions, f"{ask.greeting} {ask.prompt}"):
            return _call(ask, edge)
        if len(said) >= MISSES:
            reply = _end(ask, "not_understood_goodbye", NOT_UNDERSTOOD)
        else:
            reply = _reply(ask, ask.phrases["not_understood"], *_in_other_words(ask, len(said)))
        return replace(reply, misses=max(1, len(said)))

    def extract(self, request: Extract) -> VariablesExtracted:
        """Return the values that the caller said; variables without one are absent (see find_values)."""
        at_node = _texts_at_node(request.messages)
        before = _caller_texts(request.messages)[: -len(at_node) or None]
        return VariablesExtracted(request.at, request.number, find_values(request.variables, at_node, before))


def _reply(ask: AskModel, *texts: str) -> ModelReplied:
    return ModelReplied(ask.at, ask.number, " ".join(filter(None, texts)))


def _call(ask: AskModel, function: Function) -> ModelReplied:
    return ModelReplied(ask.at, ask.number, "", (ToolCall(f"call_{ask.number}", function.name),))


def _end(ask: AskModel, phrase: str, tag: str) -> ModelReplied:
    return ModelReplied(ask.at, ask.number, ask.phrases[phrase], end_reason=GAVE_UP, end_tag=tag)


def _person(ask: AskModel, said: str) -> ModelReplied:
    transfers = (each for each in ask.functions if each.transfers and not each.parameters.get("required"))
    way = person_edge(said, ask.functions) or next(transfers, None)
    return _call(ask, way) if way else _end(ask, "person_goodbye", PERSON_REQUESTED)


def _caller_texts(messages: tuple[Message, ...]) -> list[str]:
    return [str(message["content"]) for message in messages if message["role"] == "user"]


def _texts_at_node(messages: tuple[Message, ...]) -> list[str]:
    """Return what the caller said since the latest result of a function, which is an edge's or a failed transfer's."""
    results = (place for place, message in enumerate(messages) if message["role"] == "tool")
    return _caller_texts(messages[max(results, default=-1) + 1 :])


# -- asking again


def _question(ask: AskModel) -> str:
    """Return the last question of the greeting or the prompt, without what leads to it.

    A prompt without a question gives its last sentence, except that of a node with a greeting, which isn't spoken.
    """
    for text in (ask.greeting, ask.prompt):
        sentences = [each.strip() for each in _SENTENCE_END.split(text) if each.strip()]
        questions = [each for each in sentences if each.endswith(("?", "？"))]
        if questions or (sentences and not ask.greeting):
            return (questions or sentences)[-1]
    return ""


def _in_other_words(ask: AskModel, misses: int) -> tuple[str, str]:
    """Return the question, what can be answered, or both; after the second miss in other words than after the first."""
    choices = spoken_choices(ask.functions)
    if choices is None:
        return _question(ask), ""
    if not choices:
        return _question(ask), ask.phrases["yes_or_no"]
    if misses > 1 and (question := _question(ask)):
        return question, ""
    listed = f"{', '.join(choices[:-1])} {ask.phrases['or']} {choices[-1]}"
    return ask.phrases["you_can_say"], f"{listed}."
