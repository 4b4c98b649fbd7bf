"""What a set of runs says about an agent: what happened at each of its nodes and edges, and how quick its answers were.

A request counts the newest runs of the set, at most MOST_RUNS, so that it takes seconds of however many there are; its
answer says how many it counted of how many.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import chain
from math import ceil
from typing import Any

from ..service import Service
from ..store import run_lists
from ..store.base import require
from ..store.campaigns import Campaign
from ..store.logs import LoggedEvent, are_longer, logs
from ..store.run_lists import Criteria, EndedRun, column_is, is_test
from ..strict_json import decode
from ..workflows import versions
from ..workflows.drawing.graph import DrawnGraph, Mark, Overlay
from ..workflows.drawing.svg import draw

MOST_RUNS = 10_000
# Events of the logs that are read, and characters of what they hold; a text chat may have thousands, and 8 MiB.
MOST_EVENTS, MOST_TEXT = 500_000, 250 * 1024 * 1024
# More runs, longer logs of them in characters, or more nodes and edges to draw may take more than a tenth of a second.
QUICK_RUNS, QUICK_LOGS, QUICK_GRAPH = 200, 10 * 1024 * 1024, 300
# The commonest dispositions that are told apart at a node: workflows may set any text.
MOST_DISPOSITIONS = 20
PERCENTILES = (50, 90, 99)
# The types of node that a conversation can be at.
SPEAKING = frozenset(("startCall", "agentNode", "endCall"))
# The dispositions of a run that its caller ended, by hanging up or by saying nothing more.
LEFT = frozenset(("user_hangup", "user_idle_max_duration_exceeded"))
# The runs named for each thing that happened at a node: the newest, or those with the slowest answers.
EXAMPLES = 5
# The result of an edge's function that wasn't taken, because another one of the same reply was.
MOVED_ON = "The conversation has already moved on in this reply."
FAILED = ("error", "transfer_failed")
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。？！])|\n+")
# A shorter sentence is repeated without meaning to ask again, unless it is a question.
SHORTEST_REPEATED = 20
QUESTION = ("?", "？", "؟")
# What is counted at each node; and the things for which runs are named.
COUNTS = (
    *("passed", "starts", "ended", "in_progress", "left"),
    *("turns", "misses", "silences", "repeats", "model_failures"),
)
NAMED = ("passed", "in_progress", "left", "misses", "silences", "repeats", "model_failures")


def of_workflow(
    service: Service,
    organization: int,
    workflow_id: int,
    criteria: Criteria,
    *,
    version_number: int | None = None,
    campaign_id: int | None = None,
    include_tests: bool = False,
    drawing: bool = False,
) -> dict[str, Any]:
    """The insights of the runs of a workflow that meet the criteria.

    :param version_number: only runs of this version, whose nodes and edges are listed then; else the current one's are.
    :param campaign_id: only runs of this campaign.
    :param include_tests: also those of drafts and test triggers.
    :param drawing: with the graph and its numbers as SVG.
    :raises RecordNotFound: when the organization has no such workflow, or that has no such version or campaign.
    :raises OutOfService: when too many slow requests are in progress.
    """
    workflow, version = versions.get_with_version(organization, workflow_id, version_number)
    campaign = None
    if campaign_id is not None:
        text = f"Workflow {workflow_id} has no campaign {campaign_id}"
        campaign = require(Campaign, text, id=campaign_id, workflow=workflow, organization=organization)
    if version_number is not None:
        criteria &= column_is("version_id", version.id)
    graph = DrawnGraph.of(version.definition)
    is_quick = workflow.total_runs <= QUICK_RUNS and len(graph.nodes) + len(graph.edges) <= QUICK_GRAPH
    slow = service.bulkhead.slow(organization, "lists")
    with ExitStack() as permit:
        if not is_quick:
            permit.enter_context(slow)
        # No campaign calls with a draft.
        tests = 0 if campaign is not None else run_lists.tests_of(workflow, criteria)
        shown = criteria if include_tests or not tests else criteria & is_test(False)
        page = run_lists.newest(workflow, campaign, shown, MOST_RUNS)
        if is_quick and are_longer([run.id for run in page.runs], QUICK_LOGS):
            permit.enter_context(slow)
        tally, counted = _counted(page.runs)
        answer = {
            "workflow_id": workflow.id,
            "version_number": version.version_number,
            "runs": {
                "found": page.total,
                "counted": len(counted),
                "tests": tests,
                "first_created_at": counted[-1].created_at if counted else None,
                "last_created_at": counted[0].created_at if counted else None,
            },
            "total": figures_answer(tally.total()),
            **_listed(graph, tally),
        }
        if drawing:
            answer["drawing"] = draw(version.definition, workflow.name, overlay=_overlay(answer))
    return answer


def _counted(runs: list[EndedRun]) -> tuple[Tally, list[EndedRun]]:
    """What the logs of runs say, and which runs were counted: the newest, until the logs are too long."""
    tally, events, text = Tally(), 0, 0
    places = {run.id: place for place, run in enumerate(runs)}
    counted = runs
    for id, log in logs(list(places)):
        tally.count(runs[places[id]], log)
        events += len(log)
        text += sum(len(event.payload or "") for event in log)
        if events >= MOST_EVENTS or text >= MOST_TEXT:
            counted = runs[: places[id] + 1]
            break
    tally.finish()
    return tally, counted


def _listed(graph: DrawnGraph, tally: Tally) -> dict[str, Any]:
    """The nodes and edges of a graph, then those that runs passed and that are gone from it."""
    speaking = [node for node in graph.nodes if node.type in SPEAKING and node.id is not None]
    nodes = {node.id: (node.name, node.type) for node in speaking}
    gone = [id for id in tally.nodes if id not in nodes]
    edges: dict[EdgePassage, str] = {}
    for edge in graph.edges:
        source, target = graph.nodes[edge.source].id, graph.nodes[edge.target].id
        if source is not None and target is not None and {source, target} <= nodes.keys():
            edges[EdgePassage(edge.id, source, target)] = edge.label
    return {
        "nodes": [
            *(_node(id, name, type, tally, in_workflow=True) for id, (name, type) in nodes.items()),
            *(_node(id, tally.names.get(id, id), None, tally, in_workflow=False) for id in sorted(gone)),
        ],
        "edges": [
            *(_edge(edge, label, tally, in_workflow=True) for edge, label in edges.items()),
            *(
                _edge(edge, label, tally, in_workflow=False)
                for edge, label in tally.labels.items()
                if edge not in edges
            ),
        ],
    }


def _node(id: str | None, name: str, type: str | None, tally: Tally, *, in_workflow: bool) -> dict[str, Any]:
    figures = tally.nodes.get(id or "", Figures())
    return {"id": id, "name": name, "type": type, "in_workflow": in_workflow, **figures_answer(figures)}


def _edge(edge: EdgePassage, label: str, tally: Tally, *, in_workflow: bool) -> dict[str, Any]:
    figures = tally.edges.get(edge, Figures())
    return {
        "id": edge.id,
        "label": label,
        "source": edge.source,
        "target": edge.target,
        "in_workflow": in_workflow,
        "passed": figures.counts["passed"],
        "runs": figures.runs,
        "run_ids": figures.examples.get("passed", []),
    }


def figures_answer(figures: Figures) -> dict[str, Any]:
    """What happened at a node, as answers show it."""
    return {
        **{name: figures.counts[name] for name in COUNTS},
        "runs": figures.runs,
        "dispositions": [
            {"disposition": disposition, "runs": runs, "run_ids": figures.ended[disposition]}
            for disposition, runs in figures.dispositions.most_common(MOST_DISPOSITIONS)
        ],
        "answer_seconds": times([seconds for seconds, _ in figures.answers]),
        "model_seconds": times(figures.models),
        "tools": [
            {"name": name, **vars(tool), "seconds": times(tool.seconds)} for name, tool in sorted(figures.tools.items())
        ],
        "run_ids": {
            **{name: figures.examples.get(name, []) for name in NAMED},
            "slowest": _slowest(figures.answers),
        },
    }


def _slowest(answers: list[tuple[float, int]]) -> list[int]:
    """The runs with the slowest answers, slowest first."""
    slowest: dict[int, float] = {}
    for seconds, run in answers:
        slowest[run] = max(seconds, slowest.get(run, 0.0))
    return nlargest(EXAMPLES, slowest, key=slowest.__getitem__)


def times(seconds: Iterable[float]) -> dict[str, Any]:
    """How many times there are, and of these the percentiles: the least that so many percent aren't above."""
    found = sorted(seconds)
    ranks = {f"p{percent}": ceil(len(found) * percent / 100) - 1 for percent in PERCENTILES}
    return {"count": len(found), **{name: round(found[rank], 3) if found else None for name, rank in ranks.items()}}


