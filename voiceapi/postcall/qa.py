"""Reviews an ended run: for each QA node of its workflow a language model reads the transcript and judges it."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from ..engine.graph import data_of, objects
from ..engine.template import KIB64, MIB, MINUTES, Bound, TextTooLong, as_boolean, as_number, render
from ..llm import selection
from ..llm.chat_completions import ChatCompletions, Failure
from ..llm.extraction import values_in
from ..llm.wire import Completion
from ..runs.preparation import Usage, added
from ..service import Service
from ..store import runs
from ..store.fields import now
from ..store.runs import INTERRUPTED, SPEAKERS, Run
from ..workflows import node_types
from . import outbox

log = logging.getLogger("voiceapi")

# Runs shorter than this aren't reviewed, unless the node says otherwise.
DEFAULT_MIN_SECONDS = 15
# Seconds before the second attempt and before the third.
WAITS = (2.0, 4.0)
# For a node with a model of its own: the base URL and the model "default" by provider.
ENDPOINTS = {"anthropic": "https://api.anthropic.com/v1"}
DEFAULT_MODELS = {"openai": "gpt-4.1", "azure": "gpt-4.1", "openrouter": "openai/gpt-4.1"}
WHOLE = "whole_call"


class Reviewer(Protocol):
    """A model that can answer a free prompt. The scripted model can't."""

    def complete(self, system: str, user: str) -> Completion: ...


@dataclass(frozen=True)
class Reviews:
    """The results of a run's reviews: members of its annotations, and the tokens used by model."""

    annotations: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=dict)


@dataclass(frozen=True)
class ReviewContext:
    """What a review needs besides the model: time and chance, which tests replace.

    :param sleep: waits for some seconds.
    :param before_asking: called before each request to a model.
    :param roll: returns a number from 1 to 100; the run is reviewed if it is at most the node's sample rate.
    """

    sleep: Callable[[float], Any]
    before_asking: Callable[[], Any]
    roll: Callable[[], int] = lambda: secrets.randbelow(100) + 1


class NoReview(Exception):
    """A node doesn't review the run; `stored` is its annotation instead."""

    def __init__(self, **stored: Any) -> None:
        super().__init__(stored)
        self.stored = stored


def skipped(reason: str) -> NoReview:
    return NoReview(skipped=True, reason=reason)


def review(
    service: Service,
    run: Run,
    definition: Mapping[str, Any],
    configurations: Mapping[str, Any],
    before_asking: Callable[[], Any],
) -> Reviews:
    """Review the run for each enabled QA node. Call it outside any transaction, because it waits for models.

    A failure of one node is its annotation; the others are carried out.

    :param configurations: those of the workflow version, which choose its model.
    :param before_asking: called before each request to a model.
    """
    nodes = [node for node in outbox.nodes_of(definition, outbox.REVIEW) if outbox.is_review_enabled(node)]
    if not nodes:
        return Reviews()
    events = runs.events(run)
    context = ReviewContext(lambda seconds: service.workers.stopping.wait(seconds), before_asking)
    annotations: dict[str, Any] = {}
    used: Usage = {}
    for node in nodes:
        data = data_of(node)
        try:
            check_conditions(run, data, context.roll)
            reviewer = reviewer_for(service, run.organization_id, data, configurations)
            parts = parts_of(events, definition, run.duration)
            if not parts:
                raise NoReview(error="empty_transcript" if events else "no_transcript")
            annotations[f"qa_{node['id']}"], tokens = judge(reviewer, prompt_of(data), parts, context)
            used = added(used, tokens)
        except NoReview as reason:
            annotations[f"qa_{node['id']}"] = reason.stored
        except Exception as error:  # a host app's model may raise anything, and the webhooks have to be sent
            log.exception("The review of run %s at node %s failed", run.id, node["id"], extra={"run": run.id})
            annotations[f"qa_{node['id']}"] = {"error": type(error).__name__}
    annotations["tags"] = tags_of(annotations.values())
    return Reviews(annotations, used)


def check_conditions(run: Run, data: Mapping[str, Any], roll: Callable[[], int]) -> None:
    """Check that the node reviews runs of this length, answered by a person, and that the run is in its sample.

    :raises NoReview: when it doesn't.
    """
    shortest = as_number(data.get("qa_min_call_duration"))
    if run.duration is not None and run.duration < (DEFAULT_MIN_SECONDS if shortest is None else shortest):
        raise skipped("call_too_short")
    voicemail = "voicemail_detected" in (run.disposition, *run.gathered_context.get("call_tags", []))
    if voicemail and not as_boolean(data.get("qa_voicemail_calls")):
        raise skipped("voicemail")
    share = as_number(data.get("qa_sample_rate"))
    if roll() > (100 if share is None else share):
        raise skipped("not_sampled")


