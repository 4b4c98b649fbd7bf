"""What is extracted from a caller's words, and above all what isn't."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapi.engine.actions import Extract, Message
from voiceapi.engine.extraction import Variable, VariableType
from voiceapi.llm.scripted import Scripted
from voiceapi.llm.understanding.spoken_values import find_values

EDGE_TAKEN: Message = {"role": "tool", "content": '{"status": "done"}', "tool_call_id": "call_1"}


def values(*said: str | Message, variables: tuple[Variable, ...]) -> Any:
    messages = tuple({"role": "user", "content": text} if isinstance(text, str) else text for text in said)
    return Scripted().extract(Extract(1, 0.0, "n", "N", variables, "", messages)).values


@pytest.mark.parametrize(
    ("type", "name", "hint", "said", "value"),
    [
        ("string", "name", "the caller's name", "My name is Ada Lovelace", "Ada Lovelace"),
        ("string", "name", "", "my name's Ada and I live in London", "Ada"),
        ("string", "name", "", "this is Ada speaking", "Ada"),
        ("string", "name", "", "yes, I'm Ada", "Ada"),
        ("string", "first_name", "", "Ada.", "Ada"),
        ("string", "full_name", "", "Jean-Luc O'Neill", "Jean-Luc O'Neill"),
        ("string", "name", "", "I'm not sure", None),
        ("string", "name", "", "I'm busy", None),
        ("string", "name", "", "yes", None),
        ("string", "name", "", "Thursday", None),
        ("string", "name", "", "who is this?", None),
        ("string", "name", "", "why do you want to know my name", None),
        ("string", "email", "", "it's ada@example.com.", "ada@example.com"),
        ("string", "contact", "their e-mail address", "ada dot l at example dot co dot uk", "ada.l@example.co.uk"),
        ("string", "email", "", "I have none", None),
        ("string", "phone", "", "plus four four, two oh seven", None),
        ("string", "phone", "", "two zero two, five five five, zero one two three", "2025550123"),
        ("string", "phone_number", "", "+1 (202) 555-0123", "+12025550123"),
        ("string", "phone", "", "call me later", None),
        ("string", "new_day", "Agreed weekday", "new day: Friday, agreed", "Friday"),
        ("string", "day", "", "not Thursday, next Monday please", "next Monday"),
        ("string", "date", "", "how about the 5th of May", "the 5th of May"),
        ("string", "date", "", "May 5th, 2027 is fine", "May 5th, 2027"),
        ("string", "date", "", "2027-05-05", "2027-05-05"),
        ("string", "date", "", "whenever", None),
        ("string", "time", "", "at half past seven", "half past seven"),
        ("string", "time", "", "7:30 pm would be good", "7:30 pm"),
        ("string", "time", "", "any time", None),
        ("string", "outcome", "kept, moved or cancelled", "Could we have it moved to Friday?", "moved"),
        ("string", "matters_most", "price, speed or quality", "not price, speed", "speed"),
        ("string", "matters_most", "price, speed or quality", "price and speed", None),
        ("string", "matters_most", "price, speed or quality", "I do not know", None),
        ("string", "reason", "Main reason", "it was too slow for what I do", "it was too slow for what I do"),
        ("string", "reason", "Main reason", "I don't know", None),
        ("string", "reason", "Main reason", "no", None),
        ("string", "reason", "Main reason", "what do you mean?", None),
        ("string", "comment", "", "", None),
        ("number", "companions", "how many people come along", "two of us", 2),
        ("number", "companions", "how many people come along", "six, not five", 6),
        ("number", "companions", "how many people come along", "one moment please", None),
        ("number", "companions", "how many people come along", "no one", None),
        ("number", "companions", "how many people come along", "I don't know", None),
        ("number", "degrees", "", "minus five", -5),
        ("number", "seats", "Number of seats", "12 seats for 2000 euro", 12),
        ("boolean", "wants_invoice", "whether they want an invoice", "no invoice, but yes to the newsletter", False),
        ("boolean", "wants_invoice", "", "I'd love to", True),
        ("boolean", "wants_invoice", "", "not really", False),
        ("boolean", "wants_invoice", "", "why not", True),
        ("boolean", "wants_invoice", "", "I don't know", None),
        ("boolean", "wants_invoice", "", "I'm not sure", None),
        ("boolean", "wants_invoice", "", "what invoice?", None),
        ("boolean", "wants_invoice", "", "maybe", None),
        ("boolean", "wants_invoice", "", "two of us", None),
    ],
)  # fmt: skip
def test_a_value_is_what_was_said(type: VariableType, name: str, hint: str, said: str, value: Any) -> None:
    assert values(said, variables=(Variable(name, type, hint),)) == ({} if value is None else {name: value})


def test_an_answer_to_an_earlier_question_is_no_value() -> None:
    name, age, agreed, why = (
        Variable("name", "string"), Variable("age", "number"), Variable("agreed", "boolean"), Variable("why", "string")
    )  # fmt: skip
    said = ("yes, for three", EDGE_TAKEN, "hm")
    assert values(*said, variables=(name, age, agreed, why)) == {}
    assert values("we are three people", EDGE_TAKEN, variables=(Variable("people", "number"),)) == {"people": 3}
    assert values("my name is Ada", EDGE_TAKEN, "yes", variables=(name, agreed)) == {"name": "Ada", "agreed": True}
    assert values("I have no time", EDGE_TAKEN, variables=(why,)) == {}


def test_an_answer_that_could_be_of_two_variables_is_of_neither() -> None:
    seats, budget = Variable("seats", "number", "Number of seats"), Variable("budget", "number", "Budget in euro")
    assert values("five", variables=(seats, budget)) == {}
    assert values("five seats", variables=(seats, budget)) == {"seats": 5}
    likes, dislikes = Variable("likes", "string"), Variable("dislikes", "string")
    assert values("the colour of it", variables=(likes, dislikes)) == {}
    newsletter, invoice = Variable("newsletter", "boolean"), Variable("invoice", "boolean")
    assert values("yes", variables=(newsletter, invoice)) == {}
    assert values("an invoice, yes please, no newsletter", variables=(newsletter, invoice)) == {"newsletter": False}


def test_a_number_that_the_node_asks_for() -> None:
    people = Variable("companions", "number", "how many people come along")
    number = Variable("number", "number", "the number that they say")
    rating = Variable("rating", "number", "how happy they are, from 1 to 5")
    said = {"a 4 I guess": 4, "zero": 0, "0": 0, "none": 0, "nobody else": 0, "just me": 0, "zwei": 2, "maybe three": 3}
    assert {text: find_values([people], [text], [], "Who comes with you?").get(people.name) for text in said} == said
    asked = "Please say a number between one and ten."
    said = {"a 4 I guess": 4, "zwei": 2, "minus one": None, "eleven": None, "0": None, "ten": 10}
    assert {text: find_values([number], [text], [], asked).get(number.name) for text in said} == said
    assert [find_values([rating], [text], []) for text in ("six", "five")] == [{}, {"rating": 5}]
    guests = Variable("guests", "number", "how many guests come")
    assert find_values([guests], ["just me"], [], "How many of you will come?") == {"guests": 1}
    assert find_values([guests], ["um, once"], []) == {}
