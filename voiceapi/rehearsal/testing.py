"""Tests a stored workflow with conversation cases: the results, and what of the workflow they cover."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from ..engine.actions import AskModel, Extract, LanguageModel
from ..engine.events import Answer, ExtractionFailed, ModelFailed
from ..errors import FieldError, InvalidFields, InvalidInput, RecordNotFound
from ..llm import selection
from ..service import Service
from ..store import workflows as store
from ..store.base import json_text
from ..store.workflows import ConversationCase, Workflow, WorkflowVersion
from ..strict_json import decode, encode
from ..workflows import versions
from . import case_file, stored_cases
from .cases import Case, CaseResult, Mismatch, ModelKind
from .conduct import run_case
from .coverage import Coverage
from .stored_cases import MOST_CASES
from .subject import Subject

# How many turns of callers one request may have, of all its cases; and of those that ask a language model.
MOST_TURNS, MOST_ASKED = 10_000, 100
# How long one request may take. The cases that are left then fail.
LONGEST_SECONDS = 120.0
LATE = f"The request had taken {LONGEST_SECONDS:.0f} s. Run fewer cases at a time."


@dataclass(frozen=True)
class Chosen:
    """A case to be run, not read yet.

    :param id: of a stored case.
    :param text: the case as JSON.
    :param place: where it is in the input; empty for a stored case.
    """

    id: int | None
    text: str
    place: case_file.Path = ()


@dataclass(frozen=True)
class Tested:
    """What cases led to.

    :param results: of each case its id, which is None for one that isn't stored, and its result.
    """

    version: WorkflowVersion
    results: tuple[tuple[int | None, CaseResult], ...]
    coverage: Coverage


def try_out(
    service: Service,
    organization: int,
    workflow_id: int,
    number: int | None = None,
    case_ids: Sequence[int] | None = None,
    given: Sequence[Mapping[str, Any]] | None = None,
    model: ModelKind | None = None,
) -> Tested:
    """Hold the conversations of stored and given cases with a version of a workflow; nothing is stored.

    :param number: of the version; None is the draft, or the released version without one.
    :param case_ids: the stored cases; if neither they nor cases are given, all that are enabled.
    :param given: cases as a case file has them.
    :param model: what speaks in those that aren't played, in place of what each says.
    :raises RecordNotFound: when there is no such workflow, version or stored case.
    :raises InvalidFields: for a given case that can't be read, with the places of what is wrong.
    :raises InvalidInput: when the version can't be run, or one request would take too long.
    :raises OutOfService: when too many slow requests are in progress.
    """
    workflow, version = versions.get_with_version(organization, workflow_id, number)
    if case_ids is None and given is None:
        chosen = stored(workflow)
    else:
        known = {case.id: case for case in store.cases_of(workflow.id)} if case_ids else {}
        if missing := [id for id in case_ids or () if id not in known]:
            raise RecordNotFound(f"Case with id {missing[0]} not found")
        chosen = [_stored(known[id]) for id in case_ids or ()]
        chosen += [Chosen(None, encode(each).decode(), ("cases", at)) for at, each in enumerate(given or ())]
    return run(service, workflow, version, chosen, model)


def stored(workflow: Workflow) -> list[Chosen]:
    """The enabled cases of a workflow."""
    return [_stored(case) for case in store.enabled_cases(workflow.id)]


def _stored(case: ConversationCase) -> Chosen:
    return Chosen(case.id, json_text(case, ConversationCase.content))


def run(
    service: Service,
    workflow: Workflow,
    version: WorkflowVersion,
    chosen: Sequence[Chosen],
    model: ModelKind | None = None,
) -> Tested:
    """Hold the conversations of cases with a version.

    :raises InvalidFields, InvalidInput, OutOfService: as `try_out`.
    """
    if len(chosen) > MOST_CASES:
        raise InvalidInput(f"One request runs at most {MOST_CASES} cases; these are {len(chosen)}.")
    versions.load_graph(workflow, version)
    subject = Subject.of_organization(service, workflow.organization_id, version.definition, version.configurations)
    asks = subject.model is not None and not selection.is_scripted(subject.model)
    with _permit(service, workflow.organization_id, chosen, asks=asks and model in (None, "configured"), model=model):
        cases = [(each.id, _as_run(case, version, model)) for each, case in zip(chosen, read(chosen), strict=True)]
        _refuse_too_many([case for _, case in cases], asks=asks)
        deadline = time.monotonic() + LONGEST_SECONDS
        if subject.model is not None:
            subject = replace(subject, model=_Hurried(subject.model, deadline))
        results = tuple((id, _run(subject, case, deadline)) for id, case in cases)
    return Tested(version, results, Coverage.of(subject.graph, (result for _, result in results)))


def _permit(
    service: Service, organization: int, chosen: Sequence[Chosen], *, asks: bool, model: ModelKind | None
) -> AbstractContextManager[None]:
    """The permit for cases that aren't read yet.

    :param asks: those that say so ask a language model.
    """
    if asks and (model is not None or any('"configured"' in each.text for each in chosen)):
        return service.bulkhead.slow(organization)
    return stored_cases.permit(service, organization, [each.text for each in chosen])


def read(chosen: Sequence[Chosen]) -> list[Case]:
    """The cases themselves.

    :raises InvalidFields: for those that can't be read, with the places of what is wrong.
    """
    errors: list[FieldError] = []
    found: list[Case] = []
    for each in chosen:
        try:
            found.append(stored_cases.read(decode(each.text), each.place))
        except InvalidFields as error:
            errors += error.errors
    if errors:
        raise InvalidFields(errors[: case_file.MOST_ERRORS])
    return found


def _as_run(case: Case, version: WorkflowVersion, model: ModelKind | None) -> Case:
    """The case as it is run: as in a run, its initial context is laid over the version's variables."""
    context = {**version.template_context_variables, **case.context}
    return replace(case, context=context).spoken_by(model)


def _refuse_too_many(cases: Sequence[Case], *, asks: bool) -> None:
    """Check that one request may run these cases.

    :param asks: those with the configured model ask a language model.
    """
    turns = sum(1 + len(case.turns) for case in cases)
    if turns > MOST_TURNS:
        raise InvalidInput(f"One request runs at most {MOST_TURNS} turns, openings included; these are {turns}.")
    asked = sum(1 + len(case.turns) for case in cases if asks and case.model == "configured")
    if asked > MOST_ASKED:
        raise InvalidInput(
            f"One request runs at most {MOST_ASKED} turns, openings included, by the configured language model; "
            f"these are {asked}."
        )


def _run(subject: Subject, case: Case, deadline: float) -> CaseResult:
    if time.monotonic() < deadline:
        return run_case(subject, case)
    return CaseResult(case.name, (), (Mismatch("opening", "the case is run", LATE),))


class _Hurried:
    """A language model that isn't asked any more after the deadline, so that a conversation soon ends."""

    def __init__(self, model: LanguageModel, deadline: float) -> None:
        self._model = model
        self._deadline = deadline

    def reply(self, ask: AskModel) -> Answer:
        if time.monotonic() < self._deadline:
            return self._model.reply(ask)
        return ModelFailed(ask.at, ask.number, LATE)

    def extract(self, request: Extract) -> Answer:
        if time.monotonic() < self._deadline:
            return self._model.extract(request)
        return ExtractionFailed(request.at, request.number, LATE)
