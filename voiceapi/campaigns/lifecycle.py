"""The life of a campaign: start, pause, resume, redial, its progress and its outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import NotAuthenticated, NotPossible
from ..store import campaigns as records
from ..store import dialing, run_lists
from ..store.base import find, insert, reload, update
from ..store.campaigns import Campaign
from ..store.database import wake_dialer, write
from ..store.fields import now
from ..store.telephony import TelephonyConfiguration
from . import attempts, campaigns
from .retry import OUTCOMES

# The outcomes that a redial can select, by their flag in the request.
REDIALED: Mapping[str, str] = {
    "retry_on_voicemail": "voicemail",
    "retry_on_no_answer": "no_answer",
    "retry_on_busy": "busy",
    "retry_on_refused": "refused",
}
COPIED = (
    *("organization", "workflow", "telephony_configuration", "source_type", "source_id", "phone_number_column"),
    *("retry_config", "schedule_config", "circuit_breaker", "max_concurrency", "calling_hours", "max_attempts_per_day"),
)
# Decisions that `failed_calls` of the progress counts.
FAILED_CALLS = ("failed", "lost", "unknown", "busy", "no_answer")
# An agent may extract any text as a disposition.
MOST_DISPOSITIONS = 50


def start(organization: int, campaign_id: int) -> Campaign:
    """Start a campaign: its list is imported, then its contacts are called.

    :raises NotAuthenticated: without any telephony configuration.
    :raises RecordNotFound: when there is no such campaign.
    :raises NotPossible: when it was started before.
    """
    _require_telephony(organization)
    with write():
        campaign = _in_state(organization, campaign_id, ("created",), "'created' state to start")
        _activate(campaign)
        campaign.started_at = now()
        campaign.total_rows = campaign.total_rows or 0
        update(campaign, Campaign.state, Campaign.started_at, Campaign.total_rows, Campaign.breaker_reset_at)
    wake_dialer()
    return campaign


def pause(organization: int, campaign_id: int) -> Campaign:
    """Pause a campaign: no new calls are placed; calls in progress continue.

    :raises RecordNotFound: when there is no such campaign.
    :raises NotPossible: when it isn't running.
    """
    with write():
        campaign = _in_state(organization, campaign_id, ("running", "syncing"), "'running' or 'syncing' state to pause")
        campaign.state = "paused"
        update(campaign, Campaign.state)
    return campaign


def resume(organization: int, campaign_id: int) -> Campaign:
    """Resume a paused campaign, with its circuit breaker reset; contacts that were postponed are looked at again.

    :raises NotAuthenticated: without any telephony configuration.
    :raises RecordNotFound: when there is no such campaign.
    :raises NotPossible: when it isn't paused.
    """
    _require_telephony(organization)
    with write():
        campaign = _in_state(organization, campaign_id, ("paused",), "'paused' state to resume")
        _activate(campaign)
        update(campaign, Campaign.state, Campaign.breaker_reset_at)
        attempts.apply_settings(campaign, attempts.PLANNING, now())
        attempts.finish(campaign.id, now())
    wake_dialer()
    return reload(campaign)


def redial(organization: int, campaign_id: int, wanted: Mapping[str, Any]) -> Campaign:
    """Create a campaign of the contacts that weren't reached, for the selected outcomes.

    :raises RecordNotFound: when there is no such campaign.
    :raises NotPossible: when it isn't completed, was redialed before, or has no such contact.
    """
    outcomes = [outcome for flag, outcome in REDIALED.items() if wanted[flag]]
    with write():
        parent = campaigns.get(organization, campaign_id)
        if parent.state != "completed":
            raise NotPossible(f"Only completed campaigns can be redialed (current state: {parent.state})")
        if parent.redialed_campaign_id is not None:
            raise NotPossible("This campaign has already been redialed")
        count = dialing.count_unreached(parent.id, outcomes)
        if not count:
            raise NotPossible("No subscribers match the selected redial criteria")
        child = insert(
            Campaign,
            **{name: getattr(parent, name) for name in COPIED}
            | {"retry_config": wanted["retry_config"] or parent.retry_config},
            name=wanted["name"] or f"{parent.name} (Redial)"[-255:],
            parent_campaign=parent,
            contacts_to_call=count,
            total_rows=count,
            total_queued_count=count,
            source_status="completed",
            synced_at=now(),
        )
        dialing.copy(parent.id, outcomes, child.id, now())
        parent.redialed_campaign_id = child.id
        update(parent, Campaign.redialed_campaign_id)
    return child


def progress(organization: int, campaign_id: int) -> dict[str, Any]:
    """The progress of a campaign, as `GET /campaign/{id}/progress` answers it.

    :raises RecordNotFound: when there is no such campaign.
    """
    campaign = campaigns.get(organization, campaign_id)
    total = campaign.total_rows or 0
    source = {"status": campaign.source_status, "last_synced_at": campaign.synced_at, "error": campaign.source_error}
    return {
        "campaign_id": campaign.id,
        "state": campaign.state,
        "total_rows": total,
        "processed_rows": campaign.processed_rows,
        "failed_calls": sum(dialing.counted(campaign.id, FAILED_CALLS).values()),
        "progress_percentage": 100 * campaign.processed_rows / total if total else 0.0,
        "source_sync": source,
        "rate_limit": 1,
        "started_at": campaign.started_at,
        "completed_at": campaign.completed_at,
        "contacts": dialing.states(campaign.id),
        "not_dialed_since": records.not_dialed_since(campaign, now()),
    }


def outcomes(organization: int, campaign_id: int) -> dict[str, Any]:
    """How the calls of a campaign came out: by the outcome that the dialer saw, and by the run's disposition.

    :raises RecordNotFound: when there is no such campaign.
    """
    campaign = campaigns.get(organization, campaign_id)
    counted = dialing.counted(campaign.id, tuple(OUTCOMES))
    found = run_lists.dispositions_of_campaign(campaign, MOST_DISPOSITIONS)
    return {
        "campaign_id": campaign.id,
        "outcomes": {outcome: counted.get(outcome, 0) for outcome in OUTCOMES},
        "dispositions": [{"disposition": text, "calls": number} for text, number in found],
    }


def _require_telephony(organization: int) -> None:
    if find(TelephonyConfiguration, organization=organization) is None:
        raise NotAuthenticated("You must configure telephony first by going to APP_URL/configure-telephony")


def _in_state(organization: int, campaign_id: int, states: tuple[str, ...], expected: str) -> Campaign:
    campaign = campaigns.get(organization, campaign_id)
    if campaign.state not in states:
        raise NotPossible(f"Campaign must be in {expected}, current state: {campaign.state}")
    return campaign


def _activate(campaign: Campaign) -> None:
    """Set the state of a campaign that is to be dialed and reset its circuit breaker; the caller saves it."""
    # A redial has its contacts already.
    campaign.state = "running" if campaign.source_status == "completed" else "syncing"
    campaign.breaker_reset_at = now()
