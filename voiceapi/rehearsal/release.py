"""Publishes a draft that meets what its workflow demands: no lint, cases that pass, a coverage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from ..engine.validation.finding import Finding
from ..errors import Conflict, InvalidInput
from ..service import Service
from ..store import tags, workflows
from ..store.workflows import Workflow, WorkflowVersion
from ..workflows import linting, versions
from . import testing
from .cases import CaseResult
from .coverage import Measure

# The member of a workflow's configurations that says what its drafts have to meet; see docs/testing.md.
REQUIREMENTS = "publish_requirements"
MEASURES: tuple[Literal["nodes", "edges", "variables"], ...] = ("nodes", "edges", "variables")
# The severities of what lint finds that keep a draft from being published, by what is demanded.
LINT = {"errors": ("error",), "warnings": ("error", "warning")}
# How often a draft is checked that is changed meanwhile.
TRIES = 3
# How many untouched parts a message names.
MOST_NAMED = 5


class _NotChecked(Exception):
    """A draft in this state has requirements that it wasn't checked for."""

    def __init__(self, workflow: Workflow, draft: WorkflowVersion, state: object) -> None:
        super().__init__()
        self.workflow = workflow
        self.draft = draft
        self.state = state


def publish(
    service: Service, organization: int, workflow_id: int, expected: tags.Expected = None
) -> tuple[Workflow, WorkflowVersion]:
    """Publish the draft if it meets the requirements in its configurations.

    It is checked outside of any transaction, and published only in the state and with the cases that were checked: one
    that was changed meanwhile is checked again.

    :raises InvalidInput: with all errors of the draft, or else with all that it doesn't meet.
    :raises Conflict: when it was changed each time that it was checked.
    :raises OutOfService: when too many slow requests are in progress.
    :raises Outdated, NotPossible, RecordNotFound: as versions.publish.
    """
    checked: list[object] = []

    def admit(workflow: Workflow, draft: WorkflowVersion) -> None:
        if _requirements(draft):
            state = (tags.WORKFLOW.tag(workflow, draft), workflows.case_tags(workflow.id))
            if state not in checked:
                raise _NotChecked(workflow, draft, state)

    for _ in range(TRIES + 1):
        try:
            return versions.publish(organization, workflow_id, expected, admit)
        except _NotChecked as found:
            if len(checked) == TRIES:
                break
            if errors := _missing(service, found.workflow, found.draft):
                raise InvalidInput({"is_valid": False, "errors": [error.as_dict() for error in errors]}) from None
            checked.append(found.state)
    raise Conflict("The draft or its cases were changed while they were checked. Publish it again.")


def _requirements(draft: WorkflowVersion) -> Mapping[str, Any]:
    """What the draft has to meet; what an earlier release stored under that name is nothing."""
    found = draft.configurations.get(REQUIREMENTS)
    if not isinstance(found, dict):
        return {}
    coverage = found.get("coverage", {})
    numbers = coverage.values() if isinstance(coverage, dict) else (None,)
    return found if all(isinstance(each, int | float) for each in numbers) else {}


def _missing(service: Service, workflow: Workflow, draft: WorkflowVersion) -> list[Finding]:
    """All that a valid draft doesn't meet of its requirements."""
    requirements = _requirements(draft)
    found: list[Finding] = []
    if severities := LINT.get(str(requirements.get("lint"))):
        lint = linting.lint_version(service, workflow, draft).findings
        found += [
            replace(each, message=f"{each.message} ({each.code})") for each in lint if each.severity in severities
        ]
    coverage = requirements.get("coverage") or {}
    if requirements.get("cases") or any(coverage.values()):
        tested = testing.run(service, workflow, draft, testing.stored(workflow))
        if requirements.get("cases"):
            found += _failures([result for _, result in tested.results])
        for name in MEASURES:
            found += _gap(name, getattr(tested.coverage, name), coverage.get(name, 0))
    return found


def _failures(results: list[CaseResult]) -> Iterator[Finding]:
    field = f"{REQUIREMENTS}.cases"
    if not results:
        yield Finding("workflow", None, field, "No enabled case is stored with the workflow, and cases have to pass.")
    for result in results:
        if not result.passed:
            first, more = result.mismatches[0], len(result.mismatches) - 1
            also = f" {more} more things aren't as expected." if more > 1 else " Another thing isn't." if more else ""
            yield Finding("workflow", None, field, f"The case “{result.name}” fails at {first}{also}")


def _gap(name: str, measure: Measure, demanded: float) -> Iterator[Finding]:
    if measure.percent < demanded:
        named = ", ".join(f"“{part.name}”" for part in measure.untouched[:MOST_NAMED])
        more = len(measure.untouched) - MOST_NAMED
        also = f" and {more} more" if more > 0 else ""
        text = f"The cases cover {measure.percent:g} % of the {name}, and {demanded:g} % is demanded. Untouched: "
        yield Finding("workflow", None, f"{REQUIREMENTS}.coverage.{name}", f"{text}{named}{also}.")
