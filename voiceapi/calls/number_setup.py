"""Connects a number of a carrier's account to an agent, here and at the carrier, and undoes it.

What will change is found out first, and carried out afterwards. It is stored here before the carrier is asked, and no
request leaves inside a transaction. So an end in the middle leaves a state that connecting again finishes, and that
`undo` takes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..errors import Conflict, FieldError, InvalidFields, NotPossible, ServiceError
from ..security import encrypt_json
from ..service import Service
from ..store.base import find, require
from ..store.database import write
from ..store.telephony import (
    PhoneNumber,
    TelephonyConfiguration,
    clear_default_caller_id,
    configurations_of,
    connected_configurations,
    has_real_configuration,
    numbers_of,
)
from ..store.workflows import Workflow
from ..telephony import configurations, connect, connected_numbers, phone_numbers
from ..telephony.carriers.base import Carrier
from ..telephony.carriers.number_settings import AccountNumber, ApplicationCarrier, ConnectableCarrier
from ..telephony.carriers.rest import CarrierRefused, CarrierSilent
from ..telephony.connected_numbers import Changes, ConnectedNumber, NumberRoutes
from ..telephony.inbound_urls import InboundURLs, describe
from ..telephony.numbers import normalize
from ..telephony.providers import PROVIDERS
from ..workflows import versions

# How many numbers of an account a sentence names.
MOST_NAMED = 10
FINISH = "Connect the number again to finish it, or undo it."
GONE = "{} isn't a number of this {} account any more."
NO_URL = (
    "VOICEAPI_PUBLIC_URL {state}, so {name} couldn't reach this service, and nothing was changed. Set it to the https "
    "address of the service, or start `voiceapi serve --tunnel`."
)


@dataclass(frozen=True)
class Account:
    """An account at a carrier, which may be stored already.

    :param credentials: all fields of its configuration.
    :param changes: what connecting numbers has changed for it before.
    """

    organization: int
    provider: str
    credentials: Mapping[str, Any] = field(repr=False)
    configuration: TelephonyConfiguration | None
    changes: Changes | None
    carrier: Carrier = field(repr=False)

    @property
    def routes(self) -> NumberRoutes | None:
        """Where it sends calls; None where its API can't set that."""
        if not isinstance(self.carrier, ConnectableCarrier):
            return None
        id = 0 if self.configuration is None else self.configuration.id
        return NumberRoutes(self.carrier, id, self.changes or Changes(is_new=False))


@dataclass(frozen=True)
class Plan:
    """What connecting a number will do; `changes` are sentences, none if all of it is so already."""

    account: Account
    number: str
    workflow: Workflow
    name: str
    changes: tuple[str, ...]


class Connected(NamedTuple):
    """A number that is connected; the notes are sentences on what is left to do at the carrier."""

    configuration: TelephonyConfiguration
    number: PhoneNumber
    notes: list[str]


class Undone(NamedTuple):
    """What is put back, and what isn't because it was changed since, in sentences."""

    restored: list[str]
    left: list[str]


def open_account(
    service: Service,
    organization: int,
    provider: str,
    given: Mapping[str, Any],
    configuration_id: int | None = None,
    number: str | None = None,
) -> Account:
    """An account with these credentials, and those that are stored or that its API gives.

    It is stored already if a configuration has the same credential that names the account, or else this number.

    :param given: its `Provider.asked` fields, as far as they are known.
    :raises InvalidFields: at `credentials`, for one that doesn't exist or is needed.
    :raises RecordNotFound: when there is no such configuration.
    :raises NotPossible: when the carrier refuses them.
    """
    carrier = PROVIDERS[provider]
    asked = {each.name: each for each in carrier.asked}
    wrong = [FieldError(("credentials", name), f"it isn't one of {', '.join(asked)}") for name in given.keys() - asked]
    texts = [name for name in given if not isinstance(given[name], str)]
    wrong += [FieldError(("credentials", name), "it must be text", "string_type") for name in texts]
    if wrong:
        raise InvalidFields(wrong)
    given = {name: configurations.CANONICAL.get((provider, name), str)(text) for name, text in given.items()}
    if configuration_id is None:
        configuration = _stored_account(service, organization, provider, given, number)
    else:
        configuration = configurations.get(organization, configuration_id)
        if configuration.provider != provider:
            raise NotPossible(f"{configuration.title} is one of another carrier.")
    stored = {} if configuration is None else configurations.credentials(service.vault, configuration)
    credentials = {each.name: given.get(each.name) or stored.get(each.name, each.default) for each in carrier.fields}
    missing = [name for name, each in asked.items() if each.required and not credentials[name]]
    if missing:
        raise InvalidFields([FieldError(("credentials", name), "it is needed", "missing") for name in missing])
    opened = _carrier(service, organization, provider, credentials)
    if isinstance(opened, ConnectableCarrier):
        with service.bulkhead.slow(organization), _refusals_as_errors():
            credentials |= {name: text for name, text in opened.account_credentials().items() if text}
        opened = _carrier(service, organization, provider, credentials)
    changes = None if configuration is None else connected_numbers.read(service.vault, configuration)
    return Account(organization, provider, credentials, configuration, changes, opened)


