"""Prompts, greetings, functions and requests of a state, with templates rendered, and the input that it expects."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from .actions import Action, AskModel, EndOfSpeech, Extract, Fetch, Function, Listen, Occasion, RunTool, Transfer
from .events import ToolCall
from .extraction import ANSWERED_BY, SCREENING, Variable, variables_of
from .graph import Edge, Graph, Node, NodeCall, is_supplied
from .phrases import phrases
from .state import DO_NOT_CALL, Phase, State
from .template import (
    KIB64,
    MIB,
    MINUTES,
    Bound,
    TextTooLong,
    as_boolean,
    as_integer,
    as_number,
    as_text,
    placeholders,
    render,
    render_value,
    values,
)
from .validation.field_types import FIRST_SENTENCE

_INSTRUCTIONS: Mapping[Occasion, str] = {
    "idle": "The caller has said nothing for a while. In the caller's language, ask briefly whether they are there, "
    "and ask your last question again; don't greet them again.",
    "goodbye": "The caller is still silent. In the caller's language, say a short goodbye; the call ends after it.",
}


# The model calls it when the person wants no more calls. It says a sentence and ends the call.
OPT_OUT = Function(
    DO_NOT_CALL,
    "The person says that they want no more calls, or to be taken off the list. Not for a bad moment or a lack of "
    "interest.",
)
# At most so many hints are given, each of at most so many characters: the strictest carriers take 500 of 100, and no
# more than 10,000 characters in all.
MOST_HINTS, LONGEST_HINT = 90, 100
_QUOTED = re.compile(r"[\"“”„«»]([^\"“”„«»]+)[\"“”„«»]")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# Words of a condition shorter than this, and these, are no hints: nearly every English condition has them.
_SHORTEST_WORD = 4
_FREQUENT = frozenset(
    _WORD.findall(
        "about also anything asks been call called caller caller's callee customer doesn't does either else from have "
        "into just like more person says should some something than that their them then there they this those user "
        "wants want were what when where which while will with would your"
    )
)
_NUMBER = re.compile(r"(?<![\w.,])\d+(?![\w]|[.,]\d)")
_ANY_NUMBER = re.compile(r"\d+")
# Most keys that a carrier counts.
MOST_KEYS = 20
# "4 digits" at the end of a hint in several languages, and what makes it "at least 4 digits" or the like.
_DIGITS = re.compile(
    r"(?<!\d)(\d{1,2})[ -]{0,2}(?:digits?|stellig\w*|ziffern|chiffres|cifras|cifre|d[ií]gitos|cijfers?|cyfr\w*|"
    r"siffr\w*|अंक|桁|位)(?:\s?\S+)?[ .)]*$",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"\b(?:or|oder|ou|eller|lub|two|three|four|five|six|seven|eight|nine|ten)\b|least|most|up to|min|max|mehr|bis|"
    r"höchst|moins|plus|jusqu|menos|más|hasta|meno|più|fino|mais|até|hoog|meer|tot|"
    r"najmniej|najwyżej|minst|högst|upp till|máx|mín|कम|अधिक|以上|以下|以内|まで|至少|最多",
    re.IGNORECASE,
)
# What is often keyed, in the name or the hint of a variable.
_KEYED = re.compile(
    r"number|digit|code|\bpin\b|nummer|ziffer|stellig|num[eé]ro|chiffre|n[uú]mero|cifr|d[ií]gito|cijfer|numer|cyfr|kod|"
    r"siffr|नंबर|अंक|番号|数字|号码",
    re.IGNORECASE,
)
# The pause that ends speech: by name, or in seconds within these limits.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.4, 10.0
PAUSE = f"quick, normal, patient, or seconds from {SHORTEST_PAUSE:g} to {LONGEST_PAUSE:g}"
_WORDS = re.compile(r"\S+")
# Yes and no in the languages of `phrases`: an edge so labelled is taken by a word.
_YES_OR_NO = frozenset(
    _WORDS.findall("yes no ja nein oui non sí si sì sim não nao nee tak nie nej हाँ हां नहीं はい いいえ 是 是的 不是 不")
)
# "Press 1" in several languages: such an edge is an entry of a keypad menu.
_PRESS = re.compile(
    r"\b(?:press|push|dial|key|drück\w*|taste|appuy\w*|touche|puls\w*|marqu\w*|oprim\w*|tecla|prem\w*|digit\w*|tasto|"
    r"druk|toets|naciśnij|wybierz|tryck|knapp)\b[^\d]{0,20}\d{1,4}\b",
    re.IGNORECASE,
)
# The first of these marks ends a sentence only before a blank ("3.5"), the others, which no blank follows, anywhere.
_END = re.compile(
    r"[.!?\u2026\u06d4\u061f][\"'\u201d\u2019\u00bb)\]]*(?=\s|\Z)"
    r"|[\u3002\uff01\uff1f\u0964\u0965][\"'\u201d\u2019\u300d\u300f\uff09)\]]*|\n"
)


@dataclass(frozen=True)
class Utterance:
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
    def saved(self) -> dict[str, Any]:
        """The results that calls of nodes have kept, by variable."""
        gathered = self.state.gathered_context
        return {name: gathered[name] for name in self.graph.saved if name in gathered}

    def render(self, text: str, bound: Bound) -> str:
        """Render a template from the initial context and what calls of nodes have kept.

        The gathered context is its member gathered_context. The time is to the minute.

        :raises TextTooLong: when the text is more than its bound.
        """
        gathered = self.state.gathered_context
        context = {"gathered_context": gathered, **self.state.setup.initial_context, **self.saved}
        now = datetime.fromtimestamp(self.at, UTC)
        return render(text, context, bound, now=now, missing=self.missing, clock=MINUTES)

    def prompts(self) -> tuple[str, str]:
        """Return the system prompt, and the node's own part of it; before that is the global node's, if it is used.

        :raises TextTooLong: when they are more than 1 MiB.
        """
        bound = Bound(MIB, f'The prompt of the node "{self.node.name}"')
        shared = self.graph.global_node if self.node.flag("add_global_prompt", True) else None
        general = self.render(shared.prompt, bound) if shared else ""
        own = self.render(self.node.prompt, bound)
        return "\n\n".join(filter(None, (general, own))), own

    def functions(self, node: Node) -> tuple[Function, ...]:
        """Return what the model may call at a node: its tools, its edges, in campaigns OPT_OUT.

        A tool or an edge with the name of OPT_OUT takes its place.
        """
        edges, setup = self.graph.edges_from(node.id), self.state.setup
        offered = (
            *(each for each in setup.functions.get(node.id, ()) if not each.on_entry),
            *(Function(edge.function_name, edge.condition, label=edge.label) for edge in edges),
        )
        takes = setup.campaign and setup.do_not_call is not None and not node.ends_call
        return (*offered, OPT_OUT) if takes and all(each.name != OPT_OUT.name for each in offered) else offered

    def greetings(self) -> Iterator[Utterance]:
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

    def transition(self, edge: Edge) -> Iterator[Utterance]:
        """Yield what may be spoken when an edge is followed, the preferred first."""
        if edge.transition_speech_type == "audio" and edge.transition_speech_recording_id:
            yield self._recording(edge.transition_speech_recording_id)
        yield self.speech(edge.transition_speech, f'The transition speech of the edge "{edge.label}"')

    def speech(self, template: str, what: str) -> Utterance:
        """A text to speak; one of more than 64 KiB is empty, with a `problem` whose subject is `what`."""
        try:
            return Utterance(self.render(template, Bound(KIB64, what)))
        except TextTooLong as error:
            return Utterance("", problem=str(error))

    def _recording(self, id: str) -> Utterance:
        return Utterance(self.state.setup.recordings.get(id, ""), id)

    def can_be_spoken(self, speech: Utterance) -> bool:
        """Whether the speech is a known recording or a text that isn't blank."""
        return speech.recording_id in self.state.setup.recordings or (
            not speech.recording_id and bool(speech.text.strip())
        )

    def pending_action(self) -> Action | None:
        """Return the request or Listen that the state's phase waits for; None before and after the call."""
        build = _PENDING.get(self.state.phase)
        return build(self) if build else None

    def _fetch(self) -> Fetch:
        url, credential = (self.node.text(f"pre_call_fetch_{name}") for name in ("url", "credential_uuid"))
        return Fetch(self.state.number, self.at, url, credential or None)

    def _ask(self) -> AskModel:
        state, node = self.state, self.node
        sentences = phrases(state.setup.configurations)
        is_keyed = state.setup.keys_need_hash and asks_for_keys(node, self.graph.edges_from(node.id))
        end_keys = sentences["end_keys"] if is_keyed else ""
        instruction = _INSTRUCTIONS.get(state.occasion)
        if instruction and state.occasion == "idle" and end_keys:
            instruction += f' Say also: "{end_keys}"'
        spoken = self.greetings() if node.type == "startCall" else ()
        system = prompt = problem = ""
        try:
            system, prompt = self.prompts()
        except TextTooLong as error:
            problem = str(error)
        script = self.speech(node.script, f'The scripted text of the node "{node.name}"')
        return AskModel(
            state.number,
            self.at,
            node_id=node.id,
            node_name=node.name,
            occasion=state.occasion,
            system=system,
            prompt=prompt,
            greeting=next((speech.text for speech in spoken if self.can_be_spoken(speech)), ""),
            messages=(*state.messages, *([{"role": "user", "content": instruction}] if instruction else [])),
            functions=() if state.occasion == "goodbye" else self.functions(node),
            phrases=sentences,
            takes_opt_outs=state.setup.do_not_call is not None,
            problem=problem,
            end_keys=end_keys,
            script=script.text if script.text.strip() else "",
            script_problem=script.problem,
            first_sentence=self._setting(FIRST_SENTENCE) != "off",
        )

    def _setting(self, name: str) -> Any:
        """A setting of the node, or that of the workflow where the node has none."""
        given = self.node.data.get(name)
        return self.state.setup.configurations.get(name) if given is None else given

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

    def arguments(self, call: NodeCall, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a node's call, their templates filled in; those without a value are left out.

        Templates have what was gathered, then the initial context. A text is read as the type of its parameter.

        :param parameters: the JSON schema of the tool's parameters; empty if it isn't known.
        :raises ArgumentError: for one that the tool requires and that has no value, or that has another type.
        :raises TextTooLong: when they are more than 64 KiB.
        """
        initial, gathered = self.state.setup.initial_context, self.state.gathered_context
        context = {**initial, **gathered, "initial_context": initial, "gathered_context": gathered}
        now = datetime.fromtimestamp(self.at, UTC)
        bound = Bound(KIB64, f'The text of the arguments of "{self.node.name}"')
        found = {}
        for name, given in call.arguments.items():
            value = render_value(given, context, bound, now=now, missing=self.missing)
            if value is not None and (not isinstance(value, str) or value.strip()):
                found[name] = read_argument(name, value, parameters)
        for name in parameters.get("required", ()):
            if name not in found:
                raise ArgumentError(f'The argument "{name}" has no value.')
        return found

    def _run_tool(self) -> RunTool:
        call, id = self.state.calls[0], self.state.calls_from
        own = self.graph.node(id).call if self.state.phase == "entering" else None
        tool = tool_called(self.state, call)
        uuid = own.tool if own else tool.tool_uuid if tool else None
        return RunTool(
            self.state.number,
            self.at,
            node_id=id,
            call_id=call.id,
            name=call.name,
            tool_uuid=uuid,
            arguments=arguments_of(call) or {},
            initial_context=self.state.setup.initial_context,
            gathered_context=self.state.gathered_context,
            document_uuids=tool.document_uuids if tool and not own else (),
            saved=self.saved,
            on_entry=own is not None,
            function=own.function if own else "",
        )

    def _transfer(self) -> Transfer:
        return Transfer(self.state.number, self.at, self.state.transfer_to, self.state.transfer_timeout)

    def _listen(self) -> Listen:
        node, setup = self.node, self.state.setup
        edges = self.graph.edges_from(node.id)
        return Listen(
            setup.idle_seconds,
            node.allow_interrupt,
            speech_hints(node, edges, setup.configurations),
            keys_expected(node, edges),
            end_of_speech(node, edges, setup.configurations),
        )


_PENDING: Mapping[Phase, Callable[[Composer], Action]] = {
    "fetching": Composer._fetch,
    "thinking": Composer._ask,
    "extracting": Composer._extract,
    "entering": Composer._run_tool,
    "acting": Composer._run_tool,
    "transferring": Composer._transfer,
    "listening": Composer._listen,
    "screening": Composer._screen,
    "closing": Composer._extract,
}


def tool_called(state: State, call: ToolCall) -> Function | None:
    """Return the tool that a call names, or None when the node of the call doesn't offer it."""
    offered = state.setup.functions.get(state.calls_from, ())
    return next((each for each in offered if each.name == call.name and not each.on_entry), None)


class ArgumentError(ValueError):
    """An argument of a node's call doesn't fit the tool; the message is a sentence."""


def read_argument(name: str, value: Any, parameters: Mapping[str, Any]) -> Any:
    """Return the value of an argument of a node's call; a text is read as the type of its parameter.

    :param parameters: the JSON schema of the tool's parameters.
    :raises ArgumentError: for a text that can't be read so.
    """
    schema = parameters.get("properties", {}).get(name)
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind == "string":
        return as_text(value)
    described, read = _READERS.get(str(kind), ("", None))
    if read is None or not isinstance(value, str):
        return value
    found = read(value.strip())
    if found is None:
        raise ArgumentError(f'The argument "{name}" must be {described}, not "{value[:100]}".')
    return found


def _read_json(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = _json_of(text)
        return value if isinstance(value, kind) else None

    return read


# By the JSON type of a parameter: what its values are called, and how a text is read as one, None if it can't be.
_READERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "number": ("a number", as_number),
    "integer": ("a whole number", as_integer),
    "boolean": ("true or false", as_boolean),
    "array": ("a list in JSON", _read_json(list)),
    "object": ("an object in JSON", _read_json(dict)),
}


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """Return a call's arguments, or None when they aren't a JSON object that can be stored."""
    arguments = _json_of(call.arguments or "{}")
    return arguments if isinstance(arguments, dict) else None


def _json_of(text: str) -> Any:
    """The value of a JSON text; None when it isn't one, or can't be stored."""
    try:
        value = json.loads(text)
        # json.loads accepts NaN and lone surrogates, which can't be stored or read by others.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


def unset_opening_variables(graph: Graph, context: Mapping[str, Any], direction: str, now: datetime) -> list[str]:
    """Return the variables that an agent's first words need and `context` lacks or has empty, in their order.

    The first words are the greeting, without one the start node's prompt or its scripted text. Left out are
    placeholders with a default, what the service sets itself, and everything when a fetch before the call may bring it.
    """
    start = graph.start
    if wants_fetch(start, direction):
        return []
    match context.get("greeting_override"):
        case {"type": "text", "text": str(text)} if text.strip():
            pass
        case _:
            greeting = start.text("greeting")
            text = greeting if greeting.strip() else f"{start.prompt}\n{start.script}"
    return list(
        dict.fromkeys(
            each.path
            for each, value in values(text, context, now=now)
            if (value is None or (isinstance(value, str) and not value.strip()))
            and not is_supplied(each.path)
            and each.path.split(".")[0] not in ("gathered_context", start.call.save_as if start.call else "")
        )
    )


def wants_fetch(node: Node, direction: str | None) -> bool:
    """Return whether a start node fetches context before a call of this direction ("inbound", "outbound", None)."""
    # pre_call_fetch_enabled is the older spelling, which published clients still send; a mode takes precedence.
    mode = node.text("pre_call_fetch_mode") or ("always" if node.flag("pre_call_fetch_enabled", False) else "disabled")
    return bool(node.text("pre_call_fetch_url")) and mode in ("always", direction)


# -- expected input: hints for the recogniser, and when keys and speech are complete


def speech_hints(node: Node, edges: Iterable[Edge], configurations: Mapping[str, Any]) -> tuple[str, ...]:
    """The phrases that the recogniser is to expect at a node, without repetitions, at most MOST_HINTS.

    First those that the node and the workflow's configurations give as `speech_hints`, then the labels of the node's
    edges, the phrases in quotation marks and the longer words of their conditions. Longer phrases, and those with
    template variables, are left out.
    """
    found = (*_given(node.data), *_given(configurations), *_of_edges(tuple(edges)))
    usable: dict[str, str] = {}
    for text in (" ".join(each.split()) for each in found):
        if text and len(text) <= LONGEST_HINT and next(placeholders(text), None) is None:
            usable.setdefault(text.casefold(), text)
    return tuple(usable.values())[:MOST_HINTS]


def _given(data: Mapping[str, Any]) -> list[str]:
    given = data.get("speech_hints")
    return [text for text in given if isinstance(text, str)] if isinstance(given, list) else []


def _of_edges(edges: tuple[Edge, ...]) -> Iterator[str]:
    yield from (edge.label.replace("_", " ") for edge in edges)
    for edge in edges:
        yield from _QUOTED.findall(edge.condition)
    for edge in edges:
        words = _WORD.findall(_QUOTED.sub(" ", edge.condition))
        yield from (word for word in words if len(word) >= _SHORTEST_WORD and word.casefold() not in _FREQUENT)


def keys_expected(node: Node, edges: Iterable[Edge]) -> int | None:
    """After how many keys the caller's input is complete, None where that isn't known.

    A menu is a node where nothing is extracted that could be keyed, whose edges say "press 1" or the like and whose
    numbers all have as many digits: one, unless they say "press 10" and the like. Where one variable is extracted, its
    hint may say "4 digits".
    """
    variables = variables_of(node)
    if variables:
        hint = variables[0].hint if len(variables) == 1 and variables[0].type != "boolean" else ""
        said = [] if _BOUND.search(hint) or len(_ANY_NUMBER.findall(hint)) != 1 else _DIGITS.findall(hint)
        lengths = {int(digits) for digits in said}
    else:
        texts = [f"{edge.label}\n{edge.condition}" for edge in edges]
        is_menu = any(_PRESS.search(text) for text in texts)
        lengths = {len(number) for text in texts for number in _NUMBER.findall(text)} if is_menu else set()
    length = lengths.pop() if len(lengths) == 1 else 0
    return length if 0 < length <= MOST_KEYS else None


def asks_for_keys(node: Node, edges: Iterable[Edge]) -> bool:
    """Whether the caller is likely to press keys of which it isn't known how many there will be."""
    return keys_expected(node, edges) is None and any(
        each.type == "number" or (each.type == "string" and _KEYED.search(f"{each.name} {each.hint}") is not None)
        for each in variables_of(node)
    )


def read_end_of_speech(value: object) -> EndOfSpeech | None:
    """The pause that ends speech, as a setting has it; None for what is no such setting."""
    match value:
        case "quick" | "normal" | "patient":
            return value
        case str():
            return None
    seconds = as_number(value)
    return float(seconds) if seconds is not None and SHORTEST_PAUSE <= seconds <= LONGEST_PAUSE else None


def end_of_speech(node: Node, edges: Iterable[Edge], configurations: Mapping[str, Any]) -> EndOfSpeech:
    """The pause that ends what the caller says at a node: the node's `end_of_speech`, else that of the configurations.

    Without either it is quick where a number, a yes or no, or a single word is asked for, else normal.
    """
    for given in (node.data, configurations):
        chosen = read_end_of_speech(given.get("end_of_speech"))
        if chosen is not None:
            return chosen
    variables = variables_of(node)
    if variables:
        return "quick" if all(each.type in ("number", "boolean") for each in variables) else "normal"
    found = [_is_taken_by_a_word(edge) for edge in edges]
    return "quick" if found and all(found) else "normal"


def _is_taken_by_a_word(edge: Edge) -> bool:
    label = edge.label.strip(" .,!?¡¿。！？").casefold()
    if label in _YES_OR_NO or label.isdecimal() or _PRESS.search(f"{edge.label}\n{edge.condition}"):
        return True
    quoted = _QUOTED.findall(edge.condition)
    return bool(quoted) and all(len(phrase.split()) == 1 for phrase in quoted)


# -- sentences


def last_end(text: str, longest: int) -> int:
    """Where the last sentence ends that lies within the first `longest` characters; 0 when none does."""
    end = 0
    for found in _END.finditer(text):
        if found.end() > longest:
            break
        end = found.end()
    return end


def cut(text: str, longest: int) -> str:
    """The beginning of a text, of at most `longest` characters: cut at a sentence end, else a blank, else anywhere."""
    if len(text) <= longest:
        return text
    end = last_end(text, longest) or text.rfind(" ", 0, longest + 1)
    return text[: end if end > 0 else longest].rstrip()


def whole(text: str) -> str:
    """The whole sentences of a text that breaks off; all of it when not even one is whole."""
    return text[: last_end(text, len(text)) or len(text)].rstrip()
