import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapi.engine.actions import AskModel, Extract, Fetch, Function, Message, Occasion, Say
from voiceapi.engine.events import (
    CallerSaid,
    CallerSilent,
    Event,
    Fetched,
    ModelReplied,
    Started,
    ToolCall,
    VariablesExtracted,
)
from voiceapi.engine.extraction import Variable
from voiceapi.engine.graph import Graph
from voiceapi.engine.phrases import phrases
from voiceapi.engine.state import State, begin
from voiceapi.engine.step import step
from voiceapi.llm.scripted import Scripted
from voiceapi.llm.understanding.edge_choice import best_edge
from voiceapi.llm.understanding.matching import clauses, content, digits, numbers, stem

NOT_UNDERSTOOD, STILL_THERE, FAREWELL, YES_OR_NO, CAN_SAY, GIVE_UP, NOBODY, NO_PERSON = (
    phrases({})[name]
    for name in (
        "not_understood",
        "still_there",
        "silence_goodbye",
        "yes_or_no",
        "you_can_say",
        "not_understood_goodbye",
        "person_unavailable",
        "person_goodbye",
    )
)
DEFINITIONS = {
    sample["name"]: sample["definition"]
    for sample in json.loads((Path(__file__).parent.parent / "data" / "definitions.json").read_text())["valid"]
}


def edge(label: str, condition: str) -> Function:
    return Function(label.lower().replace(" ", "_"), condition, label=label)


REMIND = (
    edge("Time works", "The patient keeps the visit."),
    edge("Needs another day", "The patient cannot come then."),
)
SURVEY = (edge("Agrees", "The customer agrees to the survey."), edge("Refuses", "The customer does not want to."))
LEAD = (edge("Interested", "The prospect wants to learn more."), edge("Not interested", "The prospect declines."))
MENU = (edge("Sales", "Press 1 for new orders."), edge("Support", "Press 2 for problems with a booking."))
ONLY = (edge("All answered", "All three answers were given."),)
TOOL = Function("time", "yes sales time", tool_uuid="u")


@pytest.mark.parametrize(
    ("edges", "said", "label"),
    [
        (REMIND, "yes", "Time works"),
        (REMIND, "not sure", None),
        (REMIND, "Yes, that works for me", "Time works"),
        (REMIND, "I will keep it", "Time works"),
        (REMIND, "no", "Needs another day"),
        (REMIND, "I can't come", "Needs another day"),
        (REMIND, "could we do a different day", "Needs another day"),
        (SURVEY, "sure, no problem", "Agrees"),
        (SURVEY, "I agreed already", "Agrees"),
        (SURVEY, "I don’t want to", "Refuses"),
        (SURVEY, "nope", "Refuses"),
        (LEAD, "I am interested", "Interested"),
        (LEAD, "I'm not interested", "Not interested"),
        (MENU, "one", "Sales"),
        (MENU, "number 2 please", "Support"),
        (MENU, "I have a problem", "Support"),
        (MENU, "two of my bookings", "Support"),
        (MENU, "new ordering", "Sales"),
        (MENU, "yes", None),
        (MENU, "eh", None),
        (MENU, "", None),
        (ONLY, "yes", None),
        (ONLY, "I have answered three", "All answered"),
        ((), "yes", None),
        ((TOOL,), "yes", None),
        ((edge("Yes", "a"), edge("Yes too", "b")), "yes", "Yes"),
        ((edge("日本", "東京"), edge("中国", "北京")), "北京", "中国"),
    ],
)
def test_the_edge_that_matches_the_caller_best(edges: tuple[Function, ...], said: str, label: str | None) -> None:
    best = best_edge(said, edges)
    assert (best.label if best else None) == label


def ask(occasion: Occasion, *said: str | Message, greeting: str = "", edges: tuple[Function, ...] = REMIND) -> AskModel:
    messages = tuple({"role": "user", "content": text} if isinstance(text, str) else text for text in said)
    return AskModel(3, 7.0, "n", "N", occasion, "Rules.\n\nThe prompt.", "The prompt.", greeting, messages, edges)


