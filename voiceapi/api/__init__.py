"""The HTTP interface: one module per resource, each a blueprint of plain functions."""

from __future__ import annotations

from urllib.parse import quote

import flask
import flask_smorest
from flask import Flask, Response, g, request

from . import (
    auth,
    call_webhooks,
    campaigns,
    chats,
    contacts,
    credentials,
    documents,
    errors,
    files,
    health,
    organizations,
    phone_numbers,
    recordings,
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
    *(workflows.blueprint, workflows.node_type_blueprint, runs.blueprint, chats.blueprint),
    *(campaigns.blueprint, contacts.blueprint, triggers.manual),
    *(tools.blueprint, credentials.blueprint, documents.blueprint, recordings.blueprint, files.blueprint),
    *(telephony_configs.blueprint, phone_numbers.blueprint),
    *(organizations.blueprint, organizations.api_key_blueprint, webhooks.blueprint),
)
# What Warning headers say, by where the names are kept during a request.
WARNINGS = {
    "voiceapi_unknown_fields": "fields not known here and passed over",
    "voiceapi_missing_variables": "variables that the greeting needs and initial_context lacks",
    "voiceapi_model_needs": "parts that need a language model, and none is configured",
}
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
    root.after_request(add_warnings)
    root.after_request(drop_content_type)
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


def drop_content_type(response: Response) -> Response:
    """Take Flask's text/html from its automatic answer to OPTIONS, which has no content."""
    if request.method == "OPTIONS" and not response.is_json:
        response.headers.pop("Content-Type")
    return response


def add_warnings(response: Response) -> Response:
    """Name in Warning headers what a request has too much or lacks: at most ten names, each cut at 100 characters."""
    for noted, text in WARNINGS.items():
        names = g.pop(noted, None)
        if names:
            named = ", ".join(quote(str(name)[:100], safe="") for name in dict.fromkeys(names[:10]))
            response.headers.add("Warning", f'199 voiceapi "{text}: {named}"')
    return response
