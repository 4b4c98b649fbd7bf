"""The command `graph`: a workflow as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from flask.cli import with_appcontext

from ..workflows.drawing.svg import draw
from .base import with_session
from .definitions import is_stored, read_definition, read_file
from .output import writing


@click.command("graph")
@click.argument("workflow")
@click.option("-o", "--output", metavar="FILE", help="Where the picture goes; standard output without it.")
@click.option("--layered", is_flag=True, help="Put the steps in layers, whatever their stored positions are.")
@click.option("--coverage", is_flag=True, help="Run its conversation cases, and show which parts they pass how often.")
def graph(workflow: str, output: str | None, layered: bool, coverage: bool) -> None:
    """Draw WORKFLOW, an agent by a definition's file or a stored workflow's id, as SVG.

    Nodes are drawn where they are stored, if all have a position and none lies on another; else in layers. What is
    broken is drawn as far as it can be read. Drawing a file needs no database. The cases of a file are those beside it.
    """
    if coverage:
        # What runs cases takes a part of each start to import.
        from .coverage import coverage_of

        picture = coverage_of(workflow).picture(stored_positions=not layered)
    else:
        definition, name = _stored(workflow) if is_stored(workflow) else (read_file(workflow), Path(workflow).stem)
        picture = draw(definition, name, stored_positions=not layered)
    if output is None or output == "-":
        click.echo(picture)
    else:
        write_picture(output, picture)


def write_picture(output: str, picture: str) -> None:
    """Write a picture into a file, and say so.

    :raises click.UsageError: when it can't be written.
    """
    with writing(output):
        Path(output).write_text(f"{picture}\n", encoding="utf-8")
    click.echo(f"Wrote {click.format_filename(output)}.", err=True)


@with_appcontext
@with_session
def _stored(workflow: str) -> tuple[Any, str]:
    """The definition and the name of a stored workflow."""
    definition, _, record = read_definition(workflow)
    return definition, workflow if record is None else record.name
