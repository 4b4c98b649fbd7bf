"""Makes a small workflow from a use case, with its conversation cases: a start, a conversation node, and two ends.

Its prompts are instructions to a language model. Without one, its scripted texts are spoken, and yes or no leads on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class _Texts:
    """What depends on the direction of the calls. Each may hold {use_case}.

    :param opening, conversation, ending, leaving: the scripted texts of the nodes.
    :param begin, leave: the conditions of the edges that leave the start.
    """

    prompt: str
    greeting: str
    opening: str
    begin: str
    leave: str
    conversation: str
    ending: str
    leaving: str


_TEXTS = {
    "inbound": _Texts(
        prompt="You answer a call about {use_case}. Welcome the caller and find out what they need.",
        greeting="Hello, thank you for calling. How can I help you?",
        opening="Are you calling about {use_case}?",
        begin="They say what they need, for example about {use_case}, or say yes.",
        leave="They say no, have the wrong number, or call about something else.",
        conversation="Thank you. I have noted that you call about {use_case}. May somebody call you back?",
        ending="Thank you, that is noted. Goodbye.",
        leaving="All right. Thank you for calling. Goodbye.",
    ),
    "outbound": _Texts(
        prompt="You call somebody about {use_case}. Say who is calling and why, and ask whether it is a good moment.",
        greeting="Hello, this is an automated call. Is it a good moment?",
        opening="Is it a good moment to talk about {use_case}?",
        begin="They are willing to talk, or say yes, or say what they need.",
        leave="They say no, are busy, or do not want to talk.",
        conversation="Thank you. This call is about {use_case}. May somebody call you about it?",
        ending="Thank you, that is noted. Goodbye.",
        leaving="I am sorry for the interruption. Goodbye.",
    ),
}
# Without a use case, only the task is known, which is an instruction: nothing of it is spoken.
_TEXTS_WITHOUT_USE_CASE = {
    "inbound": replace(
        _TEXTS["inbound"],
        prompt="You answer a call. Welcome the caller and find out what they need.",
        opening="Do you have a request that I may note?",
        begin="They say what they need, or say yes.",
        conversation="Thank you, I have noted that. May somebody call you back?",
    ),
    "outbound": replace(
        _TEXTS["outbound"],
        prompt="You call somebody. Say who is calling and why, and ask whether it is a good moment.",
        opening="Is it a good moment to talk?",
        conversation="Thank you. May somebody call you with the details?",
    ),
}
_LONGEST_NAME = 60


def name(call_type: str, use_case: str, activity_description: str) -> str:
    """What a workflow of the template is called: the use case, or without one the beginning of the task."""
    if use_case.strip() or not activity_description.strip():
        return f"{use_case} - {call_type}"
    task = " ".join(activity_description.split())
    beginning = task[:_LONGEST_NAME]
    return task.rstrip(".") if task == beginning else f"{beginning.rpartition(' ')[0] or beginning}…"


def definition(call_type: str, use_case: str, activity_description: str) -> dict[str, Any]:
    """A valid workflow definition for an agent with the task `activity_description`.

    :param call_type: `inbound` or `outbound`; what the agent says depends on it.
    """
    texts = (_TEXTS if use_case.strip() else _TEXTS_WITHOUT_USE_CASE)[call_type]
    subject, task = _literal(use_case.strip()), _literal(activity_description.strip() or "help the caller")
    spoken = " ".join(subject.split()).rstrip(".!?:;,") or "a call"
    conversation, ending = texts.conversation.format(use_case=spoken), texts.ending
    opening = {"greeting": texts.greeting, "scripted_text": texts.opening.format(use_case=spoken)}
    thanks = "Thank them for their time and say goodbye."
    apology = "They have no time, or need something else. Say that this is all right, and say goodbye."
    nodes = [
        _node("1", "globalNode", "Manner", 0, "Be brief, friendly and clear. Ask one question at a time."),
        _node("2", "startCall", "Opening", 1, texts.prompt.format(use_case=subject), **opening),
        _node("3", "agentNode", "Conversation", 2, f"Your task: {task}", scripted_text=conversation),
        _node("4", "endCall", "Done", 3, thanks, scripted_text=ending),
        _node("5", "endCall", "Not now", 3, apology, scripted_text=texts.leaving),
    ]
    agreed = "The task is done, or they agree to be called, or they say that is all, thanks or goodbye."
    edges = [
        _edge("2", "3", "Go on", texts.begin.format(use_case=spoken)),
        _edge("2", "5", "Not now", texts.leave),
        _edge("3", "4", "Agreed", agreed),
        _edge("3", "5", "Declined", "They want no call, or do not want to go on."),
    ]
    return {"nodes": nodes, "edges": edges, "viewport": {"x": 0, "y": 0, "zoom": 1}}


def cases(call_type: str) -> list[dict[str, Any]]:
    """Conversation cases of that definition, which touch all of it, as a file of cases has them.

    One is for a language model, whose decisions stand in it; in the others the scripted model speaks.
    """
    texts = _TEXTS[call_type]
    question, ending, leaving = "May somebody call you", texts.ending, texts.leaving
    begun = {"direction": call_type, "opening": {"says": texts.greeting}}
    willing = {"caller": "Yes, I am listening.", "says": question, "node": "Conversation", "edges": ["Go on"]}
    return [
        {
            "name": "They are willing, and the task is done",
            "model": "played",
            **begun,
            "turns": [
                {
                    "caller": "Yes, I am listening.",
                    "model": [{"edge": "Go on", "say": "Good."}, {"say": "How can we do that?"}],
                    "node": "Conversation",
                    "edges": ["Go on"],
                },
                {
                    "caller": "Like this. That is all, thank you.",
                    "model": [{"edge": "Agreed"}, {"say": "Thank you. Goodbye."}],
                    "edges": ["Agreed"],
                },
            ],
            "expect": {"nodes": ["Opening", "Conversation", "Done"], "disposition": "user_qualified"},
        },
        {
            "name": "Without a model: they agree",
            "model": "scripted",
            **begun,
            "turns": [willing, {"caller": "Yes, please.", "says": ending, "edges": ["Agreed"]}],
            "expect": {"nodes": ["Opening", "Conversation", "Done"], "disposition": "user_qualified"},
        },
        {
            "name": "Without a model: they decline",
            "model": "scripted",
            **begun,
            "turns": [willing, {"caller": "No, thank you.", "says": leaving, "edges": ["Declined"]}],
            "expect": {"nodes": ["Opening", "Conversation", "Not now"], "disposition": "user_qualified"},
        },
        {
            "name": "Without a model: they have no time",
            "model": "scripted",
            **begun,
            "turns": [{"caller": "No, not now.", "says": leaving, "edges": ["Not now"]}],
            "expect": {"nodes": ["Opening", "Not now"], "disposition": "user_qualified"},
        },
    ]


def _literal(text: str) -> str:
    """The text with a blank between double braces, so that it holds no template variable."""
    return text.replace("{{", "{ {").replace("}}", "} }")


def _node(id: str, type: str, name: str, column: int, prompt: str, **texts: str) -> dict[str, Any]:
    position = {"x": column * 320, "y": int(id) * 90}
    return {"id": id, "type": type, "position": position, "data": {"name": name, "prompt": prompt, **texts}}


def _edge(source: str, target: str, label: str, condition: str) -> dict[str, Any]:
    data = {"label": label, "condition": condition}
    return {"id": f"{source}-{target}", "source": source, "target": target, "data": data}
