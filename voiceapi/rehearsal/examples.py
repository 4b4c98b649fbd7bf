"""The example workflows that come with the package, to begin with, and their conversation cases."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ..engine.graph import add_trigger_paths
from . import case_file


@cache
def examples() -> list[dict[str, Any]]:
    """The examples by name: `name`, `purpose`, `direction`, `workflow_definition`, `workflow_configurations`, `tools`.

    Each is a template for its purpose: its scripted texts speak without a language model, its prompts instruct one.
    They are shared, so don't change them.
    Their trigger nodes have no path, so that each workflow that is made of one gets its own.
    """
    return [example for _, example in _found()]


@cache
def with_cases() -> list[dict[str, Any]]:
    """The examples, each with its `cases`, too: reading those takes longer."""
    found = []
    for file, example in _found():
        text = _folder().joinpath(f"{file}{case_file.ENDING}").read_text(encoding="utf-8")
        cases, _ = case_file.contents(text)
        found.append({**example, "cases": cases})
    return found


@cache
def _found() -> list[tuple[str, dict[str, Any]]]:
    """The name of each example's file without its ending, and what it holds, by the name of the example."""
    found = []
    for file in _folder().iterdir():
        if file.name.endswith(".json"):
            body = json.loads(file.read_text(encoding="utf-8"))
            definition = add_trigger_paths(body["workflow_definition"], str, replace_all=True)
            example = {**body, "workflow_definition": definition, "tools": body.get("tools", [])}
            found.append((file.name.removesuffix(".json"), example))
    return sorted(found, key=lambda pair: str(pair[1]["name"]))


def _folder() -> Traversable:
    packaged = files("voiceapi") / "examples"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "examples"
