"""Measures conversations: the caller's wait for an answer, and how many callers may talk at once."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .callers import Job, Talk
from .load import percentile
from .model import FIRST_SENTENCE
from .processes import API, Client, Server, start_service
from .seed import endless_definition

ORIGIN = "https://voice.example.org"
ACCOUNT, TOKEN = "AC00000000000000000000000000000001", "benchmark-auth-token"
# What takes the scripted model to the next node, and a language model to an answer.
SPEECH = "Yes, please go on."
# A caller speaks so often, and the model takes so long for an answer.
EVERY_SECONDS, MODEL_SECONDS = 6.0, 1.0
# An answer should come within this time for 95 of 100 turns.
LONGEST_P95_SECONDS = 1.5
WARM_UP_SECONDS, MEASURED_SECONDS = 6.0, 12.0
FIRST, MOST, EXACTNESS = 50, 1600, 0.1
TURN_SECONDS = 5.0
# A model that streams sends so many tokens a second, and with this one the first sentence of its reply is whole.
TOKENS_A_SECOND, SECOND_BEGINS = 30, len(FIRST_SENTENCE.split()) + 1
STREAMED_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Turns:
    """How long one caller waits for an answer, in milliseconds.

    :param p50_ms: of the scripted model, which takes next to no time, as the next two.
    :param processor_ms: what such a turn takes of the service's processor time; None where that isn't known.
    :param asked_p50_ms: of a model server that answers at once, less the time that the service waited for it.
    """

    p50_ms: float
    p95_ms: float
    p99_ms: float
    processor_ms: float | None
    asked_p50_ms: float


@dataclass(frozen=True, slots=True)
class Streamed:
    """How long one caller waits for the first words of a reply of forty tokens, in milliseconds.

    :param late_p50_ms: from the model's first token of its second sentence on.
    :param whole_p50_ms: from their own words on, with a model that isn't asked to stream; `p50_ms` with one that is.
    """

    late_p50_ms: float
    p50_ms: float
    whole_p50_ms: float


@dataclass(frozen=True, slots=True)
class Step:
    """What so many callers at once got.

    :param fillers: the share of the turns that were answered with a filler first.
    :param slowest_ms: the webhook that took longest; a filler is one, too.
    :param errors: answers other than 200, or too late for Twilio, connections lost, and calls that the service ended.
    :param client: the share of a core that the process with the callers took.
    """

    callers: int
    turns: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    fillers: float
    slowest_ms: float
    errors: int
    client: float

    @property
    def is_quick(self) -> bool:
        return self.errors == 0 and self.turns > 0 and self.p95_ms <= 1000 * LONGEST_P95_SECONDS


@dataclass(frozen=True, slots=True)
class Conversations:
    """How many callers may talk at once with a model of `MODEL_SECONDS`, what they got, and what twice as many got.

    :param megabytes: the memory of the service after all steps.
    """

    capacity: int
    steps: list[Step]
    beyond: Step
    megabytes: float


def measure_turns(folder: Path, seconds: float = TURN_SECONDS) -> Turns:
    """One caller who speaks as soon as there is an answer."""
    with talking_service(folder / "turns.db") as (server, job), Client("callers") as client:
        before = server.processor_seconds()
        turns = _turns(client, job, 0.0, seconds)
        after = server.processor_seconds()
    p50, p95, p99 = (1000 * percentile(turns, part) for part in (0.5, 0.95, 0.99))
    processor = None if before is None or after is None else 1000 * (after - before) / len(turns)
    with (
        start_model(folder, 0.0) as url,
        talking_service(folder / "asked.db", LLM_URL=url) as (server, job),
        Client("callers") as client,
    ):
        asked = _turns(client, job, 0.5, seconds)
        waits = _model_waits(server)
    return Turns(p50, p95, p99, processor, 1000 * (statistics.median(asked) - statistics.median(waits)))


def measure_streamed(folder: Path, seconds: float = STREAMED_SECONDS) -> Streamed:
    """One caller who speaks as soon as there is an answer, with a model that streams and without."""
    found = {}
    with start_model(folder, 1 / TOKENS_A_SECOND, "tokens") as url:
        for stream in ("on", "off"):
            with (
                talking_service(folder / f"stream-{stream}.db", LLM_URL=url, LLM_STREAM=stream) as (_, job),
                Client("callers") as client,
            ):
                talk = _talk(client, job, callers=1, every=0.0, warm_up=1.0, seconds=seconds)
            if talk.firsts == [] or talk.ended or talk.statuses.keys() != {"200"}:
                raise RuntimeError(f"Turns were answered with {dict(talk.statuses)}; {talk.ended} calls were ended.")
            found[stream] = 1000 * statistics.median(talk.firsts)
    return Streamed(found["on"] - 1000 * SECOND_BEGINS / TOKENS_A_SECOND, found["on"], found["off"])


def _model_waits(server: Server) -> list[float]:
    """How long the service waited for its model in each of the latest calls' turns, in seconds."""
    found = []
    for run in server.ask("GET", "/workflow/1/runs")["runs"]:
        events = server.ask("GET", f"/workflow/1/runs/{run['id']}")["logs"]["realtime_feedback_events"]
        found += [event["payload"]["ttfb_seconds"] for event in events if event["type"] == "rtf-ttfb-metric"]
    return found


