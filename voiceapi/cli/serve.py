"""The command `serve`: its descriptors of files, its signals, and how it stops."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from flask import current_app
from flask.cli import with_appcontext

from .. import __version__
from ..config import PREFIX
from ..connections import MOST_KEPT
from ..operating.metrics import PrometheusMetrics
from ..service import Service
from .base import current_service, use_as_setting, waits_for_database, with_routes
from .console import EVERYWHERE, show_address, url
from .logs import RequestLog, log_to_stderr, say

if TYPE_CHECKING:
    from ..relay.door import Door
    from .server import Server


PUBLIC_URL = f"{PREFIX}PUBLIC_URL"
# After the first signal: how long requests and turns are waited for, after how long a line says so, and after how long
# the process exits in any case.
STOP_SECONDS, QUIET_SECONDS, FORCED_STOP_SECONDS = 30.0, 0.1, 40.0
# Files beside connections that are open at the same time: each thread's connection to the database, which has two, and
# one to another server; connections to other servers that are kept; temporary files for large bodies and answers
# (server.MOST_HELD / server.IN_MEMORY); some more.
FILES_A_THREAD = 4
BACKGROUND_THREADS = 64
OTHER_FILES = MOST_KEPT + 256 + 32
# Uploads of files may be so much larger than VOICEAPI_MAX_BODY; each endpoint has its own limit.
LARGEST_UPLOAD = 16 * 1024 * 1024
# Nobody sends a body to the command `relay`.
LONGEST_BODY = 32 * 1024
# From glibc's malloc.h: M_MMAP_THRESHOLD, the bytes from which on a block is returned to the system once it is freed,
# and M_ARENA_MAX, the number of heaps.
OPTIONS = {-3: 128 * 1024, -8: 2}


@click.command()
@click.option("--host", callback=use_as_setting, help="Where to listen; VOICEAPI_HOST otherwise.")
@click.option(
    "--port", type=click.IntRange(0, 65535), callback=use_as_setting, help="Where to listen; VOICEAPI_PORT otherwise."
)
@click.option(
    "--tunnel", "has_tunnel", is_flag=True, help="Open a tunnel of cloudflared, whose address is the public URL."
)
@with_routes
@waits_for_database
@with_appcontext
def serve(host: str | None, port: int | None, has_tunnel: bool) -> None:
    """Serve the API until interrupted.

    With --tunnel carriers reach the service at an address of trycloudflare.com, another one with each start. The
    numbers that `voiceapi connect` has connected are sent there, and other commands know the address while it is open.

    A PostgreSQL server that can't be reached at the start is waited for, 30 seconds at most.
    A stop by SIGINT or SIGTERM finishes the requests and turns in progress, in at most 30 seconds; a second signal
    stops at once.
    """
    return_freed_memory()
    service = current_service()
    if has_tunnel and (current_app.config.get(PUBLIC_URL) or os.environ.get(PUBLIC_URL)):
        raise click.UsageError(f"{PUBLIC_URL} is set, so --tunnel would be of no use: leave out one of the two.")
    settings = service.settings
    log_to_stderr(settings)
    app: Any = current_app._get_current_object()  # type: ignore[attr-defined]
    server, door = _listen(
        service,
        RequestLog(app) if settings.log_requests else app,
        host or settings.host,
        settings.port if port is None else port,
        settings.max_body + LARGEST_UPLOAD,
    )
    tunnel = None
    if has_tunnel:
        # No other start needs it.
        from .tunnel import Tunnel

        address, number = server.addresses[0]
        tunnel = Tunnel(service, url(EVERYWHERE.get(address, address), number), partial(say, settings))
    _stop_on_signals(server, lambda: tunnel.end() if tunnel else None)
    if isinstance(service.metrics, PrometheusMetrics):
        service.metrics.add_source(server.gauges)
    service.workers.start()
    door.start()
    listening = " and ".join(url(host, port) for host, port in server.addresses)
    say(settings, f"voiceapi {__version__} listens on {listening}")
    show_address(server.addresses[0])
    if tunnel is not None:
        tunnel.start()
    server.run()
    _stop(server, service)
    if tunnel is not None:
        tunnel.stop()
    # At its exit Python looks for garbage among all objects, which would take longer than the whole stop.
    gc.freeze()


@click.command()
@click.option("--host", help="Where to listen; VOICEAPI_HOST otherwise.")
@click.option("--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="Where to listen.")
@waits_for_database
@with_appcontext
def relay(host: str | None, port: int) -> None:
    """Take the websockets of carriers' text relays, for an app that another server serves.

    Run it beside the app, on its database and with its settings. VOICEAPI_RELAY_URL, for both, is the address at which
    carriers reach it. It stops as `serve` does.
    """
    return_freed_memory()
    service = current_service()
    settings = service.settings
    if settings.relay_url is None:
        raise click.UsageError("VOICEAPI_RELAY_URL isn't set, so no carrier would be sent here.")
    log_to_stderr(settings)
    server, door = _listen(service, _nothing_else, host or settings.host, port, LONGEST_BODY)
    _stop_on_signals(server, lambda: None)
    door.start()
    listening = " and ".join(url(*address) for address in server.addresses)
    say(settings, f"voiceapi {__version__} takes relays on {listening}")
    server.run()
    _stop(server, service)
    gc.freeze()


def _nothing_else(_: Any, start_response: Any) -> list[bytes]:
    """The answer to what asks for no relay, a WSGI app."""
    start_response("404 Not Found", [("Content-Type", "application/json")])
    return [b'{"detail": "Only text relays are served here."}']


def _listen(service: Service, app: Any, host: str, port: int, max_body: int) -> tuple[Server, Door]:
    """A server that listens, and the door for its websockets; neither serves yet.

    :raises click.ClickException: when it can't listen there.
    """
    # No other command needs them.
    from ..relay.door import Door
    from .server import Server

    settings, files, door = service.settings, raise_file_limit(), Door(service)
    connections = settings.connections if files is None else min(settings.connections, places(files, settings.threads))
    try:
        server = Server(
            app,
            host=host,
            port=port,
            threads=settings.threads,
            connections=connections,
            idle_timeout=settings.idle_timeout,
            max_body=max_body,
            door=door,
        )
    except (OSError, ValueError) as error:
        raise click.ClickException(_why_not(error, host, port)) from None
    if connections < settings.connections:
        say(
            settings,
            f"VOICEAPI_CONNECTIONS is {settings.connections}, but there are {connections}, because this process may "
            f"open only {files} files (ulimit -n, LimitNOFILE).",
        )
    return server, door


def _why_not(error: OSError | ValueError, host: str, port: int) -> str:
    """Why the server can't listen there, and what to change."""
    match getattr(error, "errno", None):
        case errno.EADDRINUSE:
            return f"Port {port} of {host} is in use by another program; choose another with --port or VOICEAPI_PORT."
        case errno.EACCES:
            return f"Port {port} of {host} isn't for this user; choose one from 1024 on with --port or VOICEAPI_PORT."
    reason = getattr(error, "strerror", None) or str(error)
    return f"Can't listen on {host}, port {port}: {reason.rstrip('.')}. --host or VOICEAPI_HOST says where to listen."


