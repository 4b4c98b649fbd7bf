"""Measures the console's canvas in Chromium: `.venv/bin/python -m benchmarks.canvas`, from the repository.

An agent of 300 nodes is opened, panned, zoomed and edited as a pointer does it, one event a frame. The times are of the
page's thread as Chromium counts them: script, style and layout, without painting, which needs a GPU to say anything.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page, sync_playwright

from .processes import KEY, start_service, use_defaults

FRAMES = 60
PER_ROW = 20
# When all nodes are there and the browser had a frame to show them, and how long tasks were since `tasks` was emptied.
WATCH = """(count) => {
  window.tasks = [];
  const note = (list) => tasks.push(...list.getEntries().map(({duration}) => duration));
  new PerformanceObserver(note).observe({type: "longtask"});
  const look = () => (document.querySelectorAll("g.node").length < count ? requestAnimationFrame(look)
    : requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); })));
  look();
}"""
ARRIVED = "performance.getEntriesByType('resource').find(({name}) => name.includes('/workflow/fetch/')).responseEnd"
MOVE = """async (frames) => {
  const box = document.querySelector(".canvas-box");
  const {left, top} = box.getBoundingClientRect();
  const [x, y] = window.from;
  for (let at = 1; at <= frames; at += 1) {
    await new Promise(requestAnimationFrame);
    const place = {clientX: x + at * 2, clientY: y + at};
    box.dispatchEvent(new PointerEvent("pointermove", {pointerId: 1, ...place, bubbles: true}));
  }
  await new Promise(requestAnimationFrame);
}"""
WHEEL = """async ([frames, ctrlKey]) => {
  const box = document.querySelector(".canvas-box");
  const {left, top, width, height} = box.getBoundingClientRect();
  for (let at = 0; at < frames; at += 1) {
    await new Promise(requestAnimationFrame);
    const deltaY = (at < frames / 2 ? -1 : 1) * (ctrlKey ? 12 : 20);
    box.dispatchEvent(new WheelEvent("wheel",
      {ctrlKey, deltaY, clientX: left + width / 2, clientY: top + height / 2, bubbles: true, cancelable: true}));
  }
  await new Promise(requestAnimationFrame);
}"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.canvas", description="Measure the console's canvas.")
    parser.add_argument("--nodes", type=int, default=300, help="of the agent (300)")
    options = parser.parse_args()
    use_defaults()
    browser = os.environ.get("VOICEAPI_TEST_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    with (
        tempfile.TemporaryDirectory(prefix="voiceapi-canvas-") as folder,
        start_service(Path(folder) / "canvas.db") as server,
        sync_playwright() as playwright,
    ):
        definition = chain(options.nodes)
        made = server.ask("POST", "/workflow/create/definition", {"name": "Large", "workflow_definition": definition})
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"http://127.0.0.1:{server.port}/#key={KEY}")
        page.get_by_role("heading", level=1).wait_for()
        measure(page, f"http://127.0.0.1:{server.port}/", f"#/agents/{made['id']}", options.nodes)
        chromium.close()
    return 0


def chain(count: int) -> dict[str, Any]:
    """A definition of so many nodes, each of which leads to the next one and to the one below."""
    places = [{"x": at % PER_ROW * 260, "y": at // PER_ROW * 150} for at in range(count)]
    nodes = [
        {
            "id": f"n{at}",
            "type": "agentNode" if at else "startCall",
            "position": place,
            "data": {"name": f"Node {at}", "prompt": "Go on."},
        }
        for at, place in enumerate(places)
    ]
    ends = [(at, at + step) for at in range(count) for step in (1, PER_ROW) if at + step < count]
    edges = [
        {
            "id": f"e{start}-{end}",
            "source": f"n{start}",
            "target": f"n{end}",
            "data": {"label": f"On to {end}", "condition": "They agree."},
        }
        for start, end in ends
    ]
    return {"nodes": nodes, "edges": edges}


def measure(page: Page, address: str, path: str, count: int) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = sum(counted(session).values())
    page.add_init_script(f"({WATCH})({count})")
    page.goto(f"{address}?measured{path}")
    until(page, "window.painted !== undefined")
    painted = page.evaluate(f"painted - ({ARRIVED})")
    took = 1000 * (sum(counted(session).values()) - before)
    print(f"{count} nodes: painted {painted:.0f} ms after the definition; opening took {took:.0f} ms of the thread")
    page.mouse.move(*middle(page, "n105"))
    page.wait_for_timeout(1000)  # what the start still does isn't counted
    report(session, "zooming", lambda: page.evaluate(WHEEL, [FRAMES, True]))
    report(session, "panning, all in sight", lambda: page.evaluate(WHEEL, [FRAMES, False]))
    for selected, name in (
        (["n105"], "dragging one node"),
        ([f"n{at}" for at in range(100, 130)], "dragging 30 nodes"),
    ):
        for at, id in enumerate(selected):
            page.locator(f'g.node[data-node="{id}"]').click(modifiers=["Shift"] if at else [])
        x, y = middle(page, "n105")
        page.evaluate("at => { window.from = at; }", [x, y])
        page.mouse.move(x, y)
        page.mouse.down()
        report(session, name, lambda: page.evaluate(MOVE, FRAMES))
        page.keyboard.press("Escape")
        page.mouse.up()
    page.locator('g.node[data-node="n105"]').click()
    page.keyboard.press("0")
    report(session, "panning at 100 %", lambda: page.evaluate(WHEEL, [FRAMES, False]))
    field = page.get_by_label("Name (required)")
    field.click()
    page.evaluate("tasks.length = 0")
    text = "A name that is typed"
    report(session, "a key typed", lambda: field.press_sequentially(text, delay=60), len(text))
    page.wait_for_timeout(1500)
    longest = page.evaluate("Math.max(0, ...tasks)")
    print(f"tasks over 50 ms while typing: {page.evaluate('tasks.length')}, the longest {longest:.0f} ms")


def middle(page: Page, node: str) -> tuple[float, float]:
    box = page.locator(f'g.node[data-node="{node}"] .box').bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def until(page: Page, condition: str) -> None:
    """Wait for a condition of JavaScript, which the page's policy keeps Playwright from polling for itself."""
    for _ in range(600):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise TimeoutError(f"{condition} isn't so after a minute")


def report(session: CDPSession, name: str, act: Any, frames: int = FRAMES) -> None:
    """Print what a frame takes of the page's thread while something is done."""
    before = counted(session)
    act()
    took = {kind: 1000 * (seconds - before[kind]) / frames for kind, seconds in counted(session).items()}
    print(f"{name}: {sum(took.values()):.1f} ms a frame: " + ", ".join(f"{kind} {ms:.1f}" for kind, ms in took.items()))


def counted(session: CDPSession) -> dict[str, float]:
    found = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return {
        "script": found["ScriptDuration"],
        "style": found["RecalcStyleDuration"],
        "layout": found["LayoutDuration"],
    }


if __name__ == "__main__":
    raise SystemExit(main())
