"""Replaying the stored events of a run gives its live state."""

import json
import sqlite3
from contextlib import closing
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapi.engine import events
from voiceapi.engine.actions import Action, Function, Request
from voiceapi.engine.events import Event, ToolCall
from voiceapi.engine.graph import Graph, GraphError
from voiceapi.engine.serialization import RENAMED_FIELDS
from voiceapi.engine.state import State, begin, checkpoint, from_checkpoint
from voiceapi.engine.step import IllegalEvent, outstanding, step

DATA = Path(__file__).parent.parent / "data"
TIMES = st.floats(0, 2000).map(lambda seconds: round(seconds, 3))
NUMBERS = st.integers(0, 12)
WORDS = st.sampled_from(["", "yes", "book five", "bye"])
CALLS = st.lists(st.sampled_from(["book", "leave", "counted", "find", "fly"]), max_size=3).map(
    lambda names: tuple(ToolCall(f"c{place}", name) for place, name in enumerate(names))
)
SPENT = {"model": st.sampled_from(["m", "n"]), "usage": st.just({"total_tokens": 3})}
VALUES = st.fixed_dictionaries({}, optional={"seats": st.sampled_from([5, "5", "many", None]), "other": st.just(1)})

EVENTS = st.one_of(
    st.builds(events.Started, TIMES),
    st.builds(events.CallerSaid, TIMES, WORDS),
    st.builds(events.CallerSilent, TIMES),
    st.builds(events.CallEnded, TIMES, st.sampled_from(["user_hangup", "voicemail_detected", "pipeline_error"])),
    st.builds(events.Fetched, TIMES, NUMBERS, st.just({"name": "Bob"})),
    st.builds(events.ModelSpoke, TIMES, NUMBERS, WORDS),
    st.builds(events.ModelReplied, TIMES, NUMBERS, WORDS, CALLS, **SPENT),
    st.builds(events.ModelFailed, TIMES, NUMBERS, st.just("down"), **SPENT),
    st.builds(events.VariablesExtracted, TIMES, NUMBERS, VALUES, **SPENT),
    st.builds(events.ExtractionFailed, TIMES, NUMBERS, st.just("down")),
    st.builds(events.ToolReturned, TIMES, NUMBERS, st.just({"a": 1}), end_reason=st.sampled_from(["", "", "done"])),
    st.builds(events.ToolReturned, TIMES, NUMBERS, st.none(), transfer_to=st.just("+1202")),
    st.builds(events.TransferSettled, TIMES, NUMBERS, st.booleans(), st.just("x")),
)


def likely(state: State, event: Event) -> Event:
    """Give an answer the number of the latest request most of the time, so that conversations get somewhere."""
    if isinstance(event, events.Answer) and event.number % 4:
        return type(event)(**{**vars(event), "number": state.number})
    return event


_DEFINITION: dict[str, Any] = {}


@pytest.fixture(autouse=True, scope="module")
def _definition(booking: Any) -> None:
    # hypothesis calls a test many times, so it can't take a fixture of its own for each.
    start = {"pre_call_fetch_mode": "outbound", "pre_call_fetch_url": "https://u"}
    _DEFINITION.update(deepcopy(booking))
    _DEFINITION["nodes"][1]["data"] |= start


def fresh(graph: Graph, direction: str | None) -> State:
    tools = {"start": (Function("find", "Find.", tool_uuid="u", speech="Hold on."),)}
    return begin(graph, {"name": "Ann"}, {}, functions=tools, direction=direction)


@given(st.lists(EVENTS, max_size=40), st.sampled_from(["outbound", None]))
def test_folding_the_stored_events_gives_the_live_state(drawn: list[Event], direction: str | None) -> None:
    graph = Graph.read(_DEFINITION)
    live = fresh(graph, direction)
    live, opening = step(graph, live, events.Started(0.0))
    stored, done = [events.Started(0.0).to_json()], [opening]
    for event in (likely(live, each) for each in drawn):
        before = live.to_json()
        try:
            after, actions = step(graph, live, event)
        except IllegalEvent:
            assert live.to_json() == before
            continue
        finally:
            assert live.to_json() == before
        live = after
        stored.append(event.to_json())
        done.append(actions)
        # What a crash would leave behind is the same state, and it waits for the same thing.
        restored = State.from_json(json.loads(json.dumps(live.to_json())))
        assert restored == live
        waits = [action for action in actions if isinstance(action, Request)]
        if waits:
            assert [outstanding(graph, restored, event.at)] == waits

    folded = fresh(graph, direction)
    for data, actions in zip(json.loads(json.dumps(stored)), done, strict=True):
        folded, again = step(graph, folded, Event.from_json(data))
        assert again == actions
        assert tuple(Action.from_json(json.loads(json.dumps(action.to_json()))) for action in again) == actions
    assert folded == live


