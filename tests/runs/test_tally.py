"""What is counted of logs that are written by hand, event by event."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from voiceapi.runs.insights import (
    EXAMPLES,
    MOST_DISPOSITIONS,
    MOVED_ON,
    EdgePassage,
    Figures,
    Tally,
    figures_answer,
    times,
)
from voiceapi.store.logs import LoggedEvent
from voiceapi.store.run_lists import EndedRun

LONG = "We are open at nine every day."
Log = Sequence[LoggedEvent]


def event(turn: int, type: str, node: str | None, at: int = 0, name: str | None = None, **payload: Any) -> LoggedEvent:
    return LoggedEvent(0, turn, f"rtf-{type}", node, name, at, json.dumps(payload))


def enter(
    turn: int, node: str, previous: str | None = None, *, name: str | None = None, label: str = ""
) -> LoggedEvent:
    edge = None if previous is None else f"{previous}-{node}"
    given = {"previous_node_id": previous, "edge_id": edge, "edge_label": label}
    return event(turn, "node-transition", node, name=name, **given)


def said(turn: int, node: str | None = "a") -> LoggedEvent:
    return event(turn, "user-transcription", node)._replace(payload=None)


def says(turn: int, text: str, node: str | None = "a") -> LoggedEvent:
    return event(turn, "bot-text", node, text=text)


def calls(name: str, at: float = 0, turn: int = 1, node: str = "a") -> LoggedEvent:
    return event(turn, "function-call-start", node, int(at * 1e6), function_name=name)


def returns(at: float = 0, turn: int = 1, node: str = "a", **result: Any) -> LoggedEvent:
    return event(turn, "function-call-end", node, int(at * 1e6), result=json.dumps(result))


def counted(*logs: Log, disposition: str | None = "user_hangup", is_completed: bool = True) -> Tally:
    """The tally of these conversations, the newest first, whose runs have the ids from their number down to 1."""
    tally = Tally()
    for id, log in zip(range(len(logs), 0, -1), logs, strict=True):
        tally.count(EndedRun(id, is_completed, disposition, datetime(2026, 1, 1, tzinfo=UTC)), log)
    tally.finish()
    return tally


def counts(tally: Tally, what: str) -> dict[str, int]:
    return {node: figures.counts[what] for node, figures in tally.nodes.items() if figures.counts[what]}


def tools(tally: Tally, node: str = "a") -> dict[str, tuple[int, int, int]]:
    found = tally.nodes[node].tools
    return {name: (tool.calls, tool.failures, tool.unfinished) for name, tool in found.items()}


# -- what callers and the agent say


@pytest.mark.parametrize(
    ("log", "silences"),
    [
        # The opening, whenever it says something, and whichever turn it has.
        ([enter(0, "a"), says(0, LONG)], {}),
        ([event(0, "pipeline-error", None), enter(0, "a")], {}),
        ([enter(3, "a"), says(3, LONG)], {}),
        # A turn, however much happens in it, and however many of them there are.
        ([enter(0, "a"), says(1, "Hm?"), says(1, "Hm?"), event(1, "latency-measured", "a")], {"a": 1}),
        ([enter(0, "a"), says(1, "Hm?"), says(2, "Hm?")], {"a": 2}),
        # The caller's words may be stored after what the agent made of them.
        ([enter(0, "a"), event(1, "latency-measured", "a"), said(1), said(2)], {}),
        # At the node where the silence began.
        ([enter(0, "a"), enter(1, "b", "a"), says(1, LONG, "b")], {"a": 1}),
        ([enter(0, "a"), said(1), enter(1, "b", "a"), says(2, LONG, "b")], {"b": 1}),
        # An event that is stored late is of a turn that has begun.
        ([enter(0, "a"), said(1), said(2), says(1, LONG), says(0, LONG)], {}),
    ],
)
def test_a_turn_without_the_callers_words_is_a_silence(log: Log, silences: dict[str, int]) -> None:
    assert counts(counted(log), "silences") == silences


@pytest.mark.parametrize(
    ("spoken", "repeats"),
    [
        ([says(0, LONG), says(1, LONG)], {"a": 1}),
        ([says(0, LONG), says(1, LONG.upper()), says(2, LONG)], {"a": 2}),
        # Within one answer, also in several parts.
        ([says(1, f"{LONG} {LONG}"), says(1, LONG)], {}),
        # Several sentences of an answer, or parts of it, are one.
        ([says(0, f"{LONG} And you?"), says(1, f"{LONG} And you?"), says(1, LONG)], {"a": 1}),
        # Each node by itself.
        ([says(0, LONG), says(1, LONG, "b")], {}),
        ([says(0, LONG), says(0, LONG, "b"), says(1, LONG), says(1, LONG, "b")], {"a": 1, "b": 1}),
        # A short sentence, of up to 19 characters, unless it asks.
        ([says(0, "Nineteen characters"), says(1, "Nineteen characters")], {}),
        ([says(0, "Twenty characters it"), says(1, "Twenty characters it")], {"a": 1}),
        ([says(0, "Well?"), says(1, "Well?")], {"a": 1}),
        # What names no node was said where the conversation stands.
        ([says(0, LONG, None), says(1, LONG)], {"a": 1}),
    ],
)
def test_an_answer_that_says_again_what_was_said_there_is_a_repeat(spoken: Log, repeats: dict[str, int]) -> None:
    assert counts(counted([enter(0, "a"), said(1), said(2), *spoken]), "repeats") == repeats


def test_what_is_said_again_in_another_conversation_is_no_repeat() -> None:
    log = [enter(0, "a"), says(0, LONG)]
    assert counts(counted(log, log), "repeats") == {}


def test_turns_and_misses_count_where_they_say_that_they_were() -> None:
    """Also when the conversation stands elsewhere by then; those without a node where it stands, if it has begun."""
    log = [said(0, None), enter(0, "a"), said(1), event(1, "not-understood", "a"), enter(1, "b", "a")]
    tally = counted([*log, said(2, None), event(2, "not-understood", None), event(1, "not-understood", "a")])
    assert counts(tally, "turns") == {"a": 1, "b": 1}
    assert counts(tally, "misses") == {"a": 2, "b": 1}


# -- where conversations end


@pytest.mark.parametrize(
    ("disposition", "left"),
    [
        ("user_hangup", {"b": 1}),
        ("user_idle_max_duration_exceeded", {"b": 1}),
        ("user_qualified", {}),
        ("user_disqualified", {}),
        (None, {}),
    ],
)
def test_callers_leave_at_the_node_that_was_entered_last(disposition: str | None, left: dict[str, int]) -> None:
    """What is said later about another node changes nothing; nor has anybody left before the run has ended."""
    log = [enter(0, "a"), enter(1, "b", "a"), says(1, LONG, "a")]
    tally = counted(log, disposition=disposition)
    assert counts(tally, "left") == left
    assert counts(tally, "ended") == {"b": 1}
    assert tally.nodes["b"].dispositions == {disposition: 1}
    going_on = counted(log, disposition=disposition, is_completed=False)
    assert (counts(going_on, "in_progress"), counts(going_on, "left"), counts(going_on, "ended")) == ({"b": 1}, {}, {})


def test_a_conversation_that_comes_back_to_a_node_is_one_that_passed_it() -> None:
    round_trip = [enter(0, "a"), enter(1, "b", "a"), enter(2, "a", "b"), enter(3, "b", "a")]
    tally = counted(round_trip, [enter(0, "a")])
    assert {node: (figures.counts["passed"], figures.runs) for node, figures in tally.nodes.items()} == {
        "a": (3, 2),
        "b": (2, 1),
    }
    there, back = EdgePassage("a-b", "a", "b"), EdgePassage("b-a", "b", "a")
    assert {edge: (figures.counts["passed"], figures.runs) for edge, figures in tally.edges.items()} == {
        there: (2, 1),
        back: (1, 1),
    }
    assert (tally.total().runs, tally.total().counts["starts"]) == (2, 2)


def test_names_and_labels_are_those_of_the_newest_conversation() -> None:
    logs = [[enter(0, "a", name=name), enter(1, "b", "a", label=name)] for name in ("New", "Old")]
    tally = counted(*logs)
    assert tally.names == {"a": "New", "b": "b"}
    assert tally.labels == {EdgePassage("a-b", "a", "b"): "New"}


# -- tools


def test_calls_of_a_function_are_counted_by_how_they_ended() -> None:
    log = [enter(0, "a"), calls("f", 1), returns(3, status="success"), calls("f", 4), returns(4.5, status="error")]
    tally = counted([*log, calls("f", 5), calls("g", 6)], log)
    assert tools(tally) == {"f": (4, 2, 1), "g": (0, 0, 1)}
    assert tally.nodes["a"].tools["f"].seconds == [2, 0.5, 2, 0.5]
    assert tally.nodes["a"].tools["f"].run_ids == [2, 1]
    assert tally.total().tools == tally.nodes["a"].tools


def test_a_clock_that_was_set_back_makes_no_negative_time() -> None:
    tally = counted([enter(0, "a"), calls("f", 9), returns(1)])
    assert tally.nodes["a"].tools["f"].seconds == [0]


def test_a_call_that_never_returned_is_counted_each_time() -> None:
    """At the node at which it was made, also when what follows it belongs to another."""
    cut = [enter(0, "a"), calls("f")]
    assert tools(counted(cut, cut, [*cut, calls("g", node="b"), returns(node="b")])) == {"f": (0, 0, 3)}


def test_an_end_without_a_beginning_is_no_call() -> None:
    assert tools(counted([enter(0, "a"), returns(status="error"), calls("f"), returns(), returns()])) == {
        "f": (1, 0, 0)
    }


def test_functions_that_lead_to_another_node_are_edges_at_that_node_only() -> None:
    moved = [enter(0, "a"), calls("go"), enter(1, "b", "a"), returns(status="error")]
    late = [*moved, calls("back"), returns(status="error", error=MOVED_ON), calls("go", node="b")]
    tally = counted(late, [enter(0, "a"), calls("go")])
    assert (tools(tally), tools(tally, "b")) == ({}, {"go": (0, 0, 1)})


def test_a_call_after_an_edge_is_none_itself() -> None:
    moved = [enter(0, "a"), enter(1, "b", "a"), calls("f", node="b"), returns(node="b")]
    assert tools(counted(moved), "b") == {"f": (1, 0, 0)}


@pytest.mark.parametrize(("code", "failures"), [(399, 0), (400, 1), (503, 1), ("400", 0), (None, 0)])
def test_a_server_that_refuses_is_a_failure(code: Any, failures: int) -> None:
    tally = counted([enter(0, "a"), calls("f"), returns(status="success", status_code=code)])
    assert tools(tally) == {"f": (1, failures, 0)}


# -- times


def test_times_belong_to_the_node_that_they_name() -> None:
    log = [
        enter(0, "a"),
        event(1, "latency-measured", "b", latency_seconds=2),
        event(1, "latency-measured", "a", latency_seconds=0.5),
        event(1, "latency-measured", "a", latency_seconds="1"),
        event(1, "ttfb-metric", "b", ttfb_seconds=1),
        event(1, "ttfb-metric", "b", ttfb_seconds=None),
    ]
    tally = counted(log, log)
    assert {node: figures.answers for node, figures in tally.nodes.items()} == {
        "a": [(0.5, 2), (0.5, 1)],
        "b": [(2.0, 2), (2.0, 1)],
    }
    assert {node: figures.models for node, figures in tally.nodes.items()} == {"a": [], "b": [1.0, 1.0]}
    assert (len(tally.total().answers), tally.total().models) == (4, [1.0, 1.0])


def test_only_errors_of_a_language_model_are_its_failures() -> None:
    log = [enter(0, "a"), *(event(1, "pipeline-error", "a", processor=each) for each in ("llm", "tts", None))]
    assert counts(counted(log), "model_failures") == {"a": 1}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([0.12345], (0.123, 0.123, 0.123)),
        (range(1, 12), (6, 10, 11)),
        (range(1, 101), (50, 90, 99)),
        (range(1, 102), (51, 91, 100)),
        ([3, 1, 2], (2, 3, 3)),
    ],
)
def test_a_percentile_is_the_least_that_so_many_are_not_above(seconds: Sequence[float], expected: Any) -> None:
    assert tuple(times(seconds)[f"p{percent}"] for percent in (50, 90, 99)) == expected


# -- examples


def test_the_newest_runs_are_named_each_once() -> None:
    log = [
        enter(0, "a"),
        *(event(1, "not-understood", "a"),) * 3,
        calls("f"),
        returns(error="x"),
        calls("f"),
        returns(error="x"),
    ]
    tally = counted(*[log] * (EXAMPLES + 3))
    newest = list(range(EXAMPLES + 3, 3, -1))
    for figures in (tally.nodes["a"], tally.total()):
        shown = figures_answer(figures)
        assert {name: shown["run_ids"][name] for name in ("passed", "left", "misses")} == dict.fromkeys(
            ("passed", "left", "misses"), newest
        )
        assert shown["run_ids"]["silences"] == newest
        assert shown["dispositions"] == [{"disposition": "user_hangup", "runs": EXAMPLES + 3, "run_ids": newest}]
        assert shown["tools"][0]["run_ids"] == newest


def test_the_examples_of_all_nodes_are_the_newest_of_each() -> None:
    """Of nodes whose runs take turns."""
    logs = [[enter(0, "ab"[number % 2]), calls("f", node="ab"[number % 2]), returns(error="x")] for number in range(8)]
    total = figures_answer(counted(*logs).total())
    newest = [8, 7, 6, 5, 4]
    assert (total["run_ids"]["passed"], total["run_ids"]["left"], total["tools"][0]["run_ids"]) == (newest,) * 3
    assert total["dispositions"][0]["run_ids"] == newest


def test_the_slowest_runs_are_named_by_their_slowest_answer() -> None:
    waits = [(1.0, 9), (7.0, 1), (2.0, 1), (6.0, 2), (5.0, 3), (3.0, 4), (4.0, 4), (3.5, 5), (0.5, 9), (3.0, 6)]
    assert figures_answer(Figures(answers=waits))["run_ids"]["slowest"] == [1, 2, 3, 4, 5]


def test_the_commonest_dispositions_are_shown() -> None:
    figures = Figures()
    for number in range(MOST_DISPOSITIONS + 2):
        for _ in range(number + 1):
            figures.end(EndedRun(number, True, f"code {number}", datetime(2026, 1, 1, tzinfo=UTC)))
    shown = figures_answer(figures)["dispositions"]
    assert [each["runs"] for each in shown] == list(range(MOST_DISPOSITIONS + 2, 2, -1))
    assert shown[0] == {"disposition": f"code {MOST_DISPOSITIONS + 1}", "runs": 22, "run_ids": [21]}
