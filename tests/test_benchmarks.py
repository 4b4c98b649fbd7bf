"""The measurements still run against the code as it is, with a few contacts and seconds, and judge rightly."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from benchmarks import (
    conversations,
    dialing,
    embedding,
    outward,
    page,
    processes,
    rehearsal,
    relays,
    report,
    scaling,
    short,
    soak,
)
from benchmarks.cases import Case, cases
from benchmarks.conversations import Conversations, Step
from benchmarks.ledger import Ledger, Receiver, Timing, lost_writes
from benchmarks.load import Outcome
from benchmarks.measure import FEW, Row, Target, measure
from benchmarks.model import FIRST_SENTENCE, LONG_REPLY
from benchmarks.processes import KEY, Client
from benchmarks.result import Result, figures
from benchmarks.seed import Ids, endless_definition, kept, long_definition, seed, short_definition
from voiceapi import create_app

IDS = Ids(1, 2, 3, 4, 1, {1000: 5, 2000: 6})


@pytest.mark.parametrize(
    ("case", "result"),
    [("import", "20 rows in "), ("calls", "3 calls of two turns in "), ("dry run", "3 contacts over 14 days, ")],
)
@pytest.mark.long
def test_a_case_of_dialing(case: str, result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "ROWS", 20)
    monkeypatch.setattr(dialing, "CALLS", 3)
    assert dialing.measure(case, tmp_path / "voice.db").startswith(result)


@pytest.mark.long
def test_a_short_soak(tmp_path: Path) -> None:
    result = soak.soak(tmp_path, 20, 16)
    assert result.broken == []
    assert {row.kind for row in result.rows} == {"call", "campaign", "chat", "document", "list", "read", "workflow"}
    assert all(row.requests > 5 and row.errors == 0 for row in result.rows)
    assert min(sample.megabytes for sample in result.samples) > 10


@pytest.mark.long
def test_calls_over_relays_are_measured(tmp_path: Path) -> None:
    found = relays.measure(tmp_path, 6, 3, 8.0)
    assert len(found.megabytes) == 3
    assert len(found.seconds) >= 3
    assert min(*found.megabytes, *found.seconds) > 0


@pytest.mark.long
def test_conversation_cases_are_measured(tmp_path: Path) -> None:
    found = rehearsal.measure_rehearsal(tmp_path, 30, 1)
    assert found.bare_seconds > 0
    assert found.seconds > 0
    assert len(list((tmp_path / "cases").glob("*.cases.yaml"))) == len(list((tmp_path / "cases").glob("*.json")))


@pytest.mark.long
def test_a_hosts_suite_is_measured(tmp_path: Path) -> None:
    found = embedding.measure_embedding(tmp_path, 5, 1)
    assert found.once > 0
    assert {path.name for path in (tmp_path / "host-suite").iterdir()} <= {"host.py", "test_host.py", "__pycache__"}


@pytest.mark.long
def test_https_requests_are_measured(tmp_path: Path) -> None:
    found = outward.measure_outward(tmp_path, 20)
    assert min(found.kept_ms, found.new_ms) > 0  # which is less is for a quiet machine to say


def test_a_soak_finds_what_was_lost(workflow: Callable[..., Any], db: None) -> None:
    ledger, receiver = Ledger(), Receiver()
    kept = workflow(name="Kept")["id"]
    prompt = "Great, goodbye."
    ledger.workflows = {kept: ("Kept", prompt), kept + 1: ("Lost", prompt)}
    ledger.calls, ledger.chats = {7: "+12025550123"}, {8: ["Yes."]}
    ledger.campaigns, ledger.not_to_call, ledger.documents = {9: ["+12025550123"]}, {"+12025550124"}, {"u": "digest"}
    found = lost_writes(ledger, receiver)
    receiver.close()
    assert found == [
        f"Workflow {kept + 1} isn't named 'Lost', or has no node with {prompt!r}.",
        "Run 7 doesn't call +12025550123.",
        "Chat 8 hasn't ['Yes.'], but [].",
        "+12025550124 isn't on the do-not-call list.",
        "Document u is another.",
        "Campaign 9 is gone.",
    ]


def test_a_soak_finds_growth() -> None:
    level = [soak.Sample(at, 100 + at % 3, 50, 170) for at in range(600)]
    assert soak.growth(level) == []
    assert "MB in the second half" in soak.growth([soak.Sample(at, 100 + at / 20, 50, 170) for at in range(600)])[0]
    assert soak.growth([soak.Sample(at, 100, 50 + at // 30, 170) for at in range(600)]) == [
        "There were 69 threads in the last quarter, and 64 in the third."
    ]


def test_a_soak_counts_errors_and_bare_refusals() -> None:
    timings = {"call": Timing([0.1] * 4, {200: 1, 429: 1, 503: 1, 500: 1}, without_retry_after=1)}
    assert soak.errors(timings) == [
        "1 answers to the kind call were 500.",
        "1 answers to the kind call didn't say when to come again.",
    ]


def test_what_is_measured_has_its_defaults_and_compiled_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = {"PATH": "/bin", "PYTHONHASHSEED": "1"}
    changed = {
        **usual,
        "PYTHONDONTWRITEBYTECODE": "1",
        "VOICEAPI_LLM_URL": "http://127.0.0.1:1",
        "VOICEAPI_SECRET": "x",
    }
    monkeypatch.setattr(os, "environ", changed)
    processes.use_defaults()
    assert changed == usual


# -- the seeded runs


def sent(client: FlaskClient, case: Case) -> Any:
    """The answer to a case's raw request."""
    head, _, body = case.request.partition("\r\n\r\n")
    method, path, _ = head.splitlines()[0].split()
    return client.open(path, method=method, data=body, content_type="application/json" if body else None)


