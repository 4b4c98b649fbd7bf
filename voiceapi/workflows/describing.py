"""An agent's definition from a description in somebody's own words, which the configured language model writes.

The model is only trusted with what is said and where a conversation goes: of its answer those members of nodes and
edges are kept that have no effect outside of the conversation, and of the tools those that the organization has.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..engine.graph import SPEAKING, data_of, objects
from ..engine.validation.speech_rules import is_instruction
from ..errors import InvalidInput, NotPossible
from ..llm import selection
from ..llm.chat_completions import FORMAT_PARAMETER, STOP_PARAMETER, ChatCompletions, Failure
from ..llm.wire import Completion
from ..service import Service
from ..store import tools
from ..store.tools import Tool
from ..strict_json import storable
from . import linting
from .drawing import layout
from .drawing.graph import DrawnGraph

LONGEST_DESCRIPTION = 8_000
# How often the model is asked at most: once, and twice to repair what it wrote.
MOST_REQUESTS = 3
# How long all of that may take, one request of it, and how much must be left for the model to be asked again. A whole
# definition takes longer than a reply, for which a model's own timeout is.
LONGEST_SECONDS, LONGEST_REQUEST, LEAST_SECONDS = 120.0, 60.0, 10.0
# Characters of an answer that are read, and of one that the model is shown again, with or without an agent in it.
LONGEST_ANSWER, LONGEST_QUOTE, LONGEST_PROSE = 256 * 1024, 32_000, 2_000
MOST_NODES, MOST_EDGES, MOST_TOOLS = 100, 300, 30
# Places in an answer that are tried as the beginning of JSON, and how deep an agent may be nested in it.
MOST_BEGINNINGS, DEEPEST = 200, 4
# How many problems a model is shown, how many sentences say what isn't done, and characters of one.
MOST_PROBLEMS, MOST_NOT_DONE, LONGEST_SENTENCE, LONGEST_SAID = 30, 20, 300, 150

NO_MODEL = (
    "Only a language model can make an agent from a description, and none is configured that can. Set one in the "
    "console's settings, with PUT /organizations/model-configurations/v2, or for the whole service with "
    "VOICEAPI_LLM_URL. Without one, begin with an example."
)
ADVICE = "Describe it in fewer or other words, choose a larger model, or begin with an example."
NO_AGENT = "The answer holds no JSON object with the lists nodes and edges."
TOO_LONG = "The answer is too long, or broke off before its end: use fewer nodes and shorter texts."

_TEXTS = ("name", "prompt", "scripted_text", "allow_interrupt", "add_global_prompt")
_ASKING = ("extraction_enabled", "extraction_variables", "extraction_prompt")
# The types of nodes that a description may make, and the members of their data that are kept.
_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "startCall": (*_TEXTS, *_ASKING, "greeting", "tool_uuids"),
    "agentNode": (*_TEXTS, *_ASKING, "tool_uuids"),
    "endCall": (*_TEXTS, *_ASKING),
    "globalNode": ("name", "prompt"),
    "trigger": ("name", "enabled", "trigger_path"),
}
_OF_EDGES = ("label", "condition", "transition_speech")
_OF_VARIABLES = ("name", "type", "prompt")
# Members of a node beside its data; models put there some that belong into it.
_OUTSIDE = {"id", "type", "data", "position"}
_OTHER_TYPES = {"start": "startCall", "agent": "agentNode", "end": "endCall", "global": "globalNode"}
_NOT_MADE = {
    "webhook": "It sends nothing to another server: add a webhook step with the address.",
    "qa": "It doesn't review its calls: add a review step.",
}
_OTHER_TYPES_OF_VALUES = {"text": "string", "integer": "number", "int": "number", "float": "number", "bool": "boolean"}

_SYSTEM = """You design agents that talk to people on the telephone. The user describes one.
Answer with nothing but one JSON object, without Markdown:
{{"nodes": [NODE, ...], "edges": [EDGE, ...], "not_done": [SENTENCE, ...]}}