def _carrier(service: Service, organization: int, provider: str, credentials: Mapping[str, Any]) -> Carrier:
    """The carrier of an account with these credentials, which may not be those that are stored."""
    encrypted = encrypt_json(service.vault, credentials)
    account = TelephonyConfiguration(organization=organization, provider=provider, credentials=encrypted)
    return connect.connect(service, account)


def _stored_account(
    service: Service, organization: int, provider: str, given: Mapping[str, str], number: str | None
) -> TelephonyConfiguration | None:
    """The configuration of the account with these credentials, else of the number."""
    carrier = PROVIDERS[provider]
    # A Telnyx account is named by an application, which isn't given.
    identity = "api_key" if carrier.account_id_field in carrier.found else carrier.account_id_field or ""
    owned = [each for each in configurations_of(organization) if each.provider == provider]
    for each in owned if given.get(identity) else ():
        with suppress(NotPossible):  # credentials that can't be decrypted any more
            if configurations.credentials(service.vault, each).get(identity) == given[identity]:
                return each
    address = None if number is None else normalize(number, None).address_normalized
    phone = find(PhoneNumber, organization=organization, address_normalized=address)
    return next((each for each in owned if phone and each.id == phone.telephony_configuration_id), None)


def account_numbers(service: Service, account: Account) -> list[AccountNumber] | None:
    """The numbers of an account; None where its carrier's API doesn't list them.

    :raises NotPossible: when the carrier refuses the credentials, or gives no answer.
    """
    if not isinstance(account.carrier, ConnectableCarrier):
        return None
    with service.bulkhead.slow(account.organization), _refusals_as_errors():
        return account.carrier.account_numbers()


# -- what will change


def plan(service: Service, account: Account, number: str, workflow_id: int, name: str | None = None) -> Plan:
    """What connecting a number of an account with an agent will change. Nothing is changed.

    :param number: E.164.
    :param name: of the configuration, if it is new.
    :raises RecordNotFound, InvalidInput: when there is no such agent, or its published version can't be run.
    :raises NotPossible: when carriers can't reach the service by https, the carrier refuses, or the number can't be
        connected.
    :raises Conflict: when the number belongs to another configuration.
    """
    carrier, title = account.carrier, account.carrier.name
    require_https(service, title)
    workflow = require(Workflow, "Workflow not found", id=workflow_id, organization=account.organization)
    if workflow.status != "active":
        raise NotPossible(f"The agent {workflow.name!r} is archived.")
    versions.load_graph(workflow, versions.published(workflow))
    number = normalize(number, None).address_normalized
    phone = find(PhoneNumber, organization=account.organization, address_normalized=number)
    _refuse_other_configuration(account, number, phone)
    name = name or _free_name(account)
    with service.bulkhead.slow(account.organization), _refusals_as_errors():
        entry = None
        if isinstance(carrier, ConnectableCarrier):
            entry = _usable_entry(carrier, number)
        elif wrong := carrier.check([number]):
            raise NotPossible(wrong[0])
        here = _changes_here(service, account, number, phone, workflow, name)
        changes = [*here, *_changes_there(service, account, number, entry)]
    return Plan(account, number, workflow, name, tuple(changes))


def require_https(service: Service, name: str) -> None:
    """:raises NotPossible: unless carriers such as the one of that name reach this service by https."""
    url = service.settings.public_url
    if url is None or not url.startswith("https://"):
        raise NotPossible(NO_URL.format(state="isn't set" if url is None else f"is {url} and not https", name=name))


