"""Use cases of an organization's preferences and disposition codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..store import dialing, organizations, run_lists, tags
from ..store.database import wake_dialer, write
from ..store.fields import now
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
# Those that decide when a contact of a campaign that is due may be called.
PLANNING = ("calling_hours", "max_attempts_per_day")
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


def of(organization: Organization) -> dict[str, Any]:
    """All preferences by name, with the default of each that was never set."""
    stored = organization.preferences
    return {name: stored.get(name, default) for name, default in PREFERENCES.items()}


def replace(organization: int, values: Mapping[str, Any], expected: tags.Expected = None) -> Organization:
    """Replace all preferences; what `values` lacks goes back to its default, unless it is KEPT.

    Unknown names are dropped. New rules of campaigns count from now, for contacts that wait as well.

    :param expected: whether the tag of the preferences is one that the editor expects; None when any is.
    :raises Outdated: when the tag isn't expected.
    """
    with write():
        record = organizations.get(organization)
        tags.PREFERENCES.require(expected, record)
        kept = {name: record.preferences[name] for name in KEPT if name in record.preferences}
        preferences = {**PREFERENCES, **kept, **{name: values[name] for name in PREFERENCES if name in values}}
        if any(record.preferences.get(name) != preferences[name] for name in PLANNING):
            dialing.recall_postponed(organization, now())
        record.preferences = preferences
        record.save(only=[Organization.preferences])
        wake_dialer()
    return record


def disposition_codes(organization: int) -> list[str]:
    """The built-in codes, then up to 200 others that the organization's runs ended with, in alphabetical order."""
    built_in = (*END_REASONS, *NOT_CONNECTED)
    return [*built_in, *run_lists.other_dispositions(organization, built_in, MAX_OTHER_CODES)]
