"""The attempts to reach a contact: claim, skip or release it, and record how its call ended.

Every function here is called inside a transaction: contact, run and campaign change together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from ..calls.setup import CallRequest, CallSetup, initial_context
from ..runs import lifecycle
from ..runs.preparation import without_reserved
from ..security import new_token
from ..service import Service
from ..store import campaigns as records
from ..store import clock, dialing, runs
from ..store.base import find, require, update
from ..store.campaigns import Campaign, Contact
from ..store.database import wake_dialer, write
from ..store.fields import now
from ..store.runs import Run, is_reported
from ..telephony.carriers.rest import CarrierRefused
from ..telephony.configurations import reserve_call_slot
from ..telephony.numbers import normalize
from ..timestamps import write_time
from .dialer.calling_hours import DAY
from .dialer.eligibility import POSTPONED
from .retry import FAILURES, OUTCOMES, Breaker, Retry, after_call

# A conversation that ends with one of these takes the number out of all campaigns.
OPT_OUTS = {
    "do_not_call": "The person asked not to be called.",
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
# The outcomes whose reason is added to the contact's history.
EXPLAINED = ("busy", "no_answer", "canceled", "refused", "failed", "unknown")
# The settings of a campaign that decide when a contact that is due may be called.
PLANNING = frozenset(("calling_hours", "max_attempts_per_day", "schedule_config"))
# How long a process has to place the call of a claimed contact.
LEASE = timedelta(seconds=30)
MOST_LOGS = 50
NTH = {1: "first", 2: "second", 3: "third"}
DIALED = "It is called for the {} time."


CLAIM_FIELDS = (Contact.state, Contact.attempts, Contact.next_attempt_at, Contact.run_id, Contact.lease_until)
OUTCOME_FIELDS = (Contact.state, Contact.next_attempt_at, Contact.retry_reason, Contact.lease_until)
GREETING_COLUMNS = ("greeting_override_type", "greeting_override_text", "greeting_override_recording_id")


def claim(
    campaign: Campaign, contacts: Sequence[Contact], setup: CallSetup, interval: timedelta, moment: datetime
) -> list[CallRequest]:
    """Claim contacts of a campaign for their next attempts, each with its run and its slot in the account's pace.

    :param interval: from one call of the account to the next.
    """
    requests = [_claim(contact, campaign, setup, interval, moment) for contact in contacts]
    dialing.decide_all(
        (contact, "dialed", DIALED.format(NTH.get(contact.attempts, f"{contact.attempts}th")), moment, contact.run_id)
        for contact in contacts
    )
    first = sum(contact.attempts == 1 for contact in contacts)
    dialing.add_to(campaign.id, processed_rows=first, executed_count=len(contacts))
    dialing.note_dialed(campaign.id, moment)
    return requests


def _claim(
    contact: Contact, campaign: Campaign, setup: CallSetup, interval: timedelta, moment: datetime
) -> CallRequest:
    contact.attempts += 1
    retries = contact.attempts - 1
    run = runs.create(
        setup.workflow,
        name=f"WR-CAMPAIGN-{campaign.id}-{contact.id}" + (f"-{contact.attempts}" if retries else ""),
        token=new_token(),
        campaign=campaign.id,
        telephony_configuration_id=setup.configuration.id,
        mode=setup.configuration.provider,
        call_type="outbound",
        called_number=contact.phone_number,
    )
    contact.state, contact.next_attempt_at = "dialing", None
    contact.run_id, contact.lease_until = run.id, moment + LEASE
    update(contact, *CLAIM_FIELDS)
    reserve_call_slot(setup.configuration, moment)
    key_hash = hashlib.md5(campaign.source_id.encode(), usedforsecurity=False).hexdigest()[:8]
    members = {
        **columns_of(contact),
        **({"is_retry": True, "retry_attempt": retries, "retry_reason": contact.retry_reason} if retries else {}),
        "campaign_id": campaign.id,
        "source_uuid": f"csv_{key_hash}_row_{contact.row}" + (f"_retry_{retries}" if retries else ""),
    }
    tags = {"call_tags": ["retry", f"retry_reason_{contact.retry_reason}"]} if retries else {}
    return CallRequest(
        setup,
        contact.phone_number,
        run.name,
        initial_context(setup.configuration, contact.phone_number, members),
        {"triggered_by": "campaign", **tags},
        run,
        moment + interval,
    )


def columns_of(contact: Contact) -> dict[str, Any]:
    """The columns of a contact's row; the three `greeting_override_*` are one variable, `greeting_override`."""
    row = without_reserved(contact.variables)
    kind, text, recording = (str(row.pop(name, "")).strip() for name in GREETING_COLUMNS)
    if kind == "text" and text:
        row["greeting_override"] = {"type": "text", "text": text}
    elif kind == "audio" and recording:
        row["greeting_override"] = {"type": "audio", "recording_id": recording}
    return row


