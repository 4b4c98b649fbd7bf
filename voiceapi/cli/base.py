"""What every command begins with: the app it runs on, its kinds of arguments, and how it tells what went wrong."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click
from flask import Flask, current_app
from flask.cli import ScriptInfo

from ..config import SettingError
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
    """A setting that can't be used is a fault of usage."""

    exit_code = click.UsageError.exit_code


def _host() -> Flask | None:
    """The app of `flask voiceapi`, or of a host's own test runner."""
    if current_app:
        return current_app._get_current_object()  # type: ignore[attr-defined,no-any-return]
    context = click.get_current_context(silent=True)
    script = context.find_object(ScriptInfo) if context is not None else None
    return script.load_app() if script is not None else None


@contextmanager
def application(**settings: Any) -> Iterator[Flask]:
    """The host's app under `flask voiceapi`; otherwise one made from the environment.

    :param settings: those that come before the environment's; None leaves it at that.
    """
    host = _host()
    if host is not None:
        yield host
        return
    from ..factory import create_app

    try:
        app = create_app({name: value for name, value in settings.items() if value is not None})
    except SettingError as error:
        raise BadSetting(str(error)) from None
    except (StoreError, SecretError) as error:
        raise click.ClickException(str(error)) from None
    try:
        yield app
    finally:
        service_of(app).close()


def service_of(app: Flask) -> Service:
    found: Service = app.extensions["voiceapi"]
    return found


def plainly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Say what went wrong in a sentence instead of a traceback."""

    @wraps(command)
    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except ServiceError as fault:
            raise click.ClickException(str(fault.detail)) from None

    return told


def interrupt_on_term() -> None:
    """End on SIGTERM as on an interrupt."""
    signal.signal(signal.SIGTERM, lambda *_: _interrupt())


def _interrupt() -> None:
    raise KeyboardInterrupt
