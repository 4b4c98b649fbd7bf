"""The carrier of a configuration or of a run, with its credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import NotPossible
from ..service import Service
from ..store.base import find
from ..store.runs import Run
from ..store.telephony import TelephonyConfiguration
from . import configurations
from .carriers.base import Account, Carrier
from .carriers.registry import CARRIERS
from .carriers.simulator import Simulator
from .phones import LeasedPhones


def connect(service: Service, configuration: TelephonyConfiguration) -> Carrier:
    """The carrier of a configuration.

    :raises NotPossible: when its credentials can't be decrypted.
    """
    credentials = configurations.credentials(service.vault, configuration)
    return carrier_for(service, configuration.provider, credentials)


def connect_run(service: Service, run: Run) -> Carrier:
    """The carrier of a run's call.

    :raises NotPossible: as `connect`, or when the configuration was deleted. A simulated call needs none.
    """
    configuration = find(TelephonyConfiguration, id=run.telephony_configuration_id)
    if configuration is not None:
        return connect(service, configuration)
    if run.mode != "simulator":
        raise NotPossible("The telephony configuration of this call is gone.")
    return carrier_for(service, run.mode, {})


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
