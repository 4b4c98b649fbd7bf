"""Records: found by their columns, stored whole or in part, with statements that are written once."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from voiceapi.errors import RecordNotFound
from voiceapi.store.base import find, insert, insert_all, json_text, reload, require, set_changed, update
from voiceapi.store.chats import ChatSession
from voiceapi.store.database import ConcurrentUpdate, execute, sql, write
from voiceapi.store.fields import now
from voiceapi.store.organizations import ApiKey, Organization
from voiceapi.store.runs import Run, RunEvent, Step
from voiceapi.store.workflows import Workflow, WorkflowVersion
from voiceapi.strict_json import decode

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def organization() -> Organization:
    return Organization.create(name="records", preferences={"a": [1, None, "\u00e9"]})


@pytest.fixture
def workflow(organization: Organization) -> Workflow:
    return Workflow.create(organization=organization, workflow_uuid="uuid", name="Agent")


def version(workflow: Workflow, number: int, status: str = "archived") -> WorkflowVersion:
    return WorkflowVersion.create(
        workflow=workflow, version_number=number, status=status, definition={"nodes": [number]}, content_hash=""
    )


def make_run(workflow: Workflow, **columns: Any) -> Run:
    return Run.create(workflow=workflow, organization=workflow.organization, name="r", mode="simulator", **columns)


def test_a_record_comes_back_as_it_was_stored(workflow: Workflow) -> None:
    run = make_run(workflow, token="t", duration=1.5, has_transcript=True, initial_context={"x": {"y": [True]}})
    found = find(Run, token="t")
    assert found is not None
    assert found.columns() == run.columns()
    assert found.columns() == Run.get_by_id(run.id).columns()
    assert (found.duration, found.initial_context, found.campaign_id) == (1.5, {"x": {"y": [True]}}, None)


def test_a_record_is_found_by_several_columns_and_by_other_records(
    organization: Organization, workflow: Workflow
) -> None:
    for columns in (
        {"id": workflow.id, "organization": organization.id},
        {"organization": organization, "name": "Agent"},
    ):
        assert find(Workflow, **columns) == workflow
    for columns in ({"id": workflow.id, "organization": organization.id + 1}, {"id": workflow.id + 1}, {"name": None}):
        assert find(Workflow, **columns) is None
    with pytest.raises(RecordNotFound, match="no such agent"):
        require(Workflow, "no such agent", name="agent")


def test_the_newest_of_several(workflow: Workflow) -> None:
    for number in (2, 3, 1):
        version(workflow, number)
    found = find(WorkflowVersion, newest_by="version_number", workflow=workflow)
    assert found is not None
    assert (found.version_number, found.definition) == (3, {"nodes": [3]})


def test_saving_some_columns_leaves_the_others(workflow: Workflow) -> None:
    run = make_run(workflow, token="t", disposition="first")
    mine, theirs = reload(run), reload(run)
    theirs.disposition, theirs.annotations = "second", {"n": 1}
    theirs.save()
    mine.disposition, mine.duration = "third", 2.0
    assert mine.save(only=[Run.duration]) == 1
    assert {name: reload(run).columns()[name] for name in ("disposition", "annotations", "duration")} == {
        "disposition": "second",
        "annotations": {"n": 1},
        "duration": 2.0,
    }
    mine.save()
    assert reload(run).disposition == "third"
    assert Run.select().count() == 1


def test_a_record_whose_key_is_another_record(workflow: Workflow) -> None:
    run = make_run(workflow, token="t")
    session = ChatSession.create(run=run, checkpoint={"version": 1})
    assert session.run_id == run.id
    session.status = "error"
    assert session.save() == 1
    found = find(ChatSession, run=run)
    assert found is not None
    assert (found.status, found.checkpoint, found.revision) == ("error", {"version": 1}, 0)


def test_a_record_with_a_key_of_two_columns(workflow: Workflow) -> None:
    run = make_run(workflow, token="t")
    for number in (0, 1):
        Step.create(run=run, number=number, event={"number": number})
    with pytest.raises(ConcurrentUpdate), write():
        Step.create(run=run, number=1, event={})
    found = find(Step, run=run, number=1)
    assert found is not None
    assert found.event == {"number": 1}


def test_a_second_record_of_the_same_unique_value_clashes(organization: Organization) -> None:
    ApiKey.create(organization=organization, name="a", key_prefix="12345678", key_hash="h")
    with pytest.raises(ConcurrentUpdate), write():
        ApiKey.create(organization=organization, name="b", key_prefix="12345678", key_hash="h")
    assert ApiKey.select().where(ApiKey.organization == organization).count() == 1


def test_saving_what_is_no_longer_there_changes_nothing(organization: Organization) -> None:
    reload(organization).delete_instance()
    organization.name = "gone"
    assert organization.save() == 0
    with pytest.raises(RecordNotFound):
        reload(organization)


def test_an_inserted_record_has_its_key_and_the_defaults(workflow: Workflow) -> None:
    columns = {"workflow": workflow, "organization": workflow.organization_id, "name": "r", "mode": "simulator"}
    run = insert(Run, **columns, token="t", annotations={"a": [1]})
    assert find(Run, id=run.id) == run
    assert not run._dirty
    assert reload(run).columns() == Run.get_by_id(run.id).columns() == run.columns()
    assert (run.state, run.initial_context, run.annotations) == ("prepared", {}, {"a": [1]})
    with pytest.raises(ConcurrentUpdate), write():
        insert(Run, **columns, token="t")
    step = insert(Step, run=run.id, number=3, event={"n": 3})
    assert (step.run_id, step.number) == (run.id, 3)
    with pytest.raises(ConcurrentUpdate), write():
        insert(Step, run=run.id, number=3, event={})


def test_updating_some_columns_or_all(workflow: Workflow) -> None:
    run = make_run(workflow, token="t", disposition="first")
    mine, theirs = reload(run), reload(run)
    theirs.disposition, theirs.annotations = "second", {"n": 1}
    update(theirs)
    mine.disposition, mine.duration = "third", 2.0
    update(mine, Run.duration)
    stored = reload(run)
    assert (stored.disposition, stored.annotations, stored.duration) == ("second", {"n": 1}, 2.0)
    update(mine)
    assert (reload(run).disposition, reload(run).annotations) == ("third", {"n": 1})  # only what was set
    theirs.duration = 3.0
    update(theirs)
    assert (reload(run).disposition, reload(run).duration) == ("third", 3.0)  # and isn't stored yet
    step = insert(Step, run=run.id, number=1, event={"n": 1})
    insert(Step, run=run.id, number=2, event={"n": 2})
    step.event = {"changed": True}
    update(step)
    assert [row.event for row in Step.select().order_by(Step.number)] == [{"changed": True}, {"n": 2}]


def test_many_records_at_once(workflow: Workflow) -> None:
    run = make_run(workflow, token="t")
    insert_all(RunEvent, ({"run": run.id, "turn": n, "type": "x", "payload": {"n": n}, "at": now()} for n in range(3)))
    insert_all(RunEvent, [])
    assert [(row.turn, row.payload) for row in RunEvent.select().order_by(RunEvent.id)] == [
        (n, {"n": n}) for n in range(3)
    ]


def test_only_what_is_stored_differently_is_set(workflow: Workflow) -> None:
    run = reload(make_run(workflow, token="t", initial_context={"a": 1}, annotations={"b": [1, {}]}))
    set_changed(run, initial_context={"a": 1}, annotations={"b": [1, {}]}, disposition=None, has_transcript=False)
    assert not run._dirty
    # To Python, these are equal.
    set_changed(run, initial_context={"a": True}, annotations={"b": [1.0, {}]}, disposition="", has_transcript=True)
    update(run)
    found = reload(run)
    assert found.initial_context["a"] is True
    assert isinstance(found.annotations["b"][0], float)
    assert (found.disposition, found.has_transcript) == ("", True)


def test_a_missing_column_is_a_defect_and_no_concurrent_update(workflow: Workflow) -> None:
    run = make_run(workflow, token="t")
    with pytest.raises(Exception, match=r"(?i)not.null") as raised, write():
        insert_all(Step, [{"run": run.id, "number": 1}])
    assert not isinstance(raised.value, ConcurrentUpdate)


def test_a_character_that_not_every_database_can_hold(db: None) -> None:
    """U+0000, which comes in by other ways than JSON: SQLite keeps it, PostgreSQL gets another character instead."""
    insert(Organization, name="a\0b")
    found = require(Organization, "no such organization", name="a\0b")
    assert found.name == sql(sqlite="a\0b", postgresql="a\ufffdb")
    assert [row.id for row in Organization.select().where(Organization.name == "a\0b")] == [found.id]
    assert execute("SELECT id FROM organization WHERE name = ?", "a\0b").fetchone() == (found.id,)


def test_a_json_value_is_decoded_when_it_is_used(workflow: Workflow) -> None:
    run = make_run(workflow, token="t", annotations={"a": [1, {"b": None}], "c": "\u00e9"})
    found = reload(run)
    assert json_text(found, Run.annotations) == '{"a":[1,{"b":null}],"c":"\u00e9"}'
    for copied in (copy.deepcopy(found), pickle.loads(pickle.dumps(found.__data__))):
        value = copied.annotations if isinstance(copied, Run) else decode(copied["annotations"])
        assert value == {"a": [1, {"b": None}], "c": "\u00e9"}
    assert found.annotations == run.annotations
    assert found.annotations is found.annotations
    assert not found._dirty


def test_a_json_value_that_was_changed_in_place_is_stored_when_its_field_is_named(workflow: Workflow) -> None:
    run = make_run(workflow, token="t", annotations={"a": [1]}, llm_usage={"x": 1e-7})
    found = reload(run)
    found.annotations["a"].append(2)
    assert json_text(found, Run.annotations) == '{"a":[1,2]}'
    update(found)
    assert reload(run).annotations == {"a": [1]}
    update(found, Run.annotations, Run.llm_usage)
    assert (reload(run).annotations, reload(run).llm_usage) == ({"a": [1, 2]}, {"x": 1e-7})
    found.annotations["a"].append(3)
    found.save()
    assert reload(run).annotations == {"a": [1, 2, 3]}
