"""Which module speaks a carrier's dialect. A carrier that isn't here is stored, but can't be called through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from .carrier import Account, Carrier
from .twilio_family import CLOUDONIX, SIGNALWIRE, TELNYX, TWILIO
from .twilio_like import TwilioLike

# By the names in `providers`. The simulator isn't a dialect: it lives on the service's own threads.
CARRIERS: Mapping[str, Callable[[Account], Carrier]] = {
    "cloudonix": partial(TwilioLike, CLOUDONIX),
    "signalwire": partial(TwilioLike, SIGNALWIRE),
    "telnyx": partial(TwilioLike, TELNYX),
    "twilio": partial(TwilioLike, TWILIO),
}
