"""Checks what calls depend on: the public URL, the language models and the telephony configurations."""

from __future__ import annotations

import base64
import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ..errors import NotPossible
from ..http_client import LimitedHTTPClient, RequestFailed
from ..llm import selection
from ..organizations.call_limits import CallLimits
from ..service import Service
from ..store import campaigns, organizations, workflows
from ..store.base import require
from ..store.fields import now
from ..store.organizations import Organization
from ..store.telephony import (
    PhoneNumber,
    TelephonyConfiguration,
    active_numbers,
    configurations_of,
    rejected_calls,
)
from ..telephony import configurations, connect
from ..telephony.carriers.base import Advice, Carrier
from ..telephony.carriers.rest import CarrierRefused, CarrierSilent
from ..telephony.configurations import NotConfigured, resolve_outbound
from ..telephony.inbound_urls import InboundURLs
from ..telephony.providers import PROVIDERS
from ..timestamps import write_time
from . import relays
from .inbound import MEANINGS

SECONDS = 10.0
# How far back calls are named that weren't taken, and of how many numbers at most.
REJECTED_SINCE, MOST_NUMBERS = timedelta(days=7), 5
# How long all checks of one organization may take together.
LIMIT_SECONDS = 20.0
MODEL = "language model"
OUT_OF_TIME = "Not all of it was checked: the time for all checks was over."
BY_WEBHOOKS = "Its calls can't go over a relay, so they go by webhooks."
NO_LIMITS = (
    "Whoever gets hold of an API key could call any number, all night. Set allowed_countries or max_calls_a_day with "
    "PUT /organizations/preferences."
)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What was checked, and what is wrong with it; None if nothing is.

    :param note: what is worth knowing about it although nothing is wrong.
    """

    subject: str
    wrong: str | None = None
    note: str | None = None

    @property
    def sentence(self) -> str:
        """What is shown of it."""
        return self.wrong or self.note or "good"


def nobody_dials(since: datetime) -> str:
    """The sentence about a campaign that stands still because no process dials."""
    return (
        f"Nothing has dialed since {write_time(since, 'seconds')}: no process that dials is at work. Start "
        "`voiceapi serve` or `voiceapi dial`; docs/embedding.md says when a host app dials."
    )


def examine(service: Service) -> Iterator[CheckResult]:
    """Check the public URL, if a real carrier needs it, the language models, every configuration and who dials."""
    everybody = organizations.all_organizations()
    found = {organization.id: configurations_of(organization.id) for organization in everybody}
    if any(not each.is_simulated for owned in found.values() for each in owned):
        yield from _report(f"public address {service.base_url}", check_address(service))
    yield from _models(service, everybody)
    for organization in everybody:
        owner = f" of {organization.name!r}" if len(everybody) > 1 else ""
        for _, finding in _telephony(service, organization, found[organization.id], owner):
            yield finding
        yield from _campaigns(organization.id)


def examine_organization(
    service: Service, organization_id: int, configuration_id: int | None = None
) -> list[tuple[int | None, CheckResult]]:
    """Check what one organization's calls depend on, within LIMIT_SECONDS; what isn't checked by then is named.

    Each finding is beside the id of the telephony configuration that it is about, None if it is about something else.
    Other organizations aren't mentioned, and the service's model only if it speaks for this organization.

    :param configuration_id: the one telephony configuration to check, and nothing else.
    :raises RecordNotFound: when there is no such configuration.
    :raises OutOfService: when too many slow requests are in progress; nobody was asked then.
    """
    with service.bulkhead.slow(organization_id):
        deadline = time.monotonic() + LIMIT_SECONDS
        limited = replace(service, http=LimitedHTTPClient(client=service.http, deadline=deadline))
        organization = require(Organization, "Organization not found", id=organization_id)
        if configuration_id is not None:
            chosen = [configurations.get(organization_id, configuration_id)]
            about = _telephony(limited, organization, chosen, "", deadline)
            return [(id, finding) for id, finding in about if id is not None]
        owned = configurations_of(organization_id)
        found: list[tuple[int | None, CheckResult]] = []
        if any(not each.is_simulated for each in owned):
            subject = f"public address {service.base_url}"
            found += ((None, finding) for finding in _report(subject, check_address(limited), deadline))
        found += _telephony(limited, organization, owned, "", deadline)
        found += ((None, finding) for finding in _campaigns(organization_id))
        # A model that is slow to begin has all the time that is left.
        own = organization.model_configuration is not None and selection.has_own(service, organization_id)
        of, whose = ("organization", organization_id) if own else ("service", None)
        found.append((None, _model(limited, f"{MODEL} of the {of}", whose, deadline)))
    return found


def _telephony(
    service: Service,
    organization: Organization,
    owned: list[TelephonyConfiguration],
    owner: str,
    deadline: float = math.inf,
) -> Iterator[tuple[int | None, CheckResult]]:
    """What is found about an organization's configurations, each finding beside the id of its own."""
    outbound = _outbound(organization.id)
    for configuration in owned:
        subject = f"{configuration.title}{owner}{_role(configuration, outbound)}"
        for finding in _report(subject, examine_configuration(service, configuration), deadline):
            yield configuration.id, finding
    limits = CallLimits.read(organization.preferences)
    real = any(not each.is_simulated for each in owned)
    if real and limits.countries is None and limits.calls_a_day is None:
        yield None, CheckResult(f"limits of outbound calls{owner}", note=f"advice: {NO_LIMITS}")


