"""A Flask app that mounts voiceapi under /voice, for the tests: its own login, error page and API stay as they are.

A user who is logged in works in the organization of the same name.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import flask_smorest
from flask import Flask, current_app, redirect, render_template_string, request, session, url_for
from marshmallow import Schema, fields
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from voiceapi import Run, VoiceAPI

PAGE = """<!doctype html>
<title>The workshop</title>
{% if user %}
<p>Hello {{ user }}. Your agents are <a href="/voice/console">in the console</a>.</p>
{% else %}
<form method="post" action="/login"><label>Your name <input name="user" required></label> <button>Log in</button></form>
{% endif %}
"""
LOST = "<!doctype html><title>The workshop</title><p>There is no such page in this workshop.</p>"

voice = VoiceAPI(authenticate=lambda: session.get("user"))


@voice.tool
def mix(colour: Literal["red", "blue"], litres: Annotated[float, "how much is needed"] = 1.0) -> str:
    """Mix paint."""
    return f"{litres} l of {colour}"


@voice.on_run_completed
def bill(run: Run) -> None:
    raise LookupError(f"There is no price for run {run.id}.")


pages = flask_smorest.Blueprint("bicycles", __name__, url_prefix="/bicycles")


class Bicycle(Schema):
    colour = fields.String(required=True)


@pages.post("/")
@pages.arguments(Bicycle)
@pages.response(200, Bicycle)
def paint(bicycle: dict[str, Any]) -> dict[str, Any]:
    """Paint a bicycle."""
    return bicycle


def create_app(config: dict[str, Any] | None = None) -> Flask:
    """Create the app. VOICEAPI_* settings come from `config` or the environment.

    `WORKSHOP_POLICY` is a Content-Security-Policy of the app's own, for all its pages.
    """
    app = Flask(__name__)
    app.config.update(
        SECRET_KEY=os.environ.get("HOST_SECRET_KEY") or os.urandom(32),
        SESSION_COOKIE_SAMESITE="Lax",
        API_TITLE="The workshop",
        API_VERSION="1",
        OPENAPI_VERSION="3.0.3",
    )
    app.config.update(config or {})
    app.add_url_rule("/", view_func=home)
    app.add_url_rule("/login", view_func=log_in, methods=["POST"])
    flask_smorest.Api(app).register_blueprint(pages)
    app.register_error_handler(NotFound, lambda error: (LOST, 404))
    if "WORKSHOP_POLICY" in app.config:
        app.after_request(keep_out)
    voice.init_app(app, url_prefix="/voice")
    return app


def keep_out(response: Response) -> Response:
    """Set the app's policy in the place of any other."""
    response.headers["Content-Security-Policy"] = current_app.config["WORKSHOP_POLICY"]
    return response


def home() -> str:
    return render_template_string(PAGE, user=session.get("user"))


def log_in() -> Response:
    """Log in without a password, to keep the example short."""
    session["user"] = request.form["user"]
    return redirect(url_for("home"))
