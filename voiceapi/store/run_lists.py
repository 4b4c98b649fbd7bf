"""Pages of runs by filter and order, quick also for a million runs, and the runs of a report.

A page is one statement, and another one counts what isn't counted already. SQLite is told the index: it holds what
runs are filtered by, so that rows are read for the page only. PostgreSQL chooses one by its statistics, with the help
of `_select_in_postgresql`. All of it is SQL, because Peewee takes longer to build such a statement than SQLite to
answer it, and a record of 31 columns longer to make than all that is shown of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar, cast

from ..strict_json import Fragment
from . import counts
from .base import marks
from .campaigns import Campaign
from .counts import LONGEST_KEY
from .database import execute, sql
from .paging import window
from .runs import Run
from .workflows import Workflow

CHANNELS = {
    "telephony": (
        *("ari", "plivo", "twilio", "signalwire", "vonage", "vobiz", "cloudonix", "telnyx", "jambonz", "simulator"),
        *("stasis", "VOICE"),
    ),
    "web": ("webrtc", "smallwebrtc"),
    "chat": ("textchat", "CHAT"),
}


@dataclass(frozen=True, slots=True)
class Criteria:
    """What all runs of a list have in common.

    :param since: created then or later, and `until`: created then or earlier; in microseconds since 1970.
    :param conditions: in SQL, with `?` for each of `values`, which are in their stored form.
    :param columns: those that the conditions are about.
    """

    since: int | None = None
    until: int | None = None
    conditions: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    columns: frozenset[str] = frozenset()

    def __and__(self, other: Criteria) -> Criteria:
        since = [bound for bound in (self.since, other.since) if bound is not None]
        until = [bound for bound in (self.until, other.until) if bound is not None]
        return Criteria(
            max(since, default=None),
            min(until, default=None),
            self.conditions + other.conditions,
            self.values + other.values,
            self.columns | other.columns,
        )

    def sql(self) -> tuple[str, tuple[Any, ...]]:
        """All of it as SQL, each condition with an AND before it, and its values."""
        bounds = (("created_at >= ?", self.since), ("created_at <= ?", self.until))
        given = [(text, bound) for text, bound in bounds if bound is not None]
        conditions = (*(text for text, _ in given), *self.conditions)
        return "".join(f" AND {text}" for text in conditions), (*(bound for _, bound in given), *self.values)


ALL = Criteria()


def _about(column: str, condition: str, *values: Any) -> Criteria:
    return Criteria(conditions=(condition,), values=values, columns=frozenset((column,)))


def created_through(first: datetime | None, last: datetime | None) -> Criteria:
    """Created at `first` or later and at `last` or earlier."""
    return Criteria(Run.created_at.db_value(first), Run.created_at.db_value(last))


def duration_between(low: float | None, high: float | None) -> Criteria:
    """With a duration in this range, bounds included."""
    criteria = _about("duration", "duration IS NOT NULL")
    if low is not None:
        criteria &= _about("duration", "duration >= ?", low)
    if high is not None:
        criteria &= _about("duration", "duration <= ?", high)
    return criteria


def tokens_between(low: float | None, high: float | None) -> Criteria:
    """With a token cost in this range. The cost of every run is zero: all match, or none does."""
    fits = (low is None or low <= 0) and (high is None or high >= 0)
    return ALL if fits else Criteria(conditions=("1 = 0",))


def disposition_in(codes: list[str]) -> Criteria:
    """With one of these dispositions; any if there are none."""
    if long := [code[:LONGEST_KEY] for code in codes if len(code) > LONGEST_KEY]:
        # On PostgreSQL, lists go by what an index holds of a disposition, reports by the whole.
        codes = [*codes, *sql(sqlite=[], postgresql=long)]
    return _one_of("disposition", codes) if codes else ALL


def completed(yes: bool) -> Criteria:
    """Completed, or not."""
    return _about("state", "state = 'completed'" if yes else "state != 'completed'")


def is_test(yes: bool) -> Criteria:
    """A test, or not."""
    return _about("is_test", "is_test" if yes else "NOT is_test")


def column_is(name: str, value: Any) -> Criteria:
    """With this value in a column."""
    return _about(name, f"{name} = ?", value)


def column_holds(name: str, text: str) -> Criteria:
    """With this text in a column's, in either case."""
    pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    # In SQLite's `lower`, and by code points, only the letters from A to Z have two cases.
    lower = sql("lower(?)", 'lower(? COLLATE "C")')
    return _about(name, f"lower({name}) LIKE {lower} ESCAPE '\\'", f"%{pattern}%")


def channel_is(channel: str) -> Criteria:
    """With a mode of this channel, a key of CHANNELS."""
    return _one_of("mode", CHANNELS[channel])


