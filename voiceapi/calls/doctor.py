"""Checks the public URL and the telephony configurations, one line for each problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import NotPossible
from ..http_client import RequestFailed
from ..service import Service
from ..store.telephony import TelephonyConfiguration, active_numbers, real_configurations
from ..telephony import configurations, connect
from ..telephony.carriers.rest import CarrierSilent

SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What was checked, and what is wrong with it; None if nothing is."""

    subject: str
    wrong: str | None = None


def examine(service: Service) -> Iterator[Finding]:
    """Check the public URL, then every configuration of a real carrier with its credentials and numbers."""
    found = real_configurations()
    if found:
        yield from _report(f"public address {service.base_url}", _address(service))
    for configuration in found:
        name = f"configuration {configuration.id} '{configuration.name}' ({configuration.provider})"
        yield from _report(name, _configuration(service, configuration))


def _report(subject: str, wrong: Iterator[str]) -> Iterator[Finding]:
    found = [Finding(subject, sentence) for sentence in wrong]
    yield from found or [Finding(subject)]


def _address(service: Service) -> Iterator[str]:
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


def _configuration(service: Service, configuration: TelephonyConfiguration) -> Iterator[str]:
    if configuration.inactive:
        yield f"It is set aside: {configuration.inactive_reason or 'no reason is given'}."
    numbers = active_numbers(configuration)
    ready, reason = configurations.readiness(configuration, len(numbers))
    if not ready and reason is not None:
        yield reason
    key = configurations.provider(configuration).optional_signature_key
    try:
        credentials = configurations.credentials(service.vault, configuration)
        if key is not None and not credentials.get(key) and any(each.inbound_workflow_id for each in numbers):
            yield f"Without {key} calls to its numbers are refused: nothing else proves who sends their webhooks."
        carrier = connect.carrier_for(service, configuration.provider, credentials)
        yield from carrier.check([each.address_normalized for each in numbers if each.address_type == "pstn"])
    except (NotPossible, CarrierSilent) as error:
        yield str(error)
