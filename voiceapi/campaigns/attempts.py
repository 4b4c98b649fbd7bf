"""The attempts to reach a contact: claim, skip or release it, and record how its call ended.

Every function here is called inside a transaction: contact, run and campaign change together.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from ..runs import lifecycle
from ..security import new_token
from ..service import Service
from ..store import campaigns as records
from ..store import dialing, runs
from ..store.base import find, require, update
from ..store.campaigns import Campaign, Contact
from ..store.database import wake_dialer
from ..store.fields import now
from ..store.runs import Run, StatusCallback
from ..store.telephony import TelephonyConfiguration
from ..store.workflows import Workflow
from ..telephony.configurations import next_turn
from ..timestamps import write_time
from .dialer.calling_hours import DAY
from .dialer.eligibility import ATTEMPTS_A_DAY
from .retry import FAILURES, OUTCOMES, Breaker, Retry, after_call

# A conversation that ends with one of these takes the number out of all campaigns.
OPT_OUTS = {
    "do_not_call": "The callee asked not to be called.",
    "opt_out": "The callee opted out.",
}
# The outcome of a call without a conversation, by the run's disposition.
NOT_CONNECTED = {
    "busy": "busy",
    "no-answer": "no_answer",
    "canceled": "canceled",
    "error": "refused",
    "failed": "failed",
}
# How long a process has to place the call of a claimed contact.
LEASE = timedelta(seconds=30)
MOST_LOGS = 50


def claim(
    campaign: int,
    contacts: Sequence[Contact],
    workflow: Workflow,
    configuration: TelephonyConfiguration,
    moment: datetime,
) -> list[Run]:
    """Claim contacts of a campaign for their next attempts, each with its run and its turn in the account's pace."""
    claimed = [_claim(contact, workflow, configuration, moment) for contact in contacts]
    dialing.decide_all(
        (contact, "dialed", f"It is called for the {_nth(contact.attempts)} time.", moment, run.id)
        for contact, run in zip(contacts, claimed, strict=True)
    )
    first = sum(contact.attempts == 1 for contact in contacts)
    dialing.add_to(campaign, processed_rows=first, executed_count=len(contacts))
    dialing.note_dialed(campaign, moment)
    return claimed


def _claim(contact: Contact, workflow: Workflow, configuration: TelephonyConfiguration, moment: datetime) -> Run:
    contact.attempts += 1
    suffix = "" if contact.attempts == 1 else f"-{contact.attempts}"
    run = runs.create(
        workflow,
        name=f"WR-CAMPAIGN-{contact.campaign_id}-{contact.id}{suffix}",
        token=new_token(),
        campaign=contact.campaign_id,
        telephony_configuration_id=configuration.id,
        mode=configuration.provider,
        call_type="outbound",
        called_number=contact.phone_number,
    )
    contact.state, contact.next_attempt_at = "dialing", None
    contact.run_id, contact.lease_until = run.id, moment + LEASE
    update(contact, *CLAIM_FIELDS)
    next_turn(configuration, moment)
    return run


CLAIM_FIELDS = (Contact.state, Contact.attempts, Contact.next_attempt_at, Contact.run_id, Contact.lease_until)
OUTCOME_FIELDS = (Contact.state, Contact.next_attempt_at, Contact.retry_reason, Contact.lease_until)


def release(contact: Contact, run: Run, reason: str, moment: datetime) -> None:
    """Release a claim whose carrier was never asked: the attempt doesn't count, and its run is canceled."""
    lifecycle.cancel(run, reason, moment)
    contact.attempts -= 1
    first = contact.attempts == 0
    contact.state, contact.next_attempt_at = "queued" if first else "retry", moment
    contact.lease_until = None
    update(contact, *CLAIM_FIELDS)
    dialing.decide(contact, "released", reason, moment, run.id)
    dialing.add_to(contact.campaign_id, processed_rows=-int(first), executed_count=-1)
    dialing.recall_postponed(run.organization_id, contact.phone_number, ATTEMPTS_A_DAY, moment)
    wake_dialer()


def skip(contact: Contact, code: str, reason: str, until: datetime | None, moment: datetime) -> None:
    """Postpone a contact to `until`, or skip it for good if that is None."""
    dialing.decide(contact, code, reason, moment)
    contact.next_attempt_at = until
    if until is None:
        contact.state = "skipped"
        dialing.add_to(contact.campaign_id, processed_rows=int(contact.attempts == 0))
    update(contact, *OUTCOME_FIELDS)