A NODE is a step of the conversation: {{"id": "ask_day", "type": TYPE, "data": DATA}}. TYPE is one of
- startCall: where the call begins. Exactly one; no edge leads to it.
- agentNode: a step with one goal, such as one question. At least one edge leads to it, and edges lead on.
- endCall: the last words; then the call ends. At least one edge leads to it, and none leaves it.
- globalNode: who the agent is and how it talks. At most one, without edges; its DATA has only name and prompt.
There are no other types. DATA has
- name: two or three words, different for each node
- prompt: instructions to a language model for this step
- scripted_text: the exact sentences that are spoken here when there is no language model, ending with the question that
  the edges answer; never an instruction
- greeting, in the startCall only: the first sentences, word for word
- extraction_enabled true and extraction_variables, where something is to be noted, such as
  [{{"name": "day", "type": "string", "prompt": "the day on which they come"}}]; type is string, number or boolean
{tools}
An EDGE leads to the next step:
{{"source": ID, "target": ID, "data": {{"label": "Yes", "condition": "They can come."}}}}
label is one to three words, different for each edge of a node. condition is what the caller says then, with words that
they may use. Each way to answer has an edge, and every path comes to an endCall.

Use 3 to 12 nodes. A text may hold what is known before a call, always with a default: {{{{first_name | there}}}}.
Write {language}.

not_done: for each thing the user asks for that these nodes can't do, one plain sentence that says what to add, such as
"It can't look into your calendar: add a tool for that." Never pretend that it is done."""
_TOOLS = "- tool_uuids, in startCall and agentNode: a list of tools that a language model may call there, of these:"
_NO_TOOLS = "There are no tools, no calendar, no database and no web requests."


class Writer(Protocol):
    """A model that can answer a free prompt. The scripted model can't."""

    def complete(self, system: str, user: str) -> Completion: ...


@dataclass(frozen=True)
class Draft:
    """A definition that a model wrote, as far as it can be kept.

    :param not_done: sentences on what it doesn't do although that was asked for, or written.
    :param errors, warnings: the findings of lint.
    :param problems: what the model is to repair, a sentence each, the worst first.
    """

    definition: dict[str, Any] = field(default_factory=dict)
    not_done: tuple[str, ...] = ()
    errors: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[Mapping[str, Any]] = ()
    problems: tuple[str, ...] = ()

    @property
    def works(self) -> bool:
        """Whether there is a definition without errors."""
        return bool(self.definition) and not self.errors

    def as_dict(self) -> dict[str, Any]:
        """Return it as the API answers it."""
        return {
            "workflow_definition": self.definition,
            "errors": [*self.errors],
            "warnings": [*self.warnings],
            "not_done": [_short(each) for each in self.not_done[:MOST_NOT_DONE]],
        }


def describe(service: Service, organization: int, description: str, language: str | None = None) -> Draft:
    """A definition without errors that does what a description says; nothing is stored.

    Call it outside any transaction, because it waits for the model.

    :param language: the tag of the language in which the agent speaks; None for that of the description.
    :raises InvalidInput: when no language model is configured, or it wrote no definition without errors.
    :raises NotPossible: when the model can't be asked, or refuses to answer.
    :raises OutOfService: when too many slow requests are in progress.
    """
    configurations = {} if language is None else {"language": language}
    model: Any = selection.choose(service, organization, {})
    if not callable(getattr(model, "complete", None)):
        raise InvalidInput(NO_MODEL)
    known = {tool.tool_uuid: tool for tool in tools.of_organization(organization, ("active",))[:MOST_TOOLS]}
    system = _SYSTEM.format(
        tools="\n".join([_TOOLS, *map(_line, known.values())]) if known else _NO_TOOLS,
        language=f"all texts, names and labels in the language {language}" if language else "in the user's language",
    )

    def judged(draft: Draft) -> Draft:
        report = linting.lint_definition(service, organization, draft.definition, configurations).as_dict()
        errors, warnings = (
            [each for each in report["findings"] if each["severity"] == severity] for severity in ("error", "warning")
        )
        return replace(draft, errors=errors, warnings=warnings)

    def read(completion: Completion) -> Draft:
        text = completion.text
        written = _agent_in(text[:LONGEST_ANSWER])
        draft = None if written is None else _kept(*written, known)
        if draft is None and not (completion.cut or len(text) > LONGEST_ANSWER):
            return Draft(problems=(NO_AGENT,))
        if draft is None or not draft.definition:
            return Draft(problems=(TOO_LONG,))
        draft = judged(draft)
        problems = (*draft.problems, *map(_sentence, (*draft.errors, *draft.warnings)))
        reachable = _reachable(draft)
        return replace(draft if reachable is draft else judged(reachable), problems=problems)

    with service.bulkhead.slow(organization):
        return _best(service, model, system, description, read)


