"""The database is restarted, or the way to it is cut, in the middle of campaigns and of a mixed load.

What fails meanwhile is a 503 that says when to come again; nothing that was acknowledged is lost.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from campaign_judge import ONCE, check, wait_for_end
from cluster import Cluster
from several_hosts import ask
from tcp_proxy import TCPProxy

from benchmarks.ledger import Ledger, Receiver, lost_writes
from benchmarks.mixed import Worker, prepare
from benchmarks.postgresql_server import Server

SEED = os.environ.get("VOICEAPI_TEST_SEED", str(random.SystemRandom().randrange(10**6)))
CONTACTS, CALLS, CAMPAIGN_CALLS, PACE = 200, 16, 10, 10.0
SHARES = {"call": 2, "workflow": 20, "list": 10, "chat": 10, "document": 6, "read": 5}
CUT_SECONDS = 15.0

pytestmark = pytest.mark.long


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@contextmanager
def mixed_load(cluster: Cluster, receiver: Receiver) -> Iterator[Ledger]:
    """Two clients of each host, until the end of the block; what they were answered is in the ledger."""
    ledger, stopping = Ledger(), threading.Event()

    def recover() -> None:
        stopping.wait(0.2)

    ports = [host.port for host in cluster.hosts] * 2
    workers = [Worker(port, f"{SEED}-{n}", ledger, stopping, SHARES, recover) for n, port in enumerate(ports)]
    prepare(workers[0], receiver)
    for worker in workers:
        worker.agent = workers[0].agent
    threads = [threading.Thread(target=worker.run) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        yield ledger
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def start(cluster: Callable[..., Cluster], location: str) -> tuple[Cluster, dict[int, tuple[list[str], int]]]:
    """The service, and the campaigns that it has begun to call."""
    print(f"VOICEAPI_TEST_SEED={SEED}")  # noqa: T201
    running = cluster(location, seed=SEED, calls=CALLS, pace=PACE)
    numbers = [f"+1303{5550000 + n}" for n in range(CONTACTS)]
    return running, {running.campaign(numbers, max_concurrency=CAMPAIGN_CALLS, **ONCE): (numbers, CAMPAIGN_CALLS)}


def judge(cluster: Cluster, campaigns: dict[int, tuple[list[str], int]], ledger: Ledger, receiver: Receiver) -> None:
    wait_for_end(cluster, seconds=180)
    check(cluster, campaigns, reached=False)
    with cluster.session():
        assert lost_writes(ledger, receiver) == []
    counts = {name: len(getattr(ledger, name)) for name in ("calls", "chats", "workflows", "documents", "not_to_call")}
    print(counts, {kind: dict(timing.statuses) for kind, timing in ledger.timings.items()})  # noqa: T201
    assert min(counts.values()) > 0, counts
    answered = {status for timing in ledger.timings.values() for status in timing.statuses}
    assert answered <= {200, 404, 409, 429, 503}, answered
    assert sum(timing.without_retry_after for timing in ledger.timings.values()) == 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_the_database_is_restarted(
    postgres: Server, cluster: Callable[..., Cluster], receiver: Receiver, how: signal.Signals
) -> None:
    chance, name = random.Random(SEED), f"restarted_{how.name.lower()}"
    postgres.execute(f"CREATE DATABASE {name}")
    running, campaigns = start(cluster, postgres.url(name, postgres.port))
    with mixed_load(running, receiver) as ledger:
        for _ in range(3):
            time.sleep(chance.uniform(3.0, 6.0))
            postgres.stop(how)
            time.sleep(chance.uniform(0.0, 3.0))
            postgres.start()
        time.sleep(3.0)
    judge(running, campaigns, ledger, receiver)


def test_the_way_to_the_database_is_cut(postgres: Server, cluster: Callable[..., Cluster], receiver: Receiver) -> None:
    postgres.execute("CREATE DATABASE cut")
    proxy = TCPProxy(postgres.port)
    try:
        running, campaigns = start(cluster, postgres.url("cut", proxy.port))
        with mixed_load(running, receiver) as ledger:
            time.sleep(5.0)
            with proxy.cut():
                begun = time.monotonic()
                status, answer = ask(running.hosts[0].port, "GET", "/workflow/fetch")
                seconds = time.monotonic() - begun
                assert (status, seconds < CUT_SECONDS) == (503, True), (status, answer, seconds)
                time.sleep(max(0.0, CUT_SECONDS - (time.monotonic() - begun)))
            time.sleep(5.0)
            with proxy.refusing():
                status, answer = ask(running.hosts[0].port, "GET", "/workflow/fetch")
                assert status == 503, (status, answer)
                time.sleep(3.0)
            time.sleep(3.0)
        judge(running, campaigns, ledger, receiver)
    finally:
        proxy.close()
