"""A recorded run on a definition that was changed: what is taken for the same, and what is told of what isn't."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.rehearsal.recorded_runs import (
    BEGAN,
    DESK,
    HUNG_UP,
    LOOKUP,
    OPENED,
    caller,
    extracted,
    recorded,
    said,
)
from voiceapi.engine import events as ev
from voiceapi.engine.actions import Function
from voiceapi.rehearsal import replay
from voiceapi.rehearsal.recording import Recording
from voiceapi.rehearsal.replay import Difference, Replay, itself
from voiceapi.rehearsal.subject import Subject


def on(
    recording: Recording,
    definition: Mapping[str, Any],
    tools: Sequence[Function] = (LOOKUP, DESK),
    variables: Mapping[str, Any] | None = None,
    configurations: Mapping[str, Any] | None = None,
) -> Replay:
    """The run on another definition, whose node 1 offers these tools; with the run's configurations by default."""
    own = recording.state.setup.configurations
    subject = Subject.of_definition(definition, own if configurations is None else configurations)
    return replay.replay(recording, replace(subject, functions={"1": tuple(tools)}), variables or {})


def extracting(*names: str) -> dict[str, Any]:
    """Members of the start node that extract variables."""
    found = [{"name": name, "type": "string", "prompt": ""} for name in names]
    return {"extraction_enabled": True, "extraction_variables": found}


