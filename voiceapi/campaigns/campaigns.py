"""Use cases of campaigns: create one from a contact list, read it, change its settings.

Nothing is dialed before the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..engine.graph import template_variables
from ..errors import FieldError, InvalidFields, NotPossible, RecordNotFound
from ..runs import files
from ..service import Service
from ..store import campaigns as records
from ..store import tags
from ..store.base import names_by_id, require
from ..store.campaigns import Campaign
from ..store.database import wake_dialer, write
from ..store.fields import now
from ..store.telephony import TelephonyConfiguration, active_number_count
from ..store.workflows import Workflow
from ..telephony.configurations import NotConfigured, reader, resolve_outbound
from ..telephony.numbers import Reader
from ..workflows import versions
from . import attempts
from .contact_list import ContactList, number_of

# The default settings of a campaign.
RETRY: Mapping[str, Any] = {
    "enabled": True,
    "max_retries": 2,
    "retry_delay_seconds": 120,
    "retry_on_busy": True,
    "retry_on_no_answer": True,
    "retry_on_voicemail": True,
}
CIRCUIT_BREAKER: Mapping[str, Any] = {
    "enabled": True,
    "failure_threshold": 0.5,
    "window_seconds": 120,
    "min_calls_in_window": 5,
}
ENDED_STATES = ("completed", "failed")
# Called with a new campaign in the transaction that stores it; an error rolls that back.
Reserve = Callable[[Campaign], None]
CHANGEABLE = tuple(field.name for field in tags.CAMPAIGN.fields)


def get(organization: int, campaign_id: int, text: str = "Campaign not found") -> Campaign:
    """:raises RecordNotFound: with `text`, when the organization has no such campaign."""
    return require(Campaign, text, id=campaign_id, organization=organization)


def listed(organization: int) -> list[Campaign]:
    """All campaigns, the newest first."""
    return records.of_organization(organization)


def create(
    service: Service,
    organization: int,
    wanted: Mapping[str, Any],
    list_field: str = "source_id",
    reserve: Reserve | None = None,
) -> Campaign:
    """Store a campaign in the state `created`, with its telephony configuration pinned.

    :param wanted: the members of the request body; settings that are None get their default. With `strict`, a list is
        refused when any of its rows would be skipped. `phone_number_column` may be left out.
    :param list_field: the field of the input that names the list; errors of its rows begin with it.
    :param reserve: stores something in the campaign's transaction, such as an Idempotency-Key, or refuses it.
    :raises RecordNotFound, NotPossible, InvalidFields: as `drafted`; NotPossible also for a list that isn't there.
    """
    campaign = drafted(service, organization, wanted, lambda: _stored(organization, wanted["source_id"]), list_field)
    with write():
        campaign.save(force_insert=True)
        if reserve is not None:
            reserve(campaign)
    return campaign


def drafted(
    service: Service,
    organization: int,
    wanted: Mapping[str, Any],
    content: Callable[[], bytes],
    list_field: str = "file",
) -> Campaign:
    """Check all that makes a campaign, and return it as it would be created. Nothing is stored.

    :param content: gives the contact list, once the workflow is found.
    :raises RecordNotFound: when there is no such workflow.
    :raises NotPossible: for a contact list that can't be read or lacks a column that the workflow needs, for no
        telephony configuration to call through, for a value that is missing in a row, and for more concurrency than
        the organization has. In this order.
    :raises InvalidFields: with `strict`, an error for each row that would be skipped.
    """
    workflow = require(Workflow, "Workflow not found", id=wanted["workflow_id"], organization=organization)
    number_column = wanted.get("phone_number_column")
    contacts = ContactList(content(), number_column)
    variables = variables_of(workflow)
    check_columns(contacts, variables)
    try:
        configuration = resolve_outbound(organization, wanted["telephony_configuration_id"])
    except NotConfigured:
        raise NotPossible("telephony_configuration_not_found") from None
    read = reader(configuration)
    check_values(contacts, variables, read)
    _check_concurrency(service, wanted["max_concurrency"])
    return Campaign(
        organization=organization,
        workflow=workflow,
        telephony_configuration=configuration,
        name=wanted["name"],
        source_type=wanted["source_type"],
        source_id=wanted["source_id"],
        phone_number_column=number_column,
        contacts_to_call=_count(contacts, read, list_field, strict=wanted["strict"]),
        retry_config=wanted["retry_config"] or RETRY,
        schedule_config=wanted["schedule_config"],
        circuit_breaker=wanted["circuit_breaker"] or CIRCUIT_BREAKER,
        max_concurrency=wanted["max_concurrency"],
        calling_hours=wanted["calling_hours"],
        max_attempts_per_day=wanted["max_attempts_per_day"],
    )


def update(
    service: Service, organization: int, campaign_id: int, wanted: Mapping[str, Any], expected: tags.Expected = None
) -> Campaign:
    """Change the name or settings, each setting replaced whole; None leaves one alone. They count from now.

    :param expected: whether the campaign's tag is one that the editor expects; None when any is.
    :raises RecordNotFound: when there is no such campaign.
    :raises Outdated: when the tag isn't expected.
    :raises NotPossible: when it has ended, and for more concurrency than the organization has.
    """
    with write():
        campaign = get(organization, campaign_id)
        tags.CAMPAIGN.require(expected, campaign)
        if campaign.state in ENDED_STATES:
            raise NotPossible(f"Cannot update a {campaign.state} campaign")
        _check_concurrency(service, wanted["max_concurrency"])
        changed = [name for name in CHANGEABLE if wanted[name] not in (None, getattr(campaign, name))]
        for name in changed:
            setattr(campaign, name, wanted[name])
        campaign.save(only=[getattr(Campaign, name) for name in CHANGEABLE])
        attempts.apply_settings(campaign, changed, now())
        wake_dialer()
    return campaign


def names(campaigns: Sequence[Campaign]) -> tuple[dict[int | None, str], dict[int | None, str]]:
    """The names, by id, of the workflows and of the telephony configurations that these campaigns use."""
    return (
        names_by_id(Workflow, [campaign.workflow_id for campaign in campaigns]),
        names_by_id(TelephonyConfiguration, [campaign.telephony_configuration_id for campaign in campaigns]),
    )


def numbers_to_call_from(organization: int) -> int:
    """The number of active phone numbers of the default configuration for campaigns; 0 without one."""
    try:
        return active_number_count(resolve_outbound(organization, None))
    except (NotConfigured, NotPossible):
        return 0


def _stored(organization: int, key: str) -> bytes:
    try:
        return files.read(organization, key)
    except RecordNotFound:
        raise NotPossible(f"Failed to access CSV file: {key}") from None


def variables_of(workflow: Workflow) -> list[str]:
    """The columns that every contact must have; none if the released definition isn't valid."""
    definition = versions.published(workflow).definition
    return [] if versions.errors(workflow, definition) else template_variables(definition)


