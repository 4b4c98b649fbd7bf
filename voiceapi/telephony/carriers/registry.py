"""Which module speaks a carrier's dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from .base import Account, Carrier
from .jambonz import Jambonz
from .plivo_like import PLIVO, VOBIZ, PlivoLike
from .twilio_family import CLOUDONIX, SIGNALWIRE, TELNYX, TWILIO
from .twilio_like import TwilioLike
from .vonage import Vonage

# By the names in `providers`. The simulator isn't a dialect: it lives on the service's own threads.
CARRIERS: Mapping[str, Callable[[Account], Carrier]] = {
    "cloudonix": partial(TwilioLike, CLOUDONIX),
    "jambonz": Jambonz,
    "plivo": partial(PlivoLike, PLIVO),
    "signalwire": partial(TwilioLike, SIGNALWIRE),
    "telnyx": partial(TwilioLike, TELNYX),
    "twilio": partial(TwilioLike, TWILIO),
    "vobiz": partial(PlivoLike, VOBIZ),
    "vonage": Vonage,
}
