"""Strict carriers with numbers: each refuses what its documents say that it refuses, and loses what they say is lost.

Requests are held against the carriers' own libraries where these know them: names and values that they don't know, or
that they refuse, fail the test. What is written is counted, so that a test can fail each request, lose its answer, or
end there.
"""

from __future__ import annotations

import base64
import copy
import inspect
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from internet import Request
from plivo.resources.applications import Applications
from plivo.resources.numbers import Numbers
from pydantic import TypeAdapter
from strict_twilio import StrictTwilio
from telnyx.types import (
    PhoneNumberUpdateParams,
    TexmlApplicationCreateParams,
    TexmlApplicationUpdateParams,
)
from telnyx.types.texml_application import TexmlApplication
from vonage_application.requests import ApplicationConfig
from vonage_application.responses import ApplicationData
from vonage_numbers.requests import UpdateNumberParams
from vonage_numbers.responses import OwnedNumber

from voiceapi.http_client import HTTPClient, Reply, RequestFailed

OURS, SECOND, MESSAGES = "+12025550188", "+12025550177", "+12025550166"
ELSEWHERE = "https://pbx.example.net/voice"
JSON = {"Content-Type": "application/json"}


class Killed(BaseException):
    """The end of the process, in the middle of a request."""


class Refused(Exception):
    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status)
        self.status, self.body = status, body


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    json: Any
    form: Mapping[str, str] | None
    host: str
    body: bytes

    @property
    def writes(self) -> bool:
        return self.method != "GET"


@dataclass
class NumberAPI:
    """A carrier's API for numbers.

    :param writes: every request that was to change something, as method and path.
    :param trouble: by the count of the write, from 1 on: a status to refuse it with, `lost` to carry it out without an
        answer, `killed` to end the process before it, `killed after` to end it afterwards.
    """

    provider = ""
    wrong: str = "secret"
    writes: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    trouble: dict[int, int | str] = field(default_factory=dict)

    credentials: dict[str, str] = field(default_factory=dict)

    def client(self, others: Callable[..., Reply] | None = None) -> HTTPClient:
        """Sends requests to this carrier, or to `others` what it doesn't know."""
        return Wire(self.send, others)

    def send(self, method: str, url: str, **options: Any) -> Reply:
        parts = urlsplit(url)
        raw = options.get("data")
        headers = {name.lower(): value for name, value in (options.get("headers") or {}).items()}
        form = None
        if raw is not None:
            assert headers["content-type"] == "application/x-www-form-urlencoded"
            values = parse_qs(raw.decode(), keep_blank_values=True, strict_parsing=True)
            assert parts.path.endswith("/Calls.json") or all(len(value) == 1 for value in values.values()), values
            form = {name: value[0] for name, value in values.items()}
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        request = Asked(method, parts.path, query, headers, options.get("json"), form, parts.netloc, raw or b"")
        self.asked.append(f"{method} {parts.path}")
        status: int | str = 0
        if request.writes:
            self.writes.append(f"{method} {parts.path}")
            status = self.trouble.get(len(self.writes), 0)
        if status == "killed":
            raise Killed
        if isinstance(status, int) and status:
            return self.reply(status, self.error("It isn't the day for it."))
        try:
            code, body = self.answer(request)
        except Refused as refused:
            code, body = refused.status, refused.body
        if status == "killed after":
            raise Killed
        if status == "lost":
            raise RequestFailed("timeout", f"{parts.netloc} gave no answer within 10 s.", sent=True)
        return self.reply(code, body)

    @staticmethod
    def reply(status: int, body: Any) -> Reply:
        return Reply(status, JSON, b"" if body is None else json.dumps(body).encode(), 0.0)

    # -- what each carrier has

    def answer(self, request: Asked) -> tuple[int, Any]:
        raise NotImplementedError

    def error(self, text: str) -> Any:
        return {"message": text}

    def state(self) -> Any:
        """All that stands at the carrier, to be compared."""
        raise NotImplementedError

    def goes_to(self, number: str) -> tuple[str, str]:
        """The URLs that calls to a number, and their status, go to."""
        raise NotImplementedError

    def point(self, number: str, url: str) -> None:
        """Somebody sends the calls to a number elsewhere."""
        raise NotImplementedError

    def given(self) -> dict[str, str]:
        """The credentials that somebody enters."""
        return dict(self.credentials)


