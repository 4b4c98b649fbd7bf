"""What the commands share: the app that they run on, kinds of arguments, and errors as one line."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Mapping
from functools import update_wrapper, wraps
from typing import Any

import click
from flask import Flask, current_app
from flask.cli import AppGroup, ScriptInfo

from ..config import PREFIX, SettingError
from ..errors import ServiceError
from ..security import SecretError
from ..service import Service
from ..store.database import StoreError


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


class BadSetting(click.ClickException):
    """A setting that can't be used is an error of usage."""

    exit_code = click.UsageError.exit_code


class CommandGroup(AppGroup):
    """A group whose commands run in the app's context and report errors in one line instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SettingError as error:
            raise BadSetting(str(error)) from None
        except (StoreError, SecretError) as error:
            raise click.ClickException(str(error)) from None
        except ServiceError as error:
            raise click.ClickException(str(error.detail)) from None


def script_info(create_app: Callable[[Mapping[str, Any]], Flask]) -> ScriptInfo:
    """How the commands get their app when there is no host: made when the first one needs it, closed after it.

    :param create_app: makes the app; it is given the settings that the command puts before the environment's.
    """

    def load() -> Flask:
        app = create_app(info.data)
        # The app's context ends with each request, too; the service ends with the command.
        click.get_current_context().call_on_close(app.extensions["voiceapi"].close)
        return app

    info = ScriptInfo(create_app=load, set_debug_flag=False)
    return info


def with_settings(**settings: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the command's app with these settings. A host's app keeps its own."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.pass_context
        def decorated(context: click.Context, /, *args: Any, **kwargs: Any) -> Any:
            context.ensure_object(ScriptInfo).data.update(settings)
            return context.invoke(command, *args, **kwargs)

        return update_wrapper(decorated, command)

    return decorate


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


def log_to_stderr() -> None:
    """Write the service's log, with the start of each call, to standard error; a host's own logging stays as it is."""
    log = logging.getLogger("voiceapi")
    if log.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)


def interrupt_on_term() -> None:
    """End on SIGTERM as on an interrupt."""
    signal.signal(signal.SIGTERM, lambda *_: _interrupt())


def _interrupt() -> None:
    raise KeyboardInterrupt
