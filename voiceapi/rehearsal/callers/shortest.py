"""The shortest conversation that shows something, as a case that does so again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from ..cases import Case, CaseResult, ExpectedOutcome, ToolAnswer
from ..conduct import run_case
from ..subject import Subject
from .improvised import Held

# How often a conversation is held again to make it shorter.
MOST_TRIALS = 200


def shortest(
    subject: Subject,
    held: Iterable[Held],
    is_in: Callable[[CaseResult], bool],
    may_go_on: Callable[[], bool] = lambda: True,
) -> tuple[Case, CaseResult] | None:
    """The conversation with the fewest turns for which `is_in` is true, without those that can be left out.

    None if there is no such conversation.

    :param may_go_on: false when there is no time left to make it shorter.
    """
    found = min((each for each in held if is_in(each.result)), key=lambda each: len(each.case.turns), default=None)
    if found is None:
        return None
    case = replace(found.case, tools=tuple(replace(each, optional=True) for each in found.case.tools))
    result = found.result
    trials, place = 0, len(case.turns) - 1
    while place >= 0 and trials < MOST_TRIALS and may_go_on():
        shorter = replace(case, turns=(*case.turns[:place], *case.turns[place + 1 :]))
        trial = run_case(subject, shorter)
        trials += 1
        if trial.passed and is_in(trial):
            # What had to be there before may be left out now.
            case, result, place = shorter, trial, len(shorter.turns)
        place -= 1
    return replace(case, tools=_called(case.tools, result)), result


def as_expected(case: Case, result: CaseResult) -> Case:
    """The case with what happened in it as what is expected: where it stood after each turn, and how it ended."""
    # Of the lines of a turn the last one names the node at which it ended.
    nodes = {line.place: line.node_id for line in result.dialogue}
    turns = tuple(replace(turn, node=nodes[f"turns.{index}"]) for index, turn in enumerate(case.turns))
    return replace(case, turns=turns, expect=ExpectedOutcome(disposition=result.disposition))


def _called(answers: tuple[ToolAnswer, ...], result: CaseResult) -> tuple[ToolAnswer, ...]:
    """Of each tool as many answers as it was called, which the case then demands."""
    calls = Counter(line.text.split(" ", 1)[0] for line in result.dialogue if line.role == "tool")
    kept = []
    for answer in answers:
        if calls[answer.tool] > 0:
            calls[answer.tool] -= 1
            kept.append(replace(answer, optional=False))
    return tuple(kept)