def scripted(request: AskModel, text: str) -> AskModel:
    """The request at a node with a scripted text."""
    return replace(request, script=text)


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (ask("opening"), "The prompt."),
        (ask("opening", "yes"), "The prompt."),
        (ask("reply", "eh"), f"{NOT_UNDERSTOOD} The prompt. {YES_OR_NO}"),
        (ask("reply", "eh", greeting="Hello."), f"{NOT_UNDERSTOOD} {YES_OR_NO}"),
        (ask("reply", "eh", greeting="Hello Dr. Lee. Is ten fine? Bye."), f"{NOT_UNDERSTOOD} Is ten fine? {YES_OR_NO}"),
        (ask("reply", "eh", greeting="Will you see Dr. Lee?"), f"{NOT_UNDERSTOOD} Will you see Dr. Lee? {YES_OR_NO}"),
        (ask("reply", "eh", greeting="こんにちは。来られますか？"), f"{NOT_UNDERSTOOD} 来られますか？ {YES_OR_NO}"),
        (ask("reply", "eh", edges=MENU), f"{NOT_UNDERSTOOD} {CAN_SAY} Sales or Support."),
        (ask("reply", "eh", "hm", edges=MENU), f"{NOT_UNDERSTOOD} The prompt."),
        (ask("reply", "eh", edges=ONLY, greeting="Good day! How many?"), f"{NOT_UNDERSTOOD} How many?"),
        (ask("reply", "eh", edges=ONLY, greeting="Good day."), NOT_UNDERSTOOD),
        (ask("reply"), f"{NOT_UNDERSTOOD} The prompt. {YES_OR_NO}"),
        (ask("reply", "eh", "hm"), f"{NOT_UNDERSTOOD} The prompt. {YES_OR_NO}"),
        (ask("idle", "yes"), f"{STILL_THERE} The prompt."),
        # A silence repeats the question, not the greeting.
        (ask("idle", greeting="Good day, Harbour Bikes. Is ten fine? Thank you."), f"{STILL_THERE} Is ten fine?"),
        (ask("idle", greeting="Good day.", edges=MENU), f"{STILL_THERE} {CAN_SAY} Sales or Support."),
        (ask("idle", greeting="Good day.", edges=ONLY), STILL_THERE),
        (replace(ask("idle"), end_keys="End with #."), f"{STILL_THERE} The prompt. End with #."),
        (replace(ask("reply", "eh", edges=ONLY), end_keys="End with #."), f"{NOT_UNDERSTOOD} The prompt. End with #."),
        (ask("goodbye", "yes"), FAREWELL),
        (scripted(ask("opening"), "Is ten fine?"), "Is ten fine?"),
        (scripted(ask("reply", "eh"), "Hello. Is ten fine? Bye."), f"{NOT_UNDERSTOOD} Is ten fine? {YES_OR_NO}"),
        (
            scripted(ask("reply", "eh", greeting="Is it you?"), "Is ten fine?"),
            f"{NOT_UNDERSTOOD} Is ten fine? {YES_OR_NO}",
        ),
        (scripted(ask("reply", "eh", greeting="Is it you?"), "I see."), f"{NOT_UNDERSTOOD} Is it you? {YES_OR_NO}"),
        (scripted(ask("reply", "eh", greeting="Hello."), "I see."), f"{NOT_UNDERSTOOD} I see. {YES_OR_NO}"),
        (scripted(ask("idle", "yes", greeting="Hello."), "Is ten fine?"), f"{STILL_THERE} Is ten fine?"),
    ],
)
def test_what_is_said(request_: AskModel, text: str) -> None:
    misses = len(request_.messages) or 1 if NOT_UNDERSTOOD in text else 0
    assert replace(Scripted().reply(request_), looked_at=()) == ModelReplied(7.0, 3, text, misses=misses)


