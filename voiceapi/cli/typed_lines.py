"""The lines of standard input, while something else is waited for, too."""

from __future__ import annotations

import io
import os
import sys
from queue import Empty, Queue
from threading import Thread
from typing import BinaryIO


class TypedLines:
    """Reads standard input in another thread, which ends with the process at the latest."""

    def __init__(self) -> None:
        self._lines: Queue[str | None] = Queue()
        Thread(target=self._read, daemon=True).start()

    def next(self, timeout: float) -> str | None:
        """Return the next line, or None when there is none within `timeout` seconds.

        :raises EOFError: after the last line.
        """
        try:
            line = self._lines.get(timeout=timeout)
        except Empty:
            return None
        if line is None:
            raise EOFError
        return line

    def _read(self) -> None:
        try:
            for line in _source():
                self._lines.put(line.decode(errors="replace").rstrip("\r\n"))
        finally:
            self._lines.put(None)


def _source() -> BinaryIO:
    """Standard input without a buffer, whose lock a thread that waits for a line would hold when Python ends."""
    try:
        return os.fdopen(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    except io.UnsupportedOperation:
        return sys.stdin.buffer
