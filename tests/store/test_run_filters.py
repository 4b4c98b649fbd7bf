"""Lists of runs by tags, numbers and names, whatever texts those are: each database finds the same runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from voiceapi.organizations import api_keys
from voiceapi.service import Service
from voiceapi.store import dialing, run_lists, runs
from voiceapi.store.base import insert, reload
from voiceapi.store.campaigns import Campaign, Contact
from voiceapi.store.database import ConcurrentUpdate, write
from voiceapi.store.fields import EPOCH, Stored, now
from voiceapi.store.organizations import Credential
from voiceapi.store.postcall import Delivery
from voiceapi.store.run_lists import ALL, Criteria, View
from voiceapi.store.runs import Run
from voiceapi.store.workflows import Workflow
from voiceapi.workflows import versions

BY_ID = View(1, 100, "id", False)
# Random enough to be no shorter when it is compressed.
LONG = "".join(chr(0x4E00 + n * n % 20_000) for n in range(5000))


@pytest.fixture
def workflow(service: Service, db: None) -> Workflow:
    organization = api_keys.require_organization(api_keys.DEFAULT_ORGANIZATION).id
    return versions.create(service.vault, organization, "w", {})[0]


@pytest.fixture
def store(workflow: Workflow) -> Callable[..., int]:
    """Stores a run, and returns its id."""

    def store(**columns: Any) -> int:
        given = {"name": "n", "mode": "simulator", "token": f"token-{Run.select().count()}", **columns}
        return int(insert(Run, workflow=workflow, organization=workflow.organization_id, **given).id)

    return store


def found(workflow: Workflow, criteria: Criteria, view: View = BY_ID) -> list[int]:
    """The ids of the runs of each list, which are the same."""
    workflow = reload(workflow)
    pages = [
        run_lists.of_workflow(workflow, criteria, view),
        run_lists.of_organization(workflow.organization_id, criteria, view),
    ]
    lists = [[run.id for run in page.runs] for page in pages]
    assert lists[0] == lists[1]
    assert [page.total for page in pages] == [len(lists[0])] * 2
    return lists[0]


@pytest.mark.parametrize("sort_by", ["created_at", "duration", "id", "name"])
def test_a_run_has_all_of_the_tags_asked_for(workflow: Workflow, store: Callable[..., int], sort_by: str) -> None:
    one, both, _ = (store(gathered_context={"call_tags": tags}) for tags in (["a"], ["b", "a", "c"], ["A", "ab", ""]))
    none = [
        store(gathered_context=context) for context in ({}, {"call_tags": None}, {"call_tags": []}, {"tags": ["a"]})
    ]
    view = View(1, 100, sort_by, False)
    assert found(workflow, run_lists.tagged(["a"]), view) == [one, both]
    assert found(workflow, run_lists.tagged(["b", "a", "b"]), view) == [both]
    assert found(workflow, run_lists.tagged(["b", "x"]), view) == []
    assert len(found(workflow, run_lists.tagged([]), view)) == 3 + len(none)


@pytest.mark.parametrize(
    "beside",
    [
        "\0",
        "\\u0000",
        "\\\0",
        '"\ud800"',
        "\\\\\ud83d\\ude00",
        "😀",
        'call_tags": ["b',
        10**400,
        [[[[]]]],
        {"call_tags": ["b"]},
    ],
)
def test_tags_are_found_beside_whatever_was_gathered(
    workflow: Workflow, store: Callable[..., int], beside: Any
) -> None:
    """JSON of PostgreSQL refuses some of it, which mustn't keep a run from being stored, or from being found."""
    before = store(gathered_context={"notes": beside, "call_tags": ["a", "ü\\ \"'%_ "]})
    behind = store(gathered_context={"call_tags": ["a"], "notes": [beside]})
    assert found(workflow, run_lists.tagged(["a"])) == [before, behind]
    assert found(workflow, run_lists.tagged(["ü\\ \"'%_ "])) == [before]
    assert found(workflow, run_lists.tagged(["b"])) == []
    Run.update(gathered_context={"notes": beside, "call_tags": ["b"]}).where(Run.id == before).execute()
    assert found(workflow, run_lists.tagged(["a"])) == [behind]
    assert found(workflow, run_lists.tagged(["b"])) == [before]


@pytest.mark.parametrize("depth", [100, 20_000])
def test_a_run_is_stored_however_deep_its_context_is(workflow: Workflow, store: Callable[..., int], depth: int) -> None:
    store(gathered_context=Stored('{"deep":' + "[" * depth + "]" * depth + ',"call_tags":["a"]}'))
    assert len(found(workflow, ALL)) == 1


@pytest.mark.parametrize("tags", [1, "a", {"a": "a"}, [1, None, True, {"a": 1}]])
def test_tags_that_are_no_texts_find_nothing_wrong(workflow: Workflow, store: Callable[..., int], tags: Any) -> None:
    store(gathered_context={"call_tags": tags})
    for tag in ("1", "true", "null", "x"):
        assert found(workflow, run_lists.tagged([tag])) == []


