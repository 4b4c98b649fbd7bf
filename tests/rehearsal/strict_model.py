"""A server of chat completions, as strict as the strictest, that plays an agent, its callers and its judge."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, TypeVar

from streamed import streamed

KEY = "sk-very-secret-key"
KNOWN = {
    *("model", "messages", "stream", "stream_options", "max_tokens", "seed", "tools", "tool_choice", "response_format"),
}
# Who is asked, by how the system prompt begins; anything else is the agent.
CALLER, JUDGE = "You play a person on the telephone", "You review"
VERDICT = {"tags": ["DEAD_AIR"], "summary": "It went well.", "call_quality_score": 8, "overall_sentiment": "neutral"}

Answer = Callable[[dict[str, Any]], Any]


@dataclass
class StrictModel:
    """The server: what it was asked, by whom, and what it answers.

    An answer is a text, (text, function) or the status of an error.

    :param refuses: a parameter that it doesn't take.
    """

    caller: Answer
    agent: Answer
    judge: Answer = lambda body: json.dumps(VERDICT)
    refuses: str = ""
    url: str = ""
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def asked_as(self, who: str) -> list[dict[str, Any]]:
        return [body for asked, body in self.asked if asked == who]

    def answer(self, headers: Mapping[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        if headers["Authorization"] != f"Bearer {KEY}":
            return 401, {"error": {"message": "Wrong key."}}
        unknown = set(body) - (KNOWN - {self.refuses})
        if unknown or problem_of(body):
            return 400, {"error": {"message": f"Unsupported parameter: {sorted(unknown)} {problem_of(body)}"}}
        system = body["messages"][0]["content"]
        who = "caller" if system.startswith(CALLER) else "judge" if JUDGE in system else "agent"
        with self.lock:
            self.asked.append((who, body))
            found = getattr(self, who)(body)
        if isinstance(found, int):
            return found, {"error": {"message": "It is down."}}
        text, function = found if isinstance(found, tuple) else (found, None)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if function is not None:
            called = {"name": function, "arguments": "{}"}
            message["tool_calls"] = [{"id": f"call_{len(self.asked)}", "type": "function", "function": called}]
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def problem_of(body: dict[str, Any]) -> str:
    """What a strict server objects to."""
    messages = body.get("messages")
    if (
        not isinstance(body.get("model"), str)
        or not isinstance(body.get("stream"), bool)
        or not isinstance(messages, list)
    ):
        return "The request is incomplete."
    if [each["role"] for each in messages].count("system") != 1 or messages[0]["role"] != "system":
        return "The first message, and no other, is the system's."
    if not isinstance(body.get("seed", 0), int) or not all(isinstance(each["content"], str) for each in messages):
        return "A value is of the wrong type."
    called = [call["id"] for each in messages for call in each.get("tool_calls", ())]
    if called != [each["tool_call_id"] for each in messages if each["role"] == "tool"]:
        return "Each call of a function needs its result."
    return ""


class Served(Protocol):
    """A model of tests: its address, once it is served, and the status and the body of its answers."""

    url: str

    def answer(self, headers: Mapping[str, str], body: dict[str, Any]) -> tuple[int, Any]: ...


Model = TypeVar("Model", bound=Served)


@contextmanager
def serving(model: Model) -> Iterator[Model]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, found = model.answer(self.headers, body)
            kind, data = streamed(body, status, found)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def settings_of(model: StrictModel) -> dict[str, str]:
    """The settings of a service that asks this server."""
    return {"VOICEAPI_LLM_URL": model.url, "VOICEAPI_LLM_KEY": KEY, "VOICEAPI_LLM_MODEL": "tiny"}
