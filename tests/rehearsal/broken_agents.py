"""Agents with a planted defect, and what random callers have to find in each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from rehearsed import record

from voiceapi.rehearsal.subject import Subject

HTTP = {"schema_version": 1, "type": "http_api", "config": {"method": "GET", "url": "https://example.com/free"}}
TRANSFER = {"schema_version": 1, "type": "transfer_call", "config": {"destination": "+12025550123"}}
END = {"schema_version": 1, "type": "end_call", "config": {"messageType": "none"}}


@dataclass(frozen=True)
class Broken:
    """An agent with one defect.

    :param nodes: by id the text that each speaks; a text that begins with `!` ends the call. The first one begins.
    :param edges: source, target, label and condition.
    :param findings: the codes that are found, with the ids of their nodes.
    :param data: more data of nodes, by id.
    """

    nodes: dict[str, str]
    edges: list[tuple[str, str, str, str]]
    findings: set[tuple[str, tuple[str, ...]]]
    model: Literal["scripted", "played"] = "scripted"
    tools: list[dict[str, Any]] = field(default_factory=list)
    data: dict[str, dict[str, Any]] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def definition(self) -> dict[str, Any]:
        return {
            "nodes": [
                {
                    "id": id,
                    "type": "endCall" if text.startswith("!") else "agentNode" if place else "startCall",
                    "position": {"x": 0, "y": 100 * place},
                    "data": {"name": id.title(), "prompt": text.lstrip("!"), **self.data.get(id, {})},
                }
                for place, (id, text) in enumerate(self.nodes.items())
            ],
            "edges": [
                {
                    "id": f"e{place}",
                    "source": source,
                    "target": target,
                    "data": {"label": label, "condition": condition},
                }
                for place, (source, target, label, condition) in enumerate(self.edges)
            ],
        }

    @property
    def subject(self) -> Subject:
        return Subject.of_definition(self.definition, tools=[record(tool) for tool in self.tools])


def tool(uuid: str, name: str, definition: dict[str, Any]) -> dict[str, Any]:
    return {"tool_uuid": uuid, "name": name, "description": "It is used.", "definition": definition}


YES = ("Yes", "They agree.")
NO = ("No", "They decline.")
GOODBYE = "!Goodbye."
ASK = "Do you want to come?"

BROKEN: dict[str, Broken] = {
    "a question without an edge": Broken(
        {"ask": ASK, "when": "On which day?", "bye": GOODBYE},
        [("ask", "when", *YES), ("ask", "bye", *NO)],
        {("dead-end", ("when",))},
    ),
    "an agent of one question": Broken({"ask": ASK}, [], {("dead-end", ("ask",))}),
    "a question deep inside without an edge": Broken(
        {
            "ask": ASK,
            "a": "Red or blue?",
            "b": "Big or small?",
            "c": "Today or tomorrow?",
            "d": "Which street?",
            "bye": GOODBYE,
        },
        [
            ("ask", "a", *YES),
            ("ask", "bye", *NO),
            ("a", "b", "Red", "They want the red one."),
            ("a", "bye", "Blue", "They want the blue one."),
            ("b", "c", "Big", "They want a big one."),
            ("b", "bye", "Small", "They want a small one."),
            ("c", "d", "Today", "They come today."),
            ("c", "bye", "Tomorrow", "They come tomorrow."),
        ],
        {("dead-end", ("d",))},
    ),
    "two questions that lead to each other": Broken(
        {"ask": ASK, "a": "Is it about a loan?", "b": "Is it about a book?", "bye": GOODBYE},
        [
            ("ask", "a", *YES),
            ("ask", "bye", *NO),
            ("a", "b", *YES),
            ("a", "b", *NO),
            ("b", "a", "Loan", "They ask about a loan."),
        ],
        {("loop-without-exit", ("a", "b"))},
    ),
    "three questions in a circle": Broken(
        {"ask": ASK, "a": "First?", "b": "Second?", "c": "Third?", "bye": GOODBYE},
        [
            ("ask", "a", *YES),
            ("ask", "bye", *NO),
            ("a", "b", "Next", "They want the next one."),
            ("b", "c", "Next", "They want the next one."),
            ("c", "a", "Next", "They want the next one."),
            ("c", "b", "Back", "They want to go back."),
        ],
        {("loop-without-exit", ("a", "b", "c"))},
    ),
    "a question that leads to itself": Broken(
        {"ask": ASK, "more": "Anything else?", "bye": GOODBYE},
        [("ask", "more", *YES), ("ask", "bye", *NO), ("more", "more", "Again", "They want to hear it again.")],
        {("loop-without-exit", ("more",))},
    ),
    "an agent that never ends": Broken(
        {"ask": "Hours or prices?", "hours": "From nine to five. Prices?", "prices": "Ten euros. Hours?"},
        [
            ("ask", "hours", "Hours", "They ask for the hours."),
            ("ask", "prices", "Prices", "They ask for the prices."),
            ("hours", "prices", "Prices", "They ask for the prices."),
            ("prices", "hours", "Hours", "They ask for the hours."),
        ],
        {("loop-without-exit", ("hours", "prices"))},
    ),
    "two edges with the same words": Broken(
        {"ask": ASK, "which": "Which day suits you?", "a": "!Noted.", "b": "!Noted as well.", "bye": GOODBYE},
        [
            ("ask", "which", *YES),
            ("ask", "bye", *NO),
            ("which", "a", "A day", "They name the day."),
            ("which", "b", "The day", "They name a day."),
        ],
        {("not-understood", ("which",)), ("dead-end", ("which",))},
    ),
    "labels that nobody can say": Broken(
        {"ask": ASK, "which": "Which one?", "a": "!Noted.", "b": "!Noted as well.", "bye": GOODBYE},
        [("ask", "which", *YES), ("ask", "bye", *NO), ("which", "a", "→", "..."), ("which", "b", "⇒⇒", "...")],
        {("not-understood", ("which",)), ("dead-end", ("which",))},
    ),
    "a tool that only a language model calls": Broken(
        {"ask": ASK, "bye": GOODBYE},
        [("ask", "bye", *YES)],
        {("tool-never-called", ("ask",))},
        tools=[tool("t-1", "Find a slot", HTTP)],
        data={"ask": {"tool_uuids": ["t-1"]}},
    ),
    "a tool that isn't there": Broken(
        {"ask": "Ask for the day.", "bye": "!Say goodbye."},
        [("ask", "bye", *YES)],
        {("tool-never-called", ("ask",))},
        model="played",
        data={"ask": {"tool_uuids": ["t-9"]}},
    ),
    "a tool with the name of another": Broken(
        {"ask": "Ask for the day.", "bye": "!Say goodbye."},
        [("ask", "bye", *YES)],
        {("tool-never-called", ("ask",))},
        model="played",
        tools=[tool("t-1", "Find a slot", HTTP), tool("t-2", "Find a  slot", HTTP)],
        data={"ask": {"tool_uuids": ["t-1", "t-2"]}},
    ),
    "a tool at a node that nobody can reach": Broken(
        {"ask": ASK, "bye": GOODBYE, "a": "Ask for the day.", "b": "Ask for the time."},
        [("ask", "bye", *YES), ("a", "b", *YES), ("b", "a", *YES)],
        {("tool-never-called", ("a",))},
        model="played",
        tools=[tool("t-1", "Find a slot", HTTP)],
        data={"a": {"tool_uuids": ["t-1"]}},
    ),
    "a language model's agent that can't end": Broken(
        {"ask": "Ask for the name.", "a": "Ask for the day.", "b": "Ask for the time."},
        [
            ("ask", "a", "Named", "They said the name."),
            ("a", "b", "Day", "They said it."),
            ("b", "a", "Time", "They said it."),
        ],
        {("loop-without-exit", ("a", "b"))},
        model="played",
        tools=[tool("t-1", "Find a slot", HTTP)],
        data={"a": {"tool_uuids": ["t-1"]}},
    ),
    "a greeting whose recording is missing": Broken(
        {"ask": ASK, "bye": GOODBYE},
        [("ask", "bye", *YES)],
        {("pipeline-error", ("ask",))},
        data={"ask": {"greeting": "Hello?", "greeting_type": "audio", "greeting_recording_id": "r-1"}},
    ),
    "a prompt that becomes too long": Broken(
        {"ask": ASK, "tell": "Tell them: {{news}}{{news}}", "bye": GOODBYE},
        [("ask", "tell", *YES), ("ask", "bye", *NO), ("tell", "bye", *YES)],
        {("pipeline-error", ("tell",))},
        model="scripted",
        context={"news": "x" * 600_000},
    ),
}

# Agents that are as they should be, though they look like some of the above.
SOUND: dict[str, Broken] = {
    "a circle with a way out": Broken(
        {"ask": ASK, "more": "Anything else?", "else": "What else?", "bye": GOODBYE},
        [
            ("ask", "more", *YES),
            ("ask", "bye", *NO),
            ("more", "else", *YES),
            ("more", "bye", *NO),
            ("else", "more", "Loan", "They ask about a loan."),
        ],
        set(),
    ),
    "a last node at which a tool ends the call": Broken(
        {"ask": "Ask for the day.", "last": "Say goodbye and end the call."},
        [("ask", "last", "Day", "They said it.")],
        set(),
        model="played",
        tools=[tool("t-1", "End the call", END)],
        data={"last": {"tool_uuids": ["t-1"]}},
    ),
    "a last node that transfers": Broken(
        {"ask": ASK, "last": "Say operator, and I will put you through.", "bye": GOODBYE},
        [("ask", "last", *YES), ("ask", "bye", *NO)],
        set(),
        tools=[tool("t-1", "Put through", TRANSFER)],
        data={"last": {"tool_uuids": ["t-1"]}},
    ),
    "a menu of keys": Broken(
        {"ask": "Press 1 for the hours, 2 for the prices.", "hours": "!From nine to five.", "prices": "!Ten euros."},
        [("ask", "hours", "1", "They press 1."), ("ask", "prices", "2", "They press 2.")],
        set(),
    ),
}
