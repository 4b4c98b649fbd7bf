"""The editor of an agent and its versions: forms from the catalogue, findings, JSON, drawing, what differs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from asking import Api
from browsing import Tab
from playwright.sync_api import expect

from voiceapi.workflows import node_types

pytestmark = pytest.mark.long
EXAMPLE = json.loads((Path(__file__).parents[2] / "examples" / "first-call.json").read_text(encoding="utf-8"))


@pytest.fixture
def agent(api: Api) -> int:
    return int(api.post("/workflow/create/definition", EXAMPLE)["id"])


# All that is read of the page, but what an address or JSON has.
SHOWN = """() => [...document.querySelectorAll('#main, #main *, dialog *')]
  .filter((each) => !each.closest('pre, code, .code, .copyable') && each.checkVisibility())
  .flatMap((each) => [each.getAttribute('aria-label'), each.getAttribute('title'), each.placeholder,
    ...[...each.childNodes].filter(({nodeType}) => nodeType === 3).map(({data}) => data)])
  .filter((text) => text?.trim())"""


def definition(tab: Tab) -> Any:
    """What the JSON beside the drawing says."""
    tab.press("JSON")
    text = tab.page.get_by_label("The definition as JSON").input_value()
    tab.press("JSON")
    return json.loads(text)


def node(tab: Tab, id: str) -> Any:
    return tab.page.locator(f'g.node[data-node="{id}"]')


def test_every_member_of_every_type_of_node_has_a_field_with_its_help(tab: Tab, api: Api) -> None:
    specs = node_types.node_types()
    nodes = [
        {"id": spec["name"], "type": spec["name"], "position": {"x": at * 300, "y": 0}, "data": {"name": spec["name"]}}
        for at, spec in enumerate(specs)
    ]
    body = {"name": "Every type", "workflow_definition": {"nodes": nodes, "edges": []}}
    tab.open(f"/agents/{api.post('/workflow/create/definition', body)['id']}")
    for spec in specs:
        node(tab, spec["name"]).focus()
        tab.page.keyboard.press("Enter")
        for prop in spec["properties"]:
            field = tab.page.locator(f'.field[data-name="data.{prop["name"]}"]')
            assert prop["description"] in str(field.text_content())
            assert field.locator("label, legend, .label").first.text_content()
            assert field.locator("input, select, textarea, button, a").count() > 0
        texts = tab.page.locator(".editor-panel .node-form :is(label, legend, .label, .help)").all_text_contents()
        words = re.compile(r"\b(nodes?|edges?|workflows?|LLM|gathered_context)\b", re.IGNORECASE)
        assert [text for text in texts if words.search(text)] == []
        hidden = [prop["name"] for prop in spec["properties"] if prop["display_options"]]
        assert [name for name in hidden if tab.page.locator(f'.field[data-name="data.{name}"]').is_visible()] in (
            [],
            ["greeting"],
        )


def test_what_is_shown_of_an_agent_says_step_and_path(tab: Tab, agent: int) -> None:
    """Texts, names for screen readers and titles: none has a word that only readers of the API know."""
    tab.open(f"/agents/{agent}")

    def reads(*wanted: str) -> None:
        texts = tab.page.evaluate(SHOWN)
        assert [text for text in texts if re.search(r"(?i)\b(nodes?|edges?|workflows?)\b", text)] == []
        assert all(any(text in each for each in texts) for text in wanted), texts

    reads("Click a step", "not" if tab.page.get_by_text("not used in calls yet").count() else "used in calls")
    node(tab, "hello").click()
    reads("Next steps", "What it says without a model", "Add step")
    tab.page.locator("g.edge").first.focus()
    tab.page.keyboard.press("Enter")
    reads("Taken when", "Said on the way")
    for id in ("hello", None):
        (node(tab, id) if id else tab.page.locator("g.edge .label").first).click(button="right")
        reads("Have it go to another step" if id is None else "Connect to another step")
        tab.page.keyboard.press("Escape")
    node(tab, "hello").focus()
    tab.page.keyboard.press("?")
    reads("To the nearest step or path that way")
    tab.page.keyboard.press("Escape")
    tab.press("Outline")
    reads("Start: Hello")
    for name, text in (("Settings", "Known before the call"), ("Programs", "By the agent's own address")):
        tab.role("tab", name).click()
        reads(text)


def test_what_is_typed_is_checked_drawn_and_written_as_json(tab: Tab, agent: int, api: Api) -> None:
    tab.open(f"/agents/{agent}")
    node(tab, "number").click()
    tab.fill(re.compile("^Name"), "A <b>digit</b>")
    tab.fill(re.compile("^Prompt"), "")
    expect(node(tab, "number").locator(".name")).to_have_text("A <b>digit</b>")
    expect(tab.page.locator('.field[data-name="data.prompt"] .field-error')).to_have_text("This node needs a prompt.")
    expect(node(tab, "number")).to_have_class(re.compile("has-error"))
    tab.fill(re.compile("^Prompt"), "Say a number.")
    expect(node(tab, "number")).not_to_have_class(re.compile("has-error"))
    tab.press("Add answer")
    tab.page.get_by_label(re.compile("^Variable Name")).last.fill("day")
    tab.press("Add and connect")
    expect(tab.page.locator("g.node")).to_have_count(5)
    expect(tab.page.get_by_role("textbox", name="Label")).to_be_focused()
    tab.page.keyboard.press("Escape")
    found = definition(tab)
    number, added = found["nodes"][1], found["nodes"][-1]
    assert number["data"]["name"] == "A <b>digit</b>"
    assert [each["name"] for each in number["data"]["extraction_variables"]] == ["number", "day"]
    assert (added["type"], added["data"]["allow_interrupt"]) == ("agentNode", True)
    assert (found["edges"][-1]["source"], found["edges"][-1]["target"]) == ("number", added["id"])
    tab.page.locator("g.edge").last.focus()
    tab.page.keyboard.press("Enter")
    tab.fill(re.compile("^Label"), "Again")
    tab.fill(re.compile("^Taken when"), "They want to say it again.")
    tab.page.get_by_label(re.compile("^To ")).select_option("hello")
    tab.press("Save", exact=True)
    tab.notices("Saved as the draft.")
    stored = api.get(f"/workflow/fetch/{agent}")["workflow_definition"]
    assert stored["edges"][-1]["data"] == {"label": "Again", "condition": "They want to say it again."}
    assert stored["edges"][-1]["target"] == "hello"
    node(tab, added["id"]).click()
    tab.press("Remove", exact=True)
    expect(tab.page.locator("g.node")).to_have_count(4)
    tab.page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(tab.page.locator("g.node")).to_have_count(5)


def test_the_tool_that_a_node_calls_is_entered_as_json_checked_and_drawn(tab: Tab, agent: int, api: Api) -> None:
    tab.open(f"/agents/{agent}")
    node(tab, "number").click()
    field = tab.page.locator('.field[data-name="data.call"]')
    text = field.locator("textarea")
    expect(text).to_have_attribute("placeholder", re.compile("python:book"))
    text.fill('{"tool": "python:book", "on_error":')
    expect(field).to_contain_text("This isn't JSON yet, so it isn't taken over")
    text.fill('{"tool": "python:book", "on_error": "number"}')
    expect(field.locator(":scope > .field-error")).to_contain_text("on_error is this node itself")
    text.fill('{"tool": "python:book", "on_error": "hello"}')
    expect(field.locator(":scope > .field-error")).to_contain_text("no agent or end node")
    end = next(each["id"] for each in EXAMPLE["workflow_definition"]["nodes"] if each["type"] == "endCall")
    call = {"tool": "python:book", "save_as": "booking", "on_error": end}
    text.fill(json.dumps(call))
    expect(field.locator(":scope > .field-error")).to_have_text('There is no tool "python:book"; the call fails.')
    way = tab.page.locator("g.edge.on-error")
    expect(way).to_have_attribute("data-edge", "number.on_error")
    expect(way).not_to_have_class(re.compile("choosable"))
    tab.press("Save", exact=True)
    tab.notices("Saved as the draft.")
    stored = api.get(f"/workflow/fetch/{agent}")["workflow_definition"]
    assert next(each for each in stored["nodes"] if each["id"] == "number")["data"]["call"] == call


def test_findings_have_their_codes_and_are_ignored_at_their_node_and_shown_again(
    tab: Tab, agent: int, api: Api
) -> None:
    tab.open(f"/agents/{agent}")
    expect(tab.page.locator(".findings-summary")).to_have_text("No errors")
    node(tab, "hello").click()
    tab.fill(re.compile("^Greeting Text"), "Hello {{first_name}}.")
    item = tab.page.locator(".canvas ~ div .findings li", has_text="Nothing says where first_name comes from")
    expect(item.locator(".code")).to_have_text("undeclared-variable")
    expect(item.locator(".badge")).to_have_text("Warning")
    expect(node(tab, "hello")).to_have_class(re.compile("has-warning"))
    node(tab, "number").click()
    tab.fill(re.compile("^What it says without a model"), "")
    note = tab.page.locator(".canvas ~ div .findings li", has_text="prompt-needs-model")
    expect(note.locator(".badge")).to_have_text("Hint")
    item.get_by_role("button", name="Ignore undeclared-variable at Hello").click()
    expect(item).to_have_count(0)
    expect(tab.page.locator(".findings-summary")).to_have_text("No errors1 hint1 ignored")
    assert definition(tab)["nodes"][0]["data"]["lint_ignore"] == ["undeclared-variable"]
    tab.press("Save", exact=True)
    tab.notices("Saved as the draft.")
    stored = api.get(f"/workflow/fetch/{agent}")["workflow_definition"]
    assert stored["nodes"][0]["data"]["lint_ignore"] == ["undeclared-variable"]
    node(tab, "number").click()
    tab.fill(re.compile("^Prompt"), "")
    wrong = tab.page.locator(".canvas ~ div .findings li", has_text="This node needs a prompt.")
    expect(wrong.locator(".code")).to_have_text("malformed")
    expect(wrong.get_by_role("button", name=re.compile("^Ignore"))).to_have_count(0)
    node(tab, "hello").click()
    tab.press("Show undeclared-variable again")
    expect(tab.page.get_by_role("heading", name="Hello")).to_be_focused()
    expect(item).to_have_count(1)
    assert "lint_ignore" not in definition(tab)["nodes"][0]["data"]


def test_the_json_is_taken_over_once_it_can_be_read(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    tab.press("JSON")
    text = tab.page.get_by_label("The definition as JSON")
    changed = text.input_value().replace('"Hello"', '"Good morning"')
    text.fill(changed[:-1])
    tab.sees(re.compile("^This isn't taken over yet"))
    expect(node(tab, "hello").locator(".name")).to_have_text("Hello")
    text.fill(changed)
    expect(node(tab, "hello").locator(".name")).to_have_text("Good morning")
    tab.press("Undo")
    expect(node(tab, "hello").locator(".name")).to_have_text("Hello")


def test_nodes_are_arranged_in_layers(tab: Tab, agent: int) -> None:
    tab.open(f"/agents/{agent}")
    with tab.page.expect_response("**/workflow/graph"):
        tab.press("Arrange")
    tab.sees("Not saved")
    hello, number, goodbye, _ = (each["position"] for each in definition(tab)["nodes"])
    assert hello["y"] < number["y"] < goodbye["y"]


def test_versions_are_compared_in_words_and_restored(tab: Tab, agent: int, api: Api) -> None:
    changed = json.loads(json.dumps(EXAMPLE["workflow_definition"]))
    changed["nodes"][0]["data"]["scripted_text"] = "Can you hear me now?"
    api.put(f"/workflow/{agent}", {"workflow_definition": changed})
    tab.open(f"/agents/{agent}/versions")
    tab.sees("“Hello”: Scripted Text is “Can you hear me now?” now, and was “Can you hear me well?”.")
    tab.page.get_by_text("Each change in full").click()
    expect(tab.page.locator("del")).to_have_text("well")
    expect(tab.page.locator("ins")).to_have_text("now")
    tab.press("Look at version 1")
    expect(tab.page.get_by_role("heading", name="Version 1 as it was")).to_be_focused()
    tab.press("Publish version 2")
    tab.notices(re.compile("^Version 2 is published"))
    tab.press("Restore version 1 as the draft")
    tab.press("Restore", exact=True)
    tab.notices(re.compile("^The draft, version 3, is now as version 1 was"))
    assert (
        api.get(f"/workflow/fetch/{agent}")["workflow_definition"]["nodes"][0]["data"]["scripted_text"]
        == "Can you hear me well?"
    )


def test_an_agent_is_made_from_a_file_also_when_its_path_is_taken(tab: Tab, api: Api, tmp_path: Path) -> None:
    body = {"name": "From a file", "workflow_definition": json.loads(json.dumps(EXAMPLE["workflow_definition"]))}
    trigger = {
        "id": "t",
        "type": "trigger",
        "position": {"x": 0, "y": 400},
        "data": {"name": "T", "trigger_path": "filed"},
    }
    body["workflow_definition"]["nodes"].append(trigger)
    body["workflow_definition"]["nodes"][0]["data"]["tool_uuids"] = ["sums"]
    body["tools"] = [{"tool_uuid": "sums", "name": "Sums", "definition": {"type": "calculator"}}]
    # The key of a model of its own is masked in an answer of the API, so the model isn't taken over.
    body["workflow_configurations"] = {"voice": "Polly.Amy", "model_configuration_v2_override": {"llm": "****"}}
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(body))
    for taken in (False, True):
        tab.open("/agents/new")
        tab.page.get_by_text("Other ways to begin").click()
        if taken:
            with tab.expecting("409 POST"):
                tab.page.locator("input[type=file]").set_input_files(file)
                tab.press("Make it with trigger paths of its own")
                tab.heading("From a file")
        else:
            tab.page.locator("input[type=file]").set_input_files(file)
            tab.heading("From a file")
        tab.ready()
    made = [each["id"] for each in api.get("/workflow/fetch") if each["name"] == "From a file"]
    (tool,) = (each["tool_uuid"] for each in api.get("/tools/") if each["name"] == "Sums")
    stored = [api.get(f"/workflow/fetch/{id}") for id in made]
    assert [each["workflow_definition"]["nodes"][0]["data"]["tool_uuids"] for each in stored] == [[tool], [tool]]
    assert [each["workflow_configurations"] for each in stored] == [{"voice": "Polly.Amy"}] * 2


def test_an_agent_is_made_from_nothing_by_the_keyboard(tab: Tab, api: Api) -> None:
    tab.open("/agents/new")
    tab.page.get_by_text("Other ways to begin").press("Enter")
    tab.press("Make the agent")
    tab.sees(re.compile("name", re.IGNORECASE))  # the field says what is missing
    tab.fill(re.compile("^Name"), "By hand")
    tab.page.keyboard.press("Enter")
    tab.heading("By hand")
    tab.ready()
    (made,) = (each["id"] for each in api.get("/workflow/fetch") if each["name"] == "By hand")
    assert api.get(f"/workflow/fetch/{made}")["workflow_configurations"] == {"voice": "natural"}
    tab.sees("No errors")
    node(tab, "start").focus()
    tab.page.keyboard.press("Enter")
    tab.page.get_by_label("Type of the next step to add").select_option(label="End")
    tab.role("button", "Add and connect").focus()
    tab.page.keyboard.press("Enter")
    expect(node(tab, "end")).to_be_visible()
    assert [(each["source"], each["target"]) for each in definition(tab)["edges"]] == [("start", "end")]
    tab.press("Undo")
    expect(node(tab, "end")).to_have_count(0)
    assert definition(tab)["edges"] == []
