"""Replies that are spoken while the model still writes them, each test once for every row of `lines`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lines import Line, Verb
from streamed import Calling, Gate, Writer

from tests.telephony.carriers.test_contract import HELLO, disposition, log_of, menu, names, spoken
from voiceapi.engine.phrases import phrases
from voiceapi.http_client import RequestFailed
from voiceapi.service import Service
from voiceapi.store.runs import RunEvent, Turn

FIRST, SECOND = "I have noted that for you now.", "We will send you a letter about it."
QUESTION = "Is there anything else?"
BROKEN = RequestFailed("connection", "The server broke its answer off.", sent=True)
WAIT = phrases({})["wait"]


def digits(talk: Callable[..., Any]) -> Any:
    """The definition of `talk`, whose first node asks for a number of several digits."""
    people = {"name": "people", "type": "number", "prompt": "How many come."}
    return talk(path="line", extraction_enabled=True, extraction_variables=[people])


def yes_or_no(talk: Callable[..., Any]) -> Any:
    return talk(path="line")


@pytest.fixture
def writes(service: Service) -> Callable[..., Writer]:
    """Lets a model write these replies, one a request, each piece by piece."""

    def write(*replies: Any) -> Writer:
        writer = Writer(*replies)
        object.__setattr__(service, "model", writer.model)
        return writer

    return write


def goes_on(call: Any) -> list[Verb]:
    """Follow the redirect of the last document."""
    verbs: list[Verb] = call.hear(call.send(call.line.webhook("turns", "answered", call.next)))
    return verbs


def listening(verbs: list[Verb]) -> Any:
    (verb,) = (verb for verb in verbs if verb.name == "listen")
    return verb.inputs, verb.hints, verb.keys


@pytest.mark.parametrize("definition", [yes_or_no, menu, digits])
def test_the_first_sentence_is_spoken_while_the_model_still_writes(
    dial: Callable[..., Any], talk: Callable[..., Any], writes: Callable[..., Writer], definition: Callable[..., Any]
) -> None:
    """The rest comes in the next document, which listens as one with the whole reply."""
    call, gate = dial(definition(talk)), Gate()
    call.answered()
    rest = f"Well then. {QUESTION}"
    whole = f"{FIRST} {rest}"
    writer = writes([QUESTION], [f"{FIRST} ", "Well ", gate, "then. ", QUESTION], [QUESTION])
    as_usual = call.says("Hm.")
    verbs = call.says("Well.")
    assert (spoken(verbs), names(verbs)) == ([FIRST], ["redirect"])
    gate.open()
    verbs = goes_on(call)
    assert (" ".join(spoken(verbs)), names(verbs)) == (rest, ["listen"])
    assert listening(verbs) == listening(as_usual)
    call.hear(call.send(call.line.keys(call.next, "1")))
    assert call.transcript == [HELLO, "Hm.", QUESTION, "Well.", whole, "1", QUESTION]
    told = [message["content"] for message in writer.asked[-1]["messages"] if message["role"] == "assistant"]
    assert told == [HELLO, QUESTION, whole]
    with call.service.store.session():
        assert [turn.given for turn in Turn.select().order_by(Turn.number)] == [[], [], [1], []]
    call.status("completed")
    assert (disposition(call), call.transcript[4]) == (("completed", "user_hangup"), whole)
    assert writer.left == 0
    with call.service.store.session():
        events = RunEvent.select().where(RunEvent.type == "rtf-latency-measured").order_by(RunEvent.id)
        waits = [event.payload for event in events]
    assert ["last_sentence_seconds" in each for each in waits] == [False, True, False]
    assert 0 <= waits[1]["latency_seconds"] <= waits[1]["last_sentence_seconds"]


def test_the_first_sentence_of_a_call(
    dial: Callable[..., Any], talk: Callable[..., Any], writes: Callable[..., Writer]
) -> None:
    """Where no greeting is written, the model opens the call."""
    call, gate = dial(talk(path="line", greeting="")), Gate()
    writes([f"{FIRST} Is ", gate, "now a good time?"])
    verbs = call.answered()
    assert (spoken(verbs), names(verbs)) == ([FIRST], ["redirect"])
    gate.open()
    verbs = goes_on(call)
    assert (spoken(verbs), names(verbs)) == (["Is now a good time?"], ["listen"])
    assert call.transcript == [f"{FIRST} Is now a good time?"]


def test_sentences_that_are_whole_go_together(dial: Callable[..., Any], writes: Callable[..., Writer]) -> None:
    """Each document has all that is ready, and the last one listens."""
    call, gates = dial(), [Gate(), Gate()]
    call.answered()
    writes(["Thank you. ", FIRST, " We", gates[0], " will send you a letter about it. And", gates[1], " goodbye."])
    verbs = call.says("Hm.")
    assert (spoken(verbs), names(verbs)) == ([f"Thank you. {FIRST}"], ["redirect"])
    gates[0].open()
    verbs = goes_on(call)
    assert (spoken(verbs), names(verbs)) == ([SECOND], ["redirect"])
    gates[1].open()
    verbs = goes_on(call)
    assert (spoken(verbs), names(verbs)) == (["And goodbye."], ["listen"])
    assert call.transcript == [HELLO, "Hm.", f"Thank you. {FIRST} {SECOND} And goodbye."]


def test_a_reply_of_one_sentence_goes_whole(dial: Callable[..., Any], writes: Callable[..., Writer]) -> None:
    call = dial()
    call.answered()
    writes([FIRST])
    verbs = call.says("Hm.")
    assert (spoken(verbs), names(verbs)) == ([FIRST], ["listen"])


def held_back(call: Any, gate: Gate, service: Service, monkeypatch: pytest.MonkeyPatch) -> list[Verb]:
    """What the caller gets of a reply of which nothing goes ahead, after they were asked to wait."""
    monkeypatch.setattr(service.slow_jobs, "wait_seconds", 0.02)
    verbs = call.says("Hm.")
    assert gate.reached.wait(60)
    assert (spoken(verbs), names(verbs)) == ([WAIT], ["redirect"])
    verbs = goes_on(call)
    assert names(verbs) == ["redirect"]
    service.slow_jobs.wait_seconds = 10
    gate.open()
    return goes_on(call)


@pytest.mark.parametrize("begins", [f"{QUESTION} {FIRST} And", f"Yes. {QUESTION} {FIRST} And", "Thank you. And"])
def test_neither_a_question_nor_a_short_sentence_goes_ahead(
    dial: Callable[..., Any],
    writes: Callable[..., Writer],
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    begins: str,
) -> None:
    call, gate = dial(), Gate()
    call.answered()
    writes([begins, gate, " goodbye."])
    verbs = held_back(call, gate, service, monkeypatch)
    assert (" ".join(spoken(verbs)), names(verbs)) == (f"{begins} goodbye.", ["listen"])


def test_a_node_that_gives_replies_out_whole(
    dial: Callable[..., Any],
    talk: Callable[..., Any],
    writes: Callable[..., Writer],
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call, gate = dial(talk(path="line", first_sentence="off")), Gate()
    call.answered()
    writes([f"{FIRST} And", gate, " goodbye."])
    verbs = held_back(call, gate, service, monkeypatch)
    assert (spoken(verbs), names(verbs)) == ([f"{FIRST} And goodbye."], ["listen"])


def test_a_caller_is_asked_to_wait_between_the_parts(
    dial: Callable[..., Any], writes: Callable[..., Writer], service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, gate = dial(), Gate()
    call.answered()
    writes([f"{FIRST} We", gate, SECOND.removeprefix("We")])
    assert spoken(call.says("Hm.")) == [FIRST]
    monkeypatch.setattr(service.slow_jobs, "wait_seconds", 0.02)
    verbs = goes_on(call)
    assert (spoken(verbs), names(verbs)) == ([WAIT], ["redirect"])
    service.slow_jobs.wait_seconds = 10
    gate.open()
    verbs = goes_on(call)
    assert (spoken(verbs), names(verbs)) == ([SECOND], ["listen"])
    assert call.transcript == [HELLO, "Hm.", WAIT, f"{FIRST} {SECOND}"]


def test_a_function_that_is_called_after_words(dial: Callable[..., Any], writes: Callable[..., Writer]) -> None:
    """It is carried out once, when the reply has ended, and the words before it are spoken."""
    call, gates = dial(), [Gate(), Gate()]
    call.answered()
    writes([f"{FIRST} That", gates[0], " is all.", Calling("Yes")], [f"{SECOND} And", gates[1], " goodbye."])
    verbs = call.says("yes")
    assert (spoken(verbs), names(verbs)) == ([FIRST], ["redirect"])
    assert log_of(call, "rtf-function-call-start", "function_name") == []
    gates[0].open()
    verbs = goes_on(call)
    assert (spoken(verbs), names(verbs)) == (["That is all.", SECOND], ["redirect"])
    gates[1].open()
    verbs = goes_on(call)
    assert (spoken(verbs), names(verbs)) == (["And goodbye."], ["hangup"])
    assert len(log_of(call, "rtf-function-call-start", "function_name")) == 1
    call.status("completed")
    assert disposition(call) == ("completed", "user_qualified")
    assert call.transcript == [HELLO, "yes", f"{FIRST} That is all.", f"{SECOND} And goodbye."]


@pytest.mark.parametrize("end", ["", "Then we will"])
def test_a_reply_that_breaks_off_ends_with_its_last_whole_sentence(
    dial: Callable[..., Any], writes: Callable[..., Writer], end: str
) -> None:
    """It isn't asked for again, since the caller has heard how it begins."""
    call, gate = dial(), Gate()
    call.answered()
    writer = writes([f"{FIRST} And", gate, f" so on. {end}" if end else " then", BROKEN], [QUESTION])
    assert spoken(call.says("Hm.")) == [FIRST]
    gate.open()
    verbs = goes_on(call)
    rest = "And so on." if end else ""
    assert (" ".join(spoken(verbs)), names(verbs)) == (rest, ["listen"])
    assert len(writer.asked) == 1
    (noted,) = log_of(call, "rtf-pipeline-error", "error")
    assert noted.startswith("The server broke its answer off; ")
    assert spoken(call.says("Well.")) == [QUESTION]
    assert call.transcript == [HELLO, "Hm.", f"{FIRST} {rest}".strip(), "Well.", QUESTION]


