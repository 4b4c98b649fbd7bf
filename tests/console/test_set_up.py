"""How long it takes from a checkout on a machine with only Python to the first turn talked in the browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from asking import Server
from browsing import Open
from playwright.sync_api import expect

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
LIMIT = 600  # seconds, with the download; it is printed how many it took


def test_from_a_checkout_to_the_first_turn(tmp_path: Path, open_tab: Open, capsys: pytest.CaptureFixture[str]) -> None:
    """The README's run command is run word for word, and nothing that pip has kept is used."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True)
    if archive.returncode:
        pytest.skip("This is no checkout of git.")
    subprocess.run(["tar", "-x"], cwd=checkout, input=archive.stdout, check=True)
    found = re.search(r"## Run it\n.*?```sh\n(.+?)\n", (checkout / "README.md").read_text(), re.DOTALL)
    assert found, "The README has no command under “Run it”."
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VOICEAPI_", "PIP_CACHE"))}
    env = clean | {"PIP_NO_CACHE_DIR": "1", "HOME": str(tmp_path), "VOICEAPI_PORT": "0"}
    log = tmp_path / "log"
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-c", found[1]], cwd=checkout, env=env, stdout=output, stderr=output, start_new_session=True
        )
    try:
        server = Server(process, log, r"listens on http://127\.0\.0\.1:(\d+)", seconds=600)
        tab = open_tab(server.printed_address())
        tab.follow("Make your first agent")
        tab.fill(re.compile("^What should it do"), "Ask the customers of a bakery how many loaves they want.")
        tab.page.get_by_label("It calls people").check()
        tab.press("Make it and talk", exact=True)
        tab.fill("What you say", "Yes, it is.")
        tab.page.get_by_label("What you say").press("Enter")
        expect(tab.role("log", "Conversation").get_by_text("May somebody call you with the details?")).to_be_visible()
        seconds = time.monotonic() - began
    finally:
        os.killpg(process.pid, 15)
        process.wait(60)
    with capsys.disabled():
        sys.stdout.write(f"\nFrom the checkout to the first turn: {seconds:.0f} s\n")
    assert seconds < LIMIT
