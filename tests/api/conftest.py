from __future__ import annotations

import pytest
from flask import Flask
from flask.testing import FlaskClient

from voiceapi.organizations import api_keys


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