@pytest.fixture
def few_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.seed.LONG", (5, 10))


@pytest.mark.usefixtures("few_nodes")
def test_every_case_is_answered_and_a_page_is_as_large_as_one_of_real_runs(tmp_path: Path) -> None:
    ids = seed(tmp_path / "voice.db", 120)
    app = create_app({"VOICEAPI_DATABASE": tmp_path / "voice.db", "VOICEAPI_API_KEY": KEY, "VOICEAPI_WORKER": "off"})
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = KEY
    answer = client.get(f"/api/v1/workflow/{ids.workflow}/runs")
    answers = {case.name: sent(client, case) for case in cases(ids, 120)}
    app.extensions["voiceapi"].close()
    assert {name: answer.status for name, answer in answers.items()} == {
        case.name: {"200": "200 OK", "404": "404 NOT FOUND"}[case.status] for case in cases(ids, 120)
    }
    listed = {name: answer.get_json()["total_count"] for name, answer in answers.items() if ", " in name}
    assert listed == {**dict.fromkeys(listed, 120), "runs, date range": 13}
    assert 60_000 < len(answer.data) < 65_000
    gathered = answer.get_json()["runs"][1]["gathered_context"]
    assert gathered.keys() >= {"call_id", "call_tags", "call_disposition", "extracted_variables", "nodes_visited"}
    assert gathered["extracted_variables"].keys() == {"guests", "summary"}


@pytest.mark.parametrize("made", [long_definition(5), endless_definition(), short_definition()])
def test_what_is_measured_is_valid(client: FlaskClient, made: dict[str, Any]) -> None:
    agent = client.post("/api/v1/workflow/create/definition", json={"name": "Agent", "workflow_definition": made})
    found = client.post(f"/api/v1/workflow/{agent.get_json()['id']}/validate").get_json()
    assert (found["is_valid"], found["errors"]) == (True, [])


@pytest.mark.usefixtures("few_nodes")
@pytest.mark.long
def test_a_database_of_many_runs_is_kept(tmp_path: Path) -> None:
    database, ids = kept(tmp_path / "new", 3)
    made = database.stat().st_mtime_ns
    assert kept(tmp_path / "new", 3) == (database, ids)
    assert database.stat().st_mtime_ns == made
    # As a run that was interrupted leaves it.
    database.with_suffix(".json").unlink()
    assert kept(tmp_path / "new", 3) == (database, ids)
    assert database.stat().st_mtime_ns > made


# -- ratios


class Machine:
    """A load and a server in one, which answers at the rates that are given for each case, slice by slice."""

    def __init__(self, **rates: list[float]) -> None:
        # The first one is the warm-up.
        self.rates = {name: iter([1.0, *given]) for name, given in rates.items()}

    def send(self, server: str, request: str, seconds: float, connections: int) -> Outcome:
        return Outcome(1.0, [0.01] * int(next(self.rates[server])), Counter({"200": 1}))


