"""Use cases of an organization's preferences and disposition codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..store import run_lists
from ..store.base import require
from ..store.database import write
from ..store.organizations import Organization

PREFERENCES: Mapping[str, Any] = {
    "test_phone_number": None,
    "timezone": None,
    "external_pbx_integrations_enabled": False,
    "calling_hours": None,
    "max_attempts_per_day": None,
    "allowed_countries": None,
    "max_calls_a_day": None,
}
# A client that doesn't know these limits must not remove them by replacing the preferences: only null does.
KEPT = ("allowed_countries", "max_calls_a_day")
# Dispositions of conversations. Their order is part of the API.
END_REASONS = (
    "call_duration_exceeded",
    "call_transferred",
    "end_call_tool",
    "voicemail_detected",
    "user_idle_max_duration_exceeded",
    "user_hangup",
    "user_qualified",
    "user_disqualified",
    "system_cancelled",
    "system_connect_error",
    "unexpected_error",
    "unknown",
    "transfer_call",
    "pipeline_error",
)
# Dispositions of calls that were never connected.
NOT_CONNECTED = ("no-answer", "busy", "failed", "canceled", "error")
MAX_OTHER_CODES = 200


def get(organization: int) -> dict[str, Any]:
    """All preferences by name, with the default of each that was never set."""
    stored = require(Organization, "Organization not found", id=organization).preferences
    return {name: stored.get(name, default) for name, default in PREFERENCES.items()}


def replace(organization: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace all preferences; what `values` lacks goes back to its default, unless it is KEPT.

    Unknown names are dropped.
    """
    with write():
        record = require(Organization, "Organization not found", id=organization)
        kept = {name: record.preferences[name] for name in KEPT if name in record.preferences}
        preferences = {**PREFERENCES, **kept, **{name: values[name] for name in PREFERENCES if name in values}}
        record.preferences = preferences
        record.save(only=[Organization.preferences])
    return preferences


def disposition_codes(organization: int) -> list[str]:
    """The built-in codes, then up to 200 others that the organization's runs ended with, in alphabetical order."""
    built_in = (*END_REASONS, *NOT_CONNECTED)
    return [*built_in, *run_lists.other_dispositions(organization, built_in, MAX_OTHER_CODES)]
