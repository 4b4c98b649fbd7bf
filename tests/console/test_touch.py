"""An agent's canvas by fingers, on small screens, and large as for weak eyes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from asking import KEY, Api, Server
from browsing import NARROW, PATIENCE, Open, Tab
from playwright.sync_api import expect
from test_builder import canvas, made, many, node, place, save, selected, stored, zoom

pytestmark = pytest.mark.long

# How far from the middle of an element a press still means it, up, down and to the sides, in pixels.
REACH = """(element) => {
  const {left, top, width, height} = element.querySelector('.box').getBoundingClientRect();
  const [x, y] = [left + width / 2, top + height / 2];
  return [[1, 0], [-1, 0], [0, 1], [0, -1]].map(([dx, dy]) => {
    let far = 0;
    const isOwn = () => document.elementFromPoint(x + dx * far, y + dy * far)?.closest('g[data-key]') === element;
    while (far < 60 && isOwn()) far += 1;
    return far;
  });
}"""
# The buttons and fields of the page that are smaller than a finger needs.
SMALL = """(least) => [...document.querySelectorAll('main button, main select, main a')]
  .filter((each) => each.checkVisibility() && !each.closest('p, .trail'))
  .map((each) => [each.textContent.trim().slice(0, 20), each.getBoundingClientRect()])
  .filter(([, {width, height}]) => width < least || height < least)
  .map(([name, {width, height}]) => [name, width, height])"""


class Fingers:
    """Fingers on a touch screen, each by its number."""

    def __init__(self, tab: Tab) -> None:
        self._session = tab.page.context.new_cdp_session(tab.page)
        self._down: dict[int, tuple[float, float]] = {}

    def _send(self, kind: str) -> None:
        points = [{"id": id, "x": x, "y": y} for id, (x, y) in self._down.items()]
        self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def press(self, *points: tuple[float, float]) -> None:
        for point in points:
            self._down[len(self._down)] = point
            self._send("touchStart")

    def move(self, *points: tuple[float, float], steps: int = 4) -> None:
        before = dict(self._down)
        for step in range(1, steps + 1):
            for id, to in enumerate(points):
                (x, y), share = before[id], step / steps
                self._down[id] = (x + (to[0] - x) * share, y + (to[1] - y) * share)
            self._send("touchMove")

    def release(self) -> None:
        self._down.clear()
        self._send("touchEnd")


@pytest.fixture
def agent(api: Api) -> int:
    return made(api, many(3))


@pytest.fixture
def phone(open_tab: Open, server: Server, agent: int) -> Tab:
    tab = open_tab(f"{server.origin}/#key={KEY}", f"/agents/{agent}", viewport=NARROW, has_touch=True)
    canvas(tab).evaluate("box => box.scrollIntoView({block: 'center'})")
    return tab


def becomes(tab: Tab, found: Callable[[], Any], wanted: Any) -> None:
    """Wait until something is as wanted: a browser may hand on a finger's moves with the next frame."""
    deadline = time.monotonic() + PATIENCE / 1000
    while found() != wanted and time.monotonic() < deadline:
        tab.page.wait_for_timeout(20)
    assert found() == wanted


def by(point: tuple[float, float], dx: float, dy: float) -> tuple[float, float]:
    return point[0] + dx, point[1] + dy


def test_one_finger_pans_and_moves_what_is_selected(phone: Tab, api: Api, agent: int) -> None:
    fingers = Fingers(phone)
    before = place(phone, "n0")
    fingers.press(before)
    fingers.move(by(before, 40, 60))
    fingers.release()
    becomes(phone, lambda: place(phone, "n0"), pytest.approx(by(before, 40, 60), abs=1))
    assert selected(phone) == set()
    node(phone, "n0").tap()
    assert selected(phone) == {"n0"}
    at = place(phone, "n0")
    fingers.press(at)
    fingers.move(by(at, -30, 50))
    fingers.release()
    save(phone)
    moved = stored(api, agent)["nodes"][0]["position"]
    assert moved["x"] < 0 < moved["y"]
    assert moved["x"] % 10 == moved["y"] % 10 == 0


