"""Whether an app can work: its database can be used, and its background threads run."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ..service import Service
from ..store import probe

# How long another transaction is waited for, and for how long an answer holds: nobody can keep the database busy by
# asking often.
WAIT_SECONDS, HOLDS_SECONDS = 1.0, 1.0
# When somebody who found the app not ready may ask again.
RETRY_SECONDS = 5
OK = "ok"


def check(service: Service) -> Mapping[str, str]:
    """`status`, and what was found about `database` and `worker`; the status is `ready` if neither has a problem."""
    known = service.noticed.get(check)
    if isinstance(known, tuple) and time.monotonic() < known[0]:
        database = known[1]
    else:
        # Others who ask meanwhile get the answer from before.
        last = known[1] if isinstance(known, tuple) else OK
        service.noticed[check] = (time.monotonic() + WAIT_SECONDS + HOLDS_SECONDS, last)
        database = probe.problem(service.store, WAIT_SECONDS) or OK
        service.noticed[check] = (time.monotonic() + HOLDS_SECONDS, database)
    worker = "off" if not service.settings.worker else OK if service.workers.are_running() else "stopped"
    is_ready = database == OK and worker != "stopped"
    return {"status": "ready" if is_ready else "not ready", "database": database, "worker": worker}
