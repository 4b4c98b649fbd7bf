"""A mixed load: calls, campaigns, chats, lists, documents and workflows.

Each worker has one keep-alive connection and does one thing after the other, chosen at random. What the service has
acknowledged is kept in a ledger, which is compared with the database afterwards.
"""

from __future__ import annotations

import hashlib
import http.client
import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from .ledger import LATER, Answer, Ledger, Receiver
from .processes import API, KEY
from .seed import definition

TIMEOUT_SECONDS = 60.0
# How often each kind of work is done, in proportion.
SHARES: Mapping[str, int] = {
    **{"call": 30, "chat": 15, "workflow": 20, "list": 10, "campaign": 3, "document": 3},
    "read": 19,
}
CONTACTS, NUMBERS = 5, 20
BORDER = "benchmark-border"
LINES = ["Yes.", "Four of us.", "Thank you."]
PAUSE_SECONDS = 0.1


class Lost(Exception):
    """A request without a complete answer: the service may have carried it out or not."""


class Worker:
    """One client: a connection, its random choices, and the ledger that it shares with others.

    :param recover: called after an answer was lost; returns when the service can be asked again.
    :param stopping: set when no more work is to begin.
    """

    def __init__(
        self,
        port: int,
        seed: str,
        ledger: Ledger,
        stopping: threading.Event,
        shares: Mapping[str, int] = SHARES,
        recover: Callable[[], None] = lambda: None,
    ) -> None:
        self._port, self._seed, self._ledger, self._recover = port, seed, ledger, recover
        self._chance = random.Random(seed)
        self._shares, self._stopping = shares, stopping
        self._connection: http.client.HTTPConnection | None = None
        self._names = itertools.count()
        self._kind = ""
        # The campaign that was started last.
        self._campaign_id: int | None = None
        self.agent: tuple[int, str] = (0, "")
        # What triggers and campaigns name as their telephony configuration; None for the default one.
        self.configurations: list[int | None] = [None]

    def run(self) -> None:
        while not self._stopping.is_set():
            self._kind = self._chance.choices(list(self._shares), list(self._shares.values()))[0]
            try:
                getattr(self, f"_{self._kind}")()
            except Lost:
                self._recover()
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- requests

    def ask(self, method: str, path: str, body: Any = None, kind: str = "", **headers: str) -> Answer:
        """Send a request and read its answer, which is timed; after one of LATER it waits a moment.

        :param body: JSON, or bytes with a Content-Type in `headers`.
        :raises Lost: when the answer didn't come, or not all of it.
        """
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"X-API-Key": KEY, **({"Content-Type": "application/json"} if content else {})}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        begun = time.perf_counter()
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_SECONDS)
            self._connection.request(method, f"{API}{path}", content, sent)
            response = self._connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Lost(f"{method} {path}: {error!r}") from None
        answer = Answer(response.status, json.loads(raw or b"null"), response.headers.get("Retry-After"))
        self._ledger.note(kind or self._kind, answer, time.perf_counter() - begun)
        if answer.status in LATER:
            self._stopping.wait(PAUSE_SECONDS)
        return answer

    def ask_once(self, path: str, body: Any, **headers: str) -> Answer:
        """Send a request with an Idempotency-Key until it is answered, however often the answer is lost."""
        key = self._name("key")
        while True:
            try:
                answer = self.ask("POST", path, body, Idempotency_Key=key, **headers)
            except Lost:
                self._recover()
                continue
            if answer.status == 409:  # it is still in progress
                time.sleep(PAUSE_SECONDS)
            else:
                return answer

    def _name(self, kind: str) -> str:
        return f"{kind} {self._seed} {next(self._names)}"

    # -- the kinds of work

    def _workflow(self) -> None:
        name = self._name("workflow")
        made = definition(trigger=False)
        made["nodes"][1]["data"]["prompt"] = f"Ask about {name}."
        answer = self.ask("POST", "/workflow/create/definition", {"name": name, "workflow_definition": made})
        if answer.status != 200:
            return
        id = int(answer.body["id"])
        with self._ledger.lock:
            self._ledger.workflows[id] = (name, f"Ask about {name}.")
        made["nodes"][1]["data"]["prompt"] = f"Ask again about {name}."
        body = {"name": f"{name}, changed", "workflow_definition": made}
        # While the answer isn't there it may be either, and after a 503, too: a database that was lost in the middle of
        # a commit has stored it or not.
        with self._ledger.lock:
            del self._ledger.workflows[id]
        if self.ask("PUT", f"/workflow/{id}", body).status == 200:
            with self._ledger.lock:
                self._ledger.workflows[id] = (f"{name}, changed", f"Ask again about {name}.")

    def _call(self) -> None:
        number = self._ledger.number()
        body = {
            "phone_number": number,
            "initial_context": {"simulated_callee": LINES},
            "telephony_configuration_id": self._chance.choice(self.configurations),
        }
        answer = self.ask_once(f"/public/agent/{self.agent[1]}", body)
        if answer.status == 200:
            with self._ledger.lock:
                self._ledger.calls[int(answer.body["workflow_run_id"])] = number

    def _chat(self) -> None:
        path = f"/workflow/{self.agent[0]}/text-chat/sessions"
        answer = self.ask("POST", path, {})
        if answer.status != 200:
            return
        run, said = int(answer.body["workflow_run_id"]), []
        with self._ledger.lock:
            self._ledger.chats[run] = said
        for line in LINES[: self._chance.randint(0, 2)]:
            body = {"text": line, "expected_revision": answer.body["revision"]}
            answer = self.ask("POST", f"{path}/{run}/messages", body)
            if answer.status != 200:
                return
            said.append(line)
        self.ask("POST", f"{path}/{run}/end", {})

    def _list(self) -> None:
        numbers = [self._ledger.number(303) for _ in range(NUMBERS)]
        if self._chance.random() < 0.5:
            answer = self.ask("POST", "/do-not-call", {"phone_numbers": numbers})
        else:
            content = "\n".join(["phone_number,reason", *(f"{number},asked" for number in numbers)]).encode()
            answer = self.ask("POST", "/do-not-call/csv", content, Content_Type="text/csv")
        if answer.status == 200:
            with self._ledger.lock:
                self._ledger.not_to_call.update(numbers)

    def _campaign(self) -> None:
        """Look at the worker's campaign, and start the next one when that is over."""
        if self._campaign_id is not None:
            progress = self.ask("GET", f"/campaign/{self._campaign_id}/progress")
            if progress.status != 200 or progress.body["state"] != "completed":
                return
        numbers = [self._ledger.number() for _ in range(CONTACTS)]
        fields = {"name": self._name("campaign"), "workflow_id": self.agent[0], "retry_config": {"enabled": False}}
        configuration = self._chance.choice(self.configurations)
        if configuration is not None:
            fields["telephony_configuration_id"] = configuration
        content, kind = form(fields, "list.csv", "\n".join(["phone_number", *numbers]).encode())
        answer = self.ask_once("/campaign/create/csv", content, Content_Type=kind)
        if answer.status != 200:
            return
        id = int(answer.body["id"])
        with self._ledger.lock:
            self._ledger.campaigns[id] = numbers
        if self.ask("POST", f"/campaign/{id}/start").status == 200:
            self._campaign_id = id
            with self._ledger.lock:
                self._ledger.started.add(id)

    def _document(self) -> None:
        text = f"{self._name('document')} says: open from nine to five. " * 20
        content, kind = form({}, "hours.txt", text.encode())
        answer = self.ask("POST", "/knowledge-base/documents", content, Content_Type=kind)
        if answer.status == 200:
            with self._ledger.lock:
                digest = hashlib.sha256(text.encode()).hexdigest()
                self._ledger.documents[str(answer.body["document_uuid"])] = digest

    def _read(self) -> None:
        paths = (f"/workflow/{self.agent[0]}/runs", "/organizations/usage/runs", f"/workflow/fetch/{self.agent[0]}")
        self.ask("GET", self._chance.choice(paths))