def tagged(tags: list[str]) -> Criteria:
    """With all of these call tags."""
    if not tags:
        return ALL
    carried = "SELECT count(DISTINCT value) FROM json_each(gathered_context, '$.call_tags')"
    condition, values = sql(
        sqlite=(f"({carried} WHERE value IN ({marks(tags)})) = ?", (*tags, len(set(tags)))),
        postgresql=("tags @> ?::TEXT[]", ([tag[:LONGEST_KEY] for tag in tags],)),
    )
    return _about("gathered_context", condition, *values)


def _one_of(column: str, values: tuple[str, ...] | list[str]) -> Criteria:
    return _about(column, f"{column} IN ({marks(values)})", *values)


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
# What makes the beginning of a statement, and its values; see `Scope.select`.
Select = Callable[[str, Criteria, str], tuple[str, tuple[Any, ...]]]


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
    is_test: bool
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
    is_test: bool
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
    is_test: bool
    initial_context: dict[str, Any]
    gathered_context: dict[str, Any]


# The columns of each of them; an organization's list also names the workflow.
LISTED = """id, workflow_id, name, mode, created_at, state, call_type, version_id, caller_number, called_number,
disposition, has_transcript, is_test, duration, initial_context, gathered_context"""
USED = """id, workflow_id, (SELECT name FROM workflow WHERE workflow.id = run.workflow_id) AS workflow_name, name, mode,
call_type, caller_number, called_number, disposition, public_access_token, campaign_id, duration, state, created_at,
has_transcript, is_test, annotations, initial_context, gathered_context"""
REPORTED = """id, campaign_id, workflow_id, version_id, disposition, duration, public_access_token, created_at,
has_transcript, is_test, initial_context, gathered_context"""
_json, _instant = Run.gathered_context.python_value, cast(Callable[[int], datetime], Run.created_at.python_value)


@dataclass(frozen=True, slots=True)
class RunPage(Generic[Row]):
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

    def select(self, what: str, criteria: Criteria, sort_by: str) -> tuple[str, tuple[Any, ...]]:
        """The beginning of a statement on these runs, as far as its WHERE, and its values."""
        # The index that finds the most of it. One for another order does if all that it holds is asked for.
        is_alone = criteria.since is None and criteria.until is None and criteria.columns == {sort_by}
        index = self.sorted.get(sort_by, self.index) if is_alone or criteria == ALL else self.index
        by_key = "id" in criteria.columns
        table = sql("run" if by_key else f"run INDEXED BY {index}", "listed_run AS run")
        conditions, values = criteria.sql()
        return f"SELECT {what} FROM {table} WHERE {self.where}{conditions}", (*self.values, *values)


def of_workflow(workflow: Workflow, criteria: Criteria, view: View) -> RunPage[ListedRun]:
    """A page of a workflow's runs."""
    total = workflow.total_runs if criteria == ALL else None
    return _page(_workflows(workflow), criteria, view, LISTED, _listed, total)


def _workflows(workflow: Workflow) -> Scope:
    id = (workflow.id,)
    return Scope("workflow_id = ?", id, "run_count WHERE workflow_id = ?", id, BY_TIME, BY_OTHER)


def of_campaign(campaign: Campaign, criteria: Criteria, view: View) -> RunPage[ListedRun]:
    """A page of a campaign's runs."""
    return _page(_campaigns(campaign), criteria, view, LISTED, _listed)


def _campaigns(campaign: Campaign) -> Scope:
    id = campaign.id
    counted = (COUNTED_OF_CAMPAIGN, (campaign.workflow_id, id, id, id))
    return Scope("campaign_id = ?", (id,), *counted, "run_of_campaign", {})


def newest(workflow: Workflow, campaign: Campaign | None, criteria: Criteria, most: int) -> RunPage[EndedRun]:
    """The newest runs of a workflow, or of a campaign of it, at most so many; and how many there are in all."""
    scope = _workflows(workflow) if campaign is None else _campaigns(campaign)
    total = workflow.total_runs if campaign is None and criteria == ALL else None
    view = View(1, most, "created_at", True)
    return _page(scope, criteria, view, "id, state, disposition, created_at", _ended, total)


def tests_of(workflow: Workflow, criteria: Criteria) -> int:
    """How many runs of a workflow are tests."""
    return count(_workflows(workflow), criteria & is_test(True))


def of_organization(organization: int, criteria: Criteria, view: View) -> RunPage[UsedRun]:
    """A page of all runs of an organization."""
    # Its runs are those of its workflows, which are few: SQLite merges them from the indexes of workflows.
    id = (organization,)
    scope = Scope(OWNED, id, _counted_of_organization(), id, BY_TIME, BY_OTHER)
    if view.sort_by == "created_at" and not criteria.conditions:
        scope = replace(scope, where="organization_id = ?", index="run_organization_id_created_at_id")
    total = _total_runs(organization) if criteria == ALL else None
    return _page(scope, criteria, view, USED, _used, total)


