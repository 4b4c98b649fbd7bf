import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from voiceapi.engine.actions import (
    Action,
    AskModel,
    Extract,
    Fetch,
    Finish,
    Function,
    HangUp,
    Listen,
    Pause,
    Play,
    Record,
    RunTool,
    Say,
    Transfer,
)
from voiceapi.engine.compose import Composer
from voiceapi.engine.events import (
    CallEnded,
    CallerSaid,
    CallerSilent,
    Event,
    ExtractionFailed,
    Fetched,
    ModelFailed,
    ModelReplied,
    ModelSpoke,
    Started,
    ToolCall,
    ToolReturned,
    TransferSettled,
    VariablesExtracted,
)
from voiceapi.engine.extraction import Variable
from voiceapi.engine.phrases import phrases
from voiceapi.engine.state import State, begin
from voiceapi.engine.step import LONGEST_SPEECH, ROUNDS, IllegalEvent, step

APOLOGY, GOODBYE = (phrases({})[name] for name in ("apology", "failure_goodbye"))
BOOK, LEAVE = ToolCall("c1", "book"), ToolCall("c2", "leave")
COUNTED = ToolCall("c3", "counted")
# At the start node of the booking, with the words of its edges.
HINTS = ("Book", "Leave", "seats")
LISTEN = Listen(10.0, interruptible=True, hints=HINTS)
NOW = "1970-01-01T00:16:40.000Z"

FIND = Function("find", "Find an account.", tool_uuid="u1", speech="Let me look.")


def with_data(definition: Any, id: str, **data: Any) -> Any:
    changed = deepcopy(definition)
    next(node for node in changed["nodes"] if node["id"] == id)["data"] |= data
    return changed


@pytest.fixture
def call(make_call: Any) -> Any:
    """A call that has greeted and listens."""
    call = make_call()
    call.send(Started)
    return call


@pytest.fixture
def asking(call: Any) -> Any:
    """A call that came to the node ``ask``, spoke there and listens."""
    call.send(CallerSaid, "I want to book")
    call.send(ModelReplied, "", (BOOK,))
    call.send(ModelReplied, "How many seats?")
    call.records.clear()
    return call


def kinds(actions: list[Any]) -> list[type]:
    return [type(action) for action in actions]


# -- opening


def test_a_greeting_is_said_without_the_model(make_call: Any) -> None:
    call = make_call()
    assert call.send(Started) == [Say("Hello Ann!", interruptible=False), LISTEN]
    assert call.state.messages == ({"role": "assistant", "content": "Hello Ann!"},)
    entered = {
        "node_id": "start",
        "node_name": "Start",
        "previous_node_id": None,
        "previous_node_name": None,
        "edge_id": None,
        "edge_label": None,
        "allow_interrupt": True,
        "reason": None,
    }
    spoken = {"text": "Hello Ann!", "timestamp": NOW}
    assert call.records == [
        Record("rtf-node-transition", entered, at=1000.0, turn=0, node_id="start", node_name="Start"),
        Record("rtf-bot-text", spoken, at=1000.0, turn=0, node_id="start", node_name="Start"),
    ]


def test_without_a_greeting_the_model_opens(make_call: Any, booking: Any) -> None:
    call = make_call(with_data(booking, "start", greeting=""), context={})
    [ask] = call.send(Started)
    assert ask == AskModel(
        1,
        1000.0,
        node_id="start",
        node_name="Start",
        occasion="opening",
        system="Be brief with everybody.\n\nAsk what  wants.",
        prompt="Ask what  wants.",
        greeting="",
        messages=(),
        functions=(Function("book", "The caller wants seats.", label="Book"), Function("leave", "c", label="Leave")),
    )
    assert (ask.opening, ask.idle) == (True, False)
    assert call.state.missing == ("name",)
    assert call.send(ModelReplied, "Good day.") == [Say("Good day.", interruptible=False), LISTEN]
    assert call.state.messages == ({"role": "assistant", "content": "Good day."},)


FILLED = "with its variables filled in."


def test_the_scripted_text_is_rendered_beside_the_prompt(make_call: Any, booking: Any) -> None:
    """A language model gets none of it."""
    texts = {"greeting": "", "scripted_text": "Is that {{name}}? {{lost}}"}
    call = make_call(with_data(booking, "start", **texts), context={"name": "Ann"})
    [ask] = call.send(Started)
    assert (ask.script, ask.script_problem) == ("Is that Ann? ", "")
    assert "Is that" not in f"{ask.system}{ask.prompt}{ask.messages}"
    assert call.state.missing == ("lost",)
    for given, script, problem in (
        (" ", "", ""),
        (7, "", ""),
        ("{{name}}" * 2, "", f'The scripted text of the node "Start" is larger than 64 KiB {FILLED}'),
    ):
        call = make_call(with_data(booking, "start", greeting="", scripted_text=given), context={"name": "A" * 40_000})
        [ask] = call.send(Started)
        assert (ask.script, ask.script_problem, ask.problem) == (script, problem, "")


AUDIO = {"greeting_type": "audio", "greeting_recording_id": "7"}


@pytest.mark.parametrize(
    ("data", "override", "first", "remembered", "faults"),
    [
        ({}, {"type": "text", "text": "Hi {{name}}."}, Say("Hi Ann.", False), "Hi Ann.", 0),
        ({}, {"type": "text", "text": " "}, Say("Hello Ann!", False), "Hello Ann!", 0),
        ({}, {"type": "song"}, Say("Hello Ann!", False), "Hello Ann!", 0),
        ({}, "loud", Say("Hello Ann!", False), "Hello Ann!", 0),
        ({}, {"type": "audio", "recording_id": 8}, Play("8", "Welcome.", False), "Welcome.", 0),
        ({}, {"type": "audio", "recording_id": "9"}, Say("Hello Ann!", False), "Hello Ann!", 1),
        (AUDIO, None, Play("7", "", False), None, 0),
        (AUDIO | {"greeting_recording_id": "9"}, None, Say("Hello Ann!", False), "Hello Ann!", 1),
    ],
)
def test_greetings(
    make_call: Any, booking: Any, data: Any, override: Any, first: Any, remembered: str | None, faults: int
) -> None:
    context = {"name": "Ann", "greeting_override": override}
    call = make_call(with_data(booking, "start", **data), context, recordings={"7": "", "8": "Welcome."})
    assert call.send(Started) == [first, LISTEN]
    assert [message["content"] for message in call.state.messages] == ([remembered] if remembered else [])
    assert (
        call.recorded("rtf-pipeline-error")
        == [{"error": 'The recording "9" is not there to be played.', "fatal": False, "processor": "recording"}]
        * faults
    )


@pytest.mark.parametrize(("duration", "seconds"), [(None, 2.0), (0, 2.0), (-1, 2.0), ("1.5", 1.5), (60, 60.0)])
def test_a_delayed_start_pauses_first(make_call: Any, booking: Any, duration: Any, seconds: float) -> None:
    call = make_call(with_data(booking, "start", delayed_start=True, delayed_start_duration=duration))
    assert call.send(Started) == [Pause(seconds), Say("Hello Ann!", False), LISTEN]
    assert kinds(call.send(CallerSaid, "hm")) == [AskModel]


