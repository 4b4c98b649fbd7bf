"""Cases of calls as odd as they come: each passes on what the call was held with, and says what happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.rehearsal.recorded_runs import BEGAN, DESK, HUNG_UP, OPENED, caller, extracted, recorded, said, spoke
from voiceapi.engine import events as ev
from voiceapi.engine.graph import Graph
from voiceapi.errors import NotPossible
from voiceapi.rehearsal import case_file, case_writing
from voiceapi.rehearsal.conduct import run_case
from voiceapi.rehearsal.recording import Recording
from voiceapi.rehearsal.replay import itself
from voiceapi.rehearsal.saved_case import FETCHING, LONGER, NOT_BEGUN, case_of_recording, tools_of
from voiceapi.rehearsal.subject import Subject
from voiceapi.tools.transfer_call import TransferCall

VARIABLES = [{"name": "size", "type": "number", "prompt": "The size"}]


def odd(talk: Any, events: Sequence[ev.Event], voice: bool = True, **start: Any) -> Recording:
    """A recording of these events with an agent that extracts a size."""
    definition = talk(extraction_enabled=True, extraction_variables=VARIABLES, **start)
    return recorded(definition, events, voice=voice)


CALLS: dict[str, list[ev.Event]] = {
    "hung up at once": [OPENED, HUNG_UP, extracted(1, size=3)],
    "never ended": [OPENED, caller("Well.")],
    "hung up while the model is thinking": [OPENED, caller("Well."), HUNG_UP, extracted(2, size=3)],
    "hung up, and then the model replied": [OPENED, caller("Well."), HUNG_UP, said("So.", number=1), extracted(2)],
    "voicemail found while the model is thinking": [
        OPENED,
        caller("Hi."),
        ev.CallEnded(BEGAN + 9, "voicemail_detected"),
    ],
    "hung up between the parts of a reply": [
        *(OPENED, caller("Well."), spoke("So it", number=1), spoke(" is.", number=1), HUNG_UP, extracted(2, size=3)),
    ],
    "a reply in parts": [
        *(OPENED, caller("Well."), spoke("So it is.", number=1), said("So it is. Is it?", number=1)),
        *(caller("Yes.", 20), spoke("That is all.", number=2), said("That is all.", "yes", number=2), extracted(3)),
        *(spoke("Good", number=4), said("Goodbye.", number=4)),
    ],
    "too long between the parts of a reply": [
        *(OPENED, caller("Well.", 290), spoke("So it is.", number=1, at=291), spoke(" And", number=1, at=301)),
        extracted(2),
    ],
    "a reply whose parts are what it says no more": [
        *(OPENED, caller("Well."), spoke("So it is.", number=1), said("Indeed.", number=1), HUNG_UP, extracted(2)),
    ],
    "hung up while a tool runs": [OPENED, caller("Find."), said("", "find", number=1), HUNG_UP, extracted(3, size=1)],
    "a tool that answers": [
        *(OPENED, caller("Find."), said("Wait.", "find", number=1, arguments='{"a": 1}')),
        *(ev.ToolReturned(BEGAN + 12, 2, {"free": ["+12025550123"]}), said("Ten.", number=3), HUNG_UP, extracted(4)),
    ],
    "a transfer that is answered": [
        *(OPENED, caller("A person."), said("", "desk", number=1)),
        ev.ToolReturned(BEGAN + 12, 2, None, speech="One moment.", transfer_to="+12025550150"),
        *(ev.TransferSettled(BEGAN + 20, 3, True, {"status": "transfer_success"}), extracted(4)),
    ],
    "a transfer to a busy line": [
        *(OPENED, caller("A person."), said("", "desk", number=1)),
        ev.ToolReturned(BEGAN + 12, 2, None, transfer_to="+12025550150"),
        ev.TransferSettled(BEGAN + 20, 3, False, {"reason": "provider_error", "message": "The line was busy."}),
        *(said("Nobody is there.", number=4), HUNG_UP, extracted(5)),
    ],
    "hung up during a transfer": [
        *(OPENED, caller("A person."), said("", "desk", number=1)),
        *(ev.ToolReturned(BEGAN + 12, 2, None, transfer_to="+12025550150"), HUNG_UP, extracted(4, size=2)),
    ],
    "an edge": [OPENED, caller("Yes."), said("", "yes", number=1), extracted(2, size=5), said("Bye.", number=3)],
    "an edge, and what was not said": [
        *(OPENED, caller("Yes."), said("", "yes", number=1), extracted(2, size=5)),
        ev.CallEnded(BEGAN + 40, "user_hangup"),
    ],
    "two edges in one reply": [
        OPENED,
        caller("Yes."),
        said("", "yes", "no", number=1),
        extracted(2),
        said("B.", number=3),
    ],
    "a function that is not there": [
        OPENED,
        caller("Hm."),
        said("", "made_up", number=1),
        said("So.", number=2),
        HUNG_UP,
    ],
    "arguments that are no object": [
        *(OPENED, caller("Hm."), said("", "find", number=1, arguments="[1"), said("So.", number=2), HUNG_UP),
        extracted(3),
    ],
    "a model that fails once": [
        *(OPENED, caller("Hm."), ev.ModelFailed(BEGAN + 10, 1, "It was slow.", model="some|||1")),
        *(caller("Hm?", 15), said("Yes?", number=2), HUNG_UP, extracted(3)),
    ],
    "a model that fails twice": [
        *(OPENED, caller("Hm."), ev.ModelFailed(BEGAN + 10, 1, "It was slow.", model="some|||1")),
        *(caller("Hm?", 15), ev.ModelFailed(BEGAN + 16, 2, "It was slow.", model="some|||1")),
    ],
    "an extraction that fails": [OPENED, HUNG_UP, ev.ExtractionFailed(BEGAN + 61, 1, "It was slow.")],
    "keys, blank words and silence": [
        *(
            OPENED,
            caller("12#", keyed=True),
            said("So.", number=1),
            caller("a1", 15, keyed=True),
            said("So?", number=2),
        ),
        *(
            caller("  ", 20),
            said("There?", number=3),
            ev.CallerSilent(BEGAN + 30),
            said("Bye.", number=4),
            extracted(5),
        ),
    ],
    "a call that takes too long": [OPENED, caller("Well."), said("So.", number=1), caller("Hm.", 301), extracted(2)],
    "an answer that takes too long": [
        *(OPENED, caller("Well.", 299.97), said("So.", number=1, at=300.01), extracted(2, size=4)),
    ],
    "a word before the limit": [
        OPENED,
        caller("Well.", 299.99),
        said("So.", number=1, at=299.99),
        HUNG_UP,
        extracted(2),
    ],
}


@pytest.mark.parametrize("voice", [True, False], ids=["call", "chat"])
@pytest.mark.parametrize("events", CALLS.values(), ids=CALLS)
def test_a_saved_case_passes(db: None, talk: Any, events: list[ev.Event], voice: bool) -> None:
    timed = any(isinstance(each, ev.TransferSettled) or each.at - BEGAN > 299 for each in events)
    if not voice and (timed or any(isinstance(each, ev.ToolReturned) and each.transfer_to for each in events)):
        pytest.skip("A chat has no longest duration, and isn't transferred.")
    recording = odd(talk, events, voice=voice)
    assert itself(recording).divergence is None
    assert itself(recording).differences == ()
    data = case_of_recording(recording)
    assert "2025550123" not in str(data)
    read = case_file.read_case(data)
    (written,) = case_file.read_file(case_writing.text_of({"cases": [data]})).cases
    assert written == read
    tools = {"t2": TransferCall("t2", "desk", None, {"destination_source": "dynamic"})}
    functions = recording.state.setup.functions
    result = run_case(Subject(recording.definition, recording.graph, {}, functions, tools), read)
    assert [str(each) for each in result.mismatches] == []
    final = recording.final
    if final.phase == "ended":
        assert result.disposition == final.gathered_context["call_disposition"]
        assert result.variables == (final.gathered_context.get("extracted_variables") or {})


def test_a_recording_has_the_part_by_which_a_call_took_too_long(talk: Any) -> None:
    *_, last = odd(talk, CALLS["too long between the parts of a reply"]).exchanges
    assert [record.payload["text"] for record in last.records if record.type == "rtf-bot-text"] == ["So it is."]
    assert last.finish is not None
    (ask, extraction) = last.asked
    assert (len(ask.parts), isinstance(ask.answer, ev.ModelSpoke)) == (1, True)
    assert isinstance(extraction.answer, ev.VariablesExtracted)


def test_what_a_call_was_is_what_its_case_says(db: None, talk: Any) -> None:
    decided = case_of_recording(odd(talk, CALLS["hung up while a tool runs"]))
    assert decided["tools"] == [{"tool": "find", "call_ends": "user_hangup"}]
    assert decided["turns"] == [
        {"caller": "Find.", "after": 9.0, "model": [{"call": "find"}, {"extract": {"size": 1}}], "node": "Hello"}
    ]
    moved = case_of_recording(odd(talk, CALLS["a transfer that is answered"]))
    returned = {"transfer_to": "+12025550150", "says": "One moment."}
    assert moved["tools"] == [{"tool": "desk", "returns": returned}]
    assert moved["turns"][0]["transfers_to"] == "+12025550150"
    fetch = [OPENED, ev.Fetched(BEGAN + 1, 1, {"name": "Ada", "hidden": 1}), HUNG_UP, extracted(2)]
    url = {"pre_call_fetch_url": "http://x/{{hidden}}", "pre_call_fetch_mode": "always"}
    asked = case_of_recording(odd(talk, fetch, greeting="Hello {{name}}.", **url))
    assert asked["fetch"] == {"returns": {"name": "Ada"}}
    assert asked["opening"] == {"says": ["Hello Ada."], "node": "Hello"}


def test_only_the_context_that_the_agent_uses_is_in_a_case(db: None, talk: Any) -> None:
    """What it fetched is there once, as fetched; what only the service may give isn't there at all."""
    url = {"pre_call_fetch_url": "http://x/{{hidden}}", "pre_call_fetch_mode": "always"}
    definition = talk(prompt="Ask {{name}} of {{tier}} by {{runtime_configuration.llm_model}}.", **url)
    given = {
        "name": "Ada",
        "tier": "gold",
        "hidden": 1,
        "nick": "Countess",
        "runtime_configuration": {"llm_model": "m"},
    }
    override = {"greeting_override": {"type": "text", "text": "Hello {{nick}}."}}
    events = [OPENED, ev.Fetched(BEGAN + 1, 1, {"tier": "gold"}), HUNG_UP]
    case = case_of_recording(recorded(definition, events, context={**given, **override}))
    assert case["context"] == {"name": "Ada", "nick": "Countess", **override}
    assert (case["fetch"], case["opening"]["says"]) == ({"returns": {"tier": "gold"}}, ["Hello Countess."])
    whole = talk(prompt="Know this: {{initial_context}}")
    assert case_of_recording(recorded(whole, [OPENED], context={"hidden": 1}))["context"] == {"hidden": 1}


