"""Prompts, greetings, offered functions and requests of a state, with their templates rendered."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from .actions import Action, AskModel, Extract, Fetch, Function, Listen, Occasion, RunTool, Transfer
from .events import ToolCall
from .expected_input import keys_expected, speech_hints
from .extraction import ANSWERED_BY, SCREENING, Variable, variables_of
from .graph import Edge, Graph, Node, is_supplied
from .phrases import phrases
from .state import Phase, State
from .template import KIB64, MIB, Bound, TextTooLong, render, values

_INSTRUCTIONS: Mapping[Occasion, str] = {
    "idle": "The caller has said nothing for a while. In the caller's language, ask briefly whether they are there.",
    "goodbye": "The caller is still silent. In the caller's language, say a short goodbye; the call ends after it.",
}


@dataclass(frozen=True)
class Speech:
    """A text to speak, or a recording to play; then `text` is its transcript, if known.

    `problem` is a sentence on why there is no text to speak, else empty.
    """

    text: str
    recording_id: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Composer:
    """Renders for one state at one time, `at`; template variables without a value are added to `missing`."""

    graph: Graph
    state: State
    at: float
    missing: set[str]

    @property
    def node(self) -> Node:
        """The current node."""
        return self.graph.node(self.state.node_id)

    @property
    def phrases(self) -> Mapping[str, str]:
        """The sentences that the service speaks by itself, by name (see phrases.PHRASES)."""
        return phrases(self.state.setup.configurations)

    def render(self, text: str, bound: Bound) -> str:
        """Render a template from the initial context, with the gathered context as its member gathered_context.

        :raises TextTooLong: when the text is more than its bound.
        """
        context = {"gathered_context": self.state.gathered_context, **self.state.setup.initial_context}
        now = datetime.fromtimestamp(self.at, UTC)
        return render(text, context, bound, now=now, missing=self.missing)

    def prompts(self) -> tuple[str, str]:
        """Return the system prompt, and the node's own part of it; before that is the global node's, if it is used.

        :raises TextTooLong: when they are more than 1 MiB.
        """
        bound = Bound(MIB, f'The prompt of the node "{self.node.name}"')
        shared = self.graph.global_node if self.node.add_global_prompt else None
        general = self.render(shared.prompt, bound) if shared else ""
        own = self.render(self.node.prompt, bound)
        return "\n\n".join(filter(None, (general, own))), own

    def functions(self) -> tuple[Function, ...]:
        """Return what the model may call at the current node: its tools, then its edges."""
        edges = self.graph.edges_from(self.node.id)
        return (
            *self.state.setup.functions.get(self.node.id, ()),
            *(Function(edge.function_name, edge.condition, label=edge.label) for edge in edges),
        )

    def greetings(self) -> Iterator[Speech]:
        """Yield the possible greetings, the preferred first; a recording may be unknown, a text blank or too long."""
        override = self.state.setup.initial_context.get("greeting_override")
        match override:
            case {"type": "text", "text": str(text)}:
                yield self.speech(text, "The greeting")
            case {"type": "audio", "recording_id": str() | int() as id}:
                yield self._recording(str(id))
        start = self.graph.start
        if start.text("greeting_type") == "audio" and start.text("greeting_recording_id"):
            yield self._recording(start.text("greeting_recording_id"))
        yield self.speech(start.text("greeting"), "The greeting")

    def transition(self, edge: Edge) -> Iterator[Speech]:
        """Yield what may be spoken when an edge is followed, the preferred first."""
        if edge.transition_speech_type == "audio" and edge.transition_speech_recording_id:
            yield self._recording(edge.transition_speech_recording_id)
        yield self.speech(edge.transition_speech, f'The transition speech of the edge "{edge.label}"')

    def speech(self, template: str, what: str) -> Speech:
        """A text to speak; one of more than 64 KiB is empty, with a `problem` whose subject is `what`."""
        try:
            return Speech(self.render(template, Bound(KIB64, what)))
        except TextTooLong as error:
            return Speech("", problem=str(error))

    def _recording(self, id: str) -> Speech:
        return Speech(self.state.setup.recordings.get(id, ""), id)

    def can_be_spoken(self, speech: Speech) -> bool:
        """Whether the speech is a known recording or a text that isn't blank."""
        return speech.recording_id in self.state.setup.recordings or (
            not speech.recording_id and bool(speech.text.strip())
        )

    def pending_action(self) -> Action | None:
        """Return the request or Listen that the state's phase waits for; None before and after the call."""
        build = _PENDING.get(self.state.phase)
        return build(self) if build else None

    def _greeting(self) -> str:
        if self.node.type != "startCall":
            return ""
        return next((speech.text for speech in self.greetings() if self.can_be_spoken(speech)), "")

    def _fetch(self) -> Fetch:
        url, credential = (self.node.text(f"pre_call_fetch_{name}") for name in ("url", "credential_uuid"))
        return Fetch(self.state.number, self.at, url, credential or None)

    def _ask(self) -> AskModel:
        state = self.state
        instruction = _INSTRUCTIONS.get(state.occasion)
        system = prompt = problem = ""
        try:
            system, prompt = self.prompts()
        except TextTooLong as error:
            problem = str(error)
        return AskModel(
            state.number,
            self.at,
            node_id=self.node.id,
            node_name=self.node.name,
            occasion=state.occasion,
            system=system,
            prompt=prompt,
            greeting=self._greeting(),
            messages=(*state.messages, *([{"role": "user", "content": instruction}] if instruction else [])),
            functions=() if state.occasion == "goodbye" else self.functions(),
            phrases=self.phrases,
            problem=problem,
        )

    def _extract(self) -> Extract:
        bound = Bound(MIB, f'What the node "{self.node.name}" says about its extraction')
        variables = variables_of(self.node)
        prompt = problem = ""
        try:
            variables = tuple(replace(each, hint=self.render(each.hint, bound)) for each in variables)
            prompt = self.render(self.node.text("extraction_prompt"), bound)
        except TextTooLong as error:
            problem = str(error)
        return self._extraction(variables, prompt, problem)

    def _screen(self) -> Extract:
        settings = self.state.setup.screening or {}
        given = settings.get("system_prompt")
        prompt, problem = SCREENING, ""
        try:
            if isinstance(given, str) and given.strip():
                prompt = self.render(given, Bound(MIB, "The prompt of the voicemail detection"))
        except TextTooLong as error:
            problem = str(error)
        return self._extraction((ANSWERED_BY,), prompt, problem)

    def _extraction(self, variables: tuple[Variable, ...], prompt: str, problem: str) -> Extract:
        return Extract(
            self.state.number,
            self.at,
            node_id=self.node.id,
            node_name=self.node.name,
            variables=variables,
            prompt=prompt,
            messages=self.state.messages,
            problem=problem,
        )

    def _run_tool(self) -> RunTool:
        call, id = self.state.calls[0], self.state.calls_from
        tool = tool_called(self.state, call)
        return RunTool(
            self.state.number,
            self.at,
            node_id=id,
            call_id=call.id,
            name=call.name,
            tool_uuid=tool.tool_uuid if tool else None,
            arguments=arguments_of(call) or {},
            initial_context=self.state.setup.initial_context,
            gathered_context=self.state.gathered_context,
            document_uuids=tool.document_uuids if tool else (),
        )

    def _transfer(self) -> Transfer:
        return Transfer(self.state.number, self.at, self.state.transfer_to, self.state.transfer_timeout)

    def _listen(self) -> Listen:
        edges = self.graph.edges_from(self.node.id)
        return Listen(
            self.state.setup.idle_seconds,
            self.node.allow_interrupt,
            speech_hints(self.node, edges, self.state.setup.configurations),
            keys_expected(self.node, edges),
        )