@pytest.mark.parametrize(
    ("data", "direction", "fetches"),
    [
        ({"pre_call_fetch_mode": "always"}, None, True),
        ({"pre_call_fetch_mode": "inbound"}, "inbound", True),
        ({"pre_call_fetch_mode": "inbound"}, "outbound", False),
        ({"pre_call_fetch_mode": "disabled", "pre_call_fetch_enabled": True}, None, False),
        ({"pre_call_fetch_enabled": True}, None, True),
        ({"pre_call_fetch_enabled": False}, None, False),
        ({"pre_call_fetch_mode": "always", "pre_call_fetch_url": None}, None, False),
    ],
)
def test_when_context_is_fetched(make_call: Any, booking: Any, data: Any, direction: Any, fetches: bool) -> None:
    start = {"pre_call_fetch_url": "https://crm.example.test", **data}
    call = make_call(with_data(booking, "start", **start), direction=direction)
    assert kinds(call.send(Started)) == ([Fetch] if fetches else [Say, Listen])


def test_fetched_context_is_available_to_the_greeting(make_call: Any, booking: Any) -> None:
    start = {"pre_call_fetch_mode": "always", "pre_call_fetch_url": "https://u", "pre_call_fetch_credential_uuid": "k"}
    call = make_call(with_data(booking, "start", **start))
    assert call.send(Started) == [Fetch(1, 1000.0, "https://u", "k")]
    assert call.send(Fetched, {"name": "Bob", "tier": 1, "provider": "x"}) == [Say("Hello Bob!", False), LISTEN]
    assert call.state.setup.initial_context == {"name": "Bob", "tier": 1}


def test_a_failed_fetch_is_on_record_and_the_call_goes_on(make_call: Any, booking: Any) -> None:
    start = {"pre_call_fetch_mode": "always", "pre_call_fetch_url": "https://u"}
    call = make_call(with_data(booking, "start", **start))
    call.send(Started)
    assert call.send(Fetched, {}, error="The server timed out.") == [Say("Hello Ann!", False), LISTEN]
    [fault] = call.recorded("rtf-pipeline-error")
    assert fault == {"error": "The server timed out.", "fatal": False, "processor": "pre_call_fetch"}


# -- turns


def test_the_model_is_asked_with_what_the_caller_said(call: Any) -> None:
    [ask] = call.send(CallerSaid, "  hello ")
    assert (ask.occasion, ask.number, ask.greeting) == ("reply", 1, "Hello Ann!")
    assert ask.messages == (
        {"role": "assistant", "content": "Hello Ann!"},
        {"role": "user", "content": "hello"},
    )
    assert call.recorded("rtf-user-transcription") == [
        {"text": "hello", "final": True, "timestamp": NOW, "end_of_speech": "normal"}
    ]
    assert call.send(ModelReplied, "Yes?") == [Say("Yes?", interruptible=True), LISTEN]
    assert [record.turn for record in call.records] == [0, 0, 1, 1]


def test_keys_are_the_callers_words_and_marked(call: Any) -> None:
    (ask,) = call.send(CallerSaid, " 42 ", keyed=True)
    assert ask.messages[-1] == {"role": "user", "content": "42", "keyed": True}
    assert call.records[-1].payload == {
        "text": "42",
        "final": True,
        "timestamp": NOW,
        "keyed": True,
        "end_of_speech": "normal",
    }
    call.send(ModelReplied, "Forty-two?")
    (ask,) = call.send(CallerSaid, "yes")
    assert "keyed" not in ask.messages[-1]
    assert "keyed" not in call.records[-1].payload


def test_what_the_model_did_not_understand_is_on_record(call: Any) -> None:
    for misses in (0, 2):
        call.send(CallerSaid, "Hm.")
        call.send(ModelReplied, "Pardon?", misses=misses, looked_at=({"edge": "Yes", "words": ["yes"]},))
    (record,) = (each for each in call.records if each.type == "rtf-not-understood")
    payload = {"misses": 2, "edges": [{"edge": "Yes", "words": ["yes"]}]}
    assert (record.payload, record.turn, record.node_id) == (payload, 2, "start")


def test_steps_of_earlier_releases_are_read() -> None:
    assert Event.from_json({"kind": "CallerSaid", "at": 1.0, "text": "hi"}) == CallerSaid(1.0, "hi")
    stored = {"kind": "Listen", "timeout_seconds": 10.0, "interruptible": True}
    assert Action.from_json(stored) == Listen(10.0, True)


def test_a_transition_speaks_on_the_way_and_in_the_new_node(call: Any) -> None:
    call.send(CallerSaid, "book")
    call.records.clear()
    said, ask = call.send(ModelReplied, "", (BOOK,))
    assert said == Say("One moment, Ann.", interruptible=False)
    assert (ask.node_id, ask.occasion, ask.prompt) == ("ask", "opening", "Ask how many seats.")
    assert ask.system == "Be brief with Ann.\n\nAsk how many seats."
    function = {"name": "book", "arguments": "{}"}
    assert ask.messages[-2:] == (
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "content": '{"status": "done"}', "tool_call_id": "c1"},
    )
    assert [(record.type, record.node_id, record.payload) for record in call.records] == [
        ("rtf-function-call-start", "start", {"function_name": "book", "tool_call_id": "c1", "arguments": {}}),
        ("rtf-bot-text", "start", {"text": "One moment, Ann.", "timestamp": NOW}),
        (
            "rtf-node-transition",
            "ask",
            {
                "node_id": "ask",
                "node_name": "Ask",
                "previous_node_id": "start",
                "previous_node_name": "Start",
                "edge_id": "start-ask",
                "edge_label": "Book",
                "allow_interrupt": False,
                "reason": {"kind": "model", "tool_call_id": "c1"},
            },
        ),
        (
            "rtf-function-call-end",
            "start",
            {"function_name": "book", "tool_call_id": "c1", "result": '{"status": "done"}'},
        ),
    ]
    assert call.send(ModelReplied, "How many?") == [
        Say("How many?", False),
        Listen(10.0, interruptible=False, hints=("Counted",), end_of_speech="quick"),
    ]
    assert call.state.gathered_context["nodes_visited"] == ["Start", "Ask"]


def test_a_transition_has_the_scripted_models_reason_also_after_variables_were_looked_for(asking: Any) -> None:
    """The state is stored between, as before a restart; one of an earlier release has no reason."""
    why = {"kind": "keys", "matched": ["4"], "in": "condition"}
    asking.send(CallerSaid, "4", keyed=True)
    asking.send(ModelReplied, "", (replace(COUNTED, why=why),))
    stored = asking.state.to_json()
    assert stored["calls"][0].pop("why") == why
    assert State.from_json(stored).calls == asking.state.calls
    assert State.from_json(stored).calls[0].why == {}
    asking.state = State.from_json(asking.state.to_json())
    asking.send(VariablesExtracted, {})
    assert asking.recorded("rtf-node-transition")[-1]["reason"] == why
    assert all("why" not in function for message in asking.state.messages for function in message.get("tool_calls", ()))


