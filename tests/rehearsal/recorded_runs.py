"""Recordings that are made of events, without a database, and without a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voiceapi.engine import actions as act
from voiceapi.engine import events as ev
from voiceapi.engine.graph import Graph
from voiceapi.engine.state import begin
from voiceapi.llm.scripted import Scripted
from voiceapi.rehearsal.recording import Recording, Speaker, Tape
from voiceapi.store.runs import Run
from voiceapi.store.workflows import WorkflowVersion

BEGAN = 1_790_000_000.0
LOOKUP = act.Function("find", "Finds a thing.", tool_uuid="t1")
DESK = act.Function("desk", "Puts through.", tool_uuid="t2", transfers=True)
OPENED = ev.Started(BEGAN)
HUNG_UP = ev.CallEnded(BEGAN + 60, "user_hangup")


def said(text: str, *names: str, number: int, at: float = 10, arguments: str = "{}") -> ev.ModelReplied:
    calls = tuple(ev.ToolCall(f"id{place}", name, arguments) for place, name in enumerate(names))
    return ev.ModelReplied(BEGAN + at, number, text, calls, model="some|||1")


def spoke(text: str, *, number: int, at: float = 10) -> ev.ModelSpoke:
    return ev.ModelSpoke(BEGAN + at, number, text)


def extracted(number: int, **values: Any) -> ev.VariablesExtracted:
    return ev.VariablesExtracted(BEGAN + 11, number, values, model="some|||1")


def caller(text: str, at: float = 9, *, keyed: bool = False) -> ev.CallerSaid:
    return ev.CallerSaid(BEGAN + at, text, keyed)


def recorded(
    definition: Mapping[str, Any],
    events: Sequence[ev.Event],
    speaker: Speaker = "recorded",
    *,
    voice: bool = True,
    direction: str = "outbound",
    context: Mapping[str, Any] | None = None,
    gathered: Mapping[str, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
    configurations: Mapping[str, Any] | None = None,
    offered: Sequence[act.Function] = (LOOKUP, DESK),
) -> Recording:
    """A recording of a run that had these events, or, with the scripted model, these besides that one's answers.

    :param gathered: what was known before the conversation began, such as the carrier's id of the call.
    :param variables: the template variables of its version.
    :param offered: the tools of node 1.
    """
    graph = Graph.read(definition)
    state = begin(
        graph,
        context or {},
        configurations or {},
        functions={"1": tuple(offered)},
        direction=direction if voice else None,
        voice=voice,
        gathered_context=gathered or {},
    )
    tape = Tape(graph, state)
    for event in events:
        tape.feed(event)
        while speaker == "scripted" and isinstance(tape.request, act.AskModel | act.Extract):
            asked, model = tape.request, Scripted()
            tape.feed(model.reply(asked) if isinstance(asked, act.AskModel) else model.extract(asked))
    run = Run(id=7, name="Odd", organization=1, initial_context=context or {}, called_number="+12025550123")
    version = WorkflowVersion(
        template_context_variables=variables or {}, configurations=configurations or {}, version_number=1
    )
    return Recording(run, version, definition, graph, speaker, state, tape.whole())
