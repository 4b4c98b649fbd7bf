"""The simulated phones of a process, each under a lease.

A simulated call belongs to the process whose phone carries it out. While that lives, it renews the leases of all its
phones; another process takes a call over when its lease has run out. A phone that finds its call taken over stops.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ..background.pausing_jobs import Pausing
from ..service import Service
from ..store import runs
from ..store.database import write
from ..store.fields import now
from ..store.locks import NO_LOCK
from ..store.runs import Run
from .carriers.simulator import call_id_of

LEASE = timedelta(seconds=15)
RENEW_SECONDS = 4.0


@dataclass(frozen=True)
class LeasedPhones:
    """The phones of the process of `service`, as the simulator uses them."""

    service: Service

    def start(self, token: str, call: Pausing, *, pauses: bool) -> None:
        self.service.phones.start(self.service.workers, token, call, pauses=pauses)

    def cancel(self, call_id: str) -> bool:
        tokens = [token for token in self.service.phones.running() if call_id_of(token) == call_id]
        return any(self.service.phones.cancel(self.service.workers, token) for token in tokens)


def lease(service: Service, wait: float = 0.0) -> dict[str, str | datetime]:
    """The columns of a new run whose simulated phone this process starts in `wait` seconds."""
    return {"phone_worker": service.worker, "phone_lease_until": now() + timedelta(seconds=wait) + LEASE}


def renew(service: Service) -> None:
    """Renew the leases of this process's phones; drop those that lost theirs, and hang up where that is requested."""
    tokens = service.phones.running()
    if not tokens:
        return
    with service.store.session(), write(NO_LOCK):
        kept = runs.renew_phones(service.worker, tokens, now() + LEASE)
    for token in tokens:
        if token not in kept:
            service.phones.drop(token)
        elif kept[token] is not None:
            service.phones.cancel(service.workers, token)


def take_over(service: Service) -> list[Run]:
    """Lease the simulated calls whose lease has run out; returns them."""
    moment = now()
    return [run for run in runs.without_phone(moment, LEASE * 2) if _claim(service, run, moment + LEASE)]


def _claim(service: Service, run: Run, until: datetime) -> bool:
    # Each in a transaction of its own: several processes may take over the calls of one that was killed.
    with write(NO_LOCK):
        return runs.claim_phone(run, service.worker, until)


def give_up(run: Run) -> None:
    """Have no process carry out a simulated call any more; it is expired past its deadline."""
    with write(NO_LOCK):
        runs.abandon_phone(run.id)
