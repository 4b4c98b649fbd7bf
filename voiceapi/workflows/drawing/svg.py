"""Draws a workflow definition as SVG: its nodes by type, its edges with their labels.

The drawing is readable by itself, on light and dark ground, and has neither scripts nor styles. Whoever shows it may
style its classes: `background`; `node` with `type-<type>`; `edge`; in these `box`, `kind`, `name`, `line`, `arrow`,
`label` and `hit`, an invisible wider line to be clicked; of an overlay `touched` or `untouched`, a node's or an edge's
look, `mark-box`, `mark` and `caption`. The groups of nodes and edges carry `data-node` or `data-edge`, the id, and
`data-index`, the place in the definition's list: ids may be missing or there twice. The way that is taken when a node's
call fails is an edge with `on-error` and without an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import atan2, cos, sin, tau
from unicodedata import combining, east_asian_width

from .. import node_types
from .graph import MISSING, STROKES, DrawnEdge, DrawnGraph, DrawnNode, Mark, Overlay
from .layout import GAP, LABEL_HEIGHT, LABEL_WIDTH, NODE_HEIGHT, NODE_WIDTH, Layout, Point, place

INK, QUIET, PAPER, LINE = "#1b2226", "#4d5a62", "#ffffff", "#5d6b73"
FONT = "system-ui, sans-serif"
# By type of node: the color of its border, that of its ground, and how round its corners are.
LOOKS = {
    "startCall": ("#1d6b34", "#e3f3e7", 27),
    "agentNode": ("#0f6f6a", "#e2f1ef", 10),
    "endCall": ("#a8201a", "#fbe9e7", 27),
    "globalNode": ("#5b4b9a", "#edeaf8", 10),
    "trigger": ("#7a5200", "#fcf1d9", 2),
    "webhook": ("#2a5a91", "#e4eef9", 2),
    "qa": ("#8a3a78", "#f8e8f4", 2),
}
# The services that runs are sent to, and types that are unknown here.
OTHERWISE = ("#4d5a62", "#eef1f3", 2)
TYPE_SIZE, NAME_SIZE, LABEL_SIZE, CAPTION_SIZE = 11, 13.5, 12, 13
# The height of a figure on the border of a node, and the widest figure.
MARK_HEIGHT, MARK_WIDTH = 20, 90
WIDEST_CAPTION = 1200
# How many edges the description tells in words.
MOST_TOLD = 60
_NOTHING = Overlay()
# What XML can't hold, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NARROW, _BROAD = frozenset("iljtfrI.,:;'|!()[] "), frozenset("mwMW@%")
# The longest title of an element, which is shown while the mouse rests on it.
LONGEST_TITLE = 600
# The sides of a node that an edge leaves or enters: from the middle of the node to the middle of the side.
TOP, BOTTOM = (0.0, -NODE_HEIGHT / 2), (0.0, NODE_HEIGHT / 2)
LEFT, RIGHT = (-NODE_WIDTH / 2, 0.0), (NODE_WIDTH / 2, 0.0)
ARROW = 9.0
# How far the arrow is from the node.
SPACE = 2.0


def draw(
    definition: object, name: str = "Workflow", *, stored_positions: bool = True, overlay: Overlay = _NOTHING
) -> str:
    """Draw any JSON value that should be a workflow definition; what is broken is drawn as far as it can be read.

    :param name: the title of the drawing.
    :param stored_positions: put the nodes where they are stored, if that is sensible; else in layers.
    :param overlay: what is shown besides the definition.
    """
    graph = DrawnGraph.of(definition)
    layout = place(graph, stored=stored_positions)
    pills = [_Pill.of(edge.label, overlay.of_edge(edge.id)) for edge in graph.edges]
    found = routes(graph, layout, [pill.width for pill in pills])
    left, top, right, bottom = _bounds(layout, found)
    if not graph.nodes:
        right, bottom = 260.0, 60.0
    caption = [fitted(line, CAPTION_SIZE, WIDEST_CAPTION) for line in overlay.caption]
    captions_at, bottom = bottom, bottom + len(caption) * 1.5 * CAPTION_SIZE + (GAP / 2 if caption else 0)
    right = max([right, *(left + width(line, CAPTION_SIZE) + GAP for line in caption)])
    box = " ".join(number(value) for value in (left, top, right - left, bottom - top))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" class="workflow" viewBox="{box}" '
        f'width="{number(right - left)}" height="{number(bottom - top)}" font-family="{FONT}">',
        f"<title>{title(name)}</title>",
        f"<desc>{xml(' '.join([*overlay.caption, description(graph)]))}</desc>",
        f'<rect class="background" x="{number(left)}" y="{number(top)}" width="{number(right - left)}" '
        f'height="{number(bottom - top)}" fill="{PAPER}"/>',
    ]
    for edge, route, pill in zip(graph.edges, found, pills, strict=True):
        parts += _edge(graph, edge, route, pill, overlay.of_edge(edge.id))
    for node, at in zip(graph.nodes, layout.nodes, strict=True):
        parts += _node(node, at, overlay.of_node(node.id))
    if not graph.nodes:
        parts.append(f'<text class="empty" x="16" y="35" font-size="{NAME_SIZE}" fill="{QUIET}">No nodes yet</text>')
    for row, line in enumerate(caption, start=1):
        at = (left + GAP / 2, captions_at + row * 1.5 * CAPTION_SIZE)
        parts.append(_line("caption", line, at, CAPTION_SIZE, QUIET, anchor="start"))
    return "".join([*parts, "</svg>"])


def description(graph: DrawnGraph) -> str:
    """A graph in words, for those who don't see it."""
    names = [node.name[:100] for node in graph.nodes]
    told = [f"{_counted(len(graph.nodes), 'node')}, {_counted(len(graph.edges), 'edge')}."]
    for edge in graph.edges[:MOST_TOLD]:
        label = f"“{edge.label[:100]}” leads" if edge.label else "An edge leads"
        told.append(f"{label} from {names[edge.source]} to {names[edge.target]}.")
    if len(graph.edges) > MOST_TOLD:
        told.append(f"And {len(graph.edges) - MOST_TOLD} more edges.")
    if graph.nodes_left_out or graph.edges_left_out:
        told.append(f"Not drawn: {graph.nodes_left_out} nodes and {graph.edges_left_out} edges.")
    return " ".join(told)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _bounds(layout: Layout, found: list[Route]) -> tuple[float, float, float, float]:
    """The left, upper, right and lower end of all that is drawn, with a margin."""
    xs = [x + side for x, _ in layout.nodes for side in (-NODE_WIDTH / 2, NODE_WIDTH / 2)]
    ys = [y + side for _, y in layout.nodes for side in (-NODE_HEIGHT / 2, NODE_HEIGHT / 2)]
    for route in found:
        for segment in route.segments:
            xs += [x for x, _ in segment]
            ys += [y for _, y in segment]
        if route.label:
            xs += [route.label[0] - LABEL_WIDTH / 2, route.label[0] + LABEL_WIDTH / 2]
            ys += [route.label[1] - LABEL_HEIGHT / 2, route.label[1] + LABEL_HEIGHT / 2]
    if not xs:
        return (0.0, 0.0, 0.0, 0.0)
    margin = GAP / 2
    return (min(xs) - margin, min(ys) - margin, max(xs) + margin, max(ys) + margin)


