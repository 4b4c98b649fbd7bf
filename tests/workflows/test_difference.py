"""What differs between two definitions, for programs and in words."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workflows.test_drawing import DEFINITIONS
from voiceapi.workflows import comparison
from voiceapi.workflows.comparison import compare

Talk = Callable[..., dict[str, Any]]


def test_the_same_definitions_do_not_differ(talk: Talk) -> None:
    assert compare(talk(), talk(), {"a": 1}, {"a": 1}) == {
        "is_same": True,
        "sentences": ["Nothing differs."],
        "nodes": {"added": [], "removed": [], "changed": [], "order": None},
        "edges": {"added": [], "removed": [], "changed": [], "order": None},
        "moved": [],
        "configurations": [],
        "variables": [],
    }


def test_all_that_differs_is_told_in_words(talk: Talk) -> None:
    before = talk("reminder")
    after = copy.deepcopy(before)
    start, fine, sorry, trigger = after["nodes"]
    start["data"] |= {"name": "Welcome", "prompt": "Ask whether today is good.", "allow_interrupt": True}
    start["data"].pop("greeting")
    sorry["type"] = "agentNode"
    trigger["position"] = {"x": 5, "y": 5}
    after["nodes"].remove(fine)
    after["nodes"].append({"id": "4", "type": "endCall", "data": {"name": "Later"}})
    yes, no = after["edges"]
    yes |= {"target": "4", "data": {"label": "Gladly", "condition": yes["data"]["condition"]}}
    no["data"] |= {"condition": "They refuse.", "transition_speech": "I see."}
    after["edges"].append({"id": "new", "source": "3", "target": "4", "data": {"label": "End"}})
    found = compare(before, after, {"language": "de-DE"}, {"max_call_duration": 60}, {"firm": "A"}, {"firm": "B"})
    assert found["sentences"] == [
        "Added the End Call “Later”.",
        "Removed the End Call “Fine”.",
        "Renamed “Hello” to “Welcome”.",
        "“Welcome”: Prompt is “Ask whether today is good.” now, and was “Ask whether now is good.”.",
        "“Welcome”: Allow Interruption is on now.",
        "“Welcome”: Greeting Text was removed, and was “Hello, is now a good time?”.",
        "“Sorry” was of the type End Call, and is of the type Agent Node now.",
        "Added the edge “End” from “Sorry” to “Later”.",
        "The edge “Gladly” from “Welcome” to “Later” led to “Fine” before.",
        "The edge “Gladly” from “Welcome” to “Later” was called “Yes” before.",
        "The edge “No” from “Welcome” to “Sorry”: condition is “They refuse.” now, and was “The callee declines.”.",
        "The edge “No” from “Welcome” to “Sorry”: transition_speech is “I see.” now.",
        "Moved “Trigger” in the drawing.",
        "The setting max_call_duration is 60 now.",
        "The setting language was removed, and was “de-DE”.",
        "The template variable firm is “B” now, and was “A”.",
    ]
    assert found["is_same"] is False
    assert found["nodes"]["added"] == [{"id": "4", "type": "endCall", "name": "Later", "item": after["nodes"][-1]}]
    assert found["nodes"]["removed"] == [{"id": "2", "type": "endCall", "name": "Fine", "item": fine}]
    assert found["moved"] == [
        {"id": "t", "type": "trigger", "name": "Trigger", "old": {"x": 0, "y": 0}, "new": {"x": 5, "y": 5}}
    ]
    assert found["edges"]["changed"][0]["fields"][0] == {
        "field": "target",
        "old": "2",
        "new": "4",
        "words": [{"change": "removed", "text": "2"}, {"change": "added", "text": "4"}],
    }
    assert found["configurations"][0] == {"field": "max_call_duration", "old": None, "new": 60}


def test_a_prompt_is_compared_word_by_word(talk: Talk) -> None:
    old = "Ask whether the caller, or somebody else, has time today.\nBe brief."
    new = "Ask whether the caller has some time tomorrow.\nBe brief."
    (node,) = compare(talk(prompt=old), talk(prompt=new))["nodes"]["changed"]
    (change,) = node["fields"]
    assert (change["field"], change["old"], change["new"]) == ("data.prompt", old, new)
    assert [(part["change"], part["text"]) for part in change["words"]] == [
        ("kept", "Ask whether the caller"),
        ("removed", ", or somebody else,"),
        ("kept", " has "),
        ("added", "some "),
        ("kept", "time "),
        ("removed", "today"),
        ("added", "tomorrow"),
        ("kept", ".\nBe brief."),
    ]


def test_moves_stand_apart_from_changes(talk: Talk) -> None:
    after = talk()
    for at, node in enumerate(after["nodes"]):
        node["position"] = {"x": at * 300, "y": 1}
    found = compare(talk(), after)
    assert found["nodes"] == {"added": [], "removed": [], "changed": [], "order": None}
    assert found["sentences"] == ["Moved 3 nodes in the drawing."]


def test_other_notes_are_a_difference_without_parts(talk: Talk) -> None:
    after = {**talk(), "notes": [{"id": "why", "text": "Ask legal.", "x": 0, "y": 0, "width": 200, "height": 60}]}
    found = compare(talk(), after)
    assert (found["sentences"], found["is_same"]) == (["The notes on the canvas differ."], False)
    assert compare(after, after)["is_same"]
    assert compare({**talk(), "notes": 3}, talk())["is_same"]


def test_nodes_with_one_id_and_without_are_paired_in_their_order() -> None:
    before = {
        "nodes": [{"id": "a", "data": {"name": "1"}}, {"id": "a", "data": {"name": "2"}}, {"data": {"name": "x"}}]
    }
    after = copy.deepcopy(before)
    after["nodes"][1]["data"]["name"] = "3"
    after["nodes"][2]["data"]["name"] = "y"
    assert compare(before, after)["sentences"] == ["Renamed “2” to “3”.", "Renamed “x” to “y”."]


def test_texts_of_a_hundred_kilobytes_are_compared_as_wholes(talk: Talk) -> None:
    old, new = "one two " * 10_000 + "one", "two three " * 10_000 + "two"
    (node,) = compare(talk(prompt=old), talk(prompt=new))["nodes"]["changed"]
    assert node["fields"][0]["words"] == [{"change": "removed", "text": old}, {"change": "added", "text": new}]


def test_a_change_in_a_hundred_kilobytes_is_shown_by_word(talk: Talk) -> None:
    same = "one two " * 10_000
    (node,) = compare(talk(prompt=f"{same}Monday {same}"), talk(prompt=f"{same}on Tuesday {same}"))["nodes"]["changed"]
    assert node["fields"][0]["words"] == [
        {"change": "kept", "text": same},
        {"change": "removed", "text": "Monday"},
        {"change": "added", "text": "on Tuesday"},
        {"change": "kept", "text": f" {same}"},
    ]


def test_texts_whose_words_all_match_are_compared_within_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """These 1.4 kB keep the standard library's matcher busy for seconds; a version may have many such texts."""
    looked_at = 0
    find = SequenceMatcher.find_longest_match

    def counted(self: Any, *place: int) -> Any:
        nonlocal looked_at
        looked_at += sum(len(self.b2j.get(word, ())) for word in self.a[place[0] : place[1]])
        return find(self, *place)

    monkeypatch.setattr(SequenceMatcher, "find_longest_match", counted)
    old, new = {f"{at:02}": "a b " * 350 for at in range(9)}, {f"{at:02}": "b c " * 350 for at in range(9)}
    changes = compare({}, {}, {}, {}, {**old, "last": "kept yesterday"}, {**new, "last": "kept today"})["variables"]
    assert [len(change["words"]) for change in changes[:-1]] == [3] * 9  # the last blank is kept
    assert [part["change"] for part in changes[-1]["words"]] == ["kept", "removed", "added"]
    assert looked_at <= comparison.MOST_PAIRS