def on_run_completed(_service: Service, run: Run) -> None:
    """Update the contact, the campaign and the do-not-call list after the end of a run."""
    if run.disposition in OPT_OUTS:
        number = run.caller_number if run.call_type == "inbound" else run.called_number
        if number:
            dialing.add_to_do_not_call(run.organization_id, {number: OPT_OUTS[run.disposition]})
    wake_dialer()
    contact = None if run.campaign_id is None else find(Contact, run_id=run.id)
    if contact is None or contact.state != "dialing":
        return
    campaign = require(Campaign, "The campaign is gone.", id=contact.campaign_id)
    moment = run.ended_at or now()
    outcome = outcome_of(run)
    verdict = after_call(outcome, contact.attempts, moment, Retry.read(campaign.retry_config))
    contact.state, contact.next_attempt_at, contact.lease_until = verdict.state, verdict.due_at, None
    contact.retry_reason = outcome if verdict.state == "retry" else None
    update(contact, *OUTCOME_FIELDS)
    error = run.gathered_context.get("error")
    reason = f"{verdict.reason} ({error})" if error and outcome in ("refused", "failed") else verdict.reason
    dialing.decide(contact, outcome, reason, moment, run.id)
    dialing.add_to(
        campaign.id,
        failed_rows=int(verdict.state in ("failed", "unknown")),
        total_queued_count=int(verdict.state == "retry"),
    )
    if outcome in FAILURES:
        _check_breaker(campaign, moment)
    if verdict.state != "retry":
        finish(campaign.id, moment)


def outcome_of(run: Run) -> str:
    """The outcome of an ended run's call, a key of `retry.OUTCOMES`."""
    tags = run.gathered_context.get("call_tags", ())
    if "voicemail_detected" in tags:
        return "voicemail"
    if "pipeline_error" in tags:
        return "failed"
    if run.answered_at is not None:
        return "answered"
    if run.disposition == "failed" and find(StatusCallback, run=run.id) is None:
        # Ended without any status update: only its id shows whether the carrier took the call.
        return "lost" if "call_id" in run.gathered_context else "unknown"
    return NOT_CONNECTED.get(run.disposition or "", "failed")


def finish(campaign: int, moment: datetime) -> None:
    """Complete a campaign once its list is imported and no contact is open."""
    if find(Campaign, id=campaign, source_status="completed") is None or dialing.is_open(campaign):
        return
    records.complete(campaign, moment)


def stop(campaign: Campaign, state: str, event: str, message: str, **details: Any) -> None:
    """Set the state of a campaign that is running or syncing, and log the reason in it."""
    records.stop(campaign.id, state, _with_entry(campaign, "error", event, message, details))


def note_hold(campaign: Campaign, event: str, reason: str, moment: datetime) -> None:
    """Log why a running campaign calls nobody for hours, once in 24 hours: it goes on by itself."""
    since = write_time(moment - DAY)
    if not any(entry["event"] == event and since < entry["ts"] for entry in campaign.logs):
        campaign.logs = _with_entry(campaign, "warning", event, reason, {})
        update(campaign, Campaign.logs)


def _check_breaker(campaign: Campaign, moment: datetime) -> None:
    """Pause a campaign when too many of its latest calls failed."""
    breaker = Breaker.read(campaign.circuit_breaker)
    since = max(moment - breaker.window, campaign.breaker_reset_at)
    ended, failed = dialing.ended_since(campaign.id, since, tuple(OUTCOMES), FAILURES)
    if breaker.trips(ended, failed):
        seconds = round(breaker.window.total_seconds())
        message = f"{failed} of the last {ended} calls within {seconds} seconds failed: the campaign is paused."
        stop(campaign, "paused", "circuit_breaker_tripped", message, ended=ended, failed=failed)


def _with_entry(campaign: Campaign, level: str, event: str, message: str, details: dict[str, Any]) -> list[Any]:
    entry = {"ts": write_time(now()), "level": level, "event": event, "message": message, "details": details or None}
    return [*campaign.logs, entry][-MOST_LOGS:]


def _nth(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")
