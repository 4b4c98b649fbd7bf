"""The events of a conversation besides its words, in lines for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Protocol

from ..conversations.conversation import Progress
from ..engine.events import ModelAnswer, ModelFailed, ModelReplied
from ..engine.graph import Graph
from .output import printable

LONGEST = 300


class Happening(Protocol):
    """A record of a conversation at hand, or an event of a stored run."""

    @property
    def type(self) -> str: ...
    @property
    def payload(self) -> Mapping[str, Any]: ...
    @property
    def node_id(self) -> str | None: ...


def lines(happening: Happening, graph: Graph | None = None) -> Iterator[str]:
    """The lines about a node entered, an edge followed, a function called, variables gathered, an error.

    What was said isn't among them.

    :param graph: the workflow's, which knows what of the model's functions are edges.
    """
    payload = happening.payload
    match happening.type:
        case "rtf-node-transition":
            yield f"node: {payload.get('node_name')}"
        case "rtf-function-call-start" if edge := graph and graph.edge_called(
            happening.node_id or "", payload["function_name"]
        ):
            yield f'edge: "{edge.label}", from {_name(graph, edge.source)} to {_name(graph, edge.target)}'
        case "rtf-function-call-start":
            yield _cut(f"function: {payload['function_name']}({_json(payload.get('arguments'))})")
        case "rtf-function-call-end" if graph and graph.edge_called(happening.node_id or "", payload["function_name"]):
            pass
        case "rtf-function-call-end":
            yield _cut(f"answer of {payload['function_name']}: {payload.get('result')}")
        case "rtf-bot-interrupted":
            yield _cut(f"interrupted, not heard: {payload['unplayed']}")
        case "rtf-ttfb-metric":
            yield f"first words of {payload.get('model') or 'the model'} after {payload['ttfb_seconds']:.2f} s"
        case "rtf-not-understood":
            yield f"not understood, {payload['misses']} in a row"
            for each in payload.get("edges", ()):
                words = f"is taken for: {', '.join(each['words'])}" if each["words"] else "has no words to be taken for"
                yield _cut(f"  the edge {each['edge']!r} {words}")
        case "rtf-latency-measured":
            yield f"answered after {payload['latency_seconds']:.2f} s"
            if "recognition_seconds" in payload:
                yield f"recognised by the carrier in {payload['recognition_seconds']:.2f} s"
            if "round_trip_seconds" in payload:
                yield f"to the carrier and back in {payload['round_trip_seconds']:.3f} s"
        case "rtf-pipeline-error":
            yield _cut(f"error: {payload.get('processor')}: {payload.get('error')}")


def model_lines(progress: Progress) -> Iterator[str]:
    """Which model was asked for what, and how long its answer took, a line for each time."""
    for before, answer in pairwise(progress.steps):
        if isinstance(answer, ModelAnswer):
            provider, _, model = answer.model.rpartition("|||")
            purpose = "reply" if isinstance(answer, ModelReplied | ModelFailed) else "variables"
            name = f"{model} of {provider}" if provider and model else model or provider or "scripted"
            yield f"model: {name}, {purpose} in {answer.at - before.at:.2f} s"


def variables_line(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """The line about the variables that have come or changed."""
    changed = {name: value for name, value in after.items() if name not in before or before[name] != value}
    if changed:
        yield _cut(f"variables: {_json(changed)}")


def _name(graph: Graph | None, node: str) -> str:
    return graph.node(node).name if graph else node


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
