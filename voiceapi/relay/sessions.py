"""What the sockets of relays begin with, and how their turns are decided, each on a thread of the door's pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..calls import relays, turns
from ..calls.refusals import WebhookRefused
from ..calls.turns import Relay, RelayEnded, TurnRequest
from ..calls.webhooks import verify
from ..engine.actions import Action, Redirect
from ..errors import NotPermitted
from ..service import Service
from ..store.base import find, require
from ..store.locks import UNREPEATABLE
from ..store.runs import Run
from ..telephony.carriers.webhook import Webhook
from .core import Dialect, NoteCut, TakeTurn, Talk
from .jambonz import Jambonz
from .twilio import Telnyx, Twilio

# By the names of the carriers that have relays. The simulator's phones speak as Twilio does.
DIALECTS: Mapping[str, Callable[[relays.Opening], Dialect]] = {
    "Twilio": lambda _: Twilio(),
    "Telnyx": lambda _: Telnyx(),
    "jambonz": Jambonz,
    "Simulator": lambda _: Twilio(),
}


def begin(service: Service, webhook: Webhook, clock: Callable[[], float]) -> tuple[int, Talk]:
    """Verify the request for a relay's socket, as webhooks are; returns the run's id and what the socket begins with.

    :param webhook: with the wss address.
    :raises NotPermitted: when its address isn't one that we gave and nobody has used, or the carrier, if it signs such
        requests, didn't sign it.
    """
    if "origin" in webhook.headers:
        raise NotPermitted("Browsers have no business here.")
    with service.store.session():
        token = webhook.url.partition(relays.PATH)[2]
        run_id, number, part, id = relays.read_token(service, token)
        run = find(Run, id=run_id)
        if run is None:
            raise NotPermitted("There is no such call.")
        carrier = verify(service, run.token, webhook, is_upgrade=True).carrier
        # A simulated phone asks for a relay itself, whatever its configuration.
        if not (carrier.wants_relay or carrier.is_local):
            raise WebhookRefused("The configuration of this call has no relay any more.", run=run.id)
        opening = relays.open_once(service, carrier, run, number, part, id)
    dialect, call_id = DIALECTS[carrier.name](opening), run.carrier_call_id or ""
    return run.id, Talk(dialect, call_id, opening.number, opening.said, opening.listen, clock(), opening.part)


def take_turn(
    service: Service, run_id: int, turn: TakeTurn, relay: Relay, give: Callable[[Sequence[Action]], None]
) -> None:
    """Decide a turn, and give out its actions part by part; each is stored before. It ends with the relay.

    :raises DatabaseUnavailable: as `turns.answer`.
    """
    number, part, reported = turn.number, turn.part, turn.reported
    while True:
        with service.store.session(UNREPEATABLE):
            run = require(Run, "The call is gone.", id=run_id)
            try:
                request = TurnRequest(run, number, turn.caller_input, part=part, relay=relay, reported=reported)
                actions = turns.answer(service, request).actions
            except RelayEnded:
                return
        give(actions)
        match actions[-1]:
            case Redirect(turn=number, part=part):
                continue
        return


def note_cut(service: Service, run_id: int, cut: NoteCut) -> None:
    """Store what of the latest turn was heard."""
    with service.store.session(UNREPEATABLE):
        turns.interrupt(service, run_id, cut.played, cut.unplayed)
