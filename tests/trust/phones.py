"""A voiceapi that carries out simulated calls in real time, for the test that kills one of several.

    python phones.py DATABASE CALLS ALL

It places so many calls, prints a line, and lives until the database has ALL calls, and all of them are completed.
"""

from __future__ import annotations

import sys
import time

from voiceapi import create_app, jobs
from voiceapi.store.runs import Run
from voiceapi.telephony import phones
from voiceapi.telephony.carriers import simulator

KEY = "test-key-0123456789"
LONGEST = 120.0


def main(database: str, calls: int, all_calls: int) -> None:
    # As long as the default ones in proportion, and short for who waits for the test.
    phones.LEASE, phones.RENEW_SECONDS, jobs.RESUME_SECONDS = phones.LEASE / 5, 0.8, 0.5
    simulator.RINGING_SECONDS, simulator.SECONDS_A_WORD = 0.5, 0.2
    settings = {"DATABASE": database, "API_KEY": KEY, "CONCURRENT_CALLS": 100}
    app = create_app({f"VOICEAPI_{name}": value for name, value in settings.items()})
    service = app.extensions["voiceapi"]
    client = app.test_client()
    for _ in range(calls):
        body = {"phone_number": "+12025550123"}
        placed = client.post("/api/v1/public/agent/line", json=body, headers={"X-API-Key": KEY})
        assert placed.status_code == 200, placed.text
    service.workers.start()
    sys.stdout.write("placed\n")
    sys.stdout.flush()
    deadline = time.monotonic() + LONGEST
    with service.store.session():
        while Run.select().where(Run.state == "completed").count() < max(all_calls, Run.select().count()):
            if time.monotonic() > deadline:
                sys.exit(f"not done within {LONGEST:g} s")
            time.sleep(0.05)
    service.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