def test_a_scripted_text_that_is_too_large_ends_the_call() -> None:
    text = phrases({})["failure_goodbye"]
    ended = ModelReplied(7.0, 3, text, notes=("It is too large.",), end_reason="pipeline_error")
    assert Scripted().reply(replace(ask("reply", "yes"), script_problem="It is too large.")) == ended


def test_an_edge_is_taken_by_its_function() -> None:
    expected = ModelReplied(7.0, 3, "", (ToolCall("call_3", "time_works"),))
    assert Scripted().reply(ask("reply", "no", "yes")) == expected


EDGE_TAKEN: Message = {"role": "tool", "content": '{"status": "done"}', "tool_call_id": "call_1"}
TRANSFER_FAILED: Message = {"role": "tool", "content": '{"status": "transfer_failed"}', "tool_call_id": "call_2"}
TRANSFER = Function("reception", "Execute reception tool", tool_uuid="t", transfers=True)
ASKING = Function(
    "expert",
    "Asks a server",
    {"type": "object", "properties": {}, "required": ["topic"]},
    tool_uuid="a",
    transfers=True,
)


def test_the_third_miss_in_a_row_ends_the_call() -> None:
    expected = ModelReplied(7.0, 3, GIVE_UP, end_reason="user_disqualified", end_tag="not_understood", misses=3)
    assert replace(Scripted().reply(ask("reply", "eh", "blah", "hm")), looked_at=()) == expected


def test_a_miss_shows_the_words_that_lead_to_each_edge() -> None:
    assert Scripted().reply(ask("reply", "eh")).looked_at == (
        {"edge": "Time works", "words": ["yes", "time", "works", "patient", "keeps", "visit"]},
        {"edge": "Needs another day", "words": ["change", "needs", "another", "day", "patient", "cannot", "come"]},
    )
    assert Scripted().reply(ask("reply", "yes")).looked_at == ()


def test_who_asks_who_calls_hears_it_with_the_question_and_is_not_misunderstood() -> None:
    opening = {"role": "assistant", "content": "Hello! This is Dr. Lee's practice. Can you come? Say yes or no."}
    greeting = str(opening["content"])
    again = "Hello! This is Dr. Lee's practice. Can you come?"
    for said in (
        "who is this?",
        "Pardon?",
        "can you repeat that?",
        "Hello?",
        "wer ist da?",
        "もしもし",
        "कौन बोल रहा है?",
    ):
        assert Scripted().reply(ask("reply", opening, said, greeting=greeting)) == ModelReplied(7.0, 3, again)
    # Who asks again and again is no longer answered; the first three questions never count.
    many = Scripted().reply(ask("reply", opening, *["hello?"] * 4, greeting=greeting))
    assert (many.text, many.misses) == (f"{NOT_UNDERSTOOD} Can you come? {YES_OR_NO}", 1)
    assert Scripted().reply(ask("reply", opening, "eh", "hello?", "hm", greeting=greeting)).misses == 2
    # A node that is spoken as its prompt, after the call has begun with a question.
    question = {"role": "assistant", "content": "Is this Ada?"}
    assert Scripted().reply(ask("reply", question, "pardon?")).text == "The prompt."


def test_misses_are_counted_at_one_node() -> None:
    reply = Scripted().reply(ask("reply", "eh", "blah", EDGE_TAKEN, "hm"))
    assert (reply.text, reply.end_reason) == (f"{NOT_UNDERSTOOD} The prompt. {YES_OR_NO}", "")


