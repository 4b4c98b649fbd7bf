"""Ends a run because somebody asks for it: a call, a text chat, or a run that was prepared and never called."""

from __future__ import annotations

from contextlib import nullcontext, suppress

from ..conversations import text_chats
from ..errors import NotPossible
from ..runs import lifecycle
from ..service import Service
from ..store import runs
from ..store.base import find, reload
from ..store.chats import ChatSession
from ..store.database import write
from ..store.locks import run_lock
from ..store.runs import Run
from ..telephony.carriers.rest import CarrierRefused, CarrierSilent
from . import ending


def end(service: Service, run: Run) -> Run:
    """End a run, and return it as it is then; one that has ended stays as it is.

    A call in progress is hung up by its carrier and ends by the status that follows, which may come later. If the
    carrier gives no answer, or hasn't named the call yet, it is asked again until it has ended the call.

    :raises NotPossible: with the reason, when the carrier refuses; the call goes on then.
    :raises OutOfService: when too many slow requests are in progress; nothing has changed then.
    """
    session = find(ChatSession, run=run)
    if session is not None:
        text_chats.end(service, session)
        return reload(run)
    asks = run.mode != "simulator" and run.state != "prepared" and not run.is_completed
    with service.bulkhead.slow(run.organization_id) if asks else nullcontext():
        return _end_call(service, run)


def _end_call(service: Service, run: Run) -> Run:
    with write(*runs.ending_locks(run)):
        run = reload(run)
        if run.state == "prepared":
            ending.record_outcome(run, "canceled")
            lifecycle.complete(service, run, 0)
        is_new = ending.request_hang_up(run, ending.HUNG_UP)
    try:
        with suppress(CarrierSilent):
            ending.hang_up(service, run.id)
    except (CarrierRefused, NotPossible) as refusal:
        if is_new:
            with write(run_lock(run.id)):
                ending.withdraw_hang_up(run)
        reason = refusal.detail if isinstance(refusal, NotPossible) else refusal
        raise NotPossible(f"Failed to end the call: {reason}") from None
    return reload(run)
