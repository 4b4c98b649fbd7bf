"""Rehearses a stored workflow with played callers."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Literal

from ...service import Service
from ...store.workflows import WorkflowVersion
from ...workflows import versions
from .. import case_file
from ..stored_cases import LANE
from ..subject import Subject
from .improvised import Given
from .rehearsals import Course, new_seed, with_random_callers, with_spoken_callers
from .report import Report

# How long one request may take; the conversations that have not begun by then are left out.
LONGEST_SECONDS = 120.0


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
) -> tuple[WorkflowVersion, Report]:
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
        course = Course(conversations, new_seed() if seed is None else seed, given, time.monotonic() + LONGEST_SECONDS)
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
