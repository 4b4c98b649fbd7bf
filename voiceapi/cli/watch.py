"""What `--watch` does in `lint`, `test` and `chat`: files are looked at again and again, and a saved one is noticed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import click

from .base import errors_as_lines

# Seconds between two looks at the files. One is noticed when two looks in a row find it the same.
EVERY = 0.1

WATCH = click.option("--watch", is_flag=True, help="Do it again whenever a file is saved, until Ctrl-C.")

# Of each file what saving it changes: time, size and inode; None while there is no such file.
_Look = Mapping[Path, tuple[int, int, int] | None]


class Watcher:
    """Notices which of some files were saved, added or removed since it was made.

    :param paths: the files; called at each look, so that it may search folders.
    """

    def __init__(self, paths: Callable[[], Iterable[Path]]) -> None:
        self._paths = paths
        self._reported = self._last = self._look()

    def changed(self) -> list[Path]:
        """Look, and return the files that changed since they were last returned; empty while one is being written."""
        look, last = self._look(), self._last
        self._last = look
        if look == self._reported or look != last:
            return []
        before, self._reported = self._reported, look
        return sorted(path for path in {*before, *look} if before.get(path) != look.get(path))

    def _look(self) -> _Look:
        return {path: _state(path) for path in self._paths()}


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def run_on_change(watcher: Watcher, run: Callable[[], int], *, sleep: Callable[[float], object] = time.sleep) -> int:
    """Run at once, and again whenever a watched file changes; Ctrl-C ends it. Return the last run's exit code.

    An error of a run, such as a file that isn't JSON yet, is written in a line, and the files are watched on.

    :param run: returns an exit code.
    """
    code = 0
    try:
        while True:
            code = _exit_code(run)
            while not (changed := watcher.changed()):
                sleep(EVERY)
            announce(changed)
    except KeyboardInterrupt:
        return code


def announce(changed: Iterable[Path]) -> None:
    """Write which files changed, to standard error."""
    click.echo(f"-- {', '.join(click.format_filename(path) for path in changed)} changed", err=True)


def _exit_code(run: Callable[[], int]) -> int:
    try:
        with errors_as_lines():
            return run()
    except click.ClickException as error:
        error.show()
        return error.exit_code
