"""Chat completions servers that refuse what the pages of their providers, or their own errors, say that they refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Answer = tuple[int, Any]
# What OpenAI's reference has for a request; a provider's own parameters are beside it.
OPENAI = {
    *(
        "model",
        "messages",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "temperature",
        "top_p",
        "max_tokens",
        "stop",
        "seed",
    ),
    *("max_completion_tokens", "reasoning_effort", "frequency_penalty", "presence_penalty", "response_format"),
}
MESSAGE = {"role", "content", "tool_calls", "tool_call_id", "name"}


def called(call: Mapping[str, Any] | None = None, **message: Any) -> Answer:
    """An answer with a call of the function that each of these servers calls: the first that it is offered."""
    calls = {} if call is None else {"content": None, "tool_calls": [call]}
    return 200, {"choices": [{"message": {"role": "assistant", **message, **calls}, "finish_reason": "stop"}]}


def function_of(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """A call of the first function, if the user has just said yes; else the answer is text."""
    last = body["messages"][-1]
    if last["role"] != "user" or "Yes" not in last["content"] or "tools" not in body:
        return None
    name = body["tools"][0]["function"]["name"]
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}


def refused(status: int, text: str) -> Answer:
    return status, {"error": {"message": text, "type": "invalid_request_error", "param": None, "code": None}}


def deepseek(body: Mapping[str, Any]) -> Answer:
    """Thinks by default, and wants the thoughts of every message that called a function; "" is no absence."""
    for message in body["messages"]:
        if message.get("tool_calls") and not isinstance(message.get("reasoning_content"), str):
            return refused(400, "The `reasoning_content` in the thinking mode must be passed back to the API.")
    return called(function_of(body), content="Hello.", reasoning_content="" if function_of(body) else "Hm.")


def gemini(body: Mapping[str, Any]) -> Answer:
    """Has no first turn but a user's, wants its signatures, and knows every name in a request."""

    def error(text: str) -> Answer:
        return 400, [{"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}}]

    for name in body.keys() - OPENAI - {"extra_body"}:
        return error(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
    messages = [message for message in body["messages"] if message["role"] != "system"]
    if not messages:
        return error("GenerateContentRequest.contents: contents is not specified")
    for before, message in zip([None, *messages], messages, strict=False):
        if not message.get("tool_calls"):
            continue
        if before is None or before["role"] == "assistant":
            return error("Please ensure that function call turn comes immediately after a user turn.")
        if message["tool_calls"][0].get("extra_content") != {"google": {"thought_signature": "c2ln"}}:
            return error("Function call is missing a thought_signature in functionCall parts.")
    call = function_of(body)
    return called(call and {**call, "extra_content": {"google": {"thought_signature": "c2ln"}}}, content="Hello.")


def anthropic(body: Mapping[str, Any]) -> Answer:
    """Ignores what it doesn't know, but begins with a user's message and takes one of two ways of choosing words."""
    messages = [message for message in body["messages"] if message["role"] != "system"]
    if not messages:
        return refused(400, "messages: at least one message is required")
    if messages[0]["role"] != "user":
        return refused(400, 'messages: first message must use the "user" role')
    if "temperature" in body and "top_p" in body:
        return refused(400, "`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
    return called(function_of(body), content="Hello.")


def groq(body: Mapping[str, Any]) -> Answer:
    """Sends its thoughts, and refuses them, as any other name that it doesn't know."""
    for index, message in enumerate(body["messages"]):
        for name in message.keys() - MESSAGE:
            at = f"'messages.{index}'"
            text = f"{at} : for 'role:{message['role']}' the following must be satisfied"
            return refused(400, f"{text}[({at} : property '{name}' is unsupported)]")
    for name in body.keys() - OPENAI:
        return refused(400, f"property '{name}' is unsupported")
    return called(function_of(body), content="Hello.", reasoning_content="Hm.")


def mistral(body: Mapping[str, Any]) -> Answer:
    """Answers 422 to each name that it doesn't know, such as a seed, and ends with a user's or a tool's message."""
    places = [["body", name] for name in sorted(body.keys() - (OPENAI - {"seed", "stream_options"}))]
    for index, message in enumerate(body["messages"]):
        unknown = message.keys() - MESSAGE - {"prefix"}
        places += [["body", "messages", index, message["role"], name] for name in sorted(unknown)]
    if places:
        detail = [{"type": "extra_forbidden", "loc": loc, "msg": "Extra inputs are not permitted"} for loc in places]
        return 422, {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error"}
    if body["messages"][-1]["role"] not in ("user", "tool"):
        return refused(400, "Expected last role User or Tool (or Assistant with prefix True) for serving.")
    return called(function_of(body), content="Hello.", prefix=False, trace=None)


@dataclass
class LocalServer:
    """A server of one model on one's own machine, as Ollama, llama-server and llama_cpp.server behave.

    :param context: the tokens that the model takes; Ollama cuts a longer prompt without an error, llama-server refuses
        it.
    :param functions: what becomes of them: `called`, `written` as the text of the answer, `talked` over, `dropped` from
        the prompt, or `refused`.
    :param inflation: tokens for a word.
    """

    context: int = 8192
    functions: str = "called"
    cuts: bool = True
    counts: bool = True
    inflation: float = 1.15
    asked: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, body: Mapping[str, Any]) -> Answer:
        self.asked.append(dict(body))
        if "tools" in body and self.functions == "refused":
            return refused(400, "registry.ollama.ai/library/gemma:2b does not support tools")
        words = " ".join(message["content"] for message in body["messages"])
        offered = body.get("tools", []) if self.functions != "dropped" else []
        for tool in offered:
            function = tool["function"]
            words += " ".join(function["parameters"]["properties"]["wish"]["enum"])
        tokens = int(len(words.split()) * self.inflation) + 20
        if tokens > self.context and not self.cuts:
            text = f"request ({tokens} tokens) exceeds the available context size ({self.context} tokens)"
            return 400, {"error": {"code": 400, "message": text, "type": "exceed_context_size_error"}}
        arguments = '{"wish": "repair"}'
        call = {"id": "c1", "type": "function", "function": {"name": "note", "arguments": arguments}}
        status, answer = called(call if offered and self.functions == "called" else None, content="Hello.")
        if offered and self.functions == "written":
            answer["choices"][0]["message"]["content"] = f'{{"name": "note", "arguments": {arguments}}}'
        counted = {"usage": {"prompt_tokens": min(tokens, self.context)}} if self.counts else {}
        return status, {**answer, **counted}


PROVIDERS: Mapping[str, Callable[[Mapping[str, Any]], Answer]] = {
    "deepseek": deepseek,
    "gemini": gemini,
    "anthropic": anthropic,
    "groq": groq,
    "mistral": mistral,
}


@dataclass
class Providers:
    """A server of all of them, each by its name as that of the model, or its beginning; and what it was asked."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, headers: Mapping[str, str], body: dict[str, Any]) -> Answer:
        status, answer = PROVIDERS[body["model"].partition("-")[0]](body)
        self.asked.append({**body, "status": status, "headers": dict(headers)})
        return status, answer
