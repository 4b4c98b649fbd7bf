"""Draws a workflow definition as SVG: its nodes by type, its edges with their labels.

The drawing is readable by itself, on light and dark ground, and has neither scripts nor styles. Whoever shows it may
style its classes: `background`; `node` with `type-<type>`; `edge`; in these `box`, `kind`, `name`, `line`, `arrow`,
`label` and `hit`, an invisible wider line to be clicked; of an overlay `touched` or `untouched`, a node's or an edge's
look, `mark-box`, `mark` and `caption`. The groups of nodes and edges carry `data-node` or `data-edge`, the id, and
`data-index`, the place in the definition's list: ids may be missing or there twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .. import node_types
from .graph import MISSING, DrawnEdge, DrawnGraph, DrawnNode
from .overlay import STROKES, Mark, Overlay
from .placement import GAP, LABEL_HEIGHT, LABEL_WIDTH, NODE_HEIGHT, NODE_WIDTH, Placement, Point, place
from .routes import Route, number, routes
from .text import LONGEST_TITLE, fitted, title, width, xml

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


def draw(
    definition: object, name: str = "Workflow", *, stored_positions: bool = True, overlay: Overlay = _NOTHING
) -> str:
    """Draw any JSON value that should be a workflow definition; what is broken is drawn as far as it can be read.

    :param name: the title of the drawing.
    :param stored_positions: put the nodes where they are stored, if that is sensible; else in layers.
    :param overlay: what is shown besides the definition.
    """
    graph = DrawnGraph.of(definition)
    placement = place(graph, stored=stored_positions)
    pills = [_Pill.of(edge.label, overlay.of_edge(edge.id)) for edge in graph.edges]
    found = routes(graph, placement, [pill.width for pill in pills])
    left, top, right, bottom = _bounds(placement, found)
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
    for node, at in zip(graph.nodes, placement.nodes, strict=True):
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


def _bounds(placement: Placement, found: list[Route]) -> tuple[float, float, float, float]:
    """The left, upper, right and lower end of all that is drawn, with a margin."""
    xs = [x + side for x, _ in placement.nodes for side in (-NODE_WIDTH / 2, NODE_WIDTH / 2)]
    ys = [y + side for _, y in placement.nodes for side in (-NODE_HEIGHT / 2, NODE_HEIGHT / 2)]
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
    path = route.path()
    thickness, dashes = STROKES[mark.look]
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
