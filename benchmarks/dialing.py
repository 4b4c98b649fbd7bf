"""Measures campaigns: `.venv/bin/python -m benchmarks.dialing`, from the folder of the repository.

The cases are the import of a list of 100,000 contacts, 10,000 simulated calls, and a dry run of 10,000 contacts over
14 days.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from voiceapi import create_app
from voiceapi.campaigns import campaigns, lifecycle
from voiceapi.campaigns.dialer import list_import
from voiceapi.campaigns.dry_run import report
from voiceapi.runs import files
from voiceapi.service import Service
from voiceapi.store import dialing
from voiceapi.store.database import write
from voiceapi.workflows import versions

from .processes import ROOT, use_defaults
from .seed import short_definition

ROWS, CALLS, DAYS = 100_000, 10_000, 14
IMPORT_TARGET_MEGABYTES, CALLS_TARGET_RATE, DRY_RUN_TARGET_SECONDS = 50, 100, 10
CONCURRENCY = 10


def main() -> int:
    use_defaults()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, target in (
            ("import", f"less than {IMPORT_TARGET_MEGABYTES} MB more"),
            ("calls", f"{CALLS_TARGET_RATE} calls/s or more"),
            ("dry run", f"less than {DRY_RUN_TARGET_SECONDS} s"),
        ):
            # Each in a process of its own, so that memory is measured separately.
            command = [sys.executable, "-m", "benchmarks.dialing", case, str(folder / f"{case}.db")]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            print(f"{case:<8} {done.stdout.strip()} (target: {target})", flush=True)
    return 0


def measure(case: str, database: Path) -> str:
    settings = {"VOICEAPI_DATABASE": database, "VOICEAPI_CONCURRENT_CALLS": CONCURRENCY}
    app = create_app({**settings, "VOICEAPI_WORKER": case == "calls"})
    service: Service = app.extensions["voiceapi"]
    try:
        with service.store.session():
            return {"import": _import, "calls": _calls, "dry run": _dry_run}[case](service)
    finally:
        service.close()


def _import(service: Service) -> str:
    campaign_id = _campaign(service, ROWS)
    lifecycle.start(1, campaign_id)
    with write():
        list_import.take(campaign_id)
    before, begun = _resident(), time.perf_counter()
    peak = _Peak()
    list_import.read_list(service, campaign_id)
    seconds = time.perf_counter() - begun
    assert dialing.states(campaign_id)["queued"] == ROWS
    return f"{ROWS} rows in {seconds:.1f} s, {peak.stop() - before:.0f} MB more"


def _calls(service: Service) -> str:
    campaign_id = _campaign(service, CALLS)
    lifecycle.start(1, campaign_id)
    begun = time.perf_counter()
    service.workers.start()
    while lifecycle.progress(1, campaign_id)["state"] != "completed":
        time.sleep(0.5)
    seconds = time.perf_counter() - begun
    assert dialing.states(campaign_id)["completed"] == CALLS
    return f"{CALLS} calls of two turns in {seconds:.0f} s, {CALLS / seconds:.0f} calls/s"


def _dry_run(service: Service) -> str:
    campaign_id = _campaign(service, CALLS, calling_hours={"start": "10:00", "end": "20:00"}, max_attempts_per_day=2)
    wanted: dict[str, Any] = {"seed": 1, "days": DAYS, **dict.fromkeys(("outcomes", "talk_seconds", "starts_at"))}
    begun = time.perf_counter()
    found = report.simulate(service, campaigns.get(1, campaign_id), wanted)
    seconds = time.perf_counter() - begun
    return f"{CALLS} contacts over {DAYS} days, {found['attempts']} attempts in {seconds:.1f} s"


def _campaign(service: Service, rows: int, **settings: Any) -> int:
    workflow, _ = versions.create(service.vault, 1, "Benchmark", short_definition())
    people = "".join(f"+1202{2000000 + row},Name {row},Somewhere {row % 100}\n" for row in range(rows))
    wanted = {
        **dict.fromkeys((*campaigns.CHANGEABLE, "telephony_configuration_id")),
        **{"name": "Benchmark", "workflow_id": workflow.id, "source_type": "csv", "strict": False, **settings},
        "source_id": files.store(1, "list.csv", f"phone_number,name,town\n{people}".encode()),
    }
    return int(campaigns.create(service, 1, wanted).id)


def _resident() -> float:
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True)
    return int(shown.stdout) / 1024


class _Peak:
    """The highest resident memory of the process since its creation in MB, sampled ten times a second."""

    def __init__(self) -> None:
        self._most, self._over = _resident(), threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self._most = max(self._most, _resident())

    def stop(self) -> float:
        self._over.set()
        self._thread.join()
        return self._most


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(measure(sys.argv[1], Path(sys.argv[2])))
    else:
        sys.exit(main())
