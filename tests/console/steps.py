"""What people do in the console, step by step, by what they see or hear of it."""

from __future__ import annotations

import re

from browsing import NARROW, Tab
from playwright.sync_api import expect

TASK = "Ask the customers of a bakery how many loaves they want."
NAME = TASK.rstrip(".")
WORDS = "How many loaves of bread would you like to order?"


def make_an_agent(tab: Tab) -> None:
    """From the start, which proposes it, to an agent made by a sentence, without a model."""
    tab.heading("Home")
    tab.follow("Make your first agent")
    tab.fill(re.compile("^What should it do"), TASK)
    tab.page.get_by_label("It calls people").check()
    tab.press("Make it", exact=True)
    tab.heading(NAME)
    tab.ready()


def edit_a_node(tab: Tab, text: str) -> None:
    """Select a node on the canvas, and change by the form what it says without a model."""
    tab.role("button", re.compile("^Step: Conversation")).click()
    expect(tab.page.get_by_role("heading", name="Conversation")).to_be_visible()
    tab.fill(re.compile("^What it says without a model"), text)


def change_a_node(tab: Tab, text: str = WORDS) -> None:
    """Change a node by its form, and save."""
    edit_a_node(tab, text)
    tab.press("Save", exact=True)
    tab.notices("Saved as the draft.")
    expect(tab.page.get_by_text("Not saved")).to_have_count(0)


def publish(tab: Tab) -> None:
    tab.press("Publish")
    tab.notices(re.compile(r"^Version \d+ is published"))
    expect(tab.page.get_by_text("Published, version")).to_be_visible()


def talk(tab: Tab) -> None:
    """Three turns by text, to the end of the conversation; the drawing shows where it is."""
    tab.follow("Talk", exact=True)
    tab.heading(re.compile("^Talk to"))
    tab.sees("Without a language model, it speaks its sentences as they are written.")
    expect(tab.role("link", "Choose a language model")).to_have_attribute("href", re.compile("/settings/models$"))
    tab.sees("Press Start, and the agent says its first words.")
    tab.press("Start", exact=True)
    conversation = tab.role("log", "Conversation")
    here = tab.page.get_by_role("application").locator("[aria-current=true].node")
    for said, answer, node in (
        ("Yes, it is.", WORDS, "Conversation"),
        ("The weather is nice.", "Sorry, I didn't get that.", "Conversation"),
        ("Yes, please.", "Goodbye.", "Done"),
    ):
        tab.fill("What you say", said)
        tab.page.get_by_label("What you say").press("Enter")
        expect(conversation.get_by_text(said)).to_be_visible()
        expect(conversation.get_by_role("article").last).to_contain_text(answer)
        expect(here).to_contain_text(node)
    expect(conversation.get_by_role("article")).to_have_count(4)
    expect(conversation).to_contain_text("Agreed")


def call(tab: Tab) -> None:
    """A simulated call from the agent, watched to its end, and its run."""
    tab.role("tab", "It calls you").click()
    tab.fill("What you say in the call", "Yes.\nYes, that is fine.")
    tab.press("Let it call you")
    expect(tab.role("log", "The call").get_by_text(WORDS)).to_be_visible()
    expect(tab.page.get_by_role("status").get_by_text("talked to the end")).to_be_visible()
    tab.follow(re.compile(r"^Call \d+"))
    tab.sees(WORDS)
    tab.sees("Yes, that is fine.")
    tab.sees("+12025550123")
    tab.follow("Calls")
    tab.heading("Calls")
    expect(tab.role("region", "Calls and chats").get_by_role("row")).to_have_count(3)


def walk(tab: Tab) -> None:
    """From the start to an agent that was changed, talked to, published and called, and the run of its call."""
    make_an_agent(tab)
    change_a_node(tab)
    talk(tab)
    tab.page.go_back()
    tab.ready()
    publish(tab)
    tab.follow("Talk", exact=True)
    call(tab)


def look_over(tab: Tab) -> None:
    """From an agent in the list to what can be shown over its graph, and to a talk beside it."""
    tab.follow("Agents", exact=True)
    tab.follow(re.compile("bakery", re.IGNORECASE))
    tab.press("Talk beside")
    drawer = tab.role("complementary", "Talk beside")
    drawer.get_by_role("button", name="Start", exact=True).click()
    here = tab.page.locator("g.node[aria-current=true]")
    expect(here).to_have_count(1)
    drawer.get_by_role("button", name="Close").click()
    for text, shown in (("Traffic", "More in its insights"), ("One call", "Step 1 of"), ("Tests", "Run the tests")):
        tab.page.get_by_label("Show", exact=True).select_option(label=text)
        expect(tab.page.locator(".shown")).to_contain_text(shown)


def call_a_list(tab: Tab, number: str = "+12025550171") -> None:
    """From rows of a spreadsheet to a campaign that has called them, and to the page of a call."""
    tab.follow("Campaigns", exact=True)
    tab.follow("New campaign")
    tab.fill("Paste rows from a spreadsheet", f"Name\tMobile\nAda\t{number}")
    tab.page.get_by_label("Only at these hours").uncheck()
    tab.press("Start calling 1 person")
    tab.heading(re.compile("^Contacts of"))
    expect(tab.page.locator(".facts .badge").first).to_have_text("completed", timeout=60_000)
    tab.role("tab", "Contacts").click()
    tab.role("region", "Contacts").get_by_role("link", name=number).click()
    tab.sees("The call was answered.")
    tab.page.get_by_role("link", name=re.compile(r"^call \d+")).first.click()
    tab.sees(number)


def read_a_run(tab: Tab) -> None:
    """The first run on its canvas: a turn, why it took its path, its step's prompt, and a test made of it."""
    tab.open("/runs")
    tab.page.locator('main a[href*="/runs/"]').last.click()
    tab.ready()
    turns = tab.role("feed", "Turns").get_by_role("article")
    turns.nth(1).click()
    expect(turns.nth(1)).to_have_attribute("aria-current", "true")
    expect(turns.nth(1)).to_contain_text(re.compile("Takes the path .* because the caller said “"))
    expect(tab.page.locator("g.node[aria-current=true]")).to_have_count(1)
    expect(tab.page).to_have_url(re.compile(r"\?turn=1$"))
    tab.follow("Change this step's prompt")
    expect(tab.page.get_by_label(re.compile("^Prompt"))).to_be_visible()
    tab.page.go_back()
    tab.ready()
    expect(turns.nth(1)).to_have_attribute("aria-current", "true")
    tab.press("Make a test of it")
    tab.heading(re.compile("until turn 1$"))


def looks_good(tab: Tab) -> None:
    """What is shown now has no serious finding of axe-core and no scrolling to the side, also on a telephone."""
    wide = tab.page.viewport_size
    assert wide
    for size in (NARROW, wide):
        tab.page.set_viewport_size(size)  # type: ignore[arg-type]
        for scheme in ("light", "dark"):
            tab.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert tab.findings() == []
        assert tab.overflow() <= 0