def test_a_recorded_transition_speech(make_call: Any, booking: Any) -> None:
    speech = {"transition_speech_type": "audio", "transition_speech_recording_id": "7"}
    definition = deepcopy(booking)
    definition["edges"][0]["data"] |= speech
    for recordings, said in (({"7": "Hold on."}, Play("7", "Hold on.", False)), ({}, Say("One moment, Ann.", False))):
        call = make_call(definition, recordings=recordings)
        call.send(Started)
        call.send(CallerSaid, "book")
        assert call.send(ModelReplied, "", (BOOK,))[0] == said


def test_variables_are_extracted_before_a_node_is_left(asking: Any) -> None:
    asking.send(CallerSaid, "five, and goodbye")
    [extract] = asking.send(ModelReplied, "Thank you.", (COUNTED,))[1:]
    assert extract == Extract(
        4,
        1000.0,
        node_id="ask",
        node_name="Ask",
        variables=(Variable("seats", "number", "Number of seats"),),
        prompt="For Ann.",
        messages=asking.state.messages,
    )
    [ask] = asking.send(VariablesExtracted, {"seats": "5"}, model="m", usage={"total_tokens": 3})
    assert asking.recorded("rtf-variables-extracted") == [{"variables": {"seats": 5}}]
    assert (ask.node_id, ask.occasion, ask.functions) == ("done", "opening", ())
    assert asking.state.gathered_context == {
        "nodes_visited": ["Start", "Ask", "Done"],
        "seats": 5,
        "extracted_variables": {"seats": 5},
    }
    assert asking.state.usage == {"m": {"total_tokens": 3}}


@pytest.mark.parametrize(
    ("event", "args", "error"),
    [
        (ExtractionFailed, ("The model timed out.",), "The model timed out."),
        (VariablesExtracted, ({"seats": "many"},), 'seats should be a number, but "many" was found.'),
    ],
)
def test_a_failed_extraction_is_on_record_and_the_call_goes_on(asking: Any, event: Any, args: Any, error: str) -> None:
    asking.send(CallerSaid, "many")
    asking.send(ModelReplied, "", (COUNTED,))
    assert kinds(asking.send(event, *args)) == [AskModel]
    assert asking.recorded("rtf-pipeline-error") == [{"error": error, "fatal": False, "processor": "extraction"}]
    assert asking.recorded("rtf-variables-extracted") == []
    assert "seats" not in asking.state.gathered_context


def test_transitions_chain_within_a_turn(call: Any) -> None:
    call.send(CallerSaid, "book five")
    call.send(ModelReplied, "", (BOOK,))
    assert kinds(call.send(ModelReplied, "", (COUNTED,))) == [Extract]
    assert kinds(call.send(VariablesExtracted, {"seats": 5})) == [AskModel]
    assert call.send(ModelReplied, "Goodbye Ann.") == [
        Say("Goodbye Ann.", False),
        HangUp(),
        Finish("user_qualified", "user_qualified"),
    ]
    assert {record.turn for record in call.records} == {0, 1}


def test_of_two_transitions_in_one_reply_the_first_is_made(call: Any) -> None:
    call.send(CallerSaid, "book and leave")
    _, ask = call.send(ModelReplied, "", (BOOK, LEAVE))
    assert ask.node_id == "ask"
    assert [json.loads(message["content"]) for message in ask.messages[-2:]] == [
        {"status": "done"},
        {"status": "error", "error": "The conversation has already moved on in this reply."},
    ]


def test_an_unknown_function_is_an_error_for_the_model(call: Any) -> None:
    call.send(CallerSaid, "hm")
    [ask] = call.send(ModelReplied, "", (ToolCall("c", "fly"),))
    assert ask.occasion == "reply"
    assert json.loads(ask.messages[-1]["content"]) == {"status": "error", "error": 'There is no function "fly" here.'}


def test_a_model_that_only_calls_functions_is_stopped(call: Any) -> None:
    call.send(CallerSaid, "hm")
    for _ in range(ROUNDS - 1):
        assert kinds(call.send(ModelReplied, "", (ToolCall("c", "fly"),))) == [AskModel]
    assert call.send(ModelReplied, "", (ToolCall("c", "fly"),)) == [Say(APOLOGY, False), LISTEN]
    [fault] = call.recorded("rtf-pipeline-error")
    assert fault["error"] == f"The model was asked {ROUNDS} times in one turn and still called functions."
    assert kinds(call.send(CallerSaid, "again")) == [AskModel]


@pytest.mark.parametrize(
    ("event", "args", "error"),
    [
        (ModelFailed, ("401 from the model's server.",), "401 from the model's server."),
        (ModelReplied, (" ",), "The model answered without words and without a function."),
    ],
)
def test_a_model_that_fails_is_apologised_for(call: Any, event: Any, args: Any, error: str) -> None:
    call.send(CallerSaid, "hello")
    assert call.send(event, *args) == [Say(APOLOGY, interruptible=False), LISTEN]
    assert call.recorded("rtf-pipeline-error") == [{"error": error, "fatal": False, "processor": "llm"}]
    assert call.recorded("rtf-bot-text")[-1]["text"] == APOLOGY
    assert call.state.messages[-1] == {"role": "user", "content": "hello"}
    [ask] = call.send(CallerSaid, "hello?")
    assert ask.occasion == "reply"


def test_a_model_that_fails_at_the_end_does_not_keep_the_call_open(call: Any) -> None:
    call.send(CallerSaid, "bye")
    call.send(ModelReplied, "", (LEAVE,))
    finish = Finish("user_qualified", "user_qualified")
    assert call.send(ModelFailed, "down") == [Say(GOODBYE, False), HangUp(), finish]


FAILED_CALL = Finish("pipeline_error", "pipeline_error")


@pytest.mark.parametrize(
    ("event", "args", "error"),
    [
        (ModelFailed, ("401 from the model's server.",), "401 from the model's server."),
        (ModelReplied, (" ",), "The model answered without words and without a function."),
    ],
)
def test_a_model_that_fails_twice_in_a_row_ends_the_call(asking: Any, event: Any, args: Any, error: str) -> None:
    """With a goodbye, and without a last extraction: that would need the model."""
    asking.send(CallerSaid, "four")
    assert asking.send(ModelFailed, "down")[0] == Say(APOLOGY, False)
    asking.send(CallerSaid, "four!")
    assert asking.send(event, *args) == [Say(GOODBYE, False), HangUp(), FAILED_CALL]
    first, second = asking.recorded("rtf-pipeline-error")
    assert first == {"error": "down", "fatal": False, "processor": "llm"}
    assert second == {"error": error, "fatal": True, "processor": "llm"}
    gathered = asking.state.gathered_context
    assert (gathered["error"], gathered["call_tags"]) == (error, ["pipeline_error", "user_speech"])