@contextmanager
def served(api: NumberAPI, home: str) -> Iterator[str]:
    """The URL of a server on this machine that is this carrier; `home` is the carrier's own origin."""

    class Desk(BaseHTTPRequestHandler):
        def answer(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_form = "form" in self.headers.get("Content-Type", "")
            body = {"data": raw} if is_form else {"json": json.loads(raw or b"null")}
            reply = api.send(self.command, f"{home}{self.path}", headers=dict(self.headers), **body)
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: Any) -> None: ...

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Desk, f"do_{method}", Desk.answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Desk)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Wire(HTTPClient):
    """Sends requests to a function, in this process."""

    def __init__(self, send: Callable[..., Reply], others: Callable[..., Reply] | None) -> None:
        super().__init__()
        object.__setattr__(self, "_send", send)
        object.__setattr__(self, "_others", others)

    def send(self, method: str, url: str, **options: Any) -> Reply:
        if self._others is not None and url.endswith("/api/v1/health"):  # type: ignore[attr-defined]
            return self._others(method, url, **options)  # type: ignore[attr-defined, no-any-return]
        return self._send(method, url, **options)  # type: ignore[attr-defined, no-any-return]


def basic(request: Asked) -> tuple[str, str]:
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    assert kind == "Basic"
    user, _, password = base64.b64decode(value).decode().partition(":")
    return user, password


def known_to(adapter: Any, value: Mapping[str, Any], names: Mapping[str, Any]) -> None:
    """The library knows all names and takes the values."""
    assert set(value) <= set(names), value
    adapter.validate_python(value)


# -- Twilio


class _NoInternet:
    def __init__(self) -> None:
        self.hosts: dict[str, Any] = {}


class TwilioNumbers(NumberAPI):
    """The strict Twilio, of which only the numbers are asked for."""

    provider = "twilio"

    def __init__(self) -> None:
        super().__init__()
        self.twilio = StrictTwilio(_NoInternet(), "https://voice.example.org", OURS)  # type: ignore[arg-type]
        self.twilio.add_number(SECOND, voice_application_sid="AP1")
        self.twilio.add_number(MESSAGES, voice=False)
        self.twilio.page_size = 2
        # A call rings for good.
        self.twilio._begin = lambda call: self.twilio.calls.update({call.sid: call})  # type: ignore[method-assign]
        self.credentials = {"account_sid": self.twilio.account_sid, "auth_token": self.twilio.auth_token}
        self.wrong = "auth_token"

    def answer(self, request: Asked) -> tuple[int, Any]:
        assert request.host == "api.twilio.com"
        query = "&".join(f"{name}={value.replace('+', '%2B')}" for name, value in request.query.items())
        headers = {"Authorization": request.headers.get("authorization", "")}
        if request.form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        path = f"{request.path}?{query}" if query else request.path
        answer = self.twilio._api(Request(request.method, request.host, path, headers, request.body))
        assert self.twilio.violations == []
        return answer.status, json.loads(answer.body)

    def error(self, text: str) -> Any:
        return {"code": 20001, "message": text, "status": 400}

    def state(self) -> Any:
        return {number: dict(vars(each)) for number, each in self.twilio.numbers.items()}

    def goes_to(self, number: str) -> tuple[str, str]:
        found = self.twilio.numbers[number]
        assert not found.trunk_sid
        if found.voice_application_sid:
            return f"application {found.voice_application_sid}", ""
        assert (found.voice_method, found.status_callback_method) == ("POST", "POST")
        return found.voice_url, found.status_callback

    def point(self, number: str, url: str) -> None:
        self.twilio.numbers[number].voice_url = url


# -- SignalWire

HANDLERS = {
    "laml_webhooks": "call_request_url",
    "laml_application": "call_laml_application_id",
    "relay_script": "call_relay_script_url",
    "ai_agent": "call_ai_agent_id",
    "relay_topic": "call_relay_topic",
}


