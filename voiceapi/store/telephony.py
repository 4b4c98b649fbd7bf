"""The tables of telephony configurations and phone numbers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from peewee import SQL, BooleanField, CharField, FloatField, ForeignKeyField, TextField

from .base import Record
from .database import execute
from .fields import Instant, JSONText, now
from .organizations import Organization
from .workflows import Workflow


class TelephonyConfiguration(Record):
    organization_id: int
    phone_numbers: Any
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    name = CharField(64)
    provider = TextField()
    # Encrypted JSON of the carrier's fields.
    credentials = TextField()
    # The carrier's name of the account. Configurations of one account share its pace, and may not share a number.
    account_id = TextField(null=True)
    calls_per_second = FloatField(null=True)
    # When the account may place its next call; null before the first. The same in all configurations of an account.
    paced_until = Instant(null=True)
    is_default_outbound = BooleanField(default=False)
    inactive = BooleanField(default=False)
    inactive_since = Instant(null=True)
    inactive_reason = TextField(null=True)
    created_at = Instant(default=now)
    updated_at = Instant(default=now)

    class Meta:
        indexes = ((("organization", "name"), True),)


TelephonyConfiguration.add_index(
    SQL(
        "CREATE UNIQUE INDEX configuration_one_default ON telephony_configuration (organization_id) "
        "WHERE is_default_outbound"
    )
)


class PhoneNumber(Record):
    telephony_configuration_id: int
    inbound_workflow_id: int | None
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    telephony_configuration = ForeignKeyField(TelephonyConfiguration, on_delete="CASCADE", backref="phone_numbers")
    address = CharField(255)
    address_normalized = CharField(255)
    address_type = TextField()
    country_code = CharField(2, null=True)
    label = CharField(64, null=True)
    inbound_workflow = ForeignKeyField(Workflow, null=True, on_delete="SET NULL")
    is_active = BooleanField(default=True)
    is_default_caller_id = BooleanField(default=False)
    extra_metadata = JSONText(default=dict)
    created_at = Instant(default=now)
    updated_at = Instant(default=now)

    class Meta:
        indexes = ((("organization", "address_normalized"), True),)


PhoneNumber.add_index(
    SQL(
        "CREATE UNIQUE INDEX number_one_default ON phone_number (telephony_configuration_id) WHERE is_default_caller_id"
    )
)


# A configuration whose account isn't known, which is null, shares it with no other.
SAME_ACCOUNT = "id = ? OR (provider = ? AND account_id = ?)"


def real_configurations() -> list[TelephonyConfiguration]:
    """The configurations of real carriers, of all organizations."""
    real = TelephonyConfiguration.select().where(TelephonyConfiguration.provider != "simulator")
    return list(real.order_by(TelephonyConfiguration.id))


def next_call_at(configuration: TelephonyConfiguration) -> datetime | None:
    """When the account of a configuration may place its next call; None when it has placed none yet."""
    statement = f"SELECT max(paced_until) FROM telephony_configuration WHERE {SAME_ACCOUNT}"
    latest = execute(statement, *_account(configuration)).fetchone()[0]
    return TelephonyConfiguration.paced_until.python_value(latest)


def set_next_call_at(configuration: TelephonyConfiguration, moment: datetime) -> None:
    """Let the account of a configuration place its next call at `moment`."""
    until = TelephonyConfiguration.paced_until.db_value(moment)
    statement = f"UPDATE telephony_configuration SET paced_until = ? WHERE {SAME_ACCOUNT}"
    execute(statement, until, *_account(configuration))


def _account(configuration: TelephonyConfiguration) -> tuple[Any, ...]:
    """The values of SAME_ACCOUNT."""
    return configuration.id, configuration.provider, configuration.account_id


def active_numbers(configuration: TelephonyConfiguration) -> list[PhoneNumber]:
    """The numbers of a configuration that are in use, oldest first."""
    return list(configuration.phone_numbers.where(PhoneNumber.is_active).order_by(PhoneNumber.id))
