"""A process that writes to a database from 16 threads for some seconds: `python writers.py DATABASE KEY NAME SECONDS`.

Prints "ready", begins when it reads a line, and prints how many requests had which status, and the longest of them.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter

from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.store.base import insert
from voiceapi.store.database import write
from voiceapi.store.failures import DatabaseUnavailable
from voiceapi.store.locks import REQUEST
from voiceapi.store.organizations import Organization

path, key, process, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
app = create_app({"VOICEAPI_DATABASE": path, "VOICEAPI_API_KEY": key, "VOICEAPI_WORKER": "off"})
store = app.extensions["voiceapi"].store
counts: Counter[int] = Counter()
took: list[float] = []


def ask(thread: int) -> None:
    """Requests on one half of the threads; on the other transactions that take 20 ms each, as large changes do."""
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = key
    while time.monotonic() < end:
        name, began = f"{process} {thread} {time.monotonic_ns()}", time.monotonic()
        status = store_key(client, name) if thread % 2 else hold(name)
        took.append(time.monotonic() - began)
        counts[status] += 1


def store_key(client: FlaskClient, name: str) -> int:
    return client.post("/api/v1/user/api-keys", json={"name": name}).status_code


def hold(name: str) -> int:
    try:
        with store.session(REQUEST), write():
            insert(Organization, name=name)
            time.sleep(0.02)
    except DatabaseUnavailable:
        return 503
    return 200


print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + seconds
threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(json.dumps({"counts": counts, "longest": max(took)}))
app.extensions["voiceapi"].close()
