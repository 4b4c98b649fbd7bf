"""What failed in conversations: answers that weren't understood, tools that were never called, errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from ...engine.graph import SPEAKING, Node
from ...engine.validation.outline import attached_tools
from ...llm.scripted import MISSES, NOT_UNDERSTOOD
from ..result import CaseResult
from .answers import answers, keys_of
from .defects import Defect, Evidence, said

# From so many conversations on, a node that none came to has been looked for enough.
ENOUGH_CONVERSATIONS = 20


def not_understood(evidence: Evidence) -> Iterator[Defect]:
    """The nodes at which calls ended although their callers answered in words of the edges each time."""
    graph, held = evidence.subject.graph, evidence.held
    ended = [each for each in held if NOT_UNDERSTOOD in each.result.tags]
    for id in dict.fromkeys(each.result.nodes[-1] for each in ended):
        known = {text for edge in graph.edges_from(id) for text in answers(edge)}
        known |= {f"[keys {key}]" for edge in graph.edges_from(id) for key in keys_of(edge)}
        is_in = partial(_is_misunderstood, id=id, known=frozenset(known))
        there = [each for each in ended if is_in(each.result)]
        if there:
            answer = said(there[0].result)[-1].text
            message = (
                f"{len(there)} of {len(held)} conversations ended at “{graph.node(id).name}” after {MISSES} answers "
                f"in words of its edges, such as “{answer}”, that weren't understood."
            )
            yield Defect("not-understood", (id,), message, len(there), is_in)


def _is_misunderstood(result: CaseResult, id: str, known: frozenset[str]) -> bool:
    last = [line.text for line in result.dialogue if line.role == "caller"][-MISSES:]
    ended_here = result.nodes[-1:] == (id,) and NOT_UNDERSTOOD in result.tags
    return ended_here and len(last) == MISSES and known.issuperset(last)


def uncalled_tools(evidence: Evidence) -> Iterator[Defect]:
    """The tools of nodes that no conversation called there, or that aren't offered there at all."""
    for node in evidence.subject.graph.nodes.values():
        if node.type in SPEAKING:
            is_in = partial(_passes, id=node.id)
            for tool, message in _uncalled_at(evidence, node):
                yield Defect("tool-never-called", (node.id,), message, evidence.passed[node.id], is_in, tool)


def _passes(result: CaseResult, id: str) -> bool:
    return id in result.nodes


def _uncalled_at(evidence: Evidence, node: Node) -> Iterator[tuple[str, str]]:
    tools = evidence.subject.tools
    offered = {each.tool_uuid for each in evidence.subject.functions.get(node.id, ())}
    for uuid in attached_tools({"data": node.data}):
        if uuid not in offered:
            name = f"“{tools[uuid].name}”" if uuid in tools else uuid
            why = "another function of this node has its name" if uuid in tools else "it is missing or not active"
            yield uuid, f"The tool {name} is attached to “{node.name}”, which goes without it: {why}."
    count = evidence.passed[node.id]
    for function in evidence.uncalled(node.id):
        if not count and len(evidence.held) < ENOUGH_CONVERSATIONS:
            continue
        if count and evidence.can_be_called(node.id, function):
            continue
        if not count:
            why = "no conversation came there"
        elif evidence.model != "scripted":
            why = f"it was offered in {count} conversations"
        elif function.transfers:
            why = "callers who asked for a person were led elsewhere, or only a language model knows its arguments"
        else:
            why = "only a language model calls it, and none is configured"
        yield function.name, f"{function.name} was never called at “{node.name}”: {why}."


def errors(evidence: Evidence) -> Iterator[Defect]:
    """What went wrong while the agent worked, such as a text that is too long."""
    found: Counter[tuple[str, str]] = Counter()
    for each in evidence.held:
        found.update({(line.node_id, line.text): 1 for line in each.result.dialogue if line.role == "error"})
    for (id, text), count in found.items():
        where = f"at “{evidence.subject.graph.node(id).name}”, in {count} of {len(evidence.held)} conversations"
        yield Defect("pipeline-error", (id,), f"{text} ({where})", count, partial(_fails, id=id, text=text))


def _fails(result: CaseResult, id: str, text: str) -> bool:
    return any(line.role == "error" and (line.node_id, line.text) == (id, text) for line in result.dialogue)
