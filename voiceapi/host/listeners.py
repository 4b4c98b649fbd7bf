"""Functions of a host's app that get each ended run."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from ..jobs import run_due
from ..postcall import delivery
from ..service import Service
from ..store import runs as records
from ..store.failures import DatabaseUnavailable
from ..tools.python import require_function
from . import runs
from .runs import Run

RunListener = Callable[[Run], None]
THREADS = 2


def name_of(function: Callable[..., Any]) -> str:
    """The name by which deliveries are stored, the same in each process of an app: `module.function`.

    :raises TypeError: for what can't be called with a run alone, or returns a coroutine or a generator.
    :raises ValueError: for a function that another process can't name: a lambda, or one within another function.
    """
    require_function(function)
    module, name = function.__module__, function.__qualname__
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise TypeError(f"{name} gets a run and nothing else: {error}.") from None
    if "<" in name:
        raise ValueError(f"{name} has no name that another process knows: define it at the top of a module.")
    if module == "__main__":
        # `python shop.py`, where a server calls the module `shop`; `python -m shop` knows its name itself.
        main = sys.modules[module]
        spec = getattr(main, "__spec__", None)
        module = spec.name if spec is not None else Path(getattr(main, "__file__", None) or module).stem
    return f"{module}.{name}"


def register(
    service: Service, context: Callable[[], AbstractContextManager[Any]], functions: Mapping[str, RunListener]
) -> None:
    """Have the service's threads give ended runs to functions, which may be added to later.

    :param context: makes a context of the app.
    :param functions: by the names that `name_of` gives.
    """

    def give(function: RunListener, id: int) -> None:
        """Call a function in the app's context, without a request, a transaction or a connection of ours."""
        run = runs.read(records.Run.get_by_id(id))
        service.store.release()
        with context():
            function(run)

    service.host.listeners, service.host.give = functions, give
    note(service)
    if service.settings.worker:
        due = partial(delivery.listeners_due, service)
        service.workers.consume(partial(run_due, service, delivery.call_next_listener, due), THREADS, "call_listeners")
        service.workers.repeat(delivery.RENEW_SECONDS, partial(delivery.renew_listeners, service))


def note(service: Service) -> None:
    """Note the service's listeners in its database, so that from now on other processes record their runs for them."""
    with suppress(DatabaseUnavailable):  # a job notes them again
        delivery.note_listeners(service)
