"""Judges rehearsed conversations: by the QA prompts of the agent, and by failures and dead ends in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ...engine.actions import Record
from ...engine.graph import SPEAKING, Node, data_of
from ...engine.validation.outline import attached_tools
from ...llm.chat_completions import ChatCompletions
from ...llm.scripted import MISSES, NOT_UNDERSTOOD, PERSON_REQUESTED
from ...postcall import outbox, qa
from ...postcall.qa import parts_of
from ...service import Service
from ..cases import CaseResult
from .defects import Defect, Evidence, answers, is_ended_by_agent, keys_of, said
from .improvised import Held

# From so many conversations on, a node that none came to has been looked for enough.
ENOUGH_CONVERSATIONS = 20


@dataclass(frozen=True)
class Judge:
    """A QA prompt and the model that judges by it.

    :param name: that of the QA node, or DEFAULT.
    """

    name: str
    reviewer: qa.Reviewer
    prompt: str


# An agent without a QA node is judged by the prompt that such a node has when it is new.
DEFAULT = "default"


@dataclass(frozen=True)
class Judgement:
    """What the judges say of a conversation.

    :param score: the mean of the scores given to its parts; None if there is none.
    :param summaries: of its parts, in the order of the conversation.
    :param errors: why parts weren't judged.
    """

    score: float | None
    summaries: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Logged:
    """A record in the shape in which a run's log has it."""

    type: str
    payload: Mapping[str, Any]
    at: datetime
    node_id: str
    node_name: str


def judges_of(
    service: Service, organization: int | None, definition: Mapping[str, Any], configurations: Mapping[str, Any]
) -> tuple[list[Judge], list[str]]:
    """The judges of an agent, one for each of its enabled QA nodes, and why the others of them can't judge.

    What those nodes say of length, share and voicemail doesn't count here: each conversation is judged.
    """
    nodes = [node for node in outbox.nodes_of(definition, outbox.REVIEW) if outbox.is_review_enabled(node)]
    found, problems = [], []
    for node in nodes or [{"data": {"name": DEFAULT}}]:
        data = data_of(node)
        name = str(data.get("name") or node.get("id"))
        try:
            reviewer = qa.reviewer_for(service, organization, data, configurations)
            found.append(Judge(name, reviewer, qa.prompt_of(data)))
        except qa.NoReview as reason:
            why = reason.stored.get("reason") or reason.stored.get("error")
            problems.append(f"The QA node “{name}” can't judge: {why}.")
    return found, problems


def judge(
    judges: Sequence[Judge],
    held: Held,
    definition: Mapping[str, Any],
    seed: int,
    sleep: Callable[[float], Any],
) -> Judgement:
    """What the judges say of a conversation; it waits for their models."""
    events = [_logged(record) for record in held.records]
    seconds = (events[-1].at - events[0].at).total_seconds() if events else 0.0
    parts = parts_of(events, definition, seconds)
    context = qa.ReviewContext(sleep, lambda: None)
    results: list[Mapping[str, Any]] = []
    for each in judges:
        annotation, _ = qa.judge(seeded(each.reviewer, seed), each.prompt, parts, context)
        results += annotation["node_results"].values()
    scores = [result["score"] for result in results if result["score"] is not None]
    errors = [result.get("error") or "The answer gives no score." for result in results if result["score"] is None]
    return Judgement(
        round(sum(scores) / len(scores), 2) if scores else None,
        tuple(result["summary"] for result in results if result["summary"]),
        tuple(qa.tags_of([{"node_results": dict(enumerate(results))}])),
        tuple(dict.fromkeys(errors)),
    )


def seeded(model: Any, seed: int) -> Any:
    """The model, whose server is asked to begin its random choices with a seed; another kind of model as it is."""
    if not isinstance(model, ChatCompletions):
        return model
    return replace(model, parameters={**model.parameters, "seed": seed})


def _logged(record: Record) -> _Logged:
    at = datetime.fromtimestamp(record.at, UTC)
    return _Logged(record.type, record.payload, at, record.node_id, record.node_name)


