"""Every page of the console: how it looks, and that it can be used by everybody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import KEY, Api, Server
from browsing import NARROW, WIDE, Open, Tab, routes
from seed import populate, receiver

pytestmark = pytest.mark.long

# On a narrow screen, the cells of tables that are lower than the heading beside their value.
CROWDED = """() => [...document.querySelectorAll('.cards td')].filter((cell) => {
  const heading = getComputedStyle(cell, '::before');
  if (!cell.offsetHeight || heading.content === 'none' || heading.content === 'normal') return false;
  const probe = document.createElement('div');
  probe.style.width = heading.width;
  probe.textContent = cell.dataset.heading;
  cell.append(probe);
  const needed = probe.offsetHeight;
  probe.remove();
  return cell.clientHeight < needed;
}).map((cell) => cell.dataset.heading)"""


# How far what is there is moved by what comes later.
SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver((list) => window.shifts.push(...list.getEntries().filter((each) => !each.hadRecentInput)))
    .observe({type: 'layout-shift'});
}"""
MOVED = "shifts.map(({value, sources}) => [value, ...sources.map(({node}) => node?.outerHTML?.slice(0, 80))])"
MOST_SHIFT = 0.1

# What the Tab key has to reach, numbered.
STOPS = """() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
  .filter((each) => each.tabIndex >= 0 && !each.disabled && each.checkVisibility({visibilityProperty: true}))
  .filter((each) => each.type !== 'radio' || each.checked) // of a group, the Tab key stops at the chosen one
  .map((each, at) => {
    each.dataset.stop = at;
    return each.outerHTML.slice(0, 120);
  })"""
# Whether nothing has the focus; the number of what has it; whether that is seen, by an outline or by a thick line.
STOP = """() => {
  const each = document.activeElement;
  const line = each.querySelector(':scope > .box, :scope > .line');
  const {outlineStyle, outlineWidth} = getComputedStyle(each);
  const isOutlined = outlineStyle !== 'none' && parseFloat(outlineWidth) > 0;
  const isSeen = line ? parseFloat(getComputedStyle(line).strokeWidth) >= 3 : isOutlined;
  return [each === document.body, each.dataset.stop ?? null, isSeen];
}"""


@pytest.fixture(scope="module")
def addresses(api: Api) -> Iterator[dict[str, str]]:
    with receiver() as url:
        yield populate(api, url)


@pytest.mark.parametrize("pattern", [*routes(), "/nowhere", "a text chat", "a new case"])
def test_every_page_looks_good_to_everybody(
    open_tab: Open, server: Server, addresses: dict[str, str], screenshots: Path, pattern: str
) -> None:
    """No serious finding of axe-core and no horizontal scrolling: wide and narrow, light and dark, in pictures."""
    path = addresses.get(pattern, pattern)
    assert ":" not in path, f"seed.py has to give an address for {pattern}"
    is_signed_in = pattern != "/sign-in"
    name = pattern.strip("/").replace("/:", "-one").replace("/", "-").replace(" ", "-") or "home"
    for width, viewport in (("wide", WIDE), ("narrow", NARROW)):
        tab = open_tab(f"{server.origin}/#key={KEY}" if is_signed_in else server.origin, path, viewport=viewport)
        for scheme in ("light", "dark"):
            tab.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            tab.page.screenshot(path=screenshots / f"{name}-{width}-{scheme}.png", full_page=True)
            assert tab.findings() == []
        assert tab.overflow() <= 0
        above = tab.page.locator(".trail").evaluate_all(
            "found => found.every((each) => each.compareDocumentPosition(document.querySelector('h1')) === 4)"
        )
        assert above, "What a page is part of stands above its heading"
        assert tab.page.evaluate(CROWDED) == [], "A row's headings lie over each other"


def paths(addresses: dict[str, str]) -> list[str]:
    """An address of each page."""
    return [addresses.get(pattern, pattern) for pattern in routes() if pattern != "/sign-in"]


def test_nothing_jumps_when_the_rest_of_a_page_comes(tab: Tab, addresses: dict[str, str]) -> None:
    """With a slow connection, so that each answer comes by itself."""
    network = tab.page.context.new_cdp_session(tab.page)
    network.send("Network.enable")
    slow = {"offline": False, "latency": 100, "downloadThroughput": -1, "uploadThroughput": -1}
    network.send("Network.emulateNetworkConditions", slow)
    tab.page.evaluate(SHIFTS)
    found: dict[str, Any] = {}
    for path in paths(addresses):
        tab.page.evaluate("window.shifts = []")
        tab.open(path)
        tab.settle()
        moved = tab.page.evaluate(MOVED)
        if sum(value for value, *_ in moved) >= MOST_SHIFT:
            found[path] = moved
    assert found == {}


def test_every_page_is_used_by_keys_alone(tab: Tab, addresses: dict[str, str]) -> None:
    """The Tab key reaches all that can be used, ends, and is always seen."""
    for path in paths(addresses):
        tab.open(path)
        tab.settle()
        tab.page.evaluate("document.activeElement.blur(); document.body.tabIndex = -1; document.body.focus()")
        stops = dict(enumerate(tab.page.evaluate(STOPS)))
        unseen: list[str] = []
        for _ in range(3 * len(stops) + 10):
            tab.page.keyboard.press("Tab")
            is_end, stop, is_seen = tab.page.evaluate(STOP)
            if is_end:
                break
            # A control for a time has several stops, of which the browser marks the later ones inside it.
            if (first := stops.pop(int(stop or -1), None)) and not is_seen:
                unseen.append(first)
            if not stops:
                break
        unreached = [html for stop, html in stops.items() if tab.page.locator(f"[data-stop='{stop}']").count()]
        assert (path, unreached, unseen) == (path, [], [])
