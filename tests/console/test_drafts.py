"""Saving: a draft saves itself, survives what happens to tab and service, and is joined with what others saved."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import KEY, Api, Serve, Server
from browsing import Open, Tab
from playwright.sync_api import Page, expect
from seed import example
from steps import looks_good
from test_builder import made, many, node, run, stored

pytestmark = pytest.mark.long


@pytest.fixture
def agent(api: Api) -> int:
    """A start, a node behind it, and two ends; published."""
    definition = example("appointment")["workflow_definition"]
    definition["nodes"] = [each for each in definition["nodes"] if each["type"] != "trigger"]
    return made(api, definition)


@pytest.fixture
def saving(open_tab: Open, server: Server) -> Tab:
    """A tab whose drafts save themselves."""
    return open_tab(f"{server.origin}/#key={KEY}", saves_itself=True)


# -- joining, without a page's elements

BASE: dict[str, Any] = {
    "nodes": [
        {"id": "a", "type": "startCall", "position": {"x": 0, "y": 0}, "data": {"name": "A", "prompt": "Hello."}},
        {"id": "b", "type": "agentNode", "position": {"x": 0, "y": 150}, "data": {"name": "B", "prompt": "Go on."}},
    ],
    "edges": [{"id": "a-b", "source": "a", "target": "b", "data": {"label": "On", "condition": ""}}],
}


def changed(*changes: tuple[list[Any], Any]) -> Any:
    """The base with what is at a path set; None removes it. A path may end behind a list."""
    found = copy.deepcopy(BASE)
    for path, value in changes:
        holder: Any = found
        for name in path[:-1]:
            holder = holder[name]
        if value is None:
            del holder[path[-1]]
        elif isinstance(holder, list) and path[-1] == len(holder):
            holder.append(value)
        else:
            holder[path[-1]] = value
    return found


def of_node(at: int, *members: str) -> list[Any]:
    return ["nodes", at, *members]


NEW = {"id": "c", "type": "endCall", "position": {"x": 0, "y": 300}, "data": {"name": "C"}}
OTHER = {**NEW, "data": {"name": "Other"}}
TO_NEW = {"id": "b-c", "source": "b", "target": "c", "data": {"label": "End"}}
NAME, PROMPT, POSITION = of_node(1, "data", "name"), of_node(1, "data", "prompt"), of_node(1, "position")
FREE = {**NEW, "id": "c-2"}
# What I changed, what they changed, what becomes of it, and the paths of what collides.
JOINED: dict[str, tuple[Any, Any, Any, list[list[Any]]]] = {
    "nothing": (BASE, BASE, BASE, []),
    "mine": (changed((NAME, "X")), BASE, changed((NAME, "X")), []),
    "theirs": (BASE, changed((NAME, "X")), changed((NAME, "X")), []),
    "the same": (changed((NAME, "X")), changed((NAME, "X")), changed((NAME, "X")), []),
    "two members": (
        changed((NAME, "X")),
        changed((PROMPT, "Y")),
        changed((NAME, "X"), (PROMPT, "Y")),
        [],
    ),
    "one member": (changed((NAME, "X")), changed((NAME, "Y")), changed((NAME, "X")), [["data", "name"]]),
    "a place, whole": (
        changed((POSITION, {"x": 10, "y": 150})),
        changed((POSITION, {"x": 0, "y": 160})),
        changed((POSITION, {"x": 10, "y": 150})),
        [["position"]],
    ),
    "a member that I removed": (
        changed((PROMPT, None)),
        changed((NAME, "Y")),
        changed((PROMPT, None), (NAME, "Y")),
        [],
    ),
    "two nodes with one new id": (
        changed((of_node(2), NEW), (["edges", 1], TO_NEW)),
        changed((of_node(2), OTHER)),
        changed((of_node(2), FREE), (of_node(3), OTHER), (["edges", 1], {**TO_NEW, "target": "c-2"})),
        [],
    ),
    "a node that the service filled in": (
        changed((of_node(2), NEW)),
        changed((of_node(2), {**NEW, "data": {"name": "C", "trigger_path": "p"}})),
        changed((of_node(2), {**NEW, "data": {"name": "C", "trigger_path": "p"}})),
        [],
    ),
    "a node that I removed and they didn't touch": (
        {"nodes": BASE["nodes"][:1], "edges": []},
        changed((of_node(0, "data", "name"), "X")),
        {"nodes": changed((of_node(0, "data", "name"), "X"))["nodes"][:1], "edges": []},
        [],
    ),
    "a node that I removed and they changed": (
        {"nodes": BASE["nodes"][:1], "edges": []},
        changed((NAME, "X")),
        {"nodes": BASE["nodes"][:1], "edges": []},
        [[]],
    ),
    "a node that they removed and I lead to": (
        changed((["edges", 1], {**TO_NEW, "source": "a", "target": "b"})),
        {"nodes": BASE["nodes"][:1], "edges": []},
        {"nodes": BASE["nodes"], "edges": [{**TO_NEW, "source": "a", "target": "b"}]},
        [[]],
    ),
    "notes and other members": (
        {**BASE, "notes": [{"id": "n", "text": "Mine"}], "viewport": {"zoom": 1}},
        {**BASE, "notes": [{"id": "m", "text": "Theirs"}, {"id": "n", "text": "Another"}]},
        {
            **BASE,
            "notes": [{"id": "n-2", "text": "Mine"}, {"id": "m", "text": "Theirs"}, {"id": "n", "text": "Another"}],
            "viewport": {"zoom": 1},
        },
        [],
    ),
}
MERGE = "return m.merged(given.base, given.mine, given.theirs, (id) => given.isTheirs)"


@pytest.mark.parametrize("case", JOINED)
def test_two_changes_are_joined_by_item_and_member(tab: Tab, case: str) -> None:
    mine, theirs, value, paths = JOINED[case]
    given = {"base": BASE, "mine": mine, "theirs": theirs, "isTheirs": False}
    found = run(tab, "merge", MERGE, given)
    assert found["value"] == value
    assert [each["path"] for each in found["conflicts"]] == paths
    # Who takes theirs wherever it collides has all of theirs, and the rest of mine.
    chosen = run(tab, "merge", MERGE, {**given, "isTheirs": True})["value"]
    again = run(tab, "merge", MERGE, {**given, "base": theirs, "mine": chosen, "isTheirs": True})
    assert (again["value"], again["conflicts"]) == (chosen, [])
    if paths and mine is not BASE:
        assert chosen != value


def by_id(definition: Any) -> Any:
    return {name: {each["id"]: each for each in definition[name]} for name in ("nodes", "edges")}


@pytest.mark.parametrize("seed", range(15))
def test_changes_of_different_items_are_all_there_whoever_saves_first(tab: Tab, seed: int) -> None:
    chance = random.Random(seed)
    base = many(8)
    owner = {f"n{at}": chance.choice(("one", "two")) for at in range(8)}

    def change(definition: Any, who: str, dice: random.Random) -> Any:
        found = copy.deepcopy(definition)
        for each in list(found["nodes"]):
            if owner.get(each["id"]) != who:
                continue
            if dice.random() < 0.2:
                found["nodes"].remove(each)
                found["edges"] = [edge for edge in found["edges"] if each["id"] not in (edge["source"], edge["target"])]
            elif dice.random() < 0.6:
                name = dice.choice(("name", "prompt", "extraction_variables"))
                each["data"][name] = f"{who} {dice.random()}"
        for each in found["edges"]:
            if owner.get(each["source"]) == owner.get(each["target"]) == who and dice.random() < 0.5:
                each["data"]["label"] = f"{who} {dice.random()}"
        ours = [each["id"] for each in found["nodes"] if owner.get(each["id"]) == who]
        for count in range(dice.randrange(3)):
            id = f"{who}-{count}"
            data = {"name": id, "prompt": "Go on."}
            found["nodes"].append({"id": id, "type": "agentNode", "position": {"x": count, "y": 9}, "data": data})
            if ours:
                source = dice.choice(ours)
                found["edges"].append({"id": f"to-{id}", "source": source, "target": id, "data": {"label": "On"}})
        return found

    seeds = chance.random(), chance.random()
    one, two = (change(base, who, random.Random(each)) for who, each in zip(("one", "two"), seeds, strict=True))
    both = change(one, "two", random.Random(seeds[1]))
    for mine, theirs in ((one, two), (two, one)):
        found = run(tab, "merge", MERGE, {"base": base, "mine": mine, "theirs": theirs, "isTheirs": False})
        assert found["conflicts"] == []
        assert by_id(found["value"]) == by_id(both)


def test_typed_secrets_are_left_out_of_what_a_tab_keeps(tab: Tab) -> None:
    before = {"id": "q", "data": {"qa_api_key": "****1234", "endpoint_url": "https://ann:********@crm.example/"}}
    data = {
        "name": "Q",
        "qa_api_key": "s3cr3t-key",
        "endpoint_url": "https://ann:s3cr3t-word@crm.example/",
        "pre_call_fetch_url": "https://s3cr3t-token@crm.example/",
        "custom_headers": [{"key": "X", "value": "s3cr3t-header"}],
        "call": {"arguments": [{"url": "https://crm.example/"}]},
    }
    given = {"value": {"nodes": [{"id": "new", "data": {}}, {"id": "q", "data": data}]}, "base": {"nodes": [before]}}
    found = run(tab, "draft", "return m.withoutSecrets(given.value, given.base)", given)
    kept = {"name": "Q", **before["data"], "call": data["call"]}  # type: ignore[dict-item]
    assert found == {"nodes": [{"id": "new", "data": {}}, {"id": "q", "data": kept}]}


# -- saving


def edit(page: Page, name: str, of: str = "remind") -> None:
    """Change the name of a node by its form."""
    page.locator(f'g.node[data-node="{of}"]').click()
    page.get_by_label(re.compile("^Name")).fill(name)


def says(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.locator(".agent-state")).to_contain_text(text)


def name_of(api: Api, agent: int, of: str = "remind") -> Any:
    return next(each["data"]["name"] for each in stored(api, agent)["nodes"] if each["id"] == of)


def test_a_draft_saves_itself_and_looking_makes_none(saving: Tab, agent: int, api: Api) -> None:
    saving.open(f"/agents/{agent}")
    node(saving, "remind").click()
    saving.page.keyboard.press("0")
    saving.settle()
    before = api.get(f"/workflow/fetch/{agent}")
    assert before["version_status"] == "published"
    edit(saving.page, "Reminder")
    says(saving.page, "Not saved")
    says(saving.page, "Saved.")
    says(saving.page, "Draft, version 2")
    assert name_of(api, agent) == "Reminder"
    published = api.get(f"/workflow/{agent}/versions")[1]["workflow_json"]
    assert published == before["workflow_definition"]
    # The form is as it was, with what is typed next.
    expect(saving.page.get_by_label(re.compile("^Name"))).to_be_focused()
    looks_good(saving)


def test_settings_save_themselves_while_they_are_typed(saving: Tab, agent: int, api: Api) -> None:
    saving.open(f"/agents/{agent}")
    saving.role("tab", "Settings").click()
    language = saving.page.get_by_label("Language")
    language.press_sequentially("de")
    says(saving.page, "Saved.")
    expect(language).to_be_focused()
    language.press_sequentially("-DE")
    says(saving.page, "Not saved")
    says(saving.page, "Saved.")
    assert api.get(f"/workflow/fetch/{agent}")["workflow_configurations"] == {"language": "de-DE"}
    longest = saving.page.get_by_label("Longest call")
    with saving.expecting("422 PUT", "422 POST .*/lint"):
        longest.fill("5000")
        says(saving.page, re.compile("Not saved: .*1200"))
    longest.fill("500")
    says(saving.page, "Saved.")
    saving.page.get_by_label(re.compile("^Name")).fill("Another name")
    saving.heading("Another name")
    says(saving.page, "Saved.")


def test_talk_tests_publish_and_leaving_save_first_and_ask_nothing(saving: Tab, agent: int, api: Api) -> None:
    for link in ("Talk", "Tests", "Calls"):
        saving.open(f"/agents/{agent}")
        edit(saving.page, f"Before {link}")
        saving.role("link", link, exact=True).first.click()
        expect(saving.page.locator(".agent-state")).to_have_count(0)
        saving.ready()
        assert name_of(api, agent) == f"Before {link}"
    assert saving.page.evaluate("Object.keys(sessionStorage).filter((name) => name.includes('draft')).length") == 0
    saving.open(f"/agents/{agent}")
    edit(saving.page, "Before publishing")
    saving.press("Publish", exact=True)
    saving.notices(re.compile("is published"))
    assert api.get(f"/workflow/fetch/{agent}")["version_status"] == "published"
    assert name_of(api, agent) == "Before publishing"


def test_a_browser_may_save_by_hand(saving: Tab, agent: int, api: Api) -> None:
    saving.open("/settings/preferences")
    saving.page.get_by_label("Changes of agents save themselves").uncheck()
    saving.open(f"/agents/{agent}")
    saving.page.clock.install()
    edit(saving.page, "By hand")
    says(saving.page, "Not saved")
    saving.page.clock.run_for(60_000)
    saving.settle()
    assert name_of(api, agent) != "By hand"
    saving.role("link", "Calls").first.click()
    question = saving.page.get_by_role("alertdialog")
    expect(question).to_contain_text("isn't saved")
    question.get_by_role("button", name="Cancel").click()
    saving.press("Save", exact=True)
    saving.notices("Saved as the draft.")
    assert name_of(api, agent) == "By hand"


def kept(page: Page) -> str:
    found: str = page.evaluate("Object.entries(sessionStorage).find(([name]) => name.includes('draft'))?.[1] ?? ''")
    return found


def test_what_was_not_saved_is_offered_after_a_reload(
    tab: Tab, agent: int, api: Api, wait_for: Callable[..., Any]
) -> None:
    """Saved by hand here, so that nothing is saved before the reload."""
    tab.open(f"/agents/{agent}")
    edit(tab.page, "Kept")
    wait_for(lambda: "Kept" in kept(tab.page))
    # Meanwhile somebody else saves: what was kept is joined with that.
    theirs = stored(api, agent)
    theirs["nodes"][0]["data"]["prompt"] = "Theirs."
    api.put(f"/workflow/{agent}", {"workflow_definition": theirs})
    for restored in (True, False):
        tab.page.reload()
        tab.ready()
        tab.sees(re.compile(r"^Changes from .*\d.* weren't saved\. Restore them, or drop them\.$"))
        expect(node(tab, "remind").locator(".name")).to_have_text("Remind")
        looks_good(tab)
        tab.press("Restore them" if restored else "Drop them")
        expect(tab.page.get_by_text("weren't saved")).to_have_count(0)
        expect(node(tab, "remind").locator(".name")).to_have_text("Kept" if restored else "Remind")
        if restored:
            tab.page.locator(".editor").get_by_role("button", name="Undo").click()
            tab.page.locator(".editor").get_by_role("button", name="Redo").click()
            wait_for(lambda: "Kept" in kept(tab.page))
    assert kept(tab.page) == ""
    tab.page.reload()
    tab.ready()
    assert tab.page.get_by_text("weren't saved").count() == 0
    assert tab.page.get_by_text("Not saved").count() == 0


def test_nothing_is_lost_while_the_service_does_not_answer(serve: Serve, open_tab: Open, tmp_path: Path) -> None:
    server = serve(folder=tmp_path, API_KEY=KEY)
    agent = made(Api(server.origin, KEY), example("appointment")["workflow_definition"])
    tab = open_tab(f"{server.origin}/#key={KEY}", f"/agents/{agent}", saves_itself=True)
    server.stop()
    with tab.expecting():
        edit(tab.page, "Later")
        says(tab.page, "Not saved: the service doesn't answer. Trying again; nothing is lost here.")
        looks_good(tab)
        # Leaving asks, because it can't be saved.
        tab.role("link", "Calls").first.click()
        tab.page.get_by_role("alertdialog").get_by_role("button", name="Cancel").click()
        tab.settle()
    serve(folder=tmp_path, API_KEY=KEY, command=("-m", "voiceapi", "serve", "--port", str(server.port)))
    expect(tab.page.locator(".agent-state")).to_contain_text("Saved.", timeout=60_000)
    assert name_of(Api(server.origin, KEY), agent) == "Later"


def test_what_is_refused_says_why_and_leads_to_its_node(saving: Tab, api: Api, agent: int) -> None:
    data = {"name": "Order", "trigger_path": "taken-path"}
    trigger = {"id": "t", "type": "trigger", "position": {"x": 0, "y": 600}, "data": data}
    made(api, {"nodes": [trigger], "edges": []})
    definition = stored(api, agent)
    definition["nodes"].append({**trigger, "data": {**data, "trigger_path": "another-path"}})
    mine = made(api, definition)
    saving.open(f"/agents/{mine}")
    node(saving, "t").click()
    with saving.expecting("409 PUT"):
        saving.fill(re.compile("^Last part of its address"), "taken-path")
        says(saving.page, re.compile("^.*Not saved: .*path"))
        looks_good(saving)
    node(saving, "remind").click()
    saving.page.locator(".agent-state").get_by_role("button", name="Order").click()
    expect(saving.page.get_by_role("heading", name="Order")).to_be_focused()
    saving.fill(re.compile("^Last part of its address"), "free-path")
    says(saving.page, "Saved.")
    assert stored(api, mine)["nodes"][-1]["data"]["trigger_path"] == "free-path"


def test_a_removed_secret_and_a_triggers_path_come_back_by_undo_past_saves(saving: Tab, agent: int, api: Api) -> None:
    saving.open(f"/agents/{agent}")
    for name in ("Call by request", "Report (webhook)"):
        saving.page.get_by_label("Type of the new step").select_option(label=name)
        saving.press("Add step")
    saving.fill(re.compile("^Address to send it to"), "https://ann:s3cr3t-word@crm.example/")
    says(saving.page, "Not saved")
    assert "s3cr3t" not in kept(saving.page)
    says(saving.page, "Saved.")
    first = stored(api, agent)["nodes"][-2:]
    assert first[0]["data"]["trigger_path"]
    assert first[1]["data"]["endpoint_url"] == "https://ann:********@crm.example/"
    for each in first:
        node(saving, each["id"]).click()
        saving.page.keyboard.press("Delete")
        says(saving.page, "Saved.")
        expect(saving.page.get_by_text("Not saved")).to_have_count(0)
    for _ in first:
        saving.page.locator(".editor").get_by_role("button", name="Undo").click()
        says(saving.page, "Not saved")
        says(saving.page, "Saved.")
    assert stored(api, agent)["nodes"][-2:] == first


# -- two tabs


def second(tab: Tab, server: Server, agent: int) -> Page:
    """Another tab of the same browser, on the same agent."""
    page = tab.watch(tab.page.context.new_page())
    page.goto(f"{server.origin}/#key={KEY}")
    page.goto(f"{server.origin}/#/agents/{agent}")
    page.locator("svg.scene").wait_for()
    return page


def test_two_tabs_have_the_changes_of_both(saving: Tab, server: Server, agent: int, api: Api) -> None:
    saving.open(f"/agents/{agent}")
    other = second(saving, server, agent)
    for page in (saving.page, other):
        says(page, "Open in another tab, too")
    edit(other, "From the other", "how_many")
    says(other, "Saved.")
    expect(node(saving, "how_many").locator(".name")).to_have_text("From the other")
    saving.notices("Saved in another tab, and shown here.")
    # Both at once: the second save is refused, unless its tab was told before, and has both.
    edit(saving.page, "Mine")
    edit(other, "Theirs", "another_day")
    for page in (saving.page, other):
        expect(page.locator('g.node[data-node="remind"] .name')).to_have_text("Mine")
        expect(page.locator('g.node[data-node="another_day"] .name')).to_have_text("Theirs")
        says(page, "Saved.")
    saving.settle()
    saving.problems = [each for each in saving.problems if "412 PUT" not in each]
    assert [name_of(api, agent, of) for of in ("remind", "another_day")] == ["Mine", "Theirs"]
    assert name_of(api, agent, "how_many") == "From the other"
    looks_good(saving)
    # What came from there is one step of the history.
    other.close()
    expect(saving.page.locator(".agent-state")).not_to_contain_text("another tab")


@pytest.mark.parametrize("choice", ["Here", "Saved elsewhere"])
def test_what_both_changed_is_listed_to_choose_from(saving: Tab, agent: int, api: Api, choice: str) -> None:
    saving.open(f"/agents/{agent}")
    theirs = stored(api, agent)
    theirs["nodes"][0]["data"] |= {"name": "Theirs", "prompt": "Their words."}
    theirs["nodes"][1]["data"]["name"] = "Only theirs"
    of = theirs["nodes"][0]["id"]
    with saving.expecting("412 PUT"):
        edit(saving.page, "Mine", of)
        api.put(f"/workflow/{agent}", {"workflow_definition": theirs})
        saving.sees("1 place differs: choose.")
        says(saving.page, "Not saved: choose what differs")
    looks_good(saving)
    assert name_of(api, agent, of) == "Theirs"
    # Saving by hand asks again, and overwrites nothing.
    saving.press("Save", exact=True)
    saving.sees("1 place differs: choose.")
    assert name_of(api, agent, of) == "Theirs"
    box = saving.page.get_by_role("group", name=re.compile("Name"))
    box.get_by_label(re.compile(f"^{choice}: ")).check()
    saving.press("Take what is chosen")
    name = "Mine" if choice == "Here" else "Theirs"
    expect(node(saving, of).locator(".name")).to_have_text(name)
    says(saving.page, "Saved.")
    found = stored(api, agent)["nodes"]
    assert (found[0]["data"]["name"], found[0]["data"]["prompt"]) == (name, "Their words.")
    assert found[1]["data"]["name"] == "Only theirs"
    saving.page.locator(".editor").get_by_role("button", name="Undo").click()
    expect(node(saving, of).locator(".name")).to_have_text("Mine")
