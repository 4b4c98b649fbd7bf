"""Every carrier from its own side: what it sends, how it signs, how it reads our documents. A carrier is a row."""

from __future__ import annotations

from .jambonz import JAMBONZ
from .line import Line, Verb
from .plivo_compatible import PLIVO, VOBIZ
from .simulated import SIMULATOR
from .twilio_compatible import CLOUDONIX, SIGNALWIRE, TELNYX, TWILIO
from .vonage import VONAGE

LINES: tuple[Line, ...] = (CLOUDONIX, JAMBONZ, PLIVO, SIGNALWIRE, SIMULATOR, TELNYX, TWILIO, VOBIZ, VONAGE)

__all__ = ["LINES", "Line", "Verb"]
