"""Imports for commands: without garbage collection, and ended in silence by an interrupt."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Import in the block what stays; an interrupt ends the process without a traceback, as nothing has begun yet."""
    usual = signal.default_int_handler
    # A shell lets commands in the background ignore it.
    changes = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is usual
    if changes:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        with keeping():
            yield
    finally:
        if changes:
            signal.signal(signal.SIGINT, usual)


@contextmanager
def keeping() -> Iterator[None]:
    """Exempt the objects that the block makes from garbage collection, now and later: modules, classes, routes.

    Python would collect whenever their number has grown by a quarter, which takes a fifth of the whole start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
