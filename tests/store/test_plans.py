"""What SQLite does for the queries that every request or every listing makes: an index answers each of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from voiceapi.campaigns.retry import FAILURES, OUTCOMES
from voiceapi.organizations import api_keys
from voiceapi.runs import lifecycle
from voiceapi.service import Service
from voiceapi.store import dialing, logs, postcall, run_lists, runs
from voiceapi.store.base import find, reload
from voiceapi.store.campaigns import Campaign, Contact
from voiceapi.store.organizations import ApiKey
from voiceapi.store.postcall import Delivery
from voiceapi.store.run_lists import ALL, Criteria, View
from voiceapi.store.runs import Run, RunEvent
from voiceapi.store.workflows import TriggerPath, Workflow, WorkflowVersion
from voiceapi.workflows import versions

pytestmark = pytest.mark.sqlite

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
RUNS = 400


@pytest.fixture
def workflow(service: Service, db: None, talk: Callable[..., dict[str, Any]]) -> Workflow:
    """One of two, with ten pages of runs each."""
    organization = api_keys.require_organization(api_keys.DEFAULT_ORGANIZATION).id
    wanted, other = (versions.create(service.vault, organization, name, talk())[0] for name in ("wanted", "other"))
    rows = [
        {
            "organization": organization,
            "workflow": wanted if number % 2 else other,
            "name": f"run {number}",
            "mode": "simulator",
            "token": f"token-{number}",
            "state": "completed",
            "duration": None if number % 7 == 0 else number % 50,
            "created_at": FIRST + timedelta(hours=number),
        }
        for number in range(RUNS)
    ]
    Run.insert_many(rows).execute()
    return reload(wanted)


@pytest.fixture
def plans(service: Service, db: None) -> Iterator[Callable[[Callable[[], Any]], list[str]]]:
    """Does something, and tells the plan of every query of it, one line each."""
    connection = service.store.database.connection()

    def explain(act: Callable[[], Any], covering: bool = False) -> list[str]:
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        act()
        connection.set_trace_callback(None)
        found = []
        for statement in statements:
            if statement.startswith(("SELECT", "UPDATE")):
                steps = connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
                found.append("; ".join(_plainly(step[3], covering) for step in steps))
        return found

    yield explain
    connection.set_trace_callback(None)


def _plainly(step: str, covering: bool) -> str:
    """Without the table's name and a subquery's number; and without saying that an index covers what is asked for."""
    named = re.sub(r"^SEARCH \w+", "SEARCH t", re.sub(r"SUBQUERY \d+", "SUBQUERY", step))
    return named if covering else named.replace("COVERING ", "")


def view(sort_by: str = "created_at", page: int = 1, descending: bool = True) -> View:
    return View(page, 20, sort_by, descending)


LAST = RUNS // 2 // 20
ROWS = "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"
WITHIN = run_lists.created_through(FIRST + timedelta(days=2), FIRST + timedelta(days=4))
LONG = run_lists.duration_between(10, 20)


def page_of(ids: str) -> str:
    """The plan of a page: its ids by `ids`, then their rows, which are sorted for the answer."""
    return f"{ROWS}; LIST SUBQUERY; {ids}; USE TEMP B-TREE FOR ORDER BY"


def of_workflow(index: str, more: str = "") -> str:
    return f"SEARCH t USING INDEX {index} (workflow_id=?{more})"


@pytest.mark.parametrize("page", [1, LAST // 2, LAST])
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
    workflow: Workflow, plans: Callable[..., list[str]], sort_by: str, index: str, descending: bool, page: int
) -> None:
    """Nothing is counted, and only the page is sorted: its query is the only one."""
    asked = view(sort_by, page, descending)
    # Rows are found in the order of their ids, which needs no sort.
    expected = page_of(of_workflow(index)).removesuffix("; USE TEMP B-TREE FOR ORDER BY" if sort_by == "id" else "")
    assert plans(lambda: run_lists.of_workflow(workflow, ALL, asked)) == [expected]


def test_the_totals_read_an_index_and_no_run(workflow: Workflow, plans: Callable[..., list[str]]) -> None:
    organization = workflow.organization_id
    durations = [number % 50 for number in range(RUNS) if number % 7]
    assert run_lists.totals(organization, include_tests=True) == (RUNS, sum(durations))
    newest = Run.select().order_by(Run.id.desc()).limit(10)
    Run.update(is_test=True).where(Run.id.in_(newest)).execute()
    tested = [run.duration or 0 for run in newest]
    assert run_lists.totals(organization, include_tests=False) == (RUNS - 10, sum(durations) - sum(tested))
    found = plans(lambda: run_lists.totals(organization, include_tests=False), covering=True)
    talked = "SEARCH t USING COVERING INDEX run_by_duration (workflow_id=? AND duration>?); LIST SUBQUERY"
    assert found[1].startswith(talked)
    assert "run" not in found[0].replace("total_runs", "")
    assert found[2] == "SEARCH t USING COVERING INDEX run_tests (organization_id=?)"


def test_a_date_range_is_counted_from_spans_but_for_its_ends(
    workflow: Workflow, plans: Callable[..., list[str]]
) -> None:
    ranged = of_workflow("run_of_workflow", " AND created_at>? AND created_at<?")
    spans = "SEARCH t USING PRIMARY KEY (workflow_id=? AND span>? AND span<?)"
    found = plans(lambda: run_lists.of_workflow(workflow, WITHIN, view()))
    assert found == [spans, ranged, ranged, page_of(ranged)]


@pytest.mark.parametrize(
    ("criteria", "counted", "sort_by", "ids"),
    [
        (run_lists.disposition_in(["a", "b"]), ["run_count"], "created_at", "run_of_workflow"),
        (run_lists.completed(False), ["run_count"], "created_at", "run_of_workflow"),
        (run_lists.is_test(False), ["run_count"], "created_at", "run_of_workflow"),
        (run_lists.completed(True), ["run_count"], "duration", "run_of_workflow sorted"),
        (run_lists.disposition_in(["a"]) & WITHIN, ["run_count", *["run_of_workflow"] * 2], "name", "sorted"),
        (LONG, ["run_by_duration"], "duration", "run_by_duration"),
        (LONG, ["run_by_duration"], "created_at", "run_of_workflow"),
        (LONG & WITHIN, ["run_of_workflow"], "duration", "run_of_workflow sorted"),
        (LONG & run_lists.disposition_in(["a"]), ["run_of_workflow"], "name", "run_of_workflow sorted"),
        (run_lists.tokens_between(1, 2), ["run_count"], "created_at", None),
    ],
)
def test_no_filter_reads_the_rows_of_more_runs_than_it_shows(
    workflow: Workflow,
    plans: Callable[..., list[str]],
    criteria: Criteria,
    counted: list[str],
    sort_by: str,
    ids: str | None,
) -> None:
    """The columns that it needs are all in the index, as an index that is called covering shows."""
    organization = workflow.organization_id
    Run.update(disposition="a").execute()
    Run.update(state="talking").where(Run.id < 50).execute()
    ways: list[Callable[[], Any]] = [
        lambda: run_lists.of_workflow(workflow, criteria, view(sort_by)),
        lambda: run_lists.of_organization(organization, criteria, view(sort_by)),
    ]
    for ask in ways:
        *counts, page = plans(ask, covering=True) if ids else (*plans(ask, covering=True), None)
        for plan, table in zip(counts, counted, strict=True):
            expected = "USING PRIMARY KEY (workflow_id=?" if table == "run_count" else f"COVERING INDEX {table} "
            assert expected in plan, plan
        if ids is not None:
            assert page is not None
            first = page.split("; ")[2]
            assert "COVERING INDEX run_by_duration " in first or "COVERING INDEX run_of_workflow " in first, page
            assert ids.removesuffix("sorted").strip() in first
            if ask is ways[0]:
                assert page.count("TEMP B-TREE") == 1 + ids.endswith("sorted"), page


@pytest.mark.parametrize("sort_by", ["created_at", "duration", "name"])
def test_the_runs_of_a_campaign_are_read_from_its_index(
    workflow: Workflow, plans: Callable[..., list[str]], sort_by: str
) -> None:
    campaign = Campaign(id=1, workflow=workflow)
    Run.update(campaign=_campaign(workflow), disposition="a").where(Run.workflow == workflow).execute()
    by_time = "SEARCH t USING COVERING INDEX run_of_campaign (campaign_id=?)"
    spans = "SEARCH t USING PRIMARY KEY (workflow_id=? AND span>? AND span<?)" + f"; SCALAR SUBQUERY; {by_time}" * 2
    for criteria, counted in ((ALL, spans), (run_lists.disposition_in(["a"]), spans), (LONG, by_time)):
        first, page = plans(lambda asked=criteria: run_lists.of_campaign(campaign, asked, view(sort_by)), covering=True)
        assert first == counted
        assert by_time in page


def _campaign(workflow: Workflow) -> Campaign:
    given = {"source_type": "csv", "source_id": "x", "retry_config": {}, "circuit_breaker": {}}
    return Campaign.create(id=1, organization=workflow.organization_id, workflow=workflow, name="c", **given)


@pytest.mark.parametrize(
    ("sort_by", "ids"),
    [
        ("created_at", "SEARCH t USING INDEX run_organization_id_created_at_id (organization_id=?)"),
        ("duration", of_workflow("run_by_duration")),
        ("id", of_workflow("run_by_id")),
        ("name", of_workflow("run_by_name")),
    ],
)
def test_the_history_of_an_organization_is_read_from_an_index(
    workflow: Workflow, plans: Callable[..., list[str]], sort_by: str, ids: str
) -> None:
    total, page = plans(lambda: run_lists.of_organization(workflow.organization_id, ALL, view(sort_by)))
    assert total == "SEARCH t USING INDEX workflow_organization_id (organization_id=?)"
    assert page.split("; ")[2] == ids


def test_one_run_of_the_history_is_found_by_its_id(workflow: Workflow, plans: Callable[..., list[str]]) -> None:
    by_id = run_lists.column_is("id", 3)
    counted, page = plans(lambda: run_lists.of_organization(workflow.organization_id, by_id, view()))
    assert counted.startswith(ROWS)
    assert page.split("; ")[2] == ROWS


def test_a_report_is_read_in_the_order_of_an_index(workflow: Workflow, plans: Callable[..., list[str]]) -> None:
    of_one, campaign = (run_lists.column_is(f"{name}_id", 1) for name in ("workflow", "campaign"))
    ordered = [of_workflow("run_of_workflow"), "SEARCH t USING INDEX run_of_campaign (campaign_id=?)"]
    for criteria, plan in zip((of_one, campaign), ordered, strict=True):
        for ask in (run_lists.finished, run_lists.gathered):
            assert plans(lambda ask=ask, criteria=criteria: list(ask(criteria))) == [plan]
        assert plans(lambda criteria=criteria: run_lists.has_more(criteria, 5)) == [plan]


def test_insights_read_the_newest_runs_and_their_logs_by_indexes(
    workflow: Workflow, plans: Callable[..., list[str]]
) -> None:
    """However many runs and events there are; a campaign's by its own index."""
    by_time = of_workflow("run_of_workflow")
    campaign = _campaign(workflow)
    assert plans(lambda: run_lists.newest(workflow, None, ALL, 50)) == [page_of(by_time)]
    chosen = run_lists.disposition_in(["a"])
    Run.update(disposition="a", campaign=campaign, version=1).execute()
    *_, page = plans(lambda: run_lists.newest(workflow, None, chosen, 50), covering=True)
    assert page.split("; ")[2] == by_time.replace("USING", "USING COVERING")
    # Those of a version are counted, and looked for, in the index alone, whatever else they are filtered by.
    of_version = run_lists.column_is("version_id", 1)
    for criteria in (of_version, of_version & chosen, of_version & LONG):
        counted, page = plans(lambda asked=criteria: run_lists.newest(workflow, None, asked, 50), covering=True)
        assert counted == page.split("; ")[2] == by_time.replace("USING", "USING COVERING")
    *_, page = plans(lambda: run_lists.newest(workflow, campaign, ALL, 50))
    assert page == page_of("SEARCH t USING INDEX run_of_campaign (campaign_id=?)")
    # One statement measures the logs, and one reads them.
    RunEvent.create(run=3, turn=0, type="t", payload={})
    assert plans(lambda: list(logs.logs([3, 2, 1]))) == ["SEARCH t USING INDEX event_run_id (run_id=?)"] * 2


