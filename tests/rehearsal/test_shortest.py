"""The conversation by which a finding is shown: the shortest one that shows it, and that can be held again."""

from __future__ import annotations

from tests.rehearsal.broken_agents import BROKEN
from voiceapi.rehearsal.callers.improvised import Held
from voiceapi.rehearsal.callers.shortest import shortest
from voiceapi.rehearsal.cases import Case, CaseResult, CaseTurn, PlayedCall, PlayedDecision
from voiceapi.rehearsal.conduct import run_case

AGENT = BROKEN["a question deep inside without an edge"].subject


def held(*turns: CaseTurn) -> Held:
    case = Case("a", turns, CaseTurn(decisions=(PlayedDecision("Do you want to come?"),)), "played")
    result = run_case(AGENT, case)
    assert result.passed
    return Held(case, result, "user_hangup", ())


def choosing(label: str, then: PlayedDecision) -> CaseTurn:
    """A turn in which the model chooses an edge; `then` is what it does at the next node."""
    return CaseTurn(says=label, decisions=(PlayedDecision(calls=(PlayedCall(edge=label),)), then))


YES = choosing("Yes", PlayedDecision("Red or blue?"))
FAILING = choosing("Red", PlayedDecision(fails="It is down."))
HM = CaseTurn(says="Hm.", decisions=(PlayedDecision("Sorry?"),))


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
