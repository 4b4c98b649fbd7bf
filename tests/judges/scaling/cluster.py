"""A service of several hosts on one database, with the carrier that it calls through."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from carrier_notes import Notes
from several_hosts import HERE, Dial, Host, ask

from benchmarks.mixed import form
from benchmarks.processes import KEY
from voiceapi.store.database import Store

NUMBER = "+12025550188"
ORIGIN = "http://127.0.0.1:9"
AUTH_TOKEN, SECRET = "0123456789abcdef0123456789abcdef", "s" * 32


class Cluster:
    """Hosts with gunicorn, a `voiceapi dial` beside them, and a carrier.

    The first host's workers dial as well; the others' leave that to those.

    :param database: its location as the processes have it.
    :param seed: decides what the carrier does.
    :param hosts: how many hosts there are, with two workers each, or with one if there are more than two.
    :param calls: VOICEAPI_CONCURRENT_CALLS.
    :param pace: how many calls a second the carrier's account places.
    :param manners: of the carrier, as the arguments of its class.
    """

    def __init__(
        self, folder: Path, database: str, *, seed: str, hosts: int = 2, calls: int, pace: float, **manners: Any
    ) -> None:
        self.database, self.pace, self.calls = database, pace, calls
        self._notes, self._log = folder / "notes.jsonl", folder / "carrier.log"
        environment = {
            "VOICEAPI_DATABASE": database,
            "VOICEAPI_API_KEY": KEY,
            "VOICEAPI_SECRET": SECRET,
            "VOICEAPI_PUBLIC_URL": ORIGIN,
            "VOICEAPI_CONCURRENT_CALLS": str(calls),
            "VOICEAPI_ALLOW_PRIVATE_URLS": "true",
        }
        self.hosts = [Host(f"host-{n}", folder, environment, 2 if hosts <= 2 else 1) for n in range(hosts)]
        self.dial = Dial(folder, environment)
        ports = [host.port for host in self.hosts]
        self._manners = {"notes": str(self._notes), "origin": ORIGIN, "auth_token": AUTH_TOKEN, "ports": ports}
        self._manners |= {"seed": seed, **manners}
        self._carrier: subprocess.Popen[str] | None = None
        self.agent = self.configuration = 0

    def start(self, definition: Any) -> None:
        """Start everything, and create an agent whose calls go through the carrier."""
        command = [sys.executable, str(HERE / "recording_carrier.py"), json.dumps(self._manners)]
        with self._log.open("w") as log:
            self._carrier = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._carrier.stdout is not None
        url = self._carrier.stdout.readline().strip()
        assert url, self._log.read_text()
        processes = (*self.hosts, self.dial)
        for process in processes:
            process.environment["VOICEAPI_TWILIO_URL"] = url
        for host in self.hosts[1:]:
            host.environment["VOICEAPI_WORKER"] = "off"
        for process in processes:
            process.start()
        for host in self.hosts:
            host.wait_until_up()
        body = {"name": "Agent", "workflow_definition": definition}
        self.agent = int(self.ask("POST", "/workflow/create/definition", body)["id"])
        credentials = {"account_sid": f"AC{'0' * 32}", "auth_token": AUTH_TOKEN, "calls_per_second": self.pace}
        body = {"name": "Carrier", "config": {"provider": "twilio", **credentials}}
        self.configuration = int(self.ask("POST", "/organizations/telephony-configs", body)["id"])
        self.ask("POST", self.numbers, {"address": NUMBER, "is_default_caller_id": True})

    def stop(self) -> None:
        for process in (*self.hosts, self.dial):
            process.stop()
        if self._carrier is not None:
            self._carrier.terminate()
            self._carrier.wait(60)
            if self._carrier.stdout is not None:
                self._carrier.stdout.close()

    @property
    def numbers(self) -> str:
        """The path of the carrier's numbers."""
        return f"/organizations/telephony-configs/{self.configuration}/phone-numbers"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The answer of the first host, which has to be a success."""
        status, answer = ask(self.hosts[0].port, method, path, body, **headers)
        assert status == 200, (status, answer)
        return answer

    def campaign(self, numbers: list[str], **fields: Any) -> int:
        """Create and start a campaign that calls these numbers; returns its id."""
        fields = {"name": f"Campaign {numbers[0]}", "workflow_id": self.agent, **fields}
        content, kind = form(fields, "list.csv", "\n".join(["phone_number", *numbers]).encode())
        id = int(self.ask("POST", "/campaign/create/csv", content, **{"Content-Type": kind})["id"])
        self.ask("POST", f"/campaign/{id}/start")
        return id

    @contextmanager
    def session(self) -> Iterator[None]:
        """The database, as seen from outside."""
        store = Store(self.database)
        try:
            with store.session():
                yield
        finally:
            store.close()

    def notes(self) -> Notes:
        return Notes(self._notes)

    def logs(self) -> str:
        """What the processes have written to their logs."""
        return "".join(process.log.read_text() for process in (*self.hosts, self.dial))
