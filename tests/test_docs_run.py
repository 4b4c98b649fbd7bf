"""The shell blocks of the pages are run as they are, in a folder that looks like a checkout that was set up."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from checkouts import ROOT, checkout

pytestmark = pytest.mark.long

DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Pages none of whose blocks can be run here, and why.
ELSEWHERE = {
    "docs/carriers.md": "needs an account with a carrier and a public address",
    "docs/commands.md": "its sections count on different databases; tests/cli runs each command",
    "docs/performance.md": "takes minutes; tests/test_benchmarks.py runs the benchmarks small",
    "docs/small-model.md": "needs a language model",
    "docs/tools.md": "needs the server of a tool; tests/test_docs.py creates the tools that it shows",
    "docs/tutorial.md": "tests/console/test_tutorial.py runs it, and holds what it shows, too",
}
# Words of single blocks that can't be run here, and why.
NOT_HERE = {
    "-m pytest": "its plugin needs voiceapi installed; tests/cli/test_pytest_plugin.py runs it",
    "pip install": "the folder is set up already",
    "app.py": "it runs already, as `voiceapi serve`",
    "VOICEAPI_PORT=8080": "it serves until it is interrupted",
    "host_app.py run": "needs a port of its own; tests/host/test_embedding_page.py runs it",
    "dograh.example.org": "needs a running Dograh; tests/moving has one",
    "ollama": "needs a language model",
    "sqlite3": "needs a program that isn't everywhere",
}
# What a page's text says that there is.
BEFORE = {"docs/webhooks.md": ".venv/bin/voiceapi workflow import examples/appointment.json"}
# What a command says when it fails. The page shows it, too.
FAILED = re.compile(r"""^(\{"detail"|Error: |exit code [^0])""")


def blocks(page: str) -> list[str]:
    """The blocks of a page that can be run here."""
    found = [] if page in ELSEWHERE else BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [block for block in found if not any(word in block for word in NOT_HERE)]


PAGES = [page for page in ("README.md", *sorted(f"docs/{path.name}" for path in DOCS.glob("*.md"))) if blocks(page)]


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_work(page: str, tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    with checkout(tmp_path, database_at(tmp_path / "voice.db")) as found:
        done = found.run("\n".join([BEFORE.get(page, ""), *blocks(page)]))
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in done.stdout
    shown = (ROOT / page).read_text(encoding="utf-8").splitlines()
    assert [line for line in done.stdout.splitlines() if FAILED.match(line) and line not in shown] == []