def _best(service: Service, model: Writer, system: str, description: str, read: Callable[[Completion], Draft]) -> Draft:
    """The best draft of MOST_REQUESTS; after each that isn't good the model is shown its problems."""
    deadline = time.monotonic() + LONGEST_SECONDS
    best = draft = Draft()
    user, answer = description, ""
    for number in range(1, MOST_REQUESTS + 1):
        left = deadline - time.monotonic()
        if number > 1 and left < LEAST_SECONDS:
            break
        # Its connection to the database is for others while this thread waits.
        service.store.release()
        try:
            completion = _patient(model, left, as_json=number > 1 and not draft.definition).complete(system, user)
        except Failure as failure:
            if best.works:
                break
            if failure.final or number == MOST_REQUESTS:
                raise NotPossible(f"The language model wrote no agent. {failure}") from None
            service.workers.stopping.wait(min(failure.wait or 0.0, LEAST_SECONDS))
            continue
        draft, answer = read(completion), completion.text
        if draft.works and (not best.works or len(draft.problems) < len(best.problems)):
            best = draft
        # For warnings alone the model is asked once more, and never after a repair that made things worse.
        if best.works and (number > 1 or not best.problems):
            break
        quote = answer[: LONGEST_QUOTE if draft.definition else LONGEST_PROSE]
        listed = "\n".join(f"- {problem}" for problem in draft.problems[:MOST_PROBLEMS])
        user = (
            f"{description}\n\nYour last answer was:\n{quote}\n\nWhat is wrong with it:\n{listed}\n\n"
            "Answer with the whole JSON object again, corrected."
        )
    if not best.works:
        raise InvalidInput(f"The language model wrote no agent that works. {_mistake(draft, answer)} {ADVICE}")
    return best


def _patient(model: Any, seconds: float, *, as_json: bool) -> Any:
    """The model with time for a whole definition, and without a text at which its answer ends; another kind as it is.

    :param as_json: ask its server for JSON.
    """
    if not isinstance(model, ChatCompletions):
        return model
    given = {name: value for name, value in model.parameters.items() if name != STOP_PARAMETER}
    wanted = {FORMAT_PARAMETER: {"type": "json_object"}} if as_json else {}
    timeout = min(seconds, max(model.timeout, LONGEST_REQUEST))
    return replace(model, timeout=timeout, parameters={**given, **wanted})


def _line(tool: Tool) -> str:
    return f"  - {tool.tool_uuid}: {_short(f'{tool.name}. {tool.description or str()}')}"


def _short(text: str, longest: int = LONGEST_SENTENCE) -> str:
    """A text on one line, cut."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _sentence(finding: Mapping[str, Any]) -> str:
    """What is wrong, for the model: at which member of which node or edge."""
    place = " ".join(each for each in (finding["kind"], finding["id"], finding["field"]) if each)
    return f"{place}: {finding['message'].rstrip('.')}."


def _mistake(draft: Draft, answer: str) -> str:
    """What is wrong with the model's last answer, for people: at the step of this name, or the path of this label."""
    if TOO_LONG in draft.problems:
        return "Its answer was too long, or broke off before its end."
    if not draft.errors:
        return f"It answered: “{_short(answer, LONGEST_SAID)}”" if answer.strip() else "Its answer was empty."
    error, names = draft.errors[0], {}
    for kind, member in (("node", "name"), ("edge", "label")):
        for each in draft.definition[f"{kind}s"]:
            names[kind, each["id"]] = each["data"].get(member)
    name = names.get((error["kind"], error["id"]))
    at = f" at {'the step' if error['kind'] == 'node' else 'the path'} “{_short(str(name))}”" if name else ""
    return f"Its last answer has a mistake{at}: {_short(error['message']).rstrip('.')}."


