"""What fuzzing reads: every seed, everything that was found by fuzzing, and for a few seconds each whatever comes."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fuzzing import CASES, TARGETS

HERE = Path(__file__).parent
SECONDS = 5


def module(target: str) -> Any:
    return importlib.import_module(f"fuzz.{target}")


@pytest.mark.parametrize("target", TARGETS)
def test_a_seed(target: str) -> None:
    for seed in module(target).SEEDS:
        module(target).check(seed)


@pytest.mark.parametrize(
    "case",
    [pytest.param(path, id=f"{path.parent.name}-{path.stem}") for path in sorted(CASES.glob("*/*"))],
)
def test_what_was_found(case: Path) -> None:
    module(case.parent.name).check(case.read_bytes())


def test_a_reader_that_breaks_its_promise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    target = module("strict_json")
    monkeypatch.setattr(target, "parse", lambda text, path=(): {"never": "this"})
    with pytest.raises(AssertionError):
        target.check(b"[1]")


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris isn't installed; the extra `fuzz` has it"
)
def test_a_few_seconds_of_anything(target: str) -> None:
    command = [sys.executable, str(HERE / "fuzzing.py"), f"--seconds={SECONDS}", target]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[1]) > 20 * SECONDS
