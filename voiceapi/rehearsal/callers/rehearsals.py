"""Rehearses an agent with played callers: random ones, which find dead ends, or one described in a sentence."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ...engine.ports import LanguageModel
from ...engine.validation.outline import Outline
from ...errors import NotPossible
from ...llm import model_needs, selection
from ...llm.scripted import Scripted
from ...service import Service
from ..cases import ModelKind
from ..subject import Subject
from . import judging
from .defects import Evidence, Tries
from .failures import errors, not_understood, uncalled_tools
from .improvised import Given, Held, case_of, hold
from .random_caller import RandomCaller
from .random_model import RandomModel
from .report import Finding, Rehearsed, Report, in_order
from .shortest import shortest
from .spoken_caller import SpokenCaller
from .traps import traps

# The most conversations of one request, and of one command.
MOST_SPOKEN, MOST_RANDOM = 20, 500
MOST_OF_COMMAND = 10_000
# How many conversations with a language model are held at a time.
AT_A_TIME = 4
MOST_FINDINGS = 50
LARGEST_SEED = 2**31 - 1
NO_MODEL = (
    "A caller described in a sentence is spoken by a language model, and none is configured that can do it. Random "
    "callers need none."
)


@dataclass(frozen=True)
class Course:
    """How a rehearsal goes.

    :param seed: what all that is random in it begins with.
    :param deadline: on the monotonic clock; conversations that have not begun by then are left out. None for no end.
    :param note: called with how many conversations are held, after each.
    """

    conversations: int
    seed: int
    given: Given = field(default_factory=Given)
    deadline: float | None = None
    note: Callable[[int], Any] = lambda _: None

    def may_go_on(self) -> bool:
        return self.deadline is None or time.monotonic() < self.deadline

    def random(self, number: int) -> Random:
        """The random source of one conversation."""
        return Random(f"{self.seed}:{number}")

    def seed_of(self, number: int) -> int:
        """The seed for the server of a language model in one conversation, so that each is another one."""
        return (self.seed + number) % (LARGEST_SEED + 1)


def new_seed() -> int:
    """A seed for a rehearsal that names none: short, because people type it again."""
    return secrets.randbelow(1_000_000)


def speaker_of(subject: Subject) -> ModelKind:
    """What speaks for an agent in random conversations.

    The scripted model where it speaks in calls, too; else a random one, for an agent with a language model, or with
    prompts that are instructions to one.
    """
    if subject.model is not None and not selection.is_scripted(subject.model):
        return "played"
    needs = (finding.message for finding in model_needs.model_needs(Outline.of(subject.definition)))
    instructions = (model_needs.INSTRUCTION, model_needs.ONLY_GREETING)
    return "played" if any(message in instructions for message in needs) else "scripted"


# -- random callers


def with_random_callers(subject: Subject, course: Course, model: ModelKind | None = None) -> Report:
    """Rehearse with random callers; nothing leaves the process. The same course gives the same conversations.

    :param model: "scripted" or "played", which is a random one; None for that of `speaker_of`.
    """
    model = model or speaker_of(subject)
    tries, of_model = Tries(subject.graph), Tries(subject.graph)
    held: list[Held] = []
    while len(held) < course.conversations and course.may_go_on():
        number = len(held)
        random = course.random(number)
        caller = RandomCaller(subject.graph, random, tries)
        speaker: LanguageModel = Scripted() if model == "scripted" else RandomModel(subject.graph, random, of_model)
        held.append(hold(subject, case_of(f"Conversation {number + 1}", model), caller, speaker, course.given, random))
        course.note(len(held))
    evidence = Evidence(subject, model, held, tries)
    defects = [*errors(evidence), *traps(evidence), *uncalled_tools(evidence)]
    defects += not_understood(evidence) if model == "scripted" else []
    chosen = in_order(defects)[:MOST_FINDINGS]
    findings = [Finding(each, shortest(subject, held, each.is_in, course.may_go_on)) for each in chosen]
    return Report(subject, None, model, course.seed, course.conversations, held, findings, len(defects) - len(chosen))


# -- a caller described in a sentence


def with_spoken_callers(
    service: Service,
    organization: int | None,
    subject: Subject,
    sentence: str,
    course: Course,
) -> Report:
    """Rehearse with callers whom the configured language model speaks, and have the conversations judged.

    Call it outside any transaction, because it waits for models.

    :raises NotPossible: when no language model is configured.
    """
    model: Any = subject.model
    if model is None or not callable(getattr(model, "complete", None)):
        raise NotPossible(NO_MODEL)
    judges, problems = judging.judges_of(service, organization, subject.definition, subject.configurations)
    sleep = service.workers.stopping.wait
    interrupted = threading.Event()

    def may_go_on() -> bool:
        return course.may_go_on() and not interrupted.is_set()

    def rehearse(number: int) -> Rehearsed | None:
        if not may_go_on():
            return None
        seed = course.seed_of(number)
        speaker = judging.seeded(model, seed)
        caller = SpokenCaller(sentence, speaker, may_go_on, sleep)
        case = case_of(f"Conversation {number + 1}", "configured")
        held = hold(subject, case, caller, speaker, course.given, course.random(number))
        if caller.failure or not judges or not may_go_on():
            return Rehearsed(held, None, caller.failure)
        return Rehearsed(held, judging.judge(judges, held, subject.definition, seed, sleep))

    # Its connection to the database is for others while this thread waits.
    service.store.release()
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        jobs = [pool.submit(rehearse, number) for number in range(course.conversations)]
        try:
            for done, _ in enumerate(as_completed(jobs), 1):
                course.note(done)
        except BaseException:  # an interrupt ends what hasn't begun, and what has before it asks again
            interrupted.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    spoken = [found for job in jobs if (found := job.result()) is not None]
    held = [each.held for each in spoken]
    evidence = Evidence(subject, "configured", held, Tries(subject.graph))
    findings = [_as_held(each, held) for each in in_order([*errors(evidence)])[:MOST_FINDINGS]]
    reasons = [error for each in spoken if each.judgement for error in each.judgement.errors]
    failures = [f"The caller's model failed: {each.failure}" for each in spoken if each.failure]
    problems = list(dict.fromkeys([*problems, *failures, *reasons]))
    return Report(
        subject,
        sentence,
        "configured",
        course.seed,
        course.conversations,
        held,
        findings,
        spoken=spoken,
        problems=problems,
    )


def _as_held(defect: Any, held: list[Held]) -> Finding:
    """The finding with the shortest of these conversations; with another model none of them could be held again."""
    there = min((each for each in held if defect.is_in(each.result)), key=lambda each: len(each.case.turns))
    return Finding(defect, (there.case, there.result))
