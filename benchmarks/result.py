"""What a run of the benchmark found, and the figures of it that have an aim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .calls import Calls
from .cases import Case
from .conversations import Conversations, Streamed, Turns
from .embedding import Embedding
from .measure import FEW, Row, Start
from .outward import Outward
from .rehearsal import CASES, Rehearsal
from .seed import LONG

CONNECTIONS = (8, 1)
Group = Literal[
    "Ratios to a bare Flask route",
    "Long lists",
    "Calls",
    "Requests to other servers",
    "Conversation cases",
    "A host's tests",
    "Start and memory",
]


@dataclass
class Result:
    """What was measured; None and empty where it wasn't.

    :param many: the runs of the larger database.
    :param long: milliseconds of a validation by the number of nodes; `linted` those of lint.
    :param megabytes: the memory of the service after all cases, validations and simulated calls.
    """

    many: int
    rows: list[Row] = field(default_factory=list)
    long: dict[int, float] = field(default_factory=dict)
    linted: dict[int, float] = field(default_factory=dict)
    calls: Calls | None = None
    turns: Turns | None = None
    streamed: Streamed | None = None
    conversations: Conversations | None = None
    outward: Outward | None = None
    rehearsal: Rehearsal | None = None
    embedding: Embedding | None = None
    start: Start | None = None
    megabytes: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One value and its aim; `at_most` when the value should not be above the aim, rather than not below."""

    group: Group
    name: str
    value: float
    aim: float
    unit: str = ""
    at_most: bool = False

    @property
    def is_reached(self) -> bool:
        """True if the value as it is shown reaches the aim."""
        shown = float(self.text)
        return shown <= self.aim if self.at_most else shown >= self.aim

    @property
    def text(self) -> str:
        """The value as it is shown, without its unit."""
        return f"{self.value:.0f}" if self.value >= 20 else f"{self.value:.{3 if self.value < 0.1 else 2}f}"

    @property
    def label(self) -> str:
        """The name with the unit."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


def figures(result: Result, cases: Sequence[Case]) -> list[Figure]:
    """The figures that have an aim, as far as they were measured."""
    after_cases = (
        *_of_calls(result),
        *_of_outward(result),
        *_of_rehearsal(result),
        *_of_embedding(result),
        *_of_processes(result),
    )
    return [*_of_cases(result, cases), *after_cases]


def _of_cases(result: Result, cases: Sequence[Case]) -> Iterator[Figure]:
    rows = {(row.name, row.runs): row for row in result.rows if row.connections == CONNECTIONS[0]}
    for case in cases:
        row = rows.get((case.name, FEW))
        if row is not None and case.aim is not None:
            yield Figure("Ratios to a bare Flask route", case.name, row.ratio, case.aim)
    for case in cases:
        row = rows.get((case.name, result.many))
        if row is not None and row.share is not None and case.many_aim is not None:
            yield Figure("Long lists", case.name, row.share, case.many_aim)


def _of_calls(result: Result) -> Iterator[Figure]:
    if result.calls is not None:
        yield Figure("Calls", "whole simulated calls by trigger", result.calls.by_trigger, 150, "a second")
        yield Figure("Calls", "whole simulated calls by campaign", result.calls.by_campaign, 250, "a second")
    if result.turns is not None:
        yield Figure("Calls", "a turn without a model, p50", result.turns.p50_ms, 1.5, "ms", at_most=True)
        asked = result.turns.asked_p50_ms
        yield Figure("Calls", "a turn without its model's own time, p50", asked, 1.5, "ms", at_most=True)
    if result.streamed is not None:
        late, times = result.streamed.late_p50_ms, result.streamed.p50_ms / result.streamed.whole_p50_ms
        yield Figure("Calls", "a first sentence after its model's second began, p50", late, 50, "ms", at_most=True)
        yield Figure("Calls", "its wait beside that for the whole reply", times, 0.4, "times as long", at_most=True)
    if result.conversations is not None:
        yield Figure("Calls", "conversations at once with a model of 1 s", result.conversations.capacity, 300)
    if result.long:
        few, many = LONG
        yield Figure("Calls", f"validate {few} nodes, p50", result.long[few], 50, "ms", at_most=True)
        times = result.long[many] / result.long[few]
        yield Figure("Calls", f"validate {many} nodes", times, 2.2, f"times {few} nodes", at_most=True)
    if result.linted:
        few, many = LONG
        linted = result.linted[few]
        yield Figure("Calls", f"lint {few} nodes, p50", linted, 200, "ms", at_most=True)
        yield Figure("Calls", f"lint {few} nodes", linted / result.long[few], 3, "times validate", at_most=True)
        times = result.linted[many] / linted
        yield Figure("Calls", f"lint {many} nodes", times, 2.2, f"times {few} nodes", at_most=True)


def _of_outward(result: Result) -> Iterator[Figure]:
    if result.outward is not None:
        found, group = result.outward, "Requests to other servers"
        yield Figure(group, "an https request on a kept connection, CPU, p50", found.kept_ms, 4, "ms", at_most=True)
        times = found.kept_ms / found.new_ms
        yield Figure(group, "the same beside one on a new connection", times, 0.8, "times as long", at_most=True)


def _of_rehearsal(result: Result) -> Iterator[Figure]:
    if result.rehearsal is not None:
        found = result.rehearsal
        yield Figure("Conversation cases", f"voiceapi test with {CASES} cases", found.seconds, 10, "s", at_most=True)
        times, bare = found.seconds / found.bare_seconds, "beside voiceapi --version"
        yield Figure("Conversation cases", f"the same {bare}", times, 10, "times as long", at_most=True)


def _of_embedding(result: Result) -> Iterator[Figure]:
    if result.embedding is not None:
        found, group = result.embedding, "A host's tests"
        yield Figure(group, "a suite whose apps have voiceapi, once, CPU", found.once, 0.5, "s", at_most=True)
        yield Figure(group, "each app of it, with a request, CPU", 1000 * found.each, 30, "ms", at_most=True)


def _of_processes(result: Result) -> Iterator[Figure]:
    if result.start is not None:
        yield Figure("Start and memory", "start to healthy", result.start.seconds, 0.5, "s", at_most=True)
        yield Figure("Start and memory", "resident after the start", result.start.megabytes, 60, "MB", at_most=True)
    if result.megabytes is not None:
        yield Figure("Start and memory", "resident after the benchmark", result.megabytes, 90, "MB", at_most=True)
