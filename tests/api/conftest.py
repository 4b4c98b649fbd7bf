from __future__ import annotations

from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.organizations import api_keys
from voiceapi.service import Service


@pytest.fixture
def stranger(app: Flask) -> FlaskClient:
    """A client of another organization than `client`."""
    service = app.extensions["voiceapi"]
    with service.store.session():
        organization = api_keys.get_or_create_organization(service, "strangers")
        _, key = api_keys.create(organization.id, "theirs")
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = key
    return client


@pytest.fixture
def stored(service: Service) -> Callable[[], bytes]:
    """Reads all that the database holds: its files, or its rows as text."""

    def read() -> bytes:
        store = service.store
        service.close()
        if store.path is not None:
            return b"".join(file.read_bytes() for file in store.path.parent.glob(f"{store.path.name}*"))
        with store.session():
            rows = [
                row
                for table in store.database.get_tables()
                for row in store.database.execute_sql(f'SELECT each::text FROM "{table}" each').fetchall()
            ]
        return repr(rows).encode()

    return read
