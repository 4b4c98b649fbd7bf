"""The conversation by which a finding is shown: the shortest one that shows it, and that can be held again."""

from __future__ import annotations

from tests.rehearsal.broken_agents import BROKEN
from voiceapi.rehearsal.callers.improvised import Held
from voiceapi.rehearsal.callers.shortest import shortest
from voiceapi.rehearsal.cases import Case, Decision, FunctionCall, Turn
from voiceapi.rehearsal.conduct import run_case
from voiceapi.rehearsal.result import CaseResult

AGENT = BROKEN["a question deep inside without an edge"].subject


def held(*turns: Turn) -> Held:
    case = Case("a", turns, Turn(decisions=(Decision("Do you want to come?"),)), "played")
    result = run_case(AGENT, case)
    assert result.passed
    return Held(case, result, "user_hangup", ())


def choosing(label: str, then: Decision) -> Turn:
    """A turn in which the model chooses an edge; `then` is what it does at the next node."""
    return Turn(says=label, decisions=(Decision(calls=(FunctionCall(edge=label),)), then))


YES = choosing("Yes", Decision("Red or blue?"))
FAILING = choosing("Red", Decision(fails="It is down."))
HM = Turn(says="Hm.", decisions=(Decision("Sorry?"),))


def has_error(result: CaseResult) -> bool:
    return any(line.role == "error" for line in result.dialogue)


def test_what_the_model_could_not_have_decided_otherwise_stays() -> None:
    """Without the yes the model would be at a node that hasn't the red edge, which is an error as well."""
    example = shortest(AGENT, [held(HM, YES, HM, FAILING, HM)], has_error)
    assert example is not None
    case, result = example
    assert (case.turns, result.passed) == ((YES, FAILING), True)


def test_without_time_the_shortest_conversation_is_shown_as_it_was() -> None:
    conversations = [held(YES, HM, HM, FAILING), held(HM, YES, FAILING), held(YES, HM)]
    example = shortest(AGENT, conversations, has_error, lambda: False)
    assert example == (conversations[1].case, conversations[1].result)
