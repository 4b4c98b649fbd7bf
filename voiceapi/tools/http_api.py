"""http_api sends a request built from the model's arguments and the author's templates; so does the pre-call fetch."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from ..engine.actions import Fetch, Function, RunTool
from ..engine.events import Fetched, ToolReturned
from ..engine.template import KIB64, MIB, Bound, TextTooLong, as_text, placeholders, render, values
from ..errors import InvalidFields
from ..http_client import Reply, RequestFailed
from ..strict_json import parse
from .tool import RunnableTool, ToolContext, ToolError, called_at, contexts, declared_arguments, preset_values, schema

# The longest timeout_ms, since the caller is waiting on the phone. Tools stored by earlier releases may have a longer
# one, which counts as this.
LONGEST_TIMEOUT_MS = 60_000
# Bytes of a reply's body; it becomes part of the model's prompt.
MAX_REPLY_BYTES = 64 * 1024
QUERY_METHODS = ("GET", "DELETE")
URL_FAILED = "URL template rendering failed: "
TIMEOUT_SECONDS = 10.0
MAX_FETCHED_BYTES = 256 * 1024


@dataclass(frozen=True)
class PreparedRequest:
    """A request ready to be sent.

    :param params: the query; None if the method sends a body.
    :param body: any JSON value; None if the method sends a query.
    :param timeout: in seconds.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    params: Mapping[str, str] | None
    body: Any
    timeout: float


class HttpApi(RunnableTool):
    """Sends its request once, without retries; the reply's status and body are the result."""

    is_local = False

    def function(self) -> Function:
        """The function that the model is offered. Its message, if it is a text, is spoken before the request."""
        config = self.config
        speech = "" if config["customMessageType"] == "audio" else config["customMessage"] or ""
        parameters = schema(config["parameters"])
        return Function(self.function_name, self.purpose, parameters, tool_uuid=self.uuid, speech=speech)

    def run(self, request: RunTool, context: ToolContext) -> ToolReturned:
        try:
            prepared = prepare(self.config, request, context.header(self.config["credential_uuid"]))
        except ToolError as error:
            result: dict[str, Any] = {"status": "error", "error": str(error)}
        else:
            result = send_request(context.send, prepared)
        return ToolReturned(request.at, request.number, result)


def prepare(
    config: Mapping[str, Any],
    request: RunTool,
    credential: Mapping[str, str] | None,
    presets: Mapping[str, Any] | None = None,
) -> PreparedRequest:
    """Build the request of one call of the tool.

    :param credential: the header of the tool's credential. It replaces a header of the same name in the config; None
        when the credential doesn't exist.
    :param presets: values of preset parameters, by name, used instead of their templates.
    :raises ToolError: when a parameter is missing, a preset value is of another type, the URL can't be rendered, or the
        URL or the body is too large.
    """
    now = called_at(request)
    context = {**request.initial_context, **request.gathered_context, **contexts(request)}
    model_arguments = declared_arguments(config["parameters"], request.arguments)
    presets = presets or {}
    others = [each for each in config["preset_parameters"] or () if each["name"] not in presets]
    presets = {**presets, **preset_values(others, context, now)}
    # Of a parameter that is both preset and asked of the model, the model's value wins.
    arguments = {**presets, **model_arguments}
    try:
        url = url_of(config["url"], {**presets, **context, **model_arguments, **contexts(request)}, now)
    except ToolError as error:
        raise ToolError(f"{URL_FAILED}{error}") from None
    method = config["method"]
    params = body = None
    if method in QUERY_METHODS:
        params = {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in arguments.items()
        }
        if len(url) + len(urlencode(params, errors="replace")) >= KIB64:
            raise ToolError(f"{URL_FAILED}it is larger than 64 KiB.")
    elif config["body_template"] is None:
        body = arguments
    else:
        try:
            body = body_of(config["body_template"], {**arguments, **contexts(request)}, now, Bound(MIB, "The body"))
        except TextTooLong as error:
            raise ToolError(str(error)) from None
    headers = merge_headers(config["headers"] or {}, credential or {})
    return PreparedRequest(method, url, headers, params, body, timeout_seconds(config))


def timeout_seconds(config: Mapping[str, Any]) -> float:
    """How long to wait for the reply; 5 seconds unless the config sets another time, 60 at most."""
    return min(config["timeout_ms"] or 5000, LONGEST_TIMEOUT_MS) / 1000


def send_request(send: Callable[..., Reply], prepared: PreparedRequest) -> dict[str, Any]:
    """Send the request and return the result for the model: the reply, which is an error unless its status is 2xx."""
    try:
        reply = send(
            prepared.method,
            prepared.url,
            headers=prepared.headers,
            params=prepared.params,
            json=prepared.body,
            timeout=prepared.timeout,
            max_bytes=MAX_REPLY_BYTES,
        )
    except RequestFailed as error:
        timed_out = f"Request timed out after {prepared.timeout:g} seconds"
        return {"status": "error", "error": timed_out if error.kind == "timeout" else f"Request failed: {error}"}
    if 200 <= reply.status < 300:
        return {"status": "success", "status_code": reply.status, "data": data_of(reply)}
    redirected = ", and redirects are not followed" if 300 <= reply.status < 400 else ""
    refused = f"The server answered {reply.status}{redirected}."
    return {"status": "error", "status_code": reply.status, "error": refused, "data": data_of(reply)}


