"""The output of commands: tables for people, JSON for programs, and progress on standard error."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from unicodedata import combining, east_asian_width

import click

from ..strict_json import encode
from ..timestamps import write_time

# What takes longer than so many seconds shows that it goes on.
QUIET_SECONDS = 1.0
GAP = "  "
CUT = "…"
CLEAR = "\r\x1b[K"
# A column is cut, from the widest down, to no less.
NARROWEST = 8


def show_json(value: Any, *, in_one_line: bool = False) -> None:
    """Write a value as JSON, for programs; instants and stored JSON are written as the API writes them."""
    click.echo(json.dumps(json.loads(encode(value)), ensure_ascii=False, indent=None if in_one_line else 2))


def show_table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, empty: str) -> None:
    """Write rows as columns: numbers to the right, cut to the terminal's width if standard output is one.

    :param empty: what is written to standard error instead of a table without rows; it says what to do next.
    """
    if not rows:
        click.echo(empty, err=True)
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    first, *others = table(head, rows, width)
    click.secho(first, bold=True)
    for line in others:
        click.echo(line)


def show_fields(fields: Mapping[str, Any]) -> None:
    """Write a line for each field that has a value: its name, then the value."""
    given = {name: printable(str(value)) for name, value in fields.items() if value not in (None, "", "{}")}
    room = max(map(len, given), default=0) + 1
    for name, value in given.items():
        click.echo(f"{name + ':':<{room}} {value}")


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None = None) -> list[str]:
    """The lines of a table, its head first.

    :param width: the columns of the terminal that a line may take; None for as many as it takes.
    """
    cells = [[printable(name) for name in head], *([_cell(value) for value in row] for row in rows)]
    is_number = [all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(head))]
    widths = [max(map(columns, column)) for column in zip(*cells, strict=True)]
    if width is not None:
        _narrow(widths, width - len(GAP) * (len(widths) - 1))
    return [
        GAP.join(_fitted(cell, room, right) for cell, room, right in zip(line, widths, is_number, strict=True)).rstrip()
        for line in cells
    ]


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else printable(str(value))


def _narrow(widths: list[int], room: int) -> None:
    """Take from the widest columns what is too much."""
    while sum(widths) > room and max(widths) > NARROWEST:
        widest = widths.index(max(widths))
        others = [width for i, width in enumerate(widths) if i != widest]
        widths[widest] = max(NARROWEST, room - sum(others), max([*(w for w in others if w < widths[widest]), 0]) - 1)


def _fitted(text: str, room: int, right: bool) -> str:
    if columns(text) > room:
        while columns(text) > room - 1:
            text = text[:-1]
        text += CUT
    padding = " " * (room - columns(text))
    return padding + text if right else text + padding


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: a Chinese character two, an accent of its own none."""
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def printable(text: str) -> str:
    """The text in one line, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def when(moment: datetime | None) -> str | None:
    """A moment for people: to the minute, in UTC."""
    return None if moment is None else write_time(moment, "minutes").replace("T", " ")


class ProgressBar:
    """What a long command is doing: `text` may change while it goes on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._is_line_open = False
        self._lock = threading.Lock()

    def write(self, line: str) -> None:
        """Write a line of the command's result."""
        with self._lock:
            self._close_line()
            click.echo(line)

    def show(self, done: threading.Event) -> None:
        """Write what is being done to standard error, each second until it is done."""
        is_terminal = sys.stderr.isatty()
        began, last = time.monotonic(), ""
        while not done.wait(QUIET_SECONDS):
            line = f"{printable(self.text)} ..."
            with self._lock:
                if is_terminal:
                    click.echo(f"{CLEAR}{line} {time.monotonic() - began:.0f} s", err=True, nl=False)
                    self._is_line_open = True
                elif line != last:
                    click.echo(line, err=True)
            last = line
        self._close_line()

    def _close_line(self) -> None:
        """Empty the line of the terminal that shows the progress."""
        if self._is_line_open:
            click.echo(CLEAR, err=True, nl=False)
            self._is_line_open = False


@contextmanager
def progress(text: str) -> Iterator[ProgressBar]:
    """Show on standard error that the block goes on, once it has taken longer than a second.

    On a terminal that is one line with the seconds; elsewhere a line for each new text, at most one a second.
    """
    state = ProgressBar(text)
    done = threading.Event()
    thread = threading.Thread(target=state.show, args=(done,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        done.set()
        thread.join()


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Raise what keeps a file from being written as a usage error that names it."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise click.UsageError(f"{click.format_filename(path)} can't be written: {reason}.") from None
