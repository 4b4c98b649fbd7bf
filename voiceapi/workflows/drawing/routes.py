"""How the edges of a drawing run, and where their labels are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import atan2, cos, sin, tau

from .graph import DrawnEdge, DrawnGraph
from .placement import LABEL_HEIGHT, LABEL_WIDTH, NODE_HEIGHT, NODE_WIDTH, Placement, Point

# The sides of a node that an edge leaves or enters: from the middle of the node to the middle of the side.
TOP, BOTTOM = (0.0, -NODE_HEIGHT / 2), (0.0, NODE_HEIGHT / 2)
LEFT, RIGHT = (-NODE_WIDTH / 2, 0.0), (NODE_WIDTH / 2, 0.0)
ARROW = 9.0
# How far the arrow is from the node.
SPACE = 2.0


@dataclass
class Route:
    """The curve of an edge as cubic Bézier segments, each with its four points.

    :param label: the middle of its label; None if there is no room for it.
    """

    segments: list[tuple[Point, Point, Point, Point]]
    label: Point | None

    def path(self) -> str:
        """The curve as the `d` of a path, up to the arrow."""
        start = self.segments[0][0]
        rest = (f"C{_text(*first)} {_text(*second)} {_text(*end)}" for _, first, second, end in self.segments)
        return f"M{_text(*start)}{''.join(rest)}"

    def arrow(self) -> str:
        """The arrowhead at its end, as the `d` of a path."""
        (x, y), (before, above) = self.segments[-1][3], self.segments[-1][2]
        angle = atan2(y - above, x - before)
        corners = [
            (x + ARROW * cos(angle), y + ARROW * sin(angle)),
            *((x + ARROW / 2 * cos(angle + turn), y + ARROW / 2 * sin(angle + turn)) for turn in (1.57, -1.57)),
        ]
        return f"M{'L'.join(_text(*corner) for corner in corners)}Z"


def routes(graph: DrawnGraph, placement: Placement, label_widths: list[float]) -> list[Route]:
    """The routes of all edges. No label lies on another one or on a node."""
    ends = _Sides(graph, placement).of_all()
    ports = _ports(graph, placement, ends)
    found = [
        _route(ports[at], ends[at], placement.via.get(at, []), loop=edge.source == edge.target)
        for at, edge in enumerate(graph.edges)
    ]
    taken = _Taken()
    for x, y in placement.nodes:
        taken.add(x, y, NODE_WIDTH, NODE_HEIGHT)
    for at, (label, *_) in placement.via.items():
        taken.add(*label, label_widths[at], LABEL_HEIGHT)
    for at, route in enumerate(found):
        if at not in placement.via and label_widths[at]:
            route.label = taken.free(route, label_widths[at])
    return found


class _Sides:
    """Chooses at which side an edge leaves its source and enters its target, so that it passes no other node."""

    # Where on a curve is looked whether it passes a node.
    SHARES = tuple(step / 14 for step in range(1, 14))

    def __init__(self, graph: DrawnGraph, placement: Placement) -> None:
        self._graph, self._placement = graph, placement
        self._cells: dict[tuple[int, int], list[int]] = {}
        for at, (x, y) in enumerate(placement.nodes):
            for column in range(int((x - NODE_WIDTH / 2) // NODE_WIDTH), int((x + NODE_WIDTH / 2) // NODE_WIDTH) + 1):
                for row in range(
                    int((y - NODE_HEIGHT / 2) // NODE_WIDTH), int((y + NODE_HEIGHT / 2) // NODE_WIDTH) + 1
                ):
                    self._cells.setdefault((column, row), []).append(at)

    def of_all(self) -> list[tuple[Point, Point]]:
        return [self._of(at, edge) for at, edge in enumerate(self._graph.edges)]

    def _of(self, at: int, edge: DrawnEdge) -> tuple[Point, Point]:
        (x, y), (other_x, other_y) = self._placement.nodes[edge.source], self._placement.nodes[edge.target]
        across, down = other_x - x, other_y - y
        if edge.source == edge.target:
            return (BOTTOM, BOTTOM) if at in self._placement.via else (RIGHT, RIGHT)
        upright = (BOTTOM, TOP) if down > 0 else (TOP, BOTTOM)
        level = (RIGHT, LEFT) if across > 0 else (LEFT, RIGHT)
        if at in self._placement.via or abs(across) < NODE_WIDTH:
            return upright
        if abs(down) < NODE_HEIGHT * 1.4:
            return level
        usual, other = (upright, level) if abs(down) > abs(across) * 0.6 else (level, upright)
        choices = (usual, other, (upright[0], level[1]), (level[0], upright[1]))
        return min(choices, key=lambda sides: (self._passed(edge, sides), choices.index(sides)))

    def _passed(self, edge: DrawnEdge, sides: tuple[Point, Point]) -> int:
        """How many other nodes an edge would pass."""
        ends = [self._placement.nodes[node] for node in (edge.source, edge.target)]
        start, stop = ((x + dx, y + dy) for (x, y), (dx, dy) in zip(ends, sides, strict=True))
        segment = _segment(start, stop, sides)
        passed = set()
        for x, y in (_on_curve(segment, share) for share in self.SHARES):
            for node in self._cells.get((int(x // NODE_WIDTH), int(y // NODE_WIDTH)), ()):
                middle = self._placement.nodes[node]
                if abs(middle[0] - x) < NODE_WIDTH / 2 + 4 and abs(middle[1] - y) < NODE_HEIGHT / 2 + 4:
                    passed.add(node)
        return len(passed - {edge.source, edge.target})


def _ports(graph: DrawnGraph, placement: Placement, ends: list[tuple[Point, Point]]) -> list[tuple[Point, Point]]:
    """Where each edge leaves and enters: the edges at one side of a node in the order of what they lead to."""
    at_side: dict[tuple[int, Point], list[tuple[Point, int, int]]] = {}
    for at, edge in enumerate(graph.edges):
        via = placement.via.get(at, [])
        for end, node, other in ((0, edge.source, edge.target), (1, edge.target, edge.source)):
            towards = via[-end] if via else placement.nodes[other]
            at_side.setdefault((node, ends[at][end]), []).append((towards, at, end))
    ports: list[list[Point]] = [[(0.0, 0.0), (0.0, 0.0)] for _ in graph.edges]
    for (node, (dx, dy)), edges in at_side.items():
        x, y = placement.nodes[node]
        upright = dx == 0  # a port moves along its side
        edges.sort(key=lambda each: (each[0][0 if upright else 1], each[1], each[2]))
        room = 0.8 * (NODE_WIDTH if upright else NODE_HEIGHT)
        step = min(room / len(edges), 24.0 if upright else 14.0)
        for place, (_, at, end) in enumerate(edges):
            shift = (place - (len(edges) - 1) / 2) * step
            ports[at][end] = (x + dx + (shift if upright else 0), y + dy + (0 if upright else shift))
    return [(first, second) for first, second in ports]


def _route(ports: tuple[Point, Point], sides: tuple[Point, Point], via: list[Point], *, loop: bool) -> Route:
    (x, y), end = ports[0], _before_arrow(ports[1], sides[1])
    if loop and via:
        middle, below = via[0]
        left, right = (middle - 14, below), (middle + 14, below)
        turn = (left, (left[0], below + 24), (right[0], below + 24), right)
        segments = [_segment((x, y), left, (BOTTOM, TOP)), turn, _segment(right, end, (TOP, BOTTOM))]
        return Route(segments, via[0])
    if loop:
        out = x + 64
        return Route([((x, y - 8), (out, y - 26), (out, y + 26), (end[0], y + 8))], (x + 60, y))
    points = [(x, y), *via, end]
    segments = [_segment(start, stop, sides) for start, stop in pairwise(points)]
    return Route(segments, via[0] if via else _on_curve(segments[0], 0.5))


def _segment(start: Point, stop: Point, sides: tuple[Point, Point]) -> tuple[Point, Point, Point, Point]:
    """A curve that leaves the one side and enters the other at right angles."""
    (x, y), (other_x, other_y) = start, stop
    upright, enters_upright = sides[0][0] == 0, sides[1][0] == 0
    reach = 0.5 if upright == enters_upright else 0.8
    across, down = (other_x - x) * reach, (other_y - y) * reach
    first = (x, y + down) if upright else (x + across, y)
    second = (other_x, other_y - down) if enters_upright else (other_x - across, other_y)
    return (start, first, second, stop)


def _before_arrow(port: Point, side: Point) -> Point:
    """The end of the line: the arrow takes the rest up to the node's side."""
    length = ARROW + SPACE
    return (
        port[0] + (length if side[0] > 0 else -length if side[0] < 0 else 0),
        port[1] + (length if side[1] > 0 else -length if side[1] < 0 else 0),
    )


