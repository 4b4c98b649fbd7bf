"""Which transactions exclude each other on PostgreSQL, and what protects those that take no lock."""

from __future__ import annotations

import ast
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import voiceapi
from voiceapi.store.database import Store, execute, write
from voiceapi.store.failures import DatabaseUnavailable
from voiceapi.store.locks import (
    NO_LOCK,
    BeginTimeout,
    Lock,
    calls_lock,
    campaign_lock,
    document_lock,
    run_lock,
    waiting,
)

# The transactions that exclude nobody but those without locks, and why they need not.
FREE = {
    "cli/tunnel.py": {"_note": "deletes and adds the row of this process's tunnel, and deletes those that are too old"},
    "calls/idempotency.py": {
        "__exit__": "deletes one row by its id",
        "_save": "its statement stores an answer only where there is none",
    },
    "calls/sweeper.py": {
        "_check": "its statements claim the check, and free the slot, only if nobody has changed them since"
    },
    "calls/turns.py": {
        "_left_by_others": "its statement claims the turn only if nobody has touched it since it was read",
        "renew": "its statement touches only what is this process's and pending",
    },
    "campaigns/dialer/worker.py": {
        "recover": "its statement ends only leases that have lapsed, of runs that were placed",
        "_sign": "its statement renews leases, and leaves out what others are changing",
    },
    "campaigns/do_not_call.py": {"_store": "adds numbers in order, and leaves out those that are there"},
    "conversations/text_chats.py": {"create": "adds rows"},
    "organizations/api_keys.py": {"_note_use": "stores one time, which may be either process's"},
    "postcall/delivery.py": {
        "claim": "its statement leaves out what others are claiming",
        "record_outcome": "its statements hold for the attempt that was made",
        "note_listeners": "stores one time, which may be either process's",
        "renew_listeners": "its statement renews only the attempt that this process makes",
    },
    "postcall/processing.py": {
        "renew": "moves the time of what it has claimed",
        "claim": "its statement leaves out what others are claiming",
    },
    "runs/files.py": {
        "store": "adds a row",
        "receive": "campaigns, which would use the file, are created without locks",
    },
    "runs/preparation.py": {"prepare": "adds a row"},
    "service.py": {"close": "its statement releases only what is this process's"},
    "store/retention.py": {
        "delete_run": "locks the row of the run, or leaves it to who has",
        "delete_upload": "its statement deletes only what no campaign uses",
        "delete_rejected_calls": "its statement deletes only what is old enough",
    },
    "telephony/phones.py": {
        "renew": "its statement renews only what is still this process's",
        "_claim": "its statement claims the call only if nobody has since it was read",
        "give_up": "ends one lease",
    },
    "tools/knowledge/documents.py": {"_store": "adds rows of a document that nobody knows yet"},
}


def test_every_transaction_without_a_lock_of_its_own_has_a_reason() -> None:
    root = Path(voiceapi.__file__).parent
    found: dict[str, set[str]] = {}
    for file in root.rglob("*.py"):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef) and any(map(_is_free, ast.walk(function))):
                found.setdefault(file.relative_to(root).as_posix(), set()).add(function.name)
    assert found == {file: {*reasons} for file, reasons in FREE.items()}


def _is_free(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node) == "write(NO_LOCK)"


@pytest.fixture
def store(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[Store]:
    found = Store(database_at(tmp_path / "v.db"))
    yield found
    found.close()


@pytest.mark.postgresql
@pytest.mark.parametrize(
    ("first", "second", "excludes"),
    [
        ([], [], True),
        ([], [run_lock(1)], True),
        ([run_lock(1)], [], True),
        ([], [NO_LOCK], True),
        ([NO_LOCK], [], True),
        ([NO_LOCK], [NO_LOCK], False),
        ([NO_LOCK], [run_lock(1)], False),
        ([run_lock(1)], [run_lock(2)], False),
        ([run_lock(1)], [calls_lock(1), campaign_lock(1), document_lock(1)], False),
        ([run_lock(1), campaign_lock(1)], [calls_lock(1), campaign_lock(1)], True),
    ],
)
def test_transactions_with_a_lock_in_common_exclude_each_other(
    store: Store, first: list[Lock], second: list[Lock], excludes: bool
) -> None:
    begun, go = threading.Event(), threading.Event()

    def hold() -> None:
        with store.session(), write(*first):
            begun.set()
            go.wait(60)

    def begin() -> bool:
        with store.session(), waiting(BeginTimeout(0.1)), write(*second):
            return True

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        assert begun.wait(60)
        try:
            if excludes:
                with pytest.raises(DatabaseUnavailable):
                    begin()
            else:
                assert begin()
        finally:
            go.set()
            holding.result(60)


@pytest.mark.postgresql
def test_a_transaction_within_another_one_takes_its_locks_in_addition(store: Store) -> None:
    with store.session(), write(run_lock(1)), write(campaign_lock(1)), ThreadPoolExecutor(1) as pool:

        def begin(lock: Lock) -> None:
            with store.session(), waiting(BeginTimeout(0.1)), write(lock):
                pass

        pool.submit(begin, run_lock(2)).result(60)
        for lock in (run_lock(1), campaign_lock(1)):
            with pytest.raises(DatabaseUnavailable):
                pool.submit(begin, lock).result(60)


@pytest.mark.postgresql
def test_threads_that_wait_for_the_same_limits_leave_the_connections_to_others(
    tmp_path: Path, database_at: Callable[[Path], str], store: Store
) -> None:
    """Dozens of calls of one organization may be about to be placed, while the turns of others are to be stored."""
    url = database_at(tmp_path / "v.db")
    crowded = Store(f"{url}{'&' if '?' in url else '?'}max_connections=2")
    begun = threading.Barrier(4)

    def place() -> bool:
        with crowded.session():
            execute("SELECT 1")
            crowded.release()
            begun.wait(60)
            with write(calls_lock(1)):
                return True

    with ThreadPoolExecutor(3) as pool:
        with store.session(), write(calls_lock(1)):
            placing = [pool.submit(place) for _ in range(3)]
            begun.wait(60)
            time.sleep(0.2)
            with crowded.session(), waiting(BeginTimeout(1.0)), write(run_lock(1)):
                pass
        assert all(each.result(60) for each in placing)
    crowded.close()