def _refuse_other_configuration(account: Account, number: str, phone: PhoneNumber | None) -> None:
    own, carrier = account.configuration, account.carrier
    if phone is not None and (own is None or phone.telephony_configuration_id != own.id):
        other = phone.telephony_configuration
        raise Conflict(f"{number} is in {other.title} already. Remove it there, or connect it with that configuration.")
    if own is None or not isinstance(carrier, ApplicationCarrier) or not carrier.names_application:
        return
    application = account.credentials[carrier.application_field]
    others = [each for each in numbers_of(own) if each.address_normalized != number]
    if application and others and (account.changes is None or application != account.changes.application):
        raise NotPossible(
            f"{own.title} has other numbers, whose calls come through application {application}, and {number} would "
            "need another one. Change the URLs of that application at the carrier, or connect the number with a "
            "configuration of its own."
        )


def _free_name(account: Account) -> str:
    """The carrier's name, or the first one with a number behind it that no configuration has."""
    title, taken = account.carrier.name, {each.name for each in configurations_of(account.organization)}
    return next(name for n in range(1, len(taken) + 2) if (name := title if n == 1 else f"{title} {n}") not in taken)


def _usable_entry(carrier: ConnectableCarrier, number: str) -> Any:
    listed = {each.number: each for each in carrier.account_numbers()}
    found = listed.get(number)
    if found is None:
        some = ", ".join(list(listed)[:MOST_NAMED]) or "none"
        more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
        raise NotPossible(f"{number} is not a number of this {carrier.name} account, which has {some}{more}.")
    if found.obstacle:
        raise NotPossible(f"Calls to {number} can't come here: {found.obstacle}.")
    return found.entry


def _changes_here(
    service: Service, account: Account, number: str, phone: PhoneNumber | None, workflow: Workflow, name: str
) -> Iterator[str]:
    own = account.configuration
    if own is None:
        is_default = not has_real_configuration(account.organization)
        yield f"Here: store the configuration {name!r}{', the default for outbound calls' if is_default else ''}."
    else:
        stored = configurations.credentials(service.vault, own)
        changed = [name for name, value in account.credentials.items() if (value or "") != (stored.get(name) or "")]
        if changed:
            yield f"Here: replace {', '.join(changed)} of {own.title}."
    agent = f"agent {workflow.id} {workflow.name!r}"
    if phone is None:
        yield f"Here: add {number}, whose calls {agent} answers."
    elif phone.inbound_workflow_id != workflow.id or not phone.is_active:
        before = "" if phone.inbound_workflow_id is None else f" in place of agent {phone.inbound_workflow_id}"
        yield f"Here: have {agent} answer calls to {number}{before}."


def _changes_there(service: Service, account: Account, number: str, entry: Any) -> Iterator[str]:
    routes, carrier = account.routes, account.carrier
    if routes is None or (routes.configuration and routes.is_set(entry, service.base_url)):
        return
    urls, title = routes.urls(service.base_url), carrier.name
    # The URLs of a configuration that isn't stored yet have an id that isn't known yet.
    answer, status = (
        url if routes.configuration else url.replace("/inbound/0", "/inbound/ID", 1)
        for url in (urls.answer, urls.status)
    )
    goes = f"its calls go to {describe(routes.route_of(entry))}"
    if not isinstance(carrier, ApplicationCarrier):
        yield f"At {title}: send the calls to {number} to {answer}; {goes}."
        yield f"At {title}: send the status of these calls to {status}."
        return
    known, placing = routes.changes.application, account.credentials[carrier.application_field]
    with_urls = f"the URLs {answer} and, for the status of calls, {status}"
    if known and carrier.application_of(entry) == known:
        yield f"At {title}: give application {known} of {number} {with_urls}; {goes}."
        return
    yield f"At {title}: {f'give application {known}' if known else 'make an application with'} {with_urls}."
    if placing and not known:
        yield f"Here: place calls through that application in place of {placing}."
    yield f"At {title}: link {number} to that application; {goes}."


# -- carried out


