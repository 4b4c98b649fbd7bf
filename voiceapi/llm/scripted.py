"""The scripted model: it follows a workflow as a voice menu, without network access, and always answers the same.

What it understands callers by is imported with the first answer of one: the patterns take 3 MB and 0.3 s of CPU.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any

from ..engine.actions import KEYED, AskModel, Extract, Function, Message
from ..engine.events import ModelReplied, ToolCall, VariablesExtracted
from ..engine.state import DO_NOT_CALL

# After so many turns in a row at one node in which no edge matched, the call ends; questions such as "Who is this?"
# count from the fourth on.
MISSES, FREE_QUESTIONS = 3, 3
# How many edges the explanation of a miss shows.
MOST_EDGES = 20
# The disposition of a call that this model ends, and what call_tags say about why.
GAVE_UP = "user_disqualified"
NOT_UNDERSTOOD, PERSON_REQUESTED = "not_understood", "person_requested"

# An abbreviation such as "Dr." ends no sentence.
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\bDr\.)(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bSt\.)\s+(?=[^\Wa-z\d_]|[¿¡])|(?<=[。？！])|\n+"
)
_QUESTION_MARKS = ("?", "？")


class Scripted:
    """Speaks the nodes' texts as written, and follows the edge that the caller's words lead to."""

    def reply(self, ask: AskModel) -> ModelReplied:
        """Return the node's text when it was just entered, else a call of the edge that the caller's words lead to.

        The text is the node's scripted text, without one the greeting, or else the prompt. When the words lead to no
        edge, the question is asked in other words; after MISSES times the call ends. A caller who asks who calls, or
        what was said, hears who calls and the question. One who wants no more calls ends the call. One who wants a
        person gets the node's edge or transfer for it, else the call ends. It also ends when the scripted text can't be
        made.
        """
        if ask.script_problem:
            return replace(_end(ask, "failure_goodbye", "", "pipeline_error"), notes=(ask.script_problem,))
        line = ask.script or ask.greeting or ask.prompt
        if ask.opening:
            return _reply(ask, line)
        if ask.occasion == "goodbye":
            return _reply(ask, ask.phrases["silence_goodbye"])
        if ask.idle:
            return _reply(ask, ask.phrases["still_there"], *_again(ask, line), ask.end_keys)
        if ask.messages and ask.messages[-1]["role"] == "tool":
            # The transfer that was called has failed, else nobody would ask.
            return _reply(ask, ask.phrases["person_unavailable"], _question(ask))
        from .understanding.edge_choice import choose, leading_words, takes_questions
        from .understanding.wishes import asks_again, wants_no_calls, wants_person

        said = _texts_at_node(ask.messages)
        latest = said[-1] if said else ""
        if ask.takes_opt_outs and wants_no_calls(latest):
            return _end(ask, "do_not_call_goodbye", "", DO_NOT_CALL)
        if wants_person(latest):
            return _person(ask, latest)
        questions = sum(map(asks_again, said))
        is_free = asks_again(latest) and questions <= FREE_QUESTIONS
        if is_free and not any(map(takes_questions, ask.functions)):
            who, question = _who_calls(ask), _question(ask) or line
            return _reply(ask, "" if who in question else who, question)
        if choice := choose(latest, ask.functions, f"{ask.greeting} {ask.script or ask.prompt}"):
            keyed = {"kind": "keys"} if ask.messages[-1].get(KEYED) else {}
            return _call(ask, choice.edge, {**choice.reason, **keyed})
        misses = max(1, len(said) - min(questions, FREE_QUESTIONS))
        if misses >= MISSES:
            reply = _end(ask, "not_understood_goodbye", NOT_UNDERSTOOD)
        else:
            reply = _reply(ask, ask.phrases["not_understood"], *_in_other_words(ask, misses), ask.end_keys)
        edges = [edge for edge in ask.functions if edge.label is not None][:MOST_EDGES]
        looked_at = tuple({"edge": edge.label, "words": leading_words(edge)} for edge in edges)
        return replace(reply, misses=misses, looked_at=looked_at)

    def extract(self, request: Extract) -> VariablesExtracted:
        """Return the values that the caller said; variables without one are absent (see find_values)."""
        from .understanding.spoken_values import find_values

        at_node = _texts_at_node(request.messages)
        before = _caller_texts(request.messages)[: -len(at_node) or None]
        # What the agent said before the caller's texts at this node.
        places = [place for place, message in enumerate(request.messages) if message["role"] == "user"]
        first = places[-len(at_node)] if at_node else len(request.messages)
        spoken = (each["content"] for each in reversed(request.messages[:first]) if each["role"] == "assistant")
        asked = str(next(filter(None, spoken), ""))
        values = find_values(request.variables, at_node, before, asked)
        return VariablesExtracted(request.at, request.number, values)


def _reply(ask: AskModel, *texts: str) -> ModelReplied:
    return ModelReplied(ask.at, ask.number, " ".join(filter(None, texts)))


def _call(ask: AskModel, function: Function, why: Mapping[str, Any]) -> ModelReplied:
    return ModelReplied(ask.at, ask.number, "", (ToolCall(f"call_{ask.number}", function.name, why=why),))


def _end(ask: AskModel, phrase: str, tag: str, reason: str = GAVE_UP) -> ModelReplied:
    return ModelReplied(ask.at, ask.number, ask.phrases[phrase], end_reason=reason, end_tag=tag)


def _person(ask: AskModel, said: str) -> ModelReplied:
    from .understanding.edge_choice import person_edge

    transfers = (each for each in ask.functions if each.transfers and not each.parameters.get("required"))
    way = person_edge(said, ask.functions) or next(transfers, None)
    return _call(ask, way, {"kind": "person"}) if way else _end(ask, "person_goodbye", PERSON_REQUESTED)


def _caller_texts(messages: tuple[Message, ...]) -> list[str]:
    return [str(message["content"]) for message in messages if message["role"] == "user"]


def _texts_at_node(messages: tuple[Message, ...]) -> list[str]:
    """Return what the caller said since the latest result of a function, which is an edge's or a failed transfer's."""
    results = (place for place, message in enumerate(messages) if message["role"] == "tool")
    return _caller_texts(messages[max(results, default=-1) + 1 :])


# -- asking again


def _who_calls(ask: AskModel) -> str:
    """Return the statement with which the agent began the call; empty if it began with a question."""
    first = next(iter(ask.messages), {"role": "", "content": ""})
    sentences = _sentences(str(first["content"])) if first["role"] == "assistant" else []
    statements = list(takewhile(lambda sentence: not sentence.endswith(_QUESTION_MARKS), sentences))
    # "Hello." alone says nothing.
    return " ".join(statements[: 2 if len(sentences[0].split()) < 3 else 1]) if statements else ""


def _sentences(text: str) -> list[str]:
    return [each.strip() for each in _SENTENCE_END.split(text) if each.strip()]


def _question(ask: AskModel) -> str:
    """Return the last question of the scripted text and the greeting, or of the greeting and the prompt.

    Without a question, it is the last sentence; not that of the prompt of a node with a greeting, which isn't spoken.
    """
    for text in (ask.script, ask.greeting) if ask.script else (ask.greeting, ask.prompt):
        if questions := [each for each in _sentences(text) if each.endswith(_QUESTION_MARKS)]:
            return questions[-1]
    sentences = _sentences(ask.script or ("" if ask.greeting else ask.prompt))
    return sentences[-1] if sentences else ""


def _again(ask: AskModel, line: str) -> tuple[str, ...]:
    """Return what is asked again after a silence: the question, without one the whole prompt, or what can be answered.

    A greeting isn't said twice.
    """
    question = _question(ask)
    if question.endswith(_QUESTION_MARKS):
        return (question,)
    return _in_other_words(ask, 1) if ask.greeting and not ask.script else (line,)


def _in_other_words(ask: AskModel, misses: int) -> tuple[str, str]:
    """Return the question, what can be answered, or both; after the second miss in other words than after the first."""
    from .understanding.edge_choice import spoken_choices

    choices = spoken_choices(ask.functions)
    if choices is None:
        return _question(ask), ""
    if not choices:
        return _question(ask), ask.phrases["yes_or_no"]
    if misses > 1 and (question := _question(ask)):
        return question, ""
    listed = f"{', '.join(choices[:-1])} {ask.phrases['or']} {choices[-1]}"
    return ask.phrases["you_can_say"], f"{listed}."
