"""The chat completions client against a test server with scripted answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from voiceapi.engine.actions import AskModel, Extract, Function
from voiceapi.engine.events import ExtractionFailed, ModelFailed, ModelReplied, ToolCall, VariablesExtracted
from voiceapi.engine.extraction import Variable
from voiceapi.http_client import HTTPClient
from voiceapi.llm.chat_completions import ChatCompletions

KEY = "sk-very-secret-key"
MODEL = "openai|||tiny"
LONG = "x" * 80
FUNCTIONS = (
    Function("yes", "The caller agrees.", label="Yes"),
    Function("__", "No.", label="Да"),
    Function(LONG, "Long."),
)
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "prompt_tokens_details": {"cached_tokens": 2}}
COUNTED = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
    "cache_read_input_tokens": 2,
    "cache_creation_input_tokens": 0,
}


@dataclass
class Answer:
    """One scripted answer; `cut` ends the connection after so many bytes of the body."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    hang: bool = False


@dataclass
class Stand:
    """The test server: the answers it will give, and the requests it got."""

    url: str
    script: list[Answer]
    asked: list[dict[str, Any]]
    released: threading.Event


@pytest.fixture
def stand() -> Iterator[Stand]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.asked.append({"path": self.path, "key": self.headers["Authorization"], **body})
            answer = found.script.pop(0)
            self.close_connection = True
            if answer.hang:
                found.released.wait(60)
                return
            data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            if answer.cut == 0:
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: answer.cut])

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Stand(f"http://127.0.0.1:{server.server_port}/v1", [], [], threading.Event())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


def model(stand: Stand, **options: Any) -> ChatCompletions:
    given = {"timeout": 5.0, "trusted": True, "sleep": lambda _: None, **options}
    return ChatCompletions(HTTPClient().send, stand.url, "tiny", KEY, **given)


def asking(
    messages: tuple[Any, ...] = ({"role": "user", "content": "yes please"},), functions: Any = FUNCTIONS
) -> AskModel:
    return AskModel(
        3,
        1.0,
        node_id="1",
        node_name="Hello",
        occasion="reply",
        system="Be kind.",
        prompt="Be kind.",
        greeting="",
        messages=messages,
        functions=functions,
    )


def message(content: Any = None, *calls: Any, **members: Any) -> Answer:
    choice = {name: members.pop(name) for name in ("finish_reason",) if name in members}
    said = {"role": "assistant", "content": content, **members}
    return Answer(body={"choices": [{"message": {**said, "tool_calls": list(calls)} if calls else said, **choice}]})