def prompt_of(data: Mapping[str, Any]) -> str:
    """A QA node's prompt; the default of the node type if it was never set.

    :raises NoReview: when it was set to an empty text.
    """
    prompt = data.get("qa_system_prompt")
    if prompt is None:
        properties = node_types.by_name()["qa"]["properties"]
        prompt = next(each["default"] for each in properties if each["name"] == "qa_system_prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise NoReview(error="no_system_prompt")
    return prompt


def reviewer_for(
    service: Service, organization: int | None, data: Mapping[str, Any], configurations: Mapping[str, Any]
) -> Reviewer:
    """The model that reviews for a QA node: the workflow's own, or the one that the node configures.

    :raises NoReview: when there is none that can answer a free prompt.
    """
    model: Any
    name = str(data.get("qa_model") or "default").strip()
    if as_boolean(data.get("qa_use_workflow_llm")) is False:
        model = _node_model(service, organization, data, name)
    else:
        model = selection.choose(service, organization, configurations)
        if isinstance(model, ChatCompletions) and name != "default":
            model = replace(model, model=name)
    if not callable(getattr(model, "complete", None)):
        raise skipped("no_language_model")
    reviewer: Reviewer = model
    return reviewer


def _node_model(service: Service, organization: int | None, data: Mapping[str, Any], name: str) -> Any:
    provider = str(data.get("qa_provider") or "openai").lower()
    key = data.get("qa_api_key")
    endpoint = data.get("qa_endpoint")
    if not isinstance(key, str) or not key:
        raise NoReview(error="no_api_key")
    name = DEFAULT_MODELS.get(provider, "") if name == "default" else name
    if not name or (provider == "azure" and not endpoint):
        raise NoReview(error="validation_failed")
    url = f"{str(endpoint).rstrip('/')}/openai/v1" if provider == "azure" else ENDPOINTS.get(provider)
    chosen = {"provider": provider, "model": name, "api_key": key, "base_url": url}
    return selection.from_configuration(service, chosen, organization)


# -- judging


def judge(
    reviewer: Reviewer, prompt: str, parts: Sequence[ReviewPart], context: ReviewContext
) -> tuple[dict[str, Any], Usage]:
    """The annotation of a QA node, and the tokens used by model. A part whose review fails has an `error` instead.

    Each prompt contains the summaries of the parts before. It may be 1 MiB, and each answer 64 KiB.
    """
    results: dict[str, Any] = {}
    summaries: list[str] = []
    used: Usage = {}
    model = None
    for part in parts:
        try:
            system = _filled(prompt, part, "\n".join(summaries))
            completion = _ask(reviewer, system, "\n".join(["Transcript:", *part.lines]), context)
            Bound(KIB64, "The model's answer").take(completion.text)
        except (Failure, TextTooLong) as failure:
            empty: dict[str, Any] = {"error": str(failure), "tags": [], "summary": "", "score": None}
            results[part.key] = {"node_name": part.name, **empty}
            continue
        model = completion.model.rpartition("|||")[2]
        used = added(used, {completion.model: completion.usage} if completion.usage else {})
        found = read_answer(completion.text)
        results[part.key] = {"node_name": part.name, **found}
        if found["summary"]:
            summaries.append(f"{part.name}: {found['summary']}")
    return {"node_results": results, "model": model}, used


def _filled(prompt: str, part: ReviewPart, before: str) -> str:
    values = {
        "node_summary": part.about,
        "previous_conversation_summary": before,
        "transcript": "\n".join(part.lines),
        "metrics": json.dumps(part.metrics),
    }
    return render(prompt, values, Bound(MIB, "The prompt"), now=now(), clock=MINUTES)


def _ask(reviewer: Reviewer, system: str, user: str, context: ReviewContext) -> Completion:
    """The model's answer, in up to three attempts.

    :raises Failure: after the last attempt, or at once when the failure is final.
    """
    for wait in WAITS:
        context.before_asking()
        try:
            return reviewer.complete(system, user)
        except Failure as failure:
            if failure.final:
                raise
        context.sleep(wait)
    context.before_asking()
    return reviewer.complete(system, user)


def read_answer(text: str) -> dict[str, Any]:
    """A reviewer's answer as it is stored; members that it lacks, or that aren't of the right type, are empty."""
    try:
        values = values_in(text)
    except ValueError:
        values = {}
    tags = values.get("tags")
    summary, sentiment = values.get("summary"), values.get("overall_sentiment")
    return {
        "raw_response": text,
        "tags": tags if isinstance(tags, list) else [],
        "summary": summary if isinstance(summary, str) else "",
        "score": as_number(values.get("call_quality_score")),
        "overall_sentiment": sentiment if isinstance(sentiment, str) else None,
    }


def tags_of(annotations: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of the tags in all results, each once, sorted. A tag is a name or an object with `tag` or `name`."""
    results = [result for each in annotations for result in each.get("node_results", {}).values()]
    tags = (tag for result in results for tag in result["tags"])
    names = (tag.get("tag") or tag.get("name") if isinstance(tag, dict) else tag for tag in tags)
    return sorted({name for name in names if isinstance(name, str) and name})


# -- the parts of a run that are reviewed one by one
# Every event names its node. A run with an event that doesn't is a single part.


class ReviewedEvent(Protocol):
    """An event of a run's log, stored or not."""

    @property
    def type(self) -> str: ...
    @property
    def payload(self) -> Mapping[str, Any]: ...
    @property
    def at(self) -> datetime: ...
    @property
    def node_id(self) -> str | None: ...
    @property
    def node_name(self) -> str | None: ...


@dataclass(frozen=True)
class ReviewPart:
    """What happened at a node, or in the whole run.

    :param key: the node's id, or WHOLE.
    :param about: the node's name and prompt; those of all visited nodes for WHOLE.
    :param lines: the transcript, with seconds since the run's first event.
    :param metrics: counts and times in seconds, as a reviewer's prompt may show them.
    """

    key: str
    name: str
    about: str
    lines: tuple[str, ...]
    metrics: Mapping[str, Any]


def parts_of(
    events: Sequence[ReviewedEvent], definition: Mapping[str, Any], duration: float | None
) -> list[ReviewPart]:
    """The parts of a run in the order of the nodes' first visits, without those in which nothing was said.

    :param events: all events of the run, first to last.
    :param duration: of the call, in seconds; None for a chat.
    """
    by_node: dict[str, list[ReviewedEvent]] = {}
    for event in events:
        by_node.setdefault(event.node_id or "", []).append(event)
    about = {str(node.get("id")): _about(node) for node in objects(definition, "nodes")}
    if "" in by_node:
        visited = "\n".join(about[id] for id in by_node if id in about)
        found = [ReviewPart(WHOLE, WHOLE, visited, _lines(events, events[0].at), _metrics(events, duration))]
    else:
        found = [
            ReviewPart(
                id, there[0].node_name or id, about.get(id, ""), _lines(there, events[0].at), _metrics(there, None)
            )
            for id, there in by_node.items()
        ]
    return [part for part in found if part.lines]


def _about(node: Mapping[str, Any]) -> str:
    data = data_of(node)
    return f"{data.get('name') or node.get('id')}: {data.get('prompt') or ''}".strip()


def _lines(events: Sequence[ReviewedEvent], began: datetime) -> tuple[str, ...]:
    lines = []
    for event in events:
        if event.type in SPEAKERS:
            seconds = (event.at - began).total_seconds()
            lines.append(f"[{seconds:.1f}s] {SPEAKERS[event.type]}: {event.payload.get('text', '')}")
        elif event.type == INTERRUPTED:
            lines.append(f"[the caller interrupted, and didn't hear]: {event.payload.get('unplayed', '')}")
        elif event.type == "rtf-function-call-start":
            lines.append(f"[tool_call]: {event.payload.get('function_name', '')}")
    return tuple(lines)


def _metrics(events: Sequence[ReviewedEvent], seconds: float | None) -> dict[str, Any]:
    latencies = _measured(events, "rtf-latency-measured", "latency_seconds")
    return {
        "call_duration_seconds": seconds,
        "num_turns": sum(event.type == "rtf-user-transcription" for event in events),
        "avg_latency_seconds": _mean(latencies),
        "avg_ttfb_seconds": _mean(_measured(events, "rtf-ttfb-metric", "ttfb_seconds")),
        "max_latency_seconds": max(latencies, default=None),
    }


def _measured(events: Sequence[ReviewedEvent], type: str, member: str) -> list[float]:
    values = (as_number(event.payload.get(member)) for event in events if event.type == type)
    return [float(value) for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 3) if values else None
