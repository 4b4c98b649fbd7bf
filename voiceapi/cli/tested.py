"""What the command `test` does: reads cases, runs them, and shows or writes what they led to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from ..rehearsal.cases import ModelKind
from . import case_sets, junit
from .case_runs import TimedResult, run_sets
from .case_sets import CaseSet
from .coverage import AgentCoverage, by_agent, write_pictures
from .definitions import is_stored
from .dialogue import dialogue
from .output import printable, show_json
from .stored_cases import configured_model, stored_set

Found = list[tuple[CaseSet, list[TimedResult]]]


def run_tests(
    paths: Sequence[str],
    *,
    model: ModelKind | None,
    text: str | None,
    jobs: int | None,
    junit_file: Path | None,
    svg: Path | None,
    demanded: Mapping[str, float],
    verbose: bool,
    watch: bool,
    as_json: bool,
) -> int:
    """Run the cases at these paths, as the options of the command say; returns its exit code.

    :param watch: JSON is one line, because more follow.
    :raises click.UsageError: when there are none, or something can't be read or written.
    """
    began = perf_counter()
    sets = _chosen(_read(paths, model), text)
    found = list(zip(sets, run_sets(sets, jobs), strict=True))
    coverage = by_agent((each, [timed.result for timed in results]) for each, results in found)
    gaps = [gap for each in coverage for gap in each.gaps(demanded)]
    if junit_file is not None:
        _write_junit(junit_file, found)
    drawn = [] if svg is None else write_pictures(svg, coverage)
    if as_json:
        show_json(_answer(found, coverage, gaps, perf_counter() - began), in_one_line=watch)
    else:
        _show(found, coverage, gaps, perf_counter() - began, verbose=verbose)
    for file in drawn:
        click.echo(f"Wrote {click.format_filename(file)}.", err=True)
    return int(bool(gaps) or any(not timed.result.passed for _, results in found for timed in results))


def watched(paths: Sequence[str]) -> list[Path]:
    """The files on which the cases at these paths depend."""
    return case_sets.watched(Path(path) for path in paths if not is_stored(path))


def _read(paths: Sequence[str], model: ModelKind | None) -> list[CaseSet]:
    files = case_sets.files_at(Path(path) for path in paths if not is_stored(path))
    sets = case_sets.read(files, configured_model, model)
    return sets + [stored_set(int(path), model) for path in paths if is_stored(path)]


def _chosen(sets: list[CaseSet], text: str | None) -> list[CaseSet]:
    if text is None:
        return sets
    found = []
    for each in sets:
        at = [index for index, case in enumerate(each.cases) if text.casefold() in case.name.casefold()]
        if at:
            lines = tuple(each.lines[index] for index in at) if each.lines else ()
            found.append(replace(each, cases=tuple(each.cases[index] for index in at), lines=lines))
    if not found:
        count = sum(len(each.cases) for each in sets)
        raise click.UsageError(f"None of the {count} cases has {text!r} in its name.")
    return found


def _write_junit(path: Path, found: Found) -> None:
    try:
        junit.write(path, found)
    except OSError as error:
        raise click.UsageError(f"{click.format_filename(path)} can't be written: {error.strerror}.") from None


def _show(found: Found, coverage: list[AgentCoverage], gaps: list[str], seconds: float, *, verbose: bool) -> None:
    count = failed = 0
    for source, results in found:
        for index, timed in enumerate(results):
            count += 1
            failed += not timed.result.passed
            if timed.result.passed and not verbose:
                continue
            at = f"{source.source}:{source.lines[index]}" if source.lines else source.source
            color, word = ("green", "PASSED") if timed.result.passed else ("red", "FAILED")
            click.echo(f"{click.style(word, fg=color, bold=True)} {printable(timed.result.name)} ({at})")
            for line in dialogue(timed.result, partial(click.style, fg="red")):
                click.echo(f"  {line}")
            click.echo()
    for each in coverage:
        for line in each.text():
            click.echo(line)
    for gap in gaps:
        click.secho(gap, fg="red")
    cases = f"{count} case{'' if count == 1 else 's'}"
    told = f"{failed} of {cases} failed" if failed else f"{cases} passed"
    click.secho(f"{told}, in {seconds:.1f} s.", fg="red" if failed or gaps else "green", bold=True)


def _answer(found: Found, coverage: list[AgentCoverage], gaps: list[str], seconds: float) -> dict[str, Any]:
    results = [
        {
            "file": cases.source,
            "line": cases.lines[index] if cases.lines else None,
            "seconds": round(timed.seconds, 4),
            **timed.result.as_dict(),
        }
        for cases, each in found
        for index, timed in enumerate(each)
    ]
    return {
        "passed": sum(each["passed"] for each in results),
        "failed": sum(not each["passed"] for each in results),
        "seconds": round(seconds, 3),
        "results": results,
        "coverage": [{"agent": each.agent, **each.coverage.as_dict()} for each in coverage],
        "gaps": gaps,
    }
