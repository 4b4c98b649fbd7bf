"""Preparing a run, its public URL, and its usage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

from ..security import new_token
from ..store import runs
from ..store.base import reload
from ..store.database import write
from ..store.failures import DatabaseUnavailable
from ..store.locks import NO_LOCK, BeginTimeout, run_lock, waiting
from ..store.run_lists import ReportedRun, UsedRun
from ..store.runs import Run
from ..store.workflows import Workflow
from ..workflows.versions import current

# The number of tokens by model and by kind.
Usage = Mapping[str, Mapping[str, int]]

# Keys of an initial context that only the service sets; values from a client are dropped.
RESERVED = ("provider", "runtime_configuration", "mps_correlation_id", "ignore_do_not_call")


def prepare(workflow: Workflow, name: str, mode: str) -> Run:
    """Store a run of the draft (or the released version) whose call isn't placed yet.

    Its initial context is the version's template variables. Only a `smallwebrtc` run is inbound, unless the variable
    `direction` says outbound.
    """
    version = current(workflow)
    context = dict(version.template_context_variables)
    call_type = "outbound"
    if mode == "smallwebrtc":
        call_type = "outbound" if str(context.get("direction", "")).strip().lower() == "outbound" else "inbound"
        context["direction"] = call_type
    columns = {"name": name, "mode": mode, "call_type": call_type, "token": new_token(), "initial_context": context}
    with write(NO_LOCK):
        return runs.create(workflow, version=version, **columns)


def with_public_token(run: Run) -> Run:
    """The run, with a public token if it has a transcript."""
    if run.has_transcript and run.public_access_token is None:
        # A read doesn't fail, and hardly waits, because the database can't be written.
        with suppress(DatabaseUnavailable), waiting(BeginTimeout(0.5, refuses_when_locked=True)):
            with write(run_lock(run.id)):
                runs.publish(run.id, str(uuid4()))
            return reload(run)
    return run


def transcript_address(run: Run | UsedRun | ReportedRun, base_url: str) -> str | None:
    """The public URL of the run's transcript; None if it has no transcript or no public token."""
    if run.public_access_token is None or not run.has_transcript:
        return None
    return f"{base_url}/api/v1/public/download/workflow/{run.public_access_token}/transcript"


def usage(run: Run) -> dict[str, Any]:
    """The usage of a run: tokens by model, and seconds."""
    return {"llm": run.llm_usage, "tts": {}, "stt": {}, "call_duration_seconds": run.duration}


def added(used: Usage, more: Usage) -> dict[str, dict[str, int]]:
    """The sum of two usages."""
    sums = {model: Counter(tokens) for model, tokens in used.items()}
    for model, tokens in more.items():
        sums.setdefault(model, Counter()).update(tokens)
    return {model: dict(tokens) for model, tokens in sums.items()}


def without_reserved(context: Mapping[str, Any]) -> dict[str, Any]:
    """A client's initial context without the reserved keys."""
    return {key: value for key, value in context.items() if key not in RESERVED}