@dataclass(frozen=True)
class _Pill:
    """The label of an edge with its figure: both cut to their room, and the width of all."""

    label: str
    figure: str
    width: float

    @classmethod
    def of(cls, label: str, mark: Mark) -> _Pill:
        figure = fitted(mark.label, LABEL_SIZE, MARK_WIDTH)
        taken = width(figure, LABEL_SIZE)
        between = 12 if figure and label else 0
        label = fitted(label, LABEL_SIZE, LABEL_WIDTH - 16 - taken - between)
        room = width(label, LABEL_SIZE) + between + taken
        return cls(label, figure, min(LABEL_WIDTH, room + 16) if room else 0)


def _node(node: DrawnNode, middle: Point, mark: Mark) -> Iterator[str]:
    spec = node_types.by_name().get(node.type)
    kind = spec["display_name"] if spec else "There is no such node" if node.type == MISSING else node.type
    stroke, fill, corner = LOOKS.get(node.type, OTHERWISE)
    left, top = middle[0] - NODE_WIDTH / 2, middle[1] - NODE_HEIGHT / 2
    names = "node" if node.index is not None else "node missing"
    known = f"type-{node.type}" if spec else "type-unknown"
    thickness, dashes = STROKES[mark.look]
    ground = PAPER if mark.look == "untouched" else fill
    room = NODE_WIDTH - 28
    yield f'<g class="{names} {known}{_look(mark)}"{_data("node", node.id, node.index)}>'
    yield f"<title>{title(_told(f'{kind}: {node.name}', mark))}</title>"
    yield (
        f'<rect class="box" x="{number(left)}" y="{number(top)}" width="{NODE_WIDTH}" height="{NODE_HEIGHT}" '
        f'rx="{corner}" fill="{ground}" stroke="{stroke}" '
        f'stroke-width="{thickness:g}"{_dashes(dashes or ("" if spec else "5 4"))}/>'
    )
    yield _line("kind", fitted(kind, TYPE_SIZE, room), (middle[0], top + 20), TYPE_SIZE, stroke)
    yield _line("name", fitted(node.name, NAME_SIZE, room), (middle[0], top + 39), NAME_SIZE, INK, bold=True)
    if mark.label:
        figure = fitted(mark.label, LABEL_SIZE, MARK_WIDTH)
        wide = width(figure, LABEL_SIZE) + 14
        right = middle[0] + NODE_WIDTH / 2 - 6
        yield (
            f'<rect class="mark-box" x="{number(right - wide)}" y="{number(top - MARK_HEIGHT / 2)}" '
            f'width="{number(wide)}" height="{MARK_HEIGHT}" rx="4" fill="{PAPER}" stroke="{stroke}"/>'
        )
        yield _line("mark", figure, (right - wide / 2, top + 4), LABEL_SIZE, INK, bold=True)
    yield "</g>"


