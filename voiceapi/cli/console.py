"""The console's address, which a start prints, and the command `console`, which makes a key for it."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

import click
from flask import current_app
from flask.cli import with_appcontext

from ..organizations import api_keys
from .base import TEXT, current_service, with_routes, with_session
from .logs import say

# Where a browser of the same machine finds a server that listens at all its addresses.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "*": "127.0.0.1", "::": "::1"}


def url(host: str, port: int) -> str:
    """The origin of a server at this address."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def addresses(origins: Iterable[str], path: str, key: str | None = None) -> str:
    """The addresses of the console at these origins. The page takes the key from its address into the tab."""
    fragment = "" if key is None else f"#key={quote(key, safe='')}"
    return " and ".join(f"{origin}{path}{fragment}" for origin in origins)


def _path() -> str | None:
    # It needs the API's modules, as the app does, which not every command makes.
    from ..console import pages

    return pages.path(current_app)


def show_address(listening: tuple[str, int]) -> None:
    """Write on standard error where the console is, with the first key if this start made it."""
    service = current_service()
    path = _path()
    if path is None:
        return
    host, port = listening
    origins = [url(EVERYWHERE.get(host, host), port)]
    if service.settings.public_url is not None:
        origins.append(service.settings.public_url)
    if service.first_keys:
        # Not a line of the log, which may be kept elsewhere.
        click.echo(f"Console: {addresses(origins, path, service.first_keys.pop())}", err=True)
    else:
        say(service.settings, f"Console: {addresses(origins, path)}")


@click.command("console")
@click.option(
    "--organization",
    type=TEXT,
    default=api_keys.DEFAULT_ORGANIZATION,
    show_default=True,
    help="The organization that the console shows. Made when it is new.",
)
@click.option("--name", type=TEXT, default="console", show_default=True, help="What the new key is called.")
@with_routes
@with_appcontext
@with_session
def console(organization: str, name: str) -> None:
    """Make a key for the console and write the console's address with it, to be opened in a browser.

    Every time it makes another key; `voiceapi keys list` and `keys archive` clean them up.
    """
    service = current_service()
    path = _path()
    if path is None:
        raise click.ClickException("The console isn't served: VOICEAPI_CONSOLE is off.")
    settings = service.settings
    origin = settings.public_url
    if origin is None and path == "/":
        if settings.port == 0:
            raise click.UsageError(
                "VOICEAPI_PORT is 0, so every start has another port: set it, or open the address that the start "
                "prints with a key of `voiceapi keys create NAME`."
            )
        origin = url(EVERYWHERE.get(settings.host, settings.host), settings.port)
    if origin is None:
        click.echo("This is a path of your app; set VOICEAPI_PUBLIC_URL for the whole address.", err=True)
    owner = api_keys.get_or_create_organization(service, organization)
    click.echo(addresses([origin or ""], path, api_keys.create(owner.id, name)[1]))
