"""Runs conversation cases side by side: in processes, and those that wait for a language model in threads."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import get_context
from time import perf_counter

from ..rehearsal.cases import Case
from ..rehearsal.conduct import run_case
from ..rehearsal.result import CaseResult
from ..rehearsal.subject import Subject
from .case_sets import CaseSet
from .output import progress

# A case takes about 2 ms, and starting a process as long as several of them: with fewer cases it isn't worth it.
LEAST_FOR_PROCESSES = 100
# How many cases a process is given at a time.
BATCH = 20
# How many conversations with a language model go on at a time.
THREADS = 8


@dataclass(frozen=True)
class TimedResult:
    """The result of a case and the seconds that it took."""

    result: CaseResult
    seconds: float


# A case with what it rehearses.
Job = tuple[Subject, Case]


def run_sets(sets: Sequence[CaseSet], at_a_time: int | None = None) -> list[list[TimedResult]]:
    """Run the cases of all sets, and show the progress; returns their results in the order of the cases.

    :param at_a_time: how many at a time; None for as many as is sensible.
    """
    jobs: list[Job] = []
    for each in sets:
        # A language model can't be sent to another process.
        alone = replace(each.subject, model=None)
        jobs += [(each.subject if case.model == "configured" else alone, case) for case in each.cases]
    found = iter(_run_all(jobs, at_a_time))
    return [list(islice(found, len(each.cases))) for each in sets]


def _run_all(jobs: Sequence[Job], at_a_time: int | None) -> list[TimedResult]:
    found: dict[int, TimedResult] = {}
    asking = [index for index, (_, case) in enumerate(jobs) if case.model == "configured"]
    quick = [index for index, (_, case) in enumerate(jobs) if case.model != "configured"]
    with ExitStack() as stack:
        pending: dict[Future[list[TimedResult]], list[int]] = {}
        workers = min(at_a_time or os.cpu_count() or 1, -(-len(quick) // BATCH))
        if workers > 1 and (at_a_time or len(quick) >= LEAST_FOR_PROCESSES):
            # The first submission starts the processes; there must be no other thread then.
            pending |= _submit(_open(stack, _processes(workers)), jobs, quick, BATCH)
            quick = []
        if asking:
            pending |= _submit(_open(stack, ThreadPoolExecutor(at_a_time or THREADS)), jobs, asking, 1)
        state = stack.enter_context(progress("Running the cases"))
        for index in quick:
            found[index] = _timed(jobs[index])
            state.text = f"{len(found)} of {len(jobs)} cases"
        for future in as_completed(pending):
            found.update(zip(pending[future], future.result(), strict=True))
            state.text = f"{len(found)} of {len(jobs)} cases"
    return [found[index] for index in range(len(jobs))]


def _open(stack: ExitStack, pool: Executor) -> Executor:
    stack.callback(pool.shutdown, cancel_futures=True)
    return pool


def _processes(count: int) -> ProcessPoolExecutor:
    # A fork takes a hundredth of the time of a new interpreter, and is safe where this is the only thread.
    kind = "fork" if sys.platform == "linux" else None
    return ProcessPoolExecutor(count, get_context(kind), initializer=_leave_interrupts)


def _leave_interrupts() -> None:
    """Ctrl-C is for the process that started this one, which then ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _submit(
    pool: Executor, jobs: Sequence[Job], indexes: Sequence[int], size: int
) -> dict[Future[list[TimedResult]], list[int]]:
    return {pool.submit(_run, [jobs[index] for index in batch]): batch for batch in _batches(indexes, size)}


def _batches(indexes: Sequence[int], size: int) -> Iterator[list[int]]:
    return (list(indexes[at : at + size]) for at in range(0, len(indexes), size))


def _run(jobs: Sequence[Job]) -> list[TimedResult]:
    return [_timed(job) for job in jobs]


def _timed(job: Job) -> TimedResult:
    began = perf_counter()
    result = run_case(*job)
    return TimedResult(result, perf_counter() - began)
