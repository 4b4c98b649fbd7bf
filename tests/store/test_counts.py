"""The numbers that triggers keep are those of the rows, whatever is stored, changed and deleted."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceapi import create_app, jobs
from voiceapi.organizations import api_keys
from voiceapi.service import Service
from voiceapi.store import counts, run_lists
from voiceapi.store.base import insert
from voiceapi.store.campaigns import Campaign, Contact
from voiceapi.store.counts import Counted
from voiceapi.store.database import backend, execute, sql, write
from voiceapi.store.locks import NO_LOCK
from voiceapi.store.organizations import Organization
from voiceapi.store.run_lists import Criteria, View
from voiceapi.store.runs import Run
from voiceapi.store.workflows import Workflow
from voiceapi.workflows import versions

# Where a span begins; runs are created a little before and after this and the next ones.
BEGIN = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=counts.SPAN * 416_000)
MOMENTS = st.integers(-2, 12).map(lambda half: BEGIN + timedelta(microseconds=half * counts.SPAN // 2)) | st.integers(
    -2, 2
).map(lambda least: BEGIN + timedelta(microseconds=least))
COLUMNS = {
    "state": st.sampled_from(["prepared", "ringing", "completed"]),
    "disposition": st.sampled_from([None, "", "busy", "Thanks"]),
    "duration": st.sampled_from([None, 0.0, 1.5, 60.0]),
    "call_type": st.sampled_from(["inbound", "outbound"]),
    "mode": st.sampled_from(["simulator", "twilio", "textchat"]),
    "is_test": st.booleans(),
    "name": st.sampled_from(["a", "b", "c"]),
    "created_at": MOMENTS,
    "campaign": st.sampled_from([None, 1, 2]),
}
# The runs of a campaign are of its workflow, the first one.
ROW = st.fixed_dictionaries({**COLUMNS, "workflow": st.sampled_from([1, 2])}).map(
    lambda row: {**row, "workflow": 1} if row["campaign"] else row
)
CHANGE = st.fixed_dictionaries({}, optional=COLUMNS)
CODES = st.lists(st.sampled_from(["", "busy", "Thanks", "x"]), max_size=3)
FILTERS: dict[str, st.SearchStrategy[tuple[Criteria, Callable[[Run], bool]]]] = {
    "date": st.tuples(st.none() | MOMENTS, st.none() | MOMENTS).map(
        lambda at: (
            run_lists.created_through(*at),
            lambda run: (at[0] is None or run.created_at >= at[0]) and (at[1] is None or run.created_at <= at[1]),
        )
    ),
    "disposition": CODES.map(
        lambda codes: (run_lists.disposition_in(codes), lambda run: not codes or run.disposition in codes)
    ),
    "status": st.booleans().map(lambda yes: (run_lists.completed(yes), lambda run: run.is_completed == yes)),
    "duration": st.sampled_from([(None, None), (0, 1.5), (2, None)]).map(
        lambda ends: (
            run_lists.duration_between(*ends),
            lambda run: (
                run.duration is not None
                and (ends[0] or 0) <= run.duration <= (run.duration if ends[1] is None else ends[1])
            ),
        )
    ),
    "direction": COLUMNS["call_type"].map(
        lambda way: (run_lists.column_is("call_type", way), lambda run: run.call_type == way)
    ),
    "channel": st.sampled_from(sorted(run_lists.CHANNELS)).map(
        lambda channel: (run_lists.channel_is(channel), lambda run: run.mode in run_lists.CHANNELS[channel])
    ),
    "test": st.booleans().map(lambda yes: (run_lists.is_test(yes), lambda run: run.is_test == yes)),
    "campaign": st.integers(0, 3).map(
        lambda id: (run_lists.column_is("campaign_id", id), lambda run: run.campaign_id == id)
    ),
}
VIEWS = st.builds(
    View,
    st.integers(1, 4),
    st.integers(1, 7),
    st.sampled_from(["created_at", "duration", "name", "id"]),
    st.booleans(),
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[[Path], str]) -> Any:
    """One database for all examples, which begin without runs: two workflows, two campaigns of the first."""
    location = database_at(tmp_path_factory.mktemp("counts") / "v.db")
    app = create_app({"VOICEAPI_DATABASE": location, "VOICEAPI_WORKER": False})
    service: Service = app.extensions["voiceapi"]
    with service.store.session():
        organization = api_keys.require_organization(api_keys.DEFAULT_ORGANIZATION).id
        for _ in range(2):
            versions.create(service.vault, organization, "w", {})
        given = {"source_type": "csv", "source_id": "x", "retry_config": {}, "circuit_breaker": {}}
        for _ in range(2):
            Campaign.create(organization=organization, workflow=1, name="c", **given)
        yield service
    service.close()


def store(rows: list[dict[str, Any]]) -> None:
    execute("DELETE FROM run")
    with write():
        for number, row in enumerate(rows):
            insert(Run, organization=1, token=str(number), **row)


def kept(counted: Counted) -> Counter[tuple[Any, ...]]:
    """What is kept, before the triggers' rows are summed up on PostgreSQL and after."""
    names = ", ".join(counted.names)
    statement = f"SELECT {names}, sum(number) FROM {counted.counts} GROUP BY {names} HAVING sum(number) <> 0"

    def read() -> Counter[tuple[Any, ...]]:
        return Counter({tuple(row[:-1]): int(row[-1]) for row in execute(statement).fetchall()})

    before = read()
    if backend().is_concurrent:
        counts.fold()
        assert read() == before
        number = f"SELECT count(*), count(DISTINCT ({names})) FROM {counted.counts}"
        assert len(set(execute(number).fetchone())) == 1
    return Counter({tuple(None if value == b"" else value for value in key): before[key] for key in before})


