"""A client of OpenAI-compatible chat completions servers, with retries and a time limit."""

from __future__ import annotations

import json
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, TypeVar

from ..engine.actions import AskModel, Extract, Function
from ..engine.compose import last_end
from ..engine.events import ExtractionFailed, ModelFailed, ModelReplied, ModelSpoke, VariablesExtracted
from ..engine.template import as_number
from ..http_client import Reply, RequestFailed, Send, StreamedReply
from ..masking import HIDDEN, hide, hide_in_begun, mask_headers, mask_password, sent_secrets
from ..strict_json import storable
from .extraction import REPEATED, conversation_of, instruction, values_in
from .spoken_reply import SpokenReply, spoken_reply
from .streams import EVENT_STREAM, Assembly, ErrorInStream, Pace, data_of, settled, whole
from .wire import (
    ERROR_INSTEAD,
    Completion,
    NotACompletion,
    json_value,
    kept_names,
    kept_of,
    offered,
    read,
    request_messages,
    text_messages,
    with_kept,
)

log = logging.getLogger("voiceapi")

T = TypeVar("T")

ATTEMPTS = 3
# Seconds before the second attempt and before the third, unless the server names a time.
WAITS = (0.2, 0.6)
# Statuses after which another attempt may succeed; all other errors are final.
TEMPORARY = {408, 409, 425, 429, 500, 502, 503, 504, 529}
# Statuses by which servers say that they don't support functions.
NO_TOOLS = {400, 404, 422, 500, 501}
# Statuses by which they say that they don't support a parameter, or a member of a message.
NO_PARAMETER = {400, 404, 405, 415, 422, 500, 501}
NO_MEMBER = {*range(400, 500)} - TEMPORARY - {401, 403}
# The most tokens of a reply unless it is configured.
MAX_TOKENS = 300
# The most tokens of an extraction, at least, since many variables make a long object.
EXTRACTION_TOKENS = 1000
# The names of the parameter that limits the tokens, in the order in which they are tried.
LENGTH_PARAMETERS = ("max_tokens", "max_completion_tokens")
FORMAT_PARAMETER = "response_format"
# A text at which a reply ends, which would break the JSON of an extraction.
STOP_PARAMETER = "stop"
# Whether a reply comes as a stream, and what is said of that stream. The first is refused by its value: some servers
# don't stream, others do nothing else.
STREAM_PARAMETER, STREAM_OPTIONS = "stream", "stream_options"
# Seconds within which a stream goes on after it has begun. Comments, which keep a connection alive, don't count.
LONGEST_PAUSE = 8.0
# Seconds for the rest of a stream after its last data: its connection can be kept only if it is read to its end.
END_SECONDS = 0.1
# What stands before the name of a message's member among the refused parameters.
IN_MESSAGES = "messages."
# How much is remembered of what one model's server refused, and characters of a name in that: servers choose some.
MOST_REFUSED = 100
LONGEST_REFUSED = 200
# Characters of a wrong answer that the model is shown when it is asked again.
LONGEST_QUOTE = 2000
# Characters that are shown of a server's own text.
LONGEST_TEXT = 300
# Members in which servers have the text of an error, at any depth, those first that say most. `raw` in the `metadata`
# of OpenRouter is the answer of the provider behind it, `detail` is of FastAPI and in the `message` of Mistral.
_TEXTS = ("error", "metadata", "raw", "message", "detail", "msg")
# Members in which they have its kind.
_KINDS = ("code", "type", "status")
# What the kind or the text of an error holds, in small letters, when it means the same at every provider; the first row
# that fits. Gemini's "exceeded your current quota" isn't among them: that may be the quota of a minute.
MEANINGS = {
    "too long": (
        *("context_length", "context length", "context window", "context size", "context_size", "context limit"),
        *("prompt is too long", "input is too long", "input token count", "too large for model"),
    ),
    "blocked": (
        *("content_filter", "content filter", "content_policy", "content policy", "content management policy"),
        *("data_inspection_failed", "input was flagged", "prompt was flagged", "requires moderation"),
    ),
    "used up": (
        *("insufficient_quota", "insufficient quota", "insufficient_balance", "insufficient balance"),
        *("insufficient credits", "more credits", "credit balance", "billing_", "spending limit", "usage limits"),
    ),
}
PAYMENT_REQUIRED = 402
# Sentences for errors by what they mean, see MEANINGS; after them another attempt would fail, too.
MEANT = {
    "too long": "The model server finds the conversation too long for its model",
    "blocked": "The model server's content filter blocked the request",
    "used up": "The model server says that quota or credits are used up",
}
REFUSALS = {
    401: "refused the key (401)",
    403: "refused the key (403)",
    404: "knows no such address or model (404)",
    429: "has too many requests (429)",
}


