"""The class of each carrier, by its provider name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .base import Account, Carrier
from .cloudonix import Cloudonix
from .jambonz import Jambonz
from .plivo import Plivo
from .signalwire import SignalWire
from .telnyx import Telnyx
from .twilio import Twilio
from .vobiz import Vobiz
from .vonage import Vonage

# The names are those of `providers`. The simulator isn't here: it needs the service, not an account.
CARRIERS: Mapping[str, Callable[[Account], Carrier]] = {
    "cloudonix": Cloudonix,
    "jambonz": Jambonz,
    "plivo": Plivo,
    "signalwire": SignalWire,
    "telnyx": Telnyx,
    "twilio": Twilio,
    "vobiz": Vobiz,
    "vonage": Vonage,
}
