"""What is wrong with a definition, and what is probably a mistake: of a stored workflow, or of one that is edited."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..engine.validation import graph_rules
from ..engine.validation.check import check
from ..engine.validation.finding import Finding
from ..engine.validation.lint import lint
from ..engine.validation.outline import Outline
from ..engine.validation.speech_rules import speech_findings
from ..llm import configuration, selection
from ..llm.model_needs import model_needs
from ..organizations import credentials
from ..service import Service
from ..store.tools import Tool
from ..store.workflows import Workflow
from ..tools import offered
from ..tools.knowledge import documents
from . import node_types, versions

# The errors, and the warnings. A warning doesn't prevent publishing.
Findings = tuple[list[Finding], list[Finding]]


@dataclass(frozen=True)
class Surroundings:
    """A definition, and what an organization has that it names.

    :param tools: those of the attached tools that are known, of any status.
    :param knows_all_tools: no other tools exist; false for a file alone, whose nodes may attach stored ones.
    :param documents: a warning or "" for each document that is attached; None when none is known.
    :param credentials: the uuids of the credentials; None when none is known.
    :param taken_paths: the trigger paths that other workflows own.
    :param is_scripted: no language model speaks.
    """

    outline: Outline
    tools: Sequence[Tool] = ()
    knows_all_tools: bool = False
    documents: Mapping[str, str] | None = None
    credentials: Collection[str] | None = None
    taken_paths: Collection[str] = ()
    is_scripted: bool = True

    @property
    def unknown_tools(self) -> set[str]:
        """The uuids of the attached tools that may exist, and of which nothing is known."""
        return set() if self.knows_all_tools else self.outline.tools - {each.tool_uuid for each in self.tools}


def validate(service: Service, organization: int, workflow_id: int) -> Findings:
    """The findings about the current version's definition and its configurations.

    :raises RecordNotFound: when the organization has no such workflow.
    """
    workflow, version = versions.get_with_version(organization, workflow_id)
    around = surroundings(service, organization, version.definition, version.configurations, workflow)
    return judge(around, version.configurations)


def validate_definition(
    service: Service,
    organization: int,
    definition: Mapping[str, Any],
    configurations: Mapping[str, Any] | None = None,
    workflow_id: int | None = None,
) -> Findings:
    """The findings about a definition and configurations that aren't stored, as those of the stored ones would be.

    :param configurations: those of the workflow when None, or none at all without one.
    :param workflow_id: the workflow that they are to be stored in, whose own trigger paths aren't taken.
    :raises RecordNotFound: when the organization has no such workflow.
    :raises InvalidInput: for a masked secret in the configurations that stands for no stored one.
    """
    workflow, stored = None, {}
    if workflow_id is not None:
        workflow, version = versions.get_with_version(organization, workflow_id)
        stored = version.configurations
    if configurations is not None:
        stored = configuration.encrypt_override(service.vault, organization, configurations, stored)
    return judge(surroundings(service, organization, definition, stored, workflow), stored)


def surroundings(
    service: Service,
    organization: int,
    definition: object,
    configurations: Mapping[str, Any],
    workflow: Workflow | None = None,
    tools: Iterable[Tool] = (),
) -> Surroundings:
    """A definition with what the organization has that it names.

    :param configurations: the stored ones, which say whether a language model speaks.
    :param workflow: the one that it belongs to, whose own trigger paths aren't taken.
    :param tools: tools that come with the definition, and go before the organization's.
    """
    outline = Outline.of(definition)
    known = {each.tool_uuid: each for each in (*offered.attached(organization, outline), *tools)}
    return Surroundings(
        outline,
        list(known.values()),
        True,
        documents.warnings(organization, outline),
        credentials.uuids(organization) if outline.credentials else (),
        versions.taken_paths(outline, workflow),
        selection.is_scripted(selection.choose(service, organization, configurations)),
    )


def judge(around: Surroundings, configurations: Mapping[str, Any]) -> Findings:
    """The findings about a definition in its surroundings, with these configurations."""
    outline, rules = around.outline, node_types.rules()
    active, unknown = offered.active(around.tools), around.unknown_tools
    known = {**dict.fromkeys(unknown, ""), **offered.warnings(around.tools)}
    warnings = lint(outline, rules, known, around.documents, around.credentials)
    warnings += graph_rules.fixed_name_findings(outline, active)
    warnings += speech_findings(configurations)
    if around.is_scripted:
        # A file alone doesn't say whether there will be a model where its tools are stored.
        usable = offered.usable_without_model(around.tools) if around.knows_all_tools else outline.tools
        warnings += model_needs(outline, usable)
    return check(outline, rules, active, around.taken_paths), warnings