def test_the_failures_in_a_row_outlast_a_restart(call: Any) -> None:
    call.send(CallerSaid, "hello")
    call.send(ModelFailed, "down")
    stored = call.state.to_json()
    call.state = State.from_json(json.loads(json.dumps(stored)))
    call.send(CallerSaid, "hello?")
    assert call.send(ModelFailed, "down")[-1] == FAILED_CALL


def test_a_state_of_an_earlier_release_has_no_failures(call: Any) -> None:
    stored = call.state.to_json()
    del stored["failures"]
    assert State.from_json(stored) == call.state


@pytest.mark.parametrize("reply", [("Yes?", ()), ("Yes?", (ToolCall("c", "fly"),)), ("", (BOOK,))])
def test_words_or_a_new_node_between_two_failures_keep_the_call(call: Any, reply: Any) -> None:
    for _ in range(2):
        call.send(CallerSaid, "hello")
        assert call.send(ModelFailed, "down") == [Say(APOLOGY, False), LISTEN]
        call.send(CallerSaid, "hello?")
        call.send(ModelReplied, *reply)
        if reply[1]:
            assert call.send(ModelFailed, "down")[0] == Say(APOLOGY, False)
            return


def test_a_model_that_only_calls_functions_in_two_turns_in_a_row_ends_the_call(call: Any) -> None:
    for end in (LISTEN, FAILED_CALL):
        call.send(CallerSaid, "hm")
        for _ in range(ROUNDS):
            actions = call.send(ModelReplied, "", (ToolCall("c", "fly"),))
        assert actions[-1] == end


def test_a_silent_caller_and_a_model_that_fails(call: Any) -> None:
    call.send(CallerSilent)
    assert call.send(ModelFailed, "down") == [Say(APOLOGY, False), LISTEN]
    call.send(CallerSilent)
    assert call.send(ModelFailed, "down") == [Say(GOODBYE, False), HangUp(), FAILED_CALL]


def test_a_model_that_fails_at_the_end_after_an_earlier_failure(call: Any) -> None:
    """The node is a new one, so the failures aren't in a row, and the conversation has come to its end."""
    call.send(CallerSaid, "bye")
    call.send(ModelFailed, "down")
    call.send(CallerSaid, "bye!")
    call.send(ModelReplied, "", (LEAVE,))
    finish = Finish("user_qualified", "user_qualified")
    assert call.send(ModelFailed, "down") == [Say(GOODBYE, False), HangUp(), finish]


def test_an_extracted_disposition_outlasts_the_models_failures(make_call: Any) -> None:
    call = make_call(gathered_context={"call_disposition": "opt_out"})
    call.send(Started)
    for _ in range(2):
        call.send(CallerSaid, "hello")
        actions = call.send(ModelFailed, "down")
    assert actions[-1] == Finish("pipeline_error", "opt_out")
    assert call.state.gathered_context["call_tags"] == ["pipeline_error", "user_speech", "opt_out"]


SORRY = Say(phrases({})["do_not_call_goodbye"], False)


@pytest.mark.parametrize(
    ("said", "keyed"), [("9", True), ("Stop!", False), ("  remove  ME. ", False), ("9", False), ("please stop", False)]
)
def test_the_key_or_the_words_of_the_workflow_refuse_further_calls(make_call: Any, said: str, keyed: bool) -> None:
    settings = {"do_not_call": {"key": "9", "words": ["stop", "Remove me"]}}
    call = make_call(configurations=settings, gathered_context={"call_disposition": "interested"})
    call.send(Started)
    actions = call.send(CallerSaid, said, keyed)
    if said in ("please stop", "9") and not keyed:
        assert isinstance(actions[-1], AskModel)
        return
    assert actions == [SORRY, HangUp(), Finish("do_not_call", "do_not_call")]
    assert call.recorded("rtf-do-not-call") == [{}]
    assert call.state.gathered_context["call_tags"] == ["do_not_call", "user_speech"]


def test_in_campaigns_the_model_is_offered_a_function_for_who_wants_no_more_calls(make_call: Any) -> None:
    for settings, campaign, offered in (({}, True, True), ({}, False, False), ({"enabled": False}, True, False)):
        call = make_call(configurations={"do_not_call": settings}, campaign=campaign)
        call.send(Started)
        ask = call.send(CallerSaid, "Take me off.")[-1]
        assert ("do_not_call" in [each.name for each in ask.functions]) is offered
        assert ask.takes_opt_outs is (settings == {})
        actions = call.send(ModelReplied, "", (ToolCall("c1", "do_not_call"),))
        if offered:
            assert actions == [SORRY, HangUp(), Finish("do_not_call", "do_not_call")]
        else:
            assert isinstance(actions[-1], AskModel)


def test_who_wants_no_more_calls_is_heard_beside_other_calls_of_the_model(make_call: Any) -> None:
    call = make_call(campaign=True)
    call.send(Started)
    call.send(CallerSaid, "Not interested, don't call me again.")
    actions = call.send(ModelReplied, "", (LEAVE, ToolCall("c9", "do_not_call")))
    assert actions == [SORRY, HangUp(), Finish("do_not_call", "do_not_call")]
    assert [each["role"] for each in call.state.messages[-2:]] == ["tool", "tool"]


def test_a_text_chat_outlasts_every_failure_of_the_model(make_call: Any) -> None:
    chat = make_call(voice=False)
    chat.send(Started)
    for _ in range(4):
        chat.send(CallerSaid, "hello")
        assert chat.send(ModelFailed, "down") == [Say(APOLOGY, False), LISTEN]
    assert [fault["fatal"] for fault in chat.recorded("rtf-pipeline-error")] == [False] * 4


def test_usage_adds_up_by_model(call: Any) -> None:
    for tokens in (3, 4):
        call.send(CallerSaid, "hello")
        call.send(ModelReplied, "Yes?", model="m", usage={"prompt_tokens": tokens, "completion_tokens": 1})
    call.send(CallerSaid, "hello")
    call.send(ModelFailed, "cut off", model="n", usage={"prompt_tokens": 9})
    assert call.state.usage == {"m": {"prompt_tokens": 7, "completion_tokens": 2}, "n": {"prompt_tokens": 9}}


def test_what_was_gathered_can_be_spoken(make_call: Any, booking: Any) -> None:
    call = make_call(
        with_data(booking, "start", greeting="{{gathered_context.day}}"), gathered_context={"day": "Monday"}
    )
    assert call.send(Started)[0] == Say("Monday", False)


def test_the_clock_of_prompts_is_the_events(make_call: Any, booking: Any) -> None:
    call = make_call(with_data(booking, "start", greeting="It is {{current_time}}."))
    assert call.send(Started, at=86400.0)[0] == Say("It is 1970-01-02 00:00 UTC.", False)