def counted() -> Counter[tuple[Any, ...]]:
    """The runs counted in the same way as the triggers do, by Python."""
    return Counter(
        (
            run.workflow_id,
            (run.created_at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=counts.SPAN),
            run.campaign_id,
            "completed" if run.is_completed else "open",
            run.disposition,
            run.call_type,
            run.mode,
            run.is_test,
        )
        for run in Run.select()
    )


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(ROW, max_size=12),
    changes=st.lists(st.tuples(st.integers(0, 11), CHANGE | st.none()), max_size=8),
)
def test_runs_are_counted(service: Service, rows: list[dict[str, Any]], changes: list[tuple[int, Any]]) -> None:
    store(rows)
    for token, change in changes:
        chosen = Run.token == str(token)
        if change is None:
            Run.delete().where(chosen).execute()
        elif change:
            Run.update(change).where(chosen).execute()
    assert kept(counts.RUNS) == counted()
    for workflow in Workflow.select():
        assert workflow.total_runs == Run.select().where(Run.workflow == workflow).count()


def assert_counted() -> None:
    """What is kept is what counting now would find."""
    for counted in (counts.RUNS, counts.CONTACTS, counts.DELIVERIES):
        values = ", ".join(value.replace("row.", "") for value in counted.key.values())
        now = execute(f"SELECT {values}, count(*) FROM {counted.table} GROUP BY {values}").fetchall()
        assert kept(counted) == Counter({tuple(row[:-1]): row[-1] for row in now})


CONTACT = "INTO contact (campaign_id, row, phone_number, variables, state, attempts) VALUES"
DELIVERY = """INTO delivery (organization_id, run_id, node_id, node_name, delivery_uuid, state, attempts, most_attempts,
created_at) VALUES"""


