"""A browser tab that opens the console, drives it by what people see, and notes what must not happen there."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import axe_playwright_python
from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, Request, Response, expect

STATIC = Path(__file__).parents[2] / "voiceapi" / "console" / "static"
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
# What the page may not have in any state: code or styles in the document itself, or addresses that are code.
FOREIGN = """() => [...document.querySelectorAll('script:not([src]), style, link[href^="http"], iframe, object, embed')]
  .concat([...document.querySelectorAll('*')].filter((each) => [...each.attributes].some(
    ({name, value}) => /^on/i.test(name) || /^\\s*javascript:/i.test(value))))
  .map((each) => each.outerHTML.slice(0, 200))"""
# Evaluated by the browser's own debugger, which no Content-Security-Policy holds off.
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
RUN_AXE = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations
  .filter(({impact}) => impact === 'serious' || impact === 'critical')
  .flatMap(({id, nodes}) => nodes.map((node) => id + ': ' + node.target.join(' ') + ' ' + node.failureSummary))"""
IS_READY = """() => {
  const main = document.getElementById('main');
  return main && !main.hasAttribute('aria-busy') && !document.title.startsWith('Loading')
    && document.title !== 'voiceapi' && !main.querySelector('.loading');
}"""


def routes() -> dict[str, str]:
    """The console's pages: the pattern of an address and the name of its module."""
    return dict(re.findall(r'\["(/[^"]*)", page\("([\w-]+)"\)', (STATIC / "main.js").read_text()))


# The machine may be busy with other tests.
PATIENCE = 20_000
expect.set_options(timeout=PATIENCE)


class Tab:
    """A tab of the console at `address`, the URL of its page. `check` fails if anything happened that must not."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.address = address
        self.problems: list[str] = []
        self._expected: list[str] = []
        self._origin = urlsplit(address)[:2]
        self._open: set[Request] = set()
        self.page = self.watch(context.new_page())

    def watch(self, page: Page) -> Page:
        """Note the problems of another tab, too."""
        page.set_default_timeout(PATIENCE)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_end)
        page.on("requestfailed", self._on_end)
        page.on("response", self._on_response)
        return page

    def _on_console(self, message: ConsoleMessage) -> None:
        # An answer that is an error is noted by `_on_response`, with its URL.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.problems.append(f"{message.type} in the console: {message.text}")

    def _on_request(self, request: Request) -> None:
        self._open.add(request)
        if urlsplit(request.url)[:2] != self._origin and not request.url.startswith(("blob:", "data:")):
            self.problems.append(f"a request to another host: {request.url}")

    def _on_end(self, request: Request) -> None:
        self._open.discard(request)

    def _on_response(self, response: Response) -> None:
        if response.status >= 400:
            self.problems.append(f"{response.status} {response.request.method} {response.url}")

    @contextmanager
    def expecting(self, *patterns: str) -> Iterator[None]:
        """Within it, problems that match one of these patterns are expected, and each pattern has to match one."""
        before = len(self.problems)
        yield
        self.settle()
        found = self.problems[before:]
        for pattern in patterns:
            assert any(re.search(pattern, problem) for problem in found), f"Nothing like {pattern!r} among {found}"
        self.problems[before:] = [
            problem for problem in found if not any(re.search(pattern, problem) for pattern in patterns)
        ]

    def settle(self) -> None:
        """Wait until all requests are answered: a page sends several at once, and one may be the answer to another."""
        quiet, deadline = 0, time.monotonic() + 10
        while quiet < 2 and time.monotonic() < deadline:
            self.page.wait_for_timeout(50)
            quiet = 0 if self._open else quiet + 1

    def check(self) -> None:
        assert not self.problems, self.problems
        if not self.page.is_closed():
            foreign = self.page.evaluate(FOREIGN)
            assert not foreign, foreign

    def open(self, path: str) -> None:
        """Open a page of the console by its address, and wait until it shows what it asked for."""
        self.page.goto(f"{self.address}#{path}")
        self.ready()

    def ready(self) -> None:
        self.page.wait_for_function(IS_READY)

    def role(self, role: Any, name: str | re.Pattern[str], **options: Any) -> Locator:
        return self.page.get_by_role(role, name=name, **options)

    def press(self, name: str | re.Pattern[str], **options: Any) -> None:
        """Press the button of this name."""
        self.role("button", name, **options).click()

    def follow(self, name: str | re.Pattern[str], **options: Any) -> None:
        """Click on the link of this name, and wait for the page that it leads to."""
        self.role("link", name, **options).first.click()
        self.ready()

    def fill(self, label: str | re.Pattern[str], text: str) -> None:
        self.page.get_by_label(label).fill(text)

    def heading(self, text: str | re.Pattern[str]) -> None:
        expect(self.page.get_by_role("heading", level=1)).to_have_text(text)

    def notices(self, text: str | re.Pattern[str]) -> None:
        """See a notice that a screen reader reads out."""
        notice = self.page.get_by_role("status").get_by_text(text).first
        expect(notice).to_be_visible()

    def sees(self, text: str | re.Pattern[str], **options: Any) -> None:
        expect(self.page.get_by_role("main").get_by_text(text).first).to_be_visible(**options)

    def findings(self) -> list[str]:
        """The serious findings of axe-core about what is shown now."""
        self.page.evaluate(AXE)
        found: list[str] = self.page.evaluate(RUN_AXE)
        return found

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        found: int = self.page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")
        return found


Open = Callable[..., Tab]
