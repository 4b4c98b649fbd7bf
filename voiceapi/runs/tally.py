"""Counts what happened at the nodes and on the edges of conversations, from the logs of their runs.

Each event counts for the node that it names. What isn't an event follows from the others: a turn without the caller's
words was a silence, and a run that has ended did so at the node that it entered last.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ..store.logs import LoggedEvent
from ..store.run_lists import EndedRun
from ..strict_json import decode

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


@dataclass
class Tool:
    """The calls of a function that were answered, those that never were, and how long the answers took."""

    calls: int = 0
    failures: int = 0
    unfinished: int = 0
    seconds: list[float] = field(default_factory=list)
    failed_runs: list[int] = field(default_factory=list)

    def add(self, other: Tool) -> None:
        self.calls += other.calls
        self.failures += other.failures
        self.unfinished += other.unfinished
        self.seconds += other.seconds
        self.failed_runs = _newest(chain(self.failed_runs, other.failed_runs))


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
    tools: dict[str, Tool] = field(default_factory=dict)
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
            self.tools.setdefault(name, Tool()).add(tool)
        for what, runs in other.examples.items():
            self.examples[what] = _newest(chain(self.examples.get(what, ()), runs))
        for disposition, runs in other.ended.items():
            self.ended[disposition] = _newest(chain(self.ended.get(disposition, ()), runs))


# What is counted at each node; and the things for which runs are named.
COUNTS = (
    *("passed", "starts", "ended", "in_progress", "left"),
    *("turns", "misses", "silences", "repeats", "model_failures"),
)
NAMED = ("passed", "in_progress", "left", "misses", "silences", "repeats", "model_failures")


@dataclass(frozen=True)
class Passage:
    """An edge as the logs name it: its id, and the ids of the nodes that it led from and to."""

    id: str | None
    source: str
    target: str


@dataclass
class Tally:
    """What happened in all conversations that were counted, by node and by edge, and the last names of both."""

    nodes: defaultdict[str, Figures] = field(default_factory=lambda: defaultdict(Figures))
    edges: defaultdict[Passage, Figures] = field(default_factory=lambda: defaultdict(Figures))
    names: dict[str, str] = field(default_factory=dict)
    labels: dict[Passage, str] = field(default_factory=dict)
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
                self.nodes[node].tools.setdefault(name, Tool()).unfinished += times

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
        self.passed: set[str | Passage] = set()
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
            edge = Passage(payload.get("edge_id"), previous, node)
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
        tool = self.tally.nodes[node].tools.setdefault(name, Tool())
        tool.calls += 1
        tool.seconds.append(max(0, event.at - began) / 1_000_000)
        if has_failed(result):
            tool.failures += 1
            _note(tool.failed_runs, self.run.id)

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
