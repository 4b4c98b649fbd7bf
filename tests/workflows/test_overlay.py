"""What a drawing shows besides the definition: figures at nodes and edges, told apart without color."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from tests.workflows.test_drawing import SVG, edge, groups, node, parsed
from voiceapi.workflows.drawing.graph import STROKES, Mark, Overlay
from voiceapi.workflows.drawing.layout import LABEL_WIDTH
from voiceapi.workflows.drawing.svg import draw

DEFINITION = {
    "nodes": [node("1", "startCall", "Welcome"), node("2", name="Ask"), node("3", "endCall", "Bye")],
    "edges": [edge("1", "2", "Yes"), edge("2", "3", "A label that is so long that it has to be cut"), edge("1", "3")],
}
OVERLAY = Overlay(
    {"1": Mark("12", "touched", "In 12 conversations."), "2": Mark("0", "untouched")},
    {"1-2": Mark("7", "touched"), "2-3": Mark("0", "untouched", "In no conversation.")},
    ("Nodes: 1 of 3 <covered>.", "Dotted: untouched."),
)


def group(root: ElementTree.Element, kind: str, id: str) -> ElementTree.Element:
    return next(each for each in groups(root, kind) if each.get(f"data-{kind}") == id)


def texts(element: ElementTree.Element, names: str) -> list[str | None]:
    return [each.text for each in element.iter(f"{SVG}text") if each.get("class") == names]


def part(element: ElementTree.Element, names: str) -> ElementTree.Element:
    return next(each for each in element.iter() if each.get("class") == names)


def test_a_drawing_without_an_overlay_is_as_it_was() -> None:
    assert draw(DEFINITION, overlay=Overlay()) == draw(DEFINITION)
    assert "mark" not in draw(DEFINITION)


def test_looks_differ_in_more_than_color() -> None:
    assert len(set(STROKES.values())) == len(STROKES)


@pytest.mark.parametrize(("kind", "id", "shape"), [("node", "1", "box"), ("edge", "1-2", "line")])
def test_what_is_touched_has_bold_lines_and_its_figure(kind: str, id: str, shape: str) -> None:
    found = group(parsed(DEFINITION, overlay=OVERLAY), kind, id)
    assert "touched" in str(found.get("class")).split()
    assert part(found, shape).get("stroke-width") == "3"
    assert part(found, shape).get("stroke-dasharray") is None
    assert texts(found, "mark") == ["12" if kind == "node" else "7"]


@pytest.mark.parametrize(("kind", "id", "shape"), [("node", "2", "box"), ("edge", "2-3", "line")])
def test_what_is_untouched_has_dotted_lines(kind: str, id: str, shape: str) -> None:
    found = group(parsed(DEFINITION, overlay=OVERLAY), kind, id)
    assert "untouched" in str(found.get("class")).split()
    assert part(found, shape).get("stroke-dasharray") == "2 4"
    assert texts(found, "mark") == ["0"]


def test_what_has_no_mark_is_drawn_as_without_an_overlay() -> None:
    marked, plain = parsed(DEFINITION, overlay=OVERLAY), parsed(DEFINITION)
    for kind, id in (("node", "3"), ("edge", "1-3")):
        assert ElementTree.tostring(group(marked, kind, id)) == ElementTree.tostring(group(plain, kind, id))


def test_a_label_and_its_figure_share_their_room() -> None:
    found = group(parsed(DEFINITION, overlay=OVERLAY), "edge", "2-3")
    (label,) = texts(found, "label")
    assert label is not None
    assert label.endswith("…")
    assert float(part(found, "label-box").get("width") or 0) <= LABEL_WIDTH


def test_an_edge_without_a_label_shows_its_figure() -> None:
    definition = {"nodes": DEFINITION["nodes"], "edges": [edge("1", "2", "", id="e")]}
    found = group(parsed(definition, overlay=Overlay(edges={"e": Mark("3")})), "edge", "e")
    assert (texts(found, "label"), texts(found, "mark")) == ([], ["3"])


def test_notes_and_the_caption_are_in_words() -> None:
    root = parsed(DEFINITION, overlay=OVERLAY)
    assert group(root, "node", "1").findtext(f"{SVG}title") == "Start Call: Welcome\nIn 12 conversations."
    assert str(group(root, "edge", "2-3").findtext(f"{SVG}title")).endswith("\nIn no conversation.")
    assert texts(root, "caption") == list(OVERLAY.caption)
    assert str(root.findtext(f"{SVG}desc")).startswith("Nodes: 1 of 3 <covered>. Dotted: untouched. 3 nodes, 3 edges.")


def test_a_note_stays_whole_beside_a_long_name() -> None:
    definition = {"nodes": [node("1", name="a" * 2000)], "edges": []}
    root = parsed(definition, overlay=Overlay({"1": Mark(note="In 2 conversations.")}))
    told = str(group(root, "node", "1").findtext(f"{SVG}title"))
    assert len(told) <= 600
    assert told.endswith("…\nIn 2 conversations.")


def test_the_picture_has_room_for_its_caption() -> None:
    plain, marked = (
        [float(number) for number in str(parsed(DEFINITION, **options).get("viewBox")).split()]
        for options in ({}, {"overlay": Overlay(caption=("w" * 80,))})
    )
    assert marked[:2] == plain[:2]
    assert marked[2] > 80 * 10
    assert marked[3] > plain[3]
    root = parsed(DEFINITION, overlay=Overlay(caption=("a", "b")))
    bottom = sum(float(number) for number in str(root.get("viewBox")).split()[1::2])
    assert all(float(each.get("y") or 0) < bottom for each in root.iter(f"{SVG}text"))


def test_texts_of_an_overlay_are_only_texts() -> None:
    evil: Any = "<script>\0\ud800</script>"
    overlay = Overlay({"1": Mark(evil, note=evil)}, {"1-2": Mark(evil, note=evil)}, (evil,))
    parsed(DEFINITION, overlay=overlay)
