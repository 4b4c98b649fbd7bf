"""The catalogue of node types, read from schemas/node_types.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..engine.validation.field_types import Catalogue, compiled

SPEC_VERSION = "1.0.0"


def _folder() -> Traversable:
    packaged = files("voiceapi") / "schemas"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "schemas"


@cache
def read(name: str) -> Any:
    """The parsed JSON file of that name in schemas/. It is read once and shared, so don't change it."""
    return json.loads((_folder() / name).read_text(encoding="utf-8"))


def node_types() -> list[dict[str, Any]]:
    """The specs of all node types as GET /node-types serves them, by name. They are shared, so don't change them."""
    specs: list[dict[str, Any]] = read("node_types.json")["node_types"]
    return specs


@cache
def by_name() -> Mapping[str, dict[str, Any]]:
    """The specs of node types by their name, which is the `type` of a node in a workflow."""
    return MappingProxyType({spec["name"]: spec for spec in node_types()})


@cache
def rules() -> Catalogue:
    """The node types as validation reads them, by name."""
    return MappingProxyType({name: compiled(name, spec) for name, spec in by_name().items()})
