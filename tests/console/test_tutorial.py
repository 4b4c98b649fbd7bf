"""docs/start.md, then docs/tutorial.md in the same database, word for word, as a new user would.

Each command of the tutorial prints what the page shows, and the console then shows what its pictures show.

With VOICEAPI_TEST_SCREENSHOTS=docs the pictures of the page are taken anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from asking import Api
from browsing import Open
from checkouts import KEY, ROOT, Checkout, checkout
from playwright.sync_api import expect

pytestmark = pytest.mark.long

START, PAGE = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("start.md", "tutorial.md"))
SET_UP = "pip install"  # what sets a checkout up, as this one is
BLOCK = re.compile(r"^```sh\n(?P<commands>.*?)^```\n(?:\n```\n(?P<output>.*?)^```)?", re.DOTALL | re.MULTILINE)
# What differs each time: how long something took, when it was, the names of runs, and how wide a column is therefore.
MASKS = (
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?Z)?", "TIME"),
    (r"\b\d+\.\d+\b", "0.0"),
    (r"\b\d+ s\b", "0 s"),
    (r"\bafter: \d+\b", "after: 0.0"),
    (r"\bWR-TEL-IN-\d+\b", "RUN"),
    (r" {2,}", "  "),
    (r"(?m)^Rehearsing: .*\n", ""),  # shown of what takes some seconds
)
END = "-- end of block"


class Walked(NamedTuple):
    """The service after all commands of both pages, and each block: the commands, what is shown, what they printed."""

    found: Checkout
    blocks: list[tuple[str, str, str]]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[[Path], str]) -> Iterator[Walked]:
    folder = tmp_path_factory.mktemp("tutorial")
    blocks = [*BLOCK.finditer(START), *BLOCK.finditer(PAGE)]
    shown = [(each["commands"], each["output"] or "") for each in blocks if SET_UP not in each["commands"]]
    with checkout(folder, database_at(folder / "voice.db")) as found:
        done = found.run("".join(f"{commands}\necho '{END}'\n" for commands, _ in shown))
        *printed, rest = done.stdout.split(f"{END}\n")
        assert (done.returncode, len(printed), rest) == (0, len(shown), ""), done.stdout
        yield Walked(found, [(*block, now) for block, now in zip(shown, printed, strict=True)])


def masked(text: str) -> str:
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    return text


def test_each_command_prints_what_the_page_shows(walked: Walked) -> None:
    blocks = [block for block in walked.blocks if block[0] in PAGE]
    assert len(blocks) > 12
    wrong = [block for block in blocks if masked(block[1]) != masked(block[2])]
    assert not wrong, "\n".join(f"$ {commands}shown:\n{shown}printed:\n{now}" for commands, shown, now in wrong)


def test_the_agent_of_the_start_is_as_it_was(walked: Walked) -> None:
    definition = Api(f"http://127.0.0.1:{walked.found.port}", KEY).get("/workflow/fetch/1")["workflow_definition"]
    example = json.loads((ROOT / "examples" / "appointment.json").read_text(encoding="utf-8"))
    names = [node["data"]["name"] for node in definition["nodes"]]
    assert names == [node["data"]["name"] for node in example["workflow_definition"]["nodes"]]


def test_a_picture_shows_the_case_that_fails(walked: Walked, open_tab: Open, screenshots: Path) -> None:
    tab = open_tab(f"http://127.0.0.1:{walked.found.port}/#key={KEY}", "/agents/2/tests")
    tab.heading("Tests of Due tomorrow")
    tab.press("Run all tests")
    tab.sees("How long: one, two or three weeks?")
    tab.sees("Which parts of the agent the tests reach")
    tab.settle()
    tab.page.screenshot(path=screenshots / "tutorial-tests.png", full_page=True)


def test_a_picture_shows_the_insights_on_the_graph(walked: Walked, open_tab: Open, screenshots: Path) -> None:
    tab = open_tab(f"http://127.0.0.1:{walked.found.port}/#key={KEY}", "/agents/2/insights")
    tab.heading("Insights of Due tomorrow")
    node = tab.role("button", re.compile(r"Weeks, Times passed: 2\. Callers left here: 1,"))
    expect(node).to_contain_text("2, 1 left")
    tab.page.screenshot(path=screenshots / "tutorial-insights.png")


def test_the_pictures_of_the_page_are_those_that_are_taken_here() -> None:
    pictures = re.findall(r"^!\[[^\]]+\]\(([\w-]+\.png)\)$", PAGE, re.MULTILINE)
    taken = re.findall(r'screenshots / "([\w-]+\.png)"', Path(__file__).read_text(encoding="utf-8"))
    assert sorted(pictures) == sorted(taken)
