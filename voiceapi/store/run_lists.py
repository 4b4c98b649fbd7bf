"""Pages of runs by filter and order, quick also for a million runs, and the runs of a report.

A page is one statement, and another one counts what isn't counted already. The index is chosen here: it holds what runs
are filtered by, so that rows are read for the page only. All of it is SQL, because Peewee takes longer to build such a
statement than SQLite to answer it, and a record of 31 columns longer to make than all that is shown of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from ..strict_json import Fragment
from . import counts
from .campaigns import Campaign
from .database import execute
from .fields import EPOCH
from .paging import window
from .run_criteria import ALL, Criteria
from .runs import Run
from .workflows import Workflow

# The index of a workflow's runs by time, which also holds what they are filtered by, and those for other orders.
BY_TIME, BY_OTHER = "run_of_workflow", {"duration": "run_by_duration", "id": "run_by_id", "name": "run_by_name"}
OWNED = "workflow_id IN (SELECT id FROM workflow WHERE organization_id = ?)"
# CROSS JOIN, because SQLite keeps the order of its tables: first the workflows of an organization.
COUNTED_OF_ORGANIZATION = """workflow CROSS JOIN run_count ON run_count.workflow_id = workflow.id
WHERE workflow.organization_id = ?"""
# Of the spans of its workflow only those from the campaign's first run to its last, which SQLite finds at once.
COUNTED_OF_CAMPAIGN = f"""run_count WHERE workflow_id = ? AND campaign_id = ? AND span
BETWEEN (SELECT min(created_at) >> {counts.SPAN_BITS} FROM run WHERE campaign_id = ?)
AND (SELECT max(created_at) >> {counts.SPAN_BITS} FROM run WHERE campaign_id = ?)"""
COUNTED = frozenset(counts.RUNS.names)
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
    duration: float | None
    created_at: datetime
    has_transcript: bool
    call_price: Any
    phone_number: Any
    initial_context: Fragment
    gathered_context: Fragment


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
LISTED = """id, workflow_id, name, mode, created_at, state, call_type, version_id, has_transcript, duration,
initial_context, gathered_context"""
USED = """id, workflow_id, (SELECT name FROM workflow WHERE workflow.id = run.workflow_id), name, mode, call_type,
caller_number, called_number, disposition, public_access_token, duration, created_at, has_transcript, annotations,
initial_context, gathered_context"""
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
        """The index that finds the most of it; None for the primary key, or the database's own choice."""
        if "id" in criteria.columns or not counts.exist():
            return None
        if criteria == ALL:
            return self.sorted.get(sort_by, self.index)
        alone = criteria == replace(criteria, since=None, until=None) and criteria.columns == {sort_by}
        return self.sorted.get(sort_by, self.index) if alone else self.index

    def select(self, what: str, criteria: Criteria, sort_by: str) -> tuple[str, tuple[Any, ...]]:
        """The beginning of a statement on these runs, as far as its WHERE, and its values."""
        index = self.best_index(criteria, sort_by)
        hint = "" if index is None else f" INDEXED BY {index}"
        conditions, values = criteria.sql()
        return f"SELECT {what} FROM run{hint} WHERE {self.where}{conditions}", (*self.values, *values)


def of_workflow(workflow: Workflow, criteria: Criteria, view: View) -> Page[ListedRun]:
    """A page of a workflow's runs."""
    id = (workflow.id,)
    scope = Scope("workflow_id = ?", id, "run_count WHERE workflow_id = ?", id, BY_TIME, BY_OTHER)
    total = workflow.total_runs if criteria == ALL else None
    return _page(scope, criteria, view, LISTED, _listed, total)


def of_campaign(campaign: Campaign, criteria: Criteria, view: View) -> Page[ListedRun]:
    """A page of a campaign's runs."""
    id = campaign.id
    counted = (COUNTED_OF_CAMPAIGN, (campaign.workflow_id, id, id, id))
    scope = Scope("campaign_id = ?", (id,), *counted, "run_of_campaign", {})
    return _page(scope, criteria, view, LISTED, _listed)


