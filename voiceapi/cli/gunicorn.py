"""gunicorn's settings, those that its command names aside: `gunicorn -c python:voiceapi.cli.gunicorn --workers 4`.

VOICEAPI_* settings mean what they mean for `serve`. An app of a host's is named after the options, as `wsgi:app`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from typing import Any

from ..config import SettingError, Settings, names
from ..operating.metrics import SHARED
from ..service import Service
from .logs import RequestLog, log_to_stderr
from .memory import return_freed_memory

# How long a process that stops finishes its requests and then its turns, in all.
STOP_SECONDS, LOOK_SECONDS = 30, 0.05
# What these take of it besides the requests.
TURNS_SECONDS = 20.0


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


def post_worker_init(worker: Any) -> None:
    """Have a process that will answer requests write the log, and begin its background jobs without waiting for one."""
    service = _service(worker)
    if service is None:  # it will begin them with its first request
        return
    return_freed_memory()
    log_to_stderr(service.settings)
    service.start_jobs()
    if service.settings.log_requests:
        worker.wsgi = RequestLog(worker.wsgi)


def on_exit(_server: Any) -> None:
    """Remove what the processes have counted."""
    if _counts is not None:
        shutil.rmtree(_counts, ignore_errors=True)


def worker_exit(_server: Any, worker: Any) -> None:
    """Finish the turns of a process whose requests are finished, and leave its simulated calls to others."""
    service = _service(worker)
    if service is None or worker.pid != os.getpid():
        return
    service.workers.wind_down()
    until = time.monotonic() + TURNS_SECONDS
    while service.slow_jobs.running() and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    service.close()


def _service(worker: Any) -> Service | None:
    """That of the app, if it is a Flask app with voiceapi and nothing around it."""
    found: Service | None = getattr(worker.app.callable, "extensions", {}).get("voiceapi")
    return found
