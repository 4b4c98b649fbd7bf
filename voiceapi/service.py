"""The parts of one running app, as its use cases are handed them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from secrets import token_hex
from typing import Any

from .background import SlowJobs, Workers
from .config import Settings
from .engine.ports import LanguageModel
from .http_client import HTTPClient
from .security import Vault
from .store.database import Store
from .store.fields import now
from .store.runs import Run


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - a line for the person who starts the service


@dataclass(frozen=True)
class Service:
    """What one app owns.

    `authenticate` is the host's own login: the name of the caller's organization, or None. `openapi` makes the
    document of the API. `model`, when given, speaks in every conversation, whatever is configured.
    `simulated_webhooks` makes what the simulator's phones report to. `listeners` run inside the transaction that
    completes a run: what follows its end.
    """

    settings: Settings
    store: Store
    vault: Vault
    simulated_webhooks: Callable[[Service], Any]
    prefix: str = ""
    authenticate: Callable[[], str | None] | None = None
    openapi: Callable[[], dict[str, Any]] = dict
    workers: Workers = field(default_factory=Workers)
    model: LanguageModel | None = None
    slow_jobs: SlowJobs = field(default_factory=SlowJobs)
    http: HTTPClient = field(default_factory=HTTPClient)
    listeners: tuple[Callable[[Service, Run], None], ...] = ()
    started_at: datetime = field(default_factory=now)
    mark: str = field(default_factory=partial(token_hex, 4))
    announce: Callable[[str], None] = _to_stderr

    @property
    def worker(self) -> str:
        """This process among those that may work on one database, past and present."""
        return f"{os.getpid()}-{self.mark}"

    @property
    def base_url(self) -> str:
        """Where the API is reached from outside: origin and mount prefix, before `/api/v1`."""
        return self.settings.origin + self.prefix

    def close(self) -> None:
        """Stop the threads and close the database's idle connections."""
        self.workers.stop()
        self.store.close()
