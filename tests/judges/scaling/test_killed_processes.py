"""Campaigns on two hosts and a dialing process, one of which is killed with -9 every few seconds.

`VOICEAPI_TEST_SEED=... pytest -m long tests/judges/scaling` repeats what is killed and what the carrier does, if not
the moments. VOICEAPI_TEST_CONTACTS is how many contacts are called.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from campaign_judge import AGAIN, check, wait_for_end
from cluster import Cluster
from several_hosts import Killer

from benchmarks.postgresql_server import Server

SEED = os.environ.get("VOICEAPI_TEST_SEED", str(random.SystemRandom().randrange(10**6)))
CONTACTS = int(os.environ.get("VOICEAPI_TEST_CONTACTS", "2000"))
KILL_SECONDS = 10.0
# Calls at once of the organization and of the first campaign, and calls a second.
CALLS, CAMPAIGN_CALLS, PACE = 24, 6, 20.0

pytestmark = pytest.mark.long


def test_a_process_is_killed_every_ten_seconds(postgres: Server, cluster: Callable[..., Cluster]) -> None:
    print(f"VOICEAPI_TEST_SEED={SEED}")  # noqa: T201
    running = cluster(postgres.url("postgres", postgres.port), seed=SEED, calls=CALLS, pace=PACE)
    share = CONTACTS // 4
    lists = {CAMPAIGN_CALLS: [f"+1202{5550000 + n}" for n in range(share)]}
    lists[CALLS] = [f"+1303{5550000 + n}" for n in range(CONTACTS - share)]
    campaigns = {
        running.campaign(numbers, max_concurrency=most, **AGAIN): (numbers, most) for most, numbers in lists.items()
    }
    with Killer(running.hosts, running.dial, random.Random(SEED), KILL_SECONDS) as killer:
        wait_for_end(running, seconds=900)
    print("killed:", ", ".join(killer.killed))  # noqa: T201
    check(running, campaigns, reached=CONTACTS >= 1000)
