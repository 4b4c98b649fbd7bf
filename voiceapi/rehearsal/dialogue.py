"""The lines of a dialogue: what the caller did, what the agent said, and what else happened."""

from __future__ import annotations

import json

from ..engine import events as ev
from ..engine.actions import Record
from ..engine.graph import Graph
from .result import Line, Role


def caller_text(event: ev.Event) -> str:
    """What an event looks like in a dialogue; empty for one that isn't the caller's or the end of the call."""
    match event:
        case ev.CallerSaid(keyed=True):
            return f"[keys {event.text}]"
        case ev.CallerSaid():
            return event.text
        case ev.CallerSilent():
            return "[silence]"
        case ev.CallEnded(reason="user_hangup"):
            return "[hangs up]"
        case ev.CallEnded():
            return f"[the call ends: {event.reason}]"
    return ""


def line_of(graph: Graph, record: Record, place: str) -> Line | None:
    """The line that a record of a conversation is in its dialogue; None for one that isn't shown.

    :param place: the turn, as in `Line`.
    """
    payload = record.payload
    role: Role
    match record.type:
        case "rtf-node-transition" if payload["edge_id"] is not None:
            role, text = "edge", f"{payload['edge_label']} → {record.node_name}"
        case "rtf-bot-text":
            role, text = "agent", str(payload["text"])
        case "rtf-function-call-start" if not graph.edge_called(record.node_id, payload["function_name"]):
            role, text = "tool", f"{payload['function_name']} {json.dumps(payload['arguments'], ensure_ascii=False)}"
        case "rtf-function-call-end" if not graph.edge_called(record.node_id, payload["function_name"]):
            role, text = "answer", f"{payload['function_name']} {payload['result']}"
        case "rtf-pipeline-error":
            role, text = "error", f"{payload['processor']}: {payload['error']}"
        case _:
            return None
    return Line(role, text, place, record.node_id, record.node_name)