def totals(organization: int, *, include_tests: bool) -> tuple[int, float]:
    """How many runs an organization has, and the sum of their durations in seconds."""
    # The index is all that is read: that of a million runs takes a twentieth of a second.
    table = sql("run INDEXED BY run_by_duration", "run")
    talked = f"SELECT coalesce(sum(duration), 0) FROM {table} WHERE duration > 0 AND {OWNED}"
    count, seconds = _total_runs(organization), float(execute(talked, organization).fetchone()[0])
    if include_tests:
        return count, seconds
    table = sql("run INDEXED BY run_tests", "run")
    tests = f"SELECT count(*), coalesce(sum(duration), 0) FROM {table} WHERE is_test AND organization_id = ?"
    tested, spent = execute(tests, organization).fetchone()
    return count - tested, max(0.0, seconds - float(spent))


def _total_runs(organization: int) -> int:
    owned = sql(
        "SELECT coalesce(sum(total_runs), 0) FROM workflow WHERE organization_id = ?",
        f"SELECT coalesce(sum(number), 0) FROM workflow_count WHERE {OWNED}",
    )
    return _scalar(owned, (organization,))


def _counted_of_organization() -> str:
    return COUNTED_OF_ORGANIZATION.format(sql("CROSS JOIN", "JOIN"))


def _page(
    scope: Scope, criteria: Criteria, view: View, columns: str, read: Callable[[Any], Row], total: int | None = None
) -> RunPage[Row]:
    if total is None:
        total = count(scope, criteria)
    rows = window(total, view.page, view.limit)
    if not rows.size:
        return RunPage([], total)
    order = _order(view.sort_by, view.descending)
    found = _order(view.sort_by, not view.descending, nulls="FIRST") if rows.from_end else order
    in_postgresql: Select = partial(_select_in_postgresql, scope, total, found, rows.offset + rows.size)
    select: Select = sql(sqlite=scope.select, postgresql=in_postgresql)
    chosen, values = select("id", criteria, view.sort_by)
    # The size as text: PostgreSQL, which may plan without the values, would take it for a tenth of the list.
    ids = f"{chosen} ORDER BY {found} LIMIT {rows.size} OFFSET ?"
    page = execute(f"SELECT {columns} FROM run WHERE id IN ({ids}) ORDER BY {order}", *values, rows.offset)
    return RunPage([read(row) for row in page], total)


def _select_in_postgresql(
    scope: Scope, total: int, order: str, most: int, what: str, criteria: Criteria, sort_by: str
) -> tuple[str, tuple[Any, ...]]:
    """As `Scope.select`, for a page of runs that PostgreSQL is to find by the right index.

    :param order: that in which the runs are read, and `most`: how many of them are needed.
    """
    if total <= FEW and criteria.columns & UNORDERED:
        found, values = scope.select("id, created_at, duration, name", criteria, sort_by)
        return f"SELECT {what} FROM ({found} OFFSET 0) AS run", values
    if scope.where != OWNED:
        return scope.select(what, criteria, sort_by)
    # The first runs of each workflow by its index, which are few to sort.
    each = replace(scope, where="workflow_id = workflow.id", values=())
    found, values = each.select("id, created_at, duration, name", criteria, sort_by)
    first = f"SELECT run.* FROM workflow CROSS JOIN LATERAL ({found} ORDER BY {order} LIMIT ?) AS run"
    return f"SELECT {what} FROM ({first} WHERE workflow.organization_id = ?) AS run", (*values, most, *scope.values)


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


def _listed(row: Sequence[Any]) -> ListedRun:
    id, workflow, name, mode, created_at, state, *shown, transcript, is_test, duration, initial, gathered = row
    began = (id, workflow, name, mode, _instant(created_at), state == "completed")
    rest = (bool(transcript), bool(is_test), duration, Fragment(initial), Fragment(gathered))
    return ListedRun._make((*began, *shown, *rest))


def _used(row: Sequence[Any]) -> UsedRun:
    *shown, state, created_at, transcript, is_test, annotations, initial, gathered = row
    price, number = _json(annotations).get("call_price"), _json(initial).get("phone_number")
    more = (state == "completed", _instant(created_at), bool(transcript), bool(is_test), price, number)
    return UsedRun._make((*shown, *more, Fragment(initial), Fragment(gathered)))


def _ended(row: Sequence[Any]) -> EndedRun:
    id, state, disposition, created_at = row
    return EndedRun(id, state == "completed", disposition, _instant(created_at))


def _reported(row: Sequence[Any]) -> ReportedRun:
    *shown, created_at, transcript, is_test, initial, gathered, _, _ = row
    more = (_instant(created_at), bool(transcript), bool(is_test), _json(initial), _json(gathered))
    return ReportedRun._make((*shown, *more))


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
    yield from sql(sqlite=_streamed, postgresql=_in_portions)(statement, order, values)


def _streamed(statement: str, order: str, values: tuple[Any, ...]) -> Iterator[Sequence[Any]]:
    return iter(execute(f"{statement} {order}", *values))


def _in_portions(statement: str, order: str, values: tuple[Any, ...]) -> Iterator[Sequence[Any]]:
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