def test_two_fingers_zoom_at_their_middle_and_pan(phone: Tab) -> None:
    fingers = Fingers(phone)
    box, first, at = canvas(phone).bounding_box(), zoom(phone), place(phone, "n0")
    assert box
    left, right = by(at, -30, 40), by(at, 30, -40)
    fingers.press(left, right)
    fingers.move(by(left, -15, 20), by(right, 15, -20))
    becomes(phone, lambda: zoom(phone), pytest.approx(1.5 * first, rel=0.02))
    becomes(phone, lambda: place(phone, "n0"), pytest.approx(at, abs=2))
    fingers.move(by(left, 5, 50), by(right, 35, 10))
    becomes(phone, lambda: place(phone, "n0"), pytest.approx(by(at, 20, 30), abs=2))
    fingers.release()
    assert selected(phone) == set()
    # The second finger ends a drag of a node, which goes back to where it was.
    node(phone, "n0").tap()
    at = place(phone, "n0")
    fingers.press(at)
    fingers.move(by(at, 30, 30))
    expect(node(phone, "n0")).to_have_class(re.compile("moving"))
    fingers.press(by(at, 30, -60))
    expect(node(phone, "n0")).not_to_have_class(re.compile("moving"))
    fingers.release()
    assert phone.page.get_by_text("Not saved").count() == 0


def test_a_long_press_opens_the_menu_of_what_is_pressed(phone: Tab) -> None:
    fingers = Fingers(phone)
    fingers.press(place(phone, "n0"))
    menu = phone.page.get_by_role("menu")
    expect(menu).to_be_visible()
    fingers.release()
    expect(menu).to_be_visible()
    assert selected(phone) == {"n0"}
    assert phone.findings() == []
    menu.get_by_role("menuitem", name="Remove what is selected").tap()
    expect(node(phone, "n0")).to_have_count(0)


def test_what_is_pressed_is_large_enough_at_any_zoom(phone: Tab, tab: Tab, api: Api) -> None:
    agent = made(api, many(1))
    for each, least in ((phone, 44), (tab, 24)):
        each.open(f"/agents/{agent}")
        expect(node(each, "n0")).to_be_visible()
        assert each.page.evaluate(SMALL, least) == []
        node(each, "n0").focus()
        for _ in range(14):
            each.page.keyboard.press("-")
        assert zoom(each) == pytest.approx(0.1)
        # Once the zoom has come to rest.
        wide = re.compile(rf"^{10 * least}(\.0*\d+)?$")
        expect(each.page.locator(".canvas-box .scene > g")).to_have_attribute("stroke-width", wide)
        right, left, _, up = node(each, "n0").evaluate(REACH)  # below it is the handle that leads on
        assert right + left >= least
        assert up >= least / 2


def test_a_telephone_reads_an_agent_and_changes_its_words(phone: Tab, api: Api, agent: int) -> None:
    node(phone, "n0").tap()
    phone.page.get_by_label(re.compile("^Prompt")).fill("Is it a good time?")
    phone.press("Save", exact=True)
    phone.notices(re.compile("^Saved"))
    assert stored(api, agent)["nodes"][0]["data"]["prompt"] == "Is it a good time?"
    assert phone.overflow() <= 0
    assert phone.findings() == []


@pytest.mark.parametrize("size", [{"width": 320, "height": 256}, {"width": 1222, "height": 800}, NARROW])
def test_an_agent_is_edited_at_any_size(open_tab: Open, server: Server, agent: int, size: Any) -> None:
    """320 pixels are a window of 1,280 at 400 %."""
    scale = 4 if size["width"] == 320 else 1
    tab = open_tab(f"{server.origin}/#key={KEY}", f"/agents/{agent}", viewport=size, device_scale_factor=scale)
    for state in ("nothing", "a node", "an edge", "the outline"):
        if state == "a node":
            node(tab, "n0").click()
        elif state == "an edge":
            node(tab, "n0").focus()
            tab.page.keyboard.press("ArrowRight")
            tab.page.keyboard.press("Enter")
        elif state == "the outline":
            tab.press("Outline")
        assert tab.overflow() <= 0, state
        assert tab.findings() == [], state
    box = tab.role("region", "Outline").bounding_box()
    assert box
    assert box["width"] >= min(240, size["width"] - 80)
