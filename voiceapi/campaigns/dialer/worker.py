"""The dialer of a process: one thread that claims contacts, submits their calls, and sleeps until more is due.

Several processes may dial from one database: a claim is one transaction that checks the limits, takes a turn in the
account's pace, stores the attempt's run and marks the contact. The carrier is asked afterwards, once. If the process
stops before that, the claim is released when its lease expires, and its run is canceled. Once the run's state is
`placing`, no other call is placed for it: the contact waits for the end of its run.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ...calls.outbound import Agent, place
from ...errors import Conflict, LimitReached, NotPossible, OutOfService, ServiceError
from ...organizations import call_quota
from ...runs.lifecycle import is_dialable
from ...runs.runs import without_reserved
from ...service import Service
from ...store import campaigns as records
from ...store import dialing, runs
from ...store.base import find, require
from ...store.campaigns import Campaign
from ...store.database import write
from ...store.fields import now
from ...store.locks import NO_LOCK, calls_lock, campaign_lock
from ...store.runs import Run
from ...store.telephony import TelephonyConfiguration
from ...store.workflows import Workflow
from ...telephony import connect, selection
from ...telephony.configurations import next_call_at
from ...telephony.selection import NotConfigured
from ...workflows import versions
from .. import attempts
from . import list_import
from .plan import CALLS_A_DAY, ORGANIZATION_LIMIT, Hold, Load, Plan, Settings, held, plan
from .settings import candidates, settings_of

log = logging.getLogger("voiceapi")

# The longest sleep. Where other processes can't wake this dialer, it may miss for so long, idle, that they started a
# campaign; busy, that one of their calls ended.
IDLE_SECONDS, BUSY_SECONDS = 3.0, 1.0
# How long a dialer that was woken waits for more: calls often end together. Where each call that ends wakes the dialers
# of all processes, these would look far more often than there is something to dial.
GATHER_SECONDS, GATHER_BESIDE_OTHERS = 0.005, 0.05
# How many contacts are looked at in one transaction.
BATCH = 100
GREETING_COLUMNS = ("greeting_override_type", "greeting_override_text", "greeting_override_recording_id")


@dataclass(frozen=True, slots=True)
class Claim:
    """A contact that this process has to call, as `run`."""

    contact_id: int
    run: Run
    agent: Agent
    to: str
    context: Mapping[str, Any]
    gathered: Mapping[str, Any]
    # When the turn in the account's pace that the claim took expires.
    turn_until: datetime


class Dialer:
    """Calls the contacts of every running campaign.

    :param service: the app; its threads place the calls.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        # Ids of released versions that were found valid: they never change.
        self._checked: set[int] = set()
        self._recover_at = 0.0

    def run(self) -> None:
        """Dial until the service's threads are to stop."""
        stopping, dialer_wakeup = self._service.workers.stopping, self._service.store.dialer_wakeup
        while not stopping.is_set():
            dialer_wakeup.clear()
            try:
                seconds = self.look()
                self._service.workers.last_runs["dial"] = time.time()
            except OutOfService:  # the database can't be used, as its log says
                seconds = IDLE_SECONDS
            except Exception:
                log.exception("The dialer failed, and tries again")
                seconds = IDLE_SECONDS
            store = self._service.store
            gather = GATHER_SECONDS if store.path is not None else GATHER_BESIDE_OTHERS
            _wait(dialer_wakeup, stopping, store.wakeups.longest_pause(seconds), gather)

    def look(self) -> float:
        """Release, import and dial what is due; returns the seconds until the next look, unless the dialer is woken."""
        seconds = IDLE_SECONDS
        with self._service.store.session():
            if time.monotonic() >= self._recover_at:
                self.recover()
                self._recover_at = time.monotonic() + BUSY_SECONDS
            # The organizations that had no free call in this look: one call that ends lets one campaign dial, not all.
            full: set[int] = set()
            for campaign_id, organization, state in dialing.active():
                try:
                    if state == "syncing":
                        wait = self._read_list(campaign_id)
                    elif organization in full:
                        wait = BUSY_SECONDS
                    else:
                        hold, wait = self._dial(campaign_id, organization)
                        if hold is not None and hold.code == ORGANIZATION_LIMIT:
                            full.add(organization)
                    seconds = min(seconds, wait)
                except OutOfService:
                    raise
                except Exception:  # one campaign's trouble doesn't keep the others from being dialed
                    log.exception("Campaign %s could not be dialed, and is looked at again", campaign_id)
        return seconds

    def recover(self, moment: datetime | None = None) -> int:
        """Release the claims whose lease expired before their call was placed; returns how many there were."""
        moment, given_back = moment or now(), 0
        # Another thread may claim after `moment`, so its lease may end later than one from `moment`.
        latest = moment + 2 * attempts.LEASE
        if not dialing.lapsed(moment, latest):
            return 0
        with write(NO_LOCK):
            dialing.end_leases_of_placed(moment, latest)
        if not dialing.lapsed(moment, latest):
            return 0
        with write():
            for contact in dialing.lapsed(moment, latest):
                run = find(Run, id=contact.run_id)
                if run is not None and is_dialable(run):
                    attempts.release(contact, run, "The process that was to call stopped before it did.", moment)
                    given_back += 1
        return given_back

    def _read_list(self, campaign_id: int) -> float:
        with write(campaign_lock(campaign_id)):
            taken = list_import.take(campaign_id)
        if taken:
            self._service.workers.submit(list_import.read_list, self._service, campaign_id)
        return BUSY_SECONDS

    def _dial(self, campaign_id: int, organization: int) -> tuple[Hold | None, float]:
        """Claim the contacts that the plan names and submit their calls.

        Returns what holds the campaign back, and the seconds until the next look.
        """
        with write(calls_lock(organization), campaign_lock(campaign_id)):
            decided, claims = self._claim(campaign_id, now())
        for claim in claims:
            self._service.workers.submit(self._carry_out, claim)
        if decided.look_again is None:
            return decided.hold, BUSY_SECONDS
        return decided.hold, max(0.0, min(BUSY_SECONDS, (decided.look_again - now()).total_seconds()))

    def _claim(self, campaign_id: int, moment: datetime) -> tuple[Plan, list[Claim]]:
        campaign = require(Campaign, "The campaign is gone.", id=campaign_id)
        if campaign.state != "running":
            return Plan(), []
        try:
            agent = self._agent(campaign)
        except OutOfService:
            raise
        except (ServiceError, NotConfigured) as error:
            reason = "its telephony configuration can't be used." if isinstance(error, NotConfigured) else str(error)
            attempts.stop(campaign, "paused", "batch_failed", f"Nobody can be called: {reason}")
            return Plan(), []
        settings = settings_of(self._service, campaign, agent.configuration)
        load = load_of(campaign, agent.configuration, settings, moment)
        hold = held(moment, settings, load)
        if hold is not None:
            if hold.code == CALLS_A_DAY and dialing.due(campaign_id, moment, 1):
                attempts.note_hold(campaign, hold.code, hold.reason, moment)
            return Plan(hold=hold, look_again=hold.until), []
        rules = settings.eligibility
        # Where contacts may be skipped or postponed, more of them are read than may be called.
        selective = rules.hours or rules.most_a_day or rules.call_limits.countries
        limit = BATCH if selective else min(BATCH, _free_slots(settings, load))
        due = {contact.id: contact for contact in dialing.due(campaign_id, moment, limit)}
        later = moment if len(due) == limit else dialing.due_after(campaign_id, moment)
        looked_at = candidates(campaign.organization_id, list(due.values()), settings.eligibility, moment)
        decided = plan(moment, settings, looked_at, load, later)
        for candidate, why in decided.blocked:
            attempts.skip(due[candidate.id], why.code, why.reason, why.until, moment)
        if decided.blocked:
            attempts.finish(campaign_id, moment)
        contacts = [due[candidate.id] for candidate in decided.dial]
        runs = attempts.claim(campaign_id, contacts, agent.workflow, agent.configuration, moment) if contacts else []
        return decided, [
            _claim_of(contact, run, campaign, agent, moment + settings.interval)
            for contact, run in zip(contacts, runs, strict=True)
        ]

    def _agent(self, campaign: Campaign) -> Agent:
        """The workflow, version, configuration and number of the campaign's calls.

        :raises ServiceError, NotConfigured: when one of them can't be used at the moment.
        """
        configuration = selection.resolve_outbound(campaign.organization_id, campaign.telephony_configuration_id)
        connect.require_public_url(self._service, configuration)
        workflow = require(Workflow, "Workflow not found", id=campaign.workflow_id)
        if workflow.status != "active":
            raise NotPossible("Workflow is not active")
        version = versions.published(workflow)
        if version.id not in self._checked:
            versions.load_graph(workflow, version)
            self._checked.add(version.id)
        return Agent(workflow, version, configuration, selection.caller_number(configuration, None))

    def _carry_out(self, claim: Claim) -> None:
        """Place the call of a claim, or release the claim if that fails before the carrier is asked."""
        with self._service.store.session():
            try:
                place(
                    self._service,
                    claim.agent,
                    claim.to,
                    claim.run.name,
                    claim.context,
                    claim.gathered,
                    claim.run,
                    turn_until=claim.turn_until,
                )
            except Conflict:  # it took so long that the claim was given back
                return
            except (LimitReached, OutOfService) as busy:
                self._give_back(claim, str(busy.detail), pause=False)
            except Exception as error:
                if not isinstance(error, ServiceError):
                    log.exception("A call of campaign %s could not be placed", claim.run.campaign_id)
                # A call that the carrier refused has ended by now, and its contact with it.
                self._give_back(claim, str(error), pause=True)

    def _give_back(self, claim: Claim, reason: str, *, pause: bool) -> None:
        moment = now()
        # The lock of calls as well: a contact whose attempt is given back may end another one's wait.
        with write(calls_lock(claim.run.organization_id), *runs.ending_locks(claim.run)):
            contact, run = find(records.Contact, id=claim.contact_id), find(Run, id=claim.run.id)
            if contact is None or run is None or contact.run_id != run.id or not is_dialable(run):
                return
            attempts.release(contact, run, reason, moment)
            if pause:
                campaign = Campaign.get_by_id(contact.campaign_id)
                attempts.stop(campaign, "paused", "batch_failed", f"Nobody can be called: {reason}")


