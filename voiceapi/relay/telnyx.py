"""The frames of Telnyx' Conversation Relay: Twilio's, of which it documents fewer fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .twilio import Twilio


class Telnyx(Twilio):
    """Telnyx' dialect. Texts can't say whether they may be interrupted; the document says it for all of them."""

    cuts_speech: ClassVar[bool] = True
    # The first is what webhooks have as CallSid; the setup's callSid is another one.
    call_ids: ClassVar[tuple[str, ...]] = ("callControlId", "callLegId")

    def text(self, token: str, *, last: bool, interruptible: bool) -> Mapping[str, Any]:
        return {"type": "text", "token": token, "last": last}