def test_a_turn_only_adds_to_what_the_model_was_asked_before(make_call: Any, booking: Any) -> None:
    """So that its server reads no more than what is new; what is asked in a silence alone is at the end."""
    call = make_call(with_data(booking, "rules", prompt="It is {{current_time}}. Be brief."))
    call.send(Started)
    (first,) = call.send(CallerSaid, "Hm?")
    call.send(ModelReplied, "Book or leave?", at=1001.0)
    (second,) = call.send(CallerSilent, at=1015.0)
    call.send(ModelReplied, "Hello?", at=1016.0)
    (third,) = call.send(CallerSaid, "Hm.", at=1019.9)
    system = "It is 1970-01-01 00:16 UTC. Be brief.\n\nAsk what Ann wants."
    assert {each.system for each in (first, second, third)} == {system}
    assert second.messages[:-1] == third.messages[: len(second.messages) - 1]
    assert third.messages[: len(first.messages)] == first.messages
    *_, later = call.send(ModelReplied, "", (BOOK,), at=1020.0)
    assert later.system.startswith("It is 1970-01-01 00:17 UTC.")


def test_the_system_prompt_leaves_out_what_is_empty(make_call: Any, booking: Any) -> None:
    call = make_call(with_data(booking, "rules", prompt="{{gone}}"))
    assert Composer(call.graph, call.state, 0.0, set()).prompts()[0] == "Ask what Ann wants."


# -- tools


@pytest.fixture
def tooled(make_call: Any) -> Any:
    call = make_call(functions={"start": (FIND, Function("end", "End.", tool_uuid="u2"))})
    call.send(Started)
    call.send(CallerSaid, "who am I?")
    call.records.clear()
    return call


def _run(call: Any, number: int, id: str, arguments: Any) -> RunTool:
    gathered = call.state.gathered_context
    return RunTool(number, 1000.0, "start", id, "find", "u1", arguments, {"name": "Ann"}, gathered)


def test_tools_are_offered_before_the_edges(tooled: Any) -> None:
    assert [function.name for function in tooled.waits_for.functions] == ["find", "end", "book", "leave"]


def test_a_tool_is_run_and_its_result_returned_to_the_model(tooled: Any) -> None:
    actions = tooled.send(ModelReplied, "", (ToolCall("c", "find", '{"no": 7}'),))
    assert actions == [Say("Let me look.", False), _run(tooled, 2, "c", {"no": 7})]
    [ask] = tooled.send(ToolReturned, {"status": "success", "data": "é"})
    assert ask.messages[-1] == {"role": "tool", "content": '{"status": "success", "data": "é"}', "tool_call_id": "c"}
    assert tooled.recorded("rtf-function-call-end") == [
        {"function_name": "find", "tool_call_id": "c", "result": '{"status": "success", "data": "é"}'}
    ]
    assert tooled.send(ModelReplied, "You are Ann.") == [Say("You are Ann.", True), LISTEN]


def test_several_functions_of_one_reply_are_run_in_order(tooled: Any) -> None:
    calls = (BOOK, ToolCall("c8", "find"), ToolCall("c9", "find", '{"no": 2}'))
    said, look, first = tooled.send(ModelReplied, "", calls)
    assert (said, look) == (Say("One moment, Ann.", False), Say("Let me look.", False))
    # The tool was offered at the node that the first function has left.
    assert first == _run(tooled, 2, "c8", {})
    _, second = tooled.send(ToolReturned, 1)
    assert second == _run(tooled, 3, "c9", {"no": 2})
    [ask] = tooled.send(ToolReturned, 2)
    assert (ask.node_id, ask.occasion) == ("ask", "opening")
    assert [message["tool_call_id"] for message in ask.messages[-3:]] == ["c1", "c8", "c9"]


@pytest.mark.parametrize("arguments", ["{", "[]", "7", "[" * 5000, '{"a": NaN}', '{"a": "\\ud800"}'])
def test_broken_arguments_are_an_error_for_the_model(tooled: Any, arguments: str) -> None:
    [ask] = tooled.send(ModelReplied, "", (ToolCall("c", "find", arguments),))
    assert json.loads(ask.messages[-1]["content"])["error"] == "The arguments are not a JSON object."


def test_a_tool_can_end_the_call(tooled: Any) -> None:
    tooled.send(ModelReplied, "", (ToolCall("c", "end"),))
    actions = tooled.send(ToolReturned, {"action": "ending_call"}, speech="I end it.", end_reason="abusive")
    assert actions == [Say("I end it.", False), HangUp(), Finish("abusive", "abusive")]
    assert tooled.state.gathered_context["call_tags"] == ["end_call_tool", "user_speech", "abusive"]


def test_what_is_spoken_before_a_tool_is_rendered(make_call: Any) -> None:
    function = Function("find", "Find.", tool_uuid="u1", speech="A moment, {{name}}.")
    call = make_call(functions={"start": (function,)})
    call.send(Started)
    call.send(CallerSaid, "who am I?")
    assert call.send(ModelReplied, "", (ToolCall("c", "find"),))[0] == Say("A moment, Ann.", False)


@pytest.mark.parametrize("tags", [["end_call_tool"], "end_call_tool", 7, None])
def test_the_tag_of_a_tool_that_ends_the_call_is_there_once(make_call: Any, tags: Any) -> None:
    call = make_call(functions={"start": (FIND,)}, gathered_context={"call_tags": tags})
    call.send(Started)
    call.send(CallerSaid, "bye")
    call.send(ModelReplied, "", (ToolCall("c", "find"),))
    call.send(ToolReturned, {}, end_reason="end_call_tool")
    assert call.state.gathered_context["call_tags"] == ["end_call_tool", "user_speech"]


def test_a_transfer_that_is_answered_ends_the_call_without_hanging_up(tooled: Any) -> None:
    tooled.send(ModelReplied, "", (ToolCall("c", "find"),))
    dialing = tooled.send(ToolReturned, None, speech="Hold on.", transfer_to="+1202", transfer_timeout=20.0)
    assert dialing == [Say("Hold on.", False), Transfer(3, 1000.0, "+1202", 20.0)]
    ended = tooled.send(TransferSettled, True, {"status": "transfer_success"}, at=5000.0)
    assert ended == [Finish("transfer_call", "transfer_call")]


def test_a_caller_who_hangs_up_during_a_transfer_ends_the_call(tooled: Any) -> None:
    tooled.send(ModelReplied, "", (ToolCall("c", "find"),))
    tooled.send(ToolReturned, None, transfer_to="+1202")
    result = {"status": "transfer_failed", "reason": "caller_hung_up"}
    assert tooled.send(TransferSettled, False, result, caller_hung_up=True) == [Finish("user_hangup", "user_hangup")]
    assert json.loads(tooled.recorded("rtf-function-call-end")[-1]["result"]) == result


