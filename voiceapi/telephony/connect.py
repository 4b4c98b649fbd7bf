"""The carrier of a configuration or of a run, with its credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import NotPossible
from ..http_client import is_loopback
from ..service import Service
from ..store.base import find
from ..store.runs import Run
from ..store.telephony import TelephonyConfiguration
from . import configurations
from .carriers.base import Account, Carrier
from .carriers.registry import CARRIERS
from .carriers.rest import CarrierRefused
from .carriers.simulator import Simulator
from .phones import LeasedPhones


def connect(service: Service, configuration: TelephonyConfiguration) -> Carrier:
    """The carrier of a configuration.

    :raises NotPossible: when its credentials can't be decrypted.
    """
    credentials = configurations.credentials(service.vault, configuration)
    return carrier_for(service, configuration.provider, credentials)


def require_public_url(service: Service, configuration: TelephonyConfiguration) -> None:
    """Refuse a call whose carrier couldn't send its webhooks, because it isn't told where it reaches this service.

    A carrier whose own address is this machine, such as a mock, reaches it without a public URL.

    :raises NotPossible: when VOICEAPI_PUBLIC_URL is unset or leads to the carrier's own machine, or the credentials
        can't be decrypted.
    """
    settings = service.settings
    if configuration.provider == "simulator" or not (settings.public_url is None or is_loopback(settings.public_url)):
        return
    # jambonz may run anywhere, so its address is part of its credentials.
    credentials = configurations.credentials(service.vault, configuration)
    if is_loopback(settings.carrier_url(configuration.provider) or str(credentials.get("api_base_url") or "")):
        return
    name = configurations.provider(configuration).display_name
    state = "isn't set" if settings.public_url is None else f"is {settings.public_url}, an address of this machine only"
    raise NotPossible(
        f"VOICEAPI_PUBLIC_URL {state}, so {name} couldn't ask this service what to say in the call. Set it to the "
        f"https address at which {name} reaches the service, and start the service again."
    )


def connect_run(service: Service, run: Run) -> Carrier:
    """The carrier of a run's call, by the configuration that it goes through; see `connect_through`."""
    return connect_through(service, run, find(TelephonyConfiguration, id=run.telephony_configuration_id))


def connect_through(service: Service, run: Run, configuration: TelephonyConfiguration | None) -> Carrier:
    """The carrier of a run's call.

    :param configuration: the one that the call goes through; None if it was deleted. A simulated call needs none.
    :raises NotPossible: as `connect`, or when there is no configuration.
    """
    if configuration is not None:
        return connect(service, configuration)
    if run.mode != "simulator":
        raise NotPossible("The telephony configuration of this call is gone.")
    return carrier_for(service, run.mode, {})


def hang_up(carrier: Carrier, run: Run) -> None:
    """End a run's call, by the id that the carrier knows it by at this time.

    :raises CarrierRefused: when the carrier refused or could not be asked, or has not named the call yet.
    :raises CarrierSilent: when the carrier gave no answer.
    """
    if run.carrier_call_id is None:
        raise CarrierRefused(f"{carrier.name} has not named this call yet.")
    # A machine that was detected has answered.
    is_answered = run.state == "talking" or run.hang_up_reason == "voicemail_detected"
    if not run.call_id_confirmed:
        carrier.cancel(run.carrier_call_id)
    elif is_answered:
        carrier.hang_up(run.carrier_call_id)
    else:
        carrier.stop_ringing(run.carrier_call_id)


def carrier_for(service: Service, provider: str, credentials: Mapping[str, Any]) -> Carrier:
    """The carrier of a provider, with credentials by the names of the provider's fields."""
    if provider == "simulator":
        return Simulator(
            service.simulated_webhooks(service),
            service.vault.key("simulator"),
            LeasedPhones(service),
            bool(credentials.get("realtime")),
        )
    return CARRIERS[provider](Account(credentials, service.http.send, service.settings.carrier_url(provider)))
