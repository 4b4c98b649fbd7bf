"""Parameters of tools: their JSON schema, the model's arguments, and preset values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from voiceapi.tools.tool import ToolError, declared_arguments, preset_values, schema

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def parameter(name: str, type: str = "string", required: bool = True, **members: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "description": f"The {name}.", "required": required, **members}


def test_the_schema_of_what_a_model_is_asked_for() -> None:
    types = ("string", "number", "boolean", "object", "array")
    asked = [parameter(type, type, type != "array") for type in types]
    assert schema([*asked, parameter("")]) == {
        "type": "object",
        "properties": {
            "string": {"type": "string", "description": "The string."},
            "number": {"type": "number", "description": "The number."},
            "boolean": {"type": "boolean", "description": "The boolean."},
            "object": {"type": "object", "additionalProperties": True, "description": "The object."},
            "array": {"type": "array", "items": {}, "description": "The array."},
        },
        "required": ["string", "number", "boolean", "object"],
    }
    assert schema(None) == {"type": "object", "properties": {}, "required": []}


def test_undeclared_arguments_of_the_model_are_dropped() -> None:
    asked = [parameter("city"), parameter("day", required=False)]
    assert declared_arguments(asked, {"city": "Rome", "day": None, "account": "7"}) == {"city": "Rome"}
    assert declared_arguments(None, {"city": "Rome"}) == {}
    with pytest.raises(ToolError, match="The parameter 'city' is required"):
        declared_arguments(asked, {"day": "Monday"})


@pytest.mark.parametrize(
    ("type", "template", "value"),
    [
        ("string", "{{name}}", "Ann"),
        ("number", "{{age}}", 41),
        ("number", "007", 7),
        ("number", "2.5", 2.5),
        ("boolean", "Yes", True),
        ("boolean", "off", False),
        ("object", "{{address}}", {"city": "Rome"}),
        ("array", '[1, "{{name}}"]', [1, "Ann"]),
    ],
)
def test_a_preset_parameter_is_rendered_and_typed(type: str, template: str, value: Any) -> None:
    context = {"name": "Ann", "age": 41, "address": {"city": "Rome"}}
    found = preset_values([parameter("p", type, value_template=template)], context, NOW)["p"]
    assert (found, found.__class__) == (value, value.__class__)


@pytest.mark.parametrize(
    ("type", "template", "error"),
    [
        ("string", "{{gone}}", "Preset parameter 'p' resolved to an empty value"),
        ("string", "  ", "Preset parameter 'p' resolved to an empty value"),
        ("number", "ten", "Preset parameter 'p' is not a valid number: ten"),
        ("number", "nan", "Preset parameter 'p' is not a valid number: nan"),
        ("number", "9" * 400, f"Preset parameter 'p' is not a valid number: {'9' * 100}"),
        ("boolean", "maybe", "Preset parameter 'p' is not a valid boolean: maybe"),
        ("object", "[1]", "Preset parameter 'p' is not a valid object: [1]"),
        ("array", "[1", "Preset parameter 'p' is not a valid array: [1"),
        ("array", "[" * 500, f"Preset parameter 'p' is not a valid array: {'[' * 100}"),
    ],
)
def test_a_preset_parameter_without_a_usable_value(type: str, template: str, error: str) -> None:
    with pytest.raises(ToolError) as refused:
        preset_values([parameter("p", type, value_template=template)], {}, NOW)
    assert str(refused.value) == error


def test_an_optional_preset_parameter_without_a_value_is_left_out() -> None:
    assert preset_values([parameter("p", required=False, value_template="{{gone}}")], {}, NOW) == {}


def test_preset_parameters_share_one_bound() -> None:
    presets = [parameter(name, value_template="{{large}}") for name in "abc"]
    assert len(preset_values(presets, {"large": "x" * 300_000}, NOW)) == 3
    with pytest.raises(ToolError, match="The text of the preset parameters is larger than 1 MiB"):
        preset_values(presets, {"large": "x" * 400_000}, NOW)
