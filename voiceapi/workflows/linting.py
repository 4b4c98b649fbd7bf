"""Lint: what is wrong with a workflow or is probably a mistake, each finding with the code of its rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..engine.compose import read_end_of_speech
from ..engine.graph import data_of
from ..engine.validation import graph_rules
from ..engine.validation.finding import SEVERITIES, Finding, Severity
from ..engine.validation.graph_rules import check
from ..engine.validation.lint import argument_findings, can_be_ignored, lint, suppressed
from ..engine.validation.outline import Outline
from ..engine.validation.paths import Paths, path_findings
from ..engine.validation.secret_rules import secret_findings
from ..engine.validation.speech_rules import alike_findings, speech_findings, text_findings, voice_findings
from ..engine.validation.variable_rules import Sources, variable_findings
from ..llm import configuration, selection
from ..llm.model_needs import model_needs
from ..masking import is_masked
from ..organizations import credentials
from ..service import Service
from ..store import campaigns, secret_fields
from ..store.secret_fields import SecretField
from ..store.telephony import configurations_of
from ..store.tools import Tool
from ..store.workflows import Workflow, WorkflowVersion
from ..telephony.connect import CARRIERS
from ..tools import catalog
from ..tools.knowledge import documents
from . import node_types, versions

# The codes that nothing can be found for where what they are about isn't known.
_OF_RECORDS = (
    *("missing-tool", "unusable-tool", "missing-document", "unusable-document", "missing-credential"),
    *("function-name-taken", "variable-left-out", "dead-end", "no-path-to-end", "loop-without-exit"),
    *("unfit-argument", "unknown-argument"),
)
_OF_SCRIPTED = (
    *("prompt-needs-model", "tool-needs-model", "documents-need-model", "review-needs-model"),
    *("variable-needs-model", "edge-needs-model", "edges-alike", "speech-too-long"),
)
# The errors, and the warnings. A warning doesn't prevent publishing.
Findings = tuple[list[Finding], list[Finding]]


@dataclass(frozen=True)
class LintReport:
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


def lint_workflow(service: Service, organization: int, workflow_id: int, number: int | None = None) -> LintReport:
    """Lint the current version of a workflow, or the one with that number.

    :raises RecordNotFound: when the organization has no such workflow, or that has no such version.
    """
    return lint_version(service, *versions.get_with_version(organization, workflow_id, number))


def lint_version(service: Service, workflow: Workflow, version: WorkflowVersion) -> LintReport:
    """Lint a version. It only reads the database, so it may be a part of a transaction."""
    around = surroundings(service, workflow.organization_id, version.definition, version.configurations, workflow)
    return _report(around, version.configurations, _variables(workflow, version.template_context_variables))


def lint_definition(
    service: Service,
    organization: int,
    definition: Mapping[str, Any],
    configurations: Mapping[str, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
    workflow_id: int | None = None,
    tools: Iterable[Tool] = (),
) -> LintReport:
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
    around = surroundings(service, organization, definition, before, workflow, tools)
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
    return surroundings(service, organization, definition, stored, tools=tools)


def lint_file(
    definition: object,
    configurations: Mapping[str, Any],
    variables: Mapping[str, Any],
    around: Surroundings,
) -> LintReport:
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
) -> LintReport:
    outline = around.outline
    errors, warnings = judge(around, configurations)
    paths = Paths.of(outline)
    alike = {each.id for each in warnings if each.code == "edges-alike"}
    unknown = around.unknown_tools
    found = [
        *errors,
        *warnings,
        *path_findings(outline, paths, catalog.ending(around.tools) | unknown),
        *variable_findings(outline, paths, Sources(variables, None if unknown else catalog.names_used(around.tools))),
        *text_findings(outline, speaks_prompts=around.is_scripted),
        *(each for each in alike_findings(outline) if each.id not in alike),
        *voice_findings(configurations),
        *secret_findings(outline, configurations, variables),
        *more,
    ]
    unchecked = {*(() if around.knows_all_tools else _OF_RECORDS), *(() if around.is_scripted else _OF_SCRIPTED)}
    kept, count = suppressed(outline, configurations, found, unchecked)
    # By place: the workflow, its nodes and its edges in their order; at each place the worst first.
    edges = (id for each in outline.edges if isinstance(id := each.get("id"), str))
    ids = [("workflow", None), *(("node", id) for id in outline.by_id), *(("edge", id) for id in edges)]
    places = {key: place for place, key in reversed([*enumerate(ids)])}
    kept.sort(key=lambda each: (places.get((each.kind, each.id), len(ids)), SEVERITIES.index(each.severity)))
    return LintReport(kept, count)


# -- the rules, and what they need to know


@dataclass(frozen=True)
class Surroundings:
    """A definition, and what an organization has that it names.

    :param tools: those of the attached tools that are known, of any status.
    :param knows_all_tools: no other tools exist; false for a file alone, whose nodes may attach stored ones.
    :param documents: a warning or "" for each document that is attached; None when none is known.
    :param credentials: the uuids of the credentials; None when none is known.
    :param taken_paths: the trigger paths that other workflows own.
    :param is_scripted: no language model speaks.
    :param carriers: the names of those through which calls may go, as far as a setting of listening is to be judged.
    """

    outline: Outline
    tools: Sequence[Tool] = ()
    knows_all_tools: bool = False
    documents: Mapping[str, str] | None = None
    credentials: Collection[str] | None = None
    taken_paths: Collection[str] = ()
    is_scripted: bool = True
    carriers: Collection[str] = ()

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
    known = {each.tool_uuid: each for each in (*catalog.attached(organization, outline), *tools)}
    return Surroundings(
        outline,
        list(known.values()),
        True,
        documents.warnings(organization, outline),
        credentials.uuids(organization) if outline.credentials else (),
        versions.taken_paths(outline, workflow),
        selection.is_scripted(selection.choose(service, organization, configurations)),
        {each.provider for each in configurations_of(organization)} if _pauses(outline, configurations) else (),
    )


def judge(around: Surroundings, configurations: Mapping[str, Any]) -> Findings:
    """The findings about a definition in its surroundings, with these configurations."""
    outline, rules = around.outline, node_types.rules()
    active, unknown = catalog.active(around.tools), around.unknown_tools
    known = {**dict.fromkeys(unknown, ""), **catalog.warnings(around.tools)}
    warnings = lint(outline, rules, known, around.documents, around.credentials)
    warnings += argument_findings(outline, catalog.parameters(around.tools, outline))
    warnings += graph_rules.fixed_name_findings(outline, active)
    warnings += speech_findings(configurations)
    warnings += _pause_findings(around, configurations)
    if around.is_scripted:
        # A file alone doesn't say whether there will be a model where its tools are stored.
        usable = catalog.usable_without_model(around.tools) if around.knows_all_tools else outline.tools
        warnings += model_needs(outline, usable)
    errors = check(outline, rules, active, around.taken_paths)
    refused = {(each.id, each.field) for each in errors if each.code == "uncallable-tool"}
    return errors, [each for each in warnings if (each.id, each.field) not in refused]


def _pauses(outline: Outline, configurations: Mapping[str, Any]) -> list[tuple[dict[str, Any] | None, Any]]:
    """Each node with a pause that ends speech, and the pause; None is for the workflow's own."""
    given = [(None, configurations), *((node, data_of(node)) for node in outline.nodes)]
    return [(node, data["end_of_speech"]) for node, data in given if data.get("end_of_speech") is not None]


def _pause_findings(around: Surroundings, configurations: Mapping[str, Any]) -> Iterator[Finding]:
    carriers = [CARRIERS[name] for name in sorted(around.carriers) if name in CARRIERS]
    for node, value in _pauses(around.outline, configurations):
        asked = read_end_of_speech(value)
        objections = [] if asked is None else [each.pauses.objection(each.name, asked) for each in carriers]
        if message := " ".join(filter(None, objections)):
            code = "pause-of-the-carrier"
            if node is None:
                yield Finding("workflow", None, "workflow_configurations.end_of_speech", message, code)
            elif isinstance(node.get("id"), str):
                yield Finding("node", node["id"], "data.end_of_speech", message, code)
