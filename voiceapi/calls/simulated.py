"""Simulated calls to an agent: a phone of this process calls one of our numbers, as a carrier's customer would.

The call comes in by the webhook of inbound calls, signed as the simulator signs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..conversations.text_chats import permit
from ..errors import FieldError, InvalidFields, LimitReached, NotPossible, OutOfService, RecordNotFound, ServiceError
from ..security import new_token
from ..service import Service
from ..store.base import find, require
from ..store.runs import Run
from ..store.telephony import PhoneNumber, TelephonyConfiguration
from ..store.workflows import Workflow
from ..telephony import configurations
from ..telephony.carriers.simulator import Callee, MakePhone, Simulator
from ..telephony.configurations import reader
from ..telephony.connect import connect
from ..telephony.numbers import NotDialable, normalize
from ..workflows import versions
from . import inbound, setup
from .inbound import CallingPhone

# The caller's number unless one is given, and the called one of an organization whose simulator has none.
DEFAULT_CALLER, DEFAULT_CALLED = "+12025550123", "+12025550199"
# The error, by the code of `inbound`, when no workflow takes a call.
REFUSALS: Mapping[str, tuple[type[ServiceError], str]] = {
    "PHONE_NUMBER_NOT_CONFIGURED": (NotPossible, "The number is not active, or has no inbound workflow."),
    "WORKFLOW_NOT_FOUND": (NotPossible, "The workflow is archived, or its published version is not valid."),
    "QUOTA_EXCEEDED": (LimitReached, "Concurrent call limit reached"),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: their number, and what they say, as `initial_context.simulated_callee` and `simulated_transfer`.

    :param lines: None for the simulator's own.
    :param make_phone: None for a phone that asks webhooks.
    """

    number: str | None = None
    lines: list[Any] | None = None
    transfer: str | None = None
    make_phone: MakePhone | None = None

    def context(self) -> dict[str, Any]:
        given = {"simulated_callee": self.lines, "simulated_transfer": self.transfer}
        return {name: value for name, value in given.items() if value is not None}


def call_workflow(service: Service, organization: int, workflow_id: int, caller: Caller) -> Run:
    """Call a workflow, which answers with its published version; returns the run, whose call goes on.

    :raises RecordNotFound, NotPossible, InvalidInput, LimitReached, OutOfService: with the reason; nothing is stored.
    """
    workflow = require(Workflow, "Workflow not found", id=workflow_id, organization=organization)
    configuration = _simulator(organization)
    number = find(PhoneNumber, telephony_configuration=configuration, is_active=True)
    called = DEFAULT_CALLED if number is None else number.address_normalized
    return _call(service, configuration, workflow, called, caller, by_number=False)


def call_number(service: Service, organization: int, to: str, caller: Caller) -> Run:
    """Call a number of the organization, whose inbound workflow answers; see `call_workflow`.

    The simulator also stands in for the carrier of a real number.
    """
    address = normalize(to).address_normalized
    number = require(PhoneNumber, "Phone number not found", organization=organization, address_normalized=address)
    workflow = number.inbound_workflow
    if not number.is_active or workflow is None:
        raise _refusal("PHONE_NUMBER_NOT_CONFIGURED")
    configuration: TelephonyConfiguration = number.telephony_configuration
    by_number = configuration.is_simulated
    if not by_number:
        configuration = _simulator(organization)
    return _call(service, configuration, workflow, address, caller, by_number=by_number)


def _simulator(organization: int) -> TelephonyConfiguration:
    for configuration, _ in configurations.listed(organization):
        if configuration.is_simulated:
            return configuration
    raise NotPossible("The organization has no telephony configuration of the simulator; add one first.")


def _call(
    service: Service,
    configuration: TelephonyConfiguration,
    workflow: Workflow,
    to: str,
    caller: Caller,
    *,
    by_number: bool,
) -> Run:
    """Call `to`; `workflow` answers, because it is that of the number or because the webhook names it."""
    try:
        from_number = reader(configuration)(caller.number or DEFAULT_CALLER)
    except NotDialable as error:
        raise InvalidFields([FieldError(("from_number",), error.reason)]) from None
    if Callee.of(caller.context()) is None:
        message = 'each line is a text, or the keys pressed, such as {"keys": "12"}'
        raise InvalidFields([FieldError(("lines",), message)])
    if workflow.status != "active":
        raise RecordNotFound("Workflow is not active")
    version = versions.published(workflow)
    versions.load_graph(workflow, version)
    carrier = connect(service, configuration)
    assert isinstance(carrier, Simulator)
    phone = CallingPhone(new_token(), caller.context())
    path = str(configuration.id) if by_number else f"workflow/{workflow.workflow_uuid}"
    url = f"{service.base_url}/api/v1/telephony/inbound/{path}"
    webhook = carrier.call_webhook(url, phone.token, from_number, to)
    with permit(service, configuration.organization_id, version):
        if by_number:
            answered = inbound.answer_number(service, configuration.id, webhook, phone)
        else:
            answered = inbound.answer_workflow(service, workflow.workflow_uuid, webhook, phone)
    if answered.detail is not None:
        raise _refusal(answered.detail)
    run = find(Run, token=phone.token)
    if run is None:
        raise OutOfService("The call can't be stored at the moment.")
    # The opening is answered; the phone asks for it again, and goes on from there.
    carrier.resume(setup.callback_urls(service, run, 1), "", run.initial_context, caller.make_phone)
    return run


def _refusal(code: str) -> ServiceError:
    kind, sentence = REFUSALS[code]
    return kind(sentence)