class SignalWireNumbers(NumberAPI):
    provider = "signalwire"
    FIELDS = (
        *("name", "call_handler", "call_receive_mode", "call_request_url", "call_request_method"),
        *("call_fallback_url", "call_fallback_method", "call_status_callback_url", "call_status_callback_method"),
        *("call_laml_application_id", "call_relay_script_url", "call_ai_agent_id", "call_relay_topic"),
    )

    def __init__(self) -> None:
        super().__init__()
        self.credentials = {"project_id": "p-1", "api_token": "PT1", "space": "example", "signing_key": "PSK1"}
        self.wrong = "api_token"
        self.numbers: dict[str, dict[str, Any]] = {}
        self._add(OURS, call_handler="ai_agent", call_ai_agent_id="agent-7", call_receive_mode="voice")
        self._add(SECOND, call_handler="laml_webhooks", call_request_url=ELSEWHERE, call_request_method="GET")
        self._add(MESSAGES, capabilities=["sms"])

    def _add(self, number: str, **fields: Any) -> None:
        empty: dict[str, Any] = dict.fromkeys(self.FIELDS)
        id = f"pn-{len(self.numbers) + 1}"
        self.numbers[id] = {**empty, "id": id, "number": number, "capabilities": ["voice", "sms"], **fields}

    def _of(self, number: str) -> dict[str, Any]:
        return next(each for each in self.numbers.values() if each["number"] == number)

    def answer(self, request: Asked) -> tuple[int, Any]:
        assert request.host == "example.signalwire.com"
        if basic(request) != (self.credentials["project_id"], self.credentials["api_token"]):
            raise Refused(401, {"error": "Unauthorized"})
        match request.method, request.path.removeprefix("/api/relay/rest/").split("/"):
            case "GET", ["phone_numbers"]:
                assert set(request.query) <= {"filter_number", "page_size", "page_number", "page_token"}
                found = [
                    each for each in self.numbers.values() if request.query.get("filter_number", "") in each["number"]
                ]
                first = int(request.query.get("page_number", 0)) * 2
                if first and "page_token" not in request.query:
                    raise Refused(422, {"errors": [{"code": "missing", "message": "page_token is needed"}]})
                links = {"self": "/api/relay/rest/phone_numbers"}
                if len(found) > first + 2:
                    links["next"] = f"/api/relay/rest/phone_numbers?page_number={first // 2 + 1}&page_token=PA1"
                return 200, {"links": links, "data": found[first : first + 2]}
            case "PUT", ["phone_numbers", id] if id in self.numbers:
                return 200, self._update(self.numbers[id], request.json)
        raise Refused(404, {"error": "Not found"})

    def _update(self, number: dict[str, Any], fields: Mapping[str, Any]) -> Any:
        unknown = set(fields) - set(self.FIELDS)
        handler = fields.get("call_handler", number["call_handler"])
        needed = HANDLERS.get(handler or "")
        if unknown or (handler and needed is None):
            raise Refused(422, {"errors": [{"code": "invalid", "message": f"{unknown or handler} isn't known"}]})
        if "call_handler" in fields and needed and not fields.get(needed):
            raise Refused(422, {"errors": [{"code": "missing", "message": f"{needed} is needed"}]})
        for name in ("call_request_method", "call_status_callback_method"):
            if fields.get(name, "POST") not in ("GET", "POST", ""):
                raise Refused(422, {"errors": [{"code": "invalid", "message": f"{name} is invalid"}]})
        # What only another handler needs is gone with it.
        for name in set(HANDLERS.values()) - {needed}:
            number[name] = None if "call_handler" in fields else number[name]
        number.update({name: value or None for name, value in fields.items()})
        return number

    def state(self) -> Any:
        return copy.deepcopy(self.numbers)

    def goes_to(self, number: str) -> tuple[str, str]:
        found = self._of(number)
        if found["call_handler"] != "laml_webhooks":
            return str(found["call_handler"]), ""
        for name in ("request", "status_callback"):
            if "/telephony/inbound/" in (found[f"call_{name}_url"] or ""):
                assert found[f"call_{name}_method"] == "POST"
        return found["call_request_url"], found["call_status_callback_url"]

    def point(self, number: str, url: str) -> None:
        self._of(number).update(call_request_url=url)


