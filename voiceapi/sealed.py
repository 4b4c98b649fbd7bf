"""JSON objects that hold secrets, kept as one encrypted text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .errors import Refused
from .secrets import SecretError, Vault


def seal(vault: Vault, value: Mapping[str, Any]) -> str:
    """The object as encrypted text."""
    return vault.encrypt(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def unseal(vault: Vault, text: str) -> dict[str, Any]:
    """The object that was sealed.

    :raises Refused: when it was sealed with another secret than this service's.
    """
    try:
        found: dict[str, Any] = json.loads(vault.decrypt(text))
    except SecretError as error:
        raise Refused(str(error)) from error
    return found
