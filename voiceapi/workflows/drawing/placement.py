"""Where the nodes of a drawing are: as stored, or in layers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, sqrt
from threading import stack_size

from .graph import DrawnGraph

NODE_WIDTH, NODE_HEIGHT = 184, 54
LABEL_WIDTH, LABEL_HEIGHT = 150, 22
# Between neighbours: the least that stored positions keep, and what a layered drawing has.
LEAST_GAP, GAP = 12, 28
# Between the middle of a node and that of the label below it.
LAYER = 62
# The widest row of parts that aren't connected.
WIDEST = 1600
# How far apart stored positions may be, for each node: further ones leave a picture in which nothing can be read.
FURTHEST = 1600
# How many vertices are placed in layers: nodes, and the places of edges between them.
MOST_VERTICES = 2000
# The layout library is recursive: a long chain of vertices takes a quarter of a kilobyte of the thread's stack for
# each, and a thread that runs out ends the process. So it gets no more than a small part of any system's stack holds,
# and nothing in an app that chose a smaller stack for its threads.
MOST_FOR_LIBRARY = 1000
LEAST_STACK = 1 << 20

Point = tuple[float, float]


@dataclass
class Placement:
    """The middle of each node; for the edges of a layered drawing also the points that they pass.

    :param via: by the place of an edge in the graph: the points from its source to its target. The first has room for
        its label.
    """

    nodes: list[Point]
    via: dict[int, list[Point]] = field(default_factory=dict)


def place(graph: DrawnGraph, *, stored: bool = True) -> Placement:
    """Place the nodes of a graph.

    :param stored: keep the stored positions, if they are sensible.
    """
    if stored and (found := _stored(graph)):
        return Placement(found)
    return _layered(graph)


def _stored(graph: DrawnGraph) -> list[Point]:
    """The stored positions, if all nodes have one and no two overlap; else none."""
    points = [node.position for node in graph.nodes if node.position is not None]
    if not points or len(points) < len(graph.nodes):
        return []
    furthest = FURTHEST * len(points)
    if any(max(values) - min(values) > furthest or max(map(abs, values)) > 1e9 for values in zip(*points, strict=True)):
        return []
    # Only nodes in neighbouring cells of a grid can overlap.
    width, height = NODE_WIDTH + LEAST_GAP, NODE_HEIGHT + LEAST_GAP
    cells: dict[tuple[int, int], list[Point]] = {}
    for x, y in points:
        column, row = int(x // width), int(y // height)
        for cell in ((column + dx, row + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)):
            if any(abs(x - other) < width and abs(y - below) < height for other, below in cells.get(cell, ())):
                return []
        cells.setdefault((column, row), []).append((x, y))
    return points


def _layered(graph: DrawnGraph) -> Placement:
    """Place nodes in layers, each below those that lead to it, with room for the labels between the layers."""
    ranks, backward = _ranks(graph)
    pairs, chains = _vertices(graph, ranks, backward)
    points: dict[int, Point] = {}
    alone = sorted(set(range(len(graph.nodes))) - {end for pair in pairs for end in pair})
    bottom = _in_rows(_components(pairs), points) if pairs else 0.0
    columns = max(3, ceil(sqrt(len(alone)))) if alone else 1
    for at, vertex in enumerate(alone):
        x, y = at % columns * (NODE_WIDTH + GAP), bottom + at // columns * (NODE_HEIGHT + GAP)
        points[vertex] = (float(x), float(y))
    return Placement(
        [points[at] for at in range(len(graph.nodes))],
        {edge: [points[vertex] for vertex in chain] for edge, chain in chains.items()},
    )


def _ranks(graph: DrawnGraph) -> tuple[list[int], set[int]]:
    """The layer of each node, and the edges that have to be turned so that no path leads back to its beginning."""
    leaving: dict[int, list[int]] = {}
    for at, edge in enumerate(graph.edges):
        if edge.source != edge.target:
            leaving.setdefault(edge.source, []).append(at)
    entered = {edge.target for edge in graph.edges}
    # From the start, then from what nothing leads to, then from the rest.
    first = sorted(range(len(graph.nodes)), key=lambda at: (graph.nodes[at].type != "startCall", at in entered, at))
    backward: set[int] = set()
    state = [0] * len(graph.nodes)  # 1 while a node's paths are followed, 2 after that
    order: list[int] = []
    for root in first:
        if state[root]:
            continue
        state[root] = 1
        ahead = [(root, iter(leaving.get(root, ())))]
        while ahead:
            node, edges = ahead[-1]
            for at in edges:
                target = graph.edges[at].target
                if state[target] == 1:
                    backward.add(at)
                elif not state[target]:
                    state[target] = 1
                    ahead.append((target, iter(leaving.get(target, ()))))
                    break
            else:
                ahead.pop()
                state[node] = 2
                order.append(node)
    below: dict[int, list[int]] = {}
    for at, edge in enumerate(graph.edges):
        if edge.source != edge.target:
            upper, lower = (edge.target, edge.source) if at in backward else (edge.source, edge.target)
            below.setdefault(upper, []).append(lower)
    ranks = [0] * len(graph.nodes)
    for node in reversed(order):
        for lower in below.get(node, ()):
            ranks[lower] = max(ranks[lower], ranks[node] + 1)
    return ranks, backward


def _vertices(
    graph: DrawnGraph, ranks: list[int], backward: set[int]
) -> tuple[list[tuple[int, int]], dict[int, list[int]]]:
    """What the library gets: nodes, and one vertex for each layer that an edge passes, one of them for its label.

    An edge passes a layer of labels after each layer of nodes, so parallel edges and turned ones have a place of their
    own. An edge to its own node has one below it. The longest edges are left out when there are too many vertices.

    :return: the pairs of vertices, the upper one first; and of each edge those between its source and its target.
    """
    count = len(graph.nodes)
    spans = [max(1, abs(ranks[edge.target] - ranks[edge.source])) for edge in graph.edges]
    pairs: list[tuple[int, int]] = []
    chains: dict[int, list[int]] = {}
    for at in sorted(range(len(spans)), key=spans.__getitem__):
        edge, needed = graph.edges[at], 2 * spans[at] - 1
        if count + needed > MOST_VERTICES:
            break
        chain = list(range(count, count + needed))
        count += needed
        upper, lower = (edge.target, edge.source) if at in backward else (edge.source, edge.target)
        path = [upper, *chain] if upper == lower else [upper, *chain, lower]
        pairs += pairwise(path)
        chains[at] = chain[::-1] if at in backward else chain
    return pairs, chains


def _components(pairs: list[tuple[int, int]]) -> Iterable[list[tuple[int, Point]]]:
    """The vertices of each connected part with their places, in units of a column and a layer; the start's part first.

    Without the library, all are one part, and each layer holds its vertices in the order of what leads to them.
    """
    if len({end for pair in pairs for end in pair}) > MOST_FOR_LIBRARY or 0 < stack_size() < LEAST_STACK:
        yield _plain(pairs)
        return
    try:
        # Few requests draw.
        from fast_sugiyama import from_edges
    except ImportError:
        yield _plain(pairs)
        return
    # Without self loops, parallel edges and circles, which end the process.
    for positions, *_ in sorted(
        from_edges(sorted(set(pairs)), vertex_spacing=1, dummy_vertices=False), key=lambda part: min(part[0])[0]
    ):
        yield [(int(vertex), (float(x), -float(y))) for vertex, (x, y) in positions]


def _plain(pairs: list[tuple[int, int]]) -> list[tuple[int, Point]]:
    below: dict[int, list[int]] = {}
    waiting: dict[int, int] = {}
    for upper, lower in sorted(set(pairs)):
        below.setdefault(upper, []).append(lower)
        waiting[lower] = waiting.get(lower, 0) + 1
    layer = sorted(set(below) - set(waiting))
    found: list[tuple[int, Point]] = []
    depth = 0
    while layer:
        found += [(vertex, (float(at), float(depth))) for at, vertex in enumerate(layer)]
        following = []
        for vertex in layer:
            for lower in below.get(vertex, ()):
                waiting[lower] -= 1
                if not waiting[lower]:
                    following.append(lower)
        layer, depth = following, depth + 1
    return found


def _in_rows(parts: Iterable[list[tuple[int, Point]]], points: dict[int, Point]) -> float:
    """Put connected parts beside each other, in rows, into `points`; return where the next row begins."""
    left = top = height = 0.0
    for part in parts:
        columns, layers = zip(*(point for _, point in part), strict=True)
        width = (max(columns) - min(columns) + 1) * (NODE_WIDTH + GAP)
        if left and left + width > WIDEST:
            left, top, height = 0.0, top + height, 0.0
        for vertex, (column, layer) in part:
            x = left + (column - min(columns)) * (NODE_WIDTH + GAP)
            points[vertex] = (x, top + (layer - min(layers)) * LAYER)
        left += width
        height = max(height, (max(layers) - min(layers)) * LAYER + NODE_HEIGHT + 2 * GAP)
    return top + height