def release(contact: Contact, run: Run, reason: str, moment: datetime) -> None:
    """Release a claim whose call wasn't placed: the attempt doesn't count, and its run is canceled.

    Its carrier was never asked, or refused every call: that is no attempt to reach this contact.
    """
    lifecycle.cancel(run, reason, moment)
    contact.attempts -= 1
    first = contact.attempts == 0
    contact.state, contact.next_attempt_at = "queued" if first else "retry", moment
    contact.lease_until = None
    update(contact, *CLAIM_FIELDS)
    dialing.decide(contact, "released", reason, moment, run.id)
    dialing.add_to(contact.campaign_id, processed_rows=-int(first), executed_count=-1)
    dialing.recall_postponed(run.organization_id, moment, number=contact.phone_number)
    wake_dialer()


def give_back(run: Run, refusal: CarrierRefused) -> None:
    """Release the claim of a call that its carrier refused for the account's sake, or for now.

    If somebody has to change something first, the campaign is paused: every other call would be refused, too.
    """
    contact = find(Contact, run_id=run.id)
    if contact is None or contact.state != "dialing":
        return
    moment = now()
    release(contact, run, f"No call was placed. {refusal}", moment)
    campaign = require(Campaign, "The campaign is gone.", id=contact.campaign_id)
    if refusal.scope == "account":
        message = f"The carrier takes no calls of this account, so the campaign is paused: {refusal}"
        stop(campaign, "paused", "account_refused", message)
    else:
        message = f"The carrier takes no calls for now, so the campaign waits: {refusal}"
        note_hold(campaign, "carrier_busy", message, moment)


def skip(contact: Contact, code: str, reason: str, until: datetime | None, moment: datetime) -> None:
    """Postpone a contact to `until`, or skip it for good if that is None."""
    dialing.decide(contact, code, reason, moment)
    contact.next_attempt_at = until
    if until is None:
        contact.state = "skipped"
        dialing.add_to(contact.campaign_id, processed_rows=int(contact.attempts == 0))
    update(contact, *OUTCOME_FIELDS)


def apply_settings(campaign: Campaign, changed: Collection[str], moment: datetime) -> None:
    """Have the contacts of a campaign that wait do so by its settings, of which those named `changed` are new."""
    if not PLANNING.isdisjoint(changed):
        dialing.recall_postponed(campaign.organization_id, moment, campaign=campaign.id)
    if "retry_config" in changed:
        retry = Retry.read(campaign.retry_config)
        reason = "The campaign's retries were changed; that is not followed by another attempt."
        outcomes = sorted(retry.outcomes)
        ended = records.end_retries(campaign.id, retry.most, outcomes, "retries_changed", reason, moment)
        dialing.add_to(campaign.id, failed_rows=ended)
        records.plan_retries(campaign.id, retry.delay)
        finish(campaign.id, moment)


def apply_run_outcome(_service: Service, run: Run) -> None:
    """Update the contact, the campaign and the do-not-call list after the end of a run."""
    # What is tried out with a simulated person is nobody's wish.
    if run.disposition in OPT_OUTS and not (run.is_test and run.is_simulated):
        number = run.caller_number if run.call_type == "inbound" else run.called_number
        # Who withholds the number calls as "anonymous" or the like.
        if number and normalize(number).address_type != "sip_extension":
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
    why = lifecycle.reason_of(run.gathered_context) if outcome in EXPLAINED else None
    reason = f"{verdict.reason} ({why})" if why else verdict.reason
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
    if run.disposition == "failed" and not is_reported(run.id):
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


# -- what a campaign does when the clock is set back: it goes on, as if what lies in the future were now


def correct(moment: datetime) -> bool:
    """Bring what campaigns stored while the clock was ahead back to `moment`; False when there is nothing."""
    if not clock.campaigns_are_ahead(moment):
        return False
    with write():
        for campaign in clock.unfinished_campaigns():
            clock.make_due(campaign.id, moment, Retry.read(campaign.retry_config).delay, POSTPONED)
        clock.correct_history(moment)
    wake_dialer()
    return True
