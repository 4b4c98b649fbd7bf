"""A language model behind any OpenAI-compatible server. It answers every request; a failure is an answer, too."""

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
from .wire import Completion, NotACompletion, offered, read, request_messages, text_messages

ATTEMPTS = 3
# Seconds before the second attempt and before the third, unless the server names a time.
WAITS = (0.2, 0.6)
# What may pass by itself; any other refusal is final.
TEMPORARY = {408, 409, 425, 429, 500, 502, 503, 504}
REFUSALS = {
    401: "refused the key (401)",
    403: "refused the key (403)",
    404: "knows no such address or model (404)",
    429: "has too many requests (429)",
}
# A server that can't offer functions says so with one of these.
NO_TOOLS = {400, 404, 422, 500, 501}


class Send(Protocol):
    """As HTTPClient.send."""

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
    """No usable answer; its text is one sentence without secrets."""

    def __init__(self, text: str, *, final: bool = False, wait: float | None = None, tools: bool = False) -> None:
        super().__init__(text)
        self.final = final
        self.wait = wait
        self.tools = tools


@dataclass(frozen=True)
class ChatCompletions:
    """Asks `POST {url}/chat/completions`.

    :param url: the base that ends in `/v1`, as the usual SDKs take it.
    :param key: sent as a bearer token; None sends none.
    :param model: None leaves the choice to the server.
    :param timeout: seconds for one answer, with all attempts and waits.
    :param trusted: the operator set the URL, so it may lead to a private address.
    :param provider: under which name its tokens are counted.
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
        """The name under which tokens are added up."""
        return f"{self.provider}|||{self.model or 'default'}"

    def reply(self, ask: AskModel) -> ModelReplied | ModelFailed:
        """Let the model speak or call functions; ModelFailed after the last attempt, or when time is up."""
        asking = _Asking(self, {"messages": request_messages(ask.system, ask.messages)})
        if ask.functions:
            tools, names = offered(ask.functions)
            plain = text_messages(ask.system, ask.messages, tools)
            # "auto" is the default; some servers, llama-cpp-python's among them, pass the tools over unless it is said.
            asking = _Asking(self, {**asking.body, "tools": tools, "tool_choice": "auto"}, names, {"messages": plain})
        try:
            found = asking.answer(lambda completion: bool(completion.text or completion.calls))
        except Failure as failure:
            return ModelFailed(ask.at, ask.number, str(failure), model=self.counted_as, usage=asking.used)
        calls = tuple(call.named(ask.number, place) for place, call in enumerate(found.calls))
        return ModelReplied(
            ask.at, ask.number, found.text, calls, model=self.counted_as, usage=asking.used, seconds=asking.seconds
        )

    def extract(self, request: Extract) -> VariablesExtracted | ExtractionFailed:
        """Let the model find values; ExtractionFailed when it doesn't answer, or not with a JSON object."""
        messages = [
            {"role": "system", "content": instruction(request)},
            {"role": "user", "content": conversation_of(request)},
        ]
        asking = _Asking(self, {"messages": messages})
        try:
            text = asking.answer(lambda _: True).text
            values = values_in(text)
        except (Failure, ValueError) as failure:
            return ExtractionFailed(request.at, request.number, str(failure), model=self.counted_as, usage=asking.used)
        return VariablesExtracted(request.at, request.number, values, model=self.counted_as, usage=asking.used)

    def complete(self, system: str, user: str) -> Completion:
        """The answer to two plain messages, from one attempt.

        :raises Failure: `final` when another attempt would fail as well.
        """
        messages = request_messages(system, [{"role": "user", "content": user}])
        return replace(_Asking(self, {"messages": messages}).attempt(), model=self.counted_as)


class _Asking:
    """One answer being asked for, in as many attempts as the time allows."""

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
        self.until = server.clock() + server.timeout
        self.seconds = 0.0
        self.used: Counter[str] = Counter()

    def answer(self, usable: Callable[[Completion], bool]) -> Completion:
        """The first usable answer.

        :raises Failure: with what went wrong last.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                completion = self.attempt()
                if usable(completion):
                    return completion
                # Some servers let a model that is offered functions do nothing but call them.
                raise Failure("The model answered without words and without a function.", tools=True)
            except Failure as failure:
                if failure.tools and self.without_tools is not None:
                    self.body, self.without_tools = self.without_tools, None
                    continue
                wait = WAITS[min(attempt, len(WAITS)) - 1] if failure.wait is None else failure.wait
                if failure.final or attempt == ATTEMPTS or self.server.clock() + wait >= self.until:
                    raise
                self.server.sleep(wait)

    def attempt(self) -> Completion:
        """:raises Failure: with what went wrong."""
        server = self.server
        left = self.until - server.clock()
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
        said = REFUSALS.get(reply.status, f"answered with status {reply.status}")
        about_tools = reply.status in NO_TOOLS and b"tool" in reply.body.lower()
        wait = as_number(reply.headers.get("Retry-After")) if reply.status in TEMPORARY else None
        return Failure(
            f"The model server {said}.",
            final=reply.status not in TEMPORARY,
            wait=max(0.0, float(wait)) if wait is not None else None,
            tools=about_tools,
        )