def renamed(definition: dict[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    """The definition with other ids of nodes; edges lead where they led."""
    for node in definition["nodes"]:
        node["id"] = ids.get(node["id"], node["id"])
    for edge in definition["edges"]:
        edge |= {end: ids.get(edge[end], edge[end]) for end in ("source", "target")}
    return definition


YES = [OPENED, caller("Yes."), said("", "yes", number=1), said("Bye.", number=2)]


def test_a_node_with_another_id_is_found_by_its_name(talk: Any) -> None:
    run = recorded(talk(), [OPENED, caller("Yes.")], "scripted")
    other = renamed(talk(), {"1": "first", "2": "fine"})
    assert on(run, other) == Replay(None, (), ("1", "2"))
    other["nodes"][1]["data"]["prompt"] = "Great, see you."
    words = Difference("words", "turns.0", "2", "Fine", "Great, goodbye.", "Great, see you.")
    assert on(run, other) == Replay(None, (words,), ("1", "2"))


def test_a_node_with_the_same_id_is_the_same_whatever_its_name(talk: Any) -> None:
    other = talk()
    for node, name in zip(other["nodes"][1:], ("Sorry", "Fine"), strict=True):
        node["data"]["name"] = name
    found = on(recorded(talk(), [OPENED, caller("No.")], "scripted"), other)
    assert (found.divergence, found.nodes) == (None, ("1", "3"))


def test_an_edge_with_another_id_is_found_by_its_name(talk: Any) -> None:
    other = talk()
    other["edges"][0]["id"] = "new"
    assert on(recorded(talk(), YES), other) == Replay(None, (), ("1", "2"))


def test_a_renamed_tool_is_the_same_with_the_answers_that_it_gave_one_after_the_other(talk: Any) -> None:
    """The first transfer isn't made, the second one is, so their order decides what comes next."""
    transfer = ev.ToolReturned(BEGAN + 13, 4, None, transfer_to="+12025550150")
    events = [
        *(OPENED, caller("A person."), said("", "desk", number=1), ev.ToolReturned(BEGAN + 12, 2, "Not now.")),
        *(said("", "desk", number=3), transfer, ev.TransferSettled(BEGAN + 20, 5, True, "There.")),
    ]
    run = recorded(talk(), events)
    assert itself(run) == Replay(None, (), ("1",))
    found = on(run, talk(), [LOOKUP, replace(DESK, name="front")])
    assert (found.divergence, found.nodes) == (None, ("1",))
    ((was, would_be),) = {(each.was, each.would_be) for each in found.differences}
    assert was.replace("desk", "front") == would_be != was


def test_a_tool_without_an_id_is_found_by_its_name(talk: Any) -> None:
    """A lookup in documents has none."""
    events = [OPENED, caller("When?"), said("", "find", number=1), ev.ToolReturned(BEGAN + 12, 2, 1)]
    run = recorded(talk(), [*events, said("At ten.", number=3)], offered=[replace(LOOKUP, tool_uuid=None)])
    assert itself(run) == Replay(None, (), ("1",))


def test_another_tool_of_the_same_name_is_another_way(talk: Any) -> None:
    run = recorded(talk(), [OPENED, caller("A person, please.")], "scripted")
    found = on(run, talk(), [replace(DESK, tool_uuid="t9")]).divergence
    assert found is not None
    assert (found.place, [line.role for line in found.was]) == ("turns.0", ["tool"])


def test_another_disposition_is_another_way(talk: Any) -> None:
    run = recorded(talk(**extracting("call_disposition")), [OPENED, HUNG_UP, extracted(1, call_disposition="sold")])
    found = on(run, talk()).divergence
    assert found is not None
    assert (found.place, found.node_id) == ("turns.0", "1")
    assert found.reason == "The run ended as sold; it would end as user_hangup."
    assert itself(run) == Replay(None, (), ("1",))


def test_other_variables_and_errors_are_differences(talk: Any) -> None:
    lines = [OPENED, caller("My name is Ada, my number is 202 555 0123."), HUNG_UP]
    run = recorded(talk(**extracting("phone_number", "first_name")), lines, "scripted")
    changed = talk(**extracting("first_name"), greeting_type="audio", greeting_recording_id="gone")
    missing = 'The recording "gone" is not there to be played.'
    was, would_be = '{"first_name": "Ada", "phone_number": "2025550123"}', '{"first_name": "Ada"}'
    assert on(run, changed).differences == (
        Difference("error", "opening", "1", "Hello", "", missing),
        Difference("variables", "turns.1", "1", "Hello", was, would_be),
    )


def test_what_was_given_to_a_run_stays_while_the_variables_of_its_version_are_replaced(talk: Any) -> None:
    start = talk(greeting="{{shop}}, {{city}}, {{name}}, {{gathered_context.call_id}}.")
    given = {"shop": "Mine", "city": "Rome", "name": "Ada"}
    own = {"shop": "Bistro", "city": "Rome"}
    run = recorded(start, [OPENED], context=given, gathered={"call_id": "CA1"}, variables=own)
    found = on(run, start, variables={"shop": "Café", "city": "Oslo", "name": "Bob"})
    assert [(each.was, each.would_be) for each in found.differences] == [
        ("Mine, Rome, Ada, CA1.", "Mine, Oslo, Ada, CA1.")
    ]


SCREENED = {"voicemail_detection": {"enabled": True}}


def test_a_run_is_replayed_as_the_call_or_the_chat_that_it_was(talk: Any) -> None:
    """The first words of an outbound call are judged, those of an inbound one aren't; a chat may take longer."""
    machine = [OPENED, caller("Hello?"), extracted(1, answered_by="VOICEMAIL")]
    inbound = [OPENED, caller("Hello?"), said("Hm?", number=1)]
    for run in (
        recorded(talk(), machine, configurations=SCREENED),
        recorded(talk(), inbound, direction="inbound", configurations=SCREENED),
        recorded(talk(), [OPENED, caller("Hm?", 4000)], "scripted", voice=False),
    ):
        assert run.exchanges[-1].asked
        assert itself(run) == Replay(None, (), ("1",))


def test_what_was_found_of_an_answering_machine_is_no_answer_to_another_extraction(talk: Any) -> None:
    events = [
        *(OPENED, caller("Yes."), extracted(1, answered_by="CONVERSATION"), said("", "yes", number=2)),
        *(extracted(3, first_name="Ada"), said("Bye.", number=4)),
    ]
    definition = talk(**extracting("first_name"))
    run = recorded(definition, events, configurations=SCREENED)
    assert itself(run) == on(run, definition, configurations={}) == Replay(None, (), ("1", "2"))


def test_a_reply_to_the_caller_is_none_to_a_node_that_was_just_entered(talk: Any) -> None:
    """The tool that the model called has become an edge that leads back."""
    events = [OPENED, caller("When?"), said("", "find", number=1), ev.ToolReturned(BEGAN + 12, 2, 1)]
    other = talk()
    other["edges"].append({"id": "1-1", "source": "1", "target": "1", "data": {"label": "Find", "condition": "Find."}})
    found = on(recorded(talk(), [*events, said("At ten.", number=3)]), other).divergence
    assert found is not None
    assert found.reason == "The run called find with {}; it would go to “Hello”."
    assert [(line.role, line.text) for line in found.would_be] == [
        ("edge", "Find → Hello"),
        ("error", "The model would be asked at “Hello”, which was just entered, and no reply to that is recorded."),
    ]


def test_what_is_told_of_a_long_run_is_bounded(talk: Any) -> None:
    events: list[ev.Event] = [OPENED]
    for number in range(60):
        events += [caller("Hm?", 1 + number), said(f"What {number}?", number=number + 1, at=1 + number)]
    run = recorded(talk(greeting="x" * 3000), [*events, caller("Yes.", 70), said("", "yes", number=61, at=70)])
    changed = talk(greeting="y" * 3000, prompt="Ask.")
    del changed["edges"][0]
    found = on(run, changed)
    assert len(found.differences) == replay.MOST_DIFFERENCES
    assert found.differences[0] == Difference("words", "opening", "1", "Hello", "x" * 2000, "y" * 2000)
    assert found.divergence is not None
    assert len(found.divergence.before) == replay.MOST_LINES
    assert [line.text for line in found.divergence.before[-3:]] == ["Hm?", "What 59?", "Yes."]
