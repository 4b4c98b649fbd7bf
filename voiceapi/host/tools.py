"""Functions of a host's app that agents call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager
from threading import Thread
from typing import Any

from ..service import Service
from ..store import organizations
from ..store import runs as records
from ..store.tools import Tool
from ..tools.python import CATEGORY, PREFIX, HostFunction, as_json
from ..tools.tool import ToolError
from . import runs

log = logging.getLogger("voiceapi")


def register(
    service: Service, context: Callable[[], AbstractContextManager[Any]], functions: Mapping[str, HostFunction]
) -> None:
    """Let agents attach functions, which may be added to later, as tools.

    :param context: makes a context of the app.
    :param functions: by their names.
    """

    def listed(organization: int) -> list[Tool]:
        return [_record(service, organization, each) for each in functions.values() if _may_use(organization, each)]

    def call(organization: int | None, run: int | None, name: str, arguments: Mapping[str, Any]) -> Any:
        function = functions.get(name)
        if function is None or organization is None or not _may_use(organization, function):
            raise ToolError(f'There is no function "{name}" here.')
        given = function.read(arguments)
        if function.takes_run is not None:
            if run is None:
                raise ToolError("There is no conversation that the function could be given.")
            given[function.takes_run] = runs.read(records.Run.get_by_id(run))
        service.store.release()
        return _called(service, context, organization, run, function, given)

    service.store.unstored_tools = listed
    service.host.functions, service.host.call_tool = functions, call


def _may_use(organization: int, function: HostFunction) -> bool:
    return function.organizations is None or organizations.get(organization).name in function.organizations


def _record(service: Service, organization: int, function: HostFunction) -> Tool:
    """A function as the record of a tool, which isn't stored."""
    config = {"parameters": function.schema, "timeout_seconds": function.timeout}
    return Tool(
        id=0,
        organization=organization,
        tool_uuid=f"{PREFIX}{function.name}",
        name=function.name,
        description=function.description,
        category=CATEGORY,
        status="active",
        definition={"schema_version": 1, "type": CATEGORY, "config": config},
        created_at=service.started_at,
    )


def _called(
    service: Service,
    context: Callable[[], AbstractContextManager[Any]],
    organization: int,
    run: int | None,
    function: HostFunction,
    given: Mapping[str, Any],
) -> Any:
    """What a function returns, in JSON values. It runs on a thread of its own, in a context of the app and no request.

    :raises ToolError: when it fails, or takes longer than it may: then it goes on, and its result is dropped.
    """
    result: Future[Any] = Future()

    def work() -> None:
        try:
            with service.bulkhead.permitted(), context():
                found = as_json(function.call(**given))
        except BaseException as error:  # SystemExit as well
            result.set_exception(error)
        else:
            result.set_result(found)

    Thread(target=work, name=f"voiceapi-{function.name}", daemon=True).start()
    wait([result], function.timeout)
    if not result.done():
        service.bulkhead.count(organization, result)
        log.warning(
            "The function %s took longer than %g s; its result is dropped",
            *(function.name, function.timeout),
            extra={"run": run},
        )
        raise ToolError(f"It took longer than {function.timeout:g} s, so it may have done its work or not.")
    error = result.exception()
    if error is None:
        return result.result()
    if isinstance(error, ToolError):
        raise error
    log.error("The function %s failed", function.name, exc_info=error, extra={"run": run})
    raise ToolError(f"The function failed: {type(error).__name__}: {error}"[:1000])