@pytest.mark.parametrize(
    "said",
    [
        "can I talk to someone",
        "I want to speak to a real person",
        "representative please",
        "operator",
        "Operator!",
        "human",
        "no, let me talk to a human",
        "put me through to somebody",
        "could I speak with your manager, please",
        "I'd rather talk to a person",
        "agent",
        "can you transfer me",
        "yes, but I need a human being",
        "get me an operator",
        "ich möchte mit einem Menschen sprechen",
    ],
)
def test_who_asks_for_a_person_is_put_through(said: str) -> None:
    model = Scripted()
    assert model.reply(ask("reply", said, edges=(*REMIND, ASKING, TRANSFER))).calls == (
        ToolCall("call_3", "reception"),
    )
    operator = edge("Operator", "They want somebody else.")
    assert model.reply(ask("reply", said, edges=(*REMIND, TRANSFER, operator))).calls == (
        ToolCall("call_3", "operator"),
    )
    colleague = edge("Reception", "They ask to talk to a person.")
    assert model.reply(ask("reply", said, edges=(*REMIND, colleague))).calls == (ToolCall("call_3", "reception"),)
    assert model.reply(ask("reply", said, edges=(*REMIND, ASKING))) == ModelReplied(
        7.0, 3, NO_PERSON, end_reason="user_disqualified", end_tag="person_requested"
    )


@pytest.mark.parametrize(
    "said",
    [
        "are you a real person",
        "is this a human",
        "I don't want to talk to a person",
        "I need to talk to someone first",
        "I spoke to someone yesterday",
        "I'd like someone to drive me",
        "I'm the operator of a crane",
        "my agent told me",
    ],
)
def test_who_speaks_of_a_person_is_asked_again(said: str) -> None:
    reply = Scripted().reply(ask("reply", said, edges=(*REMIND, TRANSFER)))
    assert (reply.calls, reply.end_reason) == ((), "")


def test_a_failed_transfer_is_said_and_the_question_asked_again() -> None:
    asked = ask("reply", "operator", TRANSFER_FAILED, greeting="Hello. Can you come?", edges=(*REMIND, TRANSFER))
    assert Scripted().reply(asked) == ModelReplied(7.0, 3, f"{NOBODY} Can you come?")


# -- extraction


def extracted(said: list[str], *variables: Variable) -> Any:
    messages: list[Message] = [{"role": "assistant", "content": "7 or yes?"}]
    messages += [{"role": "user", "content": text} for text in said]
    answer = Scripted().extract(Extract(4, 9.0, "n", "N", variables, "", tuple(messages)))
    assert answer == VariablesExtracted(9.0, 4, answer.values)
    return answer.values


@pytest.mark.parametrize(
    ("variable", "said", "value"),
    [
        (Variable("score", "number", "0 to 10"), ["eight", "no, make it nine"], 9),
        (Variable("seats", "number"), ["I need two hundred and five"], 205),
        (Variable("price", "number"), ["it is 1,200.50 euro"], 1200.5),
        (Variable("price", "number"), ["between minus -3 and 4"], 4),
        (Variable("seats", "number", "Number of seats"), ["12 seats for 2000 euro"], 12),
        (Variable("seats", "number", "Number of seats"), ["12 seats, for 2000 euro a year"], 12),
        (Variable("seats", "number"), ["none of that"], None),
        (Variable("seats", "number"), [], None),
        (Variable("agreed", "boolean"), ["yes", "well, the weather"], True),
        (Variable("agreed", "boolean"), ["yes", "no wait, not at all"], False),
        (Variable("may_call_again", "boolean", "Consent to another call"), ["you may not ring again, yes"], False),
        (Variable("agreed", "boolean"), ["perhaps"], None),
        (
            Variable("reason", "string", "Main reason"),
            ["the main reason was the price", "bye"],
            "the main reason was the price",
        ),
        (Variable("reason", "string"), ["it was late", "the price"], "the price"),
        (Variable("outcome", "string", "kept, moved or cancelled"), ["please move it", "thanks"], "moved"),
        (Variable("outcome", "string", "kept, moved or cancelled"), ["thanks"], None),
        (Variable("reason", "string"), [], None),
    ],
)
def test_extraction(variable: Variable, said: list[str], value: Any) -> None:
    assert extracted(said, variable) == ({} if value is None else {variable.name: value})