def test_dispositions_are_not_looked_for_among_the_runs(workflow: Workflow, plans: Callable[..., list[str]]) -> None:
    (plan,) = plans(lambda: run_lists.other_dispositions(workflow.organization_id, ("a",), 5))
    assert "; SEARCH t USING PRIMARY KEY (workflow_id=?); " in plan


@pytest.mark.parametrize(
    ("ask", "plan"),
    [
        (lambda: find(ApiKey, key_hash="x"), "SEARCH t USING INDEX api_key_key_hash (key_hash=?)"),
        (lambda: find(Workflow, id=1, organization=1), ROWS),
        (lambda: find(Workflow, workflow_uuid="x"), "SEARCH t USING INDEX workflow_workflow_uuid (workflow_uuid=?)"),
        (lambda: find(TriggerPath, path="x"), "SEARCH t USING INDEX trigger_path_path (path=?)"),
        (lambda: find(Run, token="x"), "SEARCH t USING INDEX run_token (token=?)"),
        (
            lambda: runs.of_inbound_call(1, "CA1"),
            "SEARCH t USING INDEX run_one_inbound_call (telephony_configuration_id=? AND carrier_call_id=?)",
        ),
        (
            lambda: find(WorkflowVersion, newest_by="version_number", workflow=1),
            "SEARCH t USING INDEX workflow_version_workflow_id_version_number (workflow_id=?)",
        ),
    ],
)
def test_one_record_is_found_by_an_index(
    workflow: Workflow, plans: Callable[..., list[str]], ask: Callable[[], Any], plan: str
) -> None:
    assert plans(ask) == [plan]