def test_true_is_not_one() -> None:
    assert compare({}, {}, {"a": 1}, {"a": True})["configurations"] == [{"field": "a", "old": 1, "new": True}]
    below = compare({}, {}, {"a": [{"b": 0}]}, {"a": [{"b": False}]})["configurations"]
    assert below == [{"field": "a", "old": [{"b": 0}], "new": [{"b": False}]}]


@settings(max_examples=30)
@given(DEFINITIONS, DEFINITIONS)
def test_any_two_definitions_can_be_compared(before: Any, after: Any) -> None:
    found = compare(before, after)
    assert all(isinstance(sentence, str) and sentence.endswith(".") for sentence in found["sentences"])


def applied(before: Any, difference: dict[str, Any]) -> dict[str, list[Any]]:
    """What a difference makes of a definition."""
    return {
        "nodes": _applied(before["nodes"], difference["nodes"], difference["moved"]),
        "edges": _applied(before["edges"], difference["edges"], []),
    }


def _applied(items: list[Any], difference: dict[str, Any], moved: list[Any]) -> list[Any]:
    left = copy.deepcopy(items)
    for each in difference["removed"]:
        left.remove(each["item"])
    for each in difference["changed"]:
        changed = next(item for item in left if item["id"] == each["id"])
        for field in each["fields"]:
            inside = field["field"].startswith("data.")
            holder = changed.setdefault("data", {}) if inside else changed
            name = field["field"].removeprefix("data.")
            assert holder.get(name) == field["old"]
            holder[name] = field["new"]
            assert "".join(part["text"] for part in field.get("words", ()) if part["change"] != "removed") == (
                field["new"] if "words" in field else ""
            )
    for each in moved:
        changed = next(item for item in left if item["id"] == each["id"])
        assert changed.get("position") == each["old"]
        changed["position"] = each["new"]
    left += [each["item"] for each in difference["added"]]
    if difference["order"] is not None:
        left.sort(key=lambda item: difference["order"].index(item["id"]))
    return left


