"""Use cases that place a call: the trigger of an agent, and `initiate` for one workflow."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..engine.compose import unset_opening_variables
from ..engine.graph import trigger_paths
from ..errors import Conflict, FieldError, InvalidFields, NotPossible, RecordNotFound
from ..organizations.call_limits import CallLimits
from ..runs.lifecycle import is_dialable
from ..runs.preparation import without_reserved
from ..service import Service
from ..store import dialing, organizations
from ..store.base import find, require
from ..store.fields import now
from ..store.organizations import ApiKey
from ..store.runs import Run
from ..store.telephony import TelephonyConfiguration
from ..store.workflows import Workflow, WorkflowVersion, workflow_of_path
from ..telephony import configurations
from ..telephony.configurations import NotConfigured
from ..telephony.numbers import NotDialable, read_number
from ..telephony.providers import PROVIDERS
from ..workflows import versions
from .outbound import Placement, Reserve, place
from .setup import CallRequest, CallSetup, initial_context

LISTED = (
    "The number is on the do-not-call list. "
    'If the person asked for this call, send "ignore_do_not_call": true with the request.'
)


@dataclass(frozen=True, slots=True)
class Target:
    """What a trigger's URL names.

    :param identifier: a trigger path, or the uuid of a workflow, as `kind` says.
    :param draft: the workflow's draft is called with, if there is one.
    """

    kind: Literal["trigger_path", "workflow_uuid"]
    identifier: str
    draft: bool = False


@dataclass(frozen=True, slots=True)
class WantedCall:
    """The call that a request asks for: the number, the initial context, the configuration and the caller ID to use.

    :param phone_number: None only for `initiate`, which calls the test number of the organization's preferences then.
    :param ignore_do_not_call: call the number although it is on the do-not-call list.
    """

    phone_number: str | None
    initial_context: Mapping[str, Any] | None = None
    telephony_configuration_id: int | None = None
    from_phone_number_id: int | None = None
    ignore_do_not_call: bool = False


def trigger(
    service: Service, key: ApiKey, target: Target, wanted: WantedCall, reserve: Reserve | None = None
) -> Placement:
    """Call somebody with a published agent; on the test routes with its draft, if there is one.

    :param reserve: see `place`.
    :raises RecordNotFound, NotPossible, InvalidInput, LimitReached: in the order of docs/api.md.
    """
    organization: int = key.organization_id
    by_path = target.kind == "trigger_path"
    if by_path:
        workflow = workflow_of_path(organization, target.identifier)
        if workflow is None:
            raise RecordNotFound("Agent trigger not found")
    else:
        workflow = require(Workflow, "Workflow not found", workflow_uuid=target.identifier, organization=organization)
    if workflow.status != "active":
        raise RecordNotFound("Workflow is not active")
    version = versions.current(workflow) if target.draft else versions.published(workflow)
    # A draft may be called by a trigger that is disabled.
    triggers = (path for _, path, enabled in trigger_paths(version.definition) if enabled or target.draft)
    if by_path and target.identifier not in triggers:
        raise RecordNotFound("Trigger not found in the selected Agent")
    given = {} if wanted.from_phone_number_id is None else {"from_phone_number_id": wanted.from_phone_number_id}
    over = {
        "trigger_mode": "test" if target.draft else "production",
        "agent_identifier": target.identifier,
        "agent_identifier_type": target.kind,
        "workflow_uuid": workflow.workflow_uuid,
        **given,
        **({"agent_uuid": target.identifier} if by_path else {}),
        "api_key_id": key.id,
        "api_key_created_by": None,
    }
    gathered = {"triggered_by": "api", **({"trigger_uuid": target.identifier} if by_path else {})}
    return _call(service, workflow, version, wanted, over, gathered, reserve, is_test=target.draft)


def call(service: Service, workflow: Workflow, wanted: WantedCall, reserve: Reserve | None = None) -> Placement:
    """Call somebody with the published version of a workflow, for the app that voiceapi is part of.

    :param reserve: see `place`.
    :raises RecordNotFound, NotPossible, InvalidInput, LimitReached: as `trigger`, and in its order.
    """
    over = {"trigger_mode": "production", "workflow_uuid": workflow.workflow_uuid}
    return _call(service, workflow, versions.published(workflow), wanted, over, {"triggered_by": "python"}, reserve)


def _call(
    service: Service,
    workflow: Workflow,
    version: WorkflowVersion,
    wanted: WantedCall,
    over: Mapping[str, Any],
    gathered: Mapping[str, Any],
    reserve: Reserve | None,
    *,
    is_test: bool = False,
) -> Placement:
    """Place a call that names everything but what the organization's settings decide.

    :param over: the members of the service in the initial context; those of the request replace them.
    :param is_test: a draft's variables go into the context, too.
    """
    graph = versions.load_graph(workflow, version)
    try:
        configuration = configurations.resolve_outbound(workflow.organization_id, wanted.telephony_configuration_id)
    except NotConfigured as error:
        if error.given:
            raise RecordNotFound("Telephony configuration not found") from None
        raise NotPossible("Telephony provider not configured for this organization") from None
    caller_id = configurations.caller_number(configuration, wanted.from_phone_number_id)
    to = number_to_dial(wanted.phone_number or "", configuration, wanted.ignore_do_not_call)
    over = {**over, **(wanted.initial_context or {})}
    under = version.template_context_variables if is_test else {}
    request = CallRequest(
        CallSetup(workflow, version, graph, configuration, caller_id, is_test=is_test),
        to,
        f"WR-{'TEST' if is_test else 'API'}-{1000 + secrets.randbelow(9000)}",
        initial_context(configuration, to, under, over, ignore_do_not_call=wanted.ignore_do_not_call),
        gathered,
    )
    return _place(service, request, reserve)


def _place(service: Service, request: CallRequest, reserve: Reserve | None) -> Placement:
    """Place the call, and look for the variables that the agent's first words need and its context lacks."""
    setup = request.setup
    # The simulator answers at once, and asks nobody.
    with nullcontext() if setup.configuration.is_simulated else service.bulkhead.slow(setup.workflow.organization_id):
        placement = place(service, request, reserve)
    missing = unset_opening_variables(setup.graph, placement.run.initial_context, "outbound", now())
    return replace(placement, missing=tuple(missing))


