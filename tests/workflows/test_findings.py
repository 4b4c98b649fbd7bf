"""Every message about a workflow, in its order: definitions with each kind of mistake, and what is found in them.

`data/findings.json` has each finding as kind, id, field and message.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from voiceapi.engine.validation.finding import Finding
from voiceapi.engine.validation.graph_rules import check, fixed_name_findings
from voiceapi.engine.validation.lint import lint
from voiceapi.engine.validation.outline import Outline
from voiceapi.llm.model_needs import model_needs
from voiceapi.workflows import node_types

DATA = json.loads((Path(__file__).parent.parent / "data" / "findings.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Tool:
    name: str
    category: str


TOOLS = {uuid: Tool(*members) for uuid, members in DATA["tools"].items()}


def rows(findings: list[Finding]) -> list[list[str | None]]:
    return [[each.kind, each.id, each.field, each.message] for each in findings]


@pytest.mark.parametrize("sample", DATA["definitions"])
def test_the_findings_and_their_order(sample: dict[str, Any]) -> None:
    outline = Outline.of(sample["definition"])
    assert rows(check(outline, node_types.rules(), TOOLS, DATA["taken_paths"])) == sample["errors"]
    warnings = lint(outline, node_types.rules(), DATA["tool_warnings"], DATA["document_warnings"], DATA["credentials"])
    warnings += fixed_name_findings(outline, TOOLS)
    warnings += model_needs(outline, DATA["usable_tools"])
    assert rows(warnings) == sample["warnings"]
