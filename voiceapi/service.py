"""The parts of one running app: settings, database, threads and clients, handed to every use case."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from secrets import token_hex
from typing import Any, Protocol

from .background import processes
from .background.pausing_jobs import PausingJobs
from .background.slow_jobs import SlowJobs
from .background.workers import Workers
from .bulkhead import Bulkhead
from .config import Settings
from .engine.ports import LanguageModel
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


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - a line for the person who starts the service


@dataclass(frozen=True, repr=False)
class Service:
    """The parts of one app, in `app.extensions["voiceapi"]`.

    `authenticate` is the host's login: it returns the name of the caller's organization, or None. `openapi` returns the
    API's OpenAPI document as JSON. `model`, when given, speaks in every conversation, whatever is configured.
    `simulated_webhooks` makes the receiver of the simulated phones' webhooks; `phones` are those of this process, by
    the tokens of their runs. `listeners` run inside the transaction that completes a run. `refused_parameters` are the
    optional parameters that a model's server has refused, by its URL and the model. `wrong_keys` counts the requests
    with a wrong API key; `keys_used` holds when this process last noted the use of a key, by its id. `noticed` holds
    what is logged only once. `first_keys` holds the first API key, until the start that made it has shown the address
    of the console with it. `bulkhead` shares the server's threads. `metrics` counts what happens, if anybody wants to
    read that. `announce` prints a line for the person who starts the service.
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
    refused_parameters: dict[tuple[str, str | None], set[str]] = field(default_factory=dict)
    wrong_keys: WrongKeys = field(default_factory=WrongKeys)
    noticed: dict[Hashable, object] = field(default_factory=dict)
    metrics: Metrics | None = None
    announce: Callable[[str], None] = _to_stderr

    def __repr__(self) -> str:
        # Not of all parts: this must not show a secret, wherever it is logged.
        return f"<Service of {self.store.name}>"

    @property
    def worker(self) -> str:
        """The name of this process among all that work, or worked, on the same database."""
        return processes.name(self.token)

    @property
    def base_url(self) -> str:
        """The public URL before `/api/v1`, for carriers and webhooks: origin and mount prefix."""
        return self.settings.origin + self.prefix

    def start_jobs(self) -> None:
        """Start the background jobs, once in each process, unless VOICEAPI_WORKER is off; each request calls this.

        They don't start again after `close`. If the system refuses threads, a later request starts them.
        """
        if self.settings.worker:
            self.start_threads()

    def start_threads(self) -> None:
        """Start the threads of this process if they don't run: also with VOICEAPI_WORKER off some renew its leases."""
        if self.workers.process != os.getpid():
            self.workers.start()

    def wake_workers(self) -> None:
        """End the pauses of the threads that process ended runs and deliver webhooks, in all processes."""
        self.workers.wake()
        self.store.wakeups.send(Topic.JOBS)

    def close(self) -> None:
        """Stop the threads, leave simulated calls to the next process, and close the database's idle connections."""
        phones = self.phones.running()
        self.workers.stop()
        if phones:
            with self.store.session(), write(NO_LOCK):
                runs.release_phones(self.worker)
        self.store.close()
