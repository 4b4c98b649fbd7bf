"""Which calls go over a text relay, what one begins with, and how a call goes on when it has ended.

A relay is a websocket on which a carrier sends what the caller says, and speaks the text that it is sent. A document
hands the call over to it, with a token in the address that is good for one socket. The carrier then asks a webhook
how the call goes on, whatever has ended the socket; relays that break off are tried a few times, then webhooks go on.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..conversations.conversation import append_log
from ..engine.actions import Action, Listen, Play, Record, Say
from ..engine.graph import Graph
from ..errors import NotPermitted
from ..runs.lifecycle import LONGEST_CALL_SECONDS
from ..security import new_token
from ..service import Service
from ..store import runs
from ..store.base import find, reload, scalar
from ..store.database import write
from ..store.fields import now
from ..store.locks import run_lock
from ..store.runs import Run, RunEvent, Snapshot, Turn
from ..store.workflows import WorkflowVersion
from ..telephony.carriers.base import Carrier, VoiceSettings, WebhookDocument
from . import turns
from .setup import callback_urls
from .turns import TurnAnswer, TurnRequest

# Where carriers reach our side of a relay, followed by the token.
PATH = "/api/v1/telephony/relay/"
PURPOSE = "relay a call"
# How long a document's address is good: the carrier connects when it comes to it.
TOKEN_SECONDS = 300.0
# How long the caller may be silent after a socket that dropped while a turn was decided, until that is decided.
LISTEN_SECONDS = 60.0
# A relay that lasted less has failed; after so many of them in a call it goes on by webhooks.
SHORTEST_SECONDS, MOST_FAILURES = 10, 3
# The events of a run's log.
OPENED, ENDED, NOT_USED = "rtf-relay-opened", "rtf-relay-ended", "rtf-relay-not-used"
NO_RELAY = "Nobody takes the sockets of a relay: run `voiceapi serve`, or `voiceapi relay` and set VOICEAPI_RELAY_URL."
NO_TLS = "A relay goes by TLS only: VOICEAPI_RELAY_URL has to be wss, or VOICEAPI_PUBLIC_URL https."
USED, OVER = "This address was used before.", "The call is over, or has gone on."
BROKEN = f"{MOST_FAILURES} relays of this call lasted less than {SHORTEST_SECONDS} s each."


@dataclass(frozen=True, slots=True)
class Opening:
    """What the socket of a relay begins with.

    :param number: of the latest turn.
    :param said: what was given out in it.
    :param spoken: what of that the relay is to say at its beginning, where the document doesn't; None if the call has
        gone on since.
    :param listen: how the agent listens after it.
    :param part: how many of the turn's actions were given out before the socket dropped that this one follows; None
        for the first socket at its address.
    :param end: asks how the call goes on after the relay.
    """

    number: int
    said: str
    spoken: list[Say | Play] | None
    listen: Listen
    voice: VoiceSettings
    end: str
    part: int | None = None


def render(service: Service, carrier: Carrier, request: TurnRequest, answer: TurnAnswer) -> WebhookDocument:
    """The document that answers a turn which a webhook asks for: by a relay from there on, where the call has one."""
    run = request.run
    urls = callback_urls(service, run, answer.next, carrier.retries)
    if carrier.wants_relay and isinstance(answer.actions[-1], Listen):
        # A relay of the simulator has no socket.
        obstacle = ("" if carrier.is_local else why_not(service)) or (BROKEN if _failures(run) >= MOST_FAILURES else "")
        if not obstacle:
            address = _address(service, run, request, LONGEST_CALL_SECONDS if carrier.reconnects else 0.0)
            return carrier.render_relay(answer.actions, urls, answer.voice, address, interruptible=_can_be_cut(run))
        _note_once(run, obstacle)
    return carrier.render(answer.actions, urls, answer.voice)


def why_not(service: Service) -> str:
    """Why no call of this process can go over a relay, a sentence; empty if it can."""
    if not service.has_relay and service.settings.relay_url is None:
        return NO_RELAY
    return "" if service.relay_url.startswith("wss://") else NO_TLS


def _can_be_cut(run: Run) -> bool:
    """True if any node of a call may be interrupted."""
    version = find(WorkflowVersion, id=run.version_id)
    if version is None:
        return True
    graph = Graph.read(version.definition if run.draft is None else run.draft)
    return any(node.allow_interrupt for node in graph.nodes.values())


def _address(service: Service, run: Run, request: TurnRequest, longer: float) -> str:
    document = {"run": run.id, "turn": request.number, "part": request.part, "id": new_token()[:16]}
    token = service.vault.sign(document, PURPOSE, now().timestamp() + TOKEN_SECONDS + longer)
    return f"{service.relay_url}{PATH}{token}"


def read_token(service: Service, token: str) -> tuple[int, int, int, str]:
    """The run, the turn and the part of it that a document was given, and the document's own id, of its address.

    :raises NotPermitted: when the token isn't ours, or too old.
    """
    match service.vault.verify(token, PURPOSE, now().timestamp()):
        case {"run": int(run), "turn": int(number), "part": int(part), "id": str(id)}:
            return run, number, part, id
    raise NotPermitted("There is no such call.")


def open_once(service: Service, carrier: Carrier, run: Run, number: int, part: int, id: str) -> Opening:
    """Store that a document's relay has begun, once: what the document says counts as given out.

    A carrier that reconnects may begin it again, as long as the call goes over this relay.

    :raises NotPermitted: when it has begun before, or the call is over, or has gone on.
    """
    with write(run_lock(run.id)):
        run, turn = reload(run), find(Turn, newest_by="number", run=run)
        opened, ended = runs.events(run, OPENED), runs.events(run, ENDED)
        if turn is None or run.is_completed or run.hang_up_reason is not None:
            raise NotPermitted(OVER)
        actions, again = [Action.from_json(each) for each in turn.actions], None
        if any(event.payload["id"] == id for event in opened):
            is_latest = opened[-1].payload["id"] == id and not (ended and ended[-1].id > opened[-1].id)
            if not (carrier.reconnects and is_latest):
                raise NotPermitted(USED)
            again = max(turn.given, default=0)
        elif turn.number != number or not actions[part:] or not isinstance(actions[-1], Listen):
            raise NotPermitted(OVER)
        else:
            _log(run, OPENED, {"id": id})
            turns.give_out(turn)
    configurations = scalar(WorkflowVersion, "configurations", id=run.version_id) or {}
    said = [each for each in (actions if again is None else actions[:again]) if isinstance(each, Say | Play)]
    last = actions[-1] if actions else None
    return Opening(
        turn.number,
        " ".join(each.text for each in said),
        [each for each in actions[part:] if isinstance(each, Say | Play)] if turn.number == number else None,
        # A turn that isn't decided yet, or has ended otherwise, has no Listen; the next actions say how to go on.
        last if isinstance(last, Listen) else Listen(LISTEN_SECONDS, True),
        turns.voice_settings(configurations, run),
        callback_urls(service, run, turn.number, carrier.retries).relayed,
        again,
    )


def note_end(run: Run, session: str, status: str, error: str) -> None:
    """Log that the latest relay of a call has ended, once, as its carrier reports it.

    :param session: the carrier's id of it, empty where it has none.
    """
    seconds = None
    with write(run_lock(run.id)):
        opened, ended = runs.events(run, OPENED), runs.events(run, ENDED)
        is_open = bool(opened) and (not ended or ended[-1].at <= opened[-1].at)
        is_known = any(event.payload["session"] == session for event in ended) if session else not is_open
        if is_known or reload(run).is_completed:
            return
        if is_open:
            seconds = round((now() - opened[-1].at).total_seconds(), 3)
        _log(run, ENDED, {"session": session, "status": status, "seconds": seconds, "error": error})


def _failures(run: Run) -> int:
    ended = [event.payload for event in runs.events(run, ENDED)]
    return sum(each["status"] != "ended" and (each["seconds"] or 0) < SHORTEST_SECONDS for each in ended)


def _note_once(run: Run, obstacle: str) -> None:
    """Log why a call goes by webhooks although its configuration asks for a relay."""
    with write(run_lock(run.id)):
        if not any(event.payload["reason"] == obstacle for event in runs.events(run, NOT_USED)):
            _log(run, NOT_USED, {"reason": obstacle})


def _log(run: Run, type: str, payload: dict[str, object]) -> None:
    state, latest = scalar(Snapshot, "state", run=run.id) or {}, find(RunEvent, newest_by="id", run=run.id)
    node = ("", "") if latest is None else (latest.node_id or "", latest.node_name or "")
    append_log(run, [Record(type, payload, now().timestamp(), state.get("turn", 0), *node)])
