"""Functions of a host's app that agents call, among the tools of its organizations."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest
from flask import Flask, current_app, has_request_context
from flask.testing import FlaskClient

from voiceapi import Run, VoiceAPI
from voiceapi.engine import events as ev
from voiceapi.engine.actions import AskModel, Extract
from voiceapi.service import Service
from voiceapi.tools.python import HostFunction, UnknownHint
from voiceapi.tools.tool import ToolError

API = "/voice/api/v1"
KEY = "test-key-0123456789"
voice = VoiceAPI()
seen: list[Any] = []
may_end = threading.Event()


@dataclass
class Booking:
    day: date
    people: int
    notes: list[str] = field(default_factory=list)


@voice.tool
def book(run: Run, day: date, people: Annotated[int, "how many come"], area: Literal["in", "out"] = "in") -> Booking:
    """Book a table."""
    seen.append((run.id, day, people, area, current_app.name, has_request_context(), threading.current_thread().name))
    if people > 20:
        raise ValueError("We have no table for so many.")
    return Booking(day, people)


@voice.tool(name="wait", timeout=0.2)
def wait_for_it() -> None:
    """Wait."""
    may_end.wait(60)


@voice.tool(organizations=["ada"])
def secret() -> str:
    """Tell what only Ada's agents may know."""
    return "42"


@voice.tool
def odd() -> object:
    """Return what isn't JSON."""
    return object()


@voice.tool
def give_up(slowly: bool) -> None:
    """Raise what ends a thread, or what this service waits with."""
    raise TimeoutError("The cellar is far away.") if slowly else SystemExit(3)


@voice.tool
def phone(to: str) -> int:
    """Call somebody else."""
    return voice.call("Agent", to).id


@voice.tool
def consult() -> str:
    """Ask another agent."""
    return voice.chat("Agent").opening


class Model:
    """Calls the functions of its script, one a turn, and then says what the last one returned."""

    def __init__(self, *script: tuple[str, dict[str, Any]]) -> None:
        self.script, self.offered, self.results = list(script), {}, []

    def reply(self, ask: AskModel) -> ev.Answer:
        self.offered = {function.name: function for function in ask.functions}
        last = ask.messages[-1] if ask.messages else {}
        if last.get("role") == "tool":
            self.results.append(last["content"])
            return ev.ModelReplied(ask.at, ask.number, "Done.")
        if self.script:
            name, arguments = self.script.pop(0)
            return ev.ModelReplied(ask.at, ask.number, "", (ev.ToolCall("c1", name, json.dumps(arguments)),))
        return ev.ModelReplied(ask.at, ask.number, "Hello.")

    def extract(self, request: Extract) -> ev.Answer:
        raise AssertionError(request)


@pytest.fixture
def host(tmp_path: Path, database_at: Callable[[Path], str]) -> Iterator[Flask]:
    app = Flask("shop")
    app.config.update(VOICEAPI_DATABASE=database_at(tmp_path / "voice.db"), VOICEAPI_API_KEY=KEY)
    voice.init_app(app, url_prefix="/voice")
    seen.clear()
    may_end.clear()
    with app.app_context():
        yield app
    may_end.set()
    app.extensions["voiceapi"].close()


@pytest.fixture
def service(host: Flask) -> Service:
    found: Service = host.extensions["voiceapi"]
    return found


@pytest.fixture
def client(host: Flask) -> FlaskClient:
    found = host.test_client()
    found.environ_base["HTTP_X_API_KEY"] = KEY
    return found


@pytest.fixture
def asked(service: Service, talk: Callable[..., Any]) -> Callable[..., Any]:
    """Has a model call a function in a chat; returns what the model read, and the run."""

    def ask(name: str, arguments: dict[str, Any], organization: str | None = None) -> Any:
        model = Model((name, arguments))
        object.__setattr__(service, "model", model)
        tools = [f"python:{each}" for each in ("book", "wait", "secret", "odd", "give_up", "phone", "consult")]
        voice.publish(talk(tool_uuids=tools), name="Agent", organization=organization)
        chat = voice.chat("Agent", organization=organization)
        chat.say("Well.")
        assert model.results, model.offered
        return json.loads(model.results[0]), chat.run, model

    return ask


