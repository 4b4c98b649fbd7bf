"""The writer lock: fair to who waits for long, reentrant, and not held up by who gave up."""

from __future__ import annotations

import threading
import time

import pytest

from voiceapi.store.sqlite import WriterLock


@pytest.fixture
def lock() -> WriterLock:
    return WriterLock()


def never() -> bool:
    return False


def test_who_has_waited_for_long_gets_the_lock_first(lock: WriterLock) -> None:
    order: list[int] = []
    lock.acquire(never)

    def take(number: int) -> None:
        lock.acquire(never)
        order.append(number)
        lock.release()

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
        time.sleep(0.01)
    time.sleep(0.12)
    lock.release()
    # This thread is first to come again, and last to get it.
    lock.acquire(never)
    assert order == [0, 1, 2, 3]
    lock.release()
    for thread in threads:
        thread.join()


def test_the_lock_is_reentrant_and_can_be_given_up(lock: WriterLock) -> None:
    for _ in range(2):
        assert lock.acquire(never)
    lock.release()
    got: list[bool] = []

    def take() -> None:
        got.append(lock.acquire(lambda: True))

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    lock.release()
    # Nobody who gave up is in the way.
    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    assert got == [False, True]
