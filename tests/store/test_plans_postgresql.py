"""What PostgreSQL does for the queries that every request, turn or listing makes: none walks through a large table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from voiceapi import create_app
from voiceapi.campaigns.retry import FAILURES, OUTCOMES
from voiceapi.runs import lifecycle
from voiceapi.service import Service
from voiceapi.store import clock as store_clock
from voiceapi.store import dialing, logs, postcall, run_lists, runs
from voiceapi.store.base import find
from voiceapi.store.campaigns import Campaign, Contact
from voiceapi.store.database import Store
from voiceapi.store.organizations import ApiKey
from voiceapi.store.run_lists import ALL, Criteria, View
from voiceapi.store.runs import Run
from voiceapi.store.workflows import TriggerPath, Workflow, WorkflowVersion

pytestmark = pytest.mark.postgresql

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
RUNS, CONTACTS = 24_000, 12_000
# Of these no query may read more than a part.
LARGE = frozenset(("run", "contact", "decision", "event", "status_callback", "turn", "delivery", "outbound_call"))
# Two workflows, two campaigns of the first; every thousandth run is being talked.
ROWS = (
    "INSERT INTO organization (id, name, preferences, created_at) VALUES (7, 'o', '{}', 0)",
    """INSERT INTO workflow (id, organization_id, workflow_uuid, name, status, total_runs, created_at)
        SELECT n, 7, 'uuid-' || n, 'w', 'active', 0, 0 FROM generate_series(11, 12) n""",
    """INSERT INTO campaign (id, organization_id, workflow_id, name, state, source_type, source_id, retry_config,
            circuit_breaker, processed_rows, failed_rows, executed_count, total_queued_count, logs, source_status,
            breaker_reset_at, created_at)
        SELECT n, 7, 11, 'c', 'running', 'csv', 'x', '{}', '{}', 0, 0, 0, 0, '[]', 'completed', 0, 0
        FROM generate_series(21, 22) n""",
    """INSERT INTO workflow_version (id, workflow_id, version_number, status, definition, configurations,
            template_context_variables, content_hash, created_at)
        SELECT n, 11, n - 30, 'archived', '{}', '{}', '{}', '', 0 FROM generate_series(31, 32) n""",
    f"""INSERT INTO run (organization_id, workflow_id, version_id, campaign_id, name, mode, call_type, state, token,
            carrier_call_id, called_number, initial_context, gathered_context, annotations, llm_usage, disposition,
            duration, has_transcript, is_test, created_at, slot_until, check_at, deadline_at, call_id_confirmed,
            telephony_configuration_id)
        SELECT 7, 11 + n % 2, CASE WHEN n % 200 = 0 THEN 31 WHEN n % 2 = 0 THEN 32 END,
            CASE WHEN n % 4 = 0 THEN 21 WHEN n % 8 = 2 THEN 22 END, 'Run ' || n, 'twilio',
            CASE WHEN n % 3 = 0 THEN 'inbound' ELSE 'outbound' END,
            CASE WHEN n % 1000 = 0 THEN 'talking' ELSE 'completed' END, 'token-' || n, 'CA' || n, '+1202555' || n,
            '{{}}', '{{"call_tags": ["tag ' || n % 400 || '", "all"], "notes": "' || repeat('x', 300) || '"}}',
            '{{}}', '{{}}', 'code ' || n % 5, CASE WHEN n % 7 <> 0 THEN n % 600 / 2.0 END, true, false,
            {{first}} + n * 600000000::bigint, deadline, deadline, deadline, false, 1
        FROM generate_series(1, {RUNS}) n, LATERAL (
            SELECT CASE WHEN n % 1000 = 0 THEN {{first}} + n * 600000000::bigint END AS deadline) AS d""",
    f"""INSERT INTO contact (campaign_id, row, phone_number, variables, state, attempts, next_attempt_at, run_id)
        SELECT 21 + n % 2, n, '+1202555' || n, '{{{{"a": "b"}}}}', (ARRAY['queued', 'retry', 'completed'])[1 + n % 3],
            1, CASE WHEN n % 3 < 2 THEN {{first}} + n * 1000000::bigint END, n FROM generate_series(1, {CONTACTS}) n""",
    "UPDATE contact SET state = 'dialing', lease_until = next_attempt_at WHERE row % 600 = 1",
    """INSERT INTO decision (contact_id, campaign_id, at, code, reason, run_id)
        SELECT id, campaign_id, {first} + row * 1000000::bigint, code, '', run_id
        FROM contact, unnest(ARRAY['queued', 'dialed', 'answered']) code""",
    "INSERT INTO event (run_id, turn, type, payload, at) SELECT id, 1, 't', '{}', 0 FROM run",
    """INSERT INTO status_callback (run_id, status, outcome, fields, at)
        SELECT id, 's', 'completed', '{}', created_at FROM run WHERE id % 2 = 0""",
    """INSERT INTO delivery (organization_id, run_id, node_id, node_name, delivery_uuid, state, attempts, most_attempts,
            created_at, next_attempt_at)
        SELECT 7, id, 'n', 'n', 'd' || id, CASE WHEN id % 200 = 0 THEN 'pending' ELSE 'succeeded' END, 1, 5, created_at,
            CASE WHEN id % 200 = 0 THEN created_at END FROM run""",
    """INSERT INTO outbound_call (organization_id, at) SELECT 7, created_at FROM run""",
    """INSERT INTO do_not_call (organization_id, phone_number, created_at)
        SELECT 7, phone_number, 0 FROM contact WHERE row % 2 = 0""",
)
LONG = run_lists.duration_between(10, 20)
WITHIN = run_lists.created_through(FIRST + timedelta(days=20, hours=1), FIRST + timedelta(days=90, hours=2))
NUMBERS = count()
LAST_PAGE = RUNS // 2 // 20


@dataclass
class Plan:
    """What PostgreSQL did for the statements of an action."""

    indexes: set[str] = field(default_factory=set)
    # The large tables that were walked through, and how many rows or entries of large tables were read.
    walked: set[str] = field(default_factory=set)
    read: int = 0

    def add(self, node: dict[str, Any]) -> None:
        if "Index Name" in node:
            self.indexes.add(node["Index Name"])
        if node.get("Relation Name") in LARGE:
            if node["Node Type"] == "Seq Scan":
                self.walked.add(node["Relation Name"])
            removed = sum(count for name, count in node.items() if name.startswith("Rows Removed"))
            self.read += int((node["Actual Rows"] + removed) * node["Actual Loops"])
        for inner in node.get("Plans", ()):
            self.add(inner)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, database_at: Callable[[Path], str]) -> Iterator[Service]:
    """A database with so many rows that a walk through them would cost more than an index."""
    location = database_at(tmp_path_factory.mktemp("plans") / "v.db")
    service: Service = create_app({"VOICEAPI_DATABASE": location, "VOICEAPI_WORKER": False}).extensions["voiceapi"]
    first = int(FIRST.timestamp() * 1_000_000)
    with service.store.session():
        for statement in ROWS:
            service.store.database.execute_sql(
                statement.replace("{first}", str(first)).replace("{{", "{").replace("}}", "}").replace("%", "%%")
            )
        service.store.database.connection().execute("VACUUM ANALYZE")
    yield service
    service.close()


@pytest.fixture
def db(filled: Service) -> Iterator[None]:
    with filled.store.session():
        yield


@pytest.fixture
def plan_of(filled: Service, db: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Plan]:
    """Does something, and returns what PostgreSQL does for the statements of it."""
    store: Store = filled.store
    execute_sql = store.database.execute_sql

    def explain(act: Callable[[], Any], *, generic: bool = False) -> Plan:
        statements: list[tuple[str, Any]] = []

        def note(sql: str, params: Any = None, named_cursor: Any = None) -> Any:
            if sql.lstrip().startswith(("SELECT", "UPDATE", "DELETE")):
                statements.append((sql, params))
            return execute_sql(sql, params, named_cursor)

        # Of this database only: threads of other services may be at work.
        monkeypatch.setattr(store.database, "execute_sql", note)
        act()
        monkeypatch.setattr(store.database, "execute_sql", execute_sql)
        found = Plan()
        assert statements
        for sql, params in statements:
            with store.writing():
                asked, values = _prepared(store, sql, params) if generic else (sql, params)
                explained = execute_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {asked}", values)
                found.add(explained.fetchone()[0][0]["Plan"])
                store.database.rollback()
        return found

    return explain


def _prepared(store: Store, sql: str, params: Any) -> tuple[str, Any]:
    """The same with a plan that doesn't know the values, which PostgreSQL may make after a few times."""
    from psycopg.sql import Literal

    numbers, name = count(1), f"asked_{next(NUMBERS)}"
    asked = re.sub("%s", lambda _: f"${next(numbers)}", sql).replace("%%", "%")
    connection = store.database.connection()
    connection.execute(f"PREPARE {name} AS {asked}")
    connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
    values = ", ".join(Literal(value).as_string(connection) for value in params or ())
    return f"EXECUTE {name} ({values})".replace("%", "%%") if values else f"EXECUTE {name}", None