def carry_out(service: Service, plan: Plan) -> Connected:
    """Connect a number as planned.

    :raises NotPossible: when the carrier refuses a request, or doesn't answer; the sentence says what is done by then.
    :raises Conflict: when the name or the number was taken meanwhile.
    """
    account = plan.account
    with service.bulkhead.slow(account.organization, f"connecting {account.organization}"):
        entry, own = None, dict[str, str]()
        if isinstance(account.carrier, ConnectableCarrier):
            with _refusals_as_errors():
                entry = account.carrier.number_entry(plan.number)
            if entry is None:
                raise NotPossible(GONE.format(plan.number, account.carrier.name))
        if isinstance(account.carrier, ApplicationCarrier) and account.changes is None:
            own |= account.carrier.new_credentials()
        configuration, phone = _store(service, plan, entry, own)
        routes = routes_of(service, configuration)
        if routes is None:
            urls = InboundURLs(f"{service.base_url}/api/v1/telephony/inbound", configuration.id)
            notes = [account.carrier.by_hand.format(number=plan.number, answer=urls.answer, status=urls.status)]
        else:
            done = [f"{configuration.title} and {plan.number} are stored here."]
            with _refusals_as_errors(done):
                notes = _set_routes(service, configuration, routes, plan.number, entry, done)
    return Connected(configurations.get(account.organization, configuration.id), phone, notes)


def _store(
    service: Service, plan: Plan, entry: Any, own: Mapping[str, str]
) -> tuple[TelephonyConfiguration, PhoneNumber]:
    """Store the configuration, the number and its agent, and with them what was there before.

    :param own: the credentials of an application that will be made.
    """
    account, vault, organization = plan.account, service.vault, plan.account.organization
    config, agent = {"provider": account.provider, **account.credentials}, plan.workflow.id
    with write():
        configuration, replaced = account.configuration, None
        if configuration is None:
            replaced = find(TelephonyConfiguration, organization=organization, is_default_outbound=True)
            configuration = configurations.create(vault, organization, plan.name, config)
        elif configurations.credentials(vault, configuration) != account.credentials:
            configuration = configurations.update(vault, organization, configuration.id, None, config)
        id = configuration.id
        changes = connected_numbers.read(vault, configuration)
        if changes is None:
            before = replaced.id if replaced is not None and configuration.is_default_outbound else None
            changes = Changes(account.configuration is None, before, credentials=dict(own))
        is_first = find(PhoneNumber, telephony_configuration=configuration, is_default_caller_id=True) is None
        phone, was = find(PhoneNumber, telephony_configuration=configuration, address_normalized=plan.number), None
        if phone is None:
            phone = phone_numbers.create(
                organization, id, plan.number, inbound_workflow_id=agent, is_default_caller_id=is_first
            )
        else:
            was = {"inbound_workflow": phone.inbound_workflow_id, "is_active": phone.is_active}
            phone = phone_numbers.update(organization, id, phone.id, inbound_workflow_id=agent, is_active=True)
            phone = phone_numbers.set_default_caller(organization, id, phone.id) if is_first else phone
        carrier = account.carrier
        settings = carrier.settings(entry) if isinstance(carrier, ConnectableCarrier) else {}
        number = ConnectedNumber(dict(settings), was, agent, is_first)
        changes.numbers.setdefault(plan.number, number).workflow = agent
        changes.bases = [*dict.fromkeys([*changes.bases, service.base_url])]
        connected_numbers.store(vault, configuration, changes)
    return configuration, phone


def routes_of(service: Service, configuration: TelephonyConfiguration) -> NumberRoutes | None:
    """Where a configuration's carrier sends calls; None where its API can't set that, or nothing is connected.

    :raises NotPossible: when its credentials can't be decrypted.
    """
    changes = connected_numbers.read(service.vault, configuration)
    if changes is None:
        return None
    credentials = configurations.credentials(service.vault, configuration) | changes.credentials
    carrier = _carrier(service, configuration.organization_id, configuration.provider, credentials)
    return NumberRoutes(carrier, configuration.id, changes) if isinstance(carrier, ConnectableCarrier) else None


def _set_routes(
    service: Service,
    configuration: TelephonyConfiguration,
    routes: NumberRoutes,
    number: str,
    entry: Any,
    done: list[str],
) -> list[str]:
    """Have the carrier send the calls to a number here; returns sentences on what its API can't do.

    :param done: gets a sentence about what was done.
    """
    carrier, base = routes.carrier, service.base_url
    if not routes.is_set(entry, base):
        if isinstance(carrier, ApplicationCarrier):
            application = routes.prepare_application(base, entry)
            done.append(f"Application {application} at {carrier.name} has the URLs.")
            changes = _use_application(service, configuration, application, carrier.application_field)
            routes = replace(routes, changes=changes)
        routes.set(number, entry, base)
    if isinstance(carrier, ApplicationCarrier) or len(routes.changes.numbers) == 1:
        _note_base(service, configuration, base, only=True)
    notes = []
    # What can't be found out is no reason to fail now.
    with suppress(CarrierRefused, CarrierSilent):
        notes.append(carrier.diversion(entry))
        if isinstance(carrier, ApplicationCarrier) and routes.changes.application:
            notes.append(carrier.lacks(routes.changes.application))
    return [*filter(None, notes)]