def _overlay(answer: Mapping[str, Any]) -> Overlay:
    """The numbers on the drawing: how often nodes and edges were passed, and where callers left."""
    runs = answer["runs"]
    return Overlay(
        {node["id"]: _mark(node["passed"], node["left"]) for node in answer["nodes"] if node["in_workflow"]},
        {edge["id"]: _mark(edge["passed"]) for edge in answer["edges"] if edge["in_workflow"] and edge["id"]},
        (f"{answer['total']['runs']} conversations in {runs['counted']} of {runs['found']} runs.",),
    )


def _mark(passed: int, left: int = 0) -> Mark:
    leavers = f" Callers left here: {left}." if left else ""
    return Mark(
        f"{passed}, {left} left" if left else str(passed),
        "plain" if passed else "untouched",
        f"Times passed: {passed}.{leavers}",
    )


# -- the tally
# Each event counts for the node that it names. What isn't an event follows from the others: a turn without the caller's
# words was a silence, and a run that has ended did so at the node that it entered last.


@dataclass
class ToolTally:
    """The calls of a function that were answered, those that never were, and how long the answers took.

    :param run_ids: of runs in which it failed.
    """

    calls: int = 0
    failures: int = 0
    unfinished: int = 0
    seconds: list[float] = field(default_factory=list)
    run_ids: list[int] = field(default_factory=list)

    def add(self, other: ToolTally) -> None:
        self.calls += other.calls
        self.failures += other.failures
        self.unfinished += other.unfinished
        self.seconds += other.seconds
        self.run_ids = _newest(chain(self.run_ids, other.run_ids))


