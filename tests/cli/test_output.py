"""Tables, printable text, and progress."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from voiceapi.cli import output
from voiceapi.cli.output import columns, printable, progress, show_table, table

HEAD = ("ID", "NAME", "STATE")
ROWS = [(1, "Reception of the whole building", "active"), (12, None, "archived")]


def test_a_table_is_aligned() -> None:
    assert table(HEAD, ROWS) == [
        "ID  NAME                             STATE",
        " 1  Reception of the whole building  active",
        "12                                   archived",
    ]


@pytest.mark.parametrize("width", [80, 40, 30])
def test_a_table_is_cut_to_the_width(width: int) -> None:
    lines = table(HEAD, ROWS, width)
    assert max(map(columns, lines)) <= width
    assert lines[1].startswith(" 1  Recept")
    assert all(line.endswith(end) for line, end in zip(lines, ("STATE", "active", "archived"), strict=True))
    assert ("…" in lines[1]) == (width < 45)


def test_wide_and_combining_letters_take_their_columns() -> None:
    lines = table(("A", "B"), [("日本", 1), ("e\u0301", 22)])
    assert lines == ["A      B", "日本   1", "e\u0301     22"]
    assert table(("A", "B"), [("日本語の名前です", "x")], 12)[1] == "日本語の…  x"


def test_what_a_terminal_would_obey_is_not_written() -> None:
    assert printable("a\x1b[31mb\nc\u202e") == "a [31mb c "
    assert table(("A",), [("x\ny",)]) == ["A", "x y"]


def test_without_a_terminal_nothing_is_cut_or_colored(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(HEAD, [("x" * 300, "", "")], empty="")
    out = capsys.readouterr().out
    assert "x" * 300 in out
    assert "\x1b" not in out
    show_table(HEAD, [], empty="There is none. Make one.")
    assert capsys.readouterr() == ("", "There is none. Make one.\n")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_shows_what_takes_long(
    monkeypatch: pytest.MonkeyPatch, wait_for: Callable[..., Any], is_terminal: bool
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", Mock(return_value=is_terminal), raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(output, "QUIET_SECONDS", 60)
    with progress("Quick"):
        pass
    assert stream.getvalue() == ""
    monkeypatch.setattr(output, "QUIET_SECONDS", 0.02)
    with progress("Reading 1 of 2") as state:
        wait_for(lambda: "Reading 1 of 2" in stream.getvalue())
        state.text = "Reading 2 of 2"
        wait_for(lambda: "Reading 2 of 2" in stream.getvalue())
    shown = stream.getvalue()
    if is_terminal:
        assert re.search(
            r"\r\x1b\[KReading 1 of 2 \.\.\. 0 s\r.*Reading 2 of 2 \.\.\. 0 s.*\r\x1b\[K$", shown, re.DOTALL
        )
    else:
        assert shown == "Reading 1 of 2 ...\nReading 2 of 2 ...\n"


def test_a_result_takes_the_line_of_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", Mock(return_value=True), raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(output, "QUIET_SECONDS", 0.02)
    with progress("Asking") as state:
        while "Asking" not in stream.getvalue():
            time.sleep(0.01)
        state.write("scripted: good")
    assert "\r\x1b[Kscripted: good\n" in stream.getvalue()
