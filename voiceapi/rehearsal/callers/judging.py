"""Judges a rehearsed conversation by the QA prompts of its agent, as ended runs are reviewed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ...engine.actions import Record
from ...engine.graph import data_of
from ...llm.chat_completions import ChatCompletions
from ...postcall import outbox, qa
from ...postcall.qa_parts import parts_of
from ...service import Service
from .improvised import Held


@dataclass(frozen=True)
class Judge:
    """A QA prompt and the model that judges by it.

    :param name: that of the QA node, or DEFAULT.
    """

    name: str
    reviewer: qa.Reviewer
    prompt: str


# An agent without a QA node is judged by the prompt that such a node has when it is new.
DEFAULT = "default"


@dataclass(frozen=True)
class Judgement:
    """What the judges say of a conversation.

    :param score: the mean of the scores given to its parts; None if there is none.
    :param summaries: of its parts, in the order of the conversation.
    :param errors: why parts weren't judged.
    """

    score: float | None
    summaries: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Logged:
    """A record in the shape in which a run's log has it."""

    type: str
    payload: Mapping[str, Any]
    at: datetime
    node_id: str
    node_name: str


def judges_of(
    service: Service, organization: int | None, definition: Mapping[str, Any], configurations: Mapping[str, Any]
) -> tuple[list[Judge], list[str]]:
    """The judges of an agent, one for each of its enabled QA nodes, and why the others of them can't judge.

    What those nodes say of length, share and voicemail doesn't count here: each conversation is judged.
    """
    nodes = [node for node in outbox.nodes_of(definition, outbox.REVIEW) if outbox.is_review_enabled(node)]
    found, problems = [], []
    for node in nodes or [{"data": {"name": DEFAULT}}]:
        data = data_of(node)
        name = str(data.get("name") or node.get("id"))
        try:
            reviewer = qa.reviewer_for(service, organization, data, configurations)
            found.append(Judge(name, reviewer, qa.prompt_of(data)))
        except qa.NoReview as reason:
            why = reason.stored.get("reason") or reason.stored.get("error")
            problems.append(f"The QA node “{name}” can't judge: {why}.")
    return found, problems


def judge(
    judges: Sequence[Judge],
    held: Held,
    definition: Mapping[str, Any],
    seed: int,
    sleep: Callable[[float], Any],
) -> Judgement:
    """What the judges say of a conversation; it waits for their models."""
    events = [_logged(record) for record in held.records]
    seconds = (events[-1].at - events[0].at).total_seconds() if events else 0.0
    parts = parts_of(events, definition, seconds)
    context = qa.ReviewContext(sleep, lambda: None)
    results: list[Mapping[str, Any]] = []
    for each in judges:
        annotation, _ = qa.judge(seeded(each.reviewer, seed), each.prompt, parts, context)
        results += annotation["node_results"].values()
    scores = [result["score"] for result in results if result["score"] is not None]
    errors = [result.get("error") or "The answer gives no score." for result in results if result["score"] is None]
    return Judgement(
        round(sum(scores) / len(scores), 2) if scores else None,
        tuple(result["summary"] for result in results if result["summary"]),
        tuple(qa.tags_of([{"node_results": dict(enumerate(results))}])),
        tuple(dict.fromkeys(errors)),
    )


def seeded(model: Any, seed: int) -> Any:
    """The model, whose server is asked to begin its random choices with a seed; another kind of model as it is."""
    return replace(model, seed=seed) if isinstance(model, ChatCompletions) else model


def _logged(record: Record) -> _Logged:
    at = datetime.fromtimestamp(record.at, UTC)
    return _Logged(record.type, record.payload, at, record.node_id, record.node_name)