def test_a_ratio_is_the_median_of_slices_each_compared_with_the_bare_route_around_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        Target, "measure", lambda self, load, *job: self.slices.append(load.send(self.server, "", *job))
    )
    # The machine is busy in the third slice, and something else slows down the service alone in the last one.
    load: Any = Machine(bare=[100, 100, 60, 50, 100, 100], few=[50, 50, 25, 50, 5], many=[40, 40, 20, 45, 5])
    case = cases(IDS, FEW)[0]
    targets = [Target("few", case, FEW), Target("many", case, 9000)]  # type: ignore[arg-type]
    few, many = measure(load, "bare", targets, 2.5, 8)  # type: ignore[arg-type]
    assert (few.ratio, few.share) == (pytest.approx(0.5), None)
    assert (many.ratio, many.share) == (pytest.approx(0.4), pytest.approx(0.8))
    assert few.rate == 36


# -- docs/performance.md

RATIOS = """# Performance

## Measured

### Ratios to a bare Flask route

| case | before | now | aim |
|---|---|---|---|
| health | 0.92 | 0.94 | 0.95 |
| runs, first page | 0.037 | 0.30 | 0.25 |

### Long lists

| case | before | now | aim |
|---|---|---|---|
| runs, first page | 0.98 | 0.99 | 0.95 |

## How to read it

Slowly.
"""


def test_the_page_states_a_ratio_of_each_case_that_has_an_aim() -> None:
    named = [case.name for case in cases(IDS, FEW) if case.aim is not None]
    assert list(page.stated_ratios(page.read())) == named


def test_the_stated_ratios_are_those_of_now() -> None:
    assert page.stated_ratios(RATIOS) == {"health": 0.94, "runs, first page": 0.30}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("### Ratios to", "### Shares of", "The page has no table under"),
        ("| now |", "| today |", "has no column 'now'"),
        ("0.94", "fast", "has no number for 'health'"),
        ("| 0.92 | 0.94 | 0.95 |", "|", "has no number for 'health'"),
    ],
)
def test_a_page_without_ratios_is_an_error(old: str, new: str, complaint: str) -> None:
    with pytest.raises(page.PageError, match=complaint):
        page.stated_ratios(RATIOS.replace(old, new))


def test_a_ratio_has_fallen_below_two_thirds() -> None:
    stated = {"health": 0.9, "fetch": 0.6}
    assert page.fallen(stated, {"health": 0.61, "fetch": 0.9}) == []
    assert page.fallen(stated, {"health": 0.59, "fetch": 0.41}) == [
        "health: a ratio of 0.590 is below 0.600, two thirds of 0.9."
    ]
    assert page.fallen(stated, {"health": 0.9, "create": 0.5}) == [
        "fetch: the page states a ratio of 0.6, but there is no such case.",
        "create: the page states no ratio of this case.",
    ]


def test_a_case_that_fell_is_measured_again() -> None:
    measured = {"health": [0.9], "fetch": [0.2, 0.3, 0.25, 0.39, 0.1, 1.0], "reactivate": [0.3, 0.4]}
    stated, lines, passed = dict.fromkeys(measured, 0.6), list[str](), 0.0

    def ratio(case: Case) -> float:
        nonlocal passed
        passed += short.PATIENCE_SECONDS / 7.5
        return measured[case.name].pop(0)

    wanted = [case for case in cases(IDS, FEW) if case.name in measured]
    found = short.best(wanted, stated, ratio, lines.append, lambda: passed)
    assert found == {"health": 0.9, "fetch": 0.39, "reactivate": 0.4}
    assert measured == {"health": [], "fetch": [1.0], "reactivate": []}
    assert (len(lines), passed) == (8, 8 * short.PATIENCE_SECONDS / 7.5)
    assert page.fallen(stated, found) == ["fetch: a ratio of 0.390 is below 0.400, two thirds of 0.6."]


def row(case: str, runs: int, connections: int, ratio: float, share: float | None = None) -> Row:
    return Row(case, runs, connections, 900.0, 1.0, 2.0, 3.0, 250.0, 3000.0, ratio, share, client=0.1, wrong=0)