def call(name: str, arguments: Any = "{}", id: Any = "c1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def replied(text: str, *calls: ToolCall) -> tuple[str, tuple[ToolCall, ...]]:
    return text, calls


YES = ToolCall("c1", "yes")
DEEP = '{"a": ' + "[" * 300 + "]" * 300 + "}"

# The answers of the server in order, and the outcome: text and calls, or the sentence of a failure.
REPLIES: dict[str, tuple[list[Answer], Any]] = {
    "words": ([message("Hello.")], replied("Hello.")),
    "a list of parts": ([message([{"type": "text", "text": "Hel"}, {"type": "image"}, "lo."])], replied("Hello.")),
    "thoughts first": ([message("<think>Hm.\nWell.</think>\n\nHello.")], replied("Hello.")),
    "thoughts without their first tag": ([message("Hm.\nWell.</think>\n\nHello.")], replied("Hello.")),
    "a function": ([message(None, call("yes"))], replied("", YES)),
    "words and a function": ([message("Good.", call("yes"))], replied("Good.", YES)),
    "several functions": (
        [message("", call("yes"), call("yes", '{"a": 1}', "c2"))],
        replied("", YES, ToolCall("c2", "yes", '{"a": 1}')),
    ),
    "the same id twice": (
        [message("", call("yes"), call("yes", "{}", "c1"))],
        replied("", YES, ToolCall("call_3_1", "yes")),
    ),
    "no id": ([message("", call("yes", "{}", None))], replied("", ToolCall("call_3_0", "yes"))),
    "arguments as an object": ([message("", call("yes", {"a": 1}))], replied("", ToolCall("c1", "yes", '{"a": 1}'))),
    "no arguments": ([message("", call("yes", None))], replied("", YES)),
    "arguments that are no JSON": ([message("", call("yes", "{a:"))], replied("", ToolCall("c1", "yes", "{a:"))),
    "an unknown function": ([message("", call("fly"))], replied("", ToolCall("c1", "fly"))),
    "a call without a name": ([message("Hello.", call(""))], replied("Hello.")),
    "the older function_call": (
        [message(None, function_call={"name": "yes", "arguments": "{}"})],
        replied("", ToolCall("call_3_0", "yes")),
    ),
    "a call written as text": (
        [message('{"name": "yes", "parameters": {}}')],
        replied("", ToolCall("call_3_0", "yes")),
    ),
    "a call in a fence": (
        [message('```json\n{"name": "yes", "arguments": {}}\n```')],
        replied("", ToolCall("call_3_0", "yes")),
    ),
    "a call in tags": (
        [message('Good. <tool_call>{"name": "yes", "arguments": {}}</tool_call>')],
        replied("Good.", ToolCall("call_3_0", "yes")),
    ),
    "a call as llama-cpp-python lets it slip": ([message("functions.yes:")], replied("", ToolCall("call_3_0", "yes"))),
    "the same with arguments": (
        [message('functions.yes:\n{"a": 1}')],
        replied("", ToolCall("call_3_0", "yes", '{"a": 1}')),
    ),
    "an unknown function in its way": (
        [message("functions.fly:")] * 2,
        "The model wrote a call of a function that isn't offered here: fly.",
    ),
    "an unknown function, then words": ([message("fly()"), message("Hello.")], replied("Hello.")),
    "an unknown function after words": ([message("Goodbye! end_call()")], replied("Goodbye!")),
    "a call in Python's way": (
        [message('[yes(a="Thursday")]')],
        replied("", ToolCall("call_3_0", "yes", '{"a": "Thursday"}')),
    ),
    "a call that is escaped": (
        [message("&lt;tool_call&gt;{&quot;name&quot;: &quot;yes&quot;}&lt;/tool_call&gt;")],
        replied("", ToolCall("call_3_0", "yes")),
    ),
    "a call and the same as text": ([message("yes()", call("yes"))], replied("", YES)),
    "Markdown": ([message("**Hello!**\n- Tea\n- $5.00 \U0001f600")], replied("Hello!\nTea.\n$5.00.")),
    "entities": ([message("I&#39;m &amp;lt; you")], replied("I'm &lt; you")),
    "nothing but emoji, then words": ([message("\U0001f600"), message("Hello.")], replied("Hello.")),
    "cut": ([message("One. Two! And th", finish_reason="length")], replied("One. Two!")),
    "cut in Chinese": ([message("一。二！还有", finish_reason="length")], replied("一。二！")),
    "cut in the first sentence": ([message("One and two", finish_reason="length")], replied("One and two")),
    "cut before a word": (
        [message("<think>Hm, let me", finish_reason="length")],
        "The model reached its longest length (max_tokens, 300) before it said a word.",
    ),
    "JSON that is no call": ([message('{"name": "Ada"}')], replied('{"name": "Ada"}')),
    "tools refused": (
        [Answer(400, {"error": {"message": "tiny does not support tools"}}), message('{"name": "yes"}')],
        replied("", ToolCall("call_3_0", "yes")),
    ),
    "half a character": ([message("Hello\ud800.\0")], replied("Hello.")),
    "half a character in a call": (
        [message("", call("y\ud800", '{"a": 1}\ud800', "\ud800"))],
        replied("", ToolCall("\ufffd", "y\ufffd", '{"a": 1}\ufffd')),
    ),
    "half a character in a call written as text": (
        [message('{"name": "yes", "arguments": {"a": "\\ud800", "b": NaN}}')],
        replied("", ToolCall("call_3_0", "yes", '{"a": "\ufffd", "b": null}')),
    ),
    "arguments without a bottom": (
        [Answer(body=json.dumps(message("", call("yes", "DEEP")).body).replace('"DEEP"', DEEP).encode())],
        replied("", ToolCall("c1", "yes", '{"a": ' + "[" * 92 + "null" + "]" * 92 + "}")),
    ),
    "empty, then words": ([message(""), message("Hello.")], replied("Hello.")),
    "empty, then a call as text": (
        [message(""), message('{"name": "yes"}')],
        replied("", ToolCall("call_3_0", "yes")),
    ),
    "always empty": ([message("")] * 3, "The model answered without words and without a function."),
    "null": ([Answer(body=None)] * 3, "The model server's answer holds no reply."),
    "no choices": ([Answer(body={"choices": []})] * 3, "The model server's answer holds no reply."),
    "odd choices": ([Answer(body={"choices": "none"})] * 3, "The model server's answer holds no reply."),
    "an error with 200": (
        [Answer(body={"error": KEY})] * 3,
        "The model server answered with an error instead of a reply. It said: ********",
    ),
    "broken JSON": ([Answer(body=b'{"choices": [')] * 3, "The model server's answer is not JSON."),
    "not text": ([Answer(body=b"\xff\xfe\x00")] * 3, "The model server's answer is not JSON."),
    "401": ([Answer(401, {"error": KEY})], "The model server refused the key (401). It said: ********"),
    "403": ([Answer(403, {})], "The model server refused the key (403)."),
    "404": ([Answer(404, {})], "The model server knows no such address or model (404)."),
    "400": ([Answer(400, {"error": "bad"})], "The model server answered with status 400. It said: bad"),
    "a redirect": ([Answer(302, {}, {"Location": "/"})], "The model server answered with status 302."),
    "429, then words": ([Answer(429, {}, {"Retry-After": "1"}), message("Hello.")], replied("Hello.")),
    "429 for too long": ([Answer(429, {}, {"Retry-After": "60"})], "The model server has too many requests (429)."),
    "always 429": ([Answer(429, {})] * 3, "The model server has too many requests (429)."),
    "500, then words": ([Answer(500, {}), message("Hello.")], replied("Hello.")),
    "529, as Anthropic is overloaded": ([Answer(529, {}), message("Hello.")], replied("Hello.")),
    "always 500": ([Answer(500, {})] * 3, "The model server answered with status 500."),
    "cut, then words": ([Answer(body="x" * 100, cut=10), message("Hello.")], replied("Hello.")),
    "nothing, then words": ([Answer(cut=0), message("Hello.")], replied("Hello.")),
}


OVER_QUOTA = "You exceeded your current quota, please check your plan and billing details."
TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
UPSTREAM = {"error": {"message": TOO_LONG, "type": "Bad Request", "code": 400}}
MODERATED = 'tiny requires moderation. Your input was flagged for "hate". No credits were charged.'


def nested(levels: int) -> Any:
    """JSON in a text in deep JSON in a text, and so on."""
    text = "down there"
    for _ in range(levels):
        text = "[" * 80 + json.dumps(text) + "]" * 80
    return text


def wrong(message: str, **members: Any) -> dict[str, Any]:
    """An error as OpenAI sends it."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **members}}


def routed(message: str, raw: Any, code: int = 400) -> dict[str, Any]:
    """An error of a provider as OpenRouter passes it on."""
    return {"error": {"message": message, "code": code, "metadata": {"raw": raw, "provider_name": "Nvidia"}}}


LONG_TALK = "The model server finds the conversation too long for its model (400). It said: "
BLOCKED = "The model server's content filter blocked the request"
USED_UP = "The model server says that quota or credits are used up"
# The errors of providers, as their pages or their source have them: status, body, and the sentence of the failure.
ERRORS: dict[str, tuple[int, Any, str]] = {
    "OpenAI, context": (400, wrong(TOO_LONG, code="context_length_exceeded"), f"{LONG_TALK}{TOO_LONG}"),
    "OpenAI, quota": (
        429,
        wrong(OVER_QUOTA, type="insufficient_quota", code="insufficient_quota"),
        f"{USED_UP} (429). It said: {OVER_QUOTA}",
    ),
    "Azure, filter": (
        400,
        wrong("The response was filtered.", code="content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}),
        f"{BLOCKED} (400). It said: The response was filtered.",
    ),
    "Anthropic, context": (
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8"}},
        f"{LONG_TALK}prompt is too long: 9 tokens > 8",
    ),
    "Anthropic, credits": (
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low."}},
        f"{USED_UP} (400). It said: Your credit balance is too low.",
    ),
    "Gemini": (
        400,
        [{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}],
        "The model server answered with status 400. It said: API key not valid.",
    ),
    "Mistral, a sentence": (
        400,
        {"object": "error", "message": "Invalid model: tiny", "type": "invalid_model", "param": None, "code": "1500"},
        "The model server answered with status 400. It said: Invalid model: tiny",
    ),
    "Mistral, places": (
        422,
        {"object": "error", "message": {"detail": [{"loc": ["body", "n", 0], "msg": "Extra inputs"}]}},
        "The model server answered with status 422. It said: body.n.0: Extra inputs",
    ),
    "Ollama": (
        404,
        {"error": "model 'tiny' not found"},
        "The model server knows no such address or model (404). It said: model 'tiny' not found",
    ),
    "Ollama, an address": (
        404,
        b"404 page not found",
        "The model server knows no such address or model (404). It said: 404 page not found",
    ),
    "vLLM, the older one": (
        400,
        {"object": "error", "message": TOO_LONG, "type": "BadRequestError", "param": None, "code": 400},
        f"{LONG_TALK}{TOO_LONG}",
    ),
    "llama.cpp": (
        400,
        wrong("the request exceeds the available context size", code=400, type="exceed_context_size_error"),
        f"{LONG_TALK}the request exceeds the available context size",
    ),
    "FastAPI": (418, {"detail": "No."}, "The model server answered with status 418. It said: No."),
    "OpenRouter": (
        400,
        routed("Provider returned error", "Busy."),
        "The model server answered with status 400. It said: Busy.",
    ),
    "OpenRouter, JSON in text": (
        400,
        routed("Provider returned error", json.dumps(UPSTREAM)),
        f"{LONG_TALK}{TOO_LONG}",
    ),
    "OpenRouter, an object": (400, routed("Provider returned error", UPSTREAM), f"{LONG_TALK}{TOO_LONG}"),
    "OpenRouter, credits": (
        402,
        {"error": {"message": "This request requires more credits.", "code": 402}},
        f"{USED_UP} (402). It said: This request requires more credits.",
    ),
    "OpenRouter, moderation": (
        403,
        {"error": {"message": MODERATED, "code": 403, "metadata": {"reasons": ["hate"], "flagged_input": "..."}}},
        f"{BLOCKED} (403). It said: {MODERATED}",
    ),
    "DeepSeek, balance": (402, wrong("Insufficient Balance"), f"{USED_UP} (402). It said: Insufficient Balance"),
    "credits with 200": (
        200,
        {"error": {"message": "Insufficient credits", "code": 402}},
        f"{USED_UP}. It said: Insufficient credits",
    ),
    "a filter's end": (
        200,
        message("", finish_reason="content_filter").body,
        "The content filter of the model's server let no word of the reply through.",
    ),
    "a refusal": (
        200,
        message(None, refusal="I can't help with that.").body,
        "The model refused to reply. It said: I can't help with that.",
    ),
    "a page": (404, b"<html>Not found</html>", "The model server knows no such address or model (404)."),
    "long": (
        418,
        {"error": f"{'a' * 290} {KEY}{'b' * 90}"},
        f"The model server answered with status 418. It said: {'a' * 290} ********b",
    ),
    "secrets": (
        418,
        routed("-", json.dumps({"error": f"{KEY} and\n pass\"word1 in 'X'"}), 418),
        "The model server answered with status 418. It said: ******** and ******** in 'X'",
    ),
    "an abyss": (418, b'{"error": ' + b"[" * 5000 + b"]" * 5000 + b"}", "The model server answered with status 418."),
}


def test_the_servers_own_reason_is_told(stand: Stand) -> None:
    """None of these is asked again."""
    for name, (status, body, expected) in ERRORS.items():
        stand.script[:] = [Answer(status, body)]
        answer = model(stand, headers={"X-Extra": 'pass"word1'}).reply(asking(functions=()))
        assert answer == ModelFailed(1.0, 3, expected, model=MODEL), name
        assert stand.script == []
    for levels in (4, 9, 14):
        stand.script[:] = [Answer(418, {"error": nested(levels)})]
        answer = model(stand).reply(asking())
        assert isinstance(answer, ModelFailed)
        assert len(answer.error) < 400
    stand.script[:] = [message(None, refusal="No.")]
    assert isinstance(model(stand).extract(EXTRACT), ExtractionFailed)
    stand.script[:] = [Answer(200, {"choices": [{"error": {"code": 502, "message": "It broke."}, "message": {}}]})] * 3
    answer = model(stand).reply(asking())
    assert isinstance(answer, ModelFailed)
    assert answer.error == "The model server answered with an error instead of a reply. It said: It broke."


def test_a_short_key_is_hidden_where_it_is_a_word(stand: Stand) -> None:
    stand.script[:] = [Answer(400, {"error": "k1 is no key1"})]
    answer = replace(model(stand), key="k1").reply(asking())
    assert isinstance(answer, ModelFailed)
    assert answer.error.endswith("It said: ******** is no key1")


@pytest.mark.parametrize("odd", REPLIES)
def test_every_answer_has_its_outcome(odd: str, stand: Stand) -> None:
    script, expected = REPLIES[odd]
    stand.script[:] = script
    answer = model(stand).reply(asking())
    if isinstance(expected, str):
        assert answer == ModelFailed(1.0, 3, expected, model=MODEL)
    else:
        assert isinstance(answer, ModelReplied)
        assert (answer.text, answer.calls) == expected
        assert answer.seconds > 0
    assert (stand.script, len(stand.asked)) == ([], len(script))


def test_what_is_sent(stand: Stand) -> None:
    stand.script[:] = [message("Hello.")]
    history = (
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "tool_calls": [call("__", "{broken")]},
        {"role": "tool", "content": '{"status": "done"}', "tool_call_id": "c1"},
    )
    model(stand).reply(asking(history))
    sent = stand.asked[0]
    names = [tool["function"]["name"] for tool in sent["tools"]]
    assert names[0] == "yes"
    assert [tool["function"]["description"] for tool in sent["tools"]] == ["The caller agrees.", "Да: No.", "Long."]
    assert all(0 < len(name) <= 64 and name.strip("_") for name in names)
    assert len(set(names)) == 3
    assert {
        name: sent[name] for name in ("path", "key", "model", "stream", "tool_choice", "max_tokens", "messages")
    } == {
        "path": "/v1/chat/completions",
        "key": f"Bearer {KEY}",
        "model": "tiny",
        "stream": False,
        "tool_choice": "auto",
        "max_tokens": 300,
        "messages": [
            {"role": "system", "content": "Be kind."},
            history[0],
            {"role": "assistant", "content": "", "tool_calls": [call(names[1])]},
            history[2],
        ],
    }


def test_a_model_is_told_what_was_keyed(stand: Stand) -> None:
    """In words, not by a member of the message, which strict servers refuse."""
    stand.script[:] = [message(""), message("Hello."), message("{}")]
    history = ({"role": "user", "content": "42", "keyed": True}, {"role": "user", "content": "yes"})
    model(stand).reply(asking(history))
    model(stand).extract(replace(EXTRACT, messages=history))
    keyed = "42 (entered on the phone's keypad)"
    *replies, extraction = (each["messages"] for each in stand.asked)
    expected = [{"role": "user", "content": keyed}, {"role": "user", "content": "yes"}]
    assert [sent[1:] for sent in replies] == [expected, expected]
    assert extraction[1]["content"].endswith(f"Conversation:\nuser: {keyed}\nuser: yes")


def test_function_names_are_translated_back(stand: Stand) -> None:
    stand.script[:] = [message("Hello.")]
    model(stand).reply(asking())
    names = [tool["function"]["name"] for tool in stand.asked[0]["tools"]]
    stand.script[:] = [message("", *(call(name, id=name) for name in names))]
    answer = model(stand).reply(asking())
    assert isinstance(answer, ModelReplied)
    assert [each.name for each in answer.calls] == ["yes", "__", LONG]


def test_a_model_that_ignores_functions_gets_them_as_text(stand: Stand) -> None:
    stand.script[:] = [message(""), message("Hello.")]
    model(stand).reply(asking())
    offered, told = stand.asked
    assert {"tools", "tool_choice"}.isdisjoint(told)
    assert [each["content"] for each in offered["messages"][1:]] == [each["content"] for each in told["messages"][1:]]
    assert '{"name": "yes", "description": "The caller agrees."' in told["messages"][0]["content"]


def test_tokens_of_every_attempt_are_counted(stand: Stand) -> None:
    empty, full = message(""), message("Hello.")
    empty.body["usage"] = full.body["usage"] = USAGE
    stand.script[:] = [empty, full]
    answer = model(stand).reply(asking())
    assert (answer.model, answer.usage) == (MODEL, {name: 2 * count for name, count in COUNTED.items()})


def test_a_server_that_never_answers_costs_the_timeout_and_no_more(stand: Stand) -> None:
    stand.script[:] = [Answer(hang=True)]
    answer = model(stand, timeout=0.2).reply(asking())
    where = stand.url.removesuffix("/v1")
    said = f"The model server can't be asked: {where} did not answer within 0.2 seconds."
    assert isinstance(answer, ModelFailed)
    assert answer.error[:75] == said[:75]


def test_retry_after_is_obeyed(stand: Stand) -> None:
    waits: list[float] = []
    stand.script[:] = [Answer(429, {}, {"Retry-After": "2"}), Answer(503, {}), message("Hello.")]
    model(stand, sleep=waits.append).reply(asking())
    assert waits == [2.0, 0.6]


def test_a_server_that_can_not_be_reached() -> None:
    server = ChatCompletions(HTTPClient().send, "http://127.0.0.1:9", timeout=2, trusted=True, sleep=lambda _: None)
    answer = server.reply(asking())
    assert isinstance(answer, ModelFailed)
    assert "could not be reached" in answer.error


def test_private_addresses_from_the_api_are_refused(stand: Stand) -> None:
    answer = model(stand, trusted=False).reply(asking())
    assert isinstance(answer, ModelFailed)
    assert "private network" in answer.error
    assert stand.asked == []


def test_the_key_is_never_shown(stand: Stand) -> None:
    assert KEY not in repr(model(stand))


WANTED = (Variable("size", "number", "The shoe size"), Variable("happy", "boolean"))
EXTRACT = Extract(
    4,
    2.0,
    node_id="1",
    node_name="Hello",
    variables=WANTED,
    prompt="Be exact.",
    messages=(
        {"role": "assistant", "content": "Which size?", "tool_calls": [call("yes"), call("look", id="c2")]},
        {"role": "tool", "content": '{"status": "done"}', "tool_call_id": "c1"},
        {"role": "tool", "content": '{"status": "success", "data": {"a": 1}}', "tool_call_id": "c2"},
        {"role": "tool", "content": '{"status": "error", "error": "No.", "data": 1}', "tool_call_id": "c2"},
        {"role": "user", "content": "42"},
    ),
)
NO_OBJECT = "The model's answer holds no JSON object of variables."

EXTRACTIONS: dict[str, tuple[list[Answer], Any]] = {
    "JSON": ([message('{"size": 42}')], {"size": 42}),
    "a fence": ([message('Here:\n```json\n{"size": 42}\n```')], {"size": 42}),
    "among words": ([message('It is {"size": "4}2"}, I think.')], {"size": "4}2"}),
    "empty": ([message("")], {}),
    "null content": ([message(None)], {}),
    "a list": ([message("[1]")] * 2, "The model answered with a list where an object of variables was asked for."),
    "words": ([message("No idea.")] * 2, NO_OBJECT),
    "unbalanced": ([message('{"size": 42')] * 2, NO_OBJECT),
    "what can't be stored": (
        [message('{"size": NaN, "happy": 1e999, "name\\ud800": "Ada\\ud800\\u0000", "emoji": "\\ud83d\\ude00"}')],
        {"size": None, "happy": None, "name\ufffd": "Ada\ufffd\ufffd", "emoji": "\N{GRINNING FACE}"},
    ),
    "an abyss": ([message('{"a": ' + "[" * 5000)] * 2, NO_OBJECT),
    "500, then JSON": ([Answer(500, {}), message('{"size": 42}')], {"size": 42}),
    "401": ([Answer(401, {})], "The model server refused the key (401)."),
    "words, then JSON": ([message("It is 42."), message('{"size": 42}')], {"size": 42}),
    "words, then 401": ([message("It is 42."), Answer(401, {})], "The model server refused the key (401)."),
    "words, no JSON format, then JSON": (
        [message("It is 42."), Answer(400, {"error": "Unsupported."}), message('{"size": 42}')],
        {"size": 42},
    ),
    "entities in values": ([message('{"name": "O&#39;Brien"}')], {"name": "O'Brien"}),
}


@pytest.mark.parametrize("odd", EXTRACTIONS)
def test_every_extraction_has_its_outcome(odd: str, stand: Stand) -> None:
    script, expected = EXTRACTIONS[odd]
    stand.script[:] = script
    answer = model(stand).extract(EXTRACT)
    failed = isinstance(expected, str)
    kind: Any = ExtractionFailed if failed else VariablesExtracted
    usage = answer.usage
    assert answer == kind(2.0, 4, expected, model=MODEL, usage=usage)


def test_what_an_extraction_sends(stand: Stand) -> None:
    stand.script[:] = [message("{}")]
    model(stand).extract(EXTRACT)
    system, user = stand.asked[0]["messages"]
    assert system["content"].endswith("\n\nBe exact.")
    assert user["content"] == (
        "Variables:\n- size (number): The shoe size\n- happy (boolean)\n\n"
        'Conversation:\nassistant: Which size?\n[Tool Response: look]\n{"a": 1}\n'
        '[Tool Response: look]\n{"error": "No.", "data": 1}\nuser: 42'
    )
    assert not {"tools", "tool_choice", "response_format"} & stand.asked[0].keys()


def test_an_extraction_is_asked_once_more_as_json(stand: Stand) -> None:
    words, found = message("It is 42."), message('{"size": 42}')
    words.body["usage"] = found.body["usage"] = USAGE
    stand.script[:] = [words, found]
    answer = model(stand).extract(EXTRACT)
    assert isinstance(answer, VariablesExtracted)
    assert (answer.values, answer.usage) == ({"size": 42}, {name: 2 * count for name, count in COUNTED.items()})
    first, second = stand.asked
    assert second["response_format"] == {"type": "json_object"}
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2] == {"role": "assistant", "content": "It is 42."}
    assert "JSON" in second["messages"][3]["content"]


def test_a_second_extraction_that_fails_counts_its_tokens_too(stand: Stand) -> None:
    words = message("It is 42.")
    words.body["usage"] = USAGE
    stand.script[:] = [words, words]
    answer = model(stand).extract(EXTRACT)
    assert isinstance(answer, ExtractionFailed)
    assert (answer.error, answer.usage["total_tokens"]) == (NO_OBJECT, 20)


def test_both_questions_of_an_extraction_share_one_timeout(stand: Stand) -> None:
    times = iter([0.0, 0.0, 5.1])
    stand.script[:] = [message("It is 42.")]
    answer = model(stand, clock=lambda: next(times)).extract(EXTRACT)
    assert isinstance(answer, ExtractionFailed)
    assert (answer.error, stand.script) == ("The model gave no answer within 5 seconds.", [])


def test_a_json_format_that_is_refused_is_not_sent_again(stand: Stand) -> None:
    words, found = message("It is 42."), message('{"size": 42}')
    refusal = Answer(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"})
    stand.script[:] = [words, refusal, found, words, found]
    asked = model(stand)
    asked.extract(EXTRACT)
    asked.extract(EXTRACT)
    assert ["response_format" in each for each in stand.asked] == [False, True, False, False, False]


# -- the most tokens of a reply


def lengths(stand: Stand) -> list[tuple[Any, Any]]:
    return [(each.get("max_tokens"), each.get("max_completion_tokens")) for each in stand.asked]


NEWER = Answer(
    400,
    {
        "error": {
            "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "param": "max_tokens",
            "code": "unsupported_parameter",
        }
    },
)


def test_the_most_tokens_can_be_set(stand: Stand) -> None:
    stand.script[:] = [message("Hello."), message("{}"), message("Hello.")]
    asked = model(stand, max_tokens=50)
    asked.reply(asking())
    asked.extract(EXTRACT)
    asked.complete("Judge.", "This.")
    assert lengths(stand) == [(50, None), (1000, None), (None, None)]


def test_a_server_that_wants_the_newer_parameter_is_remembered(stand: Stand) -> None:
    stand.script[:] = [NEWER, message("Hello."), message("Hello.")]
    asked = model(stand)
    answer = asked.reply(asking())
    assert isinstance(answer, ModelReplied)
    asked.reply(asking())
    assert lengths(stand) == [(300, None), (None, 300), (None, 300)]


def test_a_server_that_takes_neither_parameter(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    other = Answer(422, {"detail": [{"loc": ["body", "max_completion_tokens"], "msg": "Extra inputs are forbidden"}]})
    stand.script[:] = [NEWER, other, message("Hello."), message("Hello.")]
    asked = model(stand)
    asked.reply(asking())
    asked.reply(asking())
    assert lengths(stand) == [(300, None), (None, 300), (None, None), (None, None)]
    assert [record.getMessage() for record in caplog.records] == [
        f"The model server at {stand.url} refuses the parameter max_tokens",
        f"The model server at {stand.url} refuses the parameter max_completion_tokens",
    ]


def test_a_conversation_without_room_for_a_long_reply_is_asked_about_without_a_length(stand: Stand) -> None:
    full = Answer(400, {"error": "max_tokens is too large: 300. The maximum context length is 2048 tokens."})
    stand.script[:] = [full, message("Hello."), message("Hello.")]
    asked = model(stand)
    asked.reply(asking())
    asked.reply(asking())
    assert lengths(stand) == [(300, None), (None, None), (300, None)]


# -- what a server sends beside its reply


def asked_again(stand: Stand, answer: Any, asked: ChatCompletions, *script: Answer) -> list[Any]:
    """The assistant's messages that are sent when the conversation goes on after an answer."""
    stand.script[:] = script
    calls = [call(each.name, each.arguments, each.id) for each in answer.calls]
    said = {
        "role": "assistant",
        "content": answer.text,
        **({"tool_calls": calls} if calls else {}),
        "kept": answer.kept,
    }
    results = [{"role": "tool", "content": "{}", "tool_call_id": each.id} for each in answer.calls]
    asked.reply(asking(({"role": "user", "content": "hi"}, said, *(results or [{"role": "user", "content": "x"}]))))
    return [each for body in stand.asked for each in body["messages"] if each["role"] == "assistant"]


def test_unknown_members_go_back_where_they_came_from(stand: Stand) -> None:
    first = {**call("yes"), "index": 0, "extra_content": {"google": {"thought_signature": "c2ln"}}}
    second = {**call("yes", id="c2"), "nothing": None}
    second["function"] = {**second["function"], "signature": "x"}
    others = {"reasoning_content": "", "reasoning_details": [{"text": "Hm."}], "refusal": "No.", "nothing": None}
    stand.script[:] = [message("", first, second, **others)]
    asked = model(stand)
    answer = asked.reply(asking())
    sent = {name: first[name] for name in first.keys() - {"index"}}
    expected = {
        "role": "assistant",
        "content": "",
        "reasoning_content": "",
        "reasoning_details": [{"text": "Hm."}],
        "tool_calls": [sent, {name: second[name] for name in second.keys() - {"nothing"}}],
    }
    assert asked_again(stand, answer, asked, message("Hello.")) == [expected]
    for other in (replace(asked, model="other"), replace(asked, url=stand.url.replace("127.0.0.1", "localhost"))):
        stand.asked.clear()
        [plain] = asked_again(stand, answer, other, message("Hello."))
        assert plain == {"role": "assistant", "content": "", "tool_calls": [call("yes"), call("yes", id="c2")]}
    assert KEY not in json.dumps(answer.to_json())


def test_at_most_64_kib_are_kept_with_a_message(stand: Stand) -> None:
    signed = {**call("yes"), "signature": "s" * 40_000}
    stand.script[:] = [message("Hello.", signed, long="l" * 30_000, short="s", longest="l" * 70_000)]
    kept = model(stand).reply(asking()).kept
    assert (kept["message"], [*map(len, kept["calls"])]) == ({"short": "s"}, [1])
    stand.script[:] = [message("Hello.", longest="l" * 70_000)]
    assert model(stand).reply(asking()).kept == {}


def test_an_error_that_goes_on_says_nothing_about_what_was_kept(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    """Such as one about a message that lacks the member: it is tried once without, and sent again the next time."""
    stand.script[:] = [message("Hello.", reasoning="Hm.")]
    asked = model(stand)
    answer = asked.reply(asking())
    wanted = Answer(400, {"error": "The `reasoning` of messages[1] must be passed back."})
    sent = asked_again(stand, answer, asked, wanted, wanted)
    sent = asked_again(stand, answer, asked, message("Hello."))
    assert [each.get("reasoning") for each in sent] == ["Hm.", None, "Hm."]
    assert caplog.records == []


@pytest.mark.parametrize("function", [True, 5, "name", ["name"], {"name": "yes"}])
def test_a_member_that_is_called_as_one_of_calls_goes_back_and_is_left_out(function: Any, stand: Stand) -> None:
    stand.script[:] = [message("hi", function=function)]
    asked = model(stand)
    answer = asked.reply(asking())
    refuses = Answer(400, {"error": "messages[1]: property 'function' is unsupported"})
    sent = asked_again(stand, answer, asked, refuses, message("Hello."))
    assert [each.get("function") for each in sent] == [function, None]


def test_a_word_of_an_error_is_no_parameter(stand: Stand) -> None:
    """A parameter is remembered as refused only if the server answers without it."""
    stand.script[:] = [Answer(400, {"error": "Stop."}), Answer(400, {"error": "Stop."}), message("Hello.")]
    asked = model(stand, parameters={"stop": ["##"], "seed": 1}, headers={"Authorization": "Token abc"})
    assert isinstance(asked.reply(asking()), ModelFailed)
    asked.reply(asking())
    stand.script[:] = [message("{}")]
    asked.extract(EXTRACT)
    assert [(each.get("stop"), each["seed"]) for each in stand.asked] == [
        (["##"], 1),
        (None, 1),
        (["##"], 1),
        (None, 1),
    ]
    assert {each["key"] for each in stand.asked} == {"Token abc"}


def test_the_newer_name_of_the_length_can_be_chosen(stand: Stand) -> None:
    refuses = Answer(400, {"error": {"message": "Unknown parameter: 'max_completion_tokens'."}})
    stand.script[:] = [refuses, message("Hello.")]
    model(stand, max_tokens=50, length_parameter="max_completion_tokens").reply(asking())
    assert lengths(stand) == [(None, 50), (50, None)]


@pytest.mark.parametrize("functions", [FUNCTIONS, ()])
def test_a_conversation_that_the_agent_begins_has_a_users_message_first(functions: Any, stand: Stand) -> None:
    stand.script[:] = [message(""), message("Hello."), message("Hello.")]
    for history in ((), ({"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Hm?"})):
        model(stand).reply(asking(history, functions))
    beginning = {"role": "user", "content": "(The conversation begins.)"}
    assert [each["messages"][1] for each in stand.asked] == [beginning] * 3
    assert [len(each["messages"]) for each in stand.asked] == [2, 2, 4]


# -- what is noted


@pytest.mark.parametrize(
    ("answer", "notes"),
    [
        (message("Hello."), ()),
        (message("Bye. end_call()"), ("The model wrote a call of a function that isn't offered here: end_call.",)),
        (
            message("One. Two th", finish_reason="length"),
            ("The model's reply reached its longest length (max_tokens, 300); 7 characters were left out.",),
        ),
        (
            message("One. Two th", finish_reason="content_filter"),
            ("The content filter of the model's server broke the reply off; 7 characters were left out.",),
        ),
        (message("", call("yes"), finish_reason="length"), ()),
    ],
)
def test_what_is_left_out_of_a_reply_is_noted(answer: Answer, notes: tuple[str, ...], stand: Stand) -> None:
    stand.script[:] = [answer]
    reply = model(stand).reply(asking())
    assert isinstance(reply, ModelReplied)
    assert reply.notes == notes


def test_a_last_node_is_asked_only_once_when_its_goodbye_is_a_call(stand: Stand) -> None:
    stand.script[:] = [message("end_call()")]
    answer = model(stand).reply(asking(functions=()))
    assert isinstance(answer, ModelFailed)
    assert answer.error == "The model wrote a call of a function that isn't offered here: end_call."
