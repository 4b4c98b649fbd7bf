"""What it takes to run many cases, counted: nothing is read, made or asked more often than it has to be."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rehearsal import write_cases
from voiceapi.cli import case_sets
from voiceapi.conversations import conversation
from voiceapi.engine.graph import Graph
from voiceapi.rehearsal import strict_yaml

# Of processes that were started, files opened for writing, databases and connections, by the names of audit events.
_ACTS = ("socket.", "subprocess.", "sqlite3.", "os.fork")


@pytest.mark.parametrize("cases", [60, pytest.param(500, marks=pytest.mark.long)])
def test_many_cases_take_one_reading_of_each_file_and_no_more_steps_than_their_turns_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cases: int
) -> None:
    write_cases(tmp_path, cases)
    files = len(list(tmp_path.glob("*.cases.yaml")))
    counted = dict.fromkeys(("graphs", "texts", "steps"), 0)
    acts: list[str] = []
    read, loader, step = Graph.read, strict_yaml._loader, conversation.step

    def count(what: str, function: Any) -> Any:
        def counting(*arguments: Any) -> Any:
            counted[what] += 1
            return function(*arguments)

        return counting

    monkeypatch.setattr(Graph, "read", count("graphs", read))
    monkeypatch.setattr(strict_yaml, "_loader", count("texts", loader))
    monkeypatch.setattr(conversation, "step", count("steps", step))
    watching = True
    # Threads that other tests have left in this process are theirs.
    others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}

    def note(event: str, _: object) -> None:
        if watching and event.startswith(_ACTS) and threading.get_ident() not in others:
            acts.append(event)

    sys.addaudithook(note)
    sets = case_sets.read(case_sets.files_at([tmp_path]), lambda _: None)
    found = case_sets.run_sets(sets, 1)
    watching = False
    results = [timed.result for each in found for timed in each]
    assert len(results) == cases
    assert all(result.passed for result in results)
    assert acts == []
    assert counted["graphs"] == files
    assert counted["texts"] <= files
    # An event of the caller's, or the answer to a request of the engine's: of the model, a tool, an extraction.
    turns = sum(1 + len(case.turns) for each in sets for case in each.cases)
    assert counted["steps"] < 4 * turns


def test_cases_are_sent_to_processes_only_where_that_pays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    class Pool(case_sets.ThreadPoolExecutor):
        def __init__(self, count: int) -> None:
            started.append(count)
            super().__init__(count)

    monkeypatch.setattr(case_sets, "_processes", Pool)
    monkeypatch.setattr(case_sets.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(case_sets, "LEAST_FOR_PROCESSES", 20)
    monkeypatch.setattr(case_sets, "BATCH", 5)
    write_cases(tmp_path, 20)
    sets = case_sets.read(case_sets.files_at([tmp_path]), lambda _: None)
    case_sets.run_sets(sets)
    case_sets.run_sets(sets[:2])
    case_sets.run_sets(sets, 1)
    case_sets.run_sets(sets, 3)
    assert started == [4, 3]


def test_what_is_sent_to_a_process_is_small(tmp_path: Path) -> None:
    """A subject is sent along with each batch of its cases."""
    import pickle

    write_cases(tmp_path, 20)
    sets = case_sets.read(case_sets.files_at([tmp_path]), lambda _: None)
    sizes = {each.name: len(pickle.dumps((each.subject, each.cases))) for each in sets}
    assert all(size < 64 * 1024 for size in sizes.values()), json.dumps(sizes)