def test_the_calls_in_progress_are_counted_without_walking_through_all_runs(
    workflow: Workflow, plans: Callable[..., list[str]]
) -> None:
    found = plans(lambda: runs.in_progress(workflow.organization_id))
    assert found == ["SEARCH t USING INDEX run_in_progress (organization_id=? AND slot_until>?)"]


def test_the_sweeper_looks_at_the_calls_in_progress_only(workflow: Workflow, plans: Callable[..., list[str]]) -> None:
    few = "SCAN t1 USING INDEX run_in_progress"
    assert plans(lambda: runs.to_check(FIRST)) == [f"{few}; USE TEMP B-TREE FOR ORDER BY"]
    assert plans(lambda: runs.past_deadline(FIRST)) == [few]
    assert plans(runs.to_hang_up) == [few]
    for ask in (runs.ended_by_report, lambda: runs.without_phone(FIRST, timedelta(1))):
        assert plans(ask)[0].startswith(few)


def test_a_clock_that_was_set_back_is_noticed_without_walking_through_all_runs(
    workflow: Workflow, plans: Callable[..., list[str]]
) -> None:
    found = plans(lambda: lifecycle.correct(FIRST))
    assert len(found) == len(lifecycle.FURTHEST)
    assert all("INDEX run_in_progress" in plan for plan in found), found


