"""Replays runs of a workflow on one of its versions, and sums up by node where they go another way."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

from ..engine.graph import Graph
from ..errors import NotPossible
from ..service import Service
from ..store import run_lists
from ..store.base import find, require
from ..store.run_lists import ALL, Criteria
from ..store.runs import Run
from ..store.workflows import Workflow, WorkflowVersion
from ..workflows import versions
from . import recording as recordings
from .recording import Speaker
from .replay import Replay, itself, replay
from .stored_cases import LANE
from .subject import Subject

# How many runs one request replays, how long it may take, and how many are replayed without a permit.
MOST_RUNS, LONGEST_SECONDS, FEW = 200, 60.0, 5
LATE = f"The request had taken {LONGEST_SECONDS:.0f} s. Replay fewer runs at a time."
# Replay each run on what it was held with.
OWN: Literal["own"] = "own"

Outcome = Literal["same", "differs", "diverges", "not_replayed"]
OUTCOMES: tuple[Outcome, ...] = ("same", "differs", "diverges", "not_replayed")


@dataclass(frozen=True)
class ReplayedRun:
    """What the replay of one run led to.

    :param problem: why it wasn't replayed, a sentence; else empty, and there is all that follows.
    :param number: that of the version that the run was held with, and `graph` the nodes of it.
    """

    run: Run
    problem: str = ""
    speaker: Speaker | None = None
    number: int | None = None
    graph: Graph | None = None
    replay: Replay | None = None

    @property
    def outcome(self) -> Outcome:
        """Whether it goes the same way; "differs": the same way, with other words, questions, variables or errors."""
        if self.replay is None:
            return "not_replayed"
        if self.replay.divergence is not None:
            return "diverges"
        return "differs" if self.replay.differences else "same"


@dataclass(frozen=True)
class NodeSummary:
    """What became of replayed runs at a node.

    :param passed: how many passed it the same way, `diverged` how many go another way from there, `differed` how many
        go the same way there, while something else is different.
    """

    id: str
    name: str
    passed: int
    diverged: int
    differed: int


@dataclass(frozen=True)
class Replays:
    """What replays led to.

    :param version: the version that was replayed on; None if each run was replayed on its own.
    """

    version: WorkflowVersion | None
    runs: tuple[ReplayedRun, ...]

    def count(self, outcome: Outcome) -> int:
        """How many runs have this outcome."""
        return sum(each.outcome == outcome for each in self.runs)

    def nodes(self) -> list[NodeSummary]:
        """The nodes that the runs came to, those first where most go another way."""
        names: dict[str, str] = {}
        passed, diverged, differed = Counter[str](), Counter[str](), Counter[str]()
        for each in self.runs:
            if each.replay is None or each.graph is None:
                continue
            names |= {id: node.name for id, node in each.graph.nodes.items() if id not in names}
            turned = each.replay.divergence
            diverged.update([turned.node_id] if turned else [])
            passed.update({*each.replay.nodes} - {turned.node_id if turned else None})
            differed.update({difference.node_id for difference in each.replay.differences})
            names |= {difference.node_id: difference.node_name for difference in each.replay.differences}
        found = {*passed, *diverged, *differed}
        listed = [NodeSummary(id, names[id], passed[id], diverged[id], differed[id]) for id in names if id in found]
        return sorted(listed, key=lambda node: -node.diverged)


def of_workflow(
    service: Service,
    organization: int,
    workflow_id: int,
    run_ids: Sequence[int] | None = None,
    last: int | None = None,
    criteria: Criteria = ALL,
    version: int | Literal["own"] | None = None,
) -> Replays:
    """Replay runs of a workflow.

    :param run_ids: these runs; None takes the newest.
    :param last: how many of them, at most MOST_RUNS.
    :param criteria: what the newest runs have to meet.
    :param version: the number of the version to replay on, or OWN; None is the draft, or the released version.
    :raises RecordNotFound: when there is no such workflow, or it has no such version or run.
    :raises InvalidInput: when the version can't be run.
    :raises OutOfService: when too many slow requests are in progress.
    """
    workflow = versions.get(organization, workflow_id)
    target = None
    if version != OWN:
        _, target = versions.get_with_version(organization, workflow_id, version)
        versions.load_graph(workflow, target)
    chosen = _newest(workflow, last or MOST_RUNS, criteria) if run_ids is None else _named(workflow, run_ids)
    with _permit(service, organization, len(chosen)):
        return Replays(target, tuple(_replayed(service, workflow, target, chosen)))


def _newest(workflow: Workflow, last: int, criteria: Criteria) -> list[Run]:
    page = run_lists.newest(workflow, None, criteria, last)
    return [run for listed in page.runs if (run := find(Run, id=listed.id)) is not None]


def _named(workflow: Workflow, run_ids: Iterable[int]) -> list[Run]:
    text = f"Workflow {workflow.id} has no run"
    return [require(Run, f"{text} {id}", id=id, workflow=workflow) for id in dict.fromkeys(run_ids)]


def _permit(service: Service, organization: int, runs: int) -> AbstractContextManager[None]:
    return nullcontext() if runs <= FEW else service.bulkhead.slow(organization, LANE)


def _replayed(
    service: Service, workflow: Workflow, target: WorkflowVersion | None, runs: Iterable[Run]
) -> Iterator[ReplayedRun]:
    deadline = time.monotonic() + LONGEST_SECONDS
    subject = None
    if target is not None:
        definition, configurations = target.definition, target.configurations
        subject = Subject.of_organization(service, workflow.organization_id, definition, configurations)
    for run in runs:
        if time.monotonic() >= deadline:
            yield ReplayedRun(run, LATE)
            continue
        try:
            recording = recordings.of_run(service, run)
        except NotPossible as error:
            yield ReplayedRun(run, str(error.detail))
            continue
        if subject is None or target is None:
            found = itself(recording)
        else:
            found = replay(recording, subject, target.template_context_variables)
        yield ReplayedRun(run, "", recording.speaker, recording.version.version_number, recording.graph, found)
