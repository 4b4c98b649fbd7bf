"""What agents use, in the console: carriers and numbers, tools with a trial, documents, deliveries, do-not-call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from asking import Answering, Api, Serve, listening
from browsing import Open, Tab
from playwright.sync_api import expect
from seed import example, receiver, until
from twilio.request_validator import RequestValidator

pytestmark = pytest.mark.long

KEY = "console-test-key-0123456789"
MARKUP = "<img src=x>"
SECRET = "a-long-secret-0123456789"


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    """A server that repeats what it is asked, and refuses whoever has no X-Token."""

    class Handler(Answering):
        def reply(self) -> None:
            if self.command == "POST":
                self.rfile.read(int(self.headers["Content-Length"]))
                self.give(b"", status=410)
                return
            body = json.dumps({"asked": self.path, "said": MARKUP}).encode()
            self.give(body, status=200 if self.headers.get("X-Token") == SECRET else 401)

    with listening(Handler) as origin:
        yield origin


@pytest.fixture(scope="module")
def server(serve: Any, shop: str) -> Any:
    """A service whose carrier is on this machine, and refuses every key."""
    return serve(API_KEY=KEY, TWILIO_URL=shop)


def told(tab: Tab, text: str) -> None:
    expect(tab.page.get_by_role("status")).to_contain_text(text)


def test_a_carrier_with_its_numbers(tab: Tab, api: Any) -> None:
    tab.open("/carriers")
    expect(tab.page.get_by_role("region", name="What was checked")).to_contain_text("the scripted model")
    tab.press("Add a carrier")
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.locator(".field-error:visible")).to_have_count(3)
    dialog.get_by_label("Name").fill(f"Main {MARKUP}")
    dialog.get_by_label("Account SID").fill("AC" + "0" * 32)
    dialog.get_by_label("Auth token").fill(SECRET)
    dialog.get_by_role("button", name="Add", exact=True).click()
    tab.heading(f"Main {MARKUP}")
    tab.sees("VOICEAPI_PUBLIC_URL isn't set")
    expect(tab.page.get_by_role("region", name="What was checked")).to_contain_text("Twilio answered 401.")
    made = int(tab.page.url.rpartition("/")[2])
    tab.press("Add a number")
    dialog.get_by_label("Number").fill("2025550177")
    with tab.expecting("422 POST"):
        dialog.get_by_role("button", name="Add", exact=True).click()
        expect(dialog.get_by_role("alert")).to_contain_text("country_code")
    dialog.get_by_label("Country").fill("US")
    dialog.get_by_label("Label").fill(MARKUP)
    dialog.get_by_role("button", name="Add", exact=True).click()
    told(tab, "The number is added.")
    tab.ready()
    tab.press("Call from 2025550177")
    told(tab, "Whoever is called sees 2025550177 from now on.")
    tab.ready()
    tab.page.get_by_text("Change them").click()
    tab.page.locator("section", has_text="Name and credentials").get_by_label("Name").first.fill("Main")
    tab.press("Save", exact=True)
    tab.heading("Main")
    # The mask that was sent back kept the secret: it is the same one, so its mask is the same.
    assert api.get(f"/organizations/telephony-configs/{made}")["credentials"]["auth_token"].endswith(SECRET[-4:])
    tab.press("Delete")
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    tab.heading("Carriers")


def test_the_calls_that_were_not_taken_are_on_the_page_of_their_carrier(serve: Serve, open_tab: Open) -> None:
    """By a number that has no agent, twice, and by an agent that is archived."""
    public, token = "https://voice.example.org", "0" * 32
    server = serve(API_KEY=KEY, PUBLIC_URL=public)
    api = Api(server.origin, KEY)
    account = {"provider": "twilio", "account_sid": f"AC{token}", "auth_token": token}
    carrier = api.post("/organizations/telephony-configs", {"name": "Main", "config": account})["id"]
    agent = api.post("/workflow/create/definition", example("menu"))["id"]
    for number, answers in (("+12025550150", None), ("+12025550151", agent)):
        body = {"address": number, "inbound_workflow_id": answers}
        api.post(f"/organizations/telephony-configs/{carrier}/phone-numbers", body)
    api.put(f"/workflow/{agent}/status", {"status": "archived"})
    path = f"/api/v1/telephony/inbound/{carrier}"
    for call, number in enumerate(("+12025550150", "+12025550150", "+12025550151")):
        fields = {"CallSid": f"CA{call}", "AccountSid": f"AC{token}", "From": "+12025550177", "To": number}
        signature = RequestValidator(token).compute_signature(f"{public}{path}", fields)
        headers = {"X-Twilio-Signature": signature}
        assert requests.post(f"{server.origin}{path}", data=fields, headers=headers, timeout=30).ok
    tab = open_tab(f"{server.origin}/#key={KEY}", f"/carriers/{carrier}")
    rows = tab.page.get_by_role("region", name="Calls that no agent answered").locator("tbody tr")
    expect(rows).to_have_count(2)
    shown = [row.locator("td").all_inner_texts()[1:] for row in rows.all()]
    archived, nobody = "the agent is archived or can't be run", "the number is unknown, not in use or has no agent"
    assert shown == [
        ["+12025550177", "+12025550151", f"{archived}, agent {agent}", "1"],
        ["+12025550177", "+12025550150", nobody, "2"],
    ]
    expect(rows.first.get_by_role("link")).to_have_attribute("href", f"#/agents/{agent}")


def test_a_tool_is_made_tried_out_and_archived(tab: Tab, shop: str) -> None:
    tab.open("/tools")
    tab.follow("Ask a server")
    tab.fill(re.compile("^Name.*required"), f"Look up {MARKUP}")
    tab.fill(re.compile(r"^Address \(URL\)"), "shop")
    with tab.expecting("422 POST"):
        tab.press("Make the tool")
        expect(tab.page.get_by_label(re.compile(r"^Address \(URL\)"))).to_be_focused()
    tab.fill(re.compile(r"^Address \(URL\)"), f"{shop}/orders")
    tab.page.get_by_label("What is sent, as JSON").fill("{nope")
    tab.press("Make the tool")
    tab.sees("This isn't JSON")
    tab.page.get_by_label("What is sent, as JSON").fill("")
    tab.role("button", "Add a value").first.click()
    row = tab.page.locator(".row.parameter").first
    row.get_by_label("Name").fill("count")
    row.get_by_label("Type").select_option("number")
    row.get_by_label("What it is, for the language model").fill("how many")
    tab.press("Add a header")
    tab.role("textbox", "Header").fill("X-Token")
    tab.page.locator(".key-values").get_by_label("Value").fill(SECRET)
    tab.press("Make the tool")
    tab.heading(f"Look up {MARKUP}")
    tab.ready()
    tab.fill(re.compile("^count"), "3")
    tab.press("Send the request")
    answer = tab.page.get_by_role("region", name="Answer of the server")
    expect(answer).to_contain_text('"asked": "/orders?count=3"')
    expect(answer).to_contain_text(MARKUP)
    assert SECRET not in tab.page.content()
    tab.role("textbox", "When to use it", exact=True).fill("Changed")
    tab.press("Save", exact=True)
    told(tab, "The tool is saved.")
    tab.ready()
    tab.press("Archive", exact=True)
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Archive").click()
    tab.press("Use it again")
    told(tab, "The tool is in use again.")


@pytest.mark.parametrize("kind", ["transfer_call", "end_call", "calculator"])
def test_every_kind_of_tool_can_be_made(tab: Tab, api: Any, kind: str) -> None:
    tab.open(f"/tools/new?kind={kind}")
    tab.fill(re.compile("^Name.*required"), kind)
    if kind == "transfer_call":
        tab.page.get_by_label("Where to put the caller through").select_option("context_mapping")
        tab.press("Add a rule")
        tab.fill("Value that decides", "initial_context.city")
        tab.press("Add a number")
        tab.role("textbox", "Value", exact=True).fill("Bonn")
        tab.page.locator(".rule").get_by_label("Number", exact=True).fill("+12025550188")
    tab.press("Make the tool")
    tab.heading(kind)
    [made] = [each for each in api.get("/tools/") if each["name"] == kind]
    assert made["category"] == kind
    if kind == "transfer_call":
        assert made["definition"]["config"]["context_mapping"]["rules"] == [
            {
                "context_path": "initial_context.city",
                "routes": [{"context_value": "Bonn", "destination": "+12025550188"}],
            }
        ]


def test_a_document_is_uploaded_found_and_deleted(tab: Tab) -> None:
    tab.open("/documents")
    file: Any = {"name": f"{MARKUP}.md", "mimeType": "text/markdown", "buffer": f"We open at nine. {MARKUP}".encode()}
    tab.page.locator("input[type=file]").set_input_files(files=[file])
    tab.sees(f"{MARKUP}.md is ready, with 1 passage.")
    tab.fill(re.compile("^A caller's question"), "When do you open?")
    tab.press("Search")
    expect(tab.page.get_by_role("listitem")).to_contain_text(f"We open at nine. {MARKUP}")
    tab.press(f"Delete {MARKUP}.md")
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    tab.sees("There is no document yet.")


def test_numbers_that_no_campaign_calls(tab: Tab) -> None:
    tab.open("/settings/do-not-call")
    numbers = tab.page.get_by_role("textbox", name=re.compile("^Numbers"))
    numbers.fill("+12025550111\nnope")
    with tab.expecting("422 POST"):
        tab.press("Add", exact=True)
        tab.sees("nope: ")
    numbers.fill("+12025550111")
    tab.fill("Why", MARKUP)
    tab.press("Add", exact=True)
    expect(tab.page.get_by_role("region", name="Numbers not to call")).to_contain_text(MARKUP)
    file: Any = {"name": "x.csv", "mimeType": "text/csv", "buffer": b"Mobile\n+12025550112\n12\n"}
    tab.fill("Name of the column with the numbers", "mobile")
    tab.page.locator("input[type=file]").set_input_files(files=[file])
    tab.sees("1 row wasn't taken.")
    tab.press("Remove +12025550112")
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Remove").click()
    expect(tab.page.get_by_role("region", name="Numbers not to call").get_by_role("row")).to_have_count(2)


def hooked(api: Api, url: str) -> Any:
    """A new agent that reports its runs to `url`."""
    node = {"name": f"Hook {MARKUP}", "enabled": True, "endpoint_url": url, "payload_template": {"said": MARKUP}}
    start = {"name": "Start", "prompt": "Say hello.", "greeting": "Hello."}
    nodes = [
        {"id": str(at), "type": kind, "position": {"x": 0, "y": 0}, "data": data}
        for at, (kind, data) in enumerate((("startCall", start), ("webhook", node)))
    ]
    body = {"name": "Hooked", "workflow_definition": {"nodes": nodes, "edges": []}}
    return api.post("/workflow/create/definition", body)


def test_a_webhook_that_was_given_up_is_sent_again(tab: Tab, api: Any, shop: str) -> None:
    workflow = hooked(api, shop)["id"]
    chats = f"/workflow/{workflow}/text-chat/sessions"
    run = api.post(chats, {})["workflow_run_id"]
    api.post(f"{chats}/{run}/end", {})
    tab.open("/settings/deliveries?state=pending")
    for _ in range(50):
        if api.get("/organizations/webhook-deliveries?state=dead_letter")["deliveries"]:
            break
        tab.page.wait_for_timeout(100)
    tab.role("tab", "Given up").click()
    expect(tab.page.get_by_role("article")).to_contain_text(f"Hook {MARKUP}, after call or chat {run}")
    tab.page.get_by_text("1 attempt").click()
    expect(tab.page.get_by_role("region", name=re.compile("Attempts of"))).to_contain_text("410")
    tab.page.get_by_text("What is sent").click()
    expect(tab.page.get_by_role("region", name="Body of the webhook")).to_contain_text(MARKUP)
    tab.press("Send it again")
    told(tab, "It is sent again")
    tab.press("Make a new secret")
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Make it").click()
    secret = tab.page.get_by_role("dialog").locator("code").inner_text()
    assert secret.startswith("whsec_")
    tab.page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(tab.page.locator("dialog")).to_have_count(0)  # a closed one has no role before it is removed
    assert secret not in tab.page.content()
    tab.press("Let only the newest sign")
    tab.page.get_by_role("alertdialog").get_by_role("button", name="Let it sign alone").click()
    told(tab, "Only the newest secret signs.")


def test_a_webhook_of_a_draft_is_sent_when_somebody_says_so(tab: Tab, api: Api) -> None:
    with receiver() as url:
        agent = hooked(api, url)
        definition = agent["workflow_definition"]
        definition["nodes"][0]["data"]["greeting"] = "Good day."
        api.put(f"/workflow/{agent['id']}", {"workflow_definition": definition})
        chats = f"/workflow/{agent['id']}/text-chat/sessions"
        run = api.post(chats, {})["workflow_run_id"]
        api.post(f"{chats}/{run}/end", {})
        deliveries = f"/workflow/{agent['id']}/runs/{run}/deliveries"
        until(lambda: [each["state"] for each in api.get(deliveries)["deliveries"]] == ["not_sent"])
        tab.open("/settings/deliveries?state=not_sent")
        kept = tab.page.get_by_role("article")
        expect(kept).to_contain_text(f"Hook {MARKUP}, after call or chat {run}")
        expect(kept).to_contain_text("A draft was tried out, so it was not sent.")
        tab.press("Send it", exact=True)
        told(tab, "It is sent: it waits for the receiver's answer.")
        expect(kept).to_have_count(0)
        until(lambda: [each["state"] for each in api.get(deliveries)["deliveries"]] == ["succeeded"])
        tab.role("tab", "Delivered").click()
        expect(kept).to_contain_text(f"Hook {MARKUP}, after call or chat {run}")
        kept.get_by_text("What is sent").click()
        expect(tab.page.get_by_role("region", name="Body of the webhook")).to_contain_text('"test": true')
