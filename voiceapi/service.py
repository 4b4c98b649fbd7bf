"""The parts of one running app: settings, database, threads and clients, handed to every use case."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, lru_cache, partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol
from weakref import WeakValueDictionary

from .background.pausing_jobs import PausingJobs
from .background.slow_jobs import SlowJobs
from .background.workers import STOP_WAIT_SECONDS, Workers
from .bulkhead import Bulkhead
from .config import Settings
from .engine.actions import LanguageModel
from .http_client import HTTPClient
from .security import Vault, WrongKeys
from .store import runs
from .store.database import Store, write
from .store.fields import now
from .store.locks import NO_LOCK
from .store.runs import Run
from .store.wakeups import Topic


class Metrics(Protocol):
    """Counts what happens. `model` is what `llm.selection.name_of` gives; the other texts are words of fixed sets."""

    def call_started(self, carrier: str, direction: str) -> None: ...
    def call_ended(self, carrier: str, direction: str, disposition: str) -> None: ...
    def turn_answered(self, carrier: str, model: str, seconds: float) -> None: ...
    def model_failed(self, model: str) -> None: ...


# For how many models, by organization and server, is remembered what they refused.
MOST_REFUSING = 1000
# The services of the apps that this process has made, by their `id()`: gunicorn's hooks begin the jobs of all of them.
opened: WeakValueDictionary[int, Service] = WeakValueDictionary()


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - a line for the person who starts the service


def _sets() -> Callable[[object, str, str | None], set[str]]:
    """A function that returns the same set for the same arguments, and forgets the set used longest ago."""
    return lru_cache(maxsize=MOST_REFUSING)(lambda owner, url, model: set())


@dataclass
class HostApp:
    """What the app that voiceapi is part of brings along, which may be added to after the service is opened.

    :param listeners: functions that get each ended run, by `module.function`.
    :param functions: tools.python.HostFunction of what agents may call, by name.
    :param give: calls one of them with the run that has this id, in the app's context.
    :param call_tool: calls a function that agents use, by the organization, the run, its name and the arguments;
        raises tools.tool.ToolError.
    :param callee: what those say who are called by the simulator, if their call doesn't; None as usual.
    :param running: the claims of the deliveries that are being given to listeners: process, id and attempt of each.
    """

    listeners: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)
    give: Callable[[Callable[[Any], Any], int], None] = lambda function, id: None
    call_tool: Callable[[int | None, int | None, str, Mapping[str, Any]], Any] | None = None
    callee: Sequence[str] | None = None
    running: set[tuple[int, int, int]] = field(default_factory=set)


@dataclass(frozen=True, repr=False)
class Service:
    """The parts of one app, in `app.extensions["voiceapi"]`.

    `authenticate` is the host's login: it returns the name of the caller's organization, or None. `openapi` returns the
    API's OpenAPI document as JSON. `model`, when given, speaks in every conversation, whatever is configured.
    `simulated_webhooks` makes the receiver of the simulated phones' webhooks; `phones` are those of this process, by
    the tokens of their runs. `listeners` run inside the transaction that completes a run. `refused_parameters` has what
    a model's server has refused, by the owner of the requests, its URL and the model: a set to read and add to.
    `wrong_keys` counts the requests with a wrong API key; `keys_used` holds when this process last noted the use of a
    key, by its id. `noticed` holds what is logged only once. `first_keys` holds the first API key, until the start that
    made it has shown the address of the console with it. `bulkhead` shares the server's threads. `metrics` counts what
    happens, if anybody wants to read that. `host` has the functions of the app that voiceapi is part of. `announce`
    prints a line for the person who starts the service. `has_relay` says whether this process takes the sockets of
    carriers' text relays.
    """

    settings: Settings
    store: Store
    vault: Vault
    simulated_webhooks: Callable[[Service], Any]
    prefix: str = ""
    authenticate: Callable[[], str | None] | None = None
    openapi: Callable[[], str] = str
    workers: Workers = field(default_factory=Workers)
    model: LanguageModel | None = None
    slow_jobs: SlowJobs = field(default_factory=SlowJobs)
    bulkhead: Bulkhead = field(default_factory=lambda: Bulkhead(64))
    phones: PausingJobs = field(default_factory=PausingJobs)
    http: HTTPClient = field(default_factory=HTTPClient)
    listeners: tuple[Callable[[Service, Run], None], ...] = ()
    first_keys: list[str] = field(default_factory=list)
    keys_used: dict[int, datetime] = field(default_factory=dict)
    started_at: datetime = field(default_factory=now)
    token: str = field(default_factory=partial(token_hex, 4))
    refused_parameters: Callable[[object, str, str | None], set[str]] = field(default_factory=_sets)
    wrong_keys: WrongKeys = field(default_factory=WrongKeys)
    noticed: dict[Hashable, object] = field(default_factory=dict)
    metrics: Metrics | None = None
    host: HostApp = field(default_factory=HostApp)
    announce: Callable[[str], None] = _to_stderr
    has_relay: bool = False

    def __repr__(self) -> str:
        # Not of all parts: this must not show a secret, wherever it is logged.
        return f"<Service of {self.store.name}>"

    @property
    def worker(self) -> str:
        """The name of this process among all that work, or worked, on the same database.

        Process ids are reused, and another host has the same ones.
        """
        return f"{os.getpid()}-{self.token}-{_host()}"

    @property
    def base_url(self) -> str:
        """The public URL before `/api/v1`, for carriers and webhooks: origin and mount prefix."""
        return self.settings.origin + self.prefix

    @property
    def relay_url(self) -> str:
        """The URL before `/api/v1` at which carriers reach the sockets of their text relays."""
        return self.settings.relay_url or f"ws{self.base_url.removeprefix('http')}"

    def reach_at(self, url: str | None) -> None:
        """Have carriers reach the service at this origin from now on: that of a tunnel, which changes while it runs."""
        object.__setattr__(self, "settings", replace(self.settings, public_url=url))

    def open_relay(self) -> None:
        """Let calls go over text relays from now on."""
        object.__setattr__(self, "has_relay", True)

    def start_jobs(self) -> None:
        """Start the background jobs, once in each process, unless VOICEAPI_WORKER is off; each request calls this.

        They don't start again after `close`. If the system refuses threads, a later request starts them.
        """
        if self.settings.worker and self.workers.process != os.getpid():
            self.workers.start()

    def start_threads(self) -> None:
        """Start the threads of this process if they don't run: also with VOICEAPI_WORKER off some renew its leases."""
        if self.workers.process != os.getpid():
            self.workers.start()

    def wake_workers(self) -> None:
        """End the pauses of the threads that process ended runs and deliver webhooks, in all processes."""
        self.workers.wake()
        self.store.wakeups.send(Topic.JOBS)

    def close(self) -> None:
        """Stop the threads, leave simulated calls to the next process, and close all idle connections."""
        opened.pop(id(self), None)
        phones = self.phones.running()
        self.workers.stop()
        if phones:
            with self.store.session(), write(NO_LOCK):
                runs.release_phones(self.worker)
        self.slow_jobs.finish(STOP_WAIT_SECONDS)
        self.http.close()
        self.store.close()


def has_ended(worker: str) -> bool:
    """True if the process of this name was one of this host, and is none any more. Of other hosts nothing is known.

    :param worker: as `Service.worker` names it.
    """
    number, _, rest = worker.partition("-")
    if os.name != "posix" or not number.isdecimal() or rest.rpartition("-")[2] != _host():
        return False
    if int(number) == os.getpid():  # a process of the past had the same number
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False


@cache
def _host() -> str:
    """What tells apart the machines, and the containers, in which a process id means a process."""
    known = [platform.node()]
    with suppress(OSError):
        known += [Path("/proc/sys/kernel/random/boot_id").read_text(), os.readlink("/proc/self/ns/pid")]
    return hashlib.sha256("".join(known).encode()).hexdigest()[:8]
