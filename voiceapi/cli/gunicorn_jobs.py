"""Begins the background jobs with each process of gunicorn: `gunicorn -c python:voiceapi.cli.gunicorn_jobs wsgi:app`.

It changes no setting of gunicorn's. A host's own `gunicorn.conf.py` imports the two functions instead. They need not be
told where the app is: they find each VoiceAPI that the process has made, whatever is around its app.
"""

from __future__ import annotations

import os
import time
from typing import Any

from ..service import opened

# How long the turns of a process that stops may take after its requests, in all.
TURNS_SECONDS, LOOK_SECONDS = 20.0, 0.05


def post_worker_init(_worker: Any) -> None:
    """Begin the background jobs of a process that will answer requests, without waiting for one."""
    for service in list(opened.values()):
        service.start_jobs()


def worker_exit(_server: Any, worker: Any) -> None:
    """Finish the turns of a process whose requests are finished, and leave its simulated calls to others."""
    if worker.pid != os.getpid():
        return
    services = list(opened.values())
    for service in services:
        service.workers.wind_down()
    until = time.monotonic() + TURNS_SECONDS
    while any(service.slow_jobs.running() for service in services) and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    for service in services:
        service.close()
