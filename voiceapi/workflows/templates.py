"""Makes a small workflow from a use case, with its conversation cases: a start, a conversation node, and two ends."""

from __future__ import annotations

from typing import Any

OPENINGS = {
    "inbound": "You answer a call about {use_case}. Welcome the caller and find out what they need.",
    "outbound": "You call somebody about {use_case}. Say who is calling and why, and ask whether it is a good moment.",
}

GREETINGS = {
    "inbound": "Hello, thank you for calling. How can I help you?",
    "outbound": "Hello, this is an automated call. Is it a good moment?",
}


def definition(call_type: str, use_case: str, activity_description: str) -> dict[str, Any]:
    """A valid workflow definition for an agent with the task `activity_description`.

    :param call_type: `inbound` or `outbound`; the opening depends on it.
    """
    use_case, task = _literal(use_case.strip() or "a call"), _literal(activity_description.strip() or "help the caller")
    nodes = [
        _node("1", "globalNode", "Manner", 0, "Be brief, friendly and clear. Ask one question at a time."),
        _node("2", "startCall", "Opening", 1, OPENINGS[call_type].format(use_case=use_case), GREETINGS[call_type]),
        _node("3", "agentNode", "Conversation", 2, f"Your task: {task}"),
        _node("4", "endCall", "Done", 3, "Thank you very much for your time. Goodbye."),
        _node("5", "endCall", "Not now", 3, "I am sorry for the interruption. Goodbye."),
    ]
    edges = [
        _edge("2", "3", "Go on", "They are willing to talk, or say yes, or say what they need."),
        _edge("2", "5", "Not now", "They say no, are busy, or do not want to talk."),
        _edge("3", "4", "Finished", "The task is done, or they say that is all, thanks or goodbye."),
    ]
    return {"nodes": nodes, "edges": edges, "viewport": {"x": 0, "y": 0, "zoom": 1}}


def cases(call_type: str) -> list[dict[str, Any]]:
    """Conversation cases of that definition, which touch all of it, as a file of cases has them."""
    opening = {"says": GREETINGS[call_type]}
    return [
        {
            "name": "They are willing, and the task is done",
            "model": "played",
            "direction": call_type,
            "opening": opening,
            "turns": [
                {
                    "caller": "Yes, I am listening.",
                    "model": [{"edge": "Go on", "say": "Good."}, {"say": "How can we do that?"}],
                    "node": "Conversation",
                    "edges": ["Go on"],
                },
                {
                    "caller": "Like this. That is all, thank you.",
                    "model": [{"edge": "Finished"}, {"say": "Thank you. Goodbye."}],
                    "edges": ["Finished"],
                },
            ],
            "expect": {"nodes": ["Opening", "Conversation", "Done"], "disposition": "user_qualified"},
        },
        {
            "name": "They have no time",
            "model": "played",
            "direction": call_type,
            "opening": opening,
            "turns": [
                {"caller": "Not now, I am busy.", "model": [{"edge": "Not now"}, {"say": "I am sorry. Goodbye."}]}
            ],
            "expect": {"nodes": ["Opening", "Not now"], "edges": ["Not now"], "disposition": "user_qualified"},
        },
    ]


def _literal(text: str) -> str:
    """The text with a blank between double braces, so that it holds no template variable."""
    return text.replace("{{", "{ {").replace("}}", "} }")


def _node(id: str, type: str, name: str, column: int, prompt: str, greeting: str = "") -> dict[str, Any]:
    position = {"x": column * 320, "y": int(id) * 90}
    data = {"name": name, "prompt": prompt, **({"greeting": greeting} if greeting else {})}
    return {"id": id, "type": type, "position": position, "data": data}


def _edge(source: str, target: str, label: str, condition: str) -> dict[str, Any]:
    data = {"label": label, "condition": condition}
    return {"id": f"{source}-{target}", "source": source, "target": target, "data": data}
