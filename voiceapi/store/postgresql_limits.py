"""How long a PostgreSQL server is waited for, and how many connections to it a process opens."""

from __future__ import annotations

from typing import Any

# How many connections one process opens unless the URL says it, and how many seconds a thread waits for one of them.
CONNECTIONS, CONNECTION_SECONDS = 20, 5
# Within how many seconds a server has to accept a connection, to answer a statement of a transaction, which waits at
# most LOCK_SECONDS for others, and one that stands alone. Beyond them the connection counts as lost: the way to the
# server may be cut without anybody being told.
CONNECT_SECONDS, ANSWER_SECONDS, LONGEST_ANSWER_SECONDS, LOCK_SECONDS = 5, 10.0, 60.0, 8.0
# A server that has been silent for so long is asked for a new connection, to be given within the same time. If it gives
# none, there is no way to it, and nobody waits for its answers any longer: carriers don't wait for ours.
SILENT_SECONDS = 2.0
# After about ten seconds without any sign of the server's machine a connection is closed by ours.
KEEP_ALIVE: dict[str, Any] = {
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
# A transaction whose process says nothing for so long is undone: the process may be gone without the server being told,
# and others wait for its locks.
IDLE_SECONDS = 20.0
# A connection that was used so recently is taken from the pool without being tried.
FRESH_SECONDS = 1.0
# How long a process waits before it connects again.
LEAST_PAUSE, MOST_PAUSE = 0.05, 0.25
