"""Calls that a host's app places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..calls.idempotency import LONGEST_KEY, AnotherRequest, InProgress, Once, fingerprint
from ..calls.outbound import Placement
from ..calls.triggers import WantedCall
from ..calls.triggers import call as place
from ..organizations.api_keys import DEFAULT_ORGANIZATION
from ..service import Service
from ..store.runs import Run as StoredRun
from . import runs
from .agents import agent_of, as_json, organization_of, refuse_archived, stored_id
from .errors import KeyConflict
from .runs import Run

# Keys of calls from Python are others than those of the API's endpoints.
OPERATION = "python.call"


def call(
    service: Service,
    agent: int | str,
    to: str,
    context: Mapping[str, Any] | None,
    key: str | None,
    configuration: int | None,
    organization: str | None,
) -> Run:
    """See `VoiceAPI.call`."""
    if key is not None and not (1 <= len(key) <= LONGEST_KEY and key.isprintable()):
        raise ValueError(f"A key has 1 to {LONGEST_KEY} printable characters, not {key!r}.")
    owner = organization_of(organization)
    workflow = agent_of(owner, agent)
    wanted = WantedCall(to, as_json(context), None if configuration is None else stored_id(configuration))
    sent = fingerprint([workflow.id, to, wanted.initial_context, configuration])
    once = Once(owner, OPERATION, key, sent, lambda placement: {"run_id": placement.run.id})
    placed: Placement | None = None
    try:
        with once:
            if not once.is_repeated:
                refuse_archived(workflow)
                placed = place(service, workflow, wanted, once.reserve)
                once.save(placed)
    except AnotherRequest:
        raise KeyConflict(f"The key {key!r} belongs to a call with other arguments, of the last 24 hours.") from None
    except InProgress:
        if once.run_id is None:
            raise
    try:
        run = runs.read(StoredRun.get_by_id(once.run_id))
    except Exception as error:
        # Once somebody is called, a database that can't be read is no failure of the call.
        if placed is None or service.store.failures.find(error) is None:
            raise
        run = runs.made(placed.run, DEFAULT_ORGANIZATION if organization is None else organization, ())
    if placed is not None and placed.status == "unknown" and run.state == "placing":
        # What the carrier answered couldn't be stored.
        return replace(run, state="unknown", error=placed.reason)
    return run