def test_a_reply_that_breaks_off_before_anything_was_given_out_is_asked_for_again(
    dial: Callable[..., Any], writes: Callable[..., Writer]
) -> None:
    call = dial()
    call.answered()
    writer = writes(["I have noted", BROKEN], [f"{FIRST} ", QUESTION])
    verbs = call.says("Hm.")
    while names(verbs) == ["redirect"]:
        verbs += goes_on(call)
        verbs = [verb for verb in verbs if verb.name != "redirect"]
    assert (" ".join(spoken(verbs)), len(writer.asked)) == (f"{FIRST} {QUESTION}", 2)
    assert call.transcript == [HELLO, "Hm.", f"{FIRST} {QUESTION}"]


def test_a_caller_who_hangs_up_between_the_parts(
    dial: Callable[..., Any], writes: Callable[..., Writer], service: Service, wait_for: Callable[..., Any]
) -> None:
    """What was given out is kept; the request to the model is closed, and what it still writes is dropped."""
    call, gate = dial(), Gate()
    call.answered()
    writer = writes([f"{FIRST} We", gate, f"{SECOND.removeprefix('We')} And", " then", " we'll see."])
    assert spoken(call.says("Hm.")) == [FIRST]
    call.status("completed")
    gate.open()
    wait_for(lambda: not service.slow_jobs._running)
    verbs = goes_on(call)
    assert (spoken(verbs), names(verbs)) == ([], ["hangup"])
    assert disposition(call) == ("completed", "user_hangup")
    assert call.transcript == [HELLO, "Hm.", FIRST]
    assert writer.left == 1


def test_every_address_that_is_asked_twice_gives_the_same(
    line: Line, dial: Callable[..., Any], writes: Callable[..., Writer]
) -> None:
    """While the model writes, and after it has ended; nothing is stored twice."""
    call, gates = dial(), [Gate(), Gate()]
    call.answered()
    writes([f"{FIRST} We", gates[0], f"{SECOND.removeprefix('We')} And", gates[1], " goodbye."])
    requests, answers = [line.words(call.next, "Hm.")], []
    for gate in [*gates, None]:
        first, second = call.send(requests[-1]), call.send(requests[-1])
        assert first.data == second.data
        answers.append(first.data)
        call.hear(first)
        if gate is not None:
            gate.open()
            requests.append(line.webhook("turns", "answered", call.next))
    assert len({request.url for request in requests}) == 3
    stored = call.stored
    assert [call.send(request).data for request in requests] == answers
    assert [text for answer in answers for text in spoken(line.read(answer))] == [FIRST, SECOND, "And goodbye."]
    assert call.stored == stored
    assert call.transcript == [HELLO, "Hm.", f"{FIRST} {SECOND} And goodbye."]