BY_ROW = "contact_campaign_id_row"
BY_STATE = "contact_campaign_id_state_next_attempt_at_row"
BY_CODE = "decision_campaign_id_code_at"


@pytest.mark.parametrize(
    ("ask", "indexes"),
    [
        (lambda: dialing.due(1, FIRST, 10), [BY_STATE, BY_STATE]),
        (lambda: dialing.due_after(1, FIRST), [BY_STATE, BY_STATE]),
        (lambda: dialing.is_open(1), [BY_STATE] * 3),
        (lambda: dialing.dialing(1), [BY_STATE]),
        (lambda: dialing.lapsed(FIRST, FIRST), ["contact_leased"]),
        (lambda: dialing.claimed(1), ["contact_leased"]),
        (lambda: find(Contact, run_id=1), ["contact_run"]),
        (lambda: dialing.states(1), ["PRIMARY KEY"]),
        (lambda: dialing.rows_read(1), [BY_ROW]),
        (lambda: dialing.page(1, None, 1, 50), ["PRIMARY KEY"]),
        (lambda: dialing.page_of_do_not_call(1, 1, 50), ["do_not_call_organization_id_phone_number"]),
        (lambda: dialing.decisions([1, 2]), ["decision_contact_id"]),
        (lambda: dialing.ended_since(1, FIRST, tuple(OUTCOMES), FAILURES), [BY_CODE]),
        (lambda: dialing.not_to_call(1, ["+1"]), ["do_not_call_organization_id_phone_number"]),
        (lambda: dialing.dialed_since(1, ["+1"], FIRST), ["contact_phone_number"]),
        (lambda: dialing.dialed_since(1, ["+1"] * 100, FIRST), ["contact_phone_number"]),
        (lambda: dialing.active(), ["campaign_active"]),
        (lambda: dialing.all_contacts(1), ["contact_campaign_id_row"]),
    ],
)
def test_the_dialer_asks_its_indexes(
    plans: Callable[..., list[str]], ask: Callable[[], Any], indexes: list[str]
) -> None:
    """Each question begins at an index, and none about a whole campaign sorts."""
    found = plans(ask)
    assert len(found) == len(indexes), found
    for plan, index in zip(found, indexes, strict=True):
        assert re.match(rf"(SEARCH|SCAN|MULTI-INDEX OR).*USING (INDEX )?{index}\b", plan), plan
        few = index in ("contact_phone_number", "decision_contact_id")
        assert few or "TEMP B-TREE" not in plan, plan