def test_no_text_is_too_long_to_be_listed(workflow: Workflow, store: Callable[..., int]) -> None:
    """An index entry of PostgreSQL holds no more than 2,700 bytes."""
    long = store(name=LONG, disposition=LONG, state="completed", gathered_context={"call_tags": [LONG, "a"]})
    short = store(name="a", disposition="a", gathered_context={"call_tags": ["a"]})
    for view in (BY_ID, View(1, 100, "created_at", False)):
        assert found(workflow, ALL, view) == [long, short]
    assert found(workflow, ALL, View(1, 100, "name", False)) == [short, long]
    assert found(workflow, run_lists.tagged([LONG])) == [long]
    assert found(workflow, run_lists.tagged(["a"])) == [long, short]
    assert found(workflow, run_lists.disposition_in(["a", "b"])) == [short]
    Run.update(disposition=f"b{LONG}", name=f"A{LONG}").where(Run.id == long).execute()
    assert found(workflow, run_lists.completed(True)) == [long]
    assert found(workflow, ALL, View(1, 100, "name", False)) == [long, short]


def test_names_are_in_the_order_of_their_code_points(workflow: Workflow, store: Callable[..., int]) -> None:
    names = ["b", "a", "B", "ä", "Z", "_", "a b", "aB", "", "😀", "￿", "10", "9"]
    ids = {name: store(name=name) for name in names}
    ordered = [ids[name] for name in sorted(names)]
    assert found(workflow, ALL, View(1, 100, "name", False)) == ordered
    assert found(workflow, ALL, View(1, 100, "name", True)) == ordered[::-1]


def test_a_number_is_found_by_any_part_of_it(workflow: Workflow, store: Callable[..., int]) -> None:
    phone, address, odd = (store(called_number=number) for number in ("+12025550100", "sip:Änn@Host", "50%_\\x"))
    store(called_number=None, caller_number="+12025550100")
    for part, wanted in {
        "555": [phone],
        "ANN": [],
        "änn": [],
        "ÄNN": [address],
        "sip:Änn@hOST": [address],
        "%": [odd],
        "_": [odd],
        "\\X": [odd],
        "": [phone, address, odd],
    }.items():
        assert found(workflow, run_lists.column_holds("called_number", part)) == wanted, part


def test_durations_are_compared_with_all_their_digits(workflow: Workflow, store: Callable[..., int]) -> None:
    id = store(duration=1.1)
    assert found(workflow, run_lists.duration_between(1.1, 1.1)) == [id]
    assert found(workflow, run_lists.duration_between(1, None)) == [id]
    [run] = run_lists.of_workflow(reload(workflow), ALL, BY_ID).runs
    assert run.duration == 1.1


def test_no_text_is_too_long_to_be_kept_unique_or_found(workflow: Workflow, store: Callable[..., int]) -> None:
    """What lists of contacts, definitions, carriers and requests bring has any length."""
    organization = workflow.organization_id
    run = store(call_type="inbound", telephony_configuration_id=1, carrier_call_id=LONG)
    assert run == getattr(runs.of_inbound_call(1, LONG), "id", None)
    assert runs.of_inbound_call(1, LONG[:-1]) is runs.of_inbound_call(1, None) is None
    given = {"source_type": "csv", "source_id": "x", "retry_config": {}, "circuit_breaker": {}}
    campaign = Campaign.create(organization=organization, workflow=workflow, name="c", **given)
    contact = Contact.create(campaign=campaign, row=1, phone_number=LONG)
    dialing.decide(contact, "dialed", "", contact.next_attempt_at or now(), run)
    assert list(dialing.dialed_since(organization, [LONG, "+1"], EPOCH)) == [LONG]
    assert dialing.add_to_do_not_call(organization, {LONG: None, "+1": None}) == 2
    assert dialing.add_to_do_not_call(organization, {LONG: None}) == 0
    assert dialing.not_to_call(organization, [LONG, "+2"]) == {LONG}
    assert dialing.remove_from_do_not_call(organization, LONG)
    assert dialing.all_not_to_call(organization) == {"+1"}
    for other in ("a", "b"):
        shared = {"organization": organization, "run": run, "node_name": "n", "delivery_uuid": other}
        insert(Delivery, node_id=f"{LONG}{other}", **shared)
        insert(
            Credential, organization=organization, uuid=other, name=f"{LONG}{other}", credential_type="none", data="{}"
        )
    with pytest.raises(ConcurrentUpdate), write():
        insert(Delivery, node_id=f"{LONG}a", **{**shared, "delivery_uuid": "c"})
    with pytest.raises(ConcurrentUpdate), write():
        insert(Credential, organization=organization, uuid="c", name=f"{LONG}a", credential_type="none", data="{}")
