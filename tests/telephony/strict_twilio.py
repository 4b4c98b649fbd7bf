"""A Twilio that is strict: its REST API, its errors, its signatures, and calls that carry out documents as it does.

What Twilio would accept with a warning, or pass over, is kept in `violations`, so that a test can demand that there is
none. The official library signs the webhooks, and names the parameters, verbs and attributes that there are.
"""

from __future__ import annotations

import base64
import inspect
import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit
from xml.etree import ElementTree as ET

from internet import Answer, Internet, Request
from twilio.request_validator import RequestValidator
from twilio.rest.api.v2010.account.call import CallList
from twilio.rest.api.v2010.account.incoming_phone_number import IncomingPhoneNumberContext
from twilio.twiml import lower_camel
from twilio.twiml.voice_response import Dial, Gather, VoiceResponse
from werkzeug.datastructures import MultiDict

E164 = re.compile(r"\+[1-9]\d{6,14}")
ACCOUNT_SID = re.compile(r"AC[0-9a-f]{32}")
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z]{2,4})?(-[A-Z]{2})?")
# Before a document is carried out in a call of a trial account.
NOTICE = "You have a trial account. Press any key to execute your code."
DEMO = "Thanks for the documentation. Please configure your number's voice URL."
APPLICATION_ERROR = "We are sorry, an application error has occurred. Goodbye."
SECONDS = 15.0
MOST_DOCUMENTS = 40
CALL_EVENTS = {"initiated", "ringing", "answered", "completed"}


def _parameters(create: Any) -> frozenset[str]:
    """The names of a request's parameters in the REST API, from the library's method that sends it."""
    names = [name.rstrip("_") for name in inspect.signature(create).parameters if name not in ("self", "kwargs")]
    return frozenset("".join(part.capitalize() for part in name.split("_")) for name in names)


def _attributes(method: Any) -> frozenset[str]:
    """The names of a verb's attributes, from the library's method that makes one."""
    return frozenset(
        lower_camel(name) for name in inspect.signature(method).parameters if name not in ("self", "kwargs")
    )


CALL_PARAMETERS = _parameters(CallList.create)
NUMBER_PARAMETERS = _parameters(IncomingPhoneNumberContext.update)
# The verbs of a document, of a Gather and of a Dial, with their attributes.
VERBS = {name: _attributes(getattr(VoiceResponse, name.lower())) for name in ("Say", "Gather", "Redirect", "Pause")}
VERBS |= {name: _attributes(getattr(VoiceResponse, name.lower())) for name in ("Hangup", "Dial", "Play", "Reject")}
NESTED = {
    "Gather": {name: _attributes(getattr(Gather, name.lower())) for name in ("Say", "Play", "Pause")},
    "Dial": {name: _attributes(getattr(Dial, name.lower())) for name in ("Number", "Sip")},
}


# What the fragment of a URL may override, as the page on connection overrides has it: the least and the most.
OVERRIDES = {"rc": (0, 5), "ct": (100, 10_000), "rt": (100, 15_000), "tt": (100, 15_000)}
# What is repeated: a connection that can't be made, no answer in time, or an answer.
POLICIES = {"ct", "rt", "4xx", "5xx", "all"}


@dataclass(frozen=True)
class Overrides:
    """How a webhook is requested: its retries, what is repeated, and seconds for an answer and for all tries."""

    retries: int = 1
    policy: frozenset[str] = frozenset({"ct"})
    answer_seconds: float = SECONDS
    seconds: float = SECONDS

    @classmethod
    def read(cls, fragment: str) -> Overrides:
        given = dict(parse_qsl(fragment, strict_parsing=True)) if fragment else {}
        policy = frozenset(given.pop("rp", "ct").split(","))
        if not policy <= POLICIES:
            raise ApplicationError(11243, "HTTP retry policy is invalid")
        for name, value in given.items():
            least, most = OVERRIDES.get(name, (0, -1))
            if not value.isdigit() or not least <= int(value) <= most:
                raise ApplicationError(11240, f"{name}={value} is no connection override")
        milliseconds = {name: int(given.get(name, SECONDS * 1000)) for name in ("rt", "tt")}
        retries = int(given.get("rc", 1))
        return cls(retries, policy, milliseconds["rt"] / 1000, milliseconds["tt"] / 1000)

    def repeats(self, failure: str) -> bool:
        return bool(self.policy & {failure, "all"})


