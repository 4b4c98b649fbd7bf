"""The pages of docs/lint/: one for each rule of lint, which says what the table of rules says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from voiceapi.engine.validation.lint_rules import RULES

FOLDER = Path(__file__).parent.parent / "docs" / "lint"
HEADINGS = ["Why it matters", "Example", "How to mend it", "How to leave it out"]


def test_every_rule_has_a_page_and_no_other_does() -> None:
    assert {page.stem for page in FOLDER.glob("*.md")} == {*RULES, "README"}


@pytest.mark.parametrize("code", RULES)
def test_a_page_says_what_its_rule_is(code: str) -> None:
    rule = RULES[code]
    page = (FOLDER / f"{code}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {code}\n\n**{rule.severity.capitalize()}**: {rule.title}.\n\n")
    assert re.findall("^## (.*)$", page, re.MULTILINE) == HEADINGS
    for block in re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        assert json.loads(block)
    leave = page.rpartition(HEADINGS[-1])[2]
    expected = "prevents publishing" if rule.prevents_publishing else f'"lint_ignore": ["{code}"]'
    assert expected in leave


def test_codes_are_stable_kebab_case_names() -> None:
    assert all(re.fullmatch("[a-z]+(-[a-z]+)+|malformed|island", code) for code in RULES)
    assert {code for code, rule in RULES.items() if rule.severity == "note"} == {"prompt-needs-model"}
    assert all(rule.severity == "error" for rule in RULES.values() if rule.prevents_publishing)
