"""Opens the service of an app: its database, its secret and its jobs. No route is mounted here."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from flask import Flask

import voiceapi

from . import jobs
from .background.slow_jobs import SlowJobs
from .bulkhead import Bulkhead
from .calls.webhooks import SimulatedWebhooks
from .campaigns import attempts
from .campaigns.dialer import worker
from .config import PREFIX, SettingError, Settings, names, without_effect
from .http_client import HTTPClient
from .masking import mask_password
from .operating import metrics
from .operating.metrics import NOT_INSTALLED, PrometheusMetrics
from .organizations import api_keys
from .postcall import outbox
from .security import OneLine, SecretError, Vault, read_or_create_secret
from .service import Service, has_ended, opened
from .store import encryption, organizations
from .store.database import Store
from .store.failures import DatabaseUnavailable, StoreError
from .store.migrations import check_version, migrate
from .store.private_files import keep_private
from .store.telephony import open_tunnels

# One filter for all apps of a process, since they share a logger.
ONE_LINE = OneLine()
# What follows the end of a run, in this order.
LISTENERS = (outbox.on_run_completed, attempts.apply_run_outcome)


def open_in(
    app: Flask,
    prefix: str = "",
    authenticate: Callable[[], str | None] | None = None,
    openapi: Callable[[], str] = str,
) -> Service:
    """Open the service of an app by the settings of app.config, or else of the environment, and keep it in the app.

    The other parameters and the errors are those of `open_service`.
    """
    given = {name: app.config.get(name, os.environ.get(name)) for name in names()}
    if not given[f"{PREFIX}DATABASE"] and voiceapi.settings_in_tests is not None:
        given |= voiceapi.settings_in_tests(app, given)
    elif not given[f"{PREFIX}DATABASE"]:
        given[f"{PREFIX}DATABASE"] = Path(app.instance_path, "voiceapi.db")
    service = app.extensions["voiceapi"] = open_service(Settings.read(given), prefix, authenticate, openapi)
    opened[id(service)] = service
    if line := without_effect({*os.environ, *map(str, app.config)}, service.settings):
        service.announce(line)
    if service.settings.metrics_key is not None and service.metrics is None:
        service.announce(NOT_INSTALLED)
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


def open_service(
    settings: Settings,
    prefix: str = "",
    authenticate: Callable[[], str | None] | None = None,
    openapi: Callable[[], str] = str,
) -> Service:
    """Open the database, migrate it, and return the parts of one app, which is kept in `app.extensions["voiceapi"]`.

    The jobs are registered; no thread starts. The first API key of a new database is announced.
    The errors are those of `VoiceAPI.init_app`.

    :param prefix: where the app mounts the API; `/api/v1` follows it.
    :param authenticate: the host's login.
    :param openapi: returns the API's document as JSON; an app without the API has none.
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
        vault = _open_vault(settings, is_needed=encryption.needs_secret(store, version))
        migrate(store, vault)
        encryption.prove_secret(store, vault)
        service = _assemble(settings, store, vault, prefix, authenticate, openapi)
        key = api_keys.bootstrap(service)
        if settings.public_url is None:
            _use_tunnel(service)
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


def _use_tunnel(service: Service) -> None:
    """Have carriers reach the service by the tunnel of another process, if there is one, such as `serve --tunnel`."""
    with service.store.session():
        tunnels = [each for each in open_tunnels() if not has_ended(each.worker)]
    if tunnels:
        service.reach_at(tunnels[0].url)


def _assemble(
    settings: Settings,
    store: Store,
    vault: Vault,
    prefix: str,
    authenticate: Callable[[], str | None] | None,
    openapi: Callable[[], str],
) -> Service:
    """The parts of an app on a database that is ready."""
    counts = None
    if settings.metrics_key is not None:
        with suppress(ImportError):  # a request for the metrics is answered with the reason
            counts = PrometheusMetrics()

    def count_organizations() -> int:
        with store.session():
            return organizations.count_organizations()

    service = Service(
        settings,
        store,
        vault,
        SimulatedWebhooks,
        prefix,
        authenticate,
        openapi,
        token=store.token,
        slow_jobs=SlowJobs(before_waiting=store.release),
        bulkhead=Bulkhead(settings.threads, before_waiting=store.release, organizations=count_organizations),
        http=HTTPClient(settings.allow_private_urls, before_sending=store.release),
        listeners=LISTENERS,
        metrics=counts,
    )
    if counts is not None:
        counts.add_source(partial(metrics.read, service))
    return service
