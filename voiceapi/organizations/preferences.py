"""Use cases of an organization: its preferences and its disposition codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..store.base import require
from ..store.database import write
from ..store.organizations import Organization
from ..store.runs import Run

PREFERENCES: Mapping[str, Any] = {
    "test_phone_number": None,
    "timezone": None,
    "external_pbx_integrations_enabled": False,
    "calling_hours": None,
    "max_attempts_per_day": None,
}
# Why a conversation ended, then how a call that was never one came out, in the order of the API contract.
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
NOT_CONNECTED = ("no-answer", "busy", "failed", "canceled", "error")
MOST_LEARNED = 200


def preferences(organization: int) -> dict[str, Any]:
    """Every preference, with its default when it was never set."""
    stored = require(Organization, "Organization not found", id=organization).preferences
    return {name: stored.get(name, default) for name, default in PREFERENCES.items()}


def set_preferences(organization: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the preferences whole."""
    kept = {name: values.get(name, default) for name, default in PREFERENCES.items()}
    with write():
        Organization.update(preferences=kept).where(Organization.id == organization).execute()
    return kept


def disposition_codes(organization: int) -> list[str]:
    """The known codes, then those that the organization's own workflows gave, sorted: at most 200 of them."""
    known = (*END_REASONS, *NOT_CONNECTED)
    learned = (
        Run.select(Run.disposition)
        .where(Run.organization == organization, Run.disposition.not_in((*known, "")))
        .distinct()
        .order_by(Run.disposition)
        .limit(MOST_LEARNED)
    )
    return [*known, *(str(run.disposition) for run in learned)]
