"""What a service has acknowledged during a mixed load, and the proof that nothing of it was lost."""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from voiceapi.store.campaigns import Campaign, Contact, DoNotCall
from voiceapi.store.chats import ChatTurn
from voiceapi.store.knowledge import Document
from voiceapi.store.postcall import Delivery, FollowUp
from voiceapi.store.runs import Run
from voiceapi.store.workflows import Workflow, WorkflowVersion

# The answers that ask the client to come again later.
LATER = (429, 503)


@dataclass(frozen=True)
class Answer:
    """A complete answer; `retry_after` is its header, None without one."""

    status: int
    body: Any
    retry_after: str | None


@dataclass
class Timing:
    """The answers to the requests of one kind: how long each took in seconds, and how often there was each status."""

    seconds: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    # Answers of 429 and 503 that didn't say when to come again.
    without_retry_after: int = 0


class Ledger:
    """What the service has acknowledged, by the ids that it gave. Workers on several threads write into one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        # By id: the name and the prompt that a workflow was last given.
        self.workflows: dict[int, tuple[str, str]] = {}
        # By the run's id: the number called.
        self.calls: dict[int, str] = {}
        # By the run's id: what was said in a chat.
        self.chats: dict[int, list[str]] = {}
        # By id: the numbers of a campaign's list.
        self.campaigns: dict[int, list[str]] = {}
        self.started: set[int] = set()
        self.not_to_call: set[str] = set()
        # By uuid: the SHA-256 of a document.
        self.documents: dict[str, str] = {}
        self.timings: dict[str, Timing] = defaultdict(Timing)
        self._numbers = itertools.count(2_000_000)

    def number(self, area: int = 202) -> str:
        """A telephone number that was never given before."""
        with self.lock:
            return f"+1{area}{next(self._numbers):07}"

    def note(self, kind: str, answer: Answer, seconds: float) -> None:
        with self.lock:
            timing = self.timings[kind]
            timing.seconds.append(seconds)
            timing.statuses[answer.status] += 1
            timing.without_retry_after += answer.status in LATER and answer.retry_after is None


class Receiver:
    """A receiver of webhooks: `bodies` holds the different bodies that came under each delivery id."""

    def __init__(self) -> None:
        self.bodies: dict[str, set[bytes]] = defaultdict(set)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                if len(body) < length:  # its sender was killed in the middle of it
                    self.close_connection = True
                    return
                receiver.bodies[self.headers["X-Dograh-Delivery-Id"]].add(hashlib.sha256(body).digest())
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # Whoever sends may be killed.
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


# -- afterwards, in a session of the store


def unsettled() -> dict[str, int]:
    """How many calls, campaigns and webhooks aren't over, by kind; empty when all are."""
    counts = {
        "calls": Run.select().where(Run.state != "completed", Run.mode != "textchat").count(),
        "campaigns": Campaign.select().where(Campaign.state.in_(("syncing", "running"))).count(),
        "webhooks to render": FollowUp.select().count(),
        "webhooks to send": Delivery.select().where(Delivery.state == "pending").count(),
    }
    return {kind: count for kind, count in counts.items() if count}


def lost_writes(ledger: Ledger, receiver: Receiver) -> list[str]:
    """A sentence for everything that was acknowledged and isn't there, or isn't as it was acknowledged."""
    return [
        *_lost_workflows(ledger),
        *_lost_calls(ledger),
        *_lost_lists(ledger),
        *_lost_webhooks(receiver),
    ]


def _lost_workflows(ledger: Ledger) -> list[str]:
    stored: dict[int, tuple[str, set[str]]] = {}
    for version in WorkflowVersion.select(WorkflowVersion, Workflow).join(Workflow):
        prompts = {str(node["data"].get("prompt")) for node in version.definition["nodes"]}
        _, found = stored.setdefault(version.workflow_id, (version.workflow.name, set()))
        found |= prompts
    return [
        f"Workflow {id} isn't named {name!r}, or has no node with {prompt!r}."
        for id, (name, prompt) in ledger.workflows.items()
        if stored.get(id, ("", set()))[0] != name or prompt not in stored[id][1]
    ]


def _lost_calls(ledger: Ledger) -> list[str]:
    called = dict(Run.select(Run.id, Run.called_number).tuples())
    lost = [f"Run {id} doesn't call {number}." for id, number in ledger.calls.items() if called.get(id) != number]
    times: dict[str, int] = defaultdict(int)
    # A claim that was given back has a run of its own, whose call was never placed.
    for (number,) in Run.select(Run.called_number).where(_placed(), Run.mode != "textchat").tuples():
        times[number] += 1
    lost += [f"{number} has {count} runs." for number, count in times.items() if count > 1]
    said: dict[int, list[str]] = defaultdict(list)
    for turn in ChatTurn.select().where(ChatTurn.user_text.is_null(False)).order_by(ChatTurn.id):
        said[turn.run_id].append(turn.user_text)
    for id, lines in ledger.chats.items():
        # The last message may have been stored without being acknowledged.
        if id not in called or said[id][: len(lines)] != lines:
            lost.append(f"Chat {id} hasn't {lines}, but {said[id]}.")
    return lost


def _placed() -> Any:
    return Run.disposition.is_null() | (Run.disposition != "system_cancelled")


def _lost_lists(ledger: Ledger) -> list[str]:
    listed = {row.phone_number for row in DoNotCall.select(DoNotCall.phone_number)}
    lost = [f"{number} isn't on the do-not-call list." for number in ledger.not_to_call - listed]
    documents = dict(Document.select(Document.document_uuid, Document.file_hash).tuples())
    lost += [f"Document {id} is another." for id, digest in ledger.documents.items() if documents.get(id) != digest]
    contacts: dict[int, list[str]] = defaultdict(list)
    for contact in Contact.select().order_by(Contact.campaign, Contact.row):
        contacts[contact.campaign_id].append(contact.phone_number)
    states = dict(Campaign.select(Campaign.id, Campaign.state).tuples())
    for id, numbers in ledger.campaigns.items():
        if id not in states:
            lost.append(f"Campaign {id} is gone.")
        elif id in ledger.started and (contacts[id] != numbers or states[id] != "completed"):
            lost.append(f"Campaign {id} is {states[id]}, with {contacts[id]} instead of {numbers}.")
    return lost


def _lost_webhooks(receiver: Receiver) -> list[str]:
    lost = []
    for delivery in Delivery.select():
        came = receiver.bodies.get(delivery.delivery_uuid, set())
        if delivery.state != "succeeded" or came != {hashlib.sha256(bytes(delivery.body)).digest()}:
            lost.append(f"Webhook {delivery.delivery_uuid} is {delivery.state}; {len(came)} different ones came.")
    return lost
