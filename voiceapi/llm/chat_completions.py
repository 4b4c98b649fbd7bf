"""A client of OpenAI-compatible chat completions servers, with retries and a time limit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..engine.actions import AskModel, Extract
from ..engine.events import ExtractionFailed, ModelFailed, ModelReplied, VariablesExtracted
from ..engine.values import as_number
from ..http_client import Reply, RequestFailed
from .extraction import conversation_of, instruction, values_in
from .wire import Completion, NotACompletion, error_text, offered, read, request_messages, text_messages

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
    :param trusted: the operator set the URL, so it may lead to a private address.
    :param provider: the name under which tokens are counted, with the model's.
    """

    send: Send
    url: str
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    timeout: float = 20.0
    trusted: bool = False
    provider: str = "openai"
    sleep: Callable[[float], Any] = time.sleep
    clock: Callable[[], float] = time.monotonic

    @property
    def counted_as(self) -> str:
        """The name under which tokens are summed: "provider|||model"."""
        return f"{self.provider}|||{self.model or 'default'}"

    def reply(self, ask: AskModel) -> ModelReplied | ModelFailed:
        """Ask the model for its next reply; ModelFailed after the last attempt or the timeout."""
        request = _Request(self, {"messages": request_messages(ask.system, ask.messages)})
        if ask.functions:
            tools, names = offered(ask.functions)
            plain = text_messages(ask.system, ask.messages, tools)
            # "auto" is the default, but some servers, such as llama-cpp-python, ignore the tools without it.
            request = _Request(
                self, {**request.body, "tools": tools, "tool_choice": "auto"}, names, {"messages": plain}
            )
        try:
            completion = request.answer(lambda completion: bool(completion.text or completion.calls))
        except Failure as failure:
            return ModelFailed(ask.at, ask.number, str(failure), model=self.counted_as, usage=request.used)
        calls = tuple(call.tool_call(ask.number, place) for place, call in enumerate(completion.calls))
        return ModelReplied(
            ask.at,
            ask.number,
            completion.text,
            calls,
            model=self.counted_as,
            usage=request.used,
            seconds=request.seconds,
        )

    def extract(self, request: Extract) -> VariablesExtracted | ExtractionFailed:
        """Ask the model for the values of variables; ExtractionFailed without an answer that is a JSON object."""
        messages = [
            {"role": "system", "content": instruction(request)},
            {"role": "user", "content": conversation_of(request)},
        ]
        sent = _Request(self, {"messages": messages})
        try:
            text = sent.answer(lambda _: True).text
            values = values_in(text)
        except (Failure, ValueError) as failure:
            return ExtractionFailed(request.at, request.number, str(failure), model=self.counted_as, usage=sent.used)
        return VariablesExtracted(request.at, request.number, values, model=self.counted_as, usage=sent.used)

    def complete(self, system: str, user: str) -> Completion:
        """The answer to a system and a user message, after one attempt.

        :raises Failure: when there is no usable answer.
        """
        messages = request_messages(system, [{"role": "user", "content": user}])
        return replace(_Request(self, {"messages": messages}).attempt(), model=self.counted_as)


class _Request:
    """One request for a completion, in as many attempts as the timeout allows."""

    def __init__(
        self,
        server: ChatCompletions,
        body: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
        without_tools: Mapping[str, Any] | None = None,
    ) -> None:
        self.server = server
        self.body = body
        self.names = names or {}
        self.without_tools = without_tools
        self.deadline = server.clock() + server.timeout
        self.seconds = 0.0
        self.used: Counter[str] = Counter()

    def answer(self, usable: Callable[[Completion], bool]) -> Completion:
        """The first completion that `usable` accepts.

        :raises Failure: that of the last attempt.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                completion = self.attempt()
                if usable(completion):
                    return completion
                # Behind some servers a model that is offered functions can't answer with text.
                raise Failure("The model answered without words and without a function.", tools=True)
            except Failure as failure:
                if failure.tools and self.without_tools is not None:
                    self.body, self.without_tools = self.without_tools, None
                    continue
                wait = WAITS[min(attempt, len(WAITS)) - 1] if failure.wait is None else failure.wait
                if failure.final or attempt == ATTEMPTS or self.server.clock() + wait >= self.deadline:
                    raise
                self.server.sleep(wait)

    def attempt(self) -> Completion:
        """Make one attempt within the time that is left.

        :raises Failure: when there is no answer, or no completion in it.
        """
        server = self.server
        left = self.deadline - server.clock()
        if left <= 0:
            raise Failure(f"The model gave no answer within {server.timeout:g} seconds.", final=True)
        headers = {"Authorization": f"Bearer {server.key}"} if server.key else {}
        body = {"model": server.model or "default", "stream": False, **self.body}
        try:
            reply = server.send(
                "POST",
                f"{server.url.rstrip('/')}/chat/completions",
                headers=headers,
                json=body,
                timeout=left,
                trusted=server.trusted,
            )
        except RequestFailed as error:
            final = error.kind in ("address", "scheme", "timeout")
            raise Failure(f"The model server can't be asked: {error}", final=final) from None
        if reply.status != 200:
            raise self._refusal(reply)
        try:
            completion = read(reply, self.names)
        except NotACompletion as error:
            raise Failure(str(error)) from None
        self.used.update(completion.usage)
        self.seconds = reply.seconds
        return completion

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
