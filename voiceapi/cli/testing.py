"""The command `test`: runs conversation cases, shows their coverage, and writes the results as JUnit's XML."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any
from xml.etree import ElementTree

import click

from ..rehearsal.cases import ModelKind
from ..store.fields import now
from . import case_sets
from .base import JSON, TEXT, with_settings
from .case_sets import CaseSet, TimedResult, configured_model, run_sets, stored_set
from .chat import dialogue
from .coverage import AgentCoverage, by_agent, write_pictures
from .definitions import is_stored
from .output import printable, show_json
from .watch import WATCH, Watcher, run_on_change

KINDS = ("nodes", "edges", "variables")
# What XML 1.0 can't hold, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Found = list[tuple[CaseSet, list[TimedResult]]]


class Share(click.ParamType):  # type: ignore[type-arg]
    """A percentage, of all kinds or of one: 90, or edges=90."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Mapping[str, float]:
        kind, separator, text = value.rpartition("=")
        if separator and kind not in KINDS:
            self.fail(f"{kind!r} is none of {', '.join(KINDS)}.", param, ctx)
        percent = click.FloatRange(0, 100).convert(text, param, ctx)
        return dict.fromkeys([kind] if separator else KINDS, percent)


@click.command("test")
@click.argument("paths", nargs=-1, type=TEXT)
@click.option("--model", type=click.Choice(["scripted", "configured"]), help="What speaks in cases that aren't played.")
@click.option("-k", "text", type=TEXT, metavar="TEXT", help="Only cases whose name contains this.")
@click.option("--jobs", type=click.IntRange(1, 256), help="How many cases run at a time; as many as is quick without.")
@click.option("--junit", "junit_file", type=click.Path(path_type=Path), help="Write the results as JUnit's XML.")
@click.option("--svg", type=click.Path(path_type=Path), help="Draw the coverage: file.svg, or a folder.")
@click.option(
    "--min-coverage",
    "demanded",
    type=Share(),
    multiple=True,
    help="Fail below this coverage: of nodes, edges and variables, or of one of them, as in edges=90. Repeatable.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show the dialogues of all cases.")
@WATCH
@JSON
# Opened for stored workflows and language models; background jobs are the business of a server.
@with_settings(VOICEAPI_WORKER="off")
def test(
    paths: tuple[str, ...],
    demanded: tuple[Mapping[str, float], ...],
    watch: bool,
    **options: Any,
) -> None:
    """Run the conversation cases at PATHS: files, folders that are searched for them, or ids of stored workflows.

    A file of cases is named *.cases.yaml, *.cases.yml or *.cases.json; of an agent's own file those beside it are run.
    Without PATHS, the current folder is searched. Cases in files need no database, no key and no network, unless their
    model is the configured one. Exit code 1 when a case fails or the coverage is too low.
    """
    paths = paths or (".",)
    wanted = {kind: percent for each in demanded for kind, percent in each.items()}
    run = partial(run_tests, paths, demanded=wanted, watch=watch, **options)
    if not watch:
        sys.exit(run())
    if all(map(is_stored, paths)):
        raise click.UsageError("--watch takes files and folders.")
    sys.exit(run_on_change(Watcher(partial(watched, paths)), run))


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
        try:
            write_junit(junit_file, found)
        except OSError as error:
            raise click.UsageError(f"{click.format_filename(junit_file)} can't be written: {error.strerror}.") from None
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


def write_junit(path: Path, found: Iterable[tuple[CaseSet, list[TimedResult]]], began: datetime | None = None) -> None:
    """Write JUnit's XML, in the shape that pytest writes and CI servers read, with a suite for each set of cases.

    :raises OSError: when it can't be written.
    """
    root = ElementTree.Element("testsuites", name="voiceapi test")
    for cases, results in found:
        root.append(_suite(cases, results, began or now()))
    ElementTree.indent(root)
    path.write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _suite(cases: CaseSet, results: list[TimedResult], began: datetime) -> ElementTree.Element:
    suite = ElementTree.Element(
        "testsuite",
        name=_text(cases.source),
        errors="0",
        failures=str(sum(not each.result.passed for each in results)),
        skipped="0",
        tests=str(len(results)),
        time=_seconds(sum(each.seconds for each in results)),
        timestamp=began.isoformat(),
        hostname=_text(platform.node()),
    )
    for index, (result, seconds) in enumerate((each.result, each.seconds) for each in results):
        named = {"classname": _text(cases.source), "name": _text(result.name), "time": _seconds(seconds)}
        if cases.lines:
            named |= {"file": _text(cases.source), "line": str(cases.lines[index])}
        case = ElementTree.SubElement(suite, "testcase", named)
        if not result.passed:
            first, *others = result.mismatches
            more = f" (and {len(others)} more)" if others else ""
            failure = ElementTree.SubElement(case, "failure", message=_text(f"{first}{more}"))
            failure.text = _text("\n".join(dialogue(result)))
    return suite


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def _text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)
