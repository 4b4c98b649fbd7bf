"""The functions that a workflow's nodes offer the model, and what happens when the model calls one."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ..engine.actions import Function, RunTool
from ..engine.events import ToolReturned
from ..engine.graph import Graph
from ..engine.template import MIB, Bound, TextTooLong, as_text
from ..engine.validation.graph_rules import CALLABLE, LOOKUP
from ..engine.validation.outline import Outline, attached_documents, attached_tools
from ..errors import LimitReached
from ..organizations import credentials
from ..organizations.call_limits import CallLimits
from ..organizations.call_quota import require_quota
from ..service import Service
from ..store import organizations, secret_fields, tools
from ..store.base import find, json_text
from ..store.runs import Run
from ..store.telephony import TelephonyConfiguration
from ..store.tools import Tool
from ..telephony.configurations import countries
from ..telephony.numbers import NotDialable, read_number
from .calculator import Calculator, EndCall
from .http_api import HttpApi
from .knowledge import documents
from .python import PREFIX, PythonTool
from .tool import RunnableTool, ToolContext, ToolError
from .transfer_call import TransferCall, TransferFailed

_WORD = re.compile(r"\w+")
log = logging.getLogger("voiceapi")

# Members of a tool's config whose value `audio` means that a recording is played.
MESSAGE_TYPES = ("messageType", "customMessageType")
CATEGORIES: Mapping[str, type[RunnableTool]] = {
    "http_api": HttpApi,
    "end_call": EndCall,
    "transfer_call": TransferCall,
    "calculator": Calculator,
    "python": PythonTool,
}


def functions_for(organization: int | None, graph: Graph) -> dict[str, tuple[Function, ...]]:
    """The functions of each node besides its edges, by node id, as `offers` has them."""
    uuids = {uuid for node in graph.nodes.values() for uuid in attached_tools({"data": node.data})}
    uuids |= {node.call.tool for node in graph.nodes.values() if node.call}
    found = ready(tools.with_uuids(organization, uuids))
    for uuid in uuids - found.keys():
        _warn_of_missing(uuid)
    return offers(graph, found, documents.lookups_for(organization, graph))


def ready(records: Iterable[Tool]) -> dict[str, RunnableTool]:
    """Those of these tools that can be run, by uuid: active ones of a category that this release carries out."""
    return {tool.uuid: tool for record in records if (tool := _tool_of(record)) is not None}


def offers(
    graph: Graph, ready: Mapping[str, RunnableTool], lookups: Mapping[str, Function]
) -> dict[str, tuple[Function, ...]]:
    """The functions offered at each node besides its edges, by node id; nodes without documents and tools are absent.

    The lookup in documents comes first, then the node's tools, then the one that the node itself calls, which the model
    isn't offered. A tool that isn't ready is skipped, and so is one whose function name is taken by an edge, the lookup
    or an earlier tool of the node. Validation of the workflow reports each of these cases. What the nodes offer may
    have 1 MiB in all; the nodes beyond that go without tools, and the log names the first of them.

    :param ready: the tools that can be run, by uuid.
    :param lookups: the lookup of each node with documents, by node id.
    """
    functions = {uuid: tool.function() for uuid, tool in ready.items()}
    bound = Bound(MIB, "What the tools of the workflow offer")
    offers: dict[str, tuple[Function, ...]] = {}
    for id, node in graph.nodes.items():
        uuids = attached_tools({"data": node.data})
        called = [functions[node.call.tool]] if node.call and node.call.tool in functions else []
        if uuids or called or id in lookups:
            own = (replace(each, on_entry=True) for each in called)
            offered = (*([lookups[id]] if id in lookups else []), *_distinct(graph, id, uuids, functions), *own)
            try:
                for function in offered:
                    bound.take(f"{function.description}{as_text(function.parameters)}{function.speech}")
            except TextTooLong as error:
                log.warning('The node "%s" and those after it go without tools: %s', id, error)
                break
            offers[id] = offered
    return offers


def _distinct(graph: Graph, id: str, uuids: list[str], functions: Mapping[str, Function]) -> Iterator[Function]:
    taken = {edge.function_name for edge in graph.edges_from(id)}
    taken |= {LOOKUP} if attached_documents({"data": graph.nodes[id].data}) else set()
    for uuid in uuids:
        if uuid in functions and functions[uuid].name not in taken:
            taken.add(functions[uuid].name)
            yield functions[uuid]


def context_for(
    service: Service,
    organization: int | None,
    no_transfer: str = "",
    run: Run | None = None,
) -> ToolContext:
    """The context that tools run in during a conversation of an organization.

    :param no_transfer: why the conversation can't be transferred, one of transfer_call.FAILURES; empty if it can be.
    :param run: that of the conversation; the telephony configuration of its call says how destinations are read.
    """

    def header(uuid: str | None) -> Mapping[str, str] | None:
        if uuid and not credentials.exists(organization, uuid):
            return None
        return credentials.header(service, organization, uuid)

    def transfer_address(destination: str) -> str:
        if organization is None:
            return destination
        configuration = None if run is None else run.telephony_configuration_id
        through = find(TelephonyConfiguration, id=configuration, organization=organization)
        try:
            # Carriers transfer to SIP addresses, also those that place no calls to them.
            address = read_number(destination, () if through is None else countries(through), sip=True)
        except NotDialable as error:
            raise TransferFailed("invalid_destination", error.reason) from None
        refusal = CallLimits.read(organizations.get(organization).preferences).refusal(address)
        if refusal is not None:
            raise TransferFailed("country_not_allowed", refusal)
        try:
            require_quota(organization)
        except LimitReached as error:
            raise TransferFailed("call_limit_reached", str(error.detail)) from None
        return address

    run_id = None if run is None else run.id
    return ToolContext(
        partial(service.http.send, owner=organization),
        header,
        no_transfer,
        transfer_address,
        decrypted=partial(secret_fields.decrypted, service.vault, find=secret_fields.in_tool),
        decrypted_url=partial(secret_fields.reveal_url, service.vault),
        call_host=service.host.call_tool and partial(service.host.call_tool, organization, run_id),
    )


def is_local(organization: int | None, request: RunTool) -> bool:
    """True if the call of a function is answered locally: no request is sent, and there are no side effects."""
    tool = _active(organization, request.tool_uuid)
    return tool is None or tool.is_local


def run(organization: int | None, request: RunTool, context: ToolContext) -> ToolReturned:
    """The result of a function that the model called: of the lookup in documents, or of a tool as it is stored now.

    It never raises: any failure is a result for the model, and an unexpected one is logged.
    """
    if request.document_uuids:
        return ToolReturned(request.at, request.number, documents.answer(organization, request))
    tool = _active(organization, request.tool_uuid, context.decrypted)
    if tool is None:
        _warn_of_missing(request.tool_uuid or "")
        return _error(request, f'The tool "{request.name}" is not there any more.')
    if request.on_entry and isinstance(tool, EndCall | TransferCall):
        return _error(request, f'The tool "{tool.name}" ends or hands over the call, which only a model may do.')
    try:
        return tool.run(request, context)
    except ToolError as error:
        return _error(request, str(error))
    except Exception as problem:
        log.exception("The tool %s could not be carried out", tool.uuid)
        return _error(request, f"Tool execution failed: {type(problem).__name__}")


def _warn_of_missing(uuid: str) -> None:
    """Log that a function of the app, which an agent may use, isn't there; of other tools the console shows that."""
    if uuid.startswith(PREFIX):
        log.warning(
            "%s isn't in this process, or not for this organization. `flask voiceapi dial` has the functions of the "
            "app, `voiceapi dial` hasn't, and so it is with `serve` and `relay`.",
            uuid,
        )