@given(st.lists(EVENTS, max_size=25))
def test_a_chat_goes_on_from_its_checkpoint(drawn: list[Event]) -> None:
    graph = Graph.read(_DEFINITION)
    state = begin(graph, {"name": "Ann"}, {}, voice=False)
    state, _ = step(graph, state, events.Started(0.0))
    for event in (likely(state, each) for each in drawn):
        try:
            state, _ = step(graph, state, event)
        except IllegalEvent:
            continue
        stored = json.loads(json.dumps(checkpoint(state)))
        assert from_checkpoint(graph, stored, state.setup.initial_context, {}) == state


def test_the_shape_of_a_checkpoint() -> None:
    graph = Graph.read(_DEFINITION)
    state, _ = step(graph, begin(graph, {"name": "Ann"}, {}, voice=False), events.Started(5.0))
    stored = checkpoint(state)
    tool_state = stored.pop("tool_state")
    assert stored == {
        "version": 1,
        "anchor_turn_id": None,
        "current_node_id": "start",
        "messages": [{"role": "assistant", "content": "Hello Ann!"}],
        "gathered_context": {"nodes_visited": ["Start"]},
    }
    assert (tool_state["phase"], tool_state["started_at"]) == ("listening", 5.0)
    assert "setup" not in tool_state


def test_checkpoints_of_others() -> None:
    graph = Graph.read(_DEFINITION)
    nowhere = {"version": 1, "current_node_id": None, "messages": [], "gathered_context": {}, "tool_state": {}}
    assert from_checkpoint(graph, nowhere, {"name": "Ann"}, {}) == begin(graph, {"name": "Ann"}, {}, voice=False)
    bare = {"current_node_id": "ask", "messages": [{"role": "user", "content": "hi"}]}
    state = from_checkpoint(graph, bare, {}, {})
    assert (state.phase, state.node_id, state.messages) == ("listening", "ask", ({"role": "user", "content": "hi"},))
    with pytest.raises(GraphError, match=r'^The workflow has no node "gone"\.$'):
        from_checkpoint(graph, {"current_node_id": "gone"}, {}, {})


def test_a_state_and_a_checkpoint_of_an_earlier_release() -> None:
    graph = Graph.read(_DEFINITION)
    state = State.from_json({"setup": {"initial_context": {}, "configurations": {}}, "node_id": "ask", "heard": True})
    assert state.caller_spoke
    chat = {"current_node_id": "ask", "tool_state": {"turn": 2, "heard": True}}
    assert from_checkpoint(graph, chat, {}, {}).caller_spoke


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parent.parent / "data").glob("version-?.sql")), ids=lambda path: path.stem
)
def test_the_states_in_database_files_of_earlier_releases(path: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(path.read_text())
        stored = [json.loads(state) for (state,) in database.execute("SELECT state FROM snapshot")]
    assert stored
    for data in stored:
        assert State.from_json(data).caller_spoke is data.get("caller_spoke", data.get("heard", False))


def test_every_renamed_field_is_read_and_no_longer_written() -> None:
    for place, new in RENAMED_FIELDS.items():
        kind, old = place.split(".")
        names = {field.name for field in fields({"State": State}[kind])}
        assert (old in names, new in names) == (False, True), place


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "Nothing"}, "'Nothing' is not a kind of Event."),
        ([], "None is not a kind of Event."),
        ({"kind": "CallerSaid", "at": 1.0}, "CallerSaid needs text."),
        ({"kind": "CallerSaid", "at": 1.0, "text": 7}, "CallerSaid.text must be of type str."),
        ({"kind": "CallerSilent", "at": True}, "CallerSilent.at must be of type float."),
        (
            {"kind": "ModelReplied", "at": 1, "number": 1, "text": "", "calls": [{"id": "c"}]},
            "ModelReplied.calls.0 needs name.",
        ),
    ],
)
def test_stored_events_of_another_shape(data: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared
        Event.from_json(data)
    assert str(caught.value) == message


def test_a_stored_state_of_another_shape() -> None:
    graph = Graph.read(_DEFINITION)
    data = fresh(graph, None).to_json()
    with pytest.raises(ValueError, match=r"^State\.phase must be one of new, fetching"):
        State.from_json({**data, "phase": "dreaming"})
    assert State.from_json({**data, "added later": 1}) == fresh(graph, None)