def test_what_is_written_into_the_page_is_read_from_it() -> None:
    rows = [
        row("health", FEW, 8, 0.9312),
        row("runs, first page", FEW, 8, 0.0471),
        row("runs, first page", 10_000, 8, 0.05, 0.987),
        row("health", FEW, 1, 0.8),
    ]
    step = Step(50, 100, 1010.0, 1100.0, 1200.0, 0.0, 1050.0, 0, 0.01)
    talked = Conversations(50, [step, replace(step, callers=100, p95_ms=1900.0)], replace(step, callers=100), 80.0)
    result = Result(10_000, rows, conversations=talked)
    found = figures(result, cases(IDS, FEW))
    section = report.markdown(result, found, {"Long lists: runs, first page": 0.5}, "python -m benchmarks")
    text = page.with_section(RATIOS, section)
    assert page.stated_ratios(text) == {"health": 0.93, "runs, first page": 0.047}
    assert "| runs, first page | 0.50 | 0.99 | 0.95 |" in text
    assert "| conversations at once with a model of 1 s |  | 50 | 300 |" in text
    assert "| 100 | 100 | 1.01 | 1.10 | 1.20 | 0% | 1.1 | 0 |" in text
    assert text.startswith("# Performance\n\n## Measured\n")
    assert text.endswith("\n## How to read it\n\nSlowly.\n")
    assert page.with_section(text, section) == text
    with pytest.raises(page.PageError, match="no section"):
        page.with_section("# Performance\n", section)


@pytest.mark.parametrize(
    ("path", "heading", "least"), [(page.SHOWING[0], "Figures", 4), (page.SHOWING[1], "When to move", 2)]
)
def test_the_figures_of_other_pages_are_those_of_the_page(path: Path, heading: str, least: int) -> None:
    section = path.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows_of_two = [found.groups() for line in section.splitlines(keepends=True) if (found := page.ROW.fullmatch(line))]
    rows = [[cell.strip() for cell in line.split("|")] for line in page.read().splitlines() if line.startswith("| ")]
    stated = {cells[1]: cells[3] for cells in rows if len(cells) > 4}
    shown = {name: value for name, value in rows_of_two if name in stated}
    assert len(shown) >= least
    assert shown.items() <= stated.items()


def test_the_figures_of_a_text_are_replaced_by_their_names() -> None:
    text = "| | |\n|---|---|\n| start, s | 0.7 |\n| other | 3 |\n| start, s | 0.7 | more |\n"
    assert page.with_figures(text, {"start, s": "0.4", "end": "1"}) == text.replace("| 0.7 |\n", "| 0.4 |\n")


def test_a_figure_reaches_its_aim_as_it_is_shown() -> None:
    result = Result(10_000, [row("health", FEW, 8, 0.947), row("fetch", FEW, 8, 0.594)], long={1000: 50.4, 2000: 120.0})
    result.linted = {1000: 199.0, 2000: 440.0}
    result.rehearsal = rehearsal.Rehearsal(2.0, 0.5)
    of_cases = [figure for figure in figures(result, cases(IDS, FEW)) if figure.group == "Conversation cases"]
    assert [(figure.label, figure.text, figure.is_reached) for figure in of_cases] == [
        ("voiceapi test with 500 cases, s", "2.00", True),
        ("the same beside voiceapi --version, times as long", "4.00", True),
    ]
    result.rehearsal, result.outward = None, outward.Outward(1.8, 3.0)
    of_requests = [figure for figure in figures(result, []) if figure.group == "Requests to other servers"]
    assert [(figure.text, figure.is_reached) for figure in of_requests] == [("1.80", True), ("0.60", True)]
    result.outward = None
    found = {figure.name: figure.is_reached for figure in figures(result, cases(IDS, FEW))}
    assert found == {
        "health": True,
        "fetch": False,
        "validate 1000 nodes, p50": True,
        "validate 2000 nodes": False,
        "lint 1000 nodes, p50": True,
        "lint 1000 nodes": False,
        "lint 2000 nodes": False,
    }


# -- conversations