def register(service: Service) -> None:
    """Register the dialer with the service's threads, unless VOICEAPI_WORKER is off."""
    if service.settings.worker:
        service.workers.at_stop(service.store.dialer_wakeup.set)
        service.workers.repeat(float("inf"), Dialer(service).run)


def load_of(
    campaign: Campaign, configuration: TelephonyConfiguration | None, settings: Settings, moment: datetime
) -> Load:
    """The calls in progress and those left for the day; contacts that are claimed but not called yet count as calls."""
    organization = campaign.organization_id
    claimed = dialing.claimed(organization)
    quota = call_quota.quota(organization, settings.eligibility.call_limits.calls_a_day, moment)
    return Load(
        runs.in_progress(organization, moment) + claimed,
        dialing.dialing(campaign.id, moment),
        None if configuration is None else next_call_at(configuration, moment),
        None if quota is None else replace(quota, left=quota.left - claimed),
    )


def _claim_of(contact: records.Contact, run: Run, campaign: Campaign, agent: Agent, turn_until: datetime) -> Claim:
    tags = ["retry", f"retry_reason_{contact.retry_reason}"] if contact.attempts > 1 else []
    gathered = {"triggered_by": "campaign", **({"call_tags": tags} if tags else {})}
    return Claim(
        contact.id, run, agent, contact.phone_number, context_of(contact, campaign, agent), gathered, turn_until
    )


