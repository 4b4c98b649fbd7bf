"""Measures 1, 2 and 4 processes on SQLite and on PostgreSQL: `.venv/bin/python -m benchmarks.scaling`.

docs/scaling.md explains what is measured and how to read it; `--page` writes its table.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import page
from .callers import Job, Talk
from .calls import IN_PROGRESS
from .cases import cases, trigger_case
from .conversations import prepare_talk
from .hosts import SECRET, Gunicorn, children, dialing, family_seconds, pin
from .mixed import form
from .postgresql_server import Server as PostgreSQLServer
from .processes import PATIENCE_SECONDS, ROOT, Client, Load, use_defaults
from .seed import TRIGGER_PATH, Ids, seed, short_definition

PAGE = ROOT / "docs" / "scaling.md"
PROCESSES = (1, 2, 4)
RUNS, CONNECTIONS, ROUNDS, SECONDS, SHORT_SECONDS = 1_000, 16, 5, 1.5, 0.6
CONTACTS, CONCURRENCY = 600, 50
# As a server is set up that keeps its data.
AS_USUAL = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "autovacuum": "on"}
# Connections are made anew after so many requests: a process takes what comes while it is the first to look, so of 16
# connections that stay sometimes all are one process's.
MOST_REQUESTS = 20
# What a case is called in the table, and the case of `benchmarks.cases` that it is.
REQUESTS = {
    "an agent is read": "fetch",
    "a page of 50 runs is read": "runs, first page",
    "an agent is created": "create",
}
READ = "an agent is read"
CALLS, TURNS, DIALING = "calls by trigger", "turns of calls", "calls of a campaign"
ALL = (*REQUESTS, TURNS, CALLS, DIALING)
# Two processes on two cores are to serve at least so many times the reads of one process on one core; `--short` asks
# for two thirds of that.
AIM = 1.7


@dataclass(frozen=True)
class Slice:
    """What was done in a moment: how much, in how many seconds, and what that took of processor time.

    :param service: the processor's seconds of all processes of voiceapi, and `database` those of PostgreSQL.
    """

    done: int
    seconds: float
    service: float
    database: float

    @property
    def rate(self) -> float:
        return self.done / self.seconds


@dataclass
class Site:
    """Some processes on a database, and what was measured of them by case.

    :param job: where the webhooks of callers go.
    :param postmaster: the process id of PostgreSQL; None on SQLite, and where it is somebody else's.
    """

    name: str
    processes: int
    location: str
    server: Gunicorn
    ids: Ids
    job: dict[str, Any]
    postmaster: int | None
    slices: dict[str, list[Slice]] = field(default_factory=dict)

    def measure(self, case: str, act: Callable[[], int]) -> Slice:
        """Carry out `act`, which returns how much it did, and keep what it took.

        :raises RuntimeError: when that was nothing.
        """
        before, began = self._computed(), time.perf_counter()
        done = act()
        seconds, after = time.perf_counter() - began, self._computed()
        if not done:
            raise RuntimeError(f"Nothing was done in a moment, at {case}: --seconds has to be larger.")
        found = Slice(done, seconds, *(late - early for late, early in zip(after, before, strict=True)))
        self.slices.setdefault(case, []).append(found)
        return found

    def _computed(self) -> tuple[float, float]:
        database = 0.0 if self.postmaster is None else family_seconds(self.postmaster)
        return family_seconds(self.server.pid), database

    @property
    def pids(self) -> list[int]:
        return [self.server.pid, *([] if self.postmaster is None else [self.postmaster])]


@dataclass
class Bench:
    """The clients of a measurement, and how long and how often each case is loaded."""

    load: Load
    callers: Client
    seconds: float
    rounds: int

    def act(self, case: str, site: Site) -> Callable[[], int]:
        """What loads a site for a moment, and returns how much was done."""
        if case == CALLS:
            return lambda: self._by_trigger(site)
        if case == TURNS:
            return lambda: self._turns(site)
        request = next(each.request for each in cases(site.ids, RUNS) if each.name == REQUESTS[case])
        return lambda: self._send(site, request)

    def _send(self, site: Site, request: str) -> int:
        outcome = self.load.send(site.server, request, self.seconds, CONNECTIONS, MOST_REQUESTS)
        if outcome.statuses.keys() != {"200"}:
            raise RuntimeError(f"Requests were answered with {dict(outcome.statuses)}.")
        return len(outcome.latencies)

    def _by_trigger(self, site: Site) -> int:
        placed = self._send(site, trigger_case(TRIGGER_PATH).request)
        wait(lambda: site.server.ask("GET", f"/organizations/usage/runs?limit=1&filters={IN_PROGRESS}")["total_count"])
        return placed

    def _turns(self, site: Site) -> int:
        job = Job(**site.job, callers=CONNECTIONS, every=0.0, warm_up=0.0, seconds=2 * self.seconds, most=MOST_REQUESTS)
        found = self.callers.run(vars(job))
        talk = Talk(**{**found, "statuses": Counter(found["statuses"])})
        if talk.statuses.keys() != {"200"} or talk.ended:
            raise RuntimeError(f"Webhooks were answered with {dict(talk.statuses)}; {talk.ended} calls were ended.")
        return len(talk.turns)


def wait(goes_on: Callable[[], Any]) -> None:
    """:raises RuntimeError: when it takes too long."""
    deadline = time.monotonic() + 10 * PATIENCE_SECONDS
    while goes_on():
        if time.monotonic() > deadline:
            raise RuntimeError("The calls don't end.")
        time.sleep(0.05)


def measure_requests(bench: Bench, sites: Sequence[Site], wanted: Iterable[str], note: Callable[[str], object]) -> None:
    """Load the sites one after the other, in each round all of them, so that a busy moment hits all alike."""
    for case in wanted:
        for site in sites:
            bench.act(case, site)()  # to warm up
        for _ in range(bench.rounds):
            for site in sites:
                found = site.measure(case, bench.act(case, site))
                note(f"{case:<28}{site.name:<12}{site.processes} processes {found.rate:8.0f} a second")


def measure_dialing(sites: Sequence[Site], folder: Path, note: Callable[[str], object]) -> None:
    """Have as many dialers as a site has processes call the contacts of a campaign."""
    for site in sites:
        agent = {"name": "Campaign", "workflow_definition": short_definition()}
        workflow = site.server.ask("POST", "/workflow/create/definition", agent)["id"]
        fields = {"name": "Benchmark", "workflow_id": workflow, "max_concurrency": CONCURRENCY}
        people = "".join(f"+1202{2000000 + row},Name {row}\n" for row in range(CONTACTS))
        content, kind = form(fields, "list.csv", f"phone_number,name\n{people}".encode())
        campaign = site.server.ask("POST", "/campaign/create/csv", content, kind)["id"]
        with dialing(site.location, site.processes, folder):

            def dial(site: Site = site, campaign: int = campaign) -> int:
                site.server.ask("POST", f"/campaign/{campaign}/start")
                wait(lambda: site.server.ask("GET", f"/campaign/{campaign}/progress")["state"] != "completed")
                return CONTACTS

            found = site.measure(DIALING, dial)
        note(f"{DIALING:<28}{site.name:<12}{site.processes} dialers   {found.rate:8.0f} a second")


def measure_cores(bench: Bench, sites: Sequence[Site], note: Callable[[str], object]) -> dict[str, float]:
    """How many times the reads of one process on one core two processes on two cores serve, by database.

    All that takes part is on these cores: the service, the database and the client.
    """
    cores = sorted(os.sched_getaffinity(0))
    clients, found = [bench.load.pid], {}
    for name in dict.fromkeys(site.name for site in sites):
        one, two = (next(s for s in sites if (s.name, s.processes) == (name, count)) for count in (1, 2))
        ratios = []
        for _ in range(bench.rounds):
            rates = []
            for site, count in ((one, 1), (two, 2)):
                pin([*site.pids, *clients], cores[:count])
                rates.append(site.measure(f"{READ}, on {count} of the cores", bench.act(READ, site)).rate)
            ratios.append(rates[1] / rates[0])
        pin([*one.pids, *two.pids, *clients], cores)
        found[name] = statistics.median(ratios)
        note(f"{name}: two processes on two cores serve {found[name]:.2f} times the reads of one on one core.")
    return found


def table(sites: Sequence[Site], wanted: Iterable[str]) -> Iterator[str]:
    """What was done a second, and as a multiple of one process on SQLite; the median of the rounds."""
    first = sites[0]
    heads = [f"{site.name}, {site.processes} process{'' if site.processes == 1 else 'es'}" for site in sites]
    yield f"| a second | {' | '.join(heads)} |"
    yield f"|---|{'---|' * len(heads)}"
    for case in wanted:
        cells = []
        for site in sites:
            pairs = zip(site.slices[case], first.slices[case], strict=True)
            ratio = statistics.median(own.rate / base.rate for own, base in pairs)
            cells.append(f"{statistics.median(each.rate for each in site.slices[case]):.0f} ({ratio:.2f})")
        yield f"| {case} | {' | '.join(cells)} |"


def processor_table(sites: Sequence[Site], wanted: Iterable[str]) -> Iterator[str]:
    """What one of a kind takes of processor time: that of the service, and that of PostgreSQL beside it."""
    heads = [f"{site.name}, {site.processes}" for site in sites]
    yield f"| processor ms for each | {' | '.join(heads)} |"
    yield f"|---|{'---|' * len(heads)}"
    for case in wanted:
        cells = []
        for site in sites:
            done = sum(each.done for each in site.slices[case])
            own, other = (
                1000 * sum(getattr(each, part) for each in site.slices[case]) / done for part in ("service", "database")
            )
            cells.append(f"{own:.2f} + {other:.2f}" if site.postmaster is not None else f"{own:.2f}")
        yield f"| {case} | {' | '.join(cells)} |"


def memory_table(sites: Sequence[Site]) -> Iterator[str]:
    """What is resident, shared pages counted once, in each process that answers requests."""
    yield "| MB of a process | " + " | ".join(f"{site.name}, {site.processes}" for site in sites) + " |"
    yield f"|---|{'---|' * len(sites)}"
    found = [statistics.mean(map(proportional_megabytes, children(site.server.pid))) for site in sites]
    yield "| its share of what is resident | " + " | ".join(f"{each:.0f}" for each in found) + " |"


def proportional_megabytes(pid: int) -> float:
    """The resident memory of a process, in which what n processes share counts as an n-th."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return float("nan")
    return next(int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("Pss:"))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description="Measure several processes.")
    parser.add_argument(
        "--database", metavar="URL", help="an empty PostgreSQL database, instead of a server of its own"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"how long a moment is ({SECONDS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how many moments there are of each ({ROUNDS})")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the cases that have this in their names")
    parser.add_argument("--short", action="store_true", help="only look whether two cores serve more than one")
    parser.add_argument("--page", action="store_true", help="write the tables into docs/scaling.md")
    return parser.parse_args()