def test_each_variable_gets_the_text_that_matches_it() -> None:
    said = ["Five seats and two thousand euro.", "Yes, I decide."]
    assert extracted(
        said,
        Variable("seats", "number", "Number of seats"),
        Variable("budget_eur", "number", "Yearly budget in euro"),
        Variable("decision_maker", "boolean", "The person decides"),
    ) == {"seats": 5, "budget_eur": 2000, "decision_maker": True}


# -- matching


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two hundred and five seats", [205]),
        ("five six seven", [5, 6, 7]),
        ("I'm twenty-five", [25]),
        ("someone", []),
        ("three thousand two hundred and ten", [3210]),
        ("one million two hundred thousand", [1_200_000]),
        ("a hundred", [100]),
        ("twelve hundred", [1200]),
        ("zero five", [0, 5]),
        ("hundred hundred", [100, 100]),
        ("1,200.50 and 3.", [1200.5, 3]),
        ("v2 and 10th", [10]),
    ],
)
def test_numbers(text: str, expected: list[float]) -> None:
    assert numbers(text) == expected


@pytest.mark.parametrize(
    "words",
    [
        "work works working worked",
        "book booking bookings booked books",
        "agree agrees agreed agreeing",
        "city cities",
        "stop stopped stopping stops",
        "address addresses",
        "move moves moved moving",
        "speed speeds",
        "carry carries carried",
        "box boxes",
    ],
)
def test_the_forms_of_a_word_have_one_stem(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


def test_frequent_words_are_left_out() -> None:
    assert content("The caller's two BOOKINGS are on them.") == {"2", "book"}


def test_clauses() -> None:
    assert clauses("5 seats, and 1,200.50 euro. Yes but no; 3.5") == ["5 seats", "1,200.50 euro", "Yes", "no", "3.5"]


@pytest.mark.parametrize("piece", ["one ", "one and ", "hundred ", "1,", "a'", "not a ", "1.", "\u0661"])
def test_long_words_are_matched_quickly(piece: str) -> None:
    began = time.process_time()
    text = piece * 20_000
    best_edge(text, MENU)
    extracted([text], Variable("a", "number"), Variable("b", "boolean"), Variable("c", "string", "x or y"))
    assert time.process_time() - began < 30
    assert digits(text)


# -- whole conversations


def converse(definition: Any, context: Any, *turns: str | None) -> tuple[State, list[str]]:
    """Hold a conversation; None is silence. Return the state it comes to and everything the agent said."""
    model, graph, said = Scripted(), Graph.read(definition), []
    state = begin(graph, context, {})
    for event in (Started(0.0), *(CallerSilent(1.0) if each is None else CallerSaid(1.0, each) for each in turns)):
        pending: list[Event] = [event]
        while pending and state.phase != "ended":
            state, actions = step(graph, state, pending.pop())
            said += [action.text for action in actions if isinstance(action, Say)]
            pending += [model.reply(action) for action in actions if isinstance(action, AskModel)]
            pending += [model.extract(action) for action in actions if isinstance(action, Extract)]
            pending += [Fetched(1.0, action.number, {}) for action in actions if isinstance(action, Fetch)]
        assert state.phase in ("listening", "ended")
    return state, said


def test_a_reminder_is_held_to_its_end() -> None:
    context = {"patient_name": "Ann", "visit_date": "4 May"}
    state, said = converse(
        DEFINITIONS["appointment-reminder"], context, "banana?", "no, another day", "new day: Friday, agreed"
    )
    assert said == [
        "Hello Ann, this is the clinic calling.",
        f"{NOT_UNDERSTOOD} {YES_OR_NO}",
        "No problem, let me see.",
        "Offer two other days in the same week. Today is Thursday.",
        "Repeat the new day and say goodbye.",
    ]
    assert state.phase == "ended"
    assert state.missing == ("clinic.city",)
    assert state.gathered_context == {
        "nodes_visited": ["Remind", "Rebook", "Moved"],
        "extracted_variables": {"new_day": "Friday", "agreed": True},
        "new_day": "Friday",
        "agreed": True,
        "call_disposition": "user_qualified",
        "mapped_call_disposition": "user_qualified",
        "call_tags": ["user_speech", "user_qualified"],
    }


def test_a_survey_extracts_its_answers() -> None:
    said = "The main reason is the price, I score nine, you may call again, yes, all answered"
    state, spoken = converse(DEFINITIONS["satisfaction-survey"], {"brand": "Acme"}, "yes", said)
    assert spoken == [
        "Hi, Acme here.",
        "Ask for a score from zero to ten, then the main reason, then whether we may call again.",
        "Thank the customer.",
    ]
    assert state.gathered_context["extracted_variables"] == {"score": 9, "reason": said, "may_call_again": True}


def test_a_caller_who_is_never_understood() -> None:
    state, said = converse(DEFINITIONS["appointment-reminder"], {}, "eh", "hm", "blah?")
    assert said[1:] == [f"{NOT_UNDERSTOOD} {YES_OR_NO}"] * 2 + [GIVE_UP]
    assert (state.reason, state.gathered_context["call_disposition"]) == ("user_disqualified", "user_disqualified")
    assert state.gathered_context["call_tags"] == ["not_understood", "user_speech", "user_disqualified"]


def test_silence_between_misses_is_no_miss() -> None:
    state, said = converse(DEFINITIONS["appointment-reminder"], {}, "eh", None, "hm", "I can't", "hm", "hm")
    assert state.phase == "listening"
    assert GIVE_UP not in said


def test_a_caller_who_asks_for_a_person() -> None:
    state, said = converse(DEFINITIONS["appointment-reminder"], {}, "can I talk to someone")
    assert said[1:] == [NO_PERSON]
    assert (state.phase, state.reason) == ("ended", "user_disqualified")
    assert state.gathered_context["call_tags"] == ["person_requested", "user_speech", "user_disqualified"]


def test_a_reply_of_an_earlier_release_ends_nothing() -> None:
    stored = {"kind": "ModelReplied", "at": 1.0, "number": 2, "text": "Hello.", "calls": []}
    assert Event.from_json(stored) == ModelReplied(1.0, 2, "Hello.")


def test_silence_ends_a_conversation() -> None:
    state, said = converse(DEFINITIONS["tiny-closing-hours"], {}, None, None)
    assert said == ["Harbour Bikes, good day.", STILL_THERE, FAREWELL]
    assert state.reason == "user_idle_max_duration_exceeded"


@given(
    st.sampled_from(sorted(DEFINITIONS)), st.lists(st.none() | st.text() | st.sampled_from(["yes", "no"]), max_size=3)
)
def test_any_text_is_answered(name: str, turns: list[str | None]) -> None:
    _, said = converse(DEFINITIONS[name], {}, *turns)
    assert all(text.strip() for text in said)


# -- why an edge is called


def why(request: AskModel) -> Any:
    (call,) = Scripted().reply(request).calls
    return call.why


def test_a_call_says_what_it_was_made_for() -> None:
    assert why(ask("reply", "yes")) == {"kind": "answer", "answer": "yes", "matched": ["yes"]}
    pressed: Message = {"role": "user", "content": "2", "keyed": True}
    assert why(ask("reply", pressed, edges=MENU)) == {"kind": "keys", "matched": ["2"], "in": "condition"}
    assert why(ask("reply", "an operator", edges=(edge("Operator", "They want a person."),))) == {"kind": "person"}


@pytest.mark.parametrize("occasion", ["idle", "goodbye"])
def test_a_silence_leads_to_no_edge(occasion: Occasion) -> None:
    assert Scripted().reply(ask(occasion, "yes")).calls == ()
