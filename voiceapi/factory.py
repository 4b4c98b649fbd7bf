"""Makes the Flask app that `app.py` serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Flask

from .api import errors
from .console import pages
from .extension import mount


def create_app(config: Mapping[str, Any] | None = None) -> Flask:
    """A Flask app that is voiceapi and nothing else.

    :param config: settings that come before those of the environment, with the same names.
    """
    app = Flask("voiceapi", static_folder=None)
    app.config.update(config or {})
    errors.install(app)
    service = mount(app, "")
    if service.settings.console:
        pages.serve_at_root(app)
    return app
