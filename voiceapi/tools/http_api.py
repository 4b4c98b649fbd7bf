"""http_api: one request to a server of the author's, made of what the model and the author gave."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

from ..engine.actions import Function, RunTool
from ..engine.events import ToolReturned
from ..engine.template import render, values, written
from ..errors import Invalid
from ..http_client import Reply, RequestFailed
from ..strict_json import parse
from .parameters import chosen, preset, schema
from .tool import Tool, ToolContext, ToolFault, contexts, moment

# A reply that takes longer than this is of no use to somebody on the phone, whatever timeout_ms says.
LONGEST_SECONDS = 60.0
# What a model can be told of an answer, in bytes.
LARGEST_ANSWER = 64 * 1024
IN_QUERY = ("GET", "DELETE")
URL_FAILED = "URL template rendering failed: "


@dataclass(frozen=True)
class Prepared:
    """A request ready to be sent: `params` go into its query, `body` is JSON; `timeout` is in seconds."""

    method: str
    url: str
    headers: Mapping[str, str]
    params: Mapping[str, str] | None
    body: Any
    timeout: float


def offer(tool: Tool) -> Function:
    """What the model is offered; a text message is spoken before the request is sent."""
    config = tool.config
    speech = "" if config["customMessageType"] == "audio" else config["customMessage"] or ""
    return Function(tool.function_name, tool.purpose, schema(config["parameters"]), tool_uuid=tool.uuid, speech=speech)


def run(tool: Tool, request: RunTool, desk: ToolContext) -> ToolReturned:
    """Send the request, once, and tell the model what came of it."""
    try:
        prepared = prepare(tool.config, request, desk.header(tool.config["credential_uuid"]))
    except ToolFault as fault:
        result: dict[str, Any] = {"status": "error", "error": str(fault)}
    else:
        result = exchange(desk.send, prepared)
    return ToolReturned(request.at, request.number, result)


def prepare(
    config: Mapping[str, Any],
    request: RunTool,
    credential: Mapping[str, str] | None,
    presets: Mapping[str, Any] | None = None,
) -> Prepared:
    """The request that a call of the tool makes.

    :param credential: the credential's header, which wins over one of the config; None goes without.
    :param presets: values of preset parameters that stand in for their templates.
    :raises ToolFault: when a parameter is missing, a preset one is of another type, or the URL can't be made.
    """
    now = moment(request)
    context = {**request.initial_context, **request.gathered_context, **contexts(request)}
    asked = chosen(config["parameters"], request.arguments)
    known = presets or {}
    missing = [each for each in config["preset_parameters"] or () if each["name"] not in known]
    given = {**known, **preset(missing, context, now)}
    # The author may ask the model for a parameter that is preset as well: then the model's value wins.
    arguments = {**given, **asked}
    try:
        url = url_of(config["url"], {**given, **context, **asked, **contexts(request)}, now)
    except ToolFault as fault:
        raise ToolFault(f"{URL_FAILED}{fault}") from None
    method = config["method"]
    params = body = None
    if method in IN_QUERY:
        params = {name: _in_query(value) for name, value in arguments.items()}
    elif config["body_template"] is None:
        body = arguments
    else:
        body = body_of(config["body_template"], {**arguments, **contexts(request)}, now)
    headers = over(config["headers"] or {}, credential or {})
    return Prepared(method, url, headers, params, body, timeout_of(config))


def timeout_of(config: Mapping[str, Any]) -> float:
    """How long the server may take, in seconds; 5 unless it is set."""
    return min((config["timeout_ms"] or 5000) / 1000, LONGEST_SECONDS)


def exchange(send: Callable[..., Reply], prepared: Prepared) -> dict[str, Any]:
    """Send the request and say what came of it, as the model is told; any status is an answer."""
    try:
        reply = send(
            prepared.method,
            prepared.url,
            headers=prepared.headers,
            params=prepared.params,
            json=prepared.body,
            timeout=prepared.timeout,
            largest=LARGEST_ANSWER,
        )
    except RequestFailed as error:
        late = f"Request timed out after {prepared.timeout:g} seconds"
        return {"status": "error", "error": late if error.kind == "timeout" else f"Request failed: {error}"}
    return {"status": "success", "status_code": reply.status, "data": data_of(reply)}


def data_of(reply: Reply) -> Any:
    """The body as JSON, or as text under `raw_response`."""
    try:
        return json_of(reply)
    except ValueError:
        return {"raw_response": reply.body.decode("utf-8", "replace").replace("\0", "\ufffd")}


def json_of(reply: Reply) -> Any:
    """The body as JSON.

    :raises ValueError: when it isn't JSON, or holds what can't be stored.
    """
    try:
        return parse(reply.body.decode("utf-8-sig"), ())
    except Invalid:
        raise ValueError("The body is not JSON.") from None


def url_of(template: str, context: Mapping[str, Any], now: datetime) -> str:
    """The URL with each value percent-encoded, so that no value can change where it leads.

    :raises ToolFault: for a value that is missing, empty or no single word, and for what isn't http or https.
    """
    parts = []
    done = 0
    for each, value in values(template, context, now=now):
        if value is None or value == "":
            raise ToolFault(f"{each.path} has no value.")
        if isinstance(value, dict | list):
            raise ToolFault(f"{each.path} is a list or an object.")
        text = written(value).lower() if isinstance(value, bool) else written(value)
        if text in (".", ".."):
            raise ToolFault(f"{each.path} would change the path.")
        parts += [template[done : each.start], quote(text, safe="", errors="replace")]
        done = each.end
    parts.append(template[done:])
    if any(re.search(r"\{\{|\}\}", literal) for literal in parts):
        raise ToolFault("there are braces that hold no variable.")
    url = "".join(parts)
    if urlsplit(url.lower()).scheme not in ("http", "https"):
        raise ToolFault("it must begin with http:// or https://.")
    return url


def body_of(template: Any, context: Mapping[str, Any], now: datetime) -> Any:
    """The body with every text in it rendered; a text that is one variable and nothing else keeps the value's type."""
    if isinstance(template, Mapping):
        return {render(key, context, now=now): body_of(below, context, now) for key, below in template.items()}
    if isinstance(template, list):
        return [body_of(below, context, now) for below in template]
    if not isinstance(template, str):
        return template
    found = list(values(template, context, now=now))
    if len(found) == 1 and (found[0][0].start, found[0][0].end) == (0, len(template)):
        value = found[0][1]
        return "" if value is None else value
    return render(template, context, now=now)


def over(headers: Mapping[str, str], wins: Mapping[str, str]) -> dict[str, str]:
    """Both sets of headers; of two with one name, in whatever case, the second's."""
    names = {name.lower() for name in wins}
    return {**{name: value for name, value in headers.items() if name.lower() not in names}, **wins}


def _in_query(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
