"""Tools and fetches in whole conversations, with a test server for the model and for the author's server."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from voiceapi import create_app
from voiceapi.cli.base import script_info
from voiceapi.cli.main import group
from voiceapi.organizations import api_keys
from voiceapi.service import Service
from voiceapi.store import knowledge
from voiceapi.store.runs import Turn
from voiceapi.tools import catalog
from voiceapi.tools.knowledge import documents

KEY = "test-key-0123456789"
API = "/api/v1"


@dataclass
class Stand:
    """A test server: under /v1 a model that answers from `script`, elsewhere the author's server."""

    url: str
    script: list[Any] = field(default_factory=list)
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    model: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def stand() -> Iterator[Stand]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(raw) if raw else None
            if self.path == "/v1/chat/completions":
                found.model.append(body)
                status, answer = 200, {"choices": [{"message": message(found.script.pop(0))}]}
            else:
                found.asked.append((self.command, self.path, body))
                found.headers.append(dict(self.headers))
                status, answer = found.answers.get(self.path.partition("?")[0], (404, {}))
            self.send_response(status)
            for name, value in ({"Location": "/elsewhere"} if status == 302 else {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Stand(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def message(step: Any) -> dict[str, Any]:
    """An answer of the model: text, or function calls with their arguments."""
    if isinstance(step, str):
        return {"role": "assistant", "content": step}
    calls = [
        {"id": f"c{index}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for index, (name, arguments) in enumerate(step.items())
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


@pytest.fixture
def settings(stand: Stand) -> dict[str, Any]:
    return {"VOICEAPI_LLM_URL": f"{stand.url}/v1", "VOICEAPI_ALLOW_PRIVATE_URLS": True}


@pytest.fixture
def make(client: FlaskClient) -> Callable[..., str]:
    """Makes a tool; returns its uuid."""

    def tool(name: str, type: str, **config: Any) -> str:
        definition = {"type": type, **({"config": config} if type != "calculator" else {})}
        answer = client.post(f"{API}/tools/", json={"name": name, "definition": definition})
        assert answer.status_code == 200, answer.text
        return str(answer.get_json()["tool_uuid"])

    return tool


@pytest.fixture
def credential(client: FlaskClient) -> str:
    body = {"name": "Mine", "credential_type": "basic_auth", "credential_data": {"username": "u", "password": "p"}}
    return str(client.post(f"{API}/credentials/", json=body).get_json()["uuid"])


@pytest.fixture
def look_up(make: Callable[..., str], stand: Stand, credential: str) -> str:
    city = {"name": "city", "type": "string", "description": "The city."}
    stand.answers["/weather/Rome"] = (200, {"sky": "clear"})
    return make(
        "Weather",
        "http_api",
        method="GET",
        url=f"{stand.url}/weather/{{{{city}}}}",
        credential_uuid=credential,
        parameters=[city],
        customMessage="I look it up, {{name}}.",
    )


@pytest.fixture
def chat(client: FlaskClient, workflow: Callable[..., Any]) -> Callable[..., Any]:
    """Says lines to an agent with these tools by text; returns the turns and the run."""

    def talk(*uuids: str, lines: tuple[str, ...] = ("Hello.",), context: Any = None, **start: Any) -> Any:
        made = workflow(tool_uuids=list(uuids), **start)
        sessions = f"{API}/workflow/{made['id']}/text-chat/sessions"
        body = {"initial_context": {"name": "Ann", **(context or {})}}
        session = client.post(sessions, json=body).get_json()
        run = session["workflow_run_id"]
        for line in lines:
            answer = client.post(f"{sessions}/{run}/messages", json={"text": line})
            assert answer.status_code == 200, answer.text
            session = answer.get_json()
        return session["session_data"]["turns"], client.get(f"{API}/workflow/{made['id']}/runs/{run}").get_json()

    return talk


@pytest.fixture
def call(client: FlaskClient, workflow: Callable[..., Any], finished: Callable[..., Any]) -> Callable[..., Any]:
    """Calls somebody who says these lines, through the simulator; returns the finished run."""

    def dial(*uuids: str, lines: tuple[str, ...] = ("Hello.",), context: Any = (), **start: Any) -> Any:
        made = workflow(path="agent", tool_uuids=list(uuids), **start)
        known = {"simulated_callee": list(lines), "name": "Ann", **dict(context)}
        body = {"phone_number": "+12025550123", "initial_context": known}
        answer = client.post(f"{API}/public/agent/agent", json=body)
        assert answer.status_code == 200, answer.text
        return finished(made["id"], answer.get_json()["workflow_run_id"])

    return dial


def told(stand: Stand, turn: int = -1) -> list[Any]:
    """The results of tools that the model had seen when it was asked."""
    return [json.loads(each["content"]) for each in stand.model[turn]["messages"] if each["role"] == "tool"]


def spoken(run: Any) -> list[str]:
    events = run["logs"]["realtime_feedback_events"]
    return [event["payload"]["text"] for event in events if event["type"] == "rtf-bot-text"]


def errors(run: Any) -> list[str]:
    events = run["logs"]["realtime_feedback_events"]
    return [event["payload"]["error"] for event in events if event["type"] == "rtf-pipeline-error"]


WEATHER = {"status": "success", "status_code": 200, "data": {"sky": "clear"}}


def test_a_chat_uses_tools(chat: Any, make: Any, stand: Stand, look_up: str) -> None:
    stand.script += [{"weather": {"city": "Rome"}, "safe_calculator": {"expression": "2 ** 5"}}, "It is clear."]
    turns, run = chat(look_up, make("Sums", "calculator"))
    assert turns[-1]["assistant_message"]["text"] == "I look it up, Ann.\n\nIt is clear."
    assert stand.asked == [("GET", "/weather/Rome?city=Rome", None)]
    assert stand.headers[0]["Authorization"] == f"Basic {base64.b64encode(b'u:p').decode()}"
    offered = [tool["function"]["name"] for tool in stand.model[0]["tools"]]
    assert offered == ["weather", "safe_calculator", "yes", "no"]
    assert told(stand) == [WEATHER, {"expression": "2 ** 5", "result": 32}]
    assert [event["type"] for event in turns[-1]["events"]].count("tool_call_result") == 2
    assert run["is_completed"] is False


def test_a_phone_call_uses_tools_and_is_ended_by_one(call: Any, make: Any, stand: Stand, look_up: str) -> None:
    end = make("Hang up", "end_call", messageType="custom", customMessage="Goodbye, {{name}}.", endCallReason=True)
    stand.script += [{"weather": {"city": "Rome"}}, "It is clear.", {"hang_up": {"reason": "had_enough"}}]
    run = call(look_up, end, lines=("Weather in Rome?", "Enough."))
    greeting = "Hello, is now a good time?"
    assert spoken(run) == [greeting, "I look it up, Ann.", "It is clear.", "Goodbye, Ann."]
    assert stand.asked == [("GET", "/weather/Rome?city=Rome", None)]
    gathered = run["gathered_context"]
    assert gathered["call_disposition"] == gathered["mapped_call_disposition"] == "had_enough"
    assert gathered["call_tags"] == ["end_call_tool", "user_speech", "had_enough"]


HUMAN = {"destination": "+12025550150", "messageType": "custom", "customMessage": "Hold on."}


def test_a_chat_can_not_be_transferred_and_goes_on(chat: Any, make: Any, stand: Stand) -> None:
    stand.script += [{"human": {}}, "Sorry, nobody is there.", {"yes": {}}, "Bye."]
    run = chat(make("Human", "transfer_call", **HUMAN), lines=("A human!", "Yes."))[1]
    assert "Hold on." not in spoken(run)
    assert [result["reason"] for result in told(stand, 1)] == ["textchat_not_supported"]
    assert run["gathered_context"]["call_disposition"] == "user_qualified"


@pytest.mark.parametrize(("outcome", "reason"), [("busy", "provider_error"), ("no-answer", "timeout")])
def test_after_a_failed_transfer_the_conversation_goes_on(
    call: Any, make: Any, stand: Stand, outcome: str, reason: str
) -> None:
    stand.script += [{"human": {}}, "Sorry, nobody is there.", {"yes": {}}, "Bye."]
    tool = make("Human", "transfer_call", **HUMAN)
    run = call(tool, lines=("A human!", "Yes."), context={"simulated_transfer": outcome})
    assert spoken(run)[1:3] == ["Hold on.", "Sorry, nobody is there."]
    assert [result["reason"] for result in told(stand, 1)] == [reason]
    assert run["gathered_context"]["call_disposition"] == "user_qualified"


def test_a_caller_is_transferred(call: Any, make: Any, stand: Stand) -> None:
    stand.script += [{"human": {}}]
    run = call(make("Human", "transfer_call", **HUMAN), lines=("A human!", "Yes."))
    assert spoken(run)[1:] == ["Hold on."]
    assert run["gathered_context"]["call_disposition"] == "transfer_call"


def test_a_destination_is_read_as_the_calls_configuration_reads_numbers(
    client: FlaskClient, call: Any, make: Any, stand: Stand, db: None
) -> None:
    config = {"config": {"provider": "simulator", "country": "US"}}
    assert client.put(f"{API}/organizations/telephony-configs/1", json=config).status_code == 200
    client.post(f"{API}/do-not-call", json={"phone_numbers": ["+12025550150"]})  # it holds for who is called, only
    stand.script += [{"human": {}}]
    run = call(make("Human", "transfer_call", **{**HUMAN, "destination": "202 555-0150\n"}), lines=("A human!",))
    assert run["gathered_context"]["call_disposition"] == "transfer_call"
    transfers = [action for turn in Turn.select() for action in turn.actions if action.get("destination")]
    assert [action["destination"] for action in transfers] == ["+12025550150"]


@pytest.fixture
def prefer(client: FlaskClient) -> Callable[..., None]:
    def put(**preferences: Any) -> None:
        answer = client.put(f"{API}/organizations/preferences", json=preferences)
        assert answer.status_code == 200, answer.text

    return put


@pytest.mark.parametrize(
    ("destination", "limits", "reason"),
    [
        ("+18765550123", {"allowed_countries": ["US"]}, "country_not_allowed"),
        ("{{desk}}", {"allowed_countries": ["US"]}, "country_not_allowed"),
        ("2025550150", {"allowed_countries": ["US"]}, "invalid_destination"),
        ("sip:desk@example.org", {"allowed_countries": ["US"]}, "country_not_allowed"),
        ("+12025550150", {"max_calls_a_day": 1}, "call_limit_reached"),
    ],
)
def test_a_transfer_beyond_the_limits_of_calls_is_refused_and_the_agent_goes_on(
    call: Any, make: Any, stand: Stand, prefer: Any, destination: str, limits: Any, reason: str
) -> None:
    prefer(**limits)
    stand.script += [{"human": {}}, "Sorry, I can't.", {"yes": {}}, "Bye."]
    tool = make("Human", "transfer_call", **{**HUMAN, "destination": destination})
    run = call(tool, lines=("A human!", "Yes."), context={"desk": "+442079460018"})
    assert spoken(run)[1:2] == ["Sorry, I can't."]
    [result] = told(stand, 1)
    assert (result["status"], result["reason"]) == ("transfer_failed", reason)
    assert reason in json.dumps(run["logs"])
    assert run["gathered_context"]["call_disposition"] == "user_qualified"


def test_a_transfer_counts_as_a_call(client: FlaskClient, call: Any, make: Any, stand: Stand, prefer: Any) -> None:
    prefer(max_calls_a_day=2)
    stand.script += [{"human": {}}]
    run = call(make("Human", "transfer_call", **HUMAN), lines=("A human!", "Yes."))
    assert run["gathered_context"]["call_disposition"] == "transfer_call"
    refused = client.post(f"{API}/public/agent/agent", json={"phone_number": "+12025550123"})
    assert refused.status_code == 429


def test_a_transfer_is_counted_where_it_is_made(
    call: Any, make: Any, stand: Stand, prefer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last call may be taken between the tool's answer and the transfer."""
    monkeypatch.setattr(catalog, "require_quota", lambda organization: None)
    prefer(max_calls_a_day=1)
    stand.script += [{"human": {}}, "Sorry, I can't.", {"yes": {}}, "Bye."]
    run = call(make("Human", "transfer_call", **HUMAN), lines=("A human!", "Yes."))
    assert spoken(run)[1:3] == ["Hold on.", "Sorry, I can't."]
    assert [result["reason"] for result in told(stand, 1)] == ["call_limit_reached"]


def test_a_tool_that_is_archived_in_mid_call_is_not_called(
    client: FlaskClient, chat: Any, stand: Stand, look_up: str
) -> None:
    class Script(list[Any]):
        def pop(self, index: Any = -1) -> Any:
            client.delete(f"{API}/tools/{look_up}")
            return super().pop(index)

    stand.script = Script([{"weather": {"city": "Rome"}}, "I can't."])
    chat(look_up)
    assert stand.asked == []
    assert told(stand) == [{"status": "error", "error": 'The tool "weather" is not there any more.'}]


def test_tools_that_are_not_active_or_can_not_be_run_are_not_offered(
    client: FlaskClient, chat: Any, make: Any, stand: Stand, look_up: str
) -> None:
    client.delete(f"{API}/tools/{look_up}")
    stand.script += ["Hello."]
    chat(look_up, make("Remote", "mcp", url=stand.url), "gone")
    assert [tool["function"]["name"] for tool in stand.model[0]["tools"]] == ["yes", "no"]


def test_tools_are_offered_in_a_rehearsal_of_a_stored_workflow(
    settings: Any, service: Service, workflow: Any, stand: Stand, look_up: str
) -> None:
    made = workflow(tool_uuids=[look_up])
    stand.script += [{"weather": {"city": "Rome"}}, "It is clear."]
    settings |= {"VOICEAPI_DATABASE": service.store.location}
    arguments = ["chat", str(made["id"]), "--set", "name=Ann"]
    result = CliRunner(env={name: str(value) for name, value in settings.items()}).invoke(
        group, arguments, input="Weather in Rome?\n", prog_name="voiceapi", obj=script_info(create_app)
    )
    assert "agent: I look it up, Ann.\nagent: It is clear." in result.output, result.output
    assert stand.asked == [("GET", "/weather/Rome?city=Rome", None)]


def test_a_tool_is_tried_out(client: FlaskClient, stand: Stand, look_up: str) -> None:
    url = f"{API}/tools/{look_up}/test"
    tried = client.post(url, json={"llm_params": {"city": "Rome"}}).get_json()
    assert {**tried, "duration_ms": 0} == {
        **WEATHER,
        "error": None,
        "hint": None,
        "request_method": "GET",
        "request_url": f"{stand.url}/weather/Rome",
        "request_headers": {"Authorization": "********"},
        "request_body": None,
        "request_params": {"city": "Rome"},
        "duration_ms": 0,
    }
    tried = client.post(url, json={"llm_params": {"city": "Oslo"}}).get_json()
    assert (tried["status"], tried["status_code"], tried["error"], tried["data"]) == (
        "error",
        404,
        "The server answered 404.",
        {},
    )
    assert tried["hint"] == "The server has nothing at this address: check the URL."
    tried = client.post(url, json={}).get_json()
    assert (tried["status"], tried["error"]) == ("error", "The parameter 'city' is required.")
    assert (tried["request_url"], tried["request_headers"]) == (f"{stand.url}/weather/{{{{city}}}}", None)
    assert len(stand.asked) == 2


def test_presets_are_given_in_a_test_call(client: FlaskClient, make: Any, stand: Stand) -> None:
    presets = [
        {"name": name, "type": "string", "value_template": template}
        for name, template in (("tenant", "{{tenant}}"), ("source", "voice"))
    ]
    stand.answers["/order"] = (200, {})
    tool = make("Order", "http_api", method="POST", url=f"{stand.url}/order", preset_parameters=presets)
    tried = client.post(f"{API}/tools/{tool}/test", json={"preset_params": {"tenant": 7}}).get_json()
    assert tried["request_body"] == {"tenant": 7, "source": "voice"}
    assert stand.asked == [("POST", "/order", {"tenant": 7, "source": "voice"})]


# -- the lookup in documents


@pytest.fixture
def put(client: FlaskClient) -> Callable[..., str]:
    """Uploads a document; returns its uuid."""

    def upload(text: str, name: str = "hours.md", **form: str) -> str:
        data = {"file": (io.BytesIO(text.encode()), name), **form}
        answer = client.post(f"{API}/knowledge-base/documents", data=data)
        assert answer.status_code == 200, answer.text
        return str(answer.get_json()["document_uuid"])

    return upload


LOOKUP = "retrieve_from_knowledge_base"


@pytest.mark.parametrize("by_phone", [False, True])
def test_something_is_looked_up_in_the_documents_of_the_node(
    call: Any, chat: Any, make: Any, put: Any, stand: Stand, by_phone: bool
) -> None:
    uuids = [put("We open at nine."), put("# Terms\nOpen all year.", "terms.md", retrieval_mode="full_document")]
    put("We open at ten.", "another agent's.md")
    stand.script += [{LOOKUP: {"query": "When do you open?"}}, "At nine."]
    tool = make("Sums", "calculator")
    run = (call if by_phone else lambda *args, **data: chat(*args, **data)[1])(tool, document_uuids=uuids)
    offered = [each["function"] for each in stand.model[0]["tools"]]
    assert [each["name"] for each in offered] == [LOOKUP, "safe_calculator", "yes", "no"]
    assert offered[0]["description"] == "Look something up in the documents of this agent: hours.md, terms.md."
    assert offered[0]["parameters"]["required"] == ["query"]
    [result] = told(stand, 1)
    assert (result["query"], result["total_results"]) == ("When do you open?", 2)
    found = sorted((chunk["filename"], chunk["text"], chunk["chunk_index"]) for chunk in result["chunks"])
    assert found == [("hours.md", "We open at nine.", 0), ("terms.md", "# Terms\nOpen all year.", 0)]
    assert spoken(run)[1] == "At nine."


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "The query must be a text that says what to look for."),
        ({"query": [1]}, "The query must be a text that says what to look for."),
        ({"query": "open"}, "The documents could not be searched: OSError."),
    ],
)
def test_a_lookup_that_fails_gives_the_model_an_error(
    chat: Any, put: Any, stand: Stand, monkeypatch: pytest.MonkeyPatch, arguments: Any, error: str
) -> None:
    def fail(*_: Any) -> Any:
        raise OSError

    monkeypatch.setattr(knowledge, "search", fail)
    stand.script += [{LOOKUP: arguments}, "I don't know."]
    chat(document_uuids=[put("We open at nine.")])
    query = "open" if arguments.get("query") == "open" else ""
    assert told(stand) == [{"error": error, "chunks": [], "query": query, "total_results": 0}]


def test_documents_of_others_and_removed_ones_are_not_found(
    client: FlaskClient, app: Any, chat: Any, put: Any, stand: Stand
) -> None:
    service = app.extensions["voiceapi"]
    with service.store.session():
        strangers = api_keys.get_or_create_organization(service, "strangers").id
        theirs = documents.upload(service, strangers, "theirs.md", b"We open at ten.", "chunked", {})
    gone = put("We open at eleven.")
    client.delete(f"{API}/knowledge-base/documents/{gone}")
    stand.script += [{LOOKUP: {"query": "open"}}, "I don't know."]
    chat(document_uuids=[theirs.document_uuid, gone])
    assert stand.model[0]["tools"][0]["function"]["description"] == "Look something up in the documents of this agent."
    assert told(stand) == [{"chunks": [], "query": "open", "total_results": 0}]


def test_validate_names_documents_that_are_not_searched(client: FlaskClient, workflow: Any, put: Any) -> None:
    made = workflow(document_uuids=[put("We open at nine."), put(" ", "blank.txt"), "gone"])
    answer = client.post(f"{API}/workflow/{made['id']}/validate").get_json()
    assert [(each["field"], each["message"]) for each in answer["warnings"]] == [
        (
            "data.document_uuids.1",
            'The document "blank.txt" is not searched, since it could not be read: The file holds no text.',
        ),
        ("data.document_uuids.2", 'There is no document "gone"; this node goes without it.'),
    ]


# -- the fetch before the call


def test_context_is_fetched_before_a_call(call: Any, stand: Stand, credential: str) -> None:
    found = {"initial_context": {"name": "Zoe", "greeting_override": {"type": "text", "text": "Hi {{name}}."}}}
    found["initial_context"] |= {"provider": "mine", "runtime_configuration": 5}
    stand.answers["/who"] = (200, {"call_inbound": found})
    stand.script += [{"yes": {}}, "Bye."]
    run = call(
        pre_call_fetch_mode="outbound", pre_call_fetch_url=f"{stand.url}/who", pre_call_fetch_credential_uuid=credential
    )
    numbers = {"from_number": "+12025550199", "to_number": "+12025550123"}
    [(method, path, body)] = stand.asked
    assert (method, path) == ("POST", "/who")
    assert body == {"event": "call_inbound", "call_inbound": {"agent_id": run["workflow_id"], **numbers}}
    assert stand.headers[0]["Authorization"].startswith("Basic ")
    assert spoken(run)[0] == "Hi Zoe."
    assert run["initial_context"]["name"] == "Zoe"
    assert run["initial_context"]["provider"] == "simulator"
    assert run["initial_context"]["runtime_configuration"]["llm_provider"] == "openai-compatible"


@pytest.mark.parametrize(
    ("status", "answer", "name", "error"),
    [
        (200, {"initial_context": {"name": "Zoe"}}, "Zoe", None),
        (200, {"dynamic_variables": {"name": "Zoe"}}, "Zoe", None),
        (200, {"initial_context": 5, "dynamic_variables": {"name": "Zoe"}}, "Zoe", None),
        (200, {"call_inbound": 5, "initial_context": {"name": "Zoe"}}, "Zoe", None),
        (200, {"initial_context": [1]}, "Ann", None),
        (200, [], "Ann", "the answer is not a JSON object."),
        (302, {"initial_context": {"name": "Zoe"}}, "Ann", "the status was 302."),
        (500, {"initial_context": {"name": "Zoe"}}, "Ann", "the status was 500."),
    ],
)
def test_results_of_a_fetch(chat: Any, stand: Stand, status: int, answer: Any, name: str, error: str | None) -> None:
    stand.answers["/who"] = (status, answer)
    _, run = chat(
        lines=(),
        pre_call_fetch_mode="always",
        pre_call_fetch_url=f"{stand.url}/who",
        pre_call_fetch_credential_uuid="gone",
        greeting="Hi {{name}}.",
    )
    assert spoken(run) == [f"Hi {name}."]
    assert errors(run) == ([f"The fetch before the call failed: {error}"] if error else [])
    assert stand.asked[0][2]["call_inbound"] == {"agent_id": run["workflow_id"], "from_number": "", "to_number": ""}
    assert len(stand.asked) == 1


def test_a_fetch_whose_server_is_gone_is_on_the_run_and_the_call_goes_on(chat: Any, stand: Stand) -> None:
    _, run = chat(lines=(), pre_call_fetch_mode="always", pre_call_fetch_url="http://127.0.0.1:9/who")
    assert spoken(run) == ["Hello, is now a good time?"]
    assert errors(run) == [
        "The fetch before the call failed: http://127.0.0.1:9 could not be reached, or its answer broke off."
    ]
