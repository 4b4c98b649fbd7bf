"""Pages of runs by filter and order, quick also for a million runs, and the runs of a report.

A page is one statement, and another one counts what isn't counted already. SQLite is told the index: it holds what
runs are filtered by, so that rows are read for the page only. PostgreSQL chooses one by its statistics, with the help
of `_chosen`. All of it is SQL, because Peewee takes longer to build such a statement than SQLite to answer it, and a
record of 31 columns longer to make than all that is shown of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from ..strict_json import Fragment
from . import counts
from .campaigns import Campaign
from .database import bound_path, either, execute
from .fields import EPOCH
from .paging import window
from .run_criteria import ALL, Criteria
from .runs import Run
from .workflows import Workflow

# The index of a workflow's runs by time, which also holds what they are filtered by, and those for other orders.
BY_TIME, BY_OTHER = "run_of_workflow", {"duration": "run_by_duration", "id": "run_by_id", "name": "run_by_name"}
OWNED = "workflow_id IN (SELECT id FROM workflow WHERE organization_id = ?)"
# CROSS JOIN, because SQLite keeps the order of its tables: first the workflows of an organization.
COUNTED_OF_ORGANIZATION = """workflow {} run_count ON run_count.workflow_id = workflow.id
WHERE workflow.organization_id = ?"""
# Of the spans of its workflow only those from the campaign's first run to its last, which SQLite finds at once.
COUNTED_OF_CAMPAIGN = f"""run_count WHERE workflow_id = ? AND campaign_id = ? AND span
BETWEEN (SELECT min(created_at) >> {counts.SPAN_BITS} FROM run WHERE campaign_id = ?)
AND (SELECT max(created_at) >> {counts.SPAN_BITS} FROM run WHERE campaign_id = ?)"""
COUNTED = frozenset(counts.RUNS.names)
# What the indexes for an order don't hold. So few runs that are found by it are put in order last: PostgreSQL might
# look for them in the order of the page instead, and read nearly all others until the page is full.
UNORDERED, FEW = frozenset(("gathered_context", "caller_number", "called_number")), 5000
# Runs of a report that are fetched at a time from PostgreSQL, which keeps all rows of an answer in memory.
PORTION = 1000
Row = TypeVar("Row")


class ListedRun(NamedTuple):
    """A run as the lists of a workflow and of a campaign show it; stored JSON is passed on as it is."""

    id: int
    workflow_id: int
    name: str
    mode: str
    created_at: datetime
    is_completed: bool
    call_type: str
    version_id: int | None
    caller_number: str | None
    called_number: str | None
    disposition: str | None
    has_transcript: bool
    duration: float | None
    initial_context: Fragment
    gathered_context: Fragment


class UsedRun(NamedTuple):
    """A run as the organization's history of use shows it; `phone_number` is from its initial context."""

    id: int
    workflow_id: int
    workflow_name: str
    name: str
    mode: str
    call_type: str
    caller_number: str | None
    called_number: str | None
    disposition: str | None
    public_access_token: str | None
    campaign_id: int | None
    duration: float | None
    is_completed: bool
    created_at: datetime
    has_transcript: bool
    call_price: Any
    phone_number: Any
    initial_context: Fragment
    gathered_context: Fragment


class EndedRun(NamedTuple):
    """A run as insights need it: whether it has ended, and how."""

    id: int
    is_completed: bool
    disposition: str | None
    created_at: datetime


class ReportedRun(NamedTuple):
    """A run as a line of a report shows it."""

    id: int
    campaign_id: int | None
    workflow_id: int
    version_id: int | None
    disposition: str | None
    duration: float
    public_access_token: str | None
    created_at: datetime
    has_transcript: bool
    initial_context: dict[str, Any]
    gathered_context: dict[str, Any]


