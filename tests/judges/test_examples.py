"""The examples of the API's document are what the service really takes and answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from recorded_examples import COMMON, FILE, METHODS, record

ROOT = Path(__file__).parents[2]
SNAPSHOT = json.loads((ROOT / "schemas" / "openapi.json").read_text(encoding="utf-8"))
EXAMPLES = json.loads(FILE.read_text(encoding="utf-8"))
OPERATIONS = {
    item[method]["operationId"]: item[method]
    for item in SNAPSHOT["paths"].values()
    for method in METHODS
    if method in item
}
ADVICE = "run .venv/bin/python tests/recorded_examples.py, then .venv/bin/voiceapi openapi > schemas/openapi.json"


def shape(value: Any) -> Any:
    """What kind of JSON a value is: the members of an object, of a list the kind of its first item."""
    if isinstance(value, dict):
        return {name: shape(below) for name, below in value.items()}
    if isinstance(value, list):
        return [shape(below) for below in value[:1]]
    return type(value).__name__


@pytest.mark.long
def test_the_walk_through_the_app_records_them(tmp_path: Path, database_at: Callable[[Path], str]) -> None:
    """Every request of an example succeeds, and its answer has the members and types of the example."""
    found = record(database_at(tmp_path / "voice.db"))
    assert list(found) == list(EXAMPLES), ADVICE
    for operation, example in found.items():
        assert shape(example) == shape(EXAMPLES[operation]), f"{operation}: {ADVICE}"


def test_every_operation_has_examples() -> None:
    without = {name for name in OPERATIONS if "answer" not in EXAMPLES.get(name, {})}
    # The answer is the document itself.
    assert without == {"get_openapi"}, "add a step to tests/example_requests.py"
    assert set(EXAMPLES) - set(OPERATIONS) == {COMMON}
    bare = {
        name
        for name, operation in OPERATIONS.items()
        for content in operation.get("requestBody", {}).get("content", {}).values()
        if "example" not in content
    }
    assert bare == set()


def test_the_errors_that_are_shown_are_those_that_occur() -> None:
    """An operation documents each error that the walk met there, and each with a body shows one."""
    for name, operation in OPERATIONS.items():
        met = set(EXAMPLES.get(name, {}).get("errors", {}))
        assert met <= set(operation["responses"]), name
    shown = {
        status
        for operation in OPERATIONS.values()
        for status, response in operation["responses"].items()
        for content in response.get("content", {}).values()
        if status >= "400" and ("example" in content or "examples" in content)
    }
    assert shown == {"400", "401", "403", "404", "409", "412", "413", "415", "422", "429", "503"}


def examples() -> Iterator[tuple[str, Any, Any]]:
    """The place, the schema and the value of every example in the document."""
    for name, operation in OPERATIONS.items():
        contents = [("request", operation.get("requestBody", {}).get("content", {}))]
        contents += [(status, each.get("content", {})) for status, each in operation["responses"].items()]
        for place, content in contents:
            for each in content.values():
                if "example" in each:
                    yield f"{name} {place}", each["schema"], each["example"]
    for name, each in SNAPSHOT["components"]["examples"].items():
        yield name, {"$ref": "#/components/schemas/ErrorBody"}, each["value"]


def test_each_is_valid_against_its_schema() -> None:
    validators: dict[str, Draft202012Validator] = {}
    wrong = []
    for place, schema, value in examples():
        key = json.dumps(schema)
        if key not in validators:
            validators[key] = Draft202012Validator({**schema, "components": SNAPSHOT["components"]})
        if isinstance(value, dict) and set(schema.get("properties", {})) >= {"file"}:
            continue  # a form, whose parts are texts
        wrong += [f"{place}: {error.message[:200]}" for error in validators[key].iter_errors(value)]
    assert wrong == []


@pytest.mark.parametrize("path", [ROOT / "schemas" / "openapi.json", FILE], ids=lambda path: str(path.name))
def test_no_address_of_this_machine_is_shown(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not any(each in text for each in ("/tmp/", "localhost:", "127.0.0.1:3", "127.0.0.1:4", "127.0.0.1:5"))