def _use_application(service: Service, configuration: TelephonyConfiguration, application: str, name: str) -> Changes:
    """Store the application that was made as the configuration's, with its credentials; `name` is the one of its id."""
    vault, organization = service.vault, configuration.organization_id
    with write():
        changes = connected_numbers.read(vault, configuration) or Changes(is_new=False)
        stored = configurations.credentials(vault, configuration)
        new = {name: application, **changes.credentials}
        for each in new:
            changes.replaced.setdefault(each, stored.get(each) or "")
        if new.items() - stored.items():
            config = {"provider": configuration.provider, **stored, **new}
            configurations.update(vault, organization, configuration.id, None, config)
        changes.application, changes.credentials = application, {}
        connected_numbers.store(vault, configuration, changes)
    return changes


def _note_base(service: Service, configuration: TelephonyConfiguration, base: str, *, only: bool) -> Changes:
    """Store that addresses at the carrier may begin with `base`; or only with it, since all of them were set."""
    with write():
        changes = connected_numbers.read(service.vault, configuration) or Changes(is_new=False)
        changes.bases = [base] if only else [*dict.fromkeys([*changes.bases, base])]
        connected_numbers.store(service.vault, configuration, changes)
    return changes


@contextmanager
def _refusals_as_errors(done: list[str] | None = None, finish: str = FINISH) -> Iterator[None]:
    """Raise a carrier's refusal or silence as NotPossible, with what was done until then."""
    try:
        yield
    except (CarrierRefused, CarrierSilent) as error:
        raise NotPossible(f"{error} Done until then: {' '.join(done)} {finish}" if done else str(error)) from None


# -- undone, and moved


def connected(service: Service, organization: int) -> list[tuple[TelephonyConfiguration, str]]:
    """The numbers of an organization that are connected, each after its configuration."""
    return [
        (each, number)
        for each in connected_configurations()
        if each.organization_id == organization
        for number in (connected_numbers.read(service.vault, each) or Changes(is_new=False)).numbers
    ]


class _DryRun(Exception):
    """Ends a transaction whose effects were only to be found out."""


def undo(service: Service, organization: int, config_id: int, number: str, *, dry_run: bool = False) -> Undone:
    """Put back what stood before a number was first connected, here and at the carrier.

    What was changed since stays, and is named.

    :param dry_run: only say it.
    :raises RecordNotFound: when there is no such configuration.
    :raises NotPossible: when the number isn't connected, or the carrier refuses or doesn't answer; then nothing is
        changed here.
    """
    configuration = configurations.get(organization, config_id)
    changes = connected_numbers.read(service.vault, configuration)
    if changes is None or number not in changes.numbers:
        raise NotPossible(f"{number} isn't connected with {configuration.title}.")
    undone = Undone([], [])
    routes = routes_of(service, configuration)
    with service.bulkhead.slow(organization, f"connecting {organization}"):
        if routes is not None:
            with _refusals_as_errors(undone.restored, "Undo it again to finish that."):
                _restore_there(routes, number, undone, dry_run=dry_run)
        with suppress(_DryRun), write():
            _restore_here(service, configuration, number, undone)
            if dry_run:
                raise _DryRun
    return undone


def _restore_there(routes: NumberRoutes, number: str, undone: Undone, *, dry_run: bool) -> None:
    carrier, title = routes.carrier, routes.carrier.name
    entry = carrier.number_entry(number)
    if entry is None:
        undone.left.append(GONE.format(number, title))
    else:
        wanted, is_changed = routes.settings_to_restore(entry, routes.changes.numbers[number].before)
        if is_changed:
            now = describe(routes.route_of(entry))
            undone.left.append(f"At {title}, {number} was changed since, which stays: its calls go to {now}.")
        if wanted != carrier.settings(entry):
            if not dry_run:
                routes.change(number, entry, wanted)
            before = describe(routes.route_of({**entry, **wanted}))
            undone.restored.append(f"At {title}: calls to {number} go to {before} again.")
    if len(routes.changes.numbers) == 1 and isinstance(carrier, ApplicationCarrier):
        if dry_run and routes.changes.application:
            undone.restored.append(f"At {title}: application {routes.changes.application} is deleted.")
        elif not dry_run:
            undone.left.extend(routes.remove_applications())


