"""Stores a conversation as it goes on: its steps, its state, its log, and the columns of its run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ..engine import actions as act
from ..store import steps
from ..store.base import insert, insert_all, set_changed, update
from ..store.database import ConcurrentUpdate, after_commit
from ..store.runs import SPEAKERS, Event, Run
from ..store.steps import Snapshot, Step
from .driver import Progress

log = logging.getLogger("voiceapi")


def store_steps(run: Run, progress: Progress, number: int, calling: int | None = None) -> None:
    """Store the steps of a call's progress, its state and its log, and set the columns of `run`.

    The caller saves `run` in the same transaction.

    :param number: how many steps the run had before.
    :param calling: the number of the request whose tool is called next; no other worker calls it then.
    :raises ConcurrentUpdate: when another worker has stored this step, or calls this tool.
    """
    if not progress.steps:
        if calling is not None and not steps.mark_calling(run.id, number, calling):
            raise ConcurrentUpdate("Another worker calls this tool.")
        return
    insert_all(
        Step,
        (
            {"run": run.id, "number": number + index, "event": event.to_json()}
            for index, event in enumerate(progress.steps)
        ),
    )
    latest = {"number": number + len(progress.steps), "calling": calling, "state": progress.state.to_json()}
    if number == 0:
        insert(Snapshot, run=run.id, **latest)
    else:
        update(Snapshot(run=run.id, **latest))
    gathered = {**run.gathered_context, **progress.state.gathered_context}
    store_outcome(run, progress, gathered, progress.state.usage)


def store_outcome(
    run: Run, progress: Progress, gathered_context: Mapping[str, Any], usage: Mapping[str, Mapping[str, int]]
) -> None:
    """Append the records of a progress to the run's log, and set the columns of `run`; the caller saves it.

    Each failure of the language model is also a warning in the service's own log.

    :param gathered_context: all that the run has gathered by now.
    :param usage: all tokens that the run has used by now.
    """
    append_log(run, progress.records)
    for record in progress.records:
        if record.type == "rtf-pipeline-error" and record.payload.get("processor") == "llm":
            ends = ", which ends the call" if record.payload["fatal"] else ""
            failure = "The language model failed in run %s%s: %s"
            fields = {"event": "model_failed", "run": run.id}
            after_commit(partial(log.warning, failure, run.id, ends, record.payload["error"], extra=fields))
    missing = {"missing_variables": list(progress.state.missing)} if progress.state.missing else {}
    # Most turns change few of these.
    set_changed(
        run,
        initial_context=progress.state.setup.initial_context,
        gathered_context=gathered_context,
        llm_usage=usage,
        disposition=gathered_context.get("mapped_call_disposition"),
        annotations={**run.annotations, **missing},
        has_transcript=run.has_transcript or any(record.type in SPEAKERS for record in progress.records),
    )


def append_log(run: Run, records: Sequence[act.Record]) -> None:
    """Append to the log of a run, at the times that the records have."""
    insert_all(
        Event,
        (
            {
                "run": run.id,
                "turn": record.turn,
                "type": record.type,
                "payload": record.payload,
                "node_id": record.node_id or None,
                "node_name": record.node_name or None,
                "at": datetime.fromtimestamp(record.at, UTC),
            }
            for record in records
        ),
    )