class Refused(Exception):
    """An error of the REST API: the status, Twilio's code, and its text."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.answer = (status, {"code": code, "message": message, "more_info": _more(code), "status": status})


class ApplicationError(Exception):
    """A webhook or document that ends a call; `code` is that of Twilio's error log."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def _more(code: int) -> str:
    return f"https://www.twilio.com/docs/errors/{code}"


@dataclass
class Person:
    """Somebody with a telephone.

    :param lines: what they say, one for each time that the agent listens; then they hang up. "" is silence.
    :param presses: whether they press a key when the notice of a trial account asks for one.
    :param outcome: answered, or how the call to them ends otherwise.
    :param answering: called when they answer.
    """

    lines: Sequence[str] = ()
    presses: bool = True
    outcome: str = "answered"
    answering: Callable[[], object] = lambda: None


@dataclass
class Number:
    """A number of the account, with the webhooks of calls to it."""

    sid: str
    phone_number: str
    voice_url: str = "https://demo.twilio.com/welcome/voice/"
    voice_method: str = "POST"
    status_callback: str = ""
    status_callback_method: str = "POST"
    voice_application_sid: str | None = None
    trunk_sid: str | None = None
    voice_receive_mode: str = "voice"
    voice: bool = True

    def view(self) -> dict[str, Any]:
        shown = {name: value for name, value in vars(self).items() if name != "voice"}
        capabilities = {"voice": self.voice, "sms": True, "mms": True, "fax": False}
        return {**shown, "capabilities": capabilities, "friendly_name": self.friendly_name}

    @property
    def friendly_name(self) -> str:
        """What a new number is called."""
        area, exchange, line = self.phone_number[2:5], self.phone_number[5:8], self.phone_number[8:]
        return f"({area}) {exchange}-{line}"


@dataclass
class Call:
    """A call. `heard` is what was spoken to the person, `asked` the URLs that were requested for it, in order."""

    sid: str
    to: str
    from_number: str
    direction: str
    person: Person
    url: str
    method: str = "POST"
    status_callback: str = ""
    events: frozenset[str] = frozenset()
    status: str = "queued"
    heard: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    sequence: int = 0
    over: threading.Event = field(default_factory=threading.Event)


