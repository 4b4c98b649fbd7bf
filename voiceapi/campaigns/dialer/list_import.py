"""Imports a campaign's list into contacts in batches; after a restart it continues after the last stored row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from ...errors import OutOfService, ServiceError
from ...runs import files
from ...service import Service
from ...store import campaigns as records
from ...store import dialing
from ...store.base import find, insert_all, require, update
from ...store.campaigns import LEASE, Campaign
from ...store.database import ConcurrentUpdate, wake_dialer, write
from ...store.fields import now
from ...store.locks import campaign_lock
from ...store.telephony import TelephonyConfiguration
from ...telephony.configurations import reader
from .. import attempts
from ..contact_list import Contact, ContactList

BATCH = 500
IMPORT_FIELDS = (Campaign.source_status, Campaign.synced_at, Campaign.source_lease_until)


def take(campaign_id: int) -> bool:
    """Lease the import of a campaign's list to this process; False if another has the lease, or it is completed.

    Call it inside a transaction.
    """
    moment = now()
    campaign = _campaign(campaign_id)
    until = campaign.source_lease_until
    # A lease that ends much later than one from now was given while the clock was ahead.
    leased = until is not None and moment < until <= moment + 2 * LEASE
    if campaign.source_status == "completed" or leased:
        return False
    campaign.source_status, campaign.source_lease_until = "in_progress", moment + LEASE
    update(campaign, Campaign.source_status, Campaign.source_lease_until)
    return True


def read_list(service: Service, campaign_id: int) -> None:
    """Store a contact for every row: queued, or skipped with the reason. Stops when the campaign is paused."""
    with service.store.session():
        campaign = _campaign(campaign_id)
        try:
            content = files.read(campaign.organization_id, campaign.source_id)
            listed = ContactList(content, campaign.phone_number_column)
        except OutOfService:
            raise
        except ServiceError as error:
            _fail(campaign_id, str(error.detail))
            return
        rows = listed.contacts(reader(find(TelephonyConfiguration, id=campaign.telephony_configuration_id)))
        done = dialing.rows_read(campaign_id)
        try:
            while batch := list(islice(rows, BATCH)):
                if batch[-1].row > done and not _store(campaign_id, [row for row in batch if row.row > done]):
                    return
        except ConcurrentUpdate:  # the lease expired and another process has continued the import
            return
        with write(campaign_lock(campaign_id)):
            campaign = _campaign(campaign_id)
            # The lease stays: a dialer renews it from here on.
            campaign.source_status, campaign.synced_at = "completed", now()
            if campaign.state == "syncing":
                campaign.state = "running"
            update(campaign, *IMPORT_FIELDS, Campaign.state)
            attempts.finish(campaign_id, now())
        wake_dialer()


def _store(campaign_id: int, rows: Sequence[Contact]) -> bool:
    """Store a batch; False if the campaign isn't `syncing` any more, so that the import stops."""
    moment = now()
    skipped = {row.row: row.skipped for row in rows if row.skipped is not None}
    contacts = [
        {
            "campaign": campaign_id,
            "row": row.row,
            "phone_number": row.phone_number,
            "variables": row.values,
            "state": "queued" if row.skipped is None else "skipped",
            "attempts": 0,
            "next_attempt_at": moment if row.skipped is None else None,
        }
        for row in rows
    ]
    with write(campaign_lock(campaign_id)):
        campaign = _campaign(campaign_id)
        wanted = campaign.state == "syncing"
        campaign.source_lease_until = moment + LEASE if wanted else None
        update(campaign, Campaign.source_lease_until)
        if not wanted:
            return False
        insert_all(records.Contact, contacts)
        dialing.note_skipped(campaign_id, skipped, moment)
        queued = len(rows) - len(skipped)
        dialing.add_to(campaign_id, total_rows=queued, total_queued_count=queued)
    return True


def _fail(campaign_id: int, error: str) -> None:
    with write(campaign_lock(campaign_id)):
        campaign = _campaign(campaign_id)
        campaign.source_status, campaign.source_error, campaign.source_lease_until = "failed", error, None
        update(campaign, *IMPORT_FIELDS, Campaign.source_error)
        attempts.stop(campaign, "failed", "source_sync_failed", error)


def _campaign(campaign_id: int) -> Campaign:
    return require(Campaign, "The campaign is gone.", id=campaign_id)
