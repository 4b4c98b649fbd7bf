"""Every carrier from its own side: what it sends, how it signs, what it makes of our documents. A carrier is a row."""

from __future__ import annotations

from .line import Line, Verb
from .simulated import SIMULATOR
from .twilio_family import CLOUDONIX, SIGNALWIRE, TELNYX, TWILIO

LINES: tuple[Line, ...] = (CLOUDONIX, SIGNALWIRE, SIMULATOR, TELNYX, TWILIO)

__all__ = ["LINES", "Line", "Verb"]