class Failure(Exception):
    """No usable answer. Its text is a sentence, and after it the server's own text of the error, without secrets.

    :param final: another attempt would fail as well.
    :param wait: the seconds that the server asked to wait before another attempt.
    :param tools: the request may succeed without functions.
    """

    def __init__(self, text: str, *, final: bool = False, wait: float | None = None, tools: bool = False) -> None:
        super().__init__(text)
        self.final = final
        self.wait = wait
        self.tools = tools


@dataclass(frozen=True)
class ChatCompletions:
    """A language model behind `POST {url}/chat/completions`.

    :param url: the base URL, which ends in `/v1` at most servers.
    :param key: the bearer token; None sends none.
    :param model: None leaves the choice to the server.
    :param timeout: seconds for one answer, with all attempts and waits.
    :param max_tokens: the most tokens of one reply.
    :param length_parameter: the one of LENGTH_PARAMETERS that says so first.
    :param parameters: other members of each request, by name; `headers` are headers of each.
    :param trusted: the operator set the URL, so it may lead to a private address.
    :param provider: the name under which tokens are counted, with the model's.
    :param refused: the parameters that this model's server has refused, each with a hash of its value, and, after
        IN_MESSAGES, members of messages; they are added here and not sent.
    :param open: sends a request whose answer is read as it comes, see `HTTPClient.stream`; without it nothing streams.
    :param streams: whether replies are asked for as streams.
    """

    send: Send
    url: str = field(repr=False)
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    timeout: float = 20.0
    trusted: bool = False
    provider: str = "openai"
    max_tokens: int = MAX_TOKENS
    length_parameter: str = LENGTH_PARAMETERS[0]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    refused: set[str] = field(default_factory=set, compare=False)
    open: Callable[..., AbstractContextManager[StreamedReply]] | None = None
    streams: bool = True
    sleep: Callable[[float], Any] = time.sleep
    clock: Callable[[], float] = time.monotonic

    @property
    def counted_as(self) -> str:
        """The name under which tokens are summed: "provider|||model"."""
        return f"{self.provider}|||{self.model or 'default'}"

    @property
    def identity(self) -> str:
        """What stands for the base URL and the model where messages are stored."""
        return sha256(f"{mask_password(self.url.rstrip('/'))} {self.model}".encode()).hexdigest()[:16]

    @property
    def limit(self) -> str:
        """The setting of the longest reply, with its value."""
        return f"{self.length_parameter}, {self.max_tokens}"

    def reply(self, ask: AskModel) -> ModelReplied | ModelFailed:
        """Ask the model for its next reply; ModelFailed after the last attempt or the timeout."""
        return _last(self._reply(ask, whole))

    def stream(self, ask: AskModel, pace: Pace) -> Generator[ModelSpoke | ModelReplied | ModelFailed, None, None]:
        """Ask the model for its next reply, and yield parts of it as soon as they are settled; then the whole.

        A reply that breaks off ends with its last whole sentence; it is asked for again only if no part was yielded.

        :param pace: how much of the settled text is a part.
        """
        yield (yield from self._reply(ask, pace))

    def _reply(self, ask: AskModel, pace: Pace) -> Generator[ModelSpoke, None, ModelReplied | ModelFailed]:
        request = _Request(self, {"messages": request_messages(ask.system, ask.messages)}, max_tokens=self.max_tokens)
        request.streams = self.streams and self.open is not None
        names: Mapping[str, str] = {}
        if ask.functions:
            tools, names = offered(ask.functions)
            request.body = {**request.body, **_tools(ask.functions)}
            request.without_tools = {"messages": text_messages(ask.system, ask.messages, tools)}
        given, looked_at, answer = "", 0, request.answer(lambda completion: _usable(completion, names, self.limit))
        try:
            while True:
                come = next(answer)
                looked_at = looked_at if len(come) > looked_at else 0  # another attempt begins anew
                if not any(mark in come[looked_at:] for mark in pace.marks):
                    continue
                looked_at = come.rfind(" ") + 1
                text = settled(come, names)
                if text.startswith(given) and (length := pace.length(text[len(given) :])):
                    part = text[len(given) :][:length]
                    yield ModelSpoke(ask.at, ask.number, part)
                    given += part
                    request.is_given = True
        except StopIteration as end:
            reply: SpokenReply = end.value
        except Failure as failure:
            if not given:
                return ModelFailed(ask.at, ask.number, str(failure), model=self.counted_as, usage=request.used)
            reply = SpokenReply(given, notes=(str(failure),))
        calls = tuple(call.tool_call(ask.number, place) for place, call in enumerate(reply.calls))
        return ModelReplied(
            ask.at,
            ask.number,
            _following(given, reply.text),
            calls,
            reply.notes,
            model=self.counted_as,
            usage=request.used,
            seconds=request.seconds,
            first_seconds=request.first_seconds,
            kept=kept_of(reply.others, reply.calls, self.identity),
        )

    def extract(self, request: Extract) -> VariablesExtracted | ExtractionFailed:
        """Ask the model for the values of variables, and once more, in its server's JSON format, without an object.

        ExtractionFailed when the second answer isn't a JSON object, either.
        """
        messages = [
            {"role": "system", "content": instruction(request)},
            {"role": "user", "content": conversation_of(request)},
        ]
        most = max(self.max_tokens, EXTRACTION_TOKENS)
        sent = _Request(self, {"messages": messages}, max_tokens=most, without=(STOP_PARAMETER,))
        try:
            text = _last(sent.answer(lambda completion: completion.text))
            try:
                values = values_in(text)
            except ValueError:
                sent.body = {"messages": [*messages, {"role": "assistant", "content": text[:LONGEST_QUOTE]}, REPEATED]}
                sent.as_json = True
                values = values_in(_last(sent.answer(lambda completion: completion.text)))
        except (Failure, ValueError) as failure:
            return ExtractionFailed(request.at, request.number, str(failure), model=self.counted_as, usage=sent.used)
        return VariablesExtracted(request.at, request.number, values, model=self.counted_as, usage=sent.used)

    def complete(self, system: str, user: str, functions: Sequence[Function] = ()) -> Completion:
        """The answer to a system and a user message, after one attempt.

        :raises Failure: when there is no usable answer.
        """
        body = {"messages": request_messages(system, [{"role": "user", "content": user}]), **_tools(functions)}
        return replace(_last(_Request(self, body).attempt()), model=self.counted_as)


