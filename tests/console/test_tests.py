"""The conversation cases of an agent: written, run, seen to fail, mended, covered; from files and from runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from asking import KEY, Api, Serve
from browsing import Open, Tab
from playwright.sync_api import Locator, expect
from seed import example
from steps import NAME, WORDS, change_a_node, looks_good, make_an_agent, publish

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]

YES = {"name": "They come", "turns": [{"caller": "Yes, I can."}, {"caller": "Two.", "says": "See you on Thursday"}]}
NO = {"name": "They don't come", "turns": [{"caller": "No."}], "expect": {"nodes": ["Remind", "Another day"]}}


@pytest.fixture
def agent(api: Api) -> int:
    body = example("appointment")
    del body["workflow_definition"]["nodes"][0]["data"]["trigger_path"]  # which another agent has
    return int(api.post("/workflow/create/definition", body)["id"])


def store(api: Api, agent: int, *cases: Any) -> list[int]:
    return [api.post(f"/workflow/{agent}/cases", {"case": case})["id"] for case in cases]


def turn(tab: Tab, number: int) -> Locator:
    return tab.page.get_by_role("group", name=f"Turn {number}", exact=True)


def test_a_case_is_written_seen_to_fail_mended_and_stored(tab: Tab, agent: int, api: Api) -> None:
    tab.open(f"/agents/{agent}")
    tab.follow("Tests")
    tab.heading("Tests of Appointment reminder")
    tab.follow("Write a test")
    tab.fill("Name", "Two people")
    turn(tab, 1).get_by_label("The caller's words").fill("Yes, I can.")
    turn(tab, 1).get_by_label("Then the agent is at the step").select_option("Companions")
    tab.press("Add a turn")
    expect(turn(tab, 2).get_by_label("The caller", exact=True)).to_be_focused()
    turn(tab, 2).get_by_label("The caller's words").fill("Two.")
    turn(tab, 2).get_by_label("The agent says").fill("noted that\nSee you on <b>Friday</b>")
    tab.press("Run it")
    result = tab.role("region", "Result")
    expect(result.get_by_role("status")).to_have_text("The test failed. Version 1, published.")
    wrong = result.get_by_role("article", name="Turn 2")
    expect(wrong.locator(".differs")).to_contain_text("See you on Thursday. Goodbye.")
    expect(wrong.locator(".mismatch")).to_contain_text("Expected: the agent says “See you on <b>Friday</b>”")
    expect(result.locator(".mismatch")).to_have_count(1)
    looks_good(tab)
    turn(tab, 2).get_by_label("The agent says").fill("noted that\nSee you on Thursday")
    tab.role("group", "Answers").get_by_role("button", name="Add an answer").click()
    tab.page.get_by_label("Name", exact=True).last.fill("companions")
    tab.page.get_by_label("Value", exact=True).last.fill("2")
    tab.press("Run it")
    expect(result.get_by_role("status")).to_have_text("The test passed. Version 1, published.")
    assert api.get(f"/workflow/{agent}/cases") == []
    tab.press("Save", exact=True)
    tab.notices("“Two people” is saved.")
    tab.heading("Two people")
    (stored,) = api.get(f"/workflow/{agent}/cases")
    assert stored["case"] == {
        "name": "Two people",
        "turns": [
            {"caller": "Yes, I can.", "node": "Companions"},
            {"caller": "Two.", "says": ["noted that", "See you on Thursday"]},
        ],
        "expect": {"variables": {"companions": 2}},
    }
    assert stored["enabled"] is True
    tab.fill("Name (required)", "Two of us")
    tab.press("Save", exact=True)
    tab.notices("“Two of us” is saved.")
    tab.press("Delete", exact=True)
    expect(tab.page.get_by_role("alertdialog")).to_contain_text("Delete the test “Two of us”?")


def test_the_form_keeps_what_it_has_no_fields_for(tab: Tab, agent: int, api: Api) -> None:
    """All members of a case are in the form, in a field or as JSON, and saving it without a change changes nothing."""
    everything = {
        "name": "Everything",
        "model": "played",
        "context": {"first_name": "Ada", "age": 36, "code": "36", "list": [1]},
        "direction": "inbound",
        "at": "2026-03-02T09:00:00+01:00",
        "fetch": {"returns": {"tier": "gold"}},
        "tools": [{"tool": "find_a_slot", "with": {"day": "monday"}, "returns": {"free": ["10:00"]}}],
        "opening": {"model": [{"say": "Hello."}], "says": ["Hello"], "edges": []},
        "turns": [
            {"caller": "two\nlines", "says": "one\ntwo", "model": [{"edge": "Yes"}]},
            {"keys": "12#", "after": 3, "matches": ["^a"], "never": ["b"]},
            {"silence": True, "node": "Nowhere"},
            {"ends": "voicemail", "transfers_to": "+12025550123", "transfer": "busy"},
            {"hangs_up": True},
        ],
        "expect": {
            "nodes": ["Remind"],
            "variables": {"n": 1, "text": "1", "gone": None},
            "webhooks": [{"node": "CRM", "body": {"a": 1}}],
        },
    }
    for case in (everything, YES, {"name": "Nothing"}):
        (id,) = store(api, agent, case)
        tab.open(f"/agents/{agent}/tests/{id}")
        tab.press("Save", exact=True)
        tab.notices(f"“{case['name']}” is saved.")
        assert api.get(f"/workflow/{agent}/cases/{id}")["case"] == {"turns": [], **case}


def test_turns_are_moved_and_removed_and_errors_stand_at_their_fields(tab: Tab, agent: int, api: Api) -> None:
    (id,) = store(api, agent, {"name": "Order", "turns": [{"caller": each} for each in ("one", "two", "three")]})
    tab.open(f"/agents/{agent}/tests/{id}")
    tab.press("Move turn 3 up")
    expect(tab.role("button", "Move turn 2 up")).to_be_focused()
    tab.press("Remove turn 1")
    expect(tab.role("button", "Remove turn 1")).to_be_focused()
    turn(tab, 2).get_by_label("The caller", exact=True).select_option(label="presses keys")
    turn(tab, 2).get_by_label("Keys").fill("a")
    turn(tab, 2).get_by_text("More of this turn").click()
    turn(tab, 2).get_by_label("As JSON").fill('{"matches": "("}')
    turn(tab, 2).get_by_text("More of this turn").click()
    with tab.expecting("422 PUT"):
        tab.press("Save", exact=True)
        expect(turn(tab, 2).get_by_label("Keys")).to_be_focused()
        expect(turn(tab, 2).get_by_text("it must be 1 to 64 of the keys")).to_be_visible()
        expect(turn(tab, 2).get_by_text(re.compile("^matches: it isn't a regular expression"))).to_be_visible()
    turn(tab, 2).get_by_label("Keys").fill("1")
    turn(tab, 2).get_by_label("As JSON").fill("{")
    tab.press("Save", exact=True)  # which sends nothing
    expect(turn(tab, 2).get_by_text(re.compile("^This isn't JSON"))).to_be_visible()
    turn(tab, 2).get_by_label("As JSON").fill("")
    tab.press("Save", exact=True)
    tab.notices("“Order” is saved.")
    assert api.get(f"/workflow/{agent}/cases/{id}")["case"]["turns"] == [{"caller": "three"}, {"keys": "1"}]


def test_a_case_is_edited_as_json(tab: Tab, agent: int, api: Api) -> None:
    store(api, agent, YES)
    tab.open(f"/agents/{agent}/tests/new")
    tab.press("JSON")
    text = tab.page.get_by_label("The test as JSON")
    text.fill(json.dumps(YES | {"turns": [{"caller": "Hm", "says": 1, "sings": True}]}))
    with tab.expecting("422 POST"):
        tab.press("Save", exact=True)
        tab.sees(re.compile(r"^turns\.0\.sings: it isn't known"))
    text.fill(json.dumps(YES))
    with tab.expecting("409 POST"):
        tab.press("Save", exact=True)
        tab.sees("name: Another case of the workflow has the name “They come”.")
    text.fill('{"name": "Typed", "turns": 3}')
    tab.press("JSON")
    tab.sees("turns: it must be a list of objects.")
    text.fill('{"name": "Typed", "turns": [{"keys": "1"}]}')
    tab.press("JSON")
    expect(tab.page.get_by_label("Name (required)")).to_have_value("Typed")
    expect(turn(tab, 1).get_by_label("Keys")).to_have_value("1")
    (odd,) = store(api, agent, {"name": "Odd", "opening": None, "turns": {"caller": "One turn, in no list."}})
    # What isn't saved isn't lost by a click.
    tab.role("link", "All tests").click()
    tab.press("Cancel")
    tab.press("Save", exact=True)
    tab.heading("Typed")
    tab.open(f"/agents/{agent}/tests/{odd}")
    expect(tab.role("button", "JSON")).to_have_attribute("aria-pressed", "true")
    expect(text).to_have_value(re.compile("One turn, in no list"))


def test_all_cases_are_run_with_what_they_touch(tab: Tab, agent: int, api: Api) -> None:
    ids = store(api, agent, YES, NO)
    tab.open(f"/agents/{agent}/tests")
    cases, results = tab.role("region", "Tests").last, tab.role("region", "Results")
    expect(cases.get_by_text("not run yet in this tab")).to_have_count(2)
    tab.press("Switch “They don't come” off")
    tab.notices("“They don't come” isn't run any more with the others.")
    tab.press("Run all tests")
    expect(results.get_by_role("status")).to_have_text("The test passed. Version 1, published.")
    covered = tab.page.locator(
        ".card", has=tab.page.get_by_role("heading", name="Which parts of the agent the tests reach")
    )
    expect(covered).to_contain_text("Steps reached, 75 %")
    expect(covered.get_by_role("list", name="Steps that no test reaches")).to_have_text("Another day")
    expect(covered.get_by_role("list", name="Paths that no test takes")).to_have_text("No (Remind → Another day)")
    drawing = covered.locator("svg")
    expect(drawing.locator("g.is-untouched")).to_have_count(2)
    expect(drawing.locator('g.node[data-node="another_day"] .badges')).to_have_text("never")
    expect(drawing.locator('g.node[data-node="remind"] .badges')).to_have_text("1×")
    expect(cases.get_by_text("passed")).to_have_count(1)
    looks_good(tab)
    tab.press("Switch “They don't come” on")
    tab.press("Run all tests")
    expect(results.get_by_role("status")).to_have_text("All 2 tests passed. Version 1, published.")
    tab.sees("Every step, every path and every answer is reached.")
    # Where nothing is extracted, nothing is covered of it.
    definition = api.get(f"/workflow/fetch/{agent}")["workflow_definition"]
    definition["nodes"][2]["data"]["extraction_enabled"] = False
    api.put(f"/workflow/{agent}", {"workflow_definition": definition})
    tab.follow("Agents")
    tab.open(f"/agents/{agent}/tests")
    tab.press("Run all tests")
    expect(covered).to_contain_text("Answers: the agent has none.")
    expect(covered).not_to_contain_text("of 0")
    tab.sees("Every step and every path is reached.")
    # It breaks when the agent changes.
    definition = api.get(f"/workflow/fetch/{agent}")["workflow_definition"]
    next(node for node in definition["nodes"] if node["id"] == "see_you")["data"]["scripted_text"] = "Bye."
    api.put(f"/workflow/{agent}", {"workflow_definition": definition})
    tab.follow("Agents")
    tab.open(f"/agents/{agent}/tests")
    expect(results.get_by_role("status")).to_have_text("All 2 tests passed. Version 2, draft.")  # that of before
    tab.press("Run all tests")
    expect(results.get_by_role("status")).to_have_text("1 of 2 tests failed. Version 2, draft.")
    expect(results.locator(".mismatch")).to_have_text(re.compile("^Expected: the agent says “See you on Thursday”"))
    tab.page.get_by_label("Version to test").select_option(label="Version 1 (published)")
    tab.press("Run “They come”")
    expect(results.get_by_role("status")).to_have_text("The test passed. Version 1, published.")
    tab.sees("By this test alone.")
    tab.press("Delete “They come”")
    tab.press("Delete", exact=True)
    tab.notices("“They come” is deleted.")
    assert [each["id"] for each in api.get(f"/workflow/{agent}/cases")] == ids[1:]


def test_a_file_of_cases_is_dropped_on_the_page(tab: Tab, agent: int, api: Api, tmp_path: Path) -> None:
    file = tmp_path / "appointment.cases.json"
    file.write_text(json.dumps({"model": "scripted", "context": {"first_name": "Ada", "a": 1}, "cases": [YES, NO]}))
    tab.open(f"/agents/{agent}/tests")
    chooser = tab.page.locator("input[type=file]")
    chooser.set_input_files(file)
    tab.notices("2 tests are taken from appointment.cases.json.")
    assert [each["case"] for each in api.get(f"/workflow/{agent}/cases")] == [
        {"model": "scripted", "context": {"first_name": "Ada", "a": 1}, **each} for each in (YES, NO)
    ]
    # The one that ships with the agent, in YAML.
    file = ROOT / "examples" / "appointment.cases.yaml"
    chooser.set_input_files(file)
    tab.notices(re.compile(r"^\d+ tests are taken from appointment.cases.yaml.$"))
    tab.press("Run all tests")
    expect(tab.role("region", "Results").get_by_role("status")).to_contain_text(re.compile("^All .* tests passed"))
    stored = api.get(f"/workflow/{agent}/cases")
    with tab.expecting("409 POST"):
        chooser.set_input_files(file)
        expect(tab.page.get_by_role("alertdialog")).to_contain_text("The workflow has cases with these names: “")
        tab.press("Cancel")
    with tab.expecting("409 POST"):
        chooser.set_input_files(file)
        tab.press("Replace")
        tab.settle()
    changed = api.get(f"/workflow/{agent}/cases")
    assert [each["case"] for each in changed] == [each["case"] for each in stored]
    assert [each["updated_at"] for each in changed[2:]] > [each["updated_at"] for each in stored[2:]]
    file = tmp_path / "wrong.cases.yml"
    file.write_text("cases:\n- name: Third\n  turns:\n  - keys: x")
    with tab.expecting("422 POST"):
        chooser.set_input_files(file)
        tab.sees(re.compile("line 4, column 5: cases.0.turns.0.keys: it must be"))
    assert api.get(f"/workflow/{agent}/cases") == changed


def test_an_agent_demands_tests_before_it_is_published(serve: Serve, open_tab: Open) -> None:
    """From a template to a published agent: a case that fails, the agent mended, everything touched, and demanded."""
    server = serve(API_KEY=KEY)
    tab, api = open_tab(f"{server.origin}/#key={KEY}"), Api(server.origin, KEY)
    make_an_agent(tab)
    number = re.search(r"/agents/(\d+)", tab.page.url)
    assert number
    agent = int(number[1])
    for case in api.get(f"/workflow/{agent}/cases"):
        api.ask("DELETE", f"/workflow/{agent}/cases/{case['id']}")
    tab.role("tab", "Settings").click()
    tab.page.get_by_label("Findings").select_option(label="No errors")
    tab.page.get_by_label("All tests that are switched on pass").check()
    with tab.expecting("422 PUT", "422 POST .*/lint"):
        with tab.page.expect_response("**/lint"):  # it is checked as it is typed, before it is saved
            tab.page.get_by_label("Paths that the tests reach, in %").fill("101")
        tab.press("Save", exact=True)
        expect(tab.page.locator('[data-name$="publish_requirements.coverage.edges"] .field-error')).not_to_be_empty()
    for kind in ("Steps", "Paths"):
        tab.page.get_by_label(f"{kind} that the tests reach, in %").fill("100")
    tab.press("Save", exact=True)
    tab.notices("Saved as the draft.")
    assert api.get(f"/workflow/fetch/{agent}")["workflow_configurations"]["publish_requirements"] == {
        "lint": "errors",
        "cases": True,
        "coverage": {"nodes": 100, "edges": 100},
    }
    with tab.expecting("422 POST .*/publish"):
        tab.press("Publish")
        tab.sees("Not published: the draft doesn't meet yet what this agent requires.")
    tab.sees("No enabled case is stored with the workflow, and cases have to pass.")
    tab.sees(re.compile("^The cases cover 0 % of the nodes, and 100 % is demanded. Untouched: “Opening”"))
    looks_good(tab)
    tab.follow("Versions")
    with tab.expecting("422 POST .*/publish"):
        tab.press(re.compile("^Publish version"))
        tab.sees("Not published: the draft doesn't meet yet what this agent requires.")
    # A case, which fails.
    tab.follow("Go to its tests")
    tab.role("link", "Write a test").first.click()
    tab.ready()
    tab.fill("Name", "They order bread")
    turn(tab, 1).get_by_label("The caller's words").fill("Yes, it is.")
    turn(tab, 1).get_by_label("The agent says").fill(WORDS)
    tab.press("Add a turn")
    turn(tab, 2).get_by_label("The caller's words").fill("Yes, please.")
    turn(tab, 2).get_by_label("Then the agent is at the step").select_option("Done")
    tab.press("Save", exact=True)
    tab.heading("They order bread")
    tab.press("Run it")
    result = tab.role("region", "Result")
    expect(result.locator(".mismatch")).to_contain_text(f"the agent says “{WORDS}”")
    # The agent is mended.
    tab.role("navigation", "Where this page belongs").get_by_role("link", name=NAME).click()
    tab.ready()
    change_a_node(tab)
    tab.follow("Tests")
    tab.press("Run all tests")
    results = tab.role("region", "Results")
    expect(results.get_by_role("status")).to_contain_text("The test passed.")
    edges = tab.role("list", "Paths that no test takes").get_by_role("listitem")
    expect(edges).to_have_text(["Not now (Opening → Not now)", "Declined (Conversation → Not now)"])
    tab.page.locator("input[type=file]").set_input_files(
        {
            "name": "more.json",
            "mimeType": "application/json",
            "buffer": json.dumps(
                {
                    "cases": [
                        {"name": "They are busy", "turns": [{"caller": "No, not now."}]},
                        {"name": "They want none", "turns": [{"caller": "Yes."}, {"caller": "No."}]},
                    ]
                }
            ).encode(),
        }
    )
    tab.notices("2 tests are taken from more.json.")
    tab.press("Run all tests")
    expect(results.get_by_role("status")).to_contain_text("All 3 tests passed.")
    tab.sees("Every step and every path is reached.")
    tab.role("navigation", "Where this page belongs").get_by_role("link", name=NAME).click()
    tab.ready()
    publish(tab)
