"""The ways that a conversation can go through a definition's graph, and the rules on where they lead."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..graph import SPEAKING, data_of
from .finding import Finding
from .outline import Outline, attached_tools

# The most names that a message lists.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Paths:
    """Which nodes lead to which. Edges without ids and ends that are text are left out, as are starts but the first.

    :param edges: the targets of each node's edges by its id, also such that aren't in the definition.
    :param targets: the same with the node that is entered when the node's call fails.
    :param sources: of each node by its id those that lead to it, in both ways.
    :param starts: the ids of the start nodes; a conversation begins at the first of them.
    """

    edges: Mapping[str, list[str]]
    targets: Mapping[str, list[str]]
    sources: Mapping[str, list[str]]
    starts: list[str]
    reachable: Collection[str]

    @classmethod
    def of(cls, outline: Outline) -> "Paths":
        """Return the paths of a definition, whatever its shape."""
        edges: dict[str, list[str]] = {}
        for edge in outline.edges:
            source, target = edge.get("source"), edge.get("target")
            if isinstance(edge.get("id"), str) and isinstance(source, str) and isinstance(target, str):
                edges.setdefault(source, []).append(target)
        targets = {source: list(ends) for source, ends in edges.items()}
        for id, call in outline.calls.items():
            if call.on_error:
                targets.setdefault(id, []).append(call.on_error)
        sources: dict[str, list[str]] = {}
        for source, ends in targets.items():
            for target in ends:
                sources.setdefault(target, []).append(source)
        starts = [
            node["id"] for node in outline.nodes if node.get("type") == "startCall" and isinstance(node.get("id"), str)
        ]
        return cls(edges, targets, sources, starts, closure(starts, targets))

    def together(self) -> Collection[str]:
        """Return the nodes that edges of either direction connect with a start."""
        found = set(self.starts)
        ahead = list(self.starts)
        while ahead:
            id = ahead.pop()
            new = {*self.targets.get(id, ()), *self.sources.get(id, ())} - found
            found |= new
            ahead += new
        return found


def closure(first: Iterable[str], following: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the nodes that one gets to from any of the first by the following ones, the first included."""
    found = set(first)
    ahead = list(found)
    while ahead:
        for id in following.get(ahead.pop(), ()):
            if id not in found:
                found.add(id)
                ahead.append(id)
    return found


def unreachable_code(paths: Paths, together: Collection[str], id: str) -> str:
    """Return the code for a node that can't be reached: whether it stands alone or is part of an island."""
    is_alone = not {*paths.targets.get(id, ()), *paths.sources.get(id, ())} - {id}
    return "unreachable-node" if id in together or is_alone else "island"


def path_findings(outline: Outline, paths: Paths, ending_tools: Collection[str]) -> Iterator[Finding]:
    """Yield what is wrong with where the paths from the start lead: into dead ends, loops, or to no end at all.

    Where no path ends the call, the start alone has a finding; otherwise each place has that a conversation can get
    into and not out of.

    :param ending_tools: the uuids of the tools that end or hand over the call, or may do so.
    """
    if not paths.starts:
        return
    ends = {id for id in paths.reachable if _may_end(outline, id, ending_tools)}
    leading = closure(ends, paths.sources)
    stuck = set(paths.reachable) - leading
    # Unless its call fails, a node without edges leads nowhere.
    stuck |= {id for id in outline.calls if id in paths.reachable and id not in ends and id not in paths.edges}
    if not stuck:
        return
    order = {id: place for place, id in enumerate(outline.by_id)}
    found = (sorted(each, key=order.__getitem__) for each in _final_components(stuck, paths.edges))
    places = sorted(found, key=lambda each: order[each[0]])
    only = "Only the caller, silence or the time limit ends the call"
    start = paths.starts[0]
    if start not in leading:
        named = _names(outline, [id for each in places for id in each])
        yield Finding(
            "node", start, None, f"No path from the start ends the call; it stays at {named}. {only}.", "no-path-to-end"
        )
        return
    for ids in places:
        if len(ids) > 1 or ids[0] in paths.edges.get(ids[0], ()):
            text = f"A conversation that gets to {_names(outline, ids)} never gets out of this loop. {only}."
            yield Finding("node", ids[0], None, text, "loop-without-exit")
        else:
            yield Finding("node", ids[0], None, f"No edge leads on from here. {only}.", "dead-end")


