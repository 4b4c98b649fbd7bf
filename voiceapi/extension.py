"""Adds voiceapi to a Flask app: one parent blueprint, one before_request, one entry in app.extensions, one command."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast, overload
from weakref import WeakValueDictionary

from flask import Blueprint, Flask, current_app
from werkzeug.routing import Rule

from .api import BLUEPRINTS, errors, health, metrics, openapi, register
from .cli.main import group
from .console import documents, pages
from .host import calls, chats, listeners, publishing, runs, tools
from .host.chats import Chat
from .host.errors import CallRefused, translated
from .host.listeners import RunListener
from .host.runs import Run
from .opening import open_in
from .service import Service
from .store.locks import REQUEST
from .tools.python import HostFunction

Tool = TypeVar("Tool", bound=Callable[..., Any])
Listener = TypeVar("Listener", bound=Callable[[Run], None])


class VoiceAPI:
    """The extension. `VoiceAPI(app)` is `VoiceAPI().init_app(app)`.

    :param app: the host's app.
    :param url_prefix: where the API is mounted; `/api/v1` follows it.
    :param authenticate: the host's own login, called for a request without a key. It returns the name of the
        organization that the request acts for (created when it is new), or None to refuse the request.
    """

    # For a host's protection against forged requests (CSRF), which has to leave these alone: their requests come from
    # programs and carriers, or from pages of the host's own origin, which voiceapi checks itself.
    blueprints: ClassVar[tuple[Blueprint, ...]] = (*BLUEPRINTS, pages.blueprint, documents.blueprint)

    def __init__(
        self,
        app: Flask | None = None,
        *,
        url_prefix: str = "",
        authenticate: Callable[[], str | None] | None = None,
    ) -> None:
        self._authenticate = authenticate
        # Shared with the services of all apps, since functions are decorated before and after `init_app`.
        self._listeners: dict[str, RunListener] = {}
        self._tools: dict[str, HostFunction] = {}
        self._services: WeakValueDictionary[int, Service] = WeakValueDictionary()
        if app is not None:
            self.init_app(app, url_prefix=url_prefix)

    def init_app(self, app: Flask, *, url_prefix: str = "") -> None:
        """Open the database, make it ready, and mount the API. No thread starts here.

        VOICEAPI_* settings are read from app.config; what isn't there, from the environment.

        :raises RuntimeError: when voiceapi is already part of this app.
        :raises SettingError: for a setting that can't be used.
        :raises StoreError: when the database can't be used.
        :raises SecretError: when the secret's file can't be used.
        """
        service = self._services[id(app)] = mount(app, url_prefix, self._authenticate)
        listeners.register(service, app.app_context, self._listeners)
        tools.register(service, app.app_context, self._tools)
        path = pages.path(app)
        if path is not None and service.first_keys and self._authenticate is None:
            origin = service.settings.public_url or ""
            service.announce(f"Console: {origin}{path}#key={service.first_keys.pop()}")

    def on_run_completed(self, function: Listener) -> Listener:
        """Decorator of a function that gets each run after its end: calls, chats, tests, of all organizations.

        It is called after the commit, on a thread of its own and in the app's context, at least once for each run,
        through the end of the process as well. What it raises is logged and counts as an attempt that failed: it is
        called again after 30 s, then after twice as long each time, five times in all. The deliveries of a run show
        its attempts, as those of webhooks, and can be redelivered.

        :raises TypeError: for one that takes anything but a run, and for a coroutine or a generator.
        :raises ValueError: for a function without a name of its own: a lambda, or one within another function.
        """
        self._listeners[listeners.name_of(function)] = function
        for service in list(self._services.values()):
            listeners.note(service)
        return function

    @overload
    def tool(self, function: Tool) -> Tool: ...
    @overload
    def tool(
        self, *, name: str | None = None, timeout: float = 10.0, organizations: Collection[str] | None = None
    ) -> Callable[[Tool], Tool]: ...
    def tool(
        self,
        function: Tool | None = None,
        *,
        name: str | None = None,
        timeout: float = 10.0,
        organizations: Collection[str] | None = None,
    ) -> Any:
        """Decorator of a function that agents may call: nodes attach it among their `tool_uuids` as `python:NAME`.

        A node's `call` names it so, too, and needs no model. The model sees its name, its docstring and its parameters,
        whose hints are str, int, float, bool, date, Literal, Optional and list of these; `Annotated[int, "text"]`
        describes one. A parameter with the hint `Run` gets the conversation. It returns JSON values, a dataclass, a
        date or None. It runs in the app's context, on a thread of its own. What it raises is an error that the model
        reads, and is logged.

        :param name: by default the function's.
        :param timeout: seconds, at most 60; then the model reads an error, and the result is dropped.
        :param organizations: the names of those whose agents may use it, by default all.
        :raises TypeError: for a parameter that has another hint or none, and for a coroutine or a generator.
        :raises ValueError: for a name that another tool has, or that isn't one; and for another time-out.
        """

        def decorate(function: Tool) -> Tool:
            made = HostFunction.of(function, Run, name=name, timeout=timeout, organizations=organizations)
            known = self._tools.setdefault(made.name, made)
            if _place_of(known.call) != _place_of(function):
                raise ValueError(f"There is a tool {made.name!r} already: {'.'.join(_place_of(known.call))}.")
            self._tools[made.name] = made
            return function

        return decorate if function is None else decorate(function)

    def call(
        self,
        agent: int | str,
        to: str,
        *,
        context: Mapping[str, Any] | None = None,
        key: str | None = None,
        configuration: int | None = None,
        organization: str | None = None,
    ) -> Run:
        """Call somebody with the published version of an agent.

        It returns when the carrier has answered, or gave no answer (the run's state is `unknown` then), after at most
        25 seconds: 5 until slow work may begin, 10 for the turn of the carrier's account, 10 for the carrier.

        :param agent: the id of its workflow; or as text its uuid, one of its trigger paths or its name.
        :param to: with + or 00 and country code, a national number if the telephony configuration names a country, or a
            sip: address where the carrier takes it.
        :param context: the initial context, in JSON values.
        :param key: calls with one key are one call for 24 hours. A repeat returns its run as it is then.
        :param configuration: the id of the telephony configuration, by default the one that the API would take.
        :param organization: the name of one that exists, by default `default`.
        :raises AgentNotFound, InvalidNumber, LimitReached, KeyConflict, CallRefused: see each; nothing was called.
        :raises TypeError: for a value of the context that JSON has none for.
        """
        service = _service()
        with translated(CallRefused), service.store.session(REQUEST):
            return calls.call(service, agent, to, context, key, configuration, organization)

    def run(self, id: int, *, organization: str | None = None) -> Run:
        """A run by its id.

        :raises VoiceAPIError: with status 404, when the organization has no such run.
        """
        with translated(), _service().store.session(REQUEST):
            return runs.get(organization, id)

    @overload
    def chat(
        self, agent: int | str, *, context: Mapping[str, Any] | None = None, organization: str | None = None
    ) -> Chat: ...
    @overload
    def chat(self, *, run: int, organization: str | None = None) -> Chat: ...
    def chat(
        self,
        agent: int | str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        run: int | None = None,
        organization: str | None = None,
    ) -> Chat:
        """Open a text chat with the published version of an agent, which speaks first; or go on with one.

        :param agent, context, organization: as for `call`.
        :param run: the id of the run of a chat to go on with, in place of an agent.
        :raises AgentNotFound: when there is no such agent.
        :raises VoiceAPIError: when there is no such chat (404), when the agent can't be carried out (422), when too
            many slow requests are in progress or the database can't be used (503).
        """
        if (agent is None) == (run is None):
            raise TypeError("Give either an agent or the run of a chat.")
        service = _service()
        with translated(), service.store.session(REQUEST):
            if run is not None:
                return chats.resumed(service, run, organization)
            assert agent is not None
            return chats.opened(service, agent, context, organization)

    def publish(
        self, definition: Mapping[str, Any] | str | Path, *, name: str | None = None, organization: str | None = None
    ) -> int:
        """Create the agent of that name, or publish a new version of it if the definition differs from the last one.

        What somebody edits in the console stays until the definition changes. For the start of an app, also of several
        processes at once.

        :param definition: of a workflow, alone or as a body to create it; or the path of a JSON file that holds one.
        :param name: by default that of the file, without its suffix.
        :param organization: is created if its name is new.
        :return: the id of the workflow.
        :raises OSError: when the file can't be read.
        :raises AgentNotFound: when several agents have the name.
        :raises VoiceAPIError: with status 422 and all that is wrong, when the definition isn't valid; 409 when another
            agent has one of its trigger paths.
        """
        service = _service()
        with translated(), service.store.session(REQUEST):
            return publishing.publish(service, definition, name, organization)


def _place_of(function: Callable[..., Any]) -> tuple[str, str]:
    """Where a function is defined, which stays when its module is loaded again."""
    return function.__module__, function.__qualname__


def _service() -> Service:
    """The service of the current app, whose jobs need not run in this process."""
    found = current_app.extensions.get("voiceapi")
    if found is None:
        raise RuntimeError("This app has no voiceapi: call VoiceAPI().init_app(app) first.")
    return cast(Service, found)


def create_app(config: Mapping[str, Any] | None = None) -> Flask:
    """A Flask app that is voiceapi and nothing else.

    :param config: settings that come before those of the environment, with the same names.
    """
    app = Flask("voiceapi", static_folder=None)
    app.config.update(config or {})
    errors.install(app)
    service = mount(app, "")
    health.serve_at_root(app)
    if service.settings.console:
        pages.serve_at_root(app)
    return app


class LateRule(Rule):
    """A route that compiles the function which builds its URLs when one is built; of most of ours none ever is.

    werkzeug compiles two functions for each route, which takes five sixths of the time of mounting 150 of them.
    """

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compiled: Callable[..., tuple[str, str]] | None = None

        # Bound to the rule, as what werkzeug compiles.
        def build(rule: LateRule, /, **values: Any) -> tuple[str, str]:
            nonlocal compiled
            compiled = compiled or super(LateRule, rule)._compile_builder(append_unknown)
            return compiled(rule, **values)

        return build


def mount(app: Flask, url_prefix: str, authenticate: Callable[[], str | None] | None = None) -> Service:
    """Open the service of an app and mount the API and the console; the parameters and errors are those of VoiceAPI."""
    if "voiceapi" in app.extensions:
        raise RuntimeError("voiceapi is already part of this app; two of them need two apps.")
    prefix = url_prefix.rstrip("/")
    if prefix and not prefix.startswith("/"):
        raise ValueError(f"url_prefix must start with a slash, not {url_prefix!r}.")
    service = open_in(app, prefix, authenticate, openapi.text(prefix))
    usual = app.url_rule_class
    app.url_rule_class = LateRule if usual is Rule else usual
    try:
        register(app, prefix)
        documents.register(app, prefix)
        if service.settings.console:
            pages.register(app, prefix)
        if service.settings.metrics_key is not None:
            metrics.register(app, prefix)
    finally:
        app.url_rule_class = usual
    errors.install_routing(app, prefix)
    app.cli.add_command(group)
    return service