def _edge(graph: DrawnGraph, edge: DrawnEdge, route: Route, pill: _Pill, mark: Mark) -> Iterator[str]:
    names = f"{graph.nodes[edge.source].name} → {graph.nodes[edge.target].name}"
    told = ": ".join(each for each in (names, edge.label, edge.condition) if each)
    ends = "".join(
        f' data-{end}="{xml(id)}"'
        for end, at in (("source", edge.source), ("target", edge.target))
        if (id := graph.nodes[at].id) is not None
    )
    missing = " missing" if MISSING in (graph.nodes[edge.source].type, graph.nodes[edge.target].type) else ""
    missing += " on-error" if edge.index is None else ""
    path = route.path()
    thickness, dashes = STROKES[mark.look]
    dashes = dashes or ("8 5" if edge.index is None else "")
    yield f'<g class="edge{missing}{_look(mark)}"{_data("edge", edge.id, edge.index)}{ends}>'
    yield f"<title>{title(_told(told, mark))}</title>"
    yield f'<path class="hit" d="{path}" fill="none" stroke="{PAPER}" stroke-opacity="0" stroke-width="16"/>'
    yield (f'<path class="line" d="{path}" fill="none" stroke="{LINE}" stroke-width="{thickness:g}"{_dashes(dashes)}/>')
    yield f'<path class="arrow" d="{route.arrow()}" fill="{LINE}"/>'
    if pill.width and route.label:
        x, y = route.label
        left, right = x - pill.width / 2, x + pill.width / 2
        yield (
            f'<rect class="label-box" x="{number(left)}" y="{number(y - LABEL_HEIGHT / 2)}" '
            f'width="{number(pill.width)}" height="{LABEL_HEIGHT}" rx="{LABEL_HEIGHT / 2:g}" fill="{PAPER}" '
            f'stroke="{LINE}" stroke-opacity="0.4"/>'
        )
        if not pill.figure:
            yield _line("label", pill.label, (x, y + 4), LABEL_SIZE, QUIET)
        else:
            if pill.label:
                yield _line("label", pill.label, (left + 8, y + 4), LABEL_SIZE, QUIET, anchor="start")
            yield _line("mark", pill.figure, (right - 8, y + 4), LABEL_SIZE, INK, bold=True, anchor="end")
    yield "</g>"