def test_a_failed_transfer_is_returned_to_the_model(tooled: Any) -> None:
    tooled.send(ModelReplied, "", (ToolCall("c", "find"),))
    tooled.send(ToolReturned, None, transfer_to="+1202")
    [ask] = tooled.send(TransferSettled, False, {"status": "transfer_failed", "reason": "timeout"})
    assert json.loads(ask.messages[-1]["content"]) == {"status": "transfer_failed", "reason": "timeout"}


# -- silence, time, endings


def test_silence_is_asked_about_once_and_then_ends_the_call(call: Any) -> None:
    [ask] = call.send(CallerSilent)
    assert (ask.occasion, ask.idle, ask.messages[-1]["role"]) == ("idle", True, "user")
    assert [function.name for function in ask.functions] == ["book", "leave"]
    assert call.send(ModelReplied, "Are you there?") == [Say("Are you there?", True), LISTEN]
    [ask] = call.send(CallerSilent)
    assert (ask.occasion, ask.idle, ask.functions) == ("goodbye", True, ())
    assert call.send(ModelReplied, "Bye.", (BOOK,)) == [
        Say("Bye.", True),
        HangUp(),
        Finish("user_idle_max_duration_exceeded", "user_idle_max_duration_exceeded"),
    ]
    # The instruction is for the model alone.
    assert [message["role"] for message in call.state.messages] == ["assistant"] * 3


@pytest.mark.parametrize(("event", "args"), [(CallerSilent, ()), (CallerSaid, ("",)), (CallerSaid, (" \n",))])
def test_speech_between_two_silences_resets_their_count(call: Any, event: Any, args: Any) -> None:
    for _ in range(2):
        assert call.send(event, *args)[0].occasion == "idle"
        call.send(ModelReplied, "Are you there?")
        call.send(CallerSaid, "yes")
        call.send(ModelReplied, "Good.")


def test_a_model_that_fails_at_the_goodbye_ends_the_call_all_the_same(call: Any) -> None:
    call.send(CallerSilent)
    call.send(ModelReplied, "Are you there?")
    call.send(CallerSilent)
    assert kinds(call.send(ModelFailed, "down")) == [Say, HangUp, Finish]


@pytest.mark.parametrize(
    ("configurations", "idle", "longest"),
    [
        ({}, 10.0, 300.0),
        ({"max_user_idle_timeout": 4, "max_call_duration": 60}, 4.0, 60.0),
        ({"max_user_idle_timeout": 0, "max_call_duration": -1}, 10.0, 300.0),
        ({"max_user_idle_timeout": "x", "max_call_duration": 9999}, 10.0, 1200.0),
    ],
)
def test_limits(make_call: Any, configurations: Any, idle: float, longest: float) -> None:
    call = make_call(configurations=configurations)
    assert call.send(Started)[-1] == Listen(idle, True, HINTS)
    assert kinds(call.send(CallerSaid, "hi", at=1000 + longest - 0.1)) == [AskModel]
    assert call.send(ModelReplied, "Yes?", at=1000 + longest) == [
        HangUp(),
        Finish("call_duration_exceeded", "call_duration_exceeded"),
    ]


def test_speech_at_the_end_of_the_maximum_duration_is_recorded(asking: Any) -> None:
    assert kinds(asking.send(CallerSaid, "five", at=1300.0)) == [HangUp, Extract]
    assert asking.state.messages[-1] == {"role": "user", "content": "five"}
    asking.send(VariablesExtracted, {"seats": 5}, at=1301.0)
    assert asking.state.gathered_context["seats"] == 5


def test_a_chat_has_no_longest_duration(make_call: Any) -> None:
    call = make_call(voice=False)
    call.send(Started)
    assert kinds(call.send(CallerSaid, "hi", at=99999.0)) == [AskModel]


@pytest.mark.parametrize(
    ("reason", "actions"),
    [
        ("user_hangup", [Extract]),
        ("call_duration_exceeded", [HangUp, Extract]),
        ("voicemail_detected", [HangUp, Finish]),
        ("pipeline_error", [HangUp, Finish]),
        ("call_transferred", [Extract]),
    ],
)
def test_endings_from_outside(asking: Any, reason: str, actions: list[type]) -> None:
    assert kinds(asking.send(CallEnded, reason)) == actions
    if Extract in actions:
        assert asking.send(VariablesExtracted, {}) == [Finish(reason, reason)]
    assert asking.state.phase == "ended"
    assert asking.state.gathered_context["call_disposition"] == reason


def test_a_call_that_ends_in_the_middle_of_a_reply_is_extracted_once_more(asking: Any) -> None:
    asking.send(CallerSaid, "five")
    asking.send(ModelReplied, "", (COUNTED,))
    late = asking.state.number
    assert kinds(asking.send(CallEnded, "user_hangup")) == [Extract]
    state = asking.state
    assert asking.send(CallEnded, "voicemail_detected") == []
    assert asking.state == state
    answer = VariablesExtracted(1000.0, late, {"seats": 4}, model="m", usage={"total_tokens": 2})
    asking.state, none = step(asking.graph, asking.state, answer)
    assert (none, asking.state.phase, asking.state.usage) == ((), "closing", {"m": {"total_tokens": 2}})
    assert asking.send(ExtractionFailed, "down") == [Finish("user_hangup", "user_hangup")]
    assert asking.send(ModelReplied, "Late.") == []


SCREENED = {"voicemail_detection": {"enabled": True, "system_prompt": "For {{name}}."}}


@pytest.mark.parametrize("judgement", ["VOICEMAIL", " voicemail."])
def test_a_machine_that_we_called_is_hung_up_on(make_call: Any, judgement: str) -> None:
    call = make_call(configurations=SCREENED, direction="outbound")
    call.send(Started)
    (asked,) = call.send(CallerSaid, "Nobody is at home. Speak after the tone.")
    assert (asked.variables, asked.prompt) == (
        (Variable("answered_by", "string", "CONVERSATION or VOICEMAIL"),),
        "For Ann.",
    )
    assert asked == call.waits_for
    ended = call.send(VariablesExtracted, {"answered_by": judgement})
    assert ended == [HangUp(), Finish("voicemail_detected", "voicemail_detected")]
    assert "answered_by" not in call.state.gathered_context


def test_a_prompt_of_the_screening_that_is_too_large_is_its_failure(make_call: Any) -> None:
    screened = {"voicemail_detection": {"enabled": True, "system_prompt": "{{name}}" * 400_000}}
    call = make_call(configurations=screened, direction="outbound")
    call.send(Started)
    (asked,) = call.send(CallerSaid, "Hello?")
    limit = "is larger than 1 MiB with its variables filled in."
    assert asked.problem == f"The prompt of the voicemail detection {limit}"


