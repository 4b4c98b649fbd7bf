"""The numbers that triggers keep are those of the rows, whatever is stored, changed and deleted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voiceapi import create_app
from voiceapi.organizations import api_keys
from voiceapi.service import Service
from voiceapi.store import counts, run_criteria, run_lists
from voiceapi.store.base import insert
from voiceapi.store.campaigns import Campaign, Contact
from voiceapi.store.database import execute, write
from voiceapi.store.organizations import Organization
from voiceapi.store.run_criteria import Criteria
from voiceapi.store.run_lists import View
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
            run_criteria.created_through(*at),
            lambda run: (at[0] is None or run.created_at >= at[0]) and (at[1] is None or run.created_at <= at[1]),
        )
    ),
    "disposition": CODES.map(
        lambda codes: (run_criteria.disposition_in(codes), lambda run: not codes or run.disposition in codes)
    ),
    "status": st.booleans().map(lambda yes: (run_criteria.completed(yes), lambda run: run.is_completed == yes)),
    "duration": st.sampled_from([(None, None), (0, 1.5), (2, None)]).map(
        lambda ends: (
            run_criteria.duration_between(*ends),
            lambda run: (
                run.duration is not None
                and (ends[0] or 0) <= run.duration <= (run.duration if ends[1] is None else ends[1])
            ),
        )
    ),
    "direction": COLUMNS["call_type"].map(
        lambda way: (run_criteria.column_is("call_type", way), lambda run: run.call_type == way)
    ),
    "channel": st.sampled_from(sorted(run_criteria.CHANNELS)).map(
        lambda channel: (run_criteria.channel_is(channel), lambda run: run.mode in run_criteria.CHANNELS[channel])
    ),
    "campaign": st.integers(0, 3).map(
        lambda id: (run_criteria.column_is("campaign_id", id), lambda run: run.campaign_id == id)
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
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One database for all examples, which begin without runs: two workflows, two campaigns of the first."""
    path: Path = tmp_path_factory.mktemp("counts") / "v.db"
    app = create_app({"VOICEAPI_DATABASE": path, "VOICEAPI_WORKER": False})
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


def counted() -> Counter[tuple[Any, ...]]:
    """The runs counted in the same way as the triggers do, by Python."""
    return Counter(
        (
            run.workflow_id,
            (run.created_at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=counts.SPAN),
            b"" if run.campaign_id is None else run.campaign_id,
            "completed" if run.is_completed else "open",
            b"" if run.disposition is None else run.disposition,
            run.call_type,
            run.mode,
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
    kept = {tuple(row[:-1]): row[-1] for row in execute("SELECT * FROM run_count").fetchall()}
    assert kept == counted()
    for workflow in Workflow.select():
        assert workflow.total_runs == Run.select().where(Run.workflow == workflow).count()


def assert_counted() -> None:
    """What is kept is what counting now would find."""
    for counted in (counts.RUNS, counts.CONTACTS, counts.DELIVERIES):
        values = ", ".join(value.replace("row.", "") for value in counted.key.values())
        now = execute(f"SELECT {values}, count(*) FROM {counted.table} GROUP BY {values}").fetchall()
        assert sorted(execute(f"SELECT * FROM {counted.table}_count").fetchall(), key=repr) == sorted(now, key=repr)


CONTACT = "INTO contact (campaign_id, row, phone_number, variables, state, attempts) VALUES"
DELIVERY = """INTO delivery (organization_id, run_id, node_id, node_name, delivery_uuid, state, attempts, most_attempts,
created_at) VALUES"""


@pytest.mark.parametrize("foreign_keys", [True, False])
def test_rows_are_counted_whatever_statement_changes_them(service: Service, foreign_keys: bool) -> None:
    """Also rows that another one deletes with it, and those of a program that doesn't look at foreign keys."""
    execute("DELETE FROM contact")
    store([{"workflow": 1, "campaign": 2, "name": "a", "mode": "simulator"}] * 2)
    runs = [run.id for run in Run.select()]
    execute(f"PRAGMA foreign_keys = {foreign_keys}")
    try:
        for statement in (
            f"INSERT OR IGNORE {CONTACT} (2, 1, '+1', '{{}}', 'queued', 0), (2, 1, '+2', '{{}}', 'queued', 0)",
            f"INSERT OR ABORT {CONTACT} (2, 2, '+1', '{{}}', 'queued', 0)",
            f"INSERT {CONTACT} (2, 2, '+1', '{{}}', 'queued', 0), (2, 3, '+1', '{{}}', 'queued', 0) "
            "ON CONFLICT (campaign_id, row) DO UPDATE SET state = 'failed'",
            "UPDATE OR IGNORE contact SET state = 'skipped' WHERE row = 1",
            "UPDATE OR REPLACE contact SET state = 'completed' WHERE row = 3",
            f"INSERT {DELIVERY} (1, {runs[0]}, 'n', 'n', 'a', 'pending', 0, 0, 0), "
            f"(1, {runs[1]}, 'n', 'n', 'b', 'pending', 0, 0, 0)",
            "UPDATE delivery SET state = 'succeeded' WHERE delivery_uuid = 'b'",
            "UPDATE OR REPLACE run SET state = 'completed', disposition = 'busy'",
            f"DELETE FROM run WHERE id = {runs[0]}",
            "DELETE FROM contact WHERE row = 2",
            "DELETE FROM contact",
            "DELETE FROM delivery",
            "DELETE FROM run",
        ):
            execute(statement)
            assert_counted()
    finally:
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
    criteria, meets = run_criteria.ALL, []
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


def test_a_campaign_that_is_deleted_leaves_its_runs_counted(service: Service) -> None:
    store([{"workflow": 1, "campaign": 1, "name": "a", "mode": "simulator"}])
    with write():
        Campaign.delete().where(Campaign.id == 1).execute()
    assert {tuple(row[:-1]): row[-1] for row in execute("SELECT * FROM run_count").fetchall()} == counted()
