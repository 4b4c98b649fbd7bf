"""A real service and a real browser, for the judges of the console."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from asking import KEY, Api, Serve, Server
from browsing import WIDE, Open, Tab
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[2]
# Nothing of the browser's own leaves the machine, and no name of another host is found.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
    "--host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE 127.0.0.1",
)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser. Tests are skipped where there is none."""
    path = os.environ.get("VOICEAPI_TEST_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    if not Path(path).exists():
        pytest.skip(f"There is no {path}: install Debian's package chromium, or name one in VOICEAPI_TEST_CHROMIUM.")
    return path


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A browser for the tests of a module. While it is open, this thread has a running event loop."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where the pictures go that CI keeps."""
    folder = Path(os.environ.get("VOICEAPI_TEST_SCREENSHOTS") or ROOT / "build" / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[..., str]) -> Iterator[Serve]:
    """Starts a service in a folder of its own, or in `folder`. Options are its settings."""
    with ExitStack() as closing:

        def start(
            *,
            folder: Path | None = None,
            command: tuple[str, ...] = ("-m", "voiceapi", "serve", "--port", "0"),
            listens: str = r"(?i)(?:listens|running) on http://127\.0\.0\.1:(\d+)",
            **settings: object,
        ) -> Server:
            folder = folder or tmp_path_factory.mktemp("service")
            log = folder / f"log{time.monotonic_ns()}"
            given = {"DATABASE": database_at(folder / "voice.db"), "ALLOW_PRIVATE_URLS": "on", **settings}
            kept = "VOICEAPI_SECRET"  # a database on a server demands it
            clean = {
                name: text for name, text in os.environ.items() if name == kept or not name.startswith("VOICEAPI_")
            }
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [sys.executable, *command],
                    cwd=ROOT,
                    env=clean | {f"VOICEAPI_{name}": str(value) for name, value in given.items()},
                    stdout=output,
                    stderr=output,
                )
            closing.callback(process.wait)
            closing.callback(process.kill)
            return Server(process, log, listens)

        yield start


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    """A service with a new database and the key KEY, for the tests of a module."""
    return serve(API_KEY=KEY)


@pytest.fixture(scope="module")
def api(server: Server) -> Api:
    return Api(server.origin, KEY)


@pytest.fixture
def open_tab(browser: Browser) -> Iterator[Open]:
    """Opens tabs, each as in a browser of its own; at the end they are checked."""
    tabs: list[Tab] = []
    with ExitStack() as closing:

        def open(
            address: str, path: str | None = None, *, is_ready: bool = True, saves_itself: bool = False, **options: Any
        ) -> Tab:
            context = browser.new_context(
                **{"viewport": WIDE, "locale": "en-US", "reduced_motion": "reduce", **options}
            )
            closing.callback(context.close)
            if not saves_itself:  # most tests say when, and look at what isn't saved yet
                context.add_init_script("localStorage.setItem('voiceapi-saves-itself', 'off')")
            tabs.append(Tab(context, address.partition("#")[0]))
            tabs[-1].page.goto(address)
            if is_ready:
                tabs[-1].ready()
            if path is not None:
                tabs[-1].open(path)
            return tabs[-1]

        yield open
        for tab in tabs:
            tab.check()


@pytest.fixture
def tab(open_tab: Open, server: Server) -> Tab:
    """A tab of the module's service, signed in."""
    return open_tab(f"{server.origin}/#key={KEY}")