def main() -> int:
    """Print what was measured. With `--short` the exit code is 1 if two cores serve less than expected."""
    options = _options()
    use_defaults()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sites = list(_sites(stack, folder, options.database, (1, 2) if options.short else PROCESSES))
        seconds = SHORT_SECONDS if options.short else options.seconds
        bench = Bench(stack.enter_context(Load()), stack.enter_context(Client("callers")), seconds, options.rounds)
        if options.short:
            return 0 if _is_more(bench, sites) else 1
        wanted = [case for case in ALL if options.only in case]
        measure_requests(bench, sites, [case for case in wanted if case != DIALING], _say)
        if DIALING in wanted:
            measure_dialing(sites, folder, _say)
        cores = measure_cores(bench, sites, _say) if len(os.sched_getaffinity(0)) > 1 else {}
        lines = [*table(sites, wanted), "", *processor_table(sites, wanted), "", *memory_table(sites), ""]
        lines += [f"* {name}: {times:.2f} times the reads on two cores as on one" for name, times in cores.items()]
    _say("\n" + "\n".join(lines))
    if options.page:
        PAGE.write_text(page.with_section(PAGE.read_text(encoding="utf-8"), "\n".join(lines)), encoding="utf-8")
    return 0


def _is_more(bench: Bench, sites: Sequence[Site]) -> bool:
    """Whether two cores serve more than one; looked at again for a while, because a machine may be busy otherwise."""
    until, best = time.monotonic() + PATIENCE_SECONDS, dict[str, float]()
    while True:
        for name, times in measure_cores(bench, sites, _say).items():
            best[name] = max(times, best.get(name, 0.0))
        is_enough = min(best.values()) >= page.LEAST_SHARE * AIM
        if is_enough or time.monotonic() > until:
            return is_enough


def _say(line: str) -> None:
    print(line, flush=True)


def _sites(stack: ExitStack, folder: Path, url: str | None, processes: Sequence[int]) -> Iterator[Site]:
    """All processes on both databases, each of which has the same runs."""
    postmaster, location = None, url
    if location is None:
        postgresql = PostgreSQLServer(AS_USUAL)
        stack.callback(postgresql.close)
        postgresql.execute("CREATE DATABASE benchmark")
        location = postgresql.url("benchmark")
        assert postgresql.process is not None
        postmaster = postgresql.process.pid
    for name, where, server in (("SQLite", str(folder / "voice.db"), None), ("PostgreSQL", location, postmaster)):
        ids = seed(where, RUNS, SECRET=SECRET)
        job: dict[str, Any] = {}
        for count in processes:
            gunicorn = stack.enter_context(Gunicorn(where, count, folder / f"{name}-{count}.log"))
            job = {**(job or prepare_talk(gunicorn)), "port": gunicorn.port}
            yield Site(name, count, where, gunicorn, ids, job, server)


if __name__ == "__main__":
    sys.exit(main())
