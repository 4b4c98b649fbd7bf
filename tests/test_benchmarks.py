"""The measurements of campaigns and the soak still run against the code as it is, with a few contacts and seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import dialing, soak
from benchmarks.ledger import Ledger, Receiver, Timing, lost_writes


@pytest.mark.parametrize(
    ("case", "result"),
    [("import", "20 rows in "), ("calls", "3 calls of two turns in "), ("dry run", "3 contacts over 14 days, ")],
)
def test_a_case_of_dialing(case: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "ROWS", 20)
    monkeypatch.setattr(dialing, "CALLS", 3)
    assert dialing.measure(case, tmp_path / "voice.db").startswith(result)


@pytest.mark.long
def test_a_short_soak(tmp_path: Path) -> None:
    result = soak.soak(tmp_path, 20, 16)
    assert result.broken == []
    assert {row.kind for row in result.rows} == {"call", "campaign", "chat", "document", "list", "read", "workflow"}
    assert all(row.requests > 5 and row.errors == 0 for row in result.rows)
    assert min(sample.megabytes for sample in result.samples) > 10


def test_a_soak_finds_what_was_lost(workflow: Callable[..., Any], db: None) -> None:
    ledger, receiver = Ledger(), Receiver()
    kept = workflow(name="Kept")["id"]
    prompt = "Great, goodbye."
    ledger.workflows = {kept: ("Kept", prompt), kept + 1: ("Lost", prompt)}
    ledger.calls, ledger.chats = {7: "+12025550123"}, {8: ["Yes."]}
    ledger.campaigns, ledger.not_to_call, ledger.documents = {9: ["+12025550123"]}, {"+12025550124"}, {"u": "digest"}
    found = lost_writes(ledger, receiver)
    receiver.close()
    assert found == [
        f"Workflow {kept + 1} isn't named 'Lost', or has no node with {prompt!r}.",
        "Run 7 doesn't call +12025550123.",
        "Chat 8 hasn't ['Yes.'], but [].",
        "+12025550124 isn't on the do-not-call list.",
        "Document u is another.",
        "Campaign 9 is gone.",
    ]


def test_a_soak_finds_growth() -> None:
    level = [soak.Sample(at, 100 + at % 3, 50, 170) for at in range(600)]
    assert soak.growth(level) == []
    assert "MB in the second half" in soak.growth([soak.Sample(at, 100 + at / 20, 50, 170) for at in range(600)])[0]
    assert soak.growth([soak.Sample(at, 100, 50 + at // 30, 170) for at in range(600)]) == [
        "There were 69 threads in the last quarter, and 64 in the third."
    ]


def test_a_soak_counts_errors_and_bare_refusals() -> None:
    timings = {"call": Timing([0.1] * 4, {200: 1, 429: 1, 503: 1, 500: 1}, without_retry_after=1)}
    assert soak.errors(timings) == [
        "1 answers to the kind call were 500.",
        "1 answers to the kind call didn't say when to come again.",
    ]
