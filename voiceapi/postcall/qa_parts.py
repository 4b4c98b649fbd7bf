"""Splits an ended run into the parts that are reviewed one by one: what happened at each node of the workflow.

Every event names its node. A run with an event that doesn't is a single part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from ..engine.graph import data_of, objects
from ..engine.values import as_number
from ..store.runs import SPEAKERS

WHOLE = "whole_call"


class LoggedEvent(Protocol):
    """An event of a run's log, stored or not."""

    @property
    def type(self) -> str: ...
    @property
    def payload(self) -> Mapping[str, Any]: ...
    @property
    def at(self) -> datetime: ...
    @property
    def node_id(self) -> str | None: ...
    @property
    def node_name(self) -> str | None: ...


@dataclass(frozen=True)
class Part:
    """What happened at a node, or in the whole run.

    :param key: the node's id, or WHOLE.
    :param about: the node's name and prompt; those of all visited nodes for WHOLE.
    :param lines: the transcript, with seconds since the run's first event.
    :param metrics: counts and times in seconds, as a reviewer's prompt may show them.
    """

    key: str
    name: str
    about: str
    lines: tuple[str, ...]
    metrics: Mapping[str, Any]


def parts_of(events: Sequence[LoggedEvent], definition: Mapping[str, Any], duration: float | None) -> list[Part]:
    """The parts of a run in the order of the nodes' first visits, without those in which nothing was said.

    :param events: all events of the run, first to last.
    :param duration: of the call, in seconds; None for a chat.
    """
    by_node: dict[str, list[LoggedEvent]] = {}
    for event in events:
        by_node.setdefault(event.node_id or "", []).append(event)
    about = {str(node.get("id")): _about(node) for node in objects(definition, "nodes")}
    if "" in by_node:
        visited = "\n".join(about[id] for id in by_node if id in about)
        found = [Part(WHOLE, WHOLE, visited, _lines(events, events[0].at), _metrics(events, duration))]
    else:
        found = [
            Part(id, there[0].node_name or id, about.get(id, ""), _lines(there, events[0].at), _metrics(there, None))
            for id, there in by_node.items()
        ]
    return [part for part in found if part.lines]


def _about(node: Mapping[str, Any]) -> str:
    data = data_of(node)
    return f"{data.get('name') or node.get('id')}: {data.get('prompt') or ''}".strip()


def _lines(events: Sequence[LoggedEvent], began: datetime) -> tuple[str, ...]:
    lines = []
    for event in events:
        if event.type in SPEAKERS:
            seconds = (event.at - began).total_seconds()
            lines.append(f"[{seconds:.1f}s] {SPEAKERS[event.type]}: {event.payload.get('text', '')}")
        elif event.type == "rtf-function-call-start":
            lines.append(f"[tool_call]: {event.payload.get('function_name', '')}")
    return tuple(lines)


def _metrics(events: Sequence[LoggedEvent], seconds: float | None) -> dict[str, Any]:
    latencies = _measured(events, "rtf-latency-measured", "latency_seconds")
    return {
        "call_duration_seconds": seconds,
        "num_turns": sum(event.type == "rtf-user-transcription" for event in events),
        "avg_latency_seconds": _mean(latencies),
        "avg_ttfb_seconds": _mean(_measured(events, "rtf-ttfb-metric", "ttfb_seconds")),
        "max_latency_seconds": max(latencies, default=None),
    }


def _measured(events: Sequence[LoggedEvent], type: str, member: str) -> list[float]:
    values = (as_number(event.payload.get(member)) for event in events if event.type == type)
    return [float(value) for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 3) if values else None