def number_to_dial(phone_number: str, configuration: TelephonyConfiguration, ignore_do_not_call: bool) -> str:
    """What the carrier is asked to call.

    :raises InvalidFields: at `phone_number`, when it can't be dialed, its country isn't allowed, or it is on the
        do-not-call list and that isn't ignored.
    """
    organization = configuration.organization_id
    # With + there is nothing to complete, so that most calls don't ask the database for the countries.
    known = () if phone_number.startswith("+") else configurations.countries(configuration)
    try:
        address = read_number(phone_number, known, sip=PROVIDERS[configuration.provider].dials_sip)
    except NotDialable as error:
        raise InvalidFields([FieldError(("phone_number",), error.reason)]) from None
    refusal = CallLimits.read(organizations.get(organization).preferences).refusal(address)
    if refusal is None and not ignore_do_not_call and dialing.not_to_call(organization, [address]):
        refusal = LISTED
    if refusal is not None:
        raise InvalidFields([FieldError(("phone_number",), refusal)])
    return address


def initiate(
    service: Service,
    organization: int,
    workflow_id: int,
    run_id: int | None,
    wanted: WantedCall,
    reserve: Reserve | None = None,
) -> Placement:
    """Call somebody with a workflow's draft, or its released version without one.

    :param run_id: a prepared run to place this call for.
    :param wanted: its initial context goes before the workflow's variables, or those of the prepared run.
    :param reserve: see `place`.
    :raises RecordNotFound, NotPossible, Conflict, InvalidInput, OutOfService, LimitReached: in the order of
        docs/api.md.
    """
    try:
        configuration = configurations.resolve_outbound(organization, wanted.telephony_configuration_id)
    except NotConfigured as error:
        given = "telephony_configuration_not_found"
        raise NotPossible(given if error.given else "telephony_not_configured") from None
    phone_number = wanted.phone_number
    if not phone_number:
        phone_number = organizations.get(organization).preferences.get("test_phone_number")
    if not phone_number:
        raise NotPossible("Phone number must be provided in request or set in organization preferences")
    workflow = require(Workflow, "Workflow not found", id=workflow_id, organization=organization)
    version = versions.current(workflow)
    caller_id = configurations.caller_number(configuration, wanted.from_phone_number_id)
    prepared = None if run_id is None else _prepared(organization, workflow, run_id)
    to = number_to_dial(phone_number, configuration, wanted.ignore_do_not_call)
    graph = versions.load_graph(workflow, version)
    under = {
        **(version.template_context_variables if prepared is None else prepared.initial_context),
        **without_reserved(wanted.initial_context or {}),
    }
    request = CallRequest(
        CallSetup(workflow, version, graph, configuration, caller_id),
        to,
        f"WR-TEL-OUT-{secrets.randbelow(10**8):08}",
        initial_context(configuration, to, under, ignore_do_not_call=wanted.ignore_do_not_call),
        {},
        prepared,
    )
    return _place(service, request, reserve)


def _prepared(organization: int, workflow: Workflow, run_id: int) -> Run:
    run = find(Run, id=run_id, organization=organization)
    if run is None:
        raise NotPossible("Workflow run not found")
    if run.workflow_id != workflow.id:
        raise NotPossible("workflow_run_workflow_mismatch")
    if not is_dialable(run):
        raise Conflict("Workflow run already has an active call")
    return run