def _last(steps: Generator[Any, None, T]) -> T:
    """What a generator returns in the end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def _following(given: str, text: str) -> str:
    """The whole text of a reply, which begins with what was given out of it.

    If its end has changed what its beginning means, it goes on with the first sentence behind that.
    """
    if text.startswith(given):
        return text
    behind = next((end for end in range(len(given), len(text)) if last_end(text, end) == end), len(text))
    return f"{given} {text[behind:].lstrip()}".rstrip()


def _tools(functions: Sequence[Function]) -> dict[str, Any]:
    # "auto" is the default, but some servers, such as llama-cpp-python, ignore the tools without it.
    return {"tools": offered(functions)[0], "tool_choice": "auto"} if functions else {}


def _usable(completion: Completion, names: Mapping[str, str], limit: str) -> SpokenReply:
    """What is spoken and carried out of an answer.

    :raises Failure: when that is nothing.
    """
    reply = spoken_reply(completion, names, limit)
    if reply.text or reply.calls:
        return reply
    if completion.cut:
        raise Failure(f"The model reached its longest length ({limit}) before it said a word.", final=True)
    # Behind some servers a model that is offered functions can't answer with text, or calls them in its text only.
    text = reply.notes[0] if reply.notes else "The model answered without words and without a function."
    raise Failure(text, tools=True, final=bool(reply.notes))


class _Request:
    """One request for a completion, in as many attempts as the timeout allows.

    :param body: its messages as they are stored, and what belongs to them.
    :param max_tokens: the most tokens of the answer; None leaves it to the server.
    :param without: the parameters that aren't sent.
    """

    def __init__(
        self,
        server: ChatCompletions,
        body: Mapping[str, Any],
        max_tokens: int | None = None,
        without: Iterable[str] = (),
    ) -> None:
        self.server = server
        self.body = body
        self.without = frozenset(without)
        # What the server has refused in this request. It is remembered when that has helped, because the text of an
        # error may name a parameter for another reason. By name, the value that was refused.
        self.refused: dict[str, Any] = {}
        self.max_tokens = max_tokens
        # The body that describes the functions in its text.
        self.without_tools: Mapping[str, Any] | None = None
        # Whether the server is asked for JSON.
        self.as_json = False
        # Whether it is asked for as a stream, and whether a part of that was given out, which can't be asked for again.
        self.streams = self.is_given = False
        self.deadline = server.clock() + server.timeout
        self.seconds = self.first_seconds = 0.0
        self.used: Counter[str] = Counter()

    def answer(self, accept: Callable[[Completion], T]) -> Generator[str, None, T]:
        """What `accept` makes of the first completion for which it raises no Failure; yields as `attempt`.

        :raises Failure: that of the last attempt, or of the first of which a part was given out.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                return accept((yield from self.attempt()))
            except Failure as failure:
                if self.is_given:
                    raise
                if failure.tools and self.without_tools is not None:
                    self.body, self.without_tools = self.without_tools, None
                    continue
                wait = WAITS[min(attempt, len(WAITS)) - 1] if failure.wait is None else failure.wait
                if failure.final or attempt == ATTEMPTS or self.server.clock() + wait >= self.deadline:
                    raise
                self.server.sleep(wait)

    def attempt(self) -> Generator[str, None, Completion]:
        """Make one attempt within the time that is left; again at once without a parameter that the server refuses.

        Yields the text of a streamed reply, as far as it has come, each time it has grown.

        :raises Failure: when there is no answer, or no completion in it.
        """
        while True:
            optional = self._optional()
            answer = yield from self._ask({**optional, **self.body, "messages": self._messages()})
            if isinstance(answer, Completion):
                return self._checked(answer)
            refused = self._refused(answer, optional)
            if refused is None:
                break
            if refused in LENGTH_PARAMETERS and b"context" in answer.body and self.max_tokens is not None:
                # The conversation leaves too little room for so long a reply; the next one may leave enough.
                self.max_tokens = None
            else:
                self.refused[refused] = optional.get(refused)
        if answer.status != 200:
            raise self._failure(answer)
        try:
            completion = read(answer)
        except NotACompletion as error:
            raise self._failure(answer, str(error)) from None
        if optional[STREAM_PARAMETER]:
            self.refused[STREAM_PARAMETER] = True  # it has answered whole
        self.seconds = answer.seconds
        return self._checked(completion)

    def _checked(self, completion: Completion) -> Completion:
        """A completion, after it is counted.

        :raises Failure: when the model, or a filter, has refused to reply.
        """
        self._remember()
        self.used.update(completion.usage)
        if not completion.text and not completion.calls and (completion.refusal or completion.filtered):
            refused = "The model refused to reply."
            filtered = "The content filter of the model's server let no word of the reply through."
            sentence = filtered if completion.filtered else refused
            raise Failure(self._with_reason(sentence, one_line(completion.refusal)), final=True)
        return completion

    def _optional(self) -> dict[str, Any]:
        """The parameters that not every server takes, without those that this one has refused."""
        names = (self.server.length_parameter, *LENGTH_PARAMETERS)
        length = next((name for name in names if not self._is_refused(name, self.max_tokens)), None)
        streams = self.streams
        if (
            self.refused.get(STREAM_PARAMETER) == streams
            or _remembered(STREAM_PARAMETER, streams) in self.server.refused
        ):
            streams = not streams and self.server.open is not None
        found = {
            **({length: self.max_tokens} if length and self.max_tokens is not None else {}),
            **self.server.parameters,
            **({FORMAT_PARAMETER: {"type": "json_object"}} if self.as_json else {}),
            **({STREAM_OPTIONS: {"include_usage": True}} if streams else {}),
        }
        sent = (name for name in found if name not in self.without and not self._is_refused(name, found[name]))
        return {STREAM_PARAMETER: streams, **{name: found[name] for name in sent}}

    def _messages(self) -> list[dict[str, Any]]:
        without = {name.removeprefix(IN_MESSAGES) for name in self._refused_members()}
        return with_kept(self.body["messages"], self.server.identity, without)

    def _refused(self, reply: Reply, optional: Mapping[str, Any]) -> str | None:
        """What the server refused this request for: a parameter, or a member of its messages; else None."""
        text = reply.body.decode("utf-8", "replace").lower() if reply.status >= 400 else ""
        asked = (name for name in optional if name != STREAM_PARAMETER or STREAM_PARAMETER not in self.refused)
        parameters = [name for name in asked if reply.status in NO_PARAMETER and _names(text, name)]
        kept = kept_names(self.body["messages"], self.server.identity) if reply.status in NO_MEMBER else []
        sent = {f"{IN_MESSAGES}{name}": name for name in kept}
        known = self._refused_members()
        members = [place for place, name in sent.items() if place not in known and _names(text, name)]
        found = [*members, *parameters] if "messages" in text else [*parameters, *members]
        if not found and reply.status in NO_PARAMETER and reply.status < 500 and FORMAT_PARAMETER in optional:
            return FORMAT_PARAMETER  # it was sent second, so it alone is new to the server
        return found[0] if found else None

    def _refused_members(self) -> set[str]:
        return {name for name in self.server.refused.union(self.refused) if name.startswith(IN_MESSAGES)}

    def _is_refused(self, name: str, value: Any) -> bool:
        return name in self.refused or _remembered(name, value) in self.server.refused

    def _remember(self) -> None:
        """Remember what this request was answered without."""
        for name, value in self.refused.items():
            known = _remembered(name, value)
            if known in self.server.refused or len(name) > LONGEST_REFUSED:
                continue
            if len(self.server.refused) >= MOST_REFUSED:
                self.server.refused.clear()  # what is refused still is learned again, one request for each
            self.server.refused.add(known)
            kind = "member" if name.startswith(IN_MESSAGES) else "parameter"
            log.warning("The model server at %s refuses the %s %s", mask_password(self.server.url), kind, name)

    def _ask(self, body: Mapping[str, Any]) -> Generator[str, None, Reply | Completion]:
        """Send a request; the server's answer, or the completion that it has streamed. Yields as `attempt`."""
        server = self.server
        left = self.deadline - server.clock()
        if left <= 0:
            raise Failure(f"The model gave no answer within {server.timeout:g} seconds.", final=True)
        own = {name.lower() for name in server.headers}
        key = {"Authorization": f"Bearer {server.key}"} if server.key and "authorization" not in own else {}
        url, headers = f"{server.url.rstrip('/')}/chat/completions", {**key, **server.headers}
        options: dict[str, Any] = {
            "json": {"model": server.model or "default", **body},
            "timeout": left,
            "trusted": server.trusted,
        }
        try:
            if server.open is None or not body[STREAM_PARAMETER]:
                return _whole(server.send("POST", url, headers=headers, **options))
            began = server.clock()
            with server.open("POST", url, headers=headers, **options) as answer:
                if answer.status == 200 and EVENT_STREAM in answer.headers.get("Content-Type", ""):
                    return (yield from self._read_stream(answer, sent_secrets(url, headers), began))
                text = hide(answer.read(), sent_secrets(url, headers))
                return Reply(answer.status, answer.headers, text, round(server.clock() - began, 4))
        except RequestFailed as error:
            final = error.kind in ("address", "scheme", "timeout")
            raise Failure(f"The model server can't be asked: {error}", final=final) from None

    def _read_stream(
        self, answer: StreamedReply, secrets: Sequence[str], began: float
    ) -> Generator[str, None, Completion]:
        """The completion that a server streams. One that breaks off is as it stands, if a part of it was given out.

        :param secrets: what is hidden of the texts; what may be how one begins isn't yielded yet.
        :param began: when the request was sent, by the server's clock.
        """
        assembly, broken, chunks = Assembly(), "", answer.chunks()
        try:
            for data in data_of(chunks):
                if data is None:
                    continue
                answer.expect(LONGEST_PAUSE)
                before = len(assembly.text)
                assembly.add(data)
                if not self.first_seconds and assembly.has_begun:
                    self.first_seconds = round(self.server.clock() - began, 4)
                if assembly.is_done:
                    break
                if len(assembly.text) > before:
                    yield hide_in_begun(assembly.text, secrets)
            if not assembly.is_whole:
                broken = "The model server broke its answer off"
        except (RequestFailed, NotACompletion) as error:
            broken = str(error).rstrip(".")
        except ErrorInStream as error:
            if not self.is_given:
                self.first_seconds = 0.0
                raise self._failure(Reply(200, {}, json.dumps(error.body).encode(), 0.0), ERROR_INSTEAD) from None
            said, _ = error_of(Reply(200, {}, json.dumps(error.body).encode(), 0.0))
            broken = self._with_reason("The model server broke its answer off.", said).rstrip(".")
        if broken and not self.is_given:
            raise Failure(f"{broken}.")
        with suppress(RequestFailed):
            answer.expect(END_SECONDS)
            for _ in chunks:
                pass
        self.seconds = round(self.server.clock() - began, 4)
        completion = assembly.completion(lambda text: hide(text.encode(), secrets).decode())
        return replace(completion, calls=(), broken=broken) if broken else completion

    def _failure(self, reply: Reply, sentence: str = "") -> Failure:
        """The failure that an answer without a reply means.

        :param sentence: on what is wrong with an answer of 200.
        """
        said, meaning = error_of(reply)
        status = f" ({reply.status})" if reply.status != 200 else ""
        if meaning:
            return Failure(self._with_reason(f"{MEANT[meaning]}{status}.", said), final=True)
        if sentence:
            return Failure(self._with_reason(sentence, said))
        reason = REFUSALS.get(reply.status, f"answered with status {reply.status}")
        about_tools = reply.status in NO_TOOLS and b"tool" in reply.body.lower()
        wait = as_number(reply.headers.get("Retry-After")) if reply.status in TEMPORARY else None
        return Failure(
            self._with_reason(f"The model server {reason}.", said),
            final=reply.status not in TEMPORARY,
            wait=max(0.0, float(wait)) if wait is not None else None,
            tools=about_tools,
        )

    def _with_reason(self, sentence: str, said: str) -> str:
        """A sentence, and what the server said, cut at LONGEST_TEXT, if it said anything."""
        said = self._hidden(said)[:LONGEST_TEXT]
        return f"{sentence} It said: {said}" if said else sentence

    def _hidden(self, text: str) -> str:
        """A text of the server without the key, and without the headers that may be secrets."""
        server = self.server
        masked = mask_headers(server.headers)
        secrets = [value for name, value in server.headers.items() if masked[name] != value]
        found = hide(text.encode(), [*secrets, server.key or ""]).decode()
        # A key that is short may be a part of other words.
        return re.sub(rf"(?<!\w){re.escape(server.key)}(?!\w)", HIDDEN, found) if server.key else found