def applied_to(values: dict[str, Any], changes: list[Any]) -> dict[str, Any]:
    return without_nulls({**values, **{change["field"]: change["new"] for change in changes}})


def without_nulls(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def comparable(definition: dict[str, Any]) -> str:
    """A definition without what editors store for themselves and without nulls, as text: 1 isn't true."""
    parts = {
        kind: [
            without_nulls({**item, "data": without_nulls(item.get("data", {})), "selected": None})
            for item in definition[kind]
        ]
        for kind in ("nodes", "edges")
    }
    return json.dumps(parts, sort_keys=True)


MEMBERS = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(alphabet="ab .", max_size=12),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from("xy"), below, max_size=2),
    max_leaves=4,
)
DATA = st.dictionaries(st.sampled_from(["name", "prompt", "greeting", "label", "own"]), MEMBERS, max_size=4)


def items_of(**members: Any) -> Any:
    """Lists of nodes or edges whose ids differ: of few ids, so that most pairs share some."""
    item = st.fixed_dictionaries(
        {"id": st.sampled_from("abcdef")}, optional={**members, "data": DATA, "selected": st.booleans()}
    )
    return st.lists(item, max_size=6, unique_by=lambda item: item["id"])


WELL_FORMED = st.fixed_dictionaries(
    {
        "nodes": items_of(type=st.sampled_from(["startCall", "agentNode", "unknown"]), position=MEMBERS, own=MEMBERS),
        "edges": items_of(source=st.sampled_from("abc"), target=st.sampled_from("abc"), own=MEMBERS),
    }
)
SETTINGS = st.dictionaries(st.sampled_from(["language", "voice", "own"]), MEMBERS, max_size=3)


@given(WELL_FORMED, WELL_FORMED, SETTINGS, SETTINGS)
def test_a_difference_applied_to_the_one_gives_the_other(before: Any, after: Any, old: Any, new: Any) -> None:
    found = compare(before, after, old, new, new, old)
    assert comparable(applied(before, found)) == comparable(after)
    for values, changes, wanted in ((old, "configurations", new), (new, "variables", old)):
        assert json.dumps(applied_to(values, found[changes]), sort_keys=True) == json.dumps(
            without_nulls(wanted), sort_keys=True
        )
    # What the definition shows doesn't depend on which of the two is compared with the other.
    back = compare(after, before, new, old, old, new)
    assert comparable(applied(after, back)) == comparable(before)
    assert found["is_same"] == back["is_same"]


@given(WELL_FORMED)
def test_nothing_but_a_difference_is_one(definition: Any) -> None:
    assert compare(definition, copy.deepcopy(definition))["is_same"]


def test_another_order_is_a_difference(talk: Talk) -> None:
    after = talk()
    after["edges"].reverse()
    found = compare(talk(), after)
    assert found["sentences"] == ["The edges stand in another order."]
    assert found["edges"] == {"added": [], "removed": [], "changed": [], "order": ["1-3", "1-2"]}
    # One that is put between others isn't said twice.
    first = {"id": "new", "source": "1", "target": "2", "data": {"label": "Perhaps"}}
    found = compare(talk(), {**talk(), "edges": [first, *talk()["edges"]]})
    assert found["sentences"] == ["Added the edge “Perhaps” from “Hello” to “Fine”."]
    assert found["edges"]["order"] == ["new", "1-2", "1-3"]


TEXTS = st.text(alphabet="ab .\n", max_size=40)


@given(TEXTS, TEXTS)
def test_the_parts_of_a_text_give_both_texts_back(old: str, new: str) -> None:
    changes = compare({}, {}, {}, {}, {"text": old}, {"text": new})["variables"]
    parts = changes[0]["words"] if changes else [{"change": "kept", "text": old}]
    assert "".join(part["text"] for part in parts if part["change"] != "added") == old
    assert "".join(part["text"] for part in parts if part["change"] != "removed") == new


@pytest.mark.parametrize("value", [None, 3, [], "x", {"nodes": 3}])
def test_what_is_no_definition_has_no_parts(value: Any, talk: Talk) -> None:
    assert len(compare(value, talk())["nodes"]["added"]) == 3
