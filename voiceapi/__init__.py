"""voiceapi: a voice-agent server in one process and one file."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cli.app_fixture import VoiceTest
    from .extension import VoiceAPI, create_app
    from .host.chats import Chat
    from .host.errors import AgentNotFound, CallRefused, InvalidNumber, KeyConflict, LimitReached, VoiceAPIError
    from .host.runs import Run, Utterance

__all__ = [
    "AgentNotFound",
    "CallRefused",
    "Chat",
    "InvalidNumber",
    "KeyConflict",
    "LimitReached",
    "Run",
    "Utterance",
    "VoiceAPI",
    "VoiceAPIError",
    "VoiceTest",
    "__version__",
    "create_app",
]
__version__ = "0.2.0"
# While our plugin for pytest runs: what an app that names no database is opened with, of the app and its settings.
settings_in_tests: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] | None = None


# The modules that the names above come from.
_HOMES = {
    **{"VoiceAPI": "extension", "create_app": "extension"},
    "VoiceTest": "cli.app_fixture",
    **{"Chat": "host.chats", "Run": "host.runs", "Utterance": "host.runs"},
}


def __getattr__(name: str) -> Any:
    # Imported when asked for, so that the pure rooms (engine, workflows.node_types) can be used without Flask.
    if name not in __all__:
        raise AttributeError(f"module 'voiceapi' has no attribute {name!r}")
    # Without looking for garbage among what stays, which takes a third of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        return getattr(import_module(f".{_HOMES.get(name, 'host.errors')}", "voiceapi"), name)
    finally:
        if collects:
            gc.enable()