def test_a_case_begins_when_and_as_the_call_did(db: None, talk: Any) -> None:
    begun = {"at": "2026-09-21T14:13:20Z"}
    for start, direction in (
        ({"direction": "inbound"}, {"direction": "inbound"}),
        ({"direction": "outbound"}, {}),
        ({"voice": False}, {"direction": "chat"}),
    ):
        case = case_of_recording(recorded(talk(), [OPENED], **start))
        assert {name: case[name] for name in ("at", "direction") if name in case} == {**begun, **direction}


def test_waits_in_tenths_add_up_to_the_time_that_the_call_took(db: None, talk: Any) -> None:
    events: list[ev.Event] = [OPENED]
    for number in range(10):
        at = 9 + 0.19 * (number + 1)
        events += [caller("Hm?", at), said("Well.", number=number + 1, at=at)]
    waits = [turn.get("after", 1.0) for turn in case_of_recording(recorded(talk(), events))["turns"]]
    assert 10.75 < sum(waits) <= 10.9


def test_a_longer_number_that_holds_the_callers_stays_and_a_long_name_is_cut(db: None, talk: Any) -> None:
    run = recorded(talk(), [OPENED, caller("12025550123, and my order is 120255501239.")])
    run.run.name = "x" * 300
    case = case_of_recording(run)
    assert case["turns"][0]["caller"] == "12025550160, and my order is 120255501239."
    assert case["name"] == "x" * 170 + " (run 7)"
    case_file.read_case(case)