# -- Telnyx


class TelnyxNumbers(NumberAPI):
    provider = "telnyx"

    def __init__(self) -> None:
        super().__init__()
        self.credentials = {"api_key": "KEY01", "account_sid": "acc-1", "webhook_public_key": "cHVibGlj"}
        self.wrong = "api_key"
        shared = {"friendly_name": "PBX", "voice_url": ELSEWHERE, "voice_method": "post"}
        self.applications: dict[str, dict[str, Any]] = {"77": shared}
        self.profiles = ["profile-1"]
        self.forwarding: dict[str, Any] = {}
        self.numbers = {
            f"129{at}": {"id": f"129{at}", "phone_number": number, "connection_id": "77", "status": status}
            for at, (number, status) in enumerate([(OURS, "active"), (SECOND, "active"), (MESSAGES, "port-pending")])
        }

    def answer(self, request: Asked) -> tuple[int, Any]:
        assert request.host == "api.telnyx.com"
        if request.headers.get("authorization") != f"Bearer {self.credentials['api_key']}":
            raise Refused(401, self.error("Authentication failed", "10009"))
        match request.method, request.path.removeprefix("/v2/").split("/"):
            case "GET", ["phone_numbers"]:
                wanted = request.query.get("filter[phone_number]", "")
                found = [each for each in self.numbers.values() if wanted in each["phone_number"].removeprefix("+")]
                return 200, self._page(request, found)
            case "GET", ["phone_numbers", id, "voice"] if id in self.numbers:
                return 200, {"data": {"id": id, "call_forwarding": self.forwarding}}
            case "PATCH", ["phone_numbers", id] if id in self.numbers:
                known = {**request.json, **({} if request.json["connection_id"] else {"connection_id": ""})}
                known_to(TypeAdapter(PhoneNumberUpdateParams), known, PhoneNumberUpdateParams.__annotations__)
                if request.json["connection_id"] not in (None, *self.applications):
                    raise Refused(422, self.error("The connection doesn't exist"))
                self.numbers[id].update(request.json)
                return 200, {"data": self.numbers[id]}
            case "GET", ["texml_applications"]:
                wanted = request.query.get("filter[friendly_name]", "").lower()
                assert not wanted or len(wanted) >= 3
                found = [
                    self._view(id) for id, each in self.applications.items() if wanted in each["friendly_name"].lower()
                ]
                return 200, self._page(request, found)
            case "POST", ["texml_applications"]:
                shape = TexmlApplicationCreateParams
                known_to(TypeAdapter(shape), request.json, shape.__annotations__)
                id = str(100 + len(self.applications))
                self.applications[id] = dict(request.json)
                return 201, {"data": self._view(id)}
            case method, ["texml_applications", id] if id in self.applications:
                if method == "PATCH":
                    if not {"friendly_name", "voice_url"} <= set(request.json):
                        raise Refused(422, self.error("friendly_name and voice_url are required"))
                    shape = TexmlApplicationUpdateParams
                    known_to(TypeAdapter(shape), request.json, shape.__annotations__)
                    self.applications[id] |= request.json
                view = self._view(id)
                if method == "DELETE":
                    if any(each["connection_id"] == id for each in self.numbers.values()):
                        raise Refused(422, self.error("The application has phone numbers"))
                    del self.applications[id]
                return 200, {"data": view}
            case "GET", ["texml", "Accounts", "acc-1", "Calls"]:
                return 200, {"calls": []}
            case "GET", ["outbound_voice_profiles"]:
                return 200, {"data": [{"id": each, "name": each} for each in self.profiles]}
        raise Refused(404, self.error("The resource wasn't found", "10005"))

    def error(self, text: str, code: str = "10015") -> Any:
        return {"errors": [{"code": code, "title": "Refused", "detail": text}]}

    def _page(self, request: Asked, found: list[Any]) -> Any:
        size, page = int(request.query.get("page[size]", 20)), int(request.query.get("page[number]", 1))
        assert 1 <= size <= 250
        return {"data": found[size * (page - 1) : size * page], "meta": {"page_number": page}}

    def _view(self, id: str) -> Any:
        return TexmlApplication.model_validate({"id": id, **self.applications[id]}).model_dump()

    def state(self) -> Any:
        return copy.deepcopy([self.numbers, self.applications])

    def _of(self, number: str) -> Any:
        return next(each for each in self.numbers.values() if each["phone_number"] == number)

    def goes_to(self, number: str) -> tuple[str, str]:
        found = self.applications[self._of(number)["connection_id"]]
        assert found["voice_method"] == found.get("status_callback_method", "post") == "post"
        return found["voice_url"], found.get("status_callback", "")

    def point(self, number: str, url: str) -> None:
        self.applications[self._of(number)["connection_id"]]["voice_url"] = url