def check_columns(contacts: ContactList, variables: Sequence[str]) -> None:
    """:raises NotPossible: when the list lacks the column of a variable."""
    missing = [name for name in variables if name not in contacts.variables]
    if missing:
        listed = ", ".join(f"'{name}'" for name in missing)
        raise NotPossible(
            f"Workflow uses template variables that are missing from the source data: {listed}. "
            "Add the missing columns or remove them from the workflow."
        )


def check_values(contacts: ContactList, variables: Sequence[str], read: Reader) -> None:
    """:raises NotPossible: when a variable has no value in a row whose number can be dialed."""
    if not variables:
        return
    empty: dict[str, list[int]] = {name: [] for name in variables}
    for row in contacts.rows():
        blank = [name for name in variables if not row.values.get(name, "").strip()]
        if blank and number_of(row, read)[1] is None:  # a row that will be skipped needs no values
            for name in blank:
                empty[name].append(row.number)
    for name, rows in empty.items():
        if rows:
            raise NotPossible(
                f"Template variable '{name}' is empty in rows: {_first_five(rows)}. "
                "All template variables used in the workflow must have values in every row."
            )


def _count(contacts: ContactList, read: Reader, list_field: str, *, strict: bool) -> int:
    """How many contacts of a list are to be called.

    :raises InvalidFields: if `strict`, an error for each row that would be skipped.
    """
    to_call = 0
    errors = []
    for contact in contacts.contacts(read):
        if contact.skipped is None:
            to_call += 1
        elif strict:
            errors.append(FieldError((list_field, contact.row), f"row {contact.row}: {contact.skipped}"))
    if errors:
        raise InvalidFields(errors)
    return to_call


def _first_five(rows: Sequence[int]) -> str:
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return ", ".join(str(row) for row in rows[:5]) + more


def _check_concurrency(service: Service, wanted: int | None) -> None:
    limit = service.settings.concurrent_calls
    if wanted is not None and wanted > limit:
        raise NotPossible(f"max_concurrency ({wanted}) cannot exceed organization limit ({limit})")
