"""docs/testing.md: its lists name the members of a case file, its cases show each of them, and all of them pass."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rehearsed import EXAMPLES, record

from voiceapi.errors import InvalidFields
from voiceapi.rehearsal import case_file, strict_yaml
from voiceapi.rehearsal.cases import MODELS, TRANSFER_OUTCOMES
from voiceapi.rehearsal.conduct import run_case
from voiceapi.rehearsal.subject import Subject

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
# Whole files; the others are parts of the examples' files.
FILES = [block for block in BLOCKS if block.startswith("workflow:")]
PARTS = [block for block in BLOCKS if block not in FILES]


def documented(thing: str) -> list[str]:
    """The members in the list of this thing, in its order."""
    items = PAGE.partition(f"\nMembers of {thing}:\n\n")[2].partition("\n\n")[0]
    return re.findall(r"^\* `(\w+)`:", items, re.MULTILINE)


def known(place: str) -> list[str]:
    """The members that a case file may have at a place of this one, as its error names them."""
    case = "{name: a, turns: [{caller: b, model: [{say: c}]}], fetch: {}, tools: [{tool: d}], expect: {webhooks: [{}]}}"
    data = strict_yaml.load(f"{{cases: [{case}]}}")
    found = data
    for part in filter(None, place.split(".")):
        found = found[int(part) if part.isdigit() else part]
    found["?"] = 1
    with pytest.raises(InvalidFields) as caught:
        case_file.read_file(json.dumps(data))
    (error,) = (each for each in caught.value.errors if each.path[-1:] == ("?",))
    return error.message.partition("known are ")[2].split(", ")


@pytest.mark.parametrize(
    ("thing", "place"),
    [
        ("the file", ""),
        ("a case", "cases.0"),
        ("a turn", "cases.0.turns.0"),
        ("a decision", "cases.0.turns.0.model.0"),
        ("a tool's answer", "cases.0.tools.0"),
        ("the fetch", "cases.0.fetch"),
        ("`expect`", "cases.0.expect"),
        ("a webhook", "cases.0.expect.webhooks.0"),
    ],
)
def test_a_list_has_the_members_that_are_read(thing: str, place: str) -> None:
    assert sorted(documented(thing)) == sorted(known(place))


def test_an_opening_has_the_members_of_a_turn_but_what_the_caller_does() -> None:
    data = {"cases": [{"name": "a", "opening": {"?": 1}}]}
    with pytest.raises(InvalidFields) as caught:
        case_file.read_file(json.dumps(data))
    of_opening = caught.value.errors[0].message.partition("known are ")[2].split(", ")
    assert documented("a turn")[:6] == ["caller", "keys", "silence", "hangs_up", "ends", "after"]
    assert sorted(documented("a turn")[6:]) == sorted(of_opening)


def test_models_and_outcomes_of_transfers_are_documented() -> None:
    items = PAGE.partition("\n`model` says who decides what is said and which edge is taken:\n\n")[2]
    assert tuple(re.findall(r"^\* `(\w+)`:", items.partition("\n\n")[0], re.MULTILINE)) == MODELS
    (item,) = re.findall(r"^\* `transfer`: .*\n(?:  .*\n)*", PAGE, re.MULTILINE)
    assert tuple(re.findall(r"`(\w+)`", item)[1:]) == TRANSFER_OUTCOMES


def test_the_parts_of_the_examples_are_as_they_are_there() -> None:
    files = [path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.cases.yaml"))]
    assert len(PARTS) == 6
    assert [part for part in PARTS if not any(part in file for file in files)] == []


def members(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from members(inner)
    for each in value if isinstance(value, list) else ():
        yield from members(each)


def test_every_member_is_shown() -> None:
    shown = {name for block in BLOCKS for name in members(strict_yaml.load(textwrap.dedent(block)))}
    tables = re.findall(r"^\| of (.*?) \| what it is \|$", PAGE, re.MULTILINE)
    assert {name for table in tables for name in documented(table)} - shown == set()


def test_the_cases_of_the_page_pass() -> None:
    (definition,) = (json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
    (text,) = FILES
    found = case_file.read_file(text)
    subject = Subject.of_definition(definition, tools=[record(dict(each)) for each in found.tools])
    assert [mismatch for case in found.cases for mismatch in run_case(subject, case).mismatches] == []