def form(fields: Mapping[str, Any], name: str, content: bytes) -> tuple[bytes, str]:
    """A multipart form with a file; returns its body and its content type."""
    parts = [
        f'--{BORDER}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n'
        f"{value if isinstance(value, str) else json.dumps(value)}\r\n".encode()
        for field, value in fields.items()
    ]
    head = f'--{BORDER}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return b"".join([*parts, head.encode(), content, f"\r\n--{BORDER}--\r\n".encode()]), (
        f"multipart/form-data; boundary={BORDER}"
    )


def prepare(worker: Worker, receiver: Receiver, path: str = "mixed") -> None:
    """Create the agent that the worker calls and chats with; its ended runs are told to the receiver."""
    made = definition(trigger=True)
    made["nodes"][-1]["data"]["trigger_path"] = path
    hook = {"name": "Hook", "endpoint_url": receiver.url, "payload_template": {"run": "{{workflow_run_id}}"}}
    made["nodes"].append({"id": "hook", "type": "webhook", "position": {"x": 0, "y": 0}, "data": hook})
    answer = worker.ask("POST", "/workflow/create/definition", {"name": "Mixed", "workflow_definition": made})
    if answer.status != 200:
        raise RuntimeError(f"The agent wasn't created: {answer}")
    worker.agent = (int(answer.body["id"]), path)