@pytest.mark.parametrize(("state", "index"), [(None, BY_ROW), ("queued", BY_STATE)])
@pytest.mark.parametrize("number", [1, 3, 5])
def test_a_page_of_contacts_is_read_from_an_index(
    workflow: Workflow, plans: Callable[..., list[str]], state: str | None, index: str, number: int
) -> None:
    campaign = _campaign(workflow)
    for row in range(100):
        Contact.create(campaign=campaign, row=row, phone_number="+1", next_attempt_at=FIRST)
    counted, page = plans(lambda: dialing.page(campaign.id, state, number, 20))
    assert counted == "SEARCH t USING PRIMARY KEY (campaign_id=?)"
    assert page.split("; ")[2].startswith(f"SEARCH t USING INDEX {index} (campaign_id=?")
    assert page.count("TEMP B-TREE") == 1


def test_a_page_of_deliveries_takes_four_queries(workflow: Workflow, plans: Callable[..., list[str]]) -> None:
    for number in range(100):
        given = {"run": 2 * number + 1, "node_id": "n", "node_name": "n", "delivery_uuid": str(number)}
        Delivery.create(organization=workflow.organization_id, state="dead_letter", **given)

    def ask() -> None:
        found, total = postcall.deliveries_of_organization(workflow.organization_id, "dead_letter", 2, 20)
        assert (len(found), total) == (20, 100)
        postcall.workflows_of(found)
        postcall.attempts_of(found)

    counted, page, runs, attempts = plans(ask)
    assert counted == "SEARCH t USING PRIMARY KEY (organization_id=?)"
    assert page.split("; ")[2] == "SEARCH t USING INDEX delivery_organization_id_state (organization_id=? AND state=?)"
    assert runs == ROWS
    assert attempts.startswith("SEARCH t USING INDEX sqlite_autoindex_delivery_attempt_1 (delivery_id=?)")


def test_a_dry_run_finds_what_was_dialed_in_a_day_without_reading_the_rest(plans: Callable[..., list[str]]) -> None:
    (plan,) = plans(lambda: dialing.all_dialed(1, FIRST, FIRST))
    assert f"INDEX {BY_CODE} (campaign_id=? AND code=? AND at>? AND at<?)" in plan
    (plan,) = plans(lambda: dialing.last_dialed_at(1))
    assert f"INDEX {BY_CODE} (campaign_id=? AND code=?)" in plan
    assert "TEMP B-TREE" not in plan


def test_an_attempt_that_is_given_back_looks_at_one_number(plans: Callable[..., list[str]]) -> None:
    (plan,) = plans(lambda: dialing.recall_postponed(1, FIRST, number="+1"))
    assert "INDEX contact_phone_number (phone_number=?)" in plan


def test_what_follows_ended_runs_is_found_among_few_rows(workflow: Workflow, plans: Callable[..., list[str]]) -> None:
    moment = FIRST + timedelta(days=1)
    # A scan of an index that stops at its first entry, the earliest.
    assert plans(postcall.next_follow_up_at) == ["SCAN t1 USING INDEX follow_up_due_at"]
    assert plans(postcall.next_delivery_at) == ["SEARCH t USING INDEX delivery_due (next_attempt_at>?)"]
    by_time = "USING INDEX"
    (plan,) = plans(lambda: postcall.lease_follow_up(moment, moment))
    assert "SCAN" not in plan
    assert f"{by_time} follow_up_due_at (due_at<?)" in plan
    (plan,) = plans(lambda: postcall.lease_delivery(moment, moment))
    assert "SCAN" not in plan
    assert f"{by_time} delivery_due (next_attempt_at<?)" in plan
