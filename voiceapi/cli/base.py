"""The parts that commands share: the app that they run on, kinds of arguments, and errors as one line."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import update_wrapper, wraps
from pathlib import Path
from typing import Any

import click
from flask import Flask, current_app
from flask.cli import AppGroup, ScriptInfo

from ..config import PREFIX, SettingError, Settings, names
from ..errors import RecordNotFound, ServiceError
from ..organizations import api_keys
from ..security import SecretError
from ..service import Service
from ..store.failures import EXHAUSTED, UNREACHABLE, DatabaseUnavailable, StoreError
from ..store.organizations import all_organizations
from .logs import say


class _Text(click.ParamType):  # type: ignore[type-arg]
    """An argument that the database can keep and the terminal can show."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            self.fail("it must be text in UTF-8.", param, ctx)
        return value


TEXT = _Text()
ID = click.IntRange(1, 2**63 - 1)
JSON = click.option("--json", "as_json", is_flag=True, help="Write JSON, for machines.")


def organization_option(help: str | None = None) -> Callable[..., Any]:
    """The option that names the organization whose records a command reads and changes."""
    default = api_keys.DEFAULT_ORGANIZATION
    return click.option("--organization", type=TEXT, default=default, show_default=True, help=help)


ORGANIZATION = organization_option()


# How long a database that can't be reached is waited for, and how often a line says so.
DATABASE_SECONDS, LINE_SECONDS = 30.0, 5.0
# Errors of a disk, or of what takes the output, that no command can prevent.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class BadSetting(click.ClickException):
    """A setting that can't be used is an error of usage."""

    exit_code = click.UsageError.exit_code


class CommandGroup(AppGroup):
    """A group whose commands run in the app's context and report errors in one line instead of a traceback."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with errors_as_lines():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with errors_as_lines():
            return super().invoke(ctx)


@contextmanager
def errors_as_lines() -> Iterator[None]:
    """Raise errors of the service as click's, which are reported in one line."""
    try:
        yield
    except SettingError as error:
        raise BadSetting(str(error)) from None
    except StoreError as error:
        raise click.ClickException(f"{error} {PREFIX}DATABASE says where it is.") from None
    except SecretError as error:
        raise click.ClickException(str(error)) from None
    except ServiceError as error:
        raise click.ClickException(_sentences(error)) from None
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        raise click.ClickException(f"What the command writes can't be written: {error.strerror}.") from None


def _sentences(error: ServiceError) -> str:
    """What an error says; of a workflow that isn't valid all findings."""
    match error.detail:
        case {"errors": [*findings]}:
            return "\n".join(
                f"{' '.join(filter(None, (each['kind'], each['id'], each['field'])))}: {each['message']}"
                for each in findings
            )
    return str(error.detail)


def owner_of(organization: str) -> int:
    """The id of the organization of that name.

    :raises click.ClickException: when there is none; it names those that there are.
    """
    with suppress(RecordNotFound):
        return int(api_keys.require_organization(organization).id)
    known = ", ".join(repr(each.name) for each in all_organizations())
    raise click.ClickException(f"There is no organization named {organization!r}; --organization takes one of {known}.")


# Makes an app; it is given the settings that the command puts before the environment's.
CreateApp = Callable[[Mapping[str, Any]], Flask]


def script_info(create_app: CreateApp, open_app: CreateApp | None = None) -> ScriptInfo:
    """How the commands get their app when there is no host: made when the first one needs it, closed after it.

    :param open_app: makes an app without routes, for the commands that aren't `with_routes`; `create_app` otherwise.
    """

    def load() -> Flask:
        create = create_app if info.needs_routes or open_app is None else open_app
        app = create(info.data)
        # The app's context ends with each request, too; the service ends with the command.
        click.get_current_context().call_on_close(app.extensions["voiceapi"].close)
        return app

    info = OwnInfo(create_app=load, set_debug_flag=False)
    return info


class OwnInfo(ScriptInfo):
    """That of the program `voiceapi`, whose settings can be read without an app, which would make a database."""

    needs_routes = False


def with_routes(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make the command's app with the routes of the API and of the console. Stands above `with_appcontext`."""

    @click.pass_context
    def decorated(context: click.Context, /, *args: Any, **kwargs: Any) -> Any:
        info = context.ensure_object(ScriptInfo)
        if isinstance(info, OwnInfo):
            info.needs_routes = True
        return context.invoke(command, *args, **kwargs)

    return update_wrapper(decorated, command)


def settings_without_service() -> Settings:
    """The settings of the command's app. No service is open then, also not that of a host's app."""
    info = click.get_current_context().ensure_object(ScriptInfo)
    if not isinstance(info, OwnInfo):
        service: Service = info.load_app().extensions["voiceapi"]
        service.close()
        return service.settings
    given = {name: info.data.get(name, os.environ.get(name)) for name in names()}
    if not given[f"{PREFIX}DATABASE"]:
        given[f"{PREFIX}DATABASE"] = Path(Flask("voiceapi", static_folder=None).instance_path, "voiceapi.db")
    return Settings.read(given)


def with_settings(**settings: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the command's app with these settings. A host's app keeps its own."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.pass_context
        def decorated(context: click.Context, /, *args: Any, **kwargs: Any) -> Any:
            context.ensure_object(ScriptInfo).data.update(settings)
            return context.invoke(command, *args, **kwargs)

        return update_wrapper(decorated, command)

    return decorate


def waits_for_database(command: Callable[..., Any]) -> Callable[..., Any]:
    """Have the command wait for a database server that starts at the same time, rather than end. A host's app doesn't.

    Stands above `with_appcontext`.
    """

    @click.pass_context
    def decorated(context: click.Context, /, *args: Any, **kwargs: Any) -> Any:
        info = context.ensure_object(ScriptInfo)
        if isinstance(info, OwnInfo):
            _load_when_reached(info)
        return context.invoke(command, *args, **kwargs)

    return update_wrapper(decorated, command)


def _load_when_reached(info: OwnInfo) -> None:
    until, next_line = time.monotonic() + DATABASE_SECONDS, 0.0
    while True:
        try:
            info.load_app()
            return
        except StoreError as error:
            cause, now = error.__cause__, time.monotonic()
            is_away = isinstance(cause, DatabaseUnavailable) and cause.reason in (UNREACHABLE, EXHAUSTED)
            if not is_away or now >= until:
                raise
            if now >= next_line:
                say(settings_without_service(), f"{error} Waits for it, {until - now:.0f} s at most.")
                next_line = now + LINE_SECONDS
            time.sleep(1.0)


def use_as_setting(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Callback of an option: its value goes before the setting of the same name."""
    if value is not None:
        context.ensure_object(ScriptInfo).data[f"{PREFIX}{option.name}".upper()] = value
    return value


def current_service() -> Service:
    """The service of the app that the command runs on."""
    found: Service = current_app.extensions["voiceapi"]
    return found


def with_session(command: Callable[..., Any]) -> Callable[..., Any]:
    """Bind the tables to the service's database while the command runs."""

    @wraps(command)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with current_service().store.session():
            return command(*args, **kwargs)

    return decorated


def interrupt_on_term() -> None:
    """End on SIGTERM as on an interrupt."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
