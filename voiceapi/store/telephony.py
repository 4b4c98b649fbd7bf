"""The tables of telephony configurations and phone numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from peewee import SQL, BooleanField, FloatField, ForeignKeyField, IntegerField, TextField

from .base import Record, count, find, insert, names_by_id, select, update
from .database import execute
from .fields import Instant, JSONText, ShortText, now
from .organizations import Organization
from .workflows import Workflow

# The provider, and the mode of runs, whose calls stay in this service.
SIMULATOR = "simulator"


class TelephonyConfiguration(Record):
    organization_id: int
    phone_numbers: Any
    organization = ForeignKeyField(Organization, on_delete="CASCADE")
    name = ShortText(64)
    provider = TextField()
    # Encrypted JSON of the carrier's fields.
    credentials = TextField()
    # The carrier's name of the account. Configurations of one account share its pace, and may not share a number.
    account_id = TextField(null=True)
    calls_per_second = FloatField(null=True)
    # ISO 3166, in capitals: whose national numbers may be called through it.
    country = TextField(null=True)
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

    @property
    def is_simulated(self) -> bool:
        return bool(self.provider == SIMULATOR)

    @property
    def title(self) -> str:
        """The configuration as logs and commands name it, by its id, name and carrier."""
        return f"configuration {self.id} {self.name!r} ({self.provider})"

    @property
    def members(self) -> dict[str, Any]:
        """The members of a run's gathered context that name the configuration of its call."""
        return {
            "provider": self.provider,
            "telephony_configuration_id": self.id,
            "telephony_configuration_name": self.name,
        }


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
    address = ShortText(255)
    address_normalized = ShortText(255)
    address_type = TextField()
    country_code = ShortText(2, null=True)
    label = ShortText(64, null=True)
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


class Connection(Record):
    """What connecting numbers has changed for a configuration, here and at its carrier, and what stood there before."""

    telephony_configuration_id: int
    telephony_configuration = ForeignKeyField(TelephonyConfiguration, on_delete="CASCADE", unique=True)
    # Encrypted JSON: URLs that stood at the carrier may hold passwords.
    content = TextField()


class Tunnel(Record):
    """The tunnel of a process that serves: carriers reach it there, and commands find the address here."""

    url = TextField()
    worker = TextField()
    seen_at = Instant(default=now)


# How long a tunnel whose process has noted nothing about it counts as open.
TUNNEL_SECONDS = 90.0


def note_tunnel(worker: str, url: str | None) -> None:
    """Store where the tunnel of a process leads from; None when it is closed. In a transaction."""
    Tunnel.delete().where((Tunnel.worker == worker) | (Tunnel.seen_at < _closed_before())).execute()
    if url is not None:
        insert(Tunnel, url=url, worker=worker)


def open_tunnels() -> list[Tunnel]:
    """The tunnels that their processes have noted lately, the newest first."""
    return list(Tunnel.select().where(Tunnel.seen_at >= _closed_before()).order_by(Tunnel.seen_at.desc()))


def _closed_before() -> datetime:
    return now() - timedelta(seconds=TUNNEL_SECONDS)


def connected_configurations() -> list[TelephonyConfiguration]:
    """The configurations of all organizations that numbers were connected with, oldest first."""
    return list(TelephonyConfiguration.select().join(Connection).order_by(TelephonyConfiguration.id))


class RejectedCall(Record):
    """Calls to a number that no workflow took: those of one caller to one number for one reason are one row."""

    telephony_configuration_id: int
    telephony_configuration = ForeignKeyField(TelephonyConfiguration, on_delete="CASCADE", index=False)
    from_number = ShortText(255)
    to_number = ShortText(255)
    # A code of calls.inbound.SPOKEN.
    reason = ShortText(64)
    # The workflow that was called, if any is known; no foreign key, because it may be deleted.
    workflow_id = IntegerField(null=True)
    # The carrier's id of the latest call.
    call_id = TextField()
    count = IntegerField(default=1)
    first_at = Instant(default=now)
    last_at = Instant(default=now)

    class Meta:
        indexes = ((("telephony_configuration", "from_number", "to_number", "reason"), True),)


# How many rows of rejected calls a configuration has at most; the oldest go.
MOST_REJECTED = 200


def note_rejected(configuration: int, workflow: int | None, call_id: str, **which: str) -> None:
    """Store that a call wasn't taken, unless its carrier only asks again; call it in a transaction.

    :param which: from_number, to_number and reason.
    """
    which = {name: value[:255] for name, value in which.items()}
    known = find(RejectedCall, telephony_configuration=configuration, **which)
    if known is None:
        insert(RejectedCall, telephony_configuration=configuration, workflow_id=workflow, call_id=call_id, **which)
        of = "FROM rejected_call WHERE telephony_configuration_id = ?"
        latest = f"SELECT id {of} ORDER BY last_at DESC, id DESC LIMIT ?"
        execute(f"DELETE {of} AND id NOT IN ({latest})", configuration, configuration, MOST_REJECTED)
    elif known.call_id != call_id:
        known.call_id, known.workflow_id, known.last_at = call_id, workflow, now()
        known.count += 1
        update(known)


def rejected_calls(configuration: int, since: datetime | None = None) -> list[RejectedCall]:
    """The rejected calls to a configuration's numbers, the latest first.

    :param since: without those before.
    """
    found = RejectedCall.select().where(RejectedCall.telephony_configuration == configuration)
    found = found if since is None else found.where(RejectedCall.last_at >= since)
    return list(found.order_by(RejectedCall.last_at.desc(), RejectedCall.id.desc()))


