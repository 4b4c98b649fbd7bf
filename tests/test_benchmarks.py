"""The measurements of campaigns still run against the code as it is, with a few contacts."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import dialing


@pytest.mark.parametrize(
    ("case", "result"),
    [("import", "20 rows in "), ("calls", "3 calls of two turns in "), ("dry run", "3 contacts over 14 days, ")],
)
def test_a_case_of_dialing(case: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "ROWS", 20)
    monkeypatch.setattr(dialing, "CALLS", 3)
    assert dialing.measure(case, tmp_path / "voice.db").startswith(result)
