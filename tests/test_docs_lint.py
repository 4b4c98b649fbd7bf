"""The pages of docs/lint/: one for each rule of lint, which says what the table of rules says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from voiceapi.engine.validation.finding import RULES

FOLDER = Path(__file__).parent.parent / "docs" / "lint"
LEAVE = "[Leave it out](README.md#leaving-findings-out)"


def test_every_rule_has_a_page_and_no_other_does() -> None:
    assert {page.stem for page in FOLDER.glob("*.md")} == {*RULES, "README"}


@pytest.mark.parametrize("code", RULES)
def test_a_page_says_what_its_rule_is(code: str) -> None:
    rule = RULES[code]
    page = (FOLDER / f"{code}.md").read_text(encoding="utf-8")
    severity = rule.severity.capitalize() + (", prevents publishing" if rule.prevents_publishing else "")
    head, meaning, *rest = page.split("\n\n")[1:]
    assert page.startswith(f"# {code}\n\n")
    assert head == f"**{severity}**: {rule.title}."
    assert len(meaning) > 50
    assert [each.partition(":")[0] for each in rest if re.match("(Example|Mend it):", each)] == ["Example", "Mend it"]
    for block in re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        assert json.loads(block)
    assert page.endswith(f"\n\n{LEAVE}\n") != rule.prevents_publishing


def test_the_overview_says_how_a_finding_is_left_out() -> None:
    section = (FOLDER / "README.md").read_text(encoding="utf-8").partition("## Leaving findings out\n")[2]
    assert '"lint_ignore": ["dead-end"]' in section
    assert "What prevents publishing can't be left out." in section


def test_codes_are_stable_kebab_case_names() -> None:
    assert all(re.fullmatch("[a-z]+(-[a-z]+)+|malformed|island", code) for code in RULES)
    assert {code for code, rule in RULES.items() if rule.severity == "note"} == {"prompt-needs-model"}
    assert all(rule.severity == "error" for rule in RULES.values() if rule.prevents_publishing)
