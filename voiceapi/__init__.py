"""voiceapi: a voice-agent server in one process and one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .extension import VoiceAPI
    from .factory import create_app

__all__ = ["VoiceAPI", "__version__", "create_app"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Imported when asked for, so that the pure rooms (engine, workflows.node_types) can be used without Flask.
    if name == "VoiceAPI":
        from .extension import VoiceAPI

        return VoiceAPI
    if name == "create_app":
        from .factory import create_app

        return create_app
    raise AttributeError(f"module 'voiceapi' has no attribute {name!r}")
