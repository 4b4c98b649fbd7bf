"""The console script `voiceapi`, also `python -m voiceapi`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .cli.loading import keeping, loading

if TYPE_CHECKING:
    from flask import Flask


def main(arguments: list[str] | None = None) -> None:
    """Run a command, of `arguments` or else of the command line, and exit with its code."""
    with loading():
        from .cli.base import script_info
        from .cli.main import group
    group(arguments, prog_name="voiceapi", obj=script_info(_create_app, _open_app))


def _create_app(settings: Mapping[str, Any]) -> Flask:
    with loading():
        # Not every command needs the API, and importing it takes longer than most of them.
        from .extension import create_app
    with keeping():
        return create_app(settings)


def _open_app(settings: Mapping[str, Any]) -> Flask:
    """An app with a service and without routes."""
    with loading():
        # Not every command needs a service either.
        from flask import Flask

        from .opening import open_in
    app = Flask("voiceapi", static_folder=None)
    app.config.update(settings)
    open_in(app)
    return app


if __name__ == "__main__":
    main()