def test_names_that_are_there_twice_are_told_apart_by_their_ids(db: None, talk: Any) -> None:
    definition = talk()
    definition["nodes"][2]["data"]["name"] = "Fine"
    no, hidden = definition["edges"][1], {"label": "", "condition": "They say nothing."}
    definition["edges"] += [{**no, "id": "other"}, {"id": "blank", "source": "1", "target": "2", "data": hidden}]
    graph = Graph.read(definition)
    for id, node, edge, taken in (
        ("1-2", "2", "Yes", "Yes"),
        ("1-3", "3", "1-3", "No"),
        ("blank", "2", "blank", "blank"),
    ):
        name = next(each.function_name for each in graph.edges if each.id == id)
        case = case_of_recording(recorded(definition, [OPENED, caller("Hm."), said("", name, number=1)]))
        assert (case["turns"][0]["node"], case["turns"][0]["model"][0]) == (node, {"edge": edge})
        assert case["expect"] == {"edges": [taken]}


@pytest.mark.parametrize(
    ("result", "hung_up", "outcome"),
    [
        ({"reason": "timeout", "message": "Nobody answered there."}, False, "no_answer"),
        ({"reason": "provider_error", "message": "The call there failed."}, False, "failed"),
        ({"reason": "provider_error", "message": "The callee declined the call (SIP 603)."}, False, "busy"),
        ({"reason": "caller_hung_up"}, True, "caller_hangs_up"),
    ],
)
def test_how_a_transfer_ended_is_in_the_case(db: None, talk: Any, result: Any, hung_up: bool, outcome: str) -> None:
    events = [
        *(OPENED, caller("A person."), said("", "desk", number=1)),
        ev.ToolReturned(BEGAN + 12, 2, None, transfer_to="+12025550150"),
        ev.TransferSettled(BEGAN + 20, 3, False, result, caller_hung_up=hung_up),
    ]
    case = case_of_recording(recorded(talk(), events))
    assert (case["turns"][0]["transfers_to"], case["turns"][0]["transfer"]) == ("+12025550150", outcome)


