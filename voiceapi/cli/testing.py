"""The command `test`: runs conversation cases, and tells their coverage."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from .base import JSON, TEXT, with_settings
from .definitions import is_stored
from .watch import WATCH, Watcher, run_on_change

KINDS = ("nodes", "edges", "variables")


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

    # No other command needs what reads and runs cases, and importing it takes a part of each start.
    from .tested import run_tests, watched

    paths = paths or (".",)
    wanted = {kind: percent for each in demanded for kind, percent in each.items()}
    run = partial(run_tests, paths, demanded=wanted, watch=watch, **options)
    if not watch:
        sys.exit(run())
    if all(map(is_stored, paths)):
        raise click.UsageError("--watch takes files and folders.")
    sys.exit(run_on_change(Watcher(partial(watched, paths)), run))
