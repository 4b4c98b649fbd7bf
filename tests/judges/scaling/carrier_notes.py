"""Judges what a recording carrier has noted."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Note = dict[str, Any]


class Notes:
    """The notes of a carrier, in the order of its clock."""

    def __init__(self, path: Path) -> None:
        self.all: list[Note] = [json.loads(line) for line in path.read_text().splitlines()]

    def of(self, event: str) -> list[Note]:
        return [note for note in self.all if note["event"] == event]

    def tokens(self) -> Counter[str]:
        """How often the carrier was asked for the call of each run, whether it placed one or not."""
        return Counter(token_of(note["url"]) for note in self.all if note["event"] in ("placed", "broken"))

    def called_again(self) -> list[str]:
        """The numbers that were called again although their last call had been answered, and ended by the agent."""
        done, again = set(), []
        for note in self.all:
            if note["event"] == "placed" and note["to"] in done:
                again.append(note["to"])
            if note["event"] == "ended" and note["talked"]:
                done.add(note["to"])
        return again

    def overlapping(self) -> list[str]:
        """The numbers that were called while a call to them was in progress."""
        calling: Counter[str] = Counter()
        overlapping = []
        for note in self.all:
            if note["event"] == "placed":
                overlapping += [note["to"]] if calling[note["to"]] else []
                calling[note["to"]] += 1
            elif note["event"] == "ended":
                calling[note["to"]] -= 1
        return overlapping

    def most_in_progress(self, counts: Callable[[str], bool] = lambda number: True) -> int:
        """The largest number of calls in progress at one moment, of those to the numbers that count."""
        current = most = 0
        for note in self.all:
            if note["event"] in ("placed", "ended") and counts(note["to"]):
                current += 1 if note["event"] == "placed" else -1
                most = max(most, current)
        return most

    def ahead_of(self, pace: float) -> float:
        """By how many seconds the calls were ahead of so many a second, when they were most."""
        asked = [note["at"] for note in self.all if note["event"] in ("placed", "broken")]
        # Of the n-th call: when it was due if the calls since the one that was latest came at the pace.
        ahead, due = 0.0, float("-inf")
        for at in asked:
            due = max(due, at)
            ahead = max(ahead, due - at)
            due += 1 / pace
        return ahead

    def contradictions(self) -> list[str]:
        """The webhooks that asked for the same turn and were answered differently.

        What tells the carrier to wait or to ask again isn't an answer.
        """
        answers: dict[tuple[str, str], set[str]] = defaultdict(set)
        for note in self.all:
            if note["event"] == "webhook" and note["status"] == 200 and "/turns/" in note["url"] and not note["waits"]:
                answers[note["call"], turn_of(note["url"])].add(note["answer"])
        return [f"{call} {turn}" for (call, turn), found in answers.items() if len(found) > 1]


def token_of(url: str) -> str:
    """The token in the address of a call's webhook."""
    return url.partition("/calls/")[2].partition("/")[0]


def turn_of(url: str) -> str:
    return url.partition("/turns/")[2].partition("/")[0]


def several(counts: Counter[str] | Iterable[str]) -> dict[str, int]:
    """What was counted more than once."""
    return {name: times for name, times in Counter(counts).items() if times > 1}
