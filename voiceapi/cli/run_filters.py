"""The options that choose runs, and the filters of the API that they stand for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import click

from ..store.run_criteria import CHANNELS
from ..timestamps import read_time
from .base import ID, TEXT


class _Day(click.ParamType):  # type: ignore[type-arg]
    """A date or a time, in ISO 8601."""

    name = "date"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            read_time(value)
        except ValueError as error:
            self.fail(f"{error}; write it like 2026-11-30 or 2026-11-30T09:00Z.", param, ctx)
        return value


OPTIONS = (
    click.option("--campaign", type=ID, help="Of the campaign with this id."),
    click.option("--disposition", type=TEXT, multiple=True, help="With this disposition, such as user_qualified."),
    click.option("--tag", type=TEXT, multiple=True, help="With this call tag; several: with all of them."),
    click.option("--status", type=click.Choice(["completed", "in_progress"])),
    click.option("--direction", type=click.Choice(["inbound", "outbound"])),
    click.option("--channel", type=click.Choice(tuple(CHANNELS))),
    click.option("--caller", type=TEXT, help="Digits of the caller's number."),
    click.option("--called", type=TEXT, help="Digits of the called number."),
    click.option("--since", type=_Day(), help="Created then or later, such as 2026-11-30."),
    click.option("--until", type=_Day(), help="Created then or earlier; a date includes that whole day."),
    click.option("--min-duration", type=click.FloatRange(0), help="In seconds."),
    click.option("--max-duration", type=click.FloatRange(0), help="In seconds."),
)


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that choose runs."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def filters_of(options: Mapping[str, Any]) -> str:
    """The API's filters, as JSON, that the options stand for."""
    found = []
    for name, attribute in (("workflow", "workflowId"), ("campaign", "campaignId")):
        found += [(attribute, {"value": options[name]})] if options.get(name) is not None else []
    for name, attribute in (("caller", "callerNumber"), ("called", "calledNumber")):
        found += [(attribute, {"value": options[name]})] if options[name] is not None else []
    for name, attribute in (("status", "status"), ("direction", "callDirection"), ("channel", "callChannel")):
        found += [(attribute, {"status": options[name]})] if options[name] is not None else []
    for name, attribute in (("disposition", "dispositionCode"), ("tag", "callTags")):
        found += [(attribute, {"codes": list(options[name])})] if options[name] else []
    for names, attribute in ((("since", "until"), "dateRange"), (("min_duration", "max_duration"), "duration")):
        ends = ("from", "to") if attribute == "dateRange" else ("min", "max")
        given = {end: options[name] for end, name in zip(ends, names, strict=True) if options[name] is not None}
        found += [(attribute, given)] if given else []
    return json.dumps([{"attribute": attribute, "value": value} for attribute, value in found])
