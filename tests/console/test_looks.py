"""Every page of the console: how it looks, and that it can be used by everybody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import KEY, Api, Server
from browsing import NARROW, WIDE, Open, routes
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
