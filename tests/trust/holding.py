"""Another process that holds a database: nobody else can write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from voiceapi.store.database import Store, write

LONGEST_SECONDS = 60.0


@contextmanager
def held(location: str) -> Iterator[None]:
    """A transaction of a store of its own, as in another process, which lasts as long as the block."""
    begun, ended = threading.Event(), threading.Event()

    def hold() -> None:
        store = Store(location)
        with store.session(), write():
            begun.set()
            ended.wait(LONGEST_SECONDS)
        store.close()

    with ThreadPoolExecutor(1) as thread:
        holding = thread.submit(hold)
        try:
            assert begun.wait(60)
            yield
        finally:
            ended.set()
        holding.result()