@pytest.mark.parametrize(
    ("answer", "errors"),
    [
        ((VariablesExtracted, {"answered_by": "CONVERSATION"}), []),
        ((VariablesExtracted, {"answered_by": None}), []),
        ((VariablesExtracted, {}), []),
        ((ExtractionFailed, "down"), ["down"]),
    ],
)
def test_a_person_that_we_called_is_talked_to(make_call: Any, answer: Any, errors: list[str]) -> None:
    call = make_call(configurations=SCREENED, direction="outbound")
    call.send(Started)
    call.send(CallerSaid, "Yes?")
    assert kinds(call.send(*answer)) == [AskModel]
    assert [payload["error"] for payload in call.recorded("rtf-pipeline-error")] == errors
    call.send(ModelReplied, "Good.")
    assert kinds(call.send(CallerSaid, "This is no mailbox.")) == [AskModel]


@pytest.mark.parametrize(
    ("settings", "setup"),
    [
        ({"enabled": True}, {"direction": "inbound"}),
        ({"enabled": True}, {"direction": None, "voice": False}),
        ({"enabled": False}, {"direction": "outbound"}),
        ({}, {"direction": "outbound"}),
        (None, {"direction": "outbound"}),
        ("yes", {"direction": "outbound"}),
    ],
)
def test_calls_without_voicemail_detection(make_call: Any, settings: Any, setup: dict[str, Any]) -> None:
    call = make_call(configurations={"voicemail_detection": settings}, **setup)
    call.send(Started)
    assert kinds(call.send(CallerSaid, "hi")) == [AskModel]


def test_the_end_of_a_call_that_never_began(make_call: Any) -> None:
    call = make_call()
    assert call.send(CallEnded, "voicemail_detected") == [HangUp(), Finish("voicemail_detected", "voicemail_detected")]
    assert call.state.gathered_context == {
        "call_disposition": "voicemail_detected",
        "mapped_call_disposition": "voicemail_detected",
        "call_tags": ["voicemail_detected"],
    }


def test_an_extracted_disposition_wins_and_tags_are_collected(make_call: Any, booking: Any) -> None:
    variables = [{"name": name, "type": "string"} for name in ("call_disposition", "tag_mood", "tag_none", "call_id")]
    definition = with_data(booking, "start", extraction_enabled=True, extraction_variables=variables)
    call = make_call(definition, gathered_context={"call_id": "CA1", "call_tags": ["retry"]})
    call.send(Started)
    call.send(CallerSaid, "hm")
    call.send(CallEnded, "user_hangup")
    values = {"call_disposition": "sold", "tag_mood": "glad", "tag_none": None, "call_id": "mine", "extra": 1}
    assert call.send(VariablesExtracted, values) == [Finish("user_hangup", "sold")]
    assert call.state.gathered_context == {
        "call_id": "CA1",
        "nodes_visited": ["Start"],
        "call_disposition": "sold",
        "mapped_call_disposition": "sold",
        "tag_mood": "glad",
        "extracted_variables": {"call_disposition": "sold", "tag_mood": "glad", "call_id": "mine"},
        "call_tags": ["retry", "user_speech", "glad", "sold"],
    }


# -- what can't happen


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            Started(1.0),
            "Started can't happen while listening (request 0); "
            "expected: CallerSaid, CallerSilent, SpeechCut, CallEnded.",
        ),
        (
            ModelReplied(1.0, 0, "x"),
            "ModelReplied number 0 can't happen while listening (request 0); "
            "expected: CallerSaid, CallerSilent, SpeechCut, CallEnded.",
        ),
    ],
)
def test_an_event_that_the_phase_does_not_expect(call: Any, event: Any, message: str) -> None:
    before = call.state.to_json()
    with pytest.raises(IllegalEvent) as caught:
        step(call.graph, call.state, event)
    assert str(caught.value) == message
    assert (caught.value.phase, caught.value.event) == ("listening", event)
    assert call.state.to_json() == before


def test_an_answer_to_another_request(call: Any) -> None:
    call.send(CallerSaid, "hello")
    for number in (0, 2):
        with pytest.raises(IllegalEvent, match=rf"^ModelReplied number {number} can't happen while thinking"):
            step(call.graph, call.state, ModelReplied(1.0, number, "x"))
    with pytest.raises(IllegalEvent, match=r"^ToolReturned number 1 "):
        step(call.graph, call.state, ToolReturned(1.0, 1, "x"))


def test_speech_after_the_end(call: Any) -> None:
    call.send(CallEnded, "user_hangup")
    assert call.waits_for is None
    with pytest.raises(IllegalEvent, match=r"^CallerSaid can't happen while ended .* expected: CallEnded\.$"):
        call.send(CallerSaid, "hello?")


def test_the_arguments_of_begin_are_copied(make_call: Any, booking: Any) -> None:
    context: dict[str, Any] = {"deep": {"name": "Ann"}}
    call = make_call(context=context)
    context["deep"]["name"] = "Eve"
    assert call.state.setup.initial_context == {"deep": {"name": "Ann"}}
    assert begin(call.graph, {}, {}).phase == "new"


# -- what is said


def test_a_turn_says_no_more_than_a_document_takes(call: Any) -> None:
    call.send(CallerSaid, "I want to book")
    said, _ = call.send(ModelReplied, "Fish & chips. " * 1000)
    assert isinstance(said, Say)
    assert said.text.endswith("chips.")
    assert LONGEST_SPEECH - 20 < len(said.text) <= LONGEST_SPEECH
    assert call.state.messages[-1] == {"role": "assistant", "content": said.text}
    assert call.recorded("rtf-bot-text")[-1]["text"] == said.text
    lost = 14_000 - 1 - len(said.text)
    assert [error["error"] for error in call.recorded("rtf-pipeline-error")] == [
        f"{lost} of 13999 characters were not spoken: a turn can say 10000 characters, which is what a carrier takes."
    ]


def test_what_is_said_in_several_rounds_of_a_turn_counts_together(call: Any) -> None:
    call.send(CallerSaid, "I want to book")
    first = call.send(ModelReplied, "One. " * 1500, (ToolCall("c9", "nothing"),))
    second = call.send(ModelReplied, "Two. " * 1500)
    spoken = [action.text for action in (*first, *second) if isinstance(action, Say)]
    assert LONGEST_SPEECH - 20 < sum(map(len, spoken)) <= LONGEST_SPEECH
    assert spoken[1].endswith("Two.")
    call.send(CallerSaid, "Go on.")
    third = call.send(ModelReplied, "Three. " * 1000)
    assert third[0].text == ("Three. " * 1000).strip()


def test_notes_of_a_reply_are_recorded(call: Any) -> None:
    call.send(CallerSaid, "I want to book")
    call.send(ModelReplied, "Hello.", (), ("Something was left out.",))
    assert call.recorded("rtf-pipeline-error") == [
        {"error": "Something was left out.", "fatal": False, "processor": "speech"}
    ]


# -- replies in parts

ONE, TWO = "One is noted.", " Two as well."


def words_of(actions: list[Any]) -> list[str]:
    return [action.text for action in actions if isinstance(action, Say)]