def view(sort_by: str = "created_at", page: int = 1, descending: bool = True) -> View:
    return View(page, 20, sort_by, descending)


def workflow() -> Workflow:
    return Workflow.get_by_id(11)


@pytest.mark.parametrize("page", [1, LAST_PAGE])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize(
    ("sort_by", "index"),
    [
        ("created_at", "run_of_workflow"),
        ("duration", "run_by_duration"),
        ("id", "run_by_id"),
        ("name", "run_by_name"),
    ],
)
def test_a_page_is_read_from_an_index_in_its_order(
    plan_of: Callable[..., Plan], sort_by: str, index: str, descending: bool, page: int
) -> None:
    """Nothing is counted or sorted: no more is read than the page, by its ids, and the last page isn't the longest."""
    plan = plan_of(lambda: run_lists.of_workflow(workflow(), ALL, view(sort_by, page, descending)))
    assert any(name.startswith(index) for name in plan.indexes), plan
    assert not plan.walked
    assert plan.read <= 50, plan


@pytest.mark.parametrize("sort_by", ["created_at", "duration", "id", "name"])
@pytest.mark.parametrize("descending", [True, False])
def test_the_history_of_an_organization_reads_a_page_of_each_workflow(
    plan_of: Callable[..., Plan], sort_by: str, descending: bool
) -> None:
    plan = plan_of(lambda: run_lists.of_organization(7, ALL, view(sort_by, 1, descending)))
    assert not plan.walked
    assert plan.read <= 100, plan


