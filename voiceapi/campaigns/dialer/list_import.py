"""Reads a campaign's list into contacts, a batch at a time, and goes on after a restart where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import islice

from ...errors import ServiceError
from ...runs import files
from ...service import Service
from ...store import campaigns as records
from ...store import dialing
from ...store.base import insert_all
from ...store.campaigns import Campaign
from ...store.database import ConcurrentUpdate, ring, write
from ...store.fields import now
from ...store.telephony import TelephonyConfiguration
from ...telephony.providers import PROVIDERS
from .. import attempts
from ..contact_list import Contact, ContactList

BATCH = 500
LEASE = timedelta(seconds=30)


def take(campaign: int) -> bool:
    """Take it on to read the campaign's list, unless somebody has; call it inside a transaction."""
    moment = now()
    own = dialing.of_campaign(campaign)
    if own.source_status == "completed" or (own.lease_until is not None and own.lease_until > moment):
        return False
    own.source_status, own.lease_until = "in_progress", moment + LEASE
    own.save()
    return True


def read_list(service: Service, campaign_id: int) -> None:
    """Store a contact for every row: queued, or skipped with the reason. Stops when the campaign is paused."""
    with service.store.session():
        campaign = Campaign.get_by_id(campaign_id)
        try:
            listed = ContactList(files.read(campaign.organization_id, campaign.source_id))
        except ServiceError as fault:
            _fail(campaign_id, str(fault.detail))
            return
        rows = listed.contacts(sip=_dials_sip(campaign))
        done = dialing.rows_read(campaign_id)
        try:
            while batch := list(islice(rows, BATCH)):
                if batch[-1].row > done and not _store(campaign_id, [row for row in batch if row.row > done]):
                    return
        except ConcurrentUpdate:  # another process has taken over what took this one so long
            return
        with write():
            own = dialing.of_campaign(campaign_id)
            own.source_status, own.synced_at, own.lease_until = "completed", now(), None
            own.save()
            Campaign.update(state="running").where(Campaign.id == campaign_id, Campaign.state == "syncing").execute()
            attempts.finish(campaign_id, now())
        ring()


def _store(campaign_id: int, rows: Sequence[Contact]) -> bool:
    """Store a batch; False when the campaign isn't to be read any further."""
    moment = now()
    with write():
        own = dialing.of_campaign(campaign_id)
        wanted = Campaign.get_by_id(campaign_id).state == "syncing"
        own.lease_until = moment + LEASE if wanted else None
        own.save(only=[records.Dialing.lease_until])
        if not wanted:
            return False
        queued = [row for row in rows if row.skipped is None]
        insert_all(
            records.Contact,
            (
                {
                    "campaign": campaign_id,
                    "row": row.row,
                    "phone_number": row.phone_number,
                    "variables": dict(row.values),
                    "state": "queued" if row.skipped is None else "skipped",
                    "attempts": 0,
                    "next_attempt_at": moment if row.skipped is None else None,
                }
                for row in rows
            ),
        )
        skipped = {row.row: row.skipped for row in rows if row.skipped is not None}
        for contact in dialing.of_rows(campaign_id, list(skipped)):
            dialing.decide(contact, "row_skipped", str(skipped[contact.row]), moment)
        dialing.add_to(campaign_id, total_rows=len(queued), total_queued_count=len(queued))
    return True


def _fail(campaign_id: int, error: str) -> None:
    with write():
        own = dialing.of_campaign(campaign_id)
        own.source_status, own.source_error, own.lease_until = "failed", error, None
        own.save()
        attempts.stop(Campaign.get_by_id(campaign_id), "failed", "source_sync_failed", error)


def _dials_sip(campaign: Campaign) -> bool:
    configuration = TelephonyConfiguration.get_or_none(TelephonyConfiguration.id == campaign.telephony_configuration_id)
    return configuration is not None and PROVIDERS[configuration.provider].dials_sip