def _on_curve(segment: tuple[Point, Point, Point, Point], share: float) -> Point:
    rest = 1 - share
    weights = (rest**3, 3 * rest**2 * share, 3 * rest * share**2, share**3)
    x, y = (sum(weight * point[axis] for weight, point in zip(weights, segment, strict=True)) for axis in (0, 1))
    return (x, y)


class _Taken:
    """The boxes of nodes and labels, by the cells of a grid that they touch."""

    CELL = float(NODE_WIDTH)
    # How many places are looked at in all: thousands of edges between two nodes would look at millions.
    MOST_LOOKED_AT = 40_000
    RINGS = 20

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], list[tuple[float, float, float, float]]] = {}
        self._left = self.MOST_LOOKED_AT

    def add(self, x: float, y: float, width: float, height: float) -> None:
        box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        for cell in self._touched(box):
            self._cells.setdefault(cell, []).append(box)

    def free(self, route: Route, width: float) -> Point | None:
        """The first free place for a label: on its curve, else beside it, ever further away."""
        for x, y in self._places(route):
            if self._left <= 0:
                return None
            box = (x - width / 2 - 2, y - LABEL_HEIGHT / 2 - 2, x + width / 2 + 2, y + LABEL_HEIGHT / 2 + 2)
            near = [other for cell in self._touched(box) for other in self._cells.get(cell, ())]
            self._left -= 1 + len(near) // 20
            if not any(
                box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in near
            ):
                self.add(x, y, width, LABEL_HEIGHT)
                return (x, y)
        return None

    def _places(self, route: Route) -> Iterator[Point]:
        for share in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8):
            yield _on_curve(route.segments[0], share)
        x, y = _on_curve(route.segments[0], 0.5)
        for ring in range(1, self.RINGS):
            for step in range(8 * ring):
                angle = tau * step / (8 * ring)
                yield x + cos(angle) * ring * LABEL_WIDTH / 3, y + sin(angle) * ring * LABEL_HEIGHT

    def _touched(self, box: tuple[float, float, float, float]) -> Iterator[tuple[int, int]]:
        left, top, right, bottom = (int(value // self.CELL) for value in box)
        return ((column, row) for column in range(left, right + 1) for row in range(top, bottom + 1))


def _text(x: float, y: float) -> str:
    return f"{number(x)},{number(y)}"


def number(value: float) -> str:
    """A coordinate with at most one digit after its point."""
    return f"{value:.1f}".removesuffix(".0")