def test_the_model_calls_a_function_and_reads_its_result(asked: Callable[..., Any]) -> None:
    result, run, model = asked("book", {"day": "2026-12-24", "people": "4", "other": "dropped"})
    assert result == {"day": "2026-12-24", "people": 4, "notes": []}
    assert seen == [(run.id, date(2026, 12, 24), 4, "in", "shop", False, "voiceapi-book")]
    offered = model.offered["book"]
    assert offered.description == "Book a table."
    assert offered.parameters == {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date"},
            "people": {"type": "integer", "description": "how many come"},
            "area": {"type": "string", "enum": ["in", "out"]},
        },
        "required": ["day", "people"],
    }


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("book", {"people": 4}, "The parameter 'day' is required."),
        ("book", {"day": "tomorrow", "people": 4}, "'day' must be a date such as 2026-01-31, not 'tomorrow'."),
        ("book", {"day": "2026-12-24", "people": "four"}, "'people' must be a whole number, not 'four'."),
        ("book", {"day": "2026-12-24", "people": 2, "area": "roof"}, "'area' must be one of in, out, not 'roof'."),
        ("book", {"day": "2026-12-24", "people": 21}, "The function failed: ValueError: We have no table for so many."),
        ("odd", {}, "The function failed: TypeError: "),
        ("give_up", {"slowly": False}, "The function failed: SystemExit: 3"),
        ("give_up", {"slowly": True}, "The function failed: TimeoutError: The cellar is far away."),
        ("phone", {"to": "12"}, "The function failed: InvalidNumber: "),
    ],
)
def test_what_goes_wrong_is_an_error_that_the_model_reads(
    asked: Callable[..., Any], name: str, arguments: dict[str, Any], error: str
) -> None:
    result, run, _ = asked(name, arguments)
    assert result["status"] == "error"
    assert error in result["error"]
    assert not run.is_completed


def test_after_its_time_out_a_function_goes_on_as_slow_work(
    asked: Callable[..., Any], service: Service, wait_for: Callable[..., Any]
) -> None:
    result, _, _ = asked("wait", {})
    assert result["error"] == "It took longer than 0.2 s, so it may have done its work or not."
    assert len(service.bulkhead.permit_queue.running) == 1
    may_end.set()
    wait_for(lambda: not service.bulkhead.permit_queue.running)


def test_what_a_function_does_takes_no_second_permit(asked: Callable[..., Any], service: Service) -> None:
    service.bulkhead.permit_queue.limit, service.bulkhead.wait_seconds = 1, 0.1
    result, _, _ = asked("consult", {})
    assert result == "Hello, is now a good time?"
    assert service.bulkhead.permit_queue.running == []


def test_a_function_calls_somebody(asked: Callable[..., Any]) -> None:
    result, _, _ = asked("phone", {"to": "+12025550123"})
    assert voice.run(result).to == "+12025550123"


def test_functions_of_some_organizations_are_not_there_for_others(asked: Callable[..., Any]) -> None:
    result, _, model = asked("secret", {}, "ada")
    assert (result, "secret" in model.offered) == ("42", True)
    result, _, model = asked("secret", {})
    assert result["status"] == "error"
    assert set(model.offered) >= {"book", "wait", "odd", "phone"}
    assert "secret" not in model.offered


def test_functions_are_shown_among_the_tools_and_changed_nowhere_else(client: FlaskClient) -> None:
    listed = client.get(f"{API}/tools/").get_json()
    assert [each["tool_uuid"] for each in listed] == [
        f"python:{name}" for name in ("book", "wait", "odd", "give_up", "phone", "consult")
    ]
    shown = client.get(f"{API}/tools/python:book").get_json()
    assert (shown["id"], shown["name"], shown["category"], shown["status"]) == (0, "book", "python", "active")
    assert shown["definition"]["config"]["parameters"]["required"] == ["day", "people"]
    assert client.get(f"{API}/tools/?category=python&status=active").get_json() == listed
    assert client.get(f"{API}/tools/?category=calculator").get_json() == []
    assert client.get(f"{API}/tools/?status=archived").get_json() == []
    for answer in (
        client.put(f"{API}/tools/python:book", json={"name": "Other"}),
        client.delete(f"{API}/tools/python:book"),
        client.post(f"{API}/tools/python:book/unarchive"),
    ):
        assert (answer.status_code, "change it there" in answer.text) == (409, True)
    assert client.get(f"{API}/tools/python:secret").status_code == 404


def test_lint_names_a_function_that_is_missing(client: FlaskClient, talk: Callable[..., Any]) -> None:
    found = {}
    for name in ("book", "gone"):
        body = {"workflow_definition": talk(tool_uuids=[f"python:{name}"])}
        answer = client.post(f"{API}/lint", json=body)
        assert answer.status_code == 200, answer.text
        found[name] = "python:gone" in answer.text
    assert found == {"book": False, "gone": True}