def data_of(reply: Reply) -> Any:
    """The body parsed as JSON; if it isn't JSON, its text as `{"raw_response": text}`."""
    try:
        return json_of(reply)
    except ValueError:
        return {"raw_response": reply.body.decode("utf-8", "replace").replace("\0", "\ufffd")}


def json_of(reply: Reply) -> Any:
    """The body parsed as JSON.

    :raises ValueError: when it isn't JSON, or holds a value that can't be stored, such as NaN.
    """
    try:
        return parse(reply.body.decode("utf-8-sig"))
    except InvalidFields:
        raise ValueError("The body is not JSON.") from None


def url_of(template: str, context: Mapping[str, Any], now: datetime) -> str:
    """Render the URL with each value percent-encoded, so that no value can change its host or path segments.

    :raises ToolError: for a value that is missing, empty, a list, an object or a dot segment, for braces without a
        variable, and when the result isn't an http or https URL of at most 64 KiB.
    """
    bound = Bound(KIB64, "it")
    parts = []
    done = 0
    for each, value in values(template, context, now=now):
        parts += [_literal(template[done : each.start], bound), _quoted(each.path, value, bound)]
        done = each.end
    parts.append(_literal(template[done:], bound))
    if any(re.search(r"\{\{|\}\}", part) for part in parts):
        raise ToolError("there are braces that hold no variable.")
    url = "".join(parts)
    if urlsplit(url.lower()).scheme not in ("http", "https"):
        raise ToolError("it must begin with http:// or https://.")
    return url


def _literal(text: str, bound: Bound) -> str:
    try:
        return bound.take(text)
    except TextTooLong as error:
        raise ToolError(str(error)) from None


def _quoted(path: str, value: Any, bound: Bound) -> str:
    """The value of the variable at `path`, percent-encoded."""
    if value is None or value == "":
        raise ToolError(f"{path} has no value.")
    if isinstance(value, dict | list):
        raise ToolError(f"{path} is a list or an object.")
    text = as_text(value).lower() if isinstance(value, bool) else as_text(value)
    if text in (".", ".."):
        raise ToolError(f"{path} would change the path.")
    # Cut, because encoding makes up to nine bytes of a character; so much is too large anyway.
    return _literal(quote(text[: KIB64 + 1], safe="", errors="replace"), bound)


def body_of(template: Any, context: Mapping[str, Any], now: datetime, bound: Bound) -> Any:
    """Render every text in the body template; a text that is a single variable becomes its value, with its type.

    :raises TextTooLong: when the texts and values are more than `bound` has left.
    """
    if isinstance(template, Mapping):
        return {
            render(key, context, bound, now=now): body_of(below, context, now, bound) for key, below in template.items()
        }
    if isinstance(template, list):
        return [body_of(below, context, now, bound) for below in template]
    if not isinstance(template, str):
        return template
    first = next(placeholders(template), None)
    if first is not None and (first.start, first.end) == (0, len(template)):
        [(_, value)] = values(template, context, now=now)
        bound.take(as_text(value))
        return "" if value is None else value
    return render(template, context, bound, now=now)


def merge_headers(headers: Mapping[str, str], overrides: Mapping[str, str]) -> dict[str, str]:
    """Both sets of headers. `overrides` wins where two names differ in case only."""
    names = {name.lower() for name in overrides}
    return {**{name: value for name, value in headers.items() if name.lower() not in names}, **overrides}


# -- the pre-call fetch: the author's server adds to the context of a call before it begins


def fetch(request: Fetch, call: Mapping[str, Any], context: ToolContext) -> Fetched:
    """Send the request once. A failure is returned as `error`; the call goes on without the context.

    :param call: `agent_id`, `from_number` and `to_number`.
    """
    try:
        reply = context.send(
            "POST",
            context.decrypted_url(request.url),
            headers=context.header(request.credential_uuid) or {},
            # The event has this name for outbound calls, too.
            json={"event": "call_inbound", "call_inbound": dict(call)},
            timeout=TIMEOUT_SECONDS,
            max_bytes=MAX_FETCHED_BYTES,
        )
    except RequestFailed as error:
        return _failed(request, str(error))
    if not 200 <= reply.status < 300:
        return _failed(request, f"the status was {reply.status}.")
    try:
        answer = json_of(reply)
    except ValueError:
        return _failed(request, "the answer is not JSON.")
    match answer:
        case {"call_inbound": Mapping() as inner}:
            answer = inner
        case Mapping():
            pass
        case _:
            return _failed(request, "the answer is not a JSON object.")
    found = answer.get("initial_context")
    found = found if isinstance(found, Mapping) else answer.get("dynamic_variables")
    return Fetched(request.at, request.number, dict(found) if isinstance(found, Mapping) else {})


def _failed(request: Fetch, why: str) -> Fetched:
    return Fetched(request.at, request.number, {}, error=f"The fetch before the call failed: {why}")
