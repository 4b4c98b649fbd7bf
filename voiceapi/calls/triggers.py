"""Use cases that place a call: the trigger of an agent, and `initiate` for one workflow."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..engine.compose import missing_in_opening
from ..engine.graph import Graph, trigger_paths
from ..errors import Conflict, FieldError, InvalidFields, NotPossible, RecordNotFound
from ..organizations.call_quota import limits_of
from ..runs.lifecycle import is_dialable
from ..runs.runs import without_reserved
from ..service import Service
from ..store.base import find, require
from ..store.fields import now
from ..store.organizations import ApiKey, Organization
from ..store.runs import Run
from ..store.telephony import TelephonyConfiguration
from ..store.workflows import Workflow, WorkflowVersion, workflow_of_path
from ..telephony import selection
from ..telephony.numbers import NotDialable, dialable
from ..telephony.providers import PROVIDERS
from ..telephony.selection import NotConfigured
from ..workflows import versions
from .outbound import Agent, Placement, Reserve, place

Mode = Literal["production", "test"]
Identifier = Literal["trigger_path", "workflow_uuid"]


@dataclass(frozen=True, slots=True)
class CallRequest:
    """The body of a trigger: the number to call, the initial context, and the configuration and caller ID to use."""

    phone_number: str
    initial_context: Mapping[str, Any]
    telephony_configuration_id: int | None
    from_phone_number_id: int | None


def trigger(
    service: Service,
    key: ApiKey,
    kind: Identifier,
    identifier: str,
    mode: Mode,
    request: CallRequest,
    reserve: Reserve | None = None,
) -> Placement:
    """Call somebody with a published agent; on the test routes with its draft, if there is one.

    :param identifier: a trigger path, or the uuid of a workflow, as `kind` says.
    :param reserve: see `place`.
    :raises RecordNotFound, NotPossible, InvalidInput, LimitReached: in the order of docs/api.md.
    """
    organization: int = key.organization_id
    workflow = _by_path(organization, identifier) if kind == "trigger_path" else _by_uuid(organization, identifier)
    if workflow.status != "active":
        raise RecordNotFound("Workflow is not active")
    version = versions.published(workflow) if mode == "production" else versions.current(workflow)
    if kind == "trigger_path":
        _require_trigger(version, identifier, mode)
    graph = versions.load_graph(workflow, version)
    configuration = _configuration(organization, request.telephony_configuration_id)
    number = selection.caller_number(configuration, request.from_phone_number_id)
    agent = Agent(workflow, version, configuration, number)
    to = number_to_dial(request.phone_number, configuration)
    context = {
        **(version.template_context_variables if mode == "test" else {}),
        "provider": configuration.provider,
        "direction": "outbound",
        "phone_number": request.phone_number,
        "trigger_mode": mode,
        "telephony_configuration_id": configuration.id,
        "agent_identifier": identifier,
        "agent_identifier_type": kind,
        "workflow_uuid": workflow.workflow_uuid,
        **({"from_phone_number_id": request.from_phone_number_id} if request.from_phone_number_id is not None else {}),
        **({"agent_uuid": identifier} if kind == "trigger_path" else {}),
        "api_key_id": key.id,
        "api_key_created_by": None,
        **without_reserved(request.initial_context),
        "called_number": request.phone_number,
    }
    gathered = {"triggered_by": "api", **({"trigger_uuid": identifier} if kind == "trigger_path" else {})}
    label = "API" if mode == "production" else "TEST"
    name = f"WR-{label}-{1000 + secrets.randbelow(9000)}"
    with _permit(service, configuration):
        return _with_missing(graph, place(service, agent, to, name, context, gathered, reserve=reserve))


def _permit(service: Service, configuration: TelephonyConfiguration) -> AbstractContextManager[None]:
    """The permit for slow work of a request that asks a carrier; the simulator answers at once."""
    if configuration.provider == "simulator":
        return nullcontext()
    return service.bulkhead.slow(configuration.organization_id)


def _by_path(organization: int, path: str) -> Workflow:
    workflow = workflow_of_path(organization, path)
    if workflow is None:
        raise RecordNotFound("Agent trigger not found")
    return workflow


def _by_uuid(organization: int, uuid: str) -> Workflow:
    return require(Workflow, "Workflow not found", workflow_uuid=uuid, organization=organization)


def _require_trigger(version: WorkflowVersion, path: str, mode: Mode) -> None:
    """The production routes take a trigger that is released and enabled; the test routes any that is there."""
    for _, found, enabled in trigger_paths(version.definition):
        if found == path and (enabled or mode == "test"):
            return
    raise RecordNotFound("Trigger not found in the selected Agent")


def _configuration(organization: int, config_id: int | None) -> TelephonyConfiguration:
    try:
        return selection.resolve_outbound(organization, config_id)
    except NotConfigured as error:
        if error.given:
            raise RecordNotFound("Telephony configuration not found") from None
        raise NotPossible("Telephony provider not configured for this organization") from None


def number_to_dial(phone_number: str, configuration: TelephonyConfiguration) -> str:
    """What the carrier is asked to call.

    :raises InvalidFields: at `phone_number`, when it can't be dialed, or its country isn't allowed.
    """
    try:
        address = dialable(phone_number, sip=PROVIDERS[configuration.provider].dials_sip)
    except NotDialable as error:
        raise InvalidFields([FieldError(("phone_number",), error.reason)]) from None
    refusal = limits_of(configuration.organization_id).refusal(address)
    if refusal is not None:
        raise InvalidFields([FieldError(("phone_number",), refusal)])
    return address


def initiate(
    service: Service,
    organization: int,
    workflow_id: int,
    run_id: int | None,
    phone_number: str | None,
    config_id: int | None,
    from_phone_number_id: int | None,
    initial_context: Mapping[str, Any],
    reserve: Reserve | None = None,
) -> Placement:
    """Call somebody with a workflow's draft, or its released version without one.

    :param run_id: a prepared run to place this call for.
    :param phone_number: without one, the test number of the organization's preferences is called.
    :param initial_context: goes before the workflow's variables, or those of the prepared run.
    :param reserve: see `place`.
    :raises RecordNotFound, NotPossible, Conflict, InvalidInput, OutOfService, LimitReached: in the order of
        docs/api.md.
    """
    try:
        configuration = selection.resolve_outbound(organization, config_id)
    except NotConfigured as error:
        given = "telephony_configuration_not_found"
        raise NotPossible(given if error.given else "telephony_not_configured") from None
    if not phone_number:
        phone_number = Organization.get_by_id(organization).preferences.get("test_phone_number")
    if not phone_number:
        raise NotPossible("Phone number must be provided in request or set in organization preferences")
    workflow = require(Workflow, "Workflow not found", id=workflow_id, organization=organization)
    version = versions.current(workflow)
    number = selection.caller_number(configuration, from_phone_number_id)
    agent = Agent(workflow, version, configuration, number)
    prepared = None if run_id is None else _prepared(organization, workflow, run_id)
    to = number_to_dial(phone_number, configuration)
    graph = versions.load_graph(workflow, version)
    context = {
        **(version.template_context_variables if prepared is None else prepared.initial_context),
        **without_reserved(initial_context),
        "phone_number": phone_number,
        "called_number": phone_number,
        "direction": "outbound",
        "provider": configuration.provider,
        "telephony_configuration_id": configuration.id,
    }
    name = f"WR-TEL-OUT-{secrets.randbelow(10**8):08}"
    with _permit(service, configuration):
        return _with_missing(graph, place(service, agent, to, name, context, {}, prepared, reserve))


def _with_missing(graph: Graph, placement: Placement) -> Placement:
    """The placement with the variables that the agent's first words need and the call's context lacks."""
    missing = missing_in_opening(graph, placement.run.initial_context, "outbound", now())
    return replace(placement, missing=tuple(missing))


def _prepared(organization: int, workflow: Workflow, run_id: int) -> Run:
    run = find(Run, id=run_id, organization=organization)
    if run is None:
        raise NotPossible("Workflow run not found")
    if run.workflow_id != workflow.id:
        raise NotPossible("workflow_run_workflow_mismatch")
    if not is_dialable(run):
        raise Conflict("Workflow run already has an active call")
    return run