@pytest.mark.parametrize("foreign_keys", [True, pytest.param(False, marks=pytest.mark.sqlite)])
def test_rows_are_counted_whatever_statement_changes_them(service: Service, foreign_keys: bool) -> None:
    """Also rows that another one deletes with it, and those of a program that doesn't look at foreign keys."""
    execute("DELETE FROM contact")
    store([{"workflow": 1, "campaign": 2, "name": "a", "mode": "simulator"}] * 2)
    runs = [run.id for run in Run.select()]
    if not backend().is_concurrent:
        execute(f"PRAGMA foreign_keys = {foreign_keys}")
    update_or_replace = sql("UPDATE OR REPLACE", "UPDATE")
    try:
        for statement in (
            f"INSERT {CONTACT} (2, 1, '+1', '{{}}', 'queued', 0), (2, 1, '+2', '{{}}', 'queued', 0) "
            "ON CONFLICT DO NOTHING",
            f"INSERT {sql('OR ABORT', '')} {CONTACT} (2, 2, '+1', '{{}}', 'queued', 0)",
            f"INSERT {CONTACT} (2, 2, '+1', '{{}}', 'queued', 0), (2, 3, '+1', '{{}}', 'queued', 0) "
            "ON CONFLICT (campaign_id, row) DO UPDATE SET state = 'failed'",
            f"{sql('UPDATE OR IGNORE', 'UPDATE')} contact SET state = 'skipped' WHERE row = 1",
            f"{update_or_replace} contact SET state = 'completed' WHERE row = 3",
            f"INSERT {DELIVERY} (1, {runs[0]}, 'n', 'n', 'a', 'pending', 0, 0, 0), "
            f"(1, {runs[1]}, 'n', 'n', 'b', 'pending', 0, 0, 0)",
            "UPDATE delivery SET state = 'succeeded' WHERE delivery_uuid = 'b'",
            f"{update_or_replace} run SET state = 'completed'",
            "UPDATE run SET disposition = 'busy'",
            "UPDATE run SET call_type = 'inbound'",
            "UPDATE run SET mode = 'twilio'",
            "UPDATE run SET campaign_id = 1",
            "UPDATE run SET created_at = 0",
            f"DELETE FROM run WHERE id = {runs[0]}",
            "DELETE FROM contact WHERE row = 2",
            "DELETE FROM contact",
            "DELETE FROM delivery",
            "DELETE FROM run",
        ):
            execute(statement)
            assert_counted()
    finally:
        if not backend().is_concurrent:
            execute("PRAGMA foreign_keys = 1")


def order(view: View) -> Callable[[Run], Any]:
    """Ascending; a run without a duration is last both ways."""
    last = float("-inf") if view.descending else float("inf")
    if view.sort_by == "duration":
        return lambda run: (last if run.duration is None else run.duration, run.id)
    return lambda run: (getattr(run, view.sort_by), run.id)


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(ROW, max_size=12), chosen=st.lists(st.sampled_from(sorted(FILTERS)), max_size=3), data=st.data())
def test_a_page_and_its_total_are_those_of_the_runs(
    service: Service, rows: list[dict[str, Any]], chosen: list[str], data: st.DataObject
) -> None:
    """Of each list, whatever it is filtered and sorted by."""
    store(rows)
    criteria, meets = run_lists.ALL, []
    for name in chosen:
        more, meet = data.draw(FILTERS[name])
        criteria &= more
        meets.append(meet)
    view = data.draw(VIEWS)
    found = sorted((run for run in Run.select() if all(meet(run) for meet in meets)), key=order(view))
    if view.descending:
        found.reverse()
    organization, workflow, campaign = Organization.get().id, Workflow.get_by_id(1), Campaign.get_by_id(2)
    lists: list[tuple[Any, Callable[[Run], bool]]] = [
        (run_lists.of_organization(organization, criteria, view), lambda run: True),
        (run_lists.of_workflow(workflow, criteria, view), lambda run: run.workflow_id == 1),
        (run_lists.of_campaign(campaign, criteria, view), lambda run: run.campaign_id == 2),
    ]
    for page, owned in lists:
        wanted = [run.id for run in found if owned(run)]
        assert page.total == len(wanted)
        assert [run.id for run in page.runs] == wanted[(view.page - 1) * view.limit : view.page * view.limit]


@settings(max_examples=40, deadline=None)
@given(
    states=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["queued", "dialing", "failed", None])), max_size=30)
)
def test_contacts_are_counted_by_state(service: Service, states: list[tuple[int, str | None]]) -> None:
    execute("DELETE FROM contact")
    for row, state in states:
        chosen = (Contact.campaign == 1) & (Contact.row == row)
        if state is None:
            Contact.delete().where(chosen).execute()
        elif not Contact.update(state=state).where(chosen).execute():
            Contact.create(campaign=1, row=row, phone_number="+1", state=state)
    assert counts.by_state(counts.CONTACTS, campaign_id=1) == Counter(contact.state for contact in Contact.select())


def test_what_begins_or_ends_with_a_span_is_counted(service: Service) -> None:
    """Of a campaign too, whose runs are looked for from the first of its spans to the last."""
    moments = [BEGIN + timedelta(microseconds=n * counts.SPAN + least) for n in range(4) for least in (-1, 0, 1)]
    store([{"workflow": 1, "campaign": 1, "name": "a", "mode": "simulator", "created_at": at} for at in moments])
    view, workflow, campaign = View(1, 50, "created_at", True), Workflow.get_by_id(1), Campaign.get_by_id(1)
    for since in (None, *moments):
        for until in (None, *moments):
            criteria = run_lists.created_through(since, until)
            wanted = sum((since or at) <= at <= (until or at) for at in moments)
            assert run_lists.of_workflow(workflow, criteria, view).total == wanted
            assert run_lists.of_campaign(campaign, criteria, view).total == wanted


