"""A tunnel of cloudflared to the server of `serve`: its address is the public URL, and calls are sent there.

Each start of cloudflared gives another address. So it is watched, started again when it ends, and the numbers follow.
"""

from __future__ import annotations

import logging
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Event, Thread

import click

from ..calls import number_setup
from ..calls.doctor import check_address
from ..errors import ServiceError
from ..service import Service
from ..store.database import write
from ..store.failures import StoreError
from ..store.locks import NO_LOCK
from ..store.telephony import note_tunnel

log = logging.getLogger("voiceapi")

PROGRAM = "cloudflared"
# The address of a tunnel in the log; that of the service which gives them stands in its errors.
ADDRESS = re.compile(r"https://(?!api\.)[a-z0-9-]+\.trycloudflare\.com")
# In the log, where too many tunnels were asked for.
TOO_MANY = re.compile(r"\b(429|1015)\b")
NOT_INSTALLED = (
    f"{PROGRAM} isn't installed, which opens the tunnel: https://github.com/cloudflare/cloudflared says how to get it. "
    "Or open another tunnel, and set VOICEAPI_PUBLIC_URL to its address."
)
LONGEST_LINE = 300


@dataclass(frozen=True)
class Times:
    """Seconds.

    :param address: how long cloudflared may take to give an address.
    :param reached: how long the service may take to be reached at a new one, whose name others learn step by step.
    :param look: the pause between looks.
    :param pauses: before it is started again, after each end; the last one goes on.
    :param too_many: the pause where too many tunnels were asked for.
    :param note: how often it is noted that the tunnel is open.
    :param end: how long cloudflared may finish requests.
    """

    address: float = 40.0
    reached: float = 60.0
    look: float = 2.0
    pauses: tuple[float, ...] = (2.0, 10.0, 60.0)
    too_many: float = 300.0
    note: float = 20.0
    end: float = 8.0


class Tunnel:
    """The tunnel of a service.

    :param target: where the server listens.
    :param say: writes a line for the person who has started the service.
    :raises click.ClickException: when cloudflared isn't installed.
    """

    def __init__(self, service: Service, target: str, say: Callable[[str], None], times: Times = Times()) -> None:
        if shutil.which(PROGRAM) is None:
            raise click.ClickException(NOT_INSTALLED)
        self._service, self._target, self._say, self._times = service, target, say, times
        self._stopping = Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread = Thread(target=self._run, name="tunnel", daemon=True)

    def start(self) -> None:
        """Open the tunnel, on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Close the tunnel, and wait until it is."""
        self.end()
        self._thread.join(self._times.end + 2)

    def end(self) -> None:
        """Begin to close the tunnel."""
        self._stopping.set()
        if self._process is not None:
            self._process.terminate()

    def _run(self) -> None:
        ends = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                reason = self._open()
            except Exception as error:
                log.error("The tunnel failed", exc_info=error)
                reason = "it failed, as the log says."
            pause = self._times.pauses[min(ends, len(self._times.pauses) - 1)]
            if self._stopping.is_set():
                break
            # One that was open for long isn't one that can't be opened.
            ends = 0 if time.monotonic() - began > self._times.too_many else ends + 1
            pause = self._times.too_many if TOO_MANY.search(reason) else pause
            self._service.reach_at(None)
            self._note(None)
            self._say(f"Tunnel: {reason} No carrier reaches this service now; another one is opened in {pause:g} s.")
            self._stopping.wait(pause)
        self._note(None)

    def _open(self) -> str:
        """Run cloudflared until it ends; returns the sentence that says why."""
        command = [PROGRAM, "tunnel", "--no-autoupdate", "--grace-period", "5s", "--url", self._target]
        if sys.platform == "linux" and shutil.which("setpriv"):
            # So that it ends with this process, however that ends.
            command = ["setpriv", "--pdeathsig", "TERM", "--", *command]
        try:
            # A session of its own, because Ctrl-C is for this process: it ends cloudflared after the last answers.
            self._process = process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            return f"{PROGRAM} can't be started: {error.strerror}."
        lines: SimpleQueue[str | None] = SimpleQueue()
        reader = Thread(target=self._read, args=(process, lines), daemon=True)
        reader.start()
        try:
            return self._follow(process, lines)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(self._times.end)
            process.kill()
            process.wait()
            reader.join()

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: SimpleQueue[str | None]) -> None:
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                lines.put(line.strip()[:LONGEST_LINE])
        lines.put(None)

    def _follow(self, process: subprocess.Popen[str], lines: SimpleQueue[str | None]) -> str:
        url, last, noted = None, "nothing", time.monotonic()
        until = noted + self._times.address
        while not self._stopping.is_set():
            with suppress(Empty):
                line = lines.get(timeout=self._times.look)
                if line is None:
                    return f"{PROGRAM} has ended, and said at last: {last}."
                last = line or last
                found = ADDRESS.search(line)
                if found is not None and found[0] != url:
                    url = found[0]
                    self._use(process, url)
                    noted = time.monotonic()
            if url is None and time.monotonic() > until:
                return f"{PROGRAM} gave no address within {self._times.address:g} s."
            if url is not None and time.monotonic() - noted > self._times.note:
                self._note(url)
                noted = time.monotonic()
        return ""

    def _use(self, process: subprocess.Popen[str], url: str) -> None:
        """Have carriers reach the service at a new address: others learn it, and numbers are sent there."""
        self._service.reach_at(url)
        self._note(url)
        self._say(f"Tunnel: {url}")
        until = time.monotonic() + self._times.reached
        while (wrong := self._wrong()) and time.monotonic() < until and process.poll() is None:
            if self._stopping.wait(self._times.look):
                return
        if wrong:
            self._say(f"Tunnel: the service isn't reached at {url} from here. {wrong}")
        with suppress(ServiceError, StoreError), self._service.store.session():
            for sentence in number_setup.move(self._service):
                self._say(f"Tunnel: {sentence}")

    def _wrong(self) -> str:
        with self._service.store.session():
            return " ".join(check_address(self._service))

    def _note(self, url: str | None) -> None:
        with suppress(ServiceError, StoreError), self._service.store.session(), write(NO_LOCK):
            note_tunnel(self._service.worker, url)