# -- failures


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
    offered = {each.tool_uuid for each in evidence.subject.offered(node.id)}
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


# -- traps: nodes that no conversation leaves


def traps(evidence: Evidence) -> Iterator[Defect]:
    """The smallest groups of nodes that conversations come to, and from which none goes on or is ended by the agent.

    What callers have hardly tried counts as a way out.
    """
    graph, held = evidence.subject.graph, evidence.held
    ways: dict[str, set[str]] = {id: set() for id in evidence.passed}
    for id in evidence.taken:
        ways[evidence.edges[id].source].add(evidence.edges[id].target)
    trapped = set(ways) - _reached(_exits(evidence), _reversed(ways))
    for group in _circles(trapped, ways):
        ids = tuple(id for id in graph.nodes if id in group)
        names = ", ".join(f"“{graph.node(id).name}”" for id in ids)
        there = [each for each in held if group & {*each.result.nodes}]
        of = f"{len(there)} of {len(held)} conversations"
        if len(group) > 1 or group <= ways[ids[0]]:
            what = "lead only to each other" if len(ids) > 1 else "leads only to itself"
            message = f"{names} {what}; {of} came there, and the agent ended none of them."
            yield Defect("loop-without-exit", ids, message, len(there), partial(_goes_round, group=group))
        elif any(_stays(each.result, ids[0]) and not _is_flagged(each.result, ids[0]) for each in there):
            tried = "None of its edges was taken, though callers said their words"
            why = tried if graph.edges_from(ids[0]) else "No edge leads on"
            message = f"Nobody left {names}. {why}, and nothing ends the call there; {of} came to it."
            yield Defect("dead-end", ids, message, len(there), partial(_stays, id=ids[0]))


def _exits(evidence: Evidence) -> set[str]:
    """The nodes at which the agent ended conversations, or may: what is there wasn't tried enough."""
    graph = evidence.subject.graph
    found = {each.result.nodes[-1] for each in evidence.held if each.result.nodes and is_ended_by_agent(each)}
    for id in evidence.passed:
        untaken = (edge for edge in graph.edges_from(id) if edge.id not in evidence.taken)
        may_go_on = evidence.may_be_ended_at(id) or any(map(evidence.can_be_taken, untaken))
        if may_go_on or graph.node(id).ends_call:
            found.add(id)
    return found


def _reversed(ways: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The nodes from which a way leads to each."""
    sources: dict[str, set[str]] = {}
    for id, targets in ways.items():
        for target in targets:
            sources.setdefault(target, set()).add(id)
    return sources


def _circles(trapped: set[str], ways: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """The groups of trapped nodes from which no way leads outside, and that lead to each other."""
    sources = _reversed(ways)
    groups: list[frozenset[str]] = []
    done: set[str] = set()
    for id in sorted(trapped):
        if id not in done:
            beyond, before = _reached({id}, ways), _reached({id}, sources)
            if beyond <= before:
                groups.append(frozenset(beyond))
            # What leads here is in the same group, or in none.
            done |= before
    return groups


def _reached(first: set[str], ways: Mapping[str, set[str]]) -> set[str]:
    """The nodes to which the ways lead from the first ones, and these."""
    found, left = set(first), list(first)
    while left:
        new = ways.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


def _stays(result: CaseResult, id: str) -> bool:
    """True if the caller answered something at the node, and the conversation never got further."""
    is_answered = any(line.node_id == id for line in said(result)) and PERSON_REQUESTED not in result.tags
    return is_answered and result.nodes[-1:] == (id,)


def _is_flagged(result: CaseResult, id: str) -> bool:
    """True if no model could speak at the node, which is another defect."""
    return any(line.role == "error" and line.node_id == id and line.text.startswith("llm:") for line in result.dialogue)


def _goes_round(result: CaseResult, group: frozenset[str]) -> bool:
    """True if the conversation came to one of the nodes a second time."""
    return any(result.nodes.count(id) > 1 for id in group)
