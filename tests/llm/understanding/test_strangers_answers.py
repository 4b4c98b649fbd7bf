"""Answers that somebody wrote down who hadn't seen the tables: none may lead to a wrong edge, few be asked again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from voiceapi.engine.actions import Function
from voiceapi.llm.understanding.edge_choice import best_edge, takes_questions
from voiceapi.llm.understanding.wishes import asks_again

# By the edge that a person would take, the first or the second, or "" for a question; answers are separated by "/".
THURSDAY = (
    "Hello Ada, you have an appointment on Thursday at ten. Can you come on Thursday?",
    """
    Absolutely / You bet / Thursday's perfect / Yeah, should be able to / I think so / Sure thing / Count me in
    / That works for me / I'm free all day / I can make it / I can do Thursday / Okay, Thursday it is / Let's do it
    / Fine by me / Put me down for it / Yes, what time / I'd be happy to / I don't see why not / Should be fine
    / Looking forward to it / Well, yes, I guess so / I could, yes / Thursday suits me / No worries, I'll come
    / I wasn't going to, but okay / My schedule is clear / Not a problem at all
    """,
    """
    I can't make it / Not on Thursday / Unfortunately not / I'm out of town that day / I'm busy
    / Any other day would be fine / Wednesday would be better / Sorry, I'm working / I'd rather not / No way
    / I wish I could / I'd love to, but I can't / Only if it's Friday / Thursday doesn't work for me
    / Nope, not this week / I won't be able to / I'm on holiday until Sunday / I've got a doctor's appointment
    / That's not going to work / Yes, but not on Thursday / Can we do another day
    """,
    """
    Let me check my calendar / Maybe / I don't know yet / It depends on the time / Who is this / What did you say
    / Can you call me back later / I'll let you know / I confirm nothing / No sure / Hold on a second / Which Thursday
    """,
)
MOMENT = (
    "Hello, this is the clinic. Is this a good moment?",
    """
    Go ahead / Sure, what's up / I've got a minute / As good as any / I'm listening / Yes, make it quick
    / Yeah, it's fine / Of course / Perfect timing / Fire away / It's okay, I'm not busy / No, it's fine, go ahead
    """,
    """
    I'm driving / I'm in a meeting / Not right now / Call me later / It's a bad time / I'm just about to leave
    / Can you call back tomorrow / I'm busy / Not really / I can't talk now / No, I'm eating / Try again later
    """,
    "Who's calling / Depends / What / Say that again / What is it about / Hello",
)
MORE = (
    "We have a new offer. Would you like to hear more?",
    """
    Please / Tell me more / I'm all ears / Why not / I'm interested / Yes please / Sounds interesting / Go on / I would
    / I'd like that / By all means / Sure, go ahead
    """,
    """
    Not interested / No thank you / I've heard enough / Take me off your list / I'm good, thanks / Stop calling me
    / Not today / I already have one / I don't need anything / No more / I would not / Please don't
    """,
    "What / Who gave you my number / I'm not sure / Pardon / Maybe / Hmm",
)
LABELS = [
    (("Time works", "The patient keeps the visit."), ("Needs another day", "The patient cannot come at that time.")),
    (("Yes", "They can come at that time."), ("No", "They cannot come at that time, or want another day.")),
    (("Yes", ""), ("No", "")),
]


@pytest.mark.parametrize(
    ("table", "labels"), [*((THURSDAY, each) for each in LABELS), (MOMENT, LABELS[2]), (MORE, LABELS[2])]
)
def test_no_answer_is_misunderstood_and_few_are_asked_again(
    table: tuple[str, str, str, str], labels: tuple[tuple[str, str], tuple[str, str]]
) -> None:
    edges = tuple(Function(f"edge_{label}", condition, label=label) for label, condition in labels)
    question, *answers = table
    wrong, asked, count = [], [], 0
    for expected, texts in zip((*edges, None), answers, strict=True):
        for said in (" ".join(each.split()) for each in texts.split("/")):
            got = best_edge(said, edges, question)
            count += 1
            if got is None and expected:
                asked.append(said)
            elif got is not expected:
                wrong.append((said, got and got.label))
    assert wrong == []
    assert len(asked) <= count / 5, asked


@pytest.mark.parametrize(
    "said",
    [
        "I agree to nothing", "no deal", "good for nothing", "nothing", "nobody", "I used to say yes",
        "yes, I can hear you", "yeah I'm driving", "I'm coming down with something", "would eleven work",
        "is eleven ok",
    ],
)  # fmt: skip
def test_a_yes_that_is_none_is_asked_again(said: str) -> None:
    edges = tuple(Function(label, "", label=label) for label in ("Yes", "No"))
    assert best_edge(said, edges, THURSDAY[0]) is None


@pytest.mark.parametrize("said", ["not now", "call me back", "I can't talk", "I'm driving"])
def test_only_who_is_asked_for_a_moment_refuses_by_having_none(said: str) -> None:
    edges = tuple(Function(label, "", label=label) for label in ("Yes", "No"))
    assert best_edge(said, edges, "Do you have a minute for us?") is edges[1]
    if said != "not now":
        assert best_edge(said, edges, THURSDAY[0]) is None


# By question: what people answer first to the questions of the examples and templates, in other words than the edges'.
FIRST_ANSWERS = json.loads((Path(__file__).parents[2] / "data" / "first_answers.json").read_text())


def test_first_answers_to_the_examples_are_understood() -> None:
    understood, asked, wrong = [], [], []
    for sample in FIRST_ANSWERS:
        edges = tuple(Function(label, condition, label=label) for label, condition in sample["edges"])
        for expected, answers in sample["answers"].items():
            for said in answers:
                is_question = asks_again(said) and not any(map(takes_questions, edges))
                edge = None if is_question else best_edge(said, edges, sample["question"])
                got = edge.label if edge else "again" if asks_again(said) else ""
                (understood if got == expected else wrong if got else asked).append((said, got))
    assert wrong == []
    assert len(understood) >= 60
    assert len(asked) <= 5, asked
