"""The console script `voiceapi`, also `python -m voiceapi`."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flask import Flask


def main(arguments: list[str] | None = None) -> None:
    """Run a command, of `arguments` or else of the command line, and exit with its code."""
    with _making_what_stays():
        from .cli.base import script_info
        from .cli.main import group
    group(arguments, prog_name="voiceapi", obj=script_info(_create_app))


def _create_app(settings: Mapping[str, Any]) -> Flask:
    with _making_what_stays():
        # Not every command needs an app, and importing what makes one takes longer than most of them.
        from .factory import create_app

        return create_app(settings)


@contextmanager
def _making_what_stays() -> Iterator[None]:
    """Look for no garbage among the objects that the block makes, neither now nor later: modules, classes, routes.

    Python would do so whenever their number has grown by a quarter, which takes a fifth of the whole start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


if __name__ == "__main__":
    main()
