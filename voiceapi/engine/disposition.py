"""A call's disposition and tags, from what was gathered and why the call ended."""

from collections.abc import Mapping
from typing import Any

from .state import State


def with_disposition(state: State) -> dict[str, Any]:
    """Return an ended call's gathered_context with call_disposition, mapped_call_disposition and call_tags.

    A call_disposition that was extracted or set by a tool wins over the reason for which the call ended; a call that
    ended because the model failed has the tag pipeline_error all the same.
    """
    context = state.gathered_context
    disposition = str(context.get("call_disposition") or "").strip() or state.reason
    tags = [*tags_of(context), *([state.reason] if state.reason == "pipeline_error" else [])]
    if state.setup.voice:
        tags += ["user_speech"] if state.caller_spoke else []
        tags += [str(value) for name, value in context.items() if name.startswith("tag_") and value not in (None, "")]
    return {
        **context,
        "call_disposition": disposition,
        "mapped_call_disposition": disposition,
        "call_tags": list(dict.fromkeys([*tags, disposition])),
    }


def tags_of(context: Mapping[str, Any]) -> list[str]:
    """Return the call_tags gathered so far as texts; none when they aren't a list."""
    tags = context.get("call_tags")
    return [str(tag) for tag in tags] if isinstance(tags, list) else []
