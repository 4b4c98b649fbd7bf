"""The documentation: its links lead somewhere, what it names exists, and its examples work."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
from voiceapi.engine.template import render
from voiceapi.engine.validation.check import check
from voiceapi.engine.validation.lint import lint
from voiceapi.engine.validation.outline import Outline
from voiceapi.llm.scripted import Scripted
from voiceapi.llm.understanding.edge_choice import best_edge
from voiceapi.organizations import credentials
from voiceapi.runs import filters
from voiceapi.store import migrations
from voiceapi.telephony.carriers.simulator import TEST_NUMBERS
from voiceapi.tools.transfer_call import FAILURES
from voiceapi.workflows import node_types

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SETTING = re.compile(r"VOICEAPI_[A-Z_]*[A-Z]")
# A line of the log, which begins the same way, is none.
ENDPOINT = re.compile(r"""(?<!INFO )\b(GET|POST|PUT|PATCH|DELETE) "?(/[^\s`"'?]*)""")
ADDRESS = re.compile(r"""(?:\$BASE|http://127\.0\.0\.1:8000/api/v1)(/[^\s`"'?)]*)""")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The names by which a page's headings are linked to."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
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


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_pasted_output_shows_a_failed_command(page: Path) -> None:
    """The outputs on a page were pasted from a real run. A run with an archived key once filled a page with errors."""
    shown = "".join(CODE.findall(page.read_text(encoding="utf-8")))
    assert "Traceback" not in shown
    assert "Invalid or expired API key" not in shown


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_index_leads_to_every_page() -> None:
    assert {page.name for page in DOCS.glob("*.md")} - set(LINK.findall(text("README.md"))) == {"README.md"}


@pytest.mark.parametrize("page", ["security.md", "reliability.md"])
def test_each_promise_names_a_test_that_exists(page: str) -> None:
    """Every line below the first heading of a section is a row of promises, but what is measured."""
    sections = text(page).split("\n## ")[1:]
    for section in sections:
        heading, *lines = filter(None, section.splitlines())
        if heading == "Measured":
            continue
        assert lines[:2] == ["| what holds | shown by |", "|---|---|"], f"{page}: {heading}"
        for promise, tests in _cells(iter(lines[2:])):
            assert promise
            for named in re.sub("`", "", tests).split(", "):
                file, _, function = named.partition("::")
                content = (ROOT / "tests" / file).read_text(encoding="utf-8")
                assert f"def {function or 'test_'}" in content, f"{page}: {named}"
        assert all(line.startswith("|") for line in lines), f"{page}: {heading} has lines without a test"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_settings_that_are_named_exist(page: Path) -> None:
    assert set(SETTING.findall(page.read_text(encoding="utf-8"))) <= set(config.names())


def test_every_setting_has_a_meaning() -> None:
    assert sorted(config.MEANINGS) == sorted(Settings.__dataclass_fields__)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_is_made_from_the_code_is_what_the_code_says(page: Path) -> None:
    content = page.read_text(encoding="utf-8")
    assert content == with_parts(content), "run .venv/bin/python tests/generated_docs.py"


def test_the_pages_have_every_part_that_is_made() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    wanted = [*PARTS, *(f"help {command}" for command in group.commands)]
    assert sorted(PART.findall(pages)) == sorted(wanted)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_endpoints_that_are_named_exist(page: Path, app: Flask) -> None:
    adapter = app.url_map.bind("localhost")
    content = page.read_text(encoding="utf-8")
    missing = [path for path in ADDRESS.findall(content) if not adapter.allowed_methods(f"/api/v1{path}")]
    for method, path in ENDPOINT.findall(content):
        try:
            adapter.match(f"/api/v1{path.removeprefix('/api/v1')}", method)
        except (NotFound, MethodNotAllowed):
            missing.append(f"{method} {path}")
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
    assert documented == [[template, render(template, context, now=now)] for template, _ in documented]


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


@pytest.mark.parametrize("row", rows("api.md", "attribute", "type", "value", "keeps runs"), ids=lambda row: str(row[0]))
def test_the_filters_accept_the_documented_values(row: list[str], app: Flask) -> None:
    criterion = {"attribute": row[0], "value": json.loads(row[2])}
    with app.extensions["voiceapi"].store.session():
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
    assert sorted(headings) == sorted(group.commands)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_examples_can_be_read(page: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        ast.parse(block)


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
