import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from voiceapi.engine.actions import Action, Record
from voiceapi.engine.events import Event
from voiceapi.engine.graph import Graph
from voiceapi.engine.state import State, begin
from voiceapi.engine.step import outstanding, step
from voiceapi.engine.validation.field_types import NodeType, compiled

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def catalogue() -> dict[str, NodeType]:
    specs = json.loads((ROOT / "schemas" / "node_types.json").read_text())["node_types"]
    return {spec["name"]: compiled(spec["name"], spec) for spec in specs}


@pytest.fixture(scope="session")
def definitions() -> dict[str, Any]:
    return json.loads((ROOT / "tests" / "data" / "definitions.json").read_text())


@dataclass
class Call:
    """A conversation; its events are at 1000 s unless they are sent with another time."""

    graph: Graph
    state: State
    events: list[Event] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def send(self, kind: type[Event], *args: Any, at: float = 1000.0, **members: Any) -> list[Action]:
        """Send an event; return the actions without the records, which are added to `records`."""
        if "number" in kind.__dataclass_fields__:
            args = (self.state.number, *args)
        event = kind(at, *args, **members)
        self.state, actions = step(self.graph, self.state, event)
        self.events.append(event)
        self.records += [action for action in actions if isinstance(action, Record)]
        return [action for action in actions if not isinstance(action, Record)]

    @property
    def waits_for(self) -> Action | None:
        return outstanding(self.graph, self.state, 1000.0)

    def recorded(self, type: str) -> list[Any]:
        return [record.payload for record in self.records if record.type == type]


def node(id: str, type: str, prompt: str = "", **data: Any) -> dict[str, Any]:
    return {
        "id": id,
        "type": type,
        "position": {"x": 0, "y": 0},
        "data": {"name": id.title(), "prompt": prompt or f"Prompt of {id}.", **data},
    }


def edge(source: str, target: str, label: str, condition: str = "c", **data: Any) -> dict[str, Any]:
    return {
        "id": f"{source}-{target}",
        "source": source,
        "target": target,
        "data": {"label": label, "condition": condition, **data},
    }


@pytest.fixture(scope="session")
def booking() -> dict[str, Any]:
    """start -> ask (extracts seats) -> done (end), start -> done; a global node; a tool at ask."""
    return {
        "nodes": [
            node("rules", "globalNode", "Be brief with {{name | everybody}}."),
            node("start", "startCall", "Ask what {{name}} wants.", greeting="Hello {{name}}!", allow_interrupt=True),
            node(
                "ask",
                "agentNode",
                "Ask how many seats.",
                extraction_enabled=True,
                extraction_prompt="For {{name}}.",
                extraction_variables=[{"name": "seats", "type": "number", "prompt": "Number of seats"}],
            ),
            node("done", "endCall", "Say goodbye to {{name}}.", add_global_prompt=False),
        ],
        "edges": [
            edge("start", "ask", "Book", "The caller wants seats.", transition_speech="One moment, {{name}}."),
            edge("start", "done", "Leave"),
            edge("ask", "done", "Counted"),
        ],
    }


@pytest.fixture
def make_call(booking: dict[str, Any]) -> Callable[..., Call]:
    def make(definition: Any = None, context: Any = None, configurations: Any = None, **setup: Any) -> Call:
        graph = Graph.read(definition or booking)
        return Call(graph, begin(graph, {"name": "Ann"} if context is None else context, configurations or {}, **setup))

    return make