@dataclass
class Figures:
    """What happened at a node, or at several.

    :param counts: how often, by what happened: see COUNTS.
    :param runs: how many conversations passed it.
    :param dispositions: of the runs that ended there.
    :param answers: the seconds that callers waited for an answer, with the run of each; and `models`: those that
        language models took to answer.
    :param examples: runs in which it happened, by what happened, and `ended`: by disposition.
    """

    counts: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    dispositions: Counter[str | None] = field(default_factory=Counter)
    answers: list[tuple[float, int]] = field(default_factory=list)
    models: list[float] = field(default_factory=list)
    tools: dict[str, ToolTally] = field(default_factory=dict)
    examples: dict[str, list[int]] = field(default_factory=dict)
    ended: dict[str | None, list[int]] = field(default_factory=dict)

    def note(self, what: str, run: int) -> None:
        """Count one more; the runs come the newest first."""
        self.counts[what] += 1
        _note(self.examples.setdefault(what, []), run)

    def end(self, run: EndedRun) -> None:
        """Count a run that ended here."""
        self.counts["ended"] += 1
        self.dispositions[run.disposition] += 1
        _note(self.ended.setdefault(run.disposition, []), run.id)
        if run.disposition in LEFT:
            self.note("left", run.id)

    def add(self, other: Figures) -> None:
        """Add those of another node."""
        self.counts.update(other.counts)
        self.dispositions.update(other.dispositions)
        self.answers += other.answers
        self.models += other.models
        for name, tool in other.tools.items():
            self.tools.setdefault(name, ToolTally()).add(tool)
        for what, runs in other.examples.items():
            self.examples[what] = _newest(chain(self.examples.get(what, ()), runs))
        for disposition, runs in other.ended.items():
            self.ended[disposition] = _newest(chain(self.ended.get(disposition, ()), runs))


