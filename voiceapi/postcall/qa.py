"""QA nodes: a language model reads what was said in an ended run, part by part, and judges it.

A part is what happened at one node of the workflow, since every event carries its node; a run with an event that
doesn't is judged as a whole.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from ..engine.graph import data_of, objects
from ..engine.template import render
from ..engine.values import as_boolean, as_number
from ..llm import selection
from ..llm.chat_completions import ChatCompletions, Failure
from ..llm.extraction import values_in
from ..llm.wire import Completion
from ..runs.runs import Usage, added
from ..service import Service
from ..store import runs
from ..store.fields import now
from ..store.runs import Event, Run
from ..workflows import node_types
from . import outbox

log = logging.getLogger("voiceapi")

WHOLE = "whole_call"
SHORTEST_SECONDS = 15
# Seconds before the second attempt and before the third.
WAITS = (2.0, 4.0)
SPEAKERS = {"rtf-user-transcription": "user", "rtf-bot-text": "assistant"}
# What a reviewer of its own may leave open: where it is asked, and which model "default" is.
ENDPOINTS = {"anthropic": "https://api.anthropic.com/v1"}
DEFAULT_MODELS = {"openai": "gpt-4.1", "azure": "gpt-4.1", "openrouter": "openai/gpt-4.1"}


class Reviewer(Protocol):
    """A model that can be asked a plain question. The scripted one can't: it only follows a workflow."""

    def complete(self, system: str, user: str) -> Completion: ...


@dataclass(frozen=True)
class Reviews:
    """What the reviews of a run found: members of its annotations, and the tokens they took, by model."""

    annotations: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """What happened at a node, or in the whole run.

    :param about: what the node is for, in its author's words.
    """

    key: str
    name: str
    about: str
    lines: tuple[str, ...]
    metrics: Mapping[str, Any]


@dataclass(frozen=True)
class ReviewContext:
    """What a review needs of the world.

    :param roll: a number from 1 to 100, compared with the share of calls to be reviewed.
    :param before_asking: called before each question to a model.
    """

    sleep: Callable[[float], Any]
    before_asking: Callable[[], Any]
    roll: Callable[[], int] = lambda: secrets.randbelow(100) + 1


class NoReview(Exception):
    """Why there is none: what is stored instead."""

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
    """Let every enabled QA node of the definition judge the run. Models are asked: call it outside transactions."""
    nodes = [node for node in outbox.nodes_of(definition, outbox.REVIEW) if outbox.wants_review(node)]
    if not nodes:
        return Reviews()
    events = runs.events(run)
    desk = ReviewContext(lambda seconds: service.workers.stopping.wait(seconds), before_asking)
    annotations: dict[str, Any] = {}
    used: Usage = {}
    for node in nodes:
        data = data_of(node)
        try:
            check(run, data, desk.roll)
            reviewer = _reviewer(service, run, data, configurations)
            parts = parts_of(run, definition, events)
            annotations[f"qa_{node['id']}"], tokens = judge(reviewer, _prompt(data), parts, desk)
            used = added(used, tokens)
        except NoReview as reason:
            annotations[f"qa_{node['id']}"] = reason.stored
        except Exception as error:  # a host's own model may fail in ways of its own: the webhooks wait for us
            log.exception("The review of run %s at node %s failed", run.id, node["id"])
            annotations[f"qa_{node['id']}"] = {"error": type(error).__name__}
    annotations["tags"] = tags_of(annotations.values())
    return Reviews(annotations, used)


def check(run: Run, data: Mapping[str, Any], roll: Callable[[], int]) -> None:
    """:raises NoReview: when the node leaves out a run like this one."""
    shortest = as_number(data.get("qa_min_call_duration"))
    if run.duration is not None and run.duration < (SHORTEST_SECONDS if shortest is None else shortest):
        raise skipped("call_too_short")
    voicemail = "voicemail_detected" in (run.disposition, *run.gathered_context.get("call_tags", []))
    if voicemail and not as_boolean(data.get("qa_voicemail_calls")):
        raise skipped("voicemail")
    share = as_number(data.get("qa_sample_rate"))
    if roll() > (100 if share is None else share):
        raise skipped("not_sampled")


