"""The dialer of a process: one thread that claims contacts, submits their calls, and sleeps until more is due.

Several processes may dial from one database: a claim is one transaction that checks the limits, takes a turn in the
account's pace, stores the attempt's run and marks the contact. The carrier is asked afterwards, once. If the process
stops before that, the claim is released when its lease expires, and its run is canceled. Once the run's state is
`placing`, no other call is placed for it: the contact waits for the end of its run.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from datetime import datetime

from ...calls.outbound import place
from ...calls.setup import CallRequest, CallSetup
from ...errors import Conflict, LimitReached, NotPossible, OutOfService, ServiceError
from ...organizations.call_quota import quota
from ...runs.lifecycle import is_dialable
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
from ...telephony import configurations, connect
from ...telephony.configurations import NotConfigured, next_call_at
from ...workflows import versions
from .. import attempts
from . import list_import
from .plan import CALLS_A_DAY, ORGANIZATION_LIMIT, DialSettings, Hold, Load, Plan, plan
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


class Dialer:
    """Calls the contacts of every running campaign.

    :param service: the app; its threads place the calls.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
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
            gather = GATHER_BESIDE_OTHERS if store.backend.is_concurrent else GATHER_SECONDS
            _wait(dialer_wakeup, stopping, store.wakeups.longest_pause(seconds), gather)

    def look(self) -> float:
        """Release, import and dial what is due; returns the seconds until the next look, unless the dialer is woken."""
        seconds = IDLE_SECONDS
        with self._service.store.session():
            if time.monotonic() >= self._recover_at:
                self.recover()
                self._sign()
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

    def _sign(self) -> None:
        """Note that somebody dials, at most every ten seconds, and only while a campaign runs."""
        moment = now()
        if dialing.is_unsigned(moment):
            with write(NO_LOCK):
                dialing.sign(moment)

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
            decided, requests = self._claim(campaign_id, now())
        for request in requests:
            self._service.workers.submit(self._place, request)
        if decided.look_again is None:
            return decided.hold, BUSY_SECONDS
        return decided.hold, max(0.0, min(BUSY_SECONDS, (decided.look_again - now()).total_seconds()))

    def _claim(self, campaign_id: int, moment: datetime) -> tuple[Plan, list[CallRequest]]:
        """Claim the contacts that are to be called now; returns what was decided, and the calls to place."""
        campaign = require(Campaign, "The campaign is gone.", id=campaign_id)
        if campaign.state != "running":
            return Plan(), []
        try:
            setup = self._setup(campaign)
        except OutOfService:
            raise
        except (ServiceError, NotConfigured) as error:
            reason = "its telephony configuration can't be used." if isinstance(error, NotConfigured) else str(error)
            attempts.stop(campaign, "paused", "batch_failed", f"Nobody can be called: {reason}")
            return Plan(), []
        settings = settings_of(self._service, campaign, setup.configuration)
        load = load_of(campaign, setup.configuration, settings, moment)
        rules = settings.eligibility
        # Where contacts may be skipped or postponed, more of them are read than may be called.
        selective = rules.hours or rules.most_a_day or rules.call_limits.countries
        limit = BATCH if selective else min(BATCH, _free_slots(settings, load))
        due: dict[int, records.Contact] = {}
        decided = plan(
            moment,
            settings,
            candidates(campaign, rules, moment, limit, due),
            load,
            later=lambda: moment if len(due) == limit else dialing.due_after(campaign_id, moment),
        )
        hold = decided.hold
        if hold is not None and hold.code == CALLS_A_DAY and not due and dialing.due(campaign_id, moment, 1):
            attempts.note_hold(campaign, hold.code, hold.reason, moment)
        for candidate, why in decided.blocked:
            attempts.skip(due[candidate.id], why.code, why.reason, why.until, moment)
        if decided.blocked:
            attempts.finish(campaign_id, moment)
        contacts = [due[candidate.id] for candidate in decided.dial]
        return decided, attempts.claim(campaign, contacts, setup, settings.interval, moment) if contacts else []

    def _setup(self, campaign: Campaign) -> CallSetup:
        """What the campaign's calls are placed with.

        :raises ServiceError, NotConfigured: when that can't be used at the moment.
        """
        configuration = configurations.resolve_outbound(campaign.organization_id, campaign.telephony_configuration_id)
        connect.require_public_url(self._service, configuration)
        workflow = require(Workflow, "Workflow not found", id=campaign.workflow_id)
        if workflow.status != "active":
            raise NotPossible("Workflow is not active")
        version = versions.published(workflow)
        graph = versions.load_graph(workflow, version)
        return CallSetup(workflow, version, graph, configuration, configurations.caller_number(configuration, None))

    def _place(self, request: CallRequest) -> None:
        """Place the call to a contact, or release its claim if that fails before the carrier is asked."""
        with self._service.store.session():
            try:
                place(self._service, request, give_back=attempts.give_back)
            except Conflict:  # it took so long that the claim was given back
                return
            except (LimitReached, OutOfService) as busy:
                self._give_back(request, str(busy.detail), pause=False)
            except Exception as error:
                if not isinstance(error, ServiceError):
                    log.exception("Call %s could not be placed", request.name)
                # A call that the carrier refused has ended by now, and its contact with it.
                self._give_back(request, str(error), pause=True)

    def _give_back(self, request: CallRequest, reason: str, *, pause: bool) -> None:
        moment, run = now(), request.prepared
        assert run is not None
        # The lock of calls as well: a contact whose attempt is given back may end another one's wait.
        with write(calls_lock(run.organization_id), *runs.ending_locks(run)):
            contact, run = find(records.Contact, run_id=run.id), find(Run, id=run.id)
            if contact is None or run is None or not is_dialable(run):
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
    campaign: Campaign, configuration: TelephonyConfiguration | None, settings: DialSettings, moment: datetime
) -> Load:
    """The calls in progress and those left for the day; contacts that are claimed but not called yet count as calls."""
    organization = campaign.organization_id
    claimed = dialing.claimed(organization)
    today = quota(organization, settings.eligibility.call_limits.calls_a_day, moment)
    return Load(
        runs.in_progress(organization, moment) + claimed,
        dialing.dialing(campaign.id, moment),
        None if configuration is None else next_call_at(configuration, moment),
        None if today is None else replace(today, left=today.left - claimed),
    )


def _free_slots(settings: DialSettings, load: Load) -> int:
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
