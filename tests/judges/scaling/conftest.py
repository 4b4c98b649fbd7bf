from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cluster import Cluster

from benchmarks.postgresql_server import Server, binaries


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server that runs; what it has committed outlives it."""
    if binaries() is None:
        pytest.skip("PostgreSQL isn't installed")
    server = Server({"synchronous_commit": "on"})
    yield server
    server.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, talk: Callable[..., Any]) -> Iterator[Callable[..., Cluster]]:
    """Starts a service of several hosts, with the arguments of Cluster; it is stopped after the module's tests."""
    if importlib.util.find_spec("gunicorn") is None:
        pytest.skip("gunicorn isn't installed")
    started: list[Cluster] = []

    def start(location: str, **options: Any) -> Cluster:
        for earlier in started:
            earlier.stop()
        cluster = Cluster(tmp_path_factory.mktemp("cluster"), location, **options)
        started.append(cluster)
        cluster.start(talk("line"))
        return cluster

    try:
        yield start
    finally:
        for each in started:
            each.stop()
