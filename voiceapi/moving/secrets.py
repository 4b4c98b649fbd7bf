"""Secrets aren't moved: their places are emptied, and named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..llm.configuration import OVERRIDE
from ..masking import is_masked
from ..store import secret_fields
from ..store.secret_fields import KEY, Find, SecretField
from .bundle import Left

REASON = "A secret isn't carried over. Enter it here."
OWN_MODEL = "A model of its own isn't carried over with its key. Until it is entered, the organization's model speaks."


def is_mask(field: SecretField) -> bool:
    """True for what only stands for a secret, as answers show it."""
    return is_masked(field.text) or (field.kind == KEY and field.text.startswith("*"))


def is_any(_field: SecretField) -> bool:
    return True


def without(value: Any, find: Find, place: str, leaves_out: Callable[[SecretField], bool]) -> tuple[Any, list[Left]]:
    """The value with the secrets emptied for which `leaves_out` is true, and where they were."""
    result, fields = secret_fields.emptied(value, find, leaves_out)
    return result, [Left(f"{place}, {_path(value, field)}", REASON) for field in fields]


def without_in_configurations(
    value: Mapping[str, Any], place: str, leaves_out: Callable[[SecretField], bool]
) -> tuple[dict[str, Any], list[Left]]:
    """A workflow's configurations without secrets; a model of its own that has one goes as a whole."""
    rest = {name: below for name, below in value.items() if name != OVERRIDE}
    result, left = without(rest, secret_fields.in_configurations, place, leaves_out)
    own = value.get(OVERRIDE)
    if own is not None and any(leaves_out(field) for field in secret_fields.in_configurations(own)):
        left.append(Left(f"{place}, {OVERRIDE}", OWN_MODEL))
    elif own is not None:
        result = {**result, OVERRIDE: own}
    return result, left


def _path(value: Any, field: SecretField) -> str:
    """The place of a secret in words: of one in a node, the node's id comes first."""
    match field.path:
        case ("nodes", int(index), *rest):
            return f"node {value['nodes'][index].get('id')}, {'.'.join(map(str, rest))}"
    return ".".join(map(str, field.path))
