"""Whether a database can be read and written, found out without writing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .database import Store
from .failures import BUSY, DAMAGED, FULL, LOCKED, READ_ONLY, Reason, reason_of

WORDS: Mapping[Reason | None, str] = {
    FULL: "full",
    LOCKED: "locked",
    BUSY: "locked",
    READ_ONLY: "read-only",
    DAMAGED: "damaged",
}
UNAVAILABLE = "unavailable"
# What is told when a setting of PostgreSQL is off.
DANGERS: Mapping[str, str] = {
    "fsync": "when the server's machine stops suddenly, all of the database may be lost.",
    "full_page_writes": "when the server's machine stops suddenly, the database may be damaged.",
    "synchronous_commit": "when the server stops suddenly, the last calls and turns may be lost.",
    "autovacuum": "nothing removes what was deleted, and searches use old statistics.",
}
# The modules that the errors of the databases' drivers are from.
DRIVERS = ("sqlite3", "psycopg")


def problem(store: Store, seconds: float) -> str | None:
    """What keeps a database from being used, one word of WORDS or UNAVAILABLE; None if nothing does.

    It isn't logged.

    :param seconds: how long another transaction is waited for.
    """
    try:
        reason = store.backend.problem(seconds)
    except OSError:
        return UNAVAILABLE
    except Exception as error:
        if not type(error).__module__.startswith(DRIVERS):
            raise
        return WORDS.get(reason_of(error), UNAVAILABLE)
    return None if reason is None else WORDS[reason]


def dangers(store: Store) -> Iterator[str]:
    """What of the settings of a database's server endangers what is stored there, or lets it grow, in sentences."""
    with store.session():
        settings = store.backend.settings()
    for name, sentence in DANGERS.items():
        if settings.get(name) == "off":
            yield f"{name} is off: {sentence}"
