"""For the tests of a host's app: databases that cost little, and the fixture `voiceapi` of the plugin for pytest."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from weakref import finalize

from flask import Flask

from ..config import PREFIX, Settings
from ..conversations import text_chats
from ..host import listeners, runs, tools
from ..host.runs import Run
from ..opening import open_service
from ..postcall import delivery
from ..service import Service
from ..store import fields
from ..store import runs as records

DATABASE = "voiceapi.db"
# How long `finish` waits for the simulated calls that are in progress.
LONGEST_SECONDS, LOOK_SECONDS = 60.0, 0.002


class Databases:
    """The databases of apps that name none: copies of one that is made once, in a folder of their own each.

    :param folder: makes the folder of all of them, when the first one is needed.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._make_folder = folder
        self._folder: Path | None = None
        # The folder of the database that is copied, by VOICEAPI_SECRET: what it holds is encrypted with that.
        self._prepared: dict[str | None, Path] = {}
        self._number = 0
        # A key that every app accepts.
        self.key = f"va_{token_urlsafe(32)}"

    def new_folder(self) -> Path:
        self._folder = self._folder or self._make_folder()
        self._number += 1
        path = self._folder / str(self._number)
        path.mkdir()
        return path

    def settings(self, app: Flask, given: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of an app that has no VOICEAPI_DATABASE: a copy, and no jobs of their own accord.

        The copy is removed with the app, because a suite may make thousands.

        :param given: its VOICEAPI_* settings.
        """
        secret = given.get(f"{PREFIX}SECRET")
        if secret not in self._prepared:
            folder = self._prepared[secret] = self.new_folder()
            wanted = {"DATABASE": folder / DATABASE, "API_KEY": self.key, "SECRET": secret}
            settings = Settings.read({f"{PREFIX}{name}": value for name, value in wanted.items()})
            open_service(settings).close()
        copy = copied(self._prepared[secret], self.new_folder())
        finalize(app, shutil.rmtree, copy.parent, ignore_errors=True)
        worker = given.get(f"{PREFIX}WORKER")
        return {f"{PREFIX}DATABASE": copy, f"{PREFIX}WORKER": "off" if worker is None else worker}

    def owns(self, service: Service) -> bool:
        """True if this made the database of a service."""
        path = service.store.path
        return path is not None and self._folder is not None and self._folder in path.parents

    def close(self) -> None:
        """Remove the databases; apps that are still there can't be used any more."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def copied(folder: Path, target: Path) -> Path:
    """Copy a database that nobody uses, with its secret, into another folder; returns its place there."""
    for name in (DATABASE, f"{DATABASE}.secret"):
        if (folder / name).exists():
            shutil.copyfile(folder / name, target / name)
    return target / DATABASE


@dataclass
class VoiceTest:
    """What a test of a host's app gets of the fixture `voiceapi`.

    :param app: the host's app, whose calls are simulated.
    :param key: an API key of the organization `default`, for requests; None if the app has a database of its own
        choice.
    """

    app: Flask
    key: str | None = field(repr=False)
    _told: set[int] = field(default_factory=set)
    _raised: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        give = self._service.host.give

        def give_and_note(function: Callable[[Any], Any], id: int) -> None:
            try:
                give(function, id)
            except BaseException as error:
                self._raised.append(error)
                raise

        self._service.host.give = give_and_note

    @property
    def _service(self) -> Service:
        found: Service = self.app.extensions["voiceapi"]
        return found

    @property
    def now(self) -> datetime:
        """The time by the clock of voiceapi, in UTC: that of the system, until `advance` is called."""
        return fields.now()

    def advance(self, by: timedelta) -> None:
        """Set the clock of voiceapi forward, until the end of the test. `finish` does what is due then."""
        fields.clock.ahead += by

    def says(self, *lines: str) -> None:
        """Have those who are called from now on say these lines, one a turn, "" for silence, and then hang up."""
        self._service.host.callee = lines

    def finish(self) -> list[Run]:
        """Carry out what is due; returns the runs that have ended since the last time, in this order.

        Simulated calls go on to their end, text chats that were left alone for long are closed, and ended runs are
        given to the functions of `on_run_completed`, on this thread. No webhook is sent, and no campaign dials.

        :raises BaseException: what a function of `on_run_completed` raises; as always, it is called again later.
        :raises TimeoutError: when calls are in progress after a minute.
        """
        while True:
            self._wait_for_calls()
            text_chats.close_idle(self._service)
            if not delivery.call_next_listener(self._service):
                break
            if self._raised:
                raise self._raised.pop()
        with self._service.store.session():
            ended = [run for run in records.ended() if run.id not in self._told]
            self._told |= {run.id for run in ended}
            return [runs.read(run) for run in ended]

    def _wait_for_calls(self) -> None:
        until = time.monotonic() + LONGEST_SECONDS
        while self._service.phones.running() or self._service.slow_jobs.running():
            if time.monotonic() > until:
                raise TimeoutError("Simulated calls are still in progress after a minute.")
            time.sleep(LOOK_SECONDS)


@contextmanager
def opened(app: Flask, databases: Databases) -> Iterator[VoiceTest]:
    """The app for one test, without threads after it.

    It gets a copy of its database, because the app may live longer than the test, as one that a module makes.
    """
    service: Service = app.extensions["voiceapi"]
    ours = databases.owns(service)
    if ours:
        service.close()  # its last connection leaves a file that can be copied
        app.extensions["voiceapi"] = _reopened(app, databases.new_folder())
    try:
        yield VoiceTest(app, databases.key if ours else None)
    finally:
        app.extensions["voiceapi"].close()
        app.extensions["voiceapi"] = service
        fields.clock.ahead = timedelta()


def _reopened(app: Flask, folder: Path) -> Service:
    """The service of an app on a copy of its database."""
    old: Service = app.extensions["voiceapi"]
    settings = replace(old.settings, database=str(copied(Path(old.settings.database).parent, folder)))
    new = open_service(settings, old.prefix, old.authenticate, old.openapi)
    finalize(new, shutil.rmtree, folder, ignore_errors=True)
    listeners.register(new, app.app_context, old.host.listeners)
    tools.register(new, app.app_context, old.host.functions)
    return new