def test_a_campaign_that_is_deleted_leaves_its_runs_counted(service: Service) -> None:
    store([{"workflow": 1, "campaign": 1, "name": "a", "mode": "simulator"}])
    with write():
        Campaign.delete().where(Campaign.id == 1).execute()
    assert kept(counts.RUNS) == counted()


def test_counts_stay_exact_while_many_write_at_once(service: Service) -> None:
    """Nobody waits for another's counts, nor do two ever wait for each other, while sums are made of them."""
    store([])
    execute("DELETE FROM contact")
    workers, rounds, stop = 6, 15, threading.Event()
    deadline = {"deadline_at": None, "disposition": "busy", "state": "completed"}

    def work(number: int) -> None:
        chance = random.Random(number)
        with service.store.session():
            for round in range(rounds):
                # In either order, so that waiting for a common row would be waiting for each other.
                with write(NO_LOCK):
                    made = [
                        insert(
                            Run, organization=1, workflow=id, name="a", mode="simulator", token=f"{number}-{round}-{id}"
                        )
                        for id in chance.sample([1, 2], 2)
                    ]
                    Contact.create(campaign=2, row=number * 1000 + round, phone_number="+1")
                with write(NO_LOCK):
                    for run in made:
                        Run.update(**deadline).where(Run.id == run.id).execute()
                    Contact.update(state=chance.choice(["failed", "queued"])).where(Contact.row == round).execute()
                if round % 3 == 0:
                    Run.delete().where(Run.id == made[0].id).execute()
                if round % 5 == 0:
                    with suppress(InterruptedError), write(NO_LOCK):
                        Run.delete().where(Run.id == made[1].id).execute()
                        raise InterruptedError  # what is undone isn't counted

    def fold() -> None:
        with service.store.session():
            while not stop.wait(0.01):
                if backend().is_concurrent:
                    counts.fold()

    with ThreadPoolExecutor(workers + 2) as threads:
        folding = [threads.submit(fold) for _ in range(2)]
        try:
            for done in [threads.submit(work, number) for number in range(workers)]:
                done.result()
        finally:
            stop.set()
        for done in folding:
            done.result()
    assert_counted()
    left = workers * (2 * rounds - rounds // 3)
    assert sum(workflow.total_runs for workflow in Workflow.select()) == Run.select().count() == left


@pytest.mark.postgresql
def test_transactions_that_count_the_same_run_side_by_side(service: Service) -> None:
    """The second one ends while the first is still open: neither has to wait for a row of counts."""
    store([])
    began, ended = threading.Event(), threading.Event()

    def other() -> None:
        assert began.wait(60)
        with service.store.session(), write(NO_LOCK):
            insert(Run, organization=1, workflow=1, name="b", mode="simulator", token="b")
        ended.set()

    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(other)
        with write(NO_LOCK):
            insert(Run, organization=1, workflow=1, name="a", mode="simulator", token="a")
            began.set()
            assert ended.wait(60)
            counts.fold()
            assert Workflow.get_by_id(1).total_runs == 2
        second.result()
    assert_counted()
    assert Workflow.get_by_id(1).total_runs == 2


@pytest.mark.postgresql
def test_a_job_sums_up_what_the_triggers_added(service: Service) -> None:
    class Workers:
        jobs: ClassVar[dict[str, Callable[[], object]]] = {}

        def repeat(self, _: float, job: Callable[[], object], name: str = "") -> None:
            self.jobs[name] = job

        at_stop = consume = lambda *_: None

    settings = SimpleNamespace(worker=True, keep_runs_days=None)
    jobs.register(cast(Service, SimpleNamespace(**{**vars(service), "workers": Workers(), "settings": settings})))
    store([{"workflow": 1, "name": "a", "mode": "simulator"}] * 3)
    added = "SELECT (SELECT count(*) FROM run_count WHERE is_new) + (SELECT count(*) FROM workflow_count WHERE is_new)"
    assert execute(added).fetchone()[0] > 0
    Workers.jobs["fold_counts"]()
    assert execute(added).fetchone()[0] == 0
    assert_counted()