@dataclass(frozen=True)
class EdgePassage:
    """An edge as the logs name it: its id, and the ids of the nodes that it led from and to."""

    id: str | None
    source: str
    target: str


@dataclass
class Tally:
    """What happened in all conversations that were counted, by node and by edge, and the last names of both."""

    nodes: defaultdict[str, Figures] = field(default_factory=lambda: defaultdict(Figures))
    edges: defaultdict[EdgePassage, Figures] = field(default_factory=lambda: defaultdict(Figures))
    names: dict[str, str] = field(default_factory=dict)
    labels: dict[EdgePassage, str] = field(default_factory=dict)
    # The functions that led to another node: they are edges, not tools.
    _edge_functions: set[tuple[str, str]] = field(default_factory=set)
    _unfinished: Counter[tuple[str, str]] = field(default_factory=Counter)

    def count(self, run: EndedRun, log: Iterable[LoggedEvent]) -> None:
        """Count a conversation; the newest come first."""
        _Conversation(self, run, list(log)).count()

    def finish(self) -> None:
        """Count the calls of functions that never returned, once it is known which functions are edges."""
        for (node, name), times in self._unfinished.items():
            if (node, name) not in self._edge_functions:
                self.nodes[node].tools.setdefault(name, ToolTally()).unfinished += times

    def total(self) -> Figures:
        """The figures of all nodes together; its runs are the conversations."""
        found = Figures()
        for figures in self.nodes.values():
            found.add(figures)
        found.runs = found.counts["starts"]
        return found