def _prompt(data: Mapping[str, Any]) -> str:
    """:raises NoReview: when the author emptied it; one that was never set is the catalogue's."""
    prompt = data.get("qa_system_prompt")
    if prompt is None:
        properties = node_types.by_name()["qa"]["properties"]
        prompt = next(each["default"] for each in properties if each["name"] == "qa_system_prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise NoReview(error="no_system_prompt")
    return prompt


def _reviewer(service: Service, run: Run, data: Mapping[str, Any], configurations: Mapping[str, Any]) -> Reviewer:
    """:raises NoReview: when there is no model that could be asked."""
    model: Any
    name = str(data.get("qa_model") or "default").strip()
    if as_boolean(data.get("qa_use_workflow_llm")) is False:
        model = _own(service, data, name)
    else:
        model = selection.choose(service, run.organization_id, configurations)
        if isinstance(model, ChatCompletions) and name != "default":
            model = replace(model, model=name)
    if not callable(getattr(model, "complete", None)):
        raise skipped("no_language_model")
    reviewer: Reviewer = model
    return reviewer


def _own(service: Service, data: Mapping[str, Any], name: str) -> Any:
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
    return selection.from_configuration(service, chosen)


# -- what is judged


def parts_of(run: Run, definition: Mapping[str, Any], events: Sequence[Event]) -> list[Part]:
    """What was said in a run, node by node in the order of the first visits; nodes without words are left out.

    :raises NoReview: when nothing was said at all.
    """
    if not events:
        raise NoReview(error="no_transcript")
    begun = events[0].at
    by_node: dict[str, list[Event]] = {}
    for event in events:
        by_node.setdefault(event.node_id or "", []).append(event)
    about = {str(node.get("id")): _about(node) for node in objects(definition, "nodes")}
    if "" in by_node:
        visited = "\n".join(about[id] for id in by_node if id in about)
        found = [Part(WHOLE, WHOLE, visited, _lines(events, begun), _metrics(events, run.duration))]
    else:
        found = [
            Part(id, there[0].node_name or id, about.get(id, ""), _lines(there, begun), _metrics(there, None))
            for id, there in by_node.items()
        ]
    spoken = [part for part in found if part.lines]
    if not spoken:
        raise NoReview(error="empty_transcript")
    return spoken


def _about(node: Mapping[str, Any]) -> str:
    data = data_of(node)
    return f"{data.get('name') or node.get('id')}: {data.get('prompt') or ''}".strip()


def _lines(events: Sequence[Event], begun: datetime) -> tuple[str, ...]:
    lines = []
    for event in events:
        if event.type in SPEAKERS:
            seconds = (event.at - begun).total_seconds()
            lines.append(f"[{seconds:.1f}s] {SPEAKERS[event.type]}: {event.payload.get('text', '')}")
        elif event.type == "rtf-function-call-start":
            lines.append(f"[tool_call]: {event.payload.get('function_name', '')}")
    return tuple(lines)


def _metrics(events: Sequence[Event], seconds: float | None) -> dict[str, Any]:
    latencies = _measured(events, "rtf-latency-measured", "latency_seconds")
    return {
        "call_duration_seconds": seconds,
        "num_turns": sum(event.type == "rtf-user-transcription" for event in events),
        "avg_latency_seconds": _mean(latencies),
        "avg_ttfb_seconds": _mean(_measured(events, "rtf-ttfb-metric", "ttfb_seconds")),
        "max_latency_seconds": max(latencies, default=None),
    }


def _measured(events: Sequence[Event], type: str, member: str) -> list[float]:
    values = (as_number(event.payload.get(member)) for event in events if event.type == type)
    return [float(value) for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 3) if values else None


# -- judging


def judge(reviewer: Reviewer, prompt: str, parts: Sequence[Part], desk: ReviewContext) -> tuple[dict[str, Any], Usage]:
    """The annotation of a QA node, and the tokens it took. A part whose review failed says so in its place."""
    results: dict[str, Any] = {}
    summaries: list[str] = []
    used: Usage = {}
    model = None
    for part in parts:
        system = _filled(prompt, part, "\n".join(summaries))
        try:
            completion = _ask(reviewer, system, "\n".join(["Transcript:", *part.lines]), desk)
        except Failure as failure:
            empty: dict[str, Any] = {"error": str(failure), "tags": [], "summary": "", "score": None}
            results[part.key] = {"node_name": part.name, **empty}
            continue
        model = completion.model.rpartition("|||")[2]
        used = added(used, {completion.model: completion.usage} if completion.usage else {})
        found = read(completion.text)
        results[part.key] = {"node_name": part.name, **found}
        if found["summary"]:
            summaries.append(f"{part.name}: {found['summary']}")
    return {"node_results": results, "model": model}, used


def _filled(prompt: str, part: Part, before: str) -> str:
    values = {
        "node_summary": part.about,
        "previous_conversation_summary": before,
        "transcript": "\n".join(part.lines),
        "metrics": json.dumps(part.metrics),
    }
    return render(prompt, values, now=now())


def _ask(reviewer: Reviewer, system: str, user: str, desk: ReviewContext) -> Completion:
    """:raises Failure: after the last attempt, or at once when another would fail as well."""
    for wait in WAITS:
        desk.before_asking()
        try:
            return reviewer.complete(system, user)
        except Failure as failure:
            if failure.final:
                raise
        desk.sleep(wait)
    desk.before_asking()
    return reviewer.complete(system, user)


def read(text: str) -> dict[str, Any]:
    """A reviewer's answer as it is stored; what it doesn't tell is empty."""
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
    """The names of the tags in all results, each once, sorted. A tag is its name, or an object that has one."""
    results = [result for each in annotations for result in each.get("node_results", {}).values()]
    tags = (tag for result in results for tag in result["tags"])
    names = (tag.get("tag") or tag.get("name") if isinstance(tag, dict) else tag for tag in tags)
    return sorted({name for name in names if isinstance(name, str) and name})
