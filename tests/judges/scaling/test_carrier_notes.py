"""The judge of a carrier's notes finds what is wrong in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from carrier_notes import Notes, several

ANN, BOB = "+12025550171", "+12025550172"


def url(token: str) -> str:
    return f"http://127.0.0.1:9/api/v1/telephony/calls/{token}/turns/0"


def placed(at: float, to: str, token: str) -> dict[str, Any]:
    return {"at": at, "event": "placed", "to": to, "call": f"CA{token}", "url": url(token)}


def ended(at: float, to: str, talked: bool) -> dict[str, Any]:
    return {"at": at, "event": "ended", "to": to, "talked": talked}


def answered(at: float, token: str, answer: str, waits: bool = False) -> dict[str, Any]:
    found = {"status": 200, "answer": answer, "waits": waits}
    return {"at": at, "event": "webhook", "call": f"CA{token}", "url": url(token), **found}


@pytest.fixture
def notes(tmp_path: Path) -> Callable[..., Notes]:
    def make(*written: dict[str, Any]) -> Notes:
        path = tmp_path / "notes.jsonl"
        path.write_text("".join(json.dumps(note) + "\n" for note in written))
        return Notes(path)

    return make


def test_a_run_that_was_dialed_twice(notes: Callable[..., Notes]) -> None:
    found = notes(placed(0, ANN, "a"), placed(1, BOB, "b"), {**placed(2, ANN, "a"), "event": "broken"})
    assert several(found.tokens()) == {"a": 2}


def test_a_contact_that_was_reached_and_called_again(notes: Callable[..., Notes]) -> None:
    calls = placed(0, ANN, "a"), ended(1, ANN, False), placed(2, ANN, "b"), ended(3, ANN, True)
    assert notes(*calls).called_again() == []
    assert notes(*calls, placed(4, ANN, "c")).called_again() == [ANN]


def test_calls_at_once(notes: Callable[..., Notes]) -> None:
    found = notes(placed(0, ANN, "a"), placed(1, BOB, "b"), ended(2, ANN, True), placed(3, BOB, "c"))
    assert found.most_in_progress() == 2
    assert found.most_in_progress({ANN}.__contains__) == 1
    assert found.overlapping() == [BOB]


def test_calls_ahead_of_the_pace(notes: Callable[..., Notes]) -> None:
    """Two a second: the third comes 0.3 s too soon, and the last one after a pause is in time."""
    found = notes(*(placed(at, ANN, str(at)) for at in (0.0, 0.6, 0.8, 9.0)))
    assert found.ahead_of(2.0) == pytest.approx(0.3)
    assert found.ahead_of(5.0) == 0.0
    assert notes(*(placed(at, ANN, str(at)) for at in (0.0, 0.1, 0.2))).ahead_of(2.0) == pytest.approx(0.8)


def test_a_turn_with_two_answers(notes: Callable[..., Notes]) -> None:
    same = answered(0, "a", "one"), answered(1, "a", "wait", waits=True), answered(2, "a", "one")
    assert notes(*same).contradictions() == []
    assert notes(*same, answered(3, "a", "two")).contradictions() == ["CAa 0"]
