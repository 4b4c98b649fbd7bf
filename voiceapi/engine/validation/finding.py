"""A finding about a workflow definition, and the rules by code, each with its severity; docs/lint/ explains them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """What is wrong and where: `field` is a path inside the node or edge, or inside the definition for "workflow".

    `id` is that of the node or edge; None for "workflow", and for a node or edge without a readable id. `code` is the
    rule's, a key of RULES.
    """

    kind: Literal["node", "edge", "workflow"]
    id: str | None
    field: str | None
    message: str
    code: str = dataclasses.field(default="", compare=False)

    @property
    def severity(self) -> Severity:
        """How severe it is, as its rule says."""
        return RULES[self.code].severity

    def as_dict(self) -> dict[str, str | None]:
        """Return the finding as validation answers it."""
        return {"kind": self.kind, "id": self.id, "field": self.field, "message": self.message}


@dataclass(frozen=True)
class Rule:
    """One rule: `severity` of its findings, and a short text on what it finds.

    :param prevents_publishing: a definition with a finding of this rule can't be published, so none can be suppressed.
    """

    severity: Severity
    title: str
    prevents_publishing: bool = False


def _needed(title: str) -> Rule:
    return Rule("error", title, prevents_publishing=True)


# An error is certain not to work as it is written, a warning is probably a mistake, a note may be as it is meant.
RULES: Mapping[str, Rule] = {
    # What prevents publishing.
    "malformed": _needed("A node, an edge or a field has another shape than it needs"),
    "missing-node": _needed("An edge or a call names a node that isn't in the workflow"),
    "node-count": _needed("There are too many or too few nodes of a type"),
    "node-degree": _needed("A node has too many or too few edges for its type"),
    "duplicate-label": _needed("Two edges of a node have the same function name"),
    "tool-name-conflict": _needed("Two tools of a node, or a tool and an edge, have the same function name"),
    "uncallable-tool": _needed("A node can't call the tool that it names"),
    "unusable-on-error": _needed("The node that is entered when a call fails can't be entered"),
    "trigger-path": _needed("A trigger path can't be used"),
    "trigger-path-taken": _needed("A trigger path belongs to another workflow"),
    # The graph.
    "unreachable-node": Rule("warning", "No path leads from the start to a node"),
    "island": Rule("warning", "Some nodes are connected with each other, and not with the start"),
    "dead-end": Rule("warning", "A node neither leads on nor ends the call"),
    "no-path-to-end": Rule("warning", "No path from the start ends the call"),
    "loop-without-exit": Rule("error", "A conversation that gets into a loop can't leave it"),
    "edges-alike": Rule("warning", "An edge can't be told from another one of its node"),
    "duplicate-id": Rule("warning", "Several nodes or edges have the same id"),
    # Variables.
    "unsupplied-variable": Rule("warning", "A template variable has no value on some path"),
    "undeclared-variable": Rule("warning", "Nothing says where a template variable comes from"),
    "variable-left-out": Rule("warning", "No webhook sends a variable, though they send others"),
    # What is spoken.
    "speech-too-long": Rule("error", "A text is longer than what a carrier speaks in one turn"),
    "prompt-too-long": Rule("error", "A prompt is longer than what a model is asked"),
    "unspeakable-greeting": Rule("error", "A greeting has nothing that can be spoken"),
    "language-without-voice": Rule("warning", "No carrier is known to speak the language"),
    "unknown-voice": Rule("warning", "No carrier is known to have the voice"),
    "voice-of-another-language": Rule("warning", "The voice speaks another language than the workflow's"),
    "pause-of-the-carrier": Rule("warning", "A carrier can't wait for the end of speech as it is asked to"),
    "language-without-phrases": Rule("warning", "The service's own sentences aren't there in the language"),
    # What is attached.
    "missing-tool": Rule("error", "A tool that is attached or called doesn't exist"),
    "unusable-tool": Rule("warning", "A tool that is attached or called can't be used"),
    "unfit-argument": Rule("error", "A call lacks an argument that its tool requires, or gives one of another type"),
    "unknown-argument": Rule("warning", "A call gives an argument that its tool doesn't have"),
    "missing-document": Rule("error", "A document that is attached doesn't exist"),
    "unusable-document": Rule("warning", "A document that is attached can't be searched"),
    "missing-credential": Rule("error", "A credential that is named doesn't exist"),
    "function-name-taken": Rule("warning", "Something else of the node has the name of a function and goes first"),
    # What needs a language model while none is configured.
    "prompt-needs-model": Rule("note", "A prompt is an instruction to a language model"),
    "tool-needs-model": Rule("warning", "Only a language model calls a tool"),
    "documents-need-model": Rule("warning", "Only a language model looks up documents"),
    "review-needs-model": Rule("warning", "Only a language model reviews calls"),
    "variable-needs-model": Rule("warning", "A variable isn't something that a caller says"),
    "edge-needs-model": Rule("warning", "No words of a caller lead to an edge"),
    # Fields.
    "unknown-field": Rule("warning", "A field isn't known and has no effect"),
    "unusual-value": Rule("warning", "A value is outside of what is usual"),
    "not-in-this-release": Rule("warning", "A setting is stored, but this release doesn't carry it out"),
    "clear-text-secret": Rule("error", "A secret stands in clear text"),
    "unusable-note": Rule("warning", "A note can't be shown on the canvas"),
    # Suppression.
    "unknown-ignored-code": Rule("warning", "lint_ignore names a code that doesn't exist or can't be ignored"),
    "unused-ignore": Rule("warning", "lint_ignore names a code that nothing is found for"),
}
