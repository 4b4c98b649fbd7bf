"""The console script `voiceapi`, also `python -m voiceapi`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Flask

from .cli.base import script_info
from .cli.main import group


def main(arguments: list[str] | None = None) -> None:
    """Run a command, of `arguments` or else of the command line, and exit with its code."""
    group(arguments, prog_name="voiceapi", obj=script_info(_create_app))


def _create_app(settings: Mapping[str, Any]) -> Flask:
    # Not every command needs an app, and importing what makes one takes longer than most of them.
    from .factory import create_app

    return create_app(settings)


if __name__ == "__main__":
    main()
