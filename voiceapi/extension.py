"""Adds voiceapi to a Flask app: one parent blueprint, one before_request, one entry in app.extensions, one command."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import ClassVar

from flask import Blueprint, Flask

from . import jobs
from .api import BLUEPRINTS, metrics, openapi, register
from .api.errors import install_routing
from .background.slow_jobs import SlowJobs
from .bulkhead import Bulkhead
from .calls.webhooks import SimulatedWebhooks
from .campaigns import attempts
from .campaigns.dialer import worker
from .cli.main import group
from .config import PREFIX, SettingError, Settings, names, without_effect
from .console import documents, pages
from .http_client import HTTPClient
from .masking import mask_password
from .operating import gauges
from .operating.metrics import Metrics
from .organizations import api_keys
from .postcall import outbox
from .security import OneLine, SecretError, Vault, read_or_create_secret
from .service import Service
from .store import secret_check
from .store.database import Store, StoreError
from .store.failures import DatabaseUnavailable
from .store.migrations import check_version, migrate
from .store.private_files import keep_private

# One filter for all apps of a process, since they share a logger.
ONE_LINE = OneLine()
# What follows the end of a run, in this order.
LISTENERS = (outbox.on_run_completed, attempts.on_run_completed)


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
        service = mount(app, url_prefix, self._authenticate)
        path = pages.path(app)
        if path is not None and service.first_keys and self._authenticate is None:
            origin = service.settings.public_url or ""
            service.announce(f"Console: {origin}{path}#key={service.first_keys.pop()}")


def mount(app: Flask, url_prefix: str, authenticate: Callable[[], str | None] | None = None) -> Service:
    """Open the service of an app and mount the API and the console; the parameters and errors are those of VoiceAPI."""
    if "voiceapi" in app.extensions:
        raise RuntimeError("voiceapi is already part of this app; two of them need two apps.")
    prefix = url_prefix.rstrip("/")
    if prefix and not prefix.startswith("/"):
        raise ValueError(f"url_prefix must start with a slash, not {url_prefix!r}.")
    given = {name: app.config.get(name, os.environ.get(name)) for name in names()}
    if not given[f"{PREFIX}DATABASE"]:
        given[f"{PREFIX}DATABASE"] = Path(app.instance_path, "voiceapi.db")
    service = app.extensions["voiceapi"] = open_service(Settings.read(given), prefix, authenticate)
    if line := without_effect({*os.environ, *map(str, app.config)}, service.settings):
        service.announce(line)
    if service.settings.metrics_key is not None and service.metrics is None:
        service.announce(metrics.NOT_INSTALLED)
    register(app, prefix)
    documents.register(app, prefix)
    if service.settings.console:
        pages.register(app, prefix)
    if service.settings.metrics_key is not None:
        metrics.register(app, prefix)
    install_routing(app, prefix)
    app.cli.add_command(group)
    return service


def _open_vault(settings: Settings, *, is_needed: bool) -> Vault:
    """The vault with the secret of the settings, else with that in the file beside the database.

    :param is_needed: the database was encrypted with a secret, so a file that is missing isn't made again.
    """
    if settings.secret is not None:
        return Vault(settings.secret.encode())
    file = Path(f"{settings.database_file}.secret")
    if is_needed and not file.exists():
        raise SecretError(
            f"The secret of the database is missing: there is no file {file}, and {PREFIX}SECRET isn't set. Restore "
            "it; if it is lost, docs/operations.md says how to go on without it."
        )
    try:
        return Vault(read_or_create_secret(file), file=file)
    except OSError as error:
        raise SecretError(f"The secret's file {file} can't be read or made: {error.strerror}.") from None


def open_service(settings: Settings, prefix: str = "", authenticate: Callable[[], str | None] | None = None) -> Service:
    """Open the database, migrate it, and return the parts of one app, which is kept in `app.extensions["voiceapi"]`.

    The jobs are registered; no thread starts. The first API key of a new database is announced.
    The errors are those of `init_app`.
    """
    path = settings.database_file
    logging.getLogger("voiceapi").addFilter(ONE_LINE)
    open_to_others: list[Path] = []
    # What is undone when the service can't be opened.
    unopened = ExitStack()
    try:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            open_to_others = keep_private(path)
        store = Store(settings.database)
        unopened.callback(store.close)
        if path is None and settings.secret is None:
            raise SettingError(
                f"{PREFIX}SECRET must be set, because {PREFIX}DATABASE is no file with a folder for the secret's file. "
                "Set it to the same text for every process on every host; if the database was copied from a file, to "
                "the content of that file's .secret."
            )
        version = check_version(store)
        # The secret comes before the migration, which encrypts what earlier releases stored in clear.
        vault = _open_vault(settings, is_needed=secret_check.is_needed(store, version))
        migrate(store, vault)
        secret_check.prove(store, vault)
        service = _assemble(settings, store, vault, prefix, authenticate)
        key = api_keys.bootstrap(service)
        unopened.pop_all()
    except DatabaseUnavailable as error:
        raise StoreError(f"The database {mask_password(settings.database)} {error.reason.instruction}") from error
    except OSError as error:
        name = mask_password(settings.database)
        raise StoreError(f"The files of the database {name} can't be made: {error.strerror}.") from None
    finally:
        unopened.close()
    jobs.register(service)
    worker.register(service)
    for file in open_to_others:
        service.announce(f"Others may be able to read {file}, since its mode can't be changed: make it 0600.")
    if key is not None:
        service.announce(f"First API key, shown this once: {key}")
        service.first_keys.append(key)
    return service


def _assemble(
    settings: Settings, store: Store, vault: Vault, prefix: str, authenticate: Callable[[], str | None] | None
) -> Service:
    """The parts of an app on a database that is ready."""
    counts = None
    if settings.metrics_key is not None:
        with suppress(ImportError):  # whoever asks for the metrics is told
            counts = Metrics()
    service = Service(
        settings,
        store,
        vault,
        SimulatedWebhooks,
        prefix,
        authenticate,
        openapi.text(prefix),
        token=store.token,
        slow_jobs=SlowJobs(before_waiting=store.release),
        bulkhead=Bulkhead(settings.threads, before_waiting=store.release),
        http=HTTPClient(settings.allow_private_urls, before_sending=store.release),
        listeners=LISTENERS,
        metrics=counts,
    )
    if counts is not None:
        counts.add_source(partial(gauges.read, service))
    return service
