"""How large the history of a conversation may become, which the model gets with each request."""

from collections.abc import Iterable

from .actions import Message
from .events import ToolCall
from .template import KIB64, MIB, size

# Bytes of UTF-8: of all messages, of what the caller says in one turn, of the functions that one reply calls.
LONGEST_HISTORY = MIB
LONGEST_INPUT = KIB64
LONGEST_CALLS = KIB64
# How many functions one reply may call.
MOST_CALLS = 32

NO_ROOM = "The conversation has more than 1 MiB of text, so it ends here."


def size_of(message: Message) -> int:
    """The bytes of a message: its content, and the functions that it calls."""
    content = size(message.get("content") or "")
    if not message.get("tool_calls"):  # nearly always, and a long history is counted in each turn
        return content
    functions = (call["function"] for call in message["tool_calls"])
    return content + sum(size(each["name"]) + size(each["arguments"]) for each in functions)


def has_room(messages: Iterable[Message], message: Message) -> bool:
    """Whether a message can be added to a history."""
    return sum(map(size_of, messages)) + size_of(message) <= LONGEST_HISTORY


def problem_of(calls: tuple[ToolCall, ...]) -> str:
    """Why the functions that one reply calls can't be carried out: too many, or too large; empty when they can."""
    if len(calls) > MOST_CALLS:
        return f"The model called {len(calls)} functions at once; at most {MOST_CALLS} are carried out."
    if sum(size(call.id) + size(call.name) + size(call.arguments) for call in calls) > LONGEST_CALLS:
        return "The model's function calls are larger than 64 KiB."
    return ""
