"""What a connection executes, on either database, and which functions of voiceapi a block passes through."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

HOUSE = Path(__file__).parent.parent / "voiceapi"
# What every way stands on, and nobody reads twice.
GROUND = {
    *(f"store/{name}.py" for name in ("base", "backend", "database", "fields", "sqlite", "locks", "failures")),
    *(f"{name}.py" for name in ("config", "errors", "security", "service", "strict_json", "masking", "bulkhead")),
    *("http_client.py", "connections.py"),
}
# The rooms that tell the story of a call, and in them what does not: reading and writing requests, and the carriers.
OWN_ROOMS = (
    "api",
    "calls",
    "conversations",
    "runs",
    "campaigns",
    "postcall",
    "workflows",
    "organizations",
    "telephony",
)
OWN_FILES = {"llm/selection.py", "llm/configuration.py"}
OF_REQUESTS = {"api/answers.py", "api/blueprint.py", "api/errors.py", "api/idempotent.py"}
NOT_OWN = ("api/schemas/", "telephony/carriers/")
# What only returns a value that Flask holds for the request.
ACCESSORS = {("api/auth.py", "service"), ("api/auth.py", "organization")}


@dataclass
class Way:
    """The functions of voiceapi that a block passes through, in the order in which they are first called.

    Each is the path of its file below voiceapi/ and its name; comprehensions and lambdas are part of theirs.
    """

    functions: dict[tuple[str, str], None] = field(default_factory=dict)

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    @property
    def own(self) -> list[tuple[str, str]]:
        """The functions that tell the story."""
        return [each for each in self.functions if is_own(each[0]) and each not in ACCESSORS]

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Functions, files, files besides the ground, own steps."""
        return len(self.functions), len(self.files), len(self.files - GROUND), len(self.own)


def is_own(file: str) -> bool:
    """True for a file whose functions are steps of a call, and not reading, writing or a carrier's dialect."""
    if file in OF_REQUESTS or file.startswith(NOT_OWN):
        return False
    return file in OWN_FILES or file.partition("/")[0] in OWN_ROOMS


@contextmanager
def way() -> Iterator[Way]:
    """Note the functions that this thread calls in the block."""
    found, below = Way(), f"{HOUSE}/"

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(below) and not code.co_name.startswith("<"):
            found.functions[code.co_filename.removeprefix(below), code.co_qualname] = None

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


@contextmanager
def untraced() -> Iterator[None]:
    """Leave the block out of the `way` that this thread is on: for what the tests themselves look at."""
    note = sys.getprofile()
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(note)


@contextmanager
def tracing(connection: Any, note: Callable[[str], Any]) -> Iterator[None]:
    """Call `note` with each statement that a connection executes in the block; PostgreSQL's have `%s` for values."""
    if isinstance(connection, sqlite3.Connection):
        connection.set_trace_callback(note)
        yield
        connection.set_trace_callback(None)
        return
    usual = connection.cursor_factory

    class Tracing(usual):  # type: ignore[misc,valid-type]
        def execute(self, query: Any, *args: Any, **options: Any) -> Any:
            note(query)
            return super().execute(query, *args, **options)

    connection.cursor_factory = Tracing
    yield
    connection.cursor_factory = usual
