"""Any list that can be read is stored whole: a contact for each row, and each good number on the do-not-call list."""

from __future__ import annotations

import tempfile
from functools import cache, partial
from pathlib import Path

from voiceapi import create_app
from voiceapi.campaigns import campaigns, do_not_call, lifecycle
from voiceapi.campaigns.contact_list import ContactList
from voiceapi.campaigns.dialer import list_import
from voiceapi.errors import ServiceError
from voiceapi.runs import files
from voiceapi.service import Service
from voiceapi.store.campaigns import Campaign, Contact, Decision, DoNotCall, Upload
from voiceapi.store.database import write
from voiceapi.telephony.numbers import read_number
from voiceapi.workflows import versions

from . import contact_lists
from .definitions import SAMPLES

SEEDS = contact_lists.SEEDS


@cache
def service() -> Service:
    """A service with workflow 1, on a database that ends with the process."""
    folder = tempfile.TemporaryDirectory(prefix="voiceapi-fuzz-")
    settings = {"VOICEAPI_DATABASE": Path(folder.name) / "v.db", "VOICEAPI_API_KEY": "fuzz-key-0123456789"}
    app = create_app({**settings, "VOICEAPI_WORKER": "off"})
    found: Service = app.extensions["voiceapi"]
    object.__setattr__(found, "folder", folder)  # kept until the process ends
    with found.store.session():
        versions.create(found.vault, 1, "Fuzz", SAMPLES[0])
    return found


def check(data: bytes) -> None:
    with service().store.session():
        try:
            rows = list(ContactList(data).contacts(partial(read_number, sip=True)))
        except ServiceError:
            rows = []
        try:
            check_do_not_call(data)
            check_import(data, len(rows))
        finally:
            with write():
                for table in (Decision, Contact, Campaign, Upload, DoNotCall):
                    table.delete().execute()


def check_do_not_call(data: bytes) -> None:
    try:
        added = do_not_call.add_list(service(), 1, data)
    except ServiceError as refusal:
        assert refusal.detail
        assert not DoNotCall.select().exists()
        return
    good = added.new + added.already_listed
    assert DoNotCall.select().count() == added.new
    assert good + added.refused_count == len(list(ContactList(data).rows()))
    again = do_not_call.add_list(service(), 1, data)
    assert (again.new, again.already_listed) == (0, good)


def check_import(data: bytes, rows: int) -> None:
    wanted = {
        **dict.fromkeys((*campaigns.CHANGEABLE, "telephony_configuration_id")),
        **{"name": "Fuzz", "workflow_id": 1, "source_type": "csv", "strict": False},
        "source_id": files.store(1, "list.csv", data),
    }
    try:
        campaign = int(campaigns.create(service(), 1, wanted).id)
        lifecycle.start(1, campaign)
    except ServiceError as refusal:
        assert refusal.detail
        return
    with write():
        list_import.take(campaign)
    list_import.read_list(service(), campaign)
    assert Campaign.get_by_id(campaign).source_status == "completed"
    assert Contact.select().where(Contact.campaign == campaign).count() == rows
