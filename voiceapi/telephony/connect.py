"""The carrier of a configuration or of a run, with its credentials."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from ..errors import NotPossible
from ..http_client import is_loopback
from ..security import decrypt_json
from ..service import Service
from ..store.base import find
from ..store.runs import Run
from ..store.telephony import SIMULATOR, TelephonyConfiguration
from . import configurations
from .carriers.base import Account, Carrier, Pauses
from .carriers.cloudonix import Cloudonix
from .carriers.jambonz import Jambonz
from .carriers.plivo import Plivo
from .carriers.rest import CarrierRefused
from .carriers.signalwire import SignalWire
from .carriers.simulator import DEFAULT_CALLEE, Simulator
from .carriers.telnyx import Telnyx
from .carriers.twilio import Twilio
from .carriers.vobiz import Vobiz
from .carriers.vonage import Vonage
from .phones import LeasedPhones
from .providers import PROVIDERS


def connect(service: Service, configuration: TelephonyConfiguration | None, *, is_simulated: bool = False) -> Carrier:
    """The carrier of a configuration, with its credentials.

    :param configuration: None if it was deleted.
    :param is_simulated: it is for a simulated call, which goes on without a configuration.
    :raises NotPossible: when it was deleted, or its credentials can't be decrypted.
    """
    if configuration is None and not is_simulated:
        raise NotPossible("The telephony configuration of this call is gone.")
    credentials = {} if configuration is None else decrypt_json(service.vault, configuration.credentials)
    if configuration is None or configuration.provider == SIMULATOR:
        return Simulator(
            service.simulated_webhooks(service),
            service.vault.key(SIMULATOR),
            LeasedPhones(service),
            bool(credentials.get("realtime")),
            DEFAULT_CALLEE if service.host.callee is None else service.host.callee,
        )
    send = partial(service.http.send, owner=configuration.organization_id)
    url = service.settings.carrier_url(configuration.provider)
    return CARRIERS[configuration.provider](Account(credentials, send, url))


def connect_run(service: Service, run: Run) -> Carrier:
    """The carrier of a run's call, by the configuration that it goes through.

    :raises NotPossible: as `connect`.
    """
    configuration = find(TelephonyConfiguration, id=run.telephony_configuration_id)
    return connect(service, configuration, is_simulated=run.is_simulated)


def require_public_url(service: Service, configuration: TelephonyConfiguration) -> None:
    """Refuse a call whose carrier couldn't send its webhooks, because it isn't told where it reaches this service.

    A carrier whose own address is this machine, such as a mock, reaches it without a public URL.

    :raises NotPossible: when VOICEAPI_PUBLIC_URL is unset or leads to the carrier's own machine, or the credentials
        can't be decrypted.
    """
    settings = service.settings
    if configuration.is_simulated or not (settings.public_url is None or is_loopback(settings.public_url)):
        return
    # jambonz may run anywhere, so its address is part of its credentials.
    credentials = configurations.credentials(service.vault, configuration)
    if is_loopback(settings.carrier_url(configuration.provider) or str(credentials.get("api_base_url") or "")):
        return
    name = PROVIDERS[configuration.provider].display_name
    state = "isn't set" if settings.public_url is None else f"is {settings.public_url}, an address of this machine only"
    raise NotPossible(
        f"VOICEAPI_PUBLIC_URL {state}, so {name} couldn't ask this service what to say in the call. Set it to the "
        f"https address at which {name} reaches the service, and start the service again."
    )


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


# -- the class of each carrier, by its provider name


class CarrierClass(Protocol):
    """A subclass of Carrier whose objects are accounts, with what its carrier can do."""

    name: str
    pauses: Pauses
    ends_keys: bool
    retries: str

    @property
    def voices(self) -> Mapping[str, str]: ...
    def __call__(self, account: Account) -> Carrier: ...


# The names are those of `providers`. The simulator isn't here: it needs the service, not an account.
CARRIERS: Mapping[str, CarrierClass] = {
    "cloudonix": Cloudonix,
    "jambonz": Jambonz,
    "plivo": Plivo,
    "signalwire": SignalWire,
    "telnyx": Telnyx,
    "twilio": Twilio,
    "vobiz": Vobiz,
    "vonage": Vonage,
}