@pytest.mark.parametrize(
    ("criteria", "most"),
    [
        # A fifth of the runs has each of these codes.
        (run_lists.disposition_in(["code 1", "code 2"]), 400),
        (run_lists.disposition_in(["none"]), 0),
        # Most are found, or very few.
        (run_lists.completed(True), 400),
        (run_lists.completed(False), 1000),
        (WITHIN, 400),
    ],
)
def test_a_filter_by_what_is_counted_reads_a_page(plan_of: Callable[..., Plan], criteria: Criteria, most: int) -> None:
    for ask in (
        lambda: run_lists.of_workflow(workflow(), criteria, view()),
        lambda: run_lists.of_organization(7, criteria, view()),
    ):
        plan = plan_of(ask)
        assert not plan.walked
        assert plan.read <= most, plan


def test_a_range_of_durations_is_a_range_of_an_index(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(lambda: run_lists.of_workflow(workflow(), LONG, view("duration")))
    assert not plan.walked
    assert plan.read < RUNS / 20


def test_few_runs_with_a_tag_are_found_by_the_tag(plan_of: Callable[..., Plan]) -> None:
    """Once to count them, once to sort them."""
    tagged = run_lists.tagged(["tag 3", "all"])
    for ask in (
        lambda: run_lists.of_workflow(workflow(), tagged, view()),
        lambda: run_lists.of_organization(7, tagged, view("name")),
    ):
        plan = plan_of(ask)
        assert plan.indexes >= {"run_by_tag"}
        assert not plan.walked
        assert plan.read <= 4 * RUNS / 400 + 100, plan


@pytest.mark.parametrize("sort_by", ["created_at", "duration", "name"])
def test_the_runs_of_a_campaign_are_read_from_its_index(plan_of: Callable[..., Plan], sort_by: str) -> None:
    campaign = Campaign.get_by_id(22)
    for criteria in (ALL, run_lists.disposition_in(["code 1"]), LONG):
        plan = plan_of(lambda asked=criteria: run_lists.of_campaign(campaign, asked, view(sort_by)))
        assert "run_of_campaign" in plan.indexes
        assert not plan.walked
        assert plan.read <= 2 * RUNS / 8 + 50, plan


def test_a_report_is_read_in_portions_in_the_order_of_an_index(
    plan_of: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lists, "PORTION", 100)
    of_one, campaign = run_lists.column_is("workflow_id", 11), run_lists.column_is("campaign_id", 22)
    for criteria, index in ((of_one, "run_of_workflow"), (campaign, "run_of_campaign")):
        for ask in (run_lists.finished, run_lists.gathered):
            plan = plan_of(
                lambda ask=ask, criteria=criteria: [next(found) for found in [ask(criteria)] for _ in range(250)]
            )
            assert plan.indexes == {index}
            assert plan.read <= 1000
        # A walk ends after a few rows, too; PostgreSQL prefers it where a vacuum couldn't mark pages as visible to all.
        plan = plan_of(lambda criteria=criteria: run_lists.has_more(criteria, 50))
        assert plan.read <= 400


@pytest.mark.parametrize("criteria", [ALL, run_lists.disposition_in(["code 1"]), WITHIN])
def test_insights_read_the_newest_runs_by_an_index(plan_of: Callable[..., Plan], criteria: Criteria) -> None:
    campaign = Campaign.get_by_id(22)
    for of_campaign, most in ((None, 1500), (campaign, 2 * RUNS // 8 + 500)):
        plan = plan_of(lambda of_campaign=of_campaign: run_lists.newest(workflow(), of_campaign, criteria, 200))
        assert plan.indexes & {"run_of_workflow", "run_of_campaign"}, plan
        assert not plan.walked
        assert plan.read <= most, plan


@pytest.mark.parametrize("criteria", [ALL, run_lists.disposition_in(["code 0"])])
def test_insights_of_a_version_are_read_from_the_index_of_its_workflow(
    plan_of: Callable[..., Plan], criteria: Criteria
) -> None:
    """Also when they have few runs: once to count them, once to find the page, whose rows alone are read."""
    criteria &= run_lists.column_is("version_id", 31)
    plan = plan_of(lambda: run_lists.newest(workflow(), None, criteria, 200))
    assert plan.indexes == {"run_of_workflow", "run_pkey"}
    assert not plan.walked
    assert plan.read <= 2 * RUNS // 200 + 200, plan


def test_insights_read_the_logs_of_their_runs_only(plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(lambda: list(logs.logs(range(RUNS - 200, RUNS))))
    assert plan.indexes == {"event_run_id"}
    assert not plan.walked
    assert plan.read <= 400, plan


def test_dispositions_are_not_looked_for_among_the_runs(plan_of: Callable[..., Plan]) -> None:
    assert plan_of(lambda: run_lists.other_dispositions(7, ("a",), 5)).read == 0
    assert plan_of(lambda: run_lists.dispositions_of_campaign(Campaign.get_by_id(21), 5)).read <= 2


@pytest.mark.parametrize(
    "ask",
    [
        lambda: find(ApiKey, key_hash="x"),
        lambda: find(Workflow, id=11, organization=7),
        lambda: find(Workflow, workflow_uuid="x"),
        lambda: find(TriggerPath, path="x"),
        lambda: find(Run, token="x"),
        lambda: find(Run, public_access_token="x"),
        lambda: find(Run, id=3, organization=7),
        # No run has such an id, nor a number of so many bits.
        lambda: find(Run, id=2**62),
        lambda: runs.of_inbound_call(1, "CA3"),
        lambda: runs.is_over(3),
        lambda: runs.status_callbacks(4),
        lambda: runs.events(Run(id=3)),
        lambda: find(WorkflowVersion, newest_by="version_number", workflow=11),
        lambda: postcall.deliveries_of_run(5),
        lambda: run_lists.of_organization(7, run_lists.column_is("id", 3), view()),
    ],
)
def test_one_record_is_found_by_an_index(plan_of: Callable[..., Plan], ask: Callable[[], Any]) -> None:
    plan = plan_of(ask)
    assert not plan.walked
    assert plan.read <= 4, plan


IN_PROGRESS = RUNS // 1000
BY_STATE = "contact_campaign_id_state_next_attempt_at_row"


@pytest.mark.parametrize(
    ("ask", "most"),
    [
        (lambda: runs.in_progress(7), IN_PROGRESS),
        (lambda: runs.to_check(FIRST), IN_PROGRESS),
        (lambda: runs.past_deadline(FIRST), IN_PROGRESS),
        (runs.to_hang_up, IN_PROGRESS),
        (runs.ended_by_report, 4 * IN_PROGRESS),
        (lambda: runs.without_phone(FIRST, timedelta(1)), 4 * IN_PROGRESS),
        (lambda: lifecycle.correct(FIRST + timedelta(days=1000)), 3 * IN_PROGRESS),
        (lambda: runs.renew_phones("w", ["token-1", "token-2"], FIRST), IN_PROGRESS),
        (lambda: runs.release_phones("w"), IN_PROGRESS),
        (lambda: dialing.due(21, FIRST + timedelta(days=1), 10), 30),
        (lambda: dialing.due_after(21, FIRST), 10),
        (lambda: dialing.is_open(21), 10),
        (lambda: dialing.dialing(21), 100),
        (lambda: dialing.lapsed(FIRST, FIRST + timedelta(days=1000)), 40),
        (lambda: dialing.claimed(7), 80),
        (lambda: find(Contact, run_id=5), 2),
        (lambda: dialing.states(21), 0),
        (lambda: dialing.rows_read(21), 2),
        (lambda: dialing.page(21, None, 1, 50), 150),
        (lambda: dialing.page(21, None, CONTACTS // 2 // 50, 50), 150),
        (lambda: dialing.page(21, "queued", 3, 50), 300),
        (lambda: dialing.contacts_after(21, 500, None, 50), 100),
        (lambda: dialing.columns(21), 2),
        (lambda: dialing.page_of_do_not_call(7, 1, 50), 0),
        (lambda: dialing.decisions([1, 2]), 10),
        (lambda: dialing.ended_since(21, FIRST + timedelta(seconds=11_900), tuple(OUTCOMES), FAILURES), 200),
        (lambda: dialing.not_to_call(7, ["+12025552"]), 0),
        (lambda: dialing.dialed_since(7, ["+12025553"], FIRST), 10),
        (lambda: dialing.dialed_since(7, [f"+1202555{n}" for n in range(10)], FIRST), 100),
        (lambda: dialing.all_dialed(7, FIRST, FIRST + timedelta(seconds=60)), 300),
        (lambda: dialing.last_dialed_at(7), 10),
        (lambda: dialing.recall_postponed(7, FIRST, number="+12025553"), 10),
        (lambda: dialing.active(), 0),
        (lambda: store_clock.campaigns_are_ahead(FIRST), store_clock.LATEST_DECISIONS),
        (postcall.next_follow_up_at, 0),
        (postcall.next_delivery_at, 2),
        (lambda: postcall.lease_delivery(FIRST + timedelta(days=1), FIRST + timedelta(days=2)), 10),
        (lambda: postcall.lease_follow_up(FIRST, FIRST), 0),
        (lambda: postcall.deliveries_of_organization(7, "pending", 2, 20), 400),
    ],
)
def test_what_is_asked_again_and_again_reads_few_rows(
    plan_of: Callable[..., Plan], ask: Callable[[], Any], most: int
) -> None:
    plan = plan_of(ask)
    assert not plan.walked, plan
    assert plan.read <= most, plan


@pytest.mark.parametrize(
    "ask",
    [
        lambda: run_lists.of_workflow(workflow(), ALL, view()),
        lambda: run_lists.of_workflow(workflow(), ALL, view("duration", LAST_PAGE)),
        lambda: run_lists.of_workflow(workflow(), WITHIN & run_lists.disposition_in(["code 1"]), view("name")),
        lambda: run_lists.of_organization(7, run_lists.completed(True), view()),
        lambda: run_lists.of_organization(7, run_lists.tagged(["tag 3"]), view()),
        lambda: find(Run, token="x"),
        lambda: runs.of_inbound_call(1, "CA3"),
        lambda: runs.in_progress(7),
        lambda: runs.to_check(FIRST),
        lambda: runs.past_deadline(FIRST),
        lambda: dialing.due(21, FIRST + timedelta(days=1), 10),
        lambda: dialing.is_open(21),
        lambda: dialing.dialing(21),
        lambda: dialing.claimed(7),
        lambda: dialing.lapsed(FIRST, FIRST + timedelta(days=1000)),
        lambda: dialing.dialed_since(7, ["+12025553"], FIRST),
        lambda: find(Contact, run_id=5),
    ],
)
def test_a_plan_for_any_values_walks_through_no_table(plan_of: Callable[..., Plan], ask: Callable[[], Any]) -> None:
    plan = plan_of(ask, generic=True)
    assert not plan.walked, plan


def test_what_refers_to_a_run_is_found_by_an_index(filled: Service, db: None) -> None:
    """A deletion looks for it in every table that has a foreign key; a workflow's versions are never deleted."""
    found = filled.store.database.execute_sql(
        """SELECT c.conrelid::regclass::text, a.attname FROM pg_constraint c
        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
        WHERE c.contype = 'f' AND NOT EXISTS (
            SELECT 1 FROM pg_index i WHERE i.indrelid = c.conrelid AND i.indkey[0] = c.conkey[1])"""
    )
    assert set(found.fetchall()) == {("run", "version_id")}