def _may_end(outline: Outline, id: str, ending_tools: Collection[str]) -> bool:
    """Whether a call may end at a node. An edge to what can't be spoken counts: it is an error of its own."""
    node = outline.by_id.get(id)
    if node is None or node.get("type") not in SPEAKING or node["type"] == "endCall":
        return True
    return any(uuid in ending_tools for uuid in attached_tools(node))


def _final_components(ids: Collection[str], targets: Mapping[str, list[str]]) -> Iterator[set[str]]:
    """Yield the sets of nodes that lead to each other and to no other; all targets of `ids` are among them."""
    # Kosaraju's algorithm: who is left last by a search along the edges comes first in a search against them.
    component: dict[str, int] = {}
    members: list[set[str]] = []
    sources: dict[str, list[str]] = {}
    for id in ids:
        for target in targets.get(id, ()):
            sources.setdefault(target, []).append(id)
    for first in reversed(_as_left(ids, targets)):
        if first in component:
            continue
        members.append(set())
        ahead = [first]
        while ahead:
            id = ahead.pop()
            if id not in component:
                component[id] = len(members) - 1
                members[-1].add(id)
                ahead += [source for source in sources.get(id, ()) if source not in component]
    for number, found in enumerate(members):
        if all(component[target] == number for id in found for target in targets.get(id, ())):
            yield found


def _as_left(ids: Collection[str], targets: Mapping[str, list[str]]) -> list[str]:
    """Return the nodes in the order in which a search in depth leaves them."""
    left: list[str] = []
    seen: set[str] = set()
    for first in ids:
        if first in seen:
            continue
        seen.add(first)
        path = [(first, iter(targets.get(first, ())))]
        while path:
            id, following = path[-1]
            new = next((each for each in following if each not in seen), None)
            if new is None:
                left.append(id)
                path.pop()
            else:
                seen.add(new)
                path.append((new, iter(targets.get(new, ()))))
    return left


def missing_on_some_path(
    paths: Paths, wanted: Collection[str], given: Mapping[str, Collection[str]], saved: Mapping[str, str]
) -> dict[str, int]:
    """Return for each node that a conversation gets to which names it may lack, when it gets there.

    The names are bits, in the order of `wanted`.

    :param wanted: the names.
    :param given: the names that each node gives to those after it, unless its call fails.
    :param saved: the name that the call of a node gives, which it takes away when it fails.
    """
    bits = {name: 1 << place for place, name in enumerate(wanted)}
    every = (1 << len(bits)) - 1
    taken = {id: sum(bits[name] for name in {*names} if name in bits) for id, names in given.items()}
    found = {paths.starts[0]: every} if paths.starts else {}
    ahead = deque(found)
    waiting = set(ahead)
    while ahead:
        id = ahead.popleft()
        waiting.discard(id)
        edges = paths.edges.get(id, ())
        failed = found[id] | bits.get(saved.get(id, ""), 0)
        for place, target in enumerate(paths.targets.get(id, ())):
            after = found[id] & ~taken.get(id, 0) if place < len(edges) else failed
            before = found.get(target)
            if before is None or after & ~before:
                found[target] = after | (before or 0)
                if target not in waiting:
                    waiting.add(target)
                    ahead.append(target)
    return found


def _names(outline: Outline, ids: list[str]) -> str:
    named = [f'"{data_of(outline.by_id[id]).get("name") or id}"' for id in ids[:MOST_NAMED]]
    return ", ".join(named) + (f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else "")