def test_tags_are_expected_where_they_say_more_than_the_disposition(db: None, talk: Any) -> None:
    ended = ev.ToolReturned(BEGAN + 12, 2, {"status": "success"}, end_reason="sold")
    run = recorded(talk(), [OPENED, caller("Find."), said("", "find", number=1), ended])
    expected = {"edges": [], "disposition": "sold", "tags": ["end_call_tool", "user_speech", "sold"]}
    assert case_of_recording(run)["expect"] == expected
    plain = recorded(talk(), [OPENED, caller("Well."), HUNG_UP])
    assert case_of_recording(plain)["expect"] == {"edges": [], "disposition": "user_hangup"}


def test_tools_that_send_nothing_are_run_with_the_case_unless_they_refused(
    client: FlaskClient, talk: Any, db: None
) -> None:
    mapping = {"context_path": "tier", "routes": [{"context_value": "gold", "destination": "{{desk}}"}]}
    mapped = {"destination_source": "context_mapping", "context_mapping": mapping}
    stored = []
    for name, kind, config in (
        ("Desk", "transfer_call", {**mapped, "messageType": "custom", "customMessage": "{{name}}!"}),
        ("Gone", "end_call", {"messageType": "custom", "customMessage": "{{hidden}}"}),
    ):
        body = {"name": name, "definition": {"schema_version": 1, "type": kind, "config": config}}
        answer = client.post("/api/v1/tools/", json=body)
        assert answer.status_code == 200, answer.json
        stored.append(answer.json["tool_uuid"])
    assert client.delete(f"/api/v1/tools/{stored[1]}").status_code == 200
    desk = replace(DESK, tool_uuid=stored[0], speech="One moment, {{title}}.")
    refused = {"status": "transfer_failed", "reason": "call_limit_reached", "message": "No more calls."}
    events = [
        *(OPENED, caller("A person."), said("", "desk", number=1), ev.ToolReturned(BEGAN + 12, 2, refused)),
        *(said("Once more.", "desk", number=3), ev.ToolReturned(BEGAN + 13, 4, None, transfer_to="+12025550150")),
        ev.TransferSettled(BEGAN + 20, 5, True, {"status": "transfer_success"}),
    ]
    used = {"desk": "+12025550150", "name": "Ada", "tier": "gold", "title": "Countess"}
    run = recorded(talk(tool_uuids=stored), events, context={**used, "hidden": 1}, offered=[desk])
    case = case_of_recording(run)
    assert case["tools"] == [{"tool": "desk", "returns": refused}]
    assert case["context"] == used
    assert [tool["name"] for tool in tools_of(run)] == ["Desk"]


def test_what_is_no_case(db: None, talk: Any) -> None:
    url = {"pre_call_fetch_url": "http://x", "pre_call_fetch_mode": "always"}
    long = [OPENED, *(caller("Hm.", 1 + place / 10) for place in range(1))]
    for place in range(201):
        long += [said("So?", number=place + 1, at=2 + place / 10), caller("Hm.", 2 + place / 10)]
    for events, start, reason in (
        ([ev.CallEnded(BEGAN, "voicemail_detected")], {}, NOT_BEGUN),
        ([OPENED, HUNG_UP], url, FETCHING),
        (long, {}, LONGER),
    ):
        with pytest.raises(NotPossible) as refused:
            case_of_recording(odd(talk, events, **start))
        assert refused.value.detail == reason
