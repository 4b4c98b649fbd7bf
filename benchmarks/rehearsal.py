"""How long `voiceapi test` takes for many conversation cases: those of the examples, copied until there are enough."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from .processes import ROOT

EXAMPLES = ROOT / "examples"
CASES, TIMES = 500, 3


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Seconds from the start of the command to its end: with all cases, and of one that does nothing."""

    seconds: float
    bare_seconds: float


def measure_rehearsal(folder: Path, cases: int = CASES, times: int = TIMES) -> Rehearsal:
    """The medians of a few runs.

    :raises RuntimeError: when not all cases ran and passed.
    """
    copies = folder / "cases"
    copies.mkdir()
    write_cases(copies, cases)
    found, bare = [], []
    for _ in range(times):
        began = time.perf_counter()
        answer = json.loads(_voiceapi("test", str(copies), "--json"))
        found.append(time.perf_counter() - began)
        if (answer["passed"], answer["failed"]) != (cases, 0):
            raise RuntimeError(f"Of {cases} cases {answer['passed']} passed, and {answer['failed']} failed.")
        began = time.perf_counter()
        _voiceapi("--version")
        bare.append(time.perf_counter() - began)
    return Rehearsal(statistics.median(found), statistics.median(bare))


def write_cases(folder: Path, cases: int) -> None:
    """Write so many cases, with their agents."""
    left = cases
    for number, path in islice(_examples(), 10 * cases):
        if not left:
            return
        name = path.name.removesuffix(".cases.yaml")
        head, *found = re.split(r"(?m)^(?=  - name: )", path.read_text(encoding="utf-8"))
        shutil.copy(EXAMPLES / f"{name}.json", folder / f"{name}-{number}.json")
        (folder / f"{name}-{number}.cases.yaml").write_text(head + "".join(found[:left]), encoding="utf-8")
        left -= min(left, len(found))


def _examples() -> Iterator[tuple[int, Path]]:
    return ((number, path) for number in count() for path in sorted(EXAMPLES.glob("*.cases.yaml")))


def _voiceapi(*arguments: str) -> bytes:
    command = [sys.executable, "-m", "voiceapi", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
