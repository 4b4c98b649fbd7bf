"""Where the nodes of a drawing are: as stored, or in layers."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, sqrt
from statistics import fmean, median

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
# How often the layers are gone through, down or up, to find an order with fewer crossings, and to straighten edges.
ORDERING, STRAIGHTENING = 16, 16

Point = tuple[float, float]
# Of each vertex those that edges lead to, or from; without entries where there are none.
Neighbours = dict[int, list[int]]


@dataclass
class Layout:
    """The middle of each node; for the edges of a layered drawing also the points that they pass.

    :param via: by the place of an edge in the graph: the points from its source to its target. The first has room for
        its label.
    """

    nodes: list[Point]
    via: dict[int, list[Point]] = field(default_factory=dict)


def place(graph: DrawnGraph, *, stored: bool = True) -> Layout:
    """Place the nodes of a graph.

    :param stored: keep the stored positions, if they are sensible.
    """
    if stored and (found := _stored(graph)):
        return Layout(found)
    return _layered(graph)


def _stored(graph: DrawnGraph) -> list[Point]:
    """The stored positions, if each node has one of its own; else none. A node that lies on others goes below them."""
    points = [node.position for node in graph.nodes if node.position is not None]
    if not points or len(points) < len(graph.nodes) or len(set(points)) < len(points):
        return []
    furthest = FURTHEST * len(points)
    if any(max(values) - min(values) > furthest or max(map(abs, values)) > 1e9 for values in zip(*points, strict=True)):
        return []
    # Only nodes in neighbouring cells of a grid can overlap.
    width, height = NODE_WIDTH + LEAST_GAP, NODE_HEIGHT + LEAST_GAP
    cells: dict[tuple[int, int], list[Point]] = {}

    def is_taken(x: float, y: float) -> bool:
        column, row = int(x // width), int(y // height)
        near = ((column + dx, row + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1))
        return any(
            abs(x - other) < width and abs(y - below) < height for cell in near for other, below in cells.get(cell, ())
        )

    def put(at: int, point: Point) -> None:
        points[at] = point
        cells.setdefault((int(point[0] // width), int(point[1] // height)), []).append(point)

    lying = []
    for at, point in enumerate(points):
        if is_taken(*point):
            lying.append(at)
        else:
            put(at, point)
    steps = 0
    for at in lying:
        x, y = points[at]
        while is_taken(x, y):
            y += height
            steps += 1
            if steps > len(points):  # a heap, not a drawing
                return []
        put(at, (x, y))
    return points


def _layered(graph: DrawnGraph) -> Layout:
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
    return Layout(
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
    """What is placed: nodes, and one vertex for each layer that an edge passes, one of them for its label.

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


def _components(pairs: list[tuple[int, int]]) -> Iterator[list[tuple[int, Point]]]:
    """The vertices of each connected part with their places, in units of a column and a layer; the start's part first.

    By Sugiyama's method: in each layer the vertices are ordered by the median of their neighbours, up and down, and the
    order with the fewest crossings is kept; then each goes as near to its neighbours as the order lets it.
    """
    below: Neighbours = {}
    above: Neighbours = {}
    for upper, lower in sorted(set(pairs)):
        below.setdefault(upper, []).append(lower)
        above.setdefault(lower, []).append(upper)
    for part in _parts(below, above):
        layers = _ordered(_layers(part, below, above), below, above)
        columns = _columns(layers, below, above)
        yield [(vertex, (columns[vertex], float(depth))) for depth, layer in enumerate(layers) for vertex in layer]


def _parts(below: Neighbours, above: Neighbours) -> Iterator[list[int]]:
    """The connected parts, each as its vertices in ascending order, by the first of them."""
    seen: set[int] = set()
    for first in sorted({*below, *above}):
        if first in seen:
            continue
        seen.add(first)
        part = [first]
        for vertex in part:  # which grows meanwhile
            near = [each for each in (*below.get(vertex, ()), *above.get(vertex, ())) if each not in seen]
            seen.update(near)
            part += dict.fromkeys(near)
        yield sorted(part)


def _layers(part: list[int], below: Neighbours, above: Neighbours) -> list[list[int]]:
    """The vertices of a part by layers: each is below all that lead to it. What one leads to is side by side."""
    waiting = {vertex: len(above.get(vertex, ())) for vertex in part}
    layer = [vertex for vertex in part if not waiting[vertex]]
    layers = []
    while layer:
        layers.append(layer)
        following = []
        for vertex in layer:
            for lower in below.get(vertex, ()):
                waiting[lower] -= 1
                if not waiting[lower]:
                    following.append(lower)
        layer = following
    found: dict[int, int] = {}
    for first in layers[0]:
        ahead = [first]
        while ahead:
            vertex = ahead.pop()
            if vertex not in found:
                found[vertex] = len(found)
                ahead += reversed(below.get(vertex, ()))
    return [sorted(layer, key=found.__getitem__) for layer in layers]


def _ordered(layers: list[list[int]], below: Neighbours, above: Neighbours) -> list[list[int]]:
    """The layers in an order with few crossings."""
    best, fewest = layers, _crossings(layers, below)
    layers = list(layers)
    for sweep in range(ORDERING):
        if not fewest:
            break
        near, step = (above, -1) if sweep % 2 == 0 else (below, 1)
        for at in range(1, len(layers)) if step == -1 else range(len(layers) - 2, -1, -1):
            places = {vertex: place for place, vertex in enumerate(layers[at + step])}
            wanted: dict[int, float] = {}
            for place, vertex in enumerate(layers[at]):
                found = [places[each] for each in near.get(vertex, ())]
                wanted[vertex] = median(found) if found else place
            layers[at] = sorted(layers[at], key=wanted.__getitem__)
        if (found_crossings := _crossings(layers, below)) < fewest:
            best, fewest = list(layers), found_crossings
    return best


def _crossings(layers: list[list[int]], below: Neighbours) -> int:
    """How many pairs of edges cross: of the lower ends, in the order of the upper ones, how many are out of order."""
    count = 0
    for upper, lower in pairwise(layers):
        places = {vertex: place for place, vertex in enumerate(lower)}
        passed: list[int] = []
        for vertex in upper:
            ends = sorted(places[each] for each in below.get(vertex, ()))
            count += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return count


def _columns(layers: list[list[int]], below: Neighbours, above: Neighbours) -> dict[int, float]:
    """The column of each vertex, at least one apart in a layer: near to the vertices above, below, and at last both."""
    columns = {vertex: float(place) for layer in layers for place, vertex in enumerate(layer)}
    for sweep in range(STRAIGHTENING):
        is_last = sweep >= STRAIGHTENING // 2
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = []
            for vertex in layer:
                uppers, lowers = above.get(vertex, []), below.get(vertex, [])
                near = [*uppers, *lowers] if is_last else uppers if sweep % 2 == 0 else lowers
                wanted.append(fmean(columns[each] for each in near) if near else columns[vertex])
            columns.update(zip(layer, _apart(wanted), strict=True))
    return columns


def _apart(wanted: list[float]) -> list[float]:
    """The nearest places to these that keep their order and are at least one apart, by the least squares."""
    blocks: list[tuple[float, int]] = []  # what touches: how far it is from its first place's number, and how many
    for place, at in enumerate(wanted):
        mean, count = at - place, 1
        while blocks and blocks[-1][0] >= mean:
            before, many = blocks.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        blocks.append((mean, count))
    means = [mean for mean, count in blocks for _ in range(count)]
    return [mean + place for place, mean in enumerate(means)]


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
