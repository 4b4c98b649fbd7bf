"""How a call came out: its disposition and its tags, from what was gathered and why it ended."""

from collections.abc import Mapping
from typing import Any

from .state import State


def concluded(state: State) -> dict[str, Any]:
    """Return gathered_context with call_disposition, mapped_call_disposition and call_tags.

    A call_disposition that was extracted or given by a tool wins over the reason of the ending.
    """
    context = state.gathered_context
    disposition = str(context.get("call_disposition") or "").strip() or state.reason
    tags = tags_of(context)
    if state.setup.voice:
        tags += ["user_speech"] if state.heard else []
        tags += [str(value) for name, value in context.items() if name.startswith("tag_") and value not in (None, "")]
    return {
        **context,
        "call_disposition": disposition,
        "mapped_call_disposition": disposition,
        "call_tags": list(dict.fromkeys([*tags, disposition])),
    }


def tags_of(context: Mapping[str, Any]) -> list[str]:
    """Return the call_tags gathered so far; anything but a list counts as none."""
    tags = context.get("call_tags")
    return [str(tag) for tag in tags] if isinstance(tags, list) else []
