"""Fills an organization with a record of every kind, through the API, so that every page has something to show."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asking import Answering, Api, listening

EXAMPLES = Path(__file__).parents[2] / "examples"
Text = Callable[[str], str]
PHRASES = (
    *("apology", "failure_goodbye", "service_error", "wait", "nobody_available", "lines_busy", "not_understood"),
    *("yes_or_no", "you_can_say", "or", "not_understood_goodbye", "person_unavailable", "person_goodbye"),
    *("still_there", "silence_goodbye", "do_not_call_goodbye", "still_waiting", "long_wait", "end_keys"),
    "answered_too_late",
)
# What the simulator does with these numbers differs; the names are the contacts'.
CONTACTS = (
    ("+12025550171", "Ada"),
    ("+12025550101", "Grace"),
    ("+12025550102", "Alan"),
    ("+12025550104", "Barbara"),
    ("+12025550105", "Edsger"),
    ("+12025550172", "Frances"),
    ("12", "Niklaus"),
)


@contextmanager
def receiver() -> Iterator[str]:
    """The URL of a server that takes webhooks and tools' requests; below /broken it answers with 500."""

    class Handler(Answering):
        def reply(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.dumps({"path": self.path, "order": "on its way"}).encode()
            self.give(body, status=500 if self.path.startswith("/broken") else 200)

    with listening(Handler) as origin:
        yield origin


def example(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


def appointment(api: Api) -> int:
    """The example that agrees on an appointment, without the trigger's path, which another agent may have."""
    body = example("appointment")
    del body["workflow_definition"]["nodes"][0]["data"]["trigger_path"]
    return int(api.post("/workflow/create/definition", body)["id"])


def chat(api: Api, agent: int, *lines: str) -> int:
    """A text chat in which these lines are said; returns the id of its run."""
    chats = f"/workflow/{agent}/text-chat/sessions"
    run: int = api.post(chats, {})["workflow_run_id"]
    for line in lines:
        api.post(f"{chats}/{run}/messages", {"text": line})
    return run


def populate(api: Api, url: str, text: Text = str) -> dict[str, str]:
    """Fill the organization; `url` is that of a `receiver`, and `text` makes each text from an ordinary one.

    :returns: for each pattern of the console's addresses an address that shows something.
    """
    credential = _integrations(api, url, text)
    agent = _agents(api, url, text, credential)
    run, chat = _runs(api, agent, text)
    case = _cases(api, agent, text)
    campaign, contact = _campaigns(api, agent, text)
    config = _carriers(api, agent, text)
    tool = api.get("/tools/")[0]["tool_uuid"]
    api.post("/do-not-call", {"phone_numbers": ["+12025550188", "+442071838750"], "reason": text("Asked by letter.")})
    api.post("/user/api-keys", {"name": text("Reporting")})
    archived = api.post("/user/api-keys", {"name": text("Old laptop")})
    api.ask("DELETE", f"/user/api-keys/{archived['id']}")
    api.put("/organizations/preferences", {"timezone": "Europe/Amsterdam", "allowed_countries": ["US", "GB", "NL"]})
    return {
        "/agents/:": f"/agents/{agent}",
        "/agents/:/versions": f"/agents/{agent}/versions",
        "/agents/:/talk": f"/agents/{agent}/talk",
        "/agents/:/tests": f"/agents/{agent}/tests",
        "/agents/:/tests/:": f"/agents/{agent}/tests/{case}",
        "a new case": f"/agents/{agent}/tests/new",
        "/agents/:/replay": f"/agents/{agent}/replay?last=20",
        "/agents/:/callers": f"/agents/{agent}/callers",
        "/agents/:/insights": f"/agents/{agent}/insights",
        "/agents/:/runs/:": f"/agents/{agent}/runs/{run}",
        "/campaigns/:": f"/campaigns/{campaign}",
        "/campaigns/:/contacts/:": f"/campaigns/{campaign}/contacts/{contact}",
        "/carriers/:": f"/carriers/{config}",
        "/tools/:": f"/tools/{tool}",
        "a text chat": f"/agents/{agent}/runs/{chat}",
    }


def _integrations(api: Api, url: str, text: Text) -> str:
    """Credentials, tools and documents."""
    secret = {"header_name": "X-Shop-Key", "api_key": "no-real-secret-0123"}
    credential = {
        "name": text("Shop"),
        "description": text("The shop's own key"),
        "credential_type": "api_key",
        "credential_data": secret,
    }
    uuid: str = api.post("/credentials/", credential)["uuid"]
    config = {
        "method": "POST",
        "url": f"{url}/orders",
        "headers": {"X-Source": text("phone")},
        "credential_uuid": uuid,
        "parameters": [
            {"name": "order_no", "type": "string", "description": text("The order's number."), "required": True}
        ],
        "preset_parameters": [
            {"name": "caller", "type": "string", "value_template": text("{{caller_number}}"), "required": False}
        ],
        "customMessage": text("One moment, I look it up."),
        "body_template": {"order": "{{order_no}}", "via": text("phone")},
    }
    tools = [
        ("Look up an order", "What has become of an order.", {"type": "http_api", "config": config}),
        ("Sums", "Adds up prices.", {"type": "calculator"}),
        (
            "Hang up",
            "Ends the call.",
            {
                "type": "end_call",
                "config": {
                    "messageType": "custom",
                    "customMessage": text("Goodbye."),
                    "endCallReason": True,
                    "endCallReasonDescription": text("Why the call ends."),
                },
            },
        ),
        (
            "To a person",
            "Transfers the call.",
            {
                "type": "transfer_call",
                "config": {
                    "destination_source": "dynamic",
                    "resolver": {"url": f"{url}/who", "wait_message": text("I look for somebody.")},
                },
            },
        ),
    ]
    for name, description, definition in tools:
        body = {
            "name": text(name)[:255],
            "description": text(description),
            "definition": definition,
            "icon": text("globe")[:50],
        }
        api.post("/tools/", body)
    content = text("Opening hours: nine to five, Monday to Friday.\n\nReturns are free for thirty days.")
    for name in ("opening-hours.md", "returns.txt"):
        files = {"file": (text(Path(name).stem).replace("/", "") + Path(name).suffix, content.encode(), "text/plain")}
        api.ask(
            "POST", "/knowledge-base/documents", files=files, data={"custom_metadata": json.dumps({"by": text("me")})}
        )
    return uuid


def _agents(api: Api, url: str, text: Text, credential: str) -> int:
    """Agents of several kinds; returns the one that the other records are about."""
    body = example("appointment")
    definition = _worded(body["workflow_definition"], text)
    hook = {"http_method": "POST", "payload_template": {"run": "{{workflow_run_id}}", "note": text("From us")}}
    for id, name, path in (("crm", "To the CRM", "calls"), ("mail", "To the mailer", "broken")):
        data = {"name": text(name), "endpoint_url": f"{url}/{path}", "credential_uuid": credential, **hook}
        definition["nodes"].append({"id": id, "type": "webhook", "position": {"x": 0, "y": 320}, "data": data})
    agent: int = api.post(
        "/workflow/create/definition", {"name": text(body["name"]), "workflow_definition": definition}
    )["id"]
    phrases = {name: text("Pardon").replace("{", "(") for name in PHRASES}
    configurations = {"phrases": phrases, "dictionary": text("Ada, Grace"), "speech_hints": [text("Ada")]}
    variables = {"first_name": text("Ada")}
    api.put(f"/workflow/{agent}", {"workflow_configurations": configurations, "template_context_variables": variables})
    api.post(f"/workflow/{agent}/publish")
    draft = copy.deepcopy(definition)
    draft["nodes"][2]["data"]["prompt"] = text("How nice. How many people will come with you?")
    api.put(f"/workflow/{agent}", {"workflow_definition": draft})
    for name in ("survey", "menu"):
        body = example(name)
        body["workflow_definition"] = _worded(body["workflow_definition"], text)
        api.post("/workflow/create/definition", {**body, "name": text(body["name"])})
    template = {
        "call_type": "inbound",
        "use_case": text("a bakery"),
        "activity_description": text("take orders of bread"),
    }
    archived = api.post("/workflow/create/template", template)["id"]
    api.put(f"/workflow/{archived}/status", {"status": "archived"})
    return agent


def _cases(api: Api, agent: int, text: Text) -> int:
    """Conversation cases, one of them with every kind of member; returns that."""
    everything = {
        "name": text("They come"),
        "model": "scripted",
        "context": {"first_name": text("Ada"), "companions": 2},
        "at": "2026-03-02T09:00:00+01:00",
        "tools": [{"tool": text("find"), "with": {"day": text("monday")}, "returns": text("ten"), "optional": True}],
        "opening": {"says": text("Hello"), "node": text("Remind")},
        "turns": [
            {"caller": text("Yes, I can."), "says": [text("how many"), text("people")], "never": text("Friday")},
            {"keys": "2", "edges": [text("Answered")], "matches": "See you", "after": 2.5},
            {"silence": True},
        ],
        "expect": {"disposition": text("user_qualified"), "variables": {"companions": 2}, "tags": [text("coming")]},
    }
    made: int = api.post(f"/workflow/{agent}/cases", {"case": everything})["id"]
    turns = [{"caller": text("No."), "node": text("Another day")}, {"hangs_up": True}]
    file = json.dumps({"cases": [{"name": text("They don't come")[:200], "turns": turns}]})
    (no,) = api.post(f"/workflow/{agent}/cases/file", {"file": file})["cases"]
    api.put(f"/workflow/{agent}/cases/{no['id']}", {"enabled": False})
    return made


def _worded(definition: Any, text: Text) -> Any:
    """The definition with other names, prompts, labels, and so on."""
    definition = copy.deepcopy(definition)
    for item in definition["nodes"] + definition["edges"]:
        data = item["data"]
        for name in ("name", "prompt", "scripted_text", "greeting", "label", "condition", "extraction_prompt"):
            if data.get(name):
                data[name] = text(data[name])
        for variable in data.get("extraction_variables", ()):
            variable["prompt"] = text(variable["prompt"])
    return definition


def _runs(api: Api, agent: int, text: Text) -> tuple[int, int]:
    """Calls that ended in each way, and a text chat; returns a call that was talked through, and the chat."""
    for number, name in CONTACTS[:-1]:
        context = {"first_name": text(name), "simulated_callee": [text("Yes, I can."), text("Two people.")]}
        api.post("/public/agent/appointment", {"phone_number": number, "initial_context": context})
    api.post("/telephony/simulated-call", {"workflow_id": agent, "lines": [text("Yes, I can."), text("Alone.")]})
    chats = f"/workflow/{agent}/text-chat/sessions"
    context = {"first_name": text("Kay")}
    body = {"name": text("Trying out"), "initial_context": context, "annotations": {"by": text("me")}}
    chat: int = api.post(chats, body)["workflow_run_id"]
    for line in ("Yes, I can.", "We are three."):
        api.post(f"{chats}/{chat}/messages", {"text": text(line)})
    runs = f"/workflow/{agent}/runs"
    until(lambda: all(run["is_completed"] for run in api.get(runs, params={"limit": 50})["runs"] if run["id"] != chat))
    first: int = min(run["id"] for run in api.get(runs, params={"limit": 50})["runs"])
    until(lambda: api.get(f"{runs}/{first}/deliveries"))
    return first, chat


def _campaigns(api: Api, agent: int, text: Text) -> tuple[int, int]:
    """A campaign that has ended, one that waits for its hours, and one that isn't started; returns the first."""

    def create(name: str, **options: Any) -> int:
        rows = [
            "phone_number,first_name",
            *(f'{number},"{text(each).replace(chr(34), chr(34) * 2)}"' for number, each in CONTACTS),
        ]
        files = {"file": ("contacts.csv", "\n".join(rows).encode(), "text/csv")}
        data = {
            "name": text(name)[:255],
            "workflow_id": agent,
            **{key: json.dumps(value) for key, value in options.items()},
        }
        found: int = api.ask("POST", "/campaign/create/csv", files=files, data=data)["id"]
        return found

    ended = create("Autumn", retry_config={"enabled": False})
    hour = {"day_of_week": 0, "start_time": "00:00", "end_time": "00:01"}
    waiting = create("Winter", schedule_config={"timezone": "UTC", "slots": [hour]})
    create("Spring")
    api.post(f"/campaign/{ended}/start")
    api.post(f"/campaign/{waiting}/start")
    until(lambda: api.get(f"/campaign/{ended}")["state"] == "completed", 30)
    return ended, api.get(f"/campaign/{ended}/contacts")["contacts"][0]["row"]


def _carriers(api: Api, agent: int, text: Text) -> int:
    """A configuration of a real carrier with two numbers, which isn't the default one."""
    config = {"provider": "twilio", "account_sid": f"AC{'0' * 32}", "auth_token": "0" * 32}
    body = {"name": text("Twilio, Amsterdam")[:64], "config": config, "is_default_outbound": False}
    configs = "/organizations/telephony-configs"
    made: int = api.post(configs, body)["id"]
    for number, label in (("+12025550150", "Front desk"), ("+12025550151", "Night line")):
        body = {"address": number, "label": text(label)[:64], "extra_metadata": {"by": text("me")}}
        body["inbound_workflow_id"] = agent
        api.post(f"{configs}/{made}/phone-numbers", body)
    return made


def until(ask: Callable[[], Any], seconds: float = 15.0) -> Any:
    """What `ask` gives, once it is true."""
    deadline = time.monotonic() + seconds
    while not (found := ask()):
        assert time.monotonic() < deadline, f"not true within {seconds} s"
        time.sleep(0.05)
    return found
