"""What the process of `serve` asks of the C library's allocator."""

from __future__ import annotations

import ctypes
from contextlib import suppress

# From glibc's malloc.h: M_MMAP_THRESHOLD, the bytes from which on a block is returned to the system once it is freed,
# and M_ARENA_MAX, the number of heaps.
OPTIONS = {-3: 128 * 1024, -8: 2}


def return_freed_memory() -> None:
    """Have memory returned to the system when it is freed, where the C library is glibc.

    By default it raises the threshold with each larger block, up to 32 MiB, and gives each thread a heap of its own,
    which then keeps what once was the text of its largest request. Python runs one thread at a time, so two heaps do.
    """
    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        for option, value in OPTIONS.items():
            library.mallopt(option, value)