def context_of(contact: records.Contact, campaign: Campaign, agent: Agent) -> dict[str, Any]:
    """The initial context of a contact's run: the columns of its row, then the members that the service sets itself."""
    key_hash = hashlib.md5(campaign.source_id.encode(), usedforsecurity=False).hexdigest()[:8]
    retries = contact.attempts - 1
    source = f"csv_{key_hash}_row_{contact.row}" + (f"_retry_{retries}" if retries else "")
    retry = {"is_retry": True, "retry_attempt": retries, "retry_reason": contact.retry_reason} if retries else {}
    return {
        **_with_greeting(without_reserved(contact.variables)),
        **retry,
        "campaign_id": campaign.id,
        "provider": agent.configuration.provider,
        "source_uuid": source,
        "called_number": contact.phone_number,
        "direction": "outbound",
        "telephony_configuration_id": agent.configuration.id,
    }


def _with_greeting(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its three `greeting_override_*` columns as one variable, `greeting_override`."""
    kind, text, recording = (str(row.get(name, "")).strip() for name in GREETING_COLUMNS)
    values = {name: value for name, value in row.items() if name not in GREETING_COLUMNS}
    if kind == "text" and text:
        values["greeting_override"] = {"type": "text", "text": text}
    elif kind == "audio" and recording:
        values["greeting_override"] = {"type": "audio", "recording_id": recording}
    return values


def _free_slots(settings: Settings, load: Load) -> int:
    """How many calls may be placed now."""
    if settings.interval:
        return 1
    limits = [settings.organization_limit - load.organization]
    if settings.campaign_limit is not None:
        limits.append(settings.campaign_limit - load.campaign)
    if load.quota is not None:
        limits.append(load.quota.left)
    return min(limits)


def _wait(dialer_wakeup: threading.Event, stopping: threading.Event, seconds: float, gather: float) -> None:
    if not stopping.is_set() and dialer_wakeup.wait(seconds):
        stopping.wait(gather)