def raise_file_limit() -> int | None:
    """Raise the limit of open files as far as this process may, and return it; None where there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    except (OSError, ValueError):
        pass  # some systems have no hard limit, and don't let the soft one be raised so far
    return None if soft == resource.RLIM_INFINITY else soft


def places(files: int, threads: int) -> int:
    """How many connections there may be, of so many open files; a quarter of these where they are few."""
    return max(files - FILES_A_THREAD * (threads + BACKGROUND_THREADS) - OTHER_FILES, files // 4)


def _stop_on_signals(server: Server, end: Callable[[], None]) -> None:
    """Stop the server on SIGTERM and SIGINT; the second one ends the process at once, after calling `end`."""

    def stop(number: int, _frame: Any) -> None:
        if server.is_stopping:
            end()
            _exit("Stopped at once, by a second signal", 128 + number)
        server.stop()
        forced = threading.Timer(FORCED_STOP_SECONDS, _exit, ("Stopped, although background jobs still run", 1))
        forced.daemon = True
        forced.start()

    signal.signal(signal.SIGTERM, stop)
    # A shell lets commands in the background ignore it.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, stop)


def _exit(reason: str, code: int) -> None:
    """End the process, whatever its threads do. The database survives it as it survives a kill."""
    os.write(sys.stderr.fileno(), f"{reason}; the next start goes on with what was stored.\n".encode())
    os._exit(code)


def _stop(server: Server, service: Service) -> None:
    """Finish what is in progress, for a limited time, and say on standard error what that is."""

    def in_progress() -> str:
        counts = {"request": server.requests(), "turn": len(service.slow_jobs.running())}
        return " and ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items() if count)

    def finish(seconds: float) -> str:
        until = time.monotonic() + seconds
        server.finish(lambda: time.monotonic() < until and bool(in_progress()))
        return in_progress()

    server.stop_accepting()
    service.workers.wind_down()
    if waited_for := finish(QUIET_SECONDS):
        say(service.settings, f"Stopping: waits for {waited_for}.")
        if left := finish(STOP_SECONDS):
            say(service.settings, f"Stops without {left}; the next start goes on with what was stored.")
    server.close()


# -- memory


def return_freed_memory() -> None:
    """Have memory returned to the system when it is freed, where the C library is glibc.

    By default it raises the threshold with each larger block, up to 32 MiB, and gives each thread a heap of its own,
    which then keeps what once was the text of its largest request. Python runs one thread at a time, so two heaps do.
    """
    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        for option, value in OPTIONS.items():
            library.mallopt(option, value)
