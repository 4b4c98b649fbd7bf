"""Answers as server-sent events, for what comes in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any

from flask import Response, copy_current_request_context, current_app

from ..bulkhead import yield_server_thread
from ..llm.streams import EVENT_STREAM
from ..service import Service
from ..store.locks import UNREPEATABLE
from ..strict_json import encode

# A comment is sent after so many seconds without an event: it keeps the connection alive, and finds out whether the
# client is there.
HEARTBEAT_SECONDS = 10.0
HEARTBEAT = b":\n\n"
# Proxies pass each event on at once.
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Send = Callable[[str, Any], None]


def event_stream(service: Service, job: Callable[[Send], None]) -> Response:
    """Answer with the events that `job` sends, each of a name and JSON values, until it returns.

    It runs on another thread, and to its end also when the client has gone. An error that it raises before its first
    event is raised here; a later one is the event `error`, with the body that its answer would have.
    """
    come: SimpleQueue[bytes | Exception | None] = SimpleQueue()

    def carry_out() -> None:
        try:
            with service.store.session(UNREPEATABLE):
                job(lambda name, data: come.put(_event(name, encode(data))))
        except Exception as error:
            come.put(error)
        finally:
            come.put(None)

    yield_server_thread()
    service.slow_jobs.run_once(("event stream", come), carry_out, at_most=0)
    first = come.get()
    if isinstance(first, Exception):
        raise first

    # Only while it is used: what is sent piece by piece may begin and end between those of other requests.
    @copy_current_request_context
    def body_of(error: Exception) -> bytes:
        return current_app.make_response(current_app.handle_user_exception(error)).get_data()

    return Response(_events(first, come, body_of), content_type=EVENT_STREAM, headers=HEADERS)


def _events(
    first: bytes | None, come: SimpleQueue[bytes | Exception | None], body_of: Callable[[Exception], bytes]
) -> Iterator[bytes]:
    event: bytes | Exception | None = first
    while event is not None:
        yield _event("error", body_of(event)) if isinstance(event, Exception) else event
        try:
            event = come.get(timeout=HEARTBEAT_SECONDS)
        except Empty:
            event = HEARTBEAT


def _event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data.strip())
