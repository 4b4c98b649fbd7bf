"""Pages of runs by filter and order, quick also for a million runs, and the conditions of the filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from peewee import SQL, Expression, Select, fn

from .base import names_by_id
from .campaigns import Campaign
from .runs import Run
from .workflows import Workflow

# The columns of each order, for ascending and for descending. A run without a duration comes last both ways, which
# takes two expressions, each with an index.
ORDERS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "created_at": ((Run.created_at, Run.id), (Run.created_at, Run.id)),
    "duration": (
        (fn.coalesce(Run.duration, SQL("1e18")), Run.id),
        (fn.coalesce(Run.duration, SQL("-1")), Run.id),
    ),
    "id": ((Run.id,), (Run.id,)),
    "name": ((Run.name, Run.id), (Run.name, Run.id)),
}
CHANNELS = {
    "telephony": (
        *("ari", "plivo", "twilio", "signalwire", "vonage", "vobiz", "cloudonix", "telnyx", "jambonz", "simulator"),
        *("stasis", "VOICE"),
    ),
    "web": ("webrtc", "smallwebrtc"),
    "chat": ("textchat", "CHAT"),
}


@dataclass(frozen=True)
class Page:
    """One page of a listing, and how many runs there are on all pages."""

    runs: list[Run]
    total: int


def of_workflow(workflow: Workflow, conditions: Sequence[Expression], **view: Any) -> Page:
    """A page of a workflow's runs; `view` is page, limit, sort_by and descending."""
    total = None if conditions else workflow.total_runs
    return _page([Run.workflow == workflow.id, *conditions], total, **view)


def of_campaign(campaign: Campaign, conditions: Sequence[Expression], **view: Any) -> Page:
    """A page of a campaign's runs."""
    return _page([Run.campaign == campaign.id, *conditions], None, **view)


def of_organization(organization: int, conditions: Sequence[Expression], **view: Any) -> Page:
    """A page of all runs of an organization."""
    total = None
    if not conditions:
        owned = Workflow.select(fn.sum(Workflow.total_runs)).where(Workflow.organization == organization)
        total = owned.scalar() or 0
    return _page([Run.organization == organization, *conditions], total, **view)


def _page(where: list[Expression], total: int | None, *, page: int, limit: int, sort_by: str, descending: bool) -> Page:
    matching = Run.select(Run.id).where(*where)
    if total is None:
        total = matching.count()
    offset = (page - 1) * limit
    size = min(limit, total - offset)
    if size <= 0:
        return Page([], total)
    rising, falling = ORDERS[sort_by]
    columns = falling if descending else rising
    # A page in the second half is read from the end, so that the last page is as quick as the first.
    from_end = offset > total // 2
    if from_end:
        offset = total - offset - size
    ordered = matching.order_by(*(column.desc() if descending != from_end else column.asc() for column in columns))
    # Ids first, which an index answers alone; whole rows only for the page.
    ids = [row.id for row in ordered.limit(size).offset(offset).namedtuples()]
    if from_end:
        ids.reverse()
    return Page(_in_order(ids), total)


def _in_order(ids: list[int]) -> list[Run]:
    found = {run.id: run for run in Run.select().where(Run.id.in_(ids))}
    return [found[id] for id in ids if id in found]


def workflow_names(runs: list[Run]) -> Mapping[int | None, str]:
    """The names of the workflows that these runs belong to, by id."""
    return names_by_id(Workflow, [run.workflow_id for run in runs])


def other_dispositions(organization: int, known: Sequence[str], limit: int) -> list[str]:
    """Up to `limit` dispositions of the organization's runs that aren't in `known`, in alphabetical order."""
    others = Run.select(Run.disposition).where(Run.organization == organization, Run.disposition.not_in((*known, "")))
    return [str(run.disposition) for run in others.distinct().order_by(Run.disposition).limit(limit)]


def finished(where: Sequence[Expression], since: datetime | None, until: datetime | None) -> Iterator[Run]:
    """Completed runs with a duration, newest first, fetched one by one."""
    runs = Run.select().where(*_finished(where, since, until))
    found: Iterator[Run] = runs.order_by(Run.created_at.desc(), Run.id.desc()).iterator()
    return found


def has_more(where: Sequence[Expression], since: datetime | None, until: datetime | None, than: int) -> bool:
    """Whether `finished` finds more runs than that."""
    return bool(Run.select(Run.id).where(*_finished(where, since, until)).offset(than).exists())


def _finished(where: Sequence[Expression], since: datetime | None, until: datetime | None) -> list[Expression]:
    return [Run.state == "completed", Run.duration.is_null(False), *where, *created_through(since, until)]


def created_through(first: datetime | None, last: datetime | None) -> list[Expression]:
    """Created at `first` or later and at `last` or earlier."""
    conditions = []
    if first is not None:
        conditions.append(Run.created_at >= first)
    if last is not None:
        conditions.append(Run.created_at <= last)
    return conditions


def duration_between(low: float | None, high: float | None) -> list[Expression]:
    """With a duration in this range, bounds included."""
    conditions = [Run.duration.is_null(False)]
    if low is not None:
        conditions.append(Run.duration >= low)
    if high is not None:
        conditions.append(Run.duration <= high)
    return conditions


def tokens_between(low: float | None, high: float | None) -> list[Any]:
    """With a token cost in this range. The cost of every run is zero: all match, or none does."""
    fits = (low is None or low <= 0) and (high is None or high >= 0)
    return [] if fits else [SQL("1 = 0")]


def disposition_in(codes: list[str]) -> list[Expression]:
    """With one of these dispositions; any if there are none."""
    return [Run.disposition.in_(codes)] if codes else []


def completed(yes: bool) -> list[Expression]:
    """Completed, or not."""
    return [Run.state == "completed" if yes else Run.state != "completed"]


def column_is(name: str, value: Any) -> list[Expression]:
    """With this value in a column."""
    return [getattr(Run, name) == value]


def column_holds(name: str, text: str) -> list[Expression]:
    """With this text in a column's, in either case."""
    return [getattr(Run, name).contains(text)]


def channel_is(channel: str) -> list[Expression]:
    """With a mode of this channel, a key of CHANNELS."""
    return [Run.mode.in_(CHANNELS[channel])]


def tagged(tags: list[str]) -> list[Any]:
    """With all of these call tags."""
    if not tags:
        return []
    carried = fn.json_each(Run.gathered_context, "$.call_tags")
    found = Select((carried,), (fn.count(SQL("DISTINCT value")),)).where(SQL("value").in_(tags))
    return [found == len(set(tags))]