# The columns of each of them; an organization's list also names the workflow.
LISTED = """id, workflow_id, name, mode, created_at, state, call_type, version_id, caller_number, called_number,
disposition, has_transcript, duration, initial_context, gathered_context"""
USED = """id, workflow_id, (SELECT name FROM workflow WHERE workflow.id = run.workflow_id) AS workflow_name, name, mode,
call_type, caller_number, called_number, disposition, public_access_token, campaign_id, duration, state, created_at,
has_transcript, annotations, initial_context, gathered_context"""
REPORTED = """id, campaign_id, workflow_id, version_id, disposition, duration, public_access_token, created_at,
has_transcript, initial_context, gathered_context"""
_json = Run.gathered_context.python_value


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """One page of a list, and how many runs there are on all pages."""

    runs: list[Row]
    total: int


@dataclass(frozen=True, slots=True)
class View:
    """Which page of a list is shown, from 1, and in which order; runs without a duration come last both ways.

    :param sort_by: created_at, duration, id or name.
    """

    page: int
    limit: int
    sort_by: str
    descending: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose runs are listed: a condition in SQL with its values.

    :param counted: the same for `counts.RUNS`, beginning with the tables.
    :param index: holds the runs by time, and what they are filtered by.
    :param sorted: for other orders, the indexes with the runs in them.
    """

    where: str
    values: tuple[Any, ...]
    counted: str
    counted_values: tuple[Any, ...]
    index: str
    sorted: Mapping[str, str]

    def best_index(self, criteria: Criteria, sort_by: str) -> str | None:
        """The index that finds the most of it; None for the primary key."""
        if "id" in criteria.columns:
            return None
        if criteria == ALL:
            return self.sorted.get(sort_by, self.index)
        alone = criteria == replace(criteria, since=None, until=None) and criteria.columns == {sort_by}
        return self.sorted.get(sort_by, self.index) if alone else self.index

    def select(self, what: str, criteria: Criteria, sort_by: str) -> tuple[str, tuple[Any, ...]]:
        """The beginning of a statement on these runs, as far as its WHERE, and its values."""
        index = self.best_index(criteria, sort_by)
        table = either("run" if index is None else f"run INDEXED BY {index}", "listed_run AS run")
        conditions, values = criteria.sql()
        return f"SELECT {what} FROM {table} WHERE {self.where}{conditions}", (*self.values, *values)


def of_workflow(workflow: Workflow, criteria: Criteria, view: View) -> Page[ListedRun]:
    """A page of a workflow's runs."""
    total = workflow.total_runs if criteria == ALL else None
    return _page(_workflows(workflow), criteria, view, LISTED, _listed, total)


def _workflows(workflow: Workflow) -> Scope:
    id = (workflow.id,)
    return Scope("workflow_id = ?", id, "run_count WHERE workflow_id = ?", id, BY_TIME, BY_OTHER)


def of_campaign(campaign: Campaign, criteria: Criteria, view: View) -> Page[ListedRun]:
    """A page of a campaign's runs."""
    return _page(_campaigns(campaign), criteria, view, LISTED, _listed)


def _campaigns(campaign: Campaign) -> Scope:
    id = campaign.id
    counted = (COUNTED_OF_CAMPAIGN, (campaign.workflow_id, id, id, id))
    return Scope("campaign_id = ?", (id,), *counted, "run_of_campaign", {})


def newest(workflow: Workflow, campaign: Campaign | None, criteria: Criteria, most: int) -> Page[EndedRun]:
    """The newest runs of a workflow, or of a campaign of it, at most so many; and how many there are in all."""
    scope = _workflows(workflow) if campaign is None else _campaigns(campaign)
    total = workflow.total_runs if campaign is None and criteria == ALL else None
    view = View(1, most, "created_at", True)
    return _page(scope, criteria, view, "id, state, disposition, created_at", _ended, total)


def of_organization(organization: int, criteria: Criteria, view: View) -> Page[UsedRun]:
    """A page of all runs of an organization."""
    # Its runs are those of its workflows, which are few: SQLite merges them from the indexes of workflows.
    id = (organization,)
    scope = Scope(OWNED, id, _counted_of_organization(), id, BY_TIME, BY_OTHER)
    if view.sort_by == "created_at" and not criteria.conditions:
        scope = replace(scope, where="organization_id = ?", index="run_organization_id_created_at_id")
    total = None
    if criteria == ALL:
        owned = either(
            "SELECT coalesce(sum(total_runs), 0) FROM workflow WHERE organization_id = ?",
            f"SELECT coalesce(sum(number), 0) FROM workflow_count WHERE {OWNED}",
        )
        total = int(execute(owned, organization).fetchone()[0])
    return _page(scope, criteria, view, USED, _used, total)