def _campaigns(organization: int) -> Iterator[CheckResult]:
    """Each campaign that stands still because no process dials."""
    for campaign in campaigns.active(organization):
        since = campaigns.not_dialed_since(campaign, now())
        if since is not None:
            yield CheckResult(f"campaign {campaign.id} {campaign.name!r}", nobody_dials(since))


def _report(subject: str, sentences: Iterator[str], deadline: float = math.inf) -> Iterator[CheckResult]:
    found, late = [], []
    for sentence in sentences:
        # Whatever is found from then on may be for want of time.
        if time.monotonic() >= deadline:
            late.append(CheckResult(subject, note=OUT_OF_TIME))
            break
        found.append(sentence)
    wrong = [CheckResult(subject, sentence) for sentence in found if not isinstance(sentence, Advice)]
    yield from [*wrong, *late] or [CheckResult(subject)]
    yield from (CheckResult(subject, note=f"advice: {sentence}") for sentence in found if isinstance(sentence, Advice))


def check_address(service: Service) -> Iterator[str]:
    """Ask the service at its public URL; what is wrong, in sentences."""
    settings = service.settings
    if settings.public_url is None:
        yield "VOICEAPI_PUBLIC_URL isn't set, so that no carrier knows where to reach this service."
        return
    if not settings.public_url.startswith("https://"):
        yield "VOICEAPI_PUBLIC_URL isn't https: what is said on the phone would cross the network in the open."
    url = f"{service.base_url}/api/v1/health"
    try:
        reply = service.http.send("GET", url, timeout=SECONDS, trusted=True)
        said = reply.json()
    except RequestFailed as error:
        yield f"The service isn't reached there: {error}"
    except ValueError:
        yield "Something else than this service answers there."
    else:
        if not isinstance(said, dict) or said.get("backend_api_endpoint") != settings.origin:
            yield "Something else than this service answers there."


# -- language models


def _models(service: Service, everybody: list[Organization]) -> Iterator[CheckResult]:
    """Ask the operator's model, and that of each organization which has configured its own."""
    yield _model(service, f"{MODEL} of the service", None)
    for organization in everybody:
        if organization.model_configuration is not None and selection.has_own(service, organization.id):
            yield _model(service, f"{MODEL} of organization {organization.name!r}", organization.id)


def _model(service: Service, subject: str, organization: int | None, deadline: float = math.inf) -> CheckResult:
    model = selection.choose(service, organization, {})
    subject = f"{subject} ({selection.describe(model)})"
    if not selection.is_asked(model):
        return CheckResult(subject)
    try:
        seconds, lacks = selection.ask(model)
    except selection.ProbeFailed as failure:
        late = time.monotonic() >= deadline
        return CheckResult(subject, note=OUT_OF_TIME) if late else CheckResult(subject, str(failure))
    answered = f"answered in {seconds:.1f} s"
    return CheckResult(subject, note=f"advice: {lacks} It {answered}." if lacks else f"good, {answered}")


# -- telephony configurations