def _restore_here(service: Service, configuration: TelephonyConfiguration, number: str, undone: Undone) -> None:
    """Put back what was here before, in a transaction."""
    vault, organization, id = service.vault, configuration.organization_id, configuration.id
    changes = connected_numbers.read(vault, configuration)
    made = None if changes is None else changes.numbers.pop(number, None)
    if changes is None or made is None:
        return  # another request has undone it
    phone = find(PhoneNumber, telephony_configuration=configuration, address_normalized=number)
    if phone is not None and made.was is None:
        phone_numbers.delete(organization, id, phone.id)
        undone.restored.append(f"Here: {number} is removed.")
    elif phone is not None and made.was is not None:
        _restore_number(organization, phone, made, made.was, undone)
    connected_numbers.store(vault, configuration, changes if changes.numbers else None)
    if changes.numbers:
        return
    if changes.is_new and _remove(configuration, changes.default_outbound, undone):
        return
    if changes.replaced:
        config = {"provider": configuration.provider, **configurations.credentials(vault, configuration)}
        config |= {name: value or None for name, value in changes.replaced.items()}
        configurations.update(vault, organization, id, None, config)
        undone.restored.append(f"Here: {', '.join(changes.replaced)} of {configuration.title} is as it was.")


def _remove(configuration: TelephonyConfiguration, default_outbound: int | None, undone: Undone) -> bool:
    """Remove the configuration that was made, unless something needs it, and have the default from before again."""
    organization, title = configuration.organization_id, configuration.title
    if numbers_of(configuration):
        undone.left.append(f"Here: {title} stays, because it has other numbers.")
        return False
    try:
        configurations.delete(organization, configuration.id)
    except Conflict as conflict:
        undone.left.append(f"Here: {conflict.detail}")
        return False
    undone.restored.append(f"Here: {title} is removed.")
    before = find(TelephonyConfiguration, id=default_outbound, organization=organization)
    if before is not None and find(TelephonyConfiguration, organization=organization, is_default_outbound=True) is None:
        configurations.set_default_outbound(organization, before.id)
    return True


def _restore_number(
    organization: int, phone: PhoneNumber, made: ConnectedNumber, was: Mapping[str, Any], undone: Undone
) -> None:
    """Put back what a number was that had been added before it was connected."""
    config_id = phone.telephony_configuration_id
    if made.made_default and phone.is_default_caller_id:
        clear_default_caller_id(config_id)
    if phone.inbound_workflow_id != made.workflow:
        undone.left.append(f"Here: another agent was chosen for {phone.address_normalized} since, which stays.")
        return
    agent = find(Workflow, id=was["inbound_workflow"], organization=organization)
    changed = {"inbound_workflow_id": None if agent is None else agent.id, "is_active": was["is_active"]}
    phone_numbers.update(organization, config_id, phone.id, clear_inbound_workflow=True, **changed)
    undone.restored.append(f"Here: {phone.address_normalized} is as it was.")


def move(service: Service) -> Iterator[str]:
    """Have the calls to all connected numbers sent to where the service is reached now; yields what becomes of each.

    What was changed since it was connected stays.
    """
    for configuration in connected_configurations():
        try:
            with _refusals_as_errors():
                yield from _move(service, configuration)
        except ServiceError as error:
            yield f"The numbers of {configuration.title} may still have the address before: {error.detail}"


def _move(service: Service, configuration: TelephonyConfiguration) -> Iterator[str]:
    routes, base = routes_of(service, configuration), service.base_url
    if routes is None:
        changes = connected_numbers.read(service.vault, configuration)
        for number in () if changes is None else changes.numbers:
            yield f"The URLs of {number} have to be changed by hand: {PROVIDERS[configuration.provider].display_name}."
        return
    routes = replace(routes, changes=_note_base(service, configuration, base, only=False))
    left = False
    for number in routes.changes.numbers:
        entry = routes.carrier.number_entry(number)
        if entry is not None and routes.is_ours(entry, status=False):
            routes.prepare_application(base, entry)
            routes.set(number, entry, base)
            yield f"Calls to {number} come to {base}."
        else:
            left = True
            yield f"Calls to {number} aren't sent here any more, since that was changed at {routes.carrier.name}."
    if not left:
        _note_base(service, configuration, base, only=True)
