"""A language model that decides at random: it calls offered functions with arguments of their types."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from random import Random
from typing import Any

from ...engine.actions import AskModel, Extract, Function
from ...engine.events import ModelReplied, ToolCall, VariablesExtracted
from ...engine.extraction import ANSWERED_BY, VOICEMAIL, Variable
from ...engine.graph import Graph
from .defects import Tries

# Functions in one turn; an engine that counts more replies takes them for a circle.
MOST_CALLS = 4
_SEPARATOR = re.compile(r",\s*(?:or\s+)?|\s+or\s+")
# What a hint lists is chosen from, as in "price, speed or quality"; its longer parts are sentences.
LONGEST_CHOICE = 20
_TEXTS = ("something", "something else")


class RandomModel:
    """Speaks for an agent that is made for a language model: it shows the ways that a real one could go."""

    def __init__(self, graph: Graph, random: Random, tries: Tries) -> None:
        self._graph = graph
        self._random = random
        self._tries = tries

    def reply(self, ask: AskModel) -> ModelReplied:
        """A function, where one is offered and not too many were called in this turn; else a few words."""
        chance = {"opening": 0.1, "reply": 0.75, "idle": 0.1, "goodbye": 0.0}[ask.occasion]
        if ask.functions and _calls_in_turn(ask) < MOST_CALLS and self._random.random() < chance:
            weights = [self._promise(ask.node_id, each) for each in ask.functions]
            function = self._random.choices(ask.functions, weights)[0]
            self._note(ask.node_id, function)
            arguments = json.dumps(self._arguments(function), ensure_ascii=False)
            return ModelReplied(ask.at, ask.number, "", (ToolCall(f"call_{ask.number}", function.name, arguments),))
        return ModelReplied(ask.at, ask.number, f"({ask.node_name})")

    def extract(self, request: Extract) -> VariablesExtracted:
        """A value of its type for most variables."""
        values = {each.name: self._value(each) for each in request.variables if self._random.random() < 0.9}
        return VariablesExtracted(request.at, request.number, values)

    def _promise(self, id: str, function: Function) -> float:
        edge = self._graph.edge_called(id, function.name)
        return 1 / (1 + self._tries.tools[id, function.name]) if edge is None else self._tries.promise(edge)

    def _note(self, id: str, function: Function) -> None:
        edge = self._graph.edge_called(id, function.name)
        if edge is None:
            self._tries.tools[id, function.name] += 1
        else:
            self._tries.note(edge)

    def _value(self, variable: Variable) -> Any:
        if variable == ANSWERED_BY:
            return VOICEMAIL if self._random.random() < 0.1 else "CONVERSATION"
        listed = [part.strip() for part in _SEPARATOR.split(variable.hint)]
        if variable.type == "string" and len(listed) > 1 and all(len(each) <= LONGEST_CHOICE for each in listed):
            return self._random.choice(listed)
        return self._of_type(variable.type)

    def _arguments(self, function: Function) -> dict[str, Any]:
        properties = function.parameters.get("properties")
        required = function.parameters.get("required") or ()
        return {
            name: self._of_type(kind.get("type") if isinstance(kind, Mapping) else None)
            for name, kind in (properties if isinstance(properties, Mapping) else {}).items()
            if name in required or self._random.random() < 0.5
        }

    def _of_type(self, type: Any) -> Any:
        match type:
            case "number" | "integer":
                return self._random.randint(0, 10)
            case "boolean":
                return self._random.random() < 0.5
            case "object":
                return {}
            case "array":
                return []
        return self._random.choice(_TEXTS)


def _calls_in_turn(ask: AskModel) -> int:
    """How many functions have answered since the caller last spoke."""
    count = 0
    for message in reversed(ask.messages):
        if message["role"] == "user":
            break
        count += message["role"] == "tool"
    return count