def test_parts_are_said_as_they_come_and_recorded_once(call: Any) -> None:
    call.send(CallerSaid, "hello")
    asked = call.state.number
    assert call.send(ModelSpoke, ONE) == [Say(ONE, interruptible=True)]
    assert (call.state.said, call.state.number, call.recorded("rtf-bot-text")[1:]) == (ONE, asked, [])
    assert call.waits_for is not None, "it is answered still"
    assert call.send(ModelSpoke, TWO) == [Say(TWO.strip(), interruptible=True)]
    assert call.send(ModelReplied, f"{ONE}{TWO} Three?") == [Say("Three?", interruptible=True), LISTEN]
    whole = f"{ONE}{TWO} Three?"
    assert [record["text"] for record in call.recorded("rtf-bot-text")][1:] == [whole]
    assert call.state.messages[-1] == {"role": "assistant", "content": whole}
    assert (call.state.said, call.state.spoken) == ("", len(whole))


def test_a_fold_without_the_parts_leads_to_the_same_state(make_call: Any) -> None:
    states = []
    for parts in ((ONE, TWO), (ONE,), ()):
        call = make_call()
        call.send(Started)
        call.send(CallerSaid, "book")
        for part in parts:
            call.send(ModelSpoke, part)
        call.send(ModelReplied, f"{ONE}{TWO}", (BOOK,))
        states.append((call.state, call.records))
    assert states[0] == states[1] == states[2]


def test_parts_of_the_first_reply_can_not_be_interrupted(make_call: Any, booking: Any) -> None:
    call = make_call(with_data(booking, "start", greeting=""))
    call.send(Started)
    assert call.send(ModelSpoke, ONE) == [Say(ONE, interruptible=False)]


@pytest.mark.parametrize("whole", ["", "One", "Something else, and longer than that.", ONE.removesuffix(".")])
def test_a_whole_text_never_takes_back_what_was_given_out(call: Any, whole: str) -> None:
    call.send(CallerSaid, "hello")
    call.send(ModelSpoke, ONE)
    assert call.send(ModelReplied, whole) == [LISTEN]
    assert [record["text"] for record in call.recorded("rtf-bot-text")][1:] == [ONE]
    assert call.state.messages[-1] == {"role": "assistant", "content": ONE}
    assert (call.state.said, call.recorded("rtf-pipeline-error")) == ("", [])


def test_a_function_call_without_words_keeps_those_that_were_given_out(call: Any) -> None:
    call.send(CallerSaid, "I want to book")
    call.send(ModelSpoke, ONE)
    call.send(ModelReplied, "", (BOOK,))
    assert [record["text"] for record in call.recorded("rtf-bot-text")][1:] == [ONE, "One moment, Ann."]
    spoken = next(message for message in call.state.messages if message.get("tool_calls"))
    assert (spoken["content"], call.state.said, call.state.node_id) == (ONE, "", "ask")


def test_a_failure_after_words_keeps_them_before_the_apology(call: Any) -> None:
    call.send(CallerSaid, "hello")
    call.send(ModelSpoke, ONE)
    assert words_of(call.send(ModelFailed, "down")) == [APOLOGY]
    assert [record["text"] for record in call.recorded("rtf-bot-text")][1:] == [ONE, APOLOGY]
    assert [message["content"] for message in call.state.messages][-2:] == ["hello", ONE]


def test_a_call_that_ends_between_the_parts_keeps_what_was_given_out(call: Any) -> None:
    call.send(CallerSaid, "hello")
    number = call.state.number
    call.send(ModelSpoke, ONE)
    assert call.send(CallEnded, "user_hangup") == [Finish("user_hangup", "user_hangup")]
    assert [record["text"] for record in call.recorded("rtf-bot-text")][1:] == [ONE]
    assert (call.state.messages[-1]["content"], call.state.said) == (ONE, "")
    # What is written all the same comes too late.
    assert step(call.graph, call.state, ModelSpoke(1000.0, number, TWO)) == (call.state, ())


def test_a_call_whose_time_is_over_between_the_parts_ends_with_what_was_given_out(asking: Any) -> None:
    asking.send(CallerSaid, "five")
    asking.send(ModelSpoke, ONE)
    assert kinds(asking.send(ModelSpoke, TWO, at=1400.0)) == [HangUp, Extract]
    assert [record["text"] for record in asking.recorded("rtf-bot-text")] == [ONE]
    assert (asking.state.said, asking.state.phase) == ("", "closing")


def test_parts_that_are_longer_than_a_turn(call: Any) -> None:
    """Once something was left out, what follows isn't said, either."""
    call.send(CallerSaid, "hello")
    long = "One. " * 1999
    assert words_of(call.send(ModelSpoke, long.rstrip())) == [long.rstrip()]
    assert words_of(call.send(ModelSpoke, " A. Two and three and four.")) == ["A."]
    assert words_of(call.send(ModelSpoke, " B.")) == []
    said, _ = call.state.said, call.send(ModelReplied, f"{long}A. Two and three and four. B. Five.")
    assert call.recorded("rtf-bot-text")[-1]["text"] == said == f"{long}A."
    assert call.state.spoken <= LONGEST_SPEECH
    (cut,) = call.recorded("rtf-pipeline-error")
    assert cut["error"].startswith("33 of ")


def test_a_blank_after_the_words_that_the_whole_text_lacks_takes_none_of_its_letters(call: Any) -> None:
    call.send(CallerSaid, "hello")
    assert words_of(call.send(ModelSpoke, "Yes.")) == ["Yes."]
    assert words_of(call.send(ModelSpoke, " ")) == []
    assert words_of(call.send(ModelReplied, "Yes.Of course.")) == ["Of course."]
    assert call.recorded("rtf-bot-text")[-1]["text"] == "Yes.Of course."


PARTS = st.lists(st.sampled_from(["Yes.", " No, ", "why? ", " ", "word", "x" * 4000, " One. " * 900]), max_size=8)


@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(PARTS, PARTS, st.booleans(), st.booleans())
def test_what_was_said_is_what_is_kept(
    make_call: Any, parts: list[str], rest: list[str], differs: bool, calls: bool
) -> None:
    """Whatever the parts are, and whatever the whole text is in the end: nothing is taken back or said twice."""
    call = make_call()
    call.send(Started)
    call.send(CallerSaid, "hello")
    spoken: list[str] = []
    for part in parts:
        before = call.state.said
        spoken += words_of(call.send(ModelSpoke, part))
        assert call.state.said.startswith(before)
    whole = "".join(rest if differs else [*parts, *rest])
    had_words = bool(call.state.said.strip() or whole.strip())
    spoken += words_of(call.send(ModelReplied, whole, (BOOK,) if calls else ()))
    recorded = [record["text"] for record in call.recorded("rtf-bot-text")][1:]
    assert "".join("".join(spoken).split()) == "".join("".join(recorded).split())
    # Beside the reply, the words of the edge that was taken, where they fit, or an apology.
    assert had_words <= len(recorded) <= had_words + (calls or not had_words)
    assert max(len(call.state.said), call.state.spoken) <= LONGEST_SPEECH