def _error(request: RunTool, error: str) -> ToolReturned:
    return ToolReturned(request.at, request.number, {"status": "error", "error": error})


def _active(
    organization: int | None, uuid: str | None, decrypted: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
) -> RunnableTool | None:
    record = None if uuid is None or organization is None else tools.get(organization, uuid)
    return None if record is None else _tool_of(record, decrypted)


def _tool_of(record: Tool, decrypted: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict) -> RunnableTool | None:
    """The tool of a record; None if it isn't active or its category can't be run in this release.

    :param decrypted: decrypts the secrets of a definition; without it they can't be sent.
    """
    if record.status != "active" or record.category not in CATEGORIES:
        return None
    config: Mapping[str, Any] = decrypted(record.definition).get("config", {})
    return CATEGORIES[record.category](record.tool_uuid, record.name, record.description, config)


# -- validation


def attached(organization: int | None, outline: Outline) -> list[Tool]:
    """The organization's tools that a definition attaches, of any status; none if the organization is None."""
    return tools.with_uuids(organization, outline.tools)


def active(records: Iterable[Tool]) -> dict[str, Tool]:
    """The active ones of these tools by uuid; validation checks the names of their functions."""
    return {tool.tool_uuid: tool for tool in records if tool.status == "active"}


def usable_without_model(records: Iterable[Tool]) -> set[str]:
    """The uuids of the tools that the scripted model uses, too: transfers, for a caller who asks for a person.

    One with a required parameter isn't among them, since only a language model fills that in.
    """
    usable = {uuid: _tool_of(tool) for uuid, tool in active(records).items() if tool.category == "transfer_call"}
    return {uuid for uuid, tool in usable.items() if tool and not tool.function().parameters.get("required")}


def records_of(given: Iterable[Mapping[str, Any]]) -> list[Tool]:
    """Records of tools that come with a workflow and aren't stored: each with a tool_uuid."""
    fields = ("tool_uuid", "name", "description", "definition")
    return [
        Tool(category=each["definition"]["type"], status="active", **{name: each[name] for name in fields})
        for each in given
    ]


def ending(records: Iterable[Tool]) -> set[str]:
    """The uuids of the active tools that end the call or hand it over."""
    return {uuid for uuid, tool in active(records).items() if tool.category in ("end_call", "transfer_call")}


def parameters(records: Iterable[Tool], outline: Outline) -> dict[str, Mapping[str, Any]]:
    """The JSON schemas of the parameters of those of these tools that nodes of a definition can call, by uuid."""
    called = {call.tool for call in outline.calls.values()}
    found = ready(each for each in records if each.category in CALLABLE and each.tool_uuid in called)
    return {uuid: tool.function().parameters for uuid, tool in found.items()}


def names_used(records: Iterable[Tool]) -> set[str]:
    """All words in the definitions of these tools, among which are the variables of their templates."""
    return {name for tool in records for name in _WORD.findall(json_text(tool, Tool.definition))}


def warnings(records: Iterable[Tool]) -> dict[str, str]:
    """Of each of these tools, by uuid, a warning for the author of a workflow that attaches it, or ""."""
    return {tool.tool_uuid: _warning(tool) for tool in records}


def _warning(record: Tool) -> str:
    name = f'The tool "{record.name}"'
    if record.status != "active":
        state = "archived" if record.status == "archived" else "a draft"
        return f"{name} is {state}; this node goes without it."
    if record.category not in CATEGORIES:
        return (
            f"{name} is of the kind {record.category}, which can't be run in this release; this node goes without it."
        )
    if any(record.definition.get("config", {}).get(member) == "audio" for member in MESSAGE_TYPES):
        return f"{name} plays a recording, and there are no recordings in this release; nothing is said instead."
    return ""
