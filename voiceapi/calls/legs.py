"""Which call a webhook is about: the run's own, another leg of it, or a call of somebody else, which is refused."""

from __future__ import annotations

from ..errors import NotPermitted
from ..runs import lifecycle
from ..store.base import reload
from ..store.database import write
from ..store.locks import run_lock
from ..store.runs import Run
from ..telephony.carriers.base import Carrier
from ..telephony.carriers.events import Leg
from ..telephony.carriers.webhook import Webhook


def identify(run: Run, carrier: Carrier, webhook: Webhook) -> tuple[Run, bool]:
    """The run, and whether a webhook with its token and a right signature is about its own call.

    The first webhook that names the call fixes its id. Another leg of the call, such as the other side of a transfer,
    names the call as its parent, or has its conversation.

    :raises NotPermitted: when the webhook names another account, or another call.
    """
    if carrier.is_of_other_account(webhook):
        raise NotPermitted(f"This webhook is of another {carrier.name} account than the call.")
    leg = carrier.read_leg(webhook)
    if leg.ids and not run.call_id_confirmed:
        with write(run_lock(run.id)):
            run = reload(run)
            if _may_fix(run, carrier, leg):
                known = run.carrier_call_id
                lifecycle.fix_call_id(run, known if known in leg.ids else leg.ids[0], leg.conversation)
    conversation = run.gathered_context.get(lifecycle.CONVERSATION)
    is_same = None if None in (conversation, leg.conversation) else conversation == leg.conversation
    if run.carrier_call_id in leg.ids or (not leg.ids and is_same is not False):
        return run, True
    if run.carrier_call_id in leg.parents or is_same:
        return run, False
    raise NotPermitted("This webhook is about another call than the one that its URL belongs to.")


def _may_fix(run: Run, carrier: Carrier, leg: Leg) -> bool:
    """True if this webhook's id may become the run's: none is fixed, and the answer to the request names no other."""
    if run.call_id_confirmed:
        return False
    is_named = run.carrier_call_id is not None and carrier.names_new_calls
    return not is_named or run.carrier_call_id in leg.ids
