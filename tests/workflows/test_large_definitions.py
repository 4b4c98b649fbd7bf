"""Checking a definition takes twice the work for twice the definition, whatever its shape.

Work is counted in Python's instructions, which are the same on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from voiceapi.engine.graph import Graph
from voiceapi.engine.validation.graph_rules import check
from voiceapi.engine.validation.lint import lint
from voiceapi.engine.validation.outline import Outline
from voiceapi.llm.model_needs import MOST_COMPARED, model_needs
from voiceapi.tools import catalog
from voiceapi.workflows import linting, node_types
from voiceapi.workflows.linting import Surroundings

SIZE = 20


def node(id: object, type: str = "agentNode", **data: Any) -> dict[str, Any]:
    members = {"name": f"N {id}", "prompt": f"Ask for guest {id}.", **data}
    return {"id": str(id), "type": type, "position": {"x": 0, "y": 0}, "data": members}


def edge(source: object, target: object, text: str) -> dict[str, Any]:
    data = {"label": f"Table {text}", "condition": f"The caller wants table {text}."}
    return {"id": text, "source": str(source), "target": str(target), "data": data}


def chain(size: int) -> dict[str, Any]:
    edges = [edge(number, number + 1, f"{size}-{number}") for number in range(size)]
    return {"nodes": [node(0, "startCall"), *(node(number + 1) for number in range(size))], "edges": edges}


def star(size: int) -> dict[str, Any]:
    """One node with more edges than are compared with each other."""
    size += size * MOST_COMPARED // SIZE
    edges = [edge(0, number + 1, f"{size}-{number}") for number in range(size)]
    return {"nodes": [node(0, "startCall"), *(node(number + 1, "endCall") for number in range(size))], "edges": edges}


def dense(size: int) -> dict[str, Any]:
    """Each node is connected with ten others."""
    edges = [
        edge(number, (number + step) % size, f"{size}-{number}-{step}") for number in range(size) for step in range(10)
    ]
    return {"nodes": [node(0, "startCall"), *(node(number) for number in range(1, size))], "edges": edges}


def fields(size: int) -> dict[str, Any]:
    """One node with many variables that only a model finds, tools and documents."""
    uuids = [f"{size}-{number}" for number in range(20 * size)]
    variables = [{"name": f"summary_{uuid}", "type": "string"} for uuid in uuids]
    data = {"tool_uuids": uuids, "document_uuids": uuids, "extraction_variables": variables, "extraction_enabled": True}
    return {"nodes": [node(0, "startCall", **data)], "edges": []}


def variables(size: int) -> dict[str, Any]:
    """Each node extracts a variable and speaks all that were extracted before it; each leads back as well."""
    data = [
        {
            "extraction_enabled": True,
            "extraction_variables": [{"name": f"v{number}", "type": "string"}],
            "prompt": f"So {{{{gathered_context.v{number - 1}}}}} and {{{{gathered_context.v{number + 1}}}}}?",
        }
        for number in range(size)
    ]
    edges = [edge(number, number + 1, f"{size}-{number}") for number in range(size - 1)]
    edges += [edge(number, max(0, number - 3), f"{size}-{number} back") for number in range(size)]
    hook = {
        "name": "Hook",
        "payload_template": {f"v{number}": f"{{{{gathered_context.v{number}}}}}" for number in (0, 1)},
    }
    nodes = [node(number, "startCall" if number == 0 else "agentNode", **each) for number, each in enumerate(data)]
    return {"nodes": [*nodes, node("hook", "webhook", **hook)], "edges": edges}


def loops(size: int) -> dict[str, Any]:
    """Loops of four nodes without an exit, each within the next."""
    edges = [edge(number, number + 1, f"{size}-{number}") for number in range(size - 1)]
    edges += [edge(number, number - number % 4, f"{size}-{number} back") for number in range(size)]
    codes = ["loop-without-exit", "no-path-to-end", "unused", "dead-end"]
    nodes = [node(number, lint_ignore=codes) for number in range(1, size)]
    return {"nodes": [node(0, "startCall"), *nodes, node("end", "endCall")], "edges": [*edges, edge(0, "end", "out")]}


def instructions(act: Callable[[], Any]) -> int:
    """How many of Python's instructions `act` executes."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def validate(definition: dict[str, Any]) -> None:
    outline = Outline.of(definition)
    check(outline, node_types.rules())
    lint(outline, node_types.rules(), {}, {}, ())
    model_needs(outline)


def lint_whole(definition: dict[str, Any]) -> None:
    linting.lint_file(definition, {}, {}, Surroundings(Outline.of(definition)))


def begin(definition: dict[str, Any]) -> None:
    catalog.functions_for(None, Graph.read(definition))


@pytest.mark.parametrize("work", [validate, lint_whole, begin])
@pytest.mark.parametrize("shape", [chain, star, dense, fields, variables, loops])
@pytest.mark.long
def test_twice_the_definition_takes_twice_the_work(
    work: Callable[[dict[str, Any]], None], shape: Callable[[int], dict[str, Any]]
) -> None:
    work(shape(1))  # What is compiled once isn't counted.
    once, twice = (instructions(lambda size=size: work(shape(size))) for size in (SIZE, 2 * SIZE))  # type: ignore[misc]
    assert twice < 2.3 * once
