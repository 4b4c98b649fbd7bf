"""Where conversations can't go on: nodes that nobody leaves, alone or together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from ...llm.scripted import PERSON_REQUESTED
from ..result import CaseResult
from .defects import Defect, Evidence, is_ended_by_agent, said


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
        elif any(_stays(each.result, ids[0]) and not _fails(each.result, ids[0]) for each in there):
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


def _fails(result: CaseResult, id: str) -> bool:
    """True if no model could speak at the node, which is another defect."""
    return any(line.role == "error" and line.node_id == id and line.text.startswith("llm:") for line in result.dialogue)


def _goes_round(result: CaseResult, group: frozenset[str]) -> bool:
    """True if the conversation came to one of the nodes a second time."""
    return any(result.nodes.count(id) > 1 for id in group)