def test_a_process_without_the_function(
    service: Service, talk: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It carries on a conversation that was begun where the function is."""
    model = Model()
    object.__setattr__(service, "model", model)
    voice.publish(talk(tool_uuids=["python:book"]), name="Agent")
    chat = voice.chat("Agent")
    service.store.unstored_tools = lambda organization: ()
    model.script.append(("book", {"day": "2026-12-24", "people": 4}))
    chat.say("A table for four.")
    assert json.loads(model.results[0]) == {"status": "error", "error": 'The tool "book" is not there any more.'}
    assert "python:book isn't in this process" in caplog.text
    assert "`flask voiceapi dial` has the functions of the app" in caplog.text
    caplog.clear()
    voice.chat("Agent")
    assert "python:book isn't in this process" in caplog.text


# -- hints


def several(
    a: str,
    b: float,
    c: Optional[int],  # noqa: UP045 - as some write it
    d: list[str] | None = None,
    e: Literal[1, 2] = 1,
    f: bool = False,
    *,
    g: list[date] | None = None,
) -> None: ...


def test_arguments_are_of_the_types_of_the_hints() -> None:
    function = HostFunction.of(several, Run)
    assert function.schema["required"] == ["a", "b"]
    given = {"a": "x", "b": "1.5", "c": None, "d": ["p", "q"], "e": 2.0, "f": "yes", "g": ["2026-01-02"]}
    assert function.read(given) == {
        **{"a": "x", "b": 1.5, "c": None, "d": ["p", "q"], "e": 2, "f": True, "g": [date(2026, 1, 2)]}
    }
    assert function.read({"a": "", "b": 2}) == {"a": "", "b": 2.0, "c": None}
    for name, value, kind in (
        ("a", 1, "a text"),
        ("b", "nan", "a number"),
        ("b", True, "a number"),
        ("c", 1.5, "a whole number"),
        ("c", True, "a whole number"),
        ("c", [], "a whole number"),
        ("f", 1, "true or false"),
        ("d", "x", "a list"),
        ("g", ["2026-02-30"], "a date such as 2026-01-31"),
        ("e", 3, "one of 1, 2"),
    ):
        with pytest.raises(ToolError, match=f"must be {kind}"):
            function.read({"a": "", "b": 2, name: value})


def test_hints_may_be_there_for_the_type_checker_only() -> None:
    """Linters move such imports under `if TYPE_CHECKING:`; what the function returns doesn't matter here."""
    module: dict[str, Any] = {"__name__": "shop"}
    source = """
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from datetime import date, time
    from typing import Annotated, Literal
    from voiceapi import Run
    from shop.models import Booking
def book(run: Run, day: date | None, area: Annotated[Literal["in", "out"], "where"]) -> Booking: ...
def at(hour: time) -> None: ...
"""
    exec(source, module)
    function = HostFunction.of(module["book"], Run)
    assert function.takes_run == "run"
    assert function.schema["properties"] == {
        "day": {"type": "string", "format": "date"},
        "area": {"type": "string", "enum": ["in", "out"], "description": "where"},
    }
    with pytest.raises(UnknownHint, match="'time' isn't defined in its module when the app runs"):
        HostFunction.of(module["at"], Run)


def test_functions_that_nothing_would_run_are_refused() -> None:
    extension = VoiceAPI()

    async def later() -> str:
        return ""

    def one_by_one() -> Iterator[str]:
        yield ""

    class Shop:
        def book(self, day: date) -> None: ...

        @staticmethod
        def close(day: date) -> None: ...

    for function in (later, one_by_one):
        with pytest.raises(TypeError, match="must be a plain function"):
            extension.tool(function)
        with pytest.raises(TypeError, match="must be a plain function"):
            extension.on_run_completed(function)  # type: ignore[type-var]
    with pytest.raises(UnknownHint, match="The parameter 'self' of book has no type hint"):
        extension.tool(Shop.book)
    with pytest.raises(TypeError, match="isn't a function"):
        extension.tool(partial(Shop.close))
    extension.tool(Shop.close)
    extension.tool(Shop().book)
    with pytest.raises(TypeError, match="organizations is a list of names"):
        extension.tool(organizations="ada")(several)


def test_a_module_that_is_loaded_again_has_the_same_tools() -> None:
    extension = VoiceAPI()
    source = "def book() -> str: ..."
    first: dict[str, Any] = {"__name__": "shop"}
    again, other = dict(first), {"__name__": "garage"}
    for module in (first, again, other):
        exec(source, module)
    extension.tool(first["book"])
    extension.tool(again["book"])
    with pytest.raises(ValueError, match=r"There is a tool 'book' already: shop\.book"):
        extension.tool(other["book"])


def test_what_cannot_be_a_tool_is_refused_when_the_app_starts() -> None:
    extension = VoiceAPI()

    def untyped(a) -> None: ...  # type: ignore[no-untyped-def]
    def typed(a: datetime) -> None: ...
    def nested(a: list[list[str]]) -> None: ...
    def mixed(a: Literal["x", 1]) -> None: ...
    def either(a: int | str) -> None: ...
    def bare(a: list) -> None: ...  # type: ignore[type-arg]
    def many(*a: str) -> None: ...
    def positional(a: str, /) -> None: ...

    for function in (untyped, typed, nested, mixed, either, bare, many, positional):
        with pytest.raises(UnknownHint, match=f"The parameter 'a' of {function.__name__} (has|can't)"):
            extension.tool(function)
    with pytest.raises(ValueError, match="isn't the name of a tool"):
        extension.tool(name="book a table")(several)
    with pytest.raises(ValueError, match="at most 60 seconds"):
        extension.tool(timeout=61)(several)
    extension.tool(several)
    extension.tool(several)
    with pytest.raises(ValueError, match="There is a tool 'several' already"):
        extension.tool(name="several")(wait_for_it)
