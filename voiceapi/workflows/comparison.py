"""What differs between two stored versions, their secrets masked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from ..llm.configuration import mask_override
from ..security import Vault
from ..store import secret_fields
from ..store.base import json_text
from ..store.workflows import WorkflowVersion
from ..strict_json import decode, encode
from .difference import compare

# What follows the mask of a secret that differs from the one before it, when both have the same mask.
CHANGED = " (another one)"


def compare_versions(vault: Vault, before: WorkflowVersion, after: WorkflowVersion) -> dict[str, Any]:
    """What differs between two versions, as `difference.compare` answers it."""
    old, new = (secret_fields.masked(vault, each.definition, secret_fields.in_definition) for each in (before, after))
    return compare(
        old,
        _with_changes_marked(vault, before.definition, after.definition, new),
        _configurations(vault, before),
        _configurations(vault, after),
        before.template_context_variables,
        after.template_context_variables,
    )


def _configurations(vault: Vault, version: WorkflowVersion) -> dict[str, Any]:
    shown: dict[str, Any] = decode(
        encode(mask_override(vault, json_text(version, WorkflowVersion.configurations))).decode()
    )
    return shown


def _with_changes_marked(
    vault: Vault, before: Mapping[str, Any], after: Mapping[str, Any], masked: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The masked definition, in which each secret whose mask doesn't show that it was changed says so."""
    old, new, shown = (
        {field.place: field for field in found}
        for found in (
            _clear(vault, before),
            _clear(vault, after),
            secret_fields.in_definition(masked),
        )
    )
    masks = {
        field.place: field.text
        for field in secret_fields.in_definition(secret_fields.masked(vault, before, secret_fields.in_definition))
    }
    result = deepcopy(masked)
    for place, field in new.items():
        if place in old and old[place].text != field.text and place in shown and masks.get(place) == shown[place].text:
            holder: Any = result
            for step in field.path[:-1]:
                holder = holder[step]
            holder[field.path[-1]] += CHANGED
    return result


def _clear(vault: Vault, definition: Mapping[str, Any]) -> Iterable[secret_fields.SecretField]:
    return secret_fields.in_definition(secret_fields.decrypted(vault, definition, secret_fields.in_definition))
