"""What the log and the metrics say about the start and the end of a run."""

from __future__ import annotations

import logging
import re

from ..service import Service
from ..store.runs import Run

log = logging.getLogger("voiceapi")

# The dispositions that this service sets. Workflows may set any other text.
DISPOSITIONS = frozenset(
    (
        *("answered", "busy", "call_duration_exceeded", "call_transferred", "canceled", "completed", "do_not_call"),
        *("end_call_tool", "error", "failed", "no-answer", "no_answer", "opt_out", "pipeline_error", "transfer_call"),
        *("user_hangup", "user_idle_max_duration_exceeded", "user_qualified", "unknown", "voicemail"),
        "voicemail_detected",
    )
)
# A disposition of a workflow that the log shows: a code, not a sentence, and no telephone number.
CODE = re.compile(r"(?!.*[0-9]{5})[A-Za-z][\w. -]{0,59}", re.ASCII)
OTHER = "other"


def note_start(service: Service, run: Run, number: str, through: str) -> None:
    """Log and count that the call of a run starts.

    :param number: the other side's, as logs show it.
    :param through: the telephony configuration, as logs show it.
    """
    log.info(
        "Run %s: %s call %s %s through %s",
        run.id,
        run.call_type,
        "to" if run.call_type == "outbound" else "from",
        number,
        through,
        extra={
            "event": "call_started",
            "run": run.id,
            "workflow": run.workflow_id,
            "carrier": run.mode,
            "direction": run.call_type,
        },
    )
    if service.metrics is not None:
        service.metrics.call_started(run.mode, run.call_type)


def note_end(service: Service, run: Run) -> None:
    """Log and count that a run has ended; called after the commit."""
    is_chat = run.mode == "textchat"
    disposition = run.disposition or "none"
    if log.isEnabledFor(logging.INFO):
        shown = disposition if CODE.fullmatch(disposition) else OTHER
        log.info(
            "Run %s: %s ended as %s after %.1f s",
            run.id,
            "text chat" if is_chat else "call",
            shown,
            run.duration or 0.0,
            extra={
                "event": "chat_ended" if is_chat else "call_ended",
                "run": run.id,
                "workflow": run.workflow_id,
                "carrier": run.mode,
                "direction": run.call_type,
                "disposition": shown,
                "seconds": round(run.duration or 0.0, 3),
            },
        )
    if service.metrics is not None and not is_chat:
        known = disposition if disposition in DISPOSITIONS else OTHER
        service.metrics.call_ended(run.mode, run.call_type, known)
