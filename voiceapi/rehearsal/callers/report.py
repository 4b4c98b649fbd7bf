"""The report of a rehearsal: its conversations, and the defects found in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..case_writing import case_data
from ..cases import Case, CaseResult, ModelKind
from ..conduct import run_case
from ..coverage import Coverage
from ..subject import Subject
from .defects import CODES, Defect
from .improvised import Held
from .judging import Judgement
from .shortest import as_expected


@dataclass(frozen=True)
class FoundDefect:
    """A defect, and the shortest conversation that shows it, if one does."""

    defect: Defect
    example: tuple[Case, CaseResult] | None


@dataclass(frozen=True)
class Rehearsed:
    """A conversation with a caller who is spoken by a language model.

    :param failure: why that model could not go on; empty if it could.
    """

    held: Held
    judgement: Judgement | None = None
    failure: str = ""

    @property
    def score(self) -> float | None:
        return self.judgement.score if self.judgement else None

    @property
    def has_failed(self) -> bool:
        return bool(self.failure) or any(line.role == "error" for line in self.held.result.dialogue)


@dataclass(frozen=True)
class RehearsalReport:
    """The report of a rehearsal: its conversations, and the defects found in them.

    :param caller: the sentence that describes the callers; None for random ones.
    :param model: what spoke for the agent.
    :param asked: how many conversations were asked for; for more than were held there was no time, or no turns.
    :param left_out: how many findings more there are.
    :param spoken: the conversations with callers that were spoken by a model.
    :param problems: why the conversations, or some of them, weren't judged.
    """

    subject: Subject
    caller: str | None
    model: ModelKind
    seed: int
    asked: int
    held: Sequence[Held]
    findings: Sequence[FoundDefect] = ()
    left_out: int = 0
    spoken: Sequence[Rehearsed] = ()
    problems: Sequence[str] = ()

    @property
    def coverage(self) -> Coverage:
        return Coverage.of(self.subject.graph, (each.result for each in self.held))

    @property
    def dispositions(self) -> dict[str, int]:
        """How often conversations ended how, the most frequent first."""
        return dict(Counter(str(each.result.disposition) for each in self.held).most_common())

    @property
    def worst(self) -> int | None:
        """The index of the worst conversation: one that failed, else that with the lowest score, else the first."""
        places = range(len(self.spoken))
        return min(places, key=self._rank, default=None)

    def _rank(self, place: int) -> tuple[bool, float, bool]:
        each = self.spoken[place]
        return (
            not each.has_failed,
            float("inf") if each.score is None else each.score,
            each.held.reason in ("user_qualified", "transfer_call"),
        )

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON data."""
        coverage = self.coverage
        return {
            "caller": self.caller,
            "model": self.model,
            "seed": self.seed,
            "asked": self.asked,
            "conversations": len(self.held),
            "dispositions": self.dispositions,
            "nodes": [asdict(part) for part in coverage.nodes.parts],
            "coverage": coverage.as_dict(),
            "findings": [self._finding(each) for each in self.findings],
            "findings_left_out": self.left_out,
            "scores": self._scores() if self.caller is not None else None,
            "results": [self._summary(place) for place in range(len(self.spoken))],
            "worst": None if self.worst is None else self._conversation(self.worst),
        }

    def _finding(self, finding: FoundDefect) -> dict[str, Any]:
        defect, (case, result) = finding.defect, finding.example or (None, None)
        return {
            "code": defect.code,
            "node_ids": list(defect.nodes),
            "tool": defect.tool,
            "message": defect.message,
            "count": defect.count,
            "dialogue": [asdict(line) for line in result.dialogue] if result else [],
            "case": self._case(case, result) if case and result else None,
        }

    def _scores(self) -> dict[str, Any]:
        scores = [each.score for each in self.spoken if each.score is not None]
        tags = Counter(tag for each in self.spoken if each.judgement for tag in each.judgement.tags)
        return {
            "judged": len(scores),
            "lowest": min(scores, default=None),
            "mean": round(sum(scores) / len(scores), 2) if scores else None,
            "highest": max(scores, default=None),
            "tags": dict(tags.most_common()),
            "problems": list(self.problems),
        }

    def _summary(self, place: int) -> dict[str, Any]:
        """A conversation without its dialogue; they are counted from 1."""
        each = self.spoken[place]
        return {
            "number": place + 1,
            "disposition": each.held.result.disposition,
            "turns": len(each.held.case.turns),
            "score": each.score,
            "summary": " ".join(each.judgement.summaries) if each.judgement else "",
            "tags": list(each.judgement.tags) if each.judgement else [],
            "failure": each.failure or None,
        }

    def _conversation(self, place: int) -> dict[str, Any]:
        held = self.spoken[place].held
        dialogue = [asdict(line) for line in held.result.dialogue]
        return {**self._summary(place), "dialogue": dialogue, "case": self._case(held.case, held.result)}

    def _case(self, case: Case, result: CaseResult) -> dict[str, Any] | None:
        """The case as a file has it, expecting what happened; None if a language model did in it what none can play.

        That is such as a call of a function that isn't there.
        """
        expected = as_expected(case, result)
        again = run_case(self.subject, expected)
        return case_data(expected) if again.passed and again.dialogue == result.dialogue else None


def in_order(defects: Sequence[Defect]) -> list[Defect]:
    """The defects by how grave they are, and of each kind the most frequent first."""
    return sorted(defects, key=lambda each: (CODES.index(each.code), -each.count))
