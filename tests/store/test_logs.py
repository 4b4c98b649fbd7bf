"""The logs of many runs: in order, and a bounded part of them in memory at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from voiceapi.store import logs
from voiceapi.store.database import backend, execute
from voiceapi.store.organizations import Organization
from voiceapi.store.runs import Run, RunEvent
from voiceapi.store.workflows import Workflow

pytestmark = pytest.mark.usefixtures("db")

Made = Callable[..., list[int]]


@pytest.fixture
def made() -> Made:
    """Stores runs with so many events each, taking turns; returns the ids of the runs."""
    organization = Organization.create(name="logs", preferences={})
    workflow = Workflow.create(organization=organization, workflow_uuid="uuid", name="Agent")

    def create(*lengths: int, type: str = "rtf-bot-text", text: str = "") -> list[int]:
        before = Run.select().count()
        given = {"organization": organization, "workflow": workflow, "name": "r", "mode": "textchat"}
        runs = [Run.create(**given, token=f"t{before + place}").id for place in range(len(lengths))]
        for turn in range(max(lengths)):
            for run, length in zip(runs, lengths, strict=True):
                if turn < length:
                    RunEvent.create(run=run, turn=turn, type=type, payload={"text": text}, node_id="a")
        return runs

    return create


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[Any]]]:
    """What each statement from now on reads, sizes or logs, and of which runs."""
    found: list[tuple[str, list[Any]]] = []

    def noted(statement: str, *values: Any) -> Any:
        kind = "sizes" if "sum(" in statement else "logs"
        found.append((kind, [value for value in values if isinstance(value, int)]))
        return execute(statement, *values)

    monkeypatch.setattr(logs, "execute", noted)
    return found


def turns(runs: list[int]) -> list[tuple[int, list[int]]]:
    return [(run, [event.turn for event in log]) for run, log in logs.logs(runs)]


def portions(read: list[tuple[str, list[Any]]]) -> list[list[Any]]:
    return [runs for kind, runs in read if kind == "logs"]


def test_a_log_is_in_the_order_of_its_events_wherever_they_are_stored(made: Made) -> None:
    one, other = made(4, 4)
    # A database returns rows as it likes if it isn't told the order.
    first = RunEvent.get(RunEvent.run == one)
    for run in (other, one):
        RunEvent.update(run=run).where(RunEvent.id == first.id).execute()
    if not backend().is_concurrent:
        execute("PRAGMA reverse_unordered_selects = ON")
    try:
        assert turns([other, one]) == [(other, [0, 1, 2, 3]), (one, [0, 1, 2, 3])]
    finally:
        if not backend().is_concurrent:
            execute("PRAGMA reverse_unordered_selects = OFF")


def test_runs_without_a_log_are_left_out_and_the_others_come_as_asked_for(made: Made) -> None:
    a, empty, b = made(1, 0, 2)
    (quiet,) = made(1, type=logs.UNREAD)
    for runs in ([a, empty, b, quiet], [quiet, b, a], [b, empty, a], [empty, quiet], []):
        assert [run for run, _ in logs.logs(runs)] == [run for run in runs if run in (a, b)]


def test_what_callers_said_is_not_read(made: Made) -> None:
    (said,) = made(1, type=logs.WITHOUT_PAYLOAD, text="secret")
    (answered,) = made(1, text="Yes.")
    found = dict(logs.logs([said, answered]))
    assert [event.payload for event in found[said]] == [None]
    assert "Yes." in str(found[answered][0].payload)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        # In order as many as fit together, and one that is longer than that alone.
        (3, [(0,), (1, 2), (3,), (4, 5)]),
        (4, [(0, 1), (2, 3), (4, 5)]),
        (1, [(0,), (1,), (2,), (3,), (4,), (5,)]),
        (99, [(0, 1, 2, 3), (4, 5)]),
    ],
)
def test_long_logs_are_read_a_few_at_a_time(
    made: Made,
    read: list[tuple[str, list[Any]]],
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    expected: list[tuple[int, ...]],
) -> None:
    """Of as many runs at a time as usual logs are read of, here four."""
    lengths = (3, 1, 2, 2, 1, 1)
    runs = made(*lengths)
    payload = len('{"text":""}')
    monkeypatch.setattr(logs, "RUNS_AT_A_TIME", 4)
    monkeypatch.setattr(logs, "SIZE_AT_A_TIME", size * (logs.EVENT_SIZE + payload))
    assert turns(runs) == [(run, list(range(length))) for run, length in zip(runs, lengths, strict=True)]
    assert portions(read) == [[runs[place] for place in portion] for portion in expected]


def test_a_log_is_as_long_as_what_is_read_of_it(made: Made, read: list[tuple[str, list[Any]]]) -> None:
    long = "x" * logs.SIZE_AT_A_TIME
    spoken, unread = (made(1, 1, type=type, text=long) for type in (logs.WITHOUT_PAYLOAD, logs.UNREAD))
    for runs, expected in ((spoken, [spoken]), (unread, []), (made(1, 1, text=long), None)):
        read.clear()
        list(logs.logs(runs))
        assert portions(read) == (expected if expected is not None else [[run] for run in runs])


def test_nothing_is_read_ahead_of_the_portion_that_is_counted(
    made: Made, read: list[tuple[str, list[Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "SIZE_AT_A_TIME", 1)
    first, *others = made(1, 1, 1)
    found = logs.logs([first, *others])
    assert next(found)[0] == first
    assert portions(read) == [[first]]


def test_a_log_that_is_deleted_after_it_was_measured_is_left_out(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "SIZE_AT_A_TIME", 1)
    runs = made(1, 1, 1)
    found = logs.logs(runs)
    next(found)
    RunEvent.delete().where(RunEvent.run == runs[1]).execute()
    assert [run for run, _ in found] == [runs[2]]


def test_logs_are_measured_until_it_is_known_that_they_are_long(
    made: Made, read: list[tuple[str, list[Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MEASURED_AT_A_TIME", 2)
    runs = made(1, 1, 1, 1, 1, text="eight!!!")
    each = logs.EVENT_SIZE + len('{"text":"eight!!!"}')
    assert not logs.are_longer(runs, 5 * each)
    assert not logs.are_longer([], 0)
    read.clear()
    assert logs.are_longer(runs, 5 * each - 1)
    assert [some for _, some in read] == [runs[:2], runs[2:4], runs[4:]]
    read.clear()
    assert logs.are_longer(runs, 2 * each - 1)
    assert [some for _, some in read] == [runs[:2]]