def _look(mark: Mark) -> str:
    return "" if mark.look == "plain" else f" {mark.look}"


def _told(text: str, mark: Mark) -> str:
    """The title of an element; cut before the note of its mark, which stays whole."""
    if not mark.note:
        return text
    room = LONGEST_TITLE - len(mark.note) - 1
    if len(text) > room:
        text = f"{text[: max(0, room - 1)]}…"
    return f"{text}\n{mark.note}"


def _dashes(pattern: str) -> str:
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def _data(kind: str, id: str | None, index: int | None) -> str:
    named = "" if id is None else f' data-{kind}="{xml(id)}"'
    return named if index is None else f'{named} data-index="{index}"'


def _line(
    names: str, text: str, at: Point, size: float, color: str, *, bold: bool = False, anchor: str = "middle"
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text class="{names}" x="{number(at[0])}" y="{number(at[1])}" text-anchor="{anchor}" '
        f'font-size="{size:g}" fill="{color}"{weight}>{xml(text)}</text>'
    )


# -- texts, cut to a width


def xml(text: str) -> str:
    """A text as the content or the attribute of an element."""
    return escape(_NOT_IN_XML.sub("\ufffd", text))


def title(text: str) -> str:
    """A text as the content of a title, cut where it is very long."""
    return xml(text if len(text) <= LONGEST_TITLE else f"{text[:LONGEST_TITLE]}…")


def width(text: str, size: float) -> float:
    """About how wide a text is, in a font of that size."""
    return size * sum(map(_share, text))


def fitted(text: str, size: float, room: float) -> str:
    """A text in one line, cut so that it is no wider than `room`."""
    text = " ".join(text[:300].split())
    if width(text, size) <= room:
        return text
    room -= size
    for at, letter in enumerate(text):
        room -= size * _share(letter)
        if room < 0:
            return f"{text[:at].rstrip()}…"
    return text


def _share(letter: str) -> float:
    if combining(letter):
        return 0.0
    if letter in _NARROW:
        return 0.34
    if letter in _BROAD:
        return 0.9
    if east_asian_width(letter) in "WF":
        return 1.05
    return 0.7 if letter.isupper() else 0.57


# -- the routes of edges


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


def routes(graph: DrawnGraph, layout: Layout, label_widths: list[float]) -> list[Route]:
    """The routes of all edges. No label lies on another one or on a node."""
    ends = _Sides(graph, layout).of_all()
    ports = _ports(graph, layout, ends)
    found = [
        _route(ports[at], ends[at], layout.via.get(at, []), loop=edge.source == edge.target)
        for at, edge in enumerate(graph.edges)
    ]
    taken = _Taken()
    for x, y in layout.nodes:
        taken.add(x, y, NODE_WIDTH, NODE_HEIGHT)
    for at, (label, *_) in layout.via.items():
        taken.add(*label, label_widths[at], LABEL_HEIGHT)
    for at, route in enumerate(found):
        if at not in layout.via and label_widths[at]:
            route.label = taken.free(route, label_widths[at])
    return found