def _outbound(organization: int) -> TelephonyConfiguration | None:
    """The configuration of outbound calls that name none; None if there isn't one that is ready."""
    try:
        return resolve_outbound(organization, None)
    except (NotConfigured, NotPossible):
        return None


def _role(configuration: TelephonyConfiguration, outbound: TelephonyConfiguration | None) -> str:
    if configuration.is_default_outbound:
        return ", default for outbound calls"
    return ", takes outbound calls, since the default can't" if configuration == outbound else ""


def examine_configuration(service: Service, configuration: TelephonyConfiguration) -> Iterator[str]:
    """What is wrong with a configuration, and Advice, in sentences; its carrier is asked."""
    if configuration.inactive:
        yield f"It is set aside: {configuration.inactive_reason or 'no reason is given'}."
    numbers = active_numbers(configuration)
    ready, reason = configurations.readiness(configuration, len(numbers))
    if not ready and reason is not None:
        yield reason
    yield from _rejected(configuration)
    key = PROVIDERS[configuration.provider].optional_signature_key
    try:
        credentials = configurations.credentials(service.vault, configuration)
        if key is not None and not credentials.get(key) and any(each.inbound_workflow_id for each in numbers):
            yield f"Without {key} calls to its numbers are refused: nothing else proves who sends their webhooks."
        carrier = connect.connect(service, configuration)
        public = [each for each in numbers if each.address_type == "pstn"]
        wrong = carrier.check([each.address_normalized for each in public])
        yield from wrong
        if carrier.wants_relay:
            yield from _relay(service)
        if service.settings.public_url is not None:
            yield from _inbound(service, configuration, carrier, public, wrong)
    except (NotPossible, CarrierSilent) as error:
        yield str(error)


def _relay(service: Service) -> Iterator[str]:
    """Ask for a websocket at the relay's address with a token that nobody was given; who answers refuses that one."""
    if not service.relay_url.startswith("wss://"):
        yield f"{BY_WEBHOOKS} {relays.NO_TLS}"
        return
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode()}
    url = f"http{service.relay_url.removeprefix('ws')}{relays.PATH}doctor"
    try:
        reply = service.http.send("GET", url, headers={**headers, **key}, timeout=SECONDS, trusted=True)
    except RequestFailed as error:
        yield f"{BY_WEBHOOKS} The relay isn't reached: {error}"
    else:
        if reply.status != 403:
            yield (
                f"{BY_WEBHOOKS} No relay answers at {url}, but status {reply.status}: `voiceapi serve` has one, or "
                "`voiceapi relay` at VOICEAPI_RELAY_URL. A proxy before it has to pass the header Upgrade on "
                "(docs/operations.md)."
            )


def _rejected(configuration: TelephonyConfiguration) -> Iterator[str]:
    """The calls to each number that no workflow took lately."""
    counts: Counter[tuple[str, str]] = Counter()
    latest: dict[tuple[str, str], str] = {}
    for each in rejected_calls(configuration.id, now() - REJECTED_SINCE):
        number = each.to_number, each.reason
        counts[number] += each.count
        latest.setdefault(number, write_time(each.last_at))
    for (called, reason), count in counts.most_common(MOST_NUMBERS):
        calls = f"{count} calls" if count > 1 else "A call"
        yield Advice(
            f"{calls} to {called} {'were' if count > 1 else 'was'} not taken, the last at {latest[called, reason]}: "
            f"{MEANINGS[reason]}."
        )


def _inbound(
    service: Service,
    configuration: TelephonyConfiguration,
    carrier: Carrier,
    numbers: list[PhoneNumber],
    said: list[str],
) -> Iterator[str]:
    """Compare the URLs that the carrier has for each number with ours; `said` isn't repeated."""
    uuids = [workflow.workflow_uuid for workflow in workflows.of_organization(configuration.organization_id)]
    urls = InboundURLs(f"{service.base_url}/api/v1/telephony/inbound", configuration.id, uuids, carrier.retries)
    for number in numbers:
        address = number.address_normalized
        try:
            route = carrier.inbound_route(address)
        except CarrierRefused as refusal:
            if str(refusal) not in said:
                yield f"The URLs of {address} can't be compared: {refusal}"
            continue
        if route is not None:
            yield from urls.compare(carrier.name, address, route, is_answered=number.inbound_workflow_id is not None)
