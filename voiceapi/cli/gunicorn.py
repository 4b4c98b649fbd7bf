"""gunicorn's settings, those that its command names aside: `gunicorn -c python:voiceapi.cli.gunicorn --workers 4`.

VOICEAPI_* settings mean what they mean for `serve`. An app of a host's is named after the options, as `wsgi:app`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

from ..config import SettingError, Settings, names
from ..operating.metrics import SHARED
from ..service import opened
from . import gunicorn_jobs
from .logs import RequestLog, log_to_stderr
from .serve import return_freed_memory

# How long a process that stops finishes its requests and then its turns, in all.
STOP_SECONDS = 30


def _read() -> Settings:
    try:
        return Settings.read({name: os.environ.get(name) for name in names()})
    except SettingError as error:
        raise SystemExit(f"Error: {error}") from None


def _share_counts(settings: Settings) -> str | None:
    """Make the folder in which the processes share what they count, since any of them may be asked for the metrics."""
    if settings.metrics_key is None or SHARED in os.environ:
        return None
    os.environ[SHARED] = folder = tempfile.mkdtemp(prefix="voiceapi-")
    return folder


_settings = _read()
_counts = _share_counts(_settings)

# -- the names from here on are gunicorn's

wsgi_app = "voiceapi:create_app()"
bind = f"[{_settings.host}]:{_settings.port}" if ":" in _settings.host else f"{_settings.host}:{_settings.port}"
# The database is opened, migrated and its secret checked once, and what doesn't change is in memory once.
preload_app = True
worker_class = "gthread"
# One number for the server's threads and for how they are shared between slow requests, webhooks and all others.
threads = _settings.threads
worker_connections = max(_settings.connections, threads + 1)
keepalive = int(_settings.idle_timeout) or 1
graceful_timeout = STOP_SECONDS
# As `serve`, believe nobody who says for whom he asks.
forwarded_allow_ips = ""
# Its place is in the home folder, which a service often has none of, and there is one for all gunicorns of a user.
control_socket_disable = True
worker_exit = gunicorn_jobs.worker_exit


def post_worker_init(worker: Any) -> None:
    """Have a process that will answer requests write the log, and begin its background jobs without waiting for one."""
    gunicorn_jobs.post_worker_init(worker)
    services = list(opened.values())
    if not services:  # an app that is made by the first request begins them then
        return
    return_freed_memory()
    log_to_stderr(services[0].settings)
    if services[0].settings.log_requests:
        worker.wsgi = RequestLog(worker.wsgi)


def on_exit(_server: Any) -> None:
    """Remove what the processes have counted."""
    if _counts is not None:
        shutil.rmtree(_counts, ignore_errors=True)
