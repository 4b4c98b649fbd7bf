"""Runs, whatever carries them: preparing one, its public address, and what it used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from ..security import new_token
from ..store import runs
from ..store.base import reload
from ..store.database import write
from ..store.runs import Run
from ..store.workflows import Workflow
from ..workflows.versions import current

# Tokens by kind, by the model that they were used with.
Usage = Mapping[str, Mapping[str, int]]

# Keys of an initial context that belong to the service, whoever sends them.
RESERVED = ("provider", "runtime_configuration", "mps_correlation_id")


def prepare(workflow: Workflow, name: str, mode: str) -> Run:
    """A run of the draft (or the released version) that nobody has dialed yet.

    Its initial context is the version's template variables. Only a `smallwebrtc` run is inbound, unless the variable
    `direction` says outbound.
    """
    version = current(workflow)
    context = dict(version.template_context_variables)
    call_type = "outbound"
    if mode == "smallwebrtc":
        call_type = "outbound" if str(context.get("direction", "")).strip().lower() == "outbound" else "inbound"
        context["direction"] = call_type
    return runs.create(
        workflow, version=version, name=name, mode=mode, call_type=call_type, token=new_token(), initial_context=context
    )


def with_public_token(run: Run) -> Run:
    """The run, with a public token once there is something to fetch with it."""
    if run.has_transcript and run.public_access_token is None:
        with write():
            runs.publish(run.id, str(uuid4()))
        return reload(run)
    return run


def transcript_address(run: Run, base_url: str) -> str | None:
    """Where anyone may fetch the run's transcript, once it has one and a token."""
    if run.public_access_token is None or not run.has_transcript:
        return None
    return f"{base_url}/api/v1/public/download/workflow/{run.public_access_token}/transcript"


def usage(run: Run) -> dict[str, Any]:
    """What a run used: tokens by model, and seconds."""
    return {"llm": run.llm_usage, "tts": {}, "stt": {}, "call_duration_seconds": run.duration}


def added(used: Usage, more: Usage) -> dict[str, dict[str, int]]:
    """Tokens by model, summed."""
    sums = {model: Counter(tokens) for model, tokens in used.items()}
    for model, tokens in more.items():
        sums.setdefault(model, Counter()).update(tokens)
    return {model: dict(tokens) for model, tokens in sums.items()}


def without_reserved(context: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in context.items() if key not in RESERVED}