class StrictTwilio:
    """One account.

    :param public: the origin that all webhooks must be under.
    """

    def __init__(self, internet: Internet, public: str, number: str, *, trial: bool = False) -> None:
        self.account_sid, self.auth_token = f"AC{secrets.token_hex(16)}", secrets.token_hex(16)
        self.public = public
        self.trial = trial
        self.verified: set[str] = set()
        self.people: dict[str, Person] = {}
        self.numbers: dict[str, Number] = {}
        self.page_size = 50
        self.add_number(number)
        self.calls: dict[str, Call] = {}
        self.alerts: list[dict[str, Any]] = []
        self.violations: list[str] = []
        # Called before a webhook is requested again, with the number of the retry.
        self.retrying: Callable[[int], object] = lambda retry: None
        self._internet = internet
        self._threads: list[threading.Thread] = []
        internet.hosts |= {"api.twilio.com": self._api, "monitor.twilio.com": self._monitor}

    def add_number(self, number: str, **settings: Any) -> None:
        """The account buys another number."""
        self.numbers[number] = Number(f"PN{secrets.token_hex(16)}", number, **settings)

    def close(self) -> None:
        for thread in self._threads:
            thread.join(timeout=60)
            assert not thread.is_alive()

    def last_call(self) -> Call:
        """The last call, once it is over."""
        call = list(self.calls.values())[-1]
        assert call.over.wait(60), f"The call is {call.status}: {call.asked}"
        return call

    # -- the REST API

    def _api(self, request: Request) -> Answer:
        return self._json(request, self._resource)

    def _monitor(self, request: Request) -> Answer:
        def alerts(request: Request, path: str) -> tuple[int, Any]:
            if (request.method, path) != ("GET", "/v1/Alerts"):
                raise self._not_found(path)
            return 200, {"alerts": self.alerts[::-1], "meta": {"key": "alerts"}}

        return self._json(request, alerts)

    def _json(self, request: Request, resource: Any) -> Answer:
        try:
            self._authenticate(request)
            status, body = resource(request, unquote(urlsplit(request.path).path))
        except Refused as refusal:
            status, body = refusal.answer
        return Answer(status, {"Content-Type": "application/json"}, json.dumps(body, default=str).encode())

    def _authenticate(self, request: Request) -> None:
        expected = base64.b64encode(f"{self.account_sid}:{self.auth_token}".encode()).decode()
        if request.headers.get("Authorization") != f"Basic {expected}":
            raise Refused(401, 20003, "Authenticate")

    def _not_found(self, path: str) -> Refused:
        return Refused(404, 20404, f"The requested resource {path} was not found")

    def _resource(self, request: Request, path: str) -> tuple[int, Any]:
        version, accounts, account, *rest = path.removeprefix("/").split("/")
        if (version, accounts) != ("2010-04-01", "Accounts") or not rest:
            raise self._not_found(path)
        if not ACCOUNT_SID.fullmatch(account) or account != self.account_sid:
            raise self._not_found(path)
        match (request.method, [part.removesuffix(".json") for part in rest]):
            case _ if not rest[-1].endswith(".json"):
                raise self._not_found(path)
            case ("POST", ["Calls"]):
                return 201, self._create_call(self._form(request))
            case ("GET", ["Calls", sid]) if sid in self.calls:
                return 200, self._call_view(self.calls[sid])
            case ("POST", ["Calls", sid]) if sid in self.calls:
                return 200, self._update_call(self.calls[sid], self._form(request))
            case ("GET", ["IncomingPhoneNumbers"]):
                return 200, self._numbers(urlsplit(request.path).query)
            case ("POST", ["IncomingPhoneNumbers", sid]):
                for number in self.numbers.values():
                    if number.sid == sid:
                        return 200, self._update_number(number, self._form(request))
        raise self._not_found(path)

    def _form(self, request: Request) -> dict[str, list[str]]:
        if request.headers.get("Content-Type", "").partition(";")[0] != "application/x-www-form-urlencoded":
            raise Refused(400, 20001, "The body must be a form.")
        return parse_qs(request.body.decode(), keep_blank_values=True, strict_parsing=True)

    def _only(self, form: Mapping[str, Sequence[str]], known: Iterable[str], several: Iterable[str] = ()) -> None:
        self.violations += [f"{name} is no parameter" for name in form if name not in known]
        self.violations += [f"{name} is sent twice" for name in form if len(form[name]) > 1 and name not in several]

    def _numbers(self, query: str) -> dict[str, Any]:
        asked = dict(parse_qsl(query))
        found = [each.view() for each in self.numbers.values() if asked.get("PhoneNumber", "") in each.phone_number]
        if not 1 <= int(asked.get("PageSize", self.page_size)) <= 1000:
            raise Refused(400, 20001, "PageSize is out of range")
        page, size = int(asked.get("Page", 0)), min(self.page_size, int(asked.get("PageSize", self.page_size)))
        if page and "PageToken" not in asked:
            raise Refused(400, 20001, "PageToken is needed")
        path = f"/2010-04-01/Accounts/{self.account_sid}/IncomingPhoneNumbers.json"
        more = f"{path}?PageSize={size}&Page={page + 1}&PageToken=PA1" if len(found) > size * (page + 1) else None
        return {
            "incoming_phone_numbers": found[size * page : size * (page + 1)],
            "page": page,
            "page_size": size,
            "next_page_uri": more,
        }

    def _update_number(self, number: Number, form: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        self._only(form, NUMBER_PARAMETERS)
        given = {name: values[0] for name, values in form.items()}
        if "AccountSid" in given:
            self.violations.append("AccountSid moves the number to another account")
        for name, code in (("VoiceUrl", 21502), ("StatusCallback", 21502)):
            if given.get(name) and not given[name].startswith(("http://", "https://")):
                raise Refused(400, code, f"{name} is not valid: {given[name]}")
        for name in ("VoiceMethod", "StatusCallbackMethod"):
            if given.get(name, "POST") not in ("GET", "POST"):
                raise Refused(400, 21403, f"{name} is not valid")
        if given.get("TrunkSid") and given.get("VoiceApplicationSid"):
            raise Refused(400, 21403, "TrunkSid and VoiceApplicationSid exclude each other")
        for name in ("VoiceUrl", "VoiceMethod", "StatusCallback", "StatusCallbackMethod", "VoiceReceiveMode"):
            attribute = re.sub("(?<!^)([A-Z])", r"_\1", name).lower()
            setattr(number, attribute, given.get(name, getattr(number, attribute)))
        for name, other in (("trunk_sid", "voice_application_sid"), ("voice_application_sid", "trunk_sid")):
            value = given.get("".join(map(str.capitalize, name.split("_"))))
            if value is not None:
                setattr(number, name, value or None)
            if value:
                setattr(number, other, None)
        return number.view()

    def _create_call(self, form: dict[str, list[str]]) -> dict[str, Any]:
        self._only(form, CALL_PARAMETERS, several=("StatusCallbackEvent",))
        given = {name: values[0] for name, values in form.items()}
        to, from_number, url = (given.get(name, "") for name in ("To", "From", "Url"))
        if not to:
            raise Refused(400, 21201, "No 'To' number is specified")
        if not E164.fullmatch(to):
            raise Refused(400, 21211, f"Invalid 'To' Phone Number: {to}")
        if not from_number:
            raise Refused(400, 21213, "No 'From' number is specified")
        if not E164.fullmatch(from_number):
            raise Refused(400, 21212, f"From is not a valid phone number: {from_number}")
        if from_number not in self.numbers:
            raise Refused(
                400,
                21210,
                f"The source phone number provided, {from_number}, is not yet verified for your account. You may only "
                "make calls from phone numbers that you've verified or purchased from Twilio.",
            )
        if self.trial and to not in self.verified:
            raise Refused(
                400,
                21219,
                f"The number {to} is unverified. Trial accounts may only make calls to verified numbers.",
            )
        if not url:
            raise Refused(400, 21205, "Url parameter is required.")
        for name in ("Url", "StatusCallback"):
            if name in given and not given[name].startswith(("http://", "https://")):
                raise Refused(400, 21205, f"{name} is not a valid URL: {given[name]}")
        for name in ("Method", "StatusCallbackMethod"):
            if given.get(name, "POST") != "POST":
                self.violations.append(f"{name} is {given[name]}")
        for name, most in (("Timeout", 600), ("TimeLimit", 14400)):
            if not 1 <= int(given.get(name, "60")) <= most:
                self.violations.append(f"{name} is {given[name]}")
        events = form.get("StatusCallbackEvent", ["completed"])
        self.violations += [f"{event} is no event" for event in events if event not in CALL_EVENTS]
        call = Call(
            f"CA{secrets.token_hex(16)}",
            to,
            from_number,
            "outbound-api",
            self.people.get(to, Person(outcome="no-answer")),
            url,
            status_callback=given.get("StatusCallback", ""),
            events=frozenset(events),
        )
        self._begin(call)
        return self._call_view(call)

    def _update_call(self, call: Call, form: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        if form.get("Status") not in (["completed"], ["canceled"]):
            raise Refused(400, 21220, "Invalid call state")
        call.status = "completed"
        return self._call_view(call)

    def _call_view(self, call: Call) -> dict[str, Any]:
        return {
            "sid": call.sid,
            "account_sid": self.account_sid,
            "to": call.to,
            "from": call.from_number,
            "status": call.status,
            "direction": call.direction,
            "duration": "7" if call.status == "completed" else None,
            "price": None,
            "price_unit": "USD",
            "answered_by": None,
        }

    # -- calls

    def call_in(self, caller: str, number: str) -> Call:
        """Somebody calls a number of the account; returns the call when it is over."""
        person, called = self.people[caller], self.numbers[number]
        call = Call(
            f"CA{secrets.token_hex(16)}",
            number,
            caller,
            "inbound",
            person,
            called.voice_url,
            called.voice_method,
            called.status_callback,
            frozenset({"completed"}),
            "ringing",
        )
        self._begin(call)
        return self.last_call()

    def _begin(self, call: Call) -> None:
        self.calls[call.sid] = call
        thread = threading.Thread(target=self._run, args=(call,))
        self._threads.append(thread)
        thread.start()

    def _run(self, call: Call) -> None:
        try:
            if call.direction != "inbound":
                for status in ("initiated", "ringing"):
                    self._report(call, status)
                if call.person.outcome != "answered":
                    self._report(call, call.person.outcome, "completed")
                    return
            self._converse(call)
            self._report(call, "completed")
        finally:
            call.over.set()

    def _converse(self, call: Call) -> None:
        if call.direction == "inbound":
            if self.trial and call.from_number not in self.verified:
                return
            if call.url.startswith("https://demo.twilio.com/"):
                call.heard.append(DEMO)
                return
            call.status = "ringing"
        else:
            call.person.answering()
            self._report(call, "in-progress", "answered")
        if self.trial:
            call.heard.append(NOTICE)
            if not call.person.presses:
                return
        try:
            self._carry_out(call)
        except ApplicationError as error:
            call.heard.append(APPLICATION_ERROR)
            self._alert(call, error.code, str(error))

    def _carry_out(self, call: Call) -> None:
        """Carry out documents until one ends the call, or the person hangs up."""
        lines = iter(call.person.lines)
        document = self._document(call, call.method, call.url, {})
        call.status = "in-progress"
        for _ in range(MOST_DOCUMENTS):
            following = None
            for verb in document:
                match verb.tag:
                    case "Say" | "Play":
                        call.heard.append(verb.text or "")
                    case "Hangup" | "Reject":
                        return
                    case "Redirect":
                        following = (verb.get("method", "POST"), verb.text or "", {})
                    case "Dial":
                        dialed = {"DialCallStatus": "completed", "DialCallSid": f"CA{secrets.token_hex(16)}"}
                        following = (verb.get("method", "POST"), verb.get("action", ""), dialed)
                    case "Gather":
                        call.heard += [inner.text or "" for inner in verb]
                        said = next(lines, None)
                        if said is None:
                            return
                        spoken = {"SpeechResult": said, "Confidence": "0.9", "Language": verb.get("language", "en-US")}
                        if said or verb.get("actionOnEmptyResult") == "true":
                            following = (verb.get("method", "POST"), verb.get("action", ""), spoken if said else {})
                if following is not None:
                    break
            if following is None or call.status == "completed":
                return
            document = self._document(call, *following)
        raise ApplicationError(11210, "The call asked for documents without end.")

    def _document(self, call: Call, method: str, url: str, fields: Mapping[str, str]) -> ET.Element:
        answer = self._ask(call, method, url, {**self._fields(call), **fields})
        if not 200 <= answer.status < 300:
            raise ApplicationError(11200, f"Got HTTP {answer.status} response to {url}")
        kind = {name.lower(): value for name, value in answer.headers.items()}.get("content-type", "")
        if kind.partition(";")[0].strip() not in ("text/xml", "application/xml"):
            raise ApplicationError(12300, f"Invalid Content-Type: {kind}")
        try:
            document = ET.fromstring(answer.body)
        except ET.ParseError as error:
            raise ApplicationError(12100, f"Document parse failure: {error}") from None
        wrong = self._wrong_with(document)
        if wrong:
            raise ApplicationError(12200, f"Schema validation: {wrong}")
        return document

    def _wrong_with(self, document: ET.Element) -> list[str]:
        wrong = [] if document.tag == "Response" and not document.attrib else [f"<{document.tag}> is no document"]
        for verb in document:
            wrong += self._verb(verb, VERBS)
            for inner in verb:
                wrong += self._verb(inner, NESTED.get(verb.tag, {}))
        return wrong

    def _verb(self, verb: ET.Element, known: Mapping[str, frozenset[str]]) -> list[str]:
        if verb.tag not in known:
            return [f"<{verb.tag}> isn't allowed there"]
        wrong = [f"{name} of <{verb.tag}>" for name in verb.attrib if name not in known[verb.tag]]
        urls = [verb.get("action")] if verb.tag in ("Gather", "Dial") else []
        urls += [verb.text] if verb.tag == "Redirect" else []
        wrong += [f"{url} isn't a URL" for url in urls if not str(url).startswith(("http://", "https://"))]
        checks = {
            "method": lambda value: value in ("GET", "POST"),
            "timeout": lambda value: re.fullmatch(r"[1-9]\d{0,2}", value),
            "length": lambda value: re.fullmatch(r"[1-9]\d{0,2}", value),
            "speechTimeout": lambda value: value == "auto" or re.fullmatch(r"[1-9]\d*", value),
            "input": lambda value: value and set(value.split()) <= {"speech", "dtmf"},
            "language": LANGUAGE.fullmatch,
            "hints": lambda value: all(len(hint) <= 100 for hint in value.split(",")) and value.count(",") < 500,
            "actionOnEmptyResult": lambda value: value in ("true", "false"),
        }
        wrong += [f"{name}={value!r}" for name, value in verb.items() if name in checks and not checks[name](value)]
        if verb.get("speechTimeout") == "auto" and "speechModel" in verb.attrib:
            self.violations.append("speechTimeout auto can't be used with a speech model (13335)")
        if verb.tag == "Say" and not 0 < len(verb.text or "") <= 4096:
            wrong.append("a <Say> of no text, or of more than 4096 characters")
        return wrong

    # -- webhooks

    def _fields(self, call: Call) -> dict[str, str]:
        return {
            "AccountSid": self.account_sid,
            "ApiVersion": "2010-04-01",
            "CallSid": call.sid,
            "CallStatus": call.status,
            "Called": call.to,
            "Caller": call.from_number,
            "Direction": call.direction,
            "From": call.from_number,
            "To": call.to,
            "ToCountry": "US",
            "FromCity": "",
        }

    def _report(self, call: Call, status: str, event: str = "") -> None:
        """Change the status of a call; a callback that wants to know is requested, in order."""
        call.status = status
        if not call.status_callback or (event or status) not in call.events:
            return
        fields = self._fields(call) | {
            "CallbackSource": "call-progress-events",
            "SequenceNumber": str(call.sequence),
            "Timestamp": format_datetime(datetime.now(UTC)),
        }
        if status == "completed":
            fields |= {"CallDuration": "7", "Duration": "1"}
        call.sequence += 1
        try:
            answer = self._ask(call, "POST", call.status_callback, fields)
        except ApplicationError as error:
            self._alert(call, error.code, str(error))
            return
        if not 200 <= answer.status < 300:
            self._alert(call, 11200, f"Got HTTP {answer.status} response to {call.status_callback}")

    def _ask(self, call: Call, method: str, url: str, fields: Mapping[str, str]) -> Answer:
        """Request a webhook, signed as the official library signs.

        The fragment of its URL is neither sent nor signed: it says how often the request is repeated, at once.
        """
        url, _, fragment = url.partition("#")
        overrides = Overrides.read(fragment)
        call.asked.append(url)
        if not url.startswith(f"{self.public}/"):
            self.violations.append(f"{url} isn't under {self.public}")
        sign = RequestValidator(self.auth_token).compute_signature
        body = b""
        if method == "GET":
            url = f"{url}{'&' if '?' in url else '?'}{urlencode(fields)}"
            signature = sign(url, {})
        else:
            body = urlencode(fields).encode()
            signature = sign(url, MultiDict(fields))
        headers = {
            "X-Twilio-Signature": signature,
            "I-Twilio-Idempotency-Token": secrets.token_hex(16),
            "User-Agent": "TwilioProxy/1.1",
            "Accept": "*/*",
            **({"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"} if body else {}),
        }
        until = time.monotonic() + overrides.seconds
        for retry in range(overrides.retries + 1):
            if retry:
                self.retrying(retry)
            left = min(overrides.answer_seconds, until - time.monotonic())
            answer: Answer | None = None
            try:
                answer = self._internet.fetch(method, url, headers, body, max(0.001, left))
                failure = "" if answer.status < 400 else f"{answer.status // 100}xx"
            except OSError as error:
                failure, reason = ("rt" if isinstance(error, TimeoutError) else "ct"), str(error)
            if not failure or not overrides.repeats(failure) or time.monotonic() >= until:
                break
        if answer is None:
            raise ApplicationError(11200, reason)
        return answer

    def _alert(self, call: Call, code: int, text: str) -> None:
        self.alerts.append(
            {
                "sid": f"NO{secrets.token_hex(16)}",
                "account_sid": self.account_sid,
                "resource_sid": call.sid,
                "error_code": str(code),
                "alert_text": text,
                "log_level": "error",
                "more_info": _more(code),
                "date_created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "request_method": "POST",
                "request_url": call.asked[-1] if call.asked else call.url,
            }
        )
