"""Lint: what is wrong with a workflow or is probably a mistake, each finding with the code of its rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..engine.validation.finding import Finding
from ..engine.validation.lint_rules import SEVERITIES, Severity
from ..engine.validation.outline import Outline
from ..engine.validation.paths import Paths, path_findings
from ..engine.validation.secret_rules import secret_findings
from ..engine.validation.speech_rules import voice_findings
from ..engine.validation.suppression import can_be_ignored, suppressed
from ..engine.validation.text_rules import alike_findings, text_findings
from ..engine.validation.variable_rules import Sources, variable_findings
from ..llm import configuration
from ..masking import is_masked
from ..service import Service
from ..store import campaigns, secret_fields
from ..store.secret_fields import SecretField
from ..store.tools import Tool
from ..store.workflows import Workflow, WorkflowVersion
from ..tools import offered
from . import findings, versions
from .findings import Surroundings

# The codes that nothing can be found for where what they are about isn't known.
_OF_RECORDS = (
    *("missing-tool", "unusable-tool", "missing-document", "unusable-document", "missing-credential"),
    *("function-name-taken", "variable-left-out", "dead-end", "no-path-to-end", "loop-without-exit"),
)
_OF_SCRIPTED = (
    *("prompt-needs-model", "tool-needs-model", "documents-need-model", "review-needs-model"),
    *("variable-needs-model", "edge-needs-model", "edges-alike", "speech-too-long"),
)


@dataclass(frozen=True)
class Report:
    """What lint finds, the place of the workflow itself first; `suppressed` counts what its author ignores."""

    findings: list[Finding]
    suppressed: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as the API answers it."""
        return {
            "findings": [
                {
                    "code": each.code,
                    "severity": each.severity,
                    **each.as_dict(),
                    "suppressible": can_be_ignored(each.code),
                    "docs": f"docs/lint/{each.code}.md",
                }
                for each in self.findings
            ],
            **{f"{severity}s": self.count(severity) for severity in SEVERITIES},
            "suppressed": self.suppressed,
        }

    def count(self, severity: Severity) -> int:
        """The number of findings of this severity."""
        return sum(each.severity == severity for each in self.findings)


def lint_workflow(service: Service, organization: int, workflow_id: int, number: int | None = None) -> Report:
    """Lint the current version of a workflow, or the one with that number.

    :raises RecordNotFound: when the organization has no such workflow, or that has no such version.
    """
    return lint_version(service, *versions.get_with_version(organization, workflow_id, number))


def lint_version(service: Service, workflow: Workflow, version: WorkflowVersion) -> Report:
    """Lint a version. It only reads the database, so it may be a part of a transaction."""
    around = findings.surroundings(
        service, workflow.organization_id, version.definition, version.configurations, workflow
    )
    return _report(around, version.configurations, _variables(workflow, version.template_context_variables))