def _whole(reply: Reply) -> Reply | Completion:
    """An answer, or the completion in it if it is a stream that nobody has asked for.

    :raises Failure: when that breaks off.
    """
    if reply.status != 200 or EVENT_STREAM not in reply.headers.get("Content-Type", ""):
        return reply
    assembly = Assembly()
    try:
        for data in filter(None, data_of([reply.body])):
            assembly.add(data)
        if not assembly.is_whole:
            raise NotACompletion("The model server broke its answer off.")
        return assembly.completion()
    except NotACompletion as error:
        raise Failure(str(error)) from None
    except ErrorInStream as error:
        return Reply(200, reply.headers, json.dumps(error.body).encode(), reply.seconds)


def _remembered(name: str, value: Any) -> str:
    """What stands for a refused parameter with its value, since another may be accepted, or for a message's member."""
    if name.startswith(IN_MESSAGES):
        return name
    return f"{name} {sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]}"


def _names(text: str, name: str) -> bool:
    """Whether a text in lower case has a name as a word."""
    return re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", text) is not None


def error_of(reply: Reply) -> tuple[str, str]:
    """The server's own text of an error, on one line, and what it means.

    :return: an empty text when there is none; the name of one of MEANINGS, or an empty one.
    """
    kinds: list[str] = []
    try:
        body = storable(reply.json())
        match body:
            case {"choices": [{"error": error}, *_]}:
                body = error
        text = _said(body, kinds)
    except (ValueError, RecursionError):  # JSON in texts in JSON may be nested deeper than `storable` allows
        text = reply.body.decode("utf-8", "replace").strip() if reply.status >= 400 else ""
        text = "" if text.startswith(("<", "{", "[")) else text  # a page, or broken JSON
    lowered = f"{' '.join(kinds)} {text}".lower()
    if reply.status == PAYMENT_REQUIRED:
        return one_line(text), "used up"
    found = (name for name, marks in MEANINGS.items() if any(mark in lowered for mark in marks))
    return one_line(text), next(found, "")


def one_line(text: str) -> str:
    """The text without line ends and what can't be printed."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _said(value: Any, kinds: list[str]) -> str:
    """The first text of an error within a value, also of JSON in a text; its kinds are added to `kinds`."""
    match value:
        case str():
            within = json_value(value) if value.lstrip()[:1] in ("{", "[") else None
            return (_said(within, kinds) if within is not None else "") or value
        case list():
            return next(filter(None, (_said(each, kinds) for each in value)), "")
        case {"loc": list(places), "msg": str(text)}:
            return f"{'.'.join(map(str, places))}: {text}"
        case Mapping():
            kinds += [str(value[name]) for name in _KINDS if name in value]
            return next(filter(None, (_said(value.get(name), kinds) for name in _TEXTS)), "")
    return ""