def _turns(client: Client, job: dict[str, Any], warm_up: float, seconds: float) -> list[float]:
    """How long each turn took, in seconds."""
    found = _talk(client, job, callers=1, every=0.0, warm_up=warm_up, seconds=seconds)
    if found.turns == [] or found.ended or found.statuses.keys() != {"200"}:
        raise RuntimeError(f"Turns were answered with {dict(found.statuses)}; {found.ended} calls were ended.")
    return found.turns


def measure_conversations(folder: Path, note: Callable[[Step], object]) -> Conversations:
    """Search the capacity by steps, each with callers of its own.

    :param note: called with each step.
    """
    with (
        start_model(folder, MODEL_SECONDS) as url,
        talking_service(folder / "conversations.db", LLM_URL=url) as (server, job),
        Client("callers") as client,
    ):

        def measured(callers: int) -> Step:
            step = measure_step(client, job, callers)
            note(step)
            return step

        steps = search(measured)
        capacity = max((step.callers for step in steps if step.is_quick), default=0)
        return Conversations(capacity, steps, measured(2 * max(capacity, FIRST)), server.resident_megabytes())


def search(measured: Callable[[int], Step]) -> list[Step]:
    """The steps to the largest number of callers that is still quick, known to a tenth of it."""
    steps = [measured(FIRST)]
    while steps[-1].is_quick and steps[-1].callers < MOST:
        steps.append(measured(2 * steps[-1].callers))
    if steps[-1].is_quick or len(steps) == 1:
        return steps
    quick, slow = steps[-2].callers, steps[-1].callers
    while slow - quick > EXACTNESS * slow:
        steps.append(measured((quick + slow) // 2))
        if steps[-1].is_quick:
            quick = steps[-1].callers
        else:
            slow = steps[-1].callers
    return steps


def measure_step(
    client: Client,
    job: dict[str, Any],
    callers: int,
    every: float = EVERY_SECONDS,
    warm_up: float = WARM_UP_SECONDS,
    seconds: float = MEASURED_SECONDS,
) -> Step:
    """What so many callers get at once."""
    found = _talk(client, job, callers=callers, every=every, warm_up=warm_up, seconds=seconds)
    p50, p95, p99 = (1000 * percentile(found.turns, part) for part in (0.5, 0.95, 0.99))
    errors = found.statuses.total() - found.statuses["200"] + found.ended
    fillers = found.fillers / max(1, len(found.turns))
    share = found.processor / (warm_up + seconds)
    return Step(callers, len(found.turns), p50, p95, p99, fillers, 1000 * found.slowest, errors, share)


def _talk(client: Client, job: dict[str, Any], **course: Any) -> Talk:
    found = client.run(vars(Job(**job, **course)))
    return Talk(**{**found, "statuses": Counter(found["statuses"])})


@contextmanager
def start_model(folder: Path, seconds: float, *options: str) -> Iterator[str]:
    """The URL of a model that answers after this time, as VOICEAPI_LLM_URL has it."""
    with Server(["-m", "benchmarks.model", str(seconds), *options], folder / "model.log") as server:
        yield f"http://127.0.0.1:{server.port}/v1"


@contextmanager
def talking_service(database: Path, **settings: str) -> Iterator[tuple[Server, dict[str, Any]]]:
    """A service whose agent answers calls through Twilio, and where its callers' webhooks go."""
    with start_service(database, PUBLIC_URL=ORIGIN, **settings) as server:
        yield server, prepare_talk(server)


def prepare_talk(server: Server) -> dict[str, Any]:
    """Create an agent that answers calls through Twilio; returns where its callers' webhooks go."""
    agent = {"name": "Agent", "workflow_definition": endless_definition()}
    workflow = server.ask("POST", "/workflow/create/definition", agent)["workflow_uuid"]
    credentials = {"provider": "twilio", "account_sid": ACCOUNT, "auth_token": TOKEN}
    # Other calls stay the simulator's.
    body = {"name": "Twilio", "config": credentials, "is_default_outbound": False}
    configuration = server.ask("POST", "/organizations/telephony-configs", body)["id"]
    return {
        "port": server.port,
        "origin": ORIGIN,
        "account": ACCOUNT,
        "token": TOKEN,
        "path": f"{API}/telephony/inbound/workflow/{workflow}",
        "speech": SPEECH,
        "status_path": f"{API}/telephony/inbound/{configuration}/status",
    }