# -- what a model wrote


def _agent_in(text: str) -> tuple[dict[str, Any], object] | None:
    """The first object with nodes in a text, and its `not_done`, also in a fence, within prose or in another object."""
    decoder, at = json.JSONDecoder(), 0
    for _ in range(MOST_BEGINNINGS):
        at = text.find("{", at)
        if at < 0:
            return None
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        if found := _with_nodes(storable(value), None, DEEPEST):
            return found
        at = end
    return None


def _with_nodes(value: object, not_done: object, levels: int) -> tuple[dict[str, Any], object] | None:
    if isinstance(value, dict):
        not_done = value.get("not_done") or not_done
        if isinstance(value.get("nodes"), list):
            return value, not_done
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    nested = (_with_nodes(each, not_done, levels - 1) for each in below if levels)
    return next(filter(None, nested), None)


def _kept(agent: Mapping[str, Any], not_done: object, known: Mapping[str, Tool]) -> Draft:
    """What is kept of an agent, with ids and positions of our own; nothing of one that is too large.

    Of what isn't kept, sentences say so.
    """
    listed = not_done if isinstance(not_done, list) else [not_done]
    left_out = [each for each in listed if isinstance(each, str) and each.strip()]
    nodes: dict[str, dict[str, Any]] = {}
    for number, item in enumerate(objects(agent, "nodes"), 1):
        node = _node(item, number, known, left_out)
        if node is not None:
            id = node["id"]
            while id in nodes:
                id = f"{id}_{number}"
            nodes[id] = {**node, "id": id}
    names = {str(node["data"]["name"]).casefold(): id for id, node in nodes.items()}

    def end(edge: Mapping[str, Any], *members: str) -> str:
        named = next((_id(edge[each]) for each in members if _id(edge.get(each))), "")
        return named if named in nodes else names.get(named.casefold(), named)

    edges = [
        {
            "id": f"edge_{number}",
            "source": end(edge, "source", "from"),
            "target": end(edge, "target", "to"),
            "data": _members({**edge, **data_of(edge)}, _OF_EDGES),
        }
        for number, edge in enumerate(objects(agent, "edges"), 1)
    ]
    if len(nodes) > MOST_NODES or len(edges) > MOST_EDGES:
        return Draft()
    silent, problems = _without_instructions(nodes.values())
    if silent:
        left_out.append(f"Without a language model there are no words for {_quoted(silent)}.")
    return Draft(_definition(nodes.values(), edges), tuple(dict.fromkeys(left_out)), problems=tuple(problems))


