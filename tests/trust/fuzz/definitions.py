"""Every JSON value is checked as a definition, with findings that can be shown; one without findings can be run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from voiceapi.engine import actions as act
from voiceapi.engine import events as ev
from voiceapi.engine.graph import Graph, add_trigger_paths, strip_unknown_data, template_variables, trigger_paths
from voiceapi.engine.state import State, begin
from voiceapi.engine.step import outstanding, step
from voiceapi.engine.validation.field_types import compiled
from voiceapi.engine.validation.graph_rules import check as findings_of
from voiceapi.engine.validation.lint import lint
from voiceapi.engine.validation.outline import Outline
from voiceapi.llm.scripted import Scripted
from voiceapi.workflows.linting import Surroundings, lint_file

from .draws import Draws, json_or

ROOT = Path(__file__).parents[3]
CATALOGUE = {
    spec["name"]: compiled(spec["name"], spec)
    for spec in json.loads((ROOT / "schemas/node_types.json").read_text(encoding="utf-8"))["node_types"]
}
SAMPLES: list[Any] = [
    json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "examples").glob("*.json"))
]
SAMPLES = [sample.get("workflow_definition", sample) for sample in SAMPLES]
TOOLS: dict[str, Any] = {}
# After the byte 255 a definition as JSON; else changes to a sample.
SEEDS = (
    *(bytes([index, 0]) for index in range(len(SAMPLES))),
    b"\xff{}",
    b'\xff{"nodes":[{}],"edges":[{}]}',
    b"\xff[]",
)


def check(data: bytes) -> None:
    if data[:1] == b"\xff":
        definition = json_or(data[1:], None)
    else:
        draws = Draws(data)
        definition = draws.changed(draws.pick(SAMPLES))
    findings = findings_of(Outline.of(definition), CATALOGUE, TOOLS, ("taken",))
    for each in findings:
        json.dumps(each.as_dict())
        assert each.kind in ("node", "edge", "workflow")
        assert each.message
        assert each.id is None or isinstance(each.id, str)
    for scripted in (True, False):
        report = lint_file(definition, {}, {}, Surroundings(Outline.of(definition), is_scripted=scripted)).as_dict()

        json.dumps(report)
    template_variables(definition)
    trigger_paths(definition)
    if isinstance(definition, dict):
        add_trigger_paths(definition, lambda: "new")
        strip_unknown_data(definition, CATALOGUE)
    if not findings:
        run(definition)


def run(definition: Any) -> None:
    """Hold a conversation over a definition that may be published."""
    graph = Graph.read(definition)
    lint(Outline.of(definition), CATALOGUE)
    state = begin(graph, {"phone_number": "+12025550123"}, {}, direction="outbound")
    event: ev.Event = ev.Started(0.0)
    lines = iter(("Yes, please.", "", "12", "No, thank you.", "Goodbye."))
    for at in range(1, 40):
        state, actions = step(graph, state, event)
        for action in actions:
            json.dumps(action.to_json())
        if state.phase == "ended":
            break
        event = answer(outstanding(graph, state, float(at)), float(at), lines)
    assert State.from_json(json.loads(json.dumps(state.to_json()))) == state


def answer(waiting: Any, at: float, lines: Iterator[str]) -> ev.Event:
    match waiting:
        case act.AskModel():
            return Scripted().reply(waiting)
        case act.Extract():
            return Scripted().extract(waiting)
        case act.Fetch():
            return ev.Fetched(at, waiting.number, {})
        case act.RunTool():
            return ev.ToolReturned(at, waiting.number, {"status": "success"})
        case act.Transfer():
            return ev.TransferSettled(at, waiting.number, answered=False, result={"status": "failed"})
    said = next(lines, None)
    return ev.CallEnded(at, "user_hangup") if said is None else ev.CallerSaid(at, said)