@pytest.mark.parametrize("capacity", [40, 93, 310, 10_000])
def test_the_search_for_the_capacity(capacity: int) -> None:
    def measured(callers: int) -> Step:
        return Step(callers, 100, 1010.0, 1040.0 if callers <= capacity else 1700.0, 1900.0, 0.0, 1050.0, 0, 0.01)

    found = conversations.search(measured)
    quick = max((step.callers for step in found if step.is_quick), default=0)
    assert quick <= capacity
    assert quick >= min(0.88 * capacity, conversations.MOST) or capacity < conversations.FIRST
    assert len(found) <= 8


def test_errors_are_beyond_the_capacity_however_quick() -> None:
    step = Step(50, 100, 1010.0, 1100.0, 1200.0, 0.0, 1050.0, 0, 0.01)
    assert step.is_quick
    assert not replace(step, errors=1).is_quick
    assert not replace(step, turns=0).is_quick
    assert not replace(step, p95_ms=1501.0).is_quick


@pytest.mark.long
def test_beyond_its_capacity_the_service_answers_fillers_and_no_errors(tmp_path: Path) -> None:
    """Twenty callers, each of whom the model keeps waiting most of the time, on eight threads."""
    with (
        conversations.start_model(tmp_path, 0.8) as url,
        conversations.talking_service(tmp_path / "voice.db", LLM_URL=url, THREADS="8") as (_, job),
        Client("callers") as client,
    ):
        few = conversations.measure_step(client, job, 2, every=1.0, warm_up=1.0, seconds=3.0)
        many = conversations.measure_step(client, job, 20, every=1.0, warm_up=1.0, seconds=5.0)
    assert (few.errors, few.fillers) == (0, 0.0)
    assert few.p50_ms > 800
    assert many.errors == 0
    assert many.fillers > 0
    assert many.turns > few.turns


@pytest.mark.long
def test_processes_on_both_databases(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(scaling, "PROCESSES", (1, 2))
    monkeypatch.setattr(scaling, "CONTACTS", 20)
    monkeypatch.setattr("sys.argv", ["scaling", "--seconds", "0.3", "--rounds", "1"])
    assert scaling.main() == 0
    lines = capsys.readouterr().out.splitlines()
    [head] = [line for line in lines if line.startswith("| a second |")]
    assert head.endswith(
        "| SQLite, 1 process | SQLite, 2 processes | PostgreSQL, 1 process | PostgreSQL, 2 processes |"
    )
    for case in scaling.ALL:
        begin = f"| {case} |"
        rows = [line.removeprefix(begin) for line in lines if line.startswith(begin)]
        rates, processor = (re.findall(r"[0-9.]+", row) for row in rows)
        assert (len(rates), rates[1]) == (8, "1.00"), case
        assert len(processor) == 6, case
        assert min(map(float, (*rates, *processor))) > 0, case


def test_what_was_done_a_second_is_a_multiple_within_its_round() -> None:
    def site(name: str, rates: list[float]) -> Any:
        slices = [scaling.Slice(round(rate), 1.0, rate / 1000, 0.0) for rate in rates]
        found = scaling.Site(name, 1, "", None, IDS, {}, None)  # type: ignore[arg-type]
        found.slices[scaling.READ] = slices
        return found

    # The machine is busy in the second round, which hits both alike.
    sites = [site("SQLite", [100, 50, 110]), site("PostgreSQL", [90, 45, 99])]
    assert list(scaling.table(sites, [scaling.READ]))[2] == "| an agent is read | 100 (1.00) | 90 (0.90) |"
    assert list(scaling.processor_table(sites, [scaling.READ]))[2] == "| an agent is read | 1.00 | 1.00 |"


@pytest.mark.long
def test_a_turn_without_a_model(tmp_path: Path) -> None:
    found = conversations.measure_turns(tmp_path, seconds=1.0)
    assert 0 < found.p50_ms <= found.p95_ms <= found.p99_ms


@pytest.mark.long
def test_streamed_replies(tmp_path: Path) -> None:
    found = conversations.measure_streamed(tmp_path, seconds=3.0)
    assert (LONG_REPLY.count(" "), FIRST_SENTENCE.count(" ")) == (39, 11)
    assert found.late_p50_ms > 0
    assert found.whole_p50_ms > 40 / conversations.TOKENS_A_SECOND