class _Sides:
    """Chooses at which side an edge leaves its source and enters its target, so that it passes no other node."""

    # Where on a curve is looked whether it passes a node.
    SHARES = tuple(step / 14 for step in range(1, 14))

    def __init__(self, graph: DrawnGraph, layout: Layout) -> None:
        self._graph, self._layout = graph, layout
        self._cells: dict[tuple[int, int], list[int]] = {}
        for at, (x, y) in enumerate(layout.nodes):
            for column in range(int((x - NODE_WIDTH / 2) // NODE_WIDTH), int((x + NODE_WIDTH / 2) // NODE_WIDTH) + 1):
                for row in range(
                    int((y - NODE_HEIGHT / 2) // NODE_WIDTH), int((y + NODE_HEIGHT / 2) // NODE_WIDTH) + 1
                ):
                    self._cells.setdefault((column, row), []).append(at)

    def of_all(self) -> list[tuple[Point, Point]]:
        return [self._of(at, edge) for at, edge in enumerate(self._graph.edges)]

    def _of(self, at: int, edge: DrawnEdge) -> tuple[Point, Point]:
        (x, y), (other_x, other_y) = self._layout.nodes[edge.source], self._layout.nodes[edge.target]
        across, down = other_x - x, other_y - y
        if edge.source == edge.target:
            return (BOTTOM, BOTTOM) if at in self._layout.via else (RIGHT, RIGHT)
        upright = (BOTTOM, TOP) if down > 0 else (TOP, BOTTOM)
        level = (RIGHT, LEFT) if across > 0 else (LEFT, RIGHT)
        if at in self._layout.via or abs(across) < NODE_WIDTH:
            return upright
        if abs(down) < NODE_HEIGHT * 1.4:
            return level
        usual, other = (upright, level) if abs(down) > abs(across) * 0.6 else (level, upright)
        choices = (usual, other, (upright[0], level[1]), (level[0], upright[1]))
        return min(choices, key=lambda sides: (self._passed(edge, sides), choices.index(sides)))

    def _passed(self, edge: DrawnEdge, sides: tuple[Point, Point]) -> int:
        """How many other nodes an edge would pass."""
        ends = [self._layout.nodes[node] for node in (edge.source, edge.target)]
        start, stop = ((x + dx, y + dy) for (x, y), (dx, dy) in zip(ends, sides, strict=True))
        segment = _segment(start, stop, sides)
        passed = set()
        for x, y in (_on_curve(segment, share) for share in self.SHARES):
            for node in self._cells.get((int(x // NODE_WIDTH), int(y // NODE_WIDTH)), ()):
                middle = self._layout.nodes[node]
                if abs(middle[0] - x) < NODE_WIDTH / 2 + 4 and abs(middle[1] - y) < NODE_HEIGHT / 2 + 4:
                    passed.add(node)
        return len(passed - {edge.source, edge.target})


def _ports(graph: DrawnGraph, layout: Layout, ends: list[tuple[Point, Point]]) -> list[tuple[Point, Point]]:
    """Where each edge leaves and enters: the edges at one side of a node in the order of what they lead to."""
    at_side: dict[tuple[int, Point], list[tuple[Point, int, int]]] = {}
    for at, edge in enumerate(graph.edges):
        via = layout.via.get(at, [])
        for end, node, other in ((0, edge.source, edge.target), (1, edge.target, edge.source)):
            towards = via[-end] if via else layout.nodes[other]
            at_side.setdefault((node, ends[at][end]), []).append((towards, at, end))
    ports: list[list[Point]] = [[(0.0, 0.0), (0.0, 0.0)] for _ in graph.edges]
    for (node, (dx, dy)), edges in at_side.items():
        x, y = layout.nodes[node]
        upright = dx == 0  # a port moves along its side
        edges.sort(key=lambda each: (each[0][0 if upright else 1], each[1], each[2]))
        room = 0.8 * (NODE_WIDTH if upright else NODE_HEIGHT)
        step = min(room / len(edges), 24.0 if upright else 14.0)
        for index, (_, at, end) in enumerate(edges):
            shift = (index - (len(edges) - 1) / 2) * step
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
