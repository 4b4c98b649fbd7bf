"""Cases of calls as odd as they come: each passes on what the call was held with, and says what happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.rehearsal.recorded_runs import BEGAN, HUNG_UP, OPENED, caller, extracted, recorded, said
from voiceapi.engine import events as ev
from voiceapi.errors import NotPossible
from voiceapi.rehearsal import case_file, case_writing
from voiceapi.rehearsal.conduct import run_case
from voiceapi.rehearsal.recording import Recording
from voiceapi.rehearsal.replay import itself
from voiceapi.rehearsal.saved_case import FETCHING, LONGER, NOT_BEGUN, case_of_recording
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