class _Conversation:
    """One conversation while it is counted.

    :param here: the node at which it stands.
    :param said: the sentences that the agent said at each node, with the turn in which it did so first.
    :param call: the function that runs: its name, its node and when it was called; and whether it was an edge.
    """

    def __init__(self, tally: Tally, run: EndedRun, log: list[LoggedEvent]) -> None:
        self.tally, self.run, self.log = tally, run, log
        self.here: str | None = None
        self.said: dict[str, dict[str, int]] = {}
        self.repeated: set[tuple[int, str]] = set()
        self.passed: set[str | EdgePassage] = set()
        self.call: tuple[str, str, int] | None = None
        self.is_edge = False

    def count(self) -> None:
        spoken = {event.turn for event in self.log if event.type == "rtf-user-transcription"}
        begun: set[int] = set()
        for event in self.log:
            if event.turn not in begun:
                begun.add(event.turn)
                # The opening, before which no node was entered, is no turn of the caller's.
                if event.turn not in spoken and self.here is not None:
                    self.tally.nodes[self.here].note("silences", self.run.id)
            node = event.node_id or self.here
            count = COUNTING.get(event.type)
            if count is not None and node is not None:
                count(self, node, event)
        self._leave_call()
        if self.here is not None:
            if self.run.is_completed:
                self.tally.nodes[self.here].end(self.run)
            else:
                self.tally.nodes[self.here].note("in_progress", self.run.id)
        for each in self.passed:
            (self.tally.nodes[each] if isinstance(each, str) else self.tally.edges[each]).runs += 1

    def enter(self, node: str, event: LoggedEvent) -> None:
        payload, tally = _payload(event), self.tally
        tally.nodes[node].note("passed", self.run.id)
        tally.names.setdefault(node, event.node_name or node)
        self.passed.add(node)
        previous = payload.get("previous_node_id")
        if previous is None:
            tally.nodes[node].note("starts", self.run.id)
        else:
            edge = EdgePassage(payload.get("edge_id"), previous, node)
            tally.edges[edge].note("passed", self.run.id)
            tally.labels.setdefault(edge, payload.get("edge_label") or "")
            self.passed.add(edge)
            self.is_edge = True
        self.here = node

    def take_turn(self, node: str, _: LoggedEvent) -> None:
        self.tally.nodes[node].note("turns", self.run.id)

    def miss(self, node: str, _: LoggedEvent) -> None:
        self.tally.nodes[node].note("misses", self.run.id)

    def speak(self, node: str, event: LoggedEvent) -> None:
        if _payload(event).get("filler"):
            return
        said = self.said.setdefault(node, {})
        for sentence in sentences(str(_payload(event).get("text") or "")):
            if said.setdefault(sentence, event.turn) < event.turn and (event.turn, node) not in self.repeated:
                self.repeated.add((event.turn, node))
                self.tally.nodes[node].note("repeats", self.run.id)

    def begin_call(self, node: str, event: LoggedEvent) -> None:
        self._leave_call()
        self.call, self.is_edge = (str(_payload(event).get("function_name")), node, event.at), False

    def end_call(self, _: str, event: LoggedEvent) -> None:
        if self.call is None:
            return
        (name, node, began), self.call = self.call, None
        if self.is_edge:
            self.tally._edge_functions.add((node, name))
            return
        result = _decoded(_payload(event).get("result"))
        if result.get("error") == MOVED_ON:
            return
        tool = self.tally.nodes[node].tools.setdefault(name, ToolTally())
        tool.calls += 1
        tool.seconds.append(max(0, event.at - began) / 1_000_000)
        if has_failed(result):
            tool.failures += 1
            _note(tool.run_ids, self.run.id)

    def _leave_call(self) -> None:
        """Note a call that never returned: the run ended meanwhile, or is waiting for it."""
        if self.call is not None and not self.is_edge:
            name, node, _ = self.call
            self.tally._unfinished[(node, name)] += 1
        self.call = None

    def wait(self, node: str, event: LoggedEvent) -> None:
        seconds = _payload(event).get("latency_seconds")
        if isinstance(seconds, int | float):
            self.tally.nodes[node].answers.append((float(seconds), self.run.id))

    def answer(self, node: str, event: LoggedEvent) -> None:
        seconds = _payload(event).get("ttfb_seconds")
        if isinstance(seconds, int | float):
            self.tally.nodes[node].models.append(float(seconds))

    def fail(self, node: str, event: LoggedEvent) -> None:
        if _payload(event).get("processor") == "llm":
            self.tally.nodes[node].note("model_failures", self.run.id)


COUNTING = {
    "rtf-node-transition": _Conversation.enter,
    "rtf-user-transcription": _Conversation.take_turn,
    "rtf-not-understood": _Conversation.miss,
    "rtf-bot-text": _Conversation.speak,
    "rtf-function-call-start": _Conversation.begin_call,
    "rtf-function-call-end": _Conversation.end_call,
    "rtf-latency-measured": _Conversation.wait,
    "rtf-ttfb-metric": _Conversation.answer,
    "rtf-pipeline-error": _Conversation.fail,
}


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text that are worth noticing when they are said again, without regard to their case."""
    for sentence in SENTENCE_END.split(text):
        plain = " ".join(sentence.split()).casefold()
        if len(plain) >= SHORTEST_REPEATED or plain.endswith(QUESTION):
            yield plain


def has_failed(result: Mapping[str, Any]) -> bool:
    """True for the result of a function that says that it failed, or that a server refused its request."""
    status, code = result.get("status"), result.get("status_code")
    if status is None:
        return bool(result.get("error"))
    return status in FAILED or (isinstance(code, int) and code >= 400)


def _payload(event: LoggedEvent) -> Mapping[str, Any]:
    return _decoded(event.payload)


def _decoded(text: Any) -> Mapping[str, Any]:
    """The object in a JSON text; an empty one for anything else."""
    try:
        found = decode(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _note(runs: list[int], run: int) -> None:
    if len(runs) < EXAMPLES and run not in runs:
        runs.append(run)


def _newest(runs: Iterable[int]) -> list[int]:
    """The newest of runs, by their ids: close enough for examples."""
    return sorted(set(runs), reverse=True)[:EXAMPLES]
