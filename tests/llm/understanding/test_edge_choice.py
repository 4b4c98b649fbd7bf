"""Where everyday answers on the telephone lead; a wrong edge is worse than a question."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceapi.engine.actions import Function
from voiceapi.llm.understanding import matching
from voiceapi.llm.understanding.edge_choice import best_edge, choose, leads_to_itself, spoken_choices
from voiceapi.llm.understanding.matching import content, digits, has_content, listed

TABLES = json.loads((Path(__file__).parent.parent.parent / "data" / "phone_answers.json").read_text(encoding="utf-8"))
QUESTION = "Hello Ada, you have an appointment on Thursday at ten. Can you come on Thursday?"


def edge(label: str, condition: str = "") -> Function:
    return Function(label.lower().replace(" ", "_"), condition, label=label)


YES_NO = (
    edge("Yes", "They can come at that time."),
    edge("No", "They cannot come at that time, or want another day."),
)
TIME = (
    edge("Time works", "The patient keeps the visit."),
    edge("Needs another day", "The patient cannot come at that time."),
)
BARE = (edge("Yes"), edge("No"))
COMING = (
    edge("Coming", "The guest says that they will come."),
    edge("Not coming", "The guest says that they will not come."),
)
CONFIRM = (
    edge("Confirm", "They confirm the appointment."),
    edge("Reschedule", "They want another time."),
    edge("Cancel", "They want to cancel the appointment."),
)
MENU = (edge("Sales", "Press 1 for new orders."), edge("Support", "Press 2 for problems with a booking."))


def taken(said: str, edges: tuple[Function, ...], question: str = "") -> str:
    best = best_edge(said, edges, question)
    return best.label or "" if best else ""


# What a person would understand: 1 is a yes, -1 a no or a wish for another day, 0 neither.
ANSWERS = {
    "I'd love to": 1,
    "I'll be there": 1,
    "sounds good": 1,
    "of course": 1,
    "see you then": 1,
    "can't wait": 1,
    "why not": 1,
    "I don't mind": 1,
    "no problem": 1,
    "that won't be a problem": 1,
    "I wouldn't miss it": 1,
    "I'm not sure": 0,
    "I have to work on Thursday": -1,
    "Thursday is bad": -1,
    "could we move it to Friday": -1,
    "not really": -1,
    "I'm afraid I have a conflict": -1,
    "just me": 0,
    "mm-hmm": 1,
    "oh no, I forgot, yes I'll come": 1,
    # Twenty more.
    "not a bad idea": 1,
    "I think so": 1,
    "no, I don't mind at all": 1,
    "I'm free then": 1,
    "I was going to say no, but yes": 1,
    "I have no plans": 1,
    "maybe": 0,
    "who is this?": 0,
    "what time?": 0,
    "yes but only after six": 0,
    "I can't hear you": 0,
    "I'm good": 0,
    "my wife will come instead": 0,
    "I'm out of town": -1,
    "I'd love to, but I can't": -1,
    "I don't think so": -1,
    "I'd rather not": -1,
    "how about Monday": -1,
    "yes, no wait, I can't": -1,
    "no way I can make it": -1,
}
# The same words to each of these; BARE has no conditions that could help.
PAIRS = {"Yes and No": YES_NO, "Time works": TIME, "Yes and No alone": BARE, "Coming": COMING}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("said", ANSWERS)
def test_forty_answers_to_an_invitation(said: str, pair: str) -> None:
    edges = PAIRS[pair]
    expected = {1: edges[0].label, -1: edges[1].label, 0: ""}[ANSWERS[said]]
    assert taken(said, edges, QUESTION) == expected
    assert taken(said, edges) == expected
    # As a speech recogniser writes it, which knows no commas.
    assert taken(said.replace(",", "").upper(), edges, QUESTION) in (expected, "")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table["name"]))
def test_no_everyday_answer_takes_a_wrong_edge(table: dict[str, Any]) -> None:
    edges = tuple(edge(label, condition) for label, condition in table["edges"])
    wrong, count = [], Counter[bool]()
    for label, answers in table["answers"].items():
        for said in answers:
            got = taken(said, edges, table["question"])
            count[got == label] += 1
            if got not in (label, ""):
                wrong.append((said, got))
    assert wrong == []
    assert count[True] >= 0.95 * count.total()


@pytest.mark.parametrize(
    "said",
    [
        "I never said yes", "did I say yes", "yes hello", "yes, this is Ada", "like hell I might", "I'm in Spain",
        "make sure the door is open", "I'm down with a headache", "I doubt I can", "that's totally unacceptable",
        "no this is Bob", "no money", "she can't come to the phone", "he is not home", "my phone doesn't work",
        "why was it cancelled", "please don't cancel", "I don't want to cancel", "I don't need another day",
        "did I cancel it", "do I have to reschedule", "can I bring my dog", "I'm at work right now", "yes and no",
        "yes no maybe", "I'd come if I could", "sure if you pick me up", "I wish you well", "good morning", "come on",
        "is that a yes or no question", "yes?", "sure not", "I guess", "no hablo inglés", "my sim card", "",
    ],
)  # fmt: skip
def test_what_is_neither_yes_nor_no_is_asked_again(said: str) -> None:
    assert [taken(said, edges, QUESTION) for edges in PAIRS.values()] == [""] * len(PAIRS)


@pytest.mark.parametrize(
    ("edges", "said", "question", "label"),
    [
        # Another day than the one of the question.
        (YES_NO, "Friday works", QUESTION, "No"),
        (YES_NO, "Friday", QUESTION, "No"),
        (YES_NO, "yes, on Friday", QUESTION, ""),
        (YES_NO, "I'd prefer Thursday", QUESTION, ""),
        (YES_NO, "Thursday works", QUESTION, "Yes"),
        # Who is asked for.
        (YES_NO, "this is she", "Am I speaking to Ada?", "Yes"),
        (YES_NO, "this is she", QUESTION, ""),
        # A no leaves two ways open.
        (CONFIRM, "no", "", ""),
        (CONFIRM, "yes", "", "Confirm"),
        (CONFIRM, "I can't come, can we find another day", "", "Reschedule"),
        (CONFIRM, "no, cancel it", "", "Cancel"),
        (CONFIRM[::2], "no", "", "Cancel"),
        # Edges that answer nothing are found by their words, in questions too.
        (MENU, "no, sales please", "", "Sales"),
        (MENU, "not sales", "", ""),
        (MENU, "not sales, support", "", "Support"),
        (MENU, "do you have support", "", "Support"),
        (MENU, "sales or support", "", ""),
        ((*BARE, edge("Call back later")), "no, call back later", "", "Call back later"),
        ((edge("Works"), edge("Doesn't work")), "it doesn't work", "", "Doesn't work"),
        ((edge("Answered", "They say a number: one, two, three."),), "one moment please", "", ""),
        ((edge("Answered", "They say a number: one, two, three."),), "three", "", "Answered"),
        # A condition in the author's words.
        ((edge("Pain", "They have toothache."), edge("Other", "Anything else.")), "my toothache is back", "", "Pain"),
    ],
)
def test_edges_in_their_context(edges: tuple[Function, ...], said: str, question: str, label: str) -> None:
    assert taken(said, edges, question) == label


@pytest.mark.parametrize(
    ("edges", "choices"),
    [
        (YES_NO, []),
        (TIME, []),
        (BARE, []),
        (CONFIRM, ["Confirm", "Reschedule", "Cancel"]),
        (MENU, ["Sales", "Support"]),
        ((edge("Answered", "They say a number."),), None),
        ((edge("Agreed to buy", ""), edge("Asks for the price", "")), None),
        ((), None),
    ],
)
def test_the_choices_that_can_be_spoken(edges: tuple[Function, ...], choices: list[str] | None) -> None:
    assert spoken_choices(edges) == choices


# -- shortcuts that give what the whole reading gives

WORDS = st.sampled_from(
    listed(
        "yes no not never without can't one moment two twenty day any the caller says they tomorrow another cancel "
        "table minus 5 maybe if oui ja d'accord sim はい 是的 हाँ "
        "but , . ? thats i'll gonna okay"
    )
)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join) | st.text(max_size=8)


@given(TEXTS)
def test_text_has_content_when_there_is_any(text: str) -> None:
    assert has_content(text) == bool(content(text))


NUMBER_WORDS = set(re.findall("[a-z]+", f"{matching._NUMBER} {matching._NO_COUNT.pattern} {matching._MINUS.pattern}"))
COUNTS = st.lists(st.sampled_from([*sorted(NUMBER_WORDS), "1", "2", "5", "Table", "-", "'s"]), max_size=5).map(" ".join)


@given(COUNTS | TEXTS)
def test_text_without_number_words_stays_as_it_is(text: str) -> None:
    assert digits(text) == matching._with_digits(text)


def test_every_number_word_is_looked_for() -> None:
    for before, word in product(("", "a ", "1 "), NUMBER_WORDS):
        for text in (f"{before}{word}", f"{before}{word}s", f"{before}{word} 5"):
            assert digits(text) == matching._with_digits(text)


def test_letters_that_patterns_take_for_others_make_no_number() -> None:
    assert [digits(text) for text in ("f\u0131ve", "TWENTY-S\u0130X", "\u017fix")] == [
        "f\u0131ve",
        "TWENTY-S\u0130X",
        "6",
    ]


@given(TEXTS, TEXTS)
def test_an_only_edge_that_leads_to_itself_is_the_best_for_its_label(label: str, condition: str) -> None:
    only = Function("only", condition, label=label)
    if leads_to_itself(only):
        assert best_edge(label, (only,)) is only


# -- why


RATED = (edge("Rated", "They give a number from 1 to 5."), edge("No", "They don't want to say."))
REASONS: tuple[tuple[tuple[Function, ...], str, dict[str, Any]], ...] = (
    (YES_NO, "Yes, I can.", {"kind": "answer", "answer": "yes", "matched": ["yes", "i can"]}),
    (YES_NO, "No, another day.", {"kind": "answer", "answer": "change", "matched": ["another day"]}),
    # A short form isn't said as it is read, so all of what was said is shown.
    (YES_NO, " I can't come ", {"kind": "answer", "answer": "no", "matched": ["I can't come"]}),
    (YES_NO, "Sí, claro", {"kind": "answer", "answer": "yes", "matched": ["sí", "claro"]}),
    (YES_NO, "Nein danke", {"kind": "answer", "answer": "no", "matched": ["nein danke"]}),
    (YES_NO, "はい", {"kind": "answer", "answer": "yes", "matched": ["はい"]}),
    (YES_NO, "हाँ", {"kind": "answer", "answer": "yes", "matched": ["हाँ"]}),
    (MENU, "Sales, please", {"kind": "words", "in": "label", "matched": ["sales"]}),
    (MENU, "a problem with my Booking", {"kind": "words", "in": "condition", "matched": ["problem", "booking"]}),
    (MENU, "2", {"kind": "words", "in": "condition", "matched": ["2"]}),
    (RATED, "cuatro", {"kind": "number", "matched": ["cuatro"]}),
)


@pytest.mark.parametrize(("edges", "said", "reason"), REASONS)
def test_why_an_edge_is_taken(edges: tuple[Function, ...], said: str, reason: dict[str, Any]) -> None:
    choice = choose(said, edges)
    assert choice is not None
    assert choice.reason == reason
    assert choice.edge is best_edge(said, edges)


def test_a_reason_says_what_the_question_made_of_an_answer() -> None:
    choice = choose("I can hear you", YES_NO, "Can you hear me?")
    assert choice is not None
    assert choice.reason == {"kind": "answer", "answer": "yes", "matched": ["I can hear you"]}


@given(st.text(max_size=300), st.sampled_from([YES_NO, MENU, RATED, CONFIRM]))
def test_a_reason_is_short_and_of_what_was_said(said: str, edges: tuple[Function, ...]) -> None:
    choice = choose(said, edges, QUESTION)
    if choice is None:
        return
    matched = choice.reason["matched"]
    assert 0 < len(matched) <= 10
    assert all(0 < len(each) <= 200 for each in matched)


@pytest.mark.parametrize("said", ["sales " + "blah " * 50_000 + "sales", "yes " * 50_000, "sales" * 50_000 + " sales"])
def test_the_reason_of_a_long_text_is_short(said: str) -> None:
    choice = choose(said, (*MENU, *BARE))
    assert choice is not None
    assert sum(map(len, choice.reason["matched"])) <= 2_000