# -- Plivo


class PlivoNumbers(NumberAPI):
    provider = "plivo"

    def __init__(self) -> None:
        super().__init__()
        self.credentials = {"auth_id": "MAXXXXXXXXXXXXXXXXXX", "auth_token": "token"}
        self.wrong = "auth_token"
        self.applications: dict[str, dict[str, Any]] = {
            str(at): {"app_name": f"App {at}", "answer_url": ELSEWHERE, "answer_method": "POST"} for at in range(1, 23)
        }
        self.numbers = {
            number: {"number": number[1:], "alias": "", "voice_enabled": voice, "app_id": app_id}
            for number, app_id, voice in ((OURS, "", True), (SECOND, "1", True), (MESSAGES, "", False))
        }

    @property
    def home(self) -> str:
        return f"/v1/Account/{self.credentials['auth_id']}"

    def answer(self, request: Asked) -> tuple[int, Any]:
        assert request.host == "api.plivo.com"
        if basic(request) != (self.credentials["auth_id"], self.credentials["auth_token"]):
            raise Refused(401, {"error": "authentication failed"})
        assert request.path.startswith(f"{self.home}/")
        assert request.path.endswith("/")
        match request.method, request.path.removeprefix(f"{self.home}/").rstrip("/").split("/"):
            case "GET", ["Number"]:
                listed = [self._number(each) for each in self.numbers.values()]
                start = request.query.get("number_startswith", "")
                return 200, self._page(request, [each for each in listed if each["number"].startswith(start)], Numbers)
            case "POST", ["Number", digits] if f"+{digits}" in self.numbers:
                _held_against(Numbers.update, {"number": digits, **request.json})
                if request.json.get("app_id") not in ("", *self.applications):
                    raise Refused(404, {"error": "not found"})
                self.numbers[f"+{digits}"] |= request.json
                return 202, {"message": "changed"}
            case "GET", ["Application"]:
                listed = [{"app_id": id, **each} for id, each in self.applications.items()]
                return 200, self._page(request, listed, Applications)
            case "POST", ["Application"]:
                _held_against(Applications.create, request.json)
                id = str(900 + len(self.applications))
                self.applications[id] = dict(request.json)
                return 201, {"message": "created", "app_id": id, "api_id": "a"}
            case method, ["Application", id] if id in self.applications:
                if method == "POST":
                    _held_against(Applications.update, {"app_id": id, **request.json})
                    self.applications[id] |= request.json
                    return 202, {"message": "changed"}
                if method == "DELETE":
                    _held_against(Applications.delete, {"app_id": id, **request.json})
                    for number in self.numbers.values():
                        number["app_id"] = "" if number["app_id"] == id else number["app_id"]
                    del self.applications[id]
                    return 204, None
                return 200, {"app_id": id, **self.applications[id]}
        raise Refused(404, {"error": "not found"})

    def error(self, text: str) -> Any:
        return {"api_id": "a", "error": text}

    def _number(self, number: Mapping[str, Any]) -> dict[str, Any]:
        path = f"{self.home}/Application/{number['app_id']}/" if number["app_id"] else None
        return {name: value for name, value in number.items() if name != "app_id"} | {"application": path}

    def _page(self, request: Asked, found: list[Any], resource: Any) -> Any:
        if "limit" not in request.query:
            return {"objects": found[:20], "meta": {}}
        limit, offset = int(request.query["limit"]), int(request.query["offset"])
        _held_against(resource.list, {"limit": limit, "offset": offset})
        return {"objects": found[offset : offset + limit], "meta": {"limit": limit, "offset": offset}}

    def state(self) -> Any:
        return copy.deepcopy([self.numbers, self.applications])

    def goes_to(self, number: str) -> tuple[str, str]:
        app_id = self.numbers[number]["app_id"]
        found = self.applications[app_id] if app_id else {"answer_url": "", "answer_method": "POST"}
        assert found["answer_method"] == found.get("hangup_method", "POST") == "POST"
        return found["answer_url"], found.get("hangup_url", "")

    def point(self, number: str, url: str) -> None:
        self.applications[self.numbers[number]["app_id"]]["answer_url"] = url


