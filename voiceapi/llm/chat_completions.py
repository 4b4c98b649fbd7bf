"""A client of OpenAI-compatible chat completions servers, with retries and a time limit."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from ..engine.actions import AskModel, Extract
from ..engine.events import ExtractionFailed, ModelFailed, ModelReplied, VariablesExtracted
from ..engine.values import as_number
from ..http_client import Reply, RequestFailed
from ..masking import mask_password
from .extraction import REPEATED, conversation_of, instruction, values_in
from .spoken_reply import SpokenReply, spoken_reply
from .wire import Completion, NotACompletion, error_text, offered, read, request_messages, text_messages

log = logging.getLogger("voiceapi")

T = TypeVar("T")

ATTEMPTS = 3
# Seconds before the second attempt and before the third, unless the server names a time.
WAITS = (0.2, 0.6)
# Statuses after which another attempt may succeed; all other errors are final.
TEMPORARY = {408, 409, 425, 429, 500, 502, 503, 504}
REFUSALS = {
    401: "refused the key (401)",
    403: "refused the key (403)",
    404: "knows no such address or model (404)",
    429: "has too many requests (429)",
}
# Statuses by which servers say that they don't support functions.
NO_TOOLS = {400, 404, 422, 500, 501}
# Statuses by which they say that they don't support a parameter.
NO_PARAMETER = {400, 404, 405, 415, 422, 500, 501}
# The most tokens of a reply unless it is configured.
MAX_TOKENS = 300
# The most tokens of an extraction, at least, since many variables make a long object.
EXTRACTION_TOKENS = 1000
# The names of the parameter that limits the tokens, in the order in which they are tried.
LENGTH_PARAMETERS = ("max_tokens", "max_completion_tokens")
FORMAT_PARAMETER = "response_format"
# The one by which a server that takes it answers the same request in the same way, as far as it can.
SEED_PARAMETER = "seed"
# Characters of a wrong answer that the model is shown when it is asked again.
LONGEST_QUOTE = 2000


class Send(Protocol):
    """`HTTPClient.send`."""

    def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        timeout: float,
        trusted: bool = False,
    ) -> Reply: ...


class Failure(Exception):
    """No usable answer. Its text is one sentence without secrets.

    :param final: another attempt would fail as well.
    :param wait: the seconds that the server asked to wait before another attempt.
    :param tools: the request may succeed without functions.
    :param said: the server's own text of the error, which may repeat parts of the request; empty without one.
    """

    def __init__(
        self, text: str, *, final: bool = False, wait: float | None = None, tools: bool = False, said: str = ""
    ) -> None:
        super().__init__(text)
        self.final = final
        self.wait = wait
        self.tools = tools
        self.said = said


@dataclass(frozen=True)
class ChatCompletions:
    """A language model behind `POST {url}/chat/completions`.

    :param url: the base URL, which ends in `/v1` at most servers.
    :param key: the bearer token; None sends none.
    :param model: None leaves the choice to the server.
    :param timeout: seconds for one answer, with all attempts and waits.
    :param max_tokens: the most tokens of one reply.
    :param seed: what a server's random choices begin with, if it takes it; None leaves them to the server.
    :param trusted: the operator set the URL, so it may lead to a private address.
    :param provider: the name under which tokens are counted, with the model's.
    :param refused: the optional parameters that this model's server has refused; they are added here and not sent.
    """

    send: Send
    url: str = field(repr=False)
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    timeout: float = 20.0
    trusted: bool = False
    provider: str = "openai"
    max_tokens: int = MAX_TOKENS
    seed: int | None = None
    refused: set[str] = field(default_factory=set, compare=False)
    sleep: Callable[[float], Any] = time.sleep
    clock: Callable[[], float] = time.monotonic

    @property
    def counted_as(self) -> str:
        """The name under which tokens are summed: "provider|||model"."""
        return f"{self.provider}|||{self.model or 'default'}"

    def reply(self, ask: AskModel) -> ModelReplied | ModelFailed:
        """Ask the model for its next reply; ModelFailed after the last attempt or the timeout."""
        request = _Request(self, {"messages": request_messages(ask.system, ask.messages)}, max_tokens=self.max_tokens)
        names: Mapping[str, str] = {}
        if ask.functions:
            tools, names = offered(ask.functions)
            # "auto" is the default, but some servers, such as llama-cpp-python, ignore the tools without it.
            request.body = {**request.body, "tools": tools, "tool_choice": "auto"}
            request.without_tools = {"messages": text_messages(ask.system, ask.messages, tools)}
        try:
            reply = request.answer(lambda completion: _usable(completion, names))
        except Failure as failure:
            return ModelFailed(ask.at, ask.number, str(failure), model=self.counted_as, usage=request.used)
        calls = tuple(call.tool_call(ask.number, place) for place, call in enumerate(reply.calls))
        return ModelReplied(
            ask.at,
            ask.number,
            reply.text,
            calls,
            reply.notes,
            model=self.counted_as,
            usage=request.used,
            seconds=request.seconds,
        )

    def extract(self, request: Extract) -> VariablesExtracted | ExtractionFailed:
        """Ask the model for the values of variables, and once more, in its server's JSON format, without an object.

        ExtractionFailed when the second answer isn't a JSON object, either.
        """
        messages = [
            {"role": "system", "content": instruction(request)},
            {"role": "user", "content": conversation_of(request)},
        ]
        sent = _Request(self, {"messages": messages}, max_tokens=max(self.max_tokens, EXTRACTION_TOKENS))
        try:
            text = sent.answer(lambda completion: completion.text)
            try:
                values = values_in(text)
            except ValueError:
                sent.body = {"messages": [*messages, {"role": "assistant", "content": text[:LONGEST_QUOTE]}, REPEATED]}
                sent.as_json = True
                values = values_in(sent.answer(lambda completion: completion.text))
        except (Failure, ValueError) as failure:
            return ExtractionFailed(request.at, request.number, str(failure), model=self.counted_as, usage=sent.used)
        return VariablesExtracted(request.at, request.number, values, model=self.counted_as, usage=sent.used)

    def complete(self, system: str, user: str) -> Completion:
        """The answer to a system and a user message, after one attempt.

        :raises Failure: when there is no usable answer.
        """
        messages = request_messages(system, [{"role": "user", "content": user}])
        return replace(_Request(self, {"messages": messages}).attempt(), model=self.counted_as)


def _usable(completion: Completion, names: Mapping[str, str]) -> SpokenReply:
    """What is spoken and carried out of an answer.

    :raises Failure: when that is nothing.
    """
    reply = spoken_reply(completion, names)
    if reply.text or reply.calls:
        return reply
    if completion.cut:
        raise Failure("The model reached its longest length (max_tokens) before it said a word.", final=True)
    # Behind some servers a model that is offered functions can't answer with text, or calls them in its text only.
    text = reply.notes[0] if reply.notes else "The model answered without words and without a function."
    raise Failure(text, tools=True, final=bool(reply.notes))


class _Request:
    """One request for a completion, in as many attempts as the timeout allows.

    :param max_tokens: the most tokens of the answer; None leaves it to the server.
    """

    def __init__(self, server: ChatCompletions, body: Mapping[str, Any], max_tokens: int | None = None) -> None:
        self.server = server
        self.body = body
        self.max_tokens = max_tokens
        # The body that describes the functions in its text.
        self.without_tools: Mapping[str, Any] | None = None
        # Whether the server is asked for JSON.
        self.as_json = False
        self.deadline = server.clock() + server.timeout
        self.seconds = 0.0
        self.used: Counter[str] = Counter()

    def answer(self, accept: Callable[[Completion], T]) -> T:
        """What `accept` makes of the first completion for which it raises no Failure.

        :raises Failure: that of the last attempt.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                return accept(self.attempt())
            except Failure as failure:
                if failure.tools and self.without_tools is not None:
                    self.body, self.without_tools = self.without_tools, None
                    continue
                wait = WAITS[min(attempt, len(WAITS)) - 1] if failure.wait is None else failure.wait
                if failure.final or attempt == ATTEMPTS or self.server.clock() + wait >= self.deadline:
                    raise
                self.server.sleep(wait)

    def attempt(self) -> Completion:
        """Make one attempt within the time that is left; again at once without a parameter that the server refuses.

        :raises Failure: when there is no answer, or no completion in it.
        """
        while True:
            optional = self._optional()
            reply = self._send({**optional, **self.body})
            refused = _refused(reply, optional)
            if refused is None:
                break
            if refused in LENGTH_PARAMETERS and b"context" in reply.body:
                # The conversation leaves too little room for so long a reply; the next one may leave enough.
                self.max_tokens = None
            else:
                self.server.refused.add(refused)
                log.warning("The model server at %s refuses the parameter %s", mask_password(self.server.url), refused)
        if reply.status != 200:
            raise self._refusal(reply)
        try:
            completion = read(reply)
        except NotACompletion as error:
            raise Failure(str(error)) from None
        self.used.update(completion.usage)
        self.seconds = reply.seconds
        return completion

    def _optional(self) -> dict[str, Any]:
        """The parameters that not every server takes, without those that this one has refused."""
        refused = self.server.refused
        length = next((name for name in LENGTH_PARAMETERS if name not in refused), None)
        limited = {length: self.max_tokens} if length and self.max_tokens is not None else {}
        seed = self.server.seed if SEED_PARAMETER not in refused else None
        wants_json = self.as_json and FORMAT_PARAMETER not in refused
        return {
            **limited,
            **({} if seed is None else {SEED_PARAMETER: seed}),
            **({FORMAT_PARAMETER: {"type": "json_object"}} if wants_json else {}),
        }

    def _send(self, body: Mapping[str, Any]) -> Reply:
        server = self.server
        left = self.deadline - server.clock()
        if left <= 0:
            raise Failure(f"The model gave no answer within {server.timeout:g} seconds.", final=True)
        headers = {"Authorization": f"Bearer {server.key}"} if server.key else {}
        try:
            return server.send(
                "POST",
                f"{server.url.rstrip('/')}/chat/completions",
                headers=headers,
                json={"model": server.model or "default", "stream": False, **body},
                timeout=left,
                trusted=server.trusted,
            )
        except RequestFailed as error:
            final = error.kind in ("address", "scheme", "timeout")
            raise Failure(f"The model server can't be asked: {error}", final=final) from None

    def _refusal(self, reply: Reply) -> Failure:
        reason = REFUSALS.get(reply.status, f"answered with status {reply.status}")
        about_tools = reply.status in NO_TOOLS and b"tool" in reply.body.lower()
        wait = as_number(reply.headers.get("Retry-After")) if reply.status in TEMPORARY else None
        return Failure(
            f"The model server {reason}.",
            final=reply.status not in TEMPORARY,
            wait=max(0.0, float(wait)) if wait is not None else None,
            tools=about_tools,
            said=error_text(reply),
        )


def _refused(reply: Reply, optional: Mapping[str, Any]) -> str | None:
    """The optional parameter for which a server refused a request, None when it was for something else."""
    if reply.status not in NO_PARAMETER:
        return None
    named = next((name for name in optional if name.encode() in reply.body.lower()), None)
    if named is None and reply.status < 500 and FORMAT_PARAMETER in optional:
        return FORMAT_PARAMETER  # it was sent second, so it alone is new to the server
    return named
