from __future__ import annotations

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi import keys


@pytest.fixture
def stranger(app: Flask) -> FlaskClient:
    """A client of another organization than `client`."""
    service = app.extensions["voiceapi"]
    with service.store.session():
        organization = keys.organization_named(service, "strangers")
        _, key = keys.create(organization.id, "theirs")
    client = app.test_client()
    client.environ_base["HTTP_X_API_KEY"] = key
    return client