def _counted_of_organization() -> str:
    return COUNTED_OF_ORGANIZATION.format(either("CROSS JOIN", "JOIN"))


def _page(
    scope: Scope, criteria: Criteria, view: View, columns: str, read: Callable[[Any], Row], total: int | None = None
) -> Page[Row]:
    if total is None:
        total = count(scope, criteria)
    rows = window(total, view.page, view.limit)
    if not rows.size:
        return Page([], total)
    order = _order(view.sort_by, view.descending)
    found = _order(view.sort_by, not view.descending, nulls="FIRST") if rows.from_end else order
    chosen, values = scope.select("id", criteria, view.sort_by)
    if bound_path() is None:
        chosen, values = _chosen(scope, criteria, view, total, found, rows.offset + rows.size)
    # The size as text: PostgreSQL, which may plan without the values, would take it for a tenth of the list.
    ids = f"{chosen} ORDER BY {found} LIMIT {rows.size} OFFSET ?"
    page = execute(f"SELECT {columns} FROM run WHERE id IN ({ids}) ORDER BY {order}", *values, rows.offset)
    return Page([read(row) for row in page], total)


def _chosen(
    scope: Scope, criteria: Criteria, view: View, total: int, order: str, most: int
) -> tuple[str, tuple[Any, ...]]:
    """The beginning of PostgreSQL's statement on the ids of the runs of a page, and its values.

    :param order: that in which the runs are read, and `most`: how many of them are needed.
    """
    if total <= FEW and criteria.columns & UNORDERED:
        found, values = scope.select("id, created_at, duration, name", criteria, view.sort_by)
        return f"SELECT id FROM ({found} OFFSET 0) AS run", values
    if scope.where != OWNED:
        return scope.select("id", criteria, view.sort_by)
    # The first runs of each workflow by its index, which are few to sort.
    each = replace(scope, where="workflow_id = workflow.id", values=())
    found, values = each.select("id, created_at, duration, name", criteria, view.sort_by)
    first = f"SELECT run.* FROM workflow CROSS JOIN LATERAL ({found} ORDER BY {order} LIMIT ?) AS run"
    return f"SELECT id FROM ({first} WHERE workflow.organization_id = ?) AS run", (*values, most, *scope.values)


def _order(sort_by: str, descending: bool, nulls: str = "LAST") -> str:
    way = "DESC" if descending else "ASC"
    if sort_by == "id":
        return f"id {way}"
    # The other columns are never null, and are read quicker when that needn't be looked for.
    return f"{sort_by} {way} NULLS {nulls}, id {way}" if sort_by == "duration" else f"{sort_by} {way}, id {way}"


def count(scope: Scope, criteria: Criteria) -> int:
    """How many runs there are; from `counts.RUNS` where that says it, but for the ends of a date range."""
    if not criteria.columns <= COUNTED:
        # One about its duration alone is a range of an index.
        return _scalar(*scope.select("count(*)", criteria, "duration"))
    since, until = criteria.since, criteria.until
    # The spans that begin within the range, and end within it.
    first = None if since is None else -(-since >> counts.SPAN_BITS)
    beyond = None if until is None else (until + 1) >> counts.SPAN_BITS
    if first is not None and beyond is not None and first > beyond:
        return _scalar(*scope.select("count(*)", criteria, "created_at"))
    conditions, values = replace(criteria, since=None, until=None).sql()
    whole = f"SELECT coalesce(sum(number), 0) FROM {scope.counted}{conditions}"
    values = (*scope.counted_values, *values)
    parts = []
    if first is not None:
        whole, values = f"{whole} AND span >= ?", (*values, first)
        parts.append(replace(criteria, until=first * counts.SPAN - 1))
    if beyond is not None:
        whole, values = f"{whole} AND span < ?", (*values, beyond)
        parts.append(replace(criteria, since=beyond * counts.SPAN))
    ends = (scope.select("count(*)", part, "created_at") for part in parts)
    return sum(_scalar(statement, given) for statement, given in ((whole, values), *ends))