class _Recorder:
    """The client of Plivo's library; it sends nothing."""

    def request(self, *asked: Any, **options: Any) -> Any:
        return asked


def _held_against(method: Any, fields: Mapping[str, Any]) -> None:
    """The library's method has all of these parameters, and takes their values."""
    parameters = set(inspect.signature(inspect.unwrap(method)).parameters) - {"self"}
    assert set(fields) <= parameters, set(fields) - parameters
    resource = Applications if method.__qualname__.startswith("Applications") else Numbers
    # A parameter without effect on numbers is left to the library's own default.
    getattr(resource(_Recorder()), method.__name__)(**fields)


# -- Vonage


class VonageNumbers(NumberAPI):
    provider = "vonage"

    def __init__(self) -> None:
        super().__init__()
        self.credentials = {"api_key": "abcd1234", "api_secret": "secret", "signature_secret": "s" * 32}
        self.wrong = "api_secret"
        self.applications: dict[str, dict[str, Any]] = {
            "app-0": {
                "name": "PBX",
                "capabilities": {
                    "voice": {"webhooks": {"answer_url": {"address": ELSEWHERE, "http_method": "GET"}}},
                    "messages": {"version": "v1"},
                },
            }
        }
        self.numbers = {
            OURS: {"country": "US", "msisdn": OURS[1:], "features": ["SMS", "VOICE"], "app_id": "app-0"},
            SECOND: {"country": "US", "msisdn": SECOND[1:], "features": ["VOICE"], "app_id": "app-0"},
            MESSAGES: {"country": "US", "msisdn": MESSAGES[1:], "features": ["SMS"]},
        }

    def answer(self, request: Asked) -> tuple[int, Any]:
        match request.host, request.method, request.path.removeprefix("/").split("/"):
            case "api.nexmo.com", "GET", ["v1", "calls"]:
                assert request.headers["authorization"].startswith("Bearer ")
                return 200, {"count": 0}
        if basic(request) != (self.credentials["api_key"], self.credentials["api_secret"]):
            raise Refused(401, {"title": "Unauthorized", "detail": "You did not provide correct credentials."})
        match request.host, request.method, request.path.removeprefix("/").split("/"):
            case "rest.nexmo.com", "GET", ["account", "numbers"]:
                found = [
                    each
                    for each in self.numbers.values()
                    if each["msisdn"].startswith(request.query.get("pattern", ""))
                ]
                for each in found:
                    OwnedNumber.model_validate(each)
                size, index = int(request.query.get("size", 10)), int(request.query.get("index", 1))
                assert size <= 100
                page = found[size * (index - 1) : size * index]
                return 200, {"count": len(found), **({"numbers": page} if page else {})}
            case "rest.nexmo.com", "POST", ["number", "update"]:
                form = dict(request.form or {})
                known = {each.serialization_alias or name for name, each in UpdateNumberParams.model_fields.items()}
                assert set(form) <= known
                UpdateNumberParams(
                    **{"country": form["country"], "msisdn": form["msisdn"], "app_id": form.get("app_id")}
                )
                number = self.numbers.get(f"+{form['msisdn']}")
                if number is None or number["country"] != form["country"]:
                    return 200, {"error-code": "420", "error-code-label": "method failed"}
                if form.get("app_id", "app-0") not in self.applications:
                    return 200, {"error-code": "420", "error-code-label": "no such application"}
                number.pop("app_id", None)
                number |= {"app_id": form["app_id"]} if "app_id" in form else {}
                return 200, {"error-code": "200", "error-code-label": "success"}
            case "api.nexmo.com", "GET", ["v2", "applications"]:
                size, page = int(request.query["page_size"]), int(request.query["page"])
                listed = [self._view(id) for id in self.applications]
                found = listed[size * (page - 1) : size * page]
                return 200, {"page": page, "_embedded": {"applications": found}}
            case "api.nexmo.com", "POST", ["v2", "applications"]:
                id = f"app-{len(self.writes)}"
                self.applications[id] = self._config(request.json)
                assert self.applications[id]["keys"]["public_key"].startswith("-----BEGIN PUBLIC KEY-----")
                return 201, self._view(id)
            case "api.nexmo.com", method, ["v2", "applications", id] if id in self.applications:
                if method == "PUT":
                    config = self._config(request.json)
                    # What is left out is gone, but for the key.
                    self.applications[id] = {"keys": self.applications[id].get("keys"), **config}
                if method == "DELETE":
                    del self.applications[id]
                    for number in self.numbers.values():
                        if number.get("app_id") == id:
                            del number["app_id"]
                    return 204, None
                return 200, self._view(id)
        raise Refused(404, {"title": "Not Found", "detail": "It isn't here."})

    @staticmethod
    def _config(fields: Mapping[str, Any]) -> dict[str, Any]:
        config = ApplicationConfig.model_validate(fields)
        stored = config.model_dump(exclude_none=True)
        assert stored == fields
        return stored

    def _view(self, id: str) -> Any:
        view = {"id": id, **copy.deepcopy(self.applications[id])}
        ApplicationData.model_validate(view)
        return view

    def error(self, text: str) -> Any:
        return {"title": "Refused", "detail": text}

    def state(self) -> Any:
        return copy.deepcopy([self.numbers, self.applications])

    def _webhooks(self, number: str) -> Any:
        app_id = self.numbers[number].get("app_id")
        return {} if app_id is None else self.applications[app_id]["capabilities"]["voice"]["webhooks"]

    def goes_to(self, number: str) -> tuple[str, str]:
        found = self._webhooks(number)
        for each in found.values() if "event_url" in found else ():
            assert each["http_method"] == "POST"
        return found["answer_url"]["address"], found.get("event_url", {}).get("address", "")

    def point(self, number: str, url: str) -> None:
        self._webhooks(number)["answer_url"]["address"] = url