def _node(
    item: Mapping[str, Any], number: int, known: Mapping[str, Tool], left_out: list[str]
) -> dict[str, Any] | None:
    """A node with the members that its type may have; None for another type."""
    id, written = _id(item.get("id")) or f"step_{number}", str(item.get("type"))
    short = "".join(filter(str.isalpha, written.lower())).removesuffix("node").removesuffix("call")
    type = written if written in _MEMBERS else _OTHER_TYPES.get(short, written)
    given = {**{name: value for name, value in item.items() if name not in _OUTSIDE}, **data_of(item)}
    name = given.get("name")
    if not isinstance(name, str) or not name.strip():
        name = id.replace("_", " ").capitalize()
    if type not in _MEMBERS:
        left_out.append(_NOT_MADE.get(type) or f"“{name}” is left out: there is no step of the type {type}.")
        return None
    data = {**_members(given, _MEMBERS[type]), "name": name}
    if unknown := [
        each for each in given if each not in _MEMBERS[type] and given[each] not in (None, "", [], {}, False)
    ]:
        left_out.append(f"Left out of “{name}”: {', '.join(unknown)}. Add it in the step, if it is needed.")
    attached = data.pop("tool_uuids", None)
    if isinstance(attached, list):
        uuids = {tool.name: uuid for uuid, tool in known.items()} | {uuid: uuid for uuid in known}
        there = [uuids[each] for each in attached if isinstance(each, str) and each in uuids]
        left_out += [
            f"“{name}” can't use {each}: there is no such tool. Add the tool, and attach it to the step."
            for each in map(str, attached)
            if each not in uuids
        ]
        data |= {"tool_uuids": list(dict.fromkeys(there))} if there else {}
    if isinstance(variables := data.get("extraction_variables"), list):
        data["extraction_variables"] = [
            _variable(each) if isinstance(each, dict) else {"name": each, "type": "string"} for each in variables
        ]
        data["extraction_enabled"] = bool(variables)
    if type == "trigger":
        data["trigger_path"] = ""  # it gets one of its own when it is stored
    return {"id": id, "type": type, "data": data}


def _variable(given: Mapping[str, Any]) -> dict[str, Any]:
    type = str(given.get("type") or "string").lower()
    return {**_members(given, _OF_VARIABLES), "type": _OTHER_TYPES_OF_VALUES.get(type, type)}


def _id(value: object) -> str:
    return str(value).strip() if isinstance(value, str | int) else ""


def _members(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: given[name] for name in names if given.get(name) is not None}


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"“{_short(name)}”" for name in names)


def _without_instructions(nodes: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Drop the texts that would be spoken although they are instructions.

    Returns the names of the nodes without words for the time without a language model, and what is to be repaired.
    """
    problems = []
    for node in nodes:
        for member in ("scripted_text", "greeting"):
            text = node["data"].get(member)
            if isinstance(text, str) and is_instruction(text):
                del node["data"][member]
                place = f"node {node['id']} data.{member}"
                problems.append(f"{place}: It is spoken as it is written, and it is an instruction: “{_short(text)}”.")
    silent = [
        str(node["data"]["name"])
        for node in nodes
        if node["type"] in SPEAKING and not (node["data"].get("scripted_text") or node["data"].get("greeting"))
    ]
    if silent and not problems:
        problems.append(f"The nodes {_quoted(silent)} have no scripted_text.")
    return silent, problems


def _definition(nodes: Iterable[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The definition with each node where the drawing would place it."""
    listed = list(nodes)
    places = layout.place(DrawnGraph.of({"nodes": listed, "edges": edges}), stored=False).nodes
    placed = [
        {**node, "position": {"x": round(x), "y": round(y)}} for node, (x, y) in zip(listed, places, strict=False)
    ]
    return {"nodes": placed, "edges": list(edges), "viewport": {"x": 0, "y": 0, "zoom": 1}}


def _reachable(draft: Draft) -> Draft:
    """The draft without the steps that no path leads to; as it is where an edge, or the start, is wrong."""
    nodes = {node["id"]: node for node in draft.definition.get("nodes", ())}
    edges = draft.definition.get("edges", ())
    starts = [id for id, node in nodes.items() if node["type"] == "startCall"]
    if len(starts) != 1 or any(edge[end] not in nodes for edge in edges for end in ("source", "target")):
        return draft
    found, more = set(starts), starts
    while more:
        more = [edge["target"] for edge in edges if edge["source"] in more and edge["target"] not in found]
        found.update(more)
    gone = [node for id, node in nodes.items() if node["type"] in SPEAKING and id not in found]
    if not gone:
        return draft
    ids = {node["id"] for node in gone}
    kept = [edge for edge in edges if not ids & {edge["source"], edge["target"]}]
    sentence = f"Left out, because no path leads there: {_quoted(str(node['data']['name']) for node in gone)}."
    definition = _definition([node for id, node in nodes.items() if id not in ids], kept)
    return replace(draft, definition=definition, not_done=(*draft.not_done, sentence))