def lint_definition(
    service: Service,
    organization: int,
    definition: Mapping[str, Any],
    configurations: Mapping[str, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
    workflow_id: int | None = None,
    tools: Iterable[Tool] = (),
) -> Report:
    """Lint a definition, configurations and template variables that aren't stored, as if they were.

    :param configurations: those of the workflow when None, or none at all without one; `variables` likewise.
    :param workflow_id: the workflow that they are to be stored in.
    :param tools: records of tools that come with it, and aren't stored.
    :raises RecordNotFound: when the organization has no such workflow.
    :raises InvalidInput: for a masked secret in the configurations that stands for no stored one.
    """
    workflow, given = None, dict(variables or {})
    before: Mapping[str, Any] = {}
    if workflow_id is not None:
        workflow, version = versions.get_with_version(organization, workflow_id)
        before = version.configurations
        given = dict(version.template_context_variables) if variables is None else given
    if configurations is not None:
        before = configuration.encrypt_override(service.vault, organization, configurations, before)
    around = findings.surroundings(service, organization, definition, before, workflow, tools)
    return _report(around, before, _variables(workflow, given))


def surroundings_of_file(
    definition: object,
    configurations: Mapping[str, Any],
    tools: Sequence[Tool] = (),
    *,
    has_model: bool = False,
    owner: tuple[Service, int] | None = None,
) -> Surroundings:
    """The surroundings of a definition that a file holds.

    :param tools: records of the tools that the file holds, which aren't stored.
    :param has_model: a language model is configured, whatever the configurations say.
    :param owner: the organization that it is to be stored in, whose tools, documents, credentials and model count; None
        for no organization, so that nothing is said about what isn't in the file.
    """
    if owner is None:
        is_scripted = not has_model and configurations.get(configuration.OVERRIDE) is None
        return Surroundings(Outline.of(definition), tools, is_scripted=is_scripted)
    service, organization = owner
    stored = configuration.encrypt_override(service.vault, organization, configurations, {})
    return findings.surroundings(service, organization, definition, stored, tools=tools)


def lint_file(
    definition: object,
    configurations: Mapping[str, Any],
    variables: Mapping[str, Any],
    around: Surroundings,
) -> Report:
    """Lint what a file holds. A key in it is in clear text, also in a field that is encrypted when it is stored."""
    in_definition = (
        Finding("node", str(field.place[0]), ".".join(map(str, field.path[2:])), IN_FILE, "clear-text-secret")
        for field in _in_clear(secret_fields.in_definition(definition))
        if field.place[0] in around.outline.by_id
    )
    in_configurations = (
        Finding(
            "workflow", None, f"workflow_configurations.{'.'.join(map(str, field.path))}", IN_FILE, "clear-text-secret"
        )
        for field in _in_clear(secret_fields.in_configurations(configurations))
    )
    in_clear = [*in_configurations, *in_definition]
    return _report(around, configurations, variables, in_clear)


def _in_clear(fields: Iterable[SecretField]) -> Iterator[SecretField]:
    """The keys and URLs with passwords that aren't masked; a header is as likely to be none."""
    return (field for field in fields if field.kind != secret_fields.HEADER and not is_masked(field.text))


IN_FILE = "A secret stands here in clear text, which everybody reads who has the file. Enter it after the import."


def _variables(workflow: Workflow | None, variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The template variables of a workflow, and the columns of its contact lists."""
    columns = set() if workflow is None else campaigns.columns_of_contacts(workflow.id)
    return {**dict.fromkeys(columns), **variables}


def _report(
    around: Surroundings,
    configurations: Mapping[str, Any],
    variables: Mapping[str, Any],
    more: Iterable[Finding] = (),
) -> Report:
    outline = around.outline
    errors, warnings = findings.judge(around, configurations)
    paths = Paths.of(outline)
    alike = {each.id for each in warnings if each.code == "edges-alike"}
    unknown = around.unknown_tools
    found = [
        *errors,
        *warnings,
        *path_findings(outline, paths, offered.ending(around.tools) | unknown),
        *variable_findings(outline, paths, Sources(variables, None if unknown else offered.names_used(around.tools))),
        *text_findings(outline, speaks_prompts=around.is_scripted),
        *(each for each in alike_findings(outline) if each.id not in alike),
        *voice_findings(configurations),
        *secret_findings(outline, configurations, variables),
        *more,
    ]
    unchecked = {*(() if around.knows_all_tools else _OF_RECORDS), *(() if around.is_scripted else _OF_SCRIPTED)}
    kept, count = suppressed(outline, configurations, found, unchecked)
    return Report(_in_order(outline, kept), count)


def _in_order(outline: Outline, found: Iterable[Finding]) -> list[Finding]:
    """The findings by place: the workflow, its nodes and its edges in their order; at each place the worst first."""
    edges = (id for each in outline.edges if isinstance(id := each.get("id"), str))
    ids = [("workflow", None), *(("node", id) for id in outline.by_id), *(("edge", id) for id in edges)]
    places = {key: place for place, key in reversed([*enumerate(ids)])}
    last = len(ids)
    return sorted(found, key=lambda each: (places.get((each.kind, each.id), last), SEVERITIES.index(each.severity)))
