"""What a call begins with: its setup, its context, its webhooks' addresses, and a warning without a model."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..engine.actions import LanguageModel
from ..engine.graph import Graph
from ..engine.validation.outline import Outline
from ..llm import selection
from ..llm.model_needs import model_needs
from ..runs.preparation import without_reserved
from ..service import Service
from ..store.runs import Run
from ..store.telephony import PhoneNumber, TelephonyConfiguration
from ..store.workflows import Workflow, WorkflowVersion
from ..telephony.carriers.webhook import CallbackURLs
from ..tools import catalog

log = logging.getLogger("voiceapi")

# How many places the line names.
NAMED = 5


@dataclass(frozen=True, slots=True)
class CallSetup:
    """What calls are placed with.

    :param graph: that of the version, which was checked.
    :param caller_id: the number that the called person sees, None where the carrier needs none.
    :param is_test: the run is a test also with a published version; with a draft it always is.
    """

    workflow: Workflow
    version: WorkflowVersion
    graph: Graph
    configuration: TelephonyConfiguration
    caller_id: PhoneNumber | None
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A call to place.

    :param to: E.164, or a sip: address where the carrier takes them.
    :param name: of the new run; a prepared run keeps its own.
    :param context: the initial context; see `initial_context`.
    :param gathered: the first members of the gathered context.
    :param prepared: the run to place the call for, instead of a new one.
    :param pace_until: when the slot that a claim took in the account's pace expires; after that, or if None, placing
        the call takes one.
    """

    setup: CallSetup
    to: str
    name: str
    context: Mapping[str, Any]
    gathered: Mapping[str, Any]
    prepared: Run | None = None
    pace_until: datetime | None = None


def initial_context(
    configuration: TelephonyConfiguration,
    called: str,
    under: Mapping[str, Any],
    over: Mapping[str, Any] | None = None,
    *,
    caller: str | None = None,
    ignore_do_not_call: bool = False,
) -> dict[str, Any]:
    """The initial context of a call.

    :param under: members that those of the service replace.
    :param over: a client's members, which replace all but the reserved ones and the numbers.
    :param caller: the caller's number, if the call is an inbound one.
    :param ignore_do_not_call: the number was called although it is on the do-not-call list.
    """
    numbers = {"phone_number": called if caller is None else caller, "called_number": called}
    return {
        **under,
        "provider": configuration.provider,
        "direction": "outbound" if caller is None else "inbound",
        "telephony_configuration_id": configuration.id,
        **without_reserved(over or {}),
        **numbers,
        **({} if caller is None else {"caller_number": caller}),
        **({"ignore_do_not_call": True} if ignore_do_not_call else {}),
    }


def warn_without_model(
    service: Service, workflow: Workflow, version: WorkflowVersion, model: LanguageModel
) -> list[str]:
    """Log and return what of a version the scripted model can't carry out, if that one speaks.

    It is once in the life of this process, for a draft, which may be edited between two calls, once for each list of
    such parts; else nothing is logged and the list is empty.
    """
    if version.id in service.noticed or not selection.is_scripted(model):
        return []
    outline = Outline.of(version.definition)
    usable = catalog.usable_without_model(catalog.attached(workflow.organization_id, outline))
    places = [" ".join(filter(None, (each.kind, each.id, each.field))) for each in model_needs(outline, usable)]
    key = (version.id, *places) if version.status == "draft" else version.id
    first = object()
    # Of two calls at once, one finds its own object.
    if service.noticed.setdefault(key, first) is not first or not places:
        return []
    more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
    log.warning(
        "Workflow %s %r, version %s, needs a language model, and none is configured: %s%s. "
        "POST /api/v1/workflow/%s/validate says why.",
        workflow.id,
        workflow.name,
        version.version_number,
        ", ".join(map(repr, places[:NAMED])),
        more,
        workflow.id,
    )
    return places


def callback_urls(service: Service, run: Run, turn: int, retries: str = "") -> CallbackURLs:
    """The URLs for the webhooks of a run's carrier.

    :param turn: the next turn.
    :param retries: see `Carrier.retries`.
    """
    return CallbackURLs(f"{service.base_url}/api/v1/telephony/calls", run.token, turn, retries=retries)
