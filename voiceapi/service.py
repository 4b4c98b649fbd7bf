"""The parts of one running app: settings, database, threads and clients, handed to every use case."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from secrets import token_hex
from typing import Any

from .background import PausingJobs, SlowJobs, Workers
from .bulkhead import Bulkhead
from .config import Settings
from .engine.ports import LanguageModel
from .http_client import HTTPClient
from .security import Vault, WrongKeys
from .store import runs
from .store.database import Store, write
from .store.fields import now
from .store.runs import Run


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
    what is logged only once. `bulkhead` shares the server's threads. `announce` prints a line for the person who starts
    the service.
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
    keys_used: dict[int, datetime] = field(default_factory=dict)
    started_at: datetime = field(default_factory=now)
    token: str = field(default_factory=partial(token_hex, 4))
    refused_parameters: dict[tuple[str, str | None], set[str]] = field(default_factory=dict)
    wrong_keys: WrongKeys = field(default_factory=WrongKeys)
    noticed: dict[Hashable, object] = field(default_factory=dict)
    announce: Callable[[str], None] = _to_stderr

    def __repr__(self) -> str:
        # Not of all parts: this must not show a secret, wherever it is logged.
        return f"<Service of {self.store.name}>"

    @property
    def worker(self) -> str:
        """The name of this process among all that work, or worked, on the same database: process ids are reused."""
        return f"{os.getpid()}-{self.token}"

    @property
    def base_url(self) -> str:
        """The public URL before `/api/v1`, for carriers and webhooks: origin and mount prefix."""
        return self.settings.origin + self.prefix

    def start_jobs(self) -> None:
        """Start the background jobs, once in each process, unless VOICEAPI_WORKER is off; each request calls this.

        They don't start again after `close`. If the system refuses threads, a later request starts them.
        """
        if self.workers.process != os.getpid() and self.settings.worker:
            self.workers.start()

    def close(self) -> None:
        """Stop the threads, leave simulated calls to the next process, and close the database's idle connections."""
        phones = self.phones.running()
        self.workers.stop()
        if phones:
            with self.store.session(), write():
                runs.release_phones(self.worker)
        self.store.close()
