"""The watcher of files behind `--watch`."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from voiceapi.cli.watch import Watcher, run_on_change
from voiceapi.errors import NotPossible


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "agent.json"
    file.write_text("1")
    return file


def save(file: Path, text: str) -> None:
    """Save as an editor does that replaces the file."""
    new = file.with_suffix(".new")
    new.write_text(text)
    os.replace(new, file)


def test_a_saved_file_is_noticed_once_when_two_looks_find_it_the_same(file: Path) -> None:
    watcher = Watcher(lambda: [file])
    assert watcher.changed() == []
    file.write_text("22")
    assert watcher.changed() == []
    file.write_text("333")
    assert watcher.changed() == []
    assert watcher.changed() == [file]
    assert watcher.changed() == []


def test_a_file_that_is_replaced_by_one_of_the_same_time_and_size_is_noticed(file: Path) -> None:
    watcher = Watcher(lambda: [file])
    before = file.stat()
    save(file, "2")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [watcher.changed(), watcher.changed()] == [[], [file]]


def test_a_file_that_is_gone_and_comes_again_is_noticed_twice(file: Path) -> None:
    watcher = Watcher(lambda: [file])
    file.unlink()
    assert [watcher.changed(), watcher.changed(), watcher.changed()] == [[], [file], []]
    file.write_text("1")
    assert [watcher.changed(), watcher.changed()] == [[], [file]]


def test_files_that_are_added_to_a_folder_or_renamed_are_noticed(file: Path, tmp_path: Path) -> None:
    watcher = Watcher(lambda: tmp_path.glob("*.json"))
    added = tmp_path / "b.json"
    added.write_text("2")
    assert [watcher.changed(), watcher.changed()] == [[], [added]]
    file.rename(tmp_path / "c.json")
    assert [watcher.changed(), watcher.changed()] == [[], [file, tmp_path / "c.json"]]


def sleeping(*steps: Callable[[], object]) -> Callable[[float], None]:
    """A sleep in which something happens; after the last thing Ctrl-C is pressed."""
    left: Iterator[Callable[[], object]] = iter(steps)

    def sleep(_: float) -> None:
        step = next(left, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    return sleep


def test_a_command_runs_at_once_and_again_when_the_file_is_saved(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    read: list[str] = []

    def run() -> int:
        read.append(file.read_text())
        return len(read)

    steps = sleeping(lambda: save(file, "2"), lambda: None, lambda: save(file, "3"), lambda: None)
    assert run_on_change(Watcher(lambda: [file]), run, sleep=steps) == 3
    assert read == ["1", "2", "3"]
    assert capsys.readouterr().err == f"-- {file} changed\n" * 2


def test_a_file_that_is_saved_while_the_command_runs_is_run_again(file: Path) -> None:
    read: list[str] = []

    def run() -> int:
        read.append(file.read_text())
        if len(read) == 1:
            save(file, "2")
        return 0

    run_on_change(Watcher(lambda: [file]), run, sleep=sleeping(lambda: None, lambda: None))
    assert read == ["1", "2"]


@pytest.mark.parametrize(
    ("error", "text", "code"),
    [
        (click.UsageError("agent.json is not JSON."), "Error: agent.json is not JSON.\n", 2),
        (NotPossible("There is no such thing."), "Error: There is no such thing.\n", 1),
    ],
)
def test_an_error_is_written_and_the_file_is_watched_on(
    file: Path, capsys: pytest.CaptureFixture[str], error: Exception, text: str, code: int
) -> None:
    runs: list[str] = []

    def run() -> int:
        runs.append(file.read_text())
        if len(runs) == 1:
            return 0
        raise error

    steps = sleeping(lambda: save(file, "2"), lambda: None)
    assert run_on_change(Watcher(lambda: [file]), run, sleep=steps) == code
    assert runs == ["1", "2"]
    assert capsys.readouterr().err == f"-- {file} changed\n{text}"


def test_ctrl_c_while_the_command_runs_ends_it(file: Path) -> None:
    def run() -> int:
        raise KeyboardInterrupt

    assert run_on_change(Watcher(lambda: [file]), run) == 0