def _scalar(statement: str, values: tuple[Any, ...]) -> int:
    return int(execute(statement, *values).fetchone()[0])


def _instant(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def _listed(row: Sequence[Any]) -> ListedRun:
    id, workflow, name, mode, created_at, state, *shown, transcript, duration, initial, gathered = row
    began = (id, workflow, name, mode, _instant(created_at), state == "completed")
    return ListedRun._make((*began, *shown, bool(transcript), duration, Fragment(initial), Fragment(gathered)))


def _used(row: Sequence[Any]) -> UsedRun:
    *shown, state, created_at, transcript, annotations, initial, gathered = row
    price, number = _json(annotations).get("call_price"), _json(initial).get("phone_number")
    more = (state == "completed", _instant(created_at), bool(transcript), price, number)
    return UsedRun._make((*shown, *more, Fragment(initial), Fragment(gathered)))


def _ended(row: Sequence[Any]) -> EndedRun:
    id, state, disposition, created_at = row
    return EndedRun(id, state == "completed", disposition, _instant(created_at))


def _reported(row: Sequence[Any]) -> ReportedRun:
    *shown, created_at, transcript, initial, gathered, _, _ = row
    return ReportedRun._make((*shown, _instant(created_at), bool(transcript), _json(initial), _json(gathered)))


def other_dispositions(organization: int, known: Sequence[str], limit: int) -> list[str]:
    """Up to `limit` dispositions of the organization's runs that aren't in `known`, in alphabetical order."""
    found = execute(
        f"SELECT disposition FROM {_counted_of_organization()} GROUP BY disposition HAVING sum(number) > 0",
        organization,
    )
    return sorted({text for (text,) in found if isinstance(text, str) and text} - set(known))[:limit]


def dispositions_of_campaign(campaign: Campaign, limit: int) -> list[tuple[str, int]]:
    """The commonest dispositions of a campaign's completed runs, each with how many runs have it."""
    id = campaign.id
    found = execute(
        f"SELECT disposition, sum(number) FROM {COUNTED_OF_CAMPAIGN} AND state = 'completed' GROUP BY disposition "
        "HAVING sum(number) > 0 ORDER BY 2 DESC, 1 LIMIT ?",
        *(campaign.workflow_id, id, id, id),
        limit + 1,  # one of them may be that of runs without any
    )
    return [(text, int(number)) for text, number in found if isinstance(text, str) and text][:limit]


def finished(criteria: Criteria) -> Iterator[ReportedRun]:
    """Completed runs with a duration, newest first, fetched one by one."""
    return map(_reported, _newest_first(REPORTED, criteria))


def gathered(criteria: Criteria) -> Iterator[dict[str, Any]]:
    """The gathered contexts of the runs that `finished` finds, in the same order."""
    return (_json(row[0]) for row in _newest_first("gathered_context", criteria))


def has_more(criteria: Criteria, than: int) -> bool:
    """Whether `finished` finds more runs than that."""
    statement, values = _finished("1", criteria)
    return execute(f"{statement} LIMIT 1 OFFSET ?", *values, than).fetchone() is not None


def _newest_first(columns: str, criteria: Criteria) -> Iterator[Sequence[Any]]:
    statement, values = _finished(f"{columns}, created_at, id", criteria)
    order = "ORDER BY created_at DESC, id DESC"
    if bound_path() is not None:
        yield from execute(f"{statement} {order}", *values)
        return
    after: tuple[int, int] | None = None
    while True:
        rest, more = (" AND (created_at, id) < (?, ?)", after) if after else ("", ())
        rows = execute(f"{statement}{rest} {order} LIMIT {PORTION}", *values, *more).fetchall()
        yield from rows
        if len(rows) < PORTION:
            return
        after = tuple(rows[-1][-2:])


def _finished(columns: str, criteria: Criteria) -> tuple[str, tuple[Any, ...]]:
    conditions, values = criteria.sql()
    return f"SELECT {columns} FROM run WHERE state = 'completed' AND duration IS NOT NULL{conditions}", values
