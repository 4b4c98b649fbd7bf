"""The documentation: its links lead somewhere, what it names exists, and its examples work."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
from flask import Flask
from flask.testing import FlaskClient
from generated_docs import PART, PARTS, with_parts
from werkzeug.exceptions import MethodNotAllowed, NotFound

from voiceapi import config
from voiceapi.api.schemas.workflows import REPLACEABLE
from voiceapi.cli.main import group
from voiceapi.config import Settings
from voiceapi.engine.actions import Extract, Function
from voiceapi.engine.events import VariablesExtracted
from voiceapi.engine.extraction import Variable
from voiceapi.engine.template import MINUTES, render
from voiceapi.engine.validation.graph_rules import check
from voiceapi.engine.validation.lint import lint
from voiceapi.engine.validation.outline import Outline
from voiceapi.llm.scripted import Scripted
from voiceapi.llm.understanding.edge_choice import best_edge
from voiceapi.organizations import credentials
from voiceapi.runs import filters
from voiceapi.store import migrations
from voiceapi.telephony.carriers.simulator import TEST_NUMBERS
from voiceapi.telephony.connect import CARRIERS
from voiceapi.tools.transfer_call import FAILURES
from voiceapi.workflows import node_types

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# Not _VOICEAPI_COMPLETE, which is click's.
SETTING = re.compile(r"(?<!_)VOICEAPI_[A-Z_]*[A-Z]")
# A line of the log, which begins the same way, is none.
ENDPOINT = re.compile(r"""(?<!INFO )\b(GET|POST|PUT|PATCH|DELETE) "?(/[^\s`"'?]*)""")
ADDRESS = re.compile(r"""(?:\$BASE|http://127\.0\.0\.1:8000/api/v1)(/[^\s`"'?)]*)""")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def content(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def text(page: str) -> str:
    return content(DOCS / page)


@cache
def anchors(page: Path) -> set[str]:
    """The names by which a page's headings are linked to."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", content(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def json_blocks(page: str) -> list[Any]:
    return [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", text(page), re.DOTALL | re.MULTILINE)]


def rows(page: str, *heading: str) -> list[list[str]]:
    """Cells of the rows of the table with this heading, without the backquotes around them."""
    lines = iter(text(page).splitlines())
    assert f"| {' | '.join(heading)} |" in lines, f"{page} has no table {heading}"
    next(lines)
    return list(_cells(lines))


def _cells(lines: Iterator[str]) -> Iterator[list[str]]:
    for line in lines:
        if not line.startswith("|"):
            return
        cells = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        yield [re.sub(r"^`(.*)`$", r"\1", cell).replace("\\|", "|") for cell in cells]


def test_no_pasted_output_shows_a_failed_command() -> None:
    """The outputs on a page were pasted from a real run. A run with an archived key once filled a page with errors."""
    failed = []
    for page in PAGES:
        shown = "".join(CODE.findall(content(page)))
        failed += [(name(page), sign) for sign in ("Traceback", "Invalid or expired API key") if sign in shown]
    assert failed == []


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for link in LINK.findall(CODE.sub("", content(page))):
            path, _, anchor = link.partition("#")
            if "://" in link:
                continue
            target = (page.parent / path).resolve() if path else page
            if not target.is_file() or (anchor and anchor not in anchors(target)):
                broken.append((name(page), link))
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_says_nothing_twice(page: Path) -> None:
    said = [part.strip() for part in page.read_text().split("\n\n") if len(part) > 200 or part.startswith("## ")]
    assert [part for part, count in Counter(said).items() if count > 1] == []


def test_the_index_leads_to_every_page() -> None:
    assert {page.name for page in DOCS.glob("*.md")} - set(LINK.findall(text("README.md"))) == {"README.md"}


@pytest.mark.parametrize("page", ["security.md", "reliability.md"])
def test_each_promise_names_a_test_that_exists(page: str) -> None:
    """A section below the first heading is a list of promises with their tests after the last colon, but "Measured"."""
    for section in text(page).split("\n## ")[1:]:
        heading, _, promises = section.partition("\n")
        if heading == "Measured":
            continue
        assert promises.strip().startswith("* "), f"{page}: {heading}"
        for item in re.split(r"^\* ", promises.strip(), flags=re.MULTILINE)[1:]:
            promise, _, tests = " ".join(item.split()).rpartition(": ")
            assert promise, f"{page}: {item}"
            for named in tests.split(", "):
                assert re.fullmatch(r"`[\w/]+\.py(::test_\w+)?`", named), f"{page}: {item}"
                file, _, function = named.strip("`").partition("::")
                module = content(ROOT / "tests" / file)
                assert f"def {function or 'test_'}" in module, f"{page}: {named}"


def test_the_ways_name_functions_that_there_are() -> None:
    section = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The five ways")[2].partition("\n## ")[0]
    )
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+)\.([A-Za-z_.]+)`", section)
    missing = [(file, name) for file, name in named if name not in defined_in(ROOT / "voiceapi" / f"{file}.py")]
    assert (len(named) > 30, missing) == (True, [])


def defined_in(path: Path) -> set[str]:
    """The functions and classes of a module, and the methods of its classes."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
            within = node.body if isinstance(node, ast.ClassDef) else []
            found.update(f"{node.name}.{inner.name}" for inner in within if isinstance(inner, ast.FunctionDef))
    return found


def test_settings_that_are_named_exist() -> None:
    named = {(setting, name(page)) for page in PAGES for setting in SETTING.findall(content(page))}
    assert [each for each in sorted(named) if each[0] not in config.names()] == []


def test_every_setting_has_a_meaning() -> None:
    assert sorted(config.MEANINGS) == sorted(Settings.__dataclass_fields__)


def test_what_is_made_from_the_code_is_what_the_code_says() -> None:
    stale = [name(page) for page in PAGES if content(page) != with_parts(content(page))]
    assert stale == [], "run .venv/bin/python tests/generated_docs.py"


def test_the_pages_have_every_part_that_is_made() -> None:
    pages = "".join(map(content, PAGES))
    wanted = [*PARTS, *(f"help {command}" for command in group.list_commands(click.Context(group)))]
    assert sorted(PART.findall(pages)) == sorted(wanted)


def test_endpoints_that_are_named_exist(mounted: Flask) -> None:
    adapter = mounted.url_map.bind("localhost")
    missing = []
    for page in PAGES:
        named = ADDRESS.findall(content(page))
        missing += [(name(page), path) for path in named if not adapter.allowed_methods(f"/api/v1{path}")]
        for method, path in ENDPOINT.findall(content(page)):
            try:
                adapter.match(f"/api/v1{path.removeprefix('/api/v1').rstrip('.')}", method)
            except (NotFound, MethodNotAllowed):
                missing.append((name(page), f"{method} {path}"))
    assert missing == []


def test_definitions_are_valid() -> None:
    definitions = [block for block in json_blocks("agents.md") if "nodes" in block]
    assert definitions
    for definition in definitions:
        assert check(Outline.of(definition), node_types.rules()) == []
        assert lint(Outline.of(definition), node_types.rules()) == []


def test_templates_render_as_documented() -> None:
    context = next(block for block in json_blocks("agents.md") if "nodes" not in block)
    now = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
    documented = rows("agents.md", "template", "result")
    assert documented == [[template, render(template, context, now=now, clock=MINUTES)] for template, _ in documented]


def test_every_node_type_is_documented() -> None:
    table = rows("agents.md", "type", "what it is", "how many", "incoming edges", "outgoing edges")
    documented = [type for row in table for type in row[0].split(", ")]
    assert sorted(documented) == sorted(node_types.by_name())


def test_the_scripted_model_takes_the_documented_edges() -> None:
    edges = (
        Function("yes", "They can come at that time.", label="Yes"),
        Function("no", "They cannot come at that time, or want another day.", label="No"),
    )
    documented = rows("conversation.md", "the caller says", "the edge")
    taken = [(said, best_edge(said, edges)) for said, _ in documented]
    assert documented == [[said, edge.label if edge else "none"] for said, edge in taken]


def test_the_scripted_model_extracts_the_documented_values() -> None:
    documented = rows("conversation.md", "type", "variable", "hint", "the caller said", "value")
    assert documented
    for type, variable, hint, said, value in documented:
        wanted: Any = Variable(variable, type, hint)  # type: ignore[arg-type]
        request = Extract(1, 0.0, "1", "Node", (wanted,), "", ({"role": "user", "content": said},))
        expected = {} if value == "none" else {variable: json.loads(value)}
        assert Scripted().extract(request) == VariablesExtracted(0.0, 1, expected)


def test_the_filters_are_documented_with_their_types() -> None:
    documented = {
        row[0]: tuple(row[1].split(", ")) for row in rows("api.md", "attribute", "type", "value", "keeps runs")
    }
    assert documented == {attribute: types for attribute, (types, _) in filters.ATTRIBUTES.items()}


def test_the_filters_accept_the_documented_values(db: None) -> None:
    for attribute, _, value, _ in rows("api.md", "attribute", "type", "value", "keeps runs"):
        criterion = {"attribute": attribute, "value": json.loads(value)}
        assert filters.read(json.dumps([criterion]), filters.OF_ORGANIZATION)[1] == [criterion]


def test_the_simulators_numbers_are_documented() -> None:
    documented = {row[0] for row in rows("simulator.md", "called number", "what happens", "disposition")}
    assert documented - {"any other, or a `sip:` address"} == set(TEST_NUMBERS)


def test_the_documented_tools_can_be_created(client: FlaskClient) -> None:
    definitions = [block for block in json_blocks("tools.md") if "type" in block]
    assert {definition["type"] for definition in definitions} == {"http_api", "end_call", "transfer_call"}
    for definition in definitions:
        answer = client.post("/api/v1/tools/", json={"name": "Documented", "definition": definition})
        assert (answer.status_code, "Warning" in answer.headers) == (200, False), answer.text


def test_the_reasons_of_a_failed_transfer_are_documented() -> None:
    assert [row[0] for row in rows("tools.md", "reason", "when")] == list(FAILURES)


def test_the_headers_of_credentials_are_as_documented() -> None:
    documented = {row[0]: row[1:] for row in rows("tools.md", "`credential_type`", "`credential_data`", "header")}
    assert set(documented) == set(credentials.REQUIRED)
    for type, (data, header) in documented.items():
        credentials.validate(type, json.loads(data))
        [made] = credentials.header_of(type, json.loads(data)).items() or [("none", "")]
        assert header == ": ".join(filter(None, made))


def test_every_command_is_documented() -> None:
    headings = re.findall(r"^## (\w+)$", text("commands.md"), re.MULTILINE)
    assert sorted(headings) == group.list_commands(click.Context(group))


def test_python_examples_can_be_read() -> None:
    for page in PAGES:
        for block in re.findall(r"^```python\n(.*?)^```", content(page), re.DOTALL | re.MULTILINE):
            ast.parse(block, name(page))


def test_the_map_names_every_module_and_room() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    places = guide.split("## Where things live")[1].split("```")[1]
    named = set(re.findall(r"[a-z_]+", places))
    inside = [path for path in (ROOT / "voiceapi").iterdir() if not path.name.startswith("_")]
    modules = {path.stem for path in inside if path.suffix == ".py"}
    rooms = {path.name for path in inside if path.is_dir()}
    assert (modules | rooms) - named == set()


def test_the_schema_has_the_version_that_the_page_on_upgrades_names() -> None:
    page = " ".join(text("operations.md").split())
    assert f"in this release it is {migrations.VERSION}." in page
    assert f"this one's is {migrations.VERSION}." in page


def test_the_table_of_phrases_has_those_that_a_workflow_can_replace() -> None:
    section = text("agents.md").partition("### Phrases")[2].partition("###")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert [found for row in rows for found in re.findall(r"`(\w+)`", row)] == list(REPLACEABLE)


def test_what_it_was_tried_against_is_the_same_in_both_places() -> None:
    tables = []
    for page, heading in (
        (ROOT / "CHANGES.md", "Tried against:"),
        (DOCS / "tried.md", "# What it was tried against"),
    ):
        rest = page.read_text(encoding="utf-8").partition(f"{heading}\n")[2]
        rows = [line for line in re.split("\n(?=## |[A-Z][a-z ]+:\n)", rest)[0].splitlines() if line.startswith("| ")]
        tables.append([line.replace("docs/", "") for line in rows])
    assert tables[0] == tables[1]
    named = " ".join(row.split("|")[1] for row in tables[0][1:])
    assert all(each.name in named for each in CARRIERS.values())