# -- jambonz


class JambonzNumbers(NumberAPI):
    provider = "jambonz"

    def __init__(self) -> None:
        super().__init__()
        self.account = "acc-1"
        self.credentials = {
            "api_base_url": "https://jambonz.example.net/api/v1",
            "account_sid": self.account,
            "api_key": "key",
        }
        self.wrong = "api_key"
        hooks = {"call_hook_sid": "w1", "call_status_hook_sid": "w2"}
        self.webhooks: dict[str, dict[str, Any]] = {
            "w1": {"url": ELSEWHERE, "method": "POST"},
            "w2": {"url": f"{ELSEWHERE}/status", "method": "POST"},
        }
        self.applications: dict[str, dict[str, Any]] = {
            "a1": {"name": "PBX", "account_sid": self.account, "speech_synthesis_vendor": "aws", **hooks},
            "b1": {"name": "Theirs", "account_sid": "acc-2", **hooks},
        }
        self.numbers = {
            "n1": {"number": OURS[1:], "account_sid": self.account, "application_sid": "a1"},
            "n2": {"number": SECOND[1:], "account_sid": self.account, "application_sid": "a1"},
            "n3": {"number": MESSAGES[1:], "account_sid": "acc-2", "application_sid": "b1"},
        }

    def answer(self, request: Asked) -> tuple[int, Any]:
        assert request.host == "jambonz.example.net"
        if request.headers.get("authorization") != f"Bearer {self.credentials['api_key']}":
            raise Refused(401, {"msg": "invalid api key"})
        match request.method, request.path.removeprefix("/api/v1/").split("/"):
            case "GET", ["Accounts", self.account]:
                return 200, {"account_sid": self.account}
            case "GET", ["Accounts", self.account, "WebhookSecret"]:
                assert not request.query
                return 200, {"webhook_secret": "wh_secret"}
            case "GET", ["PhoneNumbers"]:
                return 200, [{"phone_number_sid": sid, **each} for sid, each in self.numbers.items()]
            case "PUT", ["PhoneNumbers", sid] if sid in self.numbers:
                for name in ("number", "voip_carrier_sid"):
                    if request.json.get(name):
                        raise Refused(400, {"msg": f"{name} may not be modified"})
                assert set(request.json) <= {"account_sid", "application_sid"}
                self.numbers[sid] |= request.json
                return 204, None
            case "GET", ["Applications"]:
                return 200, [self._view(sid) for sid in self.applications]
            case "POST", ["Applications"]:
                fields = dict(request.json)
                if not {"name", "account_sid", "call_hook", "call_status_hook"} <= set(fields):
                    raise Refused(400, {"msg": "missing"})
                sid = f"c{len(self.writes)}"
                self.applications[sid] = self._with_hooks(fields)
                return 201, {"sid": sid}
            case method, ["Applications", sid] if sid in self.applications:
                if method == "PUT":
                    self.applications[sid] |= self._with_hooks(dict(request.json))
                    return 204, None
                if method == "DELETE":
                    if any(each["application_sid"] == sid for each in self.numbers.values()):
                        raise Refused(422, {"msg": "cannot delete application with phone numbers"})
                    del self.applications[sid]
                    return 204, None
                return 200, self._view(sid)
        raise Refused(404, None)

    def _with_hooks(self, fields: dict[str, Any]) -> dict[str, Any]:
        for name in ("call_hook", "call_status_hook", "messaging_hook"):
            hook = fields.pop(name, None)
            if not hook:
                fields[f"{name}_sid"] = None  # also one that is left out
                continue
            assert hook["method"] in ("GET", "POST")
            sid = hook.pop("webhook_sid", None) or f"w{len(self.webhooks) + 1}"
            self.webhooks[sid] = hook
            fields[f"{name}_sid"] = sid
        return fields

    def _view(self, sid: str) -> Any:
        found = self.applications[sid]
        hooks = {name: found.get(f"{name}_sid") for name in ("call_hook", "call_status_hook", "messaging_hook")}
        shown = {name: {"webhook_sid": at, **self.webhooks[at]} if at else None for name, at in hooks.items()}
        return {"application_sid": sid, **found, **shown}

    def error(self, text: str) -> Any:
        return {"msg": text}

    def state(self) -> Any:
        used = {sid for each in self.applications.values() for name, sid in each.items() if name.endswith("hook_sid")}
        hooks = {sid: each for sid, each in self.webhooks.items() if sid in used}
        return copy.deepcopy([self.numbers, self.applications, hooks])

    def _application(self, number: str) -> Any:
        sid = next(each["application_sid"] for each in self.numbers.values() if each["number"] == number[1:])
        return self.applications[sid]

    def goes_to(self, number: str) -> tuple[str, str]:
        found = self._application(number)
        return tuple(self.webhooks[found[f"{name}_sid"]]["url"] for name in ("call_hook", "call_status_hook"))  # type: ignore[return-value]

    def point(self, number: str, url: str) -> None:
        self.webhooks[self._application(number)["call_hook_sid"]]["url"] = url


NUMBER_APIS = (TwilioNumbers, SignalWireNumbers, TelnyxNumbers, PlivoNumbers, VonageNumbers, JambonzNumbers)
