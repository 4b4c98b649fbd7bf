"""Rehearses an agent with practice callers: random ones, which find dead ends, or one described in a sentence."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Literal

from ...engine.actions import LanguageModel
from ...engine.validation.outline import Outline
from ...errors import NotPossible
from ...llm import model_needs, selection
from ...llm.scripted import Scripted
from ...service import Service
from ...store.workflows import WorkflowVersion
from ...workflows import versions
from .. import case_file
from ..cases import Case, CaseResult, ModelKind
from ..conduct import run_case
from ..stored_cases import LANE
from ..subject import Subject
from ..testing import MOST_ASKED
from ..testing import MOST_TURNS as MOST_TURNS_IN_ALL
from . import judging
from .defects import Evidence, Tries
from .improvised import MOST_TURNS, Given, Held, PlayedCaller, SpokenCaller, case_of, hold
from .judging import errors, not_understood, traps, uncalled_tools
from .random_caller import RandomCaller, RandomModel
from .report import FoundDefect, RehearsalReport, Rehearsed, in_order
from .shortest import as_expected, shortest

# The most conversations of one request, and of one command.
MOST_SPOKEN, MOST_RANDOM = 20, 500
MOST_OF_COMMAND = 10_000
# The turns of a conversation: the opening, those of a caller, and hanging up.
LONGEST_CONVERSATION = 1 + MOST_TURNS + 1
# How many conversations with a language model are held at a time.
AT_A_TIME = 4
MOST_FINDINGS = 50
LARGEST_SEED = 2**31 - 1
NO_MODEL = (
    "A caller described in a sentence is spoken by a language model, and none is configured that can do it. Random "
    "callers need none."
)
# How long one request may take; the conversations that have not begun by then are left out.
LONGEST_SECONDS = 120.0
LONGEST_NAME = 180


class Turns:
    """The turns that all conversations of one request may have.

    A conversation begins when as many are left as it may need, and returns those that it didn't have.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._held = 0
        self._changed = threading.Condition()

    def begin(self) -> bool:
        """Take the turns of one conversation; False if there are too few of them when all others have ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._left >= LONGEST_CONVERSATION or not self._held)
            if self._left < LONGEST_CONVERSATION:
                return False
            self._left -= LONGEST_CONVERSATION
            self._held += 1
            return True

    def end(self, unused: int) -> None:
        """Return what a conversation left."""
        with self._changed:
            self._left += unused
            self._held -= 1
            self._changed.notify_all()


@dataclass(frozen=True)
class Course:
    """How a rehearsal goes.

    :param seed: what all that is random in it begins with.
    :param deadline: on the monotonic clock; conversations that have not begun by then are left out. None for no end.
    :param turns: of all conversations; those that can't begin are left out. None for as many as there are.
    :param note: called with how many conversations are held, after each.
    """

    conversations: int
    seed: int
    given: Given = field(default_factory=Given)
    deadline: float | None = None
    turns: Turns | None = None
    note: Callable[[int], Any] = lambda _: None

    def may_go_on(self) -> bool:
        return self.deadline is None or time.monotonic() < self.deadline

    def hold(
        self, subject: Subject, case: Case, caller: PlayedCaller, model: LanguageModel, random: Random
    ) -> Held | None:
        """Hold one conversation; None if too few turns are left for it."""
        if self.turns is None:
            return hold(subject, case, caller, model, self.given, random)
        if not self.turns.begin():
            return None
        unused = 0
        try:
            held = hold(subject, case, caller, model, self.given, random)
            unused = LONGEST_CONVERSATION - 1 - len(held.case.turns)
            return held
        finally:
            self.turns.end(unused)

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


def with_random_callers(subject: Subject, course: Course, model: ModelKind | None = None) -> RehearsalReport:
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
        found = course.hold(subject, case_of(f"Conversation {number + 1}", model), caller, speaker, random)
        if found is None:
            break
        held.append(found)
        course.note(len(held))
    evidence = Evidence(subject, model, held, tries)
    defects = [*errors(evidence), *traps(evidence), *uncalled_tools(evidence)]
    defects += not_understood(evidence) if model == "scripted" else []
    chosen = in_order(defects)[:MOST_FINDINGS]
    findings = [FoundDefect(each, shortest(subject, held, each.is_in, course.may_go_on)) for each in chosen]
    return RehearsalReport(
        subject, None, model, course.seed, course.conversations, held, findings, len(defects) - len(chosen)
    )


# -- a caller described in a sentence


def with_spoken_callers(
    service: Service,
    organization: int | None,
    subject: Subject,
    sentence: str,
    course: Course,
) -> RehearsalReport:
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
        held = course.hold(subject, case, caller, speaker, course.random(number))
        if held is None:
            return None
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
    return RehearsalReport(
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


def _as_held(defect: Any, held: list[Held]) -> FoundDefect:
    """The finding with the shortest of these conversations; with another model none of them could be held again."""
    there = min((each for each in held if defect.is_in(each.result)), key=lambda each: len(each.case.turns))
    return FoundDefect(defect, (there.case, there.result))


# -- stored workflows


def rehearse(
    service: Service,
    organization: int,
    workflow_id: int,
    conversations: int,
    *,
    number: int | None = None,
    caller: str | None = None,
    seed: int | None = None,
    model: Literal["scripted", "played"] | None = None,
    given: Given | None = None,
) -> tuple[WorkflowVersion, RehearsalReport]:
    """Rehearse a version of a workflow; nothing is stored, and no tool is called.

    :param number: of the version; None is the draft, or the released version without one.
    :param caller: a sentence that describes the callers; None for random ones.
    :param seed: None for a new one.
    :param model: what speaks for the agent with random callers; None for what does in calls.
    :raises RecordNotFound: when there is no such workflow or version.
    :raises InvalidInput: when the version can't be run.
    :raises NotPossible: when callers are described and no language model is configured.
    :raises OutOfService: when too many slow requests are in progress.
    """
    workflow, version = versions.get_with_version(organization, workflow_id, number)
    versions.load_graph(workflow, version)
    subject = Subject.of_organization(service, organization, version.definition, version.configurations)
    given = given or Given()
    # As in a run, the initial context is laid over the version's variables.
    given = replace(given, context={**version.template_context_variables, **given.context})
    with service.bulkhead.slow(organization, LANE if caller is None else None):
        course = Course(
            conversations,
            new_seed() if seed is None else seed,
            given,
            time.monotonic() + LONGEST_SECONDS,
            Turns(MOST_TURNS_IN_ALL if caller is None else MOST_ASKED),
        )
        if caller is None:
            return version, with_random_callers(subject, course, model)
        return version, with_spoken_callers(service, organization, subject, caller, course)


def read_given(context: Any, fetch: Any, tools: Any) -> Given:
    """What is given of the outside, as a case has it; None is left out.

    :raises InvalidFields: with the places of what is wrong, as in a case.
    """
    members = {"context": context, "fetch": fetch, "tools": tools}
    given = {name: each for name, each in members.items() if each is not None}
    case = case_file.read_case({"name": "rehearsal", **given})
    return Given(case.context, case.fetch, case.tools)


# -- cases of findings: they expect what happened, so they pass until the agent is changed


def cases_of(report: RehearsalReport) -> tuple[list[Case], list[str]]:
    """The cases of the findings, and of the worst conversation with a described caller.

    Also the names of those that can't be told as a case, because a language model did what none can play, such as
    calling a function that isn't there.
    """
    cases: list[Case] = []
    left_out: list[str] = []
    names: set[str] = set()
    for name, case, result in _named(report):
        taken, number = name, 2
        while taken in names:
            taken, number = f"{name} ({number})", number + 1
        names.add(taken)
        named = replace(case, name=taken)
        again = run_case(report.subject, named)
        if again.passed and again.dialogue == result.dialogue:
            cases.append(named)
        else:
            left_out.append(taken)
    return cases, left_out


def _named(report: RehearsalReport) -> Iterator[tuple[str, Case, CaseResult]]:
    graph = report.subject.graph
    for finding in report.findings:
        if finding.example is not None:
            defect, (case, result) = finding.defect, finding.example
            place = ", ".join(graph.node(id).name for id in defect.nodes)
            tool = f" ({defect.tool})" if defect.tool else ""
            name = f"{defect.code}: {place}{tool}"[:LONGEST_NAME].strip()
            yield name, as_expected(case, result), result
    if (place_of_worst := report.worst) is not None:
        held = report.spoken[place_of_worst].held
        yield held.case.name, as_expected(held.case, held.result), held.result