def of_organization(organization: int, criteria: Criteria, view: View) -> Page[UsedRun]:
    """A page of all runs of an organization."""
    # Its runs are those of its workflows, which are few: SQLite merges them from the indexes of workflows.
    id = (organization,)
    scope = Scope(OWNED, id, COUNTED_OF_ORGANIZATION, id, BY_TIME, BY_OTHER)
    if view.sort_by == "created_at" and not criteria.conditions:
        scope = replace(scope, where="organization_id = ?", index="run_organization_id_created_at_id")
    total = None
    if criteria == ALL:
        owned = "SELECT coalesce(sum(total_runs), 0) FROM workflow WHERE organization_id = ?"
        total = int(execute(owned, organization).fetchone()[0])
    return _page(scope, criteria, view, USED, _used, total)


def _page(
    scope: Scope, criteria: Criteria, view: View, columns: str, read: Callable[[Any], Row], total: int | None = None
) -> Page[Row]:
    if total is None or not counts.exist():
        total = count(scope, criteria)
    rows = window(total, view.page, view.limit)
    if not rows.size:
        return Page([], total)
    chosen, values = scope.select("id", criteria, view.sort_by)
    order = _order(view.sort_by, view.descending)
    found = _order(view.sort_by, not view.descending, nulls="FIRST") if rows.from_end else order
    page = execute(
        f"SELECT {columns} FROM run WHERE id IN ({chosen} ORDER BY {found} LIMIT ? OFFSET ?) ORDER BY {order}",
        *(*values, rows.size, rows.offset),
    )
    return Page([read(row) for row in page], total)


def _order(sort_by: str, descending: bool, nulls: str = "LAST") -> str:
    way = "DESC" if descending else "ASC"
    if sort_by == "id":
        return f"id {way}"
    # The other columns are never null, and are read quicker when that needn't be looked for.
    return f"{sort_by} {way} NULLS {nulls}, id {way}" if sort_by == "duration" else f"{sort_by} {way}, id {way}"


def count(scope: Scope, criteria: Criteria) -> int:
    """How many runs there are; from `counts.RUNS` where that says it, but for the ends of a date range."""
    if not counts.exist() or not criteria.columns <= COUNTED:
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
    id, workflow, name, mode, created_at, state, call_type, version, transcript, duration, initial, gathered = row
    shown = (id, workflow, name, mode, _instant(created_at), state == "completed", call_type, version)
    return ListedRun._make((*shown, bool(transcript), duration, Fragment(initial), Fragment(gathered)))


def _used(row: Sequence[Any]) -> UsedRun:
    *shown, created_at, transcript, annotations, initial, gathered = row
    price, number = _json(annotations).get("call_price"), _json(initial).get("phone_number")
    more = (_instant(created_at), bool(transcript), price, number, Fragment(initial), Fragment(gathered))
    return UsedRun._make((*shown, *more))


def _reported(row: Sequence[Any]) -> ReportedRun:
    *shown, created_at, transcript, initial, gathered = row
    return ReportedRun._make((*shown, _instant(created_at), bool(transcript), _json(initial), _json(gathered)))


def other_dispositions(organization: int, known: Sequence[str], limit: int) -> list[str]:
    """Up to `limit` dispositions of the organization's runs that aren't in `known`, in alphabetical order."""
    tables = COUNTED_OF_ORGANIZATION if counts.exist() else f"run WHERE {OWNED}"
    found = execute(f"SELECT DISTINCT disposition FROM {tables}", organization)
    return sorted({text for (text,) in found if isinstance(text, str) and text} - set(known))[:limit]


def finished(criteria: Criteria) -> Iterator[ReportedRun]:
    """Completed runs with a duration, newest first, fetched one by one."""
    statement, values = _finished(REPORTED, criteria)
    return (_reported(row) for row in execute(f"{statement} ORDER BY created_at DESC, id DESC", *values))


def gathered(criteria: Criteria) -> Iterator[dict[str, Any]]:
    """The gathered contexts of the runs that `finished` finds, in the same order."""
    statement, values = _finished("gathered_context", criteria)
    return (_json(text) for (text,) in execute(f"{statement} ORDER BY created_at DESC, id DESC", *values))


def has_more(criteria: Criteria, than: int) -> bool:
    """Whether `finished` finds more runs than that."""
    statement, values = _finished("1", criteria)
    return execute(f"{statement} LIMIT 1 OFFSET ?", *values, than).fetchone() is not None


def _finished(columns: str, criteria: Criteria) -> tuple[str, tuple[Any, ...]]:
    conditions, values = criteria.sql()
    return f"SELECT {columns} FROM run WHERE state = 'completed' AND duration IS NOT NULL{conditions}", values
