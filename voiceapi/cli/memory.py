"""What the process of `serve` asks of the C library's allocator."""

from __future__ import annotations

import ctypes
from contextlib import suppress

# M_MMAP_THRESHOLD of glibc's malloc.h, and the bytes from which on a block is returned to the system when it is freed.
MMAP_THRESHOLD = -3
LARGE_BLOCK = 128 * 1024


def return_large_blocks() -> None:
    """Have large blocks returned to the system when they are freed, where the C library is glibc.

    By default it raises the threshold with each larger block, up to 32 MiB, and then each thread's arena keeps what
    once was the text of its largest request.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BLOCK)