def delete_rejected_before(moment: datetime) -> int:
    """Delete the rejected calls whose latest was before `moment`; returns how many rows that were."""
    return int(RejectedCall.delete().where(RejectedCall.last_at < moment).execute())


# A configuration whose account isn't known, which is null, shares it with no other. Nor does one share it with those of
# another organization: who knows only the id of somebody's account must not slow its calls down.
SAME_ACCOUNT = "id = ? OR (organization_id = ? AND provider = ? AND account_id = ?)"


def has_real_configuration(organization: int) -> bool:
    """True if an organization has a configuration of a real carrier."""
    return bool(
        TelephonyConfiguration.select()
        .where(TelephonyConfiguration.organization == organization, TelephonyConfiguration.provider != SIMULATOR)
        .exists()
    )


def paced_until(configuration: TelephonyConfiguration) -> datetime | None:
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
    return configuration.id, configuration.organization_id, configuration.provider, configuration.account_id


def active_numbers(configuration: TelephonyConfiguration) -> list[PhoneNumber]:
    """The numbers of a configuration that are in use, oldest first."""
    return list(configuration.phone_numbers.where(PhoneNumber.is_active).order_by(PhoneNumber.id))


def active_number_count(configuration: TelephonyConfiguration) -> int:
    """How many numbers of a configuration are in use."""
    return count(PhoneNumber, of="id", telephony_configuration=configuration, is_active=True)


def caller_ids(configuration: TelephonyConfiguration) -> Sequence[PhoneNumber]:
    """The numbers that a call may show if it names none: the default if it is active, else all active ones."""
    default = find(PhoneNumber, telephony_configuration=configuration, is_default_caller_id=True, is_active=True)
    return active_numbers(configuration) if default is None else [default]


def configurations_of(organization: int) -> list[TelephonyConfiguration]:
    """The configurations of an organization, oldest first."""
    query = (
        TelephonyConfiguration.select()
        .where(TelephonyConfiguration.organization == organization)
        .order_by(TelephonyConfiguration.created_at, TelephonyConfiguration.id)
    )
    return list(query)


def usable_configurations(organization: int) -> list[TelephonyConfiguration]:
    """The configurations of an organization that aren't set aside.

    The default comes first, then those of real carriers, then the simulator's; the oldest first.
    """
    order = "is_default_outbound DESC, provider = 'simulator', created_at, id"
    # As SQL, because it is asked for each call: Peewee takes fifty times as long to build it.
    return select(TelephonyConfiguration, f"WHERE organization_id = ? AND NOT inactive ORDER BY {order}", organization)


def clear_default_outbound(organization: int) -> None:
    """Leave an organization without a default configuration for outbound calls."""
    TelephonyConfiguration.update(is_default_outbound=False, updated_at=now()).where(
        TelephonyConfiguration.organization == organization, TelephonyConfiguration.is_default_outbound
    ).execute()


def numbers_of(configuration: TelephonyConfiguration) -> list[PhoneNumber]:
    """The numbers of a configuration, oldest first."""
    return list(configuration.phone_numbers.order_by(PhoneNumber.created_at, PhoneNumber.id))


def active_number_counts(organization: int) -> Mapping[int, int]:
    """How many active numbers each configuration of an organization has, by its id; 0 for an id that is missing."""
    active = PhoneNumber.select(PhoneNumber.telephony_configuration).where(
        PhoneNumber.organization == organization, PhoneNumber.is_active
    )
    return Counter(number.telephony_configuration_id for number in active)


def clear_default_caller_id(configuration: int) -> None:
    """Leave a configuration without a default number for outbound calls."""
    statement = (
        "UPDATE phone_number SET is_default_caller_id = FALSE, updated_at = ? "
        "WHERE telephony_configuration_id = ? AND is_default_caller_id"
    )
    execute(statement, PhoneNumber.updated_at.db_value(now()), configuration)


def registered_with_account(configuration: TelephonyConfiguration, address: str) -> PhoneNumber | None:
    """The number with this normalized address that any organization has registered with the same carrier account."""
    return _of_account(configuration, PhoneNumber.address_normalized == address)


def registered_elsewhere(configuration: TelephonyConfiguration) -> PhoneNumber | None:
    """A number of this configuration that another configuration has registered with the same carrier account."""
    own = PhoneNumber.select(PhoneNumber.address_normalized).where(PhoneNumber.telephony_configuration == configuration)
    others = TelephonyConfiguration.id != configuration.id
    return _of_account(configuration, PhoneNumber.address_normalized.in_(own) & others)


def _of_account(configuration: TelephonyConfiguration, condition: Any) -> PhoneNumber | None:
    """The first number of the carrier account that meets the condition, with its configuration."""
    if configuration.account_id is None:
        return None
    number: PhoneNumber | None = (
        PhoneNumber.select(PhoneNumber, TelephonyConfiguration)
        .join(TelephonyConfiguration)
        .where(
            TelephonyConfiguration.provider == configuration.provider,
            TelephonyConfiguration.account_id == configuration.account_id,
            condition,
        )
        .first()
    )
    return number


def inbound_workflow_names(numbers: Iterable[PhoneNumber]) -> Mapping[int | None, str]:
    """The names of the workflows that answer the calls to these numbers, by workflow id."""
    return names_by_id(Workflow, [number.inbound_workflow_id for number in numbers])
