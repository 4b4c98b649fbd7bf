"""The HTTP interface: one module per resource, each a blueprint of plain functions."""

from __future__ import annotations

import flask
import flask_smorest
from flask import Flask

from . import (
    auth,
    call_webhooks,
    campaigns,
    cases,
    chats,
    connected_numbers,
    contacts,
    credentials,
    definitions,
    documents,
    errors,
    files,
    health,
    insights,
    organizations,
    phone_numbers,
    rehearsals,
    runs,
    telephony_configs,
    tools,
    triggers,
    webhooks,
    workflows,
)
from .blueprint import Blueprint

# These need an API key. The trigger endpoints in OPEN check theirs themselves, after the body; the others need none.
GUARDED = (
    *(workflows.blueprint, workflows.node_type_blueprint, definitions.blueprint),
    *(definitions.lint_blueprint, cases.blueprint, rehearsals.blueprint, rehearsals.replay_blueprint),
    insights.blueprint,
    *(runs.blueprint, chats.blueprint),
    *(campaigns.blueprint, contacts.blueprint, triggers.manual),
    *(tools.blueprint, credentials.blueprint, documents.blueprint, rehearsals.recording_blueprint, files.blueprint),
    *(telephony_configs.blueprint, phone_numbers.blueprint, connected_numbers.blueprint),
    *(organizations.blueprint, organizations.api_key_blueprint, webhooks.blueprint),
)
OPEN = (health.blueprint, triggers.blueprint, files.public)
# All that have routes: what Flask names as the blueprint of a request is one of these, not one that they are nested in.
BLUEPRINTS: tuple[flask.Blueprint, ...] = (*GUARDED, *OPEN, call_webhooks.blueprint)


def register(app: Flask | flask_smorest.Api, prefix: str) -> None:
    """Mount the API under `prefix`/api/v1 of an app; given flask-smorest's Api of one, document its endpoints, too."""
    for documented in (*GUARDED, *OPEN) if isinstance(app, flask_smorest.Api) else ():
        documented.store_docs()
    root = Blueprint("voiceapi", __name__, public=True)
    root.before_request(auth.open_session)
    root.teardown_request(auth.close_session)
    errors.install(root)
    guarded = Blueprint("guarded", __name__)
    guarded.before_request(auth.authenticate)
    for blueprint in GUARDED:
        guarded.register_blueprint(blueprint)
    root.register_blueprint(guarded)
    for blueprint in OPEN:
        root.register_blueprint(blueprint)
    # Registered with Flask only, not with flask-smorest: these routes stay out of the document.
    flask.Blueprint.register_blueprint(root, call_webhooks.blueprint)
    app.register_blueprint(root, url_prefix=f"{prefix}/api/v1")