_PENDING: Mapping[Phase, Callable[[Composer], Action]] = {
    "fetching": Composer._fetch,
    "thinking": Composer._ask,
    "extracting": Composer._extract,
    "acting": Composer._run_tool,
    "transferring": Composer._transfer,
    "listening": Composer._listen,
    "screening": Composer._screen,
    "closing": Composer._extract,
}


def tool_called(state: State, call: ToolCall) -> Function | None:
    """Return the tool that a call names, or None when the node of the call doesn't offer it."""
    offered = state.setup.functions.get(state.calls_from, ())
    return next((function for function in offered if function.name == call.name), None)


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """Return a call's arguments, or None when they aren't a JSON object that can be stored."""
    try:
        arguments = json.loads(call.arguments or "{}")
        # json.loads accepts NaN and lone surrogates, which can't be stored or read by others.
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def missing_in_opening(graph: Graph, context: Mapping[str, Any], direction: str, now: datetime) -> list[str]:
    """Return the variables that an agent's first words need and `context` lacks or has empty, in their order.

    The first words are the greeting, without one the start node's prompt. Left out are placeholders with a default,
    what the service sets itself, and everything when a fetch before the call may bring it.
    """
    start = graph.start
    if wants_fetch(start, direction):
        return []
    match context.get("greeting_override"):
        case {"type": "text", "text": str(text)} if text.strip():
            pass
        case _:
            text = start.text("greeting") if start.text("greeting").strip() else start.prompt
    return list(
        dict.fromkeys(
            each.path
            for each, value in values(text, context, now=now)
            if (value is None or (isinstance(value, str) and not value.strip()))
            and not is_supplied(each.path)
            and each.path.split(".")[0] != "gathered_context"
        )
    )


def wants_fetch(node: Node, direction: str | None) -> bool:
    """Return whether a start node fetches context before a call of this direction ("inbound", "outbound", None)."""
    # pre_call_fetch_enabled is the older spelling, which published clients still send; a mode takes precedence.
    mode = node.text("pre_call_fetch_mode") or ("always" if node.flag("pre_call_fetch_enabled", False) else "disabled")
    return bool(node.text("pre_call_fetch_url")) and mode in ("always", direction)
